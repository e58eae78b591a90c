"""Weights of rows, and minibatches: all rows once a pass, in an order that a seed and the number of the pass decide.

Nothing here keeps a position: batch `k` of pass `e` is a function of the seed, `e` and `k`, so a learner that stores
these few numbers goes on after a break as if there had been none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from gibbsian.data.dataset import Dataset


def draw_seed(rng: np.random.Generator) -> np.ndarray:
    """Draw what the orders of all passes follow from: an array that a checkpoint can hold."""
    return rng.integers(0, 2**63, size=4, dtype=np.int64)


def seeded(seed: np.ndarray, *numbers: int) -> np.random.Generator:
    """Return the generator of one pass, or of one part of it."""
    return np.random.default_rng([*map(int, seed), *numbers])


@dataclass(frozen=True)
class Cuts:
    """Where a pass is cut: batches as equal as can be, so that none at the end is small and noisy."""

    n_rows: int
    batch_size: int

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ArgumentError("must be at least 1", argument="batch_size", value=self.batch_size)

    def __len__(self) -> int:
        return max(1, round(self.n_rows / self.batch_size))

    @property
    def ends(self) -> np.ndarray:
        """Where batches begin, and the end of the last."""
        return np.arange(len(self) + 1) * self.n_rows // len(self)

    def __getitem__(self, k: int) -> tuple[int, int]:
        if not 0 <= k < len(self):
            raise IndexError(f"batch {k} of {len(self)}")
        return k * self.n_rows // len(self), (k + 1) * self.n_rows // len(self)


@dataclass(frozen=True, eq=False)
class MemoryPass:
    """A pass over distinct states of a `Dataset`, in a given order."""

    data: Dataset
    order: np.ndarray
    cuts: Cuts

    def __len__(self) -> int:
        return len(self.cuts)

    def __getitem__(self, k: int) -> Dataset:
        start, stop = self.cuts[k]
        data, chosen = self.data, self.order[start:stop]
        missing = None if data.missing is None else data.missing[chosen]
        return data.of_states(data.states[chosen], data.coding, names=data.names, missing=missing, distinct=False)


# -- weights -----------------------------------------------------------------------------------------------------------
def check_weights(sample_weight: ArrayLike, n_rows: int) -> np.ndarray:
    """Return sample weights as float64 after checking them; one number stands for all rows."""
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("`sample_weight` must be a list of numbers, one per row") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise DataError("Sample weights must be 1D array or scalar", f"`sample_weight` has shape {weights.shape}")
    if len(weights) != n_rows:
        raise DataError(
            f"`sample_weight` has {len(weights)} entries but the data has {n_rows} rows (`sample_weight`.shape)"
        )
    for bad, what in ((~np.isfinite(weights), "finite"), (weights < 0, "zero or positive")):
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise DataError(f"`sample_weight` holds {weights[row]} at row {row}", f"weights must be {what}")
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise DataError(
                "`sample_weight` has a sum beyond the largest number", "divide all weights by the same factor"
            )
    if not weights.any():
        raise DataError("`sample_weight` is zero for every row", "give at least one row a positive weight")
    return weights


def systematic_draws(weights: np.ndarray, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draw places with frequencies as near to the weights as whole numbers can be."""
    edges = np.cumsum(weights) * (n_draws / weights.sum())
    edges[-1] = n_draws  # rounding must not lose the last draw
    ends = np.ceil(edges - rng.random()).clip(0, n_draws).astype(np.int64)
    return np.repeat(np.arange(len(weights)), np.diff(ends, prepend=0))
