"""Outputs and hidden units whose fields are linear in inputs: a distribution of the outputs given the inputs only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.models.family import Units
from gibbsian.models.interactions import Interactions
from gibbsian.models.layers.stack import LayeredFamily, glorot_scale
from gibbsian.models.layers.units import GaussianUnits, values_of
from gibbsian.resources import spans
from gibbsian.startup import softmax

Array = Any


class ConditionalParts(NamedTuple):
    """Output biases b, hidden biases c, and the weights V, W and U: views of theta."""

    outputs: Array
    hidden: Array
    direct: Array
    inward: Array
    upward: Array


@dataclass(frozen=True)
class ConditionalFamily(LayeredFamily):
    """``P(y, h | x) = exp((b + x V)·y + (c + x W)·h + y U h) / Z(x)`` for any numbers x.

    Without hidden units it is multinomial logistic regression, without V the discriminative restricted Boltzmann
    machine. The inputs have no distribution, so it is not asked how they are spread. Theta has b, c, V, W, U one after
    the other, matrices row by row.

    Parameters
    ----------
    layers : sequence of Units
        Inputs x, outputs y and hidden units h; rows show the inputs and the outputs.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> family = gb.models.ConditionalFamily.of(1, gb.models.CategoricalUnits((2,)), gb.models.BinaryUnits(0))
    >>> theta = np.array([0.0, 0.0, 0.0, 2.0])
    >>> np.diff(family.log_evidence(theta, np.array([[0.5, 1, 0], [0.5, 0, 1]]))).tolist()   # log-odds of y = 1 at 0.5
    [1.0]
    """

    @classmethod
    def of(cls, n_inputs: int, outputs: Units, hidden: Units) -> Self:
        """Return the family of these numbers of units."""
        return cls((GaussianUnits(n_inputs), outputs, hidden))

    @property
    def n_hidden(self) -> int:
        """Number of hidden units."""
        return self.layers[2].n_units

    @property
    def _shapes(self) -> Sequence[tuple[int, ...]]:
        x, y, h = (layer.width for layer in self.layers)
        return (y,), (h,), (x, y), (x, h), (y, h)

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return sum(int(np.prod(shape)) for shape in self._shapes)

    @property
    def penalised(self) -> np.ndarray:
        """Mask of the weights."""
        return np.arange(self.n_parameters) >= self.layers[1].width + self.layers[2].width

    def split(self, theta: Array) -> ConditionalParts:
        """Return the parameters by their kinds: views of theta."""
        places = spans(int(np.prod(shape)) for shape in self._shapes)
        return ConditionalParts(*(theta[at].reshape(own) for at, own in zip(places, self._shapes, strict=True)))

    def scattered(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """Return random weights of the hidden units from which learning can start, on the scales of the inputs."""
        (inputs, outputs, hidden), theta = self.layers, np.zeros(self.n_parameters)
        parts, n = self.split(theta), inputs.n_units
        scales = np.sqrt(np.average(np.square(data.states[:, :n]), axis=0, weights=data.weights))
        deviation = glorot_scale(GaussianUnits(n + outputs.width), hidden)
        within = deviation * rng.standard_normal(parts.inward.shape)
        parts.inward[:] = within / np.where(scales > 0, scales, 1.0)[:, None]
        parts.upward[:] = deviation * rng.standard_normal(parts.upward.shape)
        return theta

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter."""
        return [f"theta[{number}]" for number in range(self.n_parameters)]

    def interactions(self, theta: Array) -> Interactions:
        """Refuse: inputs have no distribution."""
        raise ArgumentError("a conditional model has no network of interactions", "learn a joint distribution")

    # -- distribution -------------------------------------------------------------------------------------------------
    def log_evidence(self, theta: Array, v: Array) -> Array:
        """Return ``log P(y | x) + log Z(x)`` of rows of values, inputs and outputs, the hidden units summed out."""
        parts = self.split(theta)
        biases, weights = self.upward(parts)
        return self.slopes(parts, v)[0] + self.layers[2].log_normaliser(v @ weights + biases)

    def log_weights(self, theta: Array, x: Array) -> Array:
        """Return ``log P(y, h | x) + log Z(x)`` of complete rows."""
        parts, (inputs, outputs, hidden) = self.split(theta), self.encode(x)
        v = np.hstack([inputs, outputs])
        biases, weights = self.upward(parts)
        return self.slopes(parts, v)[0] + np.einsum("mk,mk->m", v @ weights + biases, hidden)

    def output_probabilities(self, theta: Array, x: np.ndarray, listed: np.ndarray) -> np.ndarray:
        """Return the probabilities of listed states of the outputs, all that there are, at each row of inputs."""
        values = values_of(self.layers[1], listed)
        rows = (np.hstack([x, np.tile(row, (len(x), 1))]) for row in values)
        return softmax(np.column_stack([self.log_evidence(theta, row) for row in rows]), axis=1)

    # -- rows that lack some cells, with zeros there ------------------------------------------------------------------
    @property
    def shown(self) -> tuple[Units, ...]:
        """The layers whose units rows of data show."""
        return self.layers[:2]

    def upward(self, parts: ConditionalParts) -> tuple[Array, Array]:
        """Return the biases of the hidden units, and the weights from inputs and outputs."""
        return parts.hidden, np.concatenate([parts.inward, parts.upward])

    def slopes(self, parts: ConditionalParts, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log-weight of each row without hidden units, and its slope in each output; inputs are given."""
        n = self.layers[0].width
        x, y = v[:, :n], v[:, n:]
        slopes = parts.outputs + x @ parts.direct
        return np.einsum("mk,mk->m", slopes, y), np.hstack([np.zeros_like(x), slopes])

    def gathered(self, v: np.ndarray, shown: np.ndarray, hidden: np.ndarray, products: np.ndarray) -> np.ndarray:
        """Return statistics from weighted expected values of each row, and sums over rows of h and ``(x, y) h^T``."""
        n = self.layers[0].width
        y = shown[:, n:]
        return np.concatenate([y.sum(axis=0), hidden, (v[:, :n].T @ y).ravel(), products.ravel()])
