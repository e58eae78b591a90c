"""Which variables to sum over around a target: the sum regions of YU20.

A rule maps targets (small sets of variables) to regions that hold them. Larger regions have smaller variance (YU20
theorem 2); what they cost is the sum over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, ClassVar, Protocol

import numpy as np

from gibbsian.backends.numba import regions as kernels
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.inference.planar.kasteleyn import is_planar
from gibbsian.models.base import Array, DiscreteFamily
from gibbsian.models.factors import FactorGraph
from gibbsian.models.scopes import sum_over_edges
from gibbsian.resources import row_blocks
from gibbsian.settings import check_whole_number

Target = tuple[int, ...]
Region = tuple[int, ...]


class RegionRule(Protocol):
    """Chooses a region for each target, again for other parameters unless ``uses_strengths`` is False."""

    def regions(self, graph: Graph, targets: Sequence[Target], strengths: Array) -> list[Region]:
        """Return the region of each target, given the strength of the interaction along each edge."""


@dataclass(frozen=True)
class Neighbourhood:
    """All variables up to distance k - 1 from the target: k-SMCI (YU20 eq. 7); k = 0 is plain Monte Carlo.

    Examples
    --------
    >>> import gibbsian as gb
    >>> grid = gb.graphs.grid(5, 5)
    >>> gb.expectations.Neighbourhood(2).regions(grid, [(12,)], None)
    [(7, 11, 12, 13, 17)]
    """

    k: int = 1
    uses_strengths: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_whole_number("k", self.k, least=0)

    def regions(self, graph: Graph, targets: Sequence[Target], strengths: Array | None) -> list[Region]:
        """Return the targets with their neighbours up to distance k - 1."""
        return [self._region(graph, target) for target in targets]

    def _region(self, graph: Graph, target: Target) -> Region:
        if self.k == 0:
            return ()
        reached = front = set(target)
        for _ in range(self.k - 1):
            front = {int(j) for i in front for j in graph.neighbours(i)} - reached
            reached = reached | front
        return tuple(sorted(reached))


@dataclass(frozen=True)
class IndependentNeighbours:
    """The target and a set of its neighbours, no two of them joined: s2-SMCI (YU20 section 4.1, Algorithm 1).

    Of several candidates with the same least degree the one with the strongest interaction with the target is taken.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> grid = gb.graphs.grid(2, 3)
    >>> gb.expectations.IndependentNeighbours().regions(grid, [(0, 1)], np.ones(7))
    [(0, 1, 2, 3)]
    """

    def regions(self, graph: Graph, targets: Sequence[Target], strengths: Array) -> list[Region]:
        """Return the targets with their independent neighbours."""
        starts, members, _ = independent_sets(graph, *csr_targets(targets), strengths)
        return _with_targets(targets, starts, members)


@dataclass(frozen=True)
class ForestAround:
    """The target and an induced forest of other variables, the nearest first.

    The target's values are summed explicitly, and for each of them messages are passed in the forest; so cycles through
    the target are allowed, and the cost is linear in `size`.

    Parameters
    ----------
    size : int
        Variables of the forest, at most.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> grid = gb.graphs.grid(3, 3)
    >>> gb.expectations.ForestAround().regions(grid, [(4,)], np.ones(12))
    [(0, 1, 2, 3, 4, 5, 6, 7)]
    """

    size: int = 32

    def __post_init__(self) -> None:
        check_whole_number("size", self.size, least=1)

    def regions(self, graph: Graph, targets: Sequence[Target], strengths: Array) -> list[Region]:
        """Return the targets with their forests."""
        return _with_targets(targets, *forests(graph, targets, strengths, self.size))


@dataclass(frozen=True)
class PlanarAround:
    """The target and other variables, the nearest first, that are planar together with a ghost (YU20 section 4.1).

    A field on a variable is a coupling to a ghost variable, and such a graph has an exact sum. Where all variables have
    fields, those of the region beside the target are an *outerplanar* graph: it holds the forest of `ForestAround` and
    closes cycles. Without biases only variables with neighbours outside the region have fields, and larger regions fit.

    Parameters
    ----------
    size : int
        Variables of the forest, or of a region without biases, at most; cycles add as many again.
    biases : bool
        Whether variables have biases of their own, or values 0 and 1.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.expectations.PlanarAround(size=4).regions(gb.graphs.grid(3, 3), [(0,)], None)
    [(0, 1, 2, 3, 4, 5, 6, 7, 8)]
    """

    size: int = 32
    biases: bool = True
    uses_strengths: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_whole_number("size", self.size, least=1)

    def regions(self, graph: Graph, targets: Sequence[Target], strengths: Array | None) -> list[Region]:
        """Return the targets with what can be summed around them."""
        starts: Sequence[Region] = targets
        if self.biases:
            starts = ForestAround(self.size).regions(graph, targets, np.ones(graph.n_edges))
        return [self._grown(graph, set(start), target) for start, target in zip(starts, targets, strict=True)]

    def _grown(self, graph: Graph, region: set[int], target: Target) -> Region:
        """Try the nearest variables, some more than can be added."""
        most, candidates = len(region) + self.size, _by_distance(graph, target)
        for node in islice(candidates, 4 * self.size):
            if node not in region and len(region) < most and self._fits(graph, region | {node}, target):
                region.add(node)
        return tuple(sorted(region))

    def _fits(self, graph: Graph, region: set[int], target: Target) -> bool:
        """Say whether a region is planar with its ghost; a target that is summed explicitly is left out."""
        inside = sorted(region.difference(target) if self.biases else region)
        part, _ = graph.subgraph(inside)
        rim = (place for place, node in enumerate(inside) if not region.issuperset(graph.neighbours(node).tolist()))
        return is_planar(part, tuple(range(len(inside)) if self.biases else rim))


@dataclass(frozen=True, eq=False)
class GivenRegions:
    """Regions that the caller chose: a function of graph and target, or a mapping from targets.

    A target that the mapping does not hold is its own region (1-SMCI). Keys name the target's variables in any order, a
    single one also as a number; a key that is no target is refused.

    Examples
    --------
    >>> import gibbsian as gb
    >>> chain = gb.graphs.grid(1, 4)
    >>> gb.expectations.GivenRegions({(0,): (0, 1, 2)}).regions(chain, [(0,), (1,)], None)
    [(0, 1, 2), (1,)]
    """

    choice: Callable[[Graph, Target], Iterable[int]] | Mapping[Any, Iterable[int]]

    def regions(self, graph: Graph, targets: Sequence[Target], strengths: Array | None) -> list[Region]:
        """Return what was given, checked."""
        if callable(self.choice):
            chosen = [self.choice(graph, target) for target in targets]
        else:
            named = self._by_target(targets)
            chosen = [named.get(tuple(sorted(target)), target) for target in targets]
        return [check_region(region, target, graph.n_nodes) for region, target in zip(chosen, targets, strict=True)]

    def _by_target(self, targets: Sequence[Target]) -> dict[Target, Iterable[int]]:
        """The regions by the variables of their targets in ascending order."""
        wanted = {tuple(sorted(target)) for target in targets}
        named: dict[Target, Iterable[int]] = {}
        assert isinstance(self.choice, Mapping)
        for key, region in self.choice.items():
            nodes = _sorted_nodes(key if isinstance(key, tuple | frozenset) else (key,), f"the key {key!r} of region")
            if nodes not in wanted:
                raise ArgumentError(f"region names {key!r}, which is no target", "use sets of variables that interact")
            if nodes in named:
                raise ArgumentError(f"region names the target {nodes} twice", "give it once")
            named[nodes] = region
        return named


NAMED_RULES: Mapping[str, Callable[[], RegionRule]] = {
    "s2": IndependentNeighbours,
    "forest": ForestAround,
    "planar": PlanarAround,
}


def _by_distance(graph: Graph, target: Target) -> Iterator[int]:
    """The variables that can be reached from the target, the nearest first."""
    distance = 1
    while (layer := graph.neighbourhood(target, distance)).size:
        yield from layer.tolist()
        distance += 1


def as_rule(region: object) -> RegionRule:
    """Turn an order k, ``"s2"``, ``"forest"``, ``"planar"``, a function, a mapping or a rule into a rule."""
    is_class = isinstance(region, type)
    if hasattr(region, "regions") and not is_class:
        return region
    if isinstance(region, int | np.integer) and not isinstance(region, bool):
        return Neighbourhood(int(region))
    if isinstance(region, str):
        if region.isdecimal():
            return Neighbourhood(int(region))
        if region in NAMED_RULES:
            return NAMED_RULES[region]()
    elif (callable(region) and not is_class) or isinstance(region, Mapping):
        return GivenRegions(region)
    raise ArgumentError(
        "is not known",
        "use an order 0, 1, 2, ..., 's2', 'forest', 'planar', a function of graph and target, or a "
        "mapping from targets to regions",
        argument="region",
        value=region,
    )


def as_rules(region: object) -> list[RegionRule]:
    """Turn one choice of regions, or a list of several, into rules."""
    if not isinstance(region, list | tuple):
        return [as_rule(region)]
    if not region:
        raise ArgumentError("region is an empty list", "name at least one choice of regions")
    return [as_rule(choice) for choice in region]


def check_region(region: Iterable[int], target: Target, n_nodes: int) -> Region:
    """Return the region in order, or say what is wrong with it."""
    nodes = _sorted_nodes(region, f"the region of {target}")
    if nodes and not (nodes[0] >= 0 and nodes[-1] < n_nodes):
        raise ArgumentError(f"the region {nodes} names a variable outside 0..{n_nodes - 1}")
    if not set(target) <= set(nodes):
        raise ArgumentError(f"the region {nodes} does not hold its target {target}", "add the target's variables")
    return nodes


def _sorted_nodes(nodes: Any, what: str) -> tuple[int, ...]:
    """Variables in ascending order, each once."""
    listed = list(nodes) if isinstance(nodes, Iterable) and not isinstance(nodes, str | bytes) else [nodes]
    for node in listed:
        if not isinstance(node, int | np.integer) or isinstance(node, bool):
            raise ArgumentError(f"{what} holds {node!r}", "use the numbers of variables")
    return tuple(sorted({int(node) for node in listed}))


def edge_strengths(family: DiscreteFamily, factors: FactorGraph) -> Array:
    """Return the strength of the interaction along each edge: half the range of the log-weights, ``|w|`` of spins."""
    half_ranges = np.array([np.ptp(factor.table) / 2 for factor in factors.factors])
    return sum_over_edges(family.graph, [factor.nodes for factor in factors.factors], half_ranges)


def independent_sets(graph: Graph, pointers: Array, nodes: Array, strengths: Array) -> tuple[Array, Array, bool]:
    """Run YU20 Algorithm 1 for each target: where its set starts, the members, whether any tie was met."""
    if graph.is_complete:
        return _strongest(graph.matrix(strengths), pointers, nodes)
    indptr, heads, edge_of = graph.csr
    return kernels.independent_sets(indptr, heads, np.ascontiguousarray(strengths[edge_of]), pointers, nodes)


def _strongest(strengths: Array, pointers: Array, nodes: Array) -> tuple[Array, Array, bool]:
    """Return the same where all variables are joined: the one that interacts most with each target."""
    n, sizes, members = len(strengths), np.diff(pointers), np.empty(len(pointers) - 1, np.int64)
    for block in row_blocks(len(sizes), n * sizes.max(initial=1)):
        starts, part = pointers[block], nodes[pointers[block.start] : pointers[block.stop]]
        pulls = np.add.reduceat(strengths[part], starts - starts[0])
        pulls[np.repeat(np.arange(len(pulls)), sizes[block]), part] = -np.inf
        members[block] = pulls.argmax(axis=1)
    some = sizes < n
    return np.concatenate([[0], np.cumsum(some)]), members[some], bool((sizes < n - 1).any())


def forests(graph: Graph, targets: Sequence[Target] | Array, strengths: Array, size: int) -> tuple[Array, Array]:
    """Grow a forest around each target: where it starts, and its members."""
    indptr, heads, edge_of = graph.csr
    size = min(size, graph.n_nodes)
    return kernels.forests(indptr, heads, np.ascontiguousarray(strengths[edge_of]), *csr_targets(targets), size)


def csr_targets(targets: Sequence[Target] | Array) -> tuple[Array, Array]:
    """Lay targets out as pointers and nodes."""
    if isinstance(targets, np.ndarray):
        return np.arange(len(targets) + 1) * targets.shape[1], np.ascontiguousarray(targets, dtype=np.int64).ravel()
    pointers = np.concatenate([[0], np.cumsum([len(target) for target in targets], dtype=np.int64)])
    return pointers, np.array([node for target in targets for node in target], dtype=np.int64)


def _with_targets(targets: Sequence[Target], starts: Array, members: Array) -> list[Region]:
    chosen = [members[start:stop].tolist() for start, stop in pairwise(starts)]
    return [tuple(sorted({*target, *own})) for target, own in zip(targets, chosen, strict=True)]
