"""Loops of the higher-order machine: products of values over cliques.

Rows go through in strips of `STRIP` states held by variable, so that what a clique needs are a few rows of a small
array and every loop runs over the states of the strip as vector code. Cliques stand in lexicographic order, so those
that differ in their last member only follow each other; such a run, from ``runs[r]`` to ``runs[r + 1]``, takes the
product over its other members once. The work is proportional to the sizes of the cliques: products over all members
but one come from those before and after it, never from a division, because values may be zero.

Each kernel works on one thread and leaves the interpreter free; callers give blocks of rows to threads.
"""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import copy_to

# states side by side: the strips of a hundred variables and of their fields stay in the second-level cache
STRIP = 128


@njit(cache=True)
def _load(codes, levels, start, x):
    """Put the values of a strip of states into `x`, by variable; return how many states there are."""
    count = min(STRIP, len(codes) - start)
    for m in range(count):
        row = codes[start + m]
        for i in range(row.size):
            x[i, m] = levels[i, row[i]]
    return count


@njit(cache=True, nogil=True)
def shift_products(vector, steps, origin, transposed):
    """Add to products without a variable the origin times those with it, one variable after the other; return a copy.

    `steps` have a variable, the product with it and the one without, by variable.
    """
    moved = vector.copy()
    for s in range(len(steps)):
        i, holding, without = steps[s]
        if transposed:
            moved[holding] += origin[i] * moved[without]
        else:
            moved[without] += origin[i] * moved[holding]
    return moved


# Rows of the strips are named by their number, so that no view is made for each clique.
@njit(cache=True)
def _multiply(product, x, i):
    for m in range(product.size):
        product[m] *= x[i, m]


@njit(cache=True)
def _add_row(target, weight, x, i):
    for m in range(target.size):
        target[m] += weight * x[i, m]


@njit(cache=True)
def _add_to_row(fields, i, weight, values):
    for m in range(values.size):
        fields[i, m] += weight * values[m]


@njit(cache=True)
def _add_product(target, first, second):
    for m in range(target.size):
        target[m] += first[m] * second[m]


@njit(cache=True)
def _shared_members(run, runs, indptr, members):
    """The members that the cliques of a run have in common: all but the last."""
    first = runs[run]
    return members[indptr[first] : indptr[first + 1] - 1]


@njit(cache=True)
def _last_member(c, indptr, members):
    return members[indptr[c + 1] - 1]


@njit(cache=True, fastmath=True)
def _inner(product, x, i):
    total = 0.0
    for m in range(product.size):
        total += product[m] * x[i, m]
    return total


@njit(cache=True, fastmath=True)
def _inner_of_both(product, slopes, derivative, x, i):
    """``product . slopes_i + derivative . x_i``."""
    total = 0.0
    for m in range(product.size):
        total += product[m] * slopes[i, m] + derivative[m] * x[i, m]
    return total


@njit(cache=True, nogil=True)
def log_weights(codes, levels, runs, indptr, members, theta):
    """``sum_c theta_c prod_{i in c} x_i`` of each state."""
    totals = np.zeros(len(codes))
    x, product = np.zeros((codes.shape[1], STRIP)), np.empty(STRIP)
    total, ends = np.empty(STRIP), np.empty(STRIP)
    for start in range(0, len(codes), STRIP):
        count = _load(codes, levels, start, x)
        total[:] = 0.0
        for run in range(runs.size - 1):
            product[:] = 1.0
            for i in _shared_members(run, runs, indptr, members):
                _multiply(product, x, i)
            ends[:] = 0.0
            for c in range(runs[run], runs[run + 1]):
                _add_row(ends, theta[c], x, _last_member(c, indptr, members))
            _add_product(total, product, ends)
        copy_to(totals[start:], total[:count])
    return totals


@njit(cache=True, nogil=True)
def statistics(codes, levels, shares, runs, indptr, members):
    """``sum_m shares[m] prod_{i in c} x[m, i]`` of each clique."""
    totals = np.zeros(indptr.size - 1)
    x, product = np.zeros((codes.shape[1], STRIP)), np.zeros(STRIP)
    for start in range(0, len(codes), STRIP):
        count = _load(codes, levels, start, x)
        for run in range(runs.size - 1):
            copy_to(product, shares[start : start + count])
            product[count:] = 0.0
            for i in _shared_members(run, runs, indptr, members):
                _multiply(product, x, i)
            for c in range(runs[run], runs[run + 1]):
                totals[c] += _inner(product, x, _last_member(c, indptr, members))
    return totals


@njit(cache=True)
def _spread(fields, shared, x, ends, before):
    """Add ``ends`` times the product of all others to the field of each shared member; `ends` is overwritten.

    Row t of `before` takes the product of the members before the t-th.
    """
    before[0] = 1.0
    for t in range(1, shared.size):
        for m in range(ends.size):
            before[t, m] = before[t - 1, m] * x[shared[t - 1], m]
    for t in range(shared.size - 1, -1, -1):
        _add_product(fields[shared[t]], before[t], ends)
        _multiply(ends, x, shared[t])


@njit(cache=True)
def _fill_fields(fields, x, runs, indptr, members, theta, product, ends, before):
    """``F_i = sum_{c with i} theta_c prod_{j in c, j != i} x_j`` for a strip of states, by variable."""
    fields[:] = 0.0
    for run in range(runs.size - 1):
        shared = _shared_members(run, runs, indptr, members)
        product[:] = 1.0
        for i in shared:
            _multiply(product, x, i)
        ends[:] = 0.0
        for c in range(runs[run], runs[run + 1]):
            last = _last_member(c, indptr, members)
            _add_to_row(fields, last, theta[c], product)
            _add_row(ends, theta[c], x, last)
        _spread(fields, shared, x, ends, before)


@njit(cache=True)
def _longest(indptr):
    longest = 0
    for c in range(indptr.size - 1):
        longest = max(longest, indptr[c + 1] - indptr[c])
    return longest


@njit(cache=True, nogil=True)
def fields(codes, levels, runs, indptr, members, theta):
    """Fields of each state: what multiplies the value of a variable in the log-weight."""
    n_states, n = codes.shape
    out = np.empty((n_states, n))
    x, strip = np.zeros((n, STRIP)), np.empty((n, STRIP))
    product, ends, before = np.empty(STRIP), np.empty(STRIP), np.empty((_longest(indptr) + 1, STRIP))
    for start in range(0, n_states, STRIP):
        count = _load(codes, levels, start, x)
        _fill_fields(strip, x, runs, indptr, members, theta, product, ends, before)
        for m in range(count):
            for i in range(n):
                out[start + m, i] = strip[i, m]
    return out


@njit(cache=True)
def _product_rule(product, derivative, shared, x, slopes):
    """Fill the product over the shared members and the sum of its derivatives, each times the member's slope."""
    product[:] = 1.0
    derivative[:] = 0.0
    for i in shared:
        for m in range(product.size):
            derivative[m] = derivative[m] * x[i, m] + product[m] * slopes[i, m]
        _multiply(product, x, i)


@njit(cache=True, nogil=True)
def fields_vjp(codes, levels, c, runs, indptr, members):
    """Gradient of ``sum(c * fields)`` with respect to theta."""
    n_states, n = codes.shape
    totals = np.zeros(indptr.size - 1)
    x, slopes = np.zeros((n, STRIP)), np.zeros((n, STRIP))
    product, derivative = np.empty(STRIP), np.empty(STRIP)
    for start in range(0, n_states, STRIP):
        count = _load(codes, levels, start, x)
        slopes[:, count:] = 0.0
        for m in range(count):
            for i in range(n):
                slopes[i, m] = c[start + m, i]
        for run in range(runs.size - 1):
            _product_rule(product, derivative, _shared_members(run, runs, indptr, members), x, slopes)
            for k in range(runs[run], runs[run + 1]):
                last = _last_member(k, indptr, members)
                totals[k] += _inner_of_both(product, slopes, derivative, x, last)
    return totals
