"""Tables given back as they came: frames as frames, labels as they were written, names in messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gibbsian import startup
from gibbsian.data.table import default_names
from gibbsian.errors import CellTypeError, DataError
from gibbsian.startup import pandas

MAX_ERROR_LENGTH = 600  # characters that are repeated of an error: some print the table


def validate_data(estimator: Any, *tables: Any, **how: Any) -> Any:
    """Check a table as scikit-learn does, in its words and with errors of the library."""
    try:
        return startup.validate_data(estimator, *tables, **how)
    except TypeError as error:  # the words of NumPy go on for long
        raise CellTypeError(" ".join(str(error).split()).partition(". ")[0], "give numbers") from None
    except (ValueError, OverflowError) as error:
        raise DataError(" ".join(str(error).split())[:MAX_ERROR_LENGTH]) from None


def empty_frame(source: Any, names: Sequence[str]) -> Any:
    """Return a pandas or polars frame without its rows and without columns that are no variables, and else None."""
    module = _library_of(source)
    if not module:
        return None
    empty = source.iloc[:0].copy() if module == "pandas" else source.clear()
    variables = [name for name in source.columns if str(name) in names]
    return empty[variables] if len(variables) == len(names) else empty


def like_frame(values: np.ndarray, source: Any, names: Sequence[str]) -> Any:
    """Give `values` the columns and index of `source` where that is a pandas or polars frame.

    Columns keep their types where these can hold the values. A frame of dummies has more columns than variables; then
    the variables' own names are given. Values for a frame without rows are counted from 0.
    """
    module = _library_of(source)
    if not module:
        return values
    if len(source.columns) != len(names):
        if module == "polars":
            return type(source)(values, schema=list(names))
        return type(source)(values, columns=list(names), index=_index_of(source))
    return _like_pandas(values, source) if module == "pandas" else _like_polars(values, source)


def _library_of(source: Any) -> str:
    """Return "pandas" or "polars" for a frame of one, by the module of its class, and else an empty text."""
    module = type(source).__module__.partition(".")[0]
    return module if module in ("pandas", "polars") and is_frame(source) else ""


def is_frame(source: object) -> bool:
    """Whether a table has named columns, as frames of pandas and polars do."""
    return hasattr(source, "columns")


def _index_of(source: Any) -> Any:
    """Return the index of a pandas frame that has rows."""
    return source.index if len(source) else None


def _like_pandas(values: np.ndarray, source: Any) -> Any:
    """Give values the columns, index and types of a pandas frame."""
    kinds = list(source.dtypes)
    frame = pandas.DataFrame(values, index=_index_of(source))
    if _are_numbers(values.dtype) and _are_numbers(kinds[0]) and len(set(kinds)) == 1:  # all columns at once
        frame = _cast(frame, kinds[0])
    else:
        frame = pandas.concat([_cast(frame[j].infer_objects(), kind) for j, kind in enumerate(kinds)], axis=1)
    frame.columns = source.columns
    return frame


def _are_numbers(kind: Any) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "iuf"


def _cast(column: Any, kind: Any) -> Any:
    """Return a pandas column as another type where that says the same, and else as it is."""
    try:
        cast = column.astype(kind)
        if _are_numbers(kind):
            same = np.asarray(cast) == np.asarray(column)
        else:
            same = np.asarray(cast.astype(object)) == np.asarray(column.astype(object))
    except (TypeError, ValueError, OverflowError):
        return column
    return cast if np.all(same) else column


def _like_polars(values: np.ndarray, source: Any) -> Any:
    """Give values the columns and types of a polars frame."""
    columns = []
    for j, own in enumerate(source.get_columns()):
        filled = values[:, j].tolist()
        try:
            column = type(own)(own.name, filled, dtype=own.dtype)
        except (TypeError, ValueError):
            column = type(own)(own.name, filled)
        columns.append(column if column.to_list() == filled else type(own)(own.name, filled))
    return type(source)(columns)


def distinct_labels(labels: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Write truth values as text where there are numbers as well: pandas would take True and 1 for one value."""
    kinds = {type(label) for column in labels for label in column}
    mixed = bool in kinds and bool(kinds & {int, float})
    return [[str(label) if mixed and isinstance(label, bool) else label for label in column] for column in labels]


def labels_of_columns(names: Sequence[str], labels: Sequence[Sequence[Any]]) -> Any:
    """Return every value of every column, as an index."""
    listed = zip(names, distinct_labels(labels), strict=True)
    pairs = [(name, label) for name, column in listed for label in column]
    return pandas.MultiIndex.from_tuples(pairs, names=["column", "value"])


def are_chosen(names: tuple[str, ...]) -> bool:
    """Whether the names are the user's, not the x0, x1, ... that unnamed columns get."""
    return names != default_names(len(names))


def shorten(names: tuple[str, ...], limit: int = 4) -> str:
    """List the first names, for messages."""
    return ", ".join(map(repr, names[:limit])) + (f", ... ({len(names)} in all)" if len(names) > limit else "")


def is_list(columns: Any) -> bool:
    """Whether columns are given as several, be it one, and not as one name or number."""
    return "," in columns if isinstance(columns, str) else np.ndim(columns) > 0


def stacked(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Put columns of labels side by side; numbers beside words stay numbers."""
    kinds = {column.dtype.kind for column in columns}
    return np.column_stack([column if len(kinds) == 1 else column.astype(object) for column in columns])
