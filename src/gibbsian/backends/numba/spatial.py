"""Spatial Monte Carlo integration on pairwise spins (YU20 section 4), averaged over samples as it goes.

Samples stand by variable (one row for each variable), so that every loop along a row is vector code. `values` holds,
for each sample, the conditional expectation of one statistic; `accumulate` folds it into that statistic's running sums,
and nothing of the size of statistics times samples is ever kept.

Sums over few states are taken as ``product * exp(exponent)``: ``2 cosh(u) = exp(|u|) (1 + exp(-2|u|))`` puts |u| into
the exponent and the second factor, between 1 and 2, into the product. So there is one exponential for each term, no
logarithm, and no overflow.
"""

import math
from typing import NamedTuple

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import VECTOR_MATH, copy_to, fast_exp

# Columns of the running sums of a statistic.
REFERENCE, TOTAL, SQUARES, CROSSES, OPEN = range(5)
N_SUMS = 5


class Shares(NamedTuple):
    """What a block of samples counts for (see `accumulate`)."""

    shares: np.ndarray
    spreads: np.ndarray
    closes: np.ndarray
    grouped: bool
    fresh: bool


class Spins(NamedTuple):
    """A pairwise model in spin form with a block of samples and their fields, by variable.

    `binary` asks for the moments of the 0/1 coding.
    """

    couplings: np.ndarray
    spins: np.ndarray
    fields: np.ndarray
    binary: bool


class Forests(NamedTuple):
    """The regions of many targets, in flat arrays: see `gibbsian.backends.numba.regions.rooted`.

    `own` numbers the coupling inside each target; -1 stands for no coupling throughout.
    """

    targets: np.ndarray
    own: np.ndarray
    starts: np.ndarray
    members: np.ndarray
    parents: np.ndarray
    up_links: np.ndarray
    first_links: np.ndarray
    second_links: np.ndarray


# Products of this many factors up to 2 stay in range; then their logarithm goes into the exponent.
FOLD_AFTER = 400
# a square of so many int8 states stays in the first-level cache while it is transposed
_TILE = 64
# exp(-2|J|) underflows beyond: such a coupling takes the general path.
_LARGE = 300.0


@njit(cache=True, fastmath=True)
def _single_sums(values, reference, shares, spreads):
    total, squares, crosses = 0.0, 0.0, 0.0
    for m in range(values.size):
        change = values[m] - reference
        total += shares[m] * change
        crosses += spreads[m] * change
        squares += spreads[m] * change * change
    return total, squares, crosses


@njit(cache=True, nogil=True)
def accumulate(sums, values, block):
    """Fold the values of a block of samples into one statistic's running sums.

    Deviations are taken from the first value met, so that small variances keep their digits. Without groups `spreads`
    weighs the squares; with groups a sample that ends its group holds the group's share in `closes`, others -1.
    """
    if block.fresh:
        sums[REFERENCE] = values[0]
    reference = sums[REFERENCE]
    if not block.grouped:
        total, squares, crosses = _single_sums(values, reference, block.shares, block.spreads)
        sums[TOTAL] += total
        sums[SQUARES] += squares
        sums[CROSSES] += crosses
        return
    for m in range(values.size):
        part = block.shares[m] * (values[m] - reference)
        sums[TOTAL] += part
        sums[OPEN] += part
        if block.closes[m] >= 0.0:
            group = sums[OPEN]
            sums[SQUARES] += group * group
            sums[CROSSES] += group * block.closes[m]
            sums[OPEN] = 0.0


@njit(cache=True, nogil=True)
def accumulate_rows(sums, values, block):
    """`accumulate` for several statistics, one row of values each."""
    for row in range(len(values)):
        accumulate(sums[row], values[row], block)


@njit(cache=True, nogil=True)
def fill_by_variable(rows, states, high, lower, upper):
    """Write states as two numbers, one row for each variable: `upper` where they hold `high`, `lower` elsewhere."""
    n_samples, n = states.shape
    for top in range(0, n_samples, _TILE):
        for left in range(0, n, _TILE):
            for i in range(left, min(left + _TILE, n)):
                for m in range(top, min(top + _TILE, n_samples)):
                    rows[i, m] = upper if states[m, i] == high else lower


@njit(cache=True, nogil=True)
def fill_fields(fields, spins, biases, indptr, heads, weights):
    """Fields of all variables, by variable."""
    for i in range(len(fields)):
        row = fields[i]
        row[:] = biases[i]
        for position in range(indptr[i], indptr[i + 1]):
            weight, neighbour = weights[position], spins[heads[position]]
            for m in range(row.size):
                row[m] += weight * neighbour[m]


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _node_values(values, field, binary):
    """E[x_i | rest] (Y18 eq. 24): tanh of the field, or the probability of the upper value."""
    for m in range(values.size):
        u = field[m]
        e = fast_exp(-2.0 * abs(u))
        upper = 1.0 if u >= 0.0 else e
        lower = e if u >= 0.0 else 1.0
        values[m] = (upper if binary else upper - lower) / (1.0 + e)


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _spin_pair_values(values, first_field, second_field, first, second, coupling):
    """E[x_i x_j | rest] (Y18 eq. 25) from the four states' weights, in the frame where both cavity fields are positive.

    With a, b >= 0 the weights over that of both up are 1, exp(-2a), exp(-2b), exp(-2a-2b), and exp(-2|J|) multiplies
    those that the coupling disfavours: sums of positive numbers, two exponentials.
    """
    disfavoured = math.exp(-2.0 * abs(coupling))
    for m in range(values.size):
        a = first_field[m] - coupling * second[m]
        b = second_field[m] - coupling * first[m]
        ea, eb = fast_exp(-2.0 * abs(a)), fast_exp(-2.0 * abs(b))
        sign = math.copysign(1.0, a) * math.copysign(1.0, b)
        favoured = sign * coupling >= 0.0
        equal = (1.0 + ea * eb) * (1.0 if favoured else disfavoured)
        unequal = (ea + eb) * (disfavoured if favoured else 1.0)
        values[m] = sign * (equal - unequal) / (equal + unequal)


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _binary_pair_values(values, first_field, second_field, first, second, coupling):
    """P(both upper | rest): one over the sum of the four states' weights relative to it."""
    for m in range(values.size):
        a = first_field[m] - coupling * second[m]
        b = second_field[m] - coupling * first[m]
        only_first = fast_exp(min(-2.0 * (b + coupling), 700.0))
        only_second = fast_exp(min(-2.0 * (a + coupling), 700.0))
        neither = fast_exp(min(-2.0 * (a + b), 700.0))
        values[m] = 1.0 / (1.0 + only_first + only_second + neither)


@njit(cache=True, nogil=True)
def first_order_nodes(first, last, system, sums, block):
    """1-SMCI of the variables ``first .. last - 1``."""
    values = np.empty(system.fields.shape[1])
    for i in range(first, last):
        _node_values(values, system.fields[i], system.binary)
        accumulate(sums[i], values, block)


@njit(cache=True, nogil=True)
def first_order_pairs(first, last, pairs, system, sums, block):
    """1-SMCI of the pairs ``first .. last - 1``, which are numbered like their couplings."""
    couplings, spins, fields, binary = system
    n_samples = fields.shape[1]
    values, a, b = np.empty(n_samples), np.empty(n_samples), np.empty(n_samples)
    exponents, products = np.empty((4, n_samples)), np.empty((4, n_samples))
    for e in range(first, last):
        i, j, w = pairs[e, 0], pairs[e, 1], couplings[e]
        if abs(w) > _LARGE:
            _take_away(a, fields[i], spins[j], w)
            _take_away(b, fields[j], spins[i], w)
            products[:] = 1.0
            pair_exponents(exponents, a, b, w)
            expectation(values, exponents, products, binary)
        elif binary:
            _binary_pair_values(values, fields[i], fields[j], spins[i], spins[j], w)
        else:
            _spin_pair_values(values, fields[i], fields[j], spins[i], spins[j], w)
        accumulate(sums[e], values, block)


@njit(cache=True, fastmath=VECTOR_MATH)
def _take_away(out, field, spins, weight):
    """The field without one neighbour."""
    for m in range(out.size):
        out[m] = field[m] - weight * spins[m]


@njit(cache=True, fastmath=VECTOR_MATH)
def subtract(out, spins, weight):
    """Take one neighbour out of a field, in place."""
    for m in range(out.size):
        out[m] -= weight * spins[m]


@njit(cache=True, fastmath=VECTOR_MATH)
def pair_exponents(exponents, a, b, coupling):
    """Log-weights of the states --, -+, +-, ++ of a pair."""
    for m in range(a.size):
        exponents[0, m] = -a[m] - b[m] + coupling
        exponents[1, m] = -a[m] + b[m] - coupling
        exponents[2, m] = a[m] - b[m] - coupling
        exponents[3, m] = a[m] + b[m] + coupling


@njit(cache=True, fastmath=VECTOR_MATH)
def single_exponents(exponents, a):
    """Log-weights of the states - and + of one variable."""
    for m in range(a.size):
        exponents[0, m] = -a[m]
        exponents[1, m] = a[m]


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def expectation(values, exponents, products, binary):
    """The mean of the statistic under weights ``products * exp(exponents)`` of the two or four states."""
    n_states = len(exponents)
    for m in range(values.size):
        top = max(exponents[0, m], exponents[n_states - 1, m])
        if n_states == 4:
            top = max(top, max(exponents[1, m], exponents[2, m]))
            down = products[0, m] * fast_exp(exponents[0, m] - top)
            second = products[1, m] * fast_exp(exponents[1, m] - top)
            first = products[2, m] * fast_exp(exponents[2, m] - top)
            up = products[3, m] * fast_exp(exponents[3, m] - top)
            unequal = first + second
            values[m] = (up if binary else (up + down) - unequal) / ((up + down) + unequal)
        else:
            down = products[0, m] * fast_exp(exponents[0, m] - top)
            up = products[1, m] * fast_exp(exponents[1, m] - top)
            values[m] = (up if binary else up - down) / (up + down)


@njit(cache=True, fastmath=VECTOR_MATH)
def sum_out_at(exponents, products, field, shift):
    """Multiply the weights by 2 cosh(field + shift)."""
    for m in range(field.size):
        u = abs(field[m] + shift)
        exponents[m] += u
        products[m] *= 1.0 + fast_exp(-2.0 * u)


@njit(cache=True)
def fold(exponents, products):
    """Move the logarithm of the products into the exponents."""
    for m in range(exponents.size):
        exponents[m] += math.log(products[m])
        products[m] = 1.0


@njit(cache=True, fastmath=VECTOR_MATH)
def _sum_out_beside(field, up, down, beta, weight):
    """Sum out a variable that touches one target variable: its abs go to the field, its factors to up and down."""
    for m in range(field.size):
        with_up, with_down = abs(beta[m] + weight), abs(beta[m] - weight)
        field[m] += 0.5 * (with_up - with_down)
        up[m] *= 1.0 + fast_exp(-2.0 * with_up)
        down[m] *= 1.0 + fast_exp(-2.0 * with_down)


@njit(cache=True)
def _fold_beside(field, up, down):
    for m in range(field.size):
        field[m] += 0.5 * math.log(up[m] / down[m])
        up[m] = down[m] = 1.0


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _node_expectation(values, a, up, down, binary):
    """`single_exponents` and `expectation` in one go."""
    for m in range(values.size):
        top = abs(a[m])
        above, below = up[m] * fast_exp(a[m] - top), down[m] * fast_exp(-a[m] - top)
        values[m] = (above if binary else above - below) / (above + below)


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _pair_expectation(values, a, b, coupling, beside, binary):
    """`pair_exponents` and `expectation` in one go, where no member touches both ends."""
    for m in range(values.size):
        both, apart = a[m] + b[m], a[m] - b[m]
        top = max(abs(both) + coupling, abs(apart) - coupling)
        down = beside[1, m] * beside[3, m] * fast_exp(coupling - both - top)
        up = beside[0, m] * beside[2, m] * fast_exp(coupling + both - top)
        unequal = beside[1, m] * beside[2, m] * fast_exp(-coupling - apart - top)
        unequal += beside[0, m] * beside[3, m] * fast_exp(apart - coupling - top)
        values[m] = (up if binary else (up + down) - unequal) / ((up + down) + unequal)


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _shared_expectation(values, a, b, coupling, beside, exponents, products, binary):
    """The same where members that touch both ends have weights ``products * exp(exponents)`` of their own."""
    for m in range(values.size):
        both, apart = a[m] + b[m], a[m] - b[m]
        lowest, highest = coupling - both + exponents[0, m], coupling + both + exponents[3, m]
        below, above = exponents[1, m] - apart - coupling, exponents[2, m] + apart - coupling
        top = max(max(lowest, highest), max(below, above))
        down = products[0, m] * beside[1, m] * beside[3, m] * fast_exp(lowest - top)
        up = products[3, m] * beside[0, m] * beside[2, m] * fast_exp(highest - top)
        unequal = products[1, m] * beside[1, m] * beside[2, m] * fast_exp(below - top)
        unequal += products[2, m] * beside[0, m] * beside[3, m] * fast_exp(above - top)
        values[m] = (up if binary else (up + down) - unequal) / ((up + down) + unequal)


@njit(cache=True, nogil=True)
def independent_nodes(first, last, regions, system, sums, block):
    """s2-SMCI of single variables (YU20 eq. 22): their independent neighbours are summed out (eq. 20)."""
    couplings, spins, fields, binary = system
    starts, members, links = regions.starts, regions.members, regions.first_links
    n_samples = fields.shape[1]
    values, a, beta = np.empty(n_samples), np.empty(n_samples), np.empty(n_samples)
    up, down = np.empty(n_samples), np.empty(n_samples)
    for t in range(first, last):
        i = regions.targets[t, 0]
        copy_to(a, fields[i])
        up[:] = down[:] = 1.0
        for place in range(starts[t], starts[t + 1]):
            k, w = members[place], couplings[links[place]]
            subtract(a, spins[k], w)
            _take_away(beta, fields[k], spins[i], w)
            _sum_out_beside(a, up, down, beta, w)
            if (place - starts[t]) % FOLD_AFTER == FOLD_AFTER - 1:
                _fold_beside(a, up, down)
        _node_expectation(values, a, up, down, binary)
        accumulate(sums[t], values, block)


@njit(cache=True, nogil=True)
def independent_pairs(first, last, regions, system, sums, block):
    """s2-SMCI of pairs (YU20 eq. 23): their independent neighbours are summed out (eq. 20).

    A member that touches one end takes two exponentials, one that touches both takes four.
    """
    couplings, spins, fields, binary = system
    starts, members = regions.starts, regions.members
    first_links, second_links = regions.first_links, regions.second_links
    n_samples = fields.shape[1]
    values, a, b, beta = np.empty(n_samples), np.empty(n_samples), np.empty(n_samples), np.empty(n_samples)
    beside = np.empty((4, n_samples))  # factors of members beside i: up, down; beside j: up, down
    exponents, products = np.empty((4, n_samples)), np.empty((4, n_samples))  # of members that touch both ends
    for t in range(first, last):
        i, j = regions.targets[t, 0], regions.targets[t, 1]
        w = couplings[regions.own[t]]
        _take_away(a, fields[i], spins[j], w)
        _take_away(b, fields[j], spins[i], w)
        beside[:] = 1.0
        any_shared = False
        for place in range(starts[t], starts[t + 1]):
            k, to_first, to_second = members[place], first_links[place], second_links[place]
            wi = couplings[to_first] if to_first >= 0 else 0.0
            wj = couplings[to_second] if to_second >= 0 else 0.0
            if to_second < 0:
                subtract(a, spins[k], wi)
                _take_away(beta, fields[k], spins[i], wi)
                _sum_out_beside(a, beside[0], beside[1], beta, wi)
            elif to_first < 0:
                subtract(b, spins[k], wj)
                _take_away(beta, fields[k], spins[j], wj)
                _sum_out_beside(b, beside[2], beside[3], beta, wj)
            else:
                if not any_shared:
                    exponents[:] = 0.0
                    products[:] = 1.0
                    any_shared = True
                subtract(a, spins[k], wi)
                subtract(b, spins[k], wj)
                _take_away(beta, fields[k], spins[i], wi)
                subtract(beta, spins[j], wj)
                for state in range(4):
                    shift = (wi if state >= 2 else -wi) + (wj if state % 2 == 1 else -wj)
                    sum_out_at(exponents[state], products[state], beta, shift)
            if (place - starts[t]) % FOLD_AFTER == FOLD_AFTER - 1:
                _fold_beside(a, beside[0], beside[1])
                _fold_beside(b, beside[2], beside[3])
                if any_shared:
                    for state in range(4):
                        fold(exponents[state], products[state])
        if any_shared:
            _shared_expectation(values, a, b, w, beside, exponents, products, binary)
        else:
            _pair_expectation(values, a, b, w, beside, binary)
        accumulate(sums[t], values, block)
