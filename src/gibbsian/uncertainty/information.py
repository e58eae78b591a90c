"""Scores of rows and the variance of their mean: the filling of a sandwich (its bread is `objectives.curvature`).

For a mean of row losses with gradient scores ``s_m``, the estimate has covariance ``H^-1 M H^-1`` with H the mean
second derivative and M the variance of the mean score (Godambe 1960, Huber 1967).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from gibbsian.data import Dataset
from gibbsian.diagnostics.existence import statistics_matrix
from gibbsian.errors import TooExpensiveError
from gibbsian.inference.missing import clamped_moments
from gibbsian.models import PairwiseModel
from gibbsian.objectives import FlipCostObjective
from gibbsian.objectives.curvature import FLOPS_PER_SECOND, STATES_AT_ONCE, loss_slopes, state_blocks
from gibbsian.resources import require_memory
from gibbsian.uncertainty.weights import RowShares

Scores = Iterable[tuple[slice, np.ndarray]]
"""Blocks of states with the gradient of each state's loss, one row per state."""


def check_cost(size: int, n_states: int, max_seconds: float) -> None:
    """Refuse when the matrices of all pairs of parameters do not fit the memory or the time.

    Examples
    --------
    >>> from gibbsian.uncertainty.information import check_cost
    >>> check_cost(45_150, 10**5, max_seconds=60)                   # 300 variables, all pairs
    Traceback (most recent call last):
        ...
    gibbsian.errors.TooExpensiveError: standard errors of 45,150 parameters ...
    """
    what = f"standard errors of {size:,} parameters"
    instead = "use bootstrap, or a sparser graph"
    seconds = (2.0 * n_states * size**2 + 4.0 * size**3) / FLOPS_PER_SECOND
    if seconds > max_seconds:
        raise TooExpensiveError(
            f"{what} from {n_states:,} distinct rows would take about {seconds:.2g} s, but "
            f"`max_seconds={max_seconds:g}`",
            f"{instead}, or raise `max_seconds`",
        )
    require_memory(8.0 * (5 * size**2 + 3 * STATES_AT_ONCE * size), what, instead)


def variance_of_mean_score(scores: Scores, shares: RowShares, size: int) -> np.ndarray:
    """Return M, with the scores centred at their mean (which a penalty keeps from zero)."""
    outer, mean, skew = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    for block, values in scores:
        mean += shares.mean[block] @ values
        skew += shares.squared[block] @ values
        scaled = values * np.sqrt(shares.squared[block, None])
        outer += scaled.T @ scaled  # one array with itself: BLAS computes one half only
    cross = np.outer(mean, skew)
    return outer - cross - cross.T + np.outer(mean, mean) / shares.n_rows


# -- objectives on flip costs -----------------------------------------------------------------------------------------
def flip_cost_scores(
    objective: FlipCostObjective, model: PairwiseModel, data: Dataset, directed: bool = False
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the gradient of each state's loss; with the two directions of each coupling apart if `directed`."""
    scale, (i, j) = model.domain.gap / model.temperature, model.graph.edges.T
    left_out = None if objective.left_out is None else objective.left_out(data)
    for block in state_blocks(data):
        x = data.states[block].astype(np.float64)
        slopes = loss_slopes(objective, model.flip_costs(x)) * np.where(x == model.domain.high, scale, -scale)
        if left_out is not None:
            slopes[left_out[block]] = 0.0
        biases = slopes[:, : model.n_biases]
        forward, backward = slopes[:, i] * x[:, j], slopes[:, j] * x[:, i]
        yield block, np.hstack([biases, forward, backward] if directed else [biases, forward + backward])


# -- exact likelihood -------------------------------------------------------------------------------------------------
def likelihood_scores(
    model: PairwiseModel, data: Dataset, max_seconds: float = 60.0
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield minus the statistics of each state over T; missing cells are averaged over what they may be.

    The gradient has the model's moments beside them, the same for every state: they vanish in a variance.
    """
    for block in state_blocks(data):
        statistics = statistics_matrix(model, data.states[block])
        if data.missing is not None:
            for place in np.flatnonzero(data.missing[block].any(axis=1)):
                _, statistics[place] = clamped_moments(model, data, block.start + int(place), max_seconds)
        yield block, -statistics / model.temperature
