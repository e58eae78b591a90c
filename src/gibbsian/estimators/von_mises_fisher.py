"""The mixture of von Mises-Fisher laws as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gibbsian.errors import DataError
from gibbsian.estimators.mixture_base import MixtureEstimator, from_spread_rows
from gibbsian.mixtures import (
    EMResult,
    ExponentialProblem,
    VonMisesFisherComponents,
    VonMisesFisherLaws,
    bessel,
    log_joint,
)
from gibbsian.mixtures.rows import collapse, notify_without_direction, unit_rows, without_direction
from gibbsian.mixtures.settings import check
from gibbsian.mixtures.weights import log_weights
from gibbsian.rng import RandomState, as_generator


class VonMisesFisherMixture(MixtureEstimator):
    """Mixture of von Mises-Fisher laws on the unit sphere of any dimension, for dense and sparse rows (YK15).

    Parameters
    ----------
    n_components : int
        k, the number of classes.
    kappa : "free", "tied" or float
        One concentration for each class, one for all, or a fixed one (YK15's lambda = 1/sigma^2).
    weights : "free" or "equal"
        Learn the weights of the classes or keep them equal. Equal weights and one concentration with hard assignment
        are spherical k-means, whatever the concentration; with soft assignment they lead there as it grows.
    assignment : "soft" or "hard"
        Share each row among the classes or give it to the best.
    normalize : bool
        Scale rows to unit norm; otherwise they must have it.
    kappa_method : str
        ``"newton"`` (to machine precision), ``"song"``, ``"sra"`` or ``"banerjee"``.
    kappa_max : float
        Largest concentration: a class of one direction has no finite one.
    n_init : int
        Starts (k-means++ on the sphere); the one of least free energy is kept.
    max_iter : int
        Most steps of each.
    tol : float
        Converged when the free energy per row falls by no more.
    random_state : None, int or Generator
        Where the starts come from.

    Attributes
    ----------
    weights_, means_, concentrations_ : arrays
        The parameters of the classes.
    result_ : EMResult
        Trace and story of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.estimators.mixtures import VonMisesFisherMixture
    >>> rng = np.random.default_rng(0)
    >>> rows = np.repeat(np.eye(3)[:2], 100, axis=0) + rng.normal(size=(200, 3)) / 5
    >>> vmf = VonMisesFisherMixture(n_components=2, random_state=0).fit(rows)
    >>> np.sort(vmf.means_[:, 0]).round(1)
    array([0., 1.])
    """

    kind = "vmf-mixture"
    components = VonMisesFisherComponents
    accepts_sparse = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        kappa: float | str = "free",
        weights: str = "free",
        assignment: str = "soft",
        normalize: bool = True,
        kappa_method: str = "newton",
        kappa_max: float = 1e8,
        n_init: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-7,
        random_state: RandomState = None,
    ):
        self.n_components = n_components
        self.kappa = kappa
        self.weights = weights
        self.assignment = assignment
        self.normalize = normalize
        self.kappa_method = kappa_method
        self.kappa_max = kappa_max
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _family(self) -> VonMisesFisherLaws:
        return VonMisesFisherLaws(self.kappa, self.weights == "free", self.kappa_method, self.kappa_max)

    def _prepared(self, rows: Any) -> Any:
        if rows.shape[1] < 2:
            raise DataError("n_features=1", "directions need at least two columns")
        return unit_rows(rows, scale=self.normalize)

    def _silent(self, rows: Any) -> np.ndarray:
        return without_direction(rows)

    def _keep(self, result: EMResult) -> None:
        super()._keep(result)
        self.means_ = result.mixture.means
        self.concentrations_ = result.mixture.concentrations

    def _count(self, mixture: VonMisesFisherComponents) -> int:
        return self._family().n_parameters(mixture)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn directions, concentrations and weights.

        Parameters
        ----------
        X : array, frame or CSR matrix of shape (n_rows, n_columns)
            The rows; sparse ones stay sparse. Rows of norm zero are left out with a warning.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.
        """
        rows = self._rows(X, fitting=True)
        data = collapse(rows, self._row_weights(rows, sample_weight))
        problem = ExponentialProblem(self._family(), data, self.assignment == "hard")
        return self._finish(from_spread_rows(self, problem, as_generator(self.random_state)), rows)

    def _scores(self, rows: Any) -> np.ndarray:
        """A row without direction leaves each class at its weight, as a row of missing cells would."""
        scores = log_joint(self.mixture_, rows)
        scores[self._silent(rows)] = log_weights(self.mixture_.weights)
        return scores

    def score_samples(self, X: Any, relative_to: str = "area") -> np.ndarray:
        """Return the log-density of each row; zero for a row of norm zero, which tells nothing.

        Parameters
        ----------
        X : array, frame or CSR matrix
            The rows.
        relative_to : "area" or "uniform"
            Per unit of area of the sphere, or relative to the uniform law on it (as R's movMF).
        """
        check("relative_to", relative_to)
        rows = self._rows(X)
        silent = self._silent(rows)
        notify_without_direction(silent)
        scores = self._densities(rows) + self._log_area(relative_to)
        scores[silent] = 0.0
        return scores

    def bic(self, X: Any, sample_weight: Any = None, relative_to: str = "area") -> float:
        """Return the Bayesian information criterion, ``-2 log L + p log n``; `relative_to` as in `score_samples`.

        Rows of norm zero have no weight here and in `aic` and `score`.
        """
        return self._bic(*self._relative_likelihood(X, sample_weight, relative_to))

    def aic(self, X: Any, sample_weight: Any = None, relative_to: str = "area") -> float:
        """Return Akaike's information criterion, ``-2 log L + 2 p``; `relative_to` as in `score_samples`."""
        return self._aic(*self._relative_likelihood(X, sample_weight, relative_to))

    def _relative_likelihood(self, X: Any, sample_weight: Any, relative_to: str) -> tuple[float, float]:
        check("relative_to", relative_to)
        likelihood, n_rows = self._likelihood(X, sample_weight)
        return likelihood + n_rows * self._log_area(relative_to), n_rows

    def _log_area(self, relative_to: str) -> float:
        return bessel.log_sphere_area(self.n_features_in_) if relative_to == "uniform" else 0.0
