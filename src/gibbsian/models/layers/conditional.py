"""Outputs and hidden units whose fields are linear in inputs: a distribution of the outputs given the inputs only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, NoReturn, Self

import numpy as np

from gibbsian.arrays import Codes, Floats, States
from gibbsian.errors import ArgumentError
from gibbsian.models.base import Units
from gibbsian.models.layers.stack import LayeredFamily, glorot_scale
from gibbsian.models.layers.units import GaussianUnits
from gibbsian.models.rows import RowsInMemory
from gibbsian.startup import softmax


class ConditionalParts(NamedTuple):
    """Output biases b, hidden biases c, and the weights V, W and U: views of theta."""

    outputs: Floats
    hidden: Floats
    direct: Floats
    inward: Floats
    outward: Floats

    def upward(self) -> tuple[Floats, Floats]:
        """Return the biases of the hidden units, and the weights from inputs and outputs."""
        return self.hidden, np.concatenate([self.inward, self.outward])

    def linear_form(self, v: Floats) -> tuple[Floats, Floats]:
        """Return the log-weight of each row without hidden units, and its derivative by each output (0 by an input)."""
        x, y = np.split(v, [len(self.direct)], axis=1)
        fields = self.outputs + x @ self.direct
        return np.einsum("mk,mk->m", fields, y), np.hstack([np.zeros_like(x), fields])

    def gather(self, v: Floats, present: Floats, hidden: Floats, products: Floats) -> Floats:
        """Return statistics from weighted expected values of each row, and sums over rows of h and ``(x, y) h^T``."""
        n = len(self.direct)
        y = present[:, n:]
        return np.concatenate([y.sum(axis=0), hidden, (v[:, :n].T @ y).ravel(), products.ravel()])


@dataclass(frozen=True)
class ConditionalFamily(LayeredFamily):
    """``P(y, h | x) = exp((b + x V)·y + (c + x W)·h + y U h) / Z(x)`` for any numbers x.

    Without hidden units it is multinomial logistic regression, without V the discriminative restricted Boltzmann
    machine. The inputs have no distribution. Theta has b, c, V, W, U one after the other, matrices row by row.

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

    @cached_property
    def _shapes(self) -> Sequence[tuple[int, ...]]:
        x, y, h = (layer.width for layer in self.layers)
        return (y,), (h,), (x, y), (x, h), (y, h)

    def split(self, theta: Floats) -> ConditionalParts:
        """Return the parameters by their kinds: views of theta."""
        return ConditionalParts(*self._arrays(theta))

    def random_init(self, data: RowsInMemory, rng: np.random.Generator) -> Floats:
        """Return initial parameters: zeros, and random weights of the hidden units on the scales of the inputs."""
        (inputs, outputs, hidden), theta = self.layers, np.zeros(self.n_parameters)
        parts, n = self.split(theta), inputs.n_units
        scales = np.sqrt(np.average(np.square(data.states[:, :n]), axis=0, weights=data.weights))
        deviation = glorot_scale(GaussianUnits(n + outputs.width), hidden)
        parts.inward[:] = deviation * rng.standard_normal(parts.inward.shape)
        parts.inward[:] /= np.where(scales > 0, scales, 1.0)[:, None]
        parts.outward[:] = deviation * rng.standard_normal(parts.outward.shape)
        return theta

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter."""
        return [f"theta[{i}]" for i in range(self.n_parameters)]

    def interactions(self, theta: Floats) -> NoReturn:
        """Raise: inputs have no distribution."""
        raise ArgumentError("a conditional model has no network of interactions", "learn a joint distribution")

    # -- distribution -------------------------------------------------------------------------------------------------
    def log_evidence(self, theta: Floats, v: Floats) -> Floats:
        """Return ``log P(y | x) + log Z(x)`` of rows of values, inputs and outputs, the hidden units summed out."""
        parts = self.split(theta)
        biases, weights = parts.upward()
        return self.layers[2].log_normaliser(v @ weights + biases) + parts.linear_form(v)[0]

    def log_weights(self, theta: Floats, x: States) -> Floats:
        """Return ``log P(y, h | x) + log Z(x)`` of complete rows."""
        parts, (inputs, outputs, hidden) = self.split(theta), self.encode(x)
        v = np.hstack([inputs, outputs])
        biases, weights = parts.upward()
        products: Floats = np.einsum("mk,mk->m", v @ weights + biases, hidden)
        return products + parts.linear_form(v)[0]

    def output_probabilities(self, theta: Floats, x: Floats, enumerated: Codes) -> Floats:
        """Return the probability of each of all states of the outputs, which are enumerated, for each row of inputs."""
        values = self.layers[1].encode(enumerated)
        rows = (np.hstack([x, np.tile(row, (len(x), 1))]) for row in values)
        probabilities: Floats = softmax(np.column_stack([self.log_evidence(theta, row) for row in rows]), axis=1)
        return probabilities
