"""Spatial Monte Carlo integration where many samples look alike around a region: each boundary is summed once."""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.spatial import N_SUMS, REFERENCE, TOTAL, Shares, Spins, fill_fields
from gibbsian.backends.numba.spatial_forests import forest_targets


@njit(cache=True)
def forest_means(regions, couplings, biases, indptr, heads, weights, starts, states, shares):
    """Mean of each target over its own states, from ``starts[t]`` to ``starts[t + 1]``, whose shares sum to one.

    The states of target t stand by variable, one after the other in the flat array `states`.
    """
    n, n_targets = biases.size, starts.size - 1
    sums = np.zeros((n_targets, N_SUMS))
    for t in range(n_targets):
        first, last = starts[t], starts[t + 1]
        spins = states[n * first : n * last].reshape((n, last - first))
        fields = np.empty((n, last - first))
        fill_fields(fields, spins, biases, indptr, heads, weights)
        own = shares[first:last]
        block = Shares(own, own, own, False, True)
        forest_targets(t, t + 1, regions, Spins(couplings, spins, fields, False), sums, block)
    return sums[:, REFERENCE] + sums[:, TOTAL]
