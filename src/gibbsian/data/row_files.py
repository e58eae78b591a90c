"""Files that are read a piece at a time: ``.npy`` mapped into memory, and Parquet by row groups."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from gibbsian.data.files import check_file, index_columns, open_npy, open_parquet, readable, table_from_arrow
from gibbsian.data.readers import table_from_array
from gibbsian.data.table import Table, as_names, check_shape, default_names
from gibbsian.errors import DataError

# Contiguous bytes of an .npy file that are read together: long enough for a disk, short enough to mix well.
PIECE_BYTES = 1 << 20
# Rows of a Parquet file decoded together: they pass through 8-byte numbers.
DECODED_CELLS = 1 << 20


@dataclass(frozen=True)
class RowFile:
    """Rows in a file, in pieces that can be read in any order."""

    path: Path
    names: tuple[str, ...]
    n_rows: int

    @classmethod
    @abstractmethod
    def open(cls, path: Path) -> Self:
        """Read the header of a file."""

    @abstractmethod
    def pieces(self, most_rows: int) -> list[tuple[int, int]]:
        """Return ranges of rows that can be read by themselves, none longer than `most_rows`."""

    @abstractmethod
    def tables(self, start: int, stop: int, names: Sequence[str]) -> Iterator[tuple[int, Table]]:
        """Read the columns `names` of one piece, in parts with the row that each begins at."""


def open_row_file(path: Path) -> RowFile:
    """Open a file by its extension; nothing but its header is read."""
    kinds: dict[str, type[RowFile]] = {".npy": NpyRows, ".parquet": ParquetRows}
    check_file(path)
    if path.suffix.lower() not in kinds:
        raise DataError(
            f"file '{path}' cannot be read in pieces",
            f"a stream reads {' and '.join(kinds)} files, for others use `Dataset.read`",
        )
    file = kinds[path.suffix.lower()].open(path)
    check_shape((file.n_rows, len(file.names)))
    return file


@dataclass(frozen=True)
class NpyRows(RowFile):
    """The rows of an ``.npy`` file; columns are called ``x0, x1, ...``."""

    row_bytes: int
    dtype: np.dtype
    begins: int | None  # where the first row does in the file; None where rows are no stretches of it

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the shape of the array."""
        array = open_npy(path)
        if array.ndim != 2:
            raise DataError(f"file '{path}' holds an array of {array.ndim} dimensions", "a table has two")
        n_rows, n = array.shape
        begins = array.offset if array.flags.c_contiguous else None  # type: ignore[attr-defined]
        return cls(path, default_names(n), n_rows, max(1, array.itemsize * n), array.dtype, begins)

    def pieces(self, most_rows: int) -> list[tuple[int, int]]:
        """Cut the rows into ranges of about a mebibyte."""
        size = max(1, min(PIECE_BYTES // self.row_bytes, most_rows))
        return [(start, min(start + size, self.n_rows)) for start in range(0, self.n_rows, size)]

    def tables(self, start: int, stop: int, names: Sequence[str]) -> Iterator[tuple[int, Table]]:
        """Read a range of rows. A map of the file is for one piece at a time, so its pages do not pile up."""
        with readable(self.path, ".npy"):
            if self.begins is None:
                rows = np.array(open_npy(self.path)[start:stop])
            else:
                size, place = (stop - start) * len(self.names), self.begins + start * self.row_bytes
                rows = np.fromfile(self.path, self.dtype, size, offset=place).reshape(stop - start, -1)
        yield start, table_from_array(rows).select(names)


@dataclass(frozen=True)
class ParquetRows(RowFile):
    """The rows of a Parquet file, in its row groups."""

    ends: tuple[int, ...]

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the columns, without the index that pandas may have stored beside them, and the row groups."""
        with open_parquet(path) as file:
            index = index_columns(file.schema_arrow)
            names = as_names(name for name in file.schema_arrow.names if name not in index)
            sizes = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
            return cls(path, names, file.metadata.num_rows, tuple(np.cumsum(sizes).tolist()))

    def pieces(self, most_rows: int) -> list[tuple[int, int]]:
        """Return the row groups as ranges of rows; each must fit, for a part of one cannot be read by itself."""
        groups = [(start, end) for start, end in zip((0, *self.ends), self.ends, strict=False) if end > start]
        largest = max(end - start for start, end in groups)
        if largest > most_rows:
            raise DataError(
                f"file '{self.path}' has a row group of {largest} rows but memory is for {most_rows}",
                "raise `memory=` or write the file with smaller row groups",
            )
        return groups

    def tables(self, start: int, stop: int, names: Sequence[str]) -> Iterator[tuple[int, Table]]:
        """Decode one row group, a part at a time."""
        from pyarrow import ArrowException
        from pyarrow import Table as ArrowTable

        group = int(np.searchsorted(self.ends, start, side="right"))
        rows = max(1, DECODED_CELLS // len(names))
        with open_parquet(self.path) as file:
            try:
                for part in file.iter_batches(rows, row_groups=[group], columns=list(names)):
                    yield start, table_from_arrow(ArrowTable.from_batches([part])).select(names)
                    start += part.num_rows
            except (ArrowException, OSError) as error:
                raise DataError(f"file '{self.path}' is damaged near row {start}", f"{error}") from None
