"""Spins in the lanes of vectors: 32 chains, or 64 sites of which no two are neighbours, are updated at a time.

A spin is a byte, -1 for up and 0 for down: a mask that lets a neighbour's weight through. Fields are sums of whole
numbers (int32), and a spin is up when ``u (1 + exp(-2 field)) < 1`` for the uniform number u of its word. That is
worked out in float32. Where the difference is within what rounding may have done to it, which happens once in 10^5
updates, the lane is in doubt: it is left as it was, and the caller decides it by the exact field and
`random.spin_threshold`. So chains take the same path as in the kernels that know nothing of lanes.

What is emitted is plain LLVM, as in `lanes`, with vectors that stay in registers from one neighbour to the next.
"""

import math
from functools import partial

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gibbsian.backends.numba.lanes import address

# Sites of one chain, and chains, that are updated together: the more chains, the fewer threads can share them.
LANES, GROUP = 64, 32
# What float32 may do to the difference, fields apart: the exponential, products and sums of numbers up to 1.
MARGIN = 4e-6
# Turns a field into the power of two that is compared.
LOG2_SCALE = -2.0 / math.log(2.0)

_I8, _I32, _I64, _F32 = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()
_LARGEST_POWER = 60.0  # beyond, no uniform number of 32 bits makes a difference
_ROUNDER = 12582912.0  # adding and subtracting 1.5 * 2^23 rounds to the nearest integer
_NODES = np.polynomial.chebyshev.chebpts1(6) / 2.0
_POWERS_OF_TWO = np.polynomial.polynomial.polyfit(_NODES, np.exp2(_NODES), 5).astype(np.float32).tolist()


def _vector(element, lanes=LANES):
    return ir.VectorType(element, lanes)


def _constant(element, value, lanes=LANES):
    return ir.Constant(_vector(element, lanes), [value] * lanes)


def _spread(builder, scalar, element, lanes=LANES):
    """Return a vector with the same number in every lane."""
    one = builder.insert_element(ir.Constant(_vector(element, lanes), ir.Undefined), scalar, _I32(0))
    return builder.shuffle_vector(one, one, _constant(_I32, 0, lanes))


def _fused(builder, a, b, c):
    kind = a.type
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fma.v{kind.count}f32"
    )
    return builder.call(function, [a, b, c])


def _rotated(builder, vector, bits, lanes):
    left = builder.shl(vector, _constant(_I64, bits, lanes))
    return builder.or_(left, builder.lshr(vector, _constant(_I64, 64 - bits, lanes)))


@intrinsic(prefer_literal=True)
def fill_lanes(typingctx, streams, words, n, lanes):
    """Fill `n` rows of `words` with outputs of xoshiro256++, a stream in each of `lanes` lanes (`random.advance`).

    `streams` holds the first words of the states of all lanes, then the second, third and fourth.
    """
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    width = lanes.literal_value

    def generate(context, builder, signature, args):
        rows = [
            builder.bitcast(address(context, builder, kind, array), _vector(_I64, width).as_pointer())
            for kind, array in zip(signature.args[:2], args[:2], strict=True)
        ]
        places = [builder.gep(rows[0], [_I64(k)]) for k in range(4)]
        state = [cgutils.alloca_once_value(builder, builder.load(place, align=8)) for place in places]
        with cgutils.for_range(builder, args[2], intp=_I64) as loop:
            s0, s1, s2, s3 = (builder.load(word) for word in state)
            word = builder.add(_rotated(builder, builder.add(s0, s3), 23, width), s0)
            builder.store(word, builder.gep(rows[1], [loop.index]), align=8)
            shifted = builder.shl(s1, _constant(_I64, 17, width))
            s2, s3 = builder.xor(s2, s0), builder.xor(s3, s1)
            s1, s0 = builder.xor(s1, s2), builder.xor(s0, s3)
            s2, s3 = builder.xor(s2, shifted), _rotated(builder, s3, 45, width)
            for new, word in zip((s0, s1, s2, s3), state, strict=True):
                builder.store(new, word)
        for word, place in zip(state, places, strict=True):
            builder.store(builder.load(word), place, align=8)
        return context.get_dummy_value()

    return types.void(streams, words, n, lanes), generate


def _decide(builder, field, words, scale, margin):
    """Return which lanes go up, and which are in doubt."""
    vector, constant, spread = (partial(make, lanes=field.type.count) for make in (_vector, _constant, _spread))
    power = builder.fmul(builder.sitofp(field, vector(_F32)), spread(builder, builder.fptrunc(scale, _F32), _F32))
    for sign, bound in (("<", _LARGEST_POWER), (">", -_LARGEST_POWER)):
        limit = constant(_F32, bound)
        power = builder.select(builder.fcmp_ordered(sign, power, limit), power, limit)
    rounder = constant(_F32, _ROUNDER)
    shifted = builder.fadd(power, rounder)
    rest = builder.fsub(power, builder.fsub(shifted, rounder))
    factor = constant(_F32, _POWERS_OF_TWO[-1])
    for coefficient in _POWERS_OF_TWO[-2::-1]:
        factor = _fused(builder, factor, rest, constant(_F32, coefficient))
    exponent = builder.shl(builder.bitcast(shifted, vector(_I32)), constant(_I32, 23))
    odds = builder.bitcast(builder.add(builder.bitcast(factor, vector(_I32)), exponent), vector(_F32))
    top = builder.trunc(builder.lshr(words, constant(_I64, 32)), vector(_I32))
    u = builder.fmul(builder.uitofp(top, vector(_F32)), constant(_F32, 2.0**-32))
    difference = _fused(builder, u, odds, builder.fsub(u, constant(_F32, 1.0)))
    # the bits of the word that are not looked at count as much as the odds are large
    bound = _fused(builder, odds, constant(_F32, 2.0**-31), spread(builder, builder.fptrunc(margin, _F32), _F32))
    size = builder.bitcast(
        builder.and_(builder.bitcast(difference, vector(_I32)), constant(_I32, 0x7FFFFFFF)), vector(_F32)
    )
    return builder.fcmp_ordered("<", difference, constant(_F32, 0.0)), builder.fcmp_ordered("<=", size, bound)


def _update(context, builder, place, words, field, hold, scale, margin):
    """Draw the spins at an address; return the lanes in doubt and the number of flips."""
    lanes, bits = field.type.count, ir.IntType(field.type.count)
    row = builder.load(builder.bitcast(words, _vector(_I64, lanes).as_pointer()), align=8)
    up, doubt = _decide(builder, field, row, scale, margin)
    doubt = builder.and_(doubt, builder.not_(hold))
    old = builder.load(place, align=1)
    new = builder.select(builder.or_(hold, doubt), old, builder.sext(up, _vector(_I8, lanes)))
    builder.store(new, place, align=1)
    flips = builder.ctpop(builder.bitcast(builder.icmp_signed("!=", old, new), bits))
    whole = [builder.zext(number, _I64) for number in (builder.bitcast(doubt, bits), flips)]
    return context.make_tuple(builder, _RESULT, whole)


_RESULT = types.Tuple((types.uint64, types.int64))


def _held(builder, address, lanes=LANES):
    flags = builder.load(builder.bitcast(address, _vector(_I8, lanes).as_pointer()), align=1)
    return builder.icmp_signed("!=", flags, _constant(_I8, 0, lanes))


@intrinsic
def update_chains(typingctx, x, i, words, hold, bias, first, last, heads, weights, scale, margin):
    """Update site `i` of the chains in the columns of `x`, whose neighbours are ``heads[first:last]``."""

    def generate(context, builder, signature, args):
        kinds = signature.args
        rows = builder.bitcast(address(context, builder, kinds[0], args[0]), _vector(_I8, GROUP).as_pointer())
        words, hold, heads, weights = (address(context, builder, kinds[k], args[k]) for k in (2, 3, 7, 8))
        field = cgutils.alloca_once_value(builder, _spread(builder, args[4], _I32, GROUP))
        with cgutils.for_range_slice(builder, args[5], args[6], _I64(1), _I64) as (position, _):
            head = builder.load(builder.gep(heads, [position]))
            weight = _spread(builder, builder.load(builder.gep(weights, [position])), _I32, GROUP)
            mask = builder.sext(builder.load(builder.gep(rows, [head]), align=1), _vector(_I32, GROUP))
            builder.store(builder.add(builder.load(field), builder.and_(weight, mask)), field)
        place, held = builder.gep(rows, [args[1]]), _held(builder, hold, GROUP)
        return _update(context, builder, place, words, builder.load(field), held, *args[9:])

    return _RESULT(x, i, words, hold, bias, first, last, heads, weights, scale, margin), generate


@intrinsic
def update_sites(typingctx, x, n, words, hold, biases, offsets, starts, weights, scale, margin):
    """Update the first `n` (at most 64) of the sites from ``x[place]`` on in one chain, none of them neighbours.

    `offsets` say how far the neighbours of a site are from it in `x`, and ``starts`` where in `weights` those of the
    first site stand for each offset; the next site has the next weight.
    """

    def generate(context, builder, signature, args):
        data = [address(context, builder, signature.args[k], args[k]) for k in (0, 2, 3, 4, 5, 6, 7)]
        own, words, hold, biases, offsets, starts, weights = data
        numbers = _vector(_I32).as_pointer()
        n_offsets = cgutils.unpack_tuple(
            builder, context.make_array(signature.args[5])(context, builder, args[5]).shape, 1
        )[0]
        field = cgutils.alloca_once_value(builder, builder.load(builder.bitcast(biases, numbers), align=4))
        with cgutils.for_range(builder, n_offsets, intp=_I64) as loop:
            offset, start = (builder.load(builder.gep(array, [loop.index])) for array in (offsets, starts))
            weight = builder.load(builder.bitcast(builder.gep(weights, [start]), numbers), align=4)
            spins = builder.bitcast(builder.gep(own, [offset]), _vector(_I8).as_pointer())
            mask = builder.sext(builder.load(spins, align=1), _vector(_I32))
            builder.store(builder.add(builder.load(field), builder.and_(weight, mask)), field)
        lane = ir.Constant(_vector(_I8), list(range(LANES)))
        beyond = builder.icmp_signed(">=", lane, _spread(builder, builder.trunc(args[1], _I8), _I8))
        held, place = builder.or_(_held(builder, hold), beyond), builder.bitcast(own, _vector(_I8).as_pointer())
        return _update(context, builder, place, words, builder.load(field), held, *args[8:])

    return _RESULT(x, n, words, hold, biases, offsets, starts, weights, scale, margin), generate
