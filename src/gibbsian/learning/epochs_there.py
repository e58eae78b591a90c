"""Epochs over rows on a cluster: each partition is learned from where it is, and what is learned is averaged.

In an epoch every partition starts at the same parameters and makes the minibatches of its own rows, in an order that
the seed of the fit, the number of the epoch and the rows decide, with chains of its own that go on from epoch to epoch.
Parameters and velocities are then averaged by the weights of the partitions, along the tree of all sums (local SGD).
The chains, a few rows for each partition, come here with them and go out again: what a worker has may be lost with it.
What stands in missing cells would be too much, so it is drawn anew in every epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.minibatches import draw_seed, seeded
from gibbsian.data.rows import Rows
from gibbsian.data.sums import scaled
from gibbsian.expectations.imputation import fingerprint_of
from gibbsian.learning.around import Around
from gibbsian.learning.base import LearnerState
from gibbsian.learning.minibatch import Minibatch, MinibatchProgress, in_own_units, returned
from gibbsian.learning.optimizers import StepInfo
from gibbsian.learning.standard_units import ColumnScale
from gibbsian.models.base import DiscreteFamily, Family, Model

# Sweeps over missing cells before the minibatches of an epoch.
SWEEPS = 5
# Rows that are filled together.
TOGETHER = 4096


class _Problem(NamedTuple):
    """Layers and rows in the units of learning, and the names with signs of what is measured first and later."""

    model: Any
    data: Rows | None
    scale: ColumnScale | None
    named: tuple[dict[str, float], dict[str, float]]


@dataclass(frozen=True)
class EpochsThere(Around):
    """Minibatches on the workers, and the mean of what they have learned after every epoch.

    References
    ----------
    S. U. Stich, "Local SGD converges fast and communicates little", ICLR (2019).
    """

    learner: Minibatch

    def init(self, model: Model[DiscreteFamily], data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Draw the seed, and start the chains of each partition."""
        layers, data, scale = in_own_units(model, data)
        seed, theta = draw_seed(rng), layers.theta.astype(self.learner.dtype)
        value, memory, named = data.reduce(partial(_begun, self.learner, layers.replace(theta), seed))
        progress = MinibatchProgress(
            theta=theta,
            velocity=np.zeros_like(theta),
            memory=tuple(memory),  # of each partition
            filled=np.zeros(0),
            seed=seed,
            epoch=0,
            steps=0,
            last=self.learner.max_iter,
            value=float(value / data.total_weight),
            gradient_norm=np.inf,
        )
        return LearnerState(_Problem(layers, data, scale, named[0]), progress)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Have every partition learned from once, and average."""
        model, data, before = state.problem.model, state.problem.data, state.progress
        learn = partial(epoch_of, self.learner, model, replace(before, memory=()), data.total_weight)
        *sums, n_batches, memory = data.reduce(learn, before.memory)
        theta, velocity, value, norm = (total / data.total_weight for total in sums)
        after = replace(
            before,
            theta=theta.astype(before.theta.dtype),
            velocity=velocity.astype(before.theta.dtype),
            memory=tuple(memory),
            epoch=before.epoch + 1,
            steps=before.steps + n_batches,
            value=float(value),
            gradient_norm=float(norm),
        )
        return LearnerState(state.problem, after), self.learner.step_info(after, self.learner.learning_rate)

    def fitted(self, model: Model[Family], state: LearnerState) -> Any:
        """Return the model as a state has it, in the units of the data."""
        learned, scale = state.problem.model.replace(state.progress.theta), state.problem.scale
        return returned(model, learned if scale is None else scale.to_data(learned))

    def most_steps(self, model: Model[Family], max_iter: int) -> int:
        """Return the number of epochs."""
        return self.learner.max_iter

    def figures(self, state: LearnerState) -> dict[str, float]:
        """Return the mean of what the partitions measure after an epoch."""
        now = state.progress
        return {name: sign * now.value for name, sign in state.problem.named[min(now.epoch, 1)].items()}


def epoch_of(
    learner: Minibatch,
    model: Model[DiscreteFamily],
    progress: MinibatchProgress,
    total: float,
    data: Dataset,
    memory: object,
) -> tuple[Any, ...]:
    """Return theta, velocity, figure and gradient after an epoch of a partition, times its weight; its chains."""
    rng = own_generator([*progress.seed, progress.epoch], data)
    begun = learner.begin(model.replace(progress.theta), data, rng, seen=total - data.total_weight)
    problem, n_batches = begun.problem, learner.n_batches(begun.problem)
    here = replace(
        begun.progress,
        velocity=progress.velocity,
        memory=memory,
        epoch=progress.epoch,
        steps=progress.epoch * n_batches,
    )
    if problem.lessons.fills_missing and data.has_missing:
        for places in SWEEPS * np.array_split(np.arange(data.n_rows), 1 + data.n_rows // TOGETHER):
            problem.rows.renew(model.family, model.family.split(here.theta), places, here.filled, rng)
    after = learner.step(LearnerState(problem, here))[0].progress
    sums = scaled((after.theta, after.velocity, after.value, after.gradient_norm), data.total_weight)
    return (*sums, n_batches, [after.memory])


def _begun(
    learner: Minibatch, model: Model[DiscreteFamily], seed: np.ndarray, data: Dataset
) -> tuple[float, list[Any], list[Any]]:
    """Return the figure of a partition before the first epoch, times its weight, its chains, and the figure's names."""
    begun = learner.begin(model, data, own_generator(seed, data))
    names = [tuple(begun.problem.lessons.figures(1.0, epoch) for epoch in (0, 1))]
    return data.total_weight * begun.progress.value, [begun.progress.memory], names


def own_generator(seed: Any, data: Dataset) -> np.random.Generator:
    """Return the generator of a partition: a function of the seed and of its rows."""
    return seeded(seed, fingerprint_of(data))
