"""Loops of models made of tables: which entry of each table a state picks, and what a change of one value does.

States come by variable (one row of codes per variable), scope after scope, so that the table at hand stays in the
first-level cache. The entries of all tables stand in one vector; a table begins at ``offsets[k]``, and the code of
member p is multiplied by ``strides[p]``.

Each kernel works on one thread and leaves the interpreter free; callers give blocks of rows to threads.
"""

import numpy as np

from gibbsian.backends.numba import njit


@njit(cache=True)
def _fill_places(places, rows, members, strides, offset):
    """Which entry each state picks in one table."""
    places[:] = offset
    for p in range(members.size):
        codes, stride = rows[members[p]], strides[p]
        for m in range(places.size):
            places[m] += stride * codes[m]


@njit(cache=True, nogil=True)
def log_weights(rows, indptr, members, strides, offsets, theta):
    """Sum of the entries that each state picks."""
    totals, places = np.zeros(rows.shape[1]), np.empty(rows.shape[1], np.int64)
    for k in range(indptr.size - 1):
        span = slice(indptr[k], indptr[k + 1])
        _fill_places(places, rows, members[span], strides[span], offsets[k])
        for m in range(places.size):
            totals[m] += theta[places[m]]
    return totals


@njit(cache=True, nogil=True)
def statistics(rows, shares, indptr, members, strides, offsets):
    """Summed shares of the states that pick each entry."""
    totals, places = np.zeros(offsets[-1]), np.empty(rows.shape[1], np.int64)
    for k in range(indptr.size - 1):
        span = slice(indptr[k], indptr[k + 1])
        _fill_places(places, rows, members[span], strides[span], offsets[k])
        for m in range(places.size):
            totals[places[m]] += shares[m]
    return totals


@njit(cache=True)
def _add_changes(costs, places, codes, stride, value, theta):
    """Add what one table says of changing a variable to `value`, or to the other of two if `value` is negative."""
    for m in range(places.size):
        new = 1 - codes[m] if value < 0 else value
        here = places[m]
        costs[m] += theta[here] - theta[here + stride * (new - codes[m])]


@njit(cache=True)
def _add_change_slopes(slopes, places, codes, stride, value, totals):
    for m in range(places.size):
        new = 1 - codes[m] if value < 0 else value
        here = places[m]
        totals[here] += slopes[m]
        totals[here + stride * (new - codes[m])] -= slopes[m]


@njit(cache=True, nogil=True)
def costs(rows, columns, indptr, members, strides, offsets, theta):
    """Costs of changed values by column: ``columns`` is None for one each, else where those of a variable begin."""
    n_states = rows.shape[1]
    found = np.zeros((len(rows) if columns is None else columns[-1], n_states))
    places = np.empty(n_states, np.int64)
    for k in range(indptr.size - 1):
        span = slice(indptr[k], indptr[k + 1])
        _fill_places(places, rows, members[span], strides[span], offsets[k])
        for p in range(indptr[k], indptr[k + 1]):
            i = members[p]
            if columns is None:
                _add_changes(found[i], places, rows[i], strides[p], -1, theta)
            else:
                for value in range(columns[i + 1] - columns[i]):
                    _add_changes(found[columns[i] + value], places, rows[i], strides[p], value, theta)
    return found


@njit(cache=True, nogil=True)
def costs_vjp(rows, c, columns, indptr, members, strides, offsets):
    """Gradient of ``sum(c * costs)``, with c and the costs one row for each column."""
    totals, places = np.zeros(offsets[-1]), np.empty(rows.shape[1], np.int64)
    for k in range(indptr.size - 1):
        span = slice(indptr[k], indptr[k + 1])
        _fill_places(places, rows, members[span], strides[span], offsets[k])
        for p in range(indptr[k], indptr[k + 1]):
            i = members[p]
            if columns is None:
                _add_change_slopes(c[i], places, rows[i], strides[p], -1, totals)
            else:
                for value in range(columns[i + 1] - columns[i]):
                    _add_change_slopes(c[columns[i] + value], places, rows[i], strides[p], value, totals)
    return totals
