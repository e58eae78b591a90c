"""Kinds of units, which layers are made of: independent of each other given their fields.

The weight of a value s of a unit is ``exp(field * s)`` times the unit's own measure. A kind knows how to sum that over
its values, what the mean is, and how to draw; all else about a machine is products of matrices between layers. Arrays
are NumPy's or PyTorch's. What listing, encoding and masks need follows from `variables` and `encode`, and is written
once below.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from gibbsian.backends.device import layer_kernels, library_of
from gibbsian.domain import DOMAINS, MOST_VALUES, REALS, AnyDomain, Categories
from gibbsian.errors import ArgumentError
from gibbsian.models.family import Units
from gibbsian.models.file_parts import COUNT, POSITIVE, TEXT, Listed, Plain, Record
from gibbsian.models.variables import Variables
from gibbsian.resources import spans
from gibbsian.startup import logit

Array = Any

# Means are kept this far from the ends before their logarithms are taken.
SMALLEST_SHARE = 1e-6
# Rows that are encoded at a time.
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class _TwoValued:
    """Units of two values, 1 and a lower one."""

    n_units: int
    low: ClassVar[float]
    kind: ClassVar[str]

    @property
    def width(self) -> int:
        """One column a unit."""
        return self.n_units

    def encode(self, codes: Array) -> Array:
        """Return the numbers that stand for codes."""
        return codes * (1.0 - self.low) + self.low

    def log_measure(self, values: Array) -> Any:
        """Return 0: without fields all values weigh the same."""
        return 0.0

    def log_normaliser(self, fields: Array) -> Array:
        """Return ``sum_i log(exp(field_i) + exp(low field_i))``."""
        return layer_kernels(fields).two_valued_log_normaliser(fields, self.low)

    def means(self, fields: Array) -> Array:
        """Return the mean values."""
        return layer_kernels(fields).two_valued_means(fields, self.low)

    def draw(self, fields: Array, rng: Any) -> Array:
        """Draw values."""
        return layer_kernels(fields).draw_two_valued(fields, self.low, rng)

    def fields_of(self, means: Array) -> Array:
        """Return the log-odds of the means, over the distance of the values."""
        shares = (means - self.low) / (1.0 - self.low)
        return logit(np.clip(shares, SMALLEST_SHARE, 1.0 - SMALLEST_SHARE)) / (1.0 - self.low)

    def take(self, units: np.ndarray) -> Self:
        """Return some of the units."""
        return type(self)(len(units))


@dataclass(frozen=True)
class BinaryUnits(_TwoValued):
    """Units 0 or 1 (Bernoulli).

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.layers.units import BinaryUnits
    >>> BinaryUnits(2).means(np.zeros((1, 2)))
    array([[0.5, 0.5]])
    """

    low = 0.0
    kind = "binary"

    @property
    def variables(self) -> Variables:
        """Values 0 and 1."""
        return Variables.binary(self.n_units)


@dataclass(frozen=True)
class SpinUnits(_TwoValued):
    """Units -1 or +1.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.layers.units import SpinUnits
    >>> SpinUnits(1).means(np.array([[0.5]])).round(4)          # tanh 0.5
    array([[0.4621]])
    """

    low = -1.0
    kind = "spin"

    @property
    def variables(self) -> Variables:
        """Values -1 and +1."""
        return Variables.spins(self.n_units)


@dataclass(frozen=True)
class GaussianUnits:
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
    >>> from gibbsian.models.layers.units import GaussianUnits
    >>> GaussianUnits(1, deviations=(2.0,)).means(np.array([[0.5]]))
    array([[2.]])
    """

    n_units: int
    deviations: tuple[float, ...] = ()

    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        given = tuple(float(number) for number in self.deviations) or (1.0,) * self.n_units
        if len(given) != self.n_units or not all(np.isfinite(number) and number > 0 for number in given):
            raise ArgumentError(
                f"must be {self.n_units} positive numbers", argument="deviations", value=self.deviations
            )
        object.__setattr__(self, "deviations", given)

    @property
    def width(self) -> int:
        """One column a unit."""
        return self.n_units

    @property
    def variables(self) -> Variables:
        """Real numbers."""
        return Variables.reals(self.n_units)

    def encode(self, codes: Array) -> Array:
        """Return the numbers themselves."""
        return codes

    def log_measure(self, values: Array) -> Array:
        """Return ``-sum_i value_i^2 / (2 deviation_i^2)``."""
        return layer_kernels(values).normal_log_measure(values, self.deviations)

    def log_normaliser(self, fields: Array) -> Array:
        """Return the log of the integral, ``sum_i (deviation_i field_i)^2 / 2 + log(2 pi deviation_i^2) / 2``."""
        return layer_kernels(fields).normal_log_normaliser(fields, self.deviations)

    def means(self, fields: Array) -> Array:
        """Return ``deviation^2 * field``."""
        return layer_kernels(fields).normal_means(fields, self.deviations)

    def draw(self, fields: Array, rng: Any) -> Array:
        """Draw from the normal distributions."""
        return layer_kernels(fields).draw_normal(fields, self.deviations, rng)

    def fields_of(self, means: Array) -> Array:
        """Return the means over the variances."""
        return np.asarray(means) / np.square(self.deviations)

    def take(self, units: np.ndarray) -> GaussianUnits:
        """Return some of the units."""
        return GaussianUnits(len(units), tuple(np.asarray(self.deviations)[units]))


@dataclass(frozen=True)
class CategoricalUnits:
    """Units with any number of values, one indicator column for each value of each unit (softmax).

    Parameters
    ----------
    sizes : sequence of int
        Number of values of each unit.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.layers.units import CategoricalUnits
    >>> CategoricalUnits((2, 3)).encode(np.array([[1, 2]]))
    array([[0., 1., 0., 0., 1.]])
    """

    sizes: tuple[int, ...]

    kind: ClassVar[str] = "categorical"

    def __init__(self, sizes: Sequence[int]):
        object.__setattr__(self, "sizes", tuple(int(size) for size in sizes))

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.sizes)

    @property
    def width(self) -> int:
        """One column for each value of each unit."""
        return sum(self.sizes)

    @property
    def variables(self) -> Variables:
        """Values without order."""
        return Variables.categories(self.sizes)

    @cached_property
    def edges(self) -> np.ndarray:
        """The columns at which the values of the units begin, and the end."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def encode(self, codes: Array) -> Array:
        """Return the indicators of codes."""
        values = np.zeros((len(codes), self.width))
        values[np.arange(len(codes))[:, None], codes.astype(np.int64) + self.edges[:-1]] = 1.0
        return values

    def log_measure(self, values: Array) -> Any:
        """Return 0: without fields all values weigh the same."""
        return 0.0

    def log_normaliser(self, fields: Array) -> Array:
        """Return the sum over units of ``log sum_value exp(field)``."""
        return layer_kernels(fields).categorical_log_normaliser(fields, self.edges)

    def means(self, fields: Array) -> Array:
        """Return the probability of each value."""
        return layer_kernels(fields).categorical_means(fields, self.edges)

    def draw(self, fields: Array, rng: Any) -> Array:
        """Draw indicators."""
        return layer_kernels(fields).draw_categories(fields, self.edges, rng)

    def fields_of(self, means: Array) -> Array:
        """Return the logarithms of the shares."""
        return np.log(np.clip(means, SMALLEST_SHARE, None))

    def take(self, units: np.ndarray) -> CategoricalUnits:
        """Return some of the units."""
        return CategoricalUnits(np.asarray(self.sizes)[units])


KINDS: dict[str, Any] = {kind.kind: kind for kind in (BinaryUnits, SpinUnits, GaussianUnits, CategoricalUnits)}


# == what follows from variables and values ===========================================================================
def count_states(units: Iterable[Units]) -> float:
    """Return the number of joint states of layers: infinite for real numbers, at most the largest float64 else."""
    sizes = [size for layer in units for size in layer.variables.sizes]
    if 0 in sizes:
        return math.inf
    product = math.prod(map(float, sizes))
    return product if math.isfinite(product) else sys.float_info.max


def enumerate_values(units: Sequence[Units], start: int, stop: int) -> list[np.ndarray]:
    """Return the values of layers in their joint states of these numbers; the first unit is the lowest digit."""
    numbers, values = np.arange(start, stop)[:, None], []
    for layer in units:
        sizes = np.array(layer.variables.sizes, dtype=np.int64)
        steps = np.concatenate([[1], np.cumprod(sizes)])
        values.append(np.asarray(layer.encode(numbers // steps[:-1] % sizes), dtype=np.float64))
        numbers = numbers // steps[-1]
    return values


def columns_of(layer: Units) -> list[slice]:
    """Return the columns of values of each unit."""
    wide = layer.width > layer.n_units
    return spans(layer.variables.sizes if wide else (1,) * layer.n_units)


def value_tables(layer: Units) -> tuple[np.ndarray, ...]:
    """Return for each discrete unit the columns of values that each of its states has, one row for each state."""
    if layer.variables.real:
        raise ArgumentError("a Gaussian layer has no list of states", "sum over the other layer")
    singles = (layer.take(np.array([unit])) for unit in range(layer.n_units))
    return tuple(enumerate_values([unit], 0, unit.variables.sizes[0])[0] for unit in singles)


def spread(layer: Units, units: np.ndarray) -> np.ndarray:
    """Spread what is said of units, the last axis, over the columns of their values."""
    return np.repeat(units, layer.variables.sizes, axis=-1) if layer.width > layer.n_units else units


def domain_of(layer: Units) -> AnyDomain:
    """Return how data write the values of units."""
    if layer.variables.real:
        return REALS
    return DOMAINS[layer.kind] if layer.kind in DOMAINS else Categories(layer.variables.sizes)


def values_of(layer: Units, states: Any) -> np.ndarray:
    """Return the values of states as data write them: numbers stand for themselves, categories are codes."""
    states = np.asarray(states)
    return layer.encode(states) if layer.width > layer.n_units else states.astype(np.float64)


def states_of(layer: Units, values: np.ndarray) -> np.ndarray:
    """Return the states, as data write them, that have some values."""
    values = np.asarray(values)
    if layer.variables.real:
        return values.astype(np.float64)
    if layer.width > layer.n_units:
        values = np.column_stack([values[:, at].argmax(axis=1) for at in columns_of(layer)])
    return values.astype(np.int8)


def refused(layer: Units, states: np.ndarray) -> tuple[np.ndarray, str]:
    """Say of which cells no unit can have the state, and what units take instead."""
    if layer.variables.real:
        return ~np.isfinite(states), "finite numbers"
    if layer.kind == "binary":  # and the probabilities between them
        return ~((states >= 0) & (states <= 1)), "numbers from 0 to 1"
    if layer.kind == "spin":
        return ~((states == -1) | (states == 1)), "-1 and 1"
    known = (states >= 0) & (states < np.asarray(layer.variables.sizes)) & (states == np.floor(states))
    return ~known, "codes 0 .. q - 1"


def idle_means(layer: Units) -> np.ndarray:
    """Return the means of units without fields."""
    return layer.means(np.zeros((1, layer.width)))[0]


def log_probability(layer: Units, fields: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the log-probability of each row of values of a layer given its fields."""
    products = library_of(fields).einsum("mi,mi->m", fields, values)
    return products + layer.log_measure(values) - layer.log_normaliser(fields)


def mean_values(layer: Units, data: Any) -> np.ndarray:
    """Return the weighted mean of each column of values of data over the cells that were observed.

    A column without any is put where the layer is without fields.
    """
    sums, counts = data.mean(partial(_value_sums, layer))
    return np.where(counts > 0, sums / np.where(counts > 0, counts, 1.0), idle_means(layer))


def _value_sums(layer: Units, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the values of rows by their shares, and the share of the rows that show them."""
    sums, counts = np.zeros(layer.width), np.zeros(layer.width)
    shares = data.weights / data.weights.sum()
    for start in range(0, len(shares), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        seen = shares[block, None]
        if data.missing is None:
            values = values_of(layer, data.states[block])
        else:  # what stands in a missing cell need not be a state
            values = values_of(layer, np.where(data.missing[block], data.states.dtype.type(0), data.states[block]))
            seen = seen * ~spread(layer, data.missing[block])
        sums += (seen * values).sum(axis=0)
        counts += seen.sum(axis=0)
    return sums, counts


def as_units(kind: str, n_units: int, **settings: Any) -> Any:
    """Return units of a kind."""
    if kind not in KINDS:
        raise ArgumentError("is not known", f"use one of {', '.join(KINDS)}", argument="layer", value=kind)
    return CategoricalUnits(settings["sizes"]) if kind == "categorical" else KINDS[kind](n_units, **settings)


def hidden_kind(hidden: str, visible: Units) -> str:
    """Settle ``"auto"``: hidden units are coded as two-valued visible ones are, and else 0/1."""
    if hidden != "auto":
        return hidden
    return visible.kind if visible.kind in DOMAINS else "binary"


# What a file holds of a layer.
LAYER = Record(
    {
        "kind": TEXT,
        "n_units": COUNT,
        "sizes": Listed(Plain((int,), 1, MOST_VALUES), optional=True),
        "deviations": Listed(POSITIVE, optional=True),
    }
)


def written_units(layer: Units) -> dict[str, Any]:
    """Return a layer as a header holds it: its kind, and what the kind needs besides."""
    plain: dict[str, Any] = {"kind": layer.kind, "n_units": layer.n_units}
    if isinstance(layer, CategoricalUnits):
        return {**plain, "sizes": list(layer.sizes)}
    if isinstance(layer, GaussianUnits):
        return {**plain, "deviations": list(layer.deviations)}
    return plain


def read_units(written: dict[str, Any]) -> Any:
    """Return the layer that `written_units` wrote."""
    settings = {name: value for name, value in written.items() if name not in ("kind", "n_units")}
    return as_units(written["kind"], written["n_units"], **settings)
