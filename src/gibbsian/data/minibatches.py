"""Minibatches: all rows once a pass, in an order that a seed and the number of the pass decide.

Nothing here keeps a position: batch `k` of pass `e` is a function of the seed, `e` and `k`, so a learner that stores
these few numbers goes on after a break as if there had been none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from gibbsian.data.dataset import Dataset
from gibbsian.data.weights import systematic_draws
from gibbsian.errors import ArgumentError


class ShuffledPass(Protocol):
    """One pass over the rows: a number of minibatches, each to be had by its place."""

    def __len__(self) -> int: ...
    def __getitem__(self, k: int) -> Dataset: ...


@runtime_checkable
class MinibatchSource(Protocol):
    """Rows that can be had in minibatches, whether they are in memory or on disk.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.data.minibatches import MinibatchSource, as_minibatch_source
    >>> isinstance(as_minibatch_source(gb.Dataset.read([[0, 1], [1, 0]])), MinibatchSource)
    True
    """

    @property
    def n_rows(self) -> int:
        """Rows of a pass."""

    def shuffled(self, batch_size: int, seed: np.ndarray, epoch: int) -> ShuffledPass:
        """Return pass number `epoch` of the shuffling that `seed` stands for."""


def as_minibatch_source(data: Dataset | MinibatchSource) -> MinibatchSource:
    """Make rows in memory a source of minibatches; a stream is one already.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.data.minibatches import as_minibatch_source
    >>> as_minibatch_source(gb.Dataset.read([[0, 1], [1, 0]])).n_rows
    2
    """
    return RowsInMemory(data) if isinstance(data, Dataset) else data


def draw_seed(rng: np.random.Generator) -> np.ndarray:
    """Draw what the orders of all passes follow from: an array that a checkpoint can hold."""
    return rng.integers(0, 2**63, size=4, dtype=np.int64)


def seeded(seed: np.ndarray, *numbers: int) -> np.random.Generator:
    """Return the generator of one pass, or of one part of it.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.data.minibatches import draw_seed, seeded
    >>> seed = draw_seed(np.random.default_rng(0))
    >>> bool(seeded(seed, 3).random() == seeded(seed, 3).random() != seeded(seed, 4).random())
    True
    """
    return np.random.default_rng([*map(int, seed), *numbers])


@dataclass(frozen=True)
class Cuts:
    """Where a pass is cut: batches as equal as can be, so that none at the end is small and noisy.

    Examples
    --------
    >>> from gibbsian.data.minibatches import Cuts
    >>> cuts = Cuts(25, 10)
    >>> [cuts[k] for k in range(len(cuts))]
    [(0, 12), (12, 25)]
    """

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
class RowsInMemory:
    """The rows of a `Dataset` in minibatches; weighted rows occur as often as their weights say.

    A pass makes as many draws as there are rows, at equal steps along the cumulated weights from a random start
    (systematic sampling): rows of equal weight come exactly once each, others the next lower or the next higher
    number of times than their share, and on average exactly their share.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.data.minibatches import RowsInMemory
    >>> rows = RowsInMemory(gb.Dataset.read([[0, 0], [0, 1], [1, 0], [1, 1]]))
    >>> one_pass = rows.shuffled(2, np.arange(4), epoch=0)
    >>> sorted(sum((one_pass[k].states.tolist() for k in range(2)), []))
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """

    data: Dataset

    @property
    def n_rows(self) -> int:
        """Rows of a pass."""
        return self.data.n_rows

    def shuffled(self, batch_size: int, seed: np.ndarray, epoch: int) -> ShuffledPass:
        """Return pass number `epoch`."""
        rng = seeded(seed, epoch)
        drawn = systematic_draws(self.data.weights, self.n_rows, rng)
        return _MemoryPass(self.data, rng.permutation(drawn), Cuts(self.n_rows, batch_size))


@dataclass(frozen=True, eq=False)
class _MemoryPass:
    data: Dataset
    order: np.ndarray
    cuts: Cuts

    def __len__(self) -> int:
        return len(self.cuts)

    def __getitem__(self, k: int) -> Dataset:
        start, stop = self.cuts[k]
        return Dataset.of_states(
            self.data.states[self.order[start:stop]], self.data.coding, names=self.data.names, distinct=False
        )
