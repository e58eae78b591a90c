"""Checks before a fit with interactions of any order.

Where the model has a clique of two-valued variables and all its parts, the indicator of each combination of their
values is a linear combination of its statistics, so one that never occurs rules out a finite maximum (see `preflight`).
Any other clique has one statistic, the product of its values, which does so where it stands at an end of its range in
every row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from gibbsian.data.findings import Findings, counted_rows

Clique = tuple[int, ...]

# Cells of data that are looked at for all cliques together, the smallest first: about a second.
MOST_WORK = 2e8


def check_cliques(found: Findings, cliques: Sequence[Clique], known: Sequence[Clique]) -> None:
    """Check `cliques`, some or all of those that the model knows."""
    data, rows = found.data, counted_rows(found.data)
    found.check_observed(np.full(data.n_variables, rows.sum()) if data.missing is None else rows @ ~data.missing)
    affordable = int(MOST_WORK // max(1, data.n_states))
    if len(cliques) > affordable:
        found.notes.append("there are too many cliques to look at: the smallest were")
    free: list[str] = []
    held: list[str] = []
    for clique, reason in _unbounded(found, cliques[:affordable], set(known)):
        (held if found.l2 > 0 or (found.l1 > 0 and len(clique) > 1) else free).append(reason)
    found.judge_empty(free, True, "clique", "leave such cliques out, or drop or merge columns")
    found.judge_empty(held, False, "clique", "")


def _unbounded(found: Findings, cliques: Sequence[Clique], known: set[Clique]) -> Iterator[tuple[Clique, str]]:
    """Cliques whose parameters have no finite best, each with a clause that says why.

    A clique with missing cells proves nothing and is passed over.
    """
    data = found.data
    used = data.weights > 0
    codes = np.ascontiguousarray(data.domain.to_codes(data.states[used]).T)
    holes: Any = np.zeros(data.n_variables, bool) if data.missing is None else data.missing[used].any(axis=0)
    levels = data.domain.levels(data.n_variables)
    for clique in cliques:
        if holes[list(clique)].any():
            continue
        if all(len(levels[i]) == 2 for i in clique) and _has_all_parts(clique, known):
            reason = _empty_combination(found, clique, codes)
        else:
            reason = _end_of_range(data.names, clique, codes, levels)
        if reason is not None:
            yield clique, reason


def _has_all_parts(clique: Clique, known: set[Clique]) -> bool:
    """Whether every part of a clique is a clique too."""
    return all(part in known for size in range(1, len(clique)) for part in itertools.combinations(clique, size))


def _empty_combination(found: Findings, clique: Clique, codes: np.ndarray) -> str | None:
    number = reduce(lambda total, i: 2 * total + codes[i], clique, np.zeros(codes.shape[1], np.int64))
    empty = np.flatnonzero(np.bincount(number, minlength=2 ** len(clique)) == 0)
    if not len(empty):
        return None
    bits = [int(empty[0]) >> place & 1 for place in reversed(range(len(clique)))]
    shown = ", ".join(found.cell(i, bit) for i, bit in zip(clique, bits, strict=True))
    return f"{shown} never occur together" if len(clique) > 1 else f"{shown} never occurs"


def _end_of_range(names: Sequence[str], clique: Clique, codes: np.ndarray, levels: Sequence[np.ndarray]) -> str | None:
    # the products of data and range are taken in the same order, so that equal ones are equal to the bit
    products = reduce(np.multiply, (levels[i][codes[i]] for i in clique))
    possible = reduce(np.multiply.outer, (levels[i] for i in clique))
    for end, word in ((possible.min(), "smallest"), (possible.max(), "largest")):
        if possible.min() < possible.max() and (products == end).all():
            factors = ", ".join(repr(names[i]) for i in clique)
            what = f"the product of {factors}" if len(clique) > 1 else factors
            return f"{what} has its {word} possible value in every row"
    return None
