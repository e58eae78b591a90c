"""Ratios and logarithms of modified Bessel functions, one value at a time.

The mathematics is told in `gibbsian.models.mixtures.von_mises_fisher`.
"""

import math

import numpy as np

from gibbsian.backends.numba import njit

# The power series is used while kappa^2 / 4 <= v + 1: its terms then fall faster than 1/k!.
_SERIES_TERMS = 24


@njit(cache=True)
def _excess_of_series(quarter, b):
    """0F1(; b; quarter) - 1 for quarter <= b, without the leading 1 so that small values keep their digits."""
    term = 1.0
    total = 0.0
    for k in range(1, _SERIES_TERMS):
        term *= quarter / (k * (b + k - 1.0))
        total += term
    return total


@njit(cache=True)
def _polynomial(coefficients, x):
    value = 0.0
    for j in range(coefficients.size - 1, -1, -1):
        value = value * x + coefficients[j]
    return value


@njit(cache=True)
def _uniform_expansion(kappa, v, u, q, stirling):
    """At a large order: I_{v+1}/I_v, one minus it, and log 0F1(; v + 1; kappa^2/4)."""
    z = kappa / v
    s = math.hypot(1.0, z)
    t = 1.0 / s
    above = z * z / (1.0 + s)  # s - 1 without cancellation
    big_u = _polynomial(u, t)
    correction = z * t * _polynomial(q, t) / big_u
    ratio = z / (1.0 + s) + correction
    complement = (1.0 - 1.0 / (z + s)) / z - correction if z > 1.0 else 1.0 - ratio
    logarithm = v * (above - math.log1p(above / 2.0)) - 0.5 * math.log1p(above) + stirling + math.log(big_u)
    return ratio, complement, logarithm


@njit(cache=True)
def _one(kappa, order, steps, u, q, stirling):
    quarter = kappa * kappa / 4.0
    if quarter <= order + 1.0:
        excess = _excess_of_series(quarter, order + 1.0)
        ratio = kappa / (2.0 * (order + 1.0)) * (1.0 + _excess_of_series(quarter, order + 2.0)) / (1.0 + excess)
        return ratio, 1.0 - ratio, math.log1p(excess)
    ratio, complement, logarithm = _uniform_expansion(kappa, order + steps, u, q, stirling)
    for step in range(steps - 1, -1, -1):
        v = order + step + 1.0
        share = 2.0 * v / kappa
        # I_v / I_{v-1} from I_{v+1} / I_v: stable downwards, and so is one minus it
        complement = (share - complement) / (share + ratio)
        ratio = 1.0 / (share + ratio)
        if ratio < 0.5:
            complement = 1.0 - ratio
        logarithm += math.log(kappa / (2.0 * v * ratio))
    return ratio, complement, logarithm


@njit(cache=True)
def bessel_values(kappas, order, steps, u, q, stirling):
    """For each kappa: I_{order+1}/I_order, one minus it, and log 0F1(; order + 1; kappa^2/4)."""
    values = np.empty((3, kappas.size))
    for i in range(kappas.size):
        values[0, i], values[1, i], values[2, i] = _one(kappas[i], order, steps, u, q, stirling)
    return values


@njit(cache=True)
def newton_concentrations(lengths, starts, low, high, most_steps, order, steps, u, q, stirling):
    """For each mean length the kappa with ``A(kappa) = length``, between `low` and `high`, by Newton's method.

    A is concave, so every step lands below the root and the next ones climb: not climbing is rounding.
    """
    kappas = np.empty(lengths.size)
    for i in range(lengths.size):
        kappa = starts[i]
        for step in range(most_steps):
            if kappa <= 0.0:
                break
            ratio, complement, _ = _one(kappa, order, steps, u, q, stirling)
            slope = complement * (2.0 - complement) - (2.0 * order + 1.0) * ratio / kappa
            if slope <= 0.0:  # A rises everywhere: at this kappa its slope is below rounding
                break
            # between whichever of the pairs (A, R) and (1 - A, 1 - R) is small
            gap = ratio - lengths[i] if lengths[i] < 0.5 else (1.0 - lengths[i]) - complement
            new = min(max(kappa - gap / slope, low[i]), high[i])
            if step > 0 and new <= kappa:
                break
            kappa = new
        kappas[i] = kappa
    return kappas
