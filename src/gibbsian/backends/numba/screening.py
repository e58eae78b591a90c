"""The exponentials of interaction screening, scaled so that their sum has a logarithm at any size (logRISE)."""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import VECTOR_MATH, fast_exp


@njit(cache=True, fastmath=VECTOR_MATH)
def _raise_tops(costs, tops):
    for i in range(costs.size):
        tops[i] = max(tops[i], -0.5 * costs[i])


@njit(cache=True, fastmath=VECTOR_MATH)
def _scaled_row(costs, share, tops, totals):
    for i in range(costs.size):
        weight = share * fast_exp(-0.5 * costs[i] - tops[i])
        totals[i] += weight
        costs[i] = -0.5 * weight


@njit(cache=True, nogil=True)
def scaled_half_exponential(costs, shares):
    """Return per variable the largest exponent ``-d/2`` and ``sum_m shares[m] exp(-d[m]/2)`` over its exponential.

    Takes ``costs`` (states x variables) and overwrites them with the derivatives of the divided sums.
    """
    n_states, n = costs.shape
    tops, totals = np.full(n, -np.inf), np.zeros(n)
    for m in range(n_states):
        _raise_tops(costs[m], tops)
    for m in range(n_states):
        _scaled_row(costs[m], shares[m], tops, totals)
    return tops, totals
