"""Spatial Monte Carlo integration on pairwise spins whose regions are forests: messages for each state of the target.

A message is a field on the parent: summing a child out of ``exp(nu x_c + J x_c x_p)`` leaves ``exp(K + u x_p)``.
"""

import math

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import VECTOR_MATH, copy_to, fast_exp
from gibbsian.backends.numba.spatial import (
    FOLD_AFTER,
    accumulate,
    expectation,
    fold,
    pair_exponents,
    single_exponents,
    subtract,
    sum_out_at,
)


@njit(cache=True)
def _is_up(state, which, size):
    """Whether target variable `which` is up in a state; the first variable is the highest bit."""
    return (state >> (size - 1 - which)) & 1 == 1


@njit(cache=True, inline="always")
def _atanh(z):
    """The inverse hyperbolic tangent for ``|z| <= 1/3``: the first term left out of the series is below 1e-16 z."""
    y = z * z
    series = 1.0 / 31.0
    series = series * y + 1.0 / 29.0
    series = series * y + 1.0 / 27.0
    series = series * y + 1.0 / 25.0
    series = series * y + 1.0 / 23.0
    series = series * y + 1.0 / 21.0
    series = series * y + 1.0 / 19.0
    series = series * y + 1.0 / 17.0
    series = series * y + 1.0 / 15.0
    series = series * y + 1.0 / 13.0
    series = series * y + 1.0 / 11.0
    series = series * y + 1.0 / 9.0
    series = series * y + 1.0 / 7.0
    series = series * y + 1.0 / 5.0
    series = series * y + 1.0 / 3.0
    return z * (series * y + 1.0)


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _send_up(above, exponents, halves, nu, weight):
    """Sum out a child given its parent: ``2 cosh(nu + J x) = exp(K + u x)``; u goes to the parent's field.

    ``K`` is half the sum of the two log cosh, so its factors are collected in `halves` and enter by their square root;
    ``u`` is half their difference, whose logarithm is an inverse hyperbolic tangent of at most a third.
    """
    for m in range(nu.size):
        plus, minus = abs(nu[m] + weight), abs(nu[m] - weight)
        ep, em = fast_exp(-2.0 * plus), fast_exp(-2.0 * minus)
        exponents[m] += 0.5 * (plus + minus)
        halves[m] *= (1.0 + ep) * (1.0 + em)
        above[m] += 0.5 * (plus - minus) + _atanh((ep - em) / (2.0 + ep + em))


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _send_up_field(above, nu, weight):
    """`_send_up` where the rest of the sum is the same for all states of the target: the field alone."""
    for m in range(nu.size):
        plus, minus = abs(nu[m] + weight), abs(nu[m] - weight)
        ep, em = fast_exp(-2.0 * plus), fast_exp(-2.0 * minus)
        above[m] += 0.5 * (plus - minus) + _atanh((ep - em) / (2.0 + ep + em))


@njit(cache=True)
def _fold_roots(products, halves):
    for m in range(products.size):
        products[m] *= math.sqrt(halves[m])


@njit(cache=True, fastmath=VECTOR_MATH)
def _shifted(out, field, shift):
    for m in range(out.size):
        out[m] = field[m] + shift


@njit(cache=True)
def _cavity_fields(beta, own_fields, t, w, regions, system):
    """Fields of the region's members and of the target from the variables outside the region alone."""
    couplings, spins, fields, _ = system
    targets, start = regions.targets, regions.starts[t]
    size, count = targets.shape[1], regions.starts[t + 1] - start
    for which in range(size):
        copy_to(own_fields[which], fields[targets[t, which]])
    if size == 2:
        subtract(own_fields[0], spins[targets[t, 1]], w)
        subtract(own_fields[1], spins[targets[t, 0]], w)
    for f in range(count):
        copy_to(beta[f], fields[regions.members[start + f]])
    for f in range(count):
        place = start + f
        k, above = regions.members[place], regions.parents[place]
        for which in range(size):
            link = regions.first_links[place] if which == 0 else regions.second_links[place]
            if link >= 0:
                subtract(own_fields[which], spins[k], couplings[link])
                subtract(beta[f], spins[targets[t, which]], couplings[link])
        if above >= 0:
            weight = couplings[regions.up_links[place]]
            subtract(beta[f], spins[regions.members[start + above]], weight)
            subtract(beta[above], spins[k], weight)


@njit(cache=True)
def _send_constant_messages(beta, moving, t, regions, couplings):
    """Sum out, once for all states of the target, the subtrees that do not touch it; mark the other members."""
    start, count = regions.starts[t], regions.starts[t + 1] - regions.starts[t]
    for f in range(count):
        moving[f] = regions.first_links[start + f] >= 0 or regions.second_links[start + f] >= 0
    for f in range(count - 1, -1, -1):
        above = regions.parents[start + f]
        if above >= 0 and moving[f]:
            moving[above] = True
        elif above >= 0:
            _send_up_field(beta[above], beta[f], couplings[regions.up_links[start + f]])


@njit(cache=True)
def _sum_forest(exponents, products, halves, nu, beta, moving, state, t, regions, couplings):
    """Multiply the weights of one state of the target by the sum over the forest given that state."""
    start, count, size = regions.starts[t], regions.starts[t + 1] - regions.starts[t], regions.targets.shape[1]
    halves[:] = 1.0
    for f in range(count):
        if moving[f]:
            shift = 0.0
            for which in range(size):
                link = regions.first_links[start + f] if which == 0 else regions.second_links[start + f]
                if link >= 0:
                    shift += couplings[link] if _is_up(state, which, size) else -couplings[link]
            _shifted(nu[f], beta[f], shift)
    for f in range(count - 1, -1, -1):
        if moving[f]:
            above = regions.parents[start + f]
            if above < 0:
                sum_out_at(exponents, products, nu[f], 0.0)
            else:
                _send_up(nu[above], exponents, halves, nu[f], couplings[regions.up_links[start + f]])
        if (count - f) % FOLD_AFTER == 0:
            _fold_roots(products, halves)
            halves[:] = 1.0
            fold(exponents, products)
    _fold_roots(products, halves)


@njit(cache=True, nogil=True)
def forest_targets(first, last, regions, system, sums, block):
    """SMCI of single variables or pairs whose region is an induced forest: message passing for each target state.

    Members stand parents before children. Couplings numbered -1 are absent.
    """
    couplings, n_samples, size = system.couplings, system.fields.shape[1], regions.targets.shape[1]
    n_states, largest = 2**size, 0
    for t in range(first, last):
        largest = max(largest, regions.starts[t + 1] - regions.starts[t])
    beta, nu, moving = np.empty((largest, n_samples)), np.empty((largest, n_samples)), np.empty(largest, np.bool_)
    values, own_fields, halves = np.empty(n_samples), np.zeros((2, n_samples)), np.empty(n_samples)
    exponents, products = np.empty((n_states, n_samples)), np.empty((n_states, n_samples))
    for t in range(first, last):
        w = couplings[regions.own[t]] if regions.own[t] >= 0 else 0.0
        _cavity_fields(beta, own_fields, t, w, regions, system)
        _send_constant_messages(beta, moving, t, regions, couplings)
        if size == 2:
            pair_exponents(exponents, own_fields[0], own_fields[1], w)
        else:
            single_exponents(exponents, own_fields[0])
        products[:] = 1.0
        for state in range(n_states):
            _sum_forest(exponents[state], products[state], halves, nu, beta, moving, state, t, regions, couplings)
        expectation(values, exponents, products, system.binary)
        accumulate(sums[t], values, block)
