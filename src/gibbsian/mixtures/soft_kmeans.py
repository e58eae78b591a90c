"""Soft k-means and mixtures of spherical Gaussians (YK15, "Soft K-means. Mixture of Gaussians").

With a fixed variance and equal weights this is the lecture's soft k-means; lowered step by step the variance leads to
hard k-means (annealing); learned variances and weights make it the mixture of Gaussians. S(x) = (x, |x|^2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbsian.mixtures.em import EMResult, iterate, joined
from gibbsian.mixtures.exponential import ClassSums, ExponentialProblem
from gibbsian.mixtures.rows import WeightedRows
from gibbsian.mixtures.settings import ANY_VARIANCE, check
from gibbsian.mixtures.weights import class_weights, emptied, is_empty, log_weights, pick_classes

# Coinciding means are moved apart by this share of the standard deviation at the start of each stage.
NUDGE = 1e-3


@dataclass(frozen=True)
class GaussianComponents:
    """A mixture of Gaussians with variance sigma_a^2 in every direction.

    Parameters
    ----------
    weights : array of shape (n_components,)
        The share of each class.
    means : array of shape (n_components, n_columns)
        Their means m_a.
    variances : array of shape (n_components,)
        Their variances sigma_a^2.
    centre : array of shape (n_columns,), optional
        What to subtract from rows and means before squaring, so that nothing cancels far from the origin.
    trouble : str
        What is wrong with the solution, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.soft_kmeans import GaussianComponents
    >>> mixture = GaussianComponents(np.array([0.5, 0.5]), np.array([[0.0], [9.0]]), np.ones(2))
    >>> mixture.sample(4, np.random.default_rng(0))[0].shape
    (4, 1)
    """

    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    centre: np.ndarray | None = None
    trouble: str = ""

    def features(self, rows: Any) -> np.ndarray:
        """Return (x, |x|^2), from the centre."""
        return _features(rows if self.centre is None else rows - self.centre)

    def natural(self) -> tuple[np.ndarray, np.ndarray]:
        """Return theta = (m, -1/2) / sigma^2 and the offsets."""
        means = self.means if self.centre is None else self.means - self.centre
        precisions = 1.0 / self.variances
        theta = np.column_stack([means * precisions[:, None], -precisions / 2.0])
        squares = np.einsum("ij,ij->i", means, means)
        normaliser = means.shape[1] / 2.0 * np.log(2 * np.pi * self.variances)
        return theta, log_weights(self.weights) - squares * precisions / 2.0 - normaliser

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their classes."""
        classes = pick_classes(self.weights, n_samples, rng)
        noise = rng.normal(size=(n_samples, self.means.shape[1]))
        return self.means[classes] + noise * np.sqrt(self.variances[classes])[:, None], classes


@dataclass(frozen=True)
class SphericalGaussians:
    """What is learned of the Gaussians.

    Parameters
    ----------
    variance : float, "free" or "tied"
        A fixed sigma^2, one learned for each class, or one learned for all.
    free_weights : bool
        Learn the weights of the classes; otherwise they are equal.
    floor : float
        Variances are held at this value: the likelihood of a class of one point has no bound.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.exponential import ClassSums
    >>> from gibbsian.mixtures.soft_kmeans import SphericalGaussians
    >>> sums = ClassSums(np.array([2.0]), np.array([[2.0, 4.0]]))          # the rows 0 and 2
    >>> SphericalGaussians("free").maximise(sums, None).variances
    array([1.])
    """

    variance: float | str = "free"
    free_weights: bool = True
    floor: float = 0.0

    def __post_init__(self) -> None:
        check("variance", self.variance, ANY_VARIANCE)

    def features(self, rows: Any) -> np.ndarray:
        """Return (x, |x|^2)."""
        return _features(rows)

    def penalty(self, mixture: GaussianComponents) -> float:
        """Return zero: this is maximum likelihood."""
        return 0.0

    def maximise(self, expected: ClassSums, before: GaussianComponents | None) -> GaussianComponents:
        """Return means, variances and weights of the classes; the first step pools the variances."""
        mass, sums = expected
        weights, empty = class_weights(mass, self.free_weights), is_empty(mass)
        safe = np.where(empty, 1.0, mass)
        means, squares = sums[:, :-1] / safe[:, None], sums[:, -1]
        if before is not None:
            means = np.where(empty[:, None], before.means, means)
        n_columns = means.shape[1]
        spread = np.maximum(squares - mass * np.einsum("ij,ij->i", means, means), 0.0) / n_columns
        variances = self._variances(mass, spread, safe, before)
        held = np.isclose(variances, self.floor, rtol=1e-12, atol=0.0) & isinstance(self.variance, str) & ~empty
        return GaussianComponents(weights, means, variances, None, _trouble(held, empty, before))

    def _variances(
        self, mass: np.ndarray, spread: np.ndarray, safe: np.ndarray, before: GaussianComponents | None
    ) -> np.ndarray:
        if not isinstance(self.variance, str):
            return np.full(len(mass), float(self.variance))
        least = max(self.floor, np.finfo(float).tiny)
        if self.variance == "tied" or before is None:
            return np.full(len(mass), max(spread.sum() / mass.sum(), least))
        return np.where(is_empty(mass), before.variances, np.maximum(spread / safe, least))

    def n_parameters(self, mixture: GaussianComponents) -> int:
        """Count what was learned."""
        k, n_columns = mixture.means.shape
        variances = {"free": k, "tied": 1}.get(self.variance, 0) if isinstance(self.variance, str) else 0
        return k * n_columns + variances + (k - 1 if self.free_weights else 0)


def variance_schedule(data: WeightedRows, variance: float, ratio: float) -> np.ndarray:
    """Return variances falling geometrically from above the first phase transition down to `variance`.

    All means coincide as long as sigma^2 is above the largest eigenvalue of the covariance.

    Examples
    --------
    >>> from gibbsian.mixtures.rows import collapse
    >>> from gibbsian.mixtures.soft_kmeans import variance_schedule
    >>> variance_schedule(collapse([[-1.0], [1.0]]), 0.25, 0.5).round(3).tolist()
    [1.0, 0.5, 0.25]
    """
    check("cooling", ratio)
    mean = np.average(data.rows, axis=0, weights=data.weights)
    centred = (data.rows - mean) * np.sqrt(data.weights / data.total_weight)[:, None]
    highest = max(float(np.linalg.norm(centred, 2) ** 2), variance)
    n_stages = 1 + int(np.ceil(np.log(variance / highest) / np.log(ratio) - 1e-9))
    return variance * (highest / variance) ** np.linspace(1.0, 0.0, n_stages) if n_stages > 1 else np.array([variance])


def anneal(
    data: WeightedRows, n_components: int, variances: np.ndarray, rng: np.random.Generator, max_iter: int, tol: float
) -> EMResult:
    """Fit soft k-means at each variance in turn, every stage from the means of the one before.

    Means that coincide never part by themselves, so each stage begins with a nudge.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.rows import collapse
    >>> from gibbsian.mixtures.soft_kmeans import anneal
    >>> data = collapse([[0.0], [1.0], [10.0], [11.0]])
    >>> result = anneal(data, 2, np.array([30.0, 3.0, 0.01]), np.random.default_rng(0), 500, 1e-12)
    >>> np.sort(result.mixture.means.ravel()).round(6)
    array([ 0.5, 10.5])
    """
    mean = np.average(data.rows, axis=0, weights=data.weights)
    weights = np.full(n_components, 1.0 / n_components)
    mixture = GaussianComponents(weights, np.tile(mean, (n_components, 1)), np.full(n_components, variances[0]))
    stages = []
    for variance in variances:
        problem = ExponentialProblem(SphericalGaussians(float(variance), free_weights=False), data)
        nudged = mixture.means + NUDGE * np.sqrt(variance) * rng.normal(size=mixture.means.shape)
        start = replace(mixture, means=nudged, variances=np.full(n_components, variance))
        stages.append(iterate(problem, start, max_iter, tol, stage=float(variance)))
        mixture = stages[-1].mixture
    return joined(stages)


def _features(rows: np.ndarray) -> np.ndarray:
    return np.column_stack([rows, np.einsum("ij,ij->i", rows, rows)])


def _trouble(held: np.ndarray, empty: np.ndarray, before: GaussianComponents | None) -> str:
    if held.any() and before is not None:
        return f"class {int(np.flatnonzero(held)[0])} has shrunk to a point: its variance was held at variance_floor"
    return emptied(empty)
