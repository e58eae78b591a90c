"""What sample weights mean to an error bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError

WeightMeaning = Literal["frequencies", "importance"]


def check_meaning(weights: str) -> None:
    """Refuse unknown meanings of weights."""
    if weights not in ("frequencies", "importance"):
        raise ArgumentError("must be 'frequencies' or 'importance'", argument="weights", value=weights)


@dataclass(frozen=True)
class RowShares:
    """The weight of each distinct state in a mean over rows, and in the variance of that mean.

    Parameters
    ----------
    mean : ndarray of shape (n_states,)
        Shares that add up to one.
    squared : ndarray of shape (n_states,)
        Sum of the squared shares of the state's rows.
    """

    mean: np.ndarray
    squared: np.ndarray

    @classmethod
    def of(cls, data: Dataset, weights: WeightMeaning) -> Self:
        """Return the shares; a weight of 3 is three rows (frequencies) or one row that counts thrice (importance)."""
        check_meaning(weights)
        total = data.total_weight
        if weights == "frequencies" or data.row_weights is None:
            return cls(data.weights / total, data.weights / total**2)
        squares = np.bincount(data.row_of, data.row_weights**2, minlength=data.n_states)
        return cls(data.weights / total, squares / total**2)

    @property
    def n_rows(self) -> float:
        """Number of independent rows of equal weight that are worth as much."""
        return float(1.0 / self.squared.sum())
