"""A table as it was given: named columns of numbers or of labels, before any coding is read into them.

A column is either part of one block of numbers or a `Factor`: its distinct values once, and for each cell which of
them it holds. All that is decided about a table is decided on the distinct values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, overload

import numpy as np

from gibbsian.domain import Label
from gibbsian.errors import CellTypeError, DataError
from gibbsian.startup import pandas

# A value as it is compared: a number, or a word in lower case (a truth value is the word "true" or "false").
Token = float | str

# Cells with these words are missing, in any letter case; so are blanks, None, NaN, NaT and pandas.NA.
MISSING_MARKS = frozenset({"", "?", "na", "n/a", "nan", "<na>", "null"})


# Up to so many values of a column are counted in one byte.
MOST_NARROW = 127
# Rows of a column that are sorted rather than looked up by pandas, which takes longer to load.
FEW_ROWS = 2**16
# What to do where a table does not fit into memory.
INSTEAD = "read fewer rows or columns, or raise GIBBSIAN_MEMORY_LIMIT"


def canonical(value: Any) -> Token | None:
    """Return the number or lower-case word that a cell stands for, or None where it is missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # pandas' own, without importing pandas
        return None
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="replace")
    if isinstance(value, str):
        return _canonical_word(value)
    if isinstance(value, complex | np.complexfloating):
        raise DataError("Complex data not supported", "give real numbers or labels")
    if hasattr(value, "isoformat"):  # dates and times are text to us
        return value.isoformat().lower()
    number = float(value)
    return None if np.isnan(number) else number


def _canonical_word(text: str) -> Token | None:
    word = text.strip().casefold()
    if word in MISSING_MARKS:
        return None
    try:
        number = float(word)
    except ValueError:
        return word
    return None if np.isnan(number) else number


def label_key(label: object) -> Token | None:
    """Return what a label is compared by: a number, or a word with its letter case; None for a missing mark."""
    token = canonical(label)
    return token if token is None or isinstance(token, float) else str(as_label(label, token))


def as_number(token: float) -> float:
    """Return a number as it is shown and stored: an integer where it is whole."""
    return int(token) if token.is_integer() and abs(token) < 2**53 else token


def as_label(value: Any, token: Token) -> Label:
    """Return a value as it is shown and stored: a number, a truth value, or a word in its own letter case."""
    if isinstance(token, float):
        return as_number(token)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace").strip()
    return value.strip() if isinstance(value, str) else value.isoformat()


@dataclass(frozen=True)
class Tokens(Sequence[Token | None]):
    """What the values of a column are compared by, found when someone asks: a column of ids may have millions."""

    name: str
    written: tuple[object, ...]

    @cached_property
    def _found(self) -> tuple[Token | None, ...]:
        return tuple(_canonical_in(self.name, value) for value in self.written)

    def __len__(self) -> int:
        return len(self.written)

    @overload
    def __getitem__(self, place: int) -> Token | None: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Token | None, ...]: ...
    def __getitem__(self, place: int | slice) -> Token | tuple[Token | None, ...] | None:
        return self._found[place]


@dataclass(frozen=True, eq=False)
class Factor:
    """One column as the values that were written and the place of each cell among them.

    Parameters
    ----------
    written : tuple
        Every value as the table wrote it, also those that a category column declares and does not show.
    tokens : sequence of float, str or None
        What each of them is compared by, None where it stands for a missing cell.
    places : ndarray of int8 or int64
        For each cell its place in `written`, -1 where missing.
    declared : bool
        Whether the table itself gave `written` and its order, as a category column does.
    ordered : bool
        Whether it said that this order means something.
    """

    written: tuple[object, ...]
    tokens: Sequence[Token | None]
    places: np.ndarray
    declared: bool = False
    ordered: bool = False

    @cached_property
    def used(self) -> list[int]:
        """The places that some cell has and that do not stand for missing cells."""
        shown = np.bincount(self.places[self.places >= 0], minlength=len(self.written)) > 0
        return [k for k in np.flatnonzero(shown).tolist() if self.tokens[k] is not None]

    @cached_property
    def spellings(self) -> dict[Token, object]:
        """How the table first wrote each value that occurs, for messages."""
        found: dict[Token, object] = {}
        for k in self.used:
            if (token := self.tokens[k]) is not None:
                found.setdefault(token, self.written[k])
        return found

    def each(self, entries: Iterable[object], absent: object) -> np.ndarray:
        """Return for each cell the entry of its written value, `absent` where there is none."""
        return np.array([*entries, absent])[self.places]

    def numbers(self, truths: bool = False) -> np.ndarray | None:
        """Return the cells as float64, NaN where missing, None where some are words; `truths` may count as 0 and 1."""
        known = {"false": 0.0, "true": 1.0} if truths else {}
        numbers = np.full(len(self.written) + 1, np.nan)
        for k in self.used:
            token = self.tokens[k]
            if isinstance(token, str) and token not in known:
                return None
            numbers[k] = known.get(token, token)  # type: ignore[arg-type]
        return numbers[self.places]


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns, either one block of numbers (or of truth values), dense or sparse, or one `Factor` per column."""

    names: tuple[str, ...]
    cells: np.ndarray | list[Factor]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        if isinstance(self.cells, list):
            return (len(self.cells[0].places) if self.cells else 0), len(self.cells)
        return self.cells.shape[0], self.cells.shape[1]

    def column(self, place: int) -> Factor:
        """Return one column as a `Factor`; distinct numbers of a block ascend."""
        if isinstance(self.cells, list):
            return self.cells[place]
        return factorise(np.ascontiguousarray(self.cells[:, place]), self.names[place], sort=True)

    def factors(self) -> Table:
        """Return the table with every column as a `Factor`."""
        return Table(self.names, [self.column(place) for place in range(len(self.names))])

    def select(self, names: Sequence[str], needed_by: str | None = None) -> Table:
        """Return the columns called `names`, in that order; `needed_by` says who cannot do without them."""
        if tuple(names) == self.names:
            return self
        places = [self.place(name, "columns", needed_by) for name in names]
        cells = [self.cells[p] for p in places] if isinstance(self.cells, list) else self.cells[:, places]
        return Table(tuple(names), cells)

    def rows(self, start: int, stop: int) -> Table:
        """Return the rows from `start` to before `stop`."""
        if not isinstance(self.cells, list):
            return Table(self.names, self.cells[start:stop])
        return Table(self.names, [replace(c, places=c.places[start:stop]) for c in self.cells])

    def without(self, names: Iterable[str], argument: str = "drop") -> Table:
        """Return the table without the columns called `names`."""
        dropped = {self.place(name, argument) for name in names}
        if not dropped:
            return self
        return self.select([name for place, name in enumerate(self.names) if place not in dropped])

    def chosen(
        self, columns: str | Iterable[str] | None = None, drop: str | Iterable[str] = (), needed_by: str | None = None
    ) -> Table:
        """Return the table without the columns `drop`, and of these only `columns`, where they are given."""
        table = self.without([drop] if isinstance(drop, str) else drop)
        if columns is not None:
            table = table.select([columns] if isinstance(columns, str) else list(columns), needed_by)
        if not table.names:
            raise DataError("no columns are left to model", "drop fewer of them")
        return table

    def with_blanks(self, names: Iterable[str]) -> Table:
        """Return the table with an empty column for each of these names that it does not have."""
        absent = [name for name in names if name not in self.names]
        blank = Factor((), (), np.full(self.shape[0], -1))
        return Table((*self.names, *absent), [*self.factors().cells, *[blank] * len(absent)]) if absent else self

    def renamed(self, names: Iterable[Hashable] | None) -> Table:
        """Return the table with other names of its columns, where they are given."""
        if names is None:
            return self
        words = as_names([names] if isinstance(names, str) else names)
        if len(words) != len(self.names):
            raise DataError(f"names has {len(words)} entries but the data has {len(self.names)} columns")
        return Table(words, self.cells)

    def place(self, name: str, argument: str, needed_by: str | None = None) -> int:
        """Return the position of a column that `argument` names, or that someone needs."""
        if name not in self.names:
            listed = ", ".join(self.names[:8]) + (", ..." if len(self.names) > 8 else "")
            who = f"`{argument}` names" if needed_by is None else f"{needed_by} needs"
            raise DataError(f"{who} the column {name!r}, which the data does not have (it has {listed})")
        return self.names.index(name)

    def numbers(self, name: str, argument: str) -> np.ndarray:
        """Return one column as float64, NaN where missing."""
        place = self.place(name, argument)
        if not isinstance(self.cells, list):
            block = self.cells[:, [place]]
            return np.asarray(block.todense() if hasattr(block, "todense") else block, np.float64).ravel()
        column = self.cells[place]
        numbers = column.numbers()
        if numbers is None:
            word = next(spelling for token, spelling in column.spellings.items() if isinstance(token, str))
            raise DataError(f"{argument}={name!r} must name a column of numbers, but it holds {as_label(word, '')!r}")
        return numbers


def factorise(values: Any, name: str = "", sort: bool = False) -> Factor:
    """Turn one column of anything into a `Factor`."""
    array = values if hasattr(values, "dtype") else np.array(list(values), dtype=object)
    if sort and len(array) and array.dtype.kind in "biu":
        low, high = int(array.min()), int(array.max())
        if high - low < len(array) and high < 2**63:  # counted in the time that it takes to look a row up in a table
            numbers = array.astype(np.int64) - low
            occurs = np.bincount(numbers) > 0
            distinct = (np.flatnonzero(occurs) + low).astype(array.dtype)
            return as_factor(distinct.tolist(), (np.cumsum(occurs) - 1)[numbers], name)
        if len(array) <= FEW_ROWS:
            distinct, places = np.unique(array, return_inverse=True)
            return as_factor(distinct.tolist(), places, name)

    try:
        places, distinct = pandas.factorize(array, use_na_sentinel=True, sort=sort)
    except TypeError:  # something that cannot be hashed: let the conversion to a number say what it is
        places, distinct = np.arange(len(array)), array
    return as_factor(distinct.tolist(), places, name)


def as_factor(
    written: Sequence[object], places: np.ndarray, name: str = "", declared: bool = False, ordered: bool = False
) -> Factor:
    """Build a `Factor` from values as they were written and the place of each cell among them."""
    narrow = np.int8 if len(written) <= MOST_NARROW else np.int64
    return Factor(tuple(written), Tokens(name, tuple(written)), np.asarray(places, dtype=narrow), declared, ordered)


def _canonical_in(name: str, value: object) -> Token | None:
    try:
        return canonical(value)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        shown = f"{value!r}"[:80]
        raise CellTypeError(
            f"column {name!r} holds {shown}, which is neither a number nor a label: {error}", "convert or drop it"
        ) from None


def table_of_columns(names: Sequence[Hashable], columns: Sequence[np.ndarray | Factor]) -> Table:
    """Put columns side by side: as one block where all are numbers (or all truth values), else as factors."""
    arrays = [column for column in columns if not isinstance(column, Factor)]
    truths = sum(array.dtype.kind == "b" for array in arrays)
    cells: np.ndarray | list[Factor]
    if len(arrays) == len(columns) and truths in (0, len(arrays)):
        cells = np.column_stack(arrays) if arrays else np.empty((0, 0))
    else:
        pairs = zip(names, columns, strict=True)
        cells = [c if isinstance(c, Factor) else factorise(c, str(name)) for name, c in pairs]
    return Table(as_names(names), cells)


@lru_cache(maxsize=4)
def default_names(n: int) -> tuple[str, ...]:
    """Name columns x0, x1, ...; the same tuple for tables of one width, of which there are many in a study."""
    return tuple(map("x{}".format, range(n)))


def as_names(names: Iterable[Hashable]) -> tuple[str, ...]:
    """Turn column labels into strings and refuse repeated ones."""
    words = tuple(str(name) for name in names)
    repeated = [name for name, count in Counter(words).items() if count > 1]
    if repeated:
        raise DataError(
            f"the column name {repeated[0]!r} occurs {words.count(repeated[0])} times",
            "give every column its own name (is the header row missing?)",
        )
    return words


def check_shape(shape: tuple[int, ...]) -> None:
    """Refuse a table without rows or without columns, in scikit-learn's words."""
    for count, what in ((shape[1], "feature(s)"), (shape[0], "sample(s)")):
        if count == 0:
            raise DataError(f"Found array with 0 {what} (shape={tuple(shape)}) while a minimum of 1 is required.")
