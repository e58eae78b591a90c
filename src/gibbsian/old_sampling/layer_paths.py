"""The path between independent units and a machine in layers, one side of it summed out of all weights.

At inverse temperature beta the fields of a layer are ``(1 - beta) * base + beta * (biases + inputs)``: at 0 the units
are independent with the base's fields, at 1 they are the machine. Measures of Gaussian units stay the same. Walkers are
rows of a matrix, the columns of the layers of one side next to each other, so a step is matrix products (Salakhutdinov
and Murray 2008); the weights are those of one side with the other summed out (Yasuda and Takahashi 2022), which vary
less than those of both. The sides are the even and the odd layers (Salakhutdinov and Hinton 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gibbsian.arrays import Tensor
from gibbsian.backends.device import layer_kernels, library_of
from gibbsian.data import Dataset
from gibbsian.models.base import Model, StackParts, Units
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import idle_means, mean_values, spread
from gibbsian.resources import spans

# Base rates are moved this far towards those of units without fields: what the data never show the model may.
SHRINKAGE = 0.01
# Rows from which base rates are taken.
RATE_ROWS = 4096
# Walkers to the machine and their steps, from whose ends its base rates are taken where there are no data.
RATE_WALKERS, RATE_STEPS = 100, 100
# The odd layers and the even ones, by the lowest of each.
SIDES = ("visible", "hidden")


@dataclass(frozen=True, eq=False)
class IndependentUnits:
    """Fields of all layers when the units are independent: where paths begin.

    Parameters
    ----------
    fields : tuple of ndarray
        Fields of each layer's columns.
    """

    fields: tuple[np.ndarray, ...]

    @classmethod
    def from_values(
        cls, stack: Model[StackFamily], even: Sequence[np.ndarray], shares: np.ndarray | None = None
    ) -> IndependentUnits:
        """Take the base rates of rows of values of the even layers, and of the odd ones given them."""
        family = stack.family
        shares = np.full(len(even[0]), 1.0 / len(even[0])) if shares is None else shares
        values = family.means_of_side(stack.parts, 1, family.spread_side(0, even))
        means = (shares @ np.asarray(part, np.float64) for part in values)
        return cls(tuple(_fields(layer, mean) for layer, mean in zip(family.layers, means, strict=True)))

    @classmethod
    def of_data(cls, stack: Model[StackFamily], data: Dataset) -> IndependentUnits:
        """Take the base rates of data, of a machine of two layers."""
        some = np.linspace(0, len(data.weights) - 1, min(len(data.weights), RATE_ROWS)).astype(np.int64)
        shares = data.weights[some] / data.weights[some].sum()
        return cls.from_values(stack, [filled_values(stack.family.layers[0], data, some)], shares)

    @classmethod
    def biases(cls, stack: Model[StackFamily]) -> IndependentUnits:
        """Take the fields of the even layers when odd ones have none, which have none themselves."""
        family = stack.family
        idle = [idle_means(layer)[None] for layer in family.layers]
        fields = [np.zeros(layer.width) for layer in family.layers]
        for place in family.sides[0]:
            fields[place] = family.fields(stack.parts, place, idle)[0].astype(np.float64)
        return cls(tuple(fields))

    @classmethod
    def uniform(cls, stack: Model[StackFamily]) -> IndependentUnits:
        """Take units without fields."""
        return cls(tuple(np.zeros(layer.width) for layer in stack.family.layers))


def _fields(layer: Units, means: np.ndarray) -> np.ndarray:
    return np.asarray(layer.fields_of((1.0 - SHRINKAGE) * means + SHRINKAGE * idle_means(layer)), np.float64)


def filled_values(layer: Units, data: Dataset, numbers: np.ndarray) -> np.ndarray:
    """Return the values of some states, with the mean of the column in missing cells: base rates stay as they are."""
    states = data.states[numbers]
    if data.missing is None:
        return np.asarray(layer.encode(states), np.float64)
    missing = data.missing[numbers]
    values = layer.encode(np.where(missing, states.dtype.type(0), states))
    return np.where(spread(layer, missing), mean_values(layer, data), values)


@dataclass(frozen=True, eq=False)
class PathUnits:
    """The layers along the path, in arrays of either library; walkers have values of one side, the other is summed out.

    Parameters
    ----------
    family : StackFamily
        The layers.
    parts : StackParts
        Their biases and weights.
    base : sequence of array
        Fields of the independent units at the beginning.
    walked : int
        The side that walkers have values of: 0 or 1.
    """

    family: StackFamily
    parts: StackParts
    base: Sequence[Any]
    walked: int

    @cached_property
    def columns(self) -> list[list[slice]]:
        """The columns of each layer of both sides, side by side."""
        return [spans(self.family.layers[place].width for place in side) for side in self.family.sides]

    def split(self, columns: Tensor, side: int) -> list[Tensor]:
        """Return the columns of each layer of a side."""
        return [columns[:, at] for at in self.columns[side]]

    def offsets(self, place: int, beta: Tensor) -> Tensor:
        """Return the fields of a layer before its neighbours' part."""
        return (1.0 - beta) * self.base[place] + beta * self.parts.biases[place]

    def draw_base(self, n_rows: int, rng: np.random.Generator) -> np.ndarray:
        """Draw values of the independent units."""
        places = self.family.sides[self.walked]
        return _beside([self.family.layers[at].draw(np.tile(self.base[at], (n_rows, 1)), rng) for at in places])

    def features(self, x: Tensor) -> Any:
        """Return the inputs of the side that is summed out."""
        return self._inputs(1 - self.walked, self.split(x, self.walked))

    def log_weights(self, x: Tensor, features: Tensor, place: Any) -> Any:
        """Return the log-weight of each row at an inverse temperature, less the measure, which all share."""
        family, summed = self.family, 1 - self.walked
        total = layer_kernels(x).dot(x, _beside([self.offsets(at, place) for at in family.sides[self.walked]]))
        for at, own in zip(family.sides[summed], self.split(features, summed), strict=True):
            total = total + family.layers[at].log_normaliser(self.offsets(at, place) + place * own)
        return total

    def add_growth(self, sums: Any, x: Tensor, features: Tensor, ends: tuple[Any, Any]) -> None:
        """Add to the sums of rows by how much their log-weights grow from one inverse temperature to another."""
        layers, kernels = self.family.layers, layer_kernels(x)
        if len(layers) == 2 and kernels.grows(layers[1 - self.walked], x):
            (walked, summed), biases = (self.walked, 1 - self.walked), self.parts.biases
            slopes = biases[walked] - self.base[walked]
            kernels.grow(layers[summed], sums, x, slopes, features, biases[summed], self.base[summed], ends)
            return
        before, after = ends
        sums += self.log_weights(x, features, after)
        sums -= self.log_weights(x, features, before)

    def step(self, features: Tensor, place: Any, rng: np.random.Generator) -> Any:
        """Draw the side that is summed out and then the other, at an inverse temperature."""
        summed = self._draw(1 - self.walked, features, place, rng)
        return self._draw(self.walked, self._inputs(self.walked, self.split(summed, 1 - self.walked)), place, rng)

    def _inputs(self, side: int, others: list[Tensor]) -> Tensor:
        values = self.family.spread_side(1 - side, others)
        return _beside([self.family.fields(self.parts, place, values, bias=False) for place in self.family.sides[side]])

    def _draw(self, side: int, inputs: Tensor, beta: Tensor, rng: np.random.Generator) -> Tensor:
        layers, draw = self.family.layers, layer_kernels(inputs).draw_along
        each = zip(self.family.sides[side], self.split(inputs, side), strict=True)
        biases = self.parts.biases
        return _beside([draw(layers[at], own, biases[at], self.base[at], beta, rng) for at, own in each])


def _beside(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else library_of(parts[0]).concatenate(parts, -1)
