"""Checks of two-valued columns and of the pairs that interact."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.data.dataset import Dataset
from gibbsian.data.findings import (
    LISTED,
    RARE_ROWS,
    RARE_SHARE,
    PairClauses,
    check_observed,
    columns_have,
    judge_empty,
    names_where,
    them,
    warn_of_duplicates,
)
from gibbsian.data.pairs import (
    CELLS,
    PairCounts,
    count_pairs,
    empty_triangle,
    has_few_triangles,
    identical_columns,
)
from gibbsian.domain import SPIN
from gibbsian.errors import (
    ConstantColumnError,
    DegenerateDataWarning,
    notify,
)
from gibbsian.graphs import Graph


def check_pairs(data: Any, graph: Graph, *, l1: float, l2: float, bias: bool) -> dict[str, Any]:
    """Check that couplings on `graph`, and biases, can be learned; return what a report says of it."""
    unpenalised = l1 == 0 and l2 == 0
    triangles = unpenalised and (bias or data.domain == SPIN) and not data.has_missing and has_few_triangles(graph)
    counts = count_pairs(data, graph.edges, products=triangles)
    check_observed(data, counts.low + counts.high)
    constant = names_where(data, (counts.low == 0) | (counts.high == 0))
    _judge_constant(constant, bias, l2)
    nearly = _warn_of_nearly_constant(data, counts.low, counts.high)
    notes = _clauses(data, graph, counts, bias).judge(unpenalised)
    if triangles and not counts.missing.any():
        _judge_triangles(data, graph, counts)
    duplicates = warn_of_duplicates(_duplicates(data, graph, counts, set(constant)))
    return {"constant": constant, "nearly_constant": nearly, "duplicates": duplicates, "notes": notes}


# -- columns ----------------------------------------------------------------------------------------------------------
def _judge_constant(constant: tuple[str, ...], bias: bool, l2: float) -> None:
    if not constant or not bias:
        return
    if l2 > 0:
        notify(
            DegenerateDataWarning(
                f"{columns_have(constant)} one value only", "the penalty alone keeps the biases finite"
            )
        )
        return
    raise ConstantColumnError(
        f"{columns_have(constant, limit=len(constant))} one value only, so no finite bias is the most likely",
        f"drop {them(constant)} or add a penalty such as `l2=0.01`",
    )


def _warn_of_nearly_constant(data: Any, low_rows: np.ndarray, high_rows: np.ndarray) -> tuple[str, ...]:
    rarer = np.minimum(low_rows, high_rows)
    nearly = names_where(data, (rarer > 0) & (rarer < RARE_ROWS) & (rarer < RARE_SHARE * (low_rows + high_rows)))
    if nearly:
        notify(
            DegenerateDataWarning(
                f"{columns_have(nearly)} the rarer value in fewer than {RARE_ROWS} rows",
                "parameters are poorly determined",
            )
        )
    return nearly


# -- pairs ------------------------------------------------------------------------------------------------------------
def _clauses(data: Any, graph: Graph, cells: PairCounts, bias: bool) -> PairClauses:
    """What the tables of the edges rule out, in words of the user's table."""
    apart = graph.edges[~cells.observed.any(axis=1)][:1]
    certain = _unbounded_edges(data, cells.possible, bias)
    doubtful = _unbounded_edges(data, cells.observed, bias) & ~certain
    return PairClauses(
        [f"columns {data.names[i]!r} and {data.names[j]!r}" for i, j in apart],
        _reasons(data, graph, cells.possible, certain, bias),
        _reasons(data, graph, cells.observed, doubtful, bias),
    )


def _judge_triangles(data: Any, graph: Graph, counts: PairCounts) -> None:
    """Raise when three columns rule out a finite maximum together, though no two of them do."""
    found = empty_triangle(counts, graph)
    if found is None:
        return
    nodes, pattern = found
    spelled = [data.coding.labels_of(node)[int(spin > 0)] for node, spin in zip(nodes, pattern, strict=True)]
    shown = ", ".join(f"{data.names[node]!r}={label}" for node, label in zip(nodes, spelled, strict=True))
    judge_empty([f"{shown} never occur together, nor do their opposites"], True, "", "drop one of these columns")


def _unbounded_edges(data: Any, filled: np.ndarray, bias: bool) -> np.ndarray:
    """Edges whose table lies on the boundary (see the module's docstring)."""
    if bias:
        return np.count_nonzero(filled, axis=1) < len(CELLS)
    low_low, low_high, high_low, high_high = (filled[:, cell] for cell in range(len(CELLS)))
    if data.domain == SPIN:
        return ~(low_high | high_low) | ~(low_low | high_high)
    return ~high_high | ~(low_low | low_high | high_low)


def _reasons(data: Any, graph: Graph, filled: np.ndarray, edges: np.ndarray, bias: bool) -> list[str]:
    """One clause per edge, in words of the user's table; beyond those listed only their number matters."""
    chosen = np.flatnonzero(edges)
    clauses = [_reason(data, graph.edges[e], filled[e], bias) for e in chosen[:LISTED]]
    return clauses + [""] * (len(chosen) - len(clauses))


def _reason(data: Any, edge: np.ndarray, filled: np.ndarray, bias: bool) -> str:
    first, second = (data.names[node] for node in edge)
    if not bias and data.domain == SPIN:
        return f"{first!r} and {second!r} are always {'opposite' if filled[1] or filled[2] else 'equal'}"
    both_high = len(CELLS) - 1
    empty = both_high if not bias else int(np.flatnonzero(~filled)[0])
    often = "always" if filled[empty] else "never"
    labels = [data.coding.labels_of(node)[is_high] for node, is_high in zip(edge, CELLS[empty], strict=True)]
    return f"{first!r}={labels[0]} {often} occurs together with {second!r}={labels[1]}"


def _duplicates(data: Any, graph: Graph, cells: PairCounts, constant: set[str]) -> tuple[tuple[str, str, str], ...]:
    """Pairs of equal or opposite columns: on edges wherever both are observed, elsewhere if alike in every row."""
    low_low, low_high, high_low, high_high = cells.observed.T
    equal = (low_low | high_high) & ~(low_high | high_low)
    opposite = (low_high | high_low) & ~(low_low | high_high)
    found = {tuple(graph.edges[e].tolist()): "equal" for e in np.flatnonzero(equal)}
    found |= {tuple(graph.edges[e].tolist()): "opposite" for e in np.flatnonzero(opposite)}
    if not graph.is_complete and isinstance(data, Dataset):  # not all rows of a stream are in memory together
        found |= {pair: kind for pair, kind in identical_columns(data) if pair not in found}
    named = [(data.names[i], data.names[j], kind) for (i, j), kind in sorted(found.items())]
    return tuple(entry for entry in named if not constant & {entry[0], entry[1]})
