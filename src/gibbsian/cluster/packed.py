"""A partition as a worker keeps it: distinct states in bits, and their weights in as few bytes as they need."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.threads import limited_threads, one_blas_thread
from gibbsian.data import Dataset
from gibbsian.data.stream import counted, marked
from gibbsian.data.sums import scaled, tree_sum
from gibbsian.domain import AnyCoding

# Bytes that glibc's malloc keeps (M_TRIM_THRESHOLD), and below which it reuses memory (M_MMAP_THRESHOLD).
_KEPT = ((-1, 2**27), (-3, 2**25))


class Facts(NamedTuple):
    """What the client knows of a partition."""

    n_rows: int
    n_states: int
    n_missing: int
    n_empty: int
    weight: float
    weighted: bool
    nbytes: int
    digest: str


@dataclass(frozen=True, eq=False)
class Packed:
    """Distinct states of a partition, packed.

    Parameters
    ----------
    states : ndarray
        Eight cells a byte where columns have two values, else as in a `Dataset`.
    missing : ndarray or None
        Where cells are missing, eight a byte.
    weights : ndarray
        Weights of the states, in the shortest kind of number that holds them.
    counts : ndarray or None
        Rows that each state stands for; None where these are the weights.
    coding : Coding, CategoryCoding or RealCoding
        How the values are written.
    names : tuple of str
        The variables.
    n_empty : int
        Rows that were left out because all their cells are missing.
    """

    states: np.ndarray
    missing: np.ndarray | None
    weights: np.ndarray
    counts: np.ndarray | None
    coding: AnyCoding
    names: tuple[str, ...]
    n_empty: int = 0

    @classmethod
    def of(cls, data: Dataset, n_empty: int = 0) -> Packed:
        """Pack a data set."""
        states = data.states
        if _in_bits(states, data.coding):
            states = np.packbits(data.states, axis=1)
        missing = None if data.missing is None else np.packbits(data.missing, axis=1)
        counts = None if data.row_weights is None else _short(np.bincount(data.row_of, minlength=data.n_states))
        return cls(states, missing, _short(data.weights), counts, data.coding, data.names, n_empty)

    def unpacked(self) -> Dataset:
        """Return the data set; a state's weight is shared evenly among the rows that it stands for."""
        n, weights = len(self.names), self.weights.astype(np.float64)
        states: Any = self.states
        if self.states.dtype == np.uint8:
            states = np.unpackbits(self.states, axis=1, count=n).view(np.int8)
        missing = None if self.missing is None else np.unpackbits(self.missing, axis=1, count=n).view(bool)
        counts = (self.weights if self.counts is None else self.counts).astype(np.int64)
        row_of = np.repeat(np.arange(len(counts)), counts)
        row_weights = None if self.counts is None else (weights / counts)[row_of]
        return Dataset(states, weights, missing, self.coding, self.names, row_of, row_weights)

    @property
    def weight(self) -> float:
        """The weight of all rows."""
        return float(self.weights.sum(dtype=np.float64))

    @property
    def nbytes(self) -> int:
        """Memory that the arrays take."""
        return sum(array.nbytes for array in self._arrays)

    @property
    def _arrays(self) -> list[np.ndarray]:
        return [array for array in (self.states, self.missing, self.weights, self.counts) if array is not None]

    def __sizeof__(self) -> int:  # what Dask weighs it by
        return self.nbytes

    def facts(self) -> Facts:
        """Return what the client is to know."""
        digest = hashlib.blake2b(digest_size=16)
        for array in self._arrays:
            digest.update(np.ascontiguousarray(array).data)
        counts = self.weights if self.counts is None else self.counts
        n_missing = 0
        if self.missing is not None:
            holes = np.unpackbits(self.missing, axis=1, count=len(self.names)).sum(axis=1)
            n_missing = int(counts.astype(np.int64) @ holes.astype(np.int64))
        n_rows, weighted = int(counts.sum()), self.counts is not None
        sizes = (n_rows, len(counts), n_missing, self.n_empty, self.weight, weighted, self.nbytes)
        return Facts(*sizes, digest.hexdigest())


class Bound:
    """A function of theta on a packed partition.

    What a bound function keeps of the rows would be eight times the packed ones, so they are unpacked for each
    evaluation and the function is bound again; one that says it keeps no rows is bound once.
    """

    def __init__(self, bind: Callable[[Dataset], Any], part: Packed):
        self.bind, self.part, self.function = bind, part, None

    def __call__(self, theta: Any) -> Any:
        """Evaluate."""
        if self.function is not None:
            return self.function(theta)
        function = self.bind(self.part.unpacked())
        if not getattr(function, "keeps_rows", True):
            self.function = function
        return function(theta)

    def __sizeof__(self) -> int:  # so that Dask rather moves a task to it than it to a task
        return self.part.nbytes


# -- what workers do --------------------------------------------------------------------------------------------------
def on_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function without threads of its own: the threads are the worker's."""
    _keep_freed_memory()
    with limited_threads(1), one_blas_thread():
        return function(*arguments)


@cache
def _keep_freed_memory() -> None:
    """Let the C library keep what is freed, if it is glibc.

    Dask tells it on its workers to give memory back at once; every block of an evaluation would then be fresh pages,
    which cost as much as the arithmetic.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if set_option is not None:
        for option, size in _KEPT:
            set_option(option, size)


def apply(part: Packed, *given: Any, function: Callable[..., Any]) -> Any:
    """Return what a function says of a partition, and of what it is given for it."""
    return called(part.unpacked(), *given, function=function)


def called(*given: Any, function: Callable[..., Any]) -> Any:
    """Return what a function says of things."""
    return on_one_thread(function, *given)


def weighed(part: Packed, function: Callable[[Dataset], Any]) -> Any:
    """Return what a function says of a partition, times the partition's weight."""
    return scaled(apply(part, function=function), part.weight)


def evaluated(bound: Bound, theta: Any) -> Any:
    """Return the value of a bound function times the partition's weight."""
    return scaled(on_one_thread(bound, theta), bound.part.weight)


def branch(results: Sequence[Any]) -> Any:
    """Add a run of results."""
    return tree_sum(results)


def remade(part: Packed, function: Callable[[Dataset], Dataset]) -> Packed | None:
    """Return what a function makes of the rows of a partition, packed; None where no row has a weight."""
    data = apply(part, function=function)
    counts = np.ones(1, bool) if data.row_weights is None else data.row_weights > 0
    if not counts.any():
        return None
    return Packed.of(data if counts.all() else data.take(counts), part.n_empty)


def counted_together(parts: Sequence[Packed]) -> Packed:
    """Put partitions together, each distinct row once with its weight."""
    return Packed.of(on_one_thread(counted, [part.unpacked() for part in parts]))


def draw(part: Packed, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw states by their weights, missing cells marked."""
    return marked(*part.unpacked().sample(n, rng).rows())


def _in_bits(states: Any, coding: AnyCoding) -> bool:
    return coding.domain.two_valued and states.dtype.kind == "i"


def _short(numbers: np.ndarray) -> np.ndarray:
    """Return numbers as the shortest unsigned ones, where they are such."""
    largest = numbers.max(initial=0)
    if numbers.min(initial=0) < 0 or largest >= 2**63 or (numbers != np.floor(numbers)).any():
        return numbers
    return numbers.astype(np.min_scalar_type(int(largest)))
