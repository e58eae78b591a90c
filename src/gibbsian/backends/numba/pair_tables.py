"""What pairs and triangles of two-valued columns show, a column being one bit per state."""

import numpy as np

from gibbsian.backends.numba import njit

# Up to here NumPy finds the same within microseconds, and a first fit compiles less.
FEW_CELLS, FEW_NODES = 2**14, 12


@njit(cache=True, nogil=True)
def _pack_columns(cells):
    """Return the columns of a block of truth values as rows of 64-bit words."""
    n_rows, n_columns = cells.shape
    packed = np.empty((n_columns, (n_rows + 63) // 64), np.uint64)
    word = np.zeros(n_columns, np.uint64)
    for w in range(packed.shape[1]):
        for row in range(64 * w, min(64 * (w + 1), n_rows)):
            for column in range(n_columns):
                word[column] |= np.uint64(cells[row, column]) << np.uint64(row & 63)
        for column in range(n_columns):  # by a loop: ``packed[:, w] = word`` compiles for seconds
            packed[column, w] = word[column]
            word[column] = np.uint64(0)
    return packed


def mark_cells(low, high, edges, open_edges, filled):
    """Mark the cells of the open edges' 2x2 tables that states show, and return the edges that stay open.

    `low` and `high` say of each state and column of the data whether that value stands (or may stand) there.
    """
    if len(low) * len(open_edges) > FEW_CELLS:
        return open_edges[: _mark_cells(_pack_columns(low), _pack_columns(high), edges, open_edges, filled)]
    i, j = edges[open_edges].T
    shown = [(one[:, i] & other[:, j]).any(axis=0) for one in (low, high) for other in (low, high)]
    filled[open_edges] |= np.transpose(shown)
    return open_edges[~filled[open_edges].all(axis=1)]


@njit(cache=True, nogil=True)
def _mark_cells(low, high, edges, open_edges, filled):
    """Do it with 64 states a word; edges that stay open are moved to the front, and counted."""
    n_open = 0
    for edge in open_edges:
        i, j = edges[edge]
        cells = filled[edge]
        for word in range(low.shape[1]):
            cells[0] |= (low[i, word] & low[j, word]) != 0
            cells[1] |= (low[i, word] & high[j, word]) != 0
            cells[2] |= (high[i, word] & low[j, word]) != 0
            cells[3] |= (high[i, word] & high[j, word]) != 0
            if cells[0] and cells[1] and cells[2] and cells[3]:
                break
        else:
            open_edges[n_open] = edge
            n_open += 1
    return n_open


def count_differences(high: np.ndarray, edges: np.ndarray, differ: np.ndarray) -> None:
    """Add to `differ` in how many states the two columns of each edge differ."""
    if len(high) * len(edges) > FEW_CELLS:
        _count_differences(_pack_columns(high), edges, differ)
    else:
        i, j = edges.T
        differ += np.count_nonzero(high[:, i] ^ high[:, j], axis=0)


@njit(cache=True, nogil=True)
def _count_differences(high, edges, differ):
    for edge in range(len(edges)):
        i, j = edges[edge]
        total = np.uint64(0)
        for word in range(high.shape[1]):
            bits = high[i, word] ^ high[j, word]  # then the set bits are counted, in pairs, nibbles and bytes
            bits -= (bits >> np.uint64(1)) & np.uint64(0x5555555555555555)
            bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
            bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
            total += (bits * np.uint64(0x0101010101010101)) >> np.uint64(56)
        differ[edge] += np.int64(total)


def empty_triangle(first: np.ndarray, heads: np.ndarray, differ: np.ndarray, n_states: int) -> int:
    """Return the first edge of the first triangle one of whose four patterns no state shows, or -1.

    Edges ``first[i]`` to ``first[i + 1]`` lead from node i to later ones, their `heads`. The numbers of states in which
    two nodes `differ` are floats, so that a pair that is not joined may be NaN, equal to nothing. The four equations
    are the triangle inequalities of the cut polytope; both sides differ by twice the states that show a pattern.
    """
    n_nodes, twice = len(first) - 1, differ.dtype.type(2 * n_states)
    if n_nodes > FEW_NODES:
        return int(_empty_triangle(first, heads, differ, twice, np.full(n_nodes, np.nan, differ.dtype)))
    matrix = np.full((n_nodes, n_nodes), np.nan, differ.dtype)
    tails = np.repeat(np.arange(n_nodes), np.diff(first))
    matrix[tails, heads] = differ
    a, b, c = matrix[:, :, None], matrix[:, None], matrix
    found = ((a + b == c) | (a + c == b) | (b + c == a) | (a + b + c == twice)).any(axis=2)[tails, heads]
    return int(found.argmax()) if found.any() else -1


@njit(cache=True, nogil=True)
def _empty_triangle(first, heads, differ, twice, from_i):
    for i in range(len(from_i)):
        for ij in range(first[i], first[i + 1]):
            from_i[heads[ij]] = differ[ij]
        for ij in range(first[i], first[i + 1]):
            a, j = differ[ij], heads[ij]
            from_j, later = differ[first[j] : first[j + 1]], heads[first[j] : first[j + 1]]
            found = 0
            for t in range(len(later)):  # without an exit, so that it is vectorised
                b, c = from_i[later[t]], from_j[t]
                found += (a + b == c) | (a + c == b) | (b + c == a) | (a + b + c == twice)
            if found:
                return ij
        for ij in range(first[i], first[i + 1]):
            from_i[heads[ij]] = np.nan
    return -1
