"""Draws of one of several values from log-weights."""

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.elementary import VECTOR_MATH, fast_exp


@njit(cache=True, fastmath=VECTOR_MATH)
def _exponentials(weights, largest):
    for a in range(weights.size):
        weights[a] = fast_exp(weights[a] - largest)


@njit(cache=True)
def draw_value(weights, uniform):
    """The value whose part of the cumulated weights holds a uniform number; overwrites the log-weights.

    The largest log-weight is taken off first, so that they may be of any size.
    """
    largest = weights[0]
    for a in range(1, weights.size):
        largest = max(largest, weights[a])
    _exponentials(weights, largest)
    total = 0.0
    for a in range(weights.size):
        total += weights[a]
        weights[a] = total
    target = uniform * total
    value = 0
    while weights[value] < target:  # the last of the sums is the total, which the target never exceeds
        value += 1
    return value
