"""Decimation: drop the weakest couplings until the pseudolikelihood suffers (Decelle and Ricci-Tersenghi 2014)."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from gibbsian.arrays import Integers
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.learning.objectives import Pseudolikelihood
from gibbsian.learning.objectives.priors import SmoothPenalty
from gibbsian.models import Model, PairwiseFamily
from gibbsian.progress import report
from gibbsian.startup import pandas
from gibbsian.structure.problem import Options, Problem, StructureResult, minimise


def decimation(X: object, *, fraction: float = 0.05, tol: float = 1e-6, **options: Unpack[Options]) -> StructureResult:
    """Drop the smallest couplings round by round and keep the graph of largest tilted pseudolikelihood.

    Each round fits the pseudolikelihood on the remaining couplings and drops the smallest `fraction` of them (one
    at least), down to none. With x the fraction of the candidates that remain, the tilted pseudolikelihood
    ``PL(x) - [x PL_max + (1 - x) PL_min]`` is zero at both ends and largest where superfluous couplings are gone and
    needed ones remain.

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
    n_candidates = problem.candidates.n_edges
    model, edges = problem.independent(), np.arange(n_candidates)
    rounds = []
    while True:
        model, score = _fit(problem, model, tol)
        rounds.append((edges, score))
        report("edges left out", n_candidates - edges.size, n_candidates)
        if edges.size == 0:
            break
        n_dropped = max(1, int(fraction * edges.size))
        remaining = np.sort(np.argsort(np.abs(model.parts.couplings), kind="stable")[n_dropped:])
        model, edges = _restrict(model, remaining), edges[remaining]
    path = _table([(edges.size, score) for edges, score in rounds], n_candidates)
    best = int(np.argmax(path["chosen"]))
    chosen = np.isin(np.arange(n_candidates), rounds[best][0])
    return problem.answer(chosen, path, "decimation")


def _fit(problem: Problem, model: Model[PairwiseFamily], tol: float) -> tuple[Model[PairwiseFamily], float]:
    """Return the model of largest pseudolikelihood on the model's graph, and its mean log-pseudolikelihood."""
    function = Pseudolikelihood().bind(model, problem.spins)
    theta = minimise(SmoothPenalty(problem.l2).added_to(function), model.theta, np.zeros(model.theta.size), tol=tol)
    return model.replace(theta), -function(theta)[0]


def _restrict(model: Model[PairwiseFamily], remaining: Integers) -> Model[PairwiseFamily]:
    """Drop all couplings but the remaining ones, from which the next fit starts."""
    family, (biases, couplings) = model.family, model.family.split(model.theta)
    graph = Graph(model.n_variables, family.graph.edges[remaining])
    return PairwiseFamily.model(graph, biases if family.bias else None, couplings[remaining])


def _table(rounds: list[tuple[int, float]], n_candidates: int) -> pandas.DataFrame:
    """Return one row per round, from its number of edges and its pseudolikelihood."""
    n_edges, scores = map(np.array, zip(*rounds, strict=True))
    fraction = n_edges / n_candidates
    tilted = scores - (fraction * scores[0] + (1.0 - fraction) * scores[-1])
    path = pandas.DataFrame({"n_edges": n_edges, "share": fraction, "pseudolikelihood": scores, "tilted": tilted})
    path["chosen"] = path.index == int(tilted.argmax())
    return path
