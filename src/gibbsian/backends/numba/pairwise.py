"""Loops of the pairwise model over sparse graphs, and the elementwise steps of the dense one.

Each works through its rows on one thread and leaves the interpreter free; callers give blocks of rows to threads.

Kernels that say "by variable" hold a block of states with one row per variable, so that the loop along a row runs over
the states: what a node needs of its neighbours are whole rows, and every loop becomes vector code on any graph.
"""

import numpy as np

from gibbsian.arrays import Floats, Integers
from gibbsian.backends.numba import njit

# a strip of this many columns of a block of int8 states stays in the first-level cache while it is transposed
_STRIP = 64
# Up to here NumPy does the same sums in the same order within microseconds, and a first fit compiles less.
FEW_EDGES = 256


@njit(cache=True, nogil=True)
def sparse_fields(x, indptr, heads, weights):
    """Fields ``F[m, i] = sum_j w_ij x[m, j]`` over a CSR graph."""
    n_states, n = x.shape
    fields = np.empty((n_states, n))
    for m in range(n_states):
        for i in range(n):
            total = 0.0
            for position in range(indptr[i], indptr[i + 1]):
                total += weights[position] * x[m, heads[position]]
            fields[m, i] = total
    return fields


@njit(cache=True, nogil=True)
def edge_products(left, right, edges):
    """``sum_m left[m, i] right[m, j]`` for each edge (i, j)."""
    totals = np.zeros(len(edges))
    for m in range(left.shape[0]):
        left_row, right_row = left[m], right[m]
        for e in range(len(edges)):
            totals[e] += left_row[edges[e, 0]] * right_row[edges[e, 1]]
    return totals


def gather_couplings(vector, edges, mean):
    """Add ``sum_j w_ij mean_j`` to each bias of a vector of biases and couplings; return a copy."""
    moved = vector.copy()
    if len(edges) > FEW_EDGES:
        _shift(moved, edges, mean, False)
    else:
        np.add.at(moved, edges.ravel(), (vector[len(mean) :, None] * mean[edges[:, ::-1]]).ravel())
    return moved


def spread_biases(vector, edges, mean):
    """Add ``b_i mean_j + b_j mean_i`` to each coupling, which is the transpose of `gather_couplings`; return a copy."""
    moved, (i, j) = vector.copy(), edges.T
    if len(edges) > FEW_EDGES:
        _shift(moved, edges, mean, True)
    else:
        moved[len(mean) :] += vector[i] * mean[j] + vector[j] * mean[i]
    return moved


@njit(cache=True, nogil=True)
def _shift(moved, edges, mean, transposed):
    """Do what either of the two above does, in place."""
    n = len(mean)
    for e in range(len(edges)):
        i, j = edges[e]
        if transposed:
            moved[n + e] += moved[i] * mean[j] + moved[j] * mean[i]
        else:
            moved[i] += moved[n + e] * mean[j]
            moved[j] += moved[n + e] * mean[i]


@njit(cache=True, inline="always")
def _signed(scale, x):
    """`scale` at the upper value and ``-scale`` at the lower, whether that is 0 or -1."""
    return scale if x > 0 else -scale


@njit(cache=True, nogil=True)
def fill_numbers(numbers, codes, low, high):
    """Write the numbers that stand for codes."""
    for m in range(codes.shape[0]):
        row, states = numbers[m], codes[m]
        for i in range(row.size):
            row[i] = high if states[i] > 0 else low


@njit(cache=True, nogil=True)
def sign_and_sum(values, x, scale):
    """Multiply by `scale` where x is the upper value and by ``-scale`` elsewhere, in place; return the column sums."""
    n_states, n = x.shape
    sums = np.zeros(n)
    for m in range(n_states):
        row, states = values[m], x[m]
        for i in range(n):
            signed = row[i] * _signed(scale, states[i])
            row[i] = signed
            sums[i] += signed
    return sums


@njit(cache=True, nogil=True)
def add_biases_with_signs(fields, biases, x, scale):
    """Turn coupling fields into costs in place: add the biases, scale, and give them the signs of x."""
    n_states, n = x.shape
    for m in range(n_states):
        row, states = fields[m], x[m]
        for i in range(n):
            row[i] = (row[i] + biases[i]) * _signed(scale, states[i])


def gather_edges(matrix: Floats, edges: Integers, both_ways: bool) -> Floats:
    """Return ``matrix[i, j]`` for each edge, plus ``matrix[j, i]`` if `both_ways`."""
    i, j = edges.T
    return np.asarray(matrix[i, j] + matrix[j, i] if both_ways else matrix[i, j], float)


@njit(cache=True, nogil=True)
def by_variable(x):
    """A copy of the states with one row per variable."""
    n_states, n = x.shape
    rows = np.empty((n, n_states), x.dtype)
    for start in range(0, n, _STRIP):
        for m in range(n_states):
            for i in range(start, min(start + _STRIP, n)):
                rows[i, m] = x[m, i]
    return rows


@njit(cache=True, nogil=True)
def fill_sparse_costs(costs, x, first, last, indptr, heads, weights, biases, low, high, scale):
    """Write the costs of the variables ``first .. last - 1`` to `costs`, by variable.

    States are int8, and choosing between two products is cheaper than turning them into floats.
    """
    for i in range(first, last):
        row, states = costs[i - first], x[i]
        row[:] = biases[i]
        for position in range(indptr[i], indptr[i + 1]):
            lower, upper, neighbour = low * weights[position], high * weights[position], x[heads[position]]
            for m in range(row.size):
                row[m] += upper if neighbour[m] > 0 else lower
        for m in range(row.size):
            row[m] *= scale if states[m] > 0 else -scale


@njit(cache=True, fastmath=True)
def _sign_and_total(values, states, scale):
    total = 0.0
    for m in range(values.size):
        values[m] *= scale if states[m] > 0 else -scale
        total += values[m]
    return total


@njit(cache=True, fastmath=True)
def _total_where_upper(values, states):
    total = 0.0
    for m in range(values.size):
        total += values[m] if states[m] > 0 else 0.0
    return total


@njit(cache=True, nogil=True)
def add_sparse_costs_vjp(x, c, first, last, indptr, heads, edge_of, low, high, scale, biases, couplings):
    """Add the gradient of ``sum(c * costs)`` for the variables ``first .. last - 1``, by variable; overwrites c.

    It goes to `biases` and `couplings`. An edge is met from both its ends, and each adds its part.
    """
    for i in range(first, last):
        slopes = c[i - first]
        total = _sign_and_total(slopes, x[i], scale)
        biases[i] += total
        for position in range(indptr[i], indptr[i + 1]):
            upper = _total_where_upper(slopes, x[heads[position]])
            couplings[edge_of[position]] += low * total + (high - low) * upper
