"""In which order to eliminate the variables of a graph, and the tree of tables that follows.

The plan depends on the graph alone, so engines keep it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

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
        The later nodes that node p touches when it goes, by their places, ascending.
    edge_ids : ndarray
        The edge between p and each node of its separator, -1 where elimination made it.
    child_pointers, children : ndarray
        The nodes whose message goes to p.
    tables : ndarray
        Where the table over each separator starts; the last entry is the total size.
    slots : ndarray
        Where the message of p stands on the stack.
    stack_size : int
        Largest height of the stack.
    """

    order: np.ndarray
    pointers: np.ndarray
    separators: np.ndarray
    edge_ids: np.ndarray
    child_pointers: np.ndarray
    children: np.ndarray
    tables: np.ndarray
    slots: np.ndarray
    stack_size: int

    @cached_property
    def width(self) -> int:
        """Size of the largest separator: an upper bound of the treewidth, exact for trees and small grids."""
        return int(np.diff(self.pointers).max())

    @property
    def n_entries(self) -> int:
        """Entries of all separators' tables."""
        return int(self.tables[-1])


def plan_elimination(graph: Graph, cardinalities: tuple[int, ...] | None = None) -> EliminationPlan | None:
    """Return the cheapest plan among a few orders, or None when all have a separator above `MAX_WIDTH`.

    `cardinalities` are the numbers of values of the variables, by default two; the plan's `tables`, `slots` and
    `stack_size` are those of two-valued variables in any case.
    """
    sizes = np.full(graph.n_nodes, 2) if cardinalities is None else np.array(cardinalities)
    order = _best_order(graph, np.log2(sizes))
    return None if order is None else _lay_out(graph, order)


def least_entries(graph: Graph) -> float:
    """Return a bound of the entries of separators' tables.

    Each edge is in one, and equal sizes have the fewest; the first node to go has all its neighbours in one.
    """
    n, least_degree = max(graph.n_nodes, 1), int(graph.degrees.min(initial=graph.n_nodes))
    spread = n * 2.0 ** min(graph.n_edges / n, MAX_WIDTH)
    return min(max(spread, 2.0 ** min(least_degree, MAX_WIDTH)), 2.0 ** (MAX_WIDTH + 1))


def _best_order(graph: Graph, log_sizes: np.ndarray) -> np.ndarray | None:
    """Take away leaves, which costs nothing, then choose the cheapest of the orders proposed for the rest."""
    indptr, heads, _ = graph.csr
    leaves = kernels.strip_leaves(indptr, heads)
    core = np.setdiff1d(np.arange(graph.n_nodes), leaves)
    if core.size == 0:
        return leaves
    subgraph, _ = graph.subgraph(core)
    proposals = _propose_orders(subgraph)
    costs = [_n_entries(subgraph, order, log_sizes[core]) for order in proposals]
    if not costs or min(costs) == np.inf:
        return None
    return np.concatenate([leaves, core[proposals[int(np.argmin(costs))]]])


def _propose_orders(graph: Graph) -> list[np.ndarray]:
    n, k = graph.n_nodes, MAX_WIDTH
    if n > k and graph.n_edges > k * n - k * (k + 1) // 2:
        return []  # a graph of treewidth k has no more edges than that
    natural = np.arange(n)
    searched = (min_degree_order(graph), min_fill_order(graph))
    return [natural, natural[::-1].copy(), _band_order(graph), *(order for order in searched if order is not None)]


def _n_entries(graph: Graph, order: np.ndarray, log_sizes: np.ndarray) -> float:
    """Entries of the cliques' tables that an order needs; infinite beyond `MAX_WIDTH`."""
    found = _separators(graph, order)
    return np.inf if found is None else float(np.exp2(log_clique_sizes(order, *found, log_sizes)).sum())


def log_clique_sizes(
    order: np.ndarray, pointers: np.ndarray, separators: np.ndarray, log_sizes: np.ndarray
) -> np.ndarray:
    """Return the sum of `log_sizes` over each node with its separator, by place."""
    placed = log_sizes[order]
    owners = np.repeat(np.arange(order.size), np.diff(pointers))
    return placed + np.bincount(owners, weights=placed[separators], minlength=order.size)


def _separators(graph: Graph, order: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Flat lists of the separators by place; None beyond `MAX_WIDTH`."""
    indptr, heads, _ = graph.csr
    pointers, separators = kernels.separators_of_order(indptr, heads, order, MAX_WIDTH)
    return (pointers, separators) if pointers.size else None


def _parents(pointers: np.ndarray, separators: np.ndarray) -> np.ndarray:
    """The first node of each separator, -1 where it is empty."""
    return np.where(np.diff(pointers) > 0, np.append(separators, -1)[pointers[:-1]], -1)


def _band_order(graph: Graph) -> np.ndarray:
    """Order of small bandwidth: good for long strips, whichever way they are numbered."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    return reverse_cuthill_mckee(csr_matrix(graph.adjacency), symmetric_mode=True).astype(np.int64)


def min_degree_order(graph: Graph, max_width: int = MAX_WIDTH) -> np.ndarray | None:
    """Eliminate a node with the fewest remaining neighbours each time; None where one has more than `max_width`."""
    neighbours = _neighbour_sets(graph)
    heap = [(len(others), node) for node, others in enumerate(neighbours)]
    heapq.heapify(heap)
    order: list[int] = []
    gone = [False] * graph.n_nodes
    while heap:
        degree, node = heapq.heappop(heap)
        if gone[node] or degree != len(neighbours[node]):
            continue  # an entry from before its degree changed
        if degree > max_width:
            return None
        gone[node] = True
        order.append(node)
        for other in _eliminate(node, neighbours):
            heapq.heappush(heap, (len(neighbours[other]), other))
    return np.array(order, dtype=np.int64)


def min_fill_order(graph: Graph) -> np.ndarray | None:
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
        touched = _eliminate(node, neighbours)
        for other in touched.union(*(neighbours[near] for near in touched)):
            fill[other] = _fill(other, neighbours)
    return np.array(order, dtype=np.int64)


def _neighbour_sets(graph: Graph) -> list[set[int]]:
    indptr, heads, _ = graph.csr
    flat, starts = heads.tolist(), indptr.tolist()
    return [set(flat[start:stop]) for start, stop in pairwise(starts)]


def _eliminate(node: int, neighbours: list[set[int]]) -> set[int]:
    """Take a node out and join its neighbours to one another; return them."""
    touched = neighbours[node]
    for other in touched:
        neighbours[other] |= touched
        neighbours[other] -= {node, other}
    return touched


def _fill(node: int, neighbours: list[set[int]]) -> int:
    """Number of pairs of neighbours that are not joined (twice)."""
    near = neighbours[node]
    return sum(len(near) - 1 - len(near & neighbours[other]) for other in near)


def _lay_out(graph: Graph, order: np.ndarray) -> EliminationPlan:
    """Number the nodes of an order in post-order, which leaves the separators as they are, and list the tables."""
    found = _separators(graph, order)
    assert found is not None  # the order was chosen for its separators
    order = order[kernels.post_order(_parents(*found))]
    indptr, heads, _ = graph.csr
    pointers, separators = kernels.separators_of_order(indptr, heads, order, MAX_WIDTH)
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


def _edge_ids(graph: Graph, order: np.ndarray, pointers: np.ndarray, separators: np.ndarray) -> np.ndarray:
    """Find the edge of each (node, separator node) pair, -1 where there is none."""
    if graph.n_edges == 0:
        return np.full(separators.size, -1, np.int64)
    ends = np.column_stack([np.repeat(order, np.diff(pointers)), order[separators]])
    ends.sort(axis=1)
    wanted = ends[:, 0] * graph.n_nodes + ends[:, 1]
    keys = graph.edges[:, 0] * graph.n_nodes + graph.edges[:, 1]  # ascending, as the edges are
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[at] == wanted, at, -1)
