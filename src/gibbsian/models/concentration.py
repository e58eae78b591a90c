"""Concentrations from mean lengths: solve ``A_d(kappa) = R`` for the von Mises-Fisher distribution.

``R`` is the length of the mean of unit vectors. The approximations are those of the literature, kept for comparison and
for speed; ``"newton"`` is the maximum likelihood estimate to machine precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.models import bessel


def concentration(length: Any, dimension: int, method: str = "newton", largest: float = np.inf) -> np.ndarray:
    """Return the kappa whose mean length is `length`.

    Parameters
    ----------
    length : array-like
        Mean lengths R, from 0 to 1.
    dimension : int
        d, the number of columns.
    method : str
        ``"banerjee"`` (``R (d - R^2) / (1 - R^2)``, Banerjee et al. 2005), ``"sra"`` (two Newton steps from there, Sra
        2012), ``"song"`` (two Halley steps, Song et al. 2012) or ``"newton"`` (to machine precision).
    largest : float
        Concentrations are held at this value; R = 1 has no finite one.
    """
    if method not in METHODS:
        raise ArgumentError("is not known", f"use one of {', '.join(METHODS)}", argument="kappa_method", value=method)
    lengths = np.asarray(length, dtype=np.float64)
    if not ((lengths >= 0).all() and (lengths <= 1 + 1e-9).all()):
        raise ArgumentError("mean lengths must lie between 0 and 1", "were the rows scaled to unit norm?")
    flat = np.minimum(np.atleast_1d(lengths).ravel(), 1.0)
    # beyond this length the answer is at least `largest`: the lower bound of the bracket says so without iterating
    kappas = np.full(flat.shape, largest)
    inside = (flat < 1.0) & (bracket(np.where(flat < 1.0, flat, 0.0), dimension)[0] < largest)
    kappas[inside] = METHODS[method](flat[inside], dimension)
    return np.minimum(kappas, largest).reshape(lengths.shape)


def bracket(length: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a lower and an upper bound of kappa (Amos 1974, inverted as in Hornik and Gruen 2014)."""
    v = dimension / 2.0 - 1.0
    return _inverse_amos(length, v, v + 2.0), _inverse_amos(length, v + 0.5, v + 1.5)


def mean_length_slope(kappa: np.ndarray, values: bessel.BesselValues, dimension: int) -> np.ndarray:
    """Return ``A'(kappa) = 1 - A^2 - (d - 1) A / kappa`` from an evaluation at kappa > 0."""
    c = values.complement
    return c * (2.0 - c) - (dimension - 1.0) * values.ratio / kappa


# -- methods ----------------------------------------------------------------------------------------------------------
def _banerjee(length: np.ndarray, dimension: int) -> np.ndarray:
    return length * (dimension - length**2) / ((1.0 - length) * (1.0 + length))


def _sra(length: np.ndarray, dimension: int) -> np.ndarray:
    kappa = _banerjee(length, dimension)
    for _ in range(2):
        kappa = _newton_step(kappa, length, dimension)
    return kappa


def _song(length: np.ndarray, dimension: int) -> np.ndarray:
    """Two Halley steps: Newton's, corrected by the curvature."""
    kappa = _banerjee(length, dimension)
    for _ in range(2):
        positive = np.maximum(kappa, np.finfo(float).tiny)
        values = bessel.evaluate(positive, dimension)
        slope = mean_length_slope(positive, values, dimension)
        curvature = -2 * values.ratio * slope - (dimension - 1) * (slope - values.ratio / positive) / positive
        gap = _gap(values, length)
        kappa = np.maximum(kappa - 2 * gap * slope / (2 * slope**2 - gap * curvature), 0.0)
    return kappa


def _newton(length: np.ndarray, dimension: int) -> np.ndarray:
    low, high = bracket(length, dimension)
    return bessel.solve(length, _banerjee(length, dimension), low, high, dimension)


def _newton_step(kappa: np.ndarray, length: np.ndarray, dimension: int) -> np.ndarray:
    positive = np.maximum(kappa, np.finfo(float).tiny)
    values = bessel.evaluate(positive, dimension)
    return np.maximum(kappa - _gap(values, length) / mean_length_slope(positive, values, dimension), 0.0)


def _gap(values: bessel.BesselValues, length: np.ndarray) -> np.ndarray:
    """A - R, taken between whichever of the two pairs (A, R) and (1 - A, 1 - R) is small."""
    return np.where(length < 0.5, values.ratio - length, (1.0 - length) - values.complement)


def _inverse_amos(length: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    """The t at which ``t / (alpha + sqrt(t^2 + beta^2))`` equals the length."""
    rest = (1.0 - length) * (1.0 + length)
    return length / rest * (alpha + np.sqrt((alpha * length) ** 2 + beta**2 * rest))


METHODS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "banerjee": _banerjee,
    "newton": _newton,
    "song": _song,
    "sra": _sra,
}
