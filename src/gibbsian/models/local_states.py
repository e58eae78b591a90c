"""Local states: what the flip cost of one variable of a sparse pairwise model depends on.

A variable with k neighbours meets at most 2^(k+1) local states, its own value and its neighbours'. Rows that agree
there have the same flip cost, so their weights are summed once and an evaluation goes through the local states instead
of the rows: on a square grid 32 for each variable, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np

from gibbsian.backends.numba import local_states as kernels
from gibbsian.graphs import Graph

# Tables are counted and evaluated about this many entries at a time, within the second-level cache.
PIECE = 2**15
# A local state is a number of 16 bits while it is counted.
MOST_NEIGHBOURS = 15
# Counting takes about as long as one evaluation over the rows, so each later one must be faster by at least this
# factor. With 8 bytes an entry and one a cell, the table is then never larger than the data.
LEAST_GAIN = 8


class LocalStates:
    """The summed shares of the local states of every variable.

    Parameters
    ----------
    graph : Graph
        Who is whose neighbour.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.models.local_states import LocalStates
    >>> local = LocalStates(gb.graphs.complete(2))
    >>> local.count(np.array([[1, 1], [1, -1]], dtype=np.int8), np.array([0.75, 0.25]), slice(0, 2))
    >>> local.shares.tolist()                  # variable 0: --, -+, +-, ++ with its neighbour, then variable 1
    [0.0, 0.0, 0.25, 0.75, 0.0, 0.25, 0.0, 0.75]
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.offsets = np.concatenate([[0], np.cumsum(2 ** (graph.degrees + 1))])
        self.shares = np.zeros(self.offsets[-1])

    @classmethod
    def if_worthwhile(cls, graph: Graph, n_states: int) -> Self | None:
        """Return an empty table, or None where going through `n_states` states is about as fast."""
        degrees = graph.degrees
        if degrees.max(initial=0) > MOST_NEIGHBOURS:
            return None
        return cls(graph) if (2 ** (degrees + 1)).sum() * LEAST_GAIN <= n_states * graph.n_nodes else None

    def pieces(self) -> Iterator[slice]:
        """Cut the variables into spans of about `PIECE` entries; spans may be counted by different threads."""
        first = 0
        while first < self.graph.n_nodes:
            fitting = int(np.searchsorted(self.offsets, self.offsets[first] + PIECE, side="right")) - 1
            last = max(first + 1, fitting)
            yield slice(first, last)
            first = last

    def count(self, x: np.ndarray, shares: np.ndarray, variables: slice) -> None:
        """Add the shares of the states `x` to the local states of a span of variables."""
        indptr, heads, _ = self.graph.csr
        pointers = indptr[variables.start : variables.stop + 1]
        own, around = np.arange(variables.start, variables.stop), heads[pointers[0] : pointers[-1]]
        columns = np.union1d(own, around)
        places = np.searchsorted(columns, own), np.searchsorted(columns, around)
        offsets = self.offsets[variables.start : variables.stop + 1]
        kernels.count(x, shares, columns, *places, pointers - pointers[0], offsets, self.shares)
