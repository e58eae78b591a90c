"""The restricted Boltzmann machine: two layers, and weights between them only (YK15, "RBM")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from gibbsian.models.base import MODELS
from gibbsian.models.joint_form import JointModel, joint_model, parts_of
from gibbsian.models.layer_stack import LayeredModel, checked_parts, glorot_spread, joined_parts
from gibbsian.models.layers import GaussianLayer, Layer


@MODELS.register("restricted", layers=True)
@dataclass(frozen=True, eq=False)
class RestrictedModel(LayeredModel):
    """``P(v, h) = exp((b·v + c·h + v W h) / T) / Z`` over the values of two layers.

    The visible marginal is ``P(v) = exp(log_weights(v)) / Z``, the hidden units summed out. It is a machine on the
    graph of all pairs between the layers, which `joint` gives; the products of matrices here are its fast path.

    Parameters
    ----------
    visible, hidden : Layer
        The kinds and numbers of units.
    theta : ndarray
        Visible biases b, hidden biases c, then the weights W row by row (``visible.width`` rows of ``hidden.width``).
        float64 or float32; products are made in that precision.
    temperature : float
        T of YK15: energies, a layer's own measure included, are divided by it.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm = RestrictedModel.build(BinaryLayer(2), BinaryLayer(1), weights=[[1.0], [-1.0]])
    >>> rbm.hidden_means(np.array([[1.0, 0.0]])).round(4)          # 1 / (1 + exp(-1))
    array([[0.7311]])
    """

    visible: Layer
    hidden: Layer
    theta: np.ndarray
    temperature: float = 1.0

    def __post_init__(self) -> None:
        v, h = self.visible.width, self.hidden.width
        self._settle(v + h + v * h)

    @classmethod
    def of_layers(cls, layers: Sequence[Layer], theta: np.ndarray, temperature: float) -> Self:
        """Return a model of two layers."""
        visible, hidden = layers
        return cls(visible, hidden, theta, temperature)

    @classmethod
    def build(
        cls,
        visible: Layer,
        hidden: Layer,
        visible_biases: Any = None,
        hidden_biases: Any = None,
        weights: Any = None,
        temperature: float = 1.0,
    ) -> Self:
        """Put a model together from its parts; what is left out is zero.

        Examples
        --------
        >>> from gibbsian.models.layers import SpinLayer
        >>> from gibbsian.models.restricted import RestrictedModel
        >>> RestrictedModel.build(SpinLayer(3), SpinLayer(2)).theta.size
        11
        """
        b, c = checked_parts((visible_biases, hidden_biases), [(visible.width,), (hidden.width,)], "biases")
        (w,) = checked_parts((weights,), [(visible.width, hidden.width)], "weights")
        return cls(visible, hidden, joined_parts([b, c, w]), temperature)

    # -- parts ----------------------------------------------------------------------------------------------------
    @property
    def visible_biases(self) -> np.ndarray:
        """The biases b."""
        return self.theta[: self.visible.width]

    @property
    def hidden_biases(self) -> np.ndarray:
        """The biases c."""
        return self.theta[self.visible.width : self.visible.width + self.hidden.width]

    @cached_property
    def weights(self) -> np.ndarray:
        """The matrix W, shape ``(visible.width, hidden.width)``: a view of theta."""
        return self.theta[self.visible.width + self.hidden.width :].reshape(self.visible.width, self.hidden.width)

    @property
    def layers(self) -> tuple[Layer, Layer]:
        """Both layers."""
        return self.visible, self.hidden

    @property
    def lowest_parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Visible biases, hidden biases and the weights between them."""
        return self.visible_biases, self.hidden_biases, self.weights

    # -- one layer given the other ----------------------------------------------------------------------------------
    def hidden_fields(self, v: np.ndarray) -> np.ndarray:
        """Return the fields ``(c + v W) / T`` of the hidden units."""
        return self._fields(self._numbers(v) @ self.weights, self.hidden_biases)

    def visible_fields(self, h: np.ndarray) -> np.ndarray:
        """Return the fields ``(b + W h) / T`` of the visible units."""
        return self._fields(self._numbers(h) @ self.weights.T, self.visible_biases)

    def hidden_means(self, v: np.ndarray) -> np.ndarray:
        """Return ``E[h | v]``."""
        return self.tempered[1].means(self.hidden_fields(v))

    def visible_means(self, h: np.ndarray) -> np.ndarray:
        """Return ``E[v | h]``."""
        return self.tempered[0].means(self.visible_fields(h))

    def hidden_means_at(self, fields: np.ndarray) -> np.ndarray:
        """Return the means of hidden units whose fields are known."""
        return self.tempered[1].means(fields)

    def draw_hidden_at(self, fields: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw hidden units whose fields are known."""
        return self.tempered[1].draw(fields, rng)

    def draw_visible_at(self, fields: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw visible units whose fields are known."""
        return self.tempered[0].draw(fields, rng)

    def draw_hidden(self, v: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw from ``P(h | v)``."""
        return self.tempered[1].draw(self.hidden_fields(v), rng)

    def draw_visible(self, h: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw from ``P(v | h)``."""
        return self.tempered[0].draw(self.visible_fields(h), rng)

    def _fields(self, products: np.ndarray, biases: np.ndarray) -> np.ndarray:
        products += biases
        if self.temperature != 1.0:
            products /= self.temperature
        return products

    def _numbers(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(values, dtype=self.theta.dtype)

    # -- distribution -----------------------------------------------------------------------------------------------
    def energy(self, v: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Return ``E(v, h)`` of each pair of rows, the layers' own measures included.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.layers import SpinLayer
        >>> from gibbsian.models.restricted import RestrictedModel
        >>> rbm = RestrictedModel.build(SpinLayer(1), SpinLayer(1), [0.5], [0.0], [[2.0]])
        >>> rbm.energy(np.array([[1.0]]), np.array([[-1.0]]))
        array([1.5])
        """
        v, h = np.asarray(v, dtype=np.float64), np.asarray(h, dtype=np.float64)
        products = np.einsum("mj,mj->m", v @ self.weights, h)
        measures = self.visible.log_measure(v) + self.hidden.log_measure(h)
        return -(v @ self.visible_biases + h @ self.hidden_biases + products + measures)

    def value_log_weights(self, v: np.ndarray) -> np.ndarray:
        """Return ``log sum_h exp(-E(v, h) / T)`` of each row of values: log P(v) + log Z."""
        v = np.asarray(v, dtype=np.float64)
        linear = (v @ self.visible_biases + self.visible.log_measure(v)) / self.temperature
        return linear + self.tempered[1].log_normaliser(self.hidden_fields(v))

    def hidden_log_weights(self, h: np.ndarray) -> np.ndarray:
        """Return ``log sum_v exp(-E(v, h) / T)`` of each row: log P(h) + log Z."""
        h = np.asarray(h, dtype=np.float64)
        linear = (h @ self.hidden_biases + self.hidden.log_measure(h)) / self.temperature
        return linear + self.tempered[0].log_normaliser(self.visible_fields(h))

    def free_energy(self, v: np.ndarray) -> np.ndarray:
        """Return ``F(v) = -T log sum_h exp(-E(v, h) / T)`` of each row of values."""
        return -self.temperature * self.value_log_weights(v)

    def mean_statistics(self, v: np.ndarray, h: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
        """Return the means of v, h and ``v h^T`` over pairs of rows, in the layout of theta.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.layers import SpinLayer
        >>> from gibbsian.models.restricted import RestrictedModel
        >>> rbm = RestrictedModel.build(SpinLayer(1), SpinLayer(1))
        >>> rbm.mean_statistics(np.array([[1.0], [1.0]]), np.array([[0.5], [0.1]])).tolist()
        [1.0, 0.3, 0.3]
        """
        shares = np.full(len(v), 1.0 / len(v)) if shares is None else shares / shares.sum()
        weighted = v * shares[:, None]
        return np.concatenate([weighted.sum(axis=0), shares @ h, (weighted.T @ h).ravel()])

    def conditional_costs(self, x: np.ndarray) -> np.ndarray:
        """Return ``log P(x) - log P(x with a unit changed)`` hidden units summed out."""
        from gibbsian.models.layer_flips import FlipSums, is_two_valued  # which is made of this class

        return (
            FlipSums(self, self.visible.encode(np.asarray(x))).costs()
            if is_two_valued(self)
            else super().conditional_costs(x)
        )

    # -- rows that lack some cells, with zeros there ----------------------------------------------------------------
    def upward(self, v: np.ndarray) -> np.ndarray:
        """Return what visible values add to the fields of the hidden units, times T."""
        return v @ self.weights

    def visible_slopes(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return minus the energy of each row without hidden units, and its slope in each visible value."""
        return v @ self.visible_biases + self.visible.log_measure(v), self.visible_biases[None]

    def gathered_statistics(
        self, v: np.ndarray, visible: np.ndarray, hidden: np.ndarray, products: np.ndarray
    ) -> np.ndarray:
        """Return statistics from weighted expected values of each row, and sums over rows of h and of ``v h^T``."""
        return np.concatenate([visible.sum(axis=0), hidden, products.ravel()])

    # -- other forms of the same distribution -----------------------------------------------------------------------
    def transposed(self) -> RestrictedModel:
        """Return the machine with the layers exchanged: what holds for one side holds for the other.

        Examples
        --------
        >>> from gibbsian.models.layers import BinaryLayer, SpinLayer
        >>> from gibbsian.models.restricted import RestrictedModel
        >>> RestrictedModel.build(BinaryLayer(3), SpinLayer(2)).transposed().visible
        SpinLayer(n_units=2)
        """
        return RestrictedModel.build(
            self.hidden, self.visible, self.hidden_biases, self.visible_biases, self.weights.T, self.temperature
        )

    def folded(self) -> RestrictedModel:
        """Return the machine itself: what models of more layers become when their layers are put on two sides."""
        return self

    def fold(self, vector: np.ndarray) -> np.ndarray:
        """Return a vector laid out like theta, which the folded machine's is."""
        return vector

    def fold_values(self, values: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of both layers."""
        visible, hidden = values
        return visible, hidden

    def unfold(self, vector: np.ndarray) -> np.ndarray:
        """Return a vector laid out like the folded machine's theta, which is this one's."""
        return vector

    def unfold_values(
        self, visible: np.ndarray, hidden: np.ndarray, rng: np.random.Generator | None = None
    ) -> list[np.ndarray]:
        """Return the values of the layers from the bottom."""
        return [visible, hidden]

    @property
    def layer_weights(self) -> tuple[np.ndarray, ...]:
        """The weights between both layers."""
        return (self.weights,)

    def joint(self) -> JointModel:
        """Return the distribution of both layers, hidden units last, as a model on the graph of all pairs between them.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.models.RestrictedModel.build(gb.models.SpinLayer(2), gb.models.SpinLayer(1)).joint().graph.n_edges
        2
        """
        return joint_model(self.layers, [self.visible_biases, self.hidden_biases], [self.weights], self.temperature)

    def from_joint(self, joint: JointModel) -> Self:
        """Return the machine of these layers that has a joint distribution."""
        (b, c), (w,) = parts_of(self.layers, joint)
        return self.replace(joined_parts([b, c, w]))

    def rescaled(self, centres: np.ndarray, spreads: np.ndarray) -> Self:
        """Return the machine over ``v = centres + spreads u`` of this one over real numbers u.

        Energies agree up to a constant when the deviations are ``s sigma``, the weights ``W / s``, the visible biases
        ``b / s + m / (s sigma)^2`` and the hidden ones ``c - W^T m / s``.
        """
        layer = self.visible
        assert isinstance(layer, GaussianLayer)
        deviations = spreads * np.asarray(layer.deviations)
        weights = self.weights / spreads[:, None]
        biases = self.visible_biases / spreads + centres / deviations**2
        theta = joined_parts([biases, self.hidden_biases - centres @ weights, weights])
        visible = GaussianLayer(layer.n_units, tuple(deviations))
        return type(self)(visible, self.hidden, theta.astype(self.theta.dtype), self.temperature)

    def started(self, means: np.ndarray, rng: np.random.Generator, scale: float | None = None) -> Self:
        """Return the machine whose visible units have these means, with random weights, by default of `glorot_spread`.

        The hidden units then have nothing to learn but what the means do not tell (Hinton 2012, "A practical guide").
        """
        spread = glorot_spread(self.visible, self.hidden, self.temperature) if scale is None else scale
        weights = spread * rng.standard_normal(self.visible.width * self.hidden.width)
        biases = self.temperature * self.tempered[0].fields_of(means)
        return self.replace(np.concatenate([biases, np.zeros(self.hidden.width), weights]))


__all__ = ["RestrictedModel"]
