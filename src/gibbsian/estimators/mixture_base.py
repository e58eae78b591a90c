"""What the faces of all mixtures share: reading rows, questions to a fitted mixture, warnings, files."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from gibbsian.errors import ArgumentError, ConvergenceWarning, DataError, DegenerateDataWarning, notify
from gibbsian.mixtures import EMResult, ExponentialProblem, check_finite, log_joint
from gibbsian.mixtures.em import best_of, iterate
from gibbsian.mixtures.rows import checked_weights, notify_without_direction, require_weight
from gibbsian.mixtures.seeds import spread_rows
from gibbsian.mixtures.settings import Rule, check, check_settings
from gibbsian.mixtures.weights import shares_of
from gibbsian.rng import RandomState, as_generator
from gibbsian.storage import write_tensors

MIXTURE_FILE = "mixture"


class HiddenClassEstimator(BaseEstimator):
    """A scikit-learn estimator with a hidden class, fitted by the EM loop or by stochastic steps."""

    kind: ClassVar[str]
    components: ClassVar[type]
    accepts_sparse: ClassVar[bool] = False
    own_rules: ClassVar[Mapping[str, Rule]] = {}

    n_components: int
    random_state: RandomState
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn which rows are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.accepts_sparse
        return tags

    def _rows(self, X: Any, fitting: bool = False) -> Any:
        """Validate rows of numbers; the fit's columns are remembered and asked for afterwards."""
        self._ready(fitting)
        sparse = ("csr",) if self.accepts_sparse else False
        rows = validate_data(self, X, reset=fitting, dtype=np.float64, accept_sparse=sparse, ensure_all_finite=False)
        check_finite(rows, getattr(self, "feature_names_in_", None))
        return self._prepared(rows)

    def _ready(self, fitting: bool) -> None:
        """Before a fit check the settings, afterwards that there was one."""
        if fitting:
            check_settings(self.get_params(deep=False), self.own_rules)
        else:
            check_is_fitted(self)

    def _prepared(self, rows: Any) -> Any:
        """Return the rows as the mixture wants them."""
        return rows

    def _silent(self, rows: Any) -> np.ndarray:
        """Return the numbers of prepared rows that tell nothing about the classes."""
        return np.empty(0, dtype=np.int64)

    def _row_weights(self, rows: Any, sample_weight: Any) -> np.ndarray:
        """Return one weight per prepared row; those that tell nothing are named and count for nothing."""
        weights = checked_weights(sample_weight, rows.shape[0])
        silent = self._silent(rows)
        notify_without_direction(silent)
        weights[silent] = 0.0
        require_weight(weights)
        return weights

    def _finish(self, result: EMResult, rows: Any) -> Self:
        """Keep the result of a fit to prepared rows, and say what is wrong with it."""
        if result.degenerate:
            notify(DegenerateDataWarning(result.degenerate))
        if not result.converged:
            notify(ConvergenceWarning(result.reason))
        self._keep(result)
        self.labels_ = self._classes(rows)
        return self

    def _classes(self, rows: Any) -> np.ndarray:
        """Return the most probable class of each prepared row."""
        raise NotImplementedError

    def _keep(self, result: EMResult) -> None:
        self.result_ = result
        self.mixture_ = result.mixture
        self.n_iter_ = result.n_steps
        self.converged_ = result.converged

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        rows = self._rows(X)
        notify_without_direction(self._silent(rows))
        return self._classes(rows)

    # -- files --------------------------------------------------------------------------------------------------------
    def to_tensors(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return a plain header and named arrays that hold the fitted mixture."""
        check_is_fitted(self)
        result, names = self.result_, getattr(self, "feature_names_in_", None)
        header = {
            "estimator": self.kind,
            "settings": _plain_settings(self.get_params(deep=False)),
            "names": None if names is None else [str(name) for name in names],
            "n_columns": self.n_features_in_,
            "converged": result.converged,
            "reason": result.reason,
            "seconds": result.seconds,
            "degenerate": result.degenerate,
            **self._extra_header(),
        }
        parts = {field.name: getattr(self.mixture_, field.name) for field in dataclasses.fields(self.mixture_)}
        header["numbers"] = {name: value for name, value in parts.items() if isinstance(value, float)}
        tensors = {f"mixture.{name}": value for name, value in parts.items() if isinstance(value, np.ndarray)}
        trace = {"free_energies": result.free_energies, "stages": result.stages}
        return header, {**trace, **tensors, **self._extra_tensors()}

    @classmethod
    def from_tensors(cls, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> Self:
        """Rebuild the fitted mixture from `to_tensors`."""
        estimator = cls(**header["settings"])
        parts = {name.removeprefix("mixture."): value for name, value in tensors.items() if "." in name}
        mixture = cls._rebuilt(parts, header)
        estimator.n_features_in_ = int(header["n_columns"])
        if header["names"] is not None:
            estimator.feature_names_in_ = np.array(header["names"], dtype=object)
        story = (header["converged"], header["reason"], header["seconds"], header["degenerate"])
        estimator._keep(EMResult(mixture, tensors["free_energies"], tensors["stages"], *story))
        estimator._restore(header, tensors)
        return estimator

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the mixture to a file: whole or not at all, and no pickle.

        The classes of the fit's own rows (``labels_``) are not part of the mixture and stay behind: ask ``predict``.
        """
        header, tensors = self.to_tensors()
        write_tensors(path, MIXTURE_FILE, header, tensors)

    def _extra_header(self) -> dict[str, Any]:
        return {}

    def _extra_tensors(self) -> dict[str, np.ndarray]:
        return {}

    def _restore(self, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        """Take what `_extra_header` and `_extra_tensors` gave."""

    @classmethod
    def _rebuilt(cls, parts: dict[str, np.ndarray], header: dict[str, Any]) -> Any:
        return cls.components(**parts, **header["numbers"])


class MixtureEstimator(DensityMixin, HiddenClassEstimator):
    """A mixture with a density: shares, scores, criteria, samples."""

    def _scores(self, rows: Any) -> np.ndarray:
        """Return ``log P(x, class)`` of prepared rows."""
        return log_joint(self.mixture_, rows)

    def _checked_scores(self, rows: Any) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._scores(rows)
        lost = np.flatnonzero(~(scores < np.inf).all(axis=1))
        if len(lost):
            raise DataError(
                f"row {lost[0]} is too far from the classes for its density to be a number", "scale the rows"
            )
        return scores

    def _log_joint(self, X: Any) -> np.ndarray:
        rows = self._rows(X)
        notify_without_direction(self._silent(rows))
        return self._checked_scores(rows)

    def _classes(self, rows: Any) -> np.ndarray:
        return self._checked_scores(rows).argmax(axis=1)

    def _densities(self, rows: Any) -> np.ndarray:
        """Return the log-density of prepared rows."""
        return logsumexp(self._checked_scores(rows), axis=1)

    def _keep(self, result: EMResult) -> None:
        super()._keep(result)
        self.weights_ = result.mixture.weights
        self._n_parameters = self._count(result.mixture)

    @property
    def n_parameters_(self) -> int:
        """The number of parameters that the fit has learned."""
        check_is_fitted(self)
        if self._n_parameters is None:
            raise ArgumentError(
                "the machines do not tell their number of parameters (n_parameters_ or model_.theta), "
                "which bic and aic need"
            )
        return self._n_parameters

    def _count(self, mixture: Any) -> int | None:
        """Count the parameters of a mixture that was just fitted, with the settings of its fit."""
        raise NotImplementedError

    def _extra_header(self) -> dict[str, Any]:
        return {"n_parameters": self._n_parameters}

    def _restore(self, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        self._n_parameters = header["n_parameters"]

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return the most probable class of each row."""
        return self.fit(X, y, sample_weight=sample_weight).labels_

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return ``P(class | x)`` of each row (YK15's soft-assign variables)."""
        return shares_of(self._log_joint(X))

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-density of each row."""
        return logsumexp(self._log_joint(X), axis=1)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-density of the rows; those that tell nothing about the classes have no weight."""
        likelihood, n_rows = self._likelihood(X, sample_weight)
        return likelihood / n_rows

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Return the Bayesian information criterion, ``-2 log L + p log n``: the lower the better."""
        return self._bic(*self._likelihood(X, sample_weight))

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Return Akaike's information criterion, ``-2 log L + 2 p``: the lower the better."""
        return self._aic(*self._likelihood(X, sample_weight))

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows, and the class of each.

        Parameters
        ----------
        n_samples : int
            How many rows.
        random_state : None, int or Generator
            Overrides the estimator's own.
        """
        check_is_fitted(self)
        check("n_samples", n_samples)
        rng = as_generator(self.random_state if random_state is None else random_state)
        return self.mixture_.sample(int(n_samples), rng)

    def _likelihood(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        """Return the log-likelihood of the rows that count, and their weight."""
        rows = self._rows(X)
        weights = self._row_weights(rows, sample_weight)
        return float(weights @ self._densities(rows)), float(weights.sum())

    def _bic(self, likelihood: float, n_rows: float) -> float:
        return float(-2.0 * likelihood + self.n_parameters_ * np.log(n_rows))

    def _aic(self, likelihood: float, n_rows: float) -> float:
        return float(-2.0 * likelihood + 2.0 * self.n_parameters_)


def _plain_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that a file can hold, NumPy's numbers as plain ones; generators and machines stay behind."""
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in settings.items()}
    return {name: value for name, value in plain.items() if value is None or isinstance(value, str | int | float)}


def from_spread_rows(estimator: Any, problem: ExponentialProblem, rng: np.random.Generator) -> EMResult:
    """Fit from partitions around k-means++ rows, with the estimator's settings, and keep the best."""

    def one(generator: np.random.Generator) -> EMResult:
        start = problem.from_means(spread_rows(problem.data, estimator.n_components, generator))
        return iterate(problem, start, estimator.max_iter, estimator.tol)

    return best_of(one, estimator.n_init, rng)
