"""Files to a `Table`: text, Parquet and Feather by Arrow, NumPy's own, spreadsheets and SAS or SPSS by pandas."""

from __future__ import annotations

import csv
import io
import lzma
import os
import stat
import sys
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from gibbsian.data.readers import table_from_array, table_from_pandas
from gibbsian.data.table import INSTEAD, MISSING_MARKS, Factor, Table, as_factor, as_names, canonical, table_of_columns
from gibbsian.domain import CODINGS
from gibbsian.errors import DataError, GibbsianError
from gibbsian.resources import require_memory
from gibbsian.startup import pandas

if TYPE_CHECKING:
    import pyarrow.csv
    import pyarrow.parquet
    from numpy.lib.npyio import NpzFile

# Of text that is read at once: a cell of two characters ("0,") becomes an int64, its share of the float block, masks.
BYTES_PER_FILE_BYTE = 12
# Of compressed text: as it is unpacked, and a copy.
BYTES_PER_UNPACKED_BYTE = 2
# What a cell of text takes until it is one of the distinct rows, by what its column holds: words; whole numbers, also
# with holes; and real numbers.
BYTES_PER_WORD, BYTES_PER_WHOLE, BYTES_PER_HOLED, BYTES_PER_REAL = 6, 5, 10, 28
BYTES_PER_PARQUET_CELL = 24
ARRAY_KEYS = ("x", "X", "data")
NAME_KEYS = ("names", "items")
# Files that are read a part at a time.
STREAMED = (".csv", ".tsv", ".txt", ".parquet")
DELIMITERS = ("\t", ",", ";", " ")
# What stands for stdin, which holds delimited text.
STDIN = Path("-")
TEXT_FORMATS = (".csv", ".tsv", ".txt")
# The standard library, or Arrow, opens text that is compressed in these ways.
PACKINGS = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma", ".zst": "zstd"}
PIECE = 1 << 24
# Numbers of a text are kept in the first of these that holds them.
NARROW = ("int8", "int16", "int32")
# Readers of pandas, what they are called with, and the package that each needs besides.
FRAME_READERS: dict[str, tuple[str, dict[str, object], str]] = {
    ".xlsx": ("read_excel", {}, "openpyxl"),
    ".sas7bdat": ("read_sas", {"encoding": "infer"}, ""),
    ".sav": ("read_spss", {"convert_categoricals": False}, "pyreadstat"),
    ".dta": ("read_stata", {}, ""),
}
TABLE_FORMATS = (*TEXT_FORMATS, ".parquet", ".feather", ".npy", ".npz", *FRAME_READERS)


def read_file(path: Path, names: Sequence[str] | None = None) -> Table:
    """Read a file by its extension; ``file.npz:key`` names an array, `names` the columns of text without header."""
    readers: dict[str, Callable[[Path, Sequence[str] | None], Table]] = {
        **dict.fromkeys(TEXT_FORMATS, _read_text), ".parquet": _read_parquet, ".feather": _read_feather,
        ".npy": _read_npy, ".npz": _read_npz, **dict.fromkeys(FRAME_READERS, _read_frame),
    }  # fmt: skip
    if path == STDIN:
        return _with_rows(_read_text(path, names), path)
    path, key = _split_key(path)
    check_file(path)
    if (kind := format_of(path)[0]) not in readers:
        listed = f"{', '.join(readers)}, and text compressed as {', '.join(PACKINGS)}"
        raise DataError(f"file '{path}' has the unknown extension {path.suffix!r}", f"use one of {listed}")
    if path.stat().st_size == 0:
        raise DataError(f"file '{path}' is empty (0 bytes)")
    table = _with_rows(readers[kind](path, names) if key is None else _read_npz(path, names, key), path)
    if arrow := sys.modules.get("pyarrow"):  # which keeps what it has freed, several times the table
        arrow.default_memory_pool().release_unused()
    return table


def check_file(path: Path) -> None:
    """Raise unless a path leads to a file."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # also links in a circle, names that are too long or hold a zero
        why = "" if isinstance(error, FileNotFoundError) else f" ({getattr(error, 'strerror', None) or error})"
        raise DataError(f"file '{path}' was not found{why}", "check the path") from None
    if stat.S_ISDIR(mode):
        raise DataError(f"'{path}' is a folder", "name one of the files in it")


def format_of(path: Path) -> tuple[str, str]:
    """Return the extension of a file, and the second one where text is compressed."""
    first, last = Path(path.stem).suffix.lower(), path.suffix.lower()
    return (first, last) if last in PACKINGS and first in TEXT_FORMATS else (last, "")


def _with_rows(table: Table, path: Path) -> Table:
    """Return a table, which must have rows."""
    if table.shape[0] == 0:
        raise DataError(f"file '{path}' has no rows (a header only)", "it needs 1 row or more")
    return table


def _too_large(path: Path, n_bytes: float) -> None:
    require_memory(n_bytes, f"reading '{path}'", INSTEAD)


# What readers of damaged files raise.
UNREADABLE = (
    ArithmeticError, EOFError, LookupError, MemoryError, NotImplementedError, OSError, TypeError, ValueError,
    lzma.LZMAError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


@contextmanager
def readable(path: Path, kind: str) -> Iterator[None]:
    """Say of what cannot be read which file it is, and why."""
    try:
        yield
    except GibbsianError:
        raise
    except UNREADABLE as error:
        why = str(error).strip().split("\n")[0][:200] or type(error).__name__
        raise DataError(f"file '{path}' is not a readable {kind} file", why) from None


# -- delimited text ---------------------------------------------------------------------------------------------------
def _read_text(path: Path, names: Sequence[str] | None) -> Table:
    from pyarrow import csv as arrow_csv

    marks = {spelling for mark in MISSING_MARKS for spelling in (mark, mark.upper(), mark.capitalize(), "NaN")}
    options = arrow_csv.ConvertOptions(null_values=sorted(marks), strings_can_be_null=True, auto_dict_encode=True)
    plain = _unpacked(path)
    with _parsing(path, plain, names) as parsing:
        table = _narrow_table(path, plain, convert_options=options, **parsing)
    return table_from_arrow(table.rename_columns([name.strip() for name in table.column_names]))


def _narrow_table(
    path: Path,
    plain: bytes | None,
    **options: pyarrow.csv.ReadOptions | pyarrow.csv.ParseOptions | pyarrow.csv.ConvertOptions,
) -> pyarrow.Table:
    """Read text a block at a time, each made narrow before the next; at once where later cells change a type."""
    from pyarrow import ArrowInvalid, Table, concat_tables
    from pyarrow import csv as arrow_csv

    size = path.stat().st_size if plain is None else len(plain)
    parts: list[pyarrow.Table] = []
    try:
        with arrow_csv.open_csv(path if plain is None else io.BytesIO(plain), **options) as batches:
            for batch in batches:
                if not parts:
                    _too_large(path, max(1.0, size / options["read_options"].block_size) * _bytes_of(batch))
                parts.append(Table.from_arrays(list(map(_narrow, batch.columns)), batch.schema.names))
        if parts:
            return concat_tables(parts, promote_options="permissive")
    except ArrowInvalid:  # the first block has shown the types, and a later one holds something else
        pass
    _too_large(path, size * BYTES_PER_FILE_BYTE)
    return arrow_csv.read_csv(path if plain is None else io.BytesIO(plain), **options)


def _bytes_of(batch: pyarrow.RecordBatch) -> float:
    """Predict what the rows of a block take, by the kinds of their columns; numbers alone become one block."""
    from pyarrow import types

    each = []
    for column in batch.columns:
        if types.is_integer(column.type):
            each.append(BYTES_PER_HOLED if column.null_count else BYTES_PER_WHOLE)
        else:
            each.append(BYTES_PER_WORD if types.is_dictionary(column.type) else BYTES_PER_REAL)
    alone = not any(types.is_dictionary(column.type) for column in batch.columns)
    return float(batch.num_rows * (len(each) * max(each, default=0) if alone else sum(each)))


def _narrow(column: pyarrow.Array) -> pyarrow.Array:
    """Return whole numbers, or the places of words, in the fewest bytes that hold them."""
    from pyarrow import DictionaryArray, compute, types

    if types.is_dictionary(column.type):
        return DictionaryArray.from_arrays(column.indices.cast("int8"), column.dictionary)
    if not types.is_integer(column.type):
        return column
    ends = [end or 0 for end in compute.min_max(column).as_py().values()]
    return column.cast(next((name for name in NARROW if max(abs(end) for end in ends) <= np.iinfo(name).max), "int64"))


def text_batches(path: Path) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows of delimited text as Arrow batches of words, as they are written."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    plain = _unpacked(path)
    with _parsing(path, plain, None) as parsing:
        header = _fields(_first_lines(path, plain)[0], parsing["parse_options"].delimiter)
        options = arrow_csv.ConvertOptions(column_types=dict.fromkeys(header, pyarrow.string()))
        stripped = [name.strip() for name in header]
        held = path if plain is None else io.BytesIO(plain)
        with arrow_csv.open_csv(held, convert_options=options, **parsing) as batches:
            for batch in batches:
                yield pyarrow.RecordBatch.from_arrays(batch.columns, names=stripped)


@contextmanager
def _parsing(
    path: Path, plain: bytes | None, names: Sequence[str] | None
) -> Iterator[dict[str, pyarrow.csv.ReadOptions | pyarrow.csv.ParseOptions]]:
    """Give the options by which a text is cut into fields, and say what is wrong with one that cannot be."""
    from pyarrow import ArrowException
    from pyarrow import csv as arrow_csv

    lines = _first_lines(path, plain)
    delimiter = _delimiter(path, lines)
    ragged: list[pyarrow.csv.InvalidRow] = []

    def note_ragged(row: pyarrow.csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    try:
        yield {
            "read_options": arrow_csv.ReadOptions(
                column_names=_names_if_headless(path, _fields(lines[0], delimiter), names)
            ),
            "parse_options": arrow_csv.ParseOptions(delimiter=delimiter, invalid_row_handler=note_ragged),
        }
    except ArrowException as error:
        if ragged:
            row = ragged[0]
            raise DataError(
                f"file '{path}' is ragged",
                f"the row {row.text!r:.60} has {row.actual_columns} fields but the first line has "
                f"{row.expected_columns}",
            ) from None
        raise DataError(f"file '{path}' cannot be read as a table", f"{error}") from None


def _unpacked(path: Path) -> bytes | None:
    """Return the text of stdin or of a compressed file; None where the file itself is text."""
    packing, held = format_of(path)[1], bytearray()
    if path != STDIN and not packing:
        return None
    with readable(path, packing or "text"), _opened(path, packing) as source:
        while piece := source.read(PIECE):  # what is small on disk may be large
            held += piece
            _too_large(path, len(held) * BYTES_PER_UNPACKED_BYTE)
    return bytes(held)


def _opened(path: Path, packing: str) -> AbstractContextManager[BinaryIO]:
    """Open stdin or a compressed file."""
    if path == STDIN:
        return nullcontext(sys.stdin.buffer)
    if packing == ".zst":
        from pyarrow import input_stream

        return input_stream(path, compression="zstd")
    return import_module(PACKINGS[packing]).open(path, "rb")


def _first_lines(path: Path, plain: bytes | None) -> list[str]:
    """The first two lines that are not blank, or the only one."""
    try:
        with path.open("rb") if plain is None else io.BytesIO(plain) as held:
            lines = io.TextIOWrapper(held, encoding="utf-8-sig")
            first = list(islice((line.rstrip("\n") for line in lines if line.strip()), 2))
    except UnicodeDecodeError:
        raise DataError(f"file '{path}' is not UTF-8 text", "save it as UTF-8") from None
    if not first:
        raise DataError(f"file '{path}' is empty (blank lines only)")
    return first


def _delimiter(path: Path, lines: list[str]) -> str:
    """The one that cuts the first two lines into equally many fields, the usual one of the extension first."""
    kind = format_of(path)[0]
    usual = {".csv": ",", ".tsv": "\t"}.get(kind, DELIMITERS[0])
    others = DELIMITERS if kind == ".txt" else DELIMITERS[:3]  # a space may stand in a name
    present = [d for d in (usual, *others) if len(_fields(lines[0], d)) > 1]
    agreeing = (d for d in present if len(_fields(lines[0], d)) == len(_fields(lines[-1], d)))
    return next(agreeing, present[0] if present else usual)


def _fields(line: str, delimiter: str) -> list[str]:
    csv.field_size_limit(max(csv.field_size_limit(), len(line)))
    return next(csv.reader([line], delimiter=delimiter))


# What the two values are called in the codings that are recognised.
WORDS_OF_CODINGS = {canonical(label) for coding in CODINGS.values() for label in (coding.low, coding.high)}


def _names_if_headless(path: Path, header: list[str], names: Sequence[str] | None) -> list[str] | None:
    """The columns' names when the first line holds values; None when it is a header."""
    tokens = [canonical(field) for field in header]
    counted = len(header) > 2 and tokens == [float(j) for j in range(len(header))]  # pandas' default names
    values = all(isinstance(token, float) or token is None or token in WORDS_OF_CODINGS for token in tokens)
    if counted or not values or all(token is None for token in tokens):
        return None
    if names is None:
        shown = ", ".join(header[:4]) + (", ..." if len(header) > 4 else "")
        raise DataError(
            f"the first line of '{path}' holds values ({shown})", "add a row of column names or give `names=`"
        )
    if len(names) != len(header):
        raise DataError(f"names has {len(names)} entries but '{path}' has {len(header)} columns")
    return list(names)


# -- Arrow and Parquet ------------------------------------------------------------------------------------------------
def table_from_arrow(table: pyarrow.Table, declared: Collection[str] = ()) -> Table:
    """Turn an Arrow table into ours, without the index that pandas may have stored beside the columns.

    `declared` names the columns whose dictionary lists their values in the user's order.
    """
    from pyarrow import ArrowException

    names = as_names(table.column_names)
    index = index_columns(table.schema)
    kept = [name for name in names if name not in index]
    columns = []
    for name in kept:
        try:
            columns.append(_arrow_column(table.column(name), name, name in declared))
        except ArrowException:
            raise DataError(
                f"column {name!r} holds {table.column(name).type}, not numbers or labels", "leave it out of the file"
            ) from None
    return table_of_columns(kept, columns)


def _arrow_column(column: pyarrow.ChunkedArray, name: str, declared: bool) -> np.ndarray | Factor:
    from pyarrow import compute, types

    kind = column.type
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_decimal(kind):
        column, kind = column.cast("float64"), None
    if kind in ("int8", "int16") and column.null_count:  # which float32 holds exactly
        column = column.cast("float32")
    if kind is None or types.is_integer(kind) or types.is_floating(kind):
        return column.to_numpy()  # nulls become NaN
    if types.is_boolean(kind) and column.null_count == 0:
        return column.to_numpy()
    if types.is_dictionary(kind):
        whole = column.unify_dictionaries().combine_chunks()
    else:  # in one piece: pieces would each be compared with the dictionary of all, which is quadratic for ids
        whole = compute.dictionary_encode(column.combine_chunks())
    if hasattr(whole, "chunks"):  # an empty chunked array stays chunked in some versions
        return as_factor([], np.empty(0, np.int64), name)
    codes = whole.indices.cast("int64").fill_null(-1)  # polars counts categories by unsigned integers
    return as_factor(whole.dictionary.to_pylist(), codes.to_numpy(zero_copy_only=False), name, declared)


def _read_parquet(path: Path, names: Sequence[str] | None) -> Table:
    with readable(path, "Parquet"), open_parquet(path) as file:
        _too_large(path, file.metadata.num_rows * file.metadata.num_columns * BYTES_PER_PARQUET_CELL)
        table = file.read()
    return _stored(table)


def _read_feather(path: Path, names: Sequence[str] | None) -> Table:
    from pyarrow import feather

    _too_large(path, path.stat().st_size * BYTES_PER_FILE_BYTE)
    with readable(path, "Feather"):
        return _stored(feather.read_table(path))


def _stored(table: pyarrow.Table) -> Table:
    """Turn what an Arrow file holds into ours; its dictionaries are the writer's categories."""
    from pyarrow import types

    return table_from_arrow(table, [field.name for field in table.schema if types.is_dictionary(field.type)])


def open_parquet(path: Path) -> pyarrow.parquet.ParquetFile:
    """Read the header of a Parquet file."""
    from pyarrow import parquet

    with readable(path, "Parquet"):
        return parquet.ParquetFile(path)


def index_columns(schema: pyarrow.Schema) -> set[str]:
    """Return the columns of an Arrow schema that are the index of a pandas frame."""
    return {name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)}


# -- by pandas --------------------------------------------------------------------------------------------------------
def _read_frame(path: Path, names: Sequence[str] | None) -> Table:
    """Read a spreadsheet, or a file of another statistics program."""
    reader, how, package = FRAME_READERS[path.suffix.lower()]
    _too_large(path, path.stat().st_size * BYTES_PER_FILE_BYTE)
    with needed(path, package), readable(path, path.suffix.lower()):
        frame = getattr(pandas, reader)(path, **how)
    for name, labels in frame.attrs.get("variable_value_labels", {}).items():
        if frame[name].dropna().isin(labels.keys()).all():  # SPSS lists labels in the order of their numbers
            codes = frame[name].map({value: code for code, value in enumerate(sorted(labels))}).fillna(-1).astype(int)
            frame[name] = pandas.Categorical.from_codes(codes, [labels[value] for value in sorted(labels)])
    return table_from_pandas(frame)


@contextmanager
def needed(path: Path, package: str) -> Iterator[None]:
    """Say which package a file needs where it is not installed."""
    try:
        yield
    except ImportError:
        raise DataError(f"file '{path}' needs the package {package}", "pip install 'gibbsian[files]'") from None


# -- NumPy files ------------------------------------------------------------------------------------------------------
def open_npy(path: Path) -> np.ndarray:
    """Map the array of an ``.npy`` file: never more is in memory than is looked at."""
    with readable(path, ".npy"):
        return np.load(path, mmap_mode="r", allow_pickle=False)


def _read_npy(path: Path, names: Sequence[str] | None) -> Table:
    return table_from_array(open_npy(path))


def _split_key(path: Path) -> tuple[Path, str | None]:
    """Part ``file.npz:key`` into the file and the name of an array in it."""
    file, found, key = path.name.rpartition(".npz:")
    if not found or os.path.exists(path):
        return path, None
    return path.with_name(f"{file}.npz"), key


def _read_npz(path: Path, names: Sequence[str] | None, key: str | None = None) -> Table:
    with readable(path, ".npz"):
        with zipfile.ZipFile(path) as archive:
            _too_large(path, 2 * max((entry.file_size for entry in archive.infolist()), default=0))
        with np.load(path, allow_pickle=False) as arrays:
            array = arrays[_array_key(path, arrays, key)]
            stored_names = _stored_names(arrays, array)
    table = table_from_array(array)
    return table if stored_names is None else Table(as_names(stored_names), table.cells)


def _array_key(path: Path, arrays: NpzFile, wanted: str | None) -> str:
    listed = ", ".join(arrays.files) or "it is empty"
    if wanted is not None:
        if wanted not in arrays.files:
            raise DataError(f"file '{path}' holds no array {wanted!r} ({listed})", "name one of them")
        return wanted
    for key in ARRAY_KEYS:
        if key in arrays.files:
            return key
    flat = [key for key in arrays.files if arrays[key].ndim == 2]
    if len(flat) != 1:
        raise DataError(
            f"file '{path}' holds {len(flat)} two-dimensional arrays ({listed})",
            (f"name one of them as {path.name}:{flat[0]}, or " if flat else "") + "save the data under the key 'x'",
        )
    return flat[0]


def _stored_names(arrays: NpzFile, array: np.ndarray) -> list[str] | None:
    for key in NAME_KEYS:
        if key in arrays.files:
            names = arrays[key]
            if names.dtype.kind == "U" and array.ndim == 2 and names.shape == (array.shape[1],):
                return names.tolist()
    return None
