"""What every estimator holds after a fit, and how it reads tables before and after one."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.answers import answers_about
from gibbsian.backends.device import on_device
from gibbsian.data import Dataset, OneHot
from gibbsian.data.fitted import read_for
from gibbsian.data.readers import is_on_cluster, is_on_disk, read_table
from gibbsian.data.table import Table
from gibbsian.data.two_values import same_labels
from gibbsian.domain import Coding
from gibbsian.errors import ArgumentError, CodingError, DataError
from gibbsian.estimators.frames import are_chosen, shorten, validate_data
from gibbsian.learning.result import FitResult
from gibbsian.rng import RandomState, as_generator
from gibbsian.startup import BaseEstimator, DensityMixin, check_is_fitted

# What scikit-learn keeps of the columns of a fit.
COLUMNS_SEEN = ("n_features_in_", "feature_names_in_")

Method = TypeVar("Method", bound=Callable[..., Any])


def on_own_device(method: Method) -> Method:
    """Run the kernels of a method on the estimator's device."""

    @wraps(method)
    def run_there(self: Any, *args: Any, **kwargs: Any) -> Any:
        with on_device(self.device, self.precision):
            return method(self, *args, **kwargs)

    return cast(Method, run_there)


class ReadsTables(DensityMixin, BaseEstimator):
    """An estimator as far as it reads: a table for a fit, later rows in the coding and columns of its model."""

    model_: Any
    coding_: Any
    names_: tuple[str, ...]
    result_: FitResult
    random_state: RandomState
    temperature: float = 1.0
    _frame_of_fit: Any = None  # the table of the fit without its rows, where it was a frame

    # kinds of tables that are welcome besides numbers with missing cells, by scikit-learn's names
    _welcome: ClassVar[tuple[str, ...]] = ()
    # What becomes of rows on a cluster: they stay there, or their distinct ones are counted there and come here.
    _learns_on_cluster: ClassVar[bool] = False
    _counts_rows: ClassVar[bool] = False

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn which tables are welcome."""
        tags = super().__sklearn_tags__()
        for kind in ("allow_nan", *self._welcome):
            setattr(tags.input_tags, kind, True)
        return tags

    def _coding(self) -> Any:
        """Return what `Dataset.read` is to take the labels of a fit for."""
        return "auto"

    # -- reading -------------------------------------------------------------------------------------------------------
    def read(
        self, source: Any, *, drop: Any = (), weights: str | None = None, convert: bool = False, unseen: Any = ()
    ) -> Dataset:
        """Read a table as this estimator takes it: for a fit in its coding, afterwards in the model's own columns.

        Parameters
        ----------
        source : path, frame or array
            The table. Columns that a fitted model does not know are left aside.
        drop : str or list of str, default=()
            Columns to leave out of a fit.
        weights : str, default=None
            The column of row weights.
        convert : bool, default=False
            Write two-valued columns in the model's coding: lower for lower, upper for upper.
        unseen : list of str, default=()
            Columns of a fitted model that the table need not have: they are missing then.

        Examples
        --------
        >>> import pandas, gibbsian as gb
        >>> frame = pandas.DataFrame({"id": [1, 2, 3, 4], "a": [0, 1, 1, 0], "b": [1, 0, 1, 0]})
        >>> bm = gb.BoltzmannMachine()
        >>> bm.fit(bm.read(frame, drop="id")).read(frame).names
        ('a', 'b')
        """
        if not self._is_fitted:
            return Dataset.read(source, coding=self._coding(), drop=drop, weight_column=weights)
        return read_for(self.coding_, self.names_, source, weights, convert, unseen)

    @property
    def _is_fitted(self) -> bool:
        return hasattr(self, "model_")

    def _read(self, X: Any, fitting: bool = False, sample_weight: ArrayLike | None = None) -> Dataset:
        """Read data for a fit, or for use with the fitted model in its coding and columns."""
        if is_on_cluster(X):
            return self._read_cluster(X, fitting, sample_weight)
        if is_on_disk(X):
            if not fitting:
                raise DataError("a DataStream is learned by fit", "give `stream.collect()`, its distinct rows")
            if sample_weight is not None:
                raise ArgumentError("`sample_weight` is for data in memory", "a stream has no weights")
            X = X.collect()
        if fitting:
            data = Dataset.read(X, coding=self._coding(), sample_weight=sample_weight)
        else:
            check_is_fitted(self)
            X = self._modelled(X)
            self._check_width(X)
            data = Dataset.read(X, coding=self.coding_, sample_weight=sample_weight, declared_by="the model")
        self._check_columns(X, data, fitting)
        return data

    def _read_cluster(self, X: Any, fitting: bool, sample_weight: ArrayLike | None) -> Any:
        """Read a Dask collection on its workers, or take rows that are there already."""
        from gibbsian.cluster import DistributedDataset

        if sample_weight is not None:
            raise ArgumentError(
                "`sample_weight` is for data in memory",
                "name a column of weights, `DistributedDataset.read(..., weight_column=...)`",
            )
        coding, columns = (self._coding(), None) if fitting else (self.coding_, self.names_)
        data = X if isinstance(X, DistributedDataset) else DistributedDataset.read(X, coding=coding, columns=columns)
        if isinstance(coding, Coding) and not (isinstance(data.coding, Coding) and same_labels(data.coding, coding)):
            reason = f"was declared but the rows are {data.coding.describe()}"
            raise CodingError(reason, "read them in that coding", argument="coding", value=coding)
        if fitting:
            self._set_columns(data.names)
        if self._counts_rows:
            return Dataset.read(data.collect(), coding=coding)
        if not self._learns_on_cluster:
            raise ArgumentError(
                f"a {type(self).__name__} takes no rows on a cluster",
                "give `data.collect()`, its distinct rows, where they fit this machine",
            )
        return data

    def _coding_of(self, rows: Any) -> Any:
        """Return the coding in which rows on disk or on a cluster would be read: one row of their columns is asked."""
        row = Dataset.of_states(np.zeros((1, rows.n_variables), np.int8), rows.coding, names=rows.names)
        return Dataset.read(row, coding=self._coding()).coding

    def _modelled(self, X: Any) -> Any:
        """Return a table without the columns that the fit left out, where it has them."""
        if not self.dropped_ or isinstance(X, Dataset):
            return X
        table = read_table(X)
        others = [name for name in self.dropped_ if name in table.names]
        if others and len(table.names) == len(self.names_) + len(others):
            return table.without(others)
        return table if isinstance(X, str | os.PathLike) else X  # a file is read once

    def _counting(self, data: Dataset) -> Dataset:
        """Leave out rows of weight zero."""
        if not isinstance(data, Dataset) or data.row_weights is None:
            return data
        return data.take(data.row_weights > 0)

    # -- columns -------------------------------------------------------------------------------------------------------
    @property
    def dropped_(self) -> tuple[str, ...]:
        """Columns of the fit's table that are no part of the model: identifiers, and those that were to be left out."""
        check_is_fitted(self)
        return tuple(self.result_.provenance.get("dropped", ()))

    @property
    def _column_labels(self) -> list[Any]:
        """The labels of each column, in the order of the values."""
        return [self.coding_.labels_of(j) for j in range(len(self.names_))]

    def _check_width(self, X: Any) -> None:
        """Refuse another number of columns in scikit-learn's own words, before their labels are looked at."""
        grouped = isinstance(self.coding_.rule, OneHot)  # several columns of the table are one variable
        if getattr(X, "ndim", 0) == 2 and X.shape[1] != self.n_features_in_ and not grouped:
            validate_data(self, X, reset=False, skip_check_array=True)

    def _check_columns(self, X: Any, data: Dataset, fitting: bool) -> None:
        """Keep the columns' names in a fit; afterwards refuse other columns or another order."""
        regrouped = hasattr(X, "shape") and len(X.shape) > 1 and X.shape[1] != data.n_variables
        ours = regrouped or isinstance(X, Dataset | Table | str | os.PathLike)
        if fitting and (ours or type(X) is np.ndarray):  # nothing that scikit-learn would look at
            self._set_columns(data.names)
        elif not ours:
            validate_data(self, X if hasattr(X, "shape") else data.states, reset=fitting, skip_check_array=True)
        elif data.names != self.names_ and (data.n_variables != self.n_features_in_ or are_chosen(data.names)):
            raise ArgumentError(
                f"the columns are {shorten(data.names)} but the machine was fitted on {shorten(self.names_)}",
                "give the same columns in the same order",
            )

    def _set_columns(self, names: tuple[str, ...]) -> None:
        for name in COLUMNS_SEEN:
            self.__dict__.pop(name, None)
        self.n_features_in_ = len(names)
        if are_chosen(names):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _set_fitted(self, result: FitResult, coding: Any, names: tuple[str, ...]) -> Self:
        for kept in ("_state", "_log_z"):  # what belongs to the model that was there before
            self.__dict__.pop(kept, None)
        self.result_ = result
        self.model_ = result.model
        self.coding_ = coding
        self.names_ = names
        self.n_iter_ = max(1, result.n_steps)
        return self

    @property
    def reported_model(self) -> Any:
        """The model with the parameters that are reported, ``theta`` in ``P(x) = exp(theta . S(x) / T) / Z`` (YK15).

        Those of ``model_`` are natural, ``theta / T``.
        """
        check_is_fitted(self)
        return self.model_ if self.temperature == 1 else self.model_.replace(self.temperature * self.model_.theta)

    @property
    def variable_names_(self) -> tuple[str, ...]:
        """The variables of the model: the columns, and after them the hidden units of a machine that has some."""
        return self.names_

    # -- who answers ---------------------------------------------------------------------------------------------------
    def _rng(self, random_state: RandomState = None) -> np.random.Generator:
        return as_generator(self.random_state if random_state is None else random_state)

    @property
    def _answers(self) -> Any:
        check_is_fitted(self)
        return answers_about(self.model_)

    def _ask(self, question: str) -> Any:
        """Return what answers a question that not every model has an answer to."""
        found = getattr(self._answers, question, None)
        if found is None:
            kind = getattr(self, "registered_name", type(self).__name__)
            raise ArgumentError(f"{question} is not known for a {kind} model", "`score` and `log_partition` are exact")
        return found
