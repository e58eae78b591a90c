"""Several starts, one after the other, of which the best is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbsian.learners.base import LEARNERS, Learner, LearnerState
from gibbsian.learners.nested import ENDLESS, Within, after_the_last, going_on, inner_step
from gibbsian.optimizers import StepInfo
from gibbsian.rng import as_pcg64, generator_of, generator_words
from gibbsian.settings import check, declared, flag, free, number, whole


@dataclass(frozen=True)
class RestartsProgress:
    """Where the present start stands, and the best one so far.

    `theta` and `best` are those of the best start that has ended, or of the first one while it is under way;
    `best_reason` says in bytes how it ended. `streams` are the generators of the starts.
    """

    theta: np.ndarray
    present: Any
    start: int
    n_steps: int
    best: Any
    best_start: int
    best_value: float
    best_degenerate: bool
    best_converged: bool
    best_reason: np.ndarray
    streams: np.ndarray


@declared(frozen=True)
class Restarts(Learner):
    """Runs a learner from several starts, each with a generator of its own, and keeps the one of least value.

    A degenerate solution (its likelihood may have no bound) is kept only where no start gave a sound one. A step is a
    step of the present start, so that progress, checkpoints and Ctrl-C work across the starts; the trace says which
    start a step belongs to, and which is the best so far.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.learners import Restarts
    >>> few, many = (Restarts(gb.learners.EM(), n_init=n) for n in (1, 5))
    >>> few.n_init, many.n_init
    (1, 5)
    """

    learner: Any = free("em", "What learns from each start.", doc="Learner or str", kw_only=False)
    n_init: int = whole(5, "Starts.", least=1, kw_only=False)
    max_iter: int | None = whole(
        1000, "Most steps of each start; None where the learner says itself when it is done.", least=1, optional=True
    )
    tol: float = number(1e-6, "When a start has converged: no entry of the gradient is larger.", least=0)
    spawn: bool = flag(True, "Give each start a generator of its own; otherwise one serves them all in turn.")
    loss: Any = free(
        None,
        "Judges starts whose learner has no value: a function of model, data and generator.",
        doc="callable, optional",
    )

    def __post_init__(self) -> None:
        check(self)
        if isinstance(self.learner, str):
            object.__setattr__(self, "learner", LEARNERS.create(self.learner))

    @property
    def registered_name(self) -> str:
        """The name of what learns."""
        return getattr(self.learner, "registered_name", repr(self.learner))

    @property
    def l1(self) -> float:
        """The penalty of what learns."""
        return getattr(self.learner, "l1", 0.0)

    @property
    def l2(self) -> float:
        """The penalty of what learns."""
        return getattr(self.learner, "l2", 0.0)

    def start(self, model: Any, data: Any, rng: np.random.Generator) -> Any:
        """Return the model itself: each start begins where the learner begins with a generator of its own."""
        return model

    def most_steps(self, model: Any, max_iter: int) -> int:
        """Return how many steps all starts together may take."""
        return ENDLESS if self.max_iter is None else self.n_init * self.max_iter

    def init(self, model: Any, data: Any, rng: np.random.Generator) -> LearnerState:
        """Prepare the first start."""
        rng = as_pcg64(rng)
        generators = rng.spawn(self.n_init) if self.spawn else [rng] * self.n_init
        streams = np.array([generator_words(one) for one in generators])
        first = generator_of(streams[0])
        inner = self.learner.init(self.learner.start(model, data, first), data, first)
        progress = RestartsProgress(
            theta=inner.progress.theta,
            present=inner.progress,
            start=0,
            n_steps=0,
            best=inner.progress,
            best_start=-1,
            best_value=float("inf"),
            best_degenerate=True,
            best_converged=False,
            best_reason=np.zeros(0, np.uint8),
            streams=self._streams_after(streams, 0, first),
        )
        return LearnerState(Within(model, data, inner), progress)

    def _streams_after(self, streams: np.ndarray, start: int, rng: np.random.Generator) -> np.ndarray:
        """Return the generators of the starts after one has begun: where they share one it has moved on."""
        if self.spawn:
            return streams
        later = np.arange(self.n_init)[:, None] > start
        return np.where(later, generator_words(rng), streams)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take a step of the present start; after its last one compare it with the best and begin the next."""
        problem, progress = state.problem, state.progress
        taken = inner_step(self.learner, self._inner(state), progress.n_steps, self.max_iter, self.tol)
        progress = replace(progress, present=taken.state.progress, n_steps=progress.n_steps + 1)
        if progress.best_start < 0:
            progress = replace(progress, theta=taken.state.progress.theta, best=taken.state.progress)
        place = {"start": float(progress.start)}
        if not taken.ended:
            best = max(progress.best_start, 0)
            return LearnerState(problem, progress), going_on(taken.info, **place, best=float(best))
        progress = self._compared(problem, progress, taken)
        place["best"] = float(progress.best_start)
        if progress.start + 1 == self.n_init:
            return LearnerState(problem, progress), after_the_last(
                taken.info, progress.best_converged, self._reason(progress), **place
            )
        rng = generator_of(progress.streams[progress.start + 1])
        begun = self.learner.start(problem.model, problem.data, rng)
        inner = self.learner.restarted(problem.state, begun, problem.data, rng)
        streams = self._streams_after(progress.streams, progress.start + 1, rng)
        progress = replace(progress, present=inner.progress, start=progress.start + 1, n_steps=0, streams=streams)
        return LearnerState(replace(problem, state=inner), progress), going_on(
            taken.info._replace(gradient_norm=np.inf), **place
        )

    def _compared(self, problem: Within, progress: RestartsProgress, taken: Any) -> RestartsProgress:
        """Keep the better of the start that has ended and the best before it."""
        degenerate = bool(getattr(self.learner.fitted(problem.model, taken.state), "trouble", ""))
        value = self._value(problem, progress, taken)
        if (progress.best_degenerate, progress.best_value) <= (degenerate, value) and progress.best_start >= 0:
            return progress
        return replace(
            progress,
            theta=taken.state.progress.theta,
            best=taken.state.progress,
            best_start=progress.start,
            best_value=value,
            best_degenerate=degenerate,
            best_converged=taken.converged,
            best_reason=np.frombuffer(taken.reason.encode(), np.uint8),
        )

    def _value(self, problem: Within, progress: RestartsProgress, taken: Any) -> float:
        """Return what a start is judged by: the learner's value, or the loss where it has none."""
        if np.isfinite(taken.info.value) or self.loss is None:
            return taken.info.value
        rng = generator_of(progress.streams[progress.start])
        return float(self.loss(self.learner.fitted(problem.model, taken.state), problem.data, rng))

    def _reason(self, progress: RestartsProgress) -> str:
        words = progress.best_reason.tobytes().decode()
        return f"{words} (the best of {self.n_init} starts)" if self.n_init > 1 else words

    def fitted(self, model: Any, state: LearnerState) -> Any:
        """Return the model of the best start so far."""
        return self.learner.fitted(model, LearnerState(state.problem.state.problem, state.progress.best))

    def kept(self, state: LearnerState) -> LearnerState | None:
        """Return what the learner keeps of the best start for `partial_fit`."""
        return self.learner.kept(LearnerState(state.problem.state.problem, state.progress.best))

    def restored(self, state: LearnerState, progress: RestartsProgress) -> LearnerState:
        """Go on with the start that a checkpoint held."""
        present, best = (self.learner.restored(state.problem.state, one) for one in (progress.present, progress.best))
        progress = replace(progress, present=present.progress, best=best.progress)
        return LearnerState(replace(state.problem, state=present), progress)

    def _inner(self, state: LearnerState) -> LearnerState:
        return LearnerState(state.problem.state.problem, state.progress.present)
