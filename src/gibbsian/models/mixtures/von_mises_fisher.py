r"""Mixtures of von Mises-Fisher distributions on the unit sphere (YK15, "Mixture of Von Mises Fisher").

``P(x | a) = exp(kappa_a m_a . x) / Z(kappa_a)`` with ``|x| = |m_a| = 1``. Between unit vectors the exponent of a
Gaussian, ``-|x - m|^2 / (2 sigma^2)``, is ``(x.m - 1) / sigma^2``: kappa is 1/sigma^2. S(x) = x, which may be sparse.

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
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from gibbsian.backends.classes import ClassSums
from gibbsian.backends.numba.bessel import bessel_values, newton_concentrations
from gibbsian.errors import ArgumentError, DataError
from gibbsian.models.family import FAMILIES
from gibbsian.models.file_parts import COUNT, MOST, PartsInFile, Plain, reals
from gibbsian.models.mixtures.base import (
    Array,
    ExponentialMixtureFamily,
    class_weights,
    empty_class_warning,
    empty_classes,
    log_shares,
    require_all_cells,
    scale_directions,
    side_by_side,
    tangents,
    weight_directions,
)
from gibbsian.models.variables import Variables

# Rows whose norm differs from one by less count as unit vectors.
UNIT_TOLERANCE = 1e-6
LEAST_ORDER = 30.0  # of the uniform expansion
TERMS = 13  # of the uniform expansion: the first left out is below 1e-17 at the least order
MOST_STEPS = 60  # of Newton's method; five are usual
# B_2k / (2k (2k - 1)): the remainder of Stirling's formula is their sum over v^(2k - 1)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


class VonMisesFisherParts(NamedTuple):
    """The share of each class, its mean direction, of unit norm, and its concentration kappa (YK15's lambda)."""

    weights: Array
    means: Array
    concentrations: Array


@FAMILIES.register("vmf-mixture", classes=True)
@dataclass(frozen=True)
class VonMisesFisherMixtureFamily(ExponentialMixtureFamily):
    """Mixtures of von Mises-Fisher distributions; a row of norm zero has no direction and tells nothing.

    Parameters
    ----------
    n_components : int
        k, the number of classes.
    n_columns : int
        d, the number of columns.
    kappa : "free", "tied" or float, default="free"
        One concentration learned for each class, one for all, or a fixed one.
    free_weights : bool, default=True
        Learn the weights of the classes; otherwise they are equal.
    largest : float, default=1e8
        Concentrations are held at this value: the likelihood of a class of one direction has no bound.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models import VonMisesFisherMixtureFamily
    >>> family = VonMisesFisherMixtureFamily(n_components=1, n_columns=3)
    >>> rows, classes = family.sample(family.join([1.0], [1.0, 0.0, 0.0], [50.0]), 1000, np.random.default_rng(0))
    >>> rows.mean(axis=0).round(1)
    array([1., 0., 0.])
    """

    n_components: int
    n_columns: int
    kappa: float | str = "free"
    free_weights: bool = True
    largest: float = 1e8
    parts: ClassVar[type[Any]] = VonMisesFisherParts
    parts_in_file: ClassVar[PartsInFile] = {
        "n_components": COUNT,
        "n_columns": Plain((int,), 1, MOST, size="n"),
        "theta": reals("parameters"),
    }

    @property
    def columns(self) -> Variables:
        """Real numbers."""
        return Variables.reals(self.n_columns)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the weights, the mean directions and the concentrations."""
        k = self.n_components
        return (k,), (k, self.n_columns), (k,)

    @property
    def n_free(self) -> int:
        """Number of parameters: d - 1 for a direction, one for a concentration, k - 1 for the weights."""
        k = self.n_components
        kappas = {"free": k, "tied": 1}.get(str(self.kappa), 0)
        return k * (self.n_columns - 1) + kappas + (k - 1 if self.free_weights else 0)

    def free_directions(self, theta: Array) -> Array:
        """Return the directions of the weights, of the means on the sphere and of the concentrations."""
        k = self.n_components
        means = tangents(list(self.split(theta).means))
        return side_by_side(weight_directions(k, self.free_weights), means, scale_directions(k, self.kappa))

    def normalised(self, theta: Array) -> Array:
        """Return theta with mean directions of unit norm."""
        weights, means, concentrations = self.split(theta)
        return self.join(weights, unit_rows(means), concentrations)

    def require_distribution(self, theta: Array) -> None:
        """Raise `ArgumentError` unless weights add up to one and directions have unit norm."""
        super().require_distribution(theta)
        _, means, concentrations = self.split(theta)
        if not np.isclose(np.square(means).sum(axis=1), 1.0, rtol=1e-6).all() or (concentrations < 0).any():
            raise ArgumentError("must hold directions of unit norm and concentrations from zero on", argument="theta")

    # -- the density --------------------------------------------------------------------------------------------------
    def points(self, x: Any, mask: Array | None, origin: Array) -> Any:
        """Return the rows, which are unit vectors."""
        require_all_cells(mask)
        return x

    def natural(self, theta: Array, by_cell: bool) -> tuple[Array, Array]:
        """Return eta = kappa m and the offsets, for densities by area."""
        weights, means, concentrations = self.split(theta)
        normaliser = log_partition(concentrations, self.n_columns) + log_sphere_area(self.n_columns)
        return concentrations[:, None] * means, log_shares(weights) - normaliser

    def log_joint(self, theta: Array, x: Any, mask: Array | None = None) -> Array:
        """Return ``log P(x, class)``; a row without direction leaves each class at its weight."""
        scores = super().log_joint(theta, x, mask)
        scores[without_direction(x)] = log_shares(self.split(theta).weights)
        return scores

    def peak(self, eta: Array) -> Array:
        """Return the direction of largest density under each row of natural parameters."""
        return unit_rows(eta)

    def sample(self, theta: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw unit rows and their classes."""
        parts, classes = self.split(theta), self.draw_classes(theta, n, rng)
        rows = np.empty((n, self.n_columns))
        for a in range(self.n_components):
            of_class = np.flatnonzero(classes == a)
            rows[of_class] = draw_directions(parts.means[a], float(parts.concentrations[a]), len(of_class), rng)
        return rows, classes

    # -- learning -----------------------------------------------------------------------------------------------------
    def maximise(self, sums: ClassSums, theta: Array | None, floor: float = 0.0) -> Array:
        """Return weights, directions and concentrations of the classes; the first step pools the concentrations."""
        # relative to the largest class, so that squares stay finite whatever the unit of the weights
        mass, values = sums.mass / sums.mass.max(), sums.sums / sums.mass.max()
        empty = empty_classes(mass)
        lengths = np.where(empty, 0.0, np.sqrt(np.einsum("ij,ij->i", values, values)))
        means, lost = values / np.where(lengths > 0, lengths, 1.0)[:, None], lengths <= 0
        if lost.any():  # a sum of length zero has no direction, so the old one stays (any is as good as another)
            means[lost] = np.eye(1, self.n_columns) if theta is None else self.split(theta).means[lost]
        kappas = self._concentrations(mass, lengths, empty, theta)
        return self.join(class_weights(mass, self.free_weights), means, kappas)

    def _concentrations(self, mass: Array, lengths: Array, empty: Array, theta: Array | None) -> Array:
        """The kappa of each class of greatest likelihood."""
        if not isinstance(self.kappa, str):
            return np.full(len(mass), float(self.kappa))
        if self.kappa == "tied" or theta is None:
            pooled = min(lengths.sum() / mass.sum(), 1.0)
            return np.full(len(mass), concentration(pooled, self.n_columns, self.largest))
        found = concentration(np.minimum(lengths / np.where(empty, 1.0, mass), 1.0), self.n_columns, self.largest)
        return np.where(empty, self.split(theta).concentrations, found)

    def warning(self, theta: Array, mass: Array, floor: float) -> str:
        """Say which class has gathered on one direction or has lost all its rows."""
        held = (self.split(theta).concentrations >= self.largest) & isinstance(self.kappa, str) & ~empty_classes(mass)
        if held.any():
            number = int(np.flatnonzero(held)[0])
            return f"class {number} has gathered on one direction: its concentration was held at kappa_max"
        return empty_class_warning(mass)


# -- directions -------------------------------------------------------------------------------------------------------
def unit_rows(rows: Any, scale: bool = True) -> Any:
    """Return the rows scaled to unit norm, dense or CSR; with ``scale=False`` only check that they are.

    Rows of norm zero have no direction and stay zero: `without_direction` finds them.
    """
    rows = sparse.csr_array(rows) if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
    # dividing by the largest entry first keeps squares of tiny and huge numbers finite
    largest = _largest_entries(rows)
    largest[largest == 0] = 1.0
    scaled = _divide(rows, largest)
    norms = np.sqrt(scaled.power(2).sum(axis=1) if sparse.issparse(scaled) else np.einsum("ij,ij->i", scaled, scaled))
    if scale:
        return _divide(scaled, np.where(norms > 0, norms, 1.0))
    with np.errstate(over="ignore"):
        norms = norms * largest
    off = np.flatnonzero((np.abs(norms - 1.0) > UNIT_TOLERANCE) & (norms > 0))
    if len(off):
        raise DataError(f"row {off[0]} has norm {norms[off[0]]:.6g}, not 1", "set `normalize=True`")
    return rows


def without_direction(rows: Any) -> np.ndarray:
    """Return the numbers of the rows of norm zero, which tell nothing about directions."""
    return np.flatnonzero(_largest_entries(rows if sparse.issparse(rows) else np.asarray(rows)) == 0)


def draw_directions(mean: np.ndarray, kappa: float, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw from one component: the cosine by rejection (Wood 1994), the rest uniformly around the mean direction."""
    dimension = len(mean)
    excess = _sample_one_minus_cosine(kappa, dimension, n_samples, rng)
    around = rng.normal(size=(n_samples, dimension))
    around -= np.outer(around @ mean, mean)
    around /= np.sqrt(np.einsum("ij,ij->i", around, around))[:, None]
    sine = np.sqrt(excess * (2.0 - excess))
    rows = (1.0 - excess)[:, None] * mean + sine[:, None] * around
    return rows / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]


def _sample_one_minus_cosine(kappa: float, dimension: int, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw ``1 - m.x``, which keeps its digits at large kappa where the cosine itself rounds to one.

    Wood's envelope with ``b = (d-1) / (2 kappa + sqrt(4 kappa^2 + (d-1)^2))`` and ``Z ~ Beta((d-1)/2, (d-1)/2)`` is
    ``cosine = (1 - (1+b) Z) / (1 - (1-b) Z)``, so ``1 - cosine = 2 b Z / (1 - (1-b) Z)``.
    """
    freedom = dimension - 1.0
    b = freedom / (2.0 * kappa + np.hypot(2.0 * kappa, freedom))
    excess_at_mode = 2.0 * b / (1.0 + b)
    log_rest_at_mode = np.log(4.0 * b) - 2.0 * np.log1p(b)  # log(1 - cosine_at_mode^2)
    drawn = np.empty(n_samples)
    waiting = np.arange(n_samples)
    while len(waiting):
        z = rng.beta(freedom / 2.0, freedom / 2.0, size=len(waiting))
        excess = 2.0 * b * z / (1.0 - (1.0 - b) * z)
        tilt = kappa * (excess_at_mode - excess)
        # 1 - cosine at the mode times cosine, and its value at the mode, as logarithms
        envelope = freedom * (np.log(excess_at_mode + excess * (1.0 - excess_at_mode)) - log_rest_at_mode)
        accepted = tilt + envelope >= np.log1p(-rng.random(len(waiting)))
        drawn[waiting[accepted]] = excess[accepted]
        waiting = waiting[~accepted]
    return drawn


def _largest_entries(rows: Any) -> np.ndarray:
    largest = np.abs(rows).max(axis=1)
    return np.array(largest.toarray() if sparse.issparse(largest) else largest, dtype=np.float64).ravel()


def _divide(rows: Any, divisors: np.ndarray) -> Any:
    if not sparse.issparse(rows):
        return rows / divisors[:, None]
    return sparse.csr_array(
        (rows.data / np.repeat(divisors, np.diff(rows.indptr)), rows.indices, rows.indptr), rows.shape
    )


# -- the concentration and its Bessel functions ------------------------------------------------------------------------
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


def bessel(kappa: Any, dimension: int) -> BesselValues:
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


def mean_length(kappa: Any, dimension: int) -> np.ndarray:
    """Return ``A_d(kappa) = I_{d/2}(kappa) / I_{d/2-1}(kappa)``, the length of the mean."""
    return bessel(kappa, dimension).ratio


def log_partition(kappa: Any, dimension: int) -> np.ndarray:
    """Return ``log 0F1(; d/2; kappa^2/4)``: log Z relative to the uniform distribution on the sphere."""
    return bessel(kappa, dimension).log_partition


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
    low, high = concentration_bracket(np.where(flat < 1.0, flat, 0.0), dimension)
    inside = (flat < 1.0) & (low < largest)
    r = flat[inside]
    start = r * (dimension - r**2) / ((1.0 - r) * (1.0 + r))  # Banerjee et al. 2005
    kappas[inside] = newton_concentrations(
        r, start, low[inside], high[inside], MOST_STEPS, *_expansion(_checked_dimension(dimension))
    )
    return np.minimum(kappas, largest).reshape(lengths.shape)


def concentration_bracket(length: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a lower and an upper bound of kappa (Amos 1974, inverted as in Hornik and Gruen 2014)."""
    v = dimension / 2.0 - 1.0
    return _inverse_amos(length, v, v + 2.0), _inverse_amos(length, v + 0.5, v + 1.5)


def _inverse_amos(length: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    """The t at which ``t / (alpha + sqrt(t^2 + beta^2))`` equals the length."""
    rest = (1.0 - length) * (1.0 + length)
    return length / rest * (alpha + np.sqrt((alpha * length) ** 2 + beta**2 * rest))
