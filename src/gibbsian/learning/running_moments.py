"""Rows of numbers that come in chunks: moments are running means, and what they determine is learned anew (YK15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.data.rows import Rows
from gibbsian.learning.around import Around
from gibbsian.learning.base import Learner, LearnerState, name_of
from gibbsian.learning.objectives.gaussian import ExpectedMoments, GaussianModel
from gibbsian.learning.optimizers import Failed, StepInfo
from gibbsian.models.base import Family, Model
from gibbsian.models.families.gaussian import Moments

# Most steps on the moments after a chunk; closed forms need one.
STEPS_A_CHUNK = 200
SETTLED = 1e-9
IMPROPER = Failed(
    "the estimate is no distribution, because its precision matrix is not positive definite",
    "learn by `learner='mle'`, or add a penalty such as `l2=0.1`",
)


@dataclass(frozen=True)
class RunningProgress:
    """The parameters and the moments of all rows so far."""

    theta: np.ndarray
    matrix: np.ndarray
    weight: float


@dataclass(frozen=True)
class RunningMoments(Around):
    """Learns as the learner within, and from chunks by the moments of all rows so far, which are all that it needs.

    Missing cells of a chunk are completed once, under the model that the chunks before it gave. Of a model from a file,
    learned from rows of the weight `before`, its own moments stand for theirs.
    """

    learner: Learner
    before: float = 0.0

    @property
    def registered_name(self) -> str:
        """The name of the learner within."""
        return name_of(self.learner)

    def init(self, model: Model[Family], data: Rows, rng: np.random.Generator) -> LearnerState:
        """Prepare to learn from all rows at once."""
        inner = self.learner.init(model, data, rng)
        return LearnerState((inner.problem, model, data), inner.progress)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take a step of the learner within."""
        inner, info = self.learner.step(self.within(state))
        return LearnerState((inner.problem, *state.problem[1:]), inner.progress), info

    def within(self, state: LearnerState) -> LearnerState:
        """Return the state of the learner within, which after chunks has nothing but parameters."""
        return LearnerState(state.problem[0], state.progress)

    def kept(self, state: LearnerState) -> LearnerState:
        """Keep the moments of the fit, with which those of chunks are joined."""
        _, model, data = state.problem
        fitted = self.fitted(model, state)
        return _running(fitted, ExpectedMoments(data).under(fitted))

    def update(
        self, state: LearnerState | None, model: Any, data: Any, rng: np.random.Generator
    ) -> tuple[LearnerState, StepInfo]:
        """Join the moments of one chunk with those before it, and learn what they say."""
        model = model if state is None else model.replace(state.progress.theta)
        moments = ExpectedMoments(data).under(model)
        if state is not None:
            moments = Moments(state.progress.matrix, state.progress.weight).joined(moments)
        elif self.before:
            moments = model.family.solve(model.theta).moments(self.before).joined(moments)
        inner = self.learner.init(model, moments, rng)
        for _ in range(STEPS_A_CHUNK):
            inner, info = self.learner.step(inner)
            if info.gradient_norm <= SETTLED or info.outcome is not None:
                break
        fitted = self.learner.fitted(model, inner)
        proper = np.isfinite(fitted.family.log_partition(fitted.theta))
        return _running(fitted, moments), info if proper else info._replace(outcome=IMPROPER)


def _running(model: GaussianModel, moments: Moments) -> LearnerState:
    return LearnerState((None,), RunningProgress(model.theta, moments.matrix, moments.total_weight))
