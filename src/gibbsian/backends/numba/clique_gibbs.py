"""Gibbs sweeps of higher-order machines.

Given the others, the log-weight of a variable's value v is v times its field (over T), so a two-valued variable is up
when its field exceeds a threshold (`random.spin_threshold`), and one with more values is drawn from as many
log-weights. The cliques that hold variable i are its entries, from ``entries[i]`` to ``entries[i + 1]``, each with its
weight (over T) and its other members, from ``pointers[e]`` to ``pointers[e + 1]``.

Chains that visit the variables in one order go side by side, `GROUP` to a task, so that each clique is looked up once
for all of them and its product is vector code. Each chain draws from its own stream, and sums run in the order of the
cliques, so that its path depends on nothing else. `held` is None or says which variables of which chain keep their
value.
"""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.categorical import draw_value
from gibbsian.backends.numba.random import advance, below, fill_words, spin_threshold, uniform

GROUP = 32


@njit(cache=True)
def _add_to_all(fields, weight):
    for lane in range(fields.size):
        fields[lane] += weight


@njit(cache=True)
def _add_pair(fields, weight, x, j):
    for lane in range(fields.size):
        fields[lane] += weight * x[j, lane]


@njit(cache=True)
def _add_triple(fields, weight, x, j, k):
    for lane in range(fields.size):
        fields[lane] += weight * x[j, lane] * x[k, lane]


@njit(cache=True)
def _add_clique(fields, weight, others, x, product):
    product[:] = weight
    for j in others:
        for lane in range(product.size):
            product[lane] *= x[j, lane]
    for lane in range(fields.size):
        fields[lane] += product[lane]


@njit(cache=True)
def _fill_fields(fields, i, x, entries, weights, pointers, others, product):
    """Fields of variable i in each chain of a group; `x` has a row for each variable."""
    fields[:] = 0.0
    for e in range(entries[i], entries[i + 1]):
        first, last = pointers[e], pointers[e + 1]
        if last - first == 0:
            _add_to_all(fields, weights[e])
        elif last - first == 1:
            _add_pair(fields, weights[e], x, others[first])
        elif last - first == 2:
            _add_triple(fields, weights[e], x, others[first], others[first + 1])
        else:
            _add_clique(fields, weights[e], others[first:last], x, product)


@njit(cache=True)
def _draw(field, levels, word, two_valued, weights):
    """The code of a value with this field; log-weights go to the buffer."""
    if two_valued:
        return np.int64(0.5 * (levels[1] - levels[0]) * field > spin_threshold(word))
    for a in range(weights.size):
        weights[a] = levels[a] * field
    return draw_value(weights, uniform(word))


@njit(cache=True)
def _load(codes, levels, first, lanes, x):
    for lane in range(lanes):
        state = codes[first + lane]
        for i in range(state.size):
            x[i, lane] = levels[i, state[i]]


@njit(cache=True)
def _next_word(stream):
    word, s0, s1, s2, s3 = advance(stream[0], stream[1], stream[2], stream[3])
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    return word


@njit(cache=True, nogil=True)
def ordered_sweeps(
    codes,
    streams,
    entries,
    weights,
    pointers,
    others,
    levels,
    cardinalities,
    two_valued,
    sites,
    held,
    n_sweeps,
):
    """Sweep the chains over `sites` in their order; return the number of changes."""
    n_chains, n = codes.shape
    n_groups = (n_chains + GROUP - 1) // GROUP
    changes = np.zeros(n_groups, np.int64)
    for g in range(n_groups):
        first = g * GROUP
        lanes = min(GROUP, n_chains - first)
        x, fields, product = np.empty((n, lanes)), np.empty(lanes), np.empty(lanes)
        buffer = np.empty(cardinalities.max())
        _load(codes, levels, first, lanes, x)
        count = 0
        for _ in range(n_sweeps):
            for i in sites:
                _fill_fields(fields, i, x, entries, weights, pointers, others, product)
                for lane in range(lanes):
                    c = first + lane
                    word = _next_word(streams[c])
                    if held is not None and held[c, i]:
                        continue
                    value = _draw(fields[lane], levels[i], word, two_valued, buffer[: cardinalities[i]])
                    count += value != codes[c, i]
                    codes[c, i] = value
                    x[i, lane] = levels[i, value]
        changes[g] = count
    return changes.sum()


@njit(cache=True)
def _field(i, x, entries, weights, pointers, others):
    """Field of variable i in one chain."""
    total = 0.0
    for e in range(entries[i], entries[i + 1]):
        product = weights[e]
        for p in range(pointers[e], pointers[e + 1]):
            product *= x[others[p]]
        total += product
    return total


@njit(cache=True, nogil=True)
def random_sweeps(
    codes,
    streams,
    entries,
    weights,
    pointers,
    others,
    levels,
    cardinalities,
    two_valued,
    sites,
    held,
    n_picks,
    n_sweeps,
):
    """Sweep each chain over `n_picks` variables from `sites` at random; return the number of changes."""
    n_chains, n = codes.shape
    changes = np.zeros(n_chains, np.int64)
    for c in range(n_chains):
        picks, words = np.empty(n_picks, np.uint64), np.empty(n_picks, np.uint64)
        x, buffer = np.empty(n), np.empty(cardinalities.max())
        for i in range(n):
            x[i] = levels[i, codes[c, i]]
        count = 0
        for _ in range(n_sweeps):
            fill_words(streams[c], picks)
            fill_words(streams[c], words)
            for k in range(n_picks):
                i = sites[below(picks[k], sites.size)]
                if held is not None and held[c, i]:
                    continue
                field = _field(i, x, entries, weights, pointers, others)
                value = _draw(field, levels[i], words[k], two_valued, buffer[: cardinalities[i]])
                count += value != codes[c, i]
                codes[c, i] = value
                x[i] = levels[i, value]
        changes[c] = count
    return changes.sum()
