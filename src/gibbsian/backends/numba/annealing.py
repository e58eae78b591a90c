"""Walks along a path: whole runs over inverse temperatures, and replica exchange.

The path joins independent variables p_0 to a model f by ``f_b(x) = f(x)^b p_0(x)^(1 - b)``. Kernels keep ``log f -
log p_0`` of each walker, the slope of its log-weight, up to a constant that the caller knows; an update that changes a
value changes the slope by what it has computed anyway.

A run goes through `betas` in the order given. Forwards it takes a step of the weight and then sweeps at the new
temperature; backwards it sweeps at the old one first, which with `sites` reversed is the time reversal of the forward
run. Kernels change `states` and `streams` in place.
"""

import math
from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Floats, Integers
from gibbsian.backends.numba import njit
from gibbsian.backends.numba.gibbs import load_group, store_group
from gibbsian.backends.numba.random import fill_thresholds, fill_words, uniform
from gibbsian.backends.numba.vectors import fill_lanes

# Walkers that one slice takes at least, side by side in vector registers; the least that are worth that, for how many
# neighbours of a site on average; and sites whose random words they draw at a time.
GROUP, LEAST_LANES, MOST_NEIGHBOURS, BATCH = 64, 32, 64, 16


class SpinPath(NamedTuple):
    """A pairwise model of spins along a CSR graph, and the half log-odds `base` of its start.

    `matrix` has all couplings where the graph is dense, and no rows where it is sparse.

    The caller rounds biases and weights so that sums of fields are exact (`gibbs.exact_sums`): fields never drift.
    """

    biases: Floats
    base: Floats
    indptr: Integers
    heads: Integers
    weights: Floats
    matrix: Floats


class TablePath(NamedTuple):
    """Factors as flat tables, and the log-probabilities `base` of the start, variable i from ``base_start[i]`` on.

    Variable i is in the entries from ``entries[i]`` to ``entries[i + 1]``; entry e reads ``values[starts[e] +
    strides[e] * x_i]``, moved on by the codes of ``nodes`` times ``node_strides`` from ``others[e]`` to
    ``others[e + 1]``. All factors are listed the same way as entries with stride zero, the last ones of all.
    """

    cardinalities: Integers
    values: Floats
    base: Floats
    base_start: Integers
    entries: Integers
    starts: Integers
    strides: Integers
    others: Integers
    nodes: Integers
    node_strides: Integers


@njit(cache=True)
def _spin_fields(x, path, field):
    """Fill the fields of a state, and return the slope of its log-weight."""
    slope = 0.0
    for i in range(x.size):
        total = path.biases[i]
        for position in range(path.indptr[i], path.indptr[i + 1]):
            total += path.weights[position] * x[path.heads[position]]
        field[i] = total
        # half the field plus half the bias counts each pair once
        slope += x[i] * (0.5 * (total + path.biases[i]) - path.base[i])
    return slope


@njit(cache=True)
def _sweep_spins(x, field, beta, sites, path, stream, words, thresholds):
    """One sweep that moves the fields of neighbours when a spin flips; return the change of the slope."""
    fill_words(stream, words)
    fill_thresholds(words, thresholds)
    change = 0.0
    for k in range(sites.size):
        i = sites[k]
        up = beta * field[i] + (1.0 - beta) * path.base[i] > thresholds[k]
        if up == (x[i] > 0):
            continue
        x[i] = -x[i]
        change += 2.0 * x[i] * (field[i] - path.base[i])
        step = 2.0 * x[i]
        if len(path.matrix):
            row = path.matrix[i]
            for j in range(field.size):
                field[j] += step * row[j]
        else:
            for position in range(path.indptr[i], path.indptr[i + 1]):
                field[path.heads[position]] += step * path.weights[position]
    return change


@njit(cache=True)
def _add_neighbour(field, values, weight):
    for lane in range(GROUP):
        field[lane] += weight * values[lane]


@njit(cache=True)
def _lane_field(x, i, path, field):
    """Fill the field of a site in every lane."""
    field[:] = path.biases[i]
    for position in range(path.indptr[i], path.indptr[i + 1]):
        _add_neighbour(field, x[path.heads[position]], path.weights[position])


@njit(cache=True)
def _draw_lanes(own, field, change, beta, base, thresholds):
    """Draw one spin in every lane, and add what that changes of the slope."""
    pull = (1.0 - beta) * base
    for lane in range(GROUP):
        new = 1.0 if beta * field[lane] + pull > thresholds[lane] else -1.0
        change[lane] += (new - own[lane]) * (field[lane] - base)
        own[lane] = new


@njit(cache=True)
def _sweep_lanes(x, streams, slope, beta, sites, path, words, thresholds):
    """One sweep of the walkers in the lanes of `x`, to the same bits as `_sweep_spins`."""
    field, change = np.empty(GROUP), np.zeros(GROUP)
    for start in range(0, sites.size, len(words)):
        batch = sites[start : start + len(words)]
        fill_lanes(streams, words, batch.size, GROUP)  # type: ignore[call-arg]
        fill_thresholds(words[: batch.size].ravel(), thresholds[: batch.size].ravel())
        for k in range(batch.size):
            i = batch[k]
            _lane_field(x, i, path, field)
            _draw_lanes(x[i], field, change, beta, path.base[i], thresholds[k])
    slope += change


@njit(cache=True)
def _anneal_lanes(x, streams, betas, sites, backwards, path, increases):
    """Run the walkers in the lanes of `x` along a ladder."""
    words, thresholds = np.empty((BATCH, GROUP), np.uint64), np.empty((BATCH, GROUP))
    slope, field = np.zeros(GROUP), np.empty(GROUP)
    for i in range(len(x)):
        _lane_field(x, i, path, field)
        slope += x[i] * (0.5 * (field + path.biases[i]) - path.base[i])
    for k in range(betas.size - 1):
        if backwards:
            _sweep_lanes(x, streams, slope, betas[k], sites, path, words, thresholds)
        increases += (betas[k + 1] - betas[k]) * slope
        if not backwards:
            _sweep_lanes(x, streams, slope, betas[k + 1], sites, path, words, thresholds)


@njit(cache=True)
def _anneal_walker(x, stream, betas, sites, backwards, path):
    """Run one walker along a ladder."""
    field, words, thresholds = np.empty(x.size), np.empty(x.size, np.uint64), np.empty(x.size)
    total, slope = 0.0, _spin_fields(x, path, field)
    for k in range(betas.size - 1):
        if backwards:
            slope += _sweep_spins(x, field, betas[k], sites, path, stream, words, thresholds)
        total += (betas[k + 1] - betas[k]) * slope
        if not backwards:
            slope += _sweep_spins(x, field, betas[k + 1], sites, path, stream, words, thresholds)
    return total


@njit(cache=True, nogil=True)
def anneal_spins(states, streams, betas, sites, backwards, path):
    """Run walkers of spins (-1/+1) along a ladder; return the increases of their log-weights.

    Where sites have few neighbours and walkers are many, they stand side by side in vector registers.
    """
    n_walkers, n = states.shape
    few = path.heads.size <= MOST_NEIGHBOURS * n
    increases = np.zeros(n_walkers + GROUP)
    for first in range(0, n_walkers, GROUP):
        if few and n_walkers - first >= LEAST_LANES:
            x, words = np.ones((n, GROUP)), np.zeros((4, GROUP), np.uint64)
            load_group(states, first, x)
            load_group(streams, first, words)
            _anneal_lanes(x, words.ravel(), betas, sites, backwards, path, increases[first : first + GROUP])
            store_group(x, first, states)
            store_group(words, first, streams)
        else:
            for w in range(first, min(first + GROUP, n_walkers)):
                increases[w] = _anneal_walker(states[w], streams[w], betas, sites, backwards, path)
    return increases[:n_walkers].copy()


@njit(cache=True, nogil=True)
def exchange_spins(states, streams, betas, log_uniforms, first, n_sweeps, sites, slopes, best, path):
    """Move spins ``(n_betas, n_chains, n)`` at all temperatures; neighbours exchange states in rounds from `first` on.

    `log_uniforms` ``(n_rounds, n_betas - 1, n_chains)`` decide; `slopes` ``(n_betas, n_rounds, n_chains)`` get those
    before each exchange, `best` ``(n_chains, n)`` the state of the largest of them.
    """
    n_betas, n_chains, n = states.shape
    words, thresholds = np.empty(n, np.uint64), np.empty(n)
    fields, now, spare = np.empty(states.shape), np.empty((n_betas, n_chains)), np.empty(n)
    largest = np.full(n_chains, -np.inf)
    for k in range(n_betas):
        for c in range(n_chains):
            now[k, c] = _spin_fields(states[k, c], path, fields[k, c])
    for t in range(len(log_uniforms)):
        for k in range(n_betas):
            for c in range(n_chains):
                for _ in range(n_sweeps):
                    args = (sites, path, streams[k, c], words, thresholds)
                    now[k, c] += _sweep_spins(states[k, c], fields[k, c], betas[k], *args)
                slopes[k, t, c] = now[k, c]
                if now[k, c] > largest[c]:
                    largest[c] = now[k, c]
                    best[c] = states[k, c]
        for k in range((first + t) % 2, n_betas - 1, 2):
            for c in range(n_chains):
                if log_uniforms[t, k, c] < (betas[k + 1] - betas[k]) * (now[k, c] - now[k + 1, c]):
                    now[k, c], now[k + 1, c] = now[k + 1, c], now[k, c]
                    for i in range(n):
                        x = states[k, c, i]
                        states[k, c, i], states[k + 1, c, i] = states[k + 1, c, i], x
                        spare[i] = fields[k, c, i]
                        fields[k, c, i], fields[k + 1, c, i] = fields[k + 1, c, i], spare[i]


@njit(cache=True)
def _fill_local(codes, i, local, path):
    """Log-weight of every value of variable i given the others."""
    starts, strides, others, values = path.starts, path.strides, path.others, path.values
    nodes, node_strides = path.nodes, path.node_strides
    q = path.cardinalities[i]
    local[:q] = 0.0
    for entry in range(path.entries[i], path.entries[i + 1]):
        position, stride = starts[entry], strides[entry]
        for k in range(others[entry], others[entry + 1]):
            position += node_strides[k] * codes[nodes[k]]
        for a in range(q):
            local[a] += values[position + stride * a]


@njit(cache=True)
def _code_slope(codes, path):
    """The slope of the log-weight of one state, from all factors."""
    starts, others, values = path.starts, path.others, path.values
    nodes, node_strides = path.nodes, path.node_strides
    slope = 0.0
    for entry in range(path.entries[-1], starts.size):
        position = starts[entry]
        for k in range(others[entry], others[entry + 1]):
            position += node_strides[k] * codes[nodes[k]]
        slope += values[position]
    for i in range(codes.size):
        slope -= path.base[path.base_start[i] + codes[i]]
    return slope


@njit(cache=True)
def _sweep_codes(codes, beta, sites, words, local, weights, stream, path):
    """One sweep; return the change of the slope."""
    fill_words(stream, words)
    change = 0.0
    for k in range(sites.size):
        i = sites[k]
        _fill_local(codes, i, local, path)
        q, first = path.cardinalities[i], path.base_start[i]
        top = -np.inf
        for a in range(q):
            weights[a] = beta * local[a] + (1.0 - beta) * path.base[first + a]
            top = max(top, weights[a])
        total = 0.0
        for a in range(q):
            weights[a] = math.exp(weights[a] - top)
            total += weights[a]
        left, chosen = uniform(words[k]) * total, q - 1
        for a in range(q - 1):
            left -= weights[a]
            if left < 0.0:
                chosen = a
                break
        before = codes[i]
        change += local[chosen] - local[before] - path.base[first + chosen] + path.base[first + before]
        codes[i] = chosen
    return change


@njit(cache=True, nogil=True)
def anneal_codes(states, streams, betas, sites, backwards, path):
    """Run walkers of codes (0 .. q_i - 1) along a ladder; return the increases of their log-weights."""
    increases, words = np.zeros(len(states)), np.empty(sites.size, np.uint64)
    local, weights = np.empty(path.cardinalities.max()), np.empty(path.cardinalities.max())
    for w in range(len(states)):
        codes, stream, total = states[w], streams[w], 0.0
        slope = _code_slope(codes, path)
        for k in range(betas.size - 1):
            if backwards:
                slope += _sweep_codes(codes, betas[k], sites, words, local, weights, stream, path)
            total += (betas[k + 1] - betas[k]) * slope
            if not backwards:
                slope += _sweep_codes(codes, betas[k + 1], sites, words, local, weights, stream, path)
        increases[w] = total
    return increases
