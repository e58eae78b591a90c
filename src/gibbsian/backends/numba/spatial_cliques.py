"""Spatial Monte Carlo integration on models of products over cliques of any size, two values a variable.

Given the samples outside, the log-weight of the target's values is a polynomial in them: its coefficient for a subset
of the target sums the cliques that meet the target there, each times the product of its other variables. Turning those
coefficients into log-weights takes one step for each target variable, like a fast Walsh transform.
"""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import VECTOR_MATH, copy_to, fast_exp
from gibbsian.backends.numba.spatial import FOLD_AFTER, accumulate, fold

# What a variable is to the target at hand, in `role`: outside 0, in the region -1, in the target its bit.
_OUTSIDE, _MEMBER = 0, -1


@njit(cache=True, fastmath=VECTOR_MATH)
def _multiply(row, factors):
    for m in range(row.size):
        row[m] *= factors[m]


@njit(cache=True, fastmath=VECTOR_MATH)
def _add(row, terms):
    for m in range(row.size):
        row[m] += terms[m]


@njit(cache=True, fastmath=VECTOR_MATH)
def _evaluate_polynomial(coefficients, size, low, high):
    """Turn coefficients of subsets into values at states, in place; bit b of either belongs to the same variable."""
    for b in range(size):
        step = 1 << b
        for state in range(len(coefficients)):
            if state & step == 0:
                without, along = coefficients[state], coefficients[state | step]
                for m in range(without.size):
                    constant, slope = without[m], along[m]
                    without[m] = constant + low * slope
                    along[m] = constant + high * slope


@njit(cache=True)
def _add_cliques_of(node, region_sum, coefficients, term, system, role):
    """Add the cliques of one variable to the coefficients of the subsets where they meet the target.

    For a target variable (`region_sum` False): cliques without members of the region, each counted at its first target
    variable. For a member: all its cliques, itself left out of the product.
    """
    indptr, variables, memberships, cliques, weights, values = system
    for position in range(memberships[node], memberships[node + 1]):
        c = cliques[position]
        subset, counted, first = 0, True, True
        for place in range(indptr[c], indptr[c + 1]):
            j = variables[place]
            if role[j] > 0:
                if not region_sum and first and j != node:
                    counted = False
                first = False
                subset |= role[j]
            elif role[j] == _MEMBER and not region_sum:
                counted = False
        if not counted:
            continue
        term[:] = weights[c]
        for place in range(indptr[c], indptr[c + 1]):
            j = variables[place]
            if role[j] == _OUTSIDE:
                _multiply(term, values[j])
        _add(coefficients[subset], term)


@njit(cache=True, fastmath=VECTOR_MATH)
def _sum_out(exponents, products, field, low, high):
    """Multiply the weights by ``exp(low u) + exp(high u)``."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    for m in range(field.size):
        u = half * abs(field[m])
        exponents[m] += middle * field[m] + u
        products[m] *= 1.0 + fast_exp(-2.0 * u)


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _mean_product(out, exponents, products, scratch, size, low, high):
    """The mean of the product of the target's values under weights ``products * exp(exponents)``."""
    top, total = scratch[0], scratch[1]
    copy_to(top, exponents[0])
    for state in range(1, len(exponents)):
        for m in range(out.size):
            top[m] = max(top[m], exponents[state, m])
    out[:] = 0.0
    total[:] = 0.0
    for state in range(len(exponents)):
        value = 1.0
        for b in range(size):
            value *= high if state >> b & 1 else low
        for m in range(out.size):
            weight = products[state, m] * fast_exp(exponents[state, m] - top[m])
            total[m] += weight
            out[m] += value * weight
    for m in range(out.size):
        out[m] /= total[m]


@njit(cache=True, nogil=True)
def clique_targets(first, last, starts, members, low, high, system, sums, block):
    """SMCI of the products over the cliques ``first .. last - 1``, each with its independent members summed out.

    `system` holds the cliques (pointers, variables), those of each variable (pointers, cliques), the weights over T,
    and a block of samples by variable.
    """
    indptr, variables, _, _, _, values = system
    n, n_samples = values.shape
    role, out, term, scratch = np.zeros(n, np.int64), np.empty(n_samples), np.empty(n_samples), np.empty((2, n_samples))
    for t in range(first, last):
        target = variables[indptr[t] : indptr[t + 1]]
        own = members[starts[t] : starts[t + 1]]
        size, n_states = target.size, 1 << target.size
        for b in range(size):
            role[target[b]] = 1 << b
        role[own] = _MEMBER
        exponents, products = np.zeros((n_states, n_samples)), np.ones((n_states, n_samples))
        for i in target:
            _add_cliques_of(i, False, exponents, term, system, role)
        _evaluate_polynomial(exponents, size, low, high)
        fields = np.empty((n_states, n_samples))
        for place in range(own.size):
            fields[:] = 0.0
            _add_cliques_of(own[place], True, fields, term, system, role)
            _evaluate_polynomial(fields, size, low, high)
            for state in range(n_states):
                _sum_out(exponents[state], products[state], fields[state], low, high)
                if place % FOLD_AFTER == FOLD_AFTER - 1:
                    fold(exponents[state], products[state])
        _mean_product(out, exponents, products, scratch, size, low, high)
        accumulate(sums[t], out, block)
        role[target] = _OUTSIDE
        role[own] = _OUTSIDE
