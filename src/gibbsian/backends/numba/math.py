"""Elementary functions that LLVM can vectorise.

Numba calls the C library for ``math.exp``, one value at a time. The function here is straight-line arithmetic, so a
loop around it becomes vector code and fuses with whatever else the loop does. Compile such loops with
``fastmath=VECTOR_MATH``: fused multiply-adds halve the time, while ``fastmath=True`` would also let LLVM reassociate,
which destroys the rounding step.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gibbsian.backends.numba import njit

VECTOR_MATH = {"contract", "nsz", "nnan"}
# A product of this many factors in (1, 2] stays below the largest double, so one logarithm serves them all.
MAX_FACTORS = 1000

_LOG2_E = 1.4426950408889634
# log(2) in two parts: the first has trailing zeros, so k * _LN2_HIGH is exact (Cody and Waite)
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# adding and subtracting 1.5 * 2^52 rounds to the nearest integer without a branch
_ROUNDER = 6755399441055744.0
_LOWEST = -708.0  # exp of less is subnormal: return exp(_LOWEST), about 3e-308
# the same for powers of two in single precision: interpolated at Chebyshev nodes of [-1/2, 1/2], to 2e-7
_SINGLE_ROUNDER, _LOWEST_POWER = np.float32(12582912.0), np.float32(-126.0)
_EXPONENT_BIAS, _MANTISSA_BITS = np.int32(127), np.int32(23)
_NODES = np.polynomial.chebyshev.chebpts1(6) / 2.0
_P0, _P1, _P2, _P3, _P4, _P5 = map(np.float32, np.polynomial.polynomial.polyfit(_NODES, np.exp2(_NODES), 5))


@intrinsic
def _float_from_bits(typingctx, bits):
    """Reinterpret an int32 as a float32."""

    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), generate


@njit(cache=True, nogil=True)
def copy_to(target, source):
    """Write an array over the start of another; ``target[:] = source`` compiles for seconds, its errors have words."""
    for k in range(source.size):
        target[k] = source[k]


def emit_exp(builder, x, flags=()):
    """Emit exp(x) of a float64 or of a vector of them, for x <= 709; arguments below -708 count as -708."""
    lanes = x.type.count if isinstance(x.type, ir.VectorType) else 0
    words = ir.VectorType(ir.IntType(64), lanes) if lanes else ir.IntType(64)

    def constant(kind, value):
        return ir.Constant(kind, [value] * lanes if lanes else value)

    lowest, rounder = constant(x.type, _LOWEST), constant(x.type, _ROUNDER)
    r = builder.select(builder.fcmp_ordered(">", lowest, x), lowest, x)
    shifted = builder.fadd(builder.fmul(r, constant(x.type, _LOG2_E), flags=flags), rounder, flags=flags)
    k = builder.fsub(shifted, rounder, flags=flags)
    for part in (_LN2_HIGH, _LN2_LOW):
        r = builder.fsub(r, builder.fmul(k, constant(x.type, part), flags=flags), flags=flags)
    # Taylor on |r| <= log(2)/2: the first term left out is below 2e-17
    p = constant(x.type, 1.0 / math.factorial(13))
    for power in range(12, -1, -1):
        p = builder.fadd(builder.fmul(p, r, flags=flags), constant(x.type, 1.0 / math.factorial(power)), flags=flags)
    exponent = builder.shl(builder.add(builder.fptosi(k, words), constant(words, 1023)), constant(words, 52))
    return builder.fmul(p, builder.bitcast(exponent, x.type), flags=flags)


def _fast_exp(typingctx, x):
    """exp(x) for x <= 709 to about one unit in the last place; arguments below -708 count as -708.

    Kernels hold many, and Numba would take as long to read them as for all else: they are instructions of LLVM.
    """

    def generate(context, builder, signature, args):
        return emit_exp(builder, args[0])

    return types.float64(types.float64), generate


fast_exp: Any = intrinsic(_fast_exp)  # kernels call it with x


@njit(cache=True, inline="always")
def fast_exp2(x):
    """Power of two of a float32 up to 127, to a few units in the last place; arguments below -126 count as -126."""
    x = max(x, _LOWEST_POWER)
    k = (x + _SINGLE_ROUNDER) - _SINGLE_ROUNDER
    r = x - k
    p = _P5 * r + _P4
    p = p * r + _P3
    p = p * r + _P2
    p = p * r + _P1
    p = p * r + _P0
    return p * _float_from_bits((np.int32(k) + _EXPONENT_BIAS) << _MANTISSA_BITS)  # type: ignore[call-arg]


@njit(cache=True, nogil=True, fastmath=VECTOR_MATH)
def relative_exp(x, reference):
    """Turn log-weights into weights relative to `reference`, in place."""
    for k in range(x.size):
        x[k] = fast_exp(x[k] - reference)


@njit(cache=True, nogil=True, fastmath=True)
def product(factors):
    """The product of numbers, in their precision."""
    total = factors.dtype.type(1.0)
    for k in range(factors.size):
        total *= factors[k]
    return total
