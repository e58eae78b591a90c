"""Orders of elimination of the variables of a graph, and the trees of tables that follow from them.

A plan depends on the graph alone, so engines keep it, and the last few are cached by the graph's edges: all fits on one
graph share them.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from gibbsian.arrays import Floats, Integers
from gibbsian.backends.numba import ordering as kernels
from gibbsian.graphs import Graph

# An order with a larger separator is given up: its largest table alone would hold 2^35 numbers.
MAX_WIDTH = 34
# Min-fill looks at every pair of neighbours of every node near the last one, in Python.
MIN_FILL_UP_TO = 600


@dataclass(frozen=True, eq=False)
class EliminationPlan:
    """The tree of cliques of one elimination order, in flat arrays (see `gibbsian.backends.numba.elimination`).

    Parameters
    ----------
    order : ndarray
        ``order[p]`` is the node eliminated at place p.
    pointers, separators : ndarray
        The separator of the node at place p: its later neighbours when it is eliminated, by their places, ascending.
    edge_ids : ndarray
        The edge between p and each node of its separator, -1 where elimination made it.
    child_pointers, children : ndarray
        The nodes whose message goes to p.
    tables : ndarray
        The start of the table over each separator; the last entry is the total size.
    slots : ndarray
        The start of the message of p on the stack.
    stack_size : int
        Largest height of the stack.
    """

    order: Integers
    pointers: Integers
    separators: Integers
    edge_ids: Integers
    child_pointers: Integers
    children: Integers
    tables: Integers
    slots: Integers
    stack_size: int

    @cached_property
    def width(self) -> int:
        """Size of the largest separator: an upper bound of the treewidth, exact for trees and small grids."""
        return int(np.diff(self.pointers).max())

    @property
    def n_entries(self) -> int:
        """Entries of all separators' tables."""
        return int(self.tables[-1])


@lru_cache(maxsize=8)
def plan_elimination(graph: Graph, cardinalities: tuple[int, ...] | None = None) -> EliminationPlan | None:
    """Return the cheapest plan among a few orders, or None when all have a separator above `MAX_WIDTH`.

    Variables have two values each, or as many as `cardinalities` says. The plan's `tables`, `slots` and `stack_size`
    are those of two-valued variables in any case.
    """
    log_sizes = np.log2(np.full(graph.n_nodes, 2) if cardinalities is None else np.array(cardinalities))
    order = kernels.strip_leaves(*graph.csr[:2])  # the leaves, which cost nothing
    core = np.setdiff1d(np.arange(graph.n_nodes), order)
    if core.size:
        subgraph, _ = graph.subgraph(core)
        proposals = _propose_orders(subgraph)
        costs = [_n_entries(subgraph, each, log_sizes[core]) for each in proposals]
        if not costs or min(costs) == np.inf:
            return None
        order = np.concatenate([order, core[proposals[int(np.argmin(costs))]]])
    return _lay_out(graph, order)


def min_entries(graph: Graph) -> float:
    """Return a lower bound of the number of entries of all separators' tables.

    Each edge belongs to one separator, and equal sizes give the smallest tables. All neighbours of the first node that
    is eliminated are in one separator.
    """
    n, min_degree = max(graph.n_nodes, 1), int(graph.degrees.min(initial=graph.n_nodes))
    of_equal_sizes = n * 2.0 ** min(graph.n_edges / n, MAX_WIDTH)
    return float(min(max(of_equal_sizes, 2.0 ** min(min_degree, MAX_WIDTH)), 2.0 ** (MAX_WIDTH + 1)))


def _propose_orders(graph: Graph) -> list[Integers]:
    n, k = graph.n_nodes, MAX_WIDTH
    if n > k and graph.n_edges > k * n - k * (k + 1) // 2:
        return []  # more edges than a graph of treewidth k can have
    natural = np.arange(n)
    searched = (min_degree_order(graph), min_fill_order(graph))
    return [natural, natural[::-1].copy(), _band_order(graph), *(order for order in searched if order is not None)]


def _n_entries(graph: Graph, order: Integers, log_sizes: Floats) -> float:
    """Number of entries of the cliques' tables of an order; infinite beyond `MAX_WIDTH`."""
    pointers, separators = _separators(graph, order)
    if not pointers.size:
        return np.inf
    return float(np.exp2(log_clique_sizes(order, pointers, separators, log_sizes)).sum())


def log_clique_sizes(order: Integers, pointers: Integers, separators: Integers, log_sizes: Floats) -> Floats:
    """Return the sum of `log_sizes` over each node with its separator, by place."""
    placed: Floats = log_sizes[order]
    nodes = np.repeat(np.arange(order.size), np.diff(pointers))
    return placed + np.bincount(nodes, weights=placed[separators], minlength=order.size)


def _separators(graph: Graph, order: Integers) -> tuple[Integers, Integers]:
    """Return pointers and flat lists of the separators by place; empty ones beyond `MAX_WIDTH`."""
    indptr, neighbours, _ = graph.csr
    separators: tuple[Integers, Integers] = kernels.separators_of_order(indptr, neighbours, order, MAX_WIDTH)
    return separators


def _parents(pointers: Integers, separators: Integers) -> Integers:
    """Return the first node of each separator, -1 where it is empty."""
    return np.where(np.diff(pointers) > 0, np.append(separators, -1)[pointers[:-1]], -1)


def _band_order(graph: Graph) -> Integers:
    """Return an order of small bandwidth: good for long strips, whichever way they are numbered."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    return np.asarray(reverse_cuthill_mckee(csr_matrix(graph.adjacency), symmetric_mode=True), np.int64)


def min_degree_order(graph: Graph, max_width: int = MAX_WIDTH) -> Integers | None:
    """Eliminate a node with the fewest remaining neighbours each time; None where one has more than `max_width`."""
    neighbours = _neighbour_sets(graph)
    heap = [(len(others), node) for node, others in enumerate(neighbours)]
    heapq.heapify(heap)
    order: list[int] = []
    eliminated = [False] * graph.n_nodes
    while heap:
        degree, node = heapq.heappop(heap)
        if eliminated[node] or degree != len(neighbours[node]):
            continue  # an entry from before its degree changed
        if degree > max_width:
            return None
        eliminated[node] = True
        order.append(node)
        for other in _eliminate(node, neighbours):
            heapq.heappush(heap, (len(neighbours[other]), other))
    return np.array(order, dtype=np.int64)


def min_fill_order(graph: Graph) -> Integers | None:
    """Eliminate a node that makes the fewest new edges each time; None for large graphs or beyond `MAX_WIDTH`."""
    if graph.n_nodes > MIN_FILL_UP_TO:
        return None
    neighbours = _neighbour_sets(graph)
    fill = {node: _fill(node, neighbours) for node in range(graph.n_nodes)}
    order: list[int] = []
    while fill:
        node = min(fill, key=lambda candidate: (fill[candidate], candidate))
        if len(neighbours[node]) > MAX_WIDTH:
            return None
        del fill[node]
        order.append(node)
        near = _eliminate(node, neighbours)
        for other in near.union(*(neighbours[each] for each in near)):
            fill[other] = _fill(other, neighbours)
    return np.array(order, dtype=np.int64)


def _neighbour_sets(graph: Graph) -> list[set[int]]:
    indptr, neighbours, _ = graph.csr
    flat = neighbours.tolist()
    return [set(flat[start:stop]) for start, stop in pairwise(indptr.tolist())]


def _eliminate(node: int, neighbours: list[set[int]]) -> set[int]:
    """Remove a node, join its neighbours to one another, and return them."""
    near = neighbours[node]
    for other in near:
        neighbours[other] |= near
        neighbours[other] -= {node, other}
    return near


def _fill(node: int, neighbours: list[set[int]]) -> int:
    """Return twice the number of pairs of neighbours that are not joined."""
    near = neighbours[node]
    return sum(len(near) - 1 - len(near & neighbours[other]) for other in near)


def _lay_out(graph: Graph, order: Integers) -> EliminationPlan:
    """Number the nodes of an order in post-order, which does not change the separators, and make the plan."""
    order = order[kernels.post_order(_parents(*_separators(graph, order)))]
    pointers, separators = _separators(graph, order)
    parents, table_sizes = _parents(pointers, separators), 1 << np.diff(pointers)
    n_children = np.bincount(parents[parents >= 0], minlength=order.size)
    slots, stack_size = kernels.stack_slots(parents, table_sizes)
    return EliminationPlan(
        order=order,
        pointers=pointers,
        separators=separators,
        edge_ids=_edge_ids(graph, order, pointers, separators),
        child_pointers=np.concatenate([[0], np.cumsum(n_children)]),
        children=np.argsort(parents, kind="stable")[np.count_nonzero(parents < 0) :],
        tables=np.concatenate([[0], np.cumsum(table_sizes)]),
        slots=slots,
        stack_size=int(stack_size),
    )


def _edge_ids(graph: Graph, order: Integers, pointers: Integers, separators: Integers) -> Integers:
    """Return the edge of each pair of a node and a node of its separator, -1 where there is none."""
    if graph.n_edges == 0:
        return np.full(separators.size, -1, np.int64)
    ends = np.column_stack([np.repeat(order, np.diff(pointers)), order[separators]])
    ends.sort(axis=1)
    wanted = ends[:, 0] * graph.n_nodes + ends[:, 1]
    keys = graph.edges[:, 0] * graph.n_nodes + graph.edges[:, 1]  # ascending, as the edges are
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[at] == wanted, at, -1)
