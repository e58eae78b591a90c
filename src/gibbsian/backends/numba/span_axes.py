"""The update of the full-span model's dual for variables of any cardinality (TA22 section 2.2.5), fused with the scan.

In both local bases ``phi_a phi_b`` is a short sum of basis functions of the same axis:

    Walsh (2^k values):   phi_a phi_b = phi_{a xor b}
    TA22 eq. 2.3:         phi_a phi_a = 1,   phi_a phi_b = -1 - phi_a - phi_b   for different a, b > 0.

So the shifted dual ``<Phi_y Phi_z>`` comes from the dual by a small local step along each axis that z
touches. The other axes are walked in blocks of columns, so narrow that a block with all its rows (the
combinations of values along the touched axes) stays in the cache from its first step to its last.
"""

from __future__ import annotations

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.span import NO_SHRINKAGE, best_of, consider, may_gain
from gibbsian.backends.numba.walsh import in_pieces

# Entries of a block of columns and rows that are updated together.
_BLOCK = 2**13
# Columns side by side: fewer with many rows.
_LEAST_WIDTH, _WIDTH = 8, 256
# More rows than this do not fit a cache: transform afresh instead.
MOST_ROWS = 2**16


@njit(cache=True, nogil=True)
def _shift_rows(rows, cardinalities, digits):
    """Multiply by ``Phi_z`` in the dual: a local step along each touched axis; `rows` has one row per combination."""
    inner = rows.shape[0]
    for axis in range(cardinalities.size):
        q, z = cardinalities[axis], digits[axis]
        inner //= q
        for start in range(0, rows.shape[0], inner * q):
            for i in range(start, start + inner):
                if q & (q - 1) == 0:
                    for a in range(q):
                        if a < a ^ z:
                            _swap(rows, i + a * inner, i + (a ^ z) * inner)
                else:
                    own = i + z * inner
                    for a in range(1, q):
                        if a != z:
                            _reflect(rows, i + a * inner, i, own)
                    _swap(rows, i, own)


@njit(cache=True, nogil=True, inline="always")
def _swap(rows, a, b):
    for j in range(rows.shape[1]):
        rows[a, j], rows[b, j] = rows[b, j], rows[a, j]


@njit(cache=True, nogil=True, inline="always")
def _reflect(rows, a, base, own):
    for j in range(rows.shape[1]):
        rows[a, j] = -rows[base, j] - rows[own, j] - rows[a, j]


@njit(cache=True, nogil=True)
def _next_columns(digits, cardinalities, strides, weights, offsets, penalties):
    """Fill in the next columns: where they start in the table, and what their part of the index costs."""
    offset, penalty = 0, 0.0
    for i in range(digits.size):
        offset += digits[i] * strides[i]
        penalty += weights[i] if digits[i] else 0.0
    for j in range(offsets.size):
        offsets[j], penalties[j] = offset, penalty
        i = digits.size - 1
        while i >= 0:
            if digits[i] + 1 < cardinalities[i]:
                penalty += weights[i] if digits[i] == 0 else 0.0
                digits[i] += 1
                offset += strides[i]
                break
            penalty -= weights[i] if digits[i] else 0.0
            offset -= digits[i] * strides[i]
            digits[i] = 0
            i -= 1


@njit(cache=True, nogil=True, fastmath={"contract"})
def _mix_row(dual, data, shifted, row, start, offsets, penalties, threshold, keep, mix):
    """Update the entries of one row in place and count those that may gain."""
    hits = 0
    for j in range(offsets.size):
        y = start + offsets[j]
        now = keep * dual[y] + mix * shifted[row, j]
        dual[y] = now
        hits += may_gain(now, data[y], threshold + penalties[j])
    return hits


@njit(cache=True, nogil=True)
def _update_columns(dual, data, touched, free, rows, keep, mix, limit, shrinkage, axes, taken, best, first, last):
    """Update and scan columns `first` to `last`; see `update_and_scan_axes`."""
    row_offsets, row_penalties = rows
    width = max(_LEAST_WIDTH, min(_WIDTH, _BLOCK // row_offsets.size))
    block = np.zeros((row_offsets.size, width), dual.dtype)
    all_offsets, all_penalties = np.empty(width, np.int64), np.empty(width)
    digits = np.empty(free[0].size, np.int64)
    rest = first
    for i in range(digits.size - 1, -1, -1):
        digits[i] = rest % free[0][i]
        rest //= free[0][i]
    best_y = np.int64(-1)  # as in `_pass_over`
    for start in range(first, last, width):
        count = min(width, last - start)
        offsets, penalties = all_offsets[:count], all_penalties[:count]
        _next_columns(digits, free[0], free[1], free[2], offsets, penalties)
        for p in range(row_offsets.size):
            for j in range(count):
                block[p, j] = dual[row_offsets[p] + offsets[j]]
        _shift_rows(block, touched[0], touched[1])
        for p in range(row_offsets.size):
            threshold = best + row_penalties[p]
            if _mix_row(dual, data, block, p, row_offsets[p], offsets, penalties, threshold, keep, mix):
                for j in range(count):
                    y, cost = row_offsets[p] + offsets[j], row_penalties[p] + penalties[j]
                    if may_gain(dual[y], data[y], best + cost):
                        best, best_y = consider(y, dual[y], data[y], cost, limit, shrinkage, axes, taken, best, best_y)
    return best, best_y


def update_and_scan_axes(
    dual: np.ndarray,
    data: np.ndarray,
    cardinalities: np.ndarray,
    penalties: tuple[float, np.ndarray],
    move: tuple[np.ndarray, float, float],
    limit: float,
    taken: np.ndarray,
    floor: float = 0.0,
    shrinkage: tuple[float, float, float] = NO_SHRINKAGE,
) -> tuple[float, int]:
    """Update the dual table in place and return the gain and the index of the best append; index -1 for none.

    Parameters
    ----------
    dual, data : (|X|,), float64 or float32
        The dual of the model, changed in place, and that of the data.
    cardinalities : (n,) of int64
        Number of values of each variable.
    penalties : tuple
        What a function costs by itself, and what each variable adds that it depends on.
    move : tuple
        The digits of z, keep and mix (see `gibbsian.backends.numba.span`); a z of zeros with 1 and 0 only
        scans.
    limit, taken, floor, shrinkage
        As in `gibbsian.backends.numba.span.update_and_scan`.
    """
    digits, keep, mix = move
    base, weights = penalties
    strides = strides_of(cardinalities)
    moved = digits > 0
    rows = _rows(cardinalities[moved], strides[moved], weights[moved], base)
    touched = cardinalities[moved], digits[moved]
    free = cardinalities[~moved], strides[~moved], weights[~moved]
    axes = cardinalities, strides
    found = in_pieces(
        dual.size,
        dual.size // rows[0].size,
        _WIDTH,
        lambda first, last: _update_columns(
            dual, data, touched, free, rows, keep, mix, limit, shrinkage, axes, taken, floor, first, last
        ),
    )
    return best_of(found, floor)


def n_rows(cardinalities: np.ndarray, digits: np.ndarray) -> int:
    """Return how many rows a block has: combinations of values along the axes that z touches."""
    return int(np.prod(cardinalities[digits > 0], dtype=np.float64))


def strides_of(cardinalities: np.ndarray) -> np.ndarray:
    """Return how far apart neighbours along each axis stand in a table in C order."""
    return np.append(np.cumprod(cardinalities[:0:-1])[::-1], 1).astype(np.int64)


def _rows(cardinalities, strides, weights, base):
    """Where each combination of values along the touched axes stands in the table, and what it costs."""
    offsets, penalties = np.zeros(1, np.int64), np.full(1, float(base))
    for cardinality, stride, weight in zip(cardinalities, strides, weights, strict=True):
        values = np.arange(cardinality)
        offsets = (offsets[:, None] + stride * values).ravel()
        penalties = (penalties[:, None] + weight * (values > 0)).ravel()
    return offsets, penalties


@njit(cache=True)
def pair_expectations_axes(dual, digits, cardinalities, strides):
    """Return ``<Phi_y Phi_z>`` for all pairs of functions given by their digits."""
    n_functions = digits.shape[0]
    products = np.empty((n_functions, n_functions))
    for i in range(n_functions):
        for j in range(i + 1):
            products[i, j] = products[j, i] = _product_expectation(dual, digits[i], digits[j], cardinalities, strides)
    return products


@njit(cache=True)
def _product_expectation(dual, first, second, cardinalities, strides):
    """Expand one product: an axis with two different functions of eq. 2.3 makes three terms of one."""
    n_split = 0
    for i in range(first.size):
        q = cardinalities[i]
        n_split += first[i] > 0 and second[i] > 0 and first[i] != second[i] and q & (q - 1) != 0
    offsets, n_terms, total = np.zeros(3**n_split, np.int64), 1, 0.0
    for i in range(first.size):
        a, b, q = first[i], second[i], cardinalities[i]
        if a == 0 or b == 0 or q & (q - 1) == 0:
            for t in range(n_terms):
                offsets[t] += (a ^ b) * strides[i]
        elif a != b:
            for t in range(n_terms):
                offsets[n_terms + t] = offsets[t] + a * strides[i]
                offsets[2 * n_terms + t] = offsets[t] + b * strides[i]
            n_terms *= 3
    for t in range(n_terms):
        total += dual[offsets[t]]
    return -total if n_split % 2 else total
