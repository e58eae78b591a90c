"""Gibbs sweeps of pairwise models in spin form (-1/+1).

Every kernel updates a spin by the same rule: up when its field exceeds a threshold from the chain's own stream
(`random.spin_threshold`). The caller rounds the parameters so that sums of them are exact (`sampling.spins`); then a
field is the same number however it was summed, and a chain takes the same path in every kernel, on any number of
threads, beside any number of other chains. Kernels that work in lanes decide by fields of whole numbers and leave to
that rule what these cannot tell (`spin_lanes`).

`sites` are the spins to visit; `held` is None or says which spins of which chain keep their value. Kernels update
`states` and `streams` in place and return the number of flips.
"""

import math
from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Integers
from gibbsian.backends.numba import njit
from gibbsian.backends.numba.random import (
    below,
    fill_thresholds,
    fill_words,
    spin_threshold,
    substream_word,
)
from gibbsian.backends.numba.spin_lanes import GROUP, LANES, LOG2_SCALE, fill_lanes, update_chains, update_sites

# Blocks of a colour class that draw their random words side by side.
BLOCKS = 16
Whole = np.ndarray[tuple[int, ...], np.dtype[np.int32]]


class Rounded(NamedTuple):
    """A pairwise model in whole numbers, for spins that are 0 or 1.

    `weights` follow the graph as the kernel has it. ``scale`` times a sum is the power of two that `spin_lanes`
    compares, and `margin` covers the rounding.
    """

    biases: Whole
    weights: Whole
    scale: float
    margin: float


class Stencil(NamedTuple):
    """A graph whose neighbours stand at few distances once the sites are ordered by colour.

    Colour k has the offsets from ``pointers[k]`` to ``pointers[k + 1]``; ``starts`` say where in the weights those of
    its first site stand for each offset.
    """

    pointers: Integers
    offsets: Integers
    starts: Integers
    n_weights: int


@njit(cache=True)
def _sums_by_site(values, edges, n):
    """Sums over the edges of each site."""
    sums = np.zeros(n)
    for k in range(values.size):
        sums[edges[k, 0]] += values[k]
        sums[edges[k, 1]] += values[k]
    return sums


@njit(cache=True, nogil=True)
def exact_sums(biases, couplings, edges):
    """Return the parameters of spins rounded so that sums of fields are exact.

    After biases and couplings come the sums of couplings by site, and the largest field there may be, which sets the
    power of two whose multiples they are.
    """
    n, reach = biases.size, 0.0
    for field in np.abs(biases) + _sums_by_site(np.abs(couplings), edges, n):
        reach = max(reach, field)
    unit = math.ldexp(1.0, math.frexp(reach)[1] - 52)
    biases, couplings = np.rint(biases / unit) * unit, np.rint(couplings / unit) * unit
    return biases, couplings, _sums_by_site(couplings, edges, n), reach


@njit(cache=True, nogil=True)
def whole_numbers(biases, weights, reach, most_neighbours, margin):
    """Return biases less the sums of couplings, and couplings, in whole numbers of 30 bits."""
    unit = math.ldexp(1.0, math.frexp(reach)[1] - 28)
    # every term is off by half a unit at most, and float32 has 24 bits
    error = unit * (most_neighbours + 1) / 2.0 + reach * 2.0**-22
    whole = (np.rint(biases / unit).astype(np.int32), np.rint(2.0 * weights / unit).astype(np.int32))
    return Rounded(whole[0], whole[1], LOG2_SCALE * unit, margin + 2.0 * error)


@njit(cache=True)
def _draw_sweep(stream, sites, n_picks, words, visits, thresholds):
    """Draw the sites that one sweep visits, if they are picked at random, and the threshold of each visit."""
    if n_picks > 0:
        fill_words(stream, words)
        for k in range(n_picks):
            visits[k] = sites[below(words[k], sites.size)]
    fill_words(stream, words)
    fill_thresholds(words, thresholds)


@njit(cache=True, nogil=True)
def dense_sweeps(states, streams, fields, doubled, sites, held, n_picks, n_sweeps):
    """Sweep each chain with the full matrix ``doubled = 2 w``; a flip adds one row of it to the fields.

    A sweep visits `sites` in their order, or `n_picks` of them at random unless that is 0.
    """
    n_chains = len(states)
    flips = np.zeros(n_chains, np.int64)
    for c in range(n_chains):
        x, field = states[c], fields[c]
        visits = np.empty(n_picks, sites.dtype) if n_picks > 0 else sites.copy()
        words, thresholds = np.empty(visits.size, np.uint64), np.empty(visits.size)
        count = 0
        for _ in range(n_sweeps):
            _draw_sweep(streams[c], sites, n_picks, words, visits, thresholds)
            for k in range(visits.size):
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


@njit(cache=True, nogil=True)
def sparse_sweeps(states, streams, biases, indptr, heads, weights, sites, held, n_picks, n_sweeps):
    """Sweep each chain along a CSR graph, as `dense_sweeps` does; a flip changes the fields of the neighbours."""
    n_chains = len(states)
    flips = np.zeros(n_chains, np.int64)
    for c in range(n_chains):
        x = states[c]
        field = _fields(x, biases, indptr, heads, weights)
        visits = np.empty(n_picks, sites.dtype) if n_picks > 0 else sites.copy()
        words, thresholds = np.empty(visits.size, np.uint64), np.empty(visits.size)
        count = 0
        for _ in range(n_sweeps):
            _draw_sweep(streams[c], sites, n_picks, words, visits, thresholds)
            for k in range(visits.size):
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
def load_group(rows, first, columns):
    """Copy rows from `first` on into the columns of a buffer, as many as it has or there are."""
    for i in range(rows.shape[1]):
        for lane in range(min(columns.shape[1], len(rows) - first)):
            columns[i, lane] = rows[first + lane, i]


@njit(cache=True)
def store_group(columns, first, rows):
    """Copy the columns of a buffer back into rows from `first` on."""
    for lane in range(min(columns.shape[1], len(rows) - first)):
        for i in range(rows.shape[1]):
            rows[first + lane, i] = columns[i, lane]


@njit(cache=True)
def _load_masks(states, first, masks):
    """Turn spins into columns of masks, tile by tile, so that both sides stay in the cache."""
    for start in range(0, len(masks), LANES):
        part = masks[start : start + LANES]  # slices: an index that is a sum takes three times as long
        for lane in range(min(GROUP, len(states) - first)):
            spins = states[first + lane, start : start + LANES]
            for i in range(len(part)):
                part[i, lane] = -np.int8(spins[i] > 0)


@njit(cache=True)
def _store_masks(masks, first, states):
    """Turn columns of masks into spins."""
    for start in range(0, len(masks), LANES):
        part = masks[start : start + LANES]
        for lane in range(min(GROUP, len(states) - first)):
            spins = states[first + lane, start : start + LANES]
            for i in range(len(part)):
                spins[i] = -2 * part[i, lane] - 1


@njit(cache=True)
def _settle_chains(x, i, doubt, words, bias, heads, weights):
    """Decide the chains in doubt by their exact fields; return the number of flips."""
    flips = 0
    for lane in range(GROUP):
        if (doubt >> np.uint64(lane)) & np.uint64(1):
            field = bias
            for k in range(heads.size):
                field += weights[k] if x[heads[k], lane] else -weights[k]
            new = -np.int8(field > spin_threshold(words[lane]))
            flips += new != x[i, lane]
            x[i, lane] = new
    return flips


@njit(cache=True)
def _sweep_group(x, streams, hold, biases, indptr, heads, weights, rounded, sites):
    """One sweep of the chains in the columns of `x`; words are drawn while the last site's update is under way."""
    words, flips = np.empty(GROUP, np.uint64), 0
    for i in sites:
        fill_lanes(streams, words, 1, GROUP)  # type: ignore[call-arg]
        first, last = indptr[i], indptr[i + 1]
        graph = (first, last, heads, rounded.weights, rounded.scale, rounded.margin)
        doubt, changed = update_chains(x, i, words, hold[i if len(hold) > 1 else 0], rounded.biases[i], *graph)
        flips += changed
        if doubt:
            flips += _settle_chains(x, i, doubt, words, biases[i], heads[first:last], weights[first:last])
    return flips


@njit(cache=True, nogil=True)
def grouped_sweeps(states, streams, biases, indptr, heads, weights, rounded, sites, held, n_sweeps):
    """Sweep many chains in site order along a CSR graph, `GROUP` chains side by side in vector registers.

    Some chain of a group flips at nearly every visit, so the fields are not kept but summed over the neighbours.
    """
    n_chains, n = states.shape
    x, words, flips = np.zeros((n, GROUP), np.int8), np.zeros((4, GROUP), np.uint64), 0
    hold = np.ones((1 if held is None else n, GROUP), np.bool_)  # lanes without a chain rest
    for first in range(0, n_chains, GROUP):
        _load_masks(states, first, x)
        load_group(streams, first, words)
        if held is not None:
            load_group(held, first, hold)
        for lane in range(GROUP):
            for i in range(len(hold)):
                hold[i, lane] = first + lane >= n_chains or (held is not None and hold[i, lane])
        for _ in range(n_sweeps):
            flips += _sweep_group(x, words.ravel(), hold, biases, indptr, heads, weights, rounded, sites)
        _store_masks(x, first, states)
        store_group(words, first, streams)
    return flips


@njit(cache=True)
def _sweep_block(x, stream, block, first, last, biases, indptr, heads, weights, held):
    """Update the sites from `first` to `last`, none of which are neighbours, and return the number of flips.

    The random numbers depend on the stream and the number of the block only.
    """
    substream = np.empty(4, np.uint64)
    for k in range(4):
        substream[k] = substream_word(stream[k], block)
    words, thresholds = np.empty(last - first, np.uint64), np.empty(last - first)
    fill_words(substream, words)
    fill_thresholds(words, thresholds)
    flips = 0
    for i in range(first, last):
        if held is not None and held[i]:
            continue
        field = biases[i]
        for position in range(indptr[i], indptr[i + 1]):
            field += weights[position] * x[heads[position]]
        new = 1.0 if field > thresholds[i - first] else -1.0
        flips += new != x[i]
        x[i] = new
    return flips


@njit(cache=True, nogil=True)
def chromatic_sweeps(states, streams, biases, indptr, heads, weights, blocks, held, n_sweeps):
    """Sweep colour by colour along a CSR graph.

    `states` are float64 and the sites are ordered by colour, those from ``blocks[b]`` to ``blocks[b + 1]`` have one.
    """
    flips, unused = 0, np.empty(1, np.uint64)
    for c in range(len(states)):
        own = None if held is None else held[c]
        for _ in range(n_sweeps):
            for b in range(blocks.size - 1):
                flips += _sweep_block(
                    states[c], streams[c], b, blocks[b], blocks[b + 1], biases, indptr, heads, weights, own
                )
            fill_words(streams[c], unused)  # the next sweep has other substreams
    return flips


@njit(cache=True)
def _settle_sites(x, first, doubt, words, biases, indptr, heads, weights):
    """Decide the sites in doubt by their exact fields; return the number of flips."""
    flips = 0
    for lane in range(LANES):
        if (doubt >> np.uint64(lane)) & np.uint64(1):
            i = first + lane
            field = biases[i]
            for position in range(indptr[i], indptr[i + 1]):
                field += weights[position] if x[heads[position]] else -weights[position]
            new = -np.int8(field > spin_threshold(words[lane]))
            flips += new != x[i]
            x[i] = new
    return flips


@njit(cache=True)
def _transpose(rows, columns):
    for b in range(columns.shape[0]):
        for k in range(columns.shape[1]):
            columns[b, k] = rows[k, b]


@njit(cache=True, nogil=True)
def stencil_blocks(x, stream, first_block, last_block, k, blocks, colours, exact, rounded, stencil, edge, hold):
    """Update some blocks of colour k in one chain of masks, `LANES` sites at a time; return the number of flips.

    `BLOCKS` blocks draw their words side by side. Site i stands at ``x[edge + i]``: distances lead out at both ends.
    """
    drawn, words = np.empty((LANES, BLOCKS), np.uint64), np.empty((BLOCKS, LANES), np.uint64)
    streams, flips, own = np.zeros((4, BLOCKS), np.uint64), 0, blocks[colours[k]]
    offsets = stencil.offsets[stencil.pointers[k] : stencil.pointers[k + 1]]
    starts = stencil.starts[stencil.pointers[k] : stencil.pointers[k + 1]]
    for base in range(first_block, last_block, BLOCKS):
        beside = min(BLOCKS, last_block - base)
        for part in range(4):
            for b in range(beside):
                streams[part, b] = substream_word(stream[part], base + b)
        for start in range(0, blocks[base + 1] - blocks[base], LANES):  # the first block of a colour is the longest
            fill_lanes(streams, drawn, LANES, BLOCKS)  # type: ignore[call-arg]
            _transpose(drawn, words)
            for b in range(beside):
                first = blocks[base + b] + start
                n = min(LANES, blocks[base + b + 1] - first)
                if n <= 0:
                    continue
                graph = (offsets, starts, rounded.weights[first - own :], rounded.scale, rounded.margin)
                doubt, changed = update_sites(
                    x[edge + first :], n, words[b], hold[first:], rounded.biases[first:], *graph
                )
                flips += changed
                if doubt:
                    flips += _settle_sites(x[edge:], first, doubt, words[b], *exact)
    return flips


@njit(cache=True, nogil=True)
def next_sweep(stream):
    """Move a stream on, so that the next sweep has other substreams."""
    fill_words(stream, np.empty(1, np.uint64))


@njit(cache=True, nogil=True)
def stencil_sweeps(states, streams, blocks, colours, exact, rounded, stencil, edge, holds, n_sweeps):
    """Sweep colour by colour, as `chromatic_sweeps` does, by the distances of neighbours."""
    flips = 0
    for c in range(len(states)):
        for _ in range(n_sweeps):
            for k in range(colours.size - 1):
                flips += stencil_blocks(
                    states[c],
                    streams[c],
                    colours[k],
                    colours[k + 1],
                    k,
                    blocks,
                    colours,
                    exact,
                    rounded,
                    stencil,
                    edge,
                    holds[c if len(holds) > 1 else 0],
                )
            next_sweep(streams[c])
    return flips
