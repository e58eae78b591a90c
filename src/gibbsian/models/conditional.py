"""Outputs and hidden units whose fields are linear in inputs: a distribution of the outputs given the inputs only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from gibbsian.models.joined_layer import JoinedLayer
from gibbsian.models.layer_stack import LayeredModel, glorot_spread, split_parts
from gibbsian.models.layers import GaussianLayer, Layer
from gibbsian.startup import softmax


@dataclass(frozen=True, eq=False)
class ConditionalModel(LayeredModel):
    """``P(y, h | x) = exp(((b + x V)·y + (c + x W)·h + y U h) / T) / Z(x)`` for any numbers x.

    Without hidden units it is multinomial logistic regression, without V the discriminative restricted Boltzmann
    machine. The inputs have no distribution, so it is not asked how they are spread.

    Parameters
    ----------
    n_inputs : int
        Numbers x of a row; in states they stand before the outputs.
    outputs, hidden : Layer
        The kinds and numbers of the units y and h.
    theta : ndarray
        b, c, V, W, U one after the other, matrices row by row.
    temperature : float
        T of YK15.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> layers = gb.models.CategoricalLayer((2,)), gb.models.BinaryLayer(0)
    >>> model = gb.models.ConditionalModel(1, *layers, np.array([0.0, 0.0, 0.0, 2.0]))
    >>> np.diff(model.log_weights(np.array([[0.5, 0], [0.5, 1]]))).tolist()          # the log-odds of y = 1 at x = 0.5
    [1.0]
    """

    n_inputs: int
    outputs: Layer
    hidden: Layer
    theta: np.ndarray
    temperature: float = 1.0

    def __post_init__(self) -> None:
        self._settle(sum(int(np.prod(shape)) for shape in self._shapes))

    @classmethod
    def zeros(cls, n_inputs: int, outputs: Layer, hidden: Layer, temperature: float = 1.0) -> Self:
        """Return the model at zero."""
        x, y, h = n_inputs, outputs.width, hidden.width
        return cls(n_inputs, outputs, hidden, np.zeros(y + h + x * y + x * h + y * h), temperature)

    def scattered(self, data: Any, rng: np.random.Generator) -> Self:
        """Return random weights of the hidden units from which learning can start, on the scales of the inputs."""
        b, c, direct, inward, upward = (np.zeros(shape) for shape in self._shapes)
        inputs = data.states[:, : self.n_inputs]
        scales = np.sqrt(np.average(np.square(inputs), axis=0, weights=data.weights))
        spread = glorot_spread(self.visible, self.hidden, self.temperature)
        inward += spread * rng.standard_normal(inward.shape) / np.where(scales > 0, scales, 1.0)[:, None]
        upward += spread * rng.standard_normal(upward.shape)
        return self.replace(np.concatenate([part.ravel() for part in (b, c, direct, inward, upward)]))

    # -- parts --------------------------------------------------------------------------------------------------------
    @cached_property
    def visible(self) -> Layer:
        """Inputs and outputs side by side; the measure of the inputs is not used."""
        return JoinedLayer((GaussianLayer(self.n_inputs), self.outputs))

    @property
    def layers(self) -> tuple[Layer, Layer]:
        """What rows show, and the hidden units."""
        return self.visible, self.hidden

    @property
    def _shapes(self) -> Sequence[tuple[int, ...]]:
        x, y, h = self.n_inputs, self.outputs.width, self.hidden.width
        return (y,), (h,), (x, y), (x, h), (y, h)

    @cached_property
    def parts(self) -> list[np.ndarray]:
        """Output biases b, hidden biases c, and the weights V, W and U."""
        return split_parts(self.theta, self._shapes)

    # -- distribution -------------------------------------------------------------------------------------------------
    def hidden_fields(self, v: np.ndarray) -> np.ndarray:
        """Return the fields of the hidden units."""
        return (self.parts[1] + self.upward(v)) / self.temperature

    def value_log_weights(self, v: np.ndarray) -> np.ndarray:
        """Return ``log P(y | x) + log Z(x)`` of each row of values, the hidden units summed out."""
        return self.visible_slopes(v)[0] / self.temperature + self.hidden.log_normaliser(self.hidden_fields(v))

    def output_probabilities(self, x: np.ndarray, listed: np.ndarray) -> np.ndarray:
        """Return the probabilities of listed states of the outputs, all that there are, at each row of inputs."""
        rows = [np.hstack([x, np.tile(state, (len(x), 1))]) for state in listed]
        return softmax(np.column_stack([self.log_weights(row) for row in rows]), axis=1)

    # -- rows that lack some cells, with zeros there ------------------------------------------------------------------
    def upward(self, v: np.ndarray) -> np.ndarray:
        """Return what inputs and outputs add to the fields of the hidden units, times T."""
        return v @ np.concatenate(self.parts[3:])

    def visible_slopes(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return minus the energy of each row without hidden units, and its slope in each output; inputs are given."""
        b, _, direct, _, _ = self.parts
        x, y = v[:, : self.n_inputs], v[:, self.n_inputs :]
        slopes = b + x @ direct
        return np.einsum("mk,mk->m", slopes, y), np.hstack([np.zeros_like(x), slopes])

    def gathered_statistics(
        self, v: np.ndarray, visible: np.ndarray, hidden: np.ndarray, products: np.ndarray
    ) -> np.ndarray:
        """Return statistics from weighted expected values of each row, and sums over rows of h and ``(x, y) h^T``."""
        y = visible[:, self.n_inputs :]
        return np.concatenate([y.sum(axis=0), hidden, (v[:, : self.n_inputs].T @ y).ravel(), products.ravel()])


__all__ = ["ConditionalModel"]
