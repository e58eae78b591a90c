"""What commands print and write: JSON, tables for the eye, files."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gibbsian.cli.guard import printable, tell
from gibbsian.display import plain
from gibbsian.errors import ArgumentError, StorageError
from gibbsian.startup import numpy as np
from gibbsian.startup import pandas

# What stands for stdin and stdout among files.
STANDARD = Path("-")
_NUMBER = re.compile(r"[-+]?\d+\.?\d*(e[-+]\d+)?|-")


# -- to the screen ----------------------------------------------------------------------------------------------------
def print_json(value: object) -> None:
    """Print a value as one line of JSON, NaN and infinity as null."""
    tell(json.dumps(plain(value)))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], digits: str = ".4f") -> None:
    """Print a table under its title, numbers to the right; floats get `digits`, None and NaN are a dash.

    Text is never read as markup."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[_cell(cell, digits) for cell in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD)
    for place, column in enumerate(columns):
        numbers = all(_NUMBER.fullmatch(row[place]) for row in cells)
        table.add_column(Text(printable(str(column))), justify="right" if numbers else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    # without a terminal there is no width to fit into, and a long name must not be cut
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(Text(printable(title)), table, sep="\n")


def _cell(value: object, digits: str) -> str:
    if isinstance(value, tuple):
        return ", ".join(_cell(part, digits) for part in value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return format(value, digits) if isinstance(value, float) else printable(str(value))


def print_tables(tables: Mapping[str, Any]) -> None:
    """Print tables of pandas, by title, that are not empty; a column beside its index is a table too."""
    for title, table in tables.items():
        frame = table.rename_axis("column").reset_index() if table.ndim == 1 else table
        if len(frame):
            print_table(title, list(frame.columns), frame.itertuples(index=False, name=None))


def table_record(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables of pandas for JSON: records, or numbers by name for a single column."""
    return {
        _key(title): table.to_dict() if table.ndim == 1 else table.rename(columns=_key).to_dict("records")
        for title, table in tables.items()
    }


def _key(title: str) -> str:
    return title.replace(" ", "_")


def print_facts(facts: Mapping[str, str], leave_out: Sequence[str] = ()) -> None:
    """Print one fact a line, without the empty ones."""
    for name, fact in facts.items():
        if fact and name not in leave_out:
            tell(f"{name}: ".ljust(13) + fact)


# -- to files ---------------------------------------------------------------------------------------------------------
def check_target(path: Path | None, formats: Sequence[str] = (), flag: str = "--out") -> None:
    """Refuse an output file that cannot be written, before any work is done for it."""
    if path is None:
        return
    if path == STANDARD:
        raise StorageError(f"{flag} {path} would be stdout, which is for tables", "give the name of a file")
    if formats and not path.name.lower().endswith(tuple(formats)):
        raise ArgumentError(f"{flag} {path} must end in one of {', '.join(formats)}")
    if path.is_dir():
        raise StorageError(f"{flag} {path} is a directory", "give the name of a file in it")
    if not path.parent.is_dir():
        raise StorageError(f"{flag} {path}", f"the directory {path.parent} does not exist, create it first")


def check_distinct(**files: Path | None) -> None:
    """Refuse to write over an input, or two outputs to one file."""
    seen: dict[Path, str] = {}
    for name, path in files.items():
        if path is None:
            continue
        place = path.resolve()
        if place in seen:
            raise ArgumentError(f"--{name} {path} is the {seen[place]} file", "give another name")
        seen[place] = name


def write_table(path: Path | None, names: Sequence[str], values: np.ndarray) -> None:
    """Write rows under their column names to a file by its extension, or as CSV to stdout where there is none."""
    from gibbsian.storage import write_atomically

    if path is None:
        text = _frame(names, values).to_csv(index=False)
        print(printable(text) if sys.stdout.isatty() else text, end="")
    else:
        write_atomically(path, _table_bytes(path, names, values))


def _table_bytes(path: Path, names: Sequence[str], values: np.ndarray) -> bytes:
    if path.suffix.lower() == ".parquet":
        buffer = io.BytesIO()
        _frame(names, values).to_parquet(buffer, index=False)
        return buffer.getvalue()
    return _packed(_frame(names, values).to_csv(index=False), path)


def _packed(text: str, path: Path) -> bytes:
    """Return text as bytes, compressed for a file that ends in .gz."""
    return gzip.compress(text.encode()) if path.suffix.lower() == ".gz" else text.encode()


def _frame(names: Sequence[str], values: np.ndarray) -> pandas.DataFrame:
    return pandas.DataFrame(values, columns=list(names))


def write_parts(path: Path | None, parts: Iterable[Any], as_text: bool) -> None:
    """Write Arrow tables one after the other to a file, or as CSV to stdout, with the types of their columns.

    Parts that were read `as_text` get types where they go to a file that has some.
    """
    from gibbsian.storage.container import written_atomically

    if path is None:
        for text in _texts(parts):
            print(printable(text) if sys.stdout.isatty() else text, end="")
        return
    with written_atomically(path) as file:
        if path.suffix.lower() == ".parquet":
            _write_parquet(file, [_typed(parts)] if as_text else parts)
        else:
            for text in _texts(parts):
                file.write(_packed(text, path))  # packed parts after each other are a packed whole


def _texts(parts: Iterable[Any]) -> Iterable[str]:
    """Return tables as CSV, the first under the names of its columns."""
    for number, part in enumerate(parts):
        if number == 0:
            yield _text(part[:0], header=True)
        yield _plain_text(part) or _text(part, header=False)


def _text(part: Any, header: bool) -> str:
    return part.to_pandas().to_csv(index=False, header=header, lineterminator="\n")


def _plain_text(part: Any) -> str | None:
    """Return words as they are, which is quick; None where something else stands there, or needs quotes."""
    from pyarrow import ArrowInvalid, types
    from pyarrow import csv as arrow_csv

    options = arrow_csv.WriteOptions(include_header=False, quoting_style="none")
    buffer = io.BytesIO()
    try:
        if all(types.is_string(field.type) for field in part.schema):
            arrow_csv.write_csv(part, buffer, options)
    except ArrowInvalid:
        return None
    return buffer.getvalue().decode()


def _write_parquet(file: object, parts: Iterable[Any]) -> None:
    from pyarrow import parquet

    writer: Any = None
    for part in parts:
        writer = writer or parquet.ParquetWriter(file, part.schema)
        writer.write_table(part)
    if writer is not None:
        writer.close()


def _typed(parts: Iterable[Any]) -> Any:
    """Return tables of words as one of numbers, truth values and words."""
    from pyarrow import csv as arrow_csv

    return arrow_csv.read_csv(io.BytesIO("".join(_texts(parts)).encode()))
