"""Layers in a row with weights between neighbours: the restricted Boltzmann machine, and the deep one with more layers.

Given the odd layers the even ones are independent, and the other way round. So a state of chains is a list of arrays,
one for each layer, and a step draws one side given the other (YK15, "RBM"; Salakhutdinov and Hinton 2009).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from gibbsian.backends.device import layer_kernels
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.models.family import FAMILIES, Model, Parts, StackParts, Units, fields_alone
from gibbsian.models.file_parts import Listed, Tensor
from gibbsian.models.interactions import Interactions, between_layers
from gibbsian.models.layers.joint import JointModel, joint_model, parts_of
from gibbsian.models.layers.units import (
    LAYER,
    GaussianUnits,
    count_states,
    enumerate_values,
    read_units,
    value_tables,
    written_units,
)
from gibbsian.models.variables import Variables
from gibbsian.resources import spans

Array = Any
Values = Sequence[Any]

# `log_evidence` lists the states of every other hidden layer; beyond this it is a matter for bounds.
MOST_STATES = 2.0**16


@dataclass(frozen=True)
class LayeredFamily:
    """What families of layers in a row share, the visible one first; subclasses say how layers depend on each other."""

    layers: tuple[Units, ...]

    registered_name: ClassVar[str] = "layered"
    parts_in_file: ClassVar[dict[str, Any]] = {
        "layers": Listed(LAYER),
        "theta": Tensor(("parameters",), ("float64", "float32")),
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        if len(self.layers) < 2:
            raise ArgumentError(f"layers has {len(self.layers)} layers", "give the visible one and at least one hidden")

    __getstate__ = fields_alone

    @cached_property
    def variables(self) -> Variables:
        """The values of all units, from the visible layer."""
        return sum((layer.variables for layer in self.layers[1:]), self.layers[0].variables)

    @property
    def n_variables(self) -> int:
        """Number of units."""
        return len(self.variables)

    @property
    def n_hidden(self) -> int:
        """Number of hidden units, in all hidden layers."""
        return sum(layer.n_units for layer in self.layers[1:])

    def canonical(self, theta: Array) -> Array:
        """Return theta itself: no two are one distribution but by exchanging units."""
        return theta

    def to_parts(self) -> Parts:
        """Return what a file keeps of the family."""
        return Parts({"layers": [written_units(layer) for layer in self.layers]}, {})

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from what a file keeps."""
        return cls(tuple(read_units(layer) for layer in parts.plain["layers"]))  # type: ignore[attr-defined]

    def labels(self, names: Sequence[str]) -> list[list[str]]:
        """Return a label for each column of values of each layer, given the names of all units."""
        ends = spans(layer.n_units for layer in self.layers)
        return [
            list(names[at])
            if layer.width == layer.n_units
            else [f"{name}[{k}]" for name, q in zip(names[at], layer.variables.sizes, strict=True) for k in range(q)]
            for layer, at in zip(self.layers, ends, strict=True)
        ]

    def encode(self, x: Array) -> list[Array]:
        """Return the values of the layers in complete rows of codes."""
        ends = spans(layer.n_units for layer in self.layers)
        return [
            np.asarray(layer.encode(x[:, at]), dtype=np.float64) for layer, at in zip(self.layers, ends, strict=True)
        ]


@FAMILIES.register("stack", layers=True)
@dataclass(frozen=True)
class StackFamily(LayeredFamily):
    """``P(x_0, ..., x_L) = exp(sum_l b_l·x_l + sum_l x_l W_l x_(l+1)) / Z`` over the values of the layers.

    Layer 0 is visible, the others are hidden. Two layers are the restricted Boltzmann machine, more the deep one. Theta
    has the biases of all layers from the bottom, then the weights between neighbours, each matrix row by row (one row
    for each column of the lower layer). Products are made in the precision of theta, float64 or float32.

    Parameters
    ----------
    layers : sequence of Units
        From the visible one to the top, at least two.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> units = gb.models.BinaryUnits
    >>> rbm = gb.models.StackFamily((units(2), units(1))).build(weights=[[[1.0], [-1.0]]])
    >>> rbm.family.means(rbm.parts, 1, [np.array([[1.0, 0.0]]), None]).round(4)          # 1 / (1 + exp(-1))
    array([[0.7311]])
    >>> dbm = gb.models.StackFamily([units(1)] * 3).build(weights=[[[1.0]], [[2.0]]])
    >>> one = np.ones((1, 1))
    >>> dbm.family.fields(dbm.parts, 1, [one, None, one])           # the middle unit hears both neighbours
    array([[3.]])
    """

    def build(self, biases: Any = None, weights: Any = None) -> Model[StackFamily]:
        """Return the machine with these biases of each layer and weights between neighbours; None stands for zeros.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.models.StackFamily([gb.models.SpinUnits(n) for n in (3, 2, 2)]).build().theta.size
        17
        """
        n = len(self.layers)
        parts = [*(biases or [None] * n), *([None] * (n - 1) if weights is None else weights)]
        if len(parts) != len(self._shapes):
            raise ArgumentError(f"{len(parts)} biases and weights are given", f"give {n} and {n - 1}")
        return Model(self, joined(_checked(part, shape) for part, shape in zip(parts, self._shapes, strict=True)))

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.layers) > 2 and any(layer.variables.real for layer in self.layers[1:]):
            raise ArgumentError("layers holds a hidden Gaussian layer", "hidden units are binary, spin or categorical")

    # -- parameters ---------------------------------------------------------------------------------------------------
    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the biases of all layers, then of the weights between neighbours."""
        widths = [layer.width for layer in self.layers]
        return [*((width,) for width in widths), *itertools.pairwise(widths)]

    @cached_property
    def _places(self) -> list[slice]:
        return spans(math.prod(shape) for shape in self._shapes)

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return self._places[-1].stop

    @cached_property
    def penalised(self) -> np.ndarray:
        """Mask of the weights."""
        return np.arange(self.n_parameters) >= sum(layer.width for layer in self.layers)

    def split(self, theta: Array) -> StackParts:
        """Return the biases of the layers and the weights between neighbours: views of theta."""
        parts = [theta[at].reshape(shape) for at, shape in zip(self._places, self._shapes, strict=True)]
        return StackParts(parts[: len(self.layers)], parts[len(self.layers) :])

    def lowest(self, theta: Array) -> StackParts:
        """Return the biases of the two lowest layers and the weights between them."""
        biases, weights = self.split(theta)
        return StackParts(biases[:2], weights[:1])

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter, given the names of the columns."""
        labels = self.labels([*names, *(f"h{number}" for number in range(self.n_hidden))])
        pairs = itertools.pairwise(labels)
        weights = (f"{a}*{b}" for lower, upper in pairs for a, b in itertools.product(lower, upper))
        return [*itertools.chain.from_iterable(labels), *weights]

    def interactions(self, theta: Array) -> Interactions:
        """Return the weights between units of neighbouring layers."""
        return between_layers(self.layers, self.split(theta).weights)

    # -- layers given their neighbours --------------------------------------------------------------------------------
    @property
    def sides(self) -> tuple[range, range]:
        """Even and odd layers: those of one side are independent given the other."""
        return range(0, len(self.layers), 2), range(1, len(self.layers), 2)

    def fields(self, parts: StackParts, place: int, values: Values) -> Array:
        """Return the fields of a layer, given the values of its neighbours."""
        biases, affine = parts.biases[place], layer_kernels(parts.biases[place]).affine
        (first, matrix), *others = self._neighbours(parts, place, values)
        fields = affine(first, matrix, biases)
        for other, matrix in others:
            fields += affine(other, matrix)
        return fields

    def inputs(self, parts: StackParts, place: int, values: Values) -> Array:
        """Return the fields of a layer less its biases."""
        affine = layer_kernels(parts.biases[place]).affine
        (first, matrix), *others = self._neighbours(parts, place, values)
        return sum((affine(other, matrix) for other, matrix in others), affine(first, matrix))

    def _neighbours(self, parts: StackParts, place: int, values: Values) -> list[tuple[Array, Array]]:
        """The values of the layers next to a place, the lower first, with the weights that lead from them."""
        below = [(values[place - 1], parts.weights[place - 1])] if place > 0 else []
        above = [(values[place + 1], parts.weights[place].T)] if place < len(self.layers) - 1 else []
        return below + above

    def means(self, parts: StackParts, place: int, values: Values) -> Array:
        """Return the mean values of a layer, given its neighbours."""
        return self.layers[place].means(self.fields(parts, place, values))

    def draw(self, parts: StackParts, place: int, values: Values, rng: Any) -> Array:
        """Draw a layer, given its neighbours."""
        return self.layers[place].draw(self.fields(parts, place, values), rng)

    def draw_side(self, parts: StackParts, side: int, values: Values, rng: Any) -> list[Array]:
        """Return all values with the layers of one side drawn anew, given the other."""
        drawn = list(values)
        for place in self.sides[side]:
            drawn[place] = self.draw(parts, place, values, rng)
        return drawn

    def means_of_side(self, parts: StackParts, side: int, values: Values) -> list[Array]:
        """Return all values with the layers of one side at their means, given the other."""
        means = list(values)
        for place in self.sides[side]:
            means[place] = self.means(parts, place, values)
        return means

    # -- distribution -------------------------------------------------------------------------------------------------
    def log_weights(self, theta: Array, x: Array) -> Array:
        """Return ``log P(x) + log Z`` of complete rows."""
        return self.log_weights_of_values(self.split(theta), self.encode(x))

    def log_weights_of_values(self, parts: StackParts, values: Values) -> Array:
        """Return ``log P + log Z`` of values of all layers."""
        values = [np.asarray(part, dtype=np.float64) for part in values]
        total = self.linear_terms(parts, values)
        for layer, part in zip(self.layers, values, strict=True):
            total = total + layer.log_measure(part)
        return total

    def linear_terms(self, parts: StackParts, values: Values) -> Array:
        """Return ``sum_l b_l . x_l + sum_l x_l W_l x_(l+1)``, which is linear in each layer: means give its mean."""
        biases, weights = parts
        total = sum(part @ bias for part, bias in zip(values, biases, strict=True))
        for matrix, (lower, upper) in zip(weights, itertools.pairwise(values), strict=True):
            total = total + np.einsum("mj,mj->m", lower @ matrix, upper)
        return total

    def log_weights_of_side(self, parts: StackParts, side: int, values: Values) -> Array:
        """Return the log-weight of the values of one side, the other side summed out.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> rbm = gb.models.StackFamily((gb.models.BinaryUnits(2), gb.models.BinaryUnits(1))).build()
        >>> np.exp(rbm.family.log_weights_of_side(rbm.parts, 0, [np.zeros((1, 2)), None]))   # two hidden states
        array([2.])
        """
        values = [None if part is None else np.asarray(part, dtype=np.float64) for part in values]
        total: Any = 0.0
        for place in self.sides[side]:
            total = total + (values[place] @ parts.biases[place] + self.layers[place].log_measure(values[place]))
        for place in self.sides[1 - side]:
            total = total + self.layers[place].log_normaliser(self.fields(parts, place, values))
        return total

    def log_evidence(self, theta: Array, v: Array) -> Array:
        """Return ``log P(v) + log Z`` of rows of visible values, the hidden layers summed out exactly.

        The states of every other hidden layer are listed and the layers between them summed out, so this is for small
        machines: `gibbsian.expectations.DeepMeanField` bounds it for any.
        """
        parts, v = self.split(theta), np.asarray(v, dtype=np.float64)
        if len(self.layers) == 2:
            return self.log_weights_of_side(parts, 0, [v, None])
        above, (biases, weights) = StackFamily(self.layers[1:]), parts
        own = v @ biases[0] + self.layers[0].log_measure(v)
        rest = [StackParts([biases[1] + row @ weights[0], *biases[2:]], weights[1:]) for row in v]
        return own + np.array([above.log_partition(each) for each in rest])

    def log_partition(self, parts: StackParts) -> float:
        """Return log Z by listing the states of the even or of the odd layers, whichever are fewer.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.models.StackFamily([gb.models.SpinUnits(2)] * 3).build()
        >>> round(model.family.log_partition(model.parts), 4)         # 6 log 2
        4.1589
        """
        counts = [count_states(self.layers[place] for place in side) for side in self.sides]
        side = int(counts[1] <= counts[0])
        if counts[side] > MOST_STATES:
            raise TooExpensiveError(
                f"log Z of layers of {[layer.n_units for layer in self.layers]} units is a sum over "
                f"{counts[side]:.2g} states",
                "use `gibbsian.diagnostics.log_partition_interval`, which brackets it",
            )
        return float(np.logaddexp.reduce(self.log_weights_of_side(parts, side, self.states_of_side(side))))

    def spread_side(self, side: int, parts: Values) -> list[Any]:
        """Return values of the layers of one side at their places, None for the others."""
        values: list[Any] = [None] * len(self.layers)
        for place, part in zip(self.sides[side], parts, strict=True):
            values[place] = part
        return values

    def states_of_side(self, side: int, start: int = 0, stop: int | None = None) -> list[Any]:
        """Return the values of one side in its joint states, all or those numbered so; None for the other layers."""
        layers = [self.layers[place] for place in self.sides[side]]
        stop = int(count_states(layers)) if stop is None else stop
        return self.spread_side(side, enumerate_values(layers, start, stop))

    # -- statistics ---------------------------------------------------------------------------------------------------
    @property
    def statistic_range(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest value of each statistic; those of real numbers have no bounds."""
        ends = []
        for layer in self.layers:
            tables = [np.ones((1, layer.width))] if layer.variables.real else value_tables(layer)
            ends.append([np.concatenate([end(table, axis=0) for table in tables]) for end in (np.min, np.max)])
        corners = itertools.product((0, 1), repeat=2)
        found = [self.statistics_of([own[pick[place % 2]][None] for place, own in enumerate(ends)]) for pick in corners]
        real = [np.full((1, layer.width), float(layer.variables.real)) for layer in self.layers]
        pairs = itertools.pairwise(real)
        open_ended = np.hstack([*real, *(np.maximum.outer(a[0], b[0]).reshape(1, -1) for a, b in pairs)])[0] > 0
        return np.where(open_ended, -np.inf, np.min(found, axis=0)), np.where(open_ended, np.inf, np.max(found, axis=0))

    def statistics(self, x: Array) -> Array:
        """Return the statistics S(x) of each row."""
        values = self.encode(x)
        products = (np.einsum("mi,mj->mij", a, b).reshape(len(x), -1) for a, b in itertools.pairwise(values))
        return np.hstack([*values, *products])

    def mean_statistics(self, x: Array, weights: Array | None = None) -> Array:
        """Return the weighted mean of the statistics of rows."""
        return self.statistics_of(self.encode(x), weights)

    def statistics_of(self, values: Values, weights: Array | None = None) -> Array:
        """Return the weighted means of values of the layers and of the products of neighbours, in the layout of theta.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> family = gb.models.StackFamily((gb.models.SpinUnits(1), gb.models.SpinUnits(1)))
        >>> family.statistics_of([np.array([[1.0], [1.0]]), np.array([[0.5], [0.1]])]).tolist()
        [1.0, 0.3, 0.3]
        """
        n_rows = len(values[0])
        return self.sums_of(values, np.full(n_rows, 1.0 / n_rows) if weights is None else weights / weights.sum())

    def sums_of(self, values: Values, shares: Array) -> Array:
        """Return the same sums with shares as they are, whatever their total."""
        weighted = [part * shares[:, None] for part in values[:-1]]
        firsts = [*(part.sum(axis=0) for part in weighted), shares @ values[-1]]
        products = [(lower.T @ upper).ravel() for lower, upper in zip(weighted, values[1:], strict=True)]
        return np.concatenate([*firsts, *products])

    # -- rows of a machine of two layers that lack some cells, with zeros there ---------------------------------------
    @property
    def shown(self) -> tuple[Units, ...]:
        """The layers whose units rows of data show."""
        return self.layers[:1]

    def upward(self, parts: StackParts) -> tuple[Array, Array]:
        """Return the biases of the hidden units, and the weights from the visible ones."""
        return parts.biases[1], parts.weights[0]

    def slopes(self, parts: StackParts, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log-weight of each row without hidden units, and its slope in each visible value."""
        return v @ parts.biases[0] + self.layers[0].log_measure(v), parts.biases[0][None]

    def gathered(self, v: np.ndarray, shown: np.ndarray, hidden: np.ndarray, products: np.ndarray) -> np.ndarray:
        """Return statistics from weighted expected values of each row, and sums over rows of h and of ``v h^T``."""
        return np.concatenate([shown.sum(axis=0), hidden, products.ravel()])

    # -- beginnings, other forms --------------------------------------------------------------------------------------
    def initialised(self, means: np.ndarray, rng: np.random.Generator, scale: float | None = None) -> np.ndarray:
        """Return theta of visible units with these means and random weights, of `glorot_scale` unless a scale is given.

        The hidden units then have nothing to learn but what the means do not tell (Hinton 2012, "A practical guide").
        """
        biases = [self.layers[0].fields_of(means), *(np.zeros(layer.width) for layer in self.layers[1:])]
        weights = []
        for lower, upper in itertools.pairwise(self.layers):
            deviation = glorot_scale(lower, upper) if scale is None else scale
            weights.append(deviation * rng.standard_normal((lower.width, upper.width)))
        return joined([*biases, *weights])

    def rescaled(self, theta: np.ndarray, centres: np.ndarray, spreads: np.ndarray) -> Model[StackFamily]:
        """Return the machine over ``v = centres + spreads u`` of one over real numbers u.

        Log-weights agree up to a constant when the deviations are ``s sigma``, the weights ``W / s``, the visible
        biases ``b / s + m / (s sigma)^2`` and those of the lowest hidden layer ``c - W^T m / s``.
        """
        layer: Any = self.layers[0]
        deviations = spreads * np.asarray(layer.deviations)
        (first, second, *others), (lowest, *above) = self.split(theta)
        lowest = lowest / spreads[:, None]
        moved = [first / spreads + centres / deviations**2, second - centres @ lowest]
        units = GaussianUnits(layer.n_units, tuple(deviations))
        return Model(
            StackFamily((units, *self.layers[1:])), joined([*moved, *others, lowest, *above]).astype(theta.dtype)
        )

    def at(self, theta: np.ndarray, beta: float) -> Model[StackFamily]:
        """Return the distribution whose log-weights, those of Gaussian units included, are beta times as large."""
        widened = [
            GaussianUnits(layer.n_units, tuple(np.asarray(layer.deviations) / np.sqrt(beta)))
            if isinstance(layer, GaussianUnits)
            else layer
            for layer in self.layers
        ]
        return Model(StackFamily(tuple(widened)), beta * theta)

    def joint(self, theta: np.ndarray) -> JointModel:
        """Return the distribution of all layers, from the bottom, on the graph of all pairs between neighbours.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.models.StackFamily((gb.models.SpinUnits(2), gb.models.SpinUnits(1))).build()
        >>> model.family.joint(model.theta).graph.n_edges
        2
        """
        return joint_model(self.layers, self.split(theta))

    def from_joint(self, joint: JointModel) -> np.ndarray:
        """Return theta of a joint distribution of these layers."""
        return joined(itertools.chain(*parts_of(self.layers, joint, self.split)))

    # -- as what a belief network ends in -----------------------------------------------------------------------------
    @property
    def top(self) -> StackFamily:
        """The machine itself: its normaliser is that of the whole."""
        return self

    def top_theta(self, theta: Array) -> Array:
        """Return the parameters of `top`: all."""
        return theta

    def draw_below(self, theta: Array, values: Values, rng: Any) -> list[Array]:
        """Return the values of all layers given those of `top`, which are all."""
        return list(values)


def top_of(model: Model[Any]) -> Model[StackFamily]:
    """Return the stack whose normaliser a model of layers has."""
    return Model(model.family.top, model.family.top_theta(model.theta))


def glorot_scale(lower: Units, upper: Units) -> float:
    """Return ``sqrt(2 / (width + width))``, the standard deviation at which weights between two layers start.

    Fields then vary about as much as the units they come from, in either direction (Glorot and Bengio 2010). Far
    smaller weights leave a machine waiting at the saddle where the hidden units are all alike. At five epochs of 8,000
    rows of MNIST, 16 hidden units, the held-out log-likelihood is -158.1 nats by Glorot's rule and -159.1 with a
    deviation of 0.01; at one epoch -180.5 and -186.2.
    """
    return float(np.sqrt(2.0 / (lower.width + upper.width)))


def joined(parts: Any) -> np.ndarray:
    """Return arrays one after the other as one vector."""
    return np.concatenate([part.ravel() for part in parts])


def _checked(given: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return parameters of a shape, in float64 or float32; zeros where None is given."""
    part = np.zeros(shape) if given is None else np.asarray(given)
    part = part if part.dtype == np.float32 else part.astype(np.float64, copy=False)
    if part.shape != shape:
        raise ArgumentError(f"biases or weights have shape {part.shape}", f"give numbers of shape {shape}")
    return part
