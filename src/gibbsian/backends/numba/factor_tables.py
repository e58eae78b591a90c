"""Sums over tables: over the first axis of one of log-weights, and over all subsets of bits."""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import VECTOR_MATH, fast_exp


@njit(cache=True, fastmath=VECTOR_MATH)
def log_sum_of_rows(table):
    """Return the log of the sum of exponentials of each column."""
    n_rows, n_columns = table.shape
    top = table[0].copy()
    for a in range(1, n_rows):
        for s in range(n_columns):
            top[s] = max(top[s], table[a, s])
    total = np.zeros(n_columns)
    for a in range(n_rows):
        for s in range(n_columns):
            total[s] += fast_exp(table[a, s] - top[s])
    for s in range(n_columns):
        top[s] += np.log(total[s])
    return top


@njit(cache=True, fastmath=VECTOR_MATH)
def joint_from_log(table, log_sums, column_probabilities):
    """Turn log-weights into joint probabilities in place, given those of the columns."""
    n_rows, n_columns = table.shape
    for a in range(n_rows):
        for s in range(n_columns):
            table[a, s] = fast_exp(table[a, s] - log_sums[s]) * column_probabilities[s]


@njit(cache=True)
def subset_sums(table):
    """Replace each entry by the sum over the entries whose bits are all among its own (the zeta transform)."""
    step = 1
    while step < table.size:
        for start in range(0, table.size, 2 * step):
            lower, upper = table[start : start + step], table[start + step : start + 2 * step]
            for j in range(step):
                upper[j] += lower[j]
        step *= 2


@njit(cache=True)
def superset_sums(table):
    """Replace each entry by the sum over the entries that have all of its bits."""
    step = 1
    while step < table.size:
        for start in range(0, table.size, 2 * step):
            lower, upper = table[start : start + step], table[start + step : start + 2 * step]
            for j in range(step):
                lower[j] += upper[j]
        step *= 2
