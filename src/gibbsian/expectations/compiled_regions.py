"""Spatial Monte Carlo integration by compiled kernels, for two-valued models of products.

A kernel integrates a range of targets over a block of samples and folds the values into each target's own running sums:
threads share the targets out, and the result does not depend on how. Regions are flat arrays; the couplings are looked
up when the kernels run, so a plan serves every model of its structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.backends.numba import regions as region_kernels
from gibbsian.backends.numba import spatial as kernels
from gibbsian.backends.numba.spatial import Shares
from gibbsian.backends.numba.spatial_cliques import clique_targets
from gibbsian.backends.numba.spatial_forests import forest_targets
from gibbsian.backends.threads import map_ordered, n_threads
from gibbsian.estimate import Estimate
from gibbsian.expectations.regions import (
    ForestAround,
    IndependentNeighbours,
    Neighbourhood,
    RegionRule,
    csr_targets,
    forests,
    independent_sets,
)
from gibbsian.expectations.samples import Samples
from gibbsian.expectations.spin_products import is_binary
from gibbsian.graphs import Graph
from gibbsian.models.base import Array, Family, Model
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.families.products import ProductsFamily
from gibbsian.models.scopes import sum_over_edges
from gibbsian.models.variables import Variables
from gibbsian.registry import Registry
from gibbsian.resources import require_memory

# Samples in a block: long enough for vector code, short enough for the scratch rows of a target to stay in the cache.
MIN_SAMPLES, MAX_SAMPLES = 128, 512
# Cells of samples that are prepared and held at a time.
BATCH_CELLS = 2**22
# Statistics of samples below which starting threads takes longer than the kernels: a millisecond.
WORTH_A_POOL = 2**18
# The kernel of cliques keeps a row of samples for each state of the largest one.
LARGEST_CLIQUE = 12

Kernel = Callable[[int, int, Any, Array, Shares], None]
Prepare = Callable[[slice, int], Any]
Piece = TypeVar("Piece")
Result = TypeVar("Result")


# plans by the names of the families that they serve
COMPILED = Registry("compiled plan", "gibbsian.expectations", "COMPILED")


def compiled_plan(model: Model[Family], rule: RegionRule) -> PairwisePlan | CliquePlan | None:
    """Return the plan of a model and a rule that kernels serve; None for others."""
    if not (name := COMPILED.name_for(model.family)):
        return None
    kind: Any = COMPILED.factory(name)
    return kind.of(model, rule) if kind.serves(model.family, rule) else None


def _few(rule: RegionRule) -> bool:
    """Whether regions are targets, alone or with independent neighbours."""
    return isinstance(rule, IndependentNeighbours) or (isinstance(rule, Neighbourhood) and rule.k == 1)


@dataclass(frozen=True, eq=False)
class _CompiledPlan:
    """The regions of all statistics of a model.

    Parameters
    ----------
    graph : Graph
        Which variables interact.
    rule : RegionRule
        How the regions were chosen.
    n_statistics : int
        Number of statistics.
    tied : bool
        Whether the strengths of the interactions decided between candidates: then they decide again for other ones.
    """

    graph: Graph
    rule: RegionRule
    n_statistics: int
    tied: bool

    @classmethod
    def of(cls, model: Model[Any], rule: RegionRule) -> Self:
        """Choose the regions."""
        raise NotImplementedError

    def renewed(self, model: Model[Family]) -> Self:
        """Choose again where the strengths of the interactions decide."""
        return self.of(model, self.rule) if self.tied else self


@COMPILED.register("pairwise")
@dataclass(frozen=True, eq=False)
class PairwisePlan(_CompiledPlan):
    """The regions of single variables and of edges; None where the target is its own region."""

    nodes: kernels.Forests | None = None
    pairs: kernels.Forests | None = None

    @classmethod
    def serves(cls, family: PairwiseFamily, rule: RegionRule) -> bool:
        """Say whether kernels do: the moments of spins and of 0/1."""
        spins = family.variables == Variables.spins(family.graph.n_nodes)
        return (spins or is_binary(family.variables)) and (_few(rule) or isinstance(rule, ForestAround))

    @classmethod
    def of(cls, model: Model[PairwiseFamily], rule: RegionRule) -> Self:
        """Choose the regions."""
        graph, n_biases = model.family.graph, model.family.layout.n_biases
        if isinstance(rule, Neighbourhood):
            return cls(graph, rule, model.theta.size, tied=False)
        strengths = np.abs(model.parts.couplings)
        nodes, some = _regions(graph, rule, np.arange(n_biases)[:, None], strengths)
        pairs, others = _regions(graph, rule, graph.edges, strengths)
        return cls(graph, rule, model.theta.size, some or others, nodes, pairs)

    def statistics(self, model: Model[PairwiseFamily], samples: Samples) -> Estimate:
        """Return the expected statistics, averaged over the samples."""
        if not isinstance(self.rule, ForestAround) and (twins := twin("spatial")) is not None:
            return self._on_device(model, samples, twins)
        node_kernel, pair_kernel = self._kernels()
        n_biases = model.family.layout.n_biases
        parts = [KernelPart(pair_kernel, slice(n_biases, model.theta.size))]
        if n_biases:
            parts.insert(0, KernelPart(node_kernel, slice(0, n_biases)))
        return integrate(samples, model, _Preparation(model, samples.states), parts)

    def _on_device(self, model: Model[PairwiseFamily], samples: Samples, twins: Any) -> Estimate:
        """Return what `statistics` returns where regions are targets, alone or with independent neighbours."""
        sums, n_biases = samples.running_sums(model.theta.size), model.family.layout.n_biases
        graph, fields, couplings, _ = model.family.ising(model.theta)
        ((_, shares),) = samples.blocks(samples.n_samples)
        there = twins.Spins(
            2 * samples.states - 1, fields, couplings, graph, graph.is_dense, is_binary(model.variables)
        )
        there.integrate(sums[:n_biases], self.nodes or _alone(np.arange(n_biases)[:, None]), shares)
        there.integrate(sums[n_biases:], self.pairs or _alone(graph.edges), shares)
        return samples.summarise(sums)

    def _kernels(self) -> tuple[Kernel, Kernel]:
        """The kernels for biases and for couplings."""
        if self.nodes is None:
            return kernels.first_order_nodes, _over(self.graph.edges, kernels.first_order_pairs)
        if isinstance(self.rule, ForestAround):
            return _over(self.nodes, forest_targets), _over(self.pairs, forest_targets)
        return _over(self.nodes, kernels.independent_nodes), _over(self.pairs, kernels.independent_pairs)


def _over(regions: Any, kernel: Callable[..., None]) -> Kernel:
    return lambda first, last, *rest: kernel(first, last, regions, *rest)


def _alone(targets: Array) -> kernels.Forests:
    """Targets that are their own regions: single variables, or all edges in their order."""
    own = np.arange(len(targets)) if targets.shape[1] == 2 else np.full(len(targets), -1)
    return kernels.Forests(targets, own, np.zeros(len(targets) + 1, np.int64), *[np.empty(0, np.int64)] * 5)


def _regions(graph: Graph, rule: RegionRule, targets: Array, strengths: Array) -> tuple[kernels.Forests, bool]:
    """Regions of single variables or of the edges, laid out for the kernels, and whether strengths decided."""
    pointers, nodes = csr_targets(targets)
    if isinstance(rule, ForestAround):
        starts, members = forests(graph, targets, strengths, rule.size)
        tied = True  # strengths order the candidates at one distance
    else:
        starts, members, tied = independent_sets(graph, pointers, nodes, strengths)
    if graph.is_complete and not isinstance(rule, ForestAround):
        layout = _single_members(graph, np.repeat(targets, np.diff(starts), axis=0), members)
    else:
        layout = region_kernels.rooted(*graph.csr, pointers, nodes, starts, members)
    return kernels.Forests(np.ascontiguousarray(targets), _alone(targets).own, starts, *layout), bool(tied)


def _single_members(graph: Graph, targets: Array, members: Array) -> tuple[Array, ...]:
    """Return what `rooted` returns where all variables are joined and each region has one member beside its target."""
    links = graph.matrix(np.arange(graph.n_edges)).astype(np.int64)[members[:, None], targets]
    none = np.full_like(members, -1)
    return members, none, none, links[:, 0].copy(), links[:, 1].copy() if targets.shape[1] == 2 else none


class _Preparation:
    """Turns a block of samples into spins and their fields, by variable, in memory that is used again."""

    def __init__(self, model: Model[PairwiseFamily], states: Array):
        self.form, self.binary, self.states = model.family.ising(model.theta), is_binary(model.variables), states
        graph, _, couplings, _ = self.form
        self.matrix = graph.matrix(couplings) if graph.is_dense else None
        self.buffers: dict[tuple[int, int], Array] = {}

    def __call__(self, rows: slice, number: int) -> kernels.Spins:
        n_samples = rows.stop - rows.start
        graph, biases, couplings, _ = self.form
        if (number, n_samples) not in self.buffers:  # fresh memory costs as much as the fields
            self.buffers[number, n_samples] = np.empty((2, graph.n_nodes, n_samples))
        spins, fields = self.buffers[number, n_samples]
        kernels.fill_by_variable(spins, self.states[rows], 1, -1.0, 1.0)
        if self.matrix is not None:
            np.matmul(self.matrix, spins, out=fields)
            fields += biases[:, None]
        else:
            indptr, heads, edge_of = graph.csr
            kernels.fill_fields(fields, spins, biases, indptr, heads, couplings[edge_of])
        return kernels.Spins(couplings, spins, fields, self.binary)


@COMPILED.register("products")
@dataclass(frozen=True, eq=False)
class CliquePlan(_CompiledPlan):
    """The members of each clique's region beside the clique: neighbours, no two of which share a clique."""

    starts: Array
    members: Array

    @classmethod
    def serves(cls, family: ProductsFamily, rule: RegionRule) -> bool:
        """Say whether kernels do: of all variables with the same two scores, in cliques that are not too large."""
        alike = family.variables.two_valued and len(set(family.variables.scores or ())) == 1
        return alike and _few(rule) and family.scopes.sizes.max(initial=0) <= LARGEST_CLIQUE

    @classmethod
    def of(cls, model: Model[ProductsFamily], rule: RegionRule) -> Self:
        """Choose the regions, by YU20 Algorithm 1 where they are more than the cliques."""
        graph, scopes = model.family.graph, model.family.scopes
        starts, members, tied = np.zeros(len(scopes) + 1, np.int64), np.empty(0, np.int64), False
        if isinstance(rule, IndependentNeighbours):
            strengths = sum_over_edges(graph, scopes, model.family.log_odds(model.theta) / 2)
            starts, members, tied = independent_sets(graph, *scopes.csr, strengths)
        return cls(graph, rule, model.theta.size, tied, starts, members)

    def statistics(self, model: Model[ProductsFamily], samples: Samples) -> Estimate:
        """Return the expected statistics, averaged over the samples."""
        starts, members, scopes = self.starts, self.members, model.family.scopes
        low, high = model.variables.levels[0].tolist()
        cliques = (*scopes.csr, *scopes.membership, model.theta)

        def prepare(rows: slice, number: int) -> tuple[Array, ...]:
            values = np.empty((model.n_variables, rows.stop - rows.start))
            kernels.fill_by_variable(values, samples.states[rows], 1, low, high)
            return *cliques, values

        part = KernelPart(
            lambda first, last, *rest: clique_targets(first, last, starts, members, low, high, *rest),
            slice(0, model.theta.size),
        )
        return integrate(samples, model, prepare, [part])


class KernelPart(NamedTuple):
    """A kernel and the statistics that it fills: target t of the kernel has place ``places.start + t`` in theta."""

    kernel: Kernel
    places: slice


def integrate(samples: Samples, model: Model[Family], prepare: Prepare, parts: list[KernelPart]) -> Estimate:
    """Return the mean statistics over the samples with their standard errors.

    Parameters
    ----------
    samples : Samples
        The samples.
    model : Model
        Whose statistics.
    prepare : callable
        Turns a slice of the samples into what the kernels take. Its second argument numbers the slices that are held at
        a time: what was made for an earlier slice of the same number may be overwritten.
    parts : list of KernelPart
        The kernels.
    """
    sums = samples.running_sums(model.theta.size)
    n_cuts = 2 * n_threads() if len(sums) * samples.n_samples >= WORTH_A_POOL else 1
    pieces = [(part.kernel, sums[part.places], *cut) for part in parts for cut in _cuts(part.places, n_cuts)]
    for batch in _batches(samples, model, prepare):

        def run(piece: tuple[Kernel, Array, int, int], batch: list[tuple[Any, Shares]] = batch) -> None:
            kernel, own_sums, first, last = piece
            for system, shares in batch:
                kernel(first, last, system, own_sums, shares)

        _on_threads(run, pieces, len(sums) * sum(len(shares.shares) for _, shares in batch))
    return samples.summarise(sums)


def _batches(samples: Samples, model: Model[Family], prepare: Prepare) -> Iterator[list[tuple[Any, Shares]]]:
    """Prepared blocks of samples, as many at a time as may be held."""
    n = model.n_variables
    size = min(max(BATCH_CELLS // n, MIN_SAMPLES), MAX_SAMPLES, samples.n_samples)
    require_memory(
        24.0 * min(max(BATCH_CELLS, n * size), n * samples.n_samples) + 40.0 * model.theta.size,
        f"integrating {model.theta.size:,} statistics over {samples.n_samples:,} samples",
        "use a smaller graph",
    )
    blocks = list(samples.blocks(size))
    together = max(1, BATCH_CELLS // (n * size))
    for start in range(0, len(blocks), together):
        batch = blocks[start : start + together]
        numbered = [(rows, number) for number, (rows, _) in enumerate(batch)]
        prepared = _on_threads(lambda given: prepare(*given), numbered, n * size * len(batch))
        yield list(zip(prepared, (shares for _, shares in batch), strict=True))


def _cuts(places: slice, n_cuts: int) -> Iterator[tuple[int, int]]:
    """Ranges of targets for threads."""
    bounds = np.linspace(0, places.stop - places.start, n_cuts + 1).astype(np.int64).tolist()
    return (cut for cut in pairwise(bounds) if cut[1] > cut[0])


def _on_threads(function: Callable[[Piece], Result], pieces: list[Piece], n_operations: float) -> list[Result]:
    """Apply a function to pieces of work, on threads where that is worth their start."""
    if n_operations < WORTH_A_POOL or n_threads() == 1:
        return [function(piece) for piece in pieces]
    return list(map_ordered(function, pieces))
