"""Checks before a fit of variables with many values: is every value, and every pair of values on an edge, shown?

The reasons are those of `preflight`: biases and couplings of a table model include the indicator of every value and of
every pair of values on an edge. One that is never shown has the mean zero, which no finite parameters reach. L2 holds
every direction; L1 holds the couplings only, so a value that never occurs stays an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

import numpy as np

from gibbsian.data.dataset import Dataset
from gibbsian.data.distinct import distinct_codes
from gibbsian.data.findings import CHECKS, LISTED, Findings, columns_have, counted_rows, is_rare, listed, them, warn
from gibbsian.data.pairs import check_pairs
from gibbsian.graphs import Graph
from gibbsian.models.base import Model
from gibbsian.models.families.tables import TablesFamily
from gibbsian.resources import require_memory

# An int16 copy of the codes, and one edge's cells as int64.
BYTES_PER_CODE = 2
BYTES_PER_ROW = 16


@CHECKS.register("tables")
def check_tables(found: Findings, model: Model[TablesFamily]) -> None:
    """Check tables of values: of those with more than two columns, their pairs."""
    graph = model.family.graph
    if found.data.coding.domain.two_valued:
        check_pairs(found, graph, bias=True)
    else:
        check_categories(found, graph)


def check_categories(found: Findings, graph: Graph) -> None:
    """Check that a table for every variable and every edge can be learned."""
    data = found.data
    shown = data.reduce(_rows_with_each_value)
    found.check_observed(np.array([rows.sum() for rows in shown]))
    found.constant = found.names_where(np.array([np.count_nonzero(rows) == 1 for rows in shown]))
    # a column with one value of one is idle; with one of several its biases have no finite best
    several = [name for name in found.constant if len(data.coding.labels_of(data.names.index(name))) > 1]
    idle = " and so no part in any interaction"
    found.judge_constant(several, ", declare that value alone,", idle, f"drop {them(found.constant)}")
    _warn_of_identifiers(found, shown)
    _judge_unseen(found, shown)
    _judge_rare(found, shown)
    _note_spelled_alike(found)
    twins = _judge_pairs(found, graph, shown)
    if not graph.is_complete and isinstance(data, Dataset):  # rows elsewhere are not in memory together
        twins |= _identical_columns(data)
    found.warn_of_duplicates((i, j, "relabelled") for i, j in twins)


# -- single values ----------------------------------------------------------------------------------------------------
def _rows_with_each_value(data: Dataset) -> tuple[np.ndarray, ...]:
    """For each column, how many rows of positive weight show each of its values."""
    rows = counted_rows(data)
    shown = []
    for j, size in enumerate(data.variables.sizes):
        present = rows if data.missing is None else rows * ~data.missing[:, j]
        shown.append(np.bincount(data.states[:, j], present, minlength=size))
    return tuple(shown)


def _warn_of_identifiers(found: Findings, shown: tuple[np.ndarray, ...]) -> None:
    """A column in which most rows have a value of their own is a number or a name, not a category."""
    alone = np.array([np.count_nonzero(rows == 1) > 0.5 * rows.sum() for rows in shown])
    unique = found.names_where(alone & np.array([np.count_nonzero(rows) > 10 for rows in shown]))
    if unique:
        warn(
            f"{columns_have(unique)} a value of its own in most rows, which is no category",
            f"cut numbers into bins (pandas.cut), or drop {them(unique)}",
        )


def _judge_unseen(found: Findings, shown: tuple[np.ndarray, ...]) -> None:
    clauses = [
        f"{found.cell(j, code)} never occurs"
        for j, rows in enumerate(shown)
        if found.data.names[j] not in found.constant
        for code in np.flatnonzero(rows == 0).tolist()
    ]
    found.judge_empty(clauses, found.l2 == 0, "value", "leave such values out of the categories")


def _judge_rare(found: Findings, shown: tuple[np.ndarray, ...]) -> None:
    rare = [
        f"{found.cell(j, code)} occurs in {'1 row' if rows[code] == 1 else f'{rows[code]:.0f} rows'}"
        for j, rows in enumerate(shown)
        for code in np.flatnonzero(is_rare(rows, rows.sum())).tolist()
    ]
    if not rare:
        return
    found.notes.append(f"{listed(rare, 'other value', 'other values')}: their parameters are poorly determined")
    if found.l2 == 0:
        weight = 1.0 / max(found.data.total_weight, 1.0)
        warn(found.notes[-1], f"merge them, or add a penalty such as `l2={weight:.2g}`, one over the number of rows")


def _note_spelled_alike(found: Findings) -> None:
    """Labels of one column that differ in letter case only: perhaps one value, perhaps two."""
    alike = []
    for name, labels in zip(found.data.names, found.data.labels, strict=True):
        words = [label for label in labels if isinstance(label, str)]
        repeated = {word for word, count in Counter(map(str.casefold, words)).items() if count > 1}
        same = [word for word in words if word.casefold() in repeated]
        if same:
            alike.append(f"{name!r} has {same[0]!r} and {same[1]!r}")
    if alike:
        found.notes.append(f"{listed(alike, 'other column', 'other columns')}, taken as different values")


# -- pairs of values --------------------------------------------------------------------------------------------------
def _judge_pairs(found: Findings, graph: Graph, shown: tuple[np.ndarray, ...]) -> set[tuple[int, int]]:
    """Judge the edges one at a time, so that no more than one table is held; return relabelled columns."""
    data = found.data
    tables = (
        _tables(data, graph.edges)
        if isinstance(data, Dataset)
        else data.reduce(partial(tuple_of_tables, edges=graph.edges))
    )
    apart: list[str] = []
    certain: list[str] = []
    doubtful: list[str] = []
    twins: set[tuple[int, int]] = set()
    for (i, j), table in zip(graph.edges.tolist(), tables, strict=True):
        occur = np.ix_(shown[i] > 0, shown[j] > 0)
        observed = table[:-1, :-1]
        # a cell missing in column i may stand for any of its values
        possible = observed | table[:-1, -1:] | table[-1:, :-1] | table[-1, -1]
        if not observed.any():
            apart.append(f"columns {data.names[i]!r} and {data.names[j]!r}")
        elif not possible[occur].all():
            certain.append(_never(found, i, j, possible, shown) if len(certain) < LISTED else "")
        elif not observed[occur].all():
            doubtful.append(_never(found, i, j, observed, shown) if len(doubtful) < LISTED else "")
        inner = observed[occur]
        if inner.shape[0] == inner.shape[1] and (inner.sum(axis=0) == 1).all() and (inner.sum(axis=1) == 1).all():
            twins.add((i, j))
    found.judge_pairs(apart, certain, doubtful)
    return twins


def _tables(data: Dataset, edges: np.ndarray) -> Iterator[np.ndarray]:
    """Yield for each edge which pairs of values its columns show, missing cells after the last value."""
    columns, sizes = _columns_with_holes(data), data.variables.sizes
    for i, j in edges.tolist():
        seen = np.bincount(columns[i] * np.int16(sizes[j] + 1) + columns[j], minlength=(sizes[i] + 1) * (sizes[j] + 1))
        yield seen.reshape(sizes[i] + 1, sizes[j] + 1) > 0


def tuple_of_tables(data: Dataset, edges: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return all tables together, which add by `or`."""
    return tuple(_tables(data, edges))


def _columns_with_holes(data: Dataset) -> np.ndarray:
    """The codes of each column in one row; a missing cell has the number after the last value."""
    used = data.weights > 0
    n_states, n = int(used.sum()), data.n_variables
    require_memory(
        BYTES_PER_CODE * n_states * n + BYTES_PER_ROW * n_states,
        f"looking at the pairs of {n} columns",
        "use fewer rows or columns",
    )
    columns = np.ascontiguousarray(data.states[used].T).astype(np.int16)
    if data.missing is not None:
        sizes = np.array(data.variables.sizes, dtype=np.int16)
        columns = np.where(data.missing[used].T, sizes[:, None], columns)
    return columns


def _never(found: Findings, i: int, j: int, filled: np.ndarray, shown: tuple[np.ndarray, ...]) -> str:
    empty = ~filled & (shown[i] > 0)[:, None] & (shown[j] > 0)
    a, b = np.argwhere(empty)[0].tolist()
    count = int(empty.sum())
    more = f" (nor do {count - 1} other combinations of the two)" if count > 1 else ""
    return f"{found.cell(i, a)} never occurs together with {found.cell(j, b)}{more}"


def _identical_columns(data: Dataset) -> set[tuple[int, int]]:
    """Each column that is a relabelling of an earlier one in every row, with the first of its kind."""
    columns = _columns_with_holes(data)
    alike = np.empty(columns.shape, np.int8)
    for j, size in enumerate(data.variables.sizes):
        codes, first = np.unique(columns[j], return_index=True)
        rank = np.full(size + 1, -1, np.int8)
        rank[codes[np.argsort(first)]] = np.arange(len(codes), dtype=np.int8)  # numbered as they appear
        rank[size] = -1
        alike[j] = rank[columns[j]]
    missing = alike < 0
    sizes = [int(alike.max(initial=0)) + 1] * columns.shape[1]
    shows, kind_of = distinct_codes(np.where(missing, 0, alike), sizes, missing)
    return {(int(shows[kind]), j) for j, kind in enumerate(kind_of) if shows[kind] != j}
