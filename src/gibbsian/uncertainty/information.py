"""The variance of the mean score, the middle of a sandwich, under either meaning of row weights.

For a mean of row losses with gradient scores ``s_m``, the estimate has covariance ``H^-1 M H^-1`` with H the mean
second derivative and M the variance of the mean score (Godambe 1960, Huber 1967).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.learning.objectives.base import Scores
from gibbsian.learning.objectives.curvature import FLOPS_PER_SECOND
from gibbsian.models.conditionals.base import STATES_AT_ONCE
from gibbsian.resources import require_memory

WeightMeaning = Literal["frequencies", "importance"]


def check_meaning(weights: str) -> None:
    """Refuse unknown meanings of weights."""
    if weights not in ("frequencies", "importance"):
        raise ArgumentError("must be 'frequencies' or 'importance'", argument="weights", value=weights)


@dataclass(frozen=True)
class RowWeights:
    """The weight of each distinct row in a mean, and in the variance of that mean.

    Parameters
    ----------
    mean : ndarray of shape (n_distinct,)
        Weights that add up to one.
    squared : ndarray of shape (n_distinct,)
        Sum of the squared weights of all rows that are equal.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.uncertainty.information import RowWeights
    >>> data = gb.Dataset.read([[0, 1], [1, 1]], sample_weight=[3, 1])
    >>> RowWeights.of(data, "frequencies").effective_rows
    4.0
    >>> RowWeights.of(data, "importance").effective_rows                        # (3 + 1)^2 / (9 + 1)
    1.6
    """

    mean: Floats
    squared: Floats

    @classmethod
    def of(cls, data: Dataset, meaning: WeightMeaning) -> Self:
        """Return the weights; a weight of 3 is three rows (frequencies) or one row that counts thrice (importance)."""
        check_meaning(meaning)
        total = data.total_weight
        if meaning == "frequencies" or data.row_weights is None:
            return cls(data.weights / total, data.weights / total**2)
        squares = np.bincount(data.row_of, data.row_weights**2, minlength=data.n_states)
        return cls(data.weights / total, squares / total**2)

    @property
    def effective_rows(self) -> float:
        """Effective sample size (Kish): the number of rows of equal weight with the same variance of a mean."""
        return float(1.0 / self.squared.sum())


def check_cost(size: int, n_states: int, max_seconds: float) -> None:
    """Refuse when the matrices of all pairs of parameters exceed the memory or the time."""
    what, instead = f"standard errors of {size:,} parameters", "use bootstrap, or a sparser graph"
    seconds = (2.0 * n_states * size**2 + 4.0 * size**3) / FLOPS_PER_SECOND
    if seconds > max_seconds:
        raise TooExpensiveError(
            f"{what} from {n_states:,} distinct rows would take about {seconds:.2g} s, but "
            f"`max_seconds={max_seconds:g}`",
            f"{instead}, or raise `max_seconds`",
        )
    require_memory(8.0 * (5 * size**2 + 3 * STATES_AT_ONCE * size), what, instead)


def variance_of_mean_score(scores: Scores, weights: RowWeights, size: int) -> Floats:
    """Return M, with the scores centred at their mean, which is not zero under a penalty."""
    outer, mean, skew = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    for block, values in scores:
        mean += weights.mean[block] @ values
        skew += weights.squared[block] @ values
        scaled = values * np.sqrt(weights.squared[block, None])
        outer += scaled.T @ scaled  # one array with itself: BLAS computes one half only
    cross = np.outer(mean, skew)
    return outer - cross - cross.T + np.outer(mean, mean) / weights.effective_rows
