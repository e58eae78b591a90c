"""A distribution as a product of small tables: the form that serves every model alike.

Exact inference, sums over a region (YU20 eq. 8) and importance weights need nothing of a model but its factors: which
variables interact, and the log-weight of each combination of their values. Models whose own form is faster (pairwise
spins) keep their own kernels beside it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph

Marginal = Callable[[tuple[int, ...]], np.ndarray]
"""Maps some variables to their joint probabilities, one axis each in the order given, indexed by codes."""

Table = tuple[tuple[int, ...], np.ndarray]
"""Variables, and log-weights with an axis for samples and one for each of them."""


@dataclass(frozen=True, eq=False)
class Factor:
    """A log-weight for every combination of values of a few variables.

    Parameters
    ----------
    nodes : tuple of int
        The variables, ascending.
    table : ndarray
        The log-weights (over T), one axis for each variable, indexed by codes.
    """

    nodes: tuple[int, ...]
    table: np.ndarray


@dataclass(frozen=True, eq=False)
class FactorGraph:
    """A product of factors over variables with finitely many values: ``P(x) ~ exp(sum_f table_f[x_f])``.

    Parameters
    ----------
    cardinalities : ndarray of int
        Number of values of each variable.
    factors : tuple of Factor
        The factors. Several may have the same variables.
    """

    cardinalities: np.ndarray
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
        """Which variables share a factor (the adjacency of YU20 section 2.2)."""
        return interaction_graph(self.n_variables, [factor.nodes for factor in self.factors])

    @cached_property
    def factors_of(self) -> tuple[tuple[int, ...], ...]:
        """For each variable, the numbers of the factors that hold it."""
        held: list[list[int]] = [[] for _ in range(self.n_variables)]
        for number, factor in enumerate(self.factors):
            for node in factor.nodes:
                held[node].append(number)
        return tuple(map(tuple, held))

    def given_outside(self, number: int, inside: set[int], rows: np.ndarray) -> Table:
        """Return a factor with the variables outside a region fixed at samples; one row where there are none.

        `rows` holds the samples by variable, in codes.
        """
        nodes, table = self.factors[number].nodes, self.factors[number].table
        fixed = [axis for axis, node in enumerate(nodes) if node not in inside]
        free = [axis for axis, node in enumerate(nodes) if node in inside]
        turned = table.transpose(fixed + free)
        given = turned[tuple(rows[nodes[axis]] for axis in fixed)] if fixed else turned[None]
        return tuple(nodes[axis] for axis in free), given

    def log_weights(self, codes: np.ndarray) -> np.ndarray:
        """Return the unnormalised log-probability of each row of codes."""
        codes = np.asarray(codes, dtype=np.intp)
        total = np.zeros(len(codes))
        for factor in self.factors:
            total += factor.table[tuple(codes[:, node] for node in factor.nodes)]
        return total


@runtime_checkable
class FactorFamily(Protocol):
    """A family that is a product of small tables, with expected statistics that follow from small marginals."""

    def factors(self) -> FactorGraph:
        """Return the distribution as a product of tables over codes."""

    def statistics_from(self, marginal: Marginal) -> np.ndarray:
        """Return the expected statistics, given the joint probabilities of any few variables that share a factor."""


@runtime_checkable
class TransformFamily(Protocol):
    """A family whose members' log-weights of all states are one fast transform of theta, if it says so."""

    def log_weight_table(self) -> np.ndarray:
        """Return the log-weights of all states by their numbers; variable 0 is the most significant digit."""

    def statistics_from_table(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the expected statistics, given the probabilities of all states by their numbers."""


def zero_sum(tables: Iterable[tuple[tuple[int, ...], np.ndarray]]) -> dict[tuple[int, ...], np.ndarray]:
    """Return the same sum of tables, up to a constant, as tables that sum to zero along each variable's axis.

    Tables may have more axes than variables, which tell one sum from another.
    """
    found: dict[tuple[int, ...], np.ndarray] = {}
    for scope, table in tables:
        for size in range(1, len(scope) + 1):
            for axes in itertools.combinations(range(len(scope)), size):
                # the part that depends on these axes and sums to zero along each of them (analysis of variance)
                part = table.mean(axis=tuple(axis for axis in range(len(scope)) if axis not in axes))
                for axis in range(size):
                    part = part - part.mean(axis=axis, keepdims=True)
                subset = tuple(scope[axis] for axis in axes)
                found[subset] = found.get(subset, 0.0) + part
    return found


def interaction_graph(n_variables: int, scopes: Sequence[Sequence[int]]) -> Graph:
    """Join every two variables that share a scope."""
    pairs = {pair for scope in scopes for pair in itertools.combinations(sorted(scope), 2)}
    return Graph(n_variables, np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2))
