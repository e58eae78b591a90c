"""Sums over all states of a small spin model, one row of states at a time.

The variables are split into a high part (the first ones) and a low part (the last ones). State number
``a * 2^n_low + b`` is row `a` and column `b`; variable 0 is the most significant bit, so the numbering is that
of a C-ordered table of shape ``(2,) * n``, and a zero bit means spin -1. A row of log-weights is built by
doubling, in two additions per state, and its moments are taken by folding it in two, so the first-level cache
holds all the work.

Rows are dealt out in a fixed number of blocks whose results are added in order: nothing depends on the threads.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gibbsian.arrays import Floats, Integers
from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import relative_exp
from gibbsian.backends.threads import map_slices

N_BLOCKS = 64
# States whose weights take as long as one operation by the measure of `map_slices`.
_STATES_AN_OPERATION = 16


def over_blocks(kernel: Callable[..., None], n_rows: int, n_low: int, *arrays: Any) -> None:
    """Let a kernel work through all rows, in blocks of which every thread takes some in a row."""
    n_blocks = min(max(n_rows, 1), N_BLOCKS)
    n_operations = (n_rows << n_low) / _STATES_AN_OPERATION
    map_slices(lambda part: kernel(part.start, part.stop, n_blocks, *arrays), n_blocks, n_operations)


@njit(cache=True, nogil=True)
def low_energies(biases, couplings, n_high):
    """Log-weight of every state of the low variables by themselves."""
    n = biases.size
    n_low = n - n_high
    table = np.empty(1 << n_low)
    signs = np.empty(n)
    for b in range(table.size):
        total = 0.0
        for j in range(n_high, n):
            signs[j] = 1.0 if (b >> (n - 1 - j)) & 1 else -1.0
            field = biases[j]
            for i in range(n_high, j):
                field += couplings[i, j] * signs[i]
            total += field * signs[j]
        table[b] = total
    return table


@njit(cache=True, nogil=True)
def _row_terms(a, biases, couplings, n_high, fields):
    """Return the log-weight of row `a` by itself, and fill `fields` with what it adds to the other biases."""
    fields[:] = 0.0
    for i in range(n_high):
        sign = 1.0 if (a >> (n_high - 1 - i)) & 1 else -1.0
        for j in range(fields.size):
            fields[j] += sign * couplings[i, j]
    total = 0.0
    for i in range(n_high):
        sign = 1.0 if (a >> (n_high - 1 - i)) & 1 else -1.0
        total += sign * (biases[i] + 0.5 * fields[i])  # half the field counts each pair once
    return total


@njit(cache=True, nogil=True)
def _fill_row(row, a, biases, couplings, n_high, energies, fields):
    """Write the log-weights of row `a`."""
    start = _row_terms(a, biases, couplings, n_high, fields)
    n = biases.size
    for j in range(n_high, n):
        start -= fields[j]
    row[0] = start
    size = 1
    for j in range(n - 1, n_high - 1, -1):
        step = 2.0 * fields[j]
        for b in range(size):
            row[size + b] = row[b] + step
        size *= 2
    for b in range(size):
        row[b] += energies[b]


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc"})
def largest(row):
    """Return the largest entry."""
    best = row[0]
    for b in range(row.size):
        best = max(best, row[b])
    return best


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _difference(lower, upper):
    total = 0.0
    for b in range(lower.size):
        total += upper[b] - lower[b]
    return total


@njit(cache=True, nogil=True)
def fold_moments(table, moments):
    """Fill ``moments[j] = sum_b table[b] s_j(b)`` and return the sum of the table, which is destroyed.

    The first variable stands at the top bit. Folding adds in pairs, so rounding errors stay small.
    """
    size = table.size
    for j in range(moments.size):
        size //= 2
        lower, upper = table[:size], table[size : 2 * size]
        moments[j] = _difference(lower, upper)
        for b in range(size):
            lower[b] += upper[b]
    return table[0]


@njit(cache=True, nogil=True)
def fold_second_moments(table, n):
    """Return the sums over b of ``table[b] s_i(b)`` and of ``table[b] s_i(b) s_j(b)``; the table is destroyed."""
    first = np.empty(n)
    second = np.empty((n, n))
    size = table.size
    difference = np.empty(max(size // 2, 1))
    for i in range(n):
        size //= 2
        lower, upper = table[:size], table[size : 2 * size]
        for b in range(size):
            difference[b] = upper[b] - lower[b]
            lower[b] += upper[b]
        first[i] = fold_moments(difference[:size], second[i, i + 1 :])
    for i in range(n):
        second[i, i] = table[0]
        for j in range(i):
            second[i, j] = second[j, i]
    return first, second


@njit(cache=True, nogil=True)
def fold_cross_moments(moments, n_high):
    """Sums of ``s_j s_i`` for each low j, whose moments over the rows are given, and each high i."""
    cross = np.empty((len(moments), n_high))
    for j in range(len(moments)):
        fold_moments(moments[j].copy(), cross[j])
    return cross


@njit(cache=True, nogil=True)
def _fill_maxima(first, stop, n_blocks, biases, couplings, n_high, energies, maxima):
    row, fields = np.empty(energies.size), np.empty(biases.size)
    for a in range(first * maxima.size // n_blocks, stop * maxima.size // n_blocks):
        _fill_row(row, a, biases, couplings, n_high, energies, fields)
        maxima[a] = largest(row)


def row_maxima(biases, couplings, n_high, energies):
    """Largest log-weight of each row; of few variables, all of them low, the energies are the only one."""
    if n_high == 0:
        return energies.max(keepdims=True)
    maxima = np.empty(1 << n_high)
    over_blocks(_fill_maxima, maxima.size, biases.size - n_high, biases, couplings, n_high, energies, maxima)
    return maxima


@njit(cache=True, nogil=True)
def _fill_sums(first, stop, n_blocks, biases, couplings, n_high, energies, reference, masses, moments, low_tables):
    row, fields, row_moments = np.empty(energies.size), np.empty(biases.size), np.empty(len(moments))
    for block in range(first, stop):
        for a in range(block * masses.size // n_blocks, (block + 1) * masses.size // n_blocks):
            _fill_row(row, a, biases, couplings, n_high, energies, fields)
            relative_exp(row, reference)
            for b in range(row.size):
                low_tables[block, b] += row[b]
            masses[a] = fold_moments(row, row_moments)
            for j in range(row_moments.size):
                moments[j, a] = row_moments[j]


def row_sums(biases, couplings, n_high, energies, reference):
    """Sum the weights ``exp(log-weight - reference)``.

    Returns
    -------
    masses : (n_rows,), the sum of each row
    moments : (n_low, n_rows), the sum of ``s_j`` over each row; none where there is but one
    low_table : (2^n_low,), the sum of each column
    """
    if n_high == 0:
        weights = np.exp(energies - reference)
        return weights.sum(keepdims=True), np.empty((0, 1)), weights
    n_rows, n_low = 1 << n_high, biases.size - n_high
    masses, moments = np.empty(n_rows), np.empty((n_low, n_rows))
    low_tables = np.zeros((min(n_rows, N_BLOCKS), energies.size))
    parts = biases, couplings, n_high, energies, reference, masses, moments, low_tables
    over_blocks(_fill_sums, n_rows, n_low, *parts)
    return masses, moments, low_tables.sum(axis=0)


@njit(cache=True, nogil=True)
def row_log_weights(a, biases, couplings, n_high, energies):
    """Log-weights of the states of row `a`."""
    row = np.empty(energies.size)
    _fill_row(row, a, biases, couplings, n_high, energies, np.empty(biases.size))
    return row


@njit(cache=True, nogil=True)
def _fill_columns(first, stop, n_blocks, rows, starts, uniforms, biases, couplings, n_high, energies, columns):
    for g in range(first * rows.size // n_blocks, stop * rows.size // n_blocks):
        cumulative = row_log_weights(rows[g], biases, couplings, n_high, energies)
        relative_exp(cumulative, largest(cumulative))
        for b in range(1, cumulative.size):
            cumulative[b] += cumulative[b - 1]
        for m in range(starts[g], starts[g + 1]):
            columns[m] = _place(cumulative, uniforms[m] * cumulative[-1])


@njit(cache=True, nogil=True)
def _place(cumulative, share):
    """The first entry above `share`, by halving; the last where rounding leaves none."""
    low, high = 0, cumulative.size - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > share:
            high = middle
        else:
            low = middle + 1
    return low


def sample_columns(
    rows: Integers, starts: Integers, uniforms: Floats, biases: Floats, couplings: Floats, n_high: int, energies: Floats
) -> Integers:
    """Draw one column in row ``rows[g]`` for each uniform number from ``starts[g]`` to ``starts[g + 1]``."""
    columns = np.empty(uniforms.size, np.int64)
    parts = rows, starts, uniforms, biases, couplings, n_high, energies, columns
    over_blocks(_fill_columns, rows.size, biases.size - n_high, *parts)
    return columns
