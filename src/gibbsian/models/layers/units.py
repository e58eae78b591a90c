"""Kinds of units, which layers are made of: independent of each other given their fields.

The weight of a value s of a unit is ``exp(field * s)`` times the base measure of the unit. A kind sums this weight over
the values, returns their mean and draws one; the rest of a machine is matrix products between layers. Arrays are
NumPy's or PyTorch's. Enumeration, encoding and masks follow from `variables` and `encode`, in the functions below.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, NotRequired, Self, TypedDict, cast

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, Slice, States, Tensor
from gibbsian.backends.device import layer_kernels, library_of
from gibbsian.domain import MOST_VALUES
from gibbsian.errors import ArgumentError
from gibbsian.models.base import Units
from gibbsian.models.file_parts import COUNT, POSITIVE, TEXT, ListOf, Plain, Record
from gibbsian.models.rows import PartitionedRows, RowsInMemory
from gibbsian.models.variables import Variables
from gibbsian.resources import spans
from gibbsian.startup import logit

# Means are kept this far from the ends before their logarithms are taken.
SMALLEST_SHARE = 1e-6
# Number of rows that are encoded at a time.
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class _OneColumn:
    """Units whose values are one column each, by default without a base measure."""

    n_units: int
    kind: ClassVar[str]

    @property
    def width(self) -> int:
        """Number of columns: one for each unit."""
        return self.n_units

    def log_measure(self, values: Tensor) -> Tensor | float:
        """Return 0: without fields all values have the same weight."""
        return 0.0


@dataclass(frozen=True)
class _TwoValued(_OneColumn):
    """Units of two values, 1 and a lower one."""

    low: ClassVar[float]

    def encode(self, codes: States) -> Floats:
        """Return the two values in place of codes 0 and 1."""
        values: Floats = np.multiply(codes, 1.0 - self.low)
        return values + self.low

    def log_normaliser(self, fields: Tensor) -> Tensor:
        """Return ``sum_i log(exp(field_i) + exp(low field_i))``."""
        return layer_kernels(fields).two_valued_log_normaliser(fields, self.low)

    def means(self, fields: Tensor) -> Tensor:
        """Return the mean values."""
        return layer_kernels(fields).two_valued_means(fields, self.low)

    def draw(self, fields: Tensor, rng: np.random.Generator) -> Tensor:
        """Draw values."""
        return layer_kernels(fields).draw_two_valued(fields, self.low, rng)

    def fields_of(self, means: Floats) -> Floats:
        """Return the log-odds of the means, over the distance of the values."""
        probabilities = np.clip((means - self.low) / (1.0 - self.low), SMALLEST_SHARE, 1.0 - SMALLEST_SHARE)
        log_odds: Floats = logit(probabilities)
        return log_odds / (1.0 - self.low)

    def take(self, units: Integers) -> Self:
        """Return a layer of the selected units."""
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
class GaussianUnits(_OneColumn):
    """Real numbers, each normal with a fixed standard deviation given its field: the mean is ``deviation^2 * field``.

    Parameters
    ----------
    n_units : int
        Number of units.
    deviations : sequence of float, optional
        Standard deviations; 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.layers.units import GaussianUnits
    >>> GaussianUnits(1, deviations=(2.0,)).means(np.array([[0.5]]))
    array([[2.]])
    """

    deviations: tuple[float, ...] = ()
    kind = "gaussian"

    def __post_init__(self) -> None:
        deviations = tuple(map(float, self.deviations)) or (1.0,) * self.n_units
        if len(deviations) != self.n_units or not all(math.isfinite(each) and each > 0 for each in deviations):
            raise ArgumentError(
                f"must be {self.n_units} positive numbers", argument="deviations", value=self.deviations
            )
        object.__setattr__(self, "deviations", deviations)

    @property
    def variables(self) -> Variables:
        """Real numbers."""
        return Variables.reals(self.n_units)

    def encode(self, codes: States) -> Floats:
        """Return the numbers themselves."""
        return cast("Floats", codes)

    def log_measure(self, values: Tensor) -> Tensor:
        """Return ``-sum_i value_i^2 / (2 deviation_i^2)``."""
        return layer_kernels(values).normal_log_measure(values, self.deviations)

    def log_normaliser(self, fields: Tensor) -> Tensor:
        """Return the log of the integral, ``sum_i (deviation_i field_i)^2 / 2 + log(2 pi deviation_i^2) / 2``."""
        return layer_kernels(fields).normal_log_normaliser(fields, self.deviations)

    def means(self, fields: Tensor) -> Tensor:
        """Return ``deviation^2 * field``."""
        return layer_kernels(fields).normal_means(fields, self.deviations)

    def draw(self, fields: Tensor, rng: np.random.Generator) -> Tensor:
        """Draw from the normal distributions."""
        return layer_kernels(fields).draw_normal(fields, self.deviations, rng)

    def fields_of(self, means: Floats) -> Floats:
        """Return the means over the variances."""
        return np.asarray(means) / np.square(self.deviations)

    def take(self, units: Integers) -> GaussianUnits:
        """Return a layer of the selected units."""
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

    def __init__(self, sizes: Iterable[int]):
        object.__setattr__(self, "sizes", tuple(map(int, sizes)))

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.sizes)

    @property
    def width(self) -> int:
        """Number of columns: one for each value of each unit."""
        return sum(self.sizes)

    @property
    def variables(self) -> Variables:
        """Values without order."""
        return Variables.categories(self.sizes)

    @cached_property
    def edges(self) -> Integers:
        """The first column of each unit, and the end of the last unit."""
        return np.cumsum((0, *self.sizes), dtype=np.intp)

    def encode(self, codes: States) -> Floats:
        """Return the indicators of codes."""
        values = np.zeros((len(codes), self.width))
        values[np.arange(len(codes))[:, None], codes.astype(np.intp) + self.edges[:-1]] = 1.0
        return values

    def log_measure(self, values: Tensor) -> Tensor | float:
        """Return 0: without fields all values have the same weight."""
        return 0.0

    def log_normaliser(self, fields: Tensor) -> Tensor:
        """Return the sum over units of ``log sum_value exp(field)``."""
        return layer_kernels(fields).categorical_log_normaliser(fields, self.edges)

    def means(self, fields: Tensor) -> Tensor:
        """Return the probability of each value."""
        return layer_kernels(fields).categorical_means(fields, self.edges)

    def draw(self, fields: Tensor, rng: np.random.Generator) -> Tensor:
        """Draw indicators."""
        return layer_kernels(fields).draw_categories(fields, self.edges, rng)

    def fields_of(self, means: Floats) -> Floats:
        """Return the logarithms of the probabilities."""
        return np.log(np.clip(means, SMALLEST_SHARE, None))

    def take(self, units: Integers) -> CategoricalUnits:
        """Return a layer of the selected units."""
        return CategoricalUnits(np.asarray(self.sizes)[units])


# == functions of variables and values ================================================================================
def count_states(units: Iterable[Units]) -> float:
    """Return the number of joint states of layers: infinite for real numbers, at most the largest float64 otherwise."""
    sizes = [size for layer in units for size in layer.variables.sizes]
    if 0 in sizes:
        return math.inf
    return min(math.prod(map(float, sizes)), sys.float_info.max)


def enumerate_values(units: Sequence[Units], start: int, stop: int) -> list[Floats]:
    """Return the values of layers in their joint states `start` to `stop`; the first unit is the lowest digit."""
    states, values = np.arange(start, stop)[:, None], []
    for layer in units:
        sizes = np.array(layer.variables.sizes, dtype=np.int64)
        steps = np.cumprod([1, *sizes])
        values.append(np.asarray(layer.encode(states // steps[:-1] % sizes), dtype=np.float64))
        states = states // steps[-1]
    return values


def states_of_side(layers: Sequence[Units], side: int, start: int = 0, stop: int | None = None) -> list[Tensor]:
    """Return the values of every second layer, from `side` on, in its joint states, or in those from `start` to `stop`.

    The list is over all layers, as `StackFamily.spread_side` returns it.
    """
    chosen, values = layers[side::2], cast("list[Tensor]", [None] * len(layers))
    values[side::2] = enumerate_values(chosen, start, int(count_states(chosen)) if stop is None else stop)
    return values


def columns_of(layer: Units) -> list[Slice]:
    """Return the columns of values of each unit."""
    return spans(layer.variables.sizes if layer.width > layer.n_units else (1,) * layer.n_units)


def value_tables(layer: Units) -> tuple[Floats, ...]:
    """Return the values of each discrete unit in each of its states, one row for each state."""
    if layer.variables.real:
        raise ArgumentError("a Gaussian layer has no list of states", "sum over the other layer")
    singles = (layer.take(np.array([unit])) for unit in range(layer.n_units))
    return tuple(enumerate_values([unit], 0, unit.variables.sizes[0])[0] for unit in singles)


def spread(layer: Units, units: Mask) -> Mask:
    """Return a mask over units, the last axis, as one over the columns of their values."""
    return np.repeat(units, layer.variables.sizes, axis=-1) if layer.width > layer.n_units else units


def codes_of(layer: Units, values: Tensor) -> States:
    """Return the codes of values of a layer: the inverse of `encode`."""
    values = np.asarray(values)
    if layer.variables.real:
        return values.astype(np.float64)
    if layer.width > layer.n_units:
        return np.column_stack([values[:, at].argmax(axis=1) for at in columns_of(layer)]).astype(np.int8)
    return (values > 0).astype(np.int8)


def refused(layer: Units, codes: States) -> tuple[Mask, str]:
    """Return the mask of cells that hold no code of their unit, and the codes that units have."""
    if layer.variables.real:
        return ~np.isfinite(codes), "finite numbers"
    if layer.width == layer.n_units:
        return ~((codes >= 0) & (codes <= 1)), "codes 0 and 1, or the probabilities between them"
    valid = (codes >= 0) & (codes < np.asarray(layer.variables.sizes)) & (codes == np.floor(codes))
    return ~valid, "codes 0 .. q - 1"


def idle_means(layer: Units) -> Tensor:
    """Return the means of units without fields."""
    return layer.means(np.zeros((1, layer.width))).ravel()


def log_probability(layer: Units, fields: Tensor, values: Tensor) -> Tensor:
    """Return the log-probability of each row of values of a layer given its fields."""
    products: Tensor = library_of(fields).einsum("mi,mi->m", fields, values)
    return products + layer.log_measure(values) - layer.log_normaliser(fields)


def mean_values(layer: Units, data: PartitionedRows) -> Floats:
    """Return the weighted mean of each column of values of data over present cells.

    A column whose cells are all missing has its mean without fields.
    """
    sums, counts = data.mean(partial(_value_sums, layer))
    return np.where(counts > 0, sums / np.where(counts > 0, counts, 1.0), idle_means(layer))


def _value_sums(layer: Units, data: RowsInMemory) -> tuple[Floats, Floats]:
    """Return the sum of each column of values over present cells by weight, and the weight of these cells."""
    sums, counts = np.zeros(layer.width), np.zeros(layer.width)
    weights = data.weights / data.weights.sum()
    for start in range(0, len(weights), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        present, codes = weights[block, None], data.states[block]
        if data.missing is not None:  # a missing cell may hold any number
            codes = np.where(data.missing[block], data.states.dtype.type(0), codes)
            present = present * ~spread(layer, data.missing[block])
        sums += (present * layer.encode(codes)).sum(axis=0)
        counts += present.sum(axis=0)
    return sums, counts


# == kinds by name ====================================================================================================
def as_units(kind: str, n_units: int, sizes: Iterable[int] = (), deviations: Iterable[float] = ()) -> Units:
    """Return units of a kind: `sizes` are those of categorical units, `deviations` those of Gaussian ones."""
    if kind == "categorical":
        return CategoricalUnits(sizes)
    if kind == "gaussian":
        return GaussianUnits(n_units, tuple(deviations))
    if kind not in ("binary", "spin"):
        raise ArgumentError(
            "is not known", "use one of binary, spin, gaussian, categorical", argument="layer", value=kind
        )
    return BinaryUnits(n_units) if kind == "binary" else SpinUnits(n_units)


def hidden_kind(hidden: str, visible: Units) -> str:
    """Return the kind of hidden units; ``"auto"`` is that of two-valued visible units, otherwise 0/1."""
    if hidden != "auto":
        return hidden
    return visible.kind if isinstance(visible, _TwoValued) else "binary"


class WrittenUnits(TypedDict):
    """A layer in the header of a file, the arguments of `as_units`."""

    kind: str
    n_units: int
    sizes: NotRequired[list[int]]
    deviations: NotRequired[list[float]]


# The declaration of `WrittenUnits`.
LAYER = Record(
    {
        "kind": TEXT,
        "n_units": COUNT,
        "sizes": ListOf(Plain((int,), 1, MOST_VALUES), optional=True),
        "deviations": ListOf(POSITIVE, optional=True),
    }
)


def written_units(layer: Units) -> WrittenUnits:
    """Return a layer as a file holds it."""
    written: WrittenUnits = {"kind": layer.kind, "n_units": layer.n_units}
    if isinstance(layer, CategoricalUnits):
        written["sizes"] = list(layer.sizes)
    if isinstance(layer, GaussianUnits):
        written["deviations"] = list(layer.deviations)
    return written
