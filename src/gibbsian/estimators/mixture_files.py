"""Mixtures from and to files: what the command line calls."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from gibbsian.data.readers import read_table
from gibbsian.errors import ArgumentError, FileFormatError, MissingValuesError
from gibbsian.estimators.mixture_base import MIXTURE_FILE
from gibbsian.estimators.mixtures import MIXTURES
from gibbsian.storage import read_tensors


def load_mixture(path: str | os.PathLike[str]) -> Any:
    """Read a file that a mixture's ``save`` wrote and return the fitted estimator.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from gibbsian.estimators.mixture_files import load_mixture
    >>> from gibbsian.estimators.mixtures import HardKMeans
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "means.gibbs"
    >>> HardKMeans(random_state=0).fit([[0.0], [1.0], [10.0], [11.0]]).save(path)
    >>> load_mixture(path).energy_
    1.0
    """
    header, tensors = read_tensors(path, (MIXTURE_FILE,))
    try:
        return MIXTURES[header["estimator"]].from_tensors(header, tensors)
    except (KeyError, TypeError) as error:
        raise FileFormatError(f"{path} lacks a part of the mixture ({error})", "save it again") from None


def fit_mixture_file(
    path: str | os.PathLike[str],
    model: str = "vmf-mixture",
    *,
    drop: Iterable[str] = (),
    weights: str | None = None,
    **settings: Any,
) -> Any:
    """Read a table and fit a mixture to it: ``gibbsian fit --model vmf-mixture``.

    Parameters
    ----------
    path : path-like
        A ``.csv``, ``.tsv``, ``.parquet``, ``.npy`` or ``.npz`` file.
    model : str
        One of ``MIXTURES``: ``"k-means"``, ``"online-k-means"``, ``"soft-k-means"``, ``"gaussian-mixture"``,
        ``"vmf-mixture"``, ``"machine-mixture"``.
    drop : iterable of str
        Columns to leave out.
    weights : str, optional
        A column that says how much each row counts.
    **settings
        Of the estimator (``n_components``, ``random_state``, ...).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from gibbsian.estimators.mixture_files import fit_mixture_file
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("a,b\\n3,0\\n5,1\\n0,2\\n1,9\\n")
    >>> fit_mixture_file(path, "vmf-mixture", n_components=1).feature_names_in_.tolist()
    ['a', 'b']
    """
    if model not in MIXTURES:
        raise ArgumentError("is not known", f"use one of {', '.join(sorted(MIXTURES))}", argument="model", value=model)
    try:
        estimator = MIXTURES[model](**settings)
    except TypeError:
        known = ", ".join(sorted(MIXTURES[model]().get_params(deep=False)))
        unknown = ", ".join(sorted(set(settings) - set(MIXTURES[model]().get_params(deep=False))))
        raise ArgumentError(f"{model} has no setting {unknown}", f"it has {known}") from None
    words = estimator.__sklearn_tags__().input_tags.string
    rows, row_weights = read_rows(path, words, drop=drop, weights=weights)
    return estimator.fit(rows, sample_weight=row_weights)


def read_rows(
    path: str | os.PathLike[str],
    words: bool = False,
    *,
    names: Iterable[str] | None = None,
    drop: Iterable[str] = (),
    weights: str | None = None,
) -> tuple[Any, np.ndarray | None]:
    """Read a table for a mixture: a frame of its rows, and their weights.

    Parameters
    ----------
    path : path-like
        A ``.csv``, ``.tsv``, ``.parquet``, ``.npy`` or ``.npz`` file.
    words : bool
        Keep the labels as they are written (``MachineMixture``); otherwise all columns are numbers.
    names : iterable of str, optional
        The columns to take, in this order; all by default.
    drop : iterable of str
        Columns to leave out.
    weights : str, optional
        A column that says how much each row counts.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from gibbsian.estimators.mixture_files import read_rows
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("a,b,n\\n3,x,1\\n5,y,2\\n")
    >>> rows, weights = read_rows(path, words=True, weights="n")
    >>> rows.to_numpy().tolist(), weights
    ([['3', 'x'], ['5', 'y']], array([1., 2.]))
    """
    import pandas

    table = read_table(Path(path))
    row_weights = None if weights is None else table.numbers(weights, "weights")
    left_out = {*drop, *([] if weights is None else [weights])}
    if left_out >= set(table.names):
        raise ArgumentError(f"drop leaves no column of {path}", f"name fewer of {', '.join(table.names[:8])}")
    table = table.without(left_out)
    table = table if names is None else table.select(list(names))
    return pandas.DataFrame({name: _column(table, name, words) for name in table.names}), row_weights


def _column(table: Any, name: str, words: bool) -> np.ndarray:
    """One column as numbers, or as the words of the table where the model takes them."""
    if not words or isinstance(table.cells, np.ndarray):
        return table.numbers(name, "column")
    column = table.cells[table.place(name, "column")]
    missing = np.flatnonzero(column.codes < 0)
    if len(missing):
        raise MissingValuesError(f"row {missing[0]}, column {name!r} is missing", "fill it or leave the row out")
    return np.array([str(spelling) for spelling in column.spellings], dtype=object)[column.codes]
