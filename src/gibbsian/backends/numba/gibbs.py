"""Gibbs sweeps of pairwise models in spin form (-1/+1).

Every kernel updates a spin by the same rule: up when its field exceeds a threshold from the chain's own stream
(`random.spin_threshold`). The caller rounds the parameters so that sums of them are exact (`samplers.gibbs`); then a
field is the same number however it was summed, and a chain takes the same path in every kernel, on any number of
threads, beside any number of other chains.

`sites` are the spins to visit; `held` is None or says which spins of which chain keep their value. Kernels update
`states` and `streams` in place and return the number of flips.
"""

import numpy as np
from numba import njit, prange

from gibbsian.backends.numba.random import (
    advance,
    below,
    fill_thresholds,
    fill_words,
    substream_word,
)

# Chains that share one pass over the graph; a constant, so that the loops over them become plain vector code.
GROUP = 32
# Sites whose thresholds a group draws at a time.
BATCH = 16


@njit(cache=True)
def _draw_sweep(stream, sites, random_scan, words, visits, thresholds):
    """Draw which sites one sweep visits and the threshold of each visit."""
    if random_scan:
        fill_words(stream, words)
        for k in range(sites.size):
            visits[k] = sites[below(words[k], sites.size)]
    fill_words(stream, words)
    fill_thresholds(words, thresholds)


@njit(cache=True, parallel=True)
def dense_sweeps(states, streams, fields, doubled, sites, held, random_scan, n_sweeps):
    """Sweep each chain with the full matrix ``doubled = 2 w``; a flip adds one row of it to the fields."""
    n_chains = len(states)
    flips = np.zeros(n_chains, np.int64)
    for c in prange(n_chains):
        x, field = states[c], fields[c]
        words = np.empty(sites.size, np.uint64)
        thresholds = np.empty(sites.size)
        visits = sites.copy()
        count = 0
        for _ in range(n_sweeps):
            _draw_sweep(streams[c], sites, random_scan, words, visits, thresholds)
            for k in range(sites.size):
                i = visits[k]
                up = field[i] > thresholds[k]
                if up == (x[i] > 0) or (held is not None and held[c, i]):
                    continue
                x[i] = -x[i]
                count += 1
                row = doubled[i]
                if up:
                    for j in range(field.size):
                        field[j] += row[j]
                else:
                    for j in range(field.size):
                        field[j] -= row[j]
        flips[c] = count
    return flips.sum()


@njit(cache=True)
def _fields(x, biases, indptr, heads, weights):
    """Fields of one state along a CSR graph."""
    field = biases.copy()
    for i in range(field.size):
        for position in range(indptr[i], indptr[i + 1]):
            field[i] += weights[position] * x[heads[position]]
    return field


@njit(cache=True, parallel=True)
def sparse_sweeps(states, streams, biases, indptr, heads, weights, sites, held, random_scan, n_sweeps):
    """Sweep each chain along a CSR graph; a flip changes the fields of the neighbours."""
    n_chains = len(states)
    flips = np.zeros(n_chains, np.int64)
    for c in prange(n_chains):
        x = states[c]
        field = _fields(x, biases, indptr, heads, weights)
        words = np.empty(sites.size, np.uint64)
        thresholds = np.empty(sites.size)
        visits = sites.copy()
        count = 0
        for _ in range(n_sweeps):
            _draw_sweep(streams[c], sites, random_scan, words, visits, thresholds)
            for k in range(sites.size):
                i = visits[k]
                up = field[i] > thresholds[k]
                if up == (x[i] > 0) or (held is not None and held[c, i]):
                    continue
                x[i] = -x[i]
                count += 1
                step = 2.0 * x[i]
                for position in range(indptr[i], indptr[i + 1]):
                    field[heads[position]] += step * weights[position]
        flips[c] = count
    return flips.sum()


@njit(cache=True)
def _load_group(rows, first, lanes, columns):
    """Copy `lanes` rows from `first` on into the columns of a buffer."""
    for i in range(rows.shape[1]):
        for lane in range(lanes):
            columns[i, lane] = rows[first + lane, i]


@njit(cache=True)
def _store_group(columns, first, lanes, rows):
    """Copy the columns of a buffer back into `lanes` rows from `first` on."""
    for lane in range(lanes):
        for i in range(rows.shape[1]):
            rows[first + lane, i] = columns[i, lane]


@njit(cache=True)
def _advance_group(streams, lanes, words):
    """Step the streams of a group and put their outputs into `words`.

    `streams` is one flat buffer, each word of the state for `GROUP` lanes: with constant distances inside one array the
    compiler sees that lanes do not touch each other.
    """
    for lane in range(lanes):
        s0, s1, s2, s3 = streams[lane], streams[GROUP + lane], streams[2 * GROUP + lane], streams[3 * GROUP + lane]
        words[lane], s0, s1, s2, s3 = advance(s0, s1, s2, s3)
        streams[lane], streams[GROUP + lane], streams[2 * GROUP + lane], streams[3 * GROUP + lane] = s0, s1, s2, s3


@njit(cache=True)
def _add_neighbour(field, weight, neighbour, lanes):
    for lane in range(lanes):
        field[lane] += weight * neighbour[lane]


@njit(cache=True)
def _hold(own, held, first, i, lanes, thresholds):
    """Put the thresholds of held spins where no field reaches, on the side of their present value."""
    for lane in range(lanes):
        if held[first + lane, i]:
            thresholds[lane] = -np.inf if own[lane] > 0 else np.inf


@njit(cache=True)
def _update_group(own, field, thresholds, lanes, flips):
    for lane in range(lanes):
        new = np.int8(1) if field[lane] > thresholds[lane] else np.int8(-1)
        flips[lane] += new != own[lane]
        own[lane] = new


@njit(cache=True)
def _sweep_group(x, streams, first, lanes, biases, indptr, heads, weights, sites, held, flips):
    """One sweep of the chains in the columns of `x`, with the thresholds of `BATCH` sites drawn ahead."""
    field = np.empty(GROUP)
    words, thresholds = np.zeros((BATCH, GROUP), np.uint64), np.empty((BATCH, GROUP))
    for start in range(0, sites.size, BATCH):
        batch = sites[start : start + BATCH]
        for k in range(batch.size):
            _advance_group(streams, lanes, words[k])
        fill_thresholds(words.ravel(), thresholds.ravel())
        for k in range(batch.size):
            i = batch[k]
            field[:] = biases[i]
            for position in range(indptr[i], indptr[i + 1]):
                _add_neighbour(field, weights[position], x[heads[position]], lanes)
            if held is not None:
                _hold(x[i], held, first, i, lanes, thresholds[k])
            _update_group(x[i], field, thresholds[k], lanes, flips)


@njit(cache=True, parallel=True)
def grouped_sweeps(states, streams, biases, indptr, heads, weights, sites, held, n_sweeps):
    """Sweep many chains in site order along a CSR graph, `GROUP` chains side by side in vector registers.

    Some chain of a group flips at nearly every visit, so the fields are not kept but summed over the neighbours.
    """
    n_chains, n = states.shape
    n_groups = (n_chains + GROUP - 1) // GROUP
    flips = np.zeros((n_groups, GROUP), np.int64)
    for g in prange(n_groups):
        first = g * GROUP
        lanes = min(GROUP, n_chains - first)
        x = np.empty((n, GROUP), np.int8)
        words = np.empty((4, GROUP), np.uint64)
        _load_group(states, first, lanes, x)
        _load_group(streams, first, lanes, words)
        for _ in range(n_sweeps):
            _sweep_group(x, words.ravel(), first, lanes, biases, indptr, heads, weights, sites, held, flips[g])
        _store_group(x, first, lanes, states)
        _store_group(words, first, lanes, streams)
    return flips.sum()


@njit(cache=True)
def _sweep_block(x, stream, block, sites, biases, indptr, heads, weights, held):
    """Update the sites of one block, none of which are neighbours, and return the number of flips.

    Row v of the graph belongs to ``sites[v]``. The random numbers depend on the stream and the block only.
    """
    substream = np.empty(4, np.uint64)
    for k in range(4):
        substream[k] = substream_word(stream[k], block)
    words, thresholds = np.empty(sites.size, np.uint64), np.empty(sites.size)
    fill_words(substream, words)
    fill_thresholds(words, thresholds)
    flips = 0
    for v in range(sites.size):
        i = sites[v]
        if held is not None and held[i]:
            continue
        field = biases[v]
        for position in range(indptr[v], indptr[v + 1]):
            field += weights[position] * x[heads[position]]
        new = 1.0 if field > thresholds[v] else -1.0
        flips += new != x[i]
        x[i] = new
    return flips


@njit(cache=True, parallel=True)
def chromatic_sweeps(states, streams, biases, indptr, heads, weights, sites, blocks, held, n_sweeps):
    """Sweep colour by colour, the chains in parallel.

    `states` are float64; row v of the graph belongs to ``sites[v]``; the sites from ``blocks[b]`` to ``blocks[b + 1]``
    have one colour.
    """
    n_chains = len(states)
    flips = np.zeros(n_chains, np.int64)
    for c in prange(n_chains):
        unused = np.empty(1, np.uint64)
        for _ in range(n_sweeps):
            for b in range(blocks.size - 1):
                first, last = blocks[b], blocks[b + 1]
                flips[c] += _sweep_block(
                    states[c],
                    streams[c],
                    b,
                    sites[first:last],
                    biases[first:last],
                    indptr[first : last + 1],
                    heads,
                    weights,
                    None if held is None else held[c],
                )
            fill_words(streams[c], unused)  # the next sweep has other substreams
    return flips.sum()


@njit(cache=True, parallel=True)
def blockwise_sweeps(states, streams, biases, indptr, heads, weights, sites, blocks, colours, held, n_sweeps):
    """Sweep colour by colour, the blocks of a colour in parallel; the same path as `chromatic_sweeps`.

    Colour k has the blocks from ``colours[k]`` to ``colours[k + 1]``.
    """
    flips = np.zeros(blocks.size - 1, np.int64)
    unused = np.empty(1, np.uint64)
    for c in range(len(states)):
        for _ in range(n_sweeps):
            for k in range(colours.size - 1):
                for b in prange(colours[k], colours[k + 1]):
                    first, last = blocks[b], blocks[b + 1]
                    flips[b] += _sweep_block(
                        states[c],
                        streams[c],
                        b,
                        sites[first:last],
                        biases[first:last],
                        indptr[first : last + 1],
                        heads,
                        weights,
                        None if held is None else held[c],
                    )
            fill_words(streams[c], unused)
    return flips.sum()
