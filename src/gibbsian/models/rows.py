"""The rows of data that families learn from: the part of `gibbsian.data` on which this package depends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, States

T = TypeVar("T")


class RowsInMemory(Protocol):
    """Distinct rows with their weights; a missing cell may hold any number."""

    @property
    def states(self) -> States:
        """The rows."""

    @property
    def weights(self) -> Floats:
        """The weight of each row."""

    @property
    def missing(self) -> Mask | None:
        """The mask of missing cells; None if there are none."""


class PartitionedRows(Protocol):
    """Rows in memory, on disk or on workers, in parts."""

    def reduce(self, function: Callable[[RowsInMemory], T]) -> T:
        """Return the sum of a function over the parts."""

    def mean(self, function: Callable[[RowsInMemory], T]) -> T:
        """Return the mean of a function over the parts, weighted by their total weights."""


def patterns_of(rows: States, missing: Mask | None) -> Iterator[tuple[Integers, Mask]]:
    """Group rows by their missing cells: yield the indices of the rows and the mask of the cells of each group."""
    if missing is None:
        yield np.arange(len(rows)), np.zeros(rows.shape[1], bool)
        return
    patterns, which = np.unique(missing, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        yield np.flatnonzero(which.ravel() == k), pattern
