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
from gibbsian.backends.numba.random import fill_thresholds, fill_words, uniform

# Walkers that one slice takes at least.
GROUP = 32


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


@njit(cache=True, nogil=True)
def anneal_spins(states, streams, betas, sites, backwards, path):
    """Run walkers of spins (-1/+1) along a ladder; return the increases of their log-weights."""
    n_walkers, n = states.shape
    increases, field = np.zeros(n_walkers), np.empty(n)
    words, thresholds = np.empty(n, np.uint64), np.empty(n)
    for w in range(n_walkers):
        x, stream, total = states[w], streams[w], 0.0
        slope = _spin_fields(x, path, field)
        for k in range(betas.size - 1):
            if backwards:
                slope += _sweep_spins(x, field, betas[k], sites, path, stream, words, thresholds)
            total += (betas[k + 1] - betas[k]) * slope
            if not backwards:
                slope += _sweep_spins(x, field, betas[k + 1], sites, path, stream, words, thresholds)
        increases[w] = total
    return increases


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
