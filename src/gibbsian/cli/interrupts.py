"""Ctrl-C during a fit: the step is finished, the model kept; a second Ctrl-C ends at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gibbsian.cli.guard import say


@contextmanager
def stopping_on_interrupt() -> Iterator[threading.Event]:
    """While this lasts, the first Ctrl-C sets the event that is given; the next one raises KeyboardInterrupt.

    Examples
    --------
    >>> from gibbsian.cli.interrupts import stopping_on_interrupt
    >>> with stopping_on_interrupt() as stop:
    ...     stop.is_set()
    False
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread only
        yield stop
        return

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        say("stopping after this step (Ctrl-C again: at once, without a model)")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


class Stoppable:
    """A learner that ends its fit after the step in which it was asked to stop; in all else the learner it is made of.

    Parameters
    ----------
    learner : Learner
        The learner.
    stop : threading.Event
        Set to stop.

    Examples
    --------
    >>> import threading, gibbsian as gb
    >>> from gibbsian.cli.interrupts import Stoppable
    >>> stop = threading.Event()
    >>> stop.set()
    >>> learner = Stoppable(gb.learners.as_learner("mle", l2=0.1), stop)
    >>> learner.l2, repr(learner) == repr(learner.learner)
    (0.1, True)
    """

    def __init__(self, learner: Any, stop: threading.Event):
        self.learner = learner
        self.stop = stop

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)

    def __repr__(self) -> str:
        return repr(self.learner)

    def init(self, model: Any, data: Any, rng: Any) -> Any:
        """Prepare the learner."""
        return self.learner.init(model, data, rng)

    def step(self, state: Any) -> tuple[Any, Any]:
        """Take a step of the learner."""
        state, info = self.learner.step(state)
        if self.stop.is_set():
            told = f"interrupted, gradient {info.gradient_norm:.2g}: the model is that of the last step"
            info = info._replace(failure=told)
        return state, info
