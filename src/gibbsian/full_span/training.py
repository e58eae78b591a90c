"""The loop around a fit: time, callbacks, checkpoints, and Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

import numpy as np

from gibbsian.full_span.missing import FillAndFit, span_of
from gibbsian.full_span.newton import NewtonProgress
from gibbsian.full_span.trace import SpanStep, SpanTrace
from gibbsian.learners import LearnerState


@dataclass(frozen=True)
class TimedStep(SpanStep):
    """A step and how long it took.

    Parameters
    ----------
    kind, index, gain, cost, n_functions
        As in `SpanStep`.
    seconds : float
        Time that the step took.

    Examples
    --------
    >>> from gibbsian.full_span import TimedStep
    >>> TimedStep("append", 3, 0.1, 0.5, 1, seconds=0.002).describe()
    'append: cost 0.500000  basis 1  2.0 ms'
    """

    seconds: float = 0.0

    def describe(self) -> str:
        """Say it in a few words, for a progress bar."""
        return f"{self.kind}: cost {self.cost:.6f}  basis {self.n_functions}  {1e3 * self.seconds:.1f} ms"


@dataclass
class TimedTrace(SpanTrace):
    """All steps of a fit with their times.

    Parameters
    ----------
    steps : list of TimedStep
        In order.

    Examples
    --------
    >>> from gibbsian.full_span import TimedStep, TimedTrace
    >>> trace = TimedTrace([TimedStep("append", 3, 0.1, 0.5, 1, seconds=0.25)])
    >>> TimedTrace.from_array(trace.to_array()) == trace, trace.seconds
    (True, 0.25)
    """

    steps: list[Any] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Time of all steps together."""
        return float(sum(step.seconds for step in self.steps))

    def to_array(self) -> np.ndarray:
        """Return the steps as rows of numbers, the seconds last."""
        return np.column_stack([super().to_array(), [step.seconds for step in self.steps]])

    @classmethod
    def from_array(cls, rows: np.ndarray) -> TimedTrace:
        """Return the trace that `to_array` wrote."""
        plain = SpanTrace.from_array(rows[:, :-1])
        return cls([_timed(step, float(row[-1])) for step, row in zip(plain.steps, rows, strict=True)])


class SpanCheckpointer(Protocol):
    """Somewhere to put a fit's progress and to find it again (`gibbsian.storage.Checkpoint`)."""

    every: int

    def load(self, state: LearnerState, trace: type[Any]) -> tuple[LearnerState, Any] | None:
        """Return the saved state and trace, or None to start afresh."""

    def save(self, state: LearnerState, trace: Any) -> None:
        """Keep the state if it is time to."""


@dataclass(frozen=True)
class SpanRun:
    """How a loop ended.

    Parameters
    ----------
    state : LearnerState
        After the last step.
    trace : TimedTrace
        Every step, also those before a resumption.
    converged : bool
        Whether nothing gains any more.
    interrupted : bool
        Whether Ctrl-C ended it.
    resumed_at : int or None
        The step that a checkpoint led back to.
    between_steps : bool
        Whether the tables are those after a whole step; false where an interruption hit one.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Greedy, SpanProblem, train_span
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> run = train_span(Greedy(), Greedy().init(problem))
    >>> run.converged, run.interrupted, len(run.trace)
    (True, False, 1)
    """

    state: LearnerState
    trace: TimedTrace
    converged: bool
    interrupted: bool
    resumed_at: int | None = None
    between_steps: bool = True

    def best(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the best functions so far in the order of their indices, their parameters, and the cost."""
        return best_so_far(self.state)


def best_so_far(state: LearnerState) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the best functions of a fit so far in the order of their indices, their parameters, and the cost.

    An algorithm that was stopped on a second road may have ended the first one lower. A re-fit under L1 may leave
    zeros, which are no functions.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Newton, SpanProblem, run
    >>> from gibbsian.full_span.training import best_so_far
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> state, trace, _ = run(Newton(), Newton().init(problem), max_steps=2)
    >>> trace.steps[-1].kind, state.progress.indices.size, best_so_far(state)[0]
    ('restart', 0, array([3]))
    """
    progress = getattr(state.progress, "inner", state.progress)
    indices, theta, cost = progress.indices, progress.theta, progress.cost
    if isinstance(progress, NewtonProgress) and progress.best_cost < cost:
        indices, theta, cost = progress.best_indices, progress.best_theta, progress.best_cost
    zero, order = theta == 0, np.argsort(indices)
    cost -= float(state.problem.penalties(indices[zero]).sum())
    order = order[~zero[order]]
    return indices[order], theta[order], float(cost)


def train_span(
    learner: Any,
    state: LearnerState,
    *,
    max_iter: int = 100_000,
    callback: Callable[[int, TimedStep], None] | None = None,
    checkpoint: SpanCheckpointer | None = None,
) -> SpanRun:
    """Take steps until nothing gains any more, `max_iter` are taken, or Ctrl-C asks for an end.

    Ctrl-C waits for the step to end, so that the tables are whole and the checkpoint that is then written leads to
    the same bits. A second Ctrl-C does not wait; the parameters after the last whole step are still returned.

    Parameters
    ----------
    learner : Greedy, Newton, Dense or FillAndFit
        What learns.
    state : LearnerState
        Where it starts.
    max_iter : int
        Most steps, with those before a resumption.
    callback : callable, optional
        Called with the number of each step and its `TimedStep`.
    checkpoint : SpanCheckpointer, optional
        Saves progress, and gives it back when a fit is resumed.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Greedy, SpanProblem, train_span
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> def impatient(number, step):
    ...     raise KeyboardInterrupt
    >>> train_span(Greedy(), Greedy().init(problem), callback=impatient).interrupted
    True
    """
    trace, resumed_at = TimedTrace(), None
    if checkpoint is not None and (loaded := checkpoint.load(state, TimedTrace)) is not None:
        state, trace = _resumed(learner, state, loaded[0]), loaded[1]
        resumed_at = len(trace)
    converged = interrupted = False
    between_steps = True
    try:
        with _waiting_interrupt() as asked_to_stop:
            while len(trace) < max_iter and not asked_to_stop():
                started, between_steps = time.perf_counter(), False
                state, step = learner.step(state)
                between_steps = True
                if step.kind == "stop":
                    converged = True
                    break
                trace.steps.append(_timed(step, time.perf_counter() - started))
                if checkpoint is not None:
                    checkpoint.save(state, trace)
                if callback is not None:
                    callback(len(trace), trace.steps[-1])
            interrupted = not converged and asked_to_stop()
    except KeyboardInterrupt:
        interrupted = True
    if interrupted and between_steps and checkpoint is not None:
        replace(checkpoint, every=1).save(state, trace)  # type: ignore[type-var]
    return SpanRun(state, trace, converged, interrupted, resumed_at, between_steps)


@contextmanager
def _waiting_interrupt() -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C instead of raising it; only where nobody else handles it."""
    asked: list[int] = []

    def note(number: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    # handlers can be set in the main thread only
    here = threading.current_thread() is threading.main_thread()
    ours = here and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(asked)
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _resumed(learner: Any, fresh: LearnerState, loaded: LearnerState) -> LearnerState:
    """Put what a checkpoint holds into the tables of a fresh start, and fill missing cells as they were."""
    table = span_of(fresh.progress).dual
    if isinstance(learner, FillAndFit):
        loaded = learner.resumed(fresh.problem, loaded.progress, table)
    np.copyto(table, span_of(loaded.progress).dual)
    return LearnerState(loaded.problem, _with_table(loaded.progress, table))


def _with_table(progress: Any, table: np.ndarray) -> Any:
    """Return a progress whose dual stands in the given table."""
    names = {part.name for part in fields(progress)}
    if "dual" in names:
        return replace(progress, dual=table)
    inside = "inner" if "inner" in names else "span"
    return replace(progress, **{inside: _with_table(getattr(progress, inside), table)})


def _timed(step: SpanStep, seconds: float) -> TimedStep:
    return TimedStep(step.kind, step.index, step.gain, step.cost, step.n_functions, seconds)
