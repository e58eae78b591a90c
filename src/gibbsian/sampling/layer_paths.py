"""The path between independent units and a machine in layers, one side of it summed out of all weights.

At inverse temperature beta the fields of a layer are ``(1 - beta) * base + beta * (biases + inputs)``: at 0 the units
are independent with the base's fields, at 1 they are the machine. Measures of Gaussian units stay the same. Walkers are
rows of a matrix, the columns of the layers of one side next to each other, so a step is matrix products (Salakhutdinov
and Murray 2008); the weights are those of one side with the other summed out (Yasuda and Takahashi 2022), which vary
less than those of both. The sides are the even and the odd layers (Salakhutdinov and Hinton 2009).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple, TypeVar, cast

import numpy as np

from gibbsian.arrays import Floats, Integers, Slice, States, Tensor
from gibbsian.backends.device import layer_kernels, library_of, twin
from gibbsian.backends.threads import map_ordered
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.inference import exact
from gibbsian.inference.layer_sums import LayerSumAnswers
from gibbsian.models.base import Layered, Model, StackParts, Units
from gibbsian.models.layers.stack import StackFamily, top_of
from gibbsian.models.layers.units import idle_means, mean_values, refused, spread
from gibbsian.progress import counted
from gibbsian.resources import require_memory, spans
from gibbsian.rng import Key, RandomState, Words
from gibbsian.sampling.base import Chains, Kernel
from gibbsian.sampling.layers import RowStreams, decoded, seed_of
from gibbsian.sampling.paths import Path
from gibbsian.sampling.walks import STRETCH, WALKS, Ratios, Walk, uniform_logs

L = TypeVar("L", bound=Layered)

# Base rates are moved this far towards those of units without fields: what the data never show the model may.
SHRINKAGE = 0.01
# Rows from which base rates are taken.
RATE_ROWS = 4096
# Walkers to the machine and their steps, from whose ends its base rates are taken where there are no data.
RATE_WALKERS, RATE_STEPS = 100, 100
# The odd layers and the even ones, by the lowest of each.
SIDES = ("visible", "hidden")
# Rows of a matrix are moved in this many groups, of this many at least, whatever the number of threads.
MAX_GROUPS, MIN_WALKERS = 16, 25


@dataclass(frozen=True, eq=False)
class LayerPath(Path):
    """The path from independent units to a machine in layers.

    Parameters
    ----------
    model, family, knots, log_partition
        As of `Path`; the family is a stack, of a belief network the machine at the top.
    summed : {0, 1}
        The side that is summed out of all weights: 0 for the even layers, 1 for the odd ones.
    """

    summed: int = 1

    @property
    def stack(self) -> StackFamily:
        """The layers."""
        return cast("StackFamily", self.family)

    @property
    def max_beta(self) -> float:  # type: ignore[override]
        """The machine itself where units are real numbers: beyond it these may have no distribution."""
        return 1.0 if self.family.variables.real else 4.0

    @cached_property
    def units(self) -> PathUnits:
        """The layers along the path, with two knots and no weights at the first."""
        base, end = (self.stack.split(theta) for theta in self.knots)
        return PathUnits(self.stack, end, base.biases, 1 - self.summed)

    def log_weights(self, states: States, betas: Floats) -> Floats:
        """Return the log-weight of each state at some inverse temperatures, one side summed out."""
        family, values, side = self.stack, self.stack.encode(states), 1 - self.summed
        thetas = (self.theta(beta) for beta in betas.tolist())
        return np.array([family.log_weights_of_side(family.split(theta), side, values) for theta in thetas])

    def reverses(self, falling: bool) -> bool:
        """Whether the even layers come first: the side that is summed out does, both ways."""
        return self.summed == 0

    def chains_at(self, rows: object, key: Key, name: str = "states") -> Chains:
        """Put a chain at each row of all units, or of the even layers; the odd layers are then drawn given these."""
        family, given = self.stack, np.asarray(rows)
        layers = list(enumerate(family.layers))
        n_all, n_even = len(family.variables), sum(layer.n_units for layer in family.layers[::2])
        complete = given.ndim == 2 and given.shape[1] == n_all
        if not complete and (given.ndim != 2 or given.shape[1] != n_even):
            raise ArgumentError(f"{name} has shape {given.shape}", f"give rows of {n_even} visible units")
        shown = layers if complete else layers[::2]
        states = cast("States", np.zeros((len(given), n_all), np.float64 if family.variables.real else np.int8))
        places = spans(layer.n_units for layer in family.layers)
        for (place, layer), at in zip(shown, spans(layer.n_units for _, layer in shown), strict=True):
            bad, allowed = refused(layer, given[:, at])
            if bad.any():
                row, unit = np.argwhere(bad)[0]
                value = given[row, at][unit]
                raise ArgumentError(f"{name} holds {value} for unit {at.start + unit}", f"units take {allowed}")
            # probabilities of units go to the likelier value
            states[:, places[place]] = given[:, at] if layer.variables.real else np.rint(given[:, at])
        streams = key.chains(len(states))
        if not complete:
            parts = family.split(self.knots[-1])
            values = family.draw_side(parts, 1, family.encode(states), RowStreams.of(streams))
            states = decoded(family, values)
        return Chains(states, streams)

    def rows_of(self, data: Dataset, numbers: Integers) -> States:
        """Return some of the rows of data, which must be complete, and show all that walkers start at."""
        if len(self.stack.layers) > 2 or self.stack != self.model.family:
            raise ArgumentError("data show one layer only, not all that annealing back starts at", "start from chains")
        data.require_complete("annealing from data")
        return data.states[numbers]

    def exact_rows(self, n_rows: int, rng: np.random.Generator) -> States:
        """Draw rows of all units exactly."""
        answers = cast("LayerSumAnswers", exact(Model(self.stack, self.knots[-1])))
        return decoded(self.stack, answers.sample_layers(n_rows, rng))

    def rows(self, states: States) -> States:
        """Return the states themselves: rows of all units of the stack."""
        return states

    def require_memory(self, n_chains: int) -> None:
        """Raise unless so many walkers fit."""
        columns = sum(layer.width for layer in self.stack.layers)
        require_memory(
            32.0 * n_chains * columns + 16.0 * self.knots.shape[1],
            f"annealing {n_chains} walkers of {columns} columns",
            "use fewer walkers",
        )


def layer_path(
    model: Model[L], base: object = "chains", summed: str = "auto", random_state: RandomState = None
) -> LayerPath:
    """Return the path of inverse temperatures from independent units to a machine in layers.

    Parameters
    ----------
    model : Model of a Layered family
        The end; of a belief network the machine at the top.
    base : str, Dataset or ndarray, default "chains"
        The independent units at inverse temperature 0: those with the base rates of data, or of walkers annealed to
        the machine (``"chains"``), or with the visible biases and what idle hidden units add (``"biases"``), or without
        fields (``"uniform"``), or with the given fields, one layer after the other.
    summed : {"auto", "hidden", "visible"}, default "auto"
        The side that is summed out analytically, the odd layers or the even ones: ``"auto"`` takes the hidden layer of
        a restricted machine, and of others the side with more columns.
    random_state : None, int or Generator
        Source of randomness for ``base="chains"``.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> weights = np.random.default_rng(0).normal(size=(8, 5))
    >>> rbm = gb.models.StackFamily((gb.models.BinaryUnits(8), gb.models.BinaryUnits(5))).build(weights=[weights])
    >>> path = gb.sampling.layer_path(rbm, summed="visible", random_state=0)
    >>> run = gb.sampling.Annealing(betas=1000).forward(path, random_state=1)
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
    return _path(model, stack, base_fields(stack, base, random_state), SIDES.index(summed))


def _path(model: Model[L], stack: Model[StackFamily], fields: Floats, summed: int = 1) -> LayerPath:
    start = np.zeros(stack.theta.size)
    start[: fields.size] = fields  # biases of all layers come first
    biases = zip(stack.family.layers, stack.family.split(start).biases, strict=True)
    log_partition = sum(float(layer.log_normaliser(own[None])[0]) for layer, own in biases)
    knots = np.stack([start, np.asarray(stack.theta, np.float64)])
    return LayerPath(cast("Model[Layered]", model), stack.family, knots, log_partition, summed)


# -- fields of the independent units at the beginning ------------------------------------------------------------------
def base_fields(stack: Model[StackFamily], base: object, random_state: RandomState = None) -> Floats:
    """Return the fields of independent units, one layer after the other (see `layer_path`)."""
    family, width = stack.family, sum(layer.width for layer in stack.family.layers)
    if isinstance(base, np.ndarray):
        if base.shape != (width,):
            raise ArgumentError(f"base has {base.size} fields", f"the machine has {width}")
        return np.asarray(base, np.float64)
    if isinstance(base, Dataset):
        some = np.linspace(0, len(base.weights) - 1, min(len(base.weights), RATE_ROWS)).astype(np.int64)
        shares = base.weights[some] / base.weights[some].sum()
        return fields_of_values(stack, [filled_values(family.layers[0], base, some)], shares)
    if isinstance(base, str) and base == "chains":
        # annealed from units without fields they end in many modes; chains from the biases would stay in one
        key, path = Key.of(random_state), _path(stack, stack, np.zeros(width))
        walk = LayerWalk(path, path.kernel())
        ends, _ = walk.anneal(path.start(RATE_WALKERS, key), np.linspace(0.0, 1.0, RATE_STEPS + 1))
        values = family.means_of_side(stack.parts, 0, family.encode(ends.states))
        return fields_of_values(stack, values[::2])
    if isinstance(base, str) and base in ("biases", "uniform"):
        fields = [np.zeros(layer.width) for layer in family.layers]
        idle = [idle_means(layer)[None] for layer in family.layers]
        for place in family.sides[0] if base == "biases" else ():
            fields[place] = family.fields(stack.parts, place, idle)[0].astype(np.float64)
        return np.concatenate(fields)
    raise ArgumentError(
        "is not known", "use 'chains', 'biases', 'uniform', a Dataset or fields", argument="base", value=base
    )


def fields_of_values(stack: Model[StackFamily], even: Sequence[Floats], shares: Floats | None = None) -> Floats:
    """Return the fields with the base rates of values of the even layers, and of the odd ones given them."""
    family = stack.family
    shares = np.full(len(even[0]), 1.0 / len(even[0])) if shares is None else shares
    values = family.means_of_side(stack.parts, 1, family.spread_side(0, even))
    fields = []
    for layer, part in zip(family.layers, values, strict=True):
        mean = (1.0 - SHRINKAGE) * (shares @ np.asarray(part, np.float64)) + SHRINKAGE * idle_means(layer)
        fields.append(np.asarray(layer.fields_of(mean), np.float64))
    return np.concatenate(fields)


def filled_values(layer: Units, data: Dataset, numbers: Integers) -> Floats:
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
    base: Sequence[Tensor]
    walked: int

    @cached_property
    def columns(self) -> list[list[Slice]]:
        """The columns of each layer of both sides, side by side."""
        return [spans(self.family.layers[place].width for place in side) for side in self.family.sides]

    def split(self, columns: Tensor, side: int) -> list[Tensor]:
        """Return the columns of each layer of a side."""
        return [columns[:, at] for at in self.columns[side]]

    def offsets(self, place: int, beta: Tensor | float) -> Tensor:
        """Return the fields of a layer before its neighbours' part."""
        return (1.0 - beta) * self.base[place] + beta * self.parts.biases[place]

    def features(self, x: Tensor) -> Tensor:
        """Return the inputs of the side that is summed out."""
        return self._inputs(1 - self.walked, self.split(x, self.walked))

    def log_weights(self, x: Tensor, features: Tensor, place: Tensor | float) -> Tensor:
        """Return the log-weight of each row at an inverse temperature, less the measure, which all share."""
        family, summed = self.family, 1 - self.walked
        total = layer_kernels(x).dot(x, _beside([self.offsets(at, place) for at in family.sides[self.walked]]))
        for at, own in zip(family.sides[summed], self.split(features, summed), strict=True):
            total = total + family.layers[at].log_normaliser(self.offsets(at, place) + place * own)
        return total

    def add_growth(self, sums: Tensor, x: Tensor, features: Tensor, ends: tuple[Tensor, Tensor]) -> None:
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

    def step(self, features: Tensor, place: Tensor | float, rng: np.random.Generator) -> Tensor:
        """Draw the side that is summed out and then the other, at an inverse temperature."""
        summed = self.draw(1 - self.walked, features, place, rng)
        return self.draw(self.walked, self._inputs(self.walked, self.split(summed, 1 - self.walked)), place, rng)

    def _inputs(self, side: int, others: list[Tensor]) -> Tensor:
        values = self.family.spread_side(1 - side, others)
        return _beside([self.family.fields(self.parts, place, values, bias=False) for place in self.family.sides[side]])

    def draw(self, side: int, inputs: Tensor, beta: Tensor | float, rng: np.random.Generator) -> Tensor:
        """Draw one side given its inputs, at an inverse temperature."""
        layers, draw = self.family.layers, layer_kernels(inputs).draw_along
        each = zip(self.family.sides[side], self.split(inputs, side), strict=True)
        biases = self.parts.biases
        return _beside([draw(layers[at], own, biases[at], self.base[at], beta, rng) for at, own in each])


def _beside(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else library_of(parts[0]).concatenate(parts, -1)


# -- walks ------------------------------------------------------------------------------------------------------------
class Walkers(NamedTuple):
    """Walkers: values of the side that is walked, what the other side's fields need to know of them, and streams."""

    values: Floats
    inputs: Floats
    streams: Words


@WALKS.register("stack")
class LayerWalk(Walk):
    """A walk of rows of a matrix, in groups on threads or all as one on a device.

    A step hands the inputs of the side that is summed out on to the weights: they share one product.
    """

    def __init__(self, path: LayerPath, kernel: Kernel):
        super().__init__(path, kernel)
        self.units, self.family, self.walked = path.units, path.stack, 1 - path.summed

    def enter(self, chains: Chains) -> Walkers:
        """Return the walkers of chains."""
        values = np.ascontiguousarray(_beside(self.family.encode(chains.states)[self.walked :: 2]), np.float64)
        return Walkers(values, self.units.features(values), chains.streams.copy())

    def leave(self, rows: Walkers, beta: float, n_sweeps: int) -> Chains:
        """Return chains, the side that is summed out drawn given the other at an inverse temperature."""
        summed = self.units.draw(1 - self.walked, rows.inputs, beta, RowStreams.of(rows.streams))
        sides = self.units.split(rows.values, self.walked), self.units.split(summed, 1 - self.walked)
        values: list[Tensor] = [np.empty(0)] * len(self.family.layers)
        values[self.walked :: 2], values[1 - self.walked :: 2] = sides
        return Chains(decoded(self.family, values), rows.streams, n_sweeps)

    def step(self, rows: Walkers, beta: float) -> Walkers:
        """Draw the side that is summed out and then the other, at an inverse temperature."""
        values = self.units.step(rows.inputs, beta, RowStreams.of(rows.streams))
        return Walkers(values, self.units.features(values), rows.streams)

    def growth(self, rows: Walkers, before: float, after: float) -> Floats:
        """Return the increase of each row's log-weight from one inverse temperature to another."""
        weights = self.units.log_weights
        return weights(rows.values, rows.inputs, after) - weights(rows.values, rows.inputs, before)

    def groups(self, n_chains: int) -> list[Slice]:
        """Return the groups of rows whose products are made apart, whatever the number of threads."""
        size = max(MIN_WALKERS, -(-n_chains // MAX_GROUPS))
        starts = [start for start in range(0, n_chains, size) if not start or 2 * (n_chains - start) > size]
        # a small rest goes with those before it
        return [slice(*ends) for ends in pairwise([*starts, n_chains])]

    def anneal(self, chains: Chains, betas: Floats, reported: bool = False) -> tuple[Chains, Floats]:
        """Do what `anneal` does: groups on threads, one where nothing is reported, or all rows on a device."""
        ends = [*range(0, len(betas) - 1, STRETCH), len(betas) - 1]
        stretches: Iterator[Floats] = iter([betas[start : end + 1] for start, end in pairwise(ends)])
        if reported:
            stretches = counted(stretches, "annealing", len(ends) - 1)
        last, n_sweeps = float(betas[-1]), chains.n_sweeps + len(betas) - 1
        if (there := twin("layer_programs")) is not None:
            rows = self.enter(chains)
            values, grown = there.walk(self.units, rows.values, stretches, seed_of(rows.streams))
            return self.leave(Walkers(values, self.units.features(values), rows.streams), last, n_sweeps), grown
        groups = self.groups(len(chains.states)) if reported else [slice(0, len(chains.states))]
        parts, increases = [self.enter(chains.take(group)) for group in groups], np.zeros(len(chains.states))
        for stretch in stretches:
            moved = list(map_ordered(partial(self._go, stretch), parts))
            parts = [part for part, _ in moved]
            increases += np.concatenate([grown for _, grown in moved])
        each = [self.leave(part, last, n_sweeps) for part in parts]
        states = cast("States", np.concatenate([end.states for end in each]))
        return Chains(states, np.concatenate([end.streams for end in each]), n_sweeps), increases

    def _go(self, betas: Floats, rows: Walkers) -> tuple[Walkers, Floats]:
        """Move a group of walkers; transitions are reversible, so that the way back is made of the same steps."""
        increases = np.zeros(len(rows.values))
        for before, beta in pairwise(betas.tolist()):
            if beta < before:
                rows = self.step(rows, before)
            if beta != before:
                increases += self.growth(rows, before, beta)
            if beta >= before:
                rows = self.step(rows, beta)
        return rows, increases

    def exchange(
        self, ladder: Sequence[Chains], betas: Floats, numbers: range, key: Key, n_sweeps: int
    ) -> tuple[list[Chains], Ratios]:
        """Do what `exchange` does, in rounds with these numbers."""
        rungs, done = [self.enter(chains) for chains in ladder], ladder[0].n_sweeps + n_sweeps * len(numbers)
        n_gaps, n_chains = len(betas) - 1, len(rungs[0].values)
        if (there := twin("layer_programs")) is not None:
            values = np.stack([rows.values for rows in rungs])
            values, (down, up) = there.exchange(self.units, values, betas, n_sweeps, numbers, key.philox()[0] >> 1)
            rungs = [
                Walkers(own, self.units.features(own), rows.streams) for own, rows in zip(values, rungs, strict=True)
            ]
            ratios = Ratios(up[:-1], down[1:])
        else:
            log_uniforms = uniform_logs(key, len(numbers), n_gaps, n_chains)
            ratios = Ratios(np.empty((n_gaps, len(numbers), n_chains)), np.empty((n_gaps, len(numbers), n_chains)))
            for t, number in enumerate(numbers):
                moved = map_ordered(lambda rung: self._sweeps(*rung, n_sweeps), zip(rungs, betas.tolist(), strict=True))
                rungs = list(moved)
                for k, (low, high) in enumerate(pairwise(betas.tolist())):
                    ratios.up[k, t] = self.growth(rungs[k], low, high)
                    ratios.down[k, t] = self.growth(rungs[k + 1], high, low)
                for k in range(number % 2, n_gaps, 2):
                    taken = log_uniforms[t, k] < ratios.up[k, t] + ratios.down[k, t]
                    for lower, upper in zip(rungs[k][:2], rungs[k + 1][:2], strict=True):
                        lower[taken], upper[taken] = upper[taken], lower[taken]
        return [self.leave(rows, float(beta), done) for rows, beta in zip(rungs, betas, strict=True)], ratios

    def _sweeps(self, rows: Walkers, beta: float, n_sweeps: int) -> Walkers:
        for _ in range(n_sweeps):
            rows = self.step(rows, beta)
        return rows
