"""Files that are read a piece at a time: ``.npy`` mapped into memory, and Parquet by row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gibbsian.data.files import table_from_arrow
from gibbsian.data.readers import table_from_array
from gibbsian.data.table import Table, as_names, check_shape
from gibbsian.errors import DataError

# Contiguous bytes of an .npy file that are read together: long enough for a disk, short enough to mix well.
PIECE_BYTES = 1 << 20
# Rows of a Parquet file decoded together: they pass through 8-byte numbers.
DECODED_CELLS = 1 << 20


class RowFile(Protocol):
    """Rows in a file, in pieces that can be read in any order."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def pieces(self, most_rows: int) -> list[tuple[int, int]]:
        """Return ranges of rows that can be read by themselves, none longer than `most_rows`."""

    def tables(self, start: int, stop: int, names: Sequence[str]) -> Iterator[tuple[int, Table]]:
        """Read the columns `names` of one piece, in parts with the row that each begins at."""


def open_row_file(path: Path) -> RowFile:
    """Open a file by its extension; nothing but its header is read."""
    kinds: dict[str, type[NpyRows] | type[ParquetRows]] = {".npy": NpyRows, ".parquet": ParquetRows}
    if not path.exists() or path.is_dir():
        raise DataError(f"file '{path}' was not found", "check the path")
    if path.suffix.lower() not in kinds:
        raise DataError(
            f"file '{path}' cannot be read in pieces",
            f"a stream reads {' and '.join(kinds)} files, for others use `Dataset.read`",
        )
    file: RowFile = kinds[path.suffix.lower()](path)
    check_shape((file.n_rows, len(file.names)))
    return file


@dataclass(frozen=True)
class NpyRows:
    """The rows of an ``.npy`` file; columns are called ``x0, x1, ...``."""

    path: Path

    @cached_property
    def _header(self) -> tuple[tuple[int, ...], int]:
        array = self._map()
        if array.ndim != 2:
            raise DataError(f"file '{self.path}' holds an array of {array.ndim} dimensions", "a table has two")
        return array.shape, array.itemsize * array.shape[1]

    def _map(self) -> np.ndarray:
        try:
            return np.load(self.path, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise DataError(f"file '{self.path}' is not a readable .npy file", f"{error}") from None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(f"x{j}" for j in range(self._header[0][1]))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._header[0][0]

    def pieces(self, most_rows: int) -> list[tuple[int, int]]:
        """Cut the rows into ranges of about a mebibyte."""
        size = max(1, min(PIECE_BYTES // max(1, self._header[1]), most_rows))
        return [(start, min(start + size, self.n_rows)) for start in range(0, self.n_rows, size)]

    def tables(self, start: int, stop: int, names: Sequence[str]) -> Iterator[tuple[int, Table]]:
        """Read a range of rows. The file is mapped for one piece at a time, so its pages do not pile up."""
        array = np.array(self._map()[start:stop])
        table = Table(self.names, array) if array.dtype.kind in "biuf" else table_from_array(array)
        yield start, table.select(names)


@dataclass(frozen=True)
class ParquetRows:
    """The rows of a Parquet file, in its row groups."""

    path: Path

    @cached_property
    def _metadata(self) -> tuple[tuple[str, ...], list[int]]:
        file = self._open()
        index = {n for n in (file.schema_arrow.pandas_metadata or {}).get("index_columns", []) if isinstance(n, str)}
        names = as_names(name for name in file.schema_arrow.names if name not in index)
        groups = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
        return names, groups

    def _open(self) -> Any:
        from pyarrow import ArrowException, parquet

        try:
            return parquet.ParquetFile(self.path)
        except (ArrowException, OSError) as error:
            raise DataError(f"file '{self.path}' is not a readable Parquet file", f"{error}") from None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, without the index that pandas may have stored beside them."""
        return self._metadata[0]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self._metadata[1])

    def pieces(self, most_rows: int) -> list[tuple[int, int]]:
        """Return the row groups as ranges of rows; each must fit, for a part of one cannot be read by itself."""
        groups = self._metadata[1]
        if max(groups) > most_rows:
            raise DataError(
                f"file '{self.path}' has a row group of {max(groups)} rows but memory is for {most_rows}",
                "raise `memory=` or write the file with smaller row groups",
            )
        ends = np.cumsum(groups).tolist()
        return [(end - size, end) for end, size in zip(ends, groups, strict=True) if size]

    def tables(self, start: int, stop: int, names: Sequence[str]) -> Iterator[tuple[int, Table]]:
        """Decode one row group, a part at a time."""
        from pyarrow import ArrowException
        from pyarrow import Table as ArrowTable

        group = self._group_at(start)
        rows = max(1, DECODED_CELLS // len(names))
        with self._open() as file:
            try:
                for part in file.iter_batches(rows, row_groups=[group], columns=list(names)):
                    yield start, table_from_arrow(ArrowTable.from_batches([part])).select(names)
                    start += part.num_rows
            except (ArrowException, OSError) as error:
                raise DataError(f"file '{self.path}' is damaged near row {start}", f"{error}") from None

    def _group_at(self, start: int) -> int:
        ends = np.cumsum(self._metadata[1])
        return int(np.searchsorted(ends, start, side="right"))
