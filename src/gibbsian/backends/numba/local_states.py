"""Sums over the local states of the variables of a sparse pairwise model.

The cost of a variable depends on its own value and its neighbours' alone. Local state r of variable i is the
number whose bits, highest first, are its own value and its neighbours' in CSR order, 1 for the upper value; it stands
at ``offsets[i] + r`` of a table. Each kernel works on one thread and leaves the interpreter free.
"""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import copy_to

# so many states at a time: long enough for vector code, and their bits stay in the second-level cache
_ROWS = 256
_STRIP = 64


@njit(cache=True)
def _fill_bits(x, columns, bits):
    """``bits[c, m]`` is 1 where state m has the upper value at ``columns[c]``."""
    for start in range(0, columns.size, _STRIP):
        for m in range(x.shape[0]):
            for c in range(start, min(start + _STRIP, columns.size)):
                bits[c, m] = x[m, columns[c]] > 0


@njit(cache=True)
def _append_bit(numbers, bits):
    for m in range(bits.size):
        numbers[m] = 2 * numbers[m] + bits[m]


@njit(cache=True, nogil=True)
def count(x, shares, columns, own, neighbours, indptr, offsets, table):
    """Add the share of each state to the local states it shows.

    Variable v of a span stands at ``columns[own[v]]`` and its neighbours at the columns
    ``neighbours[indptr[v]:indptr[v + 1]]`` points to. Its part of `table` starts at ``offsets[v]``.
    """
    bits, numbers = np.empty((columns.size, _ROWS), np.uint8), np.empty(_ROWS, np.uint16)
    for start in range(0, x.shape[0], _ROWS):
        rows, weights = x[start : start + _ROWS], shares[start : start + _ROWS]
        _fill_bits(rows, columns, bits)
        for v in range(own.size):
            copy_to(numbers, bits[own[v]])
            for position in range(indptr[v], indptr[v + 1]):
                _append_bit(numbers, bits[neighbours[position]])
            part = table[offsets[v] : offsets[v + 1]]
            for m in range(weights.size):
                part[numbers[m]] += weights[m]


@njit(cache=True, nogil=True)
def costs(first, last, indptr, offsets, weights, biases, low, gap):
    """Costs of every local state of the variables ``first .. last - 1``; fields are built by doubling."""
    found = np.empty(offsets[last] - offsets[first])
    for i in range(first, last):
        start = offsets[i] - offsets[first]
        half = (offsets[i + 1] - offsets[i]) // 2
        lower, upper = found[start : start + half], found[start + half : start + 2 * half]
        lower[0] = biases[i] + low * weights[indptr[i] : indptr[i + 1]].sum()
        size = 1
        for position in range(indptr[i + 1] - 1, indptr[i] - 1, -1):  # the last neighbour is the lowest bit
            step = gap * weights[position]
            for r in range(size):
                lower[size + r] = lower[r] + step
            size *= 2
        for r in range(half):
            upper[r] = gap * lower[r]
            lower[r] *= -gap
    return found


@njit(cache=True, nogil=True)
def add_costs_vjp(c, first, last, indptr, offsets, coupling_of, low, gap, bias_slopes, coupling_slopes):
    """Add the gradient of ``sum(c * costs)`` over the same local states; overwrites c.

    Folding the table in two, bit by bit, leaves the sum over the states with that bit in the upper half.
    """
    for i in range(first, last):
        start = offsets[i] - offsets[first]
        half = (offsets[i + 1] - offsets[i]) // 2
        slopes = c[start : start + half]
        total = 0.0
        for r in range(half):
            slopes[r] = gap * (c[start + half + r] - slopes[r])
            total += slopes[r]
        bias_slopes[i] += total
        size = half
        for position in range(indptr[i], indptr[i + 1]):
            size //= 2
            raised = 0.0
            for r in range(size):
                raised += slopes[size + r]
                slopes[r] += slopes[size + r]
            coupling_slopes[coupling_of[position]] += low * total + gap * raised
