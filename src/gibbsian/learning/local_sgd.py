"""Epochs over rows on a cluster: each partition is learned from where it is, and what is learned is averaged.

In an epoch every partition starts at the same parameters and makes the minibatches of its own rows, in an order that
the key of the fit, the number of the epoch and the rows decide, with chains of its own that continue from epoch to
epoch. Parameters and velocities are then averaged by the weights of the partitions, along the tree of all sums. The
chains, a few rows for each partition, come here with them and go out again: what a worker has may be lost with it.
Missing cells would be too much, so they are imputed anew in every epoch.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.data.sums import scaled
from gibbsian.expectations.imputation import fingerprint_of
from gibbsian.learning.base import Fit
from gibbsian.learning.curves import curve_of
from gibbsian.learning.layer_fits import as_layers
from gibbsian.learning.layer_phases import PhaseState
from gibbsian.learning.minibatch import EpochFit, EpochState, Minibatch, epoch_outcome
from gibbsian.learning.optimizers import StepInfo
from gibbsian.models.base import Family, Model
from gibbsian.models.layers.stack import StackFamily
from gibbsian.rng import Key

# Sweeps over missing cells before the minibatches of an epoch.
SWEEPS = 5


class LocalState(NamedTuple):
    """Parameters and their velocity, the phases of each partition, the key, and epochs and minibatches so far."""

    theta: Floats
    velocity: Floats
    phases: tuple[PhaseState, ...]
    key: Key
    epoch: int
    steps: int


class LocalSGD(Fit[LocalState]):
    """Minibatches on the workers, and the mean of what they have learned after every epoch.

    References
    ----------
    S. U. Stich, "Local SGD converges fast and communicates little", ICLR (2019).
    """

    def __init__(self, learner: Minibatch, model: Model[Family], data: Dataset):
        self.learner, self.given = learner, model
        self.stack, self.data = as_layers(model, data)
        self.curve, self.sign = curve_of(self.stack.family)

    def init(self, key: Key, theta: Floats | None = None) -> tuple[LocalState, StepInfo]:
        """Start the chains of each partition."""
        start = (self.stack.theta if theta is None else theta).astype(self.learner.dtype)
        value, phases = self.data.reduce(partial(_begun, self.learner, self.stack.replace(start), key))
        state = LocalState(start, np.zeros_like(start), tuple(phases), key, 0, 0)
        return state, self._info(float(value / self.data.total_weight))

    def step(self, state: LocalState) -> tuple[LocalState, StepInfo]:
        """Have every partition learned from once, and average."""
        learn = partial(epoch_of, self.learner, self.stack, state._replace(phases=()), self.data.total_weight)
        total, dtype = self.data.total_weight, state.theta.dtype
        theta, velocity, value, norm, n_batches, phases = self.data.reduce(learn, state.phases)
        value, norm = value / total, norm / total
        after = state._replace(
            theta=(theta / total).astype(dtype),
            velocity=(velocity / total).astype(dtype),
            phases=tuple(phases),
            epoch=state.epoch + 1,
            steps=state.steps + n_batches,
        )
        return after, self._info(value)._replace(
            gradient_norm=norm,
            step_size=self.learner.learning_rate,
            evaluations=after.steps,
            outcome=epoch_outcome(self.learner, after.epoch, after.steps, norm),
        )

    def model(self, state: LocalState) -> Model[Family]:
        """Return the model as a state has it."""
        return self.given.replace(state.theta)

    def _info(self, value: float) -> StepInfo:
        """Return the mean of what the partitions measure, where they do."""
        if not self.learner.curves and len(self.stack.family.layers) == 2:
            return StepInfo()
        return StepInfo(value, metrics={self.curve: -self.sign * value})


def epoch_of(
    learner: Minibatch,
    stack: Model[StackFamily],
    state: LocalState,
    total: float,
    data: Dataset,
    phases: PhaseState,
) -> tuple[Floats, Floats, float, float, int, list[PhaseState]]:
    """Return theta, velocity, value and gradient after an epoch of a partition, times its weight; its phases."""
    fit, key = EpochFit(learner, stack, data), state.key.fold(fingerprint_of(data))
    imputed = fit.impute(state.theta, key.fold("imputed", state.epoch).generator(), SWEEPS)
    steps = state.epoch * len(fit.cuts)
    begun = EpochState(state.theta, state.velocity, phases, imputed, key, state.epoch, steps, total)
    after, info = fit.step(begun)
    theta, velocity, value, norm = scaled(
        (after.theta, after.velocity, info.value, info.gradient_norm), data.total_weight
    )
    return theta, velocity, value, norm, len(fit.cuts), [after.phases]


def _begun(learner: Minibatch, stack: Model[StackFamily], key: Key, data: Dataset) -> tuple[float, list[PhaseState]]:
    """Return the value of a partition before the first epoch, times its weight, and its phases."""
    state, info = EpochFit(learner, stack, data).init(key.fold(fingerprint_of(data)))
    return data.total_weight * info.value, [state.phases]
