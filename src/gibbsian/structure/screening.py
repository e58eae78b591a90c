"""Interaction screening with its theoretical penalty and a threshold (Vuffray 2016, Lokhov 2018)."""

from __future__ import annotations

from typing import Literal, Unpack

import numpy as np

from gibbsian.arrays import Floats, Mask
from gibbsian.errors import ArgumentError
from gibbsian.learning import LEARNERS
from gibbsian.learning.nodewise import LOSSES, directed_pairs, noise_level
from gibbsian.startup import pandas
from gibbsian.structure.problem import Options, Problem, StructureResult, combine, minimise

# On 80 random models of 16 variables (grids and random graphs, |J| = 0.2 or 0.4 to 0.7, N = 2000), averaged over the
# three losses: a factor of 1 left 0.27 superfluous edges per graph and lost 0.004 true ones; 1.5 left 0.02 and lost
# 0.15, all of them 0.2 in size; 2 left 0.01 and lost 1.5.
ABOVE_NOISE = 1.5


def screening(
    X: object,
    *,
    loss: Literal["rise", "logrise", "rple"] = "rise",
    rule: Literal["average", "and", "or"] = "average",
    l1: float | Literal["theory"] = "theory",
    threshold: float | None = None,
    tol: float = 1e-7,
    **options: Unpack[Options],
) -> StructureResult:
    """Estimate all couplings at one penalty and keep those beyond a threshold.

    Parameters
    ----------
    X : array, frame, path or Dataset
        Complete rows.
    loss : {"rise", "logrise", "rple"}
        Interaction screening, its logarithm, or nodewise pseudolikelihood.
    rule : {"average", "and", "or"}
        Compare the average of a coupling's two estimates with the threshold (the papers), or both, or either.
    l1 : float or "theory"
        Penalty on the couplings between spins.
    threshold : float, optional
        Smallest coupling (between spins) to keep. The papers take half the smallest true coupling, which is seldom
        known; by default it is ``1.5 sqrt(log(n^2 / 0.05) / N)``, which noise alone seldom reaches.
    tol : float
        Gradient at which the fit stops.
    **options
        As in `learn_structure`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes().complete_rows()
    >>> found = gb.structure.screening(votes, loss="logrise", l2=0.01)
    >>> ("physician-fee-freeze", "republican") in found.edges()
    True
    """
    problem = Problem.read(X, **options)
    problem.check(l1=1.0)
    model = problem.independent()
    pairs, start = directed_pairs(model)
    penalty = LEARNERS.create(loss, l1=l1).penalty(model, problem.spins)
    if threshold is None:
        threshold = ABOVE_NOISE * noise_level(problem.spins.n_variables, problem.spins.total_weight)
    if not threshold >= 0:
        raise ArgumentError("must be zero or positive", argument="threshold", value=threshold)
    function = LOSSES[loss](pairs, problem.spins)
    theta = minimise(function, start, np.where(pairs.penalised, penalty, 0.0), tol=tol)
    forward, backward = np.split(pairs.split(theta)[1], 2)
    chosen = _beyond(forward, backward, threshold, rule)
    path = _table(problem, forward, backward, penalty, threshold, chosen)
    return problem.answer(chosen, path, loss)


def _beyond(forward: Floats, backward: Floats, threshold: float, rule: str) -> Mask:
    """Compare the two estimates of each coupling with the threshold."""
    if rule == "average":
        above: Mask = np.abs(forward + backward) / 2 > threshold
        return above
    return combine(np.abs(forward) > threshold, np.abs(backward) > threshold, rule)


def _table(
    problem: Problem, forward: Floats, backward: Floats, penalty: float, threshold: float, chosen: Mask
) -> pandas.DataFrame:
    """Return the penalised estimates of every candidate edge, the largest first."""
    names = np.array(problem.data.names, dtype=object)
    first, second = problem.candidates.edges.T
    table = pandas.DataFrame(
        {
            "first": names[first],
            "second": names[second],
            "l1": penalty,
            "threshold": threshold,
            "coupling": (forward + backward) / 2,
            "forward": forward,
            "backward": backward,
            "chosen": chosen,
        }
    )
    return table.sort_values("coupling", key=np.abs, ascending=False, kind="stable", ignore_index=True)
