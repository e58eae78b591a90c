"""Gibbs sweeps of models made of tables: a variable is drawn from the log-weights that its tables give its values.

The tables that hold variable i are its entries, from ``entries[i]`` to ``entries[i + 1]``. Entry e begins at
``bases[e]`` in the vector of all tables, the variable's own code counts ``strides[e]`` there, and that of the other
member ``others[p]`` counts ``other_strides[p]``, with p from ``other_pointers[e]`` to ``other_pointers[e + 1]``.

The chains of a group go through a sweep side by side, so that they find the tables of a variable in the cache; each
draws from its own stream and knows nothing of the others. `held` is None or says which variables of which chain keep
their value.
"""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.categorical import draw_value
from gibbsian.backends.numba.random import below, fill_words, uniform

GROUP = 32


@njit(cache=True)
def _add_table(weights, tables, base, stride):
    if stride == 1:  # said to the compiler, which then adds whole registers
        part = tables[base : base + weights.size]
        for a in range(weights.size):
            weights[a] += part[a]
    else:
        for a in range(weights.size):
            weights[a] += tables[base + stride * a]


@njit(cache=True)
def _fill_weights(weights, state, i, tables, entries, bases, strides, other_pointers, others, other_strides):
    """Log-weights of the values of variable i given the others."""
    weights[:] = 0.0
    for e in range(entries[i], entries[i + 1]):
        base = bases[e]
        for p in range(other_pointers[e], other_pointers[e + 1]):
            base += other_strides[p] * state[others[p]]
        _add_table(weights, tables, base, strides[e])


@njit(cache=True, nogil=True)
def sweeps(
    codes,
    streams,
    tables,
    entries,
    bases,
    strides,
    other_pointers,
    others,
    other_strides,
    cardinalities,
    sites,
    held,
    n_picks,
    n_sweeps,
):
    """Sweep each chain over `sites`, in their order or `n_picks` of them at random; return the number of changes."""
    n_chains, n_visits = len(codes), n_picks if n_picks > 0 else sites.size
    n_groups = (n_chains + GROUP - 1) // GROUP
    changes = np.zeros(n_groups, np.int64)
    for g in range(n_groups):
        first = g * GROUP
        lanes = min(GROUP, n_chains - first)
        words, picks = np.empty((lanes, n_visits), np.uint64), np.empty((lanes, n_visits), np.uint64)
        buffer = np.empty(cardinalities.max())
        count = 0
        for _ in range(n_sweeps):
            for lane in range(lanes):
                if n_picks > 0:
                    fill_words(streams[first + lane], picks[lane])
                fill_words(streams[first + lane], words[lane])
            for k in range(n_visits):
                for lane in range(lanes):
                    c = first + lane
                    i = sites[below(picks[lane, k], sites.size)] if n_picks > 0 else sites[k]
                    if held is not None and held[c, i]:
                        continue
                    state, weights = codes[c], buffer[: cardinalities[i]]
                    _fill_weights(
                        weights, state, i, tables, entries, bases, strides, other_pointers, others, other_strides
                    )
                    value = draw_value(weights, uniform(words[lane, k]))
                    count += value != state[i]
                    state[i] = value
        changes[g] = count
    return changes.sum()
