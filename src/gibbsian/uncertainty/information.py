"""The variance of the mean score: the filling of a sandwich, whose bread are the learner's equations.

For a mean of row losses with gradient scores ``s_m``, the estimate has covariance ``H^-1 M H^-1`` with H the mean
second derivative and M the variance of the mean score (Godambe 1960, Huber 1967).
"""

from __future__ import annotations

import numpy as np

from gibbsian.errors import TooExpensiveError
from gibbsian.objectives.base import Scores
from gibbsian.objectives.curvature import FLOPS_PER_SECOND, STATES_AT_ONCE
from gibbsian.resources import require_memory
from gibbsian.uncertainty.weights import RowShares


def check_cost(size: int, n_states: int, max_seconds: float) -> None:
    """Refuse when the matrices of all pairs of parameters do not fit the memory or the time."""
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
