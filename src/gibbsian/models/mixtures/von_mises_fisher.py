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
- from there down to the order of the distribution by ``1/A_{v-1} = 2v/kappa + A_v``, which is stable in this direction.

``1 - A`` is carried along, because at large kappa it is the number that matters: A ~ 1 - (d-1)/(2 kappa). A and log Z
come to about 1e-15, 1 - A to about 1e-12, relative to their size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, NamedTuple, cast

import numpy as np
from scipy import sparse

from gibbsian.arrays import Floats, Integers, Mask, States
from gibbsian.backends.classes import ClassSums
from gibbsian.backends.numba.bessel import bessel_values, newton_concentrations
from gibbsian.errors import ArgumentError, DataError
from gibbsian.models.base import FAMILIES
from gibbsian.models.file_parts import NUMBER, PartsInFile, Plain
from gibbsian.models.mixtures.base import (
    Points,
    SphericalMixtureFamily,
    class_warning,
    class_weights,
    draw_classes,
    empty_classes,
    log_class_weights,
    require_all_cells,
    tangents,
)

# Rows whose norm differs from one by less count as unit vectors.
UNIT_TOLERANCE = 1e-6
LEAST_ORDER = 30.0  # of the uniform expansion
TERMS = 13  # of the uniform expansion: the next one is below 1e-17 at LEAST_ORDER
MAX_STEPS = 60  # of Newton's method; five are usual
# B_2k / (2k (2k - 1)): the remainder of Stirling's formula is their sum over v^(2k - 1)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


class VonMisesFisherParts(NamedTuple):
    """The weight of each class, its mean direction, of unit norm, and its concentration kappa (YK15's lambda)."""

    weights: Floats
    means: Floats
    concentrations: Floats


@FAMILIES.register("vmf-mixture")
@dataclass(frozen=True)
class VonMisesFisherMixtureFamily(SphericalMixtureFamily[VonMisesFisherParts]):
    """Mixtures of von Mises-Fisher distributions; a row of norm zero is ignored.

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
        The maximum concentration, because the likelihood of a class of one direction is unbounded.

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
    parts_in_file: ClassVar[PartsInFile] = {
        **SphericalMixtureFamily.parts_in_file,
        "kappa": Plain((int, float, str)),
        "largest": NUMBER,
    }
    _parts = VonMisesFisherParts
    _mean_constraints: ClassVar[int] = 1

    @property
    def _scale(self) -> float | str:
        """The concentration: given, ``"free"`` or ``"tied"``."""
        return self.kappa

    def _mean_directions(self, theta: Floats) -> Floats:
        """Return the tangents of the sphere at the means."""
        return tangents(list(self.split(theta).means))

    def normalised(self, theta: Floats) -> Floats:
        """Return theta with mean directions of unit norm."""
        weights, means, concentrations = self.split(theta)
        return self.join(weights, unit_rows(means), concentrations)

    def require_distribution(self, theta: Floats) -> None:
        """Raise `ArgumentError` unless weights add up to one and directions have unit norm."""
        super().require_distribution(theta)
        _, means, concentrations = self.split(theta)
        if not np.isclose(np.square(means).sum(axis=1), 1.0, rtol=1e-6).all() or (concentrations < 0).any():
            raise ArgumentError("must hold directions of unit norm and concentrations from zero on", argument="theta")

    # -- the density --------------------------------------------------------------------------------------------------
    def points(self, x: States, mask: Mask | None, origin: Floats) -> Points:
        """Return the rows, which are unit vectors."""
        require_all_cells(mask)
        return cast("Points", x)

    def natural(self, theta: Floats, by_cell: bool) -> tuple[Floats, Floats]:
        """Return eta = kappa m and the offsets, for densities by area."""
        weights, means, concentrations = self.split(theta)
        normaliser = bessel(concentrations, self.n_columns).log_partition + log_sphere_area(self.n_columns)
        return concentrations[:, None] * means, log_class_weights(weights) - normaliser

    def log_joint(self, theta: Floats, x: States, mask: Mask | None = None) -> Floats:
        """Return ``log P(x, class)``; for a row without direction that is ``log P(class)``."""
        scores = super().log_joint(theta, x, mask)
        scores[without_direction(x)] = log_class_weights(self.split(theta).weights)
        return scores

    def peak(self, eta: Floats) -> Floats:
        """Return the direction of largest density under each row of natural parameters."""
        return unit_rows(eta)

    def sample(self, theta: Floats, n: int, rng: np.random.Generator) -> tuple[Floats, Integers]:
        """Draw unit rows and their classes."""
        parts, classes = self.split(theta), draw_classes(self.split(theta).weights, n, rng)
        rows = np.empty((n, self.n_columns))
        for a in range(self.n_components):
            of_class = np.flatnonzero(classes == a)
            rows[of_class] = draw_directions(parts.means[a], float(parts.concentrations[a]), len(of_class), rng)
        return rows, classes

    # -- learning -----------------------------------------------------------------------------------------------------
    def maximise(self, sums: ClassSums, theta: Floats | None, floor: float = 0.0) -> Floats:
        """Return weights, directions and concentrations of the classes; the first step pools the concentrations."""
        # relative to the largest class, so that squares stay finite for weights in any unit
        mass, values = sums.mass / sums.mass.max(), sums.sums / sums.mass.max()
        empty = empty_classes(mass)
        lengths = np.where(empty, 0.0, np.sqrt(np.einsum("ij,ij->i", values, values)))
        means, lost = values / np.where(lengths > 0, lengths, 1.0)[:, None], lengths <= 0
        if lost.any():  # a sum of length zero has no direction: keep the last one, or begin with any
            means[lost] = np.eye(1, self.n_columns) if theta is None else self.split(theta).means[lost]
        kappas = self._fitted_scales(lengths, mass, empty, theta, self._concentration)
        return self.join(class_weights(mass, self.free_weights), means, kappas)

    def _concentration(self, length: Floats) -> Floats:
        return concentration(np.minimum(length, 1.0), self.n_columns, self.largest)

    def warning(self, theta: Floats, mass: Floats, floor: float) -> str:
        """Return a warning about a class of one direction or an empty one; empty if there is none."""
        at_limit = (self.split(theta).concentrations >= self.largest) & isinstance(self.kappa, str)
        return class_warning(mass, at_limit, "has gathered on one direction: its concentration was held at kappa_max")


# -- directions -------------------------------------------------------------------------------------------------------
def unit_rows(rows: Points, scale: bool = True) -> Points:
    """Return the rows scaled to unit norm, dense or CSR; with ``scale=False`` only check their norms.

    Rows of norm zero have no direction and stay zero: `without_direction` finds them.
    """
    rows = sparse.csr_array(rows) if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
    # dividing by the largest entry first keeps squares of tiny and huge numbers finite
    largest = _largest_entries(rows)
    largest[largest == 0] = 1.0
    scaled = _divide(rows, largest)
    norms = np.sqrt((scaled**2).sum(axis=1) if sparse.issparse(scaled) else np.einsum("ij,ij->i", scaled, scaled))
    if scale:
        return _divide(scaled, np.where(norms > 0, norms, 1.0))
    with np.errstate(over="ignore"):
        norms = norms * largest
    off = np.flatnonzero((np.abs(norms - 1.0) > UNIT_TOLERANCE) & (norms > 0))
    if len(off):
        raise DataError(f"row {off[0]} has norm {norms[off[0]]:.6g}, not 1", "set `normalize=True`")
    return rows


def without_direction(rows: States) -> Integers:
    """Return the indices of the rows of norm zero."""
    return np.flatnonzero(_largest_entries(rows) == 0)


def draw_directions(mean: Floats, kappa: float, n_samples: int, rng: np.random.Generator) -> Floats:
    """Draw from one component: the cosine by rejection (Wood 1994), the rest uniformly around the mean direction."""
    dimension = len(mean)
    excess = _sample_one_minus_cosine(kappa, dimension, n_samples, rng)
    orthogonal = rng.normal(size=(n_samples, dimension))
    orthogonal -= np.outer(orthogonal @ mean, mean)
    orthogonal /= np.sqrt(np.einsum("ij,ij->i", orthogonal, orthogonal))[:, None]
    sines = np.sqrt(excess * (2.0 - excess))
    rows = (1.0 - excess)[:, None] * mean + sines[:, None] * orthogonal
    rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows


def _sample_one_minus_cosine(kappa: float, dimension: int, n_samples: int, rng: np.random.Generator) -> Floats:
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


def _largest_entries(rows: States) -> Floats:
    largest = np.abs(rows).max(axis=1)
    entries: Floats = np.array(largest.toarray() if sparse.issparse(largest) else largest, dtype=np.float64).ravel()
    return entries


def _divide(rows: Points, divisors: Floats) -> Points:
    if not sparse.issparse(rows):
        return rows / divisors[:, None]
    csr = sparse.csr_array(rows, dtype=np.float64, copy=True)
    csr.data /= np.repeat(divisors, np.diff(csr.indptr))
    return cast("Points", csr)


# -- the concentration and its Bessel functions ------------------------------------------------------------------------
class BesselValues(NamedTuple):
    """Functions of the concentration, each of the shape of kappa.

    Parameters
    ----------
    ratio : array
        A_d(kappa), its mean length.
    complement : array
        1 - A_d(kappa), accurate even if A is close to one.
    log_partition : array
        log Z relative to the uniform distribution on the sphere.
    """

    ratio: Floats
    complement: Floats
    log_partition: Floats


def bessel(kappa: float | Floats, dimension: int) -> BesselValues:
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


def log_sphere_area(dimension: int) -> float:
    """Return the logarithm of the area of the unit sphere in R^d: of a density's normalisation by area."""
    half = _checked_dimension(dimension) / 2.0
    return float(math.log(2.0) + half * math.log(math.pi) - math.lgamma(half))


def _checked_dimension(dimension: int) -> int:
    if int(dimension) != dimension or dimension < 1:
        raise ArgumentError("must be a positive whole number", argument="dimension", value=dimension)
    return int(dimension)


@lru_cache(maxsize=64)
def _expansion(dimension: int) -> tuple[float, int, Floats, Floats, float]:
    """Return the constants of a dimension: order, steps down to it, U and Q as polynomials in t, remainder."""
    order = dimension / 2.0 - 1.0
    steps = max(0, math.ceil(LEAST_ORDER - order))
    v = order + steps
    table_u, table_q = _debye_polynomials()
    powers = v ** -np.arange(TERMS + 1.0)
    stirling = sum(b / v ** (2 * k + 1) for k, b in enumerate(_STIRLING))
    return order, steps, powers @ table_u, powers @ table_q, stirling


@lru_cache(maxsize=1)
def _debye_polynomials() -> tuple[Floats, Floats]:
    """Return the coefficients of u_k and q_k (rows) by powers of t (columns), from the exact recurrence.

    ``u_{k+1} = t^2 (1 - t^2) u_k' / 2 + (1/8) int_0^t (1 - 5 w^2) u_k dw`` (Abramowitz and Stegun 9.3.10).
    """
    width = 3 * TERMS + 1
    u = [[Fraction(1)] + [Fraction(0)] * (width + 2)]
    q = [[Fraction(0)] * (width + 3)]
    for _ in range(TERMS):
        old, new, derivative = u[-1], [Fraction(0)] * (width + 3), [Fraction(0)] * (width + 3)
        for j, c in enumerate(old[:width]):
            if c:
                new[j + 1] += c * Fraction(j, 2) + c / (8 * (j + 1))
                new[j + 3] -= c * Fraction(j, 2) + 5 * c / (8 * (j + 3))
                derivative[j + 1] -= c * (Fraction(1, 2) + j)
        u.append(new)
        q.append(derivative)
    return np.array(u, dtype=np.float64), np.array(q, dtype=np.float64)


def concentration(length: float | Floats, dimension: int, largest: float = np.inf) -> Floats:
    """Return the kappa whose mean length is `length`.

    Parameters
    ----------
    length : array-like
        Mean lengths R, from 0 to 1.
    dimension : int
        d, the number of columns.
    largest : float
        The maximum concentration; that of R = 1 is infinite.
    """
    lengths = np.asarray(length, dtype=np.float64)
    if not ((lengths >= 0).all() and (lengths <= 1 + 1e-9).all()):
        raise ArgumentError("mean lengths must lie between 0 and 1", "were the rows scaled to unit norm?")
    flat = np.minimum(np.atleast_1d(lengths).ravel(), 1.0)
    # Newton steps only where the bracket does not already exceed `largest`
    kappas = np.full(flat.shape, largest)
    low, high = concentration_bracket(np.where(flat < 1.0, flat, 0.0), dimension)
    inside = (flat < 1.0) & (low < largest)
    r = flat[inside]
    start = r * (dimension - r**2) / ((1.0 - r) * (1.0 + r))  # Banerjee et al. 2005
    kappas[inside] = newton_concentrations(
        r, start, low[inside], high[inside], MAX_STEPS, *_expansion(_checked_dimension(dimension))
    )
    np.minimum(kappas, largest, out=kappas)
    return kappas.reshape(lengths.shape)


def concentration_bracket(length: Floats, dimension: int) -> tuple[Floats, Floats]:
    """Return a lower and an upper bound of kappa (Amos 1974, inverted as in Hornik and Gruen 2014)."""
    v = dimension / 2.0 - 1.0
    return _inverse_amos(length, v, v + 2.0), _inverse_amos(length, v + 0.5, v + 1.5)


def _inverse_amos(length: Floats, alpha: float, beta: float) -> Floats:
    """Return the t at which ``t / (alpha + sqrt(t^2 + beta^2))`` equals the length."""
    rest = (1.0 - length) * (1.0 + length)
    return length / rest * (alpha + np.sqrt((alpha * length) ** 2 + beta**2 * rest))
