"""Threads over independent pieces of work.

A piece mixes BLAS products and compiled loops. Letting each of those start threads of its own makes two thread pools
spin against each other on the same cores; giving each piece to one thread, with BLAS kept to that thread, does not.
Results come back in order, so that sums over pieces do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, TypeVar

import numba
import numpy as np

# Cheap operations (a spin update, a cell) that take about a millisecond on one thread.
WORTH_THREADS = 2**16

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def n_threads() -> int:
    """Return on how many threads work is done: Numba's setting, ``NUMBA_NUM_THREADS`` or ``numba.set_num_threads``."""
    return numba.get_num_threads()


def map_in_order(function: Callable[[Piece], Result], pieces: Iterable[Piece]) -> Iterator[Result]:
    """Apply `function` to each piece, on as many threads as Numba uses, and yield the results in order."""
    waiting = list(pieces)
    with one_blas_thread():
        if len(waiting) == 1:
            yield function(waiting[0])
            return
        with ThreadPoolExecutor(n_threads()) as pool:
            yield from pool.map(function, waiting)


def sum_in_order(function: Callable[[Piece], np.ndarray], pieces: Iterable[Piece], size: int) -> np.ndarray:
    """Return the sum of what `function` gives for each piece, vectors of one size, always added in the same order."""
    total = np.zeros(size)
    for part in map_in_order(function, pieces):
        total += part
    return total


@contextmanager
def threads_for(n_operations: float) -> Iterator[None]:
    """Keep Numba's own threads out of work that is over before they have woken up.

    Waking and joining them takes tens of microseconds on a quiet machine and milliseconds on a busy one.
    """
    threads = numba.get_num_threads()
    numba.set_num_threads(1 if n_operations < WORTH_THREADS else threads)
    try:
        yield
    finally:
        numba.set_num_threads(threads)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep BLAS to one thread: many small products wake and join them in vain."""
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> Any:
    """The BLAS libraries of this process, looked up once because the search takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
