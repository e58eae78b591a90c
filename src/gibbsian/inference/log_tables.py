"""Sums and marginals of tables over several variables, shared by the engines that work on factors.

Adding many small tables one by one to a table of all states would cost a pass over all states for each. Here the
tables that contain the first variable are added up among themselves before they meet the others, and so on for the
second, so that a pass over all states is needed once for each order of interaction, not once for each factor. Joint
probabilities of many groups of variables are taken by the same steps backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gibbsian.models.factors import FactorGraph

Axes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class LogTables:
    """The factors of a distribution, those of the same variables added up; variables with one value left out.

    Parameters
    ----------
    cardinalities : tuple of int
        Number of values, two or more, of each variable that is kept.
    tables : dict
        Log-weights by the variables they belong to, numbered among those kept.
    constant : float
        Log-weight of the factors that have no free variable.
    kept : ndarray of int
        The variables that are kept.
    """

    cardinalities: tuple[int, ...]
    tables: dict[Axes, np.ndarray]
    constant: float
    kept: np.ndarray

    @classmethod
    def of(cls, factors: FactorGraph) -> LogTables:
        """Collect the tables of a factor graph."""
        free = factors.cardinalities > 1
        number = (np.cumsum(free) - 1).tolist()
        is_free = free.tolist()
        tables: dict[Axes, np.ndarray] = {}
        for factor in factors.factors:
            scope = tuple(number[node] for node in factor.nodes if is_free[node])
            table = factor.table if len(scope) == len(factor.nodes) else factor.table.squeeze()
            tables[scope] = tables[scope] + table if scope in tables else table
        constant = float(tables.pop((), 0.0))
        return cls(tuple(factors.cardinalities[free].tolist()), tables, constant, np.flatnonzero(free))


def add_up(shape: tuple[int, ...], terms: Sequence[tuple[Axes, np.ndarray]]) -> np.ndarray:
    """Add tables over some axes each into one table over all axes.

    Parameters
    ----------
    shape : tuple of int
        Shape of the result.
    terms : sequence of (axes, table)
        Which axes, ascending, each table belongs to.
    """
    if not terms:
        return np.zeros(shape)
    total = _added(0, len(shape), [(axes, table[None]) for axes, table in terms])[0]
    return total if total.shape == shape else np.broadcast_to(total, shape).copy()


def _added(first: int, n_axes: int, terms: list[tuple[Axes, np.ndarray]]) -> np.ndarray:
    """Sum of tables over a leading axis and axes from `first` on; an axis that none of them has stays at length one.

    The result is always a new array.
    """
    used = [axes[0] for axes, _ in terms if axes]
    if not used:
        total = terms[0][1].copy()
        for _, table in terms[1:]:
            total += table
        return total.reshape(-1, *(1,) * (n_axes - first))
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
        total += others  # the large tables are touched once and not copied
        return total
    return total + others


def digits(numbers: np.ndarray, sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the codes of states by their numbers, in which the last variable changes fastest."""
    codes = np.empty((len(numbers), len(sizes)), np.int8)
    for variable in range(len(sizes) - 1, -1, -1):
        numbers, codes[:, variable] = np.divmod(numbers, sizes[variable])
    return codes


def _merge_two_axes(table: np.ndarray) -> np.ndarray:
    return table.reshape(-1, *table.shape[2:])


def marginals(table: np.ndarray, scopes: Sequence[Axes]) -> dict[Axes, np.ndarray]:
    """Sum a table over all axes but those of each scope (ascending)."""
    found: dict[Axes, np.ndarray] = {}
    _collect(table[None], 0, [(scope, scope) for scope in set(scopes)], found)
    return {scope: found[scope].reshape([table.shape[axis] for axis in scope]) for scope in scopes}


def _collect(table: np.ndarray, first: int, wanted: list[tuple[Axes, Axes]], found: dict[Axes, np.ndarray]) -> None:
    """Fill `found` for the scopes that share the variables of the leading axis; `wanted` says what else each has."""
    used = [axes[0] for axes, _ in wanted if axes]
    if not used:
        total = table.sum(axis=tuple(range(1, table.ndim)))
        found.update((scope, total) for _, scope in wanted)
        return
    axis = min(used)
    if axis > first:
        table = table.sum(axis=tuple(range(1, 1 + axis - first)))
    having = [(axes[1:], scope) for axes, scope in wanted if axes and axes[0] == axis]
    lacking = [(axes, scope) for axes, scope in wanted if not axes or axes[0] != axis]
    _collect(_merge_two_axes(table), axis + 1, having, found)
    if lacking:
        _collect(table.sum(axis=1), axis + 1, lacking, found)
