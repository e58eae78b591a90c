"""Sweeps of codes: rows of tables in vectors give the draws of one entry after the other."""

from itertools import combinations

import numpy as np
import pytest

from gibbsian.backends.numba import table_gibbs
from gibbsian.backends.numba.categorical import draw_value, row_of_weights
from gibbsian.backends.table_entries import Entries

ODD = (21, 3, 9, 2, 40, 8, 17)


def layout_of(sizes, biases, couplings, apart):
    """Each variable's own table and then those of pairs, by the code of the other; its own values stand `apart`."""
    tables, entries, bases, others, strides, pointers = [], [0], [], [], [], [0]

    def add(table):
        bases.append(sum(map(np.size, tables)))
        tables.append(np.repeat(table.ravel(), apart))
        pointers.append(len(others))

    for i, q in enumerate(sizes):
        add(biases[i])
        for j in range(len(sizes)):
            if i != j:
                others.append(j)
                strides.append(apart * q)
                add(couplings[j, i] if j < i else couplings[i, j].T)
        entries.append(len(bases))
    arrays = entries, bases, np.full(len(bases), apart), pointers, others, strides
    return np.concatenate([*tables, np.zeros(8)]), Entries(*(np.array(one, np.int64) for one in arrays))


@pytest.mark.parametrize("sizes", [ODD, (4,) * 9, (70, 2, 2)], ids=str)
@pytest.mark.parametrize("random_scan", [False, True])
@pytest.mark.parametrize("holds", [False, True])
def test_rows_in_vectors_give_the_same_draws(sizes, random_scan, holds, rng):
    biases = [rng.normal(size=q) for q in sizes]
    couplings = {(i, j): rng.normal(size=(sizes[i], sizes[j])) for i, j in combinations(range(len(sizes)), 2)}
    codes = (rng.random((37, len(sizes))) * sizes).astype(np.int8)
    streams = rng.integers(1, 2**63, (37, 4)).astype(np.uint64)
    held = rng.random(codes.shape) < 0.3 if holds else None
    results = []
    for apart in (1, 2):
        tables, entries = layout_of(sizes, biases, couplings, apart)
        own, words = codes.copy(), streams.copy()
        how = np.array(sizes), np.arange(len(sizes)), held, len(sizes) * random_scan, 3
        changes = table_gibbs.sweeps(own, words, tables, *entries, *how)
        results.append((changes, own.tolist(), words.tolist()))
    assert results[0] == results[1]
    assert results[0][0] > 0


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 21, 32, 33])
def test_values_are_drawn_by_the_cumulated_weights(n, rng):
    for _ in range(20):
        logs, uniform = 300.0 * rng.normal() + 3.0 * rng.normal(size=n), rng.random()
        row = row_of_weights(n)
        row[:] = np.nan
        row[:n] = logs
        cumulated = np.cumsum(np.exp(logs - logs.max()))
        assert draw_value(row, n, uniform) == np.searchsorted(cumulated, uniform * cumulated[-1])
