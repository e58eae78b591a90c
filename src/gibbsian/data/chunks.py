"""Tables taken a part at a time: files as Arrow tables, frames and arrays as slices; and cells put into a part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from gibbsian.data.files import STDIN, STREAMED, format_of, open_parquet, read_file, readable, text_batches
from gibbsian.data.rows import Rows
from gibbsian.data.table import canonical, label_key
from gibbsian.domain import Label
from gibbsian.startup import pandas

if TYPE_CHECKING:
    import pyarrow

ROWS_AT_ONCE = 50_000


def is_streamed(source: object) -> TypeGuard[str | Path]:
    """Whether a source is a file that is read a part at a time."""
    return isinstance(source, str | Path) and format_of(Path(source))[0] in STREAMED


def count_rows(source: object) -> int | None:
    """Return the number of rows, where that is known before they are read."""
    if is_streamed(source):
        if Path(source).suffix.lower() != ".parquet":
            return None
        with readable(Path(source), "Parquet"), open_parquet(Path(source)) as file:
            return file.metadata.num_rows
    if shape := getattr(source, "shape", None):  # sparse arrays have no length
        return shape[0]
    if isinstance(source, Rows):
        return source.n_rows
    return len(source) if isinstance(source, Sized) else None


def rereadable(source: object) -> object:
    """Return what can be read more than once: stdin as the Arrow table of its words, all else as it is."""
    if source != STDIN:
        return source
    from pyarrow import Table

    return Table.from_batches(list(text_batches(STDIN)))


def chunks(source: Any, rows: int = ROWS_AT_ONCE) -> Iterator[Any]:
    """Yield a table in parts of so many rows: Arrow tables of a file, slices of a frame or an array, or all of it."""
    if is_streamed(source):
        yield from _file_chunks(Path(source), rows)
    elif isinstance(source, str | Path):
        yield read_file(Path(source))
    elif hasattr(source, "shape") and len(source.shape) == 2:
        cut = getattr(source, "iloc", source)
        yield from (cut[start : start + rows] for start in range(0, source.shape[0], rows))
    else:
        yield source


def _file_chunks(path: Path, rows: int) -> Iterator[pyarrow.Table]:
    from pyarrow import Table

    if not path.exists() or path.stat().st_size == 0:
        read_file(path)  # which says what is wrong
    waiting: list[pyarrow.RecordBatch] = []
    for batch in _batches(path, rows):
        waiting.append(batch)
        if sum(len(one) for one in waiting) >= rows:
            yield Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield Table.from_batches(waiting)


def _batches(path: Path, rows: int) -> Iterator[pyarrow.RecordBatch]:
    if path.suffix.lower() != ".parquet":
        yield from text_batches(path)
        return
    with readable(path, "Parquet"), open_parquet(path) as file:
        yield from file.iter_batches(rows)


def is_arrow(part: object) -> bool:
    """Whether a part is an Arrow table."""
    return hasattr(part, "column_names")


def names_of(part: Any) -> list[str]:
    """Return the names of the columns of a part, in their order."""
    return [str(name) for name in (part.column_names if is_arrow(part) else getattr(part, "columns", ()))]


def values_of(part: pyarrow.Table | pandas.DataFrame, name: str, places: np.ndarray) -> list[object]:
    """Return some cells of a column, as the table writes them."""
    if is_arrow(part):
        return part.column(name).take(places).to_pylist()
    return part.iloc[places, names_of(part).index(name)].tolist()


def with_cells(
    part: pyarrow.Table | pandas.DataFrame, name: str, places: np.ndarray, labels: Sequence[Label]
) -> pyarrow.Table | pandas.DataFrame:
    """Return a part with labels in some cells of a column, which keeps its type and its own spellings."""
    if is_arrow(part):
        return _with_arrow_cells(part, name, places, labels)
    whole = names_of(part).index(name)
    part.isetitem(whole, _filled(part.iloc[:, whole], places, labels))
    return part


def _with_arrow_cells(part: pyarrow.Table, name: str, places: np.ndarray, labels: Sequence[Label]) -> pyarrow.Table:
    import pyarrow

    number, column = part.column_names.index(name), part.column(name)
    if pyarrow.types.is_dictionary(column.type):
        series = column.to_pandas()  # a category column
    else:
        series = pandas.Series(pandas.arrays.ArrowExtensionArray(column))
    filled = _filled(series, places, labels)
    return part.set_column(number, name, pyarrow.array(filled.array).cast(column.type))


def _filled(column: pandas.Series, places: np.ndarray, labels: Sequence[Label]) -> pandas.Series:
    """Return a pandas column with labels in some cells, as it writes them itself."""
    own = getattr(column.dtype, "categories", None)
    known = [value for value in (column.unique() if own is None else own) if canonical(value) is not None]
    written = {canonical(value): value for value in known} | {label_key(value): value for value in known}
    text = "string" in str(column.dtype)
    fresh = {label: written.get(label_key(label), str(label) if text else label) for label in set(labels)}
    values = [fresh[label] for label in labels]
    column = column.copy()
    try:
        column.iloc[places] = values
    except (TypeError, ValueError):  # a type that cannot hold them, such as categories without the label
        column = column.astype(object)
        column.iloc[places] = values
    return column
