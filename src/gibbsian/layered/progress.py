"""The state of training a restricted machine: what a checkpoint holds, and what an epoch works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.backends.numba import layers as kernels
from gibbsian.data.minibatches import Cuts
from gibbsian.layered.filling import Filling, check_rows
from gibbsian.layered.gradient import Gradient, GradientMaker, Offsets
from gibbsian.layered.monitors import Watched
from gibbsian.layered.rows import LayerRows
from gibbsian.models.restricted import RestrictedModel

# Minibatches of an epoch, and the rows that one may have, where nothing else is said.
_BATCHES, _SMALLEST_BATCH, _LARGEST_BATCH = 100, 10, 100


@dataclass(frozen=True)
class RestrictedProgress:
    """All that the next epoch needs besides the rows: plain arrays and numbers.

    Parameters
    ----------
    theta, velocity : ndarray
        Parameters, and their last step for the momentum.
    offsets : Offsets
        Means of the layers under the data, averaged over the past.
    free : Any
        The state of the free phase.
    filled : ndarray
        What stands in the missing cells.
    seed : ndarray
        What all random numbers follow from.
    epoch, steps : int
        Epochs and minibatches so far.
    value, gradient_norm : float
        As told after the last epoch.
    history : ndarray
        One row of figures before the first epoch and after every one.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.start import start_model
    >>> from gibbsian.layered.training import RestrictedLearner
    >>> from gibbsian.models.layers import BinaryLayer
    >>> rows, rng = LayerRows(np.eye(4, dtype=np.int8)), np.random.default_rng(0)
    >>> start = start_model(BinaryLayer(4), BinaryLayer(2), rows, rng)
    >>> RestrictedLearner().init(start, rows, rng).progress.epoch
    0
    """

    theta: np.ndarray
    velocity: np.ndarray
    offsets: Offsets
    free: Any
    filled: np.ndarray
    seed: np.ndarray
    epoch: int
    steps: int
    value: float
    gradient_norm: float
    history: np.ndarray


@dataclass
class Problem:
    """The layers and the rows, with arrays to work in: made once, never saved.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.progress import Problem
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rows = LayerRows(np.eye(2, dtype=np.int8), weights=np.array([30.0, 10.0]))
    >>> problem = Problem.of(RestrictedModel.build(BinaryLayer(2), BinaryLayer(1)), rows, sampled=True)
    >>> len(problem.cuts(None))
    4
    """

    model: RestrictedModel
    filling: Filling
    watched: Watched
    gradient: GradientMaker
    sampled: bool
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: RestrictedModel, rows: LayerRows, sampled: bool) -> Problem:
        """Check that rows suit a model and lay them out."""
        check_rows(model, rows)
        filling = Filling(rows)
        return cls(model, filling, Watched(filling), GradientMaker(), sampled)

    def cuts(self, batch_size: int | None) -> Cuts:
        """Return where an epoch is cut."""
        n_draws = self.filling.rows.n_draws
        if batch_size is None:
            batch_size = min(max(n_draws // _BATCHES, _SMALLEST_BATCH), _LARGEST_BATCH)
        return Cuts(n_draws, batch_size)


@dataclass
class Point:
    """Where training stands inside an epoch: what a step changes, in place where it is large.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.gradient import Gradient, Offsets
    >>> from gibbsian.layered.progress import Point
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm, means = RestrictedModel.build(BinaryLayer(1), BinaryLayer(1)), Offsets(np.zeros(1), np.zeros(1))
    >>> here = Point(rbm, np.zeros(3), means, None, np.empty(0))
    >>> here.move(Gradient(np.ones(1), np.ones(1), np.ones((1, 1)), means), rate=0.1)
    >>> here.model.theta
    array([0.1, 0.1, 0.1])
    """

    model: RestrictedModel
    velocity: np.ndarray
    offsets: Offsets
    free: Any
    filled: np.ndarray

    @classmethod
    def copy_of(cls, model: RestrictedModel, progress: RestrictedProgress) -> Point:
        """Return the point of some progress, free to be changed."""
        here = model.replace(progress.theta.copy())
        return cls(here, progress.velocity.copy(), progress.offsets, progress.free, progress.filled.copy())

    def move(self, gradient: Gradient, rate: float, momentum: float = 0.0, l1: float = 0.0, l2: float = 0.0) -> None:
        """Make a step: momentum for all, penalties on the weights."""
        number = self.model.theta.dtype.type
        biases = len(self.model.theta) - gradient.weights.size
        self.velocity[:biases] *= number(momentum)
        self.velocity[:biases] += number(rate) * np.concatenate([gradient.visible, gradient.hidden])
        self.model.theta[:biases] += self.velocity[:biases]
        weights, velocity = self.model.theta[biases:], self.velocity[biases:]
        numbers = map(number, (rate, momentum, l2))
        kernels.move_weights(weights, velocity, gradient.weights.ravel(), *numbers)
        if l1:
            # with momentum a step of the gradient adds up to 1 / (1 - momentum) times its length
            kernels.shrink(weights, number(rate * l1 / (1.0 - momentum)))


__all__ = ["Point", "Problem", "RestrictedProgress"]
