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
from gibbsian.backends.device import layer_kernels, library_of, twin
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.inference import exact
from gibbsian.models.base import Family, Model, StackParts, Units
from gibbsian.models.layers.stack import StackFamily, top_of
from gibbsian.models.layers.units import codes_of, idle_means, mean_values, refused, spread
from gibbsian.old_sampling.block_gibbs import BlockGibbs
from gibbsian.old_sampling.paths import Groups, SteppedPath
from gibbsian.resources import require_memory, spans
from gibbsian.rng import RandomState, as_generator

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
    def of_chains(cls, stack: Model[StackFamily], rng: RandomState = None) -> IndependentUnits:
        """Take the base rates where walkers end that are annealed from units without fields: in many modes.

        Chains from the visible biases would stay in the one mode that these lead to.
        """
        family, generator = stack.family, as_generator(rng)
        path = LayerPath(stack, stack, cls.uniform(stack))
        walkers = path.from_base(RATE_WALKERS, generator)
        path.walk(walkers, np.linspace(0.0, 1.0, RATE_STEPS + 1))
        ends = path.units.split(np.concatenate(walkers.values), 0)
        drawn = family.draw_side(stack.parts, 1, family.spread_side(0, ends), generator)
        return cls.from_values(stack, family.means_of_side(stack.parts, 0, drawn)[::2])

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


def as_independent(base: object, stack: Model[StackFamily], rng: RandomState = None) -> IndependentUnits:
    """Return the independent units of a name, of data, or as given."""
    if isinstance(base, IndependentUnits):
        widths = [layer.width for layer in stack.family.layers]
        if [len(fields) for fields in base.fields] != widths:
            raise ArgumentError(f"base has {[len(part) for part in base.fields]} fields", f"the machine has {widths}")
        return base
    if isinstance(base, Dataset):
        return IndependentUnits.of_data(stack, base)
    if isinstance(base, str) and base == "chains":
        return IndependentUnits.of_chains(stack, rng)
    if isinstance(base, str) and base in ("biases", "uniform"):
        return IndependentUnits.biases(stack) if base == "biases" else IndependentUnits.uniform(stack)
    raise ArgumentError(
        "is not known", "use 'chains', 'biases', 'uniform', a Dataset or IndependentUnits", argument="base", value=base
    )


def layer_path(model: Model[Any], base: object = "chains", summed: str = "auto", rng: RandomState = None) -> LayerPath:
    """Return the path of inverse temperatures from independent units to a machine in layers.

    Parameters
    ----------
    model : Model of a Layered family
        The end; of a belief network the machine at the top.
    base : str, Dataset or IndependentUnits, default "chains"
        The independent units at inverse temperature 0: those with the base rates of data, or of walkers annealed to
        the machine (``"chains"``), or with the visible biases and what idle hidden units add (``"biases"``), or without
        fields (``"uniform"``).
    summed : {"auto", "hidden", "visible"}, default "auto"
        The side that is summed out analytically, the odd layers or the even ones: ``"auto"`` takes the hidden layer of
        a restricted machine, and of others the side with more columns.
    rng : None, int or Generator
        Source of randomness for ``base="chains"``.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> weights = np.random.default_rng(0).normal(size=(8, 5))
    >>> rbm = gb.models.StackFamily((gb.models.BinaryUnits(8), gb.models.BinaryUnits(5))).build(weights=[weights])
    >>> path = gb.old_sampling.layer_path(rbm, summed="visible", rng=0)
    >>> run = gb.old_sampling.Annealing(betas=1000).forward(path, rng=1)
    >>> abs(run.log_partition - gb.inference.exact(rbm).log_partition) < 3 * run.log_partition_stderr < 0.1
    True
    """
    if summed not in ("auto", *SIDES):
        raise ArgumentError("is not known", "use 'auto', 'hidden' or 'visible'", argument="summed", value=summed)
    stack = top_of(model)
    if summed == "auto":
        even, odd = (sum(stack.family.layers[place].width for place in side) for side in stack.family.sides)
        shows_all = stack.family == model.family and len(stack.family.layers) == 2
        summed = "visible" if not shows_all and even > odd else "hidden"
    return LayerPath(model, stack, as_independent(base, stack, rng), summed)


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
        return _beside([self.family.inputs(self.parts, place, values) for place in self.family.sides[side]])

    def _draw(self, side: int, inputs: Tensor, beta: Tensor, rng: np.random.Generator) -> Tensor:
        layers, draw = self.family.layers, layer_kernels(inputs).draw_along
        each = zip(self.family.sides[side], self.split(inputs, side), strict=True)
        biases = self.parts.biases
        return _beside([draw(layers[at], own, biases[at], self.base[at], beta, rng) for at, own in each])


def _beside(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else library_of(parts[0]).concatenate(parts, -1)


@dataclass(frozen=True, eq=False)
class LayerPath(SteppedPath):
    """The path from independent units to a machine in layers.

    Parameters
    ----------
    model : Model of a Layered family
        The end.
    stack : Model of a StackFamily
        The model, or the machine at the top of a belief network. States of the path are those of its even layers.
    base : IndependentUnits
        The beginning.
    summed : {"hidden", "visible"}
        The side that is summed out; walkers have values of the other.
    """

    model: Model[Family]
    stack: Model[StackFamily]
    base: IndependentUnits
    summed: str = "hidden"

    # -- weights and steps --------------------------------------------------------------------------------------------
    @cached_property
    def units(self) -> PathUnits:
        """The layers along the path, in float64."""
        parts = StackParts(*([np.asarray(part, np.float64) for part in some] for some in self.stack.parts))
        return PathUnits(self.stack.family, parts, self.base.fields, SIDES.index(self.summed) ^ 1)

    @property
    def coldest(self) -> float:
        """The machine itself where units are real numbers: beyond it these may have no distribution."""
        return 1.0 if self.stack.family.variables.real else super().coldest

    @property
    def log_base_partition(self) -> float:
        """log Z of the independent units."""
        each = zip(self.stack.family.layers, self.base.fields, strict=True)
        return sum(float(layer.log_normaliser(fields[None])[0]) for layer, fields in each)

    def require_memory(self, n_walkers: int) -> None:
        """Raise unless so many walkers fit."""
        columns = sum(layer.width for layer in self.stack.family.layers)
        require_memory(
            32.0 * n_walkers * columns + 16.0 * self.stack.theta.size,
            f"annealing {n_walkers} walkers of {columns} columns",
            "use fewer walkers",
        )

    def draw_base(self, n_rows: int, rng: np.random.Generator) -> np.ndarray:
        """Draw values of the independent units."""
        return self.units.draw_base(n_rows, rng)

    def features(self, x: np.ndarray) -> np.ndarray:
        """Return what the fields of the other side need to know."""
        return self.units.features(x)

    def log_weights(self, x: np.ndarray, features: np.ndarray, place: float) -> np.ndarray:
        """Return the log-weight of each row at an inverse temperature, less the measure, which all share."""
        return self.units.log_weights(x, features, place)

    def step(self, features: np.ndarray, place: float, rng: np.random.Generator) -> np.ndarray:
        """Draw the side that is summed out and then the other, at an inverse temperature."""
        return self.units.step(features, place, rng)

    def walk(self, walkers: Groups, places: np.ndarray) -> np.ndarray:
        """Move the groups, each on a thread, or all as one on a device."""
        there = twin("layer_programs")
        return super().walk(walkers, places) if there is None else there.walk(self.units, walkers, places)

    def exchanged(
        self, walkers: list[Groups], places: np.ndarray, n_sweeps: int, numbers: range, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Move the walkers place by place, or all as one on a device."""
        there = twin("layer_programs")
        if there is None:
            return super().exchanged(walkers, places, n_sweeps, numbers, rng)
        return there.exchanged(self.units, walkers, places, n_sweeps, numbers, rng)

    # -- states of the even layers ------------------------------------------------------------------------------------
    @property
    def _even(self) -> list[Units]:
        return [self.stack.family.layers[place] for place in self.stack.family.sides[0]]

    def encode(self, states: np.ndarray) -> list[np.ndarray]:
        """Return the values of the even layers in rows of codes of these."""
        places = spans(layer.n_units for layer in self._even)
        return [
            np.asarray(layer.encode(states[:, at]), np.float64) for layer, at in zip(self._even, places, strict=True)
        ]

    def decode(self, even: Sequence[np.ndarray]) -> np.ndarray:
        """Return rows of codes of the even layers."""
        return np.hstack([codes_of(layer, part) for layer, part in zip(self._even, even, strict=True)])

    def enter(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return values of walkers at states of the even layers, or drawn given them."""
        values = self.stack.family.spread_side(0, self.encode(states))
        if self.units.walked == 1:
            values = self.stack.family.draw_side(self.stack.parts, 1, values, rng)
        return np.asarray(_beside(values[self.units.walked :: 2]), np.float64)

    def leave(self, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return states of the even layers, drawn given the others where walkers have values of these."""
        units = self.units
        parts = units.split(values, units.walked)
        if units.walked == 1:
            parts = units.family.draw_side(self.stack.parts, 0, units.family.spread_side(1, parts), rng)[::2]
        return self.decode(parts)

    def check_states(self, states: Tensor, what: str) -> np.ndarray:
        """Return states as an array, or say why the even layers do not have them."""
        given, n_units = np.asarray(states), sum(layer.n_units for layer in self._even)
        if given.ndim != 2 or given.shape[1] != n_units:
            raise ArgumentError(f"{what} has shape {given.shape}", f"give rows of {n_units} visible units")
        for layer, at in zip(self._even, spans(layer.n_units for layer in self._even), strict=True):
            bad, allowed = refused(layer, given[:, at])
            if bad.any():
                row, unit = np.argwhere(bad)[0]
                value = given[row, at][unit]
                raise ArgumentError(f"{what} holds {value} for unit {at.start + unit}", f"units take {allowed}")
        return given

    def rows_of(self, data: Dataset, numbers: np.ndarray) -> np.ndarray:
        """Return some of the data's states, which must be complete, and show all that walkers start at."""
        if len(self._even) > 1 or self.stack.family != self.model.family:
            raise ArgumentError("data show one layer only, not all that annealing back starts at", "start from chains")
        data.require_complete("annealing from data")
        return self.check_states(data.states, "samples")[numbers]

    def exact_draws(self, n_walkers: int, rng: np.random.Generator) -> np.ndarray:
        """Draw states of the even layers."""
        answers: Any = exact(self.stack)
        return self.decode(answers.sample_layers(n_walkers, rng)[::2])

    def chains(self, n_walkers: int, rng: np.random.Generator, burn_in: int) -> tuple[np.ndarray, str]:
        """Return states at the end of chains from the independent units."""
        even, sampler = LayerPath(self.model, self.stack, self.base), BlockGibbs()
        begun = even.units.split(even.draw_base(n_walkers, rng), 0)
        chains = sampler.init(self.stack, n_walkers, rng, begun)
        values = sampler.step(self.stack, chains, rng, burn_in)[0].values
        return self.decode(values), f"{n_walkers} Gibbs chains of {burn_in} steps"
