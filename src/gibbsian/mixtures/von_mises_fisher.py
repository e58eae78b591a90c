"""Mixtures of von Mises-Fisher laws on the unit sphere of any dimension (YK15, "Mixture of Von Mises Fisher").

``P(x | a) = exp(kappa_a m_a . x) / Z(kappa_a)`` with ``|x| = |m_a| = 1``. Between unit vectors the exponent of a
Gaussian, ``-|x - m|^2 / (2 sigma^2)``, is ``(x.m - 1) / sigma^2``: kappa is 1/sigma^2. S(x) = x, which may be sparse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.mixtures import bessel
from gibbsian.mixtures.concentration import METHODS, concentration
from gibbsian.mixtures.exponential import ClassSums
from gibbsian.mixtures.settings import check
from gibbsian.mixtures.weights import class_weights, emptied, is_empty, log_weights, pick_classes


@dataclass(frozen=True)
class VonMisesFisherComponents:
    """A mixture of von Mises-Fisher laws.

    Parameters
    ----------
    weights : array of shape (n_components,)
        The share of each class.
    means : array of shape (n_components, n_columns)
        Their mean directions, of unit norm.
    concentrations : array of shape (n_components,)
        Their kappa (YK15's lambda).
    trouble : str
        What is wrong with the solution, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.von_mises_fisher import VonMisesFisherComponents
    >>> mixture = VonMisesFisherComponents(np.ones(1), np.eye(3)[:1], np.array([50.0]))
    >>> rows, classes = mixture.sample(1000, np.random.default_rng(0))
    >>> rows.mean(axis=0).round(1)
    array([1., 0., 0.])
    """

    weights: np.ndarray
    means: np.ndarray
    concentrations: np.ndarray
    trouble: str = ""

    def features(self, rows: Any) -> Any:
        """Return x itself."""
        return rows

    def natural(self) -> tuple[np.ndarray, np.ndarray]:
        """Return theta = kappa m and the offsets, for densities by area."""
        dimension = self.means.shape[1]
        normaliser = bessel.log_partition(self.concentrations, dimension) + bessel.log_sphere_area(dimension)
        return self.concentrations[:, None] * self.means, log_weights(self.weights) - normaliser

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw unit rows and their classes."""
        classes = pick_classes(self.weights, n_samples, rng)
        rows = np.empty((n_samples, self.means.shape[1]))
        for a in range(len(self.weights)):
            of_class = np.flatnonzero(classes == a)
            rows[of_class] = sample_law(self.means[a], float(self.concentrations[a]), len(of_class), rng)
        return rows, classes


@dataclass(frozen=True)
class VonMisesFisherLaws:
    """What is learned of the laws.

    Parameters
    ----------
    kappa : "free", "tied" or float
        One concentration learned for each class, one for all, or a fixed one.
    free_weights : bool
        Learn the weights of the classes; otherwise they are equal.
    method : str
        How kappa is found; see `concentration`. An approximation that would raise the free energy is not taken.
    largest : float
        Concentrations are held at this value: the likelihood of a class of one direction has no bound.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.exponential import ClassSums
    >>> from gibbsian.mixtures.von_mises_fisher import VonMisesFisherLaws
    >>> sums = ClassSums(np.array([2.0]), np.array([[1.0, 1.0, 0.0]]))     # the rows e1 and e2
    >>> VonMisesFisherLaws().maximise(sums, None).means.round(4)
    array([[0.7071, 0.7071, 0.    ]])
    """

    kappa: float | str = "free"
    free_weights: bool = True
    method: str = "newton"
    largest: float = 1e8

    def __post_init__(self) -> None:
        check("kappa", self.kappa)
        check("kappa_max", self.largest)
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ArgumentError(
                "is not known", f"use one of {', '.join(METHODS)}", argument="kappa_method", value=self.method
            )

    def features(self, rows: Any) -> Any:
        """Return x itself."""
        return rows

    def penalty(self, mixture: VonMisesFisherComponents) -> float:
        """Return zero: this is maximum likelihood."""
        return 0.0

    def maximise(self, expected: ClassSums, before: VonMisesFisherComponents | None) -> VonMisesFisherComponents:
        """Return directions, concentrations and weights of the classes; the first step pools the concentrations."""
        # relative to the largest class, so that squares stay finite whatever the unit of the weights
        mass, sums = expected.mass / expected.mass.max(), expected.sums / expected.mass.max()
        empty = is_empty(mass)
        lengths = np.where(empty, 0.0, np.sqrt(np.einsum("ij,ij->i", sums, sums)))
        means = self._directions(sums, lengths, before)
        kappas = self._concentrations(mass, lengths, empty, means.shape[1], before)
        held = (kappas >= self.largest) & isinstance(self.kappa, str) & ~empty
        trouble = _gathered(held) if held.any() and before is not None else emptied(empty)
        return VonMisesFisherComponents(class_weights(mass, self.free_weights), means, kappas, trouble)

    def _directions(self, sums: np.ndarray, lengths: np.ndarray, before: VonMisesFisherComponents | None) -> np.ndarray:
        """Normalise; a sum of length zero has no direction, so the old one stays (any is as good as another)."""
        means = sums / np.where(lengths > 0, lengths, 1.0)[:, None]
        lost = lengths <= 0
        if lost.any():
            means[lost] = np.eye(1, sums.shape[1]) if before is None else before.means[lost]
        return means

    def _concentrations(
        self,
        mass: np.ndarray,
        lengths: np.ndarray,
        empty: np.ndarray,
        dimension: int,
        before: VonMisesFisherComponents | None,
    ) -> np.ndarray:
        if not isinstance(self.kappa, str):
            return np.full(len(mass), float(self.kappa))
        if self.kappa == "tied" or before is None:
            old = None if before is None else before.concentrations[:1]
            pooled = self._solved(np.atleast_1d(lengths.sum()), np.atleast_1d(mass.sum()), dimension, old)
            return np.full(len(mass), pooled[0])
        found = self._solved(lengths, np.where(empty, 1.0, mass), dimension, before.concentrations)
        return np.where(empty, before.concentrations, found)

    def _solved(self, lengths: np.ndarray, mass: np.ndarray, dimension: int, old: np.ndarray | None) -> np.ndarray:
        """Solve for kappa; of an approximation and the old value take the one of greater likelihood."""
        mean_lengths = np.minimum(lengths / mass, 1.0)
        kappas = concentration(mean_lengths, dimension, self.method, self.largest)
        if old is None or self.method == "newton":
            return kappas

        def likelihood(kappa: np.ndarray) -> np.ndarray:
            return kappa * mean_lengths - bessel.log_partition(kappa, dimension)

        return np.where(likelihood(kappas) >= likelihood(old), kappas, old)

    def n_parameters(self, mixture: VonMisesFisherComponents) -> int:
        """Count what was learned: d - 1 for a direction, one for a concentration, k - 1 for the weights."""
        k, dimension = mixture.means.shape
        kappas = {"free": k, "tied": 1}.get(self.kappa, 0) if isinstance(self.kappa, str) else 0
        return k * (dimension - 1) + kappas + (k - 1 if self.free_weights else 0)


def sample_law(mean: np.ndarray, kappa: float, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw from one law: the cosine by rejection (Wood 1994), the rest uniformly around the mean direction.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.von_mises_fisher import sample_law
    >>> rows = sample_law(np.eye(4)[0], 1e6, 5, np.random.default_rng(0))
    >>> bool((rows[:, 0] > 0.999).all())
    True
    """
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
    cosine_at_mode = (1.0 - b) / (1.0 + b)
    log_rest_at_mode = np.log(4.0 * b) - 2.0 * np.log1p(b)  # log(1 - cosine_at_mode^2)
    drawn = np.empty(n_samples)
    waiting = np.arange(n_samples)
    while len(waiting):
        z = rng.beta(freedom / 2.0, freedom / 2.0, size=len(waiting))
        excess = 2.0 * b * z / (1.0 - (1.0 - b) * z)
        tilt = kappa * ((1.0 - cosine_at_mode) - excess)
        # 1 - cosine_at_mode (1 - excess), and its value at the mode, as logarithms
        envelope = freedom * (np.log1p(-cosine_at_mode * (1.0 - excess)) - log_rest_at_mode)
        accepted = tilt + envelope >= np.log1p(-rng.random(len(waiting)))
        drawn[waiting[accepted]] = excess[accepted]
        waiting = waiting[~accepted]
    return drawn


def _gathered(held: np.ndarray) -> str:
    number = int(np.flatnonzero(held)[0])
    return f"class {number} has gathered on one direction: its concentration was held at kappa_max"
