"""Progress bars of long work, by what it reports of itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gibbsian.cli.guard import printable
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
    """The one display of progress, on stderr: bars appear with the first report and go when all of it is done."""

    def __init__(self) -> None:
        self.shown: Any = None
        self.tasks: dict[str, object] = {}

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Move the bar of a kind of work by what it reports."""
        if total is not None and done >= total:
            self._finish(what)
        else:
            self.move(what, done, total, f"{done}/{'?' if total is None else total}")

    def move(self, what: str, done: float, total: float | None, said: str) -> None:
        """Move the bar of a kind of work, and write beside it what there is to say; it stays until it is stopped."""
        if self.shown is None:
            self._start()
        if what not in self.tasks:
            self.tasks[what] = self.shown.add_task(printable(what), total=total, said="")
        self.shown.update(self.tasks[what], completed=done, total=total, said=printable(said))

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        words, said = (TextColumn(f"{{task.{name}}}", markup=False) for name in ("description", "fields[said]"))
        # what is printed meanwhile stands above the bars, but is not led to the terminal on its way to a file or a pipe
        self.shown = Progress(
            *(words, BarColumn(), said, TimeElapsedColumn()),
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
        )
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
