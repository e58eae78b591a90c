"""Layers of units that do not interact with each other: what restricted and deep machines are made of.

Given the rest of a machine, the units of a layer are independent, each with a natural parameter, its *field*: the
weight of a value s is ``exp(field * s)`` times the layer's own measure. A layer knows how to sum that over its values,
what the mean is, and how to draw. Everything else about a machine is matrix products between layers, so a new kind of
unit is one class here.

Values are what enters the matrix products, one column each (`width`); states are what data hold. They differ for
categories only: one code a unit as a state, one indicator for each value of it as values.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from gibbsian.backends.numba import layers as kernels
from gibbsian.domain import DOMAINS, MOST_VALUES, REALS, AnyDomain, Categories, Domain, Reals
from gibbsian.errors import ArgumentError
from gibbsian.models.file_parts import COUNT, POSITIVE, TEXT, Listed, Plain, Record
from gibbsian.startup import logit

# Means are kept this far from the ends before their logarithms are taken.
SMALLEST_SHARE = 1e-6
# Rows that are encoded at a time.
_ROWS_AT_ONCE = 4096


@runtime_checkable
class Layer(Protocol):
    """Independent units given their fields.

    Arrays of fields and values have shape ``(n_rows, width)``.
    """

    @property
    def kind(self) -> str:
        """Name of the kind, as estimators and files write it."""

    @property
    def n_units(self) -> int:
        """Number of units."""

    @property
    def width(self) -> int:
        """Number of columns of fields and values."""

    @property
    def n_states(self) -> float:
        """Number of joint states, or the largest number there is where they are more; infinite for real numbers."""

    @property
    def domain(self) -> AnyDomain:
        """The values of the units, and how states write them."""

    @property
    def features(self) -> tuple[np.ndarray, ...]:
        """For each discrete unit the columns of values that each of its states has, one row for each state."""

    def encode(self, states: np.ndarray) -> np.ndarray:
        """Return the values of states as float64."""

    def decode(self, values: np.ndarray) -> np.ndarray:
        """Return the states that have these values."""

    def spread(self, units: np.ndarray) -> np.ndarray:
        """Spread what is said of units, the last axis, over the columns of their values."""

    def part(self, units: np.ndarray) -> Layer:
        """Return the layer of some units, given as a mask."""

    def refused(self, states: np.ndarray) -> tuple[np.ndarray, str]:
        """Say of which cells no unit can have the state, and what units take instead."""

    def log_measure(self, values: np.ndarray) -> np.ndarray:
        """Return the log-weight of each row at zero fields; 0 for discrete units."""

    def log_normaliser(self, fields: np.ndarray) -> np.ndarray:
        """Return, for each row, the log of the sum over all values of ``exp(fields . values)`` times the measure."""

    def means(self, fields: np.ndarray) -> np.ndarray:
        """Return the expected values."""

    def draw(self, fields: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw values."""

    def fields_of(self, means: np.ndarray) -> np.ndarray:
        """Return fields at which the expected values are `means`, kept away from certainty."""

    def tempered(self, temperature: float) -> Self:
        """Return the layer whose log-measure is divided by a temperature."""

    def enumerate(self, start: int, stop: int) -> np.ndarray:
        """Return the values of the joint states numbered `start` to ``stop - 1``."""


class _TwoValued:
    """What units of two values share, whatever the values."""

    n_units: int
    kind: str

    @property
    def width(self) -> int:
        """One column a unit."""
        return self.n_units

    @property
    def domain(self) -> Domain:
        """The two values."""
        return DOMAINS[self.kind]

    @property
    def features(self) -> tuple[np.ndarray, ...]:
        """The two values, for each unit."""
        return (np.array([[self.domain.low], [self.domain.high]], dtype=np.float64),) * self.n_units

    @property
    def n_states(self) -> float:
        """Number of joint states."""
        return 2.0**self.n_units if self.n_units < 1024 else sys.float_info.max

    def encode(self, states: np.ndarray) -> np.ndarray:
        """Return the states as numbers."""
        return np.asarray(states, dtype=np.float64)

    def decode(self, values: np.ndarray) -> np.ndarray:
        """Return the values as int8."""
        return np.asarray(values).astype(np.int8)

    def spread(self, units: np.ndarray) -> np.ndarray:
        """Return the same: a unit is a column."""
        return units

    def part(self, units: np.ndarray) -> Any:
        """Return the layer of some units."""
        return type(self)(int(units.sum()))  # type: ignore[call-arg]

    def log_measure(self, values: np.ndarray) -> np.ndarray:
        """Return zeros."""
        return np.zeros(len(values))

    def tempered(self, temperature: float) -> Self:
        """Return the layer itself: it has no measure of its own."""
        return self


@dataclass(frozen=True)
class BinaryLayer(_TwoValued):
    """Units 0 or 1 (Bernoulli).

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.layers import BinaryLayer
    >>> BinaryLayer(2).means(np.zeros((1, 2)))
    array([[0.5, 0.5]])
    """

    n_units: int

    kind = "binary"

    def refused(self, states: np.ndarray) -> tuple[np.ndarray, str]:
        """Take 0, 1 and the probabilities between them."""
        return ~((states >= 0) & (states <= 1)), "numbers from 0 to 1"

    def log_normaliser(self, fields: np.ndarray) -> np.ndarray:
        """Return ``sum_i log(1 + exp(field_i))``."""
        sums = np.empty(len(fields))
        kernels.two_valued_log_sums(fields, False, sums)
        return sums

    def means(self, fields: np.ndarray) -> np.ndarray:
        """Return ``sigmoid(field)``."""
        means = np.empty_like(fields)
        kernels.sigmoids(fields, means)
        return means

    def draw(self, fields: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw 0.0 or 1.0."""
        draws = uniforms(rng, fields.shape, fields.dtype)
        kernels.two_valued_draws(fields, 1.0, 0.0, draws)
        return draws

    def fields_of(self, means: np.ndarray) -> np.ndarray:
        """Return the log-odds of the means."""
        return logit(np.clip(means, SMALLEST_SHARE, 1.0 - SMALLEST_SHARE))

    def enumerate(self, start: int, stop: int) -> np.ndarray:
        """Return the binary digits of the numbers, the first unit the lowest."""
        numbers = np.arange(start, stop)[:, None]
        return ((numbers >> np.arange(self.n_units)) & 1).astype(np.float64)


@dataclass(frozen=True)
class SpinLayer(_TwoValued):
    """Units -1 or +1.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.layers import SpinLayer
    >>> SpinLayer(1).means(np.array([[0.5]])).round(4)          # tanh 0.5
    array([[0.4621]])
    """

    n_units: int

    kind = "spin"

    def refused(self, states: np.ndarray) -> tuple[np.ndarray, str]:
        """Take -1 and 1."""
        return ~((states == -1) | (states == 1)), "-1 and 1"

    def log_normaliser(self, fields: np.ndarray) -> np.ndarray:
        """Return ``sum_i log(2 cosh(field_i))``."""
        sums = np.empty(len(fields))
        kernels.two_valued_log_sums(fields, True, sums)
        return sums

    def means(self, fields: np.ndarray) -> np.ndarray:
        """Return ``tanh(field)``."""
        return np.tanh(fields)

    def draw(self, fields: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw -1.0 or +1.0."""
        draws = uniforms(rng, fields.shape, fields.dtype)
        kernels.two_valued_draws(fields, 2.0, -1.0, draws)
        return draws

    def fields_of(self, means: np.ndarray) -> np.ndarray:
        """Return the inverse hyperbolic tangent of the means."""
        return 0.5 * logit(np.clip(0.5 * (1.0 + means), SMALLEST_SHARE, 1.0 - SMALLEST_SHARE))

    def enumerate(self, start: int, stop: int) -> np.ndarray:
        """Return the binary digits of the numbers as -1 and +1, the first unit the lowest."""
        return 2.0 * BinaryLayer(self.n_units).enumerate(start, stop) - 1.0


@dataclass(frozen=True)
class GaussianLayer:
    """Real numbers, each normal with a fixed standard deviation given its field: the mean is ``deviation^2 * field``.

    Parameters
    ----------
    n_units : int
        Number of units.
    deviations : sequence of float, optional
        Their standard deviations; 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.layers import GaussianLayer
    >>> GaussianLayer(1, deviations=(2.0,)).means(np.array([[0.5]]))
    array([[2.]])
    """

    n_units: int
    deviations: tuple[float, ...] = ()

    kind = "gaussian"

    def __post_init__(self) -> None:
        given = tuple(float(number) for number in self.deviations) or (1.0,) * self.n_units
        if len(given) != self.n_units or not all(np.isfinite(number) and number > 0 for number in given):
            raise ArgumentError(
                f"must be {self.n_units} positive numbers", argument="deviations", value=self.deviations
            )
        object.__setattr__(self, "deviations", given)

    @cached_property
    def variances(self) -> np.ndarray:
        """The squared deviations."""
        return np.square(self.deviations)

    @property
    def width(self) -> int:
        """One column a unit."""
        return self.n_units

    @property
    def n_states(self) -> float:
        """Infinitely many."""
        return np.inf

    @property
    def domain(self) -> Reals:
        """Real numbers."""
        return REALS

    @property
    def features(self) -> tuple[np.ndarray, ...]:
        """Refuse: there is no list of real numbers."""
        raise ArgumentError("a Gaussian layer has no list of states", "sum over the other layer")

    def encode(self, states: np.ndarray) -> np.ndarray:
        """Return the states as numbers."""
        return np.asarray(states, dtype=np.float64)

    def decode(self, values: np.ndarray) -> np.ndarray:
        """Return the values."""
        return np.asarray(values, dtype=np.float64)

    def spread(self, units: np.ndarray) -> np.ndarray:
        """Return the same: a unit is a column."""
        return units

    def part(self, units: np.ndarray) -> GaussianLayer:
        """Return the layer of some units."""
        return GaussianLayer(int(units.sum()), tuple(np.asarray(self.deviations)[units]))

    def refused(self, states: np.ndarray) -> tuple[np.ndarray, str]:
        """Take any finite number."""
        return ~np.isfinite(states), "finite numbers"

    def log_measure(self, values: np.ndarray) -> np.ndarray:
        """Return ``-sum_i value_i^2 / (2 deviation_i^2)``."""
        return -0.5 * (np.square(values) / self.variances).sum(axis=1)

    def log_normaliser(self, fields: np.ndarray) -> np.ndarray:
        """Return the log of the integral, ``sum_i (deviation_i field_i)^2 / 2 + log(2 pi deviation_i^2) / 2``."""
        constant = 0.5 * np.log(2.0 * np.pi * self.variances).sum()
        return 0.5 * (np.square(fields) * self.variances).sum(axis=1) + constant

    def means(self, fields: np.ndarray) -> np.ndarray:
        """Return ``deviation^2 * field``."""
        return (fields * self.variances).astype(fields.dtype)

    def draw(self, fields: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw from the normal distributions."""
        noise = rng.standard_normal(fields.shape) * np.asarray(self.deviations)
        return (fields * self.variances + noise).astype(fields.dtype)

    def fields_of(self, means: np.ndarray) -> np.ndarray:
        """Return the means over the variances."""
        return np.asarray(means) / self.variances

    def tempered(self, temperature: float) -> GaussianLayer:
        """Return the layer with deviations wider by the root of the temperature."""
        return GaussianLayer(self.n_units, tuple(np.sqrt(temperature) * np.asarray(self.deviations)))

    def enumerate(self, start: int, stop: int) -> np.ndarray:
        """Refuse: there is no list of real numbers."""
        raise ArgumentError("a Gaussian layer has no list of states", "sum over the other layer")


@dataclass(frozen=True)
class CategoricalLayer:
    """Units with any number of values, one indicator column for each value of each unit (softmax).

    Parameters
    ----------
    sizes : sequence of int
        Number of values of each unit.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.layers import CategoricalLayer
    >>> CategoricalLayer((2, 3)).encode(np.array([[1, 2]]))
    array([[0., 1., 0., 0., 1.]])
    """

    sizes: tuple[int, ...]

    kind = "categorical"

    def __init__(self, sizes: Sequence[int]):
        object.__setattr__(self, "sizes", tuple(int(size) for size in sizes))

    @cached_property
    def starts(self) -> np.ndarray:
        """Column at which each unit begins."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    @cached_property
    def _edges(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @cached_property
    def unit_of_column(self) -> np.ndarray:
        """The unit of each column."""
        return np.repeat(np.arange(self.n_units), self.sizes)

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.sizes)

    @property
    def domain(self) -> Categories:
        """Categories without order."""
        return Categories(self.sizes)

    @property
    def features(self) -> tuple[np.ndarray, ...]:
        """One indicator for each value."""
        return tuple(np.eye(size) for size in self.sizes)

    @property
    def width(self) -> int:
        """One column for each value of each unit."""
        return sum(self.sizes)

    @property
    def n_states(self) -> float:
        """Number of joint states."""
        return product_of(self.sizes)

    def spread(self, units: np.ndarray) -> np.ndarray:
        """Repeat what is said of a unit for each of its values."""
        return units[..., self.unit_of_column]

    def part(self, units: np.ndarray) -> CategoricalLayer:
        """Return the layer of some units."""
        return CategoricalLayer(np.asarray(self.sizes)[units])

    def refused(self, states: np.ndarray) -> tuple[np.ndarray, str]:
        """Take the codes of the values."""
        known = (states >= 0) & (states < np.asarray(self.sizes)) & (states == np.floor(states))
        return ~known, "codes 0 .. q - 1"

    def encode(self, states: np.ndarray) -> np.ndarray:
        """Return the indicators of codes."""
        codes = np.asarray(states)
        values = np.zeros((len(codes), self.width))
        values[np.arange(len(codes))[:, None], codes.astype(np.int64) + self.starts] = 1.0
        return values

    def decode(self, values: np.ndarray) -> np.ndarray:
        """Return the codes of indicators."""
        stops = self.starts + np.asarray(self.sizes)
        units = zip(self.starts, stops, strict=True)
        codes = np.column_stack([np.argmax(values[:, a:b], axis=1) for a, b in units])
        return codes.astype(np.int8 if max(self.sizes) <= 128 else np.int32)

    def log_measure(self, values: np.ndarray) -> np.ndarray:
        """Return zeros."""
        return np.zeros(len(values))

    def log_normaliser(self, fields: np.ndarray) -> np.ndarray:
        """Return the sum over units of ``log sum_value exp(field)``."""
        sums = np.empty(len(fields))
        kernels.categorical_log_sums(fields, self._edges, sums)
        return sums

    def means(self, fields: np.ndarray) -> np.ndarray:
        """Return the probability of each value."""
        means = np.empty_like(fields)
        kernels.softmaxes(fields, self._edges, means)
        return means

    def draw(self, fields: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw indicators."""
        draws = np.empty_like(fields)
        shares = uniforms(rng, (len(fields), self.n_units), fields.dtype)
        kernels.categorical_draws(fields, self._edges, shares, draws)
        return draws

    def fields_of(self, means: np.ndarray) -> np.ndarray:
        """Return the logarithms of the shares."""
        return np.log(np.clip(means, SMALLEST_SHARE, None))

    def tempered(self, temperature: float) -> Self:
        """Return the layer itself: it has no measure of its own."""
        return self

    def enumerate(self, start: int, stop: int) -> np.ndarray:
        """Return the indicators of the digits of the numbers to the bases of the units, the first the lowest."""
        steps = np.concatenate([[1], np.cumprod(self.sizes)[:-1]]).astype(np.int64)
        return self.encode(np.arange(start, stop)[:, None] // steps % np.asarray(self.sizes))


def product_of(numbers: Sequence[float]) -> float:
    """Multiply numbers of states; what no float64 can hold becomes the largest one, and only infinity infinite."""
    product = math.prod(map(float, numbers))
    return product if math.isfinite(product) or math.inf in numbers else sys.float_info.max


def uniforms(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Draw uniform random numbers from [0, 1) in float64 or float32."""
    return rng.random(shape, dtype=np.float32 if dtype == np.float32 else np.float64)


def hidden_kind(hidden: str, visible: Layer) -> str:
    """Settle ``"auto"``: hidden units are coded as two-valued visible ones are, and else 0/1."""
    if hidden != "auto":
        return hidden
    return visible.kind if visible.kind in DOMAINS else "binary"


def log_probability(layer: Layer, fields: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the log-probability of each row of values of a layer given its fields."""
    return np.einsum("mi,mi->m", fields, values) + layer.log_measure(values) - layer.log_normaliser(fields)


def mean_values(layer: Layer, data: Any) -> np.ndarray:
    """Return the weighted mean of each column of values of data over the cells that were observed.

    A column without any is put where the layer is without fields.
    """
    sums, counts = data.mean(partial(_value_sums, layer))
    nothing = layer.means(np.zeros((1, layer.width)))[0]
    return np.where(counts > 0, sums / np.where(counts > 0, counts, 1.0), nothing)


def _value_sums(layer: Layer, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the values of rows by their shares, and the share of the rows that show them."""
    sums, counts = np.zeros(layer.width), np.zeros(layer.width)
    shares = data.weights / data.weights.sum()
    for start in range(0, len(shares), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        seen = shares[block, None]
        if data.missing is None:
            values = layer.encode(data.states[block])
        else:  # what stands in a missing cell need not be a state
            values = layer.encode(np.where(data.missing[block], data.states.dtype.type(0), data.states[block]))
            seen = seen * ~layer.spread(data.missing[block])
        sums += (seen * values).sum(axis=0)
        counts += seen.sum(axis=0)
    return sums, counts


def as_layer(kind: str, n_units: int, **settings: Any) -> Layer:
    """Return a layer of a kind."""
    if kind == "categorical":
        return CategoricalLayer(settings["sizes"])
    known = {layer.kind: layer for layer in (BinaryLayer, SpinLayer, GaussianLayer)}
    if kind not in known:
        raise ArgumentError("is not known", f"use one of {', '.join(known)}, categorical", argument="layer", value=kind)
    return known[kind](n_units, **settings)


# What a file holds of a layer.
LAYER = Record(
    {
        "kind": TEXT,
        "n_units": COUNT,
        "sizes": Listed(Plain((int,), 1, MOST_VALUES), optional=True),
        "deviations": Listed(POSITIVE, optional=True),
    }
)


def written_layer(layer: Layer) -> dict[str, Any]:
    """Return a layer as a header holds it: its kind, and what the kind needs besides."""
    plain = {"kind": layer.kind, "n_units": layer.n_units}
    if isinstance(layer, CategoricalLayer):
        return {**plain, "sizes": list(layer.sizes)}
    if isinstance(layer, GaussianLayer):
        return {**plain, "deviations": list(layer.deviations)}
    return plain


def read_layer(written: dict[str, Any]) -> Layer:
    """Return the layer that `written_layer` wrote."""
    settings = {name: value for name, value in written.items() if name not in ("kind", "n_units")}
    return as_layer(written["kind"], written["n_units"], **settings)


__all__ = ["BinaryLayer", "CategoricalLayer", "GaussianLayer", "Layer", "SpinLayer", "as_layer"]
