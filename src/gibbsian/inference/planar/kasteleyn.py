"""Planar graphs as a sum over perfect matchings: the expanded dual graph, its signs, and an order of elimination.

A state of the spins cuts the edges between unequal spins. A set of edges of a plane graph is cut by some state if the
number of its edges round every face is even. Every edge becomes a *unit* of two nodes, one for each side; the nodes of
a face form a *city*. A perfect matching joins the two nodes of a unit (its edge is not cut) or matches nodes inside
cities. A face with many edges is a chain of small cities, joined by units of weight one. With the right signs all
matchings have the same sign in a Pfaffian (Kasteleyn; Schraudolph and Kamenetsky 2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from gibbsian.arrays import Floats, Integers
from gibbsian.backends.numba.dissection import levels_within
from gibbsian.graphs import Graph

if TYPE_CHECKING:
    import networkx

# Maximum number of nodes of a city, and of units of a part that is not divided further.
LARGEST_CITY = 4
LEAF = 48
# Minimum share of the units on each side of a separator, if there is a level with that share.
MIN_SHARE = 0.3


@dataclass(frozen=True, eq=False)
class Front:
    """Units that are eliminated together.

    Parameters
    ----------
    units, boundary : ndarray
        The units, and the units of later fronts that they are joined to when they are eliminated.
    parent : int
        The front of the first boundary units, -1 for the last front.
    separates : bool
        Whether it is the parent of others.
    """

    units: Integers
    boundary: Integers
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
        Number of units: edges, and joints of chains.
    inner : ndarray of shape (n_inner, 2)
        Pairs of nodes in a city; the entry of the matrix is +1 in this direction.
    signs : ndarray
        The sign of each unit's own entry, from its first node to its second.
    order, parents, up : ndarray
        A spanning tree of the vertices: from the root on, the parent of each vertex, and the edge to the parent.
    cached_fronts : dict
        The orders of elimination so far.
    """

    pairs: Integers
    fields: tuple[int, ...]
    n_units: int
    inner: Integers
    signs: Floats
    order: Integers
    parents: Integers
    up: Integers
    cached_fronts: dict[tuple[int, ...], list[Front]] = field(default_factory=dict, repr=False)

    def fronts(self, last: tuple[int, ...] = ()) -> list[Front]:
        """Return the parts of the units in an order of elimination, which may end with some units."""
        if last not in self.cached_fronts:
            units = self.inner // 2
            both = sparse.coo_array((np.ones(len(units), np.int8), units.T), shape=(self.n_units,) * 2).tocsr()
            links = (both + both.T).tocsr()
            parts = list(_dissect(links, np.array(last, dtype=np.int64)))
            self.cached_fronts[last] = _with_boundaries(links, parts)
        return self.cached_fronts[last]


def is_planar(graph: Graph, fields: tuple[int, ...] = ()) -> bool:
    """Return whether a graph with a ghost vertex joined to `fields` is planar."""
    pairs, n = _pairs(graph, fields)
    return _few(pairs, n) and _embedding(pairs) is not None


def _embedding(pairs: Integers) -> networkx.PlanarEmbedding | None:
    """Embed edges in the plane; return None where they are not planar."""
    import networkx

    return networkx.check_planarity(networkx.Graph(pairs.tolist()))[1]


def _pairs(graph: Graph, fields: tuple[int, ...]) -> tuple[Integers, int]:
    """Return the edges with those of the ghost, and the number of vertices."""
    ghost = np.array([(node, graph.n_nodes) for node in fields], dtype=np.int64).reshape(-1, 2)
    return np.concatenate([graph.edges, ghost]), graph.n_nodes + bool(fields)


def _few(pairs: Integers, n: int) -> bool:
    """Return whether a planar graph can have so many edges."""
    return n < 3 or len(pairs) <= 3 * n - 6


def expanded_dual(graph: Graph, fields: tuple[int, ...] = ()) -> ExpandedDual | None:
    """Return the expanded dual of a graph with a ghost vertex joined to `fields`; None where it is not planar."""
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    pairs, n = _pairs(graph, fields)
    if not _few(pairs, n):
        return None
    _, first = np.unique(connected_components(_adjacency(pairs, n))[1], return_index=True)
    pairs = np.concatenate([pairs, np.stack([np.full(first.size - 1, first[0]), first[1:]], axis=1)])
    embedding = _embedding(pairs)
    if embedding is None:
        return None
    faces = _faces(pairs, embedding)
    cities, n_units = _cities(faces, len(pairs))
    inner = np.array([pair for city in cities for pair in combinations(city, 2)], dtype=np.int64).reshape(-1, 2)
    order, parents = breadth_first_order(_adjacency(pairs, n), 0, directed=False)
    up = edges_to_parents(pairs, order, parents)
    # round every vertex an odd number of entries must point along; the first corner of a face points back
    tails = pairs.ravel()[[face[0] for face in faces]] if faces else np.empty(0, np.int64)
    odd = (np.bincount(pairs[:, 0], minlength=n) + np.bincount(tails, minlength=n) + 1) % 2
    signs: Floats = np.full(n_units, -1.0)
    signs[len(pairs) :] = 1.0
    for node in order[:0:-1].tolist():
        if odd[node]:
            signs[up[node]] = 1.0
            odd[parents[node]] ^= 1
    return ExpandedDual(pairs, fields, n_units, inner, signs, order, parents, up)


def _adjacency(pairs: Integers, n: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(pairs)), pairs.T), shape=(n, n))


def edges_to_parents(pairs: Integers, order: Integers, parents: Integers) -> Integers:
    """Return the edge from each vertex of a spanning tree to its parent; -1 at the root."""
    n = order.size
    keys = pairs.min(axis=1) * n + pairs.max(axis=1)
    # SciPy's 32 bits do not hold the keys of large graphs
    by_key, below, above = np.argsort(keys), order[1:].astype(np.int64), parents[order[1:]].astype(np.int64)
    edges = np.full(n, -1)
    edges[below] = by_key[np.searchsorted(keys[by_key], np.minimum(below, above) * n + np.maximum(below, above))]
    return edges


def _faces(pairs: Integers, embedding: networkx.PlanarEmbedding) -> list[list[int]]:
    """Return the sides of edges round each face: side 2e leaves the first vertex of edge e, side 2e + 1 the second."""
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
        city, index = face[: LARGEST_CITY - 1], LARGEST_CITY - 1
        while len(face) - index > 1:
            cities.append([*city, 2 * n_units])
            city = [2 * n_units + 1, *face[index : index + LARGEST_CITY - 2]]
            index += LARGEST_CITY - 2
            n_units += 1
        cities.append(city + face[index:])
    return cities, n_units


def _dissect(links: sparse.csr_array, last: Integers) -> Iterator[tuple[Integers, int]]:
    """Yield parts of the units, each with the index of the part that separates it, or -1; `last` comes first."""
    n = links.shape[0]
    part, distances, queue = np.zeros(n, np.int64), np.full(n, -1), np.empty(n, np.int64)
    n_parts, n_labels = 0, 1
    waiting: list[tuple[Integers, int]] = [(np.setdiff1d(np.arange(n), last), -1)]
    part[last] = -1
    if last.size:
        yield last, -1
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
    links: sparse.csr_array, units: Integers, part: Integers, distances: Integers, queue: Integers
) -> tuple[Integers, Integers, Integers]:
    """Separate units at a level of a breadth-first search from a far unit; a few units are not divided."""
    if units.size <= LEAF:
        return units[:0], units, units[:0]
    start = units[0]
    for _ in range(2):
        distances[units] = -1
        count = levels_within(links.indptr, links.indices, part, start, distances, queue)
        start = queue[count - 1]
    level_of: Integers = distances[units]
    if count < units.size:
        return units[level_of >= 0], units[:0], units[level_of < 0]
    sizes = np.bincount(level_of)
    before = np.cumsum(sizes) - sizes
    balance = np.minimum(before, units.size - before - sizes) / units.size
    level = np.argmin(np.where(balance >= min(MIN_SHARE, balance.max()), sizes, units.size + 1))
    return units[level_of < level], units[level_of == level], units[level_of > level]


def _with_boundaries(links: sparse.csr_array, parts: list[tuple[Integers, int]]) -> list[Front]:
    """Return the fronts of parts in reverse, so that separators come after the parts that they separate."""
    last = len(parts) - 1
    index = np.empty(links.shape[0], np.int64)
    for number, (units, _) in enumerate(parts):
        index[units] = last - number
    touched: list[list[Integers]] = [[] for _ in parts]
    fronts = []
    for number, (units, parent) in enumerate(reversed(parts)):
        near = np.concatenate([links.indices[links.indptr[unit] : links.indptr[unit + 1]] for unit in units])
        reached = np.unique(np.concatenate([near, *touched[number]]))
        boundary = reached[index[reached] > number]
        separates, touched[number] = bool(touched[number]), []
        if parent >= 0:
            touched[last - parent].append(boundary)
        fronts.append(Front(units, boundary, last - parent if parent >= 0 else -1, separates))
    return fronts
