"""The Walsh-Hadamard transform in place: ``x[y] <- sum_s (-1)^popcount(y & s) x[s]`` (TA22 section 2.2.3).

Three bits are taken at a time, so that a table is read and written once for eight-point butterflies instead
of three times; the lowest bits, inside a vector, come with the first triple. All low bits are done block by
block while a block is in the first-level cache; each further triple is one pass over the table. Nothing is
normalised: twice the transform is the table times its size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.vectors import VECTOR_BYTES, Lanes
from gibbsian.backends.threads import map_slices

ALIGNMENT = 64
# A block of this many bytes leaves room for nothing else in most first-level caches, and needs none.
_BLOCK_BYTES = 2**15
# Columns of butterflies that stay on one thread.
_GRAIN = 2**12
# Entries of a table that take as long as one operation by the measure of `map_slices`.
_ENTRIES_AN_OPERATION = 32


def aligned_zeros(size: int, dtype: np.dtype | type = np.float64) -> np.ndarray:
    """Return a vector of zeros that starts at a cache line: vector loads then never straddle two lines."""
    itemsize = np.dtype(dtype).itemsize
    raw = np.zeros(size * itemsize + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size * itemsize].view(dtype)


def walsh_hadamard(table: np.ndarray) -> None:
    """Transform a vector of 2^n entries in place, on as many threads as Numba uses."""
    size = table.size
    block = min(size, _BLOCK_BYTES // table.itemsize)
    in_pieces(size, size, block, lambda first, last: _transform_blocks(table[first:last], block))
    stride = block
    while stride < size:
        radix = min(8, size // stride)
        in_pieces(size, size // radix, _GRAIN, _pass_of(table, stride, radix))
        stride *= radix


def _pass_of(table, stride, radix):
    """Return the function of a range of columns that does one pass."""
    butterflies = {2: butterflies_2, 4: butterflies_4, 8: butterflies_8}[radix]
    return lambda first, last: butterflies(table, stride, first, last)


def in_pieces(n_entries: int, n_parts: int, grain: int, work: Callable[[int, int], Any]) -> list[Any]:
    """Do all parts of the work on a table by calls of ``work(first, last)``; return their results in order.

    Parameters
    ----------
    n_entries : int
        Of the table: few are left to one thread.
    n_parts : int
        Columns, blocks or pairs that the table is made of.
    grain : int
        Parts that stay together.
    work : callable
        Takes a range of parts.
    """
    return map_slices(lambda part: work(part.start, part.stop), n_parts, n_entries / _ENTRIES_AN_OPERATION, grain)


@njit(cache=True, nogil=True)
def _transform_blocks(table, block):
    """Transform each block of the table by itself."""
    square = 8 * VECTOR_BYTES // table.itemsize
    for start in range(0, table.size, block):
        part = table[start : start + block]
        stride = 1
        if block >= square:
            _squares(part)  # type: ignore[call-arg]
            stride = square
        while stride * 8 <= block:
            butterflies_8(part, stride, 0, block // 8)
            stride *= 8
        if stride * 4 <= block:
            butterflies_4(part, stride, 0, block // 4)
            stride *= 4
        if stride * 2 <= block:
            butterflies_2(part, stride, 0, block // 2)


@njit(cache=True, nogil=True, inline="always")
def _eight(a, b, c, d, e, f, g, h):
    """The transform of eight numbers."""
    a, b, c, d, e, f, g, h = a + e, b + f, c + g, d + h, a - e, b - f, c - g, d - h
    a, b, c, d, e, f, g, h = a + c, b + d, a - c, b - d, e + g, f + h, e - g, f - h
    return a + b, a - b, c + d, c - d, e + f, e - f, g + h, g - h


@intrinsic
def _squares(typingctx, table):
    """Transform each eight vectors: across them in eight-point butterflies, then the lanes within each."""

    def generate(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        lanes = Lanes(builder, signature.args[0].dtype)
        (size,) = cgutils.unpack_tuple(builder, array.shape, 1)
        int64 = size.type
        with cgutils.for_range(builder, builder.udiv(size, int64(8 * lanes.count)), intp=int64) as loop:
            first = builder.mul(loop.index, int64(8))
            places = [lanes.place(array.data, builder.add(first, int64(k))) for k in range(8)]
            vectors = [lanes.load(place) for place in places]
            for bit in (1, 2, 4):
                vectors = [
                    builder.fsub(vectors[k ^ bit], vectors[k])
                    if k & bit
                    else builder.fadd(vectors[k], vectors[k ^ bit])
                    for k in range(8)
                ]
            for vector, place in zip(vectors, places, strict=True):
                bit = 1
                while bit < lanes.count:
                    vector = lanes.butterfly(vector, bit)
                    bit *= 2
                lanes.store(vector, place)
        return context.get_dummy_value()

    return types.void(table), generate


@njit(cache=True, nogil=True)
def butterflies_8(x, stride, first, last):
    """Butterflies over entries `stride` apart, eight at a time, for columns `first` to `last` of all."""
    column = first
    while column < last:
        within = column % stride
        run = min(stride - within, last - column)
        start = (column - within) * 8 + within
        a, b = x[start : start + run], x[start + stride : start + stride + run]
        c, d = x[start + 2 * stride :][:run], x[start + 3 * stride :][:run]
        e, f = x[start + 4 * stride :][:run], x[start + 5 * stride :][:run]
        g, h = x[start + 6 * stride :][:run], x[start + 7 * stride :][:run]
        for j in range(run):
            a[j], b[j], c[j], d[j], e[j], f[j], g[j], h[j] = _eight(a[j], b[j], c[j], d[j], e[j], f[j], g[j], h[j])
        column += run


@njit(cache=True, nogil=True)
def butterflies_4(x, stride, first, last):
    """As `butterflies_8`, four at a time."""
    column = first
    while column < last:
        within = column % stride
        run = min(stride - within, last - column)
        start = (column - within) * 4 + within
        a, b = x[start : start + run], x[start + stride : start + stride + run]
        c, d = x[start + 2 * stride :][:run], x[start + 3 * stride :][:run]
        for j in range(run):
            p, q, r, s = a[j] + c[j], b[j] + d[j], a[j] - c[j], b[j] - d[j]
            a[j], b[j], c[j], d[j] = p + q, p - q, r + s, r - s
        column += run


@njit(cache=True, nogil=True)
def butterflies_2(x, stride, first, last):
    """As `butterflies_8`, two at a time."""
    column = first
    while column < last:
        within = column % stride
        run = min(stride - within, last - column)
        start = (column - within) * 2 + within
        a, b = x[start : start + run], x[start + stride : start + stride + run]
        for j in range(run):
            a[j], b[j] = a[j] + b[j], a[j] - b[j]
        column += run
