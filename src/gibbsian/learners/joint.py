"""Models of layers for learners that know nothing of layers: by their joint form, with hidden units as variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import with_hidden
from gibbsian.errors import ArgumentError
from gibbsian.learners.base import Learner, LearnerState
from gibbsian.models.pairwise import PairwiseModel
from gibbsian.optimizers import StepInfo


@dataclass(frozen=True)
class OnJoint(Learner):
    """Learns a model of layers as the pairwise model of all its units, whose theta is the same."""

    learner: Learner

    @property
    def l1(self) -> float:
        """The L1 penalty of the learner."""
        return getattr(self.learner, "l1", 0.0)

    @property
    def l2(self) -> float:
        """The L2 penalty of the learner."""
        return getattr(self.learner, "l2", 0.0)

    def start(self, model: Any, data: Dataset, rng: np.random.Generator) -> Any:
        """Begin where the learner begins."""
        joint = _joint(model)
        return model.from_joint(self.learner.start(joint, data, rng))

    def refusal(self, model: Any) -> str:
        """Ask the learner."""
        return self.learner.refusal(_joint(model))

    def init(self, model: Any, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Prepare to learn with hidden units as columns that are always missing."""
        return self.learner.init(_joint(model), with_hidden(data, model.n_hidden), rng)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take one step."""
        return self.learner.step(state)

    def fitted(self, model: Any, state: LearnerState) -> Any:
        """Return the layers that have the joint form of a state."""
        return model.from_joint(self.learner.fitted(_joint(model), state))

    def restored(self, state: LearnerState, progress: Any) -> LearnerState:
        """Return a fresh state with the progress that a checkpoint held."""
        return self.learner.restored(state, progress)


def _joint(model: Any) -> PairwiseModel:
    joint = model.joint()
    if not getattr(joint, "is_pairwise", False) or not hasattr(model, "from_joint"):
        kinds = ", ".join(layer.kind for layer in model.layers)
        raise ArgumentError(
            f"this learner takes hidden units that have the two values of the columns, not layers of {kinds} units",
            "learn by `learner='minibatch'`",
        )
    return joint
