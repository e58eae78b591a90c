"""Sums over all states of one layer of two-valued units while the units of the other are summed analytically.

A state of the enumerated layer is a pair (a, b): its high units and its low units. The field of a unit i of the other
layer is a sum ``high[a, i] + low[i, b]``, so its exponential is a product of entries of two small tables, and the
log-weight of a state is the logarithm of a product of ``1 + high * low``: no exponential and, because the exponent of
a running product is moved into an integer, one logarithm a state. Units whose fields are too large for that go
through `add_log_sums` and `mean_sums_of_fields`, which take the fields themselves.

Arrays: `high` (n_rows, n_units), `low` (n_units, n_lanes), `table` and `shares` (n_rows, n_lanes).
"""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import VECTOR_MATH, fast_exp

# Units whose factors are multiplied in one pass over the lanes: `high` and `low` have a multiple of it.
UNROLLED = 4

_ONE_BITS = 1023 << 52
_MANTISSA = (1 << 52) - 1
_LN2 = float(np.log(2.0))
# Factors in (1, 2] between two moves of the exponent.
_FACTORS = 512


@njit(cache=True, nogil=True, inline="always")
def _move_exponents(products, bits, exponents):
    """Bring every running product back to [1, 2) and count its power of two; `bits` is `products` seen as int64."""
    for b in range(products.size):
        exponents[b] += (bits[b] >> 52) - 1023
        bits[b] = (bits[b] & _MANTISSA) | _ONE_BITS


@njit(cache=True, nogil=True, fastmath=VECTOR_MATH)
def _times_four_factors(products, high, low, i):
    """Multiply by ``1 + high[i] low[i]`` of four units."""
    h0, h1, h2, h3 = high[i], high[i + 1], high[i + 2], high[i + 3]
    w0, w1, w2, w3 = low[i], low[i + 1], low[i + 2], low[i + 3]
    for b in range(products.size):
        products[b] *= ((1.0 + h0 * w0[b]) * (1.0 + h1 * w1[b])) * ((1.0 + h2 * w2[b]) * (1.0 + h3 * w3[b]))


@njit(cache=True, nogil=True)
def add_log_products(high, low, ends, table):
    """Add ``sum_i log(1 + high[a, i] low[i, b])`` to ``table[a, b]``.

    Between two of `ends`, multiples of `UNROLLED`, a product must not overflow.
    """
    n_lanes = table.shape[1]
    products = np.empty(n_lanes)
    bits = products.view(np.int64)
    exponents = np.empty(n_lanes, np.int64)
    for a in range(table.shape[0]):
        products[:] = 1.0
        exponents[:] = 0
        start = 0
        for stop in ends:
            for i in range(start, stop, UNROLLED):
                _times_four_factors(products, high[a], low, i)
            _move_exponents(products, bits, exponents)
            start = stop
        for b in range(n_lanes):
            table[a, b] += exponents[b] * _LN2 + np.log(products[b])


@njit(cache=True, nogil=True, fastmath=VECTOR_MATH)
def _times_softplus(products, tops, high, low):
    """Put ``log(1 + exp(f))``, f = high + low, into a factor in (1, 2] and its larger part ``max(f, 0)``."""
    for b in range(products.size):
        field = high + low[b]
        tops[b] += max(field, 0.0)
        products[b] *= 1.0 + fast_exp(-abs(field))


@njit(cache=True, nogil=True)
def add_log_sums(high, low, table):
    """Add ``sum_i log(1 + exp(high[a, i] + low[i, b]))`` to ``table[a, b]``, for fields of any size."""
    n_rows, n_lanes = table.shape
    products = np.empty(n_lanes)
    bits = products.view(np.int64)
    exponents = np.empty(n_lanes, np.int64)
    tops = np.empty(n_lanes)
    for a in range(n_rows):
        products[:] = 1.0
        exponents[:] = 0
        tops[:] = 0.0
        for i in range(high.shape[1]):
            _times_softplus(products, tops, high[a, i], low[i])
            if i % _FACTORS == _FACTORS - 1:
                _move_exponents(products, bits, exponents)
        for b in range(n_lanes):
            table[a, b] += tops[b] + exponents[b] * _LN2 + np.log(products[b])


@njit(cache=True, nogil=True, fastmath=True)
def _sum(numbers):
    total = 0.0
    for b in range(numbers.size):
        total += numbers[b]
    return total


@njit(cache=True, nogil=True, fastmath=VECTOR_MATH, error_model="numpy")
def _shares_of_products(high, low, shares, parts, column):
    """Put ``share * odds / (1 + odds)``, odds = high * low, in `parts` and add it to `column`."""
    for b in range(parts.size):
        odds = high * low[b]
        parts[b] = shares[b] * odds / (1.0 + odds)
        column[b] += parts[b]


@njit(cache=True, nogil=True, fastmath=VECTOR_MATH, error_model="numpy")
def _shares_of_fields(high, low, shares, parts, column):
    """Put ``share * sigmoid(high + low)`` in `parts` and add it to `column`."""
    for b in range(parts.size):
        field = high + low[b]
        small = fast_exp(-abs(field))
        parts[b] = shares[b] * (1.0 if field >= 0.0 else small) / (1.0 + small)
        column[b] += parts[b]


@njit(cache=True, nogil=True)
def mean_sums_of_products(high, low, shares, least, rows, columns):
    """Add ``shares[a, b] p_i(a, b)``, summed over b, to ``rows[a, i]`` and, summed over a, to ``columns[i, b]``.

    p is ``odds / (1 + odds)``, odds = high * low. Rows in which no share reaches `least` are passed over.
    """
    parts = np.empty(shares.shape[1])
    for a in range(shares.shape[0]):
        if np.abs(shares[a]).max() < least:
            continue
        for i in range(rows.shape[1]):
            _shares_of_products(high[a, i], low[i], shares[a], parts, columns[i])
            rows[a, i] += _sum(parts)


@njit(cache=True, nogil=True)
def mean_sums_of_fields(high, low, shares, least, rows, columns):
    """Do what `mean_sums_of_products` does with p = ``sigmoid(high + low)``, for fields of any size."""
    parts = np.empty(shares.shape[1])
    for a in range(shares.shape[0]):
        if np.abs(shares[a]).max() < least:
            continue
        for i in range(rows.shape[1]):
            _shares_of_fields(high[a, i], low[i], shares[a], parts, columns[i])
            rows[a, i] += _sum(parts)
