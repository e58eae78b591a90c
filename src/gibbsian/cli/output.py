"""What commands print and write: JSON, tables for the eye, files."""

from __future__ import annotations

import io
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbsian.errors import ArgumentError, StorageError

if TYPE_CHECKING:
    import numpy as np

    from gibbsian.cli.families import Section

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?|-")
TABLE_FORMATS = (".csv", ".tsv", ".parquet", ".npy")


# -- to the screen ----------------------------------------------------------------------------------------------------
def print_json(value: Any) -> None:
    """Print a value as one line of JSON, NaN and infinity as null.

    Examples
    --------
    >>> from gibbsian.cli.output import print_json
    >>> print_json({"value": float("nan"), "steps": 3})
    {"value": null, "steps": 3}
    """
    print(json.dumps(_plain(value)))


def _plain(value: Any) -> Any:
    """Turn arrays, NumPy numbers and paths into what JSON can hold."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table under its title, numbers to the right; floats get four decimals, and NaN is a dash.

    Text is never read as markup.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[_cell(cell) for cell in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD)
    for place, column in enumerate(columns):
        numbers = all(_NUMBER.fullmatch(row[place]) for row in cells)
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    # without a terminal there is no width to fit into, and a long name must not be cut
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(Text(title), table, sep="\n")


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return "-" if math.isnan(value) else f"{value:.4f}"


def print_sections(sections: Iterable[Section]) -> None:
    """Print the tables that are not empty."""
    for section in sections:
        if section.rows:
            print_table(section.title, section.columns, section.rows)


def print_facts(facts: Mapping[str, str], leave_out: Sequence[str] = ()) -> None:
    """Print one fact a line, without the empty ones.

    Examples
    --------
    >>> from gibbsian.cli.output import print_facts
    >>> print_facts({"size": "2 variables", "threshold": "", "made": "today"}, leave_out=["made"])
    size:        2 variables
    """
    for name, fact in facts.items():
        if fact and name not in leave_out:
            print(f"{name + ':':13}{fact}")


# -- to files ---------------------------------------------------------------------------------------------------------
def check_target(path: Path | None, formats: Sequence[str] = (), flag: str = "--out") -> None:
    """Refuse an output file that cannot be written, before any work is done for it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gibbsian.cli.output import check_target
    >>> check_target(Path("samples.xls"), formats=(".csv", ".npy"))
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: --out samples.xls must end in one of .csv, .npy
    """
    if path is None:
        return
    if formats and path.suffix.lower() not in formats:
        raise ArgumentError(f"{flag} {path} must end in one of {', '.join(formats)}")
    if path.is_dir():
        raise StorageError(f"{flag} {path} is a directory", "give the name of a file in it")
    if not path.parent.is_dir():
        raise StorageError(f"{flag} {path}", f"the directory {path.parent} does not exist, create it first")


def check_distinct(**files: Path | None) -> None:
    """Refuse to write over an input, or two outputs to one file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gibbsian.cli.output import check_distinct
    >>> check_distinct(data=Path("votes.csv"), out=Path("votes.csv"))
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: --out votes.csv is the data file: give another name
    """
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
        print(_delimited(names, values, ","), end="")
    else:
        write_atomically(path, _table_bytes(path.suffix.lower(), names, values))


def _table_bytes(suffix: str, names: Sequence[str], values: np.ndarray) -> bytes:
    import numpy as np
    import pandas

    buffer = io.BytesIO()
    if suffix == ".parquet":
        pandas.DataFrame(values, columns=list(names)).to_parquet(buffer, index=False)
    elif suffix == ".npy":
        # text as fixed-width strings: an array of objects would need pickle
        np.save(buffer, values.astype(str) if values.dtype == object else values, allow_pickle=False)
    else:
        return _delimited(names, values, "\t" if suffix == ".tsv" else ",").encode()
    return buffer.getvalue()


def _delimited(names: Sequence[str], values: np.ndarray, delimiter: str) -> str:
    import pandas

    return pandas.DataFrame(values, columns=list(names)).to_csv(index=False, sep=delimiter)
