"""Losses of conditional costs, fused with their derivatives.

Each kernel takes ``costs`` (states x variables) and ``shares`` (one per state), returns the weighted sum of losses and
overwrites the costs with the weighted derivatives. It works on one thread and leaves the interpreter free. The costs
may lie in memory state by state or, as sparse models make them, variable by variable: loops run along memory.
"""

import math
from collections.abc import Callable

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import MAX_FACTORS, VECTOR_MATH, fast_exp, fast_exp2, product

_FEWER_FACTORS = 100  # and this many below the largest float
_TOGETHER = 10  # rows of the same share whose factors are multiplied before logarithms are taken
_ZERO, _ONE, _MINUS_LOG2_E = np.float32(0.0), np.float32(1.0), np.float32(-1.4426950408889634)
# Where exp(-d/2) would pass exp(300) it goes on as a straight line: squares and sums of what it gives stay finite.
_LARGEST_EXPONENT = 300.0


@njit(cache=True, fastmath=True)
def _total(values):
    total = values.dtype.type(0.0)
    for i in range(values.size):
        total += values[i]
    return total


# without error_model="numpy" a check for division by zero would keep the loop from vectorising
@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _logistic_row(costs, share, factors, excess):
    """Overwrite one row with ``-share sigmoid(-d)``; leave ``1 + exp(-|d|)`` and ``max(-d, 0)`` in the buffers."""
    for i in range(costs.size):
        d = costs[i]
        e = fast_exp(-abs(d))
        factors[i] = 1.0 + e
        excess[i] = max(-d, 0.0)
        costs[i] = -share * (e if d > 0.0 else 1.0) / (1.0 + e)


@njit(cache=True, nogil=True)
def _logistic_by_state(costs, shares):
    n_states, n = costs.shape
    factors, excess = np.empty(n), np.empty(n)
    value = 0.0
    for m in range(n_states):
        _logistic_row(costs[m], shares[m], factors, excess)
        logarithms = 0.0
        for start in range(0, n, MAX_FACTORS):
            logarithms += math.log(product(factors[start : start + MAX_FACTORS]))
        value += shares[m] * (logarithms + _total(excess))
    return value


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _single_row(costs, share, factors, excess):
    """The same in single precision, with factors and excess of several rows together."""
    for i in range(costs.size):
        d = costs[i]
        e = fast_exp2(_MINUS_LOG2_E * abs(d))
        factors[i] *= _ONE + e
        excess[i] += max(-d, _ZERO)
        costs[i] = -share * (e if d > _ZERO else _ONE) / (_ONE + e)


@njit(cache=True, nogil=True)
def _single_by_state(costs, shares):
    n_states, n = costs.shape
    factors, excess = np.ones_like(costs[0]), np.zeros_like(costs[0])
    value, together = 0.0, 0
    for m in range(n_states):
        _single_row(costs[m], np.float32(shares[m]), factors, excess)
        together += 1
        if together < _TOGETHER and m + 1 < n_states and shares[m + 1] == shares[m]:
            continue
        logarithms, most = 0.0, _FEWER_FACTORS // together
        for start in range(0, n, most):
            logarithms += math.log(product(factors[start : start + most]))
        value += shares[m] * (logarithms + _total(excess))
        together = 0
        for i in range(n):
            factors[i], excess[i] = _ONE, _ZERO
    return value


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _logistic_variable(costs, shares, products, sums):
    """The same for one variable of all states: gather the factors and the excess of each state."""
    for m in range(costs.size):
        d = costs[m]
        e = fast_exp(-abs(d))
        products[m] *= 1.0 + e
        sums[m] += max(-d, 0.0)
        costs[m] = -shares[m] * (e if d > 0.0 else 1.0) / (1.0 + e)


@njit(cache=True, nogil=True)
def _logistic_by_variable(costs, shares):
    n, n_states = costs.shape
    products, sums = np.ones(n_states), np.zeros(n_states)
    for start in range(0, n, MAX_FACTORS):
        for i in range(start, min(start + MAX_FACTORS, n)):
            _logistic_variable(costs[i], shares, products, sums)
        for m in range(n_states):
            sums[m] += math.log(products[m])
            products[m] = 1.0
    value = 0.0
    for m in range(n_states):
        value += shares[m] * sums[m]
    return value


def _lies_by_state(costs: np.ndarray) -> bool:
    """Whether long loops run over the variables of a state; a single variable is a loop over the states."""
    return costs.flags.c_contiguous and costs.shape[1] > 1


def logistic(costs: np.ndarray, shares: np.ndarray) -> float:
    """Pseudolikelihood: ``phi(d) = log(1 + exp(-d))`` (H06 eq. 7, Y18 eq. 7)."""
    if _lies_by_state(costs):
        return (_single_by_state if costs.dtype == np.float32 else _logistic_by_state)(costs, shares)
    return _logistic_by_variable(costs.T, shares)


def _along_memory(loop: Callable[..., float], costs: np.ndarray, shares: np.ndarray) -> float:
    """Call a loop whose cell (r, k) has the share ``row_shares[r] * column_shares[k]``."""
    ones = np.ones(costs.shape[1])
    return loop(costs, shares, ones) if _lies_by_state(costs) else loop(costs.T, ones, shares)


@njit(cache=True, nogil=True, fastmath=VECTOR_MATH, error_model="numpy")
def _squared_sigmoid(costs, row_shares, column_shares):
    n_rows, n_columns = costs.shape
    losses = np.zeros(n_columns)
    for r in range(n_rows):
        row, share = costs[r], row_shares[r]
        for k in range(n_columns):
            d = row[k]
            e = fast_exp(-abs(d))
            larger = 1.0 / (1.0 + e)
            smaller = e * larger
            g = smaller if d > 0.0 else larger
            loss = share * column_shares[k] * g * g
            losses[k] += loss
            row[k] = -2.0 * loss * (larger if d > 0.0 else smaller)
    return losses.sum()


def squared_sigmoid(costs: np.ndarray, shares: np.ndarray) -> float:
    """Ratio matching: ``phi(d) = sigmoid(-d)^2`` (Hyvarinen 2007, Y18 section 5)."""
    return _along_memory(_squared_sigmoid, costs, shares)


@njit(cache=True, nogil=True, fastmath=VECTOR_MATH, error_model="numpy")
def _half_exponential(costs, row_shares, column_shares):
    n_rows, n_columns = costs.shape
    losses = np.zeros(n_columns)
    for r in range(n_rows):
        row, share = costs[r], row_shares[r]
        for k in range(n_columns):
            exponent = -0.5 * row[k]
            e = share * column_shares[k] * fast_exp(min(exponent, _LARGEST_EXPONENT))
            losses[k] += e * (1.0 + max(exponent - _LARGEST_EXPONENT, 0.0))
            row[k] = -0.5 * e
    return losses.sum()


def half_exponential(costs: np.ndarray, shares: np.ndarray) -> float:
    """Minimum probability flow: ``phi(d) = exp(-d/2)``, continued as a straight line where it would overflow.

    The continued function is convex and smooth to first order, so that value and gradient belong together and a line
    search finds its way back. An infinite cost adds nothing.
    """
    return _along_memory(_half_exponential, costs, shares)
