"""Random numbers inside kernels: xoshiro256++ and the thresholds of heat-bath updates.

A stream is four uint64 words, one row of `gibbsian.rng.Key.chains`. Blackman and Vigna, "Scrambled linear
pseudorandom number generators", ACM TOMS 47 (2021).
"""

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gibbsian.backends.numba import njit

_ROTATE_OUT, _ROTATE_BACK = np.uint64(23), np.uint64(41)
_ROTATE_STATE, _ROTATE_STATE_BACK = np.uint64(45), np.uint64(19)
_SHIFT = np.uint64(17)
# splitmix64
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
# a float64 has 52 bits after the point
_TOP_12 = np.uint64(12)
_HIGH_HALF = np.uint64(32)
_TWO_POW_52 = 4503599627370496.0
_MANTISSA = np.int64(0xFFFFFFFFFFFFF)
_EXPONENT_OF_ONE = np.int64(0x3FF0000000000000)
_HALF_LN2 = 0.34657359027997264


def _chebyshev_of_atanh(n_terms: int) -> tuple[float, ...]:
    """Coefficients c of ``atanh(s) / s ~ sum_k c_k s^(2k)`` for ``|s| <= 1/3``.

    Interpolating at Chebyshev nodes keeps the largest error near the smallest possible one.
    """
    nodes = (np.polynomial.chebyshev.chebpts1(n_terms) + 1.0) / 18.0
    s = np.sqrt(nodes)
    scaled = np.polynomial.polynomial.polyfit(9.0 * nodes, np.arctanh(s) / s, n_terms - 1)
    return tuple(float(c) for c in scaled * 9.0 ** np.arange(n_terms))


# ten terms: the error is below 1e-14
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9 = _chebyshev_of_atanh(10)


@intrinsic
def _bits_of_double(typingctx, value):
    """Reinterpret a float64 as an int64."""

    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _double_of_bits(typingctx, bits):
    """Reinterpret an int64 as a float64."""

    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def _fused(typingctx, a, b, c):
    """``a * b + c`` rounded once, the same in scalar and in vector code."""

    def generate(context, builder, signature, args):
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), generate


@njit(cache=True, inline="always")
def advance(s0, s1, s2, s3):
    """One step of xoshiro256++: the 64-bit output, then the four words of the next state."""
    total = s0 + s3
    word = ((total << _ROTATE_OUT) | (total >> _ROTATE_BACK)) + s0
    shifted = s1 << _SHIFT
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << _ROTATE_STATE) | (s3 >> _ROTATE_STATE_BACK)
    return word, s0, s1, s2, s3


@njit(cache=True)
def fill_words(stream, words):
    """Fill `words` with 64-bit outputs and leave the stream where they end."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    for k in range(words.size):
        words[k], s0, s1, s2, s3 = advance(s0, s1, s2, s3)
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3


@njit(cache=True, inline="always")
def uniform(word):
    """A uniform number strictly between 0 and 1 from the top 52 bits of a word."""
    return (np.float64(np.int64(word >> _TOP_12)) + 0.5) / _TWO_POW_52


@njit(cache=True, nogil=True)
def fill_uniforms(streams, numbers):
    """Fill each row with uniform numbers of its own stream, and leave the streams where they end."""
    words = np.empty(numbers.shape[1], np.uint64)
    for row in range(len(streams)):
        fill_words(streams[row], words)
        for k in range(words.size):
            numbers[row, k] = uniform(words[k])


@njit(cache=True, nogil=True)
def fill_normals(streams, numbers):
    """Fill each row with standard normal numbers of its own stream, by the transform of Box and Muller."""
    words = np.empty(2 * ((numbers.shape[1] + 1) // 2), np.uint64)
    for row in range(len(streams)):
        fill_words(streams[row], words)
        for k in range(0, words.size, 2):
            radius, angle = math.sqrt(-2.0 * math.log(uniform(words[k]))), 2.0 * math.pi * uniform(words[k + 1])
            numbers[row, k] = radius * math.cos(angle)
            if k + 1 < numbers.shape[1]:
                numbers[row, k + 1] = radius * math.sin(angle)


@njit(cache=True, inline="always")
def below(word, bound):
    """An integer in ``0 .. bound - 1`` from the top 32 bits of a word; probabilities are even to ``bound / 2^32``."""
    return np.int64(((word >> _HIGH_HALF) * np.uint64(bound)) >> _HIGH_HALF)


@njit(cache=True, inline="always")
def spin_threshold(word):
    """A random t with ``P(t < f) = 1 / (1 + exp(-2 f))``: setting a spin up when its field exceeds t is heat bath.

    That is ``t = log(u / (1 - u)) / 2``. It does not depend on the field, so thresholds are drawn ahead in
    straight-line vector code, and no exponential stands between one update and the next. Absolute error about 1e-14.
    """
    u = uniform(word)
    bits_u = _bits_of_double(u)  # type: ignore[call-arg, var-annotated]
    bits_v = _bits_of_double(1.0 - u)
    # u / v = 2^k p / q with p, q in [1, 2), and log(p / q) = 2 atanh((p - q) / (p + q))
    p = _double_of_bits((bits_u & _MANTISSA) | _EXPONENT_OF_ONE)
    q = _double_of_bits((bits_v & _MANTISSA) | _EXPONENT_OF_ONE)
    k = np.float64((bits_u >> 52) - (bits_v >> 52))
    s = (p - q) / (p + q)
    z = s * s
    r = _fused(_C9, z, _C8)
    r = _fused(r, z, _C7)
    r = _fused(r, z, _C6)
    r = _fused(r, z, _C5)
    r = _fused(r, z, _C4)
    r = _fused(r, z, _C3)
    r = _fused(r, z, _C2)
    r = _fused(r, z, _C1)
    r = _fused(r, z, _C0)
    return _fused(k, _HALF_LN2, r * s)


# error_model="numpy": a test for division by zero would keep the loop from being vectorised
@njit(cache=True, error_model="numpy")
def fill_thresholds(words, thresholds):
    """Turn words into spin thresholds."""
    for k in range(thresholds.size):
        thresholds[k] = spin_threshold(words[k])


@njit(cache=True, inline="always")
def mix(word):
    """Finaliser of splitmix64: scatter neighbouring integers over all 64-bit words."""
    word = (word ^ (word >> _S30)) * _MIX_1
    word = (word ^ (word >> _S27)) * _MIX_2
    return word ^ (word >> _S31)


@njit(cache=True, inline="always")
def substream_word(word, number):
    """One word of the substream called `number`, from the same word of its parent stream."""
    return mix(word + _GOLDEN * np.uint64(number + 1))


@njit(cache=True, nogil=True)
def shuffle_in_parts(part_of, n_parts, stream, rows, shuffled):
    """Write rows in a random order: dealt out to parts at random, each shuffled within the cache.

    Every order is as likely as another (Rao, Sandelius).
    """
    ends = np.zeros(n_parts + 1, np.int64)
    for part in part_of:
        ends[part + 1] += 1
    for p in range(n_parts):
        ends[p + 1] += ends[p]
    next_place = ends.copy()
    for row in range(part_of.size):
        shuffled[next_place[part_of[row]]] = rows[row]
        next_place[part_of[row]] += 1
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    for p in range(n_parts):
        own = shuffled[ends[p] : ends[p + 1]]
        for k in range(own.size - 1, 0, -1):
            word, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
            other = below(word, k + 1)
            own[k], own[other] = own[other], own[k]
