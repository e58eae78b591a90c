"""Which of the four combinations of two variables' values occur, edge by edge.

Only "does it occur" is asked, not "how often", so a column is one bit per state. An edge whose four combinations have
been seen is looked at no further; on ordinary data the first block of states settles nearly all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.data.dataset import Dataset
from gibbsian.domain import require_two_values

STATES_PER_BLOCK = 512
EDGES_AT_ONCE = 1 << 15
# The four cells of a pair's table as (value of i is high, value of j is high).
CELLS = ((False, False), (False, True), (True, False), (True, True))


@dataclass(frozen=True, eq=False)
class PairCells:
    """Which cells of each edge's 2x2 table are filled, in the order of `CELLS`.

    Parameters
    ----------
    observed : bool ndarray of shape (n_edges, 4)
        Some row of positive weight shows both values.
    possible : bool ndarray of shape (n_edges, 4)
        Some such row shows them or could, its missing cells being filled suitably.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.data.pairs import pair_cells
    >>> pair_cells(gb.Dataset.read([[0, 1], [1, 1], [1, None]]), gb.graphs.complete(2).edges).possible.tolist()
    [[False, True, True, True]]
    """

    observed: np.ndarray
    possible: np.ndarray


def pair_cells(data: Dataset, edges: np.ndarray) -> PairCells:
    """Find the filled cells of every edge."""
    used = np.flatnonzero(data.weights > 0)
    high = data.states[used] == require_two_values(data.domain).high
    if data.missing is None:
        observed = _filled(~high, high, edges)
        return PairCells(observed, observed)
    missing = data.missing[used]
    low = ~high & ~missing  # missing cells hold the lower value
    return PairCells(_filled(low, high, edges), _filled(low | missing, high | missing, edges))


def _filled(low: np.ndarray, high: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Which cells some state fills; `low` and `high` say where each value stands (or may stand)."""
    filled = np.zeros((len(edges), 4), bool)
    open_edges = np.arange(len(edges))
    for start in range(0, len(low), STATES_PER_BLOCK):
        part = slice(start, start + STATES_PER_BLOCK)
        bits = (_column_bits(low[part]), _column_bits(high[part]))
        for chunk in np.array_split(open_edges, max(1, -(-len(open_edges) // EDGES_AT_ONCE))):
            i, j = edges[chunk].T
            for cell, (i_high, j_high) in enumerate(CELLS):
                filled[chunk, cell] |= (bits[i_high][i] & bits[j_high][j]).any(axis=1)
        open_edges = open_edges[~filled[open_edges].all(axis=1)]
        if not len(open_edges):
            break
    return filled


def _column_bits(part: np.ndarray) -> np.ndarray:
    """The columns of a block as rows of 64-bit words."""
    packed = np.packbits(part.T, axis=1)
    words = np.zeros((packed.shape[0], -(-packed.shape[1] // 8) * 8), np.uint8)
    words[:, : packed.shape[1]] = packed
    return words.view(np.uint64)
