"""Where partitions come from: files that workers read, or the pieces of a Dask frame or array.

The rows are read twice: once to learn what values the columns hold, where that is not declared, and once to be coded
and packed. Of each column at most `MOST_VALUES` values travel, so that the client sees a table that shows each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from typing import Any, NamedTuple

import numpy as np

from gibbsian.cluster.packed import Packed, on_one_thread
from gibbsian.data import Dataset
from gibbsian.data.columns import identifiers
from gibbsian.data.encoding import Cells
from gibbsian.data.files import TEXT_FORMATS, format_of, read_file
from gibbsian.data.minibatches import check_weights
from gibbsian.data.readers import read_table
from gibbsian.data.row_files import open_row_file
from gibbsian.data.stream import cells_of
from gibbsian.data.table import Table, as_factor
from gibbsian.domain import AnyCoding
from gibbsian.errors import DataError

# Cells of a partition, about: some megabytes while it is worked on, some milliseconds of work an evaluation.
PARTITION_CELLS = 2**24
# So many partitions, about, are the most unless asked for: each costs the scheduler a millisecond an evaluation.
MOST_PARTITIONS = 4096
# Values of a column that are brought to the client; a column with more has numbers, or names rows.
MOST_VALUES = 1000


class Piece(NamedTuple):
    """Rows in a file: a range that a `RowFile` reads by itself; None for a file that is read whole."""

    path: str
    rows: tuple[int, int] | None = None
    n_columns: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows; zero where it is not known."""
        return 0 if self.rows is None else self.rows[1] - self.rows[0]

    def tables(self) -> Iterator[tuple[int, Table]]:
        """Read the rows, in parts with the row that each begins at."""
        path = local_path(self.path)
        try:
            if self.rows is None:
                yield 0, read_file(path)
            else:
                file = open_row_file(path)
                yield from file.tables(*self.rows, file.names)
        except DataError as error:  # of a copy in a cache, which has another name
            raise type(error)(error.reason.replace(str(path), self.path), error.remedy) from None


def local_path(path: str) -> Any:
    """Return where a file can be read on this machine; one on another store is fetched once."""
    from pathlib import Path

    if "://" not in path:
        return Path(path)
    import fsspec

    try:
        return Path(fsspec.open_local(f"simplecache::{path}", simplecache={"same_names": True}))
    except (OSError, ValueError) as error:
        raise DataError(f"file '{path}' cannot be fetched", f"{error}") from None


# -- what workers do --------------------------------------------------------------------------------------------------
def files_named(pattern: str) -> list[str]:
    """List the files that a pattern stands for, in the order of their names."""
    if not any(sign in pattern for sign in "*?["):
        return [pattern]
    if "://" in pattern:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(pattern)
        found = [system.unstrip_protocol(name) for name in sorted(system.glob(path))]
    else:
        found = sorted(glob(pattern, recursive=True))
    if not found:
        raise DataError(f"no file is called {pattern!r}", "check the path, and that workers can see it")
    return found


def pieces_of(path: str, most_cells: int) -> list[Piece]:
    """Cut a file into pieces, none larger than asked for where it can be cut; text is read whole."""
    here = local_path(path)
    if format_of(here)[0] in TEXT_FORMATS:
        return [Piece(path)]
    file = open_row_file(here)
    most = max(1, most_cells // len(file.names)) if here.suffix.lower() == ".npy" else file.n_rows
    return [Piece(path, rows, len(file.names)) for rows in file.pieces(most)]


def in_partitions(pieces: Sequence[Piece], cells: int | None) -> list[tuple[Piece, ...]]:
    """Put neighbouring pieces together to partitions of up to so many cells; text files stay alone."""
    if cells is None:
        cells = max(PARTITION_CELLS, sum(piece.n_rows * piece.n_columns for piece in pieces) // MOST_PARTITIONS)
    partitions: list[list[Piece]] = []
    filled = 0.0
    for piece in pieces:
        size = piece.n_rows * piece.n_columns or np.inf
        if not partitions or filled + size > cells:
            partitions, filled = [*partitions, []], 0.0
        partitions[-1].append(piece)
        filled += size
    return [tuple(partition) for partition in partitions]


class Column(NamedTuple):
    """What a column shows: values as they are written, and what the table itself said of them."""

    written: tuple[Any, ...]
    declared: bool
    ordered: bool


class Scan(NamedTuple):
    """What a partition shows: its columns, and which of them name its rows."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    identifiers: frozenset[str]


def scan(source: Any, coding: Any) -> Scan:
    """Return what the columns of a partition show."""
    found: Scan | None = None
    for _, _, table in tables_of(source):
        part = Scan(table.names, tuple(_shown(table, j) for j in range(len(table.names))), frozenset(
            identifiers(table, coding)
        ))  # fmt: skip
        found = part if found is None else together([found, part])
    assert found is not None
    return found


def _shown(table: Table, place: int) -> Column:
    factor = table.column(place)
    places = range(len(factor.written)) if factor.declared else factor.used[:MOST_VALUES]
    return Column(tuple(factor.written[k] for k in places), factor.declared, factor.ordered)


def together(scans: Sequence[Scan]) -> Scan:
    """Return what several partitions show."""
    names = scans[0].names
    for other in scans[1:]:
        if other.names != names:
            raise DataError("partitions have other columns than the first", "give parts with the same columns")
    columns = []
    for parts in zip(*(one.columns for one in scans), strict=True):
        written = dict.fromkeys(value for part in parts for value in part.written)
        columns.append(Column(tuple(written)[:MOST_VALUES], parts[0].declared, parts[0].ordered))
    return Scan(names, tuple(columns), frozenset.intersection(*(one.identifiers for one in scans)))


def table_of(shown: Scan) -> Table:
    """Return a table that shows each value of each column."""
    length = max(1, max(len(column.written) for column in shown.columns))
    factors = []
    for name, (written, declared, ordered) in zip(shown.names, shown.columns, strict=True):
        places = np.arange(length) % len(written) if written else np.full(length, -1)
        factors.append(as_factor(written, places, name, declared, ordered))
    return Table(shown.names, factors)


@dataclass(frozen=True)
class Reading:
    """How every partition is read."""

    columns: tuple[str, ...]
    coding: AnyCoding
    weight_column: str | None
    recognised: bool


def packed(source: Any, number: int, reading: Reading) -> Packed | None:
    """Read, code and pack a partition; None where it has no row with an observed cell."""
    return on_one_thread(_packed, source, number, reading)


def _packed(source: Any, number: int, reading: Reading) -> Packed | None:
    codes, holes, weights, names = [], [], [], reading.columns
    for where, row, table in tables_of(source, number):
        cells = cells_of(table.select(reading.columns), reading.coding, where, row, reading.recognised)
        names = cells.names
        codes.append(cells.codes)
        holes.append(np.zeros(cells.codes.shape, bool) if cells.missing is None else cells.missing)
        if reading.weight_column is not None:
            given = table.numbers(reading.weight_column, "weight_column")
            weights.append(check_weights(given, len(given)) if given.any() else given)
    missing = np.concatenate([*holes, np.zeros((0, len(names)), bool)])
    if not len(missing):
        return None
    cells = Cells(np.concatenate(codes), missing if missing.any() else None, reading.coding, names)
    data = Dataset._of_cells(cells, np.concatenate(weights) if weights else None)
    empty = data.empty_rows()
    counts = ~empty if data.row_weights is None else ~empty & (data.row_weights > 0)
    if not counts.any():
        return None
    return Packed.of(data if counts.all() else data.take(counts), int(empty.sum()))


def tables_of(source: Any, number: int = 0) -> Iterator[tuple[str, int, Table]]:
    """Yield the rows of pieces of files, of a frame or of an array, with where they stand."""
    if isinstance(source, tuple):
        for piece in source:
            for row, table in piece.tables():
                yield f"file '{piece.path}'", row, table
    elif len(source):
        yield f"partition {number}", 0, read_table(source)
