"""Clamped phases of pairwise spins (-1/+1): rows with some cells present and the others free.

The free cells of row r are ``cells[pointers[r] : pointers[r + 1]]``. Fields are over T. On dense graphs `matrix` holds
the couplings and a row keeps the fields of its free cells only, so that its cost is that of its free cells; on sparse
graphs (`indptr`, `heads`, `weights`) fields are summed over the neighbours at every visit. Rows know nothing of each
other and chains draw from their own streams, so that no result depends on the number of threads.
"""

import math

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.random import fill_thresholds, fill_words

# Every field is one sum over a row, in the order that vector registers like; it is the same on any number of threads.
_ANY_ORDER = {"reassoc", "contract", "nsz"}
# Beyond, one less the tanh of a field has lost too many digits for quotients of such numbers.
_LARGE = 5.0


@njit(cache=True, fastmath=_ANY_ORDER)
def _dot(left, right):
    total = 0.0
    for k in range(left.size):
        total += left[k] * right[k]
    return total


@njit(cache=True)
def _fill_fields(field, x, free, biases, matrix):
    """Fields of the free cells of one state."""
    for k in range(free.size):
        field[k] = biases[free[k]] + _dot(matrix[free[k]], x)


@njit(cache=True)
def _shift_fields(field, free, row, change):
    """Add to the fields of the free cells what the change of one of them brings."""
    for k in range(free.size):
        field[k] += change * row[free[k]]


@njit(cache=True)
def _field_at(i, x, biases, indptr, heads, weights):
    field = biases[i]
    for position in range(indptr[i], indptr[i + 1]):
        field += weights[position] * x[heads[position]]
    return field


@njit(cache=True, nogil=True)
def dense_sweeps(states, streams, row_of, pointers, cells, biases, matrix, n_sweeps):
    """Gibbs sweeps over the free cells of each chain; ``row_of[c]`` is the row that chain c completes."""
    for c in range(len(states)):
        free = cells[pointers[row_of[c]] : pointers[row_of[c] + 1]]
        x = states[c].astype(np.float64)
        field, words, thresholds = np.empty(free.size), np.empty(free.size, np.uint64), np.empty(free.size)
        _fill_fields(field, x, free, biases, matrix)
        for _ in range(n_sweeps):
            fill_words(streams[c], words)
            fill_thresholds(words, thresholds)
            for k in range(free.size):
                i = free[k]
                new = 1.0 if field[k] > thresholds[k] else -1.0
                if new != x[i]:
                    _shift_fields(field, free, matrix[i], new - x[i])
                    x[i] = new
        for k in range(free.size):
            states[c, free[k]] = np.int8(x[free[k]])


@njit(cache=True, nogil=True)
def sparse_sweeps(states, streams, row_of, pointers, cells, biases, indptr, heads, weights, n_sweeps):
    """The same along a CSR graph."""
    for c in range(len(states)):
        free, x = cells[pointers[row_of[c]] : pointers[row_of[c] + 1]], states[c]
        words, thresholds = np.empty(free.size, np.uint64), np.empty(free.size)
        for _ in range(n_sweeps):
            fill_words(streams[c], words)
            fill_thresholds(words, thresholds)
            for k in range(free.size):
                field = _field_at(free[k], x, biases, indptr, heads, weights)
                x[free[k]] = np.int8(1) if field > thresholds[k] else np.int8(-1)


@njit(cache=True)
def entropy(field):
    """Entropy of a spin with mean ``tanh(field)``, without cancellation."""
    size = abs(field)
    tail = math.exp(-2.0 * size)
    return math.log1p(tail) + size * 2.0 * tail / (1.0 + tail)


@njit(cache=True)
def _total_entropy(own):
    total = 0.0
    for k in range(own.size):
        total += entropy(own[k])
    return total


@njit(cache=True, nogil=True)
def dense_mean_field(means, own, pointers, cells, biases, matrix, most_sweeps, tol):
    """Update one free mean at a time, ``m_i = tanh(field_i)``, until no mean of the row changes by more than `tol`.

    Each update minimises the row's free energy over one factor of Q, so none ever raises it. `own` holds the fields in
    whose place the free means stand (``m = tanh(own)``) and is updated with `means`. Returns the entropy of each row's
    Q, its last largest change and its sweeps.
    """
    n_rows = len(means)
    entropies, changes, sweeps = np.empty(n_rows), np.zeros(n_rows), np.zeros(n_rows, np.int64)
    for r in range(n_rows):
        free, x, mine = cells[pointers[r] : pointers[r + 1]], means[r], own[pointers[r] : pointers[r + 1]]
        field = np.empty(free.size)
        _fill_fields(field, x, free, biases, matrix)
        while sweeps[r] < most_sweeps:
            largest = 0.0
            for k in range(free.size):
                i = free[k]
                mine[k] = field[k]
                new = math.tanh(field[k])
                change = new - x[i]
                if change != 0.0:
                    _shift_fields(field, free, matrix[i], change)
                    x[i] = new
                    largest = max(largest, abs(change))
            sweeps[r] += 1
            changes[r] = largest
            if largest <= tol:
                break
        entropies[r] = _total_entropy(mine)
    return entropies, changes, sweeps


@njit(cache=True, nogil=True)
def sparse_mean_field(means, own, pointers, cells, biases, indptr, heads, weights, most_sweeps, tol):
    """The same along a CSR graph."""
    n_rows = len(means)
    entropies, changes, sweeps = np.empty(n_rows), np.zeros(n_rows), np.zeros(n_rows, np.int64)
    for r in range(n_rows):
        free, x, mine = cells[pointers[r] : pointers[r + 1]], means[r], own[pointers[r] : pointers[r + 1]]
        while sweeps[r] < most_sweeps:
            largest = 0.0
            for k in range(free.size):
                mine[k] = _field_at(free[k], x, biases, indptr, heads, weights)
                new = math.tanh(mine[k])
                largest = max(largest, abs(new - x[free[k]]))
                x[free[k]] = new
            sweeps[r] += 1
            changes[r] = largest
            if largest <= tol:
                break
        entropies[r] = _total_entropy(mine)
    return entropies, changes, sweeps


@njit(cache=True)
def _log_cosh(u):
    """``log(2 cosh(u))``, which does not overflow."""
    return abs(u) + math.log1p(math.exp(-2.0 * abs(u)))


@njit(cache=True)
def _pair_mean(first, second, coupling):
    """``E[x y]`` of two spins with these fields, the coupling between them not counted."""
    return math.tanh(coupling + 0.5 * (_log_cosh(first + second) - _log_cosh(first - second)))


@njit(cache=True, inline="always")
def _less(y, s):
    """``tanh(a - b)`` from ``y = tanh(a)`` and ``s = tanh(b)``."""
    return (y - s) / (1.0 - y * s)


@njit(cache=True, nogil=True, error_model="numpy")
def pair_regions(states, fields, shares, row_of, pointers, cells, indptr, heads, edges, weights, tangents, block, size):
    """1-SMCI given the present cells: ``y``, and what pairs of free cells add to the products of ``y``.

    ``y[c, i] = E[x_i | the others]`` where i is free in chain c, else its value. With at most one free end the mean of
    a product is the product of ``y``; with two it is summed over both (Y18 eq. 25), and the difference is added up over
    the chains, weighted by `shares`, block after block. Fields and couplings that are not large need no function but
    their own tanh: ``E[x y] = (t + a b) / (1 + t a b)`` for a coupling ``artanh t`` and spins that have the means a and
    b without it. `size` is the number of edges.
    """
    n_chains, n = states.shape
    y = np.empty((n_chains, n))
    n_blocks = (n_chains + block - 1) // block
    extra = np.zeros((n_blocks, size))
    for b in range(n_blocks):
        is_free = np.zeros(n, np.bool_)
        for c in range(b * block, min((b + 1) * block, n_chains)):
            free, x, field, mean = cells[pointers[row_of[c]] : pointers[row_of[c] + 1]], states[c], fields[c], y[c]
            for i in range(n):
                mean[i] = x[i]
            for i in free:
                is_free[i] = True
                mean[i] = math.tanh(field[i])
            for i in free:
                for position in range(indptr[i + 1] - 1, indptr[i] - 1, -1):
                    j = heads[position]
                    if j <= i:  # neighbours ascend, and each pair counts once
                        break
                    if not is_free[j]:
                        continue
                    w, t = weights[position], tangents[position]
                    if max(abs(field[i]), abs(field[j]), abs(w)) < _LARGE:
                        product = _less(mean[i], t * x[j]) * _less(mean[j], t * x[i])
                        both = (t + product) / (1.0 + t * product)
                    else:
                        both = _pair_mean(field[i] - w * x[j], field[j] - w * x[i], w)
                    extra[b, edges[position]] += shares[c] * (both - mean[i] * mean[j])
            for i in free:
                is_free[i] = False
    return y, extra


@njit(cache=True)
def belief_sweeps(messages, fields, tails, heads, reverse, weights, damping, most_sweeps, tol):
    """Loopy belief propagation on spins, one message after the other.

    Message p goes along the directed edge from ``tails[p]`` to ``heads[p]`` and ``reverse[p]`` back. `fields` holds
    ``b_i`` plus all messages into i and is kept up to date. Returns the sweeps and the last largest change.
    """
    largest, sweep = np.inf, 0
    while sweep < most_sweeps and largest > tol:
        largest = 0.0
        for p in range(messages.size):
            cavity = fields[tails[p]] - messages[reverse[p]]
            new = 0.5 * (_log_cosh(weights[p] + cavity) - _log_cosh(weights[p] - cavity))
            change = (1.0 - damping) * (new - messages[p])
            messages[p] += change
            fields[heads[p]] += change
            largest = max(largest, abs(change))
        sweep += 1
    return sweep, largest
