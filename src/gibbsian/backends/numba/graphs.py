"""Graph loops."""

import numpy as np

from gibbsian.backends.numba import njit


@njit(cache=True)
def greedy_colours(indptr: np.ndarray, indices: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Give each node, in `order`, the smallest colour that none of its coloured neighbours has."""
    n_nodes = indptr.size - 1
    colours = np.full(n_nodes, -1, np.int64)
    taken_by = np.full(n_nodes + 1, -1, np.int64)  # the last node that saw this colour at a neighbour
    for node in order:
        for position in range(indptr[node], indptr[node + 1]):
            colour = colours[indices[position]]
            if colour >= 0:
                taken_by[colour] = node
        colour = 0
        while taken_by[colour] == node:
            colour += 1
        colours[node] = colour
    return colours
