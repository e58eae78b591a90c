"""Draws of one of several values from log-weights."""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.vectors import WIDTH, exponentials


@njit(cache=True)
def row_of_weights(n):
    """An empty row for the log-weights of up to `n` values, padded to whole vectors."""
    return np.empty((n + WIDTH - 1) // WIDTH * WIDTH)


@njit(cache=True)
def draw_value(weights, n, uniform):
    """The value whose part of the cumulated weights holds a uniform number; overwrites the log-weights of `n` values.

    The largest log-weight is taken off first, so that they may be of any size. Sums are made twice, since a search that
    ends where the value is found is mispredicted at nearly every draw.
    """
    exponentials(weights, n)  # type: ignore[call-arg]
    n_values, total = np.uint64(n), 0.0  # unsigned: no index counts from the end
    for a in range(n_values):
        total += weights[a]
    target, below, value = uniform * total, 0.0, 0
    for a in range(n_values):
        below += weights[a]
        value += below < target
    return value
