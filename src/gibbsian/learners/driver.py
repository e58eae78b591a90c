"""The loop around any learner: steps, trace, stopping rule, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.learners.base import Learner, LearnerState
from gibbsian.learners.result import FitResult, Trace
from gibbsian.models import Model
from gibbsian.optimizers import StepInfo

Callback = Callable[[int, StepInfo], None]


class Checkpointer(Protocol):
    """Somewhere to put a run's progress and to find it again (`gibbsian.storage.Checkpoint`)."""

    def load(self, state: LearnerState) -> tuple[LearnerState, Trace] | None:
        """Return the saved state and trace, or None to start afresh."""

    def save(self, state: LearnerState, trace: Trace) -> None:
        """Keep the state if it is time to."""


def train(
    learner: Learner,
    model: Model,
    data: Dataset,
    rng: np.random.Generator,
    *,
    max_iter: int = 1000,
    tol: float = 1e-6,
    callback: Callback | None = None,
    checkpoint: Checkpointer | None = None,
) -> FitResult:
    """Run a learner from the model's parameters until its gradient is small, or lost in Monte Carlo noise.

    Parameters
    ----------
    learner, model, data, rng
        What learns, from where, from what, with which randomness.
    max_iter : int
        Most steps.
    tol : float
        Stop when no entry of the gradient is larger, or larger than the noise that the learner reports.
    callback : callable, optional
        Called with the step number and its `StepInfo` after every step.
    checkpoint : Checkpointer, optional
        Saves progress, and gives it back when a run is resumed.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> gb.learners.train(gb.learners.as_learner("mple"), model, data, np.random.default_rng(0)).converged
    True
    """
    _check(max_iter, tol)
    state = learner.init(model, data, rng)
    resumed = checkpoint.load(state) if checkpoint is not None else None
    state, trace = resumed if resumed is not None else (state, Trace())
    provenance = {} if resumed is None else {"resumed_at_step": len(trace)}
    earlier = trace.rows[-1][-1] if trace.rows else 0.0
    started = time.perf_counter()
    info = _last_step(trace, state)
    while info is None or not _done(info, len(trace), max_iter, tol):
        state, info = learner.step(state)
        trace.add(len(trace) + 1, info, earlier + time.perf_counter() - started)
        if callback is not None:
            callback(len(trace), info)
        if checkpoint is not None:
            checkpoint.save(state, trace)
    converged = _converged(info, tol)
    reason = info.verdict or info.failure or _reason(learner, info, trace, converged, tol)
    return FitResult(model.replace(state.progress.theta), trace, converged, reason, provenance)


def _check(max_iter: int, tol: float) -> None:
    if max_iter < 1:
        raise ArgumentError(f"max_iter={max_iter} must be at least 1")
    if not tol > 0:
        raise ArgumentError(f"tol={tol} must be positive")


def _last_step(trace: Trace, state: LearnerState) -> StepInfo | None:
    """Return the last step of a resumed run, which may already have been its end."""
    if not trace.rows:
        return None
    _, value, norm, size, evaluations, _ = trace.rows[-1]
    noise = getattr(state.progress, "noise", 0.0)
    return StepInfo(value, norm, size, int(evaluations), stalled=size == 0, noise=noise)


def _converged(info: StepInfo, tol: float) -> bool:
    return not info.failure and (bool(info.gradient_norm <= max(tol, info.noise)) or bool(info.verdict))


def _done(info: StepInfo, n_steps: int, max_iter: int, tol: float) -> bool:
    ended = _converged(info, tol) or info.stalled or bool(info.failure) or not np.isfinite(info.gradient_norm)
    return ended or n_steps >= max_iter


def _reason(learner: Learner, info: StepInfo, trace: Trace, converged: bool, tol: float) -> str:
    """Say plainly how the fit ended and, where it did not converge, what to do."""
    n_steps, norm = len(trace), f"{info.gradient_norm:.2g}"
    if converged and info.gradient_norm > tol:
        return f"converged after {n_steps} steps to within Monte Carlo noise: gradient {norm}, noise {info.noise:.2g}"
    if converged:
        return f"converged after {n_steps} step{'s' * (n_steps != 1)}: gradient {norm}"
    if not np.isfinite(info.gradient_norm):
        return f"stopped after {n_steps} steps, the gradient is not finite: {_slower(learner)}"
    if info.stalled:
        return f"stopped after {n_steps} steps, gradient {norm}: rounding allows no lower value, raise tol"
    if info.gradient_norm > trace.rows[0][2] or info.value > trace.rows[0][1]:
        return f"stopped at max_iter={n_steps}, gradient {norm} and growing: {_slower(learner)}"
    return f"stopped at max_iter={n_steps}, gradient {norm}: raise max_iter"


def _slower(learner: Learner) -> str:
    """Say what to do about steps that are too large, by the argument of the learner that sets them."""
    known = {"optimizer": "the learner's optimizer=Adam(rate=...)", "learning_rate": "learning_rate="}
    argument = next((f" ({words})" for name, words in known.items() if hasattr(learner, name)), "")
    return f"lower the rate of the steps{argument}"
