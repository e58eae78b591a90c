"""Sums over all states of a small spin model, one row of states at a time.

The variables are split into a high part (the first ones) and a low part (the last ones). State number
``a * 2^n_low + b`` is row `a` and column `b`; variable 0 is the most significant bit, so the numbering is that
of a C-ordered table of shape ``(2,) * n``, and a zero bit means spin -1. A row of log-weights is built by
doubling, in two additions per state, and its moments are taken by folding it in two, so the first-level cache
holds all the work.

Rows are dealt out in a fixed number of blocks whose results are added in order: nothing depends on the threads.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numba import get_num_threads, njit, prange, set_num_threads

from gibbsian.backends.numba.elementary import fast_exp

N_BLOCKS = 64
# Up to here one thread needs a few milliseconds; waking the others on a busy machine can take tens of them.
ONE_THREAD_UP_TO = 2**20


@contextmanager
def threads_for(n_states: int) -> Iterator[None]:
    """Use one thread for few states and all of them for many; the results are the same."""
    before = get_num_threads()
    set_num_threads(1 if n_states <= ONE_THREAD_UP_TO else before)
    try:
        yield
    finally:
        set_num_threads(before)


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True, fastmath={"nnan", "nsz", "reassoc"})
def largest(row):
    """Return the largest entry."""
    best = row[0]
    for b in range(row.size):
        best = max(best, row[b])
    return best


@njit(cache=True, fastmath={"contract"})
def _exponentiate(row, reference):
    """Turn log-weights into weights relative to `reference`."""
    for b in range(row.size):
        row[b] = fast_exp(row[b] - reference)


@njit(cache=True, fastmath={"reassoc", "contract"})
def _difference(lower, upper):
    total = 0.0
    for b in range(lower.size):
        total += upper[b] - lower[b]
    return total


@njit(cache=True)
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


@njit(cache=True)
def fold_second_moments(table, n):
    """Return the sums over b of ``table[b] s_i(b)`` and of ``table[b] s_i(b) s_j(b)``; the table is destroyed."""
    first = np.empty(n)
    second = np.zeros((n, n))
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


@njit(cache=True, parallel=True)
def row_maxima(biases, couplings, n_high, energies):
    """Largest log-weight of each row."""
    n_rows = 1 << n_high
    maxima = np.empty(n_rows)
    n_blocks = min(n_rows, N_BLOCKS)
    for block in prange(n_blocks):
        row = np.empty(energies.size)
        fields = np.empty(biases.size)
        for a in range(block * n_rows // n_blocks, (block + 1) * n_rows // n_blocks):
            _fill_row(row, a, biases, couplings, n_high, energies, fields)
            maxima[a] = largest(row)
    return maxima


@njit(cache=True, parallel=True)
def row_sums(biases, couplings, n_high, energies, reference):
    """Sum the weights ``exp(log-weight - reference)``.

    Returns
    -------
    masses : (n_rows,), the sum of each row
    moments : (n_low, n_rows), the sum of ``s_j`` over each row
    low_table : (2^n_low,), the sum of each column
    """
    n_rows = 1 << n_high
    n_low = biases.size - n_high
    masses = np.empty(n_rows)
    moments = np.empty((n_low, n_rows))
    n_blocks = min(n_rows, N_BLOCKS)
    low_tables = np.zeros((n_blocks, energies.size))
    for block in prange(n_blocks):
        row = np.empty(energies.size)
        fields = np.empty(biases.size)
        row_moments = np.empty(n_low)
        for a in range(block * n_rows // n_blocks, (block + 1) * n_rows // n_blocks):
            _fill_row(row, a, biases, couplings, n_high, energies, fields)
            _exponentiate(row, reference)
            low_tables[block] += row
            masses[a] = fold_moments(row, row_moments)
            for j in range(n_low):
                moments[j, a] = row_moments[j]
    low_table = np.zeros(energies.size)
    for block in range(n_blocks):
        for b in range(low_table.size):
            low_table[b] += low_tables[block, b]
    return masses, moments, low_table


@njit(cache=True)
def row_log_weights(a, biases, couplings, n_high, energies):
    """Log-weights of the states of row `a`."""
    row = np.empty(energies.size)
    _fill_row(row, a, biases, couplings, n_high, energies, np.empty(biases.size))
    return row


@njit(cache=True, parallel=True)
def sample_columns(rows, starts, uniforms, biases, couplings, n_high, energies):
    """Draw one column in row ``rows[g]`` for each uniform number from ``starts[g]`` to ``starts[g + 1]``."""
    columns = np.empty(uniforms.size, np.int64)
    for g in prange(rows.size):
        weights = row_log_weights(rows[g], biases, couplings, n_high, energies)
        _exponentiate(weights, largest(weights))
        cumulative = np.cumsum(weights)
        for m in range(starts[g], starts[g + 1]):
            column = np.searchsorted(cumulative, uniforms[m] * cumulative[-1], side="right")
            columns[m] = min(column, cumulative.size - 1)
    return columns
