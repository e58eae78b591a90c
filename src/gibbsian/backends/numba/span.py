"""One pass over the dual table of the full-span model (TA22): the XOR update, fused with the scan of candidates.

In the Walsh basis ``Phi_y Phi_z = Phi_{y xor z}``, so moving ``dual[z]`` from t to g changes every entry by

    dual[y] <- keep * dual[y] + mix * dual[y xor z]   with  keep = (1 - g t) / (1 - t^2),  mix = (g - t) / (1 - t^2),

which is ``(dual[y] cosh(a) + dual[y xor z] sinh(a)) / (cosh(a) + t sinh(a))`` for a parameter that grows by
a; in place, pair by pair. The same pass asks of the new entries whether appending one could lower the cost by
more than the best move known so far, with two bounds on the gain written without division:

    (dual - data)^2 > (best + r_y) (1 - dual^2)                        TA22 eq. 2.19
    (dual - data)^2 > 2 (best + r_y) (1 - max(dual^2, data^2)).

The second follows from ``KL = integral of (data - u) / (1 - u^2) du`` from dual to data; where both are close
it is half the first, and nearly the gain itself. They are asked of a block of entries at once, of its largest
``(dual - data)^2`` and ``dual^2`` and its least r_y: two numbers for the pass to keep, which is bound by arithmetic.
Only where a block passes are its entries asked, and only of those that pass is the gain itself, with its
logarithms, computed. L1 and L2 shrinkage only lowers a gain, so the bounds hold with it.

The pairs are walked as whole vectors of 64 bytes. The low bits of z permute the lanes inside a vector, and
compilers do not turn an index ``j ^ z`` into a permutation, hence explicit vector code: one loop for each
value of these bits.

Entry y has the penalty ``low[y % low.size] + high[y // low.size]``, which grows with the variables it depends on.
"""

import math

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.axes import normalise, transform
from gibbsian.backends.numba.vectors import VECTOR_BYTES, Lanes
from gibbsian.backends.numba.walsh import aligned_zeros, in_pieces
from gibbsian.backends.threads import kept_threads

# Pairs of vectors between two looks at whether a candidate passed the bound.
_GRAIN = 32
# Entries that `passing` counts together.
_BLOCK = 256
# A dual this close to +-1 is there by rounding: keep logarithms finite.
LARGEST_DUAL = 1.0 - 1e-15
# L1, L2 and its growth with the order; the axes that tell the order, which nobody asks without shrinkage.
NO_SHRINKAGE = (0.0, 0.0, 1.0)
NO_AXES = (np.empty(0, np.int64), np.empty(0, np.int64))


# -- tables -----------------------------------------------------------------------------------------------------------
def new_table(size: int, dtype: np.dtype | type) -> np.ndarray:
    """Return a table of zeros, float64 or float32."""
    return aligned_zeros(size, dtype)


def place(data: np.ndarray, penalties: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the penalties of `update_and_scan` where the data are: as they are, on the CPU."""
    return penalties


@kept_threads()
def fill_dual(dual: np.ndarray, indices: np.ndarray, theta: np.ndarray, cardinalities: np.ndarray) -> float:
    """Overwrite a table with the dual of these parameters, by two transforms, and return log Z."""
    dual.fill(0)
    dual[indices] = theta
    transform(dual, cardinalities, transposed=True)
    log_partition = normalise(dual)
    transform(dual, cardinalities)
    return log_partition


# -- the gain of one move ---------------------------------------------------------------------------------------------
@njit(cache=True, inline="always")
def drop_in_divergence(now, after, data):
    """How much KL(p_d || p) falls when a dual moves from `now` to `after` (TA22 eq. 2.17, with the sign turned)."""
    now = min(max(now, -LARGEST_DUAL), LARGEST_DUAL)
    after = min(max(after, -LARGEST_DUAL), LARGEST_DUAL)
    up = math.log1p((after - now) / (1.0 + now))
    down = math.log1p((now - after) / (1.0 - now))
    return 0.5 * ((1.0 + data) * up + (1.0 - data) * down)


@njit(cache=True, inline="always")
def clipped(data, limit):
    """Where a dual is led to: the data's, except that +-1 has no finite parameter."""
    return min(max(data, -limit), limit)


@njit(cache=True, inline="always")
def may_gain(now, data, threshold):
    """Whether the bounds allow the divergence to fall by more than `threshold`."""
    square, data_square = now * now, data * data
    first = 1.0 - square
    second = 2.0 - 2.0 * (data_square if data_square > square else square)
    return (now - data) * (now - data) > threshold * (first if first > second else second)


@njit(cache=True, inline="always")
def better(gain, y, best, best_y):
    """Prefer the larger gain; among equal ones the smallest index, whatever the order of the scan."""
    return gain > best or (gain == best and y < best_y)


@njit(cache=True, nogil=True)
def shrunk_parameter(without, data, l1, l2):
    """Return the parameter x that minimises ``KL + l1 |x| + l2 x^2 / 2`` along one axis, and the dual it leads to.

    `without` is the dual at x = 0. With ``a = atanh(without)`` the minimum is where ``tanh(a + x) - data + l1
    sign(x) + l2 x = 0``: in closed form for l2 = 0, otherwise by Newton steps kept inside a bracket.
    """
    if abs(data - without) <= l1:
        return 0.0, without
    target = data - l1 if data > without else data + l1
    start = math.atanh(without)
    far = math.atanh(target) - start if abs(target) < 1.0 else math.copysign(40.0, target)
    if l2 == 0.0:
        return far, target
    far = min(far, (target - without) / l2) if far > 0.0 else max(far, (target - without) / l2)
    low, high = min(far, 0.0), max(far, 0.0)
    x = far / (1.0 + l2)
    for _ in range(100):
        dual = math.tanh(start + x)
        slope = dual - target + l2 * x
        if slope > 0.0:
            high = x
        else:
            low = x
        moved = x - slope / (1.0 - dual * dual + l2)
        if not low < moved < high:
            moved = 0.5 * (low + high)
        if abs(moved - x) <= 1e-15 * abs(x):
            break
        x = moved
    return x, math.tanh(start + x)


@njit(cache=True, nogil=True)
def l2_of(y, shrinkage, axes):
    """Return the L2 strength of a function: it grows by a factor with every variable after the first."""
    strength = shrinkage[1]
    cardinalities, strides = axes
    if strength > 0.0 and shrinkage[2] != 1.0:
        strength /= shrinkage[2]
        for i in range(cardinalities.size):
            if y // strides[i] % cardinalities[i] > 0:
                strength *= shrinkage[2]
    return strength


@njit(cache=True, nogil=True)
def append_gain(y, now, data, penalty, limit, shrinkage, axes):
    """Return by how much appending `y` lowers the cost, and the dual that it leads to."""
    l1, l2 = shrinkage[0], l2_of(y, shrinkage, axes)
    if l1 == 0.0 and l2 == 0.0:
        target = clipped(data, limit)
        return drop_in_divergence(now, target, data) - penalty, target
    now = min(max(now, -LARGEST_DUAL), LARGEST_DUAL)
    x, target = shrunk_parameter(now, clipped(data, limit), l1, l2)
    return drop_in_divergence(now, target, data) - penalty - l1 * abs(x) - 0.5 * l2 * x * x, target


@njit(cache=True, nogil=True)
def passing(dual, data, threshold):
    """Return the functions, but for the constant, whose divergence may fall by more than `threshold`, by the bounds."""
    counts = np.zeros((dual.size + _BLOCK - 1) // _BLOCK, np.int64)
    for block in range(counts.size):
        now, target = dual[block * _BLOCK :][:_BLOCK], data[block * _BLOCK :][:_BLOCK]
        count = 0
        for j in range(now.size):
            count += may_gain(np.float64(now[j]), np.float64(target[j]), threshold)
        counts[block] = count
    found, n_found = np.empty(counts.sum(), np.int64), 0
    for block in range(counts.size):
        for y in range(max(block * _BLOCK, 1), min((block + 1) * _BLOCK, dual.size) if counts[block] else 0):
            if may_gain(np.float64(dual[y]), np.float64(data[y]), threshold):
                found[n_found] = y
                n_found += 1
    return found[:n_found]


@njit(cache=True, nogil=True)
def append_gains(functions, duals, data, penalties, limit, shrinkage, axes):
    """Return by how much appending each of some functions lowers the cost."""
    gains = np.empty(functions.size)
    for k in range(functions.size):
        gains[k], _ = append_gain(functions[k], duals[k], data[k], penalties[k], limit, shrinkage, axes)
    return gains


@njit(cache=True, nogil=True)
def consider(y, now, data, penalty, limit, shrinkage, axes, taken, best, best_y):
    """Return the best append candidate after a look at `y`; `taken` holds the sorted indices that are no candidates."""
    place = np.searchsorted(taken, y)
    if place < taken.size and taken[place] == y:
        return best, best_y
    gain, _ = append_gain(y, now, data, penalty, limit, shrinkage, axes)
    if better(gain, y, best, best_y):
        return gain, y
    return best, best_y


# -- explicit vectors -------------------------------------------------------------------------------------------------
class _Pass:
    """The operands of one pass, and the code for one pair of vectors."""

    def __init__(self, lanes, tables, keep, mix):
        self.lanes = lanes
        self.dual, self.data = tables
        self.keep, self.mix = lanes.spread(keep), lanes.spread(mix)
        # the largest squares so far: of the distance to the data, and of the dual
        self.distance, self.square = (cgutils.alloca_once_value(lanes.builder, lanes.zeros()) for _ in range(2))

    def put(self, dual, index):
        """Write a new vector of the dual, and keep its largest squares."""
        lanes, builder = self.lanes, self.lanes.builder
        lanes.store(dual, lanes.place(self.dual, index))
        difference = builder.fsub(dual, lanes.load(lanes.place(self.data, index)))
        for number, largest in ((difference, self.distance), (dual, self.square)):
            builder.store(lanes.larger(builder.fmul(number, number), builder.load(largest)), largest)

    def pair(self, first, second, bits, alone):
        """Update vectors `first` and `second` with each other, or `alone` each with itself."""
        lanes = self.lanes
        a, b = lanes.load(lanes.place(self.dual, first)), lanes.load(lanes.place(self.dual, second))
        a_other, b_other = (a, b) if alone else (b, a)
        self.put(lanes.combine(self.keep, a, self.mix, lanes.permute(a_other, bits)), first)
        self.put(lanes.combine(self.keep, b, self.mix, lanes.permute(b_other, bits)), second)


def _pair_of(builder, number, top, shift):
    """Return the vectors of a pair: `number` with a zero bit put in at `top`, and its partner."""
    one = number.type(1)
    above = builder.shl(builder.lshr(number, top), builder.add(top, one))
    below = builder.and_(number, builder.sub(builder.shl(one, top), one))
    first = builder.or_(above, below)
    return first, builder.xor(first, shift)


@intrinsic
def _update_pairs(typingctx, dual, data, z, top, keep, mix, start, stop):
    """Update pairs `start` to `stop` of vectors in place; return the largest ``(dual - data)^2`` and ``dual^2`` there.

    `top` is the highest bit of z above the lanes; z within the lanes pairs neighbours 2k, 2k + 1 for company
    only.
    """
    index, real = types.int64, types.float64
    signature = types.UniTuple(real, 2)(dual, data, index, index, real, real, index, index)

    def generate(context, builder, sig, args):
        tables = [
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(sig.args[:2], args[:2], strict=True)
        ]
        z, top, keep, mix, start, stop = args[2:]
        lanes = Lanes(builder, sig.args[0].dtype)
        int64 = z.type
        work = _Pass(lanes, tables, keep, mix)
        shift = builder.lshr(z, int64(lanes.count.bit_length() - 1))
        bits = builder.and_(z, int64(lanes.count - 1))

        def loop(lane_bits, alone):
            with cgutils.for_range_slice(builder, start, stop, int64(1), intp=int64) as (number, _):
                if alone:
                    first = builder.shl(number, int64(1))
                    second = builder.or_(first, int64(1))
                else:
                    first, second = _pair_of(builder, number, top, shift)
                work.pair(first, second, lane_bits, alone)

        with builder.if_else(builder.icmp_signed("==", shift, int64(0))) as (inside, across):
            for branch, alone in ((inside, True), (across, False)):
                with branch:
                    for lane_bits in range(lanes.count):
                        with builder.if_then(builder.icmp_signed("==", bits, int64(lane_bits))):
                            loop(lane_bits, alone)
        largest = [lanes.largest(builder.load(place)) for place in (work.distance, work.square)]
        return context.make_tuple(builder, sig.return_type, largest)

    return signature, generate


# -- the pass ---------------------------------------------------------------------------------------------------------
@njit(cache=True, nogil=True)
def _look_closer(dual, data, low, high, z, top, limit, shrinkage, axes, taken, best, best_y, start, stop):
    """Find the best append candidate among pairs `start` to `stop` of vectors."""
    count = VECTOR_BYTES // dual.itemsize
    shift = z // count
    for number in range(start, stop):
        first = ((number >> top) << (top + 1)) | (number & ((1 << top) - 1))
        for vector in (first, first ^ shift if shift else first + 1):
            for y in range(vector * count, (vector + 1) * count):
                now, target = np.float64(dual[y]), np.float64(data[y])
                penalty = low[y % low.size] + high[y // low.size]
                if may_gain(now, target, best + penalty):
                    best, best_y = consider(y, now, target, penalty, limit, shrinkage, axes, taken, best, best_y)
    return best, best_y


@njit(cache=True, nogil=True)
def _pass_over(dual, data, low, high, z, top, keep, mix, limit, shrinkage, axes, taken, best, first, last):
    """Update and scan pairs `first` to `last` of vectors."""
    best_y = np.int64(-1)  # a literal would compile what it is handed to twice
    count = VECTOR_BYTES // dual.itemsize
    for start in range(first, last, _GRAIN):
        stop = min(start + _GRAIN, last)
        distance, square = _update_pairs(dual, data, z, top, keep, mix, start, stop)  # type: ignore
        # where the low bits of an index are zero, its penalty is the least of the block
        vector = ((start >> top) << (top + 1)) | (start & ((1 << top) - 1))
        y, partner = vector * count, ((vector ^ (z // count)) & -_GRAIN) * count
        penalty = min(low[y % low.size] + high[y // low.size], low[partner % low.size] + high[partner // low.size])
        # what squares of the data are at most, from |data| <= |dual| + |dual - data|
        data_square = square + distance + 2.0 * math.sqrt(square * distance)
        if distance > (best + penalty) * max(1.0 - square, 2.0 - 2.0 * data_square):
            best, best_y = _look_closer(
                dual, data, low, high, z, top, limit, shrinkage, axes, taken, best, best_y, start, stop
            )
    return best, best_y


def smallest_table(dtype: np.dtype | type) -> int:
    """Return the fewest entries of a table that `update_and_scan` takes: one pair of vectors."""
    return 2 * VECTOR_BYTES // np.dtype(dtype).itemsize


def update_and_scan(
    dual: np.ndarray,
    data: np.ndarray,
    penalties: tuple[np.ndarray, np.ndarray],
    move: tuple[int, float, float],
    limit: float,
    taken: np.ndarray,
    floor: float = 0.0,
    shrinkage: tuple[float, float, float] = NO_SHRINKAGE,
    axes: tuple[np.ndarray, np.ndarray] = NO_AXES,
) -> tuple[float, int]:
    """Update the dual table in place and return the gain and the index of the best append; index -1 for none.

    Parameters
    ----------
    dual, data : (2^n,), float64 or float32
        The dual of the model, changed in place, and that of the data.
    penalties : tuple of ndarray
        ``low`` (a power of two of entries, at least one vector, of the tables' type) and ``high`` (float64). Clearing
        the low bits of an index may not raise its penalty.
    move : tuple
        z, keep and mix; ``(1, 1.0, 0.0)`` changes nothing and only scans.
    limit : float
        Where targets are clipped.
    taken : ndarray of int64
        Sorted indices that are no candidates.
    floor : float
        A gain that a candidate must exceed.
    shrinkage : tuple of float
        l1, l2, and the factor by which l2 grows with every variable after the first.
    axes : tuple of ndarray
        Cardinalities and strides, to count the variables of a function.
    """
    z, keep, mix = move
    low, high = penalties
    top = max((z // (VECTOR_BYTES // dual.itemsize)).bit_length() - 1, 0)
    found = in_pieces(
        dual.size,
        dual.size // smallest_table(dual.dtype),
        _GRAIN,
        lambda first, last: _pass_over(
            dual, data, low, high, z, top, keep, mix, limit, shrinkage, axes, taken, floor, first, last
        ),
    )
    return best_of(found, floor)


def best_of(found: list[tuple[float, int]], floor: float) -> tuple[float, int]:
    """Return the best of the candidates that pieces of a table found, whatever the pieces were."""
    candidates = [(gain, y) for gain, y in found if y >= 0]
    if not candidates:
        return floor, -1
    gain, y = min(candidates, key=lambda candidate: (-candidate[0], candidate[1]))
    return float(gain), int(y)


@njit(cache=True)
def pair_expectations(dual, active):
    """Return ``<Phi_y Phi_z>`` for all pairs of active functions: the entries ``dual[y xor z]``."""
    products = np.empty((active.size, active.size))
    for i in range(active.size):
        for j in range(active.size):
            products[i, j] = dual[active[i] ^ active[j]]
    return products


@njit(cache=True)
def best_active_move(duals, data, theta, penalties, limit, l1, l2):
    """Return the best adjusting or removing of an active function (Algorithm 2, lines 10-15).

    `l1` is one strength, `l2` holds that of each function.

    Returns
    -------
    gain, position : position -1 where nothing lowers the cost
    removes : bool
    target : the dual that the move leads to
    """
    best, position, removes, target = 0.0, -1, False, 0.0
    for k in range(duals.size):
        now = min(max(duals[k], -LARGEST_DUAL), LARGEST_DUAL)
        without = math.tanh(math.atanh(now) - theta[k])
        shrinks_now = l1 * abs(theta[k]) + 0.5 * l2[k] * theta[k] * theta[k]
        adjusted, x = clipped(data[k], limit), 1.0
        gain = shrinks_now
        if l1 > 0.0 or l2[k] > 0.0:
            start = min(max(without, -LARGEST_DUAL), LARGEST_DUAL)
            x, adjusted = shrunk_parameter(start, adjusted, l1, l2[k])
            gain -= l1 * abs(x) + 0.5 * l2[k] * x * x
        gain += drop_in_divergence(now, adjusted, data[k])
        if gain > best and x != 0.0:  # a parameter that L1 makes zero is removed
            best, position, removes, target = gain, k, False, adjusted
        gain = drop_in_divergence(now, without, data[k]) + shrinks_now + penalties[k]
        if gain > best:
            best, position, removes, target = gain, k, True, without
    return best, position, removes, target
