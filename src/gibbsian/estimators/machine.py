"""What every machine shares: reading, learning, and files. A machine says which model it has and how it is checked."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from gibbsian.data import Dataset, drop_empty_rows
from gibbsian.data.stream import DataStream
from gibbsian.domain import AnyCoding, as_coding
from gibbsian.errors import ArgumentError, ConvergenceWarning, DataError, notify
from gibbsian.estimators.answers import AnswersMixin
from gibbsian.estimators.fitting import (
    are_chosen,
    check_hooks,
    check_memory,
    check_numbers,
    check_runaway,
    choose_learner,
    moments_of,
    plain_settings,
    provenance,
    shorten,
    start_from,
)
from gibbsian.learners import FitResult, HeldOut, Learner, as_learner, run
from gibbsian.learners.callbacks import as_callbacks
from gibbsian.models import Model
from gibbsian.rng import RandomState, as_generator
from gibbsian.storage import Checkpoint, StoredModel, write_model
from gibbsian.storage.checkpoints import as_checkpoint

# What scikit-learn keeps of the columns of a fit.
COLUMNS_SEEN = ("n_features_in_", "feature_names_in_")


class Machine(AnswersMixin, DensityMixin, BaseEstimator, ABC):
    """A model with a learner as a scikit-learn estimator; the machines are its subclasses."""

    learner: str | Learner
    l1: float
    l2: float
    coding: Any
    temperature: float
    max_iter: int
    tol: float
    binarize: float | None
    start: Any
    held_out: float
    checkpoint: Checkpoint | str | os.PathLike[str] | None
    callback: Any
    random_state: RandomState
    result_: Any

    # -- what a machine decides -----------------------------------------------------------------------------------
    @abstractmethod
    def _zeros(self, data: Dataset) -> Any:
        """Return the model of the data at zero parameters."""

    def _check_memory(self, data: Dataset, model: Any) -> None:
        """Refuse a fit that would not fit the memory, before it is planned."""
        check_memory(data, model)

    @abstractmethod
    def _preflight(self, data: Dataset, model: Any, l1: float, l2: float) -> None:
        """Refuse data that cannot determine the parameters."""

    @classmethod
    @abstractmethod
    def _structure_of(cls, model: Any) -> dict[str, Any]:
        """Return the settings that rebuild the structure of a stored model."""

    def _table_options(self) -> dict[str, Any]:
        """Return what `Dataset.read` is told about the labels of a fit, besides the coding."""
        return {}

    def _column_options(self) -> dict[str, Any]:
        """Return what `Dataset.read` is told about the columns of any data."""
        return {"binarize": self.binarize}

    def _fit_stream(self, stream: DataStream, sample_weight: Any = None) -> Self:
        raise ArgumentError(
            "a DataStream is learned by a BoltzmannMachine", "read rows into memory with `Dataset.read`"
        )

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that missing cells are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # -- learning -----------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the parameters.

        Parameters
        ----------
        X : array, frame, path, Dataset or DataStream
            Rows of variables; missing cells (NaN, blank, ``?``) are summed out, or sampled by chains. A `DataStream`
            stays on disk and is learned by minibatches (`BoltzmannMachine` only).
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.

        Returns
        -------
        self

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.BoltzmannMachine().fit([["yes", "no"], ["no", "no"], ["yes", "yes"], ["no", "yes"]]).coding_.name
        'yes/no'
        """
        check_hooks(self)
        before = {name: self.__dict__[name] for name in COLUMNS_SEEN if name in self.__dict__}
        try:
            return self._fit(X, sample_weight)
        except BaseException:  # a machine that refuses new data stays the machine it was
            for name in COLUMNS_SEEN:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise

    def _fit(self, X: Any, sample_weight: Any) -> Self:
        check_numbers(self)
        if isinstance(X, DataStream):
            return self._fit_stream(X, sample_weight)
        data = self._read(X, fitting=True, sample_weight=sample_weight)
        if data.row_weights is not None:
            data = data.take(data.row_weights > 0)
        rng = as_generator(self.random_state)
        data, held_out = self._hold_out(data, rng)
        model = self._zeros(data)
        self._check_memory(data, model)
        name = self._choose_learner(model, data)
        learner = as_learner(name, **self._learner_settings(name))
        l1, l2 = getattr(learner, "l1", 0.0), getattr(learner, "l2", 0.0)
        self._preflight(data, model, l1, l2)
        data = drop_empty_rows(data)
        result = self._run_learner(learner, model, data, rng)
        if not (l1 or l2):
            check_runaway(result.model, data, learner)
        if not result.converged:
            notify(ConvergenceWarning(result.reason))
        result = replace(
            result,
            provenance={**result.provenance, **self._provenance(name, learner, data, result)},
            moments=moments_of(model, data),
            penalised=bool(l1 or l2),
        )
        self._set_fitted(result, data.coding, data.names)
        if held_out is not None:
            self.result_ = replace(self.result_, held_out=self.score_or_pseudo_score(held_out))
        return self

    def _settle_learner(self, data: Dataset) -> str | Learner:
        """Settle which learner ``"auto"`` is for these data, before a fit."""
        return self._choose_learner(self._zeros(data), data)

    def _choose_learner(self, model: Any, data: Dataset) -> str | Learner:
        """Settle which learner ``"auto"`` is for this model and these data."""
        return choose_learner(self.learner, model, data)

    def _learner_settings(self, name: str | Learner) -> dict[str, Any]:
        """Return the machine's settings that are the learner's."""
        return {"l1": self.l1, "l2": self.l2}

    def _run_learner(self, learner: Learner, model: Any, data: Dataset, rng: np.random.Generator) -> FitResult:
        """Run the learner from where the machine starts."""
        return self._train(learner, start_from(self.start, model, data), data, rng)

    def _train(
        self, learner: Learner, model: Any, data: Dataset, rng: np.random.Generator, number: int = 0
    ) -> FitResult:
        """Run the learner from a model; a fit of several runs numbers them, and each has a checkpoint of its own."""
        return run(
            learner,
            model,
            data,
            rng,
            max_iter=self.max_iter,
            tol=self.tol,
            callbacks=self._callbacks(number),
        )

    def _provenance(self, name: str | Learner, learner: Learner, data: Dataset, result: FitResult) -> dict[str, Any]:
        """Return what a later reader of the model wants to know."""
        return provenance(name, learner, data, result)

    def _hold_out(self, data: Dataset, rng: np.random.Generator) -> tuple[Dataset, Dataset | None]:
        """Split off the rows that the fit shall not see."""
        if not 0 <= self.held_out < 1:
            raise ArgumentError(
                "must be a share of the rows, from 0 to less than 1", argument="held_out", value=self.held_out
            )
        if self.held_out == 0:
            return data, None
        if not 0 < round((1 - self.held_out) * data.n_rows) < data.n_rows:
            raise ArgumentError(
                f"of {data.n_rows} rows leaves no row out or none to fit",
                "give another share, or more rows",
                argument="held_out",
                value=self.held_out,
            )
        return data.split(1 - self.held_out, rng)

    def _set_fitted(self, result: FitResult, coding: AnyCoding, names: tuple[str, ...]) -> Self:
        self.__dict__.pop("_progress", None)  # what partial_fit kept belongs to the model it learned
        self.result_ = result
        self.model_: Any = result.model
        self.coding_: Any = coding
        self.names_ = names
        return self

    @property
    def variable_names_(self) -> tuple[str, ...]:
        """The variables of the model: the columns, and after them the hidden units of a machine that has some."""
        return self.names_

    def _callbacks(self, number: int = 0) -> list[Any]:
        """Return what happens beside learning; a fit of several runs numbers them, and each has its own checkpoint."""
        callbacks = as_callbacks(self.callback)
        if self.checkpoint is not None:
            given = as_checkpoint(self.checkpoint)
            path = f"{os.fspath(given.path)}.{number}" if number else given.path
            callbacks.append(Checkpoint(path, given.every, given.resume))
        return callbacks

    # -- reading ------------------------------------------------------------------------------------------------------
    def _read(self, X: Any, fitting: bool = False, sample_weight: Any = None) -> Dataset:
        """Read data for a fit, or for use with the fitted machine in its coding and columns."""
        told = {} if isinstance(X, Dataset) else self._column_options()
        if fitting:
            labels = {} if isinstance(X, Dataset) else self._table_options()
            data = Dataset.read(X, coding=self.coding, sample_weight=sample_weight, **labels, **told)
        else:
            check_is_fitted(self)
            self._check_width(X)
            options = {"coding": self.coding_, "sample_weight": sample_weight, "declared_by": "the model"}
            try:  # what the machine gave back itself (samples, filled rows) has been through these options already
                data = Dataset.read(X, **options)
            except DataError:
                if all(option is None for option in told.values()):
                    raise
                data = Dataset.read(X, **options, **told)
        self._check_columns(X, data, fitting)
        return data

    def _check_width(self, X: Any) -> None:
        """Refuse another number of columns in scikit-learn's own words, before their labels are looked at."""
        regrouped = self._column_options().get("one_hot") is not None
        if getattr(X, "ndim", 0) == 2 and not regrouped:
            validate_data(self, X, reset=False, skip_check_array=True)

    def _check_columns(self, X: Any, data: Dataset, fitting: bool) -> None:
        """Keep the columns' names in a fit; afterwards refuse other columns or another order."""
        regrouped = hasattr(X, "shape") and len(X.shape) > 1 and X.shape[1] != data.n_variables
        if not isinstance(X, Dataset | str | os.PathLike) and not regrouped:
            validate_data(self, X if hasattr(X, "shape") else data.states, reset=fitting, skip_check_array=True)
        elif fitting:
            self._set_columns(data.names)
        elif data.names != self.names_ and (data.n_variables != self.n_features_in_ or are_chosen(data.names)):
            raise ArgumentError(
                f"the columns are {shorten(data.names)} but the machine was fitted on {shorten(self.names_)}",
                "give the same columns in the same order",
            )

    def _set_columns(self, names: tuple[str, ...]) -> None:
        self.n_features_in_ = len(names)
        if are_chosen(names):
            self.feature_names_in_ = np.array(names, dtype=object)

    # -- files --------------------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the machine to a file: whole or not at all, and no pickle.

        Examples
        --------
        >>> import tempfile, pathlib, gibbsian as gb
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.gibbs"
        >>> gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).save(path)
        >>> gb.load(path).names_
        ('x0', 'x1')
        """
        check_is_fitted(self)
        result = self.result_
        told = {
            **result.provenance,
            "converged": result.converged,
            "reason": result.reason,
            "penalised": result.penalised,
            "held_out": result.held_out,
        }
        settings, names = plain_settings(self.get_params(deep=False)), self.variable_names_
        write_model(path, StoredModel(self.model_, self.coding_, names, settings, told, result.trace, result.moments))

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Rebuild a fitted machine from what a file holds."""
        assert stored.coding is not None, "the variables of a machine have labels"
        told = dict(stored.provenance)
        converged, reason = told.pop("converged", False), told.pop("reason", "")
        penalised, held_out = told.pop("penalised", False), told.pop("held_out", None)
        # what the user set may be "auto", which new data may fill otherwise; the model is read by its own coding_
        machine = cls(**{"coding": stored.coding, **stored.settings, **cls._structure_of(stored.model)})
        machine._set_columns(stored.names)
        result = FitResult(
            stored.model,
            stored.trace,
            converged,
            reason,
            told,
            stored.moments,
            penalised,
            None if held_out is None else HeldOut(*held_out),
        )
        return machine._set_fitted(result, stored.coding, stored.names)


class ConvertibleMixin:
    """Machines of two-valued variables can be written in another coding."""

    def convert(self: Any, coding: Any) -> Any:
        """Return the same distribution of two-valued variables written in another coding, exactly.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> other = bm.convert("binary")
        >>> bool(abs(other.score([[1, 0]]) - bm.score([[1, -1]])) < 1e-12)
        True
        """
        check_is_fitted(self)
        target = as_coding(coding)
        model: Model = self.model_.to_domain(target.domain)[0]
        told = {**self.result_.provenance, "converted_from": self.coding_.name}
        result = replace(self.result_, model=model, moments=None, provenance=told)
        converted = type(self)(**self.get_params(deep=False))
        converted.coding = target
        if model is not self.model_ and hasattr(converted, "bias"):
            converted.bias = True  # writing products of other values makes biases
        converted._set_columns(self.names_)
        return converted._set_fitted(result, target, self.names_)
