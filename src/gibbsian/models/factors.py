"""Factor graphs: a discrete distribution as a product of small tables, one form for all families.

Exact inference, sums over a region (YU20 eq. 8) and importance weights need only the factors of a model: which
variables interact, and the log-weight of each combination of their values. Families with faster forms, such as pairs of
spins, also have special kernels.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph

Marginal = Callable[[tuple[int, ...]], Floats]
"""Returns the joint probabilities of a few variables: one axis for each in the order given, indexed by codes."""

Table = tuple[tuple[int, ...], Floats]
"""Variables, and a table of log-weights: axis 0 for samples, then one for each variable."""


@dataclass(frozen=True, eq=False)
class Factor:
    """A table of log-weights over the values of a few variables.

    Parameters
    ----------
    nodes : tuple of int
        The variables, ascending.
    table : ndarray
        The log-weights: one axis for each variable, indexed by codes.
    """

    nodes: tuple[int, ...]
    table: Floats


@dataclass(frozen=True, eq=False)
class FactorGraph:
    """A product of factors over discrete variables: ``P(x) ~ exp(sum_f table_f[x_f])``.

    Parameters
    ----------
    cardinalities : ndarray of int
        Number of values of each variable.
    factors : tuple of Factor
        The factors. Several may have the same variables.
    """

    cardinalities: Integers
    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        for factor in self.factors:
            shape = tuple(int(self.cardinalities[node]) for node in factor.nodes)
            if factor.table.shape != shape:
                raise ArgumentError(f"the factor of {factor.nodes} has shape {factor.table.shape}, not {shape}")

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.cardinalities)

    @cached_property
    def graph(self) -> Graph:
        """The pairs of variables that share a factor (the adjacency of YU20 section 2.2)."""
        return interaction_graph(self.n_variables, [factor.nodes for factor in self.factors])

    @cached_property
    def factors_of(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the factors of each variable."""
        indices: list[list[int]] = [[] for _ in range(self.n_variables)]
        for f, factor in enumerate(self.factors):
            for node in factor.nodes:
                indices[node].append(f)
        return tuple(map(tuple, indices))

    def given_outside(self, index: int, inside: set[int], rows: Codes) -> Table:
        """Return one factor as a function of its variables inside a region, given samples of the others.

        Parameters
        ----------
        index : int
            Index of the factor.
        inside : set of int
            The variables of the region.
        rows : ndarray of shape (n_variables, n_samples)
            Codes of the samples. The table has one row for each, or a single row if no variable is outside.
        """
        nodes, table = self.factors[index].nodes, self.factors[index].table
        fixed = [axis for axis, node in enumerate(nodes) if node not in inside]
        free = [axis for axis, node in enumerate(nodes) if node in inside]
        turned = table.transpose(fixed + free)
        given = turned[tuple(rows[nodes[axis]] for axis in fixed)] if fixed else turned[None]
        return tuple(nodes[axis] for axis in free), given

    def log_weights(self, codes: Codes) -> Floats:
        """Return the unnormalised log-probability of each row of codes."""
        indices = np.asarray(codes, dtype=np.intp)
        total = np.zeros(len(indices))
        for factor in self.factors:
            total += factor.table[tuple(indices[:, node] for node in factor.nodes)]
        return total


def zero_sum(tables: Iterable[tuple[tuple[int, ...], Floats]]) -> dict[tuple[int, ...], Floats]:
    """Return the same sum of tables, up to a constant, as tables that sum to zero along each variable's axis.

    Axes of a table after those of its variables are batch axes.
    """
    gauged: dict[tuple[int, ...], Floats] = {}
    for scope, table in tables:
        for size in range(1, len(scope) + 1):
            for axes in itertools.combinations(range(len(scope)), size):
                # the part that depends on these axes and sums to zero along each of them (analysis of variance)
                part: Floats = table.mean(axis=tuple(axis for axis in range(len(scope)) if axis not in axes))
                for axis in range(size):
                    part = part - part.mean(axis=axis, keepdims=True)
                subset = tuple(scope[axis] for axis in axes)
                gauged[subset] = part + gauged.get(subset, 0.0)
    return gauged


def interaction_graph(n_variables: int, scopes: Sequence[Sequence[int]]) -> Graph:
    """Return the graph that joins any two variables of one scope."""
    pairs = {pair for scope in scopes for pair in itertools.combinations(sorted(scope), 2)}
    return Graph(n_variables, np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2))
