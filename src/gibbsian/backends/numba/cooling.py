"""Simulated annealing of spins (-1/+1): sweeps at falling temperatures, then flips that gain until none is left.

Fields are kept up to date, so that a visit costs one comparison and only a flip goes through the neighbours.
"""

import numpy as np
from numba import njit

from gibbsian.backends.numba.random import fill_thresholds, fill_words


@njit(cache=True, nogil=True)
def _flip(x, field, i, indptr, heads, doubled):
    """Turn a spin, and move the fields of its neighbours; `doubled` are twice the couplings."""
    x[i] = -x[i]
    for position in range(indptr[i], indptr[i + 1]):
        field[heads[position]] += doubled[position] * x[i]


@njit(cache=True, nogil=True)
def cool(states, streams, fields, temperatures, least_gain, indptr, heads, doubled):
    """Cool each chain through the temperatures and end it where no flip of one spin gains; all in place."""
    n_chains, n = states.shape
    words, thresholds = np.empty(n, np.uint64), np.empty(n)
    for c in range(n_chains):
        x, field = states[c], fields[c]
        for temperature in temperatures:
            fill_words(streams[c], words)
            fill_thresholds(words, thresholds)
            for i in range(n):
                if (field[i] > temperature * thresholds[i]) != (x[i] > 0):
                    _flip(x, field, i, indptr, heads, doubled)
        climbing = True
        while climbing:
            climbing = False
            for i in range(n):
                if x[i] * field[i] < -least_gain:
                    _flip(x, field, i, indptr, heads, doubled)
                    climbing = True
