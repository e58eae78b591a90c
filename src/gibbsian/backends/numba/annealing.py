"""Annealed importance sampling: whole runs over a ladder of inverse temperatures.

The path joins independent variables p_0 to a model f by ``f_b(x) = f(x)^b p_0(x)^(1 - b)``. Some variables, no
two of them neighbours, may be summed out; the weights are then those of the others alone, and the sweeps
draw the summed-out variables first, as `sites` lists them. With none summed out this is the plain method.

A run goes through `betas` in the order given. Forwards it takes a step of the weight and then sweeps at the new
temperature; backwards it sweeps at the old one first, which with `sites` reversed is the time reversal of the forward
run. Kernels change `states` and `streams` in place and return the increase of each walker's log-weight, up to a
constant that the caller knows.
"""

import math
from typing import NamedTuple

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.gibbs import load_group, store_group
from gibbsian.backends.numba.math import VECTOR_MATH, copy_to, fast_exp
from gibbsian.backends.numba.random import fill_thresholds, fill_words, uniform
from gibbsian.backends.numba.vectors import fill_lanes

# Walkers that run side by side in vector registers.
GROUP = 32
# Sites whose random words a group draws at a time.
BATCH = 16
# Factors of at most two whose product is taken before its logarithm.
FACTORS_A_LOGARITHM = 256


class SpinPath(NamedTuple):
    """A pairwise model of spins over T, and the half log-odds `base` of its start.

    In each row of the CSR graph the neighbours that are kept come first, up to ``kept_end[i]``, then those that are
    summed out.
    """

    biases: np.ndarray
    base: np.ndarray
    summed: np.ndarray
    indptr: np.ndarray
    kept_end: np.ndarray
    heads: np.ndarray
    weights: np.ndarray


class TablePath(NamedTuple):
    """Factors as flat tables, and the log-probabilities `base` of the start, variable i from ``base_start[i]`` on.

    Variable i is in the entries from ``entries[i]`` to ``entries[i + 1]``; entry e reads ``values[starts[e] +
    strides[e] * x_i]``, moved on by the codes of ``nodes`` times ``node_strides`` from ``others[e]`` to
    ``others[e + 1]``. The factors without summed-out variables are listed the same way as entries with stride zero,
    the last ones of all.
    """

    cardinalities: np.ndarray
    values: np.ndarray
    base: np.ndarray
    base_start: np.ndarray
    summed: np.ndarray
    entries: np.ndarray
    starts: np.ndarray
    strides: np.ndarray
    others: np.ndarray
    nodes: np.ndarray
    node_strides: np.ndarray


@njit(cache=True)
def _add_neighbours(field, x, first, last, heads, weights):
    """Add to the fields of one site, in every lane, what its neighbours from `first` to `last` give."""
    for position in range(first, last):
        weight, neighbour = weights[position], x[heads[position]]
        for lane in range(GROUP):
            field[lane] += weight * neighbour[lane]


@njit(cache=True)
def _update_site(own, field, thresholds, slope, kept_field, beta, base, summed):
    """Draw one spin in every lane; a kept spin that flips changes the slope by its own field among the kept."""
    pull = (1.0 - beta) * base
    for lane in range(GROUP):
        new = np.int8(1) if beta * field[lane] + pull > thresholds[lane] else np.int8(-1)
        if not summed:
            slope[lane] += np.float64(new - own[lane]) * (kept_field[lane] - base)
        own[lane] = new


@njit(cache=True)
def _sweep_spins(x, streams, slope, beta, sites, path, words, thresholds):
    """One sweep of the walkers in the lanes of `x`, with the thresholds of `BATCH` sites drawn ahead."""
    field, kept_field = np.empty(GROUP), np.empty(GROUP)
    for start in range(0, sites.size, BATCH):
        batch = sites[start : start + BATCH]
        fill_lanes(streams, words, batch.size, GROUP)  # type: ignore[call-arg]
        fill_thresholds(words[: batch.size].ravel(), thresholds[: batch.size].ravel())
        for k in range(batch.size):
            i = batch[k]
            field[:] = path.biases[i]
            _add_neighbours(field, x, path.indptr[i], path.kept_end[i], path.heads, path.weights)
            copy_to(kept_field, field)
            _add_neighbours(field, x, path.kept_end[i], path.indptr[i + 1], path.heads, path.weights)
            _update_site(x[i], field, thresholds[k], slope, kept_field, beta, path.base[i], path.summed[i])


@njit(cache=True)
def _spin_slopes(x, path):
    """The part of the log-weight that is linear in beta, of the kept spins in every lane."""
    slope, field = np.zeros(GROUP), np.empty(GROUP)
    for i in range(len(x)):
        if path.summed[i]:
            continue
        field[:] = path.biases[i]
        _add_neighbours(field, x, path.indptr[i], path.kept_end[i], path.heads, path.weights)
        for lane in range(GROUP):
            # half the field plus half the bias counts each pair once
            slope[lane] += x[i, lane] * (0.5 * (field[lane] + path.biases[i]) - path.base[i])
    return slope


@njit(cache=True, error_model="numpy", fastmath=VECTOR_MATH)
def _add_summed_site(total, ratio, field, old, new, base):
    """Add the change of ``log 2 cosh`` of one summed-out spin, its curved part as a factor of `ratio`."""
    for lane in range(GROUP):
        before = abs(old * field[lane] + (1.0 - old) * base)
        after = abs(new * field[lane] + (1.0 - new) * base)
        total[lane] += after - before
        ratio[lane] *= (1.0 + fast_exp(-2.0 * after)) / (1.0 + fast_exp(-2.0 * before))


@njit(cache=True)
def _add_summed(total, x, old, new, n_summed, sites, path):
    """Add the change of the logarithm of the sums, over the first `n_summed` sites."""
    field, ratio = np.empty(GROUP), np.ones(GROUP)
    for k in range(n_summed):
        i = sites[k]
        field[:] = path.biases[i]
        _add_neighbours(field, x, path.indptr[i], path.kept_end[i], path.heads, path.weights)
        _add_summed_site(total, ratio, field, old, new, path.base[i])
        # each factor is within [1/2, 2]: one logarithm serves many
        if k % FACTORS_A_LOGARITHM == FACTORS_A_LOGARITHM - 1 or k == n_summed - 1:
            for lane in range(GROUP):
                total[lane] += math.log(ratio[lane])
                ratio[lane] = 1.0


@njit(cache=True)
def _anneal_group(x, streams, betas, sites, backwards, path):
    """Run the walkers in the lanes of `x` along a ladder and return the increases of their log-weights."""
    words, thresholds = np.zeros((BATCH, GROUP), np.uint64), np.empty((BATCH, GROUP))
    slope, total = _spin_slopes(x, path), np.zeros(GROUP)
    n_summed = np.count_nonzero(path.summed)
    for k in range(betas.size - 1):
        old, new = betas[k], betas[k + 1]
        if backwards:
            _sweep_spins(x, streams, slope, old, sites, path, words, thresholds)
        for lane in range(GROUP):
            total[lane] += (new - old) * slope[lane]
        _add_summed(total, x, old, new, n_summed, sites, path)
        if not backwards:
            _sweep_spins(x, streams, slope, new, sites, path, words, thresholds)
    return total


@njit(cache=True, nogil=True)
def anneal_spins(states, streams, betas, sites, backwards, path):
    """Run walkers of spins (-1/+1) along a ladder, `GROUP` of them side by side in vector registers.

    All lanes of a group run, in use or not, so that a walker's numbers do not depend on how many stand beside it.
    """
    n_walkers, n = states.shape
    n_groups = (n_walkers + GROUP - 1) // GROUP
    increases = np.zeros((n_groups, GROUP))
    for g in range(n_groups):
        first = g * GROUP
        x, words = np.ones((n, GROUP), np.int8), np.zeros((4, GROUP), np.uint64)
        load_group(states, first, x)
        load_group(streams, first, words)
        copy_to(increases[g], _anneal_group(x, words.ravel(), betas, sites, backwards, path))
        store_group(x, first, states)
        store_group(words, first, streams)
    return increases.ravel()[:n_walkers].copy()


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
def _log_weight_of_untouched(codes, path):
    """Log-weight of the factors without summed-out variables."""
    starts, others, values = path.starts, path.others, path.values
    nodes, node_strides = path.nodes, path.node_strides
    total = 0.0
    for entry in range(path.entries[-1], starts.size):
        position = starts[entry]
        for k in range(others[entry], others[entry + 1]):
            position += node_strides[k] * codes[nodes[k]]
        total += values[position]
    return total


@njit(cache=True)
def _log_sum(local, i, beta, path):
    """``log sum_a exp(beta * local[a] + (1 - beta) * log p_0(a))`` of variable i."""
    q, first = path.cardinalities[i], path.base_start[i]
    top = -np.inf
    for a in range(q):
        top = max(top, beta * local[a] + (1.0 - beta) * path.base[first + a])
    total = 0.0
    for a in range(q):
        total += math.exp(beta * local[a] + (1.0 - beta) * path.base[first + a] - top)
    return top + math.log(total)


@njit(cache=True)
def _sweep_codes(codes, beta, sites, words, local, stream, path):
    fill_words(stream, words)
    for k in range(sites.size):
        i = sites[k]
        _fill_local(codes, i, local, path)
        q, first = path.cardinalities[i], path.base_start[i]
        log_total = _log_sum(local, i, beta, path)
        left = uniform(words[k])
        chosen = q - 1
        for a in range(q - 1):
            left -= math.exp(beta * local[a] + (1.0 - beta) * path.base[first + a] - log_total)
            if left < 0.0:
                chosen = a
                break
        codes[i] = chosen


@njit(cache=True)
def _code_increase(codes, old, new, local, path):
    """``log f_new - log f_old`` of one state."""
    slope, curved = 0.0, 0.0
    for i in range(path.cardinalities.size):
        if path.summed[i]:
            _fill_local(codes, i, local, path)
            curved += _log_sum(local, i, new, path) - _log_sum(local, i, old, path)
        else:
            slope -= path.base[path.base_start[i] + codes[i]]
    slope += _log_weight_of_untouched(codes, path)
    return (new - old) * slope + curved


@njit(cache=True, nogil=True)
def anneal_codes(states, streams, betas, sites, backwards, path):
    """Run walkers of codes (0 .. q_i - 1) along a ladder."""
    increases = np.zeros(len(states))
    for w in range(len(states)):
        codes, stream = states[w], streams[w]
        words, local = np.empty(sites.size, np.uint64), np.empty(path.cardinalities.max())
        total = 0.0
        for k in range(betas.size - 1):
            old, new = betas[k], betas[k + 1]
            if backwards:
                _sweep_codes(codes, old, sites, words, local, stream, path)
            total += _code_increase(codes, old, new, local, path)
            if not backwards:
                _sweep_codes(codes, new, sites, words, local, stream, path)
        increases[w] = total
    return increases
