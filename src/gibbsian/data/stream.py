"""Rows on disk that are never all in memory, handed out in shuffled minibatches.

How random the order is. A pass takes every row once. The file is cut into pieces (a mebibyte of contiguous rows of an
``.npy`` file, a row group of a Parquet file); the pieces come in random order, as many as the memory allows are loaded
together, and the rows of this window are shuffled among themselves. So the disk reads long stretches, a minibatch
holds rows from all over its window, and a window is a random choice of pieces. This equals a uniform shuffle when the
data fits into one window or the rows stand in the file in random order. Rows sorted by something that matters are
mixed as well as one window's pieces represent the file: more memory or smaller row groups mix better.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Protocol, Self

import numpy as np

from gibbsian.backends.numba.packed import CELLS, pack, unpack
from gibbsian.backends.numba.random import shuffle_in_parts
from gibbsian.data.columns import columns_in, without_identifiers
from gibbsian.data.dataset import Dataset
from gibbsian.data.encoding import Cells, encode
from gibbsian.data.minibatches import Cuts, seeded
from gibbsian.data.row_files import RowFile, open_row_file
from gibbsian.data.rows import Minibatches, Rows
from gibbsian.data.rules import AUTOMATIC, CodingLike, Shares, Threshold
from gibbsian.data.table import Table
from gibbsian.domain import MANY_VALUED, AnyCoding, RealCoding
from gibbsian.errors import ArgumentError, DataError
from gibbsian.resources import require_memory

# The window takes this share of the memory; the rest is for pieces on their way into it and for minibatches.
WINDOW_SHARE = 0.75
# A row of the window takes its states, its place in the shuffled order, and what that is drawn with (a part's number).
BYTES_PER_PLACE = 8
# A word of a row and one of its holes, shuffled with as many beside them, are worth so many cells at least.
BYTES_OF_WORDS = 24
# From so many rows on a window is shuffled in parts: of one of a gigabyte, each is within the second-level cache.
MANY_ROWS, N_PARTS = 2**17, 256
# A window has at least so many pieces of an .npy file, so that it mixes.
PIECES_PER_WINDOW = 8
# Rows that are put together stand in memory as they were, side by side, and as distinct ones.
BYTES_OF_COPIES = 3
# What stands in missing cells of a window of discrete values; NaN does in one of real numbers.
MISSING = np.int8(-128)
# What is looked at to recognise the coding.
SCANNED_CELLS = 1 << 22
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


@dataclass(frozen=True, eq=False)
class DataStream(Rows):
    """Rows in ``.npy`` or Parquet files; made by `DataStream.open`.

    Parameters
    ----------
    files : tuple of RowFile
        The files, all with the same columns.
    names : tuple of str
        The variables.
    coding : Coding, CategoryCoding or RealCoding
        How the values are written; every cell is checked against it when it is read.
    memory : int
        Bytes that the rows in memory and their shuffling may take.
    columns : tuple of str
        The files' own names of the variables.
    recognised : bool
        Whether the coding was recognised in the first rows, for messages.
    dropped : tuple of str
        Columns of the files that were left out: identifiers of rows, and those that were to be.
    mapped : DataStream and function, or None
        The stream that is read, and what makes these rows of its; None where these are the rows of the files.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, gibbsian as gb
    >>> from gibbsian.data.stream import DataStream
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npy"
    >>> np.save(path, np.arange(12).reshape(6, 2) % 3 % 2)
    >>> stream = DataStream.open(path)
    >>> stream
    DataStream(n_rows=6, n_variables=2, coding='binary', n_files=1)
    >>> [batch.n_rows for batch in stream.minibatches(2, seed=np.arange(4), epoch=0)]
    [2, 2, 2]
    """

    files: tuple[RowFile, ...]
    names: tuple[str, ...]
    coding: AnyCoding
    memory: int
    columns: tuple[str, ...]
    recognised: bool = False
    dropped: tuple[str, ...] = ()
    mapped: tuple[DataStream, Callable[[Dataset], Dataset]] | None = None

    def __repr__(self) -> str:
        return (
            f"DataStream(n_rows={self.n_rows}, n_variables={self.n_variables}, coding={self.coding.name!r}, "
            f"n_files={len(self.files)})"
        )

    # -- opening ------------------------------------------------------------------------------------------------------
    @classmethod
    def open(
        cls,
        source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        coding: CodingLike = "auto",
        names: Sequence[str] | None = None,
        columns: str | Sequence[str] | None = None,
        drop: str | Sequence[str] = (),
        memory: int | str = "512MB",
    ) -> Self:
        """Open one file or several with the same columns.

        Parameters
        ----------
        source : path or sequence of paths
            ``.npy`` or ``.parquet`` files.
        coding : default="auto"
            What the cells are, of all columns or by column, as for `Dataset.read`. What is recognised is recognised in
            the first rows only, identifiers too, and a value that does not fit is an error when it comes.
        names : sequence of str, optional
            Names of the chosen columns, instead of the files' own.
        columns, drop : str or sequence of str, optional
            Columns to keep, in that order; columns to leave out.
        memory : int or str
            Bytes, or a number with a unit such as ``"2GB"`` or ``"500 MiB"``. It bounds what the stream holds; the
            interpreter and the learner's own arrays come on top.

        Examples
        --------
        >>> from gibbsian.data.stream import DataStream
        >>> DataStream.open("absent.npy")
        Traceback (most recent call last):
            ...
        gibbsian.errors.DataError: file 'absent.npy' was not found: check the path
        """
        paths = [source] if isinstance(source, str | os.PathLike) else list(source)
        if not paths:
            raise DataError("no files were given", "give 1 or more")
        files = tuple(open_row_file(Path(path)) for path in paths)
        header = _header(files).chosen(columns, drop)
        chosen, named = header.names, header.renamed(names).names
        recognised = isinstance(coding, str) and coding in (*AUTOMATIC, *MANY_VALUED)
        scanned, left_out = _scan(files[0], chosen, named), [drop] if isinstance(drop, str) else [*drop]
        if columns is None:
            scanned, identifiers = without_identifiers(scanned, coding)
            left_out += [*identifiers, *columns_in(coding).dropped]
        found = _recognised(files[0], scanned, coding)
        own = dict(zip(named, chosen, strict=True))
        named = tuple(name for name in scanned.names if name not in columns_in(coding).dropped)
        chosen = tuple(own[name] for name in named)
        stream = cls(files, named, found, as_bytes(memory), chosen, recognised, tuple(left_out))
        stream._pieces  # noqa: B018 - files that cannot be cut to fit are refused now, not in the middle of a fit
        return stream

    # -- sizes --------------------------------------------------------------------------------------------------------
    on_disk: ClassVar[bool] = True

    @property
    def n_missing(self) -> int:
        """Zero: missing cells are found when their minibatch is read."""
        return 0

    @property
    def n_states(self) -> int:
        """Number of rows in all files: equal ones are not looked for."""
        return self.n_rows

    @property
    def n_rows(self) -> int:
        """Number of rows in all files."""
        return sum(file.n_rows for file in self.files)

    @property
    def window_rows(self) -> int:
        """Rows that are in memory together and shuffled among themselves."""
        per_row = self.n_variables * np.dtype(self._dtype).itemsize + BYTES_PER_PLACE
        return int(WINDOW_SHARE * self.memory) // per_row

    @property
    def identity(self) -> tuple[tuple[str, int, int], ...]:
        """Path, size and time of change of each file: what a checkpoint is compared by."""
        facts = [(file.path, file.path.stat()) for file in self.files]
        return tuple((str(path.resolve()), fact.st_size, fact.st_mtime_ns) for path, fact in facts)

    @cached_property
    def _pieces(self) -> list[tuple[RowFile, int, int]]:
        """All pieces as file, first row and end."""
        if self.window_rows < PIECES_PER_WINDOW:
            reason = f"is too small for {self.n_variables} columns"
            raise ArgumentError(reason, "give some megabytes", argument="memory", value=self.memory)
        most = {".npy": self.window_rows // PIECES_PER_WINDOW, ".parquet": self.window_rows}
        return [(file, *piece) for file in self.files for piece in file.pieces(most[file.path.suffix.lower()])]

    # -- minibatches --------------------------------------------------------------------------------------------------
    def minibatches(self, batch_size: int, seed: np.ndarray, epoch: int) -> Minibatches:
        """Return the minibatches of pass number `epoch` of the shuffling that `seed` determines, each row once.

        Examples
        --------
        >>> import pathlib, tempfile, numpy as np
        >>> from gibbsian.data.stream import DataStream
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npy"
        >>> np.save(path, np.eye(4))
        >>> sum(batch.states.sum() for batch in DataStream.open(path).minibatches(2, np.arange(4), epoch=0)).item()
        4
        """
        return WindowPass.of(self, batch_size, seed, epoch)

    @property
    def piece_rows(self) -> list[int]:
        """Rows of each piece."""
        return [stop - start for _, start, stop in self._pieces]

    def load(self, pieces: Sequence[int] | np.ndarray) -> np.ndarray:
        """Read pieces one after another into one array of states, or of their bits where these are shorter.

        Bits are a table of words of the values, and one of where cells are missing, if any are.
        """
        chosen, n, filled = [self._pieces[p] for p in pieces], self.n_variables, 0
        n_rows, n_words, holes = sum(stop - start for _, start, stop in chosen), -(-n // CELLS), False
        in_bits = self.coding.domain.two_valued and self._dtype is np.int8 and BYTES_OF_WORDS * n_words <= n
        rows = np.zeros((2, n_rows, n_words), np.uint64) if in_bits else np.empty((n_rows, n), self._dtype)
        for data in self._read(chosen):
            part = slice(filled, filled := filled + data.n_rows)
            if not in_bits:
                rows[part] = marked(data.states, data.missing)
                continue
            pack(data.states.view(bool), rows[0, part])
            if data.missing is not None:
                holes = True
                pack(data.missing, rows[1, part])
        return rows if holes or not in_bits else rows[:1]  # pages that were not written take no memory

    def _read(self, pieces: Iterable[tuple[RowFile, int, int]]) -> Iterator[Dataset]:
        """Read pieces in the coding, part by part."""
        if self.mapped is not None:
            source, function = self.mapped
            for part in map(function, source._read(pieces)):
                states, missing = part.rows()  # one by one, also where the function has put equal ones together
                yield Dataset.of_states(states, part.coding, names=part.names, missing=missing, distinct=False)
            return
        for file, start, stop in pieces:
            for row, table in file.tables(start, stop, self.columns):
                named = Table(self.names, table.cells)
                cells = cells_of(named, self.coding, f"file '{file.path}'", row, self.recognised)
                codes = np.ascontiguousarray(cells.codes)
                yield Dataset.of_states(codes, self.coding, names=self.names, missing=cells.missing, distinct=False)

    @property
    def _dtype(self) -> type:
        numbers = isinstance(self.coding, RealCoding) or isinstance(self.coding.rule, Shares)
        return np.float64 if numbers else np.int8

    # -- sums ---------------------------------------------------------------------------------------------------------
    def partitions(self) -> Iterator[Dataset]:
        """Yield data sets whose sums add up to the sums over all rows, in one pass over the disk.

        Examples
        --------
        >>> import pathlib, tempfile, numpy as np
        >>> from gibbsian.data.stream import DataStream
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npy"
        >>> np.save(path, np.array([[1, 1], [1, -1], [-1, -1], [-1, -1]], np.int8))
        >>> sum(part.weights @ part.states for part in DataStream.open(path).partitions()).tolist()
        [2.0, 1.0]
        """
        return self._read(self._pieces)

    def map(self, function: Callable[[Dataset], Dataset]) -> Self:
        """Return the rows as a function makes them of each part that is read; it keeps their number and weights.

        Examples
        --------
        >>> import pathlib, tempfile, numpy as np
        >>> from gibbsian.data.stream import DataStream
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npy"
        >>> np.save(path, np.array([[1, 1], [1, 0]]))
        >>> DataStream.open(path).map(lambda part: part.convert("spin")).coding.name
        'spin'
        """
        first = function(next(self.partitions()))
        return replace(self, names=first.names, coding=first.coding, mapped=(self, function))

    def sample(self, n: int, rng: np.random.Generator) -> Dataset:
        """Draw `n` rows with replacement, in one pass over the disk; they come in the order of the files."""
        chosen, start, drawn = np.sort(rng.integers(self.n_rows, size=n)), 0, []
        for part in self.partitions():
            stop = start + part.n_rows
            drawn.append(marked(*part.rows(chosen[(start <= chosen) & (chosen < stop)] - start)))
            start = stop
        states = np.concatenate(drawn)
        return Dataset.of_states(states, self.coding, names=self.names, missing=are_marked(states))

    def collect(self) -> Dataset:
        """Return the rows as a data set in which each distinct row stands once, with its number as its weight.

        Examples
        --------
        >>> import pathlib, tempfile, numpy as np
        >>> from gibbsian.data.stream import DataStream
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npy"
        >>> np.save(path, np.array([[1, 1], [1, 0], [1, 1]]))
        >>> DataStream.open(path).collect().weights.tolist()
        [1.0, 2.0]
        """
        parts = self.partitions()
        whole = counted([next(parts)])
        for part in parts:
            whole = counted([whole, part])
        return whole

    @property
    def total_weight(self) -> float:
        """Sum of the weights: the number of rows."""
        return float(self.n_rows)


class Pieces(Protocol):
    """Rows in pieces that can be loaded in any order."""

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""

    @property
    def coding(self) -> AnyCoding:
        """How the values are written."""

    @property
    def n_variables(self) -> int:
        """Number of variables."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def piece_rows(self) -> list[int]:
        """Rows of each piece."""

    @property
    def window_rows(self) -> int:
        """Rows that are in memory together."""

    def load(self, pieces: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the states of pieces, one after another."""


@dataclass(eq=False)
class WindowPass:
    """A pass with one window in memory at a time."""

    source: Pieces
    seed: np.ndarray
    epoch: int
    cuts: Cuts
    windows: list[np.ndarray]
    loaded: int = -1
    states: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.int8))
    places: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))

    @classmethod
    def of(cls, source: Pieces, batch_size: int, seed: np.ndarray, epoch: int) -> Self:
        """Put pieces together, in the order of the pass, while they fit into a window."""
        order = seeded(seed, epoch).permutation(len(source.piece_rows))
        window_of, taken, windows = [], 0, 0
        for size in np.array(source.piece_rows)[order]:
            if taken and taken + size > source.window_rows:
                taken, windows = 0, windows + 1
            taken += int(size)
            window_of.append(windows)
        chosen = [order[np.array(window_of) == w] for w in range(windows + 1)]
        return cls(source, seed, epoch, Cuts(source.n_rows, batch_size), chosen)

    def __len__(self) -> int:
        return len(self.cuts)

    @cached_property
    def _sizes(self) -> np.ndarray:
        """Rows of each window."""
        sizes = np.array(self.source.piece_rows)
        return np.array([sizes[window].sum() for window in self.windows])

    @cached_property
    def _ends(self) -> np.ndarray:
        """Where each window ends in the order of the pass."""
        return np.cumsum(self._sizes)

    def __getitem__(self, k: int) -> Dataset:
        start, stop = self.cuts[k]
        parts = []
        while start < stop:
            window = int(np.searchsorted(self._ends, start, side="right"))
            self._load(window)
            first = int(self._ends[window] - self._sizes[window])
            end = min(stop, int(self._ends[window]))
            parts.append(self._rows(slice(start - first, end - first)))
            start = end
        rows, source = parts[0] if len(parts) == 1 else np.concatenate(parts), self.source
        return Dataset.of_states(rows, source.coding, names=source.names, missing=are_marked(rows), distinct=False)

    def _rows(self, part: slice) -> np.ndarray:
        """Return rows of the window, with a mark in their missing cells."""
        if self.states.dtype != np.uint64:
            return self.states.take(self.places[part], axis=0)
        return unpack(self.states[:, part], self.source.n_variables, np.int8(0), np.int8(1), MISSING)

    def _load(self, window: int) -> None:
        if window == self.loaded:
            return
        self.states = self.places = np.empty(0, np.int8)  # free the last window before the next is made
        rows, rng = self.source.load(self.windows[window]), seeded(self.seed, self.epoch, window)
        if rows.dtype == np.uint64:  # as short as places, and then minibatches wait for no memory
            self.states = in_random_order(rows, rng)
        else:
            self.states, places = rows, np.arange(len(rows), dtype=np.int32)
            self.places = in_random_order(places[None, :, None], rng).ravel()
        self.loaded = window


def in_random_order(tables: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return tables with their rows in one random order; a plain shuffle of many would wait for memory at every row."""
    n_rows = tables.shape[1]
    if n_rows < MANY_ROWS:
        return tables[:, rng.permutation(np.arange(n_rows, dtype=np.int32))]
    part_of = rng.integers(0, N_PARTS, n_rows, dtype=np.uint8)
    stream, shuffled = rng.integers(0, 2**64, 4, dtype=np.uint64), np.empty_like(tables)
    for t, column in np.ndindex(len(tables), tables.shape[2]):
        shuffle_in_parts(part_of, N_PARTS, stream, tables[t, :, column], shuffled[t, :, column])
    return shuffled


# -- a part of a table ------------------------------------------------------------------------------------------------
def cells_of(table: Table, coding: AnyCoding, where: str, first_row: int, recognised: bool) -> Cells:
    """Read a part of a table in the coding of all, or say of the first row that cannot be read `where` it stands."""
    rule = coding.rule
    # a threshold decides, whatever labels the numbers may look like
    reading = Threshold(rule.threshold, coding) if isinstance(rule, Threshold) else coding
    try:
        return encode(table, reading)
    except DataError:
        row, error = _first_refused(table, reading)
        how = "declare `coding=` (it was recognised in the first rows)" if recognised else "declare another"
        raise type(error)(
            f"{where}, row {first_row + row} (counted from 0): {error.reason}", f"{how}, or mend the file"
        ) from None


# -- opening ----------------------------------------------------------------------------------------------------------
def _header(files: Sequence[RowFile]) -> Table:
    """The columns of all files, without rows."""
    first = files[0]
    for other in files[1:]:
        if other.names != first.names:
            raise DataError(
                f"file '{other.path}' has other columns than '{first.path}'", "give files with the same columns"
            )
    return Table(first.names, np.empty((0, len(first.names))))


def _scan(file: RowFile, columns: tuple[str, ...], names: tuple[str, ...]) -> Table:
    """Read the first rows."""
    most = max(1, SCANNED_CELLS // len(columns))
    start, stop = file.pieces(most if file.path.suffix.lower() == ".npy" else file.n_rows)[0]
    _, table = next(iter(file.tables(start, stop, columns)))
    return Table(names, table.cells)


def _recognised(file: RowFile, table: Table, coding: CodingLike) -> AnyCoding:
    """Recognise or check the coding of the first rows."""
    try:
        return encode(table, coding).coding
    except DataError as error:
        raise type(error)(f"file '{file.path}': {error.reason}", error.remedy) from None


def marked(states: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
    """Return states with a mark in their missing cells."""
    return states if missing is None else np.where(missing, MISSING if states.dtype.kind == "i" else np.nan, states)


def are_marked(states: np.ndarray) -> np.ndarray:
    """Return which cells have the mark."""
    return states == MISSING if states.dtype.kind == "i" else np.isnan(states)


def as_bytes(memory: int | str) -> int:
    """Read an amount of memory."""
    match = re.fullmatch(r"([0-9.]+)\s*([kmg]i?)?b?", str(memory).strip().lower())
    try:
        if match is None:
            raise ValueError
        amount = int(float(match[1]) * _UNITS[match[2] or ""])
    except ValueError:
        raise ArgumentError("must be a number of bytes or like '2GB'", argument="memory", value=memory) from None
    if amount < 1:
        raise ArgumentError("must be positive", argument="memory", value=memory)
    return amount


def counted(parts: Sequence[Dataset]) -> Dataset:
    """Put data sets together, each distinct row once with its weight."""
    size = sum(part.nbytes for part in parts)
    require_memory(BYTES_OF_COPIES * size, "the distinct rows of the stream", "learn by minibatches, or choose columns")
    data = Dataset.of_states(
        np.concatenate([part.states for part in parts]),
        parts[0].coding,
        names=parts[0].names,
        sample_weight=np.concatenate([part.weights for part in parts]),
        missing=np.concatenate([part.holes for part in parts]),
    )
    return replace(data, row_of=np.arange(data.n_states), row_weights=data.weights)


def _first_refused(table: Table, coding: CodingLike) -> tuple[int, DataError]:
    """Find the first row that cannot be read in a coding, and what is said of it, by halving."""
    start, stop = 0, table.shape[0]
    while stop - start > 1:
        middle = (start + stop) // 2
        start, stop = (middle, stop) if _error_of(table.rows(start, middle), coding) is None else (start, middle)
    error = _error_of(table.rows(start, stop), coding)
    assert error is not None
    return start, error


def _error_of(table: Table, coding: CodingLike) -> DataError | None:
    try:
        encode(table, coding)
    except DataError as error:
        return error
    return None
