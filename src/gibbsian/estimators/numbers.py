"""How estimators of real numbers read tables."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.data import Dataset
from gibbsian.data.numbers import check_squares
from gibbsian.data.readers import is_on_cluster, is_on_disk
from gibbsian.data.table import Table, as_names
from gibbsian.errors import DataError
from gibbsian.estimators.frames import validate_data
from gibbsian.estimators.reading import ReadsTables
from gibbsian.startup import check_is_fitted, pandas


class NumberTables(ReadsTables):
    """Estimators whose columns are real numbers."""

    def _coding(self) -> Any:
        return "real"

    def _read(self, X: Any, fitting: bool = False, sample_weight: ArrayLike | None = None) -> Dataset:
        X = X if fitting else self._modelled(X)
        away = is_on_disk(X) or is_on_cluster(X)
        if not isinstance(X, Dataset | Table | str | os.PathLike) and not away:
            as_names(getattr(X, "columns", ()))
            X = self._table(X, fitting)
        return self._prepared(super()._read(X, fitting, sample_weight))

    def _table(self, X: Any, fitting: bool) -> Any:
        """Return a table that scikit-learn accepts, numbers as float64."""
        if not fitting:
            check_is_fitted(self)
        sparse = ("csr",) if "sparse" in self._welcome else False
        rows = validate_data(self, X, reset=fitting, dtype=np.float64, accept_sparse=sparse, ensure_all_finite=False)
        names = getattr(self, "feature_names_in_", None)
        return rows if names is None else _named(rows, names)

    def _prepared(self, data: Dataset) -> Dataset:
        """Return the data as the model wants them."""
        if data.on_cluster:
            return data
        try:
            check_squares(data.states, data.names)
        except DataError:  # distinct rows stand in another order: name the row of the table
            check_squares(data.rows()[0], data.names)
        return data


def _named(rows: Any, names: np.ndarray) -> Any:
    """Numbers with the names of their columns."""
    return pandas.DataFrame(rows, columns=list(names))
