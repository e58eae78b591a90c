"""The sets of variables that share a term: cliques of a higher-order machine, scopes of tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.factors import interaction_graph
from gibbsian.resources import require_memory

Scope = tuple[int, ...]


def sum_over_edges(graph: Graph, scopes: Sequence[Scope], amounts: Floats) -> Floats:
    """Return for each edge the sum of the amounts of the scopes that contain both of its ends."""
    sizes = np.array([len(scope) for scope in scopes])
    keys = graph.edges @ [graph.n_nodes, 1]  # ascending, as the edges are
    totals = np.zeros(graph.n_edges)
    for size in np.unique(sizes[sizes > 1]).tolist():
        chosen = np.flatnonzero(sizes == size)
        nodes = np.array([scopes[c] for c in chosen.tolist()])
        for first, second in itertools.combinations(range(size), 2):
            edges = np.searchsorted(keys, nodes[:, first] * graph.n_nodes + nodes[:, second])
            totals += np.bincount(edges, amounts[chosen], minlength=graph.n_edges)
    return totals


class Scopes(tuple[Scope, ...]):
    """Distinct sets of variables, ordered by size and then lexicographically.

    This order is the layout of parameters in families with scopes, and in files.

    Parameters
    ----------
    scopes : iterable of tuple of int
        The sets in this order, the variables of each ascending. `Scopes.sorted` accepts any order.
    n_variables : int
        Number of variables.
    """

    n_variables: int

    def __new__(cls, scopes: Iterable[Sequence[int]], n_variables: int) -> Self:
        """Check the sets and their order."""
        if n_variables < 1:
            raise ArgumentError("must be at least 1", argument="n_variables", value=n_variables)
        self = super().__new__(cls, (tuple(int(i) for i in scope) for scope in scopes))
        self.n_variables = int(n_variables)
        for scope in self:
            if not scope or any(i >= j for i, j in itertools.pairwise(scope)):
                raise ArgumentError(f"clique {scope} must name at least one variable, each once, in ascending order")
            if scope[0] < 0 or scope[-1] >= n_variables:
                raise ArgumentError(f"clique {scope} names a variable outside 0..{n_variables - 1}")
        for first, second in itertools.pairwise(self):
            if _rank(first) >= _rank(second):
                raise ArgumentError(
                    f"clique {second} stands after {first}",
                    "give each once, smaller ones first, then in lexicographic order (build() does that)",
                )
        return self

    @classmethod
    def sorted(cls, scopes: Iterable[Sequence[int]], n_variables: int) -> Self:
        """Return the scopes of sets in any order; duplicates are dropped."""
        return cls(sorted({tuple(sorted(scope)) for scope in scopes}, key=_rank), n_variables)

    def touching(self, variables: Mask) -> Mask:
        """Return the mask of the scopes that contain any of the masked variables."""
        indptr, members = self.csr
        return np.logical_or.reduceat(variables[members], indptr[:-1]) if len(self) else np.zeros(0, bool)

    @classmethod
    def of_order(cls, n_variables: int, order: int) -> Self:
        """Return the scopes of all sets of up to `order` variables.

        Examples
        --------
        >>> from gibbsian.models.scopes import Scopes
        >>> len(Scopes.of_order(30, order=3))
        4525
        """
        if not 1 <= order <= n_variables:
            raise ArgumentError(
                f"must be from 1 to the number of variables, {n_variables}", argument="order", value=order
            )
        n_scopes = sum(math.comb(n_variables, k) for k in range(1, order + 1))
        bytes_a_scope = 150.0 + 24.0 * order  # a tuple, its members twice in arrays, a few vectors like theta
        require_memory(
            bytes_a_scope * n_scopes,
            f"all {n_scopes:,} products of up to {order} of {n_variables} variables",
            "lower `order`, or give the products that matter",
        )
        sets = (itertools.combinations(range(n_variables), k) for k in range(1, order + 1))
        return cls(itertools.chain.from_iterable(sets), n_variables)

    @classmethod
    def of_graph(cls, graph: Graph) -> Self:
        """Return the scopes of all single variables and of all edges of a graph."""
        singles = ((i,) for i in range(graph.n_nodes))
        return cls(itertools.chain(singles, map(tuple, graph.edges.tolist())), graph.n_nodes)

    def __reduce__(self) -> tuple[type[Scopes], tuple[tuple[Scope, ...], int]]:
        return Scopes, (tuple(self), self.n_variables)

    @cached_property
    def sizes(self) -> Integers:
        """Number of variables in each scope."""
        return np.fromiter(map(len, self), np.intp, len(self))

    @property
    def n_singles(self) -> int:
        """Number of single variables, which come first."""
        return int((self.sizes == 1).sum())

    def to_arrays(self) -> dict[str, Integers]:
        """Return the scopes as two arrays, for a file."""
        indptr, members = self.csr
        return {"indptr": indptr, "members": members}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Floats | Integers], n_variables: int) -> Self:
        """Return the scopes of arrays self by `to_arrays`."""
        members, indptr = arrays["members"].tolist(), arrays["indptr"].tolist()
        return cls((members[start:end] for start, end in itertools.pairwise(indptr)), n_variables)

    @cached_property
    def csr(self) -> tuple[Integers, Integers]:
        """``(indptr, members)``: the variables of scope c are ``members[indptr[c]:indptr[c + 1]]``."""
        members = np.fromiter(itertools.chain.from_iterable(self), np.intp, int(self.sizes.sum()))
        return np.concatenate([[0], np.cumsum(self.sizes)]), members

    @cached_property
    def runs(self) -> Integers:
        """Boundaries of the runs of scopes that differ in their last variable only."""
        starts = [c for c, scope in enumerate(self) if c == 0 or scope[:-1] != self[c - 1][:-1]]
        return np.array([*starts, len(self)], dtype=np.intp)

    @cached_property
    def membership(self) -> tuple[Integers, Integers]:
        """``(indptr, scopes)``: the scopes that contain variable i are ``scopes[indptr[i]:indptr[i + 1]]``."""
        _, members = self.csr
        order = np.argsort(members, kind="stable")
        counts = np.bincount(members, minlength=self.n_variables)
        return np.concatenate([[0], np.cumsum(counts)]), np.repeat(np.arange(len(self)), self.sizes)[order]

    @cached_property
    def companions(self) -> tuple[Integers, Integers]:
        """``(indptr, positions)``: for each entry of `membership`, the positions of the other members in `csr`."""
        indptr, members = self.csr
        pointers, scopes = self.membership
        sizes = self.sizes[scopes]
        ends = np.cumsum(sizes)
        # for each entry all members of its scope, one after the other; then the variable itself is taken out
        positions = np.repeat(indptr[scopes] - (ends - sizes), sizes) + np.arange(int(sizes.sum()))
        variable = np.repeat(np.arange(self.n_variables), np.diff(pointers))
        others = positions[members[positions] != np.repeat(variable, sizes)]
        return np.concatenate([[0], np.cumsum(sizes - 1)]), others

    @cached_property
    def graph(self) -> Graph:
        """The pairs of variables that share a scope."""
        return interaction_graph(self.n_variables, self)

    def without(self, nodes: Scope) -> tuple[Integers, Scopes, Integers]:
        """Drop some variables.

        Returns
        -------
        rest : ndarray of int
            The other variables, ascending.
        scopes : Scopes
            Their scopes, with variables renumbered in this order.
        index : ndarray of int
            For each old scope the index of the new one that is left of it, or -1.
        """
        rest = np.setdiff1d(np.arange(self.n_variables), nodes)
        new = {old: i for i, old in enumerate(rest.tolist())}
        parts = [tuple(new[i] for i in scope if i in new) for scope in self]
        scopes = Scopes.sorted(filter(None, parts), rest.size)
        index = {scope: c for c, scope in enumerate(scopes)}
        return rest, scopes, np.array([index.get(part, -1) for part in parts], dtype=np.intp)


def _rank(scope: Sequence[int]) -> tuple[int, Sequence[int]]:
    return len(scope), scope


def numbered(cliques: object, names: Sequence[str]) -> list[Scope]:
    """Return cliques of column names or numbers as cliques of numbers."""
    index = {name: i for i, name in enumerate(names)}
    scopes = []
    if not isinstance(cliques, Iterable) or (isinstance(cliques, np.ndarray) and cliques.ndim == 0):
        cliques = (cliques,)
    for clique in cliques:
        if isinstance(clique, str) or not isinstance(clique, Iterable):
            raise ArgumentError(f"cliques holds {clique!r}", "write each clique as a tuple of columns")
        scope = []
        for member in clique:
            is_integer = isinstance(member, int | np.integer) and not isinstance(member, bool)
            number = index.get(member, -1) if isinstance(member, str) else int(member) if is_integer else -1
            if not 0 <= number < len(names):
                raise ArgumentError(f"the clique {tuple(clique)} names {member!r}, which the data does not have")
            scope.append(number)
        if len(set(scope)) < len(scope):
            raise ArgumentError(f"the clique {tuple(clique)} names a column twice", "give each once")
        scopes.append(tuple(scope))
    return scopes
