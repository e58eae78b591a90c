"""Rows of categories as indicators of all values, for products with a matrix, and costs of values from their fields.

Variable i has the columns from ``groups[i]`` to ``groups[i + 1]``, one for each value. Each kernel works on one thread
and leaves the interpreter free; callers give blocks of rows to threads.
"""

import numpy as np

from gibbsian.backends.numba import njit


@njit(cache=True, nogil=True)
def one_hot(codes, groups):
    """Return ones at the present values."""
    indicators = np.zeros((len(codes), groups[-1]))
    for m in range(len(codes)):
        for i in range(codes.shape[1]):
            indicators[m, groups[i] + codes[m, i]] = 1.0
    return indicators


@njit(cache=True, nogil=True)
def fields_to_costs(fields, biases, codes, groups):
    """Turn coupling fields into costs in place: add the biases, and take each from that of the present value."""
    for m in range(len(codes)):
        row = fields[m]
        for k in range(row.size):
            row[k] += biases[k]
        for i in range(codes.shape[1]):
            own = row[groups[i] + codes[m, i]]
            for k in range(groups[i], groups[i + 1]):
                row[k] = own - row[k]


@njit(cache=True, nogil=True)
def costs_to_fields(slopes, codes, groups):
    """Turn slopes of costs into those of fields in place; return their sums over rows."""
    sums = np.zeros(groups[-1])
    for m in range(len(codes)):
        row = slopes[m]
        for i in range(codes.shape[1]):
            total = 0.0
            for k in range(groups[i], groups[i + 1]):
                total += row[k]
                row[k] = -row[k]
            row[groups[i] + codes[m, i]] += total
        for k in range(row.size):
            sums[k] += row[k]
    return sums
