"""Minibatches: all rows once a pass, in an order that a seed and the number of the pass decide.

Nothing here keeps a position: batch `k` of pass `e` is a function of the seed, `e` and `k`, so a learner that stores
these few numbers goes on after a break as if there had been none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from gibbsian.errors import ArgumentError


class ShuffledPass(Protocol):
    """One pass over the rows: a number of minibatches, each to be had by its place."""

    def __len__(self) -> int: ...
    def __getitem__(self, k: int) -> Any: ...


@runtime_checkable
class MinibatchSource(Protocol):
    """Rows that can be had in minibatches, whether they are in memory (`Dataset`) or on disk (`DataStream`)."""

    @property
    def n_rows(self) -> int:
        """Rows of a pass."""

    def shuffled(self, batch_size: int, seed: np.ndarray, epoch: int) -> ShuffledPass:
        """Return pass number `epoch` of the shuffling that `seed` stands for."""


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

    def __getitem__(self, k: int) -> tuple[int, int]:
        if not 0 <= k < len(self):
            raise IndexError(f"batch {k} of {len(self)}")
        return k * self.n_rows // len(self), (k + 1) * self.n_rows // len(self)


@dataclass(frozen=True, eq=False)
class MemoryPass:
    """A pass over distinct states of a `Dataset`, in a given order."""

    data: Any
    order: np.ndarray
    cuts: Cuts

    def __len__(self) -> int:
        return len(self.cuts)

    def __getitem__(self, k: int) -> Any:
        start, stop = self.cuts[k]
        data, chosen = self.data, self.order[start:stop]
        missing = None if data.missing is None else data.missing[chosen]
        return data.of_states(data.states[chosen], data.coding, names=data.names, missing=missing, distinct=False)
