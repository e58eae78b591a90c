"""Annealing by stages: soft k-means at variances that fall step by step (YK15, "Soft K-means")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbsian.learners.base import LEARNERS, Learner, LearnerState
from gibbsian.learners.nested import ENDLESS, Within, after_the_last, going_on, inner_step
from gibbsian.optimizers import StepInfo
from gibbsian.settings import check, declared, free, number, whole

# Classes that coincide never part by themselves: each stage moves them by this share of their width.
NUDGE = 1e-3


@dataclass(frozen=True)
class AnnealedProgress:
    """Where the learner of the present stage stands; `nudges` move the classes apart, one for each stage."""

    theta: np.ndarray
    present: Any
    stage: int
    n_steps: int
    n_before: int
    widths: np.ndarray
    nudges: np.ndarray


@declared(frozen=True)
class Annealed(Learner):
    """Learns a mixture of fixed variance at a falling one, every stage from where the one before has ended.

    It begins at a variance where all classes coincide, and so avoids most poor local minima.

    Examples
    --------
    >>> from gibbsian.learners.annealing import Annealed
    >>> Annealed(cooling=0.5).cooling
    0.5
    """

    learner: Any = free("em", "What learns at each variance.", doc="Learner or str", kw_only=False)
    cooling: float = number(0.8, "The factor between two variances.", above=0, below=1)
    max_iter: int = whole(1000, "Most steps of each stage.", least=1)
    tol: float = number(1e-8, "When a stage has converged.", least=0)

    def __post_init__(self) -> None:
        check(self)
        if isinstance(self.learner, str):
            object.__setattr__(self, "learner", LEARNERS.create(self.learner))

    def start(self, model: Any, data: Any, rng: np.random.Generator) -> Any:
        """Return the model itself: the first stage puts all classes together."""
        return model

    def most_steps(self, model: Any, max_iter: int) -> int:
        """Return no limit: each stage has its own."""
        return ENDLESS

    def init(self, model: Any, data: Any, rng: np.random.Generator) -> LearnerState:
        """Put all classes together, at the largest variance."""
        first, widths = model.together(data, self.cooling)
        nudges = rng.normal(size=(len(widths), *first.shifts.shape))
        inner = self.learner.init(_cooled(first, widths[0], nudges[0]), data, rng)
        return self._begun(model, data, inner, widths, nudges)

    def restarted(self, state: LearnerState, model: Any, data: Any, rng: np.random.Generator) -> LearnerState:
        """Begin again with other nudges."""
        first, widths = model.together(data, self.cooling)
        nudges = rng.normal(size=(len(widths), *first.shifts.shape))
        inner = self.learner.restarted(state.problem.state, _cooled(first, widths[0], nudges[0]), data, rng)
        return self._begun(model, data, inner, widths, nudges)

    def _begun(
        self, model: Any, data: Any, inner: LearnerState, widths: np.ndarray, nudges: np.ndarray
    ) -> LearnerState:
        progress = AnnealedProgress(inner.progress.theta, inner.progress, 0, 0, 0, widths, nudges)
        return LearnerState(Within(model, data, inner), progress)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take a step of the present stage; after its last one lower the variance."""
        problem, progress = state.problem, state.progress
        taken = inner_step(self.learner, self._inner(state), progress.n_steps, self.max_iter, self.tol)
        inner, n_steps, place = taken.state, progress.n_steps + 1, {"stage": float(progress.widths[progress.stage])}
        progress = replace(progress, theta=inner.progress.theta, present=inner.progress, n_steps=n_steps)
        if not taken.ended:
            return LearnerState(problem, progress), going_on(taken.info, **place)
        n_before, stage = progress.n_before + n_steps, progress.stage + 1
        if stage == len(progress.widths):
            reason = taken.reason
            if taken.converged and stage > 1:
                reason = f"converged after {n_before} steps in {stage} stages"
            return LearnerState(problem, progress), after_the_last(taken.info, taken.converged, reason, **place)
        model = _cooled(self.learner.fitted(problem.model, inner), progress.widths[stage], progress.nudges[stage])
        inner = self.learner.restarted(inner, model, problem.data, np.random.default_rng(0))
        progress = replace(progress, present=inner.progress, stage=stage, n_steps=0, n_before=n_before)
        info = going_on(taken.info._replace(gradient_norm=np.inf), **place)
        return LearnerState(replace(problem, state=inner), progress), info

    def fitted(self, model: Any, state: LearnerState) -> Any:
        """Return the model as it stands, at the variance of its stage."""
        return self.learner.fitted(model, self._inner(state))

    def kept(self, state: LearnerState) -> LearnerState | None:
        """Return what the learner keeps of the last stage for `partial_fit`."""
        return self.learner.kept(self._inner(state))

    def restored(self, state: LearnerState, progress: AnnealedProgress) -> LearnerState:
        """Go on with the stage that a checkpoint held."""
        model = self.learner.fitted(state.problem.model, state.problem.state)
        cooled = _cooled(model, progress.widths[progress.stage], progress.nudges[progress.stage])
        fresh = self.learner.restarted(state.problem.state, cooled, state.problem.data, np.random.default_rng(0))
        present = self.learner.restored(fresh, progress.present)
        return LearnerState(replace(state.problem, state=present), replace(progress, present=present.progress))

    def _inner(self, state: LearnerState) -> LearnerState:
        return LearnerState(state.problem.state.problem, state.progress.present)


def _cooled(model: Any, variance: float, nudge: np.ndarray) -> Any:
    """The classes at another variance, moved apart a little."""
    return model.at(model.shifts + NUDGE * np.sqrt(variance) * nudge, float(variance))
