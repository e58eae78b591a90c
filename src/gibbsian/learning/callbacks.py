"""What may happen beside learning: a callback sees a `Run` before its first step, after every one, and at its end."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gibbsian.errors import ArgumentError
from gibbsian.learning.optimizers import Converged, StepInfo
from gibbsian.learning.run import Run, StopRun


class Callback:
    """Does nothing at every occasion; callbacks override what they need.

    Examples
    --------
    >>> import gibbsian as gb
    >>> class Count(gb.learning.callbacks.Callback):
    ...     steps = 0
    ...     def on_step(self, run):
    ...         self.steps += 1
    >>> count = Count()
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> result = gb.learning.run(gb.learning.as_learner("mple"), model, data, callbacks=[count])
    >>> count.steps == result.n_steps
    True
    """

    def on_start(self, run: Run) -> None:
        """Before the first step: the learner is bound to the data."""

    def on_step(self, run: Run) -> None:
        """After a step; `StopRun` ends the run here."""

    def on_end(self, run: Run) -> None:
        """At the end, also where an error is on its way."""


class EachStep(Callback):
    """Call a function with the number and the `StepInfo` of every step.

    Parameters
    ----------
    function : callable
        What to call.

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1], [-1, 1]])
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> seen = gb.learning.callbacks.EachStep(lambda step, info: print(step, info.gradient_norm))
    >>> result = gb.learning.run(gb.learning.as_learner("mple"), model, data, callbacks=[seen])
    1 0.0
    """

    def __init__(self, function: Callable[[int, StepInfo], None]):
        self.function = function

    def on_step(self, run: Run) -> None:
        """Call the function."""
        assert run.info is not None
        self.function(run.n_steps, run.info)


class Interrupt(Callback):
    """Let the first Ctrl-C end the run after the step under way, with the model so far; a second one ends it at once.

    Only in the main thread, and where nobody else handles Ctrl-C.
    """

    def __init__(self, remedy: str = ""):
        self.remedy = remedy
        self.asked = False
        self.ours = False

    def on_start(self, run: Run) -> None:
        """Take note of Ctrl-C from now on."""
        here = threading.current_thread() is threading.main_thread()
        self.asked, self.ours = False, here and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self.ours:
            signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print("stopping after this step (Ctrl-C again: at once, without a model)", file=sys.stderr, flush=True)

    def on_step(self, run: Run) -> None:
        """End the run where it was asked for."""
        if self.asked and not run.done:
            run.provenance["interrupted_at_step"] = run.n_steps
            steps = f"{run.n_steps} step{'s' * (run.n_steps != 1)}"
            remedy = self.remedy or "go on from it with `start`, or give a `checkpoint` to be able to resume"
            raise StopRun(f"interrupted after {steps}, the model so far is kept", remedy)

    def on_end(self, run: Run) -> None:
        """Give Ctrl-C back."""
        if self.ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class Monitor(Callback):
    """Keep figures of the model in the history of a run: before the first step and after every one.

    Parameters
    ----------
    figures : callable
        Takes the `Run` and returns names with numbers.

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> size = gb.learning.callbacks.Monitor(lambda run: {"largest": float(abs(run.fitted().theta).max())})
    >>> result = gb.learning.run(gb.learning.as_learner("mple"), model, data, callbacks=[size])
    >>> len(result.history["largest"]) == result.n_steps + 1
    True
    """

    def __init__(self, figures: Callable[[Run], Mapping[str, float]]):
        self.figures = figures

    def on_start(self, run: Run) -> None:
        """Take the figures of the start; those of a resumed run are there already."""
        if run.n_steps == 0:
            self.on_step(run)

    def on_step(self, run: Run) -> None:
        """Take the figures of the model as it stands."""
        for name, value in self.figures(run).items():
            run.history.setdefault(name, []).append(float(value))


class EarlyStopping(Callback):
    """End a run when a figure of its history has not improved for some steps.

    Parameters
    ----------
    figure : str
        Which one; larger is better.
    patience : int
        Steps without a new best.

    Examples
    --------
    >>> import gibbsian as gb
    >>> stop = gb.learning.callbacks.EarlyStopping("held_out_log_likelihood", patience=10)
    >>> settings = {"max_iter": 500, "validation_fraction": 0.2, "callbacks": [stop], "random_state": 0}
    >>> machine = gb.RestrictedBoltzmannMachine(8, **settings).fit(gb.datasets.load_house_votes().complete_rows())
    >>> machine.result_.reason
    'stopped after ... steps: held_out_log_likelihood has not improved for 10'
    """

    def __init__(self, figure: str, patience: int = 5):
        self.figure = figure
        self.patience = patience

    def on_step(self, run: Run) -> None:
        """End the run where the best value lies too far back."""
        values = run.history.get(self.figure, [])
        if not values:
            return
        waited = len(values) - 1 - max(range(len(values)), key=lambda place: (values[place], place))
        if waited >= self.patience and run.info is not None and not run.done:
            reason = f"stopped after {run.n_steps} steps: {self.figure} has not improved for {waited}"
            run.see(run.info._replace(outcome=Converged(reason)))  # the end that was asked for: nothing to warn of


class Printer(Callback):
    """Print a line after every step, as scikit-learn does under ``verbose``."""

    def __init__(self, name: str):
        self.name = name
        self.before = time.perf_counter()

    def on_start(self, run: Run) -> None:
        """Start the clock."""
        self.before = time.perf_counter()

    def on_step(self, run: Run) -> None:
        """Tell of a step."""
        assert run.info is not None
        now = time.perf_counter()
        known = "".join(f", {name} = {x:.4g}" for name, x in run.info.figures().items())
        print(f"[{self.name}] Iteration {run.n_steps}{known}, time = {now - self.before:.2f}s")
        self.before = now


def as_callbacks(given: object) -> list[Any]:
    """Return callbacks as a list; functions of a step's number and the step are called after every step.

    Examples
    --------
    >>> from gibbsian.learning.callbacks import as_callbacks
    >>> [type(one).__name__ for one in as_callbacks(print)]
    ['EachStep']
    """
    listed = [] if given is None else list(given) if isinstance(given, Sequence) else [given]
    callbacks = [EachStep(one) if callable(one) and not hasattr(one, "on_step") else one for one in listed]
    if not all(hasattr(one, "on_step") for one in callbacks):
        raise ArgumentError(
            "must be a callback or a function of a step's number and the step", argument="callbacks", value=given
        )
    return callbacks
