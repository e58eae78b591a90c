"""Vectors of LLVM, for the few loops that the compiler does not turn into vector code by itself.

What is emitted is plain LLVM (vector loads, constant shuffles, multiply-adds that may fuse), so it compiles for any
processor: one with narrower vectors takes two or four for one. Each path stands here for a measured gain over the same
loop in Numba, on one thread:

=====================================  =====================================================================
`update_chains`, 32 chains of spins    5 to 28 times loops over 32 lanes, 11 to 22 times one chain after the other
`update_sites`, 64 sites of a lattice  10 times (5.0 instead of 47.6 ns a spin)
`fill_lanes`, random words             part of both
`sum_table_rows`, `exponentials`       5 to 10 times for the sweeps of Potts models (`table_gibbs`)
`Lanes`, full-span sweeps (`span`)     7 to 19 times blocks of 16
`Lanes`, Walsh transforms (`walsh`)    2.8 to 7.3 times butterflies alone
=====================================  =====================================================================

Spins stand in the lanes of vectors as bytes, -1 for up and 0 for down: a mask that lets a neighbour's weight through.
Fields are sums of whole numbers (int32), and a spin is up when ``u (1 + exp(-2 field)) < 1`` for the uniform number u
of its word. That is worked out in float32. Where the difference is within what rounding may have done to it, which
happens once in 10^5 updates, the lane is in doubt: it is left as it was, and the caller decides it by the exact field
and `random.spin_threshold`. So chains take the same path as in the kernels that know nothing of lanes.
"""

import math
from functools import partial

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gibbsian.backends.numba.math import emit_exp

VECTOR_BYTES = 64
MAY_FUSE = ("contract",)
# Sites of one chain, and chains, that are updated together: the more chains, the fewer threads can share them.
LANES, GROUP = 64, 32
# Numbers (float64) in a vector: buffers are padded to whole ones.
WIDTH = VECTOR_BYTES // 8
# What float32 may do to the difference, fields apart: the exponential, products and sums of numbers up to 1.
MARGIN = 4e-6
# Turns a field into the power of two that is compared.
LOG2_SCALE = -2.0 / math.log(2.0)

_I8, _I32, _I64, _F32 = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()
_LARGEST_POWER = 60.0  # beyond, no uniform number of 32 bits makes a difference
_ROUNDER = 12582912.0  # adding and subtracting 1.5 * 2^23 rounds to the nearest integer
_NODES = np.polynomial.chebyshev.chebpts1(6) / 2.0
_POWERS_OF_TWO = np.polynomial.polynomial.polyfit(_NODES, np.exp2(_NODES), 5).astype(np.float32).tolist()


def address(context, builder, kind, array):
    """Return the address of an array, whose elements must stand side by side."""
    if kind.layout != "C":
        raise TypeError(f"an array of layout {kind.layout} has no lanes")
    return context.make_array(kind)(context, builder, array).data


class Lanes:
    """Emits code for one element type, float64 or float32, one vector or several at a time."""

    def __init__(self, builder, dtype, vectors=1):
        self.builder = builder
        self.element = ir.DoubleType() if dtype == types.float64 else ir.FloatType()
        self.bytes = 8 if dtype == types.float64 else 4
        self.count = vectors * VECTOR_BYTES // self.bytes
        self.type = ir.VectorType(self.element, self.count)

    def spread(self, scalar):
        """Return a vector with the same number in every lane."""
        number = self.builder.fptrunc(scalar, self.element) if self.bytes == 4 else scalar
        one = self.builder.insert_element(ir.Constant(self.type, ir.Undefined), number, ir.IntType(32)(0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.count), [0] * self.count)
        return self.builder.shuffle_vector(one, one, mask)

    def zeros(self):
        """Return a vector of zeros."""
        return ir.Constant(self.type, [self.element(0.0)] * self.count)

    def permute(self, vector, bits):
        """Return the vector whose lane k is lane ``k ^ bits``."""
        if bits == 0:
            return vector
        order = [k ^ bits for k in range(self.count)]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.count), order)
        return self.builder.shuffle_vector(vector, vector, mask)

    def place(self, base, index):
        """Return the address of a vector of a table."""
        table = self.builder.bitcast(base, self.type.as_pointer())
        return self.builder.gep(table, [index])

    def load(self, pointer):
        """Read a vector that stands at a multiple of its element's size at least."""
        return self.builder.load(pointer, align=self.bytes)

    def store(self, vector, pointer):
        """Write a vector."""
        self.builder.store(vector, pointer, align=self.bytes)

    def combine(self, a, x, b, y):
        """Return ``a x + b y``."""
        scaled = self.builder.fmul(b, y, flags=MAY_FUSE)
        return self.builder.fadd(self.builder.fmul(a, x, flags=MAY_FUSE), scaled, flags=MAY_FUSE)

    def butterfly(self, vector, bit):
        """Return the sum of each two lanes that differ in `bit` in the lower one, their difference in the upper."""
        signs = [self.element(-1.0 if k & bit else 1.0) for k in range(self.count)]
        signed = self.builder.fmul(vector, ir.Constant(self.type, signs))
        return self.builder.fadd(self.permute(vector, bit), signed, flags=MAY_FUSE)

    def larger(self, a, b):
        """Return the larger number of each lane."""
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def largest(self, vector):
        """Return the largest lane as a float64."""
        width = self.count // 2
        while width:
            vector = self.larger(vector, self.permute(vector, width))
            width //= 2
        number = self.builder.extract_element(vector, ir.IntType(32)(0))
        return self.builder.fpext(number, ir.DoubleType()) if self.bytes == 4 else number


# -- spins in lanes ------------------------------------------------------------------------------------------------
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


# -- numbers in lanes ----------------------------------------------------------------------------------------------
@intrinsic
def sum_table_rows(typingctx, table, codes, bases, others, strides, entry, position, n_others, n_vectors, row):
    """Fill a row with a sum of rows of a table: one that is given, and one for the code of each other variable.

    The given one begins at ``bases[entry]``, that of the k-th other variable, ``others[position + k]``, at
    ``bases[entry + 1 + k]`` plus its code times ``strides[position + k]``. All are read in whole vectors.
    """

    def generate(context, builder, signature, args):
        arrays = [address(context, builder, signature.args[k], args[k]) for k in (0, 1, 2, 3, 4, 9)]
        table, codes, bases, others, strides, row = arrays
        entry, position, n_others, n_vectors = args[5:9]
        lanes = Lanes(builder, types.float64)

        def vectors(array, start, count):
            first = builder.bitcast(builder.gep(array, [start]), lanes.type.as_pointer())
            return [builder.gep(first, [_I64(v)]) for v in range(count)]

        def fill(start, count):
            """Fill a part of the row that stays in registers."""
            totals = [cgutils.alloca_once(builder, lanes.type) for _ in range(count)]
            base = builder.load(builder.gep(bases, [entry]))
            for total, own in zip(totals, vectors(table, builder.add(start, base), count), strict=True):
                builder.store(lanes.load(own), total)
            with cgutils.for_range(builder, n_others, intp=_I64) as loop:
                place = builder.add(position, loop.index)
                code = builder.load(builder.gep(codes, [builder.load(builder.gep(others, [place]))]))
                base = builder.load(builder.gep(bases, [builder.add(builder.add(entry, _I64(1)), loop.index)]))
                step = builder.mul(builder.sext(code, _I64), builder.load(builder.gep(strides, [place])))
                for total, part in zip(
                    totals, vectors(table, builder.add(start, builder.add(base, step)), count), strict=True
                ):
                    builder.store(builder.fadd(builder.load(total), lanes.load(part)), total)
            for total, place in zip(totals, vectors(row, start, count), strict=True):
                lanes.store(builder.load(total), place)

        most = 4
        with cgutils.for_range(builder, builder.udiv(n_vectors, _I64(most)), intp=_I64) as loop:
            fill(builder.mul(loop.index, _I64(most * lanes.count)), most)
        rest = builder.urem(n_vectors, _I64(most))
        start = builder.mul(builder.sub(n_vectors, rest), _I64(lanes.count))
        for count in range(1, most):
            with builder.if_then(builder.icmp_signed("==", rest, _I64(count))):
                fill(start, count)
        return context.get_dummy_value()

    return types.void(table, codes, bases, others, strides, *[types.int64] * 4, row), generate


@intrinsic
def exponentials(typingctx, row, n):
    """Replace the first `n` numbers of a row by exp(number - the largest of them), in whole vectors."""

    def generate(context, builder, signature, args):
        lanes = Lanes(builder, types.float64)
        first = builder.bitcast(address(context, builder, signature.args[0], args[0]), lanes.type.as_pointer())
        last = builder.udiv(builder.sub(args[1], _I64(1)), _I64(lanes.count))
        n_left = builder.sub(args[1], builder.mul(last, _I64(lanes.count)))
        inside = builder.icmp_signed(
            "<",
            ir.Constant(_vector(_I64, lanes.count), list(range(lanes.count))),
            _spread(builder, n_left, _I64, lanes.count),
        )
        place = builder.gep(first, [last])
        nothing = ir.Constant(lanes.type, [lanes.element(-math.inf)] * lanes.count)
        lanes.store(builder.select(inside, lanes.load(place), nothing), place)
        top = cgutils.alloca_once_value(builder, lanes.load(place))
        with cgutils.for_range(builder, last, intp=_I64) as loop:
            builder.store(lanes.larger(builder.load(top), lanes.load(builder.gep(first, [loop.index]))), top)
        largest = lanes.spread(lanes.largest(builder.load(top)))
        with cgutils.for_range(builder, builder.add(last, _I64(1)), intp=_I64) as loop:
            place = builder.gep(first, [loop.index])
            lanes.store(emit_exp(builder, builder.fsub(lanes.load(place), largest), MAY_FUSE), place)
        return context.get_dummy_value()

    return types.void(row, types.int64), generate
