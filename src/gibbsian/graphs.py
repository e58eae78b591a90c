"""Undirected graphs: which variables interact.

A `Graph` is an edge list with its CSR twin. Edges are stored once as ``i < j`` in lexicographic order; that order is
the layout of the couplings in every parameter vector.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gibbsian.errors import GraphError
from gibbsian.resources import memory_limit, require_memory
from gibbsian.rng import RandomState, as_generator

# Two candidate edges of each node, a mask, and the edges that are kept, sorted.
BYTES_A_LATTICE_NODE = 120.0
# Of 'RxC': more name no graph that a machine holds.
MOST_DIGITS = 24

# Above this share of all pairs a BLAS product with the full matrix beats a walk over the edges.
DENSE_ABOVE = 0.1
# Up to this size the full matrix always fits the cache, whatever the graph.
ALWAYS_DENSE_UP_TO = 64

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected simple graph on nodes ``0, ..., n_nodes - 1``.

    Build one with `complete`, `grid`, `random`, `from_edges` or `from_networkx` rather than by hand.

    Parameters
    ----------
    n_nodes : int
        Number of nodes.
    edges : ndarray of shape (n_edges, 2)
        Each edge once, ``i < j``, in lexicographic order.

    Examples
    --------
    >>> import gibbsian as gb
    >>> g = gb.graphs.grid(2, 3)
    >>> g.n_nodes, g.n_edges, g.neighbours(1).tolist()
    (6, 7, [0, 2, 4])
    """

    n_nodes: int
    edges: np.ndarray

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self.n_nodes == other.n_nodes and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once, as plans of a graph are looked up in every evaluation; the same in every process."""
        return hash((self.n_nodes, zlib.crc32(self.edges.tobytes())))

    def __repr__(self) -> str:
        return f"Graph(n_nodes={self.n_nodes}, n_edges={self.n_edges})"

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.edges)

    @property
    def density(self) -> float:
        """Edges as a fraction of all pairs."""
        pairs = self.n_nodes * (self.n_nodes - 1) // 2
        return self.n_edges / pairs if pairs else 0.0

    @property
    def is_dense(self) -> bool:
        """Whether algebra with full matrices beats sums along edges."""
        return self.n_nodes <= ALWAYS_DENSE_UP_TO or self.density > DENSE_ABOVE

    @property
    def is_complete(self) -> bool:
        """Whether every pair of nodes is joined."""
        return self.n_edges == self.n_nodes * (self.n_nodes - 1) // 2

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the edges, for a file."""
        return {"edges": self.edges}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_nodes: int) -> Self:
        """Rebuild from `to_arrays`; the edges must stand as `Graph` wants them."""
        edges = arrays["edges"]
        if not np.array_equal(_canonical(edges), edges):
            raise GraphError("edges must name each pair once, the lower node first, in lexicographic order")
        return cls(n_nodes, edges)

    @cached_property
    def csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``(indptr, neighbour, edge)``: the neighbours of node i and the edges to them, neighbours ascending."""
        tails = np.concatenate([self.edges[:, 1], self.edges[:, 0]])
        heads = np.concatenate([self.edges[:, 0], self.edges[:, 1]])
        ids = np.tile(np.arange(self.n_edges), 2)
        order = np.argsort(tails, kind="stable")  # edges ascend, and earlier neighbours come first
        indptr = np.zeros(self.n_nodes + 1, np.int64)
        np.cumsum(np.bincount(tails, minlength=self.n_nodes), out=indptr[1:])
        return indptr, heads[order], ids[order]

    @cached_property
    def degrees(self) -> np.ndarray:
        """Number of neighbours of each node."""
        return np.diff(self.csr[0])

    @cached_property
    def later(self) -> tuple[np.ndarray, np.ndarray]:
        """``(first, heads)``: edges ``first[i]`` to ``first[i + 1]`` lead from node i to these later nodes."""
        first = np.searchsorted(self.edges[:, 0], np.arange(self.n_nodes + 1))
        return first, self.edges[:, 1].astype(np.uint32)

    @cached_property
    def has_triangles(self) -> bool:
        """Whether some three nodes are all joined."""
        from gibbsian.backends.numba.pair_tables import empty_triangle

        return empty_triangle(*self.later, np.zeros(self.n_edges, np.float32), 0) >= 0

    def neighbours(self, node: int) -> np.ndarray:
        """Return the neighbours of one node, ascending."""
        indptr, heads, _ = self.csr
        return heads[indptr[node] : indptr[node + 1]]

    def neighbourhood(self, target: int | Iterable[int], k: int = 1) -> np.ndarray:
        """Return N_k(target), the nodes at distance exactly `k` from the target region (YU20 eq. 5).

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.graphs.grid(5, 5).neighbourhood(12).tolist()     # YU20 figure 3, counted from 0
        [7, 11, 13, 17]
        """
        return np.flatnonzero(self._distances(target, k) == k)

    def region(self, target: int | Iterable[int], k: int = 1) -> np.ndarray:
        """Return R_k(target), the nodes at distance at most `k` (YU20 below eq. 5).

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.graphs.grid(5, 5).region([12]).tolist()
        [7, 11, 12, 13, 17]
        """
        return np.flatnonzero(self._distances(target, k) >= 0)

    def _distances(self, target: int | Iterable[int], limit: int) -> np.ndarray:
        """Breadth-first distances from the target up to `limit`; -1 beyond."""
        if limit < 0:
            raise GraphError("must be zero or positive", argument="k", value=limit)
        front = np.unique(np.asarray(list(target) if isinstance(target, Iterable) else [target], dtype=np.int64))
        if front.size and (front[0] < 0 or front[-1] >= self.n_nodes):
            raise GraphError(f"target {front.tolist()} names a node outside 0..{self.n_nodes - 1}")
        distance = np.full(self.n_nodes, -1, np.int64)
        distance[front] = 0
        for step in range(1, limit + 1):
            reached = [self.neighbours(node) for node in front]
            front = np.unique(np.concatenate(reached)) if reached else front
            front = front[distance[front] < 0]
            distance[front] = step
        return distance

    @cached_property
    def colouring(self) -> np.ndarray:
        """Colour of each node; neighbours differ.

        Two colours whenever the graph is bipartite; otherwise the better of two greedy orders.
        """
        from gibbsian.backends.numba.graphs import greedy_colours

        if self.is_complete:
            return np.arange(self.n_nodes)
        indptr, heads, _ = self.csr
        orders = (self._breadth_first_order(), np.argsort(-self.degrees, kind="stable"))
        colourings = [greedy_colours(indptr, heads, order) for order in orders]
        return min(colourings, key=lambda colours: int(colours.max(initial=0)))

    def _breadth_first_order(self) -> np.ndarray:
        from scipy.sparse.csgraph import breadth_first_order, connected_components

        matrix = self.adjacency
        _, component = connected_components(matrix, directed=False)
        roots = np.unique(component, return_index=True)[1]
        return np.concatenate(
            [breadth_first_order(matrix, root, directed=False, return_predecessors=False) for root in roots]
        ).astype(np.int64)

    @property
    def adjacency(self) -> Any:
        """The 0/1 adjacency matrix as a SciPy CSR array."""
        from scipy.sparse import csr_array

        indptr, heads, _ = self.csr
        return csr_array((np.ones(len(heads)), heads, indptr), shape=(self.n_nodes, self.n_nodes))

    def matrix(self, values: np.ndarray) -> np.ndarray:
        """Return the symmetric matrix of the edges' values, zero where there is no edge.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.graphs.from_edges([(0, 1)], 2).matrix([0.5]).tolist()
        [[0.0, 0.5], [0.5, 0.0]]
        """
        matrix = np.zeros((self.n_nodes, self.n_nodes))
        i, j = self.edges.T
        matrix[i, j] = matrix[j, i] = values
        return matrix

    def subgraph(self, nodes: Sequence[int] | np.ndarray) -> tuple[Graph, np.ndarray]:
        """Return the graph induced on `nodes` (renumbered in the order given) and the kept edges' old ids.

        Examples
        --------
        >>> import gibbsian as gb
        >>> sub, kept = gb.graphs.grid(2, 2).subgraph([0, 1, 3])
        >>> sub.edges.tolist(), kept.tolist()
        ([[0, 1], [1, 2]], [0, 2])
        """
        place = np.full(self.n_nodes, -1, np.int64)
        place[np.asarray(nodes, dtype=np.int64)] = np.arange(len(nodes))
        ends = np.sort(place[self.edges], axis=1)
        kept = np.flatnonzero(ends[:, 0] >= 0)
        order = np.lexsort((ends[kept, 1], ends[kept, 0]))
        return Graph(len(nodes), ends[kept][order]), kept[order]

    def cliques(self, order: int) -> list[tuple[int, ...]]:
        """Return all sets of up to `order` nodes of which every pair is joined, smaller ones first.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.graphs.from_edges([(0, 1), (1, 2)], 3).cliques(3)
        [(0,), (1,), (2,), (0, 1), (1, 2)]
        """
        if order == 2:
            return [*((node,) for node in range(self.n_nodes)), *map(tuple, self.edges.tolist())]
        import networkx

        found = networkx.enumerate_all_cliques(self.to_networkx())  # in order of size
        return [tuple(sorted(clique)) for clique in itertools.takewhile(lambda clique: len(clique) <= order, found)]

    def to_networkx(self, names: Sequence[Hashable] | None = None) -> networkx.Graph:
        """Return the same graph as a networkx graph, nodes called by `names` where given.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.graphs.complete(3).to_networkx(["a", "b", "c"]).number_of_edges()
        3
        """
        import networkx

        labels = list(range(self.n_nodes)) if names is None else list(names)
        graph = networkx.Graph()
        graph.add_nodes_from(labels)
        graph.add_edges_from((labels[i], labels[j]) for i, j in self.edges)
        return graph


def complete(n_nodes: int) -> Graph:
    """Every pair of `n_nodes` nodes.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.graphs.complete(4).n_edges
    6
    """
    _check_size(n_nodes)
    bytes_a_node_squared = 25.0  # a mask, and the two ends of half as many pairs, twice
    require_memory(
        bytes_a_node_squared * n_nodes**2,
        f"the complete graph on {n_nodes:,} nodes",
        f"give the edges that matter; up to {int((memory_limit() / bytes_a_node_squared) ** 0.5):,} nodes would fit",
    )
    return Graph(n_nodes, np.column_stack(np.triu_indices(n_nodes, 1)).astype(np.int64))


def grid(rows: int, columns: int) -> Graph:
    """Square lattice with free boundaries; node ``r * columns + c`` stands at row r, column c.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.graphs.grid(4, 5)
    Graph(n_nodes=20, n_edges=31)
    """
    _check_size(rows)
    _check_size(columns)
    require_memory(
        BYTES_A_LATTICE_NODE * rows * columns,
        f"a grid of {rows} x {columns} nodes",
        "a grid has a node for each column",
    )
    node = np.arange(rows * columns)
    edges = np.stack([node, node + 1, node, node + columns], axis=1).reshape(-1, 2)  # to the right, then down
    inside = np.stack([node % columns < columns - 1, node < (rows - 1) * columns], axis=1)
    return Graph(rows * columns, edges[inside.ravel()])


def random(n_nodes: int, p: float, random_state: RandomState = None) -> Graph:
    """Erdős-Rényi graph: each pair is joined with probability `p`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.graphs.random(10, 1.0).is_complete
    True
    """
    _check_size(n_nodes)
    if not 0 <= p <= 1:
        raise GraphError("must be a probability between 0 and 1", argument="p", value=p)
    rng = as_generator(random_state)
    n_pairs = n_nodes * (n_nodes - 1) // 2
    chosen = np.sort(rng.choice(n_pairs, rng.binomial(n_pairs, p), replace=False))
    # pairs are numbered row by row: row i holds its n_nodes - 1 - i pairs (i, j) with j > i
    row_ends = np.cumsum(np.arange(n_nodes - 1, 0, -1))
    first = np.searchsorted(row_ends, chosen, side="right")
    second = n_nodes - row_ends[first] + chosen if len(chosen) else first
    return Graph(n_nodes, np.column_stack([first, second]).astype(np.int64))


def from_edges(
    edges: Iterable[Sequence[Hashable]], nodes: int | Sequence[Hashable], isolated: Iterable[Hashable] = ()
) -> Graph:
    """Build a graph from pairs of node numbers or names.

    Parameters
    ----------
    edges : iterable of pairs
        The edges, in any order and direction; repeated edges count once.
    nodes : int or sequence
        The number of nodes, or their names in order (the columns of the data).
    isolated : iterable
        Nodes that must exist although no edge may name them.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.graphs.from_edges([("b", "a"), ("b", "c")], nodes=["a", "b", "c"]).edges.tolist()
    [[0, 1], [1, 2]]
    """
    names: list[Hashable] = list(range(nodes)) if isinstance(nodes, int | np.integer) else list(nodes)
    _check_size(len(names))
    place = {name: i for i, name in enumerate(names)}
    numbered = all(isinstance(name, str) for name in names)  # then plain numbers still mean positions ...
    if numbered and all(str(name).lstrip("-").isdigit() for name in names):
        place |= {int(str(name)): i for i, name in enumerate(names)}  # ... unless the columns are called by numbers
    for node in isolated:
        _find(node, place, numbered, len(names))
    pairs = [[_find(node, place, numbered, len(names)) for node in _pair(edge)] for edge in edges]
    return Graph(len(names), _canonical(np.array(pairs, dtype=np.int64).reshape(-1, 2)))


def from_networkx(graph: networkx.Graph, names: Sequence[Hashable] | None = None) -> Graph:
    """Build a graph from a networkx graph; `names` gives the order of the nodes (default: its own order).

    Examples
    --------
    >>> import networkx, gibbsian as gb
    >>> gb.graphs.from_networkx(networkx.path_graph(4)).edges.tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    return from_edges(graph.edges(), list(graph.nodes()) if names is None else names)


def as_graph(graph: Any, names: Sequence[Hashable]) -> Graph:
    """Turn ``"complete"``, an edge list, a networkx graph or a `Graph` into a `Graph` over the columns `names`.

    Examples
    --------
    >>> from gibbsian.graphs import as_graph
    >>> as_graph("complete", ["a", "b", "c"]).n_edges
    3
    """
    if isinstance(graph, str):
        graph = named_graph(graph, len(names))
    if isinstance(graph, Graph):
        if graph.n_nodes != len(names):
            raise GraphError(f"the graph has {graph.n_nodes} nodes but the data has {len(names)} columns")
        return graph
    if hasattr(graph, "edges") and hasattr(graph, "nodes"):
        return from_edges(graph.edges(), names, isolated=graph.nodes())
    try:
        return from_edges(graph, names)
    except TypeError:
        raise GraphError(
            "must be 'complete', 'empty', 'grid:RxC', 'chain', a Graph, a networkx graph or a list of pairs",
            argument="graph",
            value=graph,
        ) from None


def named_graph(word: str, n_nodes: int) -> Graph:
    """Return the graph that a word names; a grid brings its own number of nodes.

    Examples
    --------
    >>> from gibbsian.graphs import named_graph
    >>> named_graph("chain", 4).n_edges, named_graph("grid:2x2", 6).n_nodes
    (3, 4)
    """
    if word == "complete":
        return complete(n_nodes)
    if word == "empty":
        return from_edges([], n_nodes)
    if word == "chain":
        return grid(1, n_nodes)
    kind, _, shape = word.partition(":")
    rows, _, columns = shape.partition("x")
    if kind == "grid" and rows.isdecimal() and columns.isdecimal() and len(shape) <= MOST_DIGITS:
        return grid(int(rows), int(columns))
    raise GraphError(
        "is not known",
        "use 'complete', 'empty', 'chain' or 'grid:RxC', or give the edges",
        argument="graph",
        value=word,
    )


def _canonical(pairs: np.ndarray) -> np.ndarray:
    """Sort ends and edges, and keep each edge once."""
    loops = pairs[pairs[:, 0] == pairs[:, 1]]
    if len(loops):
        raise GraphError(f"edge {loops[0].tolist()} joins a node to itself", "leave it out (biases are separate)")
    return np.unique(np.sort(pairs, axis=1), axis=0).astype(np.int64)


def _pair(edge: Sequence[Hashable]) -> Sequence[Hashable]:
    if isinstance(edge, str) or len(edge) != 2:
        raise GraphError(f"edge {edge!r} must be a pair of nodes")
    return edge


def _find(node: Hashable, place: dict[Hashable, int], numbered: bool, n_nodes: int) -> int:
    if node in place:
        return place[node]
    if numbered and _is_position(node, n_nodes):
        return int(node)  # type: ignore[call-overload]
    known = list(place)
    listed = ", ".join(map(str, known[:8])) + (", ..." if len(known) > 8 else "")
    raise GraphError(f"the graph names node {node!r}, which is not one of the columns ({listed})")


def _is_position(node: Hashable, n_nodes: int) -> bool:
    return isinstance(node, int | np.integer) and not isinstance(node, bool) and bool(0 <= node < n_nodes)


def _check_size(n_nodes: int) -> None:
    if not isinstance(n_nodes, int | np.integer) or n_nodes < 1:
        raise GraphError(f"a graph needs a whole number of nodes, at least 1; got {n_nodes!r}")
