"""What a minibatch of rows teaches a stack of layers: clamped less free moments (YK15's clamped and free phase).

With two layers the hidden units of a row are known exactly; missing cells are drawn anew, given the rest of their row,
whenever it is visited. With more layers the gradient is that of the bound ``E_Q[log P(v, h)] + H(Q)``, Q the factorised
posterior of each row by mean field (Salakhutdinov and Hinton 2009), and missing cells are hidden units of their row.
The free phase is the same for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsian.expectations.deep_mean_field import DeepMeanField, MeanFieldPosterior
from gibbsian.learning.filling import EpochRows
from gibbsian.learning.layer_gradient import GradientMaker, towards
from gibbsian.learning.layer_monitors import Watched
from gibbsian.models.base import Model, StackParts
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import log_probability, mean_values, spread
from gibbsian.old_sampling.layer_paths import IndependentUnits
from gibbsian.registry import Registry

if TYPE_CHECKING:
    from gibbsian.learning.minibatch import Minibatch

# by the families that learn by minibatches
LESSONS = Registry("learning by minibatches", "gibbsian.learning", "LESSONS")

Array = Any

# Rows from which the offsets of a deep machine, and its free phase, may take their start.
_ROWS_TO_START = 1000
# When the means of a minibatch are near enough to where they would settle.
_MEAN_FIELD_TOL = 1e-3


class Memory(NamedTuple):
    """The state of the free phase, and the means of the layers under the data, averaged over the past."""

    free: object
    offsets: tuple[Array, ...]


class Lesson(NamedTuple):
    """What is made of one minibatch: a direction in the layout of theta, what is remembered, the misfit if known."""

    gradient: Array
    memory: Memory
    misfit: Any


class Clamped(NamedTuple):
    """Values of all layers at some rows, means of hidden units; the fields of the odd layers; the misfit if known."""

    values: list[Array]
    fields: list[Array]
    misfit: Any


@LESSONS.register("stack")
def lessons_of(learner: Minibatch, family: StackFamily, rows: EpochRows) -> Lessons:
    """Return what minibatches of rows teach a stack."""
    return (Lessons if len(family.layers) == 2 else DeepLessons)(learner, family, rows)


class Lessons:
    """Clamped less free moments of machines of two layers.

    Parameters
    ----------
    learner : Minibatch
        Says which free phase, and whether about offsets.
    family : StackFamily
        The layers.
    rows : EpochRows
        The rows.
    """

    # whether missing cells are drawn and kept (else they are hidden units)
    fills_missing = True
    # whether chunks of rows after a fit go on with its chains, instead of new ones
    goes_on = True

    def __init__(self, learner: Minibatch, family: StackFamily, rows: EpochRows):
        self.learner, self.family, self.rows = learner, family, rows
        self.phase: Any = learner.phase(family)
        self.make_gradient = GradientMaker()
        self.prepare()

    def prepare(self) -> None:
        """Choose the rows that are watched."""
        self.watched = Watched(self.rows, self.family)

    # -- beginnings ---------------------------------------------------------------------------------------------------
    def start(self, model: Model[StackFamily], rng: np.random.Generator) -> tuple[Memory, np.ndarray]:
        """Return what is remembered before the first minibatch, and what stands in missing cells."""
        visible = mean_values(self.family.layers[0], self.rows.data).astype(model.theta.dtype)
        hidden = self.family.means(model.parts, 1, [visible[None], None])[0]
        return self.restarted(model, Memory(None, (visible, hidden)), rng), self.rows.start(model, rng)

    def restarted(self, model: Model[StackFamily], memory: Memory, rng: np.random.Generator) -> Memory:
        """Return the same memory with chains that begin anew."""
        return memory._replace(
            free=self.phase.init(model, lambda: IndependentUnits.of_data(model, self.rows.data), rng)
        )

    # -- minibatches --------------------------------------------------------------------------------------------------
    def teach(
        self, parts: StackParts, memory: Memory, filled: np.ndarray, places: np.ndarray, rng: np.random.Generator
    ) -> Lesson:
        """Return what the rows at some places teach; what stands in their missing cells may change in place."""
        values = self.rows.renew(self.family, parts, places, filled, rng)
        return self.lesson(parts, memory, self.clamp(parts, values), rng)

    def clamp(self, parts: StackParts, values: Array) -> Clamped:
        """Return the hidden units given rows of visible values."""
        fields = self.family.fields(parts, 1, [values, None])
        return Clamped([values, self.family.layers[1].means(fields)], [fields], None)

    def lesson(self, parts: StackParts, memory: Memory, clamped: Clamped, rng: np.random.Generator) -> Lesson:
        """Return the gradient; the chains move on."""
        free, state = self.phase(self.family, parts, memory.free, clamped.fields, rng)
        gradient, means = self.make_gradient(clamped.values, free, memory.offsets if self.learner.centred else None)
        return Lesson(gradient, Memory(state, towards(memory.offsets, means)), clamped.misfit)

    # -- figures ------------------------------------------------------------------------------------------------------
    def value(self, parts: StackParts, filled: np.ndarray, misfit: float) -> float:
        """Return what is to fall: minus the pseudolikelihood of some rows, or the error of reconstruction."""
        return self.watched.sign * self.watched(parts, filled)

    def figures(self, value: float, n_epochs: int) -> dict[str, float]:
        """Return the figure that is watched, by name."""
        return {self.watched.name: self.watched.sign * value}


class DeepLessons(Lessons):
    """The same with several hidden layers, given rows by mean field."""

    fills_missing = False
    goes_on = False

    def prepare(self) -> None:
        """Settle how long the means of hidden units are updated."""
        self.mean_field = DeepMeanField(max_iter=self.learner.mean_field_steps, tol=_MEAN_FIELD_TOL)

    def start(self, model: Model[StackFamily], rng: np.random.Generator) -> tuple[Memory, np.ndarray]:
        """Start the chains, and take the offsets from some of the rows."""
        return self.restarted(model, Memory(None, ()), rng), np.empty(0, self.rows.data.states.dtype)

    def restarted(self, model: Model[StackFamily], memory: Memory, rng: np.random.Generator) -> Memory:
        """Return the same memory with chains that begin anew; the first offsets are the means of some rows."""
        means = self._posterior(model.parts, rng.permutation(self.rows.n_rows)[:_ROWS_TO_START]).means
        free = self.phase.init(model, lambda: IndependentUnits.from_values(model, means[::2]), rng)
        return Memory(free, memory.offsets or tuple(part.mean(axis=0) for part in means))

    def teach(
        self, parts: StackParts, memory: Memory, filled: np.ndarray, places: np.ndarray, rng: np.random.Generator
    ) -> Lesson:
        """Return what the rows at some places teach."""
        return self.lesson(parts, memory, self._clamped(parts, self._posterior(parts, places)), rng)

    def clamp(self, parts: StackParts, values: Array) -> Clamped:
        """Return the hidden units given rows of visible values."""
        return self._clamped(parts, self.mean_field(self.family, parts, values))

    def _posterior(self, parts: StackParts, places: np.ndarray) -> MeanFieldPosterior:
        (states, missing), visible = self.rows.data.rows(places), self.family.layers[0]
        if missing is None:
            return self.mean_field(self.family, parts, visible.encode(states))
        states = np.where(missing, states.dtype.type(0), states)
        return self.mean_field(self.family, parts, visible.encode(states), spread(visible, missing))

    def _clamped(self, parts: StackParts, posterior: MeanFieldPosterior) -> Clamped:
        """The misfit is the mean of ``-log P(v | h)`` at the posterior means of the lowest hidden layer."""
        means = list(posterior.means)
        found = log_probability(self.family.layers[0], self.family.fields(parts, 0, means), means[0])
        return Clamped(means, [posterior.fields[place] for place in self.family.sides[1]], -found.mean())

    def value(self, parts: StackParts, filled: np.ndarray, misfit: float) -> float:
        """Return what an epoch reports: its mean of ``-log P(v | h)``, because log Z is unknown during a fit."""
        return misfit

    def figures(self, value: float, n_epochs: int) -> dict[str, float]:
        """Return the same by name."""
        return {"log_reconstruction": -value if n_epochs else np.nan}
