"""What a minibatch teaches a deep Boltzmann machine: mean field for the clamped phase, chains for the free one.

The gradient of the bound ``E_Q[log P(v, h)] + H(Q)`` is the difference of the moments of the two phases (YK15's clamped
and free phase; Salakhutdinov and Hinton 2009): of the factorised posterior given each row, and of the model. The second
comes from any free phase of restricted machines, because even layers against odd ones are one (`DeepModel.folded`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsian.expectations.deep_mean_field import DeepMeanField, Posterior
from gibbsian.learners.filling import EpochRows, plain_rows
from gibbsian.learners.layer_gradient import OFFSET_SHARE, centred_products
from gibbsian.learners.lessons import LESSONS, Lesson, Lessons
from gibbsian.models.deep import DeepModel
from gibbsian.models.layers import log_probability

if TYPE_CHECKING:
    from gibbsian.learners.minibatch import Minibatch

# Rows from which the offsets, and a free phase, may take their start.
_ROWS_TO_START = 1000
# When the means of a minibatch are near enough to where they would settle.
_MEAN_FIELD_TOL = 1e-3


class DeepMemory(NamedTuple):
    """The state of the free phase, and the means of all layers from the bottom, averaged over the past."""

    free: Any
    offsets: np.ndarray


@LESSONS.register("deep")
class DeepLessons(Lessons):
    """Clamped less free moments, about the offsets; missing cells are hidden units of their row."""

    on_device = "deep"

    def __init__(self, learner: Minibatch, model: DeepModel, rows: EpochRows):
        self.phase: Any = learner.phase(model)
        self.learner, self.rows = learner, rows
        self.mean_field = DeepMeanField(max_iter=learner.mean_field_steps, tol=_MEAN_FIELD_TOL)

    def start(self, model: DeepModel, rng: np.random.Generator) -> tuple[DeepMemory, np.ndarray]:
        """Start the chains, and take the offsets from some of the rows."""
        memory = self.restarted(model, DeepMemory(None, np.empty(0)), rng)
        return memory, np.empty(0, self.rows.data.states.dtype)

    def restarted(self, model: DeepModel, memory: DeepMemory, rng: np.random.Generator) -> DeepMemory:
        """Return the same memory with chains that begin anew; the first offsets are the means of some rows."""
        means = self._posterior(model, rng.permutation(self.rows.n_rows)[:_ROWS_TO_START]).means
        folded = model.folded()
        even = model.fold_values(means)[0]
        states = folded.visible.decode(folded.visible.draw(folded.visible.fields_of(even), rng))
        free = self.phase.init(folded, plain_rows(states), rng)
        return DeepMemory(free, memory.offsets if memory.offsets.size else _layer_means(means))

    def teach(
        self, model: DeepModel, memory: DeepMemory, filled: np.ndarray, places: np.ndarray, rng: np.random.Generator
    ) -> Lesson:
        """Return clamped less free moments at some rows."""
        posterior = self._posterior(model, places)
        even = model.fold_values(posterior.means)[0]
        moments, free = self.phase(model.folded(), memory.free, even, rng)
        flat = np.concatenate([moments.visible, moments.hidden, moments.products.ravel()])
        gradient = (mean_statistics(posterior.means) - model.unfold(flat)) / model.temperature
        if self.learner.centred:
            gradient = centred_gradient(model, gradient, memory.offsets)
        offsets = memory.offsets + OFFSET_SHARE * (_layer_means(posterior.means) - memory.offsets)
        misfit = _misfit(model, posterior)
        return Lesson(gradient.astype(model.theta.dtype, copy=False), DeepMemory(free, offsets), misfit)

    def offset_parts(self, model: DeepModel, memory: DeepMemory) -> list[np.ndarray]:
        """Return the offsets of the layers from the bottom, a row each."""
        return np.split(memory.offsets[None], np.cumsum([layer.width for layer in model.layers])[:-1], axis=1)

    def remembered(self, free: Any, offsets: list[np.ndarray]) -> DeepMemory:
        """Return the memory of a free phase and of such offsets."""
        return DeepMemory(free, np.hstack(offsets)[0])

    def _posterior(self, model: DeepModel, places: np.ndarray) -> Posterior:
        states, missing = self.rows.data.rows(places)
        if missing is None:
            return self.mean_field(model, model.visible.encode(states))
        states = np.where(missing, states.dtype.type(0), states)
        return self.mean_field(model, model.visible.encode(states), model.visible.spread(missing))


def mean_statistics(means: tuple[np.ndarray, ...] | list[np.ndarray]) -> np.ndarray:
    """Return the means of the layers and of products of neighbours over rows, in the layout of theta."""
    column = np.full((len(means[0]), 1), 1.0 / len(means[0]), dtype=means[0].dtype)
    weighted = [part * column for part in means]
    firsts = [part.sum(axis=0) for part in weighted]
    products = [(lower.T @ upper).ravel() for lower, upper in zip(weighted[:-1], means[1:], strict=True)]
    return np.concatenate([*firsts, *products])


def centred_gradient(model: DeepModel, difference: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the ascent direction that belongs to moments about offsets, from a difference of plain moments."""
    firsts, products = model.split(difference)
    centres = np.split(offsets, np.cumsum([layer.width for layer in model.layers])[:-1])
    biases, weights = [part.copy() for part in firsts], []
    for place, matrix in enumerate(products):
        mu, nu = centres[place : place + 2]
        centred = centred_products(matrix, firsts[place], firsts[place + 1], mu, nu)
        biases[place] -= centred @ nu
        biases[place + 1] -= mu @ centred
        weights.append(centred.ravel())
    return np.concatenate([*biases, *weights])


def _layer_means(means: tuple[np.ndarray, ...]) -> np.ndarray:
    return np.concatenate([part.mean(axis=0) for part in means])


def _misfit(model: DeepModel, posterior: Posterior) -> float:
    """Mean of ``-log P(v | h)`` at the posterior means of the lowest hidden layer."""
    found = log_probability(model.tempered[0], model.fields(0, posterior.means), posterior.means[0])
    return -float(found.mean())
