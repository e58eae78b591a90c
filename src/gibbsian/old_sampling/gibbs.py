"""Gibbs sampling: each update draws one variable from its conditional distribution given all others.

The conditional of a spin with field U is ``P(s = +1) = 1 / (1 + exp(-2 U))``. Pairs of two-valued variables become
spins once a model, and chains of codes at the door of the kernels in `backends.numba.gibbs`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from itertools import pairwise
from typing import Any, ClassVar, Concatenate, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.backends.numba import gibbs as kernels
from gibbsian.backends.numba.spin_lanes import LANES, MARGIN
from gibbsian.backends.parallel import in_slices, kept_threads
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import DiscreteFamily, Family, Model
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.old_sampling.base import SAMPLERS, SWEEPS, ChainState, SweepInfo, start_chains

# From this many chains on, running them side by side beats keeping the fields of each: on sparse graphs, on dense ones.
GROUPED_FROM, GROUPED_FROM_IF_DENSE = 8, 16
# Sites of a colour from which threads share the blocks of one chain's colour.
BLOCKWISE_FROM = 2**18
# A graph has a stencil where as many distances between neighbours leave at most this many weights for each edge's end.
MOST_WEIGHTS_AN_END = 4


M = TypeVar("M", bound=Model[Any])
P = ParamSpec("P")
R = TypeVar("R")
Pairwise = Model[PairwiseFamily]


def once_a_model(function: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
    """Keep what a function makes of a model as long as the model: chains often move one sweep at a time."""
    kept: WeakKeyDictionary[M, dict[tuple[object, ...], R]] = WeakKeyDictionary()

    @wraps(function)
    def once(model: M, *rest: P.args, **named: P.kwargs) -> R:
        known = kept.setdefault(model, {})
        if rest not in known:
            known[rest] = function(model, *rest, **named)
        return known[rest]

    return once


class _SpinForm(NamedTuple):
    """A pairwise model in spins: parameters with exact sums, couplings summed by site, and the largest field."""

    graph: Graph
    biases: np.ndarray
    couplings: np.ndarray
    sums: np.ndarray
    reach: float

    def rounded(self, weights: np.ndarray, order: np.ndarray | slice = slice(None)) -> kernels.Rounded:
        """Return whole numbers of 30 bits for couplings along some graph, and for biases in some order."""
        most = int(self.graph.degrees.max(initial=0))
        return kernels.whole_numbers(self.biases[order] - self.sums[order], weights, self.reach, most, MARGIN)


class _Sweeps(NamedTuple):
    """Working copies that a kernel changes in place, and which variables it visits."""

    states: np.ndarray
    streams: np.ndarray
    sites: np.ndarray
    held: np.ndarray | None
    n_sweeps: int

    def over_chains(self, kernel: Callable[..., int], grain: int = 1) -> int:
        """Give chains to threads, `grain` of them side by side; return the flips of all.

        ``kernel(states, streams, held)`` sweeps some of them.
        """

        def run(part: slice) -> int:
            return kernel(self.states[part], self.streams[part], None if self.held is None else self.held[part])

        return sum(in_slices(run, len(self.states), float(self.sites.size) * len(self.states) * self.n_sweeps, grain))


@SAMPLERS.register("gibbs")
@dataclass(frozen=True)
class Gibbs:
    """Gibbs sampling in the order of the variables.

    A chain's path depends on its own stream only: it is the same on any number of threads, beside any number of other
    chains, and however the sweeps are split over calls of `step`.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [30.0, 0.0], [-30.0])
    >>> sampler = gb.old_sampling.Gibbs()
    >>> chains = sampler.init(model, 3, np.random.default_rng(0))
    >>> chains, info = sampler.step(model, chains, n_sweeps=5)
    >>> chains.states.tolist(), chains.n_sweeps
    ([[1, 0], [1, 0], [1, 0]], 5)
    """

    # Whether every update picks its variable at random.
    random_scan: ClassVar[bool] = False

    def visits(self, graph: Graph, sites: np.ndarray) -> np.ndarray:
        """Return the variables in the order of a sweep."""
        return sites

    def init(
        self,
        model: Model[Family],
        n_chains: int,
        rng: np.random.Generator,
        *,
        states: np.ndarray | None = None,
        clamped: np.ndarray | None = None,
    ) -> ChainState:
        """Start chains at `states`, or at uniformly random ones.

        Parameters
        ----------
        model : Model
            The distribution.
        n_chains : int
            Number of independent chains.
        rng : Generator
            Seeds the streams of the chains.
        states : array-like, optional
            One row for each chain, or one for all.
        clamped : array-like of bool, optional
            Variables that keep the value they have in `states`, shape ``(n,)`` or ``(n_chains, n)``.
        """
        return start_chains(model, n_chains, rng, states, clamped)

    def step(self, model: Model[DiscreteFamily], state: ChainState, n_sweeps: int = 1) -> tuple[ChainState, SweepInfo]:
        """Return the chains `n_sweeps` later and the share of updates that flipped; `state` is left as it is."""
        if n_sweeps < 0:
            raise ArgumentError("must be zero or positive", argument="n_sweeps", value=n_sweeps)
        if state.states.shape[1] != model.n_variables:
            raise ArgumentError(
                f"the chains have {state.states.shape[1]} variables but the model has {model.n_variables}"
            )
        return SWEEPS.of(model.family)(model, self, state, n_sweeps)

    def _run(self, model: Pairwise, sweeps: _Sweeps) -> int:
        twins, dense = twin("gibbs"), model.family.graph.is_dense
        if twins is not None and dense and model.n_variables <= twins.MOST_DENSE:
            return _dense_twin(model, sweeps, twins)
        if twins is not None and not dense:  # no order of the sites but colours lets a card do many at once
            return ChromaticGibbs()._run(model, sweeps)
        if len(sweeps.states) < (GROUPED_FROM_IF_DENSE if dense else GROUPED_FROM):
            return _one_by_one(model, sweeps, random_scan=False)
        kernel: Any = kernels.grouped_sweeps
        system = _grouped_system(model)
        return sweeps.over_chains(
            lambda states, streams, held: kernel(states, streams, *system, sweeps.sites, held, sweeps.n_sweeps),
            grain=kernels.GROUP,
        )


@SAMPLERS.register("random-scan")
@dataclass(frozen=True)
class RandomScanGibbs(Gibbs):
    """Gibbs sampling that picks the variable of each update at random; a sweep is n updates.

    The chain is reversible, which sequential scans are not; it mixes slower by about a factor of two.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(3, 3)))
    >>> sampler = gb.old_sampling.RandomScanGibbs()
    >>> chains, info = sampler.step(model, sampler.init(model, 100, np.random.default_rng(0)), n_sweeps=10)
    >>> round(info.flips, 1)
    0.5
    """

    random_scan = True

    def _run(self, model: Pairwise, sweeps: _Sweeps) -> int:
        return _one_by_one(model, sweeps, random_scan=True)


@SAMPLERS.register("chromatic")
@dataclass(frozen=True)
class ChromaticGibbs(Gibbs):
    """Gibbs sampling colour by colour: no two variables of a colour interact, so a class is updated in parallel.

    The choice for few chains on a large sparse graph. On a dense graph there is one colour for nearly every variable
    and `Gibbs` is faster.

    Parameters
    ----------
    block_size : int
        Variables of a colour class that one thread takes at a time. Each block has its own random numbers, so changing
        it changes the path of a chain; the number of threads does not.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(100, 100)))
    >>> sampler = gb.old_sampling.ChromaticGibbs()
    >>> chains, info = sampler.step(model, sampler.init(model, 1, np.random.default_rng(0)), n_sweeps=10)
    >>> round(info.flips, 1)
    0.5
    """

    block_size: int = 2048

    def __post_init__(self) -> None:
        if self.block_size < 1:
            raise ArgumentError("must be at least 1", argument="block_size", value=self.block_size)

    def visits(self, graph: Graph, sites: np.ndarray) -> np.ndarray:
        """Return the variables by the colours of the graph."""
        return sites[np.argsort(graph.colouring[sites], kind="stable")]

    def _run(self, model: Pairwise, sweeps: _Sweeps) -> int:
        some = sweeps.sites.size < model.n_variables
        plan = _colour_plan(model.family.graph, sweeps.sites.tobytes() if some else None, self.block_size)
        held = None if sweeps.held is None else sweeps.held.take(plan.order, axis=1)
        ordered = sweeps._replace(states=sweeps.states.take(plan.order, axis=1), held=held)
        on_cpu = _by_rows if plan.stencil is None else _by_distances
        flips = (on_cpu if twin("gibbs") is None else _colour_twin)(model, plan, ordered)
        sweeps.states[:] = ordered.states.take(plan.place, axis=1)
        return flips


@SWEEPS.register("pairwise")
def spin_sweeps(model: Pairwise, sampler: Gibbs, state: ChainState, n_sweeps: int) -> tuple[ChainState, SweepInfo]:
    """Run a Gibbs sampler on a pairwise model, as spins."""
    common, spins = state.clamped.ndim == 1, 2 * state.states - 1
    sites = np.flatnonzero(~state.clamped) if common else np.arange(model.n_variables)
    sweeps = _Sweeps(spins, state.streams.copy(), sites, None if common else state.clamped, n_sweeps)
    flips = sampler._run(model, sweeps)
    n_free = sites.size * len(spins) if common else np.count_nonzero(~state.clamped)
    info = SweepInfo(int(flips) / max(1, int(n_free) * n_sweeps), n_sweeps)
    codes = (spins > 0).view(np.int8)
    return ChainState(codes, sweeps.streams, state.clamped, state.n_sweeps + n_sweeps), info


@once_a_model
def _spin_form(model: Pairwise) -> _SpinForm:
    """Return the parameters of spins, rounded to multiples of a power of two that make all field sums exact.

    The largest possible field takes 52 bits, so every partial sum of biases and couplings is a float64. Then the field
    is one number in whatever order it is summed or updated, and never drifts. The rounding is of the size of the errors
    that the sums would have made.
    """
    graph, fields, couplings, _ = model.family.ising(model.theta)
    return _SpinForm(graph, *kernels.exact_sums(fields, couplings, graph.edges))


@once_a_model
def _grouped_system(model: Pairwise) -> tuple[object, ...]:
    """Exact parameters and rounded ones along the CSR graph."""
    form = _spin_form(model)
    indptr, heads, edges = form.graph.csr
    weights = form.couplings[edges]
    # every group of chains reads the graph once a sweep: the fewer bytes the better
    return form.biases, indptr, heads.astype(np.int32), weights, form.rounded(weights)


@once_a_model
def _doubled(model: Pairwise) -> np.ndarray:
    """The full matrix of couplings, twice."""
    form = _spin_form(model)
    matrix = np.zeros((form.graph.n_nodes, form.graph.n_nodes))
    i, j = form.graph.edges.T
    matrix[i, j] = matrix[j, i] = 2.0 * form.couplings
    return matrix


def _one_by_one(model: Pairwise, sweeps: _Sweeps, random_scan: bool) -> int:
    """Sweep chains that keep their fields and change them when a spin flips."""
    form, sites, n_sweeps = _spin_form(model), sweeps.sites, sweeps.n_sweeps
    indptr, heads, edges = form.graph.csr

    def dense(states: np.ndarray, streams: np.ndarray, held: np.ndarray | None) -> int:
        fields = states.astype(np.float64) @ _doubled(model) / 2.0 + form.biases
        return kernels.dense_sweeps(
            states, streams, fields, _doubled(model), sites, held, sites.size * random_scan, n_sweeps
        )

    def sparse(states: np.ndarray, streams: np.ndarray, held: np.ndarray | None) -> int:
        graph = (form.biases, indptr, heads, form.couplings[edges])
        return kernels.sparse_sweeps(states, streams, *graph, sites, held, sites.size * random_scan, n_sweeps)

    return sweeps.over_chains(dense if model.family.graph.is_dense else sparse)


@dataclass(frozen=True, eq=False)
class _ColourPlan:
    """A graph in the order of a chromatic sweep: the sites by their colours, then the variables that are not visited.

    Variable i stands at ``place[i]`` of `order`. Block b has the sites from ``blocks[b]`` to ``blocks[b + 1]``, colour
    k the blocks from ``colours[k]`` to ``colours[k + 1]``; `indptr`, `heads` and `edges` are the CSR graph. Where
    neighbours stand at few distances there is a stencil, and `slots` says where each entry of the graph stands among
    its weights.
    """

    order: np.ndarray
    place: np.ndarray
    blocks: np.ndarray
    colours: np.ndarray
    indptr: np.ndarray
    heads: np.ndarray
    edges: np.ndarray
    stencil: kernels.Stencil | None
    slots: np.ndarray

    @property
    def worth_sharing(self) -> bool:
        """Whether threads gain by sharing a colour; no two may write into the same vector."""
        sizes = np.diff(self.blocks)[self.colours[:-1]]
        return bool(np.diff(self.blocks[self.colours]).max() >= BLOCKWISE_FROM and not np.any(sizes % LANES))


@lru_cache(maxsize=8)  # a chain moves many times on one graph, often one sweep at a time
def _colour_plan(graph: Graph, site_bytes: bytes | None, block_size: int) -> _ColourPlan:
    """Order the sites (int64, as bytes; None for all) by colour and cut each colour class into blocks."""
    free = np.arange(graph.n_nodes) if site_bytes is None else np.frombuffer(site_bytes, np.int64)
    colour = graph.colouring[free]
    sizes = np.bincount(colour)
    blocks, colours = [0], [0]
    for size in sizes[sizes > 0]:
        start = blocks[-1]
        blocks += [start + min(cut, size) for cut in range(block_size, size + block_size, block_size)]
        colours.append(len(blocks) - 1)
    sites = free[np.argsort(colour, kind="stable")]
    order = np.concatenate([sites, np.setdiff1d(np.arange(graph.n_nodes), sites)])
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    indptr, heads, edges = graph.csr
    degrees = graph.degrees[sites]
    starts = np.concatenate([[0], np.cumsum(degrees)])
    positions = np.repeat(indptr[sites] - starts[:-1], degrees) + np.arange(starts[-1])
    rows = (starts, place[heads[positions]], edges[positions])
    cuts = (np.array(blocks), np.array(colours))
    return _ColourPlan(order, place, *cuts, *rows, *_stencil(cuts[0][cuts[1]], starts, rows[1]))


def _stencil(colours: np.ndarray, indptr: np.ndarray, heads: np.ndarray) -> tuple[kernels.Stencil | None, np.ndarray]:
    """Find the distances between neighbours, where they are few; colour k has the sites from ``colours[k]`` on."""
    none = (None, np.empty(0, np.int64))
    if colours[-1] < 4 * LANES * max(1, colours.size - 1):  # classes too small to fill lanes
        return none
    tails = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    pointers, offsets, starts, slots, total = [0], [], [], np.empty_like(heads), 0
    for first, last in pairwise(colours.tolist()):
        entries = slice(indptr[first], indptr[last])
        distances, which = np.unique(heads[entries] - tails[entries], return_inverse=True)
        rows = total + (last - first) * np.arange(distances.size)
        total += (last - first) * distances.size
        if total > MOST_WEIGHTS_AN_END * heads.size:
            return none
        slots[entries] = rows[which] + tails[entries] - first
        offsets.append(distances)
        starts.append(rows)
        pointers.append(pointers[-1] + distances.size)
    return kernels.Stencil(np.array(pointers), np.concatenate(offsets), np.concatenate(starts), total), slots


def _by_rows(model: Pairwise, plan: _ColourPlan, sweeps: _Sweeps) -> int:
    """Sweep colour by colour along the rows of a CSR graph."""
    form = _spin_form(model)
    graph = (form.biases[plan.order], plan.indptr, plan.heads, form.couplings[plan.edges])

    def run(states: np.ndarray, streams: np.ndarray, held: np.ndarray | None) -> int:
        spins = states.astype(np.float64)
        flips = kernels.chromatic_sweeps(spins, streams, *graph, plan.blocks, held, sweeps.n_sweeps)
        states[:] = spins
        return flips

    return sweeps.over_chains(run)


def _dense_twin(model: Pairwise, sweeps: _Sweeps, twins: Any) -> int:
    """Sweep all chains on a device, with the couplings of a dense graph."""
    held = sweeps.held
    if held is None and sweeps.sites.size < model.n_variables:
        held = np.ones((1, model.n_variables), bool)
        held[0, sweeps.sites] = False
    return twins.dense_sweeps(sweeps.states, sweeps.streams, _dense_system(model), held, sweeps.n_sweeps)


@once_a_model
def _dense_system(model: Pairwise) -> Any:
    return twin("gibbs").dense_system(_doubled(model) / 2.0, _spin_form(model).biases)


def _colour_twin(model: Pairwise, plan: _ColourPlan, sweeps: _Sweeps) -> int:
    """Sweep all chains on a device, colour by colour."""
    system = _colour_system(model, plan)
    return twin("gibbs").colour_sweeps(sweeps.states, sweeps.streams, system, sweeps.held, sweeps.n_sweeps)


@once_a_model
def _colour_system(model: Pairwise, plan: _ColourPlan) -> object:
    form = _spin_form(model)
    graph = (plan.blocks[plan.colours], plan.indptr, plan.heads, form.couplings[plan.edges])
    return twin("gibbs").colour_system(*graph, form.biases[plan.order], form.reach)


@once_a_model
def _stencil_system(model: Pairwise, plan: _ColourPlan) -> tuple[object, kernels.Rounded]:
    """Exact parameters along the CSR graph, and rounded ones along the stencil with a vector more at the end."""
    form = _spin_form(model)
    exact = (form.biases[plan.order], plan.indptr, plan.heads, form.couplings[plan.edges])
    rounded = form.rounded(exact[3], plan.order)
    assert plan.stencil is not None
    weights = np.zeros(plan.stencil.n_weights + LANES, np.int32)
    weights[plan.slots] = rounded.weights
    return exact, rounded._replace(weights=weights, biases=np.pad(rounded.biases, (0, LANES)))


def _by_distances(model: Pairwise, plan: _ColourPlan, sweeps: _Sweeps) -> int:
    """Sweep colour by colour where neighbours stand at few distances."""
    assert plan.stencil is not None
    edge = int(np.abs(plan.stencil.offsets).max(initial=0))
    graph = (plan.blocks, plan.colours, *_stencil_system(model, plan), plan.stencil, edge)

    def run(states: np.ndarray, streams: np.ndarray, held: np.ndarray | None) -> int:
        masks = np.pad(-(states > 0).astype(np.int8), [(0, 0), (edge, edge + LANES)])
        held = np.zeros((1, masks.shape[1]), bool) if held is None else np.pad(held, [(0, 0), (0, LANES)])
        sweep: Any = _blockwise if plan.worth_sharing and len(states) == 1 else kernels.stencil_sweeps
        flips = sweep(masks, streams, *graph, held, sweeps.n_sweeps)
        states[:] = -2 * masks[:, edge : edge + states.shape[1]] - 1
        return flips

    return sweeps.over_chains(run)


def _blockwise(masks: np.ndarray, streams: np.ndarray, *graph: Any) -> int:
    """Sweep one chain as `kernels.stencil_sweeps` does, the blocks of a colour on threads."""
    *system, holds, n_sweeps = graph
    kernel: Any = kernels.stencil_blocks
    flips, colours = 0, list(enumerate(pairwise(system[1].tolist())))
    with kept_threads():
        for _ in range(n_sweeps):
            for k, (first, last) in colours:

                def run(part: slice, first: int = first, k: int = k) -> int:
                    return kernel(masks[0], streams[0], first + part.start, first + part.stop, k, *system, holds[0])

                flips += sum(in_slices(run, last - first, np.inf, grain=kernels.BLOCKS))
            kernels.next_sweep(streams[0])
    return flips
