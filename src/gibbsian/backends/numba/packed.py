"""Rows of two values as bits, and products with them by tables.

Eight columns of a row have one of 256 states, so what they add to the fields of all columns is one of 256 vectors, and
the fields of a row of n columns are n / 8 vectors added up (the method of the four Russians, for numbers). The
transposed product goes the same way back: the slopes of a row are added to the vectors of its bytes, and these to their
columns at the end. Fields stand in chunks of as many columns as there are lanes, each with tables of its own, so that
what a pass over rows needs stays in the cache.
"""

import math
from functools import lru_cache
from threading import get_ident

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import copy_to
from gibbsian.backends.numba.vectors import VECTOR_BYTES, Lanes, address

# Cells of a word, and lanes of a chunk: two chunks have the bits of one word as signs.
CELLS, LANES = 64, 32
# A cost as good as infinite, of lanes without a column: they add nothing.
_NO_FLIP = 60.0
# A one, and the bits of the states of a byte.
_ONE_AND_BITS = np.array([[1, *(state >> np.arange(8) & 1)] for state in range(256)], np.float32)
_ALL_BITS, _I64 = np.uint64(2**64 - 1), ir.IntType(64)


def kept_lanes(use: str, *shape: int) -> np.ndarray:
    """Return float32 memory that a thread has once for each use: fresh pages take as long as what is done there."""
    return _memory(get_ident(), use, shape)


@lru_cache(maxsize=16)
def _memory(thread: int, use: str, shape: tuple[int, ...]) -> np.ndarray:
    """Memory that begins where vectors do: those that straddle two lines of the cache take twice as long."""
    size, spare = math.prod(shape), VECTOR_BYTES // 4
    memory = np.empty(size + spare, np.float32)
    return memory[-memory.ctypes.data // 4 % spare :][:size].reshape(shape)


# -- rows and bits ----------------------------------------------------------------------------------------------------
@njit(cache=True, nogil=True)
def which_of_two(cells, low, high, upper):
    """Say of each cell whether it is the upper of two values; return whether all are one of them."""
    known = True
    for k in range(cells.size):
        upper[k] = cells[k] == high
        known &= (cells[k] == high) | (cells[k] == low)
    return known


@intrinsic
def _positive(typingctx, cells, place):
    """A word that says which of 64 cells of one byte are positive."""

    def generate(context, builder, signature, args):
        start = builder.gep(address(context, builder, signature.args[0], args[0]), [args[1]])
        row = builder.load(builder.bitcast(start, ir.VectorType(ir.IntType(8), CELLS).as_pointer()), align=1)
        return builder.bitcast(builder.icmp_signed(">", row, ir.Constant(row.type, [0] * CELLS)), _I64)

    return types.uint64(cells, types.int64), generate


@njit(cache=True, nogil=True)
def _pack(cells, n, words):
    last = np.zeros(CELLS, np.int8)
    for m in range(words.shape[0]):
        for k in range(words.shape[1]):
            start, width = m * n + k * CELLS, min(n - k * CELLS, CELLS)
            if start + CELLS <= cells.size:
                word = _positive(cells, start)  # type: ignore[call-arg, var-annotated]
            else:  # a vector would end beyond the array
                copy_to(last, cells[start : start + width])
                word = _positive(last, 0)  # type: ignore[call-arg]
            words[m, k] = word & (_ALL_BITS >> np.uint64(CELLS - width))


def pack(x: np.ndarray, words: np.ndarray | None = None) -> np.ndarray:
    """Return rows of int8 or bool as words, with a bit for every cell that is positive."""
    into = np.empty((len(x), -(-x.shape[1] // CELLS)), np.uint64) if words is None else words
    _pack(np.ascontiguousarray(x).view(np.int8).ravel(), x.shape[1], into)
    return into


@intrinsic
def _write(typingctx, cells, place, upper, holes, values):
    """Write 64 cells of one byte: the first of three values, the second for the bits of a word, the third for holes."""

    def generate(context, builder, signature, args):
        kind, bits = ir.VectorType(ir.IntType(8), CELLS), ir.VectorType(ir.IntType(1), CELLS)
        numbers = (builder.extract_value(args[4], k) for k in range(3))
        empty, zeros = ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), CELLS), [0] * CELLS)
        alone = (builder.insert_element(empty, number, ir.IntType(32)(0)) for number in numbers)
        low, high, mark = (builder.shuffle_vector(one, empty, zeros) for one in alone)
        there = builder.select(builder.bitcast(args[2], bits), high, low)
        found = builder.select(builder.bitcast(args[3], bits), mark, there)
        start = builder.gep(address(context, builder, signature.args[0], args[0]), [args[1]])
        builder.store(found, builder.bitcast(start, kind.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(cells, types.int64, types.uint64, types.uint64, values), generate


@njit(cache=True, nogil=True)
def _unpack(words, n, values, cells):
    for m in range(words.shape[1]):
        for k in range(words.shape[2]):  # what a vector writes beyond its row, the next one overwrites
            holes = words[1, m, k] if len(words) > 1 else np.uint64(0)
            _write(cells, m * n + k * CELLS, words[0, m, k], holes, values)  # type: ignore[call-arg]


def unpack(words: np.ndarray, n: int, *values: np.int8) -> np.ndarray:
    """Return rows that were packed, and perhaps their holes: a lower value, an upper one, and one for holes."""
    cells = np.empty(words.shape[1] * n + CELLS, np.int8)
    _unpack(words, n, values, cells)
    return cells[:-CELLS].reshape(-1, n)


# -- products ---------------------------------------------------------------------------------------------------------
def tables_of(matrix: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Return tables of ``offset + bits @ matrix``, by chunk of columns, byte and its state."""
    n, i = len(matrix), np.arange(len(matrix))
    terms = np.zeros((-(-n // 8), 9, -(-n // LANES) * LANES), np.float32)
    terms[0, 0, :n], terms[0, 0, n:], terms[i // 8, 1 + i % 8, :n] = offset, -_NO_FLIP, matrix
    by_chunk = terms.reshape(*terms.shape[:2], -1, LANES).transpose(2, 0, 1, 3)
    return np.matmul(_ONE_AND_BITS, by_chunk, out=kept_lanes("tables", *by_chunk.shape[:2], 256, LANES))


def products(sums: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the slopes over rows, and ``bits.T @ slopes``, of the sums by states of bytes."""
    i, terms = np.arange(n), (_ONE_AND_BITS.T @ sums).transpose(1, 2, 0, 3).reshape(sums.shape[1], 9, -1)
    return terms[0, 0, :n], terms[i // 8, 1 + i % 8, :n]


@intrinsic(prefer_literal=True)
def _along(typingctx, adding, tables, states, n_bytes, bits, own):
    """Write the sum of the vectors of a row's bytes, with the signs of its cells; or add a vector with them to all."""

    def generate(context, builder, signature, args):
        lanes = Lanes(builder, types.float32, 2)
        table, state_of, place = (address(context, builder, signature.args[k], args[k]) for k in (1, 2, 5))
        place, zeros = lanes.place(place, _I64(0)), ir.Constant(lanes.type, [0.0] * LANES)
        upper = builder.bitcast(builder.trunc(args[4], ir.IntType(LANES)), ir.VectorType(ir.IntType(1), LANES))
        start = lanes.load(place) if adding.literal_value else zeros
        total = cgutils.alloca_once_value(builder, builder.select(upper, start, builder.fneg(start)))
        with cgutils.for_range(builder, args[3], intp=_I64) as loop:
            state = builder.zext(builder.load(builder.gep(state_of, [loop.index])), _I64)
            vector = lanes.place(table, builder.add(builder.shl(loop.index, _I64(8)), state))
            if adding.literal_value:
                lanes.store(builder.fadd(lanes.load(vector), builder.load(total)), vector)
            else:
                builder.store(builder.fadd(builder.load(total), lanes.load(vector)), total)
        if not adding.literal_value:
            found = builder.load(total)
            lanes.store(builder.select(upper, found, builder.fneg(found)), place)
        return context.get_dummy_value()

    return types.void(adding, tables, states, types.int64, types.uint64, own), generate


@njit(cache=True, nogil=True)
def fill_costs(words, tables, costs):
    """Write the fields of rows, with the signs of their cells."""
    states = words.view(np.uint8)
    for c in range(tables.shape[0]):
        for m in range(words.shape[0]):
            bits = words[m, c // 2] >> np.uint64(c % 2 * LANES)
            _along(False, tables[c], states[m], tables.shape[1], bits, costs[m, c])  # type: ignore[call-arg]


@njit(cache=True, nogil=True)
def add_slopes(words, slopes, sums):
    """Add the slopes of rows, with the signs of their cells, to the sums by states of bytes."""
    states = words.view(np.uint8)
    for c in range(sums.shape[0]):
        for m in range(words.shape[0]):
            bits = words[m, c // 2] >> np.uint64(c % 2 * LANES)
            _along(True, sums[c], states[m], sums.shape[1], bits, slopes[m, c])  # type: ignore[call-arg]
