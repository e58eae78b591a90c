"""Many fits that know nothing of each other: in this process, in several by joblib, or wherever `dealt_by` sends them.

Each fit has its own generator and one thread, so that what it finds depends neither on where nor on when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

from gibbsian.backends.threads import limited_threads

Item = TypeVar("Item")
Result = TypeVar("Result")
N_JOBS = (
    "Processes to fit in, -1 for as many as there are cores; None is one, or what `joblib.parallel_config` says, or "
    "the workers of a cluster inside `gibbsian.cluster.fits_on`."
)
# What yields the results of a function for items, in their order.
Deal = Callable[[Callable[[Any], Any], list[Any]], Iterator[Any]]
_DEAL: ContextVar[Deal | None] = ContextVar("_DEAL", default=None)


@contextmanager
def dealt_by(deal: Deal) -> Iterator[None]:
    """Have the fits of a block that ask for no number of processes dealt out by a function."""
    token = _DEAL.set(deal)
    try:
        yield
    finally:
        _DEAL.reset(token)


def are_dealt() -> bool:
    """Return whether fits that ask for no number of processes are dealt out here."""
    return _DEAL.get() is not None


def map_fits(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None = None) -> Iterator[Result]:
    """Yield what a function finds for each item, in order, on `n_jobs` processes (see `N_JOBS`).

    Examples
    --------
    >>> from gibbsian.backends.processes import map_fits
    >>> list(map_fits(abs, [-1, 2]))
    [1, 2]
    """
    deal = _DEAL.get()
    if deal is not None and n_jobs is None:
        return deal(partial(_on_one_thread, function), list(items))
    from joblib import Parallel, delayed, effective_n_jobs

    if effective_n_jobs(n_jobs) == 1:
        return map(function, items)
    work = delayed(partial(_on_one_thread, function))
    return Parallel(n_jobs=n_jobs, return_as="generator")(work(item) for item in items)


def _on_one_thread(function: Callable[[Any], Any], item: Any) -> Any:
    with limited_threads(1):
        return function(item)
