"""Mixtures with a density: soft k-means, spherical Gaussians, von Mises-Fisher, as scikit-learn estimators."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.data import Dataset
from gibbsian.data.readers import is_on_cluster
from gibbsian.errors import (
    ArgumentError,
    DataError,
    DegenerateDataWarning,
    MissingValuesError,
    MissingValuesWarning,
    notify,
)
from gibbsian.estimators.base import Estimator
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.numbers import NumberTables
from gibbsian.learning import EM, FitResult, Learner, as_learner
from gibbsian.learning.bound_mixtures import FAR_APART, PLACINGS, bound
from gibbsian.learning.stages import Annealed, Restarts
from gibbsian.models.base import Model
from gibbsian.models.mixtures.base import require_all_cells
from gibbsian.models.mixtures.gaussian import GaussianMixtureFamily
from gibbsian.models.mixtures.von_mises_fisher import (
    VonMisesFisherMixtureFamily,
    log_sphere_area,
    unit_rows,
    without_direction,
)
from gibbsian.settings import Setting, check_value, choice, declared, flag, free, number, positional, whole
from gibbsian.startup import TransformerMixin, check_is_fitted, pandas

# Beyond these, squares in the densities leave the range of numbers.
LEAST_VARIANCE, LARGEST_KAPPA = 1e-140, 1e140
# How classes begin and share rows where nothing is said.
DEFAULTS = (FAR_APART, "soft")
_RELATIVE_TO = Setting("What densities are relative to.", "choice", words=("area", "uniform"))


class ClassAttributes:
    """What fitted estimators show of their classes, each the parts of its own model."""

    weights_: np.ndarray
    means_: np.ndarray
    concentrations_: np.ndarray
    variances_: np.ndarray
    probabilities_: np.ndarray
    machines_: list[Any]


@declared
class ClassEstimator(ClassAttributes, TransformerMixin, NumberTables, Estimator):
    """What all estimators with a hidden class share: numbers as data, and questions about classes."""

    n_components: int = positional(kw_only=False, default=whole(2, "k, the number of classes.", least=1))
    start: Any = free(
        FAR_APART,
        "Where the classes begin: at rows far apart ('k-means++'), at any rows ('random', for many classes), at a "
        "random partition of the rows ('partition', YK15 K-means (2) step 1), or at given means, one row for each "
        "class: an array, a table on disk, or those of a fitted mixture.",
        doc="{'k-means++', 'random', 'partition'}, array, path or fitted mixture",
    )
    _value_name: ClassVar[str] = "free energy"
    _learns_on_cluster: ClassVar[bool] = True

    def _counting(self, data: Dataset) -> Dataset:
        self._fit_data = data  # for the classes of all its rows
        return super()._counting(data)

    # -- learning -----------------------------------------------------------------------------------------------------
    def _family(self, data: Dataset) -> Any:
        """Return the mixtures among which one is learned."""
        raise NotImplementedError

    @property
    def _is_given(self) -> bool:
        return not (isinstance(self.start, str) and self.start in PLACINGS)

    @property
    def _placing(self) -> dict[str, Any]:
        return {} if self._is_given else {"placing": self.start}

    def _start(self, data: Dataset, rng: np.random.Generator) -> Any:
        family = self._family(data)
        if not self._is_given:
            return Model.zeros(family)
        rows = bound(family, data, hard=False)
        return rows.reported(rows.from_means(self._means_given(data)))

    def _means_given(self, data: Dataset) -> np.ndarray:
        """Return the means to start from, read as rows are; numbers in a line are cut into rows."""
        shape = (self.n_components, data.n_variables)
        given = getattr(self.start, "means_", self.start)
        if not isinstance(given, str | os.PathLike) and np.size(given) == np.prod(shape) and np.ndim(given) == 1:
            given = np.reshape(given, shape)
        read = self._prepared(Dataset.read(given, coding=data.coding))
        if (read.n_rows, read.n_variables) != shape or read.has_missing:
            remedy = f"give one mean of {shape[1]} columns, none missing, for each of {shape[0]} classes"
            reason = f"has {read.n_rows} rows of {read.n_variables} columns"
            raise ArgumentError(reason, remedy, argument="start", value=type(self.start).__name__)
        return read.rows()[0]

    def _chunk_learner(self, model: Any, data: Dataset) -> Learner:
        return EM(assignment="hard", **self._placing)

    def partial_fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one chunk of rows, keeping what was learned before: sums of the classes add over chunks.

        The first chunk places the classes, so it should show all of them.
        """
        if self._is_fitted and self.n_components != self.model_.family.n_components:
            reason = f"but there are {self.model_.family.n_components} classes already"
            remedy = f"call fit, or partial_fit on a new {type(self).__name__}"
            raise ArgumentError(reason, remedy, argument="n_components", value=self.n_components)
        super().partial_fit(X, y, sample_weight)
        return self._label()

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the classes.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows. Missing cells are integrated out.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), default=None
            How much each row counts.

        Returns
        -------
        self
        """
        super().fit(X, y, sample_weight)
        return self._label()

    def _label(self) -> Self:
        """Keep the class of each row of the fit."""
        data = self.__dict__.pop("_fit_data")
        if data.on_cluster:  # where the rows stay, and so do their classes
            self.__dict__.pop("labels_", None)
            return self
        self.labels_ = self._answers.classes(data)[data.row_of]
        return self

    def fit_predict(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> np.ndarray:
        """Learn the classes, and return the most probable one of each row."""
        if is_on_cluster(X):
            raise ArgumentError(
                "the order of rows on a cluster is not kept, and so neither are their classes",
                "fit, and give `predict` the partitions of the frame, or `data.collect()`",
            )
        return self.fit(X, y, sample_weight=sample_weight).labels_

    def _learner_of_fit(self, data: Dataset) -> Learner:
        learner: Learner = self._learner(self.model_, data)
        while hasattr(learner, "learner"):  # starts and stages around it
            learner = learner.learner
        return learner

    def _judged(self, result: FitResult, data: Dataset, learner: Learner) -> FitResult:
        if result.warning:
            notify(DegenerateDataWarning(result.warning))
        return result

    def _set_fitted(self, result: FitResult, coding: Any, names: tuple[str, ...]) -> Self:
        super()._set_fitted(result, coding, names)
        self.converged_ = result.converged
        for name, part in self._shown_parts().items():
            setattr(self, f"{name}_", part)
        return self

    def _shown_parts(self) -> dict[str, Any]:
        """Return the parts of the model that the estimator shows, by name."""
        return self.model_.parts._asdict()

    @property
    def free_energies_(self) -> np.ndarray:
        """The free energy, or the energy of k-means, at every step of the start that was kept; it never rises."""
        return self.result_.trace.kept("value")

    # -- questions ----------------------------------------------------------------------------------------------------
    def predict(self, X: Any, columns: Any = None, losses: Any = None) -> np.ndarray:
        """Return the most probable class of each row; with `columns` decisions about these, as machines give them."""
        if columns is not None:
            return super().predict(X, columns, losses)
        data = self._read(X)
        return self._answers.classes(data)[data.row_of]

    def predict_proba(self, X: Any, columns: Any = None, joint: bool = False) -> Any:
        """Return ``P(class | x)`` of each row (YK15's soft-assign variables); with `columns` as machines give them."""
        if columns is not None:
            return super().predict_proba(X, columns, joint)
        data = self._read(X)
        return self._answers.class_probabilities(data)[data.row_of]

    def cell_probabilities(self, X: Any) -> np.ndarray:
        """Return the probabilities of the values of each cell given the present cells of its row.

        An array of shape (rows, columns, values) with zeros after the last value of a column that has fewer, or of
        shape (rows, columns) with the probability of the upper value where all columns are of one two-valued coding.
        """
        data = self._read(X)
        return self._answers.cell_probabilities(data, self._rng())[data.row_of]

    def transform(self, X: Any) -> np.ndarray:
        """Return ``P(class | x)`` of each row: what is hidden, given what is seen."""
        return self.predict_proba(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the classes, the columns that `transform` gives."""
        check_is_fitted(self)
        return np.array([f"class{a}" for a in range(self.model_.family.n_components)], dtype=object)

    def _at_temperature(self, temperature: float) -> Any:
        raise ArgumentError("a mixture has no temperature", "leave `temperature` out")

    # -- what it is ---------------------------------------------------------------------------------------------------
    def figures(self) -> dict[str, Any]:
        """Return a few numbers that say what the fitted mixture is, by name."""
        last = {self._value_name: float(self.free_energies_[-1])} if len(self.free_energies_) else {}
        warning = {"beware:": self.result_.warning} if self.result_.warning else {}
        return {"classes": self.model_.family.n_components, "columns": len(self.names_), **last, **warning}

    def tables(self, n: int = 10) -> dict[str, Any]:
        """Return weight, variance or concentration of each class, and its largest means."""
        found = self._shown_parts()
        numbers = {part.removesuffix("s"): values for part, values in found.items() if values.ndim < 2}
        tables = {"classes": pandas.DataFrame({"class": range(self.n_components), **numbers})}
        return tables if "means" not in found else {**tables, "largest means": self._largest_means(n)}

    def _largest_means(self, n: int) -> Any:
        order = np.argsort(-np.abs(self.means_), axis=1, kind="stable")[:, :n]
        columns = np.array(self.names_, dtype=object)[order.ravel()]
        classes = np.repeat(np.arange(self.n_components), order.shape[1])
        return pandas.DataFrame({"class": classes, "column": columns, "mean": self.means_[classes, order.ravel()]})

    @classmethod
    def _structure_of(cls, model: Any, coding: Any) -> dict[str, Any]:
        return {"n_components": model.family.n_components}


@declared
class MixtureEstimator(ClassEstimator):
    """A mixture with a density: scores, criteria, samples."""

    learner: Any = free(
        "auto",
        "How to learn: 'em' by steps over all rows, which 'auto' is, 'online-em' by running statistics of a few rows "
        "at a time, or a learner object with its own settings.",
        doc="str or Learner",
    )
    n_init: int = whole(5, "Starts; the one of least free energy is kept.", least=1)
    max_iter: int = whole(1000, "Most steps of each start.", least=1)

    learners = ("em", "online-em")
    auto_learner = "em"
    tol: float = number(1e-7, "Converged when the free energy per row falls by no more.", least=0.0)

    def _learner(self, model: Any, data: Dataset) -> Learner:
        n_init = 1 if self._is_given else self.n_init
        return Restarts(learner=self._chunk_learner(model, data), n_init=n_init, max_iter=self.max_iter, tol=self.tol)

    def _chunk_learner(self, model: Any, data: Dataset) -> Learner:
        chosen = {"assignment": getattr(self, "assignment", "soft"), **self._placing}
        own: dict[str, Any] = {name: value for name, value in chosen.items() if value not in DEFAULTS}
        return as_learner(self._asked, **own)

    def score(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-density per row."""
        likelihood, weight = self._answers.log_likelihood(self._read(X, sample_weight=sample_weight))
        return likelihood / weight

    @property
    def n_parameters_(self) -> int:
        """The number of parameters that the fit has learned."""
        return self._answers.n_parameters()

    def bic(self, X: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion, ``-2 log L + p log n``: the lower the better."""
        return self._answers.bic(self._read(X, sample_weight=sample_weight))

    def aic(self, X: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return Akaike's information criterion, ``-2 log L + 2 p``: the lower the better."""
        return self._answers.aic(self._read(X, sample_weight=sample_weight))


@ESTIMATORS.register("soft-k-means", about="numbers, classes of equal weight and one given variance", rows="numbers")
@declared
class SoftKMeans(MixtureEstimator):
    """Soft k-means of the lecture: classes of equal weight and one fixed variance, which sets the softness (YK15).

    The fit leaves ``means_``, ``labels_`` and ``free_energies_``; ``stages_`` has the variance of every step.

    Examples
    --------
    >>> import gibbsian as gb
    >>> soft = gb.SoftKMeans(variance=1.0, random_state=0).fit([[0.0], [1.0], [10.0], [11.0]])
    >>> soft.predict_proba([[5.5]]).round(3)
    array([[0.5, 0.5]])
    """

    variance: float = number(
        1.0, "sigma^2; towards zero the assignments become those of hard k-means.", least=LEAST_VARIANCE
    )
    anneal: bool = flag(
        False,
        "Begin with all means together at a variance where they stay so and lower it step by step, which avoids most "
        "poor local minima.",
    )
    cooling: float = number(0.8, "The factor between two variances of an annealed fit.", above=0, below=1)
    max_iter: int = whole(1000, "Most steps of each start, and of each stage.", least=1)
    tol: float = number(1e-8, "Converged when the free energy per row falls by no more.", least=0.0)

    def _family(self, data: Dataset) -> Any:
        return GaussianMixtureFamily(self.n_components, data.n_variables, float(self.variance), free_weights=False)

    def _learner(self, model: Any, data: Dataset) -> Learner:
        if not self.anneal:
            return super()._learner(model, data)
        if self._is_given or self._placing["placing"] != FAR_APART:
            raise ArgumentError("`start` is not for annealed fits, which begin with all means together", "leave it out")
        stages = Annealed(
            learner=self._chunk_learner(model, data), cooling=self.cooling, max_iter=self.max_iter, tol=self.tol
        )
        return Restarts(learner=stages, n_init=self.n_init, max_iter=None, tol=self.tol)

    @property
    def stages_(self) -> np.ndarray:
        """The variance at every step of the start that was kept."""
        if "stage" in self.result_.trace.details:
            return self.result_.trace.kept("stage")
        return np.full(self.n_iter_, float(self.variance))


@ESTIMATORS.register("gaussian-mixture", about="numbers, a spherical Gaussian for each class", rows="numbers")
@declared
class GaussianMixture(MixtureEstimator):
    """Mixture of spherical Gaussians with learned variances and weights (YK15, soft k-means).

    The fit leaves ``weights_``, ``means_``, ``variances_``, ``labels_`` and ``free_energies_``.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.random.default_rng(0).normal(size=(300, 2)) * (1 + 2 * (np.arange(300) % 2))[:, None]
    >>> rows[::2] += 20
    >>> mixture = gb.GaussianMixture(random_state=0).fit(rows)
    >>> np.sort(mixture.means_[:, 0]).round(-1).tolist()
    [-0.0, 20.0]
    >>> mixture.impute([[20.0, np.nan]]).round(-1)
    array([[20., 20.]])
    """

    variance: str = choice("free", "One variance for each class, or one for all.", "free", "tied")
    variance_floor: float = number(1e-6, "Least variance, as a share of the mean variance of the columns.", above=0.0)

    def _family(self, data: Dataset) -> Any:
        return GaussianMixtureFamily(
            self.n_components, data.n_variables, self.variance, floor_share=self.variance_floor
        )


class UnitNorm:
    """Estimators whose rows are directions: scaled to unit norm; those of norm zero do not count, with a warning."""

    normalize: bool
    columns_may_be_independent: ClassVar[bool] = False
    _without_norm: ClassVar[str] = ""  # what else to do about missing cells

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that unit norm needs all cells."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = not self._needs_unit_norm
        return tags

    @property
    def _needs_unit_norm(self) -> bool:
        return self.normalize

    def _scaled(self: Any, data: Dataset) -> Dataset:
        """Return the data with rows of unit norm."""
        unit = partial(_of_unit_norm, self.normalize, self._without_norm)
        if data.on_cluster:
            if data.has_missing:
                reason = f"{data.n_missing} cells are missing, but unit norm ties all cells of a row together"
                raise MissingValuesError(reason, "fill them or leave the rows out")
            scaled: Any = data.map(unit)
            if lost := data.n_rows - scaled.n_rows:
                notify(MissingValuesWarning(f"{lost} rows have norm zero and so no direction", "left out of the fit"))
            return scaled
        scaled = unit(data)
        places = np.flatnonzero(np.isin(scaled.row_of, without_direction(scaled.states)))
        if len(places):
            _notify_without_direction(places)
            if not scaled.row_weights.any():
                raise DataError("no row has a weight above zero", "there is nothing to learn from or to score")
        return scaled


def _of_unit_norm(normalize: bool, without_norm: str, data: Dataset) -> Dataset:
    """Return rows of unit norm; those of norm zero have no weight."""
    if data.missing is not None:
        require_all_cells(data.missing[data.row_of], without_norm)
    if not normalize:
        unit_rows(data.rows()[0], scale=False)
    data = data.with_numbers(unit_rows(data.states, scale=normalize))
    silent = np.zeros(data.n_states, dtype=bool)
    silent[without_direction(data.states)] = True
    if not silent.any():
        return data
    row_weights = np.ones(data.n_rows) if data.row_weights is None else data.row_weights
    return replace(
        data,
        weights=np.where(silent, 0.0, data.weights),
        row_weights=np.where(silent[data.row_of], 0.0, row_weights),
    )


@ESTIMATORS.register(
    "vmf-mixture", about="directions, a von Mises-Fisher distribution for each class", rows="directions", missing=False
)
@declared
class VonMisesFisherMixture(UnitNorm, MixtureEstimator):
    """Mixture of von Mises-Fisher distributions on the unit sphere, for dense and sparse rows (YK15).

    Equal weights and one concentration with hard assignment are spherical k-means, whatever the concentration; with
    soft assignment they lead there as it grows. Rows of norm zero are left out with a warning. Missing cells are
    refused: unit norm ties all cells of a row together. The fit leaves ``weights_``, ``means_``, ``concentrations_``,
    ``labels_`` and ``free_energies_``.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rng = np.random.default_rng(0)
    >>> rows = np.repeat(np.eye(3)[:2], 100, axis=0) + rng.normal(size=(200, 3)) / 5
    >>> vmf = gb.VonMisesFisherMixture(n_components=2, random_state=0).fit(rows)
    >>> np.sort(vmf.means_[:, 0]).round(1)
    array([0., 1.])
    """

    kappa: float | str = number(
        "free",
        "One concentration for each class, one for all, or a fixed one (YK15's lambda = 1/sigma^2).",
        least=0.0,
        most=LARGEST_KAPPA,
        words=("free", "tied"),
    )
    class_weights: str = choice("free", "Learn the weights of the classes or keep them equal.", "free", "equal")
    assignment: str = choice("soft", "Share each row among the classes or give it to the best.", "soft", "hard")
    normalize: bool = flag(True, "Scale rows to unit norm; otherwise they must have it.")
    kappa_max: float = number(
        1e8, "Largest concentration: a class of one direction has no finite one.", above=0.0, most=LARGEST_KAPPA
    )
    _welcome = ("sparse",)

    @property
    def _needs_unit_norm(self) -> bool:
        return True

    def _prepared(self, data: Dataset) -> Dataset:
        if data.n_variables < 2:
            raise DataError("n_features=1", "directions need at least two columns")
        return self._scaled(data)

    def _family(self, data: Dataset) -> Any:
        return VonMisesFisherMixtureFamily(
            self.n_components,
            data.n_variables,
            kappa=self.kappa,
            free_weights=self.class_weights == "free",
            largest=self.kappa_max,
        )

    def score_samples(self, X: Any, relative_to: str = "area", **known: Any) -> np.ndarray:
        """Return the log-density of each row; zero for a row of norm zero, which tells nothing.

        Parameters
        ----------
        X : array, frame or CSR matrix
            The rows.
        relative_to : {"area", "uniform"}, default="area"
            Per unit of area of the sphere, or relative to the uniform distribution on it (as R's movMF).
        """
        data, log_unit = self._read(X), self._log_unit(relative_to)
        scores = self._answers.log_evidence(data) + log_unit
        scores[without_direction(data.states)] = 0.0
        return scores[data.row_of]

    def bic(self, X: Any, sample_weight: ArrayLike | None = None, relative_to: str = "area") -> float:
        """Return the Bayesian information criterion; `relative_to` as in `score_samples`."""
        return self._answers.bic(self._read(X, sample_weight=sample_weight), self._log_unit(relative_to))

    def aic(self, X: Any, sample_weight: ArrayLike | None = None, relative_to: str = "area") -> float:
        """Return Akaike's information criterion; `relative_to` as in `score_samples`."""
        return self._answers.aic(self._read(X, sample_weight=sample_weight), self._log_unit(relative_to))

    def _log_unit(self, relative_to: str) -> float:
        check_is_fitted(self)
        check_value("relative_to", relative_to, _RELATIVE_TO)
        return log_sphere_area(self.n_features_in_) if relative_to == "uniform" else 0.0


def _notify_without_direction(places: np.ndarray) -> None:
    others = f" and {len(places) - 1} more have" if len(places) > 1 else " has"
    it = "they tell" if len(places) > 1 else "it tells"
    message = f"row {places[0]}{others} norm zero and so no direction"
    notify(MissingValuesWarning(message, f"{it} nothing about the classes"))
