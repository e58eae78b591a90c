"""Planar graphs as a sum over perfect matchings: the expanded dual graph, its signs, and an order of elimination.

Cutting an edge or not, for all edges of a plane graph such that some state of the spins does it, means that round every
face an even number is cut. Every edge becomes a *unit* of two nodes, one for each side; the nodes of a face form a
*city*. A perfect matching joins the two nodes of a unit (its edge is not cut) or matches nodes inside cities. A face
with many edges is a chain of small cities, joined by units of weight one. With the right signs all matchings have the
same sign in a Pfaffian (Kasteleyn; Schraudolph and Kamenetsky 2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from gibbsian.backends.numba.dissection import levels_within
from gibbsian.graphs import Graph

if TYPE_CHECKING:
    import networkx

# Nodes of a city, at most, and units of a part that is not divided any more.
LARGEST_CITY = 4
LEAF = 48
# A separator leaves at least this share of the units on each side, where levels allow.
LEAST_SHARE = 0.3


@dataclass(frozen=True, eq=False)
class Front:
    """Units that are eliminated together.

    Parameters
    ----------
    own, boundary : ndarray
        The units, and those of later fronts that they touch by then.
    parent : int
        The front that follows, -1 for the last one.
    separates : bool
        Whether it is the parent of others.
    """

    own: np.ndarray
    boundary: np.ndarray
    parent: int
    separates: bool


@dataclass(frozen=True, eq=False)
class ExpandedDual:
    """The expanded dual of a connected plane graph; unit e has the nodes 2e and 2e + 1.

    Parameters
    ----------
    pairs : ndarray of shape (n_edges, 2)
        The edges: those of the graph, one to the ghost for each field, and those that join components.
    fields : tuple of int
        The vertices that are joined to the ghost, which is the last vertex; none without fields.
    n_units : int
        Edges and joints of chains.
    inner : ndarray of shape (n_inner, 2)
        Pairs of nodes in a city; the entry of the matrix is +1 in this direction.
    signs : ndarray
        The sign of each unit's own entry, from its first node to its second.
    order, parents, up : ndarray
        A spanning tree of the vertices: from the root on, each vertex' parent, and the edge to it.
    known : dict
        All orders of elimination that were ever asked for.
    """

    pairs: np.ndarray
    fields: tuple[int, ...]
    n_units: int
    inner: np.ndarray
    signs: np.ndarray
    order: np.ndarray
    parents: np.ndarray
    up: np.ndarray
    known: dict[tuple[int, ...], list[Front]] = field(default_factory=dict, repr=False)

    def fronts(self, kept: tuple[int, ...] = ()) -> list[Front]:
        """Return parts of the units in the order of their elimination; the last one are those `kept`, if any."""
        if kept not in self.known:
            self.known[kept] = self._find_fronts(kept)
        return self.known[kept]

    def _find_fronts(self, kept: tuple[int, ...]) -> list[Front]:
        units = self.inner // 2
        both = sparse.coo_array((np.ones(len(units), np.int8), units.T), shape=(self.n_units,) * 2).tocsr()
        links = (both + both.T).tocsr()
        return _with_boundaries(links, _dissect(links, np.array(kept, dtype=np.int64)))


def is_planar(graph: Graph, fields: tuple[int, ...] = ()) -> bool:
    """Say whether a graph with a ghost vertex joined to `fields` is planar."""
    pairs = _pairs(graph, fields)
    few = _few(pairs, graph.n_nodes + bool(fields))
    return few and _embedding(pairs) is not None


def _embedding(pairs: np.ndarray) -> networkx.PlanarEmbedding | None:
    """Draw edges in the plane; None where that cannot be done."""
    import networkx

    return networkx.check_planarity(networkx.Graph(pairs.tolist()))[1]


def _pairs(graph: Graph, fields: tuple[int, ...]) -> np.ndarray:
    ghost = np.array([(node, graph.n_nodes) for node in fields], dtype=np.int64).reshape(-1, 2)
    return np.concatenate([graph.edges, ghost])


def _few(pairs: np.ndarray, n: int) -> bool:
    """Say whether a planar graph can have so many edges."""
    return n < 3 or len(pairs) <= 3 * n - 6


def expanded_dual(graph: Graph, fields: tuple[int, ...] = ()) -> ExpandedDual | None:
    """Return the expanded dual of a graph with a ghost vertex joined to `fields`; None where it is not planar."""
    from scipy.sparse.csgraph import connected_components

    n, pairs = graph.n_nodes + bool(fields), _pairs(graph, fields)
    if not _few(pairs, n):
        return None
    _, first = np.unique(connected_components(_adjacency(pairs, n))[1], return_index=True)
    pairs = np.concatenate([pairs, np.stack([np.full(first.size - 1, first[0]), first[1:]], axis=1)])
    embedding = _embedding(pairs)
    return None if embedding is None else _expand(pairs, fields, n, embedding)


def _adjacency(pairs: np.ndarray, n: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(pairs)), pairs.T), shape=(n, n))


def _expand(pairs: np.ndarray, fields: tuple[int, ...], n: int, embedding: networkx.PlanarEmbedding) -> ExpandedDual:
    from scipy.sparse.csgraph import breadth_first_order

    faces = _faces(pairs, n, embedding)
    cities, n_units = _cities(faces, len(pairs))
    inner = np.array([pair for city in cities for pair in combinations(city, 2)], dtype=np.int64).reshape(-1, 2)
    order, parents = breadth_first_order(_adjacency(pairs, n), 0, directed=False)
    up = edges_to_parents(pairs, order, parents)
    # round every vertex an odd number of entries must point along; the first corner of a face points back
    tails = pairs.ravel()[[face[0] for face in faces]] if faces else np.empty(0, np.int64)
    odd = (np.bincount(pairs[:, 0], minlength=n) + np.bincount(tails, minlength=n) + 1) % 2
    signs = np.full(n_units, -1.0)
    signs[len(pairs) :] = 1.0
    for node in order[:0:-1].tolist():
        if odd[node]:
            signs[up[node]] = 1.0
            odd[parents[node]] ^= 1
    return ExpandedDual(pairs, fields, n_units, inner, signs, order, parents, up)


def edges_to_parents(pairs: np.ndarray, order: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """The edge from each vertex of a spanning tree to its parent; -1 at the root."""
    n = order.size
    keys = pairs.min(axis=1) * n + pairs.max(axis=1)
    by_key, below = np.argsort(keys), order[1:].astype(np.int64)  # SciPy's 32 bits do not hold the keys of large graphs
    above = parents[below]
    edges = np.full(n, -1)
    edges[below] = by_key[
        np.searchsorted(keys[by_key], np.minimum(below, above).astype(np.int64) * n + np.maximum(below, above))
    ]
    return edges


def _faces(pairs: np.ndarray, n: int, embedding: networkx.PlanarEmbedding) -> list[list[int]]:
    """The sides of edges round each face; side 2e leaves the first vertex of edge e, side 2e + 1 the second."""
    if not len(pairs):
        return []
    number = dict(zip(map(tuple, pairs.tolist()), range(0, 2 * len(pairs), 2), strict=True))
    number |= {(j, i): side + 1 for (i, j), side in number.items()}
    following = [0] * len(number)
    for i, j, turn in embedding.edges(data="ccw"):
        following[number[j, i]] = number[i, turn]
    faces, seen = [], [False] * len(number)
    for start in range(len(number)):
        face, side = [], start
        while not seen[side]:
            seen[side] = True
            face.append(side)
            side = following[side]
        if face:
            faces.append(face)
    return faces


def _cities(faces: list[list[int]], n_units: int) -> tuple[list[list[int]], int]:
    """Cut faces into chains of cities of at most four nodes, with a new unit at each cut."""
    cities = []
    for face in faces:
        city, place = face[: LARGEST_CITY - 1], LARGEST_CITY - 1
        while len(face) - place > 1:
            cities.append([*city, 2 * n_units])
            city = [2 * n_units + 1, *face[place : place + LARGEST_CITY - 2]]
            place += LARGEST_CITY - 2
            n_units += 1
        cities.append(city + face[place:])
    return cities, n_units


def _dissect(links: sparse.csr_array, kept: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Yield parts of the units with the number of the part that separates them from others, the last one first."""
    n = links.shape[0]
    part, distances, queue = np.zeros(n, np.int64), np.full(n, -1), np.empty(n, np.int64)
    n_parts, n_labels = 0, 1
    waiting = [(np.setdiff1d(np.arange(n), kept), -1)]
    part[kept] = -1
    if kept.size:
        yield kept, -1
        waiting, n_parts = [(waiting[0][0], 0)], 1
    while waiting:
        units, parent = waiting.pop()
        below, middle, above = _split(links, units, part, distances, queue)
        if middle.size:
            yield middle, parent
            parent, n_parts = n_parts, n_parts + 1
            part[middle] = -1
        for side in (below, above):
            if side.size:
                part[side], n_labels = n_labels, n_labels + 1
                waiting.append((side, parent))


def _split(
    links: sparse.csr_array, units: np.ndarray, part: np.ndarray, distances: np.ndarray, queue: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Separate units at a level of a breadth-first search from a far one; few of them are not divided."""
    if units.size <= LEAF:
        return units[:0], units, units[:0]
    start = units[0]
    for _ in range(2):
        distances[units] = -1
        count = levels_within(links.indptr, links.indices, part, start, distances, queue)
        start = queue[count - 1]
    if count < units.size:
        return units[distances[units] >= 0], units[:0], units[distances[units] < 0]
    sizes = np.bincount(distances[units])
    before = np.cumsum(sizes) - sizes
    balance = np.minimum(before, units.size - before - sizes) / units.size
    level = np.argmin(np.where(balance >= min(LEAST_SHARE, balance.max()), sizes, units.size + 1))
    own = distances[units]
    return units[own < level], units[own == level], units[own > level]


def _with_boundaries(links: sparse.csr_array, parts: Iterator[tuple[np.ndarray, int]]) -> list[Front]:
    """Reverse the order, so that separators come after what they separate, and add the boundaries."""
    listed = list(parts)
    last = len(listed) - 1
    place = np.empty(links.shape[0], np.int64)
    for number, (own, _) in enumerate(listed):
        place[own] = last - number
    touched: list[list[np.ndarray]] = [[] for _ in listed]
    fronts = []
    for number, (own, parent) in enumerate(reversed(listed)):
        near = np.concatenate([links.indices[links.indptr[unit] : links.indptr[unit + 1]] for unit in own])
        reached = np.unique(np.concatenate([near, *touched[number]]))
        boundary = reached[place[reached] > number]
        separates, touched[number] = bool(touched[number]), []
        if parent >= 0:
            touched[last - parent].append(boundary)
        fronts.append(Front(own, boundary, last - parent if parent >= 0 else -1, separates))
    return fronts
