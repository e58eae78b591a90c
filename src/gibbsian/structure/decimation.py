"""Decimation: drop the weakest couplings until the pseudolikelihood suffers (Decelle and Ricci-Tersenghi 2014)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.learners.objective import ridge
from gibbsian.models import PairwiseModel
from gibbsian.objectives import Pseudolikelihood
from gibbsian.progress import report
from gibbsian.startup import pandas
from gibbsian.structure.problem import Problem, StructureResult, minimise


def decimation(X: Any, *, fraction: float = 0.05, tol: float = 1e-6, **options: Any) -> StructureResult:
    """Drop the smallest couplings round by round and keep the graph of largest tilted pseudolikelihood.

    Each round fits the pseudolikelihood on the couplings that are left and drops the smallest `fraction` of them (one
    at least), down to none. With x the share of the candidates that is left, the tilted pseudolikelihood
    ``PL(x) - [x PL_max + (1 - x) PL_min]`` is zero at both ends and largest where superfluous couplings are gone and
    needed ones still stand.

    Parameters
    ----------
    X : array, frame, path or Dataset
        Complete rows.
    fraction : float
        Share of the remaining couplings to drop in a round.
    tol : float
        Gradient at which each fit stops.
    **options
        As in `learn_structure`; here `l2` penalises the fits on the way too.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes().complete_rows()
    >>> found = gb.structure.decimation(votes, fraction=0.2, l2=0.01)
    >>> bool(0 < found.graph.n_edges < 136)
    True
    """
    if not 0 < fraction < 1:
        raise ArgumentError("must lie between 0 and 1", argument="fraction", value=fraction)
    problem = Problem.read(X, **options)
    problem.check()
    model, kept = problem.independent(), np.arange(problem.candidates.n_edges)
    rounds = []
    while True:
        model, score = _fit(problem, model, tol)
        rounds.append((kept, score))
        report("edges left out", problem.candidates.n_edges - kept.size, problem.candidates.n_edges)
        if kept.size == 0:
            break
        n_dropped = max(1, int(fraction * kept.size))
        left = np.sort(np.argsort(np.abs(model.couplings), kind="stable")[n_dropped:])
        model, kept = _restrict(model, left), kept[left]
    path = _table(rounds, problem.candidates.n_edges)
    best = int(np.argmax(path["chosen"]))
    chosen = np.isin(np.arange(problem.candidates.n_edges), rounds[best][0])
    return problem.answer(chosen, path, "decimation")


def _fit(problem: Problem, model: PairwiseModel, tol: float) -> tuple[PairwiseModel, float]:
    """Return the model of largest pseudolikelihood on the model's graph, and its mean log-pseudolikelihood."""
    function = Pseudolikelihood().bind(model, problem.spins)
    theta = minimise(ridge(function, problem.l2), model.theta, np.zeros(model.theta.size), tol=tol)
    return model.replace(theta), -function(theta)[0]


def _restrict(model: PairwiseModel, left: np.ndarray) -> PairwiseModel:
    """Drop couplings; what is left starts the next fit."""
    graph = Graph(model.n_variables, model.graph.edges[left])
    return PairwiseModel.build(graph, model.biases if model.bias else None, model.couplings[left])


def _table(rounds, n_candidates):
    n_edges = np.array([kept.size for kept, _ in rounds])
    scores = np.array([score for _, score in rounds])
    share = n_edges / n_candidates
    tilted = scores - (share * scores[0] + (1.0 - share) * scores[-1])
    path = pandas.DataFrame({"n_edges": n_edges, "share": share, "pseudolikelihood": scores, "tilted": tilted})
    path["chosen"] = path.index == int(tilted.argmax())
    return path
