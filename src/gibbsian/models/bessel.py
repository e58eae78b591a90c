r"""Bessel functions as the von Mises-Fisher distribution needs them, finite in any dimension and at any concentration.

On the unit sphere of R^d the distribution ``exp(kappa mu.x) / Z`` has, relative to the uniform one,
``Z = 0F1(; d/2; kappa^2/4)``, and its mean length is ``A_d(kappa) = I_{d/2}(kappa) / I_{d/2-1}(kappa)``. Neither ever
needs a Bessel function itself, which would overflow; both are computed together:

- small kappa (``kappa^2 <= 4 (v + 1)`` with ``v = d/2 - 1``): the power series of 0F1, all of whose terms are positive;
- else the uniform (Debye) expansion at order ``v >= 30`` (Abramowitz and Stegun 9.7.7 and 9.7.9; Olver 1974). With
  ``z = kappa/v``, ``s = sqrt(1 + z^2)``, ``t = 1/s`` the leading terms combine with Stirling's formula to

      log 0F1 = v ((s - 1) - log((1 + s)/2)) - log(s)/2 + [log Gamma's remainder + log U],   U = sum_k u_k(t) / v^k,
      A       = z (1/(1 + s) + t Q/U),    Q = sum_k q_k(t) / v^k,   q_k = -t u_{k-1}/2 - t^2 u'_{k-1},

  in which nothing cancels (Q comes from the expansion of the derivative, whose polynomials differ from u_k by
  (1 - t^2) q_k);
- from there down to the order asked for by ``1/A_{v-1} = 2v/kappa + A_v``, which is stable in this direction.

``1 - A`` is carried along, because at large kappa it is the number that matters: A ~ 1 - (d-1)/(2 kappa). A and log Z
come to about 1e-15, 1 - A to about 1e-12, relative to their size.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.numba.bessel import bessel_values, newton_concentrations
from gibbsian.errors import ArgumentError

LEAST_ORDER = 30.0  # of the uniform expansion
TERMS = 13  # of the uniform expansion: the first left out is below 1e-17 at the least order
MOST_STEPS = 60  # of Newton's method; five are usual
# B_2k / (2k (2k - 1)): the remainder of Stirling's formula is their sum over v^(2k - 1)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


class BesselValues(NamedTuple):
    """What one evaluation gives, each of the shape of kappa.

    Parameters
    ----------
    ratio : array
        A_d(kappa), its mean length.
    complement : array
        1 - A_d(kappa), with digits of its own where A is close to one.
    log_partition : array
        log Z relative to the uniform distribution on the sphere.
    """

    ratio: np.ndarray
    complement: np.ndarray
    log_partition: np.ndarray


def evaluate(kappa: Any, dimension: int) -> BesselValues:
    """Return ``A_d(kappa)``, ``1 - A_d(kappa)`` and ``log Z`` for each concentration.

    Parameters
    ----------
    kappa : array-like
        Concentrations, zero or positive.
    dimension : int
        d, the number of columns.
    """
    kappas = np.asarray(kappa, dtype=np.float64)
    if not (np.isfinite(kappas).all() and (kappas >= 0).all()):
        raise ArgumentError("kappa must be finite and not negative")
    order, steps, u, q, stirling = _expansion(_checked_dimension(dimension))
    values = bessel_values(kappas.ravel(), order, steps, u, q, stirling)
    return BesselValues(*(row.reshape(kappas.shape) for row in values))


def solve(length: np.ndarray, start: np.ndarray, low: np.ndarray, high: np.ndarray, dimension: int) -> np.ndarray:
    """Return the kappa between `low` and `high` with ``A_d(kappa) = length``, by Newton's method from `start`."""
    return newton_concentrations(length, start, low, high, MOST_STEPS, *_expansion(_checked_dimension(dimension)))


def mean_length(kappa: Any, dimension: int) -> np.ndarray:
    """Return ``A_d(kappa) = I_{d/2}(kappa) / I_{d/2-1}(kappa)``, the length of the mean."""
    return evaluate(kappa, dimension).ratio


def log_partition(kappa: Any, dimension: int) -> np.ndarray:
    """Return ``log 0F1(; d/2; kappa^2/4)``: log Z relative to the uniform distribution on the sphere."""
    return evaluate(kappa, dimension).log_partition


def log_sphere_area(dimension: int) -> float:
    """Return the logarithm of the area of the unit sphere in R^d: of a density's normalisation by area."""
    half = _checked_dimension(dimension) / 2.0
    return float(math.log(2.0) + half * math.log(math.pi) - math.lgamma(half))


def _checked_dimension(dimension: int) -> int:
    if int(dimension) != dimension or dimension < 1:
        raise ArgumentError("must be a positive whole number", argument="dimension", value=dimension)
    return int(dimension)


@lru_cache(maxsize=64)
def _expansion(dimension: int) -> tuple[float, int, np.ndarray, np.ndarray, float]:
    """Everything that depends on the dimension only: order, steps down to it, U and Q as polynomials in t."""
    order = dimension / 2.0 - 1.0
    steps = max(0, math.ceil(LEAST_ORDER - order))
    v = order + steps
    table_u, table_q = _debye_polynomials()
    powers = v ** -np.arange(TERMS + 1.0)
    stirling = sum(b / v ** (2 * k + 1) for k, b in enumerate(_STIRLING))
    return order, steps, powers @ table_u, powers @ table_q, stirling


@lru_cache(maxsize=1)
def _debye_polynomials() -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of u_k and q_k (rows) by powers of t (columns), from the exact recurrence.

    ``u_{k+1} = t^2 (1 - t^2) u_k' / 2 + (1/8) int_0^t (1 - 5 w^2) u_k dw`` (Abramowitz and Stegun 9.3.10).
    """
    width = 3 * TERMS + 1
    u = [[Fraction(1)] + [Fraction(0)] * (width + 2)]
    q = [[Fraction(0)] * (width + 3)]
    for _ in range(TERMS):
        old, new, slope = u[-1], [Fraction(0)] * (width + 3), [Fraction(0)] * (width + 3)
        for j, c in enumerate(old[:width]):
            if c:
                new[j + 1] += c * Fraction(j, 2) + c / (8 * (j + 1))
                new[j + 3] -= c * Fraction(j, 2) + 5 * c / (8 * (j + 3))
                slope[j + 1] -= c * (Fraction(1, 2) + j)
        u.append(new)
        q.append(slope)
    return np.array(u, dtype=np.float64), np.array(q, dtype=np.float64)
