"""Outputs and hidden units whose fields are linear in inputs: a distribution of the outputs given the inputs only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from gibbsian.models.joined_layer import JoinedLayer
from gibbsian.models.layer_stack import LayeredModel, glorot_spread, split_parts
from gibbsian.models.layers import GaussianLayer, Layer


@dataclass(frozen=True, eq=False)
class ConditionalModel(LayeredModel):
    """``P(y, h | x) = exp(((b + x V) . y + (c + x W) . h + y U h) / T) / Z(x)`` for any numbers x.

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
    >>> (np.diff(model.log_weights(np.array([[0.5, 0], [0.5, 1]])))).tolist()          # the log-odds of y = 1 at x = 0.5
    [1.0]
    """

    n_inputs: int
    outputs: Layer
    hidden: Layer
    theta: np.ndarray
    temperature: float = 1.0

    clamped_sums = "gibbsian.expectations.clamped_layers:ClampedLayers"

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
    def visible(self) -> Layer:  # type: ignore[override]
        """Inputs and outputs side by side; the measure of the inputs is not used."""
        return JoinedLayer((GaussianLayer(self.n_inputs), self.outputs))

    @property
    def layers(self) -> tuple[Layer, Layer]:  # type: ignore[override]
        """What rows show, and the hidden units."""
        return self.visible, self.hidden

    @property
    def _shapes(self) -> Sequence[tuple[int, ...]]:
        x, y, h = self.n_inputs, self.outputs.width, self.hidden.width
        return (y,), (h,), (x, y), (x, h), (y, h)

    @cached_property
    def parts(self) -> list[np.ndarray]:
        """Output biases, hidden biases, weights from inputs to outputs, from inputs to hidden units, and from outputs."""
        return split_parts(self.theta, self._shapes)

    # -- distribution -------------------------------------------------------------------------------------------------
    def hidden_fields(self, v: np.ndarray) -> np.ndarray:
        """Return the fields of the hidden units."""
        _, c, _, inward, upward = self.parts
        return (c + v @ np.concatenate([inward, upward])) / self.temperature

    def hidden_means(self, v: np.ndarray) -> np.ndarray:
        """Return ``E[h | x, y]``."""
        return self.hidden.means(self.hidden_fields(v))

    def value_log_weights(self, v: np.ndarray) -> np.ndarray:
        """Return ``log P(y | x) + log Z(x)`` of each row of values, the hidden units summed out."""
        x, y = v[:, : self.n_inputs], v[:, self.n_inputs :]
        b, _, direct, _, _ = self.parts
        told = np.einsum("mk,mk->m", b + x @ direct, y) / self.temperature
        return told + self.hidden.log_normaliser(self.hidden_fields(v))

    def output_probabilities(self, x: np.ndarray, listed: np.ndarray) -> np.ndarray:
        """Return the probabilities of listed states of the outputs, all that there are, at each row of inputs."""
        rows = [np.hstack([x, np.tile(state, (len(x), 1))]) for state in listed]
        return softmax(np.column_stack([self.log_weights(row) for row in rows]), axis=1)

    def mean_statistics(self, v: np.ndarray, h: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return the means of y, h, x y, x h and y h over rows, in the layout of theta."""
        shares = shares / shares.sum()
        x, y = v[:, : self.n_inputs], v[:, self.n_inputs :]
        weighted = shares[:, None] * v
        inner = weighted.T @ h
        return np.concatenate(
            [shares @ y, shares @ h, (weighted[:, : self.n_inputs].T @ y).ravel(), inner.ravel()]
        )


__all__ = ["ConditionalModel"]
