"""Laws between independent units and a restricted machine, and how walkers move along them.

At inverse temperature beta the fields of both layers are ``(1 - beta) * base + beta * (bias + W . other) / T``: at 0
the units are independent with the base's fields, at 1 they are the machine. Measures of Gaussian units stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.layered.rows import LayerRows, layer_columns
from gibbsian.models.layers import Layer
from gibbsian.models.restricted import RestrictedModel
from gibbsian.rng import RandomState, as_generator

# Base rates are moved this far towards those of units without fields: what the data never show the model may.
SHRINKAGE = 0.01
# Rows from which base rates are taken.
RATE_ROWS = 4096
# Chains of the machine itself from which its base rates are taken where there are no data.
RATE_CHAINS, RATE_STEPS = 100, 50


@dataclass(frozen=True, eq=False)
class IndependentUnits:
    """Fields of both layers when the units are independent: where paths begin.

    Parameters
    ----------
    visible, hidden : ndarray
        Fields of the two layers' columns.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.paths import IndependentUnits
    >>> IndependentUnits(np.zeros(3), np.zeros(2)).hidden.shape
    (2,)
    """

    visible: np.ndarray
    hidden: np.ndarray

    @classmethod
    def from_values(
        cls, model: RestrictedModel, values: np.ndarray, shares: np.ndarray | None = None
    ) -> IndependentUnits:
        """Take the base rates of rows of visible values, and of the hidden units given them.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.paths import IndependentUnits
        >>> from gibbsian.models.layers import SpinLayer
        >>> from gibbsian.models.restricted import RestrictedModel
        >>> rbm = RestrictedModel.build(SpinLayer(1), SpinLayer(1))
        >>> IndependentUnits.from_values(rbm, np.array([[1.0], [-1.0]])).visible
        array([0.])
        """
        shares = np.full(len(values), 1.0 / len(values)) if shares is None else shares
        means = shares @ np.asarray(values, np.float64), shares @ np.asarray(model.hidden_means(values), np.float64)
        layers = (layer.tempered(model.temperature) for layer in (model.visible, model.hidden))
        return cls(*(_fields(layer, mean) for layer, mean in zip(layers, means, strict=True)))

    @classmethod
    def of_chains(cls, model: RestrictedModel, rng: RandomState = None) -> IndependentUnits:
        """Take the base rates of short chains of the machine itself.

        Examples
        --------
        >>> from gibbsian.layered.paths import IndependentUnits
        >>> from gibbsian.models.layers import BinaryLayer
        >>> from gibbsian.models.restricted import RestrictedModel
        >>> rbm = RestrictedModel.build(BinaryLayer(1), BinaryLayer(1), visible_biases=[2.0])
        >>> IndependentUnits.of_chains(rbm, rng=0).visible.round(1)
        array([2.])
        """
        generator = as_generator(rng)
        path = LayerPath(model, cls.biases(model))
        values = path.draw_base(RATE_CHAINS, generator)
        for _ in range(RATE_STEPS):
            values = model.draw_visible(model.draw_hidden(values, generator), generator)
        return cls.from_values(model, model.visible_means(model.draw_hidden(values, generator)))

    @classmethod
    def biases(cls, model: RestrictedModel) -> IndependentUnits:
        """Take the visible biases alone, hidden units without fields."""
        visible = model.visible_biases.astype(np.float64) / model.temperature
        return cls(visible, np.zeros(model.hidden.width))


def as_base(
    base: str | IndependentUnits | LayerRows, model: RestrictedModel, rng: RandomState = None
) -> IndependentUnits:
    """Return the independent units of a name, of data, or as given.

    Examples
    --------
    >>> from gibbsian.layered.paths import as_base
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> as_base("biases", RestrictedModel.build(BinaryLayer(2), BinaryLayer(3))).hidden
    array([0., 0., 0.])
    """
    if isinstance(base, LayerRows):
        some = base.take(np.linspace(0, base.n_rows - 1, min(base.n_rows, RATE_ROWS)).astype(np.int64))
        return IndependentUnits.from_values(model, filled_values(some, model.visible), some.shares)
    if isinstance(base, IndependentUnits):
        if base.visible.shape != (model.visible.width,) or base.hidden.shape != (model.hidden.width,):
            raise ArgumentError(
                f"base has {base.visible.size} visible and {base.hidden.size} hidden fields",
                f"the machine has {model.visible.width} and {model.hidden.width}",
            )
        return base
    if base == "chains":
        return IndependentUnits.of_chains(model, rng)
    if base == "biases":
        return IndependentUnits.biases(model)
    raise ArgumentError(
        "is not known", "use 'chains', 'biases', LayerRows or IndependentUnits", argument="base", value=base
    )


@dataclass(frozen=True, eq=False)
class LayerPath:
    """The path from independent units to a machine, the hidden layer summed out of all weights.

    Parameters
    ----------
    model : RestrictedModel
        The end.
    base : IndependentUnits
        The beginning.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.paths import IndependentUnits, LayerPath
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm = RestrictedModel.build(BinaryLayer(2), BinaryLayer(1))
    >>> path = LayerPath(rbm, IndependentUnits.biases(rbm))
    >>> path.log_base_partition                                   # 3 log 2
    2.0794
    """

    model: RestrictedModel
    base: IndependentUnits

    @cached_property
    def _units(self) -> tuple[_PathUnits, _PathUnits]:
        model = self.model
        temperature = model.temperature
        visible = _PathUnits(model.visible.tempered(temperature), self.base.visible, model.visible_biases / temperature)
        hidden = _PathUnits(model.hidden.tempered(temperature), self.base.hidden, model.hidden_biases / temperature)
        return visible, hidden

    @cached_property
    def _weights(self) -> np.ndarray:
        return np.asarray(self.model.weights, np.float64) / self.model.temperature

    @property
    def log_base_partition(self) -> float:
        """log Z of the independent units."""
        return sum(units.log_base_partition for units in self._units)

    def draw_base(self, n_rows: int, rng: np.random.Generator) -> np.ndarray:
        """Draw visible values of the independent units."""
        visible = self._units[0]
        return visible.draw(np.zeros((n_rows, visible.layer.width)), 0.0, rng)

    def products(self, v: np.ndarray) -> np.ndarray:
        """Return ``v W / T``: what the hidden fields need to know of the visible values."""
        return v @ self._weights

    def log_weights(self, v: np.ndarray, products: np.ndarray, beta: float) -> np.ndarray:
        """Return the log-weight of each row at an inverse temperature, less the visible measure, which all share."""
        visible, hidden = self._units
        return v @ visible.offsets(beta) + hidden.log_sums(products, beta)

    def step(self, products: np.ndarray, beta: float, rng: np.random.Generator) -> np.ndarray:
        """Draw the hidden layer and then the visible one, at an inverse temperature."""
        visible, hidden = self._units
        h = hidden.draw(products, beta, rng)
        return visible.draw(h @ self._weights.T, beta, rng)


@dataclass(frozen=True, eq=False)
class _PathUnits:
    """One layer along the path."""

    layer: Layer
    base: np.ndarray
    biases: np.ndarray

    def offsets(self, beta: float) -> np.ndarray:
        """Fields before the other layer's part."""
        return (1.0 - beta) * self.base + beta * self.biases

    @property
    def log_base_partition(self) -> float:
        return float(self.layer.log_normaliser(self.base[None])[0])

    def log_sums(self, products: np.ndarray, beta: float) -> np.ndarray:
        """Log of the sum over the layer's states, row by row."""
        return self.layer.log_normaliser(self.offsets(beta) + beta * products)

    def draw(self, products: np.ndarray, beta: float, rng: np.random.Generator) -> np.ndarray:
        """Draw the layer's values."""
        return self.layer.draw(self.offsets(beta) + beta * products, rng)


def _fields(layer: Layer, means: np.ndarray) -> np.ndarray:
    nothing = layer.means(np.zeros((1, layer.width)))[0]
    return np.asarray(layer.fields_of((1.0 - SHRINKAGE) * means + SHRINKAGE * nothing), np.float64)


def filled_values(rows: LayerRows, layer: Layer) -> np.ndarray:
    """Return the values of rows, with the mean of the column in missing cells: base rates stay as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.paths import filled_values
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.layers import BinaryLayer
    >>> rows = LayerRows(np.array([[0], [1], [1]]), missing=np.array([[False], [False], [True]]))
    >>> filled_values(rows, BinaryLayer(1)).ravel()
    array([0. , 1. , 0.5])
    """
    if rows.missing is None:
        return layer.encode(rows.states)
    values = layer.encode(np.where(rows.missing, rows.states.dtype.type(0), rows.states))
    return np.where(layer_columns(layer, rows.missing), rows.mean_values(layer), values)


__all__ = ["IndependentUnits", "LayerPath", "as_base", "filled_values"]
