"""Mixtures of spherical Gaussians, soft k-means and k-means (YK15, "K-means", "Soft K-means. Mixture of Gaussians").

With a fixed variance and equal weights this is the lecture's soft k-means; as the variance goes to zero, or with hard
assignments at any, it is k-means; learned variances and weights make it the mixture of Gaussians. S(x) = (x, |x|^2),
and with missing cells also which cells are present: a spherical Gaussian has independent columns, so a row tells about
the classes what its present cells tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.backends.numba.mixtures import stay, to_nearest
from gibbsian.blocks import PLAIN_PRODUCT, row_blocks
from gibbsian.domain import REALS
from gibbsian.errors import DataError
from gibbsian.models.base import MODELS
from gibbsian.models.class_shares import (
    ClassSums,
    class_weights,
    emptied,
    is_empty,
    log_weights,
    nearest,
    over_blocks,
    sums_of_labels,
    total,
)
from gibbsian.models.directions import of_scales, of_shares, side_by_side
from gibbsian.models.file_parts import LARGEST, reals
from gibbsian.models.mixture import (
    FAR_APART,
    PARTITION,
    ExponentialMixture,
    Rows,
    SummedSteps,
    mean_of_columns,
    random_partition,
    require_distinct,
    starting_points,
)

VARIANCE_OF_EQUAL_ROWS = 1e-12  # any would do
# With this variance and hard assignments the free energy is the energy of k-means and a constant.
K_MEANS_VARIANCE = 0.5
ROUNDED_UP = 1.0 + 1e-9
TINY = float(np.finfo(np.float64).tiny)


@MODELS.register("gaussian-mixture", classes=True)
@dataclass(frozen=True, eq=False)
class GaussianMixtureModel(ExponentialMixture):
    """A mixture of Gaussians with variance sigma_a^2 in every direction.

    Parameters
    ----------
    weights : array of shape (n_components,)
        The share of each class.
    shifts : array of shape (n_components, n_columns)
        Their means m_a, from `centre`.
    variances : array of shape (n_components,)
        Their variances sigma_a^2.
    centre : array of shape (n_columns,)
        What to subtract from rows before squaring, so that nothing cancels far from the origin.
    variance : float, "free" or "tied", default="free"
        A fixed sigma^2, one learned for each class, or one learned for all.
    free_weights : bool, default=True
        Learn the weights of the classes; otherwise they are equal.
    floor_share : float, default=1e-6
        Least variance as a share of the mean variance of the columns: the likelihood of a class of one point has no
        bound.
    floor : float, default=0.0
        The same as a variance, taken from the data.
    trouble : str, default=""
        What is wrong with the solution, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.spherical_gaussians import GaussianMixtureModel
    >>> model = GaussianMixtureModel(np.array([0.5, 0.5]), np.array([[0.0], [9.0]]), np.ones(2), np.zeros(1))
    >>> model.sample(4, np.random.default_rng(0))[0].shape
    (4, 1)
    """

    weights: np.ndarray
    shifts: np.ndarray
    variances: np.ndarray
    centre: np.ndarray
    variance: float | str = "free"
    free_weights: bool = True
    floor_share: float = 1e-6
    floor: float = 0.0
    trouble: str = ""
    parts: ClassVar[tuple[str, ...]] = ("weights", "shifts", "variances")
    shown: ClassVar[tuple[str, ...]] = ("weights", "means", "variances")
    domain: ClassVar[Any] = REALS
    parts_in_file: ClassVar[dict[str, Any]] = {
        **ExponentialMixture.parts_in_file,
        "shifts": reals("classes", "n"),
        "variances": reals("classes", low=1 / LARGEST),
        "centre": reals("n"),
    }

    @classmethod
    def unplaced(cls, n_components: int, n_variables: int, **settings: Any) -> Self:
        """Return a mixture whose classes learning has yet to place."""
        nothing = np.full(n_components, np.nan)
        return cls(nothing, np.full((n_components, n_variables), np.nan), nothing, np.zeros(n_variables), **settings)

    @property
    def n_variables(self) -> int:
        """The number of columns."""
        return self.shifts.shape[1]

    @property
    def means(self) -> np.ndarray:
        """The means m_a."""
        return self.shifts + self.centre

    @property
    def n_parameters(self) -> int:
        """The number of parameters that are learned."""
        k, n_columns = self.shifts.shape
        variances = {"free": k, "tied": 1}.get(str(self.variance), 0)
        return k * n_columns + variances + (k - 1 if self.free_weights else 0)

    def free_directions(self) -> np.ndarray:
        """Return the directions of the weights, the means and the variances that are learned."""
        k = self.n_components
        weights = of_shares([k]) if self.free_weights else np.empty((k, 0))
        return side_by_side(weights, np.eye(self.shifts.size), of_scales(k, self.variance))

    def canonical(self) -> Self:
        """Return the same mixture with its means from the origin."""
        return replace(self, shifts=self.means, centre=np.zeros_like(self.centre))

    @property
    def fixed_variance(self) -> bool:
        """Whether the variance is given."""
        return not isinstance(self.variance, str)

    # -- the density --------------------------------------------------------------------------------------------------
    def points(self, states: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
        """Return the rows from the centre; missing cells are there."""
        rows = states - self.centre
        return rows if missing is None else np.where(missing, 0.0, rows)

    def additive(self, expected: ClassSums) -> ClassSums:
        """Return sums that count present cells also where all are."""
        mass, sums = expected
        if sums.shape[1] > self.n_variables + 1:
            return expected
        return ClassSums(mass, np.column_stack([sums, np.repeat(mass[:, None], self.n_variables, axis=1)]))

    def class_sums(self, data: Any, hard: bool = False) -> tuple[float, ClassSums]:
        """Return the free energy of rows and the sums of each class, which count present cells in every chunk alike."""
        if data.missing is None:
            data = replace(data, missing=np.zeros(data.states.shape, dtype=bool))
        return super().class_sums(data, hard)

    def features(self, points: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
        """Return ``(x, |x|^2)``, and which cells are present where some are not."""
        squares = np.einsum("ij,ij->i", points, points)
        return np.column_stack([points, squares] if missing is None else [points, squares, ~missing])

    def natural(self, holes: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return theta = (m, -1/2) / sigma^2 and the offsets; with holes every present cell brings its own."""
        precisions = 1.0 / self.variances
        theta = [self.shifts * precisions[:, None], -precisions / 2.0]
        offsets, logs = log_weights(self.weights), np.log(2 * np.pi * self.variances) / 2.0
        if holes:
            theta.append(-np.square(self.shifts) * precisions[:, None] / 2.0 - logs[:, None])
            return np.column_stack(theta), offsets
        squares = np.einsum("ij,ij->i", self.shifts, self.shifts)
        return np.column_stack(theta), offsets - squares * precisions / 2.0 - self.n_variables * logs

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their classes."""
        classes = self.draw_classes(n_samples, rng)
        noise = rng.normal(size=(n_samples, self.n_variables))
        return self.means[classes] + noise * np.sqrt(self.variances[classes])[:, None], classes

    def peak(self, theta: np.ndarray) -> np.ndarray:
        """Return the row of largest density under each row of natural parameters."""
        return theta[:, :-1] / (-2.0 * theta[:, -1:]) + self.centre

    def cell_means(self, shares: np.ndarray) -> np.ndarray:
        """Return the expected cells of rows, given the probabilities of their classes."""
        return shares @ self.shifts + self.centre

    # -- learning -----------------------------------------------------------------------------------------------------
    def bound(self, rows: Rows) -> Self:
        """Take the centre from the data, and the least variance."""
        centre = mean_of_columns(rows)
        floor = 0.0 if self.fixed_variance else self.floor_share * _overall_variance(rows, centre)
        return replace(self, shifts=self.shifts + (self.centre - centre), centre=centre, floor=floor)

    def with_shifts(self, shifts: np.ndarray, variance: float | None = None) -> Self:
        """Return the mixture with equal weights and one variance at other means, given from the centre."""
        k, fixed = len(shifts), self.variance if variance is None else variance
        return replace(
            self, weights=np.full(k, 1.0 / k), shifts=shifts, variances=np.full(k, float(fixed)), variance=fixed
        )

    def together(self, data: Any, ratio: float) -> tuple[Self, np.ndarray]:
        """Return the mixture with all classes at the mean of the data, and the variances of an annealed fit."""
        rows = Rows.of(data)
        bound = self.bound(rows)
        points = bound.points(rows.states, rows.missing)
        variances = variance_schedule(points, rows.weights, float(self.variance), ratio)
        mean = np.average(points, axis=0, weights=rows.weights)
        return bound.with_shifts(np.tile(mean, (self.n_components, 1)), variances[0]), variances

    def maximise(self, expected: ClassSums, first: bool = False) -> Self:
        """Return means, variances and weights of the classes; the first step pools the variances."""
        mass, sums = expected
        d = self.n_variables
        counts = sums[:, d + 1 :] if sums.shape[1] > d + 1 else np.broadcast_to(mass[:, None], (len(mass), d))
        unseen = counts <= 0 if sums.shape[1] > d + 1 else is_empty(mass)[:, None]
        shifts = sums[:, :d] / np.where(unseen, 1.0, counts)
        if not first:
            shifts = np.where(unseen, self.shifts, shifts)
        spread = np.maximum(sums[:, d] - np.einsum("ij,ij,ij->i", counts, shifts, shifts), 0.0)
        variances = self._variances(spread, counts.sum(axis=1), is_empty(mass), first)
        return replace(self, weights=class_weights(mass, self.free_weights), shifts=shifts, variances=variances)

    def _variances(self, spread: np.ndarray, cells: np.ndarray, empty: np.ndarray, first: bool) -> np.ndarray:
        """The mean square of the cells from their means."""
        if self.fixed_variance:
            return np.full(len(spread), float(self.variance))
        least = max(self.floor, TINY)
        if self.variance == "tied" or first:
            return np.full(len(spread), max(spread.sum() / cells.sum(), least))
        empty = empty | (cells <= 0)
        return np.where(empty, self.variances, np.maximum(spread / np.where(empty, 1.0, cells), least))

    def what_is_wrong(self, mass: np.ndarray) -> str:
        """Say which class has shrunk to a point or has lost all its rows."""
        held = np.isclose(self.variances, self.floor, rtol=1e-12, atol=0.0) & ~is_empty(mass)
        if held.any() and not self.fixed_variance:
            number = int(np.flatnonzero(held)[0])
            return f"class {number} has shrunk to a point: its variance was held at variance_floor"
        return emptied(mass)


def variance_schedule(points: np.ndarray, weights: np.ndarray, variance: float, ratio: float) -> np.ndarray:
    """Return variances falling geometrically from above the first phase transition down to `variance`.

    All means coincide as long as sigma^2 is above the largest eigenvalue of the covariance.
    """
    mean = np.average(points, axis=0, weights=weights)
    centred = (points - mean) * np.sqrt(weights / weights.sum())[:, None]
    highest = max(float(np.linalg.norm(centred, 2) ** 2), variance)
    n_stages = 1 + int(np.ceil(np.log(variance / highest) / np.log(ratio) - 1e-9))
    return variance * (highest / variance) ** np.linspace(1.0, 0.0, n_stages) if n_stages > 1 else np.array([variance])


def _overall_variance(rows: Rows, centre: np.ndarray) -> float:
    """The mean variance of the columns, above zero."""
    if len(rows.weights) == 1:
        return VARIANCE_OF_EQUAL_ROWS
    squares = np.square(rows.states - centre)
    if rows.missing is None:
        variance = float(rows.weights @ squares.mean(axis=1)) / float(rows.weights.sum())
    else:
        cells = rows.weights[:, None] * ~rows.missing
        variance = float((cells * np.where(rows.missing, 0.0, squares)).sum() / cells.sum())
    if variance < TINY:
        raise DataError("the rows differ by too little for squares to differ from zero", "scale the columns first")
    return variance


# -- k-means ----------------------------------------------------------------------------------------------------------
@MODELS.register("k-means", classes=True)
@dataclass(frozen=True, eq=False)
class KMeansModel(GaussianMixtureModel):
    """The limit of spherical Gaussians of equal weights as their variance goes to zero: each row has one class.

    Hard assignments at any one variance are the same; this one makes the free energy the
    energy of YK15 eq. 1, up to a constant. `wins` is the weight of the rows that each has won online, `cells` that of
    their present cells, column by column.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.spherical_gaussians import KMeansModel
    >>> KMeansModel.unplaced(3, 2).means.shape
    (3, 2)
    """

    variance: float | str = K_MEANS_VARIANCE
    free_weights: bool = False
    wins: np.ndarray | None = None
    cells: np.ndarray | None = None
    shown: ClassVar[tuple[str, ...]] = ("means", "wins")
    parts_in_file: ClassVar[dict[str, Any]] = {
        **GaussianMixtureModel.parts_in_file,
        "wins": reals("classes", low=0, optional=True),
        "cells": reals("classes", "n", low=0, optional=True),
    }

    def em_steps(self, data: Any, hard: bool = True) -> Any:
        """Bind both steps of EM to data."""
        return SummedSteps(self, data, hard=True) if getattr(data, "on_cluster", False) else KMeansSteps(self, data)

    def class_sums(self, data: Any, hard: bool = True) -> tuple[float, ClassSums]:
        """Return the energy of rows and the sums of each class."""
        _, sums = super().class_sums(data, hard=True)
        return KMeansSteps(self, data).expect(replace(self, shifts=self.means, centre=0.0 * self.centre))[0], sums

    def nearest(self, states: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
        """Return the nearest mean of each row over its present cells, by distances from the middle of the means."""
        middle = self.means.mean(axis=0)

        def some(rows: np.ndarray, holes: np.ndarray | None = None) -> np.ndarray:
            points = rows - middle if holes is None else np.where(holes, 0.0, rows - middle)
            return nearest(points, self.means - middle, None if holes is None else ~holes)

        return np.concatenate(over_blocks(some, states, *([] if missing is None else [missing])))


class Nearest(NamedTuple):
    """The class of each row, how far away all other means are at least, the means looked at, and those of the rows."""

    labels: np.ndarray
    others: np.ndarray
    means: np.ndarray
    of_rows: np.ndarray


@dataclass(frozen=True)
class KMeansSteps:
    """The same two steps in the limit of hard assignments, by kernels that add up differences (YK15 eq. 1).

    ``E(V, m) = sum_ia V_ia |x_i - m_a|^2``, over present cells, falls in both halves of a step. Distances and energy
    come from differences, in which no digits cancel, new means from sums about the middle of all rows; which mean may
    be nearer comes from a matrix product. A class that loses all its rows is given the row farthest from its mean,
    which lowers the energy too.
    """

    model: KMeansModel
    data: Any

    @cached_property
    def present(self) -> np.ndarray | None:
        """Which cells of the rows are."""
        missing = Rows.of(self.data).missing
        return None if missing is None else ~missing

    @cached_property
    def rows(self) -> Rows:
        """The rows, with zeros for missing cells."""
        rows = Rows.of(self.data)
        states = rows.states if self.present is None else np.where(self.present, rows.states, 0.0)
        return rows._replace(states=np.ascontiguousarray(states))

    @cached_property
    def middle(self) -> np.ndarray:
        """The mean of the rows."""
        return mean_of_columns(self.rows._replace(weights=self.rows.weights / self.rows.weights.max()))

    @cached_property
    def points(self) -> np.ndarray:
        """The rows from their middle: products of large numbers would lose digits."""
        points, middle = np.empty(self.rows.states.shape), self.middle
        over_blocks(lambda rows, own: np.subtract(rows, middle, out=own), self.rows.states, points)
        return points if self.present is None else np.where(self.present, points, 0.0)

    @cached_property
    def there(self) -> Any:
        """The points on a device, None where that is the CPU."""
        twins = twin("mixtures")
        if twins is None:
            return None
        return twins.Partition(self.points, self.rows.weights, self.present, self.model.n_components)

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return float(self.rows.weights.sum())

    def start(self, rng: np.random.Generator, placing: str = FAR_APART) -> KMeansModel:
        """Return the means of a random partition, or drawn rows whose missing cells are those of the mean row."""
        k = self.model.n_components
        require_distinct(self.rows.weights, k, self.data.n_rows)
        if placing == PARTITION:
            labels = random_partition(len(self.rows.weights), k, rng)
            return self.from_means(self._means_of(labels, np.tile(self.middle, (k, 1))))
        states = self.rows.states if self.present is None else self.points + self.middle
        return self.from_means(starting_points(states, self.rows.weights, k, rng, placing))

    def adopted(self, model: KMeansModel) -> KMeansModel:
        """Return placed means, from the origin."""
        return self.from_means(model.means)

    def from_means(self, means: np.ndarray) -> KMeansModel:
        """Return other means; differences need no centre."""
        uncentred = replace(self.model, centre=np.zeros(self.model.n_variables))
        return uncentred.with_shifts(np.array(means, dtype=np.float64))

    def expect(self, model: KMeansModel, before: Nearest | None = None) -> tuple[float, Nearest]:
        """Return the energy and the class of each row; one that had a class moves only to a mean that is nearer."""
        means = model.shifts
        if self.there is not None:
            energy, labels = self.there.settle(means - self.middle, None if before is None else before.labels)
            return energy, Nearest(labels, np.empty(0), means, self._means_of(labels, means))
        if self.present is not None:
            labels = nearest(self.points, means - self.middle, self.present)
            old_labels = labels if before is None else before.labels
            new, old = self._distances(means, labels), self._distances(means, old_labels)
            labels = np.where(old <= new, old_labels, labels)
            found = Nearest(labels, np.empty(0), means, self._means_of(labels, means))
            return float(self.rows.weights @ np.minimum(old, new)), found
        n = len(self.points)
        labels = np.zeros(n, np.int64) if before is None else before.labels.copy()
        others = np.full(n, -1.0) if before is None else before.others.copy()
        drift = 0.0 if before is None else ROUNDED_UP * float(np.linalg.norm(means - before.means, axis=1).max())
        mass, sums, squares = self._settled(self.points, means - self.middle, drift, labels, others)
        return float(squares.sum()), Nearest(labels, others, means, self._from_middle(sums, mass))

    def maximise(self, expected: Nearest, model: KMeansModel) -> KMeansModel:
        """Move each mean to the middle of its rows."""
        labels, _, means, of_rows = expected
        if not np.bincount(labels, minlength=len(means)).all():
            of_rows = self._means_of(self._refilled(means, labels), means)
        return replace(model, shifts=of_rows)

    def _means_of(self, labels: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Return the means of the rows of each class; a cell that none of them has stays as it was."""
        if self.there is not None:
            counts, moves = self.there.class_shifts(means - self.middle, labels)
        elif self.present is None:
            far = np.full(len(labels), np.inf)  # no row looks for another mean
            mass, sums, _ = self._settled(self.points, means - self.middle, 0.0, labels, far)
            return self._from_middle(sums, mass)
        else:
            of_class = (labels == np.arange(len(means))[:, None]) * self.rows.weights
            counts, moves = of_class @ self.present, of_class @ (self.present * (self.rows.states - means[labels]))
        return means + moves / np.where(counts > 0, counts, 1.0)

    def _from_middle(self, sums: np.ndarray, mass: np.ndarray) -> np.ndarray:
        return self.middle + sums / np.maximum(mass, TINY)[:, None]

    def _settled(
        self, rows: np.ndarray, means: np.ndarray, drift: float, labels: np.ndarray, others: np.ndarray
    ) -> list[np.ndarray]:
        """Return weight, sum and squared distances of the rows of each class, after they moved to nearer means."""
        parts = over_blocks(partial(_settle_block, means, drift), rows, self.rows.weights, labels, others)
        return [total(part) for part in zip(*parts, strict=True)]

    def additive(self, expected: Nearest) -> ClassSums:
        """Return the sums of each class, from the origin as the means."""
        (states, weights, missing), k = self.rows, self.model.n_components
        if missing is not None:
            return sums_of_labels([(self.model.features(states, missing), weights)], expected.labels, k)
        origin, far = np.zeros((k, states.shape[1])), np.full(len(states), np.inf)
        mass, sums, squares = self._settled(states, origin, 0.0, expected.labels, far)
        return self.model.additive(ClassSums(mass, np.column_stack([sums, squares])))

    def judged(self, model: KMeansModel, expected: Nearest) -> KMeansModel:
        """Return the means: no class is ever empty."""
        return model

    def _distances(self, means: np.ndarray, labels: np.ndarray) -> np.ndarray:
        differences = self.rows.states - means[labels]
        if self.present is not None:
            differences *= self.present
        return np.einsum("ij,ij->i", differences, differences)

    def _refilled(self, means: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Give every class without rows the row farthest from its mean, of classes that keep another."""
        labels = labels.copy()
        counts = np.bincount(labels, minlength=len(means))
        farthest = iter(np.argsort(-self._distances(means, labels), kind="stable"))
        for empty in np.flatnonzero(counts == 0):
            row = next(i for i in farthest if counts[labels[i]] > 1)
            counts[labels[row]] -= 1
            labels[row] = empty
            counts[empty] = 1
        return labels


def _settle_block(
    means: np.ndarray, drift: float, rows: np.ndarray, weights: np.ndarray, labels: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Let a block of rows move to nearer means: a few at a time, whose products are compared while in the cache."""
    columns, offsets = np.ascontiguousarray(means.T), -np.einsum("ij,ij->i", means, means) / 2.0
    sums = np.zeros(len(means)), np.zeros(means.shape), np.zeros(len(means))
    parts = rows, weights, labels, others, means, *sums
    unsure = stay(drift, *parts, np.empty(len(rows), np.int64))
    for few in row_blocks(len(unsure), means.size, PLAIN_PRODUCT):
        some = rows[few] if len(unsure) == len(rows) else rows[unsure[few]]
        to_nearest(some @ columns, offsets, unsure[few], *parts)
    return sums
