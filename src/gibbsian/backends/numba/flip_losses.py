"""Losses of flip costs, fused with their derivatives.

Each kernel takes ``costs`` (states x variables) and ``shares`` (one per state), returns the weighted sum of losses and
overwrites the costs with the weighted derivatives. It works on one thread and leaves the interpreter free.
"""

import math

import numpy as np
from numba import njit

from gibbsian.backends.numba.elementary import VECTOR_MATH, fast_exp

# A product of this many factors in (1, 2] stays below the largest double, so one logarithm serves them all.
_FACTORS = 1000


@njit(cache=True, fastmath=True)
def _product(values):
    total = 1.0
    for i in range(values.size):
        total *= values[i]
    return total


@njit(cache=True, fastmath=True)
def _total(values):
    total = 0.0
    for i in range(values.size):
        total += values[i]
    return total


# without error_model="numpy" a check for division by zero would keep the loop from vectorising
@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _logistic_row(costs, share, factors, excess):
    """Overwrite one row with ``-share sigmoid(-d)``; leave ``1 + exp(-|d|)`` and ``max(-d, 0)`` in the buffers."""
    for i in range(costs.size):
        d = costs[i]
        e = fast_exp(-abs(d))
        factors[i] = 1.0 + e
        excess[i] = max(-d, 0.0)
        costs[i] = -share * (e if d > 0.0 else 1.0) / (1.0 + e)


@njit(cache=True, nogil=True)
def logistic(costs, shares):
    """Pseudolikelihood: ``phi(d) = log(1 + exp(-d))`` (H06 eq. 7, Y18 eq. 7)."""
    n_states, n = costs.shape
    factors, excess = np.empty(n), np.empty(n)
    value = 0.0
    for m in range(n_states):
        _logistic_row(costs[m], shares[m], factors, excess)
        logarithms = 0.0
        for start in range(0, n, _FACTORS):
            logarithms += math.log(_product(factors[start : start + _FACTORS]))
        value += shares[m] * (logarithms + _total(excess))
    return value
