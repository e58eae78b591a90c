"""Loops of the pairwise model over sparse graphs, and the elementwise step of the dense one.

Each works through its rows on one thread and leaves the interpreter free; callers give blocks of rows to threads.
"""

import numpy as np
from numba import njit


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
    n_states = left.shape[0]
    totals = np.empty(len(edges))
    for e in range(len(edges)):
        i, j = edges[e]
        total = 0.0
        for m in range(n_states):
            total += left[m, i] * right[m, j]
        totals[e] = total
    return totals


@njit(cache=True, nogil=True)
def with_signs(values, x, scale):
    """Return ``scale * values`` where x is the upper value and ``-scale * values`` where it is the lower."""
    signed = np.empty_like(values)
    n_states, n = x.shape
    for m in range(n_states):
        for i in range(n):
            signed[m, i] = values[m, i] * (scale if x[m, i] > 0 else -scale)
    return signed


@njit(cache=True, nogil=True)
def add_biases_with_signs(fields, biases, x, scale):
    """Turn coupling fields into flip costs in place: add the biases, scale, and give them the signs of x."""
    n_states, n = x.shape
    for m in range(n_states):
        for i in range(n):
            fields[m, i] = (fields[m, i] + biases[i]) * (scale if x[m, i] > 0 else -scale)


@njit(cache=True, nogil=True)
def gather_edges(matrix, edges, both_ways):
    """Return ``matrix[i, j]`` for each edge, plus ``matrix[j, i]`` if `both_ways`."""
    gathered = np.empty(len(edges))
    for e in range(len(edges)):
        i, j = edges[e, 0], edges[e, 1]
        gathered[e] = matrix[i, j] + (matrix[j, i] if both_ways else 0.0)
    return gathered
