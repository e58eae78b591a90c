"""Which variables share a term: the cliques of a higher-order machine, the factors of a table model."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.factors import interaction_graph

Scope = tuple[int, ...]


def spread_over_edges(graph: Graph, scopes: Sequence[Scope], amounts: np.ndarray) -> np.ndarray:
    """Sum the amounts of the scopes that hold both ends of each edge."""
    sizes = np.array([len(scope) for scope in scopes])
    numbers = graph.edges @ [graph.n_nodes, 1]  # ascending, as the edges are
    totals = np.zeros(graph.n_edges)
    for size in np.unique(sizes[sizes > 1]).tolist():
        held = np.flatnonzero(sizes == size)
        nodes = np.array([scopes[number] for number in held.tolist()])
        for first, second in itertools.combinations(range(size), 2):
            edges = np.searchsorted(numbers, nodes[:, first] * graph.n_nodes + nodes[:, second])
            totals += np.bincount(edges, amounts[held], minlength=graph.n_edges)
    return totals


class Scopes(tuple[Scope, ...]):
    """Different sets of variables, smaller ones first, those of one size in lexicographic order.

    That order is the layout of the parameters of the models which have scopes.

    Parameters
    ----------
    scopes : iterable of tuple of int
        The sets in that order, the variables of each ascending. `Scopes.sorted` takes any order.
    n_variables : int
        Number of variables.
    """

    n_variables: int

    def __new__(cls, scopes: Iterable[Sequence[int]], n_variables: int) -> Self:
        """Check the sets and keep them."""
        if n_variables < 1:
            raise ArgumentError("must be at least 1", argument="n_variables", value=n_variables)
        made = super().__new__(cls, (tuple(int(i) for i in scope) for scope in scopes))
        made.n_variables = int(n_variables)
        made._check()
        return made

    @classmethod
    def sorted(cls, scopes: Iterable[Sequence[int]], n_variables: int) -> Self:
        """Take sets of variables in any order; a set that is named twice counts once."""
        return cls(sorted({tuple(sorted(scope)) for scope in scopes}, key=_rank), n_variables)

    def touching(self, variables: np.ndarray) -> np.ndarray:
        """Return which scopes hold any of the variables of a mask."""
        indptr, members = self.csr
        return np.logical_or.reduceat(variables[members], indptr[:-1]) if len(self) else np.zeros(0, bool)

    @classmethod
    def of_graph(cls, graph: Graph) -> Self:
        """Return the single variables and the edges of a graph."""
        singles = ((i,) for i in range(graph.n_nodes))
        return cls(itertools.chain(singles, map(tuple, graph.edges.tolist())), graph.n_nodes)

    def _check(self) -> None:
        for scope in self:
            if not scope or any(i >= j for i, j in itertools.pairwise(scope)):
                raise ArgumentError(f"clique {scope} must name at least one variable, each once, in ascending order")
            if scope[0] < 0 or scope[-1] >= self.n_variables:
                raise ArgumentError(f"clique {scope} names a variable outside 0..{self.n_variables - 1}")
        for first, second in itertools.pairwise(self):
            if _rank(first) >= _rank(second):
                raise ArgumentError(
                    f"clique {second} stands after {first}",
                    "give each once, smaller ones first, then in lexicographic order (build() does that)",
                )

    def __reduce__(self) -> tuple[Callable[..., Scopes], tuple[tuple[Scope, ...], int]]:
        return Scopes, (tuple(self), self.n_variables)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of variables in each scope."""
        return np.fromiter(map(len, self), np.int64, len(self))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the scopes as two arrays, for a file."""
        indptr, members = self.csr
        return {"indptr": indptr, "members": members}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_variables: int) -> Self:
        """Rebuild from `to_arrays`."""
        members, indptr = arrays["members"].tolist(), arrays["indptr"].tolist()
        return cls((members[start:end] for start, end in itertools.pairwise(indptr)), n_variables)

    @cached_property
    def csr(self) -> tuple[np.ndarray, np.ndarray]:
        """``(indptr, members)``: the variables of scope c stand from ``indptr[c]`` to ``indptr[c + 1]``."""
        members = np.fromiter(itertools.chain.from_iterable(self), np.int64, int(self.sizes.sum()))
        return np.concatenate([[0], np.cumsum(self.sizes)]), members

    @cached_property
    def runs(self) -> np.ndarray:
        """Where scopes begin that differ from the one before in more than the last variable, and the end of all."""
        starts = [c for c, scope in enumerate(self) if c == 0 or scope[:-1] != self[c - 1][:-1]]
        return np.array([*starts, len(self)], dtype=np.int64)

    @cached_property
    def membership(self) -> tuple[np.ndarray, np.ndarray]:
        """``(indptr, scopes)``: the scopes that hold variable i, ascending."""
        _, members = self.csr
        order = np.argsort(members, kind="stable")
        counts = np.bincount(members, minlength=self.n_variables)
        return np.concatenate([[0], np.cumsum(counts)]), np.repeat(np.arange(len(self)), self.sizes)[order]

    @cached_property
    def companions(self) -> tuple[np.ndarray, np.ndarray]:
        """``(indptr, places)``: for each entry of `membership` where the other members stand in ``csr``, in order."""
        indptr, members = self.csr
        pointers, held = self.membership
        sizes = self.sizes[held]
        ends = np.cumsum(sizes)
        # for each entry all members of its scope, one after the other; then the variable itself is taken out
        places = np.repeat(indptr[held] - (ends - sizes), sizes) + np.arange(int(sizes.sum()))
        own = np.repeat(np.arange(self.n_variables), np.diff(pointers))
        return np.concatenate([[0], np.cumsum(sizes - 1)]), places[members[places] != np.repeat(own, sizes)]

    @cached_property
    def graph(self) -> Graph:
        """Which variables share a scope."""
        return interaction_graph(self.n_variables, self)

    @cached_property
    def without(self) -> Callable[[Scope], tuple[np.ndarray, Scopes, np.ndarray]]:
        """``without(nodes)`` is what is left when `nodes` are given; remembered, as rows ask again.

        That is the other variables, ascending and renumbered in this order; the scopes of them that are left, each
        once; and which of those is left of each old scope, -1 for none.
        """
        return lru_cache(maxsize=64)(self._without)

    def _without(self, nodes: Scope) -> tuple[np.ndarray, Scopes, np.ndarray]:
        rest = np.setdiff1d(np.arange(self.n_variables), nodes)
        number = {int(old): new for new, old in enumerate(rest)}
        parts = [tuple(number[i] for i in scope if i in number) for scope in self]
        scopes = Scopes.sorted(filter(None, parts), rest.size)
        places = {scope: place for place, scope in enumerate(scopes)}
        return rest, scopes, np.array([places.get(part, -1) for part in parts], dtype=np.int64)


def _rank(scope: Sequence[int]) -> tuple[int, Sequence[int]]:
    return len(scope), scope


def triangles(graph: Graph) -> list[Scope]:
    """List every three variables of which each two are joined."""
    after = [{int(j) for j in graph.neighbours(i) if j > i} for i in range(graph.n_nodes)]
    return [(i, j, k) for i, j in graph.edges.tolist() for k in sorted(after[i] & after[j])]


def _is_column(member: Any, n_columns: int) -> bool:
    return isinstance(member, int | np.integer) and not isinstance(member, bool) and 0 <= int(member) < n_columns


def numbered(cliques: Sequence[Sequence[Any]], names: Sequence[str]) -> list[tuple[int, ...]]:
    """Turn cliques of column names or numbers into cliques of numbers."""
    place = {name: i for i, name in enumerate(names)}
    found = []
    listed: Any = cliques if isinstance(cliques, Iterable) and getattr(cliques, "ndim", None) != 0 else (cliques,)
    for clique in listed:
        if isinstance(clique, str) or not isinstance(clique, Iterable):
            raise ArgumentError(f"cliques holds {clique!r}", "write each clique as a tuple of columns")
        for member in clique:
            if not (member in place if isinstance(member, str) else _is_column(member, len(names))):
                raise ArgumentError(f"the clique {tuple(clique)} names {member!r}, which the data does not have")
        numbers = tuple(place[member] if isinstance(member, str) else int(member) for member in clique)
        if len(set(numbers)) < len(numbers):
            raise ArgumentError(f"the clique {tuple(clique)} names a column twice", "give each once")
        found.append(numbers)
    return found
