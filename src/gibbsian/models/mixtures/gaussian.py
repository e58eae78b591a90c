"""Mixtures of spherical Gaussians, soft k-means and k-means (YK15, "K-means", "Soft K-means. Mixture of Gaussians").

With a fixed variance and equal weights this is the lecture's soft k-means; as the variance goes to zero, or with hard
assignments at any, it is k-means; learned variances and weights make it the mixture of Gaussians. S(x) = (x, |x|^2),
and with missing cells also which cells are present: a spherical Gaussian has independent columns, so a row tells about
the classes what its present cells tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsian.backends.classes import ClassSums
from gibbsian.errors import ArgumentError, DataError
from gibbsian.models.family import FAMILIES
from gibbsian.models.file_parts import COUNT, MOST, PartsInFile, Plain, reals
from gibbsian.models.mixtures.base import (
    Array,
    ExponentialMixtureFamily,
    Frame,
    WeightedRows,
    class_weights,
    empty_class_warning,
    empty_classes,
    log_shares,
    scale_directions,
    side_by_side,
    weight_directions,
)
from gibbsian.models.variables import Variables

VARIANCE_OF_EQUAL_ROWS = 1e-12  # any would do
# With this variance and hard assignments the free energy is the energy of k-means and a constant.
K_MEANS_VARIANCE = 0.5
TINY = float(np.finfo(np.float64).tiny)


class GaussianMixtureParts(NamedTuple):
    """The share of each class, its mean (relative to the origin, where rows have one), and its variance."""

    weights: Array
    means: Array
    variances: Array


@FAMILIES.register("gaussian-mixture", classes=True)
@dataclass(frozen=True)
class GaussianMixtureFamily(ExponentialMixtureFamily):
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
        Least variance as a share of the mean variance of the columns: the likelihood of a class of one point has no
        bound.

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
    parts: ClassVar[type[Any]] = GaussianMixtureParts
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
        """The shapes of the weights, the means and the variances."""
        k = self.n_components
        return (k,), (k, self.n_columns), (k,)

    @property
    def n_free(self) -> int:
        """Number of parameters that are learned."""
        k = self.n_components
        variances = {"free": k, "tied": 1}.get(str(self.variance), 0)
        return k * self.n_columns + variances + (k - 1 if self.free_weights else 0)

    @property
    def fixed_variance(self) -> bool:
        """Whether the variance is given."""
        return not isinstance(self.variance, str)

    def free_directions(self, theta: Array) -> Array:
        """Return the directions of the weights, the means and the variances that are learned."""
        k = self.n_components
        weights = weight_directions(k, self.free_weights)
        return side_by_side(weights, np.eye(k * self.n_columns), scale_directions(k, self.variance))

    def require_distribution(self, theta: Array) -> None:
        """Raise `ArgumentError` unless weights add up to one and variances are positive."""
        super().require_distribution(theta)
        if (self.split(theta).variances <= 0).any():
            raise ArgumentError("must hold variances above zero", argument="theta")

    def equal(self, means: Array, variance: float | None = None) -> Array:
        """Return theta of equal weights and one variance, by default the fixed one."""
        k = self.n_components
        return self.join(np.full(k, 1.0 / k), means, np.full(k, float(self.variance if variance is None else variance)))

    # -- the density --------------------------------------------------------------------------------------------------
    def origin_of(self, theta: Array) -> Array:
        """Return the mean of the mixture."""
        parts = self.split(theta)
        return parts.weights @ parts.means

    def translated(self, theta: Array, origin: Array) -> Array:
        """Return theta with means from the origin."""
        parts = self.split(theta)
        return self.join(parts.weights, parts.means - origin, parts.variances)

    def points(self, x: Array, mask: Array | None, origin: Array) -> Array:
        """Return the rows from the origin; missing cells are there."""
        return x - origin if mask is None else np.where(mask, 0.0, x - origin)

    def features(self, points: Array, mask: Array | None) -> Array:
        """Return ``(x, |x|^2)``, and which cells are present where some are not."""
        squares = np.einsum("ij,ij->i", points, points)
        return np.column_stack([points, squares] if mask is None else [points, squares, ~mask])

    @property
    def n_sums(self) -> int:
        """Number of sums of complete rows: the columns, and their squares together."""
        return self.n_columns + 1

    def counted_by_cell(self, sums: ClassSums) -> ClassSums:
        """Return sums that count present cells also where all are."""
        mass, values = sums
        if values.shape[1] > self.n_sums:
            return sums
        return ClassSums(mass, np.column_stack([values, np.repeat(mass[:, None], self.n_columns, axis=1)]))

    def natural(self, theta: Array, by_cell: bool) -> tuple[Array, Array]:
        """Return eta = (m, -1/2) / sigma^2 and the offsets; by cell every present one brings its own."""
        weights, means, variances = self.split(theta)
        precisions = 1.0 / variances
        eta = [means * precisions[:, None], -precisions / 2.0]
        offsets, logs = log_shares(weights), np.log(2 * np.pi * variances) / 2.0
        if by_cell:
            eta.append(-np.square(means) * precisions[:, None] / 2.0 - logs[:, None])
            return np.column_stack(eta), offsets
        squares = np.einsum("ij,ij->i", means, means)
        return np.column_stack(eta), offsets - squares * precisions / 2.0 - self.n_columns * logs

    def sample(self, theta: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw rows and their classes."""
        parts, classes = self.split(theta), self.draw_classes(theta, n, rng)
        noise = rng.normal(size=(n, self.n_columns))
        return parts.means[classes] + noise * np.sqrt(parts.variances[classes])[:, None], classes

    def peak(self, eta: Array) -> Array:
        """Return the row of largest density under each row of natural parameters."""
        return eta[:, :-1] / (-2.0 * eta[:, -1:])

    # -- learning -----------------------------------------------------------------------------------------------------
    def frame(self, rows: WeightedRows) -> Frame:
        """Return the mean of the rows, and the least variance."""
        origin = rows.mean()
        return Frame(origin, 0.0 if self.fixed_variance else self.floor_share * _overall_variance(rows, origin))

    def maximise(self, sums: ClassSums, theta: Array | None, floor: float = 0.0) -> Array:
        """Return weights, means and variances of the classes; the first step pools the variances."""
        (mass, values), d = sums, self.n_columns
        by_cell = values.shape[1] > self.n_sums
        counts = values[:, d + 1 :] if by_cell else np.broadcast_to(mass[:, None], (len(mass), d))
        unseen = counts <= 0 if by_cell else empty_classes(mass)[:, None]
        means = values[:, :d] / np.where(unseen, 1.0, counts)
        if theta is not None:
            means = np.where(unseen, self.split(theta).means, means)
        spread = np.maximum(values[:, d] - np.einsum("ij,ij,ij->i", counts, means, means), 0.0)
        variances = self._variances(spread, counts.sum(axis=1), empty_classes(mass), theta, max(floor, TINY))
        return self.join(class_weights(mass, self.free_weights), means, variances)

    def _variances(self, spread: Array, cells: Array, empty: Array, theta: Array | None, least: float) -> Array:
        """The mean square of the cells from their means."""
        if self.fixed_variance:
            return np.full(len(spread), float(self.variance))
        if self.variance == "tied" or theta is None:
            return np.full(len(spread), max(spread.sum() / cells.sum(), least))
        empty = empty | (cells <= 0)
        return np.where(empty, self.split(theta).variances, np.maximum(spread / np.where(empty, 1.0, cells), least))

    def warning(self, theta: Array, mass: Array, floor: float) -> str:
        """Say which class has shrunk to a point or has lost all its rows."""
        held = np.isclose(self.split(theta).variances, floor, rtol=1e-12, atol=0.0) & ~empty_classes(mass)
        if held.any() and not self.fixed_variance:
            number = int(np.flatnonzero(held)[0])
            return f"class {number} has shrunk to a point: its variance was held at variance_floor"
        return empty_class_warning(mass)


@FAMILIES.register("k-means", classes=True)
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

    @property
    def n_sums(self) -> int:
        """Number of sums of complete rows: the columns."""
        return self.n_columns

    def maximise(self, sums: ClassSums, theta: Array | None, floor: float = 0.0) -> Array:
        """Return the means of the rows of each class (of their present cells, where these are counted)."""
        (mass, values), d = sums, self.n_sums
        counts = values[:, d:] if values.shape[1] > d else mass[:, None]
        old = 0.0 if theta is None else self.split(theta).means
        return self.equal(np.where(counts > 0, values[:, :d] / np.where(counts > 0, counts, 1.0), old))


def variance_schedule(points: Array, weights: Array, variance: float, ratio: float) -> Array:
    """Return variances falling geometrically from above the first phase transition down to `variance`.

    All means coincide as long as sigma^2 is above the largest eigenvalue of the covariance.
    """
    mean = np.average(points, axis=0, weights=weights)
    centred = (points - mean) * np.sqrt(weights / weights.sum())[:, None]
    highest = max(float(np.linalg.norm(centred, 2) ** 2), variance)
    n_stages = 1 + int(np.ceil(np.log(variance / highest) / np.log(ratio) - 1e-9))
    return variance * (highest / variance) ** np.linspace(1.0, 0.0, n_stages) if n_stages > 1 else np.array([variance])


def _overall_variance(rows: WeightedRows, centre: Array) -> float:
    """The mean variance of the columns, above zero."""
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
