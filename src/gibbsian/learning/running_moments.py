"""Rows of numbers that come in chunks: moments are running means, and what they determine is learned anew (YK15)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.learning.around import Around
from gibbsian.learning.base import Fit, Learner, name_of
from gibbsian.learning.objectives.gaussian import ExpectedMoments, GaussianModel
from gibbsian.learning.optimizers import Failed, StepInfo
from gibbsian.models.families.gaussian import Moments
from gibbsian.rng import Key

# Maximum number of steps on the moments after a chunk; closed forms need one.
STEPS_PER_CHUNK = 200
SETTLED = 1e-9
IMPROPER = Failed(
    "the estimate is no distribution, because its precision matrix is not positive definite",
    "learn by `learner='mle'`, or add a penalty such as `l2=0.1`",
)


class MomentsState(NamedTuple):
    """The parameters, and the moments of all rows so far."""

    theta: Floats
    moments: Moments


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

    def bind(self, model: GaussianModel, data: Dataset) -> MomentsFit:
        """Bind the learner within when it is needed."""
        return MomentsFit(self, model, data)


class MomentsFit(Fit[object]):
    """The fit within, or from `carry` on a fit to the moments of all rows so far."""

    def __init__(self, learner: RunningMoments, start: GaussianModel, data: Dataset):
        self.learner, self.start, self.data = learner, start, data

    @cached_property
    def inner(self) -> Fit[object]:
        """The fit to the rows alone."""
        return self.learner.learner.bind(self.start, self.data)

    def init(self, key: Key, theta: Floats | None = None) -> tuple[object, StepInfo]:
        """Return the state of the fit within before its first step."""
        return self.inner.init(key, theta)

    def step(self, state: object) -> tuple[object, StepInfo]:
        """Take a step of the fit within; of chunks learn what their moments say."""
        if not isinstance(state, MomentsState):
            return self.inner.step(state)
        fit = self.learner.learner.bind(self.start.replace(state.theta), state.moments)
        within, _ = fit.init(Key.of(0))
        for _ in range(STEPS_PER_CHUNK):
            within, info = fit.step(within)
            if info.gradient_norm <= SETTLED or info.outcome is not None:
                break
        model = fit.model(within)
        proper = np.isfinite(model.family.log_partition(model.theta))
        after = MomentsState(model.theta, state.moments)
        return after, info if proper else info._replace(outcome=IMPROPER)

    def model(self, state: object) -> GaussianModel:
        """Return the model at a state."""
        return self.start.replace(state.theta) if isinstance(state, MomentsState) else self.inner.model(state)

    def carry(self, state: object) -> MomentsState:
        """Return the moments of all rows so far with those of these rows, and the parameters before them."""
        rows, start, before = ExpectedMoments(self.data), self.start, self.learner.before
        if isinstance(state, MomentsState):
            return state._replace(moments=state.moments.joined(rows.under(start.replace(state.theta))))
        moments = rows.under(start)
        if before:
            moments = start.family.solve(start.theta).moments(before).joined(moments)
        return MomentsState(start.theta, moments)

    def handover(self, state: object) -> MomentsState:
        """Return the state at the end of a fit, where `carry` takes it."""
        model = self.model(state)
        return MomentsState(model.theta, ExpectedMoments(self.data).under(model))
