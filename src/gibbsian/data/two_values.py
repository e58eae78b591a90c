"""Which two values a table is written in: recognised, over all columns together or in each, or declared and checked.

A declared coding never reinterprets a value and a recognised one never guesses: what does not fit is refused with the
column, the value and the remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from gibbsian.backends.numba.packed import which_of_two
from gibbsian.data.table import Factor, Table, Token, as_label, canonical, label_key
from gibbsian.domain import CODINGS, AnyCoding, CategoryCoding, Coding, Label
from gibbsian.errors import CodingError, ConstantColumnError, DataError

if TYPE_CHECKING:
    from gibbsian.data.dataset import Dataset

# Most tables show in their first rows which coding is not theirs; of wide ones a row says enough.
FIRST_ROWS, FIRST_CELLS = 64, 2**16
# So many cells are compared in one pass by a kernel, if they are bytes and of these values; fewer are not worth it.
MANY_CELLS, IN_BYTES = 2**18, {("b", 0, 1), ("B", 0, 1), ("b", -1, 1)}
# The first that fits wins, so a table of ones only is binary.
PREFERENCE = ("binary", "spin", "yes/no", "y/n", "true/false")


def encode_two_values(
    table: Table, declared: Coding, declared_by: str | None = None
) -> tuple[np.ndarray, np.ndarray | None, Coding]:
    """Return the code of each cell, where nothing stands (None if nowhere), and the coding."""
    found = _read_in(table, declared)
    if found is None:
        raise _foreign(table, declared, declared_by)
    return found


def two_labels(name: str, column: Factor) -> tuple[Label, Label]:
    """Return the two values of a column, lower first: those of a known coding, two words, or two whole numbers."""
    shown = {token: as_label(spelling, token) for token, spelling in column.spellings.items()}
    pairs = zip(column.written, column.tokens, strict=True)
    listed = [as_label(value, token) for value, token in pairs if token is not None] if column.declared else []
    if len(listed) == 2:
        return listed[0], listed[1]
    known = (CODINGS[name] for name in PREFERENCE)
    if fitting := [coding for coding in known if column.spellings.keys() <= set(label_tokens(coding))]:
        low, high = label_tokens(fitting[0])
        return shown.get(low, fitting[0].low), shown.get(high, fitting[0].high)
    words = all(isinstance(token, str) for token in shown)
    whole = all(isinstance(token, float) and token.is_integer() for token in shown)
    if len(shown) != 2 or not (words or whole):
        raise _unusable(name, column)
    low, high = sorted(shown)
    return shown[low], shown[high]


def recognised(table: Table) -> tuple[np.ndarray, np.ndarray | None, Coding] | None:
    """Read a table in the first coding, in order of preference, that every column fits; None where none does."""
    first = table.rows(0, min(FIRST_ROWS, max(1, FIRST_CELLS // table.shape[1])))
    fitting = (CODINGS[name] for name in PREFERENCE if _read_in(first, CODINGS[name]) is not None)
    return next((found for coding in fitting if (found := _read_in(table, coding)) is not None), None)


def _read_in(table: Table, coding: Coding) -> tuple[np.ndarray, np.ndarray | None, Coding] | None:
    """Read a table in a coding; None where it holds anything else."""
    low, high = label_tokens(coding)
    if isinstance(table.cells, np.ndarray):
        return _block_in(table.cells, coding)
    if not all(column.spellings.keys() <= {low, high} for column in table.cells):
        return None
    upper = np.column_stack([column.each((t == high for t in column.tokens), False) for column in table.cells])
    missing = np.column_stack([column.each((t is None for t in column.tokens), True) for column in table.cells])
    return upper.view(np.int8), missing if missing.any() else None, coding


def _block_in(cells: np.ndarray, coding: Coding) -> tuple[np.ndarray, np.ndarray | None, Coding] | None:
    tokens = label_tokens(coding)
    if cells.size >= MANY_CELLS and (cells.dtype.char, *tokens) in IN_BYTES:
        upper = np.empty(cells.shape, bool)
        known = which_of_two(np.ascontiguousarray(cells).ravel(), *map(cells.dtype.type, tokens), upper.ravel())
        return (upper.view(np.int8), None, coding) if known else None
    low, high = (_equal(cells, token) for token in tokens)
    low |= high
    if low.all():
        return high.view(np.int8), None, coding
    if cells.dtype.kind != "f":
        return None
    missing = np.isnan(cells)
    low |= missing
    return (high.view(np.int8), missing, coding) if low.all() else None


def _equal(cells: np.ndarray, token: Token) -> np.ndarray:
    """Where a value stands in a block of numbers, or of truth values."""
    if cells.dtype.kind == "b":
        return cells == (token == "true") if token in ("true", "false") else np.zeros(cells.shape, bool)
    if isinstance(token, str):
        return np.zeros(cells.shape, bool)
    return cells == (int(token) if token.is_integer() else token)  # integers compare without a float copy


def label_tokens(coding: Coding) -> tuple[Token, Token]:
    """Return the two labels of a coding as they are compared."""
    low, high = canonical(coding.low), canonical(coding.high)
    if low is None or high is None:
        raise CodingError(f"coding {coding.describe()} has a label that stands for a missing value", "choose another")
    if low == high:
        raise CodingError(f"coding {coding.describe()} has labels that differ in letter case or spaces only")
    return low, high


def same_coding(one: AnyCoding, other: AnyCoding) -> bool:
    """Say whether two codings write the same values in the same domain, whatever they are called."""
    return one.domain == other.domain and same_labels(one, other)


def same_labels(one: AnyCoding, other: AnyCoding) -> bool:
    """Say whether two codings of a kind write the same values, whatever stands for them in the energy."""
    if isinstance(one, Coding) and isinstance(other, Coding):
        return label_tokens(one) == label_tokens(other)
    if isinstance(one, CategoryCoding) and isinstance(other, CategoryCoding):
        return _label_keys(one) == _label_keys(other)
    return type(one) is type(other)


def _label_keys(coding: CategoryCoding) -> list[list[Token | None]]:
    return [[label_key(label) for label in labels] for labels in coding.labels]


def refuse_coding(data: Dataset, coding: AnyCoding, who: str | None) -> NoReturn:
    """Refuse a data set whose coding is not the declared one; `who` was fitted on it, where someone was."""
    if who is None:
        raise CodingError(
            f"coding {coding.describe()} was declared but the Dataset is {data.coding.describe()}",
            "convert it with `Dataset.convert`",
        )
    raise CodingError(
        f"{who} was fitted on {coding.describe()} data but this data is {data.coding.describe()}",
        f"convert it with `Dataset.convert({_declaration(coding)})`",
    )


def _declaration(coding: AnyCoding) -> str:
    """What a user writes to name a coding."""
    if not isinstance(coding, Coding):
        return "coding_" if isinstance(coding, CategoryCoding) else repr(coding.name)
    return repr(coding.name) if coding.name in CODINGS else repr((coding.low, coding.high))


# -- cut --------------------------------------------------------------------------------------------------------------
def above(table: Table, threshold: float) -> tuple[np.ndarray, np.ndarray | None]:
    """Return where the numbers of a table are above a threshold, and where they are missing."""
    numbers = table.cells if isinstance(table.cells, np.ndarray) else _numbers_of(table.names, table.cells)
    threshold = np.float64(threshold)  # else narrow numbers round it to their own kind
    if numbers.dtype.kind != "f":
        return numbers > threshold, None
    infinite = np.isinf(numbers).any(axis=0)
    if infinite.any():
        raise infinite_column(table.names[int(infinite.argmax())])
    missing = np.isnan(numbers)
    return numbers > threshold, missing if missing.any() else None


def _numbers_of(names: tuple[str, ...], columns: list[Factor]) -> np.ndarray:
    """Factors as float64 with NaN where missing; truth values count as 0 and 1."""
    found = []
    for name, column in zip(names, columns, strict=True):
        numbers = column.numbers(truths=True)
        if numbers is None:
            raise _text(name, column)
        found.append(numbers)
    return np.column_stack(found)


# -- sentences --------------------------------------------------------------------------------------------------------
def _unusable(name: str, column: Factor) -> DataError:
    """Say why a column fits no coding."""
    tokens = list(column.spellings)
    if any(map(_is_infinite, tokens)):
        return infinite_column(name)
    if len(tokens) == 1:
        return ConstantColumnError(
            f"column {name!r} holds one value only ({_shown(column)})",
            f"drop the column (`drop=[{name!r}]`), or declare both values (`coding={{{name!r}: [low, high]}}`)",
        )
    if any(isinstance(token, str) for token in tokens):
        return _text(name, column)
    if len(tokens) > 2:
        return DataError(
            f"column {name!r} holds {len(tokens)} different values ({_shown(column)}), but a variable has two",
            f"declare `coding=Threshold(t)`, drop the column (`drop=[{name!r}]`), or keep all values with "
            "`OrdinalMachine` (ordered levels), `PottsMachine` (categories) or `HigherOrderBoltzmannMachine` with "
            "`coding='values'` (numbers)",
        )
    labels = [int(token) if token.is_integer() else token for token in sorted(map(float, tokens))]
    pair = f"coding={{{name!r}: {labels}}}"
    return CodingError(
        f"column {name!r} holds {_shown(column)}, which is no known coding",
        f"declare `{pair}` or `coding=Threshold(t)`, or drop the column (`drop=[{name!r}]`)",
    )


def _text(name: str, column: Factor) -> DataError:
    known = {token for coding in CODINGS.values() for token in label_tokens(coding)}
    words = sorted((token for token in column.spellings if isinstance(token, str)), key=lambda word: word in known)
    if len(column.spellings) == len(words) == 2:
        low, high = (_spelled(column, word) for word in sorted(words))
        return DataError(
            f"column {name!r} holds text ({low}, {high})",
            f"declare `coding={{{name!r}: [{low}, {high}]}}` or drop the column (`drop=[{name!r}]`)",
        )
    return DataError(
        f"column {name!r} holds text ({_spelled(column, words[0])}) instead of two values",
        f"drop the column (`drop=[{name!r}]`), declare `coding=(low, high)`, or keep all values with `PottsMachine`",
    )


def _foreign(table: Table, coding: Coding, declared_by: str | None) -> DataError:
    """Say which value is not one of the declared coding, and what the table seems to be written in."""
    columns = ((name, table.column(j)) for j, name in enumerate(table.names))
    labels = label_tokens(coding)
    name, column = next((name, column) for name, column in columns if not column.spellings.keys() <= {*labels})
    foreign = [token for token in column.spellings if token not in labels]
    if any(map(_is_infinite, foreign)):
        return infinite_column(name)
    value, actual = _spelled(column, foreign[0]), recognised(table)
    if declared_by is None:
        remedy = f"declare another coding or `coding=Threshold(t)`, or drop the column (`drop=[{name!r}]`)"
        if actual is not None:
            remedy = f"declare `coding={_declaration(actual[-1])}` or convert the data"
        return CodingError(
            f"column {name!r} holds {value}, which is not a value of the coding {coding.describe()}", remedy
        )
    found, remedy = f"column {name!r} holds {value}", f"give it in the coding {coding.describe()}"
    if actual is not None:
        found = f"this data is {actual[-1].describe()} ({found})"
        remedy = f"convert it with `Dataset.read(...).convert({_declaration(coding)})`"
    return CodingError(f"{declared_by} was fitted on {coding.describe()} data but {found}", remedy)


def infinite_column(name: str) -> DataError:
    """Return the error of a column that holds an infinite number."""
    return DataError(
        f"column {name!r} holds infinity (inf)", f"make it NaN (missing) or drop the column (`drop=[{name!r}]`)"
    )


def _is_infinite(token: Token | None) -> bool:
    return isinstance(token, float) and np.isinf(token)


def _shown(column: Factor, limit: int = 4) -> str:
    tokens = list(column.spellings)
    return ", ".join(_spelled(column, token) for token in tokens[:limit]) + (", ..." if len(tokens) > limit else "")


def _spelled(column: Factor, token: Token) -> str:
    """A value as a message shows it."""
    if isinstance(token, float):
        return str(int(token)) if token.is_integer() and abs(token) < 1e15 else f"{token:.6g}"
    spelling = column.spellings[token]
    return repr(spelling.strip()) if isinstance(spelling, str) else str(spelling)
