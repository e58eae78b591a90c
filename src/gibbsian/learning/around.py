"""Learners that run another learner: what all of them share, and the one for models of layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import with_hidden
from gibbsian.data.rows import Rows
from gibbsian.errors import ArgumentError
from gibbsian.learning.base import Fit, Learner, Penalties
from gibbsian.learning.objectives.base import Equations
from gibbsian.learning.optimizers import StepInfo
from gibbsian.models.base import DiscreteFamily, Layered, Model
from gibbsian.models.layers.stack import StackFamily
from gibbsian.rng import Key


class Around(Learner):
    """A learner that does what the learner within does, unless it says otherwise."""

    learner: Any

    @property
    def penalties(self) -> Penalties:
        """The penalties of the learner within."""
        return self.learner.penalties

    @property
    def requires(self) -> tuple[type, ...]:  # type: ignore[override]
        """What the learner within asks of a family."""
        return self.learner.requires

    @property
    def takes(self) -> frozenset[str]:  # type: ignore[override]
        """What the learner within takes rows from."""
        return self.learner.takes

    @property
    def objective(self) -> Any:
        """What is minimised; None where nothing is."""
        return self.learner.objective

    def start(self, model: Any, data: Any, rng: np.random.Generator) -> Any:
        """Begin where the learner within begins."""
        return self.learner.start(model, data, rng)


@dataclass(frozen=True)
class OnJoint(Around):
    """Learns a model of layers as the pairwise model of all its units, whose theta is the same."""

    requires = (Layered,)

    learner: Learner

    def start(self, model: Any, data: Dataset, rng: np.random.Generator) -> Any:
        """Begin where the learner begins."""
        joint = _joint(model)
        return model.replace(model.family.from_joint(super().start(joint, data, rng)))

    def bind(self, model: Any, data: Rows) -> JointFit:
        """Bind the learner with hidden units as columns that are always missing."""
        return JointFit(model, self.learner.bind(_joint(model), with_hidden(data, model.family.n_hidden)))

    def equations(self, model: Model[DiscreteFamily], data: Dataset, max_seconds: float = 60.0) -> Equations:
        """Return the equations that a fit solves, of all units as variables."""
        return self.learner.equations(_joint(model), with_hidden(data, model.family.n_hidden), max_seconds)


@dataclass(frozen=True, eq=False)
class JointFit(Fit[Any]):
    """The fit of the pairwise model of all units of some layers."""

    layers: Model[Any]
    joint: Fit[Any]

    def init(self, key: Key, theta: np.ndarray | None = None) -> tuple[Any, StepInfo]:
        """Return the state before the first step; both forms have the same theta."""
        return self.joint.init(key, theta)

    def step(self, state: Any) -> tuple[Any, StepInfo]:
        """Take one step."""
        return self.joint.step(state)

    def model(self, state: Any) -> Any:
        """Return the layers that have the joint form of a state."""
        return self.layers.replace(self.layers.family.from_joint(self.joint.model(state)))

    def carry(self, state: Any) -> Any:
        """Return a state of a fit to other rows as one of this fit."""
        return self.joint.carry(state)

    @property
    def steps_per_chunk(self) -> int:  # type: ignore[override]
        """Number of steps with the rows of one chunk."""
        return self.joint.steps_per_chunk


def on_layers(learner: Learner) -> Learner:
    """Return a learner as it learns layers: those that know none learn the joint model of all units."""
    return learner if Layered in learner.requires else OnJoint(learner)


def _joint(model: Model[Any]) -> Model[Any]:
    if not isinstance(model.family, StackFamily):
        raise ArgumentError("a belief network is no exponential family over its units", "learn by `learner='stacking'`")
    if any(layer.variables.real for layer in model.family.layers):
        raise ArgumentError("real numbers have no list of values to sum over", "learn by `learner='minibatch'`")
    kinds = {layer.kind for layer in model.family.layers}
    if len(kinds) > 1 or any(layer.variables.scores is None for layer in model.family.layers):
        named = ", ".join(layer.kind for layer in model.family.layers)
        raise ArgumentError(
            f"this learner takes hidden units that have the two values of the columns, not layers of {named} units",
            "learn by `learner='minibatch'`",
        )
    return model.family.joint(model.theta)
