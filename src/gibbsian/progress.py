"""How far long work has come, for whoever wants to see it; nobody is bothered unless someone asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

# What is called with the name of the work, how much of it is done, and how much there is in all, where that is known.
Report = Callable[[str, int, int | None], None]
Item = TypeVar("Item")
_LISTENER: ContextVar[Report | None] = ContextVar("gibbsian_progress", default=None)


@contextmanager
def reporting(listener: Report) -> Iterator[None]:
    """Have a function called with the progress of all long work inside the block: name, done, total or None.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.progress import reporting
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
    >>> seen = []
    >>> with reporting(lambda what, done, total: seen.append((what, done, total))):
    ...     rows = bm.unusual([[1, 1], [1, -1]], n=1)
    >>> seen
    [('rows', 2, 2)]
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report(what: str, done: int, total: int | None) -> None:
    """Say how far a piece of work has come."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(what, done, total)


def counted(items: Iterable[Item], what: str, total: int | None = None) -> Iterator[Item]:
    """Yield items, each reported when it is done."""
    for done, item in enumerate(items, start=1):
        yield item
        report(what, done, total)
