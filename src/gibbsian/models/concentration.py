"""Concentrations from mean lengths: solve ``A_d(kappa) = R`` for the von Mises-Fisher distribution.

``R`` is the length of the mean of unit vectors, and kappa the maximum likelihood estimate to machine precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.models import bessel


def concentration(length: Any, dimension: int, largest: float = np.inf) -> np.ndarray:
    """Return the kappa whose mean length is `length`.

    Parameters
    ----------
    length : array-like
        Mean lengths R, from 0 to 1.
    dimension : int
        d, the number of columns.
    largest : float
        Concentrations are held at this value; R = 1 has no finite one.
    """
    lengths = np.asarray(length, dtype=np.float64)
    if not ((lengths >= 0).all() and (lengths <= 1 + 1e-9).all()):
        raise ArgumentError("mean lengths must lie between 0 and 1", "were the rows scaled to unit norm?")
    flat = np.minimum(np.atleast_1d(lengths).ravel(), 1.0)
    # beyond this length the answer is at least `largest`: the lower bound of the bracket says so without iterating
    kappas = np.full(flat.shape, largest)
    low, high = bracket(np.where(flat < 1.0, flat, 0.0), dimension)
    inside = (flat < 1.0) & (low < largest)
    r = flat[inside]
    start = r * (dimension - r**2) / ((1.0 - r) * (1.0 + r))  # Banerjee et al. 2005
    kappas[inside] = bessel.solve(r, start, low[inside], high[inside], dimension)
    return np.minimum(kappas, largest).reshape(lengths.shape)


def bracket(length: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a lower and an upper bound of kappa (Amos 1974, inverted as in Hornik and Gruen 2014)."""
    v = dimension / 2.0 - 1.0
    return _inverse_amos(length, v, v + 2.0), _inverse_amos(length, v + 0.5, v + 1.5)


def _inverse_amos(length: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    """The t at which ``t / (alpha + sqrt(t^2 + beta^2))`` equals the length."""
    rest = (1.0 - length) * (1.0 + length)
    return length / rest * (alpha + np.sqrt((alpha * length) ** 2 + beta**2 * rest))
