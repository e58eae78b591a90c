"""Progress bars for fits: how far the gradient, or the gain of a step, has come on its way to the tolerance."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gibbsian.full_span import TimedStep
    from gibbsian.learners.driver import Callback
    from gibbsian.optimizers import StepInfo


@contextmanager
def fit_progress(label: str, max_iter: int, tol: float, show: bool = True) -> Iterator[Callback | None]:
    """Show a bar on stderr while a fit runs; gives the callback that moves it (None where nobody is looking).

    Examples
    --------
    >>> from gibbsian.cli.progress import fit_progress
    >>> with fit_progress("fitting", max_iter=10, tol=1e-6, show=False) as callback:
    ...     print(callback)
    None
    """
    with _bar(label, show) as move:
        way, pace = Way(max_iter, tol), Pace()

        def callback(step: int, info: StepInfo) -> None:
            told = f"step {step}  value {info.value:.6g}  gradient {info.gradient_norm:.1e}  {pace.told(step)}"
            move(way.share(step, info.gradient_norm), told)  # type: ignore[misc]

        yield None if move is None else callback


@contextmanager
def span_progress(label: str, epsilon: float, show: bool = True) -> Iterator[Callable[[int, TimedStep], None] | None]:
    """Show a bar while a full-span model grows: kind of step, cost, number of functions, time per step.

    Examples
    --------
    >>> from gibbsian.cli.progress import span_progress
    >>> with span_progress("fitting", epsilon=1e-4, show=False) as callback:
    ...     print(callback)
    None
    """
    with _bar(label, show) as move:
        way = Way(max_iter=10**9, tol=epsilon)  # the gains of the steps fall towards epsilon

        def callback(step: int, info: TimedStep) -> None:
            move(way.share(step, info.gain), f"step {step}  {info.describe()}")  # type: ignore[misc]

        yield None if move is None else callback


@contextmanager
def _bar(label: str, show: bool) -> Iterator[Callable[[float, str], None] | None]:
    """Show a bar on stderr; gives what moves it, or None where nobody is looking."""
    if not (show and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=1.0, told="starting")
        yield lambda share, told: bar.update(task, completed=share, told=told)


class Way:
    """The share of a fit that is done: decades of the gradient, or steps where those are further; never backwards.

    Examples
    --------
    >>> from gibbsian.cli.progress import Way
    >>> way = Way(max_iter=1000, tol=1e-6)
    >>> way.share(1, 1.0), way.share(2, 1e-3), way.share(3, 1e-2)
    (0.001, 0.5, 0.5)
    """

    def __init__(self, max_iter: int, tol: float):
        self.max_iter = max_iter
        self.tol = tol
        self.first: float | None = None
        self.done = 0.0

    def share(self, step: int, gradient: float) -> float:
        """Return the share after a step."""
        self.done = max(self.done, step / self.max_iter, self._decades(gradient))
        return self.done

    def _decades(self, gradient: float) -> float:
        if not (math.isfinite(gradient) and gradient > self.tol > 0):
            return 1.0 if gradient <= self.tol else 0.0
        if self.first is None:
            self.first = gradient
        whole = math.log(self.first / self.tol)
        return math.log(self.first / gradient) / whole if whole > 0 else 0.0


class Pace:
    """The time that a step takes, on average since the first that was seen.

    Examples
    --------
    >>> from gibbsian.cli.progress import Pace
    >>> Pace().told(1)
    ''
    """

    def __init__(self) -> None:
        self.first: tuple[int, float] | None = None

    def told(self, step: int) -> str:
        """Say the time per step; nothing before the second."""
        now = time.perf_counter()
        if self.first is None:
            self.first = step, now
            return ""
        return f"{(now - self.first[1]) / max(step - self.first[0], 1):.2g} s/step"
