"""Progress bars of long work, by what it reports of itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gibbsian.progress import reporting


def is_watched() -> bool:
    """Whether stderr is a terminal."""
    return sys.stderr.isatty()


@contextmanager
def watched() -> Iterator[None]:
    """Show how far long work inside the block has come, one bar for each kind, where stderr is a terminal."""
    if not is_watched():
        yield
        return
    bars = Bars()
    try:
        with reporting(bars):
            yield
    finally:
        bars.stop()


class Bars:
    """Bars on stderr that appear with the first report and go when all that was reported is done."""

    def __init__(self) -> None:
        self.shown: Any = None
        self.tasks: dict[str, Any] = {}

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Move the bar of a kind of work."""
        if total is not None and done >= total:
            self._finish(what)
            return
        if self.shown is None:
            self._start()
        if what not in self.tasks:
            self.tasks[what] = self.shown.add_task(what, total=total)
        self.shown.update(self.tasks[what], completed=done, total=total)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        console = Console(stderr=True)  # results go where they are sent
        self.shown = Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
        self.shown.start()

    def _finish(self, what: str) -> None:
        if what in self.tasks:
            self.shown.remove_task(self.tasks.pop(what))
        if not self.tasks:
            self.stop()

    def stop(self) -> None:
        """Take them away."""
        if self.shown is not None:
            self.shown.stop()
        self.shown = None
        self.tasks.clear()
