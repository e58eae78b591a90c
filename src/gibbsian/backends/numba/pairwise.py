"""Loops of the pairwise model over sparse graphs, and the elementwise step of the dense one."""

import numpy as np
from numba import njit, prange


@njit(cache=True, parallel=True)
def sparse_fields(x, biases, indptr, heads, weights):
    """Fields ``F[m, i] = b_i + sum_j w_ij x[m, j]`` over a CSR graph."""
    n_states, n = x.shape
    fields = np.empty((n_states, n))
    for m in prange(n_states):
        for i in range(n):
            total = biases[i]
            for position in range(indptr[i], indptr[i + 1]):
                total += weights[position] * x[m, heads[position]]
            fields[m, i] = total
    return fields


@njit(cache=True, parallel=True)
def edge_products(left, right, edges):
    """``sum_m left[m, i] right[m, j]`` for each edge (i, j)."""
    n_states = left.shape[0]
    totals = np.empty(len(edges))
    for e in prange(len(edges)):
        i, j = edges[e]
        total = 0.0
        for m in range(n_states):
            total += left[m, i] * right[m, j]
        totals[e] = total
    return totals


@njit(cache=True, parallel=True)
def multiply_by_signs(values, x, scale):
    """Multiply `values` in place by ``scale`` where x is the upper value and by ``-scale`` where it is the lower."""
    n_states, n = x.shape
    for m in prange(n_states):
        for i in range(n):
            values[m, i] *= scale if x[m, i] > 0 else -scale
