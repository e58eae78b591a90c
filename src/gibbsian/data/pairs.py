"""What two-valued data show, counted in one pass over their partitions: values, pairs of values, products.

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
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsian.blocks import row_blocks
from gibbsian.data.dataset import Dataset
from gibbsian.data.distinct import distinct_rows
from gibbsian.data.findings import counted_rows
from gibbsian.domain import require_two_values
from gibbsian.graphs import Graph

STATES_PER_BLOCK = 512
EDGES_AT_ONCE = 1 << 15
# The four cells of a pair's table as (value of i is high, value of j is high).
CELLS = ((False, False), (False, True), (True, False), (True, True))
# Whole numbers below are exact in single precision; a block has far fewer states.
MOST_EXACT = 2**24
# Sum of squared degrees up to which all triangles are looked at: about a second.
MOST_WORK = 2e8


@dataclass(eq=False)
class PairTable:
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
    observed, possible = PairTable(edges), PairTable(edges)
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


def has_few_triangles(graph: Graph) -> bool:
    """Whether all triangles of a graph can be looked at."""
    return float((graph.degrees.astype(float) ** 2).sum()) <= MOST_WORK


def empty_triangle(counts: PairCounts, graph: Graph) -> tuple[tuple[int, int, int], np.ndarray] | None:
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


def identical_columns(data: Dataset) -> list[tuple[tuple[int, int], str]]:
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
