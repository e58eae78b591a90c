"""Threads over independent pieces of work: the library's own pool, and the only threads it starts.

A piece mixes BLAS products and compiled loops. Letting each of those start threads of its own makes two thread pools
spin against each other on the same cores; giving each piece to one thread, with BLAS kept to that thread, does not.
Results come back in order, so that sums over pieces do not depend on the number of threads. Kernels release the lock
and know nothing of threads: Numba's own thread layers kill or hang forked processes, or abort when two threads fit.
The threads of a pool live as long as one call, or one block of `kept_threads`, so that a fork finds none to miss.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import Context, ContextVar
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import numba
import numpy as np

# Cheap operations (a spin update, a cell) that take about a millisecond on one thread.
WORTH_THREADS = 2**16
# Slices that each thread takes one after the other, so that a disturbed one holds up the others for less.
SLICES_A_THREAD = 2

Piece = TypeVar("Piece")
Result = TypeVar("Result")

_MOST: ContextVar[int | None] = ContextVar("_MOST", default=None)
_KEPT: ContextVar[ThreadPoolExecutor | None] = ContextVar("_KEPT", default=None)


def n_threads() -> int:
    """Return on how many threads work is done: what `limited_threads` says here, else ``NUMBA_NUM_THREADS``."""
    return _MOST.get() or numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]


@contextmanager
def limited_threads(n: int) -> Iterator[None]:
    """Keep the work that this thread asks for to `n` threads; results do not depend on it."""
    token = _MOST.set(n)
    try:
        yield
    finally:
        _MOST.reset(token)


def map_ordered(function: Callable[[Piece], Result], pieces: Iterable[Piece]) -> Iterator[Result]:
    """Apply `function` to each piece, on `n_threads` threads, and yield the results in order.

    Pieces that ask for threads themselves get none: theirs is one of them already.
    """
    waiting = list(pieces)
    n_helpers = min(n_threads(), len(waiting)) - 1
    with one_blas_thread():
        if n_helpers < 1:
            yield from map(function, waiting)
            return
        kept = _KEPT.get()
        with ThreadPoolExecutor(n_helpers) if kept is None else nullcontext(kept) as pool:
            yield from _shared(function, waiting, pool, n_helpers)


def _shared(
    function: Callable[[Piece], Result], pieces: list[Piece], pool: ThreadPoolExecutor, n_helpers: int
) -> Iterator[Result]:
    """Take pieces in turns with threads of a pool: what they would do before they have woken up is done here."""
    waiting, done = deque(enumerate(pieces)), dict[int, Result]()

    def alone(piece: Piece) -> Result:
        _MOST.set(1)
        return function(piece)

    def take() -> bool:
        """Do the next piece, if there is one, in a context that is the same on every thread."""
        try:
            number, piece = waiting.popleft()
        except IndexError:
            return False
        try:
            done[number] = Context().run(alone, piece)
        except BaseException:
            waiting.clear()  # the others would work in vain
            raise
        return True

    def take_all() -> None:
        while take():
            pass

    helpers = [pool.submit(take_all) for _ in range(n_helpers)]
    try:
        for number in range(len(pieces)):
            while number not in done and take():
                pass
            if number not in done:  # all are taken: wait for the others, but not for one that has not begun
                for helper in helpers:
                    helper.cancel() or helper.result()
            yield done.pop(number)
    finally:
        waiting.clear()
        for helper in helpers:
            helper.cancel()


@contextmanager
def kept_threads() -> Iterator[None]:
    """Keep one pool for all calls in a block: to start threads takes as long as a millisecond of work gains."""
    if n_threads() == 1 or _KEPT.get() is not None:
        yield
        return
    with ThreadPoolExecutor(n_threads() - 1) as pool:
        token = _KEPT.set(pool)
        try:
            yield
        finally:
            _KEPT.reset(token)


def sum_in_order(function: Callable[[Piece], np.ndarray], pieces: Iterable[Piece], size: int) -> np.ndarray:
    """Return the sum of what `function` gives for each piece, vectors of one size, always added in the same order."""
    waiting = list(pieces)
    if len(waiting) == 1:  # without the ways of many
        with one_blas_thread():
            return function(waiting[0])
    total = np.zeros(size)
    for part in map_ordered(function, waiting):
        total += part
    return total


def map_slices(run: Callable[[slice], Result], n: int, n_operations: float, grain: int = 1) -> list[Result]:
    """Run a kernel on slices of ``range(n)`` and return the results in order.

    A slice begins at a multiple of `grain`. There is one, without threads, where the work is over before they have
    woken up: that takes tens of microseconds on a quiet machine and milliseconds on a busy one.
    """
    threads = 1 if n_operations < WORTH_THREADS else n_threads()
    if threads == 1 or n <= grain:
        return [run(slice(0, n))]
    step = grain * -(-n // (grain * threads * SLICES_A_THREAD))
    return list(map_ordered(run, [slice(first, min(first + step, n)) for first in range(0, n, step)]))


_BLAS_LOCK = Lock()
_BLAS_LIMITS: list[Any] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread: many small products wake and join them in vain.

    The setting is the process's: the last to leave of those that ask for it at a time restores what the first found.
    """
    with _BLAS_LOCK:
        _BLAS_LIMITS.append(_BLAS_LIMITS[0] if _BLAS_LIMITS else _limiter())
    try:
        yield
    finally:
        with _BLAS_LOCK:
            _leave(1)


def _limiter() -> Any:
    """Limit BLAS, unless it has one thread already: to ask is quicker."""
    if all(library.num_threads == 1 for library in _blas().lib_controllers if library.user_api == "blas"):
        return None
    return _blas().limit(limits=1, user_api="blas")


def _leave(n: int) -> None:
    """Take `n` of those that keep BLAS to one thread off the list."""
    for limiter in _BLAS_LIMITS[:n]:
        _BLAS_LIMITS.pop()
        if not _BLAS_LIMITS and limiter is not None:
            limiter.restore_original_limits()


def _after_fork() -> None:
    """Let go of what threads held that the child does not have."""
    global _BLAS_LOCK
    _BLAS_LOCK = Lock()
    _KEPT.set(None)
    _leave(len(_BLAS_LIMITS))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@cache
def _blas() -> Any:
    """The BLAS libraries of this process, looked up once because the search takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
