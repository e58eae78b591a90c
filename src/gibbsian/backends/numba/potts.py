"""Loops of the Potts model, one variable at a time.

What variable i gets from its neighbours is a sum of rows, one for each neighbour: the log-weights of its values given
the neighbour's. Picking rows takes as many additions as a product with one-hot states takes multiplications by one; the
zeros are never touched. For that each coupling table is kept from both its ends ("oriented"): the block of neighbour j
has a row for each value of j, padded to a multiple of `LANES`, so that rows are added in whole vector registers. All
blocks of one variable stand together and stay in the second-level cache.

Each kernel works on one thread and leaves the interpreter free; callers give variables to threads.
"""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import copy_to

# doubles in a vector register: rows are padded to whole ones
LANES = 4


@njit(cache=True)
def orient(couplings, table_offsets, indptr, heads, edge_of, cardinalities, starts, widths, oriented):
    """Write every coupling table from both its ends."""
    for i in range(indptr.size - 1):
        q = cardinalities[i]
        for position in range(indptr[i], indptr[i + 1]):
            j, table = heads[position], couplings[table_offsets[edge_of[position]] :]
            block = oriented[starts[position] :]
            for b in range(cardinalities[j]):
                for a in range(q):
                    place = a * cardinalities[j] + b if i < j else b * q + a
                    block[b * widths[i] + a] = table[place]


@njit(cache=True)
def fold(oriented, table_offsets, indptr, heads, edge_of, cardinalities, starts, widths, couplings):
    """Add what both ends say of every coupling: the transpose of `orient`."""
    for i in range(indptr.size - 1):
        q = cardinalities[i]
        for position in range(indptr[i], indptr[i + 1]):
            j, table = heads[position], couplings[table_offsets[edge_of[position]] :]
            block = oriented[starts[position] :]
            for b in range(cardinalities[j]):
                for a in range(q):
                    place = a * cardinalities[j] + b if i < j else b * q + a
                    table[place] += block[b * widths[i] + a]


@njit(cache=True)
def _add_row(target, row):
    for k in range(target.size):
        target[k] += row[k]


@njit(cache=True, nogil=True)
def fill_costs(costs, codes, i, biases, heads, starts, oriented, width):
    """Costs of variable i, one column for each value.

    `biases`, `heads` and `starts` are those of variable i and its neighbours.
    """
    field = np.zeros(width)
    for m in range(len(codes)):
        state = codes[m]
        copy_to(field, biases)
        for p in range(heads.size):
            start = starts[p] + state[heads[p]] * width
            _add_row(field, oriented[start : start + width])
        own = state[i]
        for a in range(biases.size):
            costs[m, a] = field[own] - field[a]


@njit(cache=True, nogil=True)
def add_costs_vjp(c, codes, i, heads, starts, width, bias_slopes, oriented):
    """Add the gradient of ``sum(c * costs of variable i)`` to that of the biases and of the oriented tables."""
    slopes = np.zeros(width)
    for m in range(len(codes)):
        state = codes[m]
        own = state[i]
        slopes[:] = 0.0
        total = 0.0
        for a in range(c.shape[1]):
            slopes[a] = -c[m, a]
            total += c[m, a]
        slopes[own] += total
        for a in range(bias_slopes.size):
            bias_slopes[a] += slopes[a]
        for p in range(heads.size):
            start = starts[p] + state[heads[p]] * width
            _add_row(oriented[start : start + width], slopes)
