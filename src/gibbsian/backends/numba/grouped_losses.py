"""Losses of conditional costs of variables with several values, fused with their derivatives.

Variable i has the columns from ``columns[i]`` to ``columns[i + 1]``, one for each value, of which that of its present
value holds zero; the conditional probability of a value with cost d is ``exp(-d)`` over the sum of all. Each kernel
takes ``costs`` (states x columns) and ``shares`` (one per state), returns the weighted sum of losses and overwrites the
costs with the weighted derivatives. It works on one thread and leaves the interpreter free. With two values each is
the loss in `flip_losses` of the same name's objective.
"""

import math

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import VECTOR_MATH, fast_exp

# As in `flip_losses`: where exp(-d/2) would pass exp(300) it goes on as a straight line.
_LARGEST_EXPONENT = 300.0


@njit(cache=True)
def _least(costs):
    least = costs[0]
    for a in range(1, costs.size):
        least = min(least, costs[a])
    return least


@njit(cache=True, fastmath=VECTOR_MATH)
def _exponentials(costs, least):
    """Overwrite costs with ``exp(least - d)``; return their sum."""
    for a in range(costs.size):
        costs[a] = fast_exp(least - costs[a])
    total = 0.0
    for a in range(costs.size):
        total += costs[a]
    return total


@njit(cache=True, nogil=True)
def softmax(costs, shares, columns):
    """Pseudolikelihood: ``log sum_a exp(-d_a)``, which is ``-log P(x_i | the others)``."""
    value = 0.0
    for m in range(len(costs)):
        row = 0.0
        for i in range(columns.size - 1):
            group = costs[m, columns[i] : columns[i + 1]]
            least = _least(group)
            total = _exponentials(group, least)
            row += math.log(total) - least
            scale = -shares[m] / total
            for a in range(group.size):
                group[a] *= scale
        value += shares[m] * row
    return value


@njit(cache=True, nogil=True)
def squared_distance(costs, shares, columns):
    """Ratio matching: ``1/2 sum_a (1[a = x_i] - p_a)^2``, with p the conditional probabilities.

    With p_0 that of the present value this is ``1/2 - p_0 + 1/2 sum_a p_a^2``, so that nobody has to say which it is:
    p_0 is one over the sum of ``exp(-d)``.
    """
    value = 0.0
    for m in range(len(costs)):
        row = 0.0
        for i in range(columns.size - 1):
            group = costs[m, columns[i] : columns[i + 1]]
            least = _least(group)
            total = _exponentials(group, least)
            present = math.exp(least) / total
            squares = 0.0
            for a in range(group.size):
                group[a] /= total
                squares += group[a] * group[a]
            row += 0.5 - present + 0.5 * squares
            for a in range(group.size):
                group[a] *= shares[m] * (squares - group[a] - present)
        value += shares[m] * row
    return value


@njit(cache=True, fastmath=VECTOR_MATH)
def _flows(costs, share, losses):
    for k in range(costs.size):
        exponent = -0.5 * costs[k]
        e = share * fast_exp(min(exponent, _LARGEST_EXPONENT))
        losses[k] += e * (1.0 + max(exponent - _LARGEST_EXPONENT, 0.0))
        costs[k] = -0.5 * e


@njit(cache=True, nogil=True)
def half_exponentials(costs, shares, columns):
    """Minimum probability flow: ``sum_a exp(-d_a / 2)`` over the other values, straight where it would overflow."""
    losses = np.zeros(costs.shape[1])
    total = 0.0
    for m in range(len(costs)):
        _flows(costs[m], shares[m], losses)
        total += shares[m]
    # the present value of each variable has added exp(0) in every row
    return losses.sum() - (columns.size - 1) * total
