"""Tables for machines made of layers: what kind of visible units a table asks for, and its rows in their states."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from gibbsian.data import Dataset
from gibbsian.data.categories import encode_categories
from gibbsian.data.coding import check_coding, encode, label_tokens, same_coding
from gibbsian.data.readers import read_table
from gibbsian.data.table import Table
from gibbsian.data.weights import check_weights
from gibbsian.domain import BINARY, CODINGS, DOMAINS, MANY_VALUED, AnyCoding, CategoryCoding, Coding, as_coding
from gibbsian.errors import ArgumentError, CodingError, DataError, MissingValuesError
from gibbsian.layered.rows import LayerRows
from gibbsian.models.layers import Layer, as_layer
from gibbsian.resources import require_memory

VISIBLE_KINDS = ("auto", "binary", "spin", "gaussian", "categorical")
OTHER_KINDS = (
    "set visible='gaussian' for real numbers, visible='categorical' for values without order, or binarize=threshold"
)
# Squares of larger real numbers, times others, leave the range of float64.
LARGEST_NUMBER = 1e100
HIDDEN_KINDS = ("auto", "binary", "spin")


@dataclass(frozen=True, eq=False)
class VisibleRows:
    """Rows of a table in the states of a visible layer.

    Parameters
    ----------
    rows : LayerRows
        States, weights and missing cells, in the order of the table.
    kind : str
        Kind of the units: ``"binary"``, ``"spin"``, ``"gaussian"`` or ``"categorical"``.
    coding : Coding, CategoryCoding or None
        How the table writes the states; None where they are real numbers.
    names : tuple of str
        The columns.

    Examples
    --------
    >>> from gibbsian.estimators.layered_data import read_visible
    >>> votes = read_visible([["yes", "no"], ["no", "?"]])
    >>> votes.kind, votes.rows.states.tolist(), votes.rows.missing.tolist()
    ('binary', [[1, 0], [0, 0]], [[False, False], [False, True]])
    """

    rows: LayerRows
    kind: str
    coding: AnyCoding | None
    names: tuple[str, ...]

    @property
    def n_missing(self) -> int:
        """Number of missing cells."""
        return 0 if self.rows.missing is None else int(self.rows.missing.sum())

    def layer(self, deviations: Sequence[float] = ()) -> Layer:
        """Return a visible layer for these rows.

        Examples
        --------
        >>> from gibbsian.estimators.layered_data import read_visible
        >>> read_visible([["red", 1], ["blue", 2], ["green", 1]]).layer()
        CategoricalLayer(sizes=(3, 2))
        """
        if isinstance(self.coding, CategoryCoding):
            return as_layer("categorical", len(self.names), sizes=self.coding.domain.sizes)
        settings = {"deviations": tuple(deviations)} if self.kind == "gaussian" else {}
        return as_layer(self.kind, len(self.names), **settings)


def read_visible(
    source: Any,
    visible: str = "auto",
    coding: Any = "auto",
    *,
    binarize: float | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weight_column: str | None = None,
) -> VisibleRows:
    """Read a table for a fit.

    Parameters
    ----------
    source : array-like, sparse array, data frame, path or Dataset
        The table.
    visible : "auto", "binary", "spin", "gaussian" or "categorical"
        Kind of the units. ``"auto"`` takes two-valued data as they are coded (spin for -1/1, else binary, whatever the
        labels, if all columns have the same two), numbers from 0 to 1 as probabilities of binary units, and words with
        more than two values as categories. Real numbers are Gaussian only when asked for.
    coding : as in `Dataset.read`
        How two values, or categories, are written.
    binarize : float, optional
        Numbers above this threshold become the upper value, all others the lower.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    columns, drop, weight_column : optional
        As in `Dataset.read`.

    Examples
    --------
    >>> from gibbsian.estimators.layered_data import read_visible
    >>> read_visible([[-1, 1], [1, 1]]).kind, read_visible([[0.2, 1.0], [0.9, 0.0]]).kind
    ('spin', 'binary')
    >>> read_visible([[0.2, 3.7], [0.9, 0.0]])
    Traceback (most recent call last):
        ...
    gibbsian.errors.DataError: column 'x1' holds 3.7, but visible units take two values, the same in every column, or
    numbers from 0 to 1: set visible='gaussian' for real numbers, visible='categorical' for values without order, or
    binarize=threshold
    """
    if not isinstance(visible, str) or visible not in VISIBLE_KINDS:
        raise ArgumentError("is not known", f"use one of {', '.join(VISIBLE_KINDS)}", argument="visible", value=visible)
    if isinstance(source, Dataset):
        if any(option for option in (binarize is not None, columns, drop, weight_column)):
            raise ArgumentError(
                "binarize, columns, drop and `weight_column` belong to the reading of a table, not of it"
            )
        return _of_dataset(source, visible, coding, sample_weight)
    table = read_table(_dense(source))
    if weight_column is not None:
        if sample_weight is not None:
            raise ArgumentError("give the weights as `weight_column=` or as `sample_weight=`, not both")
        sample_weight, table = table.numbers(weight_column, "weight_column"), table.without([weight_column])
    table = _chosen(table, columns, drop)
    weights = None if sample_weight is None else check_weights(sample_weight, table.shape[0])
    kind = visible if visible != "auto" else _kind_asked_for(coding, binarize)
    if kind == "gaussian":
        return VisibleRows(LayerRows(_real_numbers(table), weights), kind, None, table.names)
    if kind == "categorical":
        return _of_categories(table, coding, weights)
    return _of_two_values(table, kind, coding, binarize, weights)


def read_again(
    source: Any,
    kind: str,
    coding: AnyCoding | None,
    *,
    binarize: float | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    weight_column: str | None = None,
) -> VisibleRows:
    """Read a table for a machine that was fitted on this kind and coding.

    Where the coding is 0/1 any numbers from 0 to 1 are taken, as probabilities.

    Examples
    --------
    >>> from gibbsian.domain import as_coding
    >>> from gibbsian.estimators.layered_data import read_again
    >>> read_again([[0.25, 1.0]], "binary", as_coding("binary")).rows.states
    array([[0.25, 1.  ]])
    """
    if isinstance(source, Dataset):
        return _dataset_again(source, kind, coding, sample_weight)
    table = read_table(_dense(source))
    if weight_column is not None:
        sample_weight, table = table.numbers(weight_column, "weight_column"), table.without([weight_column])
    table = _chosen(table, columns, ())
    weights = None if sample_weight is None else check_weights(sample_weight, table.shape[0])
    if coding is None:
        return VisibleRows(LayerRows(_real_numbers(table), weights), kind, None, table.names)
    if isinstance(coding, CategoryCoding):
        codes, missing, known = encode_categories(table, coding, declared_by="the model")
        return VisibleRows(LayerRows(codes, weights, missing), kind, known, table.names)
    if binarize is None and (shares := _shares(table, coding)) is not None:
        return VisibleRows(_share_rows(shares, weights), kind, coding, table.names)
    try:  # what the machine gave back itself has passed the threshold already
        high, missing, _ = encode(table, coding, None, "the model")
    except DataError:
        if binarize is None:
            raise
        high, missing, _ = encode(table, coding, binarize)
    return VisibleRows(LayerRows(coding.domain.from_codes(high), weights, missing), kind, coding, table.names)


def hidden_kind(hidden: str, visible: str) -> str:
    """Settle ``"auto"``: hidden units are coded as two-valued visible ones are, and else 0/1.

    Examples
    --------
    >>> from gibbsian.estimators.layered_data import hidden_kind
    >>> hidden_kind("auto", "spin"), hidden_kind("auto", "gaussian")
    ('spin', 'binary')
    """
    if not isinstance(hidden, str) or hidden not in HIDDEN_KINDS:
        raise ArgumentError("is not known", f"use one of {', '.join(HIDDEN_KINDS)}", argument="hidden", value=hidden)
    if hidden != "auto":
        return hidden
    return visible if visible in DOMAINS else "binary"


# -- tables -----------------------------------------------------------------------------------------------------------
def _dense(source: Any) -> Any:
    if not sparse.issparse(source):
        return os.fspath(source) if isinstance(source, os.PathLike) else source
    require_memory(8 * np.prod(source.shape, dtype=float), f"a dense copy of {source.shape}", "give fewer rows at once")
    return source.toarray()


def _chosen(table: Table, columns: Sequence[str] | None, drop: Sequence[str]) -> Table:
    table = table.without(drop)
    if columns is not None:
        table = table.select(list(columns))
    if table.shape[1] == 0:
        raise DataError("no columns are left to model", "drop fewer of them")
    return table


def _kind_asked_for(coding: Any, binarize: float | None) -> str:
    """The kind that a declared coding asks for; "auto" where the table decides."""
    if isinstance(coding, CategoryCoding) or (isinstance(coding, str) and coding in MANY_VALUED):
        return "categorical"
    if isinstance(coding, str) and coding == "auto":
        return "auto" if binarize is None else "binary"
    return as_coding(coding).domain.name


def _of_two_values(table: Table, kind: str, coding: Any, binarize: float | None, weights: Any) -> VisibleRows:
    """Rows of two-valued units, of probabilities, or where the table decides of categories."""
    free = binarize is None and isinstance(coding, str) and coding == "auto"
    try:
        high, missing, found = encode(table, coding, binarize)
    except DataError:
        if not free:
            raise
        if kind == "spin" and _pair_of(_numbers_or_none(table)) is None:
            raise
        numbers = _numbers_or_none(table)
        if numbers is None:
            if kind != "auto":
                raise
            return _of_categories(table, coding, weights)
        if (pair := _pair_of(numbers)) is not None:
            return _of_two_values(table, kind, pair, None, weights)
        _require_shares(numbers, table.names, OTHER_KINDS)
        return VisibleRows(_share_rows(numbers, weights), "binary", CODINGS["binary"], table.names)
    if kind != "auto":  # the labels stay those of the table, whatever numbers stand for them in the energy
        found = replace(found, domain=DOMAINS[kind])
    states = found.domain.from_codes(high)
    return VisibleRows(LayerRows(states, weights, missing), found.domain.name, found, table.names)


def _of_categories(table: Table, coding: Any, weights: Any) -> VisibleRows:
    many = isinstance(coding, CategoryCoding) or (isinstance(coding, str) and coding in MANY_VALUED)
    codes, missing, found = encode_categories(table, coding if many else "categorical")
    return VisibleRows(LayerRows(codes, weights, missing), "categorical", found, table.names)


# -- numbers ----------------------------------------------------------------------------------------------------------
def _numbers_or_none(table: Table) -> np.ndarray | None:
    """All cells as numbers, NaN where missing; None where there are words or truth values."""
    if isinstance(table.cells, np.ndarray):
        return None if table.cells.dtype.kind == "b" else table.cells.astype(np.float64, copy=False)
    if any(isinstance(token, str) for column in table.cells for token in column.values):
        return None
    return np.column_stack([table.numbers(name, "column") for name in table.names])


def _real_numbers(table: Table) -> np.ndarray:
    numbers = _numbers_or_none(table)
    if numbers is None:
        numbers = np.column_stack([_numbers_of(table, name) for name in table.names])
    where = np.argwhere(np.abs(numbers) > LARGEST_NUMBER)
    if len(where) and np.isfinite(numbers).all():
        row, column = where[0]
        raise DataError(
            f"column {table.names[column]!r} holds {numbers[row, column]:g}, which has no square",
            "divide it by a large number",
        )
    where = np.argwhere(~np.isfinite(numbers))
    if len(where):
        row, column = where[0]
        word, kind = ("inf", DataError) if np.isinf(numbers[row, column]) else ("NaN", MissingValuesError)
        raise kind(
            f"row {row}, column {table.names[column]!r} holds {word}, but Gaussian units need every number",
            "fill it or leave the row out",
        )
    return numbers


def _numbers_of(table: Table, name: str) -> np.ndarray:
    try:
        return table.numbers(name, "column")
    except DataError:
        raise DataError(
            f"column {name!r} holds words, dates or truth values, but Gaussian units take numbers",
            "leave the column out",
        ) from None


def _shares(table: Table, coding: Coding) -> np.ndarray | None:
    """Numbers between 0 and 1 that are not all 0 or 1, where the coding is 0/1; None for anything else."""
    if coding.domain != BINARY or label_tokens(coding) != (0.0, 1.0):
        return None
    numbers = _numbers_or_none(table)
    if numbers is None or np.isin(numbers, (0.0, 1.0)).all():
        return None
    if not ((numbers > 0) & (numbers < 1)).any():
        return None
    _require_shares(numbers, table.names, "scale the numbers as those of the fit were")
    return numbers


def _pair_of(numbers: np.ndarray | None) -> tuple[Any, Any] | None:
    """The two numbers of a table that holds no others, such as 0 and 255; None where they may be probabilities."""
    if numbers is None or not ((numbers < 0) | (numbers > 1)).any():
        return None
    present = numbers[~np.isnan(numbers)]
    low, high = present.min(), present.max()
    if not np.isfinite([low, high]).all() or low == high or not ((present == low) | (present == high)).all():
        return None
    return tuple(int(value) if value.is_integer() else float(value) for value in (low, high))  # type: ignore[return-value]


def _require_shares(numbers: np.ndarray, names: tuple[str, ...], remedy: str) -> None:
    where = np.argwhere((numbers < 0) | (numbers > 1))
    if len(where):
        row, column = where[0]
        raise DataError(
            f"column {names[column]!r} holds {numbers[row, column]:g}, but visible units take "
            "two values, the same in every column, or numbers from 0 to 1",
            f"{remedy}",
        )


def _share_rows(numbers: np.ndarray, weights: np.ndarray | None) -> LayerRows:
    missing = np.isnan(numbers)
    if not missing.any():
        return LayerRows(numbers, weights)
    return LayerRows(np.where(missing, 0.0, numbers), weights, missing)


# -- data sets --------------------------------------------------------------------------------------------------------
def _of_dataset(data: Dataset, visible: str, coding: Any, sample_weight: Any) -> VisibleRows:
    if visible == "gaussian":
        raise ArgumentError("a Dataset holds discrete values", "give `visible='gaussian'` the table of numbers itself")
    data = Dataset.read(data, coding=coding, sample_weight=sample_weight)
    if visible == "categorical" and data.domain.two_valued:
        data = data.convert("categorical")
    if isinstance(data.coding, CategoryCoding):
        if visible in DOMAINS:
            raise CodingError(
                f"units have two values but the Dataset is {data.coding.describe()}",
                "set `visible='categorical'`, or convert it with `Dataset.convert`",
                argument="visible",
                value=visible,
            )
        return _unfolded(data, "categorical", data.coding)
    target = data.coding if visible == "auto" else replace(data.coding, domain=DOMAINS[visible])
    return _unfolded(data, target.domain.name, target)


def _dataset_again(data: Dataset, kind: str, coding: AnyCoding | None, sample_weight: Any) -> VisibleRows:
    if coding is None:
        raise ArgumentError("a Dataset holds discrete values, but the machine was fitted on numbers", "give the table")
    if isinstance(coding, CategoryCoding):
        data = Dataset.read(data, coding=coding, sample_weight=sample_weight, declared_by="the model")
        return _unfolded(data, kind, coding)
    data = Dataset.read(data, sample_weight=sample_weight)
    if not isinstance(data.coding, Coding) or not same_coding(replace(data.coding, domain=coding.domain), coding):
        check_coding(data, coding, "the model")
    return _unfolded(data, kind, coding)


def _unfolded(data: Dataset, kind: str, coding: AnyCoding) -> VisibleRows:
    """The rows of a data set in their own order, in the states of a coding with the same codes."""
    states = coding.domain.from_codes(data.domain.to_codes(data.states))[data.row_of]
    missing = None if data.missing is None else data.missing[data.row_of]
    return VisibleRows(LayerRows(states, data.row_weights, missing), kind, coding, data.names)
