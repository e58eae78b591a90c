"""Learning by matching moments: gradient = expected statistics - data statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.expectations import EXPECTATIONS, Expectation
from gibbsian.learners.base import LearnerState
from gibbsian.learners.objective import check_penalties
from gibbsian.models import Model
from gibbsian.optimizers import Ascent, StepInfo
from gibbsian.optimizers.base import gradient_norm


@dataclass(frozen=True)
class _Progress:
    """Parameters, and the expectation's own state (chains and their streams)."""

    theta: np.ndarray
    samples: Any
    evaluations: int


@dataclass(frozen=True)
class MomentMatching:
    """Plain ascent on the likelihood, with the model's expectation taken in any way.

    Parameters
    ----------
    expectation : Expectation or str
        How the model's statistics are computed.
    optimizer : Ascent
        The rate of the steps. There is no value to search along, so line searches do not apply.
    l1, l2 : float
        Penalties, as for `ObjectiveLearner`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> learner = gb.learners.MomentMatching("exact", gb.optimizers.Ascent(rate=0.5))
    >>> bm = gb.BoltzmannMachine(learner=learner, tol=1e-5).fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> bm.expect().mean.round(4).tolist()                            # the data's own moments
    [0.2, 0.2, 0.2]
    """

    expectation: Expectation | str
    optimizer: Ascent = field(default_factory=Ascent)
    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        check_penalties(self.l1, self.l2)
        if isinstance(self.expectation, str):
            object.__setattr__(self, "expectation", EXPECTATIONS.create(self.expectation))

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Compute the data's statistics and start the samples."""
        data.require_complete("moment matching")
        l1 = np.where(model.penalised, self.l1, 0.0)
        problem = (model, model.mean_statistics(data.states, data.weights), l1)
        samples = self.expectation.init(model, data, rng)  # type: ignore[union-attr]
        return LearnerState(problem, _Progress(model.theta, samples, 0))

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take one expectation and one step along the difference of moments.

        The value is not known; the norm reported is that of the gradient that was followed.
        """
        model, statistics, l1 = state.problem
        progress = state.progress
        estimate, samples = self.expectation(model.replace(progress.theta), progress.samples)  # type: ignore[operator]
        gradient = (estimate.mean - statistics) / model.temperature + self.l2 * progress.theta
        norm = gradient_norm(progress.theta, gradient, l1)
        theta = self.optimizer.move(progress.theta, gradient, l1)
        evaluations = progress.evaluations + 1
        info = StepInfo(float("nan"), norm, self.optimizer.rate, evaluations)
        return LearnerState(state.problem, _Progress(theta, samples, evaluations)), info
