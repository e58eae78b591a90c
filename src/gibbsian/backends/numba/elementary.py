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


def _fast_exp(typingctx, x):
    """exp(x) for x <= 709 to about one unit in the last place; arguments below -708 count as -708.

    Kernels hold many, and Numba would take as long to read them as for all else: they are instructions of LLVM.
    """

    def generate(context, builder, signature, args):
        double, whole = ir.DoubleType(), ir.IntType(64)
        lowest, rounder = double(_LOWEST), double(_ROUNDER)
        r = builder.select(builder.fcmp_ordered(">", lowest, args[0]), lowest, args[0])
        k = builder.fsub(builder.fadd(builder.fmul(r, double(_LOG2_E)), rounder), rounder)
        for part in (_LN2_HIGH, _LN2_LOW):
            r = builder.fsub(r, builder.fmul(k, double(part)))
        p = double(1.0 / math.factorial(13))  # Taylor on |r| <= log(2)/2: the first term left out is below 2e-17
        for power in range(12, -1, -1):
            p = builder.fadd(builder.fmul(p, r), double(1.0 / math.factorial(power)))
        exponent = builder.shl(builder.add(builder.fptosi(k, whole), whole(1023)), whole(52))
        return builder.fmul(p, builder.bitcast(exponent, double))

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
