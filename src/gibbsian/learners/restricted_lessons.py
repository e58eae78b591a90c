"""What a minibatch teaches a restricted machine: the clamped phase at rows, the free phase by chains (YK15, RBM)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsian.expectations.block_chains import BlockSamples, SampledPhase
from gibbsian.learners.filling import EpochRows
from gibbsian.learners.layer_gradient import GradientMaker, Offsets
from gibbsian.learners.layer_monitors import Watched
from gibbsian.learners.lessons import LESSONS, Lesson, Lessons
from gibbsian.models.layers import mean_values
from gibbsian.models.restricted import RestrictedModel

if TYPE_CHECKING:
    from gibbsian.learners.minibatch import Minibatch


class RestrictedMemory(NamedTuple):
    """The state of the free phase, and the means of the layers under the data, averaged over the past."""

    free: Any
    offsets: Offsets


@LESSONS.register("restricted")
class RestrictedLessons(Lessons):
    """Clamped less free moments; missing cells are drawn anew, given the rest of their row, whenever it is visited."""

    fills_missing = True
    goes_on = True
    on_device = "restricted"

    def __init__(self, learner: Minibatch, model: RestrictedModel, rows: EpochRows):
        self.phase: Any
        self.learner, self.rows, self.phase = learner, rows, learner.phase(model)
        self.sampled = isinstance(self.phase, SampledPhase)
        self.make_gradient, self.watched = GradientMaker(), Watched(rows, model)
        # the step over the weights is one over their energies, whatever the temperature
        self.divisor = model.temperature

    def start(self, model: RestrictedModel, rng: np.random.Generator) -> tuple[RestrictedMemory, np.ndarray]:
        """Start the chains, and fill missing cells."""
        visible = mean_values(model.visible, self.rows.data).astype(model.theta.dtype)
        offsets = Offsets(visible, model.hidden_means(visible[None])[0])
        memory = self.restarted(model, RestrictedMemory(None, offsets), rng)
        return memory, self.rows.start(model, rng)

    def restarted(self, model: RestrictedModel, memory: RestrictedMemory, rng: np.random.Generator) -> RestrictedMemory:
        """Return the same memory with chains that begin anew."""
        return memory._replace(free=self.phase.init(model, self.rows.data, rng))

    def teach(
        self,
        model: RestrictedModel,
        memory: RestrictedMemory,
        filled: np.ndarray,
        places: np.ndarray,
        rng: np.random.Generator,
    ) -> Lesson:
        """Return the gradient at some rows; the chains move on."""
        values = self.rows.renew(model, places, filled, rng)
        fields = model.hidden_fields(values)
        data = BlockSamples(values, model.hidden_means_at(fields))
        if self.sampled:
            free, state = self.phase.samples(model, memory.free, fields, rng)
        else:
            free, state = self.phase(model, memory.free, values, rng)
        gradient, means = self.make_gradient(data, free, memory.offsets if self.learner.centred else None)
        return Lesson(gradient, RestrictedMemory(state, memory.offsets.towards(means)), 0.0)

    def offset_parts(self, model: RestrictedModel, memory: RestrictedMemory) -> list[np.ndarray]:
        """Return the offsets of the layers from the bottom, a row each."""
        return [part[None] for part in memory.offsets]

    def remembered(self, free: Any, offsets: list[np.ndarray]) -> RestrictedMemory:
        """Return the memory of a free phase and of such offsets."""
        return RestrictedMemory(free, Offsets(*(part[0] for part in offsets)))

    def value(self, model: RestrictedModel, filled: np.ndarray, misfit: float) -> float:
        """Return what is to fall: minus the pseudolikelihood of some rows, or the error of reconstruction."""
        return self.watched.sign * self.watched(model, filled)

    def figures(self, value: float, n_epochs: int) -> dict[str, float]:
        """Return the figure that is watched."""
        return {self.watched.name: self.watched.sign * value}
