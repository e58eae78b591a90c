"""Gibbs sampling of pairs of two-valued variables, as spins.

The conditional of a spin with field U is ``P(s = +1) = 1 / (1 + exp(-2 U))``. Chains of codes become spins at the door
of the kernels in `backends.numba.gibbs`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import TypeVar, cast

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers, Mask, Slice, States
from gibbsian.backends.device import twin
from gibbsian.backends.numba import gibbs as kernels
from gibbsian.backends.numba.vectors import LANES, MARGIN
from gibbsian.backends.threads import kept_threads, map_slices
from gibbsian.graphs import Graph
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.rng import Words
from gibbsian.sampling.base import SWEEPS
from gibbsian.sampling.gibbs import ChromaticGibbs, Gibbs, GibbsKernel, OnceATheta, Visits, over_chains

T = TypeVar("T")
# From this many chains on, running them side by side beats keeping the fields of each: on sparse graphs, on dense ones.
GROUPED_FROM, GROUPED_FROM_IF_DENSE = 8, 16
# Sites of a colour from which threads share the blocks of one chain's colour.
BLOCKWISE_FROM = 2**18
# A graph has a stencil where as many distances between neighbours leave at most this many weights for each edge's end.
MAX_WEIGHTS_PER_END = 4


@SWEEPS.register("pairwise")
def spin_kernel(family: PairwiseFamily, scan: Gibbs, mask: Mask | None) -> GibbsKernel:
    """Return the Gibbs kernel of a pairwise family."""
    return GibbsKernel(family, scan, mask, SpinSweep(family))


class SpinSweep:
    """Sweeps of spins: one by one, in lanes of chains, colour by colour, or on a device."""

    def __init__(self, family: PairwiseFamily):
        self.graph = family.graph
        self.system = OnceATheta(partial(SpinSystem, family))
        self.plans: dict[tuple[int, int, bool], ColourPlan] = {}

    def __call__(self, theta: Floats, states: States, streams: Words, visits: Visits) -> int:
        """Sweep chains of codes in place."""
        spins: Codes = (2 * states - 1).astype(np.int8, copy=False)
        flips = self._choose(len(spins), visits)(self.system(theta), spins, streams, visits)
        states[:] = spins > 0
        return int(flips)

    def _choose(self, n_chains: int, visits: Visits) -> SpinKernel:
        if visits.n_picks:
            return one_by_one
        twins, dense = twin("gibbs"), self.graph.is_dense
        if not visits.block_size:
            if twins is not None and dense and self.graph.n_nodes <= twins.MOST_DENSE:
                return dense_on_device
            if n_chains < (GROUPED_FROM_IF_DENSE if dense else GROUPED_FROM) and (twins is None or dense):
                return one_by_one
            if twins is None or dense:
                return grouped
        # on a device sparse graphs too: no other order lets a card do many sites at once
        key = visits.sites.size, visits.block_size or ChromaticGibbs.block_size, visits.reverse
        if key not in self.plans:  # the kernel's own sites, or the first of them
            self.plans[key] = colour_plan(self.graph, np.sort(visits.sites).tobytes(), *key[1:])
        return partial(by_colour, self.plans[key])


class SpinSystem:
    """A pairwise model in spins, with what kernels make of it.

    Parameters are rounded to multiples of a power of two that make all field sums exact: the largest possible field
    takes 52 bits, so every partial sum of biases and couplings is a float64. Then the field is one number in whatever
    order it is summed or updated, and never drifts. The rounding is of the size of the errors that the sums would have
    made.
    """

    def __init__(self, family: PairwiseFamily, theta: Floats):
        self.graph, fields, couplings, _ = family.ising(theta)
        self.biases, self.couplings, self.sums, self.reach = kernels.exact_sums(fields, couplings, self.graph.edges)
        self.kept: dict[tuple[object, str], object] = {}

    def rounded(self, weights: Floats, order: Integers | Slice = slice(None)) -> kernels.Rounded:
        """Return whole numbers of 30 bits for couplings along some graph, and for biases in some order."""
        degree = int(self.graph.degrees.max(initial=0))
        biases = self.biases[order] - self.sums[order]
        return cast("kernels.Rounded", kernels.whole_numbers(biases, weights, self.reach, degree, MARGIN))

    @cached_property
    def along_edges(self) -> tuple[object, ...]:
        """Exact parameters and rounded ones along the CSR graph."""
        indptr, heads, edges = self.graph.csr
        weights = self.couplings[edges]
        # every group of chains reads the graph once a sweep: the fewer bytes the better
        return self.biases, indptr, heads.astype(np.int32), weights, self.rounded(weights)

    @cached_property
    def doubled(self) -> Floats:
        """The full matrix of couplings, twice."""
        matrix = np.zeros((self.graph.n_nodes, self.graph.n_nodes))
        i, j = self.graph.edges.T
        matrix[i, j] = matrix[j, i] = 2.0 * self.couplings
        return matrix

    def in_order(self, plan: ColourPlan) -> tuple[Floats, Integers, Integers, Floats]:
        """Return biases, CSR graph and couplings in the order of a plan."""
        return self.biases[plan.order], plan.indptr, plan.heads, self.couplings[plan.edges]

    def stencil_of(self, plan: ColourPlan, stencil: kernels.Stencil) -> tuple[object, kernels.Rounded]:
        """Return exact parameters along the CSR graph, and rounded ones along the stencil, padded by a vector."""
        exact = self.in_order(plan)
        rounded = self.rounded(exact[3], plan.order)
        weights = np.zeros(stencil.n_weights + LANES, np.int32)
        weights[plan.slots] = rounded.weights
        return exact, rounded._replace(weights=weights, biases=np.pad(rounded.biases, (0, LANES)))

    def once(self, plan: object, kind: str, make: Callable[[], T]) -> T:
        """Return what a kernel needs for a plan, made once."""
        if (plan, kind) not in self.kept:
            self.kept[plan, kind] = make()
        return cast("T", self.kept[plan, kind])


# What a `SpinSweep` chooses from: moves spins and streams in place, and returns the number of flips.
SpinKernel = Callable[[SpinSystem, Codes, Words, Visits], int]


def one_by_one(system: SpinSystem, spins: Codes, streams: Words, visits: Visits) -> int:
    """Sweep chains that keep their fields and change them when a spin flips."""
    how = visits.n_picks, visits.n_sweeps

    def dense(states: Codes, streams: Words, held: Mask | None) -> int:
        fields = states.astype(np.float64) @ system.doubled / 2.0 + system.biases
        return int(kernels.dense_sweeps(states, streams, fields, system.doubled, visits.sites, held, *how))

    def sparse(states: Codes, streams: Words, held: Mask | None) -> int:
        indptr, heads, edges = system.graph.csr
        graph = system.biases, indptr, heads, system.couplings[edges]
        return int(kernels.sparse_sweeps(states, streams, *graph, visits.sites, held, *how))

    return over_chains(dense if system.graph.is_dense else sparse, spins, streams, visits)


def grouped(system: SpinSystem, spins: Codes, streams: Words, visits: Visits) -> int:
    """Sweep many chains side by side in vector registers; fields are summed over the neighbours at each visit."""

    def sweep(states: Codes, streams: Words, held: Mask | None) -> int:
        graph = system.along_edges
        return int(kernels.grouped_sweeps(states, streams, *graph, visits.sites, held, visits.n_sweeps))

    return over_chains(sweep, spins, streams, visits, grain=kernels.GROUP)


def dense_on_device(system: SpinSystem, spins: Codes, streams: Words, visits: Visits) -> int:
    """Sweep all chains on a device with the full matrix of couplings, in the order of the variables or its reverse."""
    way = slice(None, None, -1) if visits.reverse else slice(None)
    held, n = visits.held, system.graph.n_nodes
    if held is None and visits.sites.size < n:
        held = ~np.isin(np.arange(n), visits.sites)[None]

    def make() -> object:
        return twin("gibbs").dense_system(system.doubled[way, way] / 2.0, system.biases[way])

    kept = system.once(visits.reverse, "dense", make)
    ordered = spins[:, way].copy()
    ordered_held = None if held is None else held[:, way].copy()
    flips = twin("gibbs").dense_sweeps(ordered, streams, kept, ordered_held, visits.n_sweeps)
    spins[:] = ordered[:, way]
    return int(flips)


# -- colour by colour -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class ColourPlan:
    """A graph in the order of a chromatic sweep: the sites by their colours, then the variables that are not visited.

    Variable i stands at ``place[i]`` of `order`. Block b has the sites from ``blocks[b]`` to ``blocks[b + 1]``, colour
    k the blocks from ``colours[k]`` to ``colours[k + 1]``; `indptr`, `heads` and `edges` are the CSR graph. Where
    neighbours stand at few distances there is a stencil, and `slots` says where each entry of the graph stands among
    its weights.
    """

    order: Integers
    place: Integers
    blocks: Integers
    colours: Integers
    indptr: Integers
    heads: Integers
    edges: Integers
    stencil: kernels.Stencil | None
    slots: Integers

    @property
    def worth_sharing(self) -> bool:
        """Whether threads gain by sharing a colour; no two may write into the same vector."""
        sizes = np.diff(self.blocks)[self.colours[:-1]]
        return bool(np.diff(self.blocks[self.colours]).max() >= BLOCKWISE_FROM and not np.any(sizes % LANES))


@lru_cache(maxsize=8)  # a chain moves many times on one graph, often one sweep at a time
def colour_plan(graph: Graph, site_bytes: bytes, block_size: int, reverse: bool = False) -> ColourPlan:
    """Sort the sites (as bytes) by colour and cut each colour class into blocks."""
    free = np.sort(np.frombuffer(site_bytes, np.int64))
    colour = graph.colouring[free]
    if reverse:
        colour = colour.max(initial=0) - colour
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
    return ColourPlan(order, place, *cuts, *rows, *_stencil(cuts[0][cuts[1]], starts, rows[1]))


def _stencil(colours: Integers, indptr: Integers, heads: Integers) -> tuple[kernels.Stencil | None, Integers]:
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
        if total > MAX_WEIGHTS_PER_END * heads.size:
            return none
        slots[entries] = rows[which] + tails[entries] - first
        offsets.append(distances)
        starts.append(rows)
        pointers.append(pointers[-1] + distances.size)
    return kernels.Stencil(np.array(pointers), np.concatenate(offsets), np.concatenate(starts), total), slots


def by_colour(plan: ColourPlan, system: SpinSystem, spins: Codes, streams: Words, visits: Visits) -> int:
    """Sweep colour by colour: along the rows of a CSR graph, by the distances of neighbours, or on a device."""
    ordered = visits._replace(held=None if visits.held is None else visits.held.take(plan.order, axis=1))
    states = spins.take(plan.order, axis=1)
    kernel = by_rows if plan.stencil is None else by_distances
    flips = (kernel if twin("gibbs") is None else colours_on_device)(system, plan, states, streams, ordered)
    spins[:] = states.take(plan.place, axis=1)
    return flips


def by_rows(system: SpinSystem, plan: ColourPlan, states: Codes, streams: Words, visits: Visits) -> int:
    """Sweep colour by colour along the rows of a CSR graph."""
    graph = system.in_order(plan)

    def sweep(states: Codes, streams: Words, held: Mask | None) -> int:
        spins = states.astype(np.float64)
        flips = kernels.chromatic_sweeps(spins, streams, *graph, plan.blocks, held, visits.n_sweeps)
        states[:] = spins
        return int(flips)

    return over_chains(sweep, states, streams, visits)


def by_distances(system: SpinSystem, plan: ColourPlan, states: Codes, streams: Words, visits: Visits) -> int:
    """Sweep colour by colour where neighbours stand at few distances."""
    stencil = plan.stencil
    assert stencil is not None
    edge = int(np.abs(stencil.offsets).max(initial=0))
    graph = plan.blocks, plan.colours, *system.once(plan, "stencil", lambda: system.stencil_of(plan, stencil)), stencil

    def sweep(states: Codes, streams: Words, held: Mask | None) -> int:
        masks = np.pad(-(states > 0).astype(np.int8), [(0, 0), (edge, edge + LANES)])
        held = np.zeros((1, masks.shape[1]), bool) if held is None else np.pad(held, [(0, 0), (0, LANES)])
        sweeps = _blockwise if plan.worth_sharing and len(states) == 1 else kernels.stencil_sweeps
        flips = sweeps(masks, streams, *graph, edge, held, visits.n_sweeps)
        states[:] = -2 * masks[:, edge : edge + states.shape[1]] - 1
        return int(flips)

    return over_chains(sweep, states, streams, visits)


def _blockwise(masks, streams, blocks, colours, exact, rounded, stencil, edge, holds, n_sweeps):  # type: ignore[no-untyped-def]
    """Sweep one chain as `kernels.stencil_sweeps` does, the blocks of a colour on threads."""
    system, flips = (blocks, colours, exact, rounded, stencil, edge, holds[0]), 0
    with kept_threads():
        for _ in range(n_sweeps):
            for k, (first, last) in enumerate(pairwise(colours.tolist())):

                def run(part: Slice, first: int = first, k: int = k) -> int:
                    ends = first + part.start, first + part.stop
                    return int(kernels.stencil_blocks(masks[0], streams[0], *ends, k, *system))

                flips += sum(map_slices(run, last - first, np.inf, grain=kernels.BLOCKS))
            kernels.next_sweep(streams[0])
    return flips


def colours_on_device(system: SpinSystem, plan: ColourPlan, states: Codes, streams: Words, visits: Visits) -> int:
    """Sweep all chains on a device, colour by colour."""
    biases, *graph = system.in_order(plan)

    def make() -> object:
        return twin("gibbs").colour_system(plan.blocks[plan.colours], *graph, biases, system.reach)

    kept = system.once(plan, "device", make)
    return int(twin("gibbs").colour_sweeps(states, streams, kept, visits.held, visits.n_sweeps))
