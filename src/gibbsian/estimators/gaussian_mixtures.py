"""Soft k-means and the mixture of spherical Gaussians as scikit-learn estimators."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from gibbsian.errors import DataError
from gibbsian.estimators.mixture_base import MixtureEstimator, from_spread_rows
from gibbsian.mixtures import (
    EMResult,
    ExponentialProblem,
    GaussianComponents,
    SphericalGaussians,
    WeightedRows,
    anneal,
    variance_schedule,
)
from gibbsian.mixtures.em import best_of
from gibbsian.mixtures.rows import check_squares, collapse
from gibbsian.mixtures.settings import FIXED_VARIANCE, LEARNED_VARIANCE
from gibbsian.rng import RandomState, as_generator

VARIANCE_OF_EQUAL_ROWS = 1e-12  # any would do


class _GaussianEstimator(MixtureEstimator):
    """What mixtures of spherical Gaussians share; fits run on rows shifted to their mean."""

    components = GaussianComponents

    def _prepared(self, rows: np.ndarray) -> np.ndarray:
        check_squares(rows)
        return rows

    def _keep(self, result: EMResult) -> None:
        super()._keep(result)
        self.means_ = result.mixture.means
        self.variances_ = result.mixture.variances

    def _centred(self, rows: np.ndarray, sample_weight: Any) -> tuple[WeightedRows, np.ndarray]:
        data = collapse(rows, sample_weight)
        data.require(self.n_components)
        # a mean of equal rows may round away from them
        centre = data.rows[0] if len(data.rows) == 1 else np.average(data.rows, axis=0, weights=data.weights)
        return replace(data, rows=data.rows - centre), centre

    def _back(self, result: EMResult, centre: np.ndarray, rows: np.ndarray) -> Self:
        mixture = replace(result.mixture, means=result.mixture.means + centre, centre=centre)
        return self._finish(replace(result, mixture=mixture), rows)


class SoftKMeans(_GaussianEstimator):
    """Soft k-means of the lecture: classes of equal weight and one fixed variance, which sets the softness (YK15).

    Parameters
    ----------
    n_components : int
        k, the number of classes.
    variance : float
        sigma^2; towards zero the assignments become those of hard k-means.
    anneal : bool
        Begin with all means together at a variance where they stay so and lower it to `variance` step by step, which
        avoids most poor local minima.
    cooling : float
        The factor between two variances of an annealed fit.
    n_init : int
        Starts; the one of least free energy is kept.
    max_iter : int
        Most steps of each, and of each stage.
    tol : float
        Converged when the free energy per row falls by no more.
    random_state : None, int or Generator
        Where the starts come from.

    Attributes
    ----------
    means_ : array of shape (n_components, n_columns)
        The means m_a.
    result_ : EMResult
        ``free_energies`` and ``stages`` (the variance) of every step.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.estimators.mixtures import SoftKMeans
    >>> soft = SoftKMeans(variance=1.0, random_state=0).fit([[0.0], [1.0], [10.0], [11.0]])
    >>> soft.predict_proba([[5.5]]).round(3)
    array([[0.5, 0.5]])
    """

    kind = "soft-k-means"
    own_rules = MappingProxyType({"variance": FIXED_VARIANCE})

    def __init__(
        self,
        n_components: int = 2,
        *,
        variance: float = 1.0,
        anneal: bool = False,
        cooling: float = 0.8,
        n_init: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-8,
        random_state: RandomState = None,
    ):
        self.n_components = n_components
        self.variance = variance
        self.anneal = anneal
        self.cooling = cooling
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the means.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_columns)
            The rows.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.
        """
        rows = self._rows(X, fitting=True)
        family = SphericalGaussians(self.variance, free_weights=False)
        data, centre = self._centred(rows, sample_weight)
        rng = as_generator(self.random_state)
        if self.anneal:
            variances = variance_schedule(data, self.variance, self.cooling)
            fits = best_of(
                lambda g: anneal(data, self.n_components, variances, g, self.max_iter, self.tol), self.n_init, rng
            )
        else:
            fits = from_spread_rows(self, ExponentialProblem(family, data), rng)
        return self._back(fits, centre, rows)

    def _count(self, mixture: GaussianComponents) -> int:
        return SphericalGaussians(self.variance, free_weights=False).n_parameters(mixture)


class GaussianMixture(_GaussianEstimator):
    """Mixture of spherical Gaussians with learned variances and weights (YK15, "Soft K-means. Mixture of Gaussians").

    Parameters
    ----------
    n_components : int
        k, the number of classes.
    variance : "free" or "tied"
        One variance for each class, or one for all.
    variance_floor : float
        Least variance, as a share of the mean variance of the columns.
    n_init : int
        Starts; the one of least free energy is kept.
    max_iter : int
        Most steps of each.
    tol : float
        Converged when the free energy per row falls by no more.
    random_state : None, int or Generator
        Where the starts come from.

    Attributes
    ----------
    weights_, means_, variances_ : arrays
        The parameters of the classes.
    result_ : EMResult
        Trace and story of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.estimators.mixtures import GaussianMixture
    >>> rows = np.random.default_rng(0).normal(size=(300, 2)) * (1 + 2 * (np.arange(300) % 2))[:, None]
    >>> rows[::2] += 20
    >>> np.sort(GaussianMixture(random_state=0).fit(rows).means_[:, 0]).round(-1).tolist()
    [-0.0, 20.0]
    """

    kind = "gaussian-mixture"
    own_rules = MappingProxyType({"variance": LEARNED_VARIANCE})

    def __init__(
        self,
        n_components: int = 2,
        *,
        variance: str = "free",
        variance_floor: float = 1e-6,
        n_init: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-7,
        random_state: RandomState = None,
    ):
        self.n_components = n_components
        self.variance = variance
        self.variance_floor = variance_floor
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn means, variances and weights.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_columns)
            The rows.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.
        """
        rows = self._rows(X, fitting=True)
        data, centre = self._centred(rows, sample_weight)
        floor = self.variance_floor * _overall_variance(data)
        problem = ExponentialProblem(SphericalGaussians(self.variance, floor=floor), data)
        return self._back(from_spread_rows(self, problem, as_generator(self.random_state)), centre, rows)

    def _count(self, mixture: GaussianComponents) -> int:
        return SphericalGaussians(self.variance).n_parameters(mixture)


def _overall_variance(data: WeightedRows) -> float:
    """The mean variance of the columns of centred rows, above zero."""
    if len(data.rows) == 1:
        return VARIANCE_OF_EQUAL_ROWS
    variance = float(data.weights @ np.square(data.rows).mean(axis=1)) / data.total_weight
    if variance < np.finfo(float).tiny:
        raise DataError("the rows differ by too little for squares to be told from zero", "scale the columns first")
    return variance
