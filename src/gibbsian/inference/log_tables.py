"""Sums and marginals of tables over several variables, shared by the engines that work on factors.

Adding many small tables to a table of all states one by one would take a pass over all states for each. Here the
tables that contain the first variable are added up before the others are added, and so on for the second, so that the
number of passes over all states is the order of interaction, not the number of factors. Joint probabilities of many
groups of variables take the same steps backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers
from gibbsian.models.factors import FactorGraph

Axes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class LogTables:
    """The factors of a distribution without the variables that have one value; factors of the same variables added up.

    Parameters
    ----------
    cardinalities : tuple of int
        Number of values, two or more, of each free variable.
    tables : dict
        Log-weights by their variables, as indices among the free ones.
    constant : float
        Log-weight of the factors without a free variable.
    free : ndarray of int
        The free variables: those with more than one value.
    """

    cardinalities: tuple[int, ...]
    tables: dict[Axes, Floats]
    constant: float
    free: Integers

    @classmethod
    def of(cls, factors: FactorGraph) -> LogTables:
        """Collect the tables of a factor graph."""
        free = np.flatnonzero(factors.cardinalities > 1)
        index = {node: number for number, node in enumerate(free.tolist())}
        tables: dict[Axes, Floats] = {}
        for factor in factors.factors:
            scope = tuple(index[node] for node in factor.nodes if node in index)
            table = factor.table if len(scope) == len(factor.nodes) else factor.table.squeeze()
            tables[scope] = tables[scope] + table if scope in tables else table
        constant = float(tables.pop((), 0.0))
        return cls(tuple(factors.cardinalities[free].tolist()), tables, constant, free)


def add_up(shape: tuple[int, ...], terms: Sequence[tuple[Axes, Floats]]) -> Floats:
    """Add tables over some axes each to one table over all axes.

    Parameters
    ----------
    shape : tuple of int
        Shape of the result.
    terms : sequence of (axes, table)
        The axes of each table, ascending, and the table.
    """
    if not terms:
        return np.zeros(shape)
    total = _added(0, len(shape), [(axes, table[None]) for axes, table in terms])[0]
    return total if total.shape == shape else np.broadcast_to(total, shape).copy()


def _added(first: int, n_axes: int, terms: list[tuple[Axes, Floats]]) -> Floats:
    """Return the sum of tables over a leading axis and axes from `first` on, a new array.

    An axis that no table has is of length one in the sum.
    """
    used = [axes[0] for axes, _ in terms if axes]
    if not used:
        common: Floats = terms[0][1].copy()
        for _, table in terms[1:]:
            common += table
        return common.reshape(-1, *(1,) * (n_axes - first))
    axis = min(used)
    having = [(axes[1:], _merge_two_axes(table)) for axes, table in terms if axes and axes[0] == axis]
    lacking = [(axes, table) for axes, table in terms if not axes or axes[0] != axis]
    total = _added(axis + 1, n_axes, having)
    n_leading = len(terms[0][1])
    total = total.reshape(n_leading, *(1,) * (axis - first), -1, *total.shape[1:])
    if not lacking:
        return total
    others = _added(axis + 1, n_axes, lacking)
    others = others.reshape(n_leading, *(1,) * (axis - first + 1), *others.shape[1:])
    if np.broadcast_shapes(total.shape, others.shape) == total.shape:
        total += others  # in place: large tables are not copied
        return total
    return total + others


def digits(indices: Integers, sizes: Sequence[int] | Integers) -> Codes:
    """Return the codes of states by their indices in a table; the last variable changes fastest."""
    codes = np.empty((len(indices), len(sizes)), np.int8)
    for variable in range(len(sizes) - 1, -1, -1):
        indices, codes[:, variable] = np.divmod(indices, sizes[variable])
    return codes


def invert(cumulative: Floats, uniforms: Floats) -> Integers:
    """Return the indices of draws from masses, given their cumulative sums and uniform random numbers."""
    drawn: Integers = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    return np.minimum(drawn, len(cumulative) - 1)


def _merge_two_axes(table: Floats) -> Floats:
    return table.reshape(-1, *table.shape[2:])


def marginals(table: Floats, scopes: Sequence[Axes]) -> dict[Axes, Floats]:
    """Return the sums of a table over all axes but those of each scope (ascending)."""
    sums: dict[Axes, Floats] = {}
    _collect(table[None], 0, [(scope, scope) for scope in set(scopes)], sums)
    return {scope: sums[scope].reshape([table.shape[axis] for axis in scope]) for scope in scopes}


def _collect(table: Floats, first: int, wanted: list[tuple[Axes, Axes]], sums: dict[Axes, Floats]) -> None:
    """Fill `sums` for the scopes that share the variables of the leading axis, each with its remaining axes."""
    used = [axes[0] for axes, _ in wanted if axes]
    if not used:
        total = table.sum(axis=tuple(range(1, table.ndim)))
        sums.update((scope, total) for _, scope in wanted)
        return
    axis = min(used)
    if axis > first:
        table = table.sum(axis=tuple(range(1, 1 + axis - first)))
    having = [(axes[1:], scope) for axes, scope in wanted if axes and axes[0] == axis]
    lacking = [(axes, scope) for axes, scope in wanted if not axes or axes[0] != axis]
    _collect(_merge_two_axes(table), axis + 1, having, sums)
    if lacking:
        _collect(table.sum(axis=1), axis + 1, lacking, sums)
