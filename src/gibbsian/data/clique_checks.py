"""Checks before a fit with interactions of any order.

Where the model has a clique of two-valued variables and all its parts, the indicator of each combination of their
values is a linear combination of its statistics, so one that never occurs rules out a finite maximum (see `preflight`).
Any other clique has one statistic, the product of its values, which does so where it stands at an end of its range in
every row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial, reduce

import numpy as np

from gibbsian.data.dataset import Dataset
from gibbsian.data.findings import CHECKS, Findings, observed_rows
from gibbsian.data.pairs import check_pairs
from gibbsian.graphs import Graph
from gibbsian.models.base import Model
from gibbsian.models.families.products import ProductsFamily

Clique = tuple[int, ...]

# Cells of data that are looked at for all cliques together, the smallest first: about a second.
MOST_WORK = 2e8
# What a cell of a table of combinations counts for: the tables of all cliques are in memory together.
CELL = 20


@CHECKS.register("products")
def check_products(found: Findings, model: Model[ProductsFamily]) -> None:
    """Check products of any order; pairs of two-valued columns have checks of their own."""
    scopes = model.family.scopes
    if not found.data.coding.domain.two_valued:
        check_cliques(found, scopes, scopes)
        return
    pairs = np.array([scope for scope in scopes if len(scope) == 2], dtype=np.int64).reshape(-1, 2)
    bias = sum(len(scope) == 1 for scope in scopes) == scopes.n_variables
    check_pairs(found, Graph(scopes.n_variables, pairs), bias)
    check_cliques(found, [scope for scope in scopes if len(scope) > 2], scopes)


def check_cliques(found: Findings, cliques: Sequence[Clique], known: Sequence[Clique]) -> None:
    """Check `cliques`, some or all of those that the model knows."""
    data = found.data
    found.check_observed(data.reduce(observed_rows))
    sizes = np.array(data.variables.sizes)
    work = np.cumsum([data.n_states + CELL * float(np.prod(sizes[list(clique)])) for clique in cliques])
    affordable = int(np.searchsorted(work, MOST_WORK, side="right"))
    if len(cliques) > affordable:
        found.notes.append("there are too many cliques to look at: the smallest were")
    free: list[str] = []
    held: list[str] = []
    for clique, reason in _unbounded(found, cliques[:affordable], _with_all_parts(known)):
        (held if found.l2 > 0 or (found.l1 > 0 and len(clique) > 1) else free).append(reason)
    found.judge_empty(free, True, "clique", "leave such cliques out, or drop or merge columns")
    found.judge_empty(held, False, "clique", "")


def _unbounded(found: Findings, cliques: Sequence[Clique], whole: set[Clique]) -> Iterator[tuple[Clique, str]]:
    """Cliques whose parameters have no finite best, each with a clause that says why.

    A clique with missing cells proves nothing and is passed over; `whole` are those with all parts.
    """
    data = found.data
    levels = data.variables.levels
    holes, *tables = data.reduce(partial(_combinations, cliques))
    for clique, table in zip(cliques, tables, strict=True):
        if holes[list(clique)].any():
            continue
        if clique in whole and all(len(levels[i]) == 2 for i in clique):
            reason = _empty_combination(found, clique, table)
        else:
            reason = _end_of_range(data.names, clique, table, levels)
        if reason is not None:
            yield clique, reason


def _combinations(cliques: Sequence[Clique], data: Dataset) -> tuple[np.ndarray, ...]:
    """Count the missing cells of each column, and for each clique the states that show each combination of values."""
    used, sizes = data.weights > 0, np.array(data.variables.sizes)
    codes = np.ascontiguousarray(data.states[used].T).astype(np.int64)
    holes = np.zeros(data.n_variables, int) if data.missing is None else data.missing[used].sum(axis=0)
    numbers = (reduce(lambda total, i: sizes[i] * total + codes[i], clique, 0 * codes[0]) for clique in cliques)
    tables = (
        np.bincount(number, minlength=np.prod(sizes[list(clique)]))
        for clique, number in zip(cliques, numbers, strict=True)
    )
    return (holes, *tables)


def _with_all_parts(known: Sequence[Clique]) -> set[Clique]:
    """Return the cliques of which every part is a clique too; smaller ones come first."""
    whole: set[Clique] = set()
    for clique in known:
        if len(clique) == 1 or all(part in whole for part in itertools.combinations(clique, len(clique) - 1)):
            whole.add(clique)
    return whole


def _empty_combination(found: Findings, clique: Clique, table: np.ndarray) -> str | None:
    empty = np.flatnonzero(table == 0)
    if not len(empty):
        return None
    bits = [int(empty[0]) >> place & 1 for place in reversed(range(len(clique)))]
    shown = ", ".join(found.cell(i, bit) for i, bit in zip(clique, bits, strict=True))
    return f"{shown} never occur together" if len(clique) > 1 else f"{shown} never occurs"


def _end_of_range(names: Sequence[str], clique: Clique, table: np.ndarray, levels: Sequence[np.ndarray]) -> str | None:
    possible = reduce(np.multiply.outer, (levels[i] for i in clique))
    products = possible.ravel()[table > 0]
    for end, word in ((possible.min(), "smallest"), (possible.max(), "largest")):
        if possible.min() < possible.max() and (products == end).all():
            factors = ", ".join(repr(names[i]) for i in clique)
            what = f"the product of {factors}" if len(clique) > 1 else factors
            return f"{what} has its {word} possible value in every row"
    return None
