"""Which coding a table is written in: recognised over all columns together, or declared and checked.

A declared coding never reinterprets a value and a recognised one never guesses: what does not fit is refused with the
column, the value and the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from gibbsian.data.table import Factor, Table, Token, canonical, label_key
from gibbsian.domain import CODINGS, AnyCoding, CategoryCoding, Coding
from gibbsian.errors import CodingError, DataError

# Cells looked at together: they stay in the cache while each candidate value is compared.
CELLS_AT_ONCE = 1 << 17
# The first that fits wins, so a table of ones only is binary.
PREFERENCE = ("binary", "spin", "yes/no", "y/n", "true/false")


def encode_two_values(
    table: Table, declared: Coding | None = None, declared_by: str | None = None
) -> tuple[np.ndarray, np.ndarray | None, Coding]:
    """Read a table of two values, in a coding that was declared or is recognised.

    Returns
    -------
    high : bool ndarray
        Where the upper value stands; False where missing.
    missing : bool ndarray or None
        Where nothing stands; None when the table is complete.
    coding : Coding
        The coding that was recognised or declared.
    """
    if declared is not None and isinstance(table.cells, np.ndarray):
        high = _complete_block(table.cells, declared)
        if high is not None:
            return high, None, declared
    scan = _scan(table, () if declared is None else label_tokens(declared))
    if declared is None:
        found = _recognise(table.names, scan)
    else:
        found = declared
        _check_declared(table.names, scan, declared, declared_by)
    missing = scan.missing()
    return scan.equal(label_tokens(found)[1]), missing if missing is not None and missing.any() else None, found


def _complete_block(cells: np.ndarray, coding: Coding) -> np.ndarray | None:
    """Where the upper value stands in a block of numbers that holds the two labels only; None for any other."""
    if cells.dtype.kind == "b" or not all(isinstance(label, float) for label in label_tokens(coding)):
        return None
    low, high = (int(label) if float(label).is_integer() else label for label in label_tokens(coding))
    is_high = cells == high
    return is_high if (is_high | (cells == low)).all() else None


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


def refuse_coding(data: Any, coding: AnyCoding, who: str | None) -> NoReturn:
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


# -- which values occur -----------------------------------------------------------------------------------------------
class _Scan(Protocol):
    """The distinct values of each column, and where a given one stands."""

    tokens: list[tuple[Token, ...]]

    def spelling(self, column: int, token: Token) -> str: ...
    def equal(self, token: Token) -> np.ndarray: ...
    def missing(self) -> np.ndarray | None: ...


def _scan(table: Table, labels: Sequence[Token]) -> _Scan:
    return _NumberScan(table.cells, labels) if isinstance(table.cells, np.ndarray) else _FactorScan(table.cells)


class _NumberScan:
    """Distinct values of a block of numbers, or of truth values."""

    def __init__(self, cells: np.ndarray, labels: Sequence[Token]):
        self.truth = cells.dtype.kind == "b"
        self.cells = cells.view(np.uint8) if self.truth else cells
        numbers = {-1.0, 0.0, 1.0, *(label for label in labels if isinstance(label, float))}
        candidates = [0, 1] if self.truth else [int(v) if v.is_integer() else v for v in sorted(numbers)]
        seen, other = self._present(candidates)
        self.tokens = [tuple(self._token(candidates[k]) for k in np.flatnonzero(column)) for column in seen.T]
        for j in np.flatnonzero(other)[:1]:  # the first such column ends in an error, so the others need no search
            values = np.unique(self.cells[:, j])
            self.tokens[j] = tuple(float(v) for v in values[~np.isnan(values)])

    def _present(self, candidates: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """Which candidates each column holds, and whether it holds anything else."""
        n_rows, n = self.cells.shape
        seen, other = np.zeros((len(candidates), n), bool), np.zeros(n, bool)
        step = max(1, CELLS_AT_ONCE // n)
        for start in range(0, n_rows, step):
            part = self.cells[start : start + step]
            known = np.isnan(part) if part.dtype.kind == "f" else np.zeros(part.shape, bool)
            for k, value in enumerate(candidates):
                hits = part == value
                seen[k] |= hits.any(axis=0)
                known |= hits
            other |= ~known.all(axis=0)
        return seen, other

    def _token(self, value: float) -> Token:
        return ("false", "true")[int(value)] if self.truth else float(value)

    def spelling(self, column: int, token: Token) -> str:
        return str(token).capitalize() if isinstance(token, str) else _number(token)

    def equal(self, token: Token) -> np.ndarray:
        if self.truth:
            return self.cells == (1 if token == "true" else 0) if token in ("true", "false") else self._nowhere()
        if isinstance(token, str):
            return self._nowhere()
        return self.cells == (int(token) if token.is_integer() else token)  # integers compare without a float copy

    def _nowhere(self) -> np.ndarray:
        return np.zeros(self.cells.shape, bool)

    def missing(self) -> np.ndarray | None:
        return np.isnan(self.cells) if self.cells.dtype.kind == "f" else None


class _FactorScan:
    """Distinct values of columns that are factors."""

    def __init__(self, columns: list[Factor]):
        self.columns = columns
        self.tokens = [column.values for column in columns]

    def spelling(self, column: int, token: Token) -> str:
        if isinstance(token, float):
            return _number(token)
        spelling = self.columns[column].spellings[self.columns[column].values.index(token)]
        return repr(spelling) if isinstance(spelling, str) else str(spelling)

    def equal(self, token: Token) -> np.ndarray:
        return self._where([[value == token for value in column.values] for column in self.columns])

    def missing(self) -> np.ndarray | None:
        return np.column_stack([column.codes < 0 for column in self.columns])

    def _where(self, chosen: list[list[bool]]) -> np.ndarray:
        # the entry appended for the code -1 keeps missing cells out
        pairs = zip(self.columns, chosen, strict=True)
        return np.column_stack([np.array([*flags, False])[column.codes] for column, flags in pairs])


# -- recognise, check, cut --------------------------------------------------------------------------------------------
def _recognise(names: Sequence[str], scan: _Scan) -> Coding:
    """The first coding in order of preference that every column fits."""
    fits = [_fitting(tokens) for tokens in scan.tokens]
    for j, fitting in enumerate(fits):
        if not fitting:
            raise _unusable(names[j], j, scan)
    for name in PREFERENCE:
        if all(name in fitting for fitting in fits):
            return CODINGS[name]
    one, other = _disagreeing(fits)
    raise CodingError(
        "columns use different codings",
        f"{names[one]!r} holds {_shown(scan, one)} but {names[other]!r} holds {_shown(scan, other)}: "
        "write all columns in one coding, or drop some (drop=[...])",
    )


def _fitting(tokens: Sequence[Token]) -> set[str]:
    return {name for name in PREFERENCE if set(tokens) <= set(label_tokens(CODINGS[name]))}


def _disagreeing(fits: list[set[str]]) -> tuple[int, int]:
    """Two columns with no coding in common; without such a pair all columns would share one."""
    return next((i, j) for j in range(len(fits)) for i in range(j) if not fits[i] & fits[j])


def _check_declared(names: Sequence[str], scan: _Scan, coding: Coding, declared_by: str | None) -> None:
    allowed = label_tokens(coding)
    for j, tokens in enumerate(scan.tokens):
        foreign = [token for token in tokens if token not in allowed]
        if any(isinstance(token, float) and np.isinf(token) for token in foreign):
            raise infinite_column(names[j])
        if foreign:
            value, actual = scan.spelling(j, foreign[0]), _recognised_or_none(scan)
            raise _foreign(names[j], value, coding, actual, declared_by)


def _recognised_or_none(scan: _Scan) -> Coding | None:
    fits = [_fitting(tokens) for tokens in scan.tokens]
    return next((CODINGS[name] for name in PREFERENCE if all(name in fitting for fitting in fits)), None)


def above(table: Table, threshold: float) -> tuple[np.ndarray, np.ndarray | None]:
    """Return where the numbers of a table are above a threshold, and where they are missing."""
    numbers = table.cells if isinstance(table.cells, np.ndarray) else _numbers_of(table.names, table.cells)
    if numbers.dtype.kind != "f":
        return numbers > threshold, None
    infinite = np.isinf(numbers).any(axis=0)
    if infinite.any():
        raise infinite_column(table.names[int(infinite.argmax())])
    missing = np.isnan(numbers)
    return numbers > threshold, missing if missing.any() else None


def _numbers_of(names: Sequence[str], columns: list[Factor]) -> np.ndarray:
    """Factors as float64 with NaN where missing; truth values count as 0 and 1."""
    truth: dict[Token, Token] = {"false": 0.0, "true": 1.0}
    values = [[truth.get(value, value) for value in column.values] for column in columns]
    for j, column_values in enumerate(values):
        if any(isinstance(value, str) for value in column_values):
            raise _text(names[j], j, _FactorScan(columns))
    pairs = zip(columns, values, strict=True)
    return np.column_stack([np.array([*numbers, np.nan], np.float64)[column.codes] for column, numbers in pairs])


# -- sentences --------------------------------------------------------------------------------------------------------
def _unusable(name: str, column: int, scan: _Scan) -> DataError:
    """Say why a column fits no coding."""
    tokens = scan.tokens[column]
    if any(isinstance(token, float) and np.isinf(token) for token in tokens):
        return infinite_column(name)
    if any(isinstance(token, str) for token in tokens):
        return _text(name, column, scan)
    if len(tokens) > 2:
        return DataError(
            f"column {name!r} holds {len(tokens)} different values ({_shown(scan, column)}), but a variable has two",
            f"declare `coding=Threshold(t)`, drop the column (`drop=[{name!r}]`), or keep all values with "
            "`PottsMachine` (categories) or `HigherOrderBoltzmannMachine` with `coding='values'` (numbers)",
        )
    labels = [int(token) if token.is_integer() else token for token in sorted(map(float, tokens))]
    pair = f"coding={tuple(labels)}" if len(labels) == 2 else "coding=(low, high)"
    return CodingError(
        f"column {name!r} holds {_shown(scan, column)}, which is no known coding",
        f"declare `{pair}` or `coding=Threshold(t)`, or drop the column (`drop=[{name!r}]`)",
    )


def _text(name: str, column: int, scan: _Scan) -> DataError:
    tokens = scan.tokens[column]
    words = sorted((token for token in tokens if isinstance(token, str)), key=lambda word: len(_fitting([word])))
    if len(tokens) == len(words) == 2:
        low, high = (scan.spelling(column, word) for word in sorted(words))
        return DataError(
            f"column {name!r} holds text ({low}, {high})",
            f"declare `coding=({low}, {high})` or drop the column (`drop=[{name!r}]`)",
        )
    return DataError(
        f"column {name!r} holds text ({scan.spelling(column, words[0])}) instead of two values",
        f"drop the column (`drop=[{name!r}]`), declare `coding=(low, high)`, or keep all values with `PottsMachine`",
    )


def _foreign(name: str, value: str, coding: Coding, actual: Coding | None, declared_by: str | None) -> CodingError:
    """Say that a value is not one of the declared coding; `actual` is what the table seems to be written in."""
    if declared_by is None:
        remedy = f"declare another coding or `coding=Threshold(t)`, or drop the column (`drop=[{name!r}]`)"
        if actual is not None:
            remedy = f"declare `coding={_declaration(actual)}` or convert the data"
        return CodingError(
            f"column {name!r} holds {value}, which is not a value of the coding {coding.describe()}", remedy
        )
    found, remedy = f"column {name!r} holds {value}", f"give it in the coding {coding.describe()}"
    if actual is not None:
        found = f"this data is {actual.describe()} ({found})"
        remedy = f"convert it with `Dataset.read(...).convert({_declaration(coding)})`"
    return CodingError(f"{declared_by} was fitted on {coding.describe()} data but {found}", remedy)


def infinite_column(name: str) -> DataError:
    """Return the error of a column that holds an infinite number."""
    return DataError(
        f"column {name!r} holds infinity (inf)", f"make it NaN (missing) or drop the column (`drop=[{name!r}]`)"
    )


def _shown(scan: _Scan, column: int, limit: int = 4) -> str:
    tokens = scan.tokens[column]
    return ", ".join(scan.spelling(column, token) for token in tokens[:limit]) + (
        ", ..." if len(tokens) > limit else ""
    )


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
