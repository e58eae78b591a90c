"""Checks of two-valued columns and of the pairs that interact, counted in one pass over the partitions of the data.

Of the four combinations of two variables' values only "does it occur" is asked, not "how often", so a column is one bit
per state. An edge whose four combinations have been seen is looked at no further; on ordinary data the first block of
states settles nearly all of them.

Three columns may never show one pattern nor its opposite. For spins, the indicator that three variables stand at s or
at -s is a linear combination of the pair statistics, ``(1 + s_i s_j x_i x_j + s_i s_k x_i x_k + s_j s_k x_j x_k) / 4``.
If neither occurs, its mean is on the boundary and the likelihood has no finite maximum, although every pair's table may
be full. (These are the triangle facets of the marginal polytope; with the pairs they are all there is for three
variables.) In how many states each two of them differ decides it: with bits, an exclusive or and a count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from gibbsian.backends.numba.pair_tables import count_differences, empty_triangle, mark_cells
from gibbsian.data.dataset import Dataset
from gibbsian.data.distinct import distinct_rows
from gibbsian.data.findings import CHECKS, LISTED, RARE_ROWS, Findings, columns_have, counted_rows, is_rare, warn
from gibbsian.data.hidden_columns import visible_graph
from gibbsian.data.rows import Rows
from gibbsian.domain import SPIN
from gibbsian.graphs import Graph
from gibbsian.models.base import Model
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.variables import require_two_values
from gibbsian.resources import row_blocks

# Cells of the data that are packed into bits together: each edge is looked up once for all of them.
CELLS_AT_ONCE = 2**22
# The four cells of a pair's table as (value of i is high, value of j is high).
CELLS = ((False, False), (False, True), (True, False), (True, True))
# Whole numbers below are exact in single precision.
MOST_EXACT = 2**24
# Pairs of edges that meet, up to which all triangles are looked at: half a minute (a complete graph of 5,600 columns).
MOST_MEETINGS = 3e10


@CHECKS.register("pairwise")
def check_pairwise(found: Findings, model: Model[PairwiseFamily]) -> None:
    """Check biases, and couplings between columns."""
    family = model.family
    check_pairs(found, visible_graph(family.graph, family.n_hidden), family.bias)


def check_pairs(found: Findings, graph: Graph, bias: bool) -> None:
    """Check that couplings on `graph`, and biases, can be learned."""
    data = found.data
    complete = found.unpenalised and not data.has_missing and graph.has_triangles
    triangles = complete and (bias or data.coding.domain == SPIN)
    if triangles and _meetings(graph) > MOST_MEETINGS:
        triangles = False
        found.notes.append("there are too many triangles of columns to look at")
    counts = count_pairs(data, graph.edges, differences=triangles)
    found.check_observed(counts.low + counts.high)
    found.constant = found.names_where((counts.low == 0) | (counts.high == 0))
    if bias:
        found.judge_constant(found.constant, "", "", "the penalty alone keeps the biases finite")
    found.nearly_constant = found.names_where(is_rare(np.minimum(counts.low, counts.high), counts.low + counts.high))
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
    shown = ", ".join(found.cell(node, high) for node, high in zip(*triangle, strict=True))
    found.judge_empty([f"{shown} never occur together, nor do their opposites"], True, "", "drop one of these columns")


def _unbounded_edges(data: Rows, filled: np.ndarray, bias: bool) -> np.ndarray:
    """Edges whose table lies on the boundary (see the module's docstring)."""
    if bias:
        return np.count_nonzero(filled, axis=1) < len(CELLS)
    low_low, low_high, high_low, high_high = (filled[:, cell] for cell in range(len(CELLS)))
    if data.coding.domain == SPIN:
        return ~(low_high | high_low) | ~(low_low | high_high)
    return ~high_high | ~(low_low | low_high | high_low)


def _reasons(found: Findings, graph: Graph, filled: np.ndarray, edges: np.ndarray, bias: bool) -> list[str]:
    """One clause per edge, in words of the user's table; beyond those listed only their number matters."""
    chosen = np.flatnonzero(edges)
    clauses = [_reason(found, graph.edges[e], filled[e], bias) for e in chosen[:LISTED]]
    return clauses + [""] * (len(chosen) - len(clauses))


def _reason(found: Findings, edge: np.ndarray, filled: np.ndarray, bias: bool) -> str:
    i, j = edge.tolist()
    if not bias and found.data.coding.domain == SPIN:
        how = "opposite" if filled[1] or filled[2] else "equal"
        return f"{found.data.names[i]!r} and {found.data.names[j]!r} are always {how}"
    both_high = len(CELLS) - 1
    empty = both_high if not bias else int(np.flatnonzero(~filled)[0])
    often = "always" if filled[empty] else "never"
    return f"{found.cell(i, CELLS[empty][0])} {often} occurs together with {found.cell(j, CELLS[empty][1])}"


def _duplicates(data: Rows, graph: Graph, cells: PairCounts) -> Iterator[tuple[int, int, str]]:
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
        if len(self.open_edges):
            self.open_edges = mark_cells(low, high, self.edges, self.open_edges, self.filled)


@dataclass(eq=False)
class PairCounts:
    """What rows of positive weight show.

    Parameters
    ----------
    low, high, missing : ndarray of shape (n_variables,)
        Rows with the lower value, the upper value and nothing in each column.
    observed, possible : bool ndarray of shape (n_edges, 4)
        Combinations of two values that some row shows; that some row shows or could, its missing cells being filled.
    differ : ndarray of shape (n_edges,) or None
        Number of distinct states in which the two columns of an edge differ, where it was asked for.
    n_states : int
        Number of distinct states.
    """

    low: np.ndarray
    high: np.ndarray
    missing: np.ndarray
    observed: np.ndarray
    possible: np.ndarray
    differ: np.ndarray | None
    n_states: int

    def __add__(self, other: PairCounts) -> PairCounts:
        """Return what the rows of both show."""
        return PairCounts(
            self.low + other.low,
            self.high + other.high,
            self.missing + other.missing,
            self.observed | other.observed,
            self.possible | other.possible,
            None if self.differ is None or other.differ is None else self.differ + other.differ,
            self.n_states + other.n_states,
        )


def count_pairs(data: Rows, edges: np.ndarray, differences: bool = False) -> PairCounts:
    """Count in one pass over the partitions of the data."""
    return data.reduce(partial(_count_rows, edges=edges, differences=differences))


def _count_rows(data: Dataset, edges: np.ndarray, differences: bool) -> PairCounts:
    """Count rows in memory."""
    require_two_values(data.variables)
    n = data.n_variables
    high_rows, missing_rows, n_rows = np.zeros(n), np.zeros(n), 0.0
    observed, possible = _PairTable(edges), _PairTable(edges)
    differ, rows = np.zeros(len(edges), np.int64), counted_rows(data)
    used = np.flatnonzero(rows > 0)
    for block in row_blocks(len(used), n, max_cells=CELLS_AT_ONCE):
        chosen = block if len(used) == data.n_states else used[block]
        high, count = data.states[chosen] == 1, rows[chosen]
        missing = None if data.missing is None else data.missing[chosen]
        low = ~high if missing is None else ~high & ~missing  # missing cells hold the lower value
        high_rows += np.einsum("m,mi->i", count, high)  # without a copy of the block in floats
        n_rows += count.sum()
        observed.add(low, high)
        if missing is not None:
            missing_rows += count @ missing
            possible.add(low | missing, high | missing)
        if differences:
            count_differences(high, edges, differ)
    return PairCounts(
        n_rows - high_rows - missing_rows,
        high_rows,
        missing_rows,
        observed.filled,
        observed.filled | possible.filled,
        differ if differences else None,
        len(used),
    )


def _meetings(graph: Graph) -> float:
    """Count pairs of edges i-j and j-k with i < j < k, which is the work of looking at all triangles."""
    later = np.diff(graph.later[0]).astype(float)
    return float((graph.degrees - later) @ later)


def _empty_triangle(counts: PairCounts, graph: Graph) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Find three joined variables and a pattern of values that occurs in no row, nor does its opposite."""
    assert counts.differ is not None
    twice, (first, heads) = 2 * counts.n_states, graph.later
    differ = counts.differ.astype(np.float32 if twice < MOST_EXACT else np.float64)
    edge = empty_triangle(first, heads, differ, counts.n_states)
    if edge < 0:
        return None
    i, j = graph.edges[edge].tolist()
    nodes, from_i, from_j = np.intersect1d(
        heads[first[i] : first[i + 1]], heads[first[j] : first[j + 1]], assume_unique=True, return_indices=True
    )
    ij, ik, jk = counts.differ[edge], counts.differ[first[i] + from_i], counts.differ[first[j] + from_j]
    # twice how many states have j and k like i (1) or not (0)
    shown = {(1, 1): twice - ij - ik - jk, (1, 0): ik + jk - ij, (0, 1): ij + jk - ik, (0, 0): ij + ik - jk}
    k, like = min((int(nodes[rows == 0][0]), like) for like, rows in shown.items() if (rows == 0).any())
    return (i, j, k), (1, *like)


def _identical_columns(data: Dataset) -> list[tuple[tuple[int, int], str]]:
    """Each column that repeats an earlier one (or its opposite), with the first of its kind."""
    used = data.weights > 0
    columns = np.ascontiguousarray((data.states[used] == 1).T)
    missing = None if data.missing is None else np.ascontiguousarray(data.missing[used].T)
    present = np.ones_like(columns) if missing is None else ~missing
    # a column and its opposite become alike once the first observed cell is made low
    turned = columns[np.arange(len(columns)), present.argmax(axis=1)]
    first, kind_of = distinct_rows((columns ^ turned[:, None]) & present, missing)
    repeats = np.flatnonzero(first[kind_of] != np.arange(len(columns))).tolist()
    pairs = ((int(first[kind_of[j]]), j) for j in repeats)
    return [((i, j), "equal" if turned[i] == turned[j] else "opposite") for i, j in pairs]
