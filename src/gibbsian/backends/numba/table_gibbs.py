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
from gibbsian.backends.numba.categorical import draw_value, row_of_weights
from gibbsian.backends.numba.random import below, fill_words, uniform
from gibbsian.backends.numba.vectors import WIDTH, sum_table_rows

GROUP = 32


@njit(cache=True)
def _of_rows(table_size, entries, bases, strides, other_pointers, others, other_strides, cardinalities):
    """Say which variables have a table of their own and then tables of pairs, with their own values side by side.

    They take the fast way, unless vectors would read beyond the last table.
    """
    of_rows = np.zeros(cardinalities.size, np.bool_)
    for i in range(cardinalities.size):
        fits = entries[i] < entries[i + 1]
        for e in range(entries[i], entries[i + 1]):
            end = bases[e] + (cardinalities[i] + WIDTH - 1) // WIDTH * WIDTH
            for p in range(other_pointers[e], other_pointers[e + 1]):
                end += other_strides[p] * (cardinalities[others[p]] - 1)
            n_others = 0 if e == entries[i] else 1
            fits &= strides[e] == 1 and end <= table_size and other_pointers[e + 1] - other_pointers[e] == n_others
        of_rows[i] = fits
    return of_rows


@njit(cache=True)
def _fill_weights(weights, n, state, i, tables, entries, bases, strides, other_pointers, others, other_strides):
    """Log-weights of the `n` values of variable i given the others."""
    weights[:n] = 0.0
    for e in range(entries[i], entries[i + 1]):
        base, stride = bases[e], strides[e]
        for p in range(other_pointers[e], other_pointers[e + 1]):
            base += other_strides[p] * state[others[p]]
        for a in range(n):
            weights[a] += tables[base + stride * a]


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
    random_scan,
    n_sweeps,
):
    """Sweep each chain over `sites`, in their order or at random; return the number of changes."""
    n_chains = len(codes)
    n_groups = (n_chains + GROUP - 1) // GROUP
    changes = np.zeros(n_groups, np.int64)
    of_rows = _of_rows(tables.size, entries, bases, strides, other_pointers, others, other_strides, cardinalities)
    for g in range(n_groups):
        first = g * GROUP
        lanes = min(GROUP, n_chains - first)
        words, picks = np.empty((lanes, sites.size), np.uint64), np.empty((lanes, sites.size), np.uint64)
        weights = row_of_weights(cardinalities.max())
        count = 0
        for _ in range(n_sweeps):
            for lane in range(lanes):
                if random_scan:
                    fill_words(streams[first + lane], picks[lane])
                fill_words(streams[first + lane], words[lane])
            for k in range(sites.size):
                for lane in range(lanes):
                    c = first + lane
                    i = sites[below(picks[lane, k], sites.size)] if random_scan else sites[k]
                    if held is not None and held[c, i]:
                        continue
                    state, n, e = codes[c], cardinalities[i], entries[i]
                    if of_rows[i]:  # here: a call with so many arrays takes longer than the sum of a few rows
                        n_others, n_vectors, p = entries[i + 1] - e - 1, (n + WIDTH - 1) // WIDTH, other_pointers[e]
                        sum_table_rows(tables, state, bases, others, other_strides, e, p, n_others, n_vectors, weights)  # type: ignore[call-arg]
                    else:
                        _fill_weights(
                            weights, n, state, i, tables, entries, bases, strides, other_pointers, others, other_strides
                        )
                    value = draw_value(weights, n, uniform(words[lane, k]))
                    count += value != state[i]
                    state[i] = value
        changes[g] = count
    return changes.sum()
