"""Spins (-1/+1) on the way to zero temperature: annealing, and tempering, then flips that gain until none is left.

Fields are kept up to date, so that a visit costs one comparison and only a flip goes through the neighbours.
"""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import copy_to
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


@njit(cache=True, nogil=True)
def temper(states, streams, fields, logs, temperatures, n_sweeps, indptr, heads, doubled):
    """Run a chain at each temperature, neighbours exchanging them; leave the best states that each has seen in place.

    `logs` are the log-weights of the states at temperature one, and are moved with them.
    """
    n_chains, n = states.shape
    words, thresholds = np.empty(n, np.uint64), np.empty(n)
    at, coin = np.arange(n_chains), np.empty(1, np.uint64)
    best, best_logs = states.copy(), logs.copy()
    for sweep in range(n_sweeps):
        for k in range(n_chains):
            c = at[k]
            x, field = states[c], fields[c]
            fill_words(streams[c], words)
            fill_thresholds(words, thresholds)
            for i in range(n):
                if (field[i] > temperatures[k] * thresholds[i]) != (x[i] > 0):
                    logs[c] -= 2.0 * x[i] * field[i]
                    _flip(x, field, i, indptr, heads, doubled)
            if logs[c] > best_logs[c]:
                best_logs[c] = logs[c]
                copy_to(best[c], x)
        for k in range(sweep % 2, n_chains - 1, 2):
            gain = (1.0 / temperatures[k] - 1.0 / temperatures[k + 1]) * (logs[at[k + 1]] - logs[at[k]])
            fill_words(streams[at[k]], coin)
            if gain >= 0.0 or (coin[0] >> np.uint64(11)) * 2.0**-53 < np.exp(gain):
                at[k], at[k + 1] = at[k + 1], at[k]
    for c in range(n_chains):
        copy_to(states[c], best[c])
