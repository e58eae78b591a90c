"""The path of inverse temperatures from independent variables to a model, as the kernels want it.

Pairs of two-valued variables go as spins, every other model as its tables of factors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsian.backends.device import here, twin
from gibbsian.backends.numba import annealing as kernels
from gibbsian.backends.parallel import in_slices
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.factors import FactorGraph
from gibbsian.models.ising import is_ising
from gibbsian.old_sampling.independent import IndependentVariables, as_independent
from gibbsian.old_sampling.paths import Path
from gibbsian.old_sampling.plans import by_rank
from gibbsian.resources import require_memory
from gibbsian.rng import chain_streams

# Temperatures that one call of a kernel goes through: between calls a run can be interrupted, and what is kept up to
# date within one is summed afresh, so that rounding does not pile up.
TEMPERATURES_A_CALL = 256


@dataclass
class Walkers:
    """Codes of walkers, and the random stream of each."""

    codes: np.ndarray
    streams: np.ndarray

    def cut(self) -> list[Walkers]:
        """Return them in groups, as kernels move them."""
        starts = range(0, len(self.codes), kernels.GROUP)
        return [Walkers(*(array[k : k + kernels.GROUP] for array in (self.codes, self.streams))) for k in starts]

    def take(self, groups: list[Walkers]) -> None:
        """Go on where such groups have come to."""
        self.codes, self.streams = (np.concatenate([getattr(g, name) for g in groups]) for name in ("codes", "streams"))


@dataclass(frozen=True)
class VariablePath(Path):
    """``f_b(x) = f(x)^b p_0(x)^(1 - b)``, marginalised over `summed`, with the kernel that walks along it.

    A walker's way depends on its own random stream only, so it is the same on any number of threads and beside any
    number of other walkers.

    Parameters
    ----------
    model : Model
        The end.
    base : IndependentVariables
        The beginning, which is normalised.
    kernel : str
        Name of what moves walkers in place and returns the increase of their log-weights. (A compiled function would be
        sent to another process as its source, and compiled there once more.)
    terms : NamedTuple of arrays
        What the kernel knows of the path.
    of_spins : bool
        Whether the kernel takes spins in the place of codes.
    constant : float
        What the kernel leaves out of ``log f - log p_0``.
    summed : ndarray of bool
        The variables that are summed out.
    """

    model: Model[Any]
    base: IndependentVariables
    kernel: str
    terms: Any
    of_spins: bool
    constant: float
    summed: np.ndarray
    _bound: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def log_base_partition(self) -> float:
        """Zero: the independent variables are normalised."""
        return 0.0

    def require_memory(self, n_walkers: int) -> None:
        """Raise unless so many walkers fit."""
        n = self.model.n_variables
        # states as int8 three times, uniform numbers for the start, streams and weights
        require_memory(
            n_walkers * (11.0 * n + 64.0), f"annealing {n_walkers} walkers of {n} variables", "use fewer walkers"
        )

    def from_base(self, n_walkers: int, rng: np.random.Generator) -> Walkers:
        """Draw walkers from the independent variables."""
        streams = chain_streams(rng, n_walkers)
        return Walkers(self.base.draw_codes(streams), streams)

    def from_states(self, states: np.ndarray, rng: np.random.Generator) -> Walkers:
        """Put a walker at each state."""
        return Walkers(self.model.variables.codes_of(states).copy(), chain_streams(rng, len(states)))

    def states_of(self, walkers: Walkers) -> np.ndarray:
        """Return the walkers' states."""
        return self.model.variables.rows_of(walkers.codes)

    def walk(self, walkers: Walkers, places: np.ndarray) -> np.ndarray:
        """Move walkers through the inverse temperatures; falling ones make the sweeps in the reverse order."""
        codes, backwards = walkers.codes, bool(places[-1] < places[0])
        increases = np.full(len(codes), (places[-1] - places[0]) * self.constant)
        numbers = 2 * codes - 1 if self.of_spins else codes
        for first in range(0, places.size - 1, TEMPERATURES_A_CALL):
            piece = places[first : first + TEMPERATURES_A_CALL + 1]
            increases += self._walked(numbers, walkers.streams, piece, backwards)
        if self.of_spins:
            codes[:] = numbers > 0
        return increases

    def _walked(self, numbers: np.ndarray, streams: np.ndarray, places: np.ndarray, backwards: bool) -> np.ndarray:
        """Move numbers through some places: slices of walkers on threads, or all of them on a device."""
        if (twins := twin("annealing")) is not None:
            key = (here(), backwards)
            if key not in self._bound:
                bind = getattr(twins, self.kernel)
                self._bound[key] = bind(self.terms, *self._groups(backwards), backwards)
            return self._bound[key](numbers, streams, places)
        sites, kernel = self._sites(backwards), getattr(kernels, self.kernel)

        def run(part: slice) -> np.ndarray:
            return kernel(numbers[part], streams[part], places, sites, backwards, self.terms)

        return np.concatenate(in_slices(run, len(numbers), float(numbers.size) * places.size, grain=kernels.GROUP))

    def log_weights_of(self, walkers: Walkers, places: np.ndarray) -> np.ndarray:
        """Return the log-weight of each state, as copies find it that walk away from there."""
        rises = np.zeros((places.size, len(walkers.codes)))
        for k in range(1, places.size):
            copies = Walkers(walkers.codes.copy(), walkers.streams.copy())
            rises[k] = rises[k - 1] + self.walk(copies, places[k - 1 : k + 1])
        return rises

    def swept(self, walkers: Walkers, place: float, n_sweeps: int, places: np.ndarray) -> np.ndarray:
        """Move walkers at a place; where nothing is summed out, log-weights are linear, and one last step has all."""
        if self.summed.any():
            return super().swept(walkers, place, n_sweeps, places)
        falls = self.walk(walkers, np.append(np.full(n_sweeps, place), place - 1.0))
        return np.outer(-places, falls)

    def exchange(self, some: Walkers, others: Walkers, which: np.ndarray) -> None:
        """Exchange codes; the streams stay."""
        some.codes[which], others.codes[which] = others.codes[which], some.codes[which]

    def _sites(self, backwards: bool) -> np.ndarray:
        kept = np.flatnonzero(~self.summed)
        # the summed-out variables come first either way: the chain of the others goes through fresh ones
        return np.concatenate([np.flatnonzero(self.summed), kept[::-1] if backwards else kept])

    def _groups(self, backwards: bool) -> tuple[np.ndarray, np.ndarray]:
        """Sites by colours, the summed-out ones as the first group, and where each group begins and ends."""
        colours = self.model.family.graph.colouring
        rank = np.where(self.summed, -colours.size, -colours if backwards else colours)
        return by_rank(rank)


def variable_path(
    model: Model[Any], base: str | IndependentVariables | Dataset = "biases", marginalise: bool = False
) -> VariablePath:
    """Return the path of inverse temperatures from independent variables to a model.

    Parameters
    ----------
    model : Model
        The end.
    base : str, IndependentVariables or Dataset, default "biases"
        The independent variables at inverse temperature 0: ``"biases"`` (what the model says of each variable when the
        others are random), ``"uniform"`` (YU20), or the base rates of data.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.grid(3, 3), [0.1] * 9, [0.4] * 12)
    >>> path = gb.old_sampling.variable_path(model, base="uniform")
    >>> run = gb.old_sampling.Annealing(betas=1000).forward(path, rng=0)
    >>> abs(run.log_partition - gb.inference.exact(model).log_partition) < 3 * run.log_partition_stderr < 0.1
    True
    """
    if marginalise:
        raise ArgumentError("pairwise annealing sums out nothing any more", "leave `marginalise` out")
    summed = np.zeros(model.n_variables, bool)
    independent = as_independent(base, model)
    path = _spin_path if is_ising(model.family) else _table_path
    return path(model, independent, summed)


def _table_path(model: Model[DiscreteFamily], base: IndependentVariables, summed: np.ndarray) -> VariablePath:
    factors = model.family.factors(model.theta)
    cells = sum(factor.table.size for factor in factors.factors)
    require_memory(8.0 * cells, f"the tables of {len(factors.factors)} factors", "use a model with smaller factors")
    return VariablePath(model, base, "anneal_codes", _table_terms(factors, base, summed), False, 0.0, summed)


def _spin_path(model: Model[Any], base: IndependentVariables, summed: np.ndarray) -> VariablePath:
    graph, fields, couplings, constant = model.family.ising(model.theta)
    half_log_odds = 0.5 * np.diff(base.log_probabilities.reshape(-1, 2), axis=1).ravel()
    indptr, heads, edges = graph.csr
    terms = kernels.SpinPath(fields, half_log_odds, indptr, heads, couplings[edges], np.zeros((0, graph.n_nodes)))
    constant += float(np.logaddexp(half_log_odds, -half_log_odds).sum())
    return VariablePath(model, base, "anneal_spins", terms, True, constant, summed)


def _table_terms(factors: FactorGraph, base: IndependentVariables, summed: np.ndarray) -> kernels.TablePath:
    """Lay factors out flat: entries variable by variable, then one for each factor that no summing touches."""
    sizes = [factor.table.size for factor in factors.factors]
    table_starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    values = np.concatenate([np.empty(0), *(np.ravel(factor.table) for factor in factors.factors)])
    untouched = [number for number, factor in enumerate(factors.factors) if not summed[list(factor.nodes)].any()]
    listed = [(number, node) for node, numbers in enumerate(factors.factors_of) for number in numbers]
    strides, others, nodes, node_strides = [], [0], [], []
    for number, own in [*listed, *((number, None) for number in untouched)]:
        scope = factors.factors[number].nodes
        steps = _strides(factors.factors[number].table.shape)
        strides.append(steps[scope.index(own)] if own is not None else 0)
        for node, step in zip(scope, steps, strict=True):
            if node != own:
                nodes.append(node)
                node_strides.append(step)
        others.append(len(nodes))
    entries = np.concatenate([[0], np.cumsum([len(numbers) for numbers in factors.factors_of])])
    order = [number for number, _ in listed] + untouched
    return kernels.TablePath(
        np.asarray(factors.cardinalities, np.int64),
        values,
        base.log_probabilities,
        base.starts,
        entries.astype(np.int64),
        table_starts[np.array(order, np.int64)],
        np.array(strides, np.int64),
        np.array(others, np.int64),
        np.array(nodes, np.int64),
        np.array(node_strides, np.int64),
    )


def _strides(shape: tuple[int, ...]) -> list[int]:
    """Distance in a flat table between neighbours along each axis."""
    return [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
