"""The one loop around every learner. All that may happen beside learning is a callback."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gibbsian.backends.device import here, left_to_cpu
from gibbsian.backends.threads import kept_threads
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.errors import ClusterError, spelled
from gibbsian.learning.base import Fit, Learner
from gibbsian.learning.optimizers import Converged, Failed, Outcome, Running, StepInfo, Stopped
from gibbsian.learning.result import FitResult, Trace
from gibbsian.models.base import Family, Model
from gibbsian.rng import Key, RandomState, as_generator
from gibbsian.settings import Setting, check_value

_MAX_STEPS = Setting("Most steps.", "whole", low=1)
NOTHING = Stopped("nothing was learned")
_TOLERANCE = Setting("When a fit has converged.", "number", low=0)


class StopRun(Exception):
    """What a callback raises to end a run after the step that was just taken.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.learning.callbacks import EachStep
    >>> from gibbsian.learning.run import StopRun
    >>> class Impatient(gb.learning.callbacks.Callback):
    ...     def on_step(self, run):
    ...         raise StopRun("stopped after one step", "give it more time")
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> start = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> gb.learning.run(gb.learning.as_learner("mple"), start, data, callbacks=[Impatient()]).reason
    'stopped after one step: give it more time'
    """

    def __init__(self, reason: str, hint: str = ""):
        super().__init__(reason)
        self.outcome = Stopped(reason, hint)


@dataclass
class Run:
    """A fit under way, as callbacks see it.

    Parameters
    ----------
    learner, model, data
        What learns, from where, from what.
    fit : Fit
        The learner bound to the two others.
    state : dataclass or tuple
        Where the fit stands.
    max_iter, tol
        When to end.
    trace : Trace
        The steps so far.
    history : dict of str to list
        What the learner measures from the start on, and figures that callbacks keep: before the first step and after
        every one. They are saved and resumed with the run.
    provenance : dict
        What callbacks want to say of the run.
    info : StepInfo, optional
        The last step.
    outcome : Running, Converged, Stopped or Failed
        Whether and how the run has ended.
    interrupted : bool
        Whether a callback or a lost cluster ended it before its time.

    Examples
    --------
    >>> import gibbsian as gb
    >>> class LastGradient(gb.learning.callbacks.Callback):
    ...     def on_step(self, run):
    ...         run.provenance["last gradient"] = run.info.gradient_norm
    >>> data = gb.Dataset.read([[0, 1], [1, 1], [1, 0], [0, 0], [1, 1]])
    >>> start = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2), data.variables))
    >>> result = gb.learning.run(gb.learning.as_learner("mle"), start, data, callbacks=[LastGradient()])
    >>> result.provenance["last gradient"] < 1e-5
    True
    """

    learner: Learner
    model: Model[Family]
    data: Rows
    fit: Fit[Any]
    state: Any
    max_iter: int
    tol: float
    trace: Trace = field(default_factory=Trace)
    history: dict[str, list[float]] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    info: StepInfo | None = None
    outcome: Outcome = NOTHING
    interrupted: bool = False
    seconds_before: float = 0.0
    began: float = field(default_factory=time.perf_counter)
    curves: tuple[str, ...] = ()

    @property
    def n_steps(self) -> int:
        """Steps so far."""
        return len(self.trace)

    def fitted(self) -> Any:
        """Return the model as it stands."""
        return self.fit.model(self.state)

    def start(self, info: StepInfo) -> None:
        """Begin the curves of what the learner measures from the start on."""
        for name, value in info.metrics.items():
            self.history[name] = [] if math.isnan(value) else [float(value)]
        self.curves = tuple(info.metrics)

    def resume(self, state: object, trace: Trace, history: dict[str, list[float]], info: StepInfo | None) -> None:
        """Go on where an earlier run stood; its last step may have been its end."""
        self.state, self.trace, self.history = state, trace, history
        if info is not None:
            self.see(info)
        self.seconds_before = trace.rows[-1][-1] if trace.rows else 0.0
        self.provenance["resumed_at_step"] = len(trace)

    def step(self) -> None:
        """Take one step and write it down."""
        self.state, info = self.fit.step(self.state)
        for name in self.curves:
            if self.history[name] or not math.isnan(info.metrics[name]):  # a curve may begin late
                self.history[name].append(float(info.metrics[name]))
        if self.curves:
            info = info._replace(metrics={name: x for name, x in info.metrics.items() if name not in self.curves})
        self.trace.add(self.n_steps + 1, info, self.seconds_before + time.perf_counter() - self.began)
        self.see(info)

    def see(self, info: StepInfo) -> None:
        """Take note of the last step, and whether it ends the run."""
        self.info, outcome = info, outcome_of(info, self.n_steps, self.max_iter, self.tol)
        if isinstance(outcome, Failed) and outcome.hint == SLOWER:
            outcome = replace(outcome, hint=_slower(self.learner))
        elif isinstance(outcome, Stopped) and outcome.hint == LONGER:
            first = dict(zip(self.trace.columns, self.trace.rows[0], strict=True))
            if info.gradient_norm > first["gradient_norm"] or info.value > first["value"]:
                outcome = Stopped(f"{outcome.reason} and growing", _slower(self.learner))
        self.outcome = outcome

    @property
    def done(self) -> bool:
        """Whether no further step is to be taken."""
        return self.info is not None and not isinstance(self.outcome, Running)

    def result(self) -> FitResult:
        """Return what the run leaves behind."""
        ended = Stopped("") if isinstance(self.outcome, Running) else self.outcome
        return FitResult(
            self.fitted(),
            self.trace,
            isinstance(ended, Converged),
            spelled(f"{ended.reason}: {ended.hint}" if ended.hint else ended.reason),
            dict(self.provenance),
            history={name: np.asarray(values) for name, values in self.history.items()},
            remedy=ended.hint,
            warning="" if self.info is None else self.info.warning,
            state=self.fit.handover(self.state),
        )


@kept_threads()  # one pool for all steps
def run(
    learner: Learner,
    model: Model[Family],
    data: Dataset,
    random_state: RandomState = None,
    callbacks: Sequence[Any] = (),
    *,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> FitResult:
    """Run a learner from the model's parameters until its gradient is small, or lost in Monte Carlo noise.

    Parameters
    ----------
    learner : Learner
        What learns.
    model : Model
        From where.
    data : Dataset
        From what.
    random_state : None, int or Generator, default=None
        With which randomness.
    callbacks : sequence of Callback, default=()
        What happens beside learning; see `gibbsian.learning.callbacks`.
    max_iter : int, default=1000
        Most steps.
    tol : float, default=1e-6
        Stop when no entry of the gradient is larger, or larger than the noise that the learner reports. Learners with a
        measure of their own (a gain, a fall of the free energy) say themselves when they are done.

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> gb.learning.run(gb.learning.as_learner("mple"), model, data).converged
    True
    """
    check_value("max_iter", max_iter, _MAX_STEPS)
    check_value("tol", tol, _TOLERANCE)
    fit, rng = learner.bind(model, data), as_generator(random_state)
    state, info = fit.init(Key.of(rng))
    run = Run(learner, model, data, fit, state, max_iter, tol)
    run.start(info)
    try:
        for callback in callbacks:
            callback.on_start(run)
        run.began = time.perf_counter()
        while not run.done:
            run.step()
            if (device := here()) is not None and not device.asked:
                left_to_cpu("has no kernels for this learner and model")
            for callback in callbacks:
                callback.on_step(run)
    except StopRun as stop:
        run.outcome, run.interrupted = stop.outcome, True
    except ClusterError as lost:  # for the checkpoint, which is written where a run was stopped
        run.outcome, run.interrupted = Stopped(lost.reason), True
        raise
    finally:
        for callback in callbacks:
            callback.on_end(run)
    return run.result()


# -- endings ----------------------------------------------------------------------------------------------------------
# Hints of the outcomes that the gradient decides.
LONGER, SLOWER = "raise `max_iter`", "lower the rate of the steps"


def outcome_of(info: StepInfo, n_steps: int, max_iter: int | None, tol: float) -> Outcome:
    """Return the outcome of a step: that of the learner, or else by the gradient, its tolerance and `max_iter`."""
    outcome, norm = info.outcome, f"{info.gradient_norm:.2g}"
    if isinstance(outcome, Converged | Failed):
        return outcome
    if outcome is None or isinstance(outcome, Stopped):
        if info.gradient_norm <= tol:
            return Converged(f"converged after {n_steps} step{'s' * (n_steps != 1)}: gradient {norm}")
        if info.gradient_norm <= info.noise:
            noise = f"gradient {norm}, noise {info.noise:.2g}"
            return Converged(f"converged after {n_steps} steps to within Monte Carlo noise: {noise}")
        if info.gradient_norm == np.inf:
            return Failed(f"stopped after {n_steps} steps, the gradient is not finite", SLOWER)
    if isinstance(outcome, Stopped):
        return replace(outcome, reason=outcome.reason or f"stopped after {n_steps} steps, gradient {norm}")
    if max_iter is not None and n_steps >= max_iter:
        gradient = "" if math.isnan(info.gradient_norm) else f", gradient {norm}"
        return Stopped(f"stopped at max_iter={n_steps}{gradient}", LONGER)
    return Running()


def _slower(learner: Learner) -> str:
    """Say what to do about steps that are too large, by the argument of the learner that sets them."""
    known = {"optimizer": "`optimizer=Adam(learning_rate=...)` of the learner", "learning_rate": "`learning_rate`"}
    argument = next((f" ({words})" for name, words in known.items() if hasattr(learner, name)), "")
    return f"{SLOWER}{argument}"
