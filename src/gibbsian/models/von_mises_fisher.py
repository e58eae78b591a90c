"""Mixtures of von Mises-Fisher distributions on the unit sphere of any dimension (YK15, "Mixture of Von Mises Fisher").

``P(x | a) = exp(kappa_a m_a . x) / Z(kappa_a)`` with ``|x| = |m_a| = 1``. Between unit vectors the exponent of a
Gaussian, ``-|x - m|^2 / (2 sigma^2)``, is ``(x.m - 1) / sigma^2``: kappa is 1/sigma^2. S(x) = x, which may be sparse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from gibbsian.domain import REALS
from gibbsian.errors import DataError
from gibbsian.models import bessel
from gibbsian.models.base import MODELS
from gibbsian.models.class_shares import ClassSums, class_weights, emptied, is_empty, log_weights
from gibbsian.models.concentration import concentration
from gibbsian.models.directions import across, of_scales, of_shares, side_by_side
from gibbsian.models.file_parts import Tensor, reals
from gibbsian.models.mixture import ExponentialMixture

# Rows whose norm differs from one by less count as unit vectors.
UNIT_TOLERANCE = 1e-6


@MODELS.register("vmf-mixture", classes=True)
@dataclass(frozen=True, eq=False)
class VonMisesFisherMixtureModel(ExponentialMixture):
    """A mixture of von Mises-Fisher distributions; a row of norm zero has no direction and tells nothing.

    Parameters
    ----------
    weights : array of shape (n_components,)
        The share of each class.
    means : array of shape (n_components, n_columns)
        Their mean directions, of unit norm.
    concentrations : array of shape (n_components,)
        Their kappa (YK15's lambda).
    kappa : "free", "tied" or float, default="free"
        One concentration learned for each class, one for all, or a fixed one.
    free_weights : bool, default=True
        Learn the weights of the classes; otherwise they are equal.
    largest : float, default=1e8
        Concentrations are held at this value: the likelihood of a class of one direction has no bound.
    trouble : str, default=""
        What is wrong with the solution, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.von_mises_fisher import VonMisesFisherMixtureModel
    >>> model = VonMisesFisherMixtureModel(np.ones(1), np.eye(3)[:1], np.array([50.0]))
    >>> rows, classes = model.sample(1000, np.random.default_rng(0))
    >>> rows.mean(axis=0).round(1)
    array([1., 0., 0.])
    """

    weights: np.ndarray
    means: np.ndarray
    concentrations: np.ndarray
    kappa: float | str = "free"
    free_weights: bool = True
    largest: float = 1e8
    trouble: str = ""
    parts: ClassVar[tuple[str, ...]] = ("weights", "means", "concentrations")
    shown: ClassVar[tuple[str, ...]] = ("weights", "means", "concentrations")
    domain: ClassVar[Any] = REALS
    parts_in_file: ClassVar[dict[str, Any]] = {
        **ExponentialMixture.parts_in_file,
        "means": Tensor(("classes", "n"), total=1, power=2),
        "concentrations": reals("classes", low=0),
    }

    @classmethod
    def unplaced(cls, n_components: int, n_variables: int, **settings: Any) -> Self:
        """Return a mixture whose classes learning has yet to place."""
        nothing = np.full(n_components, np.nan)
        return cls(nothing, np.full((n_components, n_variables), np.nan), nothing, **settings)

    @property
    def n_variables(self) -> int:
        """The number of columns."""
        return self.means.shape[1]

    @property
    def n_parameters(self) -> int:
        """The number of parameters: d - 1 for a direction, one for a concentration, k - 1 for the weights."""
        k, dimension = self.means.shape
        kappas = {"free": k, "tied": 1}.get(str(self.kappa), 0)
        return k * (dimension - 1) + kappas + (k - 1 if self.free_weights else 0)

    def free_directions(self) -> np.ndarray:
        """Return the directions of the weights, of the means on the sphere and of the concentrations."""
        k = self.n_components
        weights = of_shares([k]) if self.free_weights else np.empty((k, 0))
        return side_by_side(weights, across(list(self.means)), of_scales(k, self.kappa))

    def settled(self) -> Self:
        """Return the mixture with mean directions of unit norm."""
        return replace(self, means=unit_rows(self.means))

    # -- the density --------------------------------------------------------------------------------------------------
    def points(self, states: Any, missing: np.ndarray | None = None) -> Any:
        """Return the rows, which are unit vectors."""
        self.require_all_cells(missing)
        return states

    def natural(self, holes: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return theta = kappa m and the offsets, for densities by area."""
        dimension = self.n_variables
        normaliser = bessel.log_partition(self.concentrations, dimension) + bessel.log_sphere_area(dimension)
        return self.concentrations[:, None] * self.means, log_weights(self.weights) - normaliser

    def log_joint(self, states: Any, missing: np.ndarray | None = None) -> np.ndarray:
        """Return ``log P(x, class)``; a row without direction leaves each class at its weight."""
        scores = super().log_joint(states, missing)
        scores[without_direction(states)] = log_weights(self.weights)
        return scores

    def peak(self, theta: np.ndarray) -> np.ndarray:
        """Return the direction of largest density under each row of natural parameters."""
        return unit_rows(theta)

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw unit rows and their classes."""
        classes = self.draw_classes(n_samples, rng)
        rows = np.empty((n_samples, self.n_variables))
        for a in range(self.n_components):
            of_class = np.flatnonzero(classes == a)
            rows[of_class] = draw_directions(self.means[a], float(self.concentrations[a]), len(of_class), rng)
        return rows, classes

    # -- learning -----------------------------------------------------------------------------------------------------
    def maximise(self, expected: ClassSums, first: bool = False) -> Self:
        """Return directions, concentrations and weights of the classes; the first step pools the concentrations."""
        # relative to the largest class, so that squares stay finite whatever the unit of the weights
        mass, sums = expected.mass / expected.mass.max(), expected.sums / expected.mass.max()
        empty = is_empty(mass)
        lengths = np.where(empty, 0.0, np.sqrt(np.einsum("ij,ij->i", sums, sums)))
        means = self._directions(sums, lengths, first)
        kappas = self._concentrations(mass, lengths, empty, first)
        return replace(self, weights=class_weights(mass, self.free_weights), means=means, concentrations=kappas)

    def _directions(self, sums: np.ndarray, lengths: np.ndarray, first: bool) -> np.ndarray:
        """Normalise; a sum of length zero has no direction, so the old one stays (any is as good as another)."""
        means = sums / np.where(lengths > 0, lengths, 1.0)[:, None]
        lost = lengths <= 0
        if lost.any():
            means[lost] = np.eye(1, sums.shape[1]) if first else self.means[lost]
        return means

    def _concentrations(self, mass: np.ndarray, lengths: np.ndarray, empty: np.ndarray, first: bool) -> np.ndarray:
        if not isinstance(self.kappa, str):
            return np.full(len(mass), float(self.kappa))
        if self.kappa == "tied" or first:
            pooled = self._solved(np.atleast_1d(lengths.sum()), np.atleast_1d(mass.sum()))
            return np.full(len(mass), pooled[0])
        found = self._solved(lengths, np.where(empty, 1.0, mass))
        return np.where(empty, self.concentrations, found)

    def _solved(self, lengths: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """Return the kappa of each class of greatest likelihood."""
        return concentration(np.minimum(lengths / mass, 1.0), self.n_variables, self.largest)

    def what_is_wrong(self, mass: np.ndarray) -> str:
        """Say which class has gathered on one direction or has lost all its rows."""
        held = (self.concentrations >= self.largest) & isinstance(self.kappa, str) & ~is_empty(mass)
        if held.any():
            number = int(np.flatnonzero(held)[0])
            return f"class {number} has gathered on one direction: its concentration was held at kappa_max"
        return emptied(mass)


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
