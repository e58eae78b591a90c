"""The path between independent units and a machine in layers, one side of it summed out of all weights.

At inverse temperature beta the fields of both layers are ``(1 - beta) * base + beta * (bias + W . other) / T``: at 0
the units are independent with the base's fields, at 1 they are the machine. Measures of Gaussian units stay the same.
Walkers are rows of a matrix, so a step is two matrix products (Salakhutdinov and Murray 2008); the weights are those of
one layer with the other summed out (Yasuda and Takahashi 2022), which vary less than those of both. A deep machine goes
as the restricted one that it is, its even layers against its odd ones (Salakhutdinov and Hinton 2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.inference import exact
from gibbsian.models.layers import Layer, mean_values
from gibbsian.models.restricted import RestrictedModel
from gibbsian.resources import require_memory
from gibbsian.rng import RandomState, as_generator
from gibbsian.samplers.block_gibbs import BlockGibbs
from gibbsian.samplers.paths import Groups, SteppedPath

# Base rates are moved this far towards those of units without fields: what the data never show the model may.
SHRINKAGE = 0.01
# Rows from which base rates are taken.
RATE_ROWS = 4096
# Walkers to the machine and their steps, from whose ends its base rates are taken where there are no data.
RATE_WALKERS, RATE_STEPS = 100, 100
SIDES = ("hidden", "visible")


@dataclass(frozen=True, eq=False)
class IndependentUnits:
    """Fields of both layers when the units are independent: where paths begin.

    Parameters
    ----------
    visible, hidden : ndarray
        Fields of the two layers' columns.
    """

    visible: np.ndarray
    hidden: np.ndarray

    @classmethod
    def from_values(
        cls, machine: RestrictedModel, values: np.ndarray, shares: np.ndarray | None = None
    ) -> IndependentUnits:
        """Take the base rates of rows of visible values, and of the hidden units given them."""
        shares = np.full(len(values), 1.0 / len(values)) if shares is None else shares
        means = shares @ np.asarray(values, np.float64), shares @ np.asarray(machine.hidden_means(values), np.float64)
        return cls(*(_fields(layer, mean) for layer, mean in zip(machine.tempered, means, strict=True)))

    @classmethod
    def of_data(cls, machine: RestrictedModel, data: Dataset) -> IndependentUnits:
        """Take the base rates of data."""
        some = np.linspace(0, len(data.weights) - 1, min(len(data.weights), RATE_ROWS)).astype(np.int64)
        shares = data.weights[some] / data.weights[some].sum()
        return cls.from_values(machine, filled_values(machine.visible, data, some), shares)

    @classmethod
    def of_chains(cls, machine: RestrictedModel, rng: RandomState = None) -> IndependentUnits:
        """Take the base rates where walkers end that are annealed from units without fields: in many modes.

        Chains from the visible biases would stay in the one mode that these lead to.
        """
        generator = as_generator(rng)
        path = LayerPath(machine, machine, cls.uniform(machine))
        walkers = path.from_base(RATE_WALKERS, generator)
        path.walk(walkers, np.linspace(0.0, 1.0, RATE_STEPS + 1))
        ends = np.concatenate(walkers.values)
        return cls.from_values(machine, machine.visible_means(machine.draw_hidden(ends, generator)))

    @classmethod
    def biases(cls, machine: RestrictedModel) -> IndependentUnits:
        """Take the fields of the visible units when hidden ones have none, which have none themselves."""
        idle = machine.hidden.means(np.zeros((1, machine.hidden.width)))[0]
        visible = (machine.visible_biases + machine.weights @ idle).astype(np.float64) / machine.temperature
        return cls(visible, np.zeros(machine.hidden.width))

    @classmethod
    def uniform(cls, machine: RestrictedModel) -> IndependentUnits:
        """Take units without fields."""
        return cls(np.zeros(machine.visible.width), np.zeros(machine.hidden.width))


def _fields(layer: Layer, means: np.ndarray) -> np.ndarray:
    nothing = layer.means(np.zeros((1, layer.width)))[0]
    return np.asarray(layer.fields_of((1.0 - SHRINKAGE) * means + SHRINKAGE * nothing), np.float64)


def filled_values(layer: Layer, data: Dataset, numbers: np.ndarray) -> np.ndarray:
    """Return the values of some states, with the mean of the column in missing cells: base rates stay as they are."""
    states = data.states[numbers]
    if data.missing is None:
        return layer.encode(states)
    missing = data.missing[numbers]
    values = layer.encode(np.where(missing, states.dtype.type(0), states))
    return np.where(layer.spread(missing), mean_values(layer, data), values)


def as_units(base: Any, machine: RestrictedModel, rng: RandomState = None) -> IndependentUnits:
    """Return the independent units of a name, of data, or as given."""
    if isinstance(base, IndependentUnits):
        if base.visible.shape != (machine.visible.width,) or base.hidden.shape != (machine.hidden.width,):
            raise ArgumentError(
                f"base has {base.visible.size} visible and {base.hidden.size} hidden fields",
                f"the machine has {machine.visible.width} and {machine.hidden.width}",
            )
        return base
    if isinstance(base, Dataset):
        return IndependentUnits.of_data(machine, base)
    if isinstance(base, str) and base == "chains":
        return IndependentUnits.of_chains(machine, rng)
    if isinstance(base, str) and base in ("biases", "uniform"):
        return getattr(IndependentUnits, base)(machine)
    raise ArgumentError(
        "is not known", "use 'chains', 'biases', 'uniform', a Dataset or IndependentUnits", argument="base", value=base
    )


def layer_path(model: Any, base: Any = "chains", summed: str = "auto", rng: RandomState = None) -> LayerPath:
    """Return the path of inverse temperatures from independent units to a machine in layers.

    Parameters
    ----------
    model : RestrictedModel, DeepModel or BeliefNetwork
        The end; of a belief network the machine at the top.
    base : str, Dataset or IndependentUnits, default "chains"
        The independent units at inverse temperature 0: those with the base rates of data, or of walkers annealed to
        the machine (``"chains"``), or with the visible biases and what idle hidden units add (``"biases"``), or without
        fields (``"uniform"``).
    summed : {"auto", "hidden", "visible"}, default "auto"
        The side that is summed out analytically: ``"auto"`` takes the hidden layer of a restricted machine, and of
        others, whose even layers are the visible side and whose odd ones the hidden one, the side with more columns.
    rng : None, int or Generator
        Source of randomness for ``base="chains"``.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> weights = np.random.default_rng(0).normal(size=(8, 5))
    >>> layers = gb.models.BinaryLayer(8), gb.models.BinaryLayer(5)
    >>> rbm = gb.models.RestrictedModel.build(*layers, weights=weights)
    >>> path = gb.samplers.layer_path(rbm, summed="visible", rng=0)
    >>> run = gb.samplers.Annealing(betas=1000).forward(path, rng=1)
    >>> abs(run.log_partition - gb.inference.exact(rbm).log_partition) < 3 * run.log_partition_stderr < 0.1
    True
    """
    if summed not in ("auto", *SIDES):
        raise ArgumentError("is not known", "use 'auto', 'hidden' or 'visible'", argument="summed", value=summed)
    machine = model.folded()
    if summed == "auto":
        wider = machine is not model and machine.visible.width > machine.hidden.width
        summed = "visible" if wider else "hidden"
    return LayerPath(model, machine, as_units(base, machine, rng), summed)


@dataclass(frozen=True, eq=False)
class LayerPath(SteppedPath):
    """The path from independent units to a machine in layers.

    Parameters
    ----------
    model : RestrictedModel, DeepModel or BeliefNetwork
        The end.
    machine : RestrictedModel
        The model folded. States of the path are states of its visible layer.
    base : IndependentUnits
        The beginning.
    summed : {"hidden", "visible"}
        The layer that is summed out; walkers have values of the other.
    """

    model: Any
    machine: RestrictedModel
    base: IndependentUnits
    summed: str = "hidden"

    # -- weights and steps --------------------------------------------------------------------------------------------
    @cached_property
    def _oriented(self) -> RestrictedModel:
        """The machine whose hidden layer is the one that is summed out."""
        return self.machine if self.summed == "hidden" else self.machine.transposed()

    @cached_property
    def _units(self) -> tuple[_PathUnits, _PathUnits]:
        """The layer that walkers have values of, and the one that is summed out."""
        machine, bases = self._oriented, (self.base.visible, self.base.hidden)
        walked, summed = bases if self.summed == "hidden" else bases[::-1]
        return (
            _PathUnits(machine.tempered[0], walked, machine.visible_biases / machine.temperature),
            _PathUnits(machine.tempered[1], summed, machine.hidden_biases / machine.temperature),
        )

    @cached_property
    def _weights(self) -> np.ndarray:
        return np.asarray(self._oriented.weights, np.float64) / self.machine.temperature

    @property
    def coldest(self) -> float:
        """The machine itself where units are real numbers: beyond it these may have no distribution."""
        return 1.0 if "gaussian" in (self.machine.visible.kind, self.machine.hidden.kind) else super().coldest

    @property
    def log_base_partition(self) -> float:
        """log Z of the independent units."""
        return sum(units.log_base_partition for units in self._units)

    def require_memory(self, n_walkers: int) -> None:
        """Raise unless so many walkers fit."""
        columns = self.machine.visible.width + self.machine.hidden.width
        require_memory(
            32.0 * n_walkers * columns + 16.0 * self.machine.theta.size,
            f"annealing {n_walkers} walkers of {columns} columns",
            "use fewer walkers",
        )

    def draw_base(self, n_rows: int, rng: np.random.Generator) -> np.ndarray:
        """Draw values of the independent units."""
        walked = self._units[0]
        return walked.draw(np.zeros((n_rows, walked.layer.width)), 0.0, rng)

    def features(self, x: np.ndarray) -> np.ndarray:
        """Return ``x W / T``: what the fields of the other layer need to know."""
        return x @ self._weights

    def log_weights(self, x: np.ndarray, features: np.ndarray, place: float) -> np.ndarray:
        """Return the log-weight of each row at an inverse temperature, less the measure, which all share."""
        walked, summed = self._units
        return x @ walked.offsets(place) + summed.log_sums(features, place)

    def step(self, features: np.ndarray, place: float, rng: np.random.Generator) -> np.ndarray:
        """Draw the layer that is summed out and then the other, at an inverse temperature."""
        walked, summed = self._units
        return walked.draw(summed.draw(features, place, rng) @ self._weights.T, place, rng)

    def walk(self, walkers: Groups, places: np.ndarray) -> np.ndarray:
        """Move the groups, each on a thread, or all as one on a device."""
        there = twin("layers")
        if there is None:
            return super().walk(walkers, places)
        return there.walk(self._units, self._weights, walkers, places)

    def exchanged(
        self, walkers: list[Groups], places: np.ndarray, n_sweeps: int, numbers: range, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Move the walkers place by place, or all as one on a device."""
        there = twin("columns")
        if there is None:
            return super().exchanged(walkers, places, n_sweeps, numbers, rng)
        return there.exchanged(self._units, self._weights, walkers, places, n_sweeps, numbers, rng)

    # -- states of the visible side -----------------------------------------------------------------------------------
    def enter(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return values of walkers at states of the visible side, or drawn given them."""
        values = self.machine.visible.encode(states)
        return values if self.summed == "hidden" else np.asarray(self.machine.draw_hidden(values, rng), np.float64)

    def leave(self, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return states of the visible side, drawn given the other where walkers have values of that."""
        visible = values if self.summed == "hidden" else self._oriented.draw_hidden(values, rng)
        return self.machine.visible.decode(visible)

    def check_states(self, states: Any, what: str) -> np.ndarray:
        """Return states as an array, or say why the visible side does not have them."""
        given, layer = np.asarray(states), self.machine.visible
        if given.ndim != 2 or given.shape[1] != layer.n_units:
            raise ArgumentError(f"{what} has shape {given.shape}", f"give rows of {layer.n_units} visible units")
        refused, allowed = layer.refused(given)
        if refused.any():
            row, unit = np.argwhere(refused)[0]
            raise ArgumentError(f"{what} holds {given[row, unit]} for unit {unit}", f"units take {allowed}")
        return given

    def rows_of(self, data: Dataset, numbers: np.ndarray) -> np.ndarray:
        """Return some of the data's states, which must be complete, and show all that walkers start at."""
        if self.machine is not self.model:
            raise ArgumentError("data show one layer only, not all that annealing back starts at", "start from chains")
        data.require_complete("annealing from data")
        return self.check_states(data.states, "samples")[numbers]

    def exact_draws(self, n_walkers: int, rng: np.random.Generator) -> np.ndarray:
        """Draw states of the visible side of the folded machine."""
        return exact(self.machine).sample(n_walkers, rng)

    def chains(self, n_walkers: int, rng: np.random.Generator, burn_in: int) -> tuple[np.ndarray, str]:
        """Return states at the end of chains from the independent units."""
        visible, sampler = LayerPath(self.model, self.machine, self.base), BlockGibbs()
        chains = sampler.init(self.machine, n_walkers, rng, visible.draw_base(n_walkers, rng))
        values = sampler.step(self.machine, chains, rng, burn_in)[0].values
        return self.machine.visible.decode(values), f"{n_walkers} Gibbs chains of {burn_in} steps"


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
