"""Mixtures of spherical Gaussians, soft k-means and k-means (YK15, "K-means", "Soft K-means. Mixture of Gaussians").

With a fixed variance and equal weights this is the lecture's soft k-means; as the variance goes to zero, or with hard
assignments at any, it is k-means; learned variances and weights make it the mixture of Gaussians. S(x) = (x, |x|^2).
With missing cells S(x) includes the mask of present cells: the columns of a spherical Gaussian are independent, so the
evidence of a row is that of its present cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, States
from gibbsian.backends.classes import ClassSums
from gibbsian.errors import ArgumentError, DataError
from gibbsian.models.base import FAMILIES
from gibbsian.models.file_parts import NUMBER, PartsInFile, Plain
from gibbsian.models.mixtures.base import (
    Frame,
    SphericalMixtureFamily,
    WeightedSample,
    class_warning,
    class_weights,
    draw_classes,
    empty_classes,
    log_class_weights,
)

VARIANCE_OF_EQUAL_ROWS = 1e-12  # arbitrary
# With this variance and hard assignments the free energy is the energy of k-means and a constant.
K_MEANS_VARIANCE = 0.5
TINY = float(np.finfo(np.float64).tiny)


class GaussianMixtureParts(NamedTuple):
    """The weight of each class, its mean (relative to the origin, if rows have one), and its variance."""

    weights: Floats
    means: Floats
    variances: Floats


@FAMILIES.register("gaussian-mixture")
@dataclass(frozen=True)
class GaussianMixtureFamily(SphericalMixtureFamily[GaussianMixtureParts]):
    """Mixtures of Gaussians with variance sigma_a^2 in every direction.

    Parameters
    ----------
    n_components : int
        k, the number of classes.
    n_columns : int
        Number of columns.
    variance : float, "free" or "tied", default="free"
        A fixed sigma^2, one learned for each class, or one learned for all.
    free_weights : bool, default=True
        Learn the weights of the classes; otherwise they are equal.
    floor_share : float, default=1e-6
        Minimum variance as a fraction of the mean variance of the columns, because the likelihood of a class of one
        point is unbounded.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models import GaussianMixtureFamily
    >>> family = GaussianMixtureFamily(n_components=2, n_columns=1)
    >>> theta = family.join([0.5, 0.5], [[0.0], [9.0]], [1.0, 1.0])
    >>> family.sample(theta, 4, np.random.default_rng(0))[0].shape
    (4, 1)
    """

    n_components: int
    n_columns: int
    variance: float | str = "free"
    free_weights: bool = True
    floor_share: float = 1e-6
    parts_in_file: ClassVar[PartsInFile] = {
        **SphericalMixtureFamily.parts_in_file,
        "variance": Plain((int, float, str)),
        "floor_share": NUMBER,
    }
    _parts = GaussianMixtureParts
    # Number of squares among the sums of complete rows.
    _n_squares: ClassVar[int] = 1

    @property
    def _scale(self) -> float | str:
        """The variance: given, ``"free"`` or ``"tied"``."""
        return self.variance

    def require_distribution(self, theta: Floats) -> None:
        """Raise `ArgumentError` unless weights add up to one and variances are positive."""
        super().require_distribution(theta)
        if (self.split(theta).variances <= 0).any():
            raise ArgumentError("must hold variances above zero", argument="theta")

    def equal(self, means: Floats) -> Floats:
        """Return theta of equal weights and the given variance."""
        k = self.n_components
        return self.join(np.full(k, 1.0 / k), means, np.full(k, float(self.variance)))

    # -- the density --------------------------------------------------------------------------------------------------
    def _origin_of(self, theta: Floats) -> Floats:
        """Return the mean of the mixture."""
        parts = self.split(theta)
        return parts.weights @ parts.means

    def translated(self, theta: Floats, origin: Floats) -> Floats:
        """Return theta with means from the origin."""
        parts = self.split(theta)
        return self.join(parts.weights, parts.means - origin, parts.variances)

    def points(self, x: States, mask: Mask | None, origin: Floats) -> Floats:
        """Return the rows relative to the origin; missing cells are zero."""
        return x - origin if mask is None else np.where(mask, 0.0, x - origin)

    def features(self, points: Floats, mask: Mask | None) -> Floats:
        """Return ``(x, |x|^2)``, and the mask of present cells if some are missing."""
        squares = np.einsum("ij,ij->i", points, points)
        return np.column_stack([points, squares] if mask is None else [points, squares, ~mask])

    def counted_by_cell(self, sums: ClassSums) -> ClassSums:
        """Return sums with counts of present cells."""
        mass, values = sums
        if values.shape[1] > self.n_columns + self._n_squares:
            return sums
        return ClassSums(mass, np.column_stack([values, np.repeat(mass[:, None], self.n_columns, axis=1)]))

    def natural(self, theta: Floats, by_cell: bool) -> tuple[Floats, Floats]:
        """Return eta = (m, -1/2) / sigma^2 and the offsets; by cell every present one has its own."""
        weights, means, variances = self.split(theta)
        precisions = 1.0 / variances
        eta = [means * precisions[:, None], -precisions / 2.0]
        offsets, logs = log_class_weights(weights), np.log(2 * np.pi * variances) / 2.0
        if by_cell:
            eta.append(-np.square(means) * precisions[:, None] / 2.0 - logs[:, None])
            return np.column_stack(eta), offsets
        squares = np.einsum("ij,ij->i", means, means)
        return np.column_stack(eta), offsets - squares * precisions / 2.0 - self.n_columns * logs

    def sample(self, theta: Floats, n: int, rng: np.random.Generator) -> tuple[Floats, Integers]:
        """Draw rows and their classes."""
        parts, classes = self.split(theta), draw_classes(self.split(theta).weights, n, rng)
        noise = rng.normal(size=(n, self.n_columns))
        return parts.means[classes] + noise * np.sqrt(parts.variances[classes])[:, None], classes

    def peak(self, eta: Floats) -> Floats:
        """Return the row of largest density under each row of natural parameters."""
        return eta[:, :-1] / (-2.0 * eta[:, -1:])

    # -- learning -----------------------------------------------------------------------------------------------------
    def frame(self, rows: WeightedSample) -> Frame:
        """Return the mean of the rows, and the minimum variance."""
        origin, learned = rows.mean(), isinstance(self.variance, str)
        return Frame(origin, self.floor_share * _overall_variance(rows, origin) if learned else 0.0)

    def maximise(self, sums: ClassSums, theta: Floats | None, floor: float = 0.0) -> Floats:
        """Return weights, means and variances of the classes; the first step pools the variances."""
        (mass, values), d = sums, self.n_columns
        by_cell = values.shape[1] > d + 1
        counts = values[:, d + 1 :] if by_cell else np.broadcast_to(mass[:, None], (len(mass), d))
        unseen = counts <= 0 if by_cell else empty_classes(mass)[:, None]
        means = values[:, :d] / np.where(unseen, 1.0, counts)
        if theta is not None:
            means = np.where(unseen, self.split(theta).means, means)
        squares = np.maximum(values[:, d] - np.einsum("ij,ij,ij->i", counts, means, means), 0.0)
        cells, least = counts.sum(axis=1), max(floor, TINY)
        empty = empty_classes(mass) | (cells <= 0)
        variances = self._fitted_scales(squares, cells, empty, theta, lambda mean: np.maximum(mean, least))
        return self.join(class_weights(mass, self.free_weights), means, variances)

    def warning(self, theta: Floats, mass: Floats, floor: float) -> str:
        """Return a warning about a class that has shrunk to a point or is empty; empty if there is none."""
        at_floor = np.isclose(self.split(theta).variances, floor, rtol=1e-12, atol=0.0) & isinstance(self.variance, str)
        return class_warning(mass, at_floor, "has shrunk to a point: its variance was held at variance_floor")


@FAMILIES.register("k-means")
@dataclass(frozen=True)
class KMeansFamily(GaussianMixtureFamily):
    """The limit of spherical Gaussians of equal weights as their variance goes to zero: each row has one class.

    Hard assignments at any one variance are the same; this one makes the free energy the energy of YK15 eq. 1, up to a
    constant.

    Examples
    --------
    >>> from gibbsian.models import KMeansFamily
    >>> KMeansFamily(n_components=3, n_columns=2).n_free
    6
    """

    variance: float | str = K_MEANS_VARIANCE
    free_weights: bool = False
    _n_squares: ClassVar[int] = 0

    def maximise(self, sums: ClassSums, theta: Floats | None, floor: float = 0.0) -> Floats:
        """Return the means of the rows of each class (of their present cells, if these are counted)."""
        (mass, values), d = sums, self.n_columns
        counts = values[:, d:] if values.shape[1] > d else mass[:, None]
        old = 0.0 if theta is None else self.split(theta).means
        return self.equal(np.where(counts > 0, values[:, :d] / np.where(counts > 0, counts, 1.0), old))


def variance_schedule(points: Floats, weights: Floats, variance: float, ratio: float) -> Floats:
    """Return variances falling geometrically from above the first phase transition down to `variance`.

    All means coincide as long as sigma^2 is above the largest eigenvalue of the covariance.
    """
    mean = np.average(points, axis=0, weights=weights)
    centred = (points - mean) * np.sqrt(weights / weights.sum())[:, None]
    highest = max(float(np.linalg.norm(centred, 2) ** 2), variance)
    n_stages = 1 + int(np.ceil(np.log(variance / highest) / np.log(ratio) - 1e-9))
    return variance * (highest / variance) ** np.linspace(1.0, 0.0, n_stages) if n_stages > 1 else np.array([variance])


def _overall_variance(rows: WeightedSample, centre: Floats) -> float:
    """Return the mean variance of the columns, above zero."""
    if len(rows.weights) == 1:
        return VARIANCE_OF_EQUAL_ROWS
    squares = np.square(rows.x - centre)
    if rows.mask is None:
        variance = float(rows.weights @ squares.mean(axis=1)) / float(rows.weights.sum())
    else:
        cells = rows.weights[:, None] * ~rows.mask
        variance = float((cells * np.where(rows.mask, 0.0, squares)).sum() / cells.sum())
    if variance < TINY:
        raise DataError("the rows differ by too little for squares to differ from zero", "scale the columns first")
    return variance
