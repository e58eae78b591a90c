"""Checks of two-valued columns and of the pairs that interact, counted in one pass over the partitions of the data.

Of the four combinations of two variables' values only "does it occur" is asked, not "how often", so a column is one bit
per state. An edge whose four combinations have been seen is looked at no further; on ordinary data the first block of
states settles nearly all of them.

Three columns may never show one pattern nor its opposite. For spins, the indicator that three variables stand at s or
at -s is a linear combination of the pair statistics, ``(1 + s_i s_j x_i x_j + s_i s_k x_i x_k + s_j s_k x_j x_k) / 4``.
If neither occurs, its mean is on the boundary and the likelihood has no finite maximum, although every pair's table may
be full. (These are the triangle facets of the marginal polytope; with the pairs they are all there is for three
variables.)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsian.blocks import row_blocks
from gibbsian.data.dataset import Dataset
from gibbsian.data.distinct import distinct_rows
from gibbsian.data.findings import LISTED, RARE_ROWS, Findings, columns_have, counted_rows, is_rare, warn
from gibbsian.domain import SPIN, require_two_values
from gibbsian.graphs import Graph

STATES_PER_BLOCK = 512
EDGES_AT_ONCE = 1 << 15
# The four cells of a pair's table as (value of i is high, value of j is high).
CELLS = ((False, False), (False, True), (True, False), (True, True))
# Whole numbers below are exact in single precision; a block has far fewer states.
MOST_EXACT = 2**24
# Sum of squared degrees up to which all triangles are looked at: about a second.
MOST_WORK = 2e8


def check_pairs(found: Findings, graph: Graph, bias: bool) -> None:
    """Check that couplings on `graph`, and biases, can be learned."""
    data = found.data
    triangles = found.unpenalised and (bias or data.domain == SPIN) and not data.has_missing
    triangles = triangles and _has_few_triangles(graph)
    counts = count_pairs(data, graph.edges, products=triangles)
    found.check_observed(counts.low + counts.high)
    found.constant = found.names_where((counts.low == 0) | (counts.high == 0))
    if bias:
        found.judge_constant(found.constant, "", "", "the penalty alone keeps the biases finite")
    found.nearly_constant = found.names_where(
        is_rare(np.minimum(counts.low, counts.high), counts.low + counts.high),
    )
    if found.nearly_constant:
        rare = f"{columns_have(found.nearly_constant)} the rarer value in fewer than {RARE_ROWS} rows"
        warn(rare, "parameters are poorly determined")
    _judge_edges(found, graph, counts, bias)
    if triangles and not counts.missing.any():
        _judge_triangles(found, graph, counts)
    found.warn_of_duplicates(_duplicates(data, graph, counts))


def _judge_edges(found: Findings, graph: Graph, cells: PairCounts, bias: bool) -> None:
    """Judge what the tables of the edges rule out."""
    names = found.data.names
    apart = graph.edges[~cells.observed.any(axis=1)][:1]
    certain = _unbounded_edges(found.data, cells.possible, bias)
    doubtful = _unbounded_edges(found.data, cells.observed, bias) & ~certain
    found.judge_pairs(
        [f"columns {names[i]!r} and {names[j]!r}" for i, j in apart],
        _reasons(found, graph, cells.possible, certain, bias),
        _reasons(found, graph, cells.observed, doubtful, bias),
    )


def _judge_triangles(found: Findings, graph: Graph, counts: PairCounts) -> None:
    """Raise when three columns rule out a finite maximum together, though no two of them do."""
    triangle = _empty_triangle(counts, graph)
    if triangle is None:
        return
    shown = ", ".join(found.cell(node, int(spin > 0)) for node, spin in zip(*triangle, strict=True))
    found.judge_empty([f"{shown} never occur together, nor do their opposites"], True, "", "drop one of these columns")


def _unbounded_edges(data: Any, filled: np.ndarray, bias: bool) -> np.ndarray:
    """Edges whose table lies on the boundary (see the module's docstring)."""
    if bias:
        return np.count_nonzero(filled, axis=1) < len(CELLS)
    low_low, low_high, high_low, high_high = (filled[:, cell] for cell in range(len(CELLS)))
    if data.domain == SPIN:
        return ~(low_high | high_low) | ~(low_low | high_high)
    return ~high_high | ~(low_low | low_high | high_low)


def _reasons(found: Findings, graph: Graph, filled: np.ndarray, edges: np.ndarray, bias: bool) -> list[str]:
    """One clause per edge, in words of the user's table; beyond those listed only their number matters."""
    chosen = np.flatnonzero(edges)
    clauses = [_reason(found, graph.edges[e], filled[e], bias) for e in chosen[:LISTED]]
    return clauses + [""] * (len(chosen) - len(clauses))


def _reason(found: Findings, edge: np.ndarray, filled: np.ndarray, bias: bool) -> str:
    i, j = edge.tolist()
    if not bias and found.data.domain == SPIN:
        how = "opposite" if filled[1] or filled[2] else "equal"
        return f"{found.data.names[i]!r} and {found.data.names[j]!r} are always {how}"
    both_high = len(CELLS) - 1
    empty = both_high if not bias else int(np.flatnonzero(~filled)[0])
    often = "always" if filled[empty] else "never"
    return f"{found.cell(i, CELLS[empty][0])} {often} occurs together with {found.cell(j, CELLS[empty][1])}"


def _duplicates(data: Any, graph: Graph, cells: PairCounts) -> Iterator[tuple[int, int, str]]:
    """Pairs of equal or opposite columns: on edges wherever both are observed, elsewhere if alike in every row."""
    low_low, low_high, high_low, high_high = cells.observed.T
    alike, unlike = low_low | high_high, low_high | high_low
    same = {tuple(graph.edges[e].tolist()): "equal" for e in np.flatnonzero(alike & ~unlike)}
    same |= {tuple(graph.edges[e].tolist()): "opposite" for e in np.flatnonzero(unlike & ~alike)}
    if not graph.is_complete and isinstance(data, Dataset):  # not all rows of a stream are in memory together
        same = dict(_identical_columns(data)) | same
    return ((i, j, kind) for (i, j), kind in same.items())


# -- counting ---------------------------------------------------------------------------------------------------------
@dataclass(eq=False)
class _PairTable:
    """Which cells of each edge's 2x2 table are filled, in the order of `CELLS`."""

    edges: np.ndarray
    filled: np.ndarray = field(init=False)
    open_edges: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.filled = np.zeros((len(self.edges), len(CELLS)), bool)
        self.open_edges = np.arange(len(self.edges))

    def add(self, low: np.ndarray, high: np.ndarray) -> None:
        """Fill what some state shows; `low` and `high` say where each value stands (or may stand)."""
        for start in range(0, len(low), STATES_PER_BLOCK):
            if not len(self.open_edges):
                return
            part = slice(start, start + STATES_PER_BLOCK)
            bits = (_column_bits(low[part]), _column_bits(high[part]))
            for chunk in np.array_split(self.open_edges, max(1, -(-len(self.open_edges) // EDGES_AT_ONCE))):
                i, j = self.edges[chunk].T
                for cell, (i_high, j_high) in enumerate(CELLS):
                    self.filled[chunk, cell] |= (bits[i_high][i] & bits[j_high][j]).any(axis=1)
            self.open_edges = self.open_edges[~self.filled[self.open_edges].all(axis=1)]


@dataclass(eq=False)
class PairCounts:
    """What rows of positive weight show.

    Parameters
    ----------
    low, high, missing : ndarray of shape (n_variables,)
        Rows with the lower value, the upper value and nothing in each column.
    observed, possible : bool ndarray of shape (n_edges, 4)
        Combinations of two values that some row shows; that some row shows or could, its missing cells being filled.
    products : ndarray of shape (n_variables, n_variables) or None
        Sums over distinct states of products of spins, where they were asked for.
    n_states : int
        Number of states behind the products.
    """

    low: np.ndarray
    high: np.ndarray
    missing: np.ndarray
    observed: np.ndarray
    possible: np.ndarray
    products: np.ndarray | None
    n_states: int


def count_pairs(data: Any, edges: np.ndarray, products: bool = False) -> PairCounts:
    """Count in one pass over the partitions of a data set or a stream."""
    n, value = data.n_variables, require_two_values(data.domain).high
    high_rows, missing_rows, n_rows = np.zeros(n), np.zeros(n), 0.0
    observed, possible = _PairTable(edges), _PairTable(edges)
    together, n_states = np.zeros((n, n)), 0
    for part in data.partitions():
        rows = counted_rows(part)
        used = np.flatnonzero(rows > 0)
        for block in row_blocks(len(used), n):
            chosen = block if len(used) == part.n_states else used[block]
            high, count = part.states[chosen] == value, rows[chosen]
            missing = None if part.missing is None else part.missing[chosen]
            low = ~high if missing is None else ~high & ~missing  # missing cells hold the lower value
            ones = high.astype(np.float32)
            high_rows += _exact(count) @ ones
            n_rows += count.sum()
            observed.add(low, high)
            if missing is not None:
                missing_rows += count @ missing
                possible.add(low | missing, high | missing)
            if products:
                together += ones.T @ ones
        n_states += len(used)
    return PairCounts(
        n_rows - high_rows - missing_rows,
        high_rows,
        missing_rows,
        observed.filled,
        observed.filled | possible.filled,
        _products(together, n_states) if products else None,
        n_states,
    )


def _exact(count: np.ndarray) -> np.ndarray:
    """Whole numbers in the narrowest floats in which their sum is exact."""
    return count.astype(np.float32) if count.sum() < MOST_EXACT else count


def _products(together: np.ndarray, n_states: int) -> np.ndarray:
    """Sums of products of spins, from the numbers of states that have the upper value in both columns."""
    high = np.diagonal(together)
    return n_states - 2.0 * (high[:, None] + high) + 4.0 * together


def _has_few_triangles(graph: Graph) -> bool:
    """Whether all triangles of a graph can be looked at."""
    return float((graph.degrees.astype(float) ** 2).sum()) <= MOST_WORK


def _empty_triangle(counts: PairCounts, graph: Graph) -> tuple[tuple[int, int, int], np.ndarray] | None:
    """Find three joined variables and a spin pattern that occurs in no row, nor does its opposite."""
    products = counts.products
    assert products is not None
    for i in range(graph.n_nodes):
        later = graph.neighbours(i)[graph.neighbours(i) > i]
        triangles, _ = graph.subgraph(later)
        j, k = later[triangles.edges].T
        for a, b in itertools.product((1, -1), repeat=2):
            seen = counts.n_states + a * products[i, j] + b * products[i, k] + a * b * products[j, k]
            empty = np.flatnonzero(seen == 0)
            if len(empty):
                return (i, int(j[empty[0]]), int(k[empty[0]])), np.array([1, a, b])
    return None


def _identical_columns(data: Dataset) -> list[tuple[tuple[int, int], str]]:
    """Each column that repeats an earlier one (or its opposite), with the first of its kind."""
    used = data.weights > 0
    columns = np.ascontiguousarray((data.states[used] == require_two_values(data.domain).high).T)
    missing = None if data.missing is None else np.ascontiguousarray(data.missing[used].T)
    present = np.ones_like(columns) if missing is None else ~missing
    # a column and its opposite become alike once the first observed cell is made low
    turned = columns[np.arange(len(columns)), present.argmax(axis=1)]
    first, kind_of = distinct_rows((columns ^ turned[:, None]) & present, missing)
    return [
        ((int(first[kind]), j), "equal" if turned[j] == turned[first[kind]] else "opposite")
        for j, kind in enumerate(kind_of)
        if first[kind] != j
    ]


def _column_bits(part: np.ndarray) -> np.ndarray:
    """The columns of a block as rows of 64-bit words."""
    packed = np.packbits(part.T, axis=1)
    words = np.zeros((packed.shape[0], -(-packed.shape[1] // 8) * 8), np.uint8)
    words[:, : packed.shape[1]] = packed
    return words.view(np.uint64)
