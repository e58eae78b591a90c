"""Columns with any number of values: their labels recognised, or declared and checked.

Numerals are numbers, as everywhere in the reader, and blanks around a word do not count. Letter case does where a
column shows a word in two spellings ("AA" and "Aa" are different genotypes); where it shows one, later data may write
it in any case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gibbsian.data.coding import infinite_column
from gibbsian.data.table import Factor, Table, Token, as_label, canonical, label_key
from gibbsian.domain import MOST_VALUES, CategoryCoding
from gibbsian.errors import ArgumentError, CodingError, DataError

Labels = tuple[Any, ...]
# Values that a message lists before it counts the rest.
LISTED = 6


def encode_categories(
    table: Table,
    coding: str | CategoryCoding = "categorical",
    *,
    values: Sequence[float] | None = None,
    categories: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
    declared_by: str | None = None,
) -> tuple[np.ndarray, np.ndarray | None, CategoryCoding]:
    """Read a table whose columns have any number of values, recognised or declared.

    Returns
    -------
    codes : int8 ndarray
        The number of each cell's value among its column's labels; 0 where missing.
    missing : bool ndarray or None
        Where nothing stands; None when the table is complete.
    coding : CategoryCoding
        The labels that were recognised or declared.
    """
    columns = [_column(table, j) for j in range(table.shape[1])]
    known = _declared(table.names, columns, coding, values, categories)
    found = [
        _recognised(name, column) if labels is None else labels
        for name, column, labels in zip(table.names, columns, known, strict=True)
    ]
    codes = np.empty(table.shape, np.int8)
    for j, (name, column) in enumerate(zip(table.names, columns, strict=True)):
        codes[:, j] = _coded(name, column, found[j], declared_by)
    missing = codes < 0
    codes[missing] = 0
    return codes, missing if missing.any() else None, _coding_of(found, coding)


def relabel(
    names: Sequence[str], old: Sequence[Labels], new: Sequence[Labels], declared_by: str | None = None
) -> list[np.ndarray]:
    """Return for each column the number that each old label has among the new ones; refuse a label that has none."""
    numbered = []
    for name, labels, known in zip(names, old, new, strict=True):
        number_of = _Numbering(name, known, declared_by)
        numbered.append(np.array([number_of(label) for label in labels]))
    return numbered


def numbers_common_to(labels: Sequence[Labels], names: Sequence[str]) -> tuple[float, ...]:
    """Return the numbers that occur among the labels of any column, ascending."""
    for name, known in zip(names, labels, strict=True):
        words = [label for label in known if isinstance(label, bool | str)]
        if words:
            raise CodingError(
                f"column {name!r} holds {words[0]!r}, but `coding='values'` needs numbers", "use `coding='categorical'`"
            )
    numbers = sorted({label for known in labels for label in known})
    if len(numbers) > MOST_VALUES:
        raise DataError(
            f"the columns hold {len(numbers)} different numbers, but up to {MOST_VALUES} values are possible",
            "round them or cut them into bins (pandas.cut)",
        )
    return tuple(numbers)


# -- one column -------------------------------------------------------------------------------------------------------
def _column(table: Table, place: int) -> Factor:
    if not isinstance(table.cells, np.ndarray):
        return table.cells[place]
    import pandas as pd

    places, distinct = pd.factorize(np.ascontiguousarray(table.cells[:, place]), use_na_sentinel=True)
    _check_number(table.names[place], len(distinct))
    return Factor((), (), places, tuple(distinct.tolist()), places)


def _recognised(name: str, column: Factor) -> Labels:
    """The labels of a column: in its own order where it is a category column, else sorted."""
    used = np.ones(len(column.written), bool)
    if not column.declared:
        used = np.bincount(column.places[column.places >= 0], minlength=len(column.written)) > 0
    labels: dict[Token, Any] = {}
    for k in np.flatnonzero(used).tolist():
        token = canonical(column.written[k])
        if token is not None:
            labels.setdefault(_key_in(name, column.written[k]), as_label(column.written[k], token))
        if len(labels) > MOST_VALUES:
            _check_number(name, int(used.sum()))
    if not labels:
        raise DataError(f"column {name!r} has no observed cell", f"drop the column (drop=[{name!r}])")
    order = labels if column.declared else sorted(labels, key=lambda key: (isinstance(key, str), key))
    return tuple(labels[key] for key in order)


def _coded(name: str, column: Factor, labels: Labels, declared_by: str | None) -> np.ndarray:
    """The code of each cell, -1 where missing."""
    number_of = _Numbering(name, labels, declared_by)
    used = np.bincount(column.places[column.places >= 0], minlength=len(column.written)) > 0
    number = np.full(len(column.written) + 1, -1, np.int8)  # the last entry serves the place -1
    for k in np.flatnonzero(used).tolist():
        if canonical(column.written[k]) is not None:
            number[k] = number_of(column.written[k])
    return number[column.places]


class _Numbering:
    """The number of a value among a column's labels: spelled the same, or the only one alike but for letter case."""

    def __init__(self, name: str, labels: Labels, declared_by: str | None):
        self.name, self.labels, self.declared_by = name, labels, declared_by
        self.exact = {label_key(label): k for k, label in enumerate(labels)}
        words = [(key.casefold(), k) for key, k in self.exact.items() if isinstance(key, str)]
        spelled = Counter(word for word, _ in words)
        self.folded = {word: k for word, k in words if spelled[word] == 1}

    def __call__(self, value: Any) -> int:
        key = _key_in(self.name, value)
        if key in self.exact:
            return self.exact[key]
        if isinstance(key, str) and key.casefold() in self.folded:
            return self.folded[key.casefold()]
        raise _unseen(self.name, value, self.labels, self.declared_by)


def _key_in(name: str, value: Any) -> Token:
    key = label_key(value)
    if isinstance(key, float) and np.isinf(key):
        raise infinite_column(name)
    assert key is not None
    return key


# -- what was declared ------------------------------------------------------------------------------------------------
def _declared(
    names: Sequence[str], columns: Sequence[Factor], coding: Any, values: Any, categories: Any
) -> Sequence[Labels | None]:
    """The labels of each column as far as they were declared, None where they are to be recognised."""
    if isinstance(coding, CategoryCoding):
        if len(coding.labels) != len(names):
            raise CodingError(f"the data has {len(names)} columns but the coding is of {len(coding.labels)}")
        return coding.labels
    if coding == "categorical":
        return listed_labels(names, categories)
    if values is not None:
        return [as_numbers(values)] * len(names)
    found = [_recognised(name, column) for name, column in zip(names, columns, strict=True)]
    return [numbers_common_to(found, names)] * len(names)


def as_numbers(values: Sequence[float]) -> Labels:
    """Return numbers as labels, two or more."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ArgumentError("must hold two or more numbers", argument="values", value=values)
    keys = [label_key(value) for value in values]
    if len(keys) < 2 or not all(isinstance(key, float) and np.isfinite(key) for key in keys):
        raise ArgumentError("must hold two or more numbers", argument="values", value=values)
    return tuple(as_label(value, key) for value, key in zip(values, keys, strict=True) if key is not None)


def listed_labels(names: Sequence[str], categories: Any) -> Sequence[Labels | None]:
    """Return the declared labels of each column, None where they are to be recognised."""
    if categories is None:
        return [None] * len(names)
    if not isinstance(categories, Mapping):
        return [_as_labels(categories)] * len(names)
    unknown = [name for name in categories if name not in names]
    if unknown:
        raise DataError(f"`categories` names the column {unknown[0]!r}, which the data does not have")
    return [_as_labels(categories[name]) if name in categories else None for name in names]


def _as_labels(categories: Any) -> Labels:
    if isinstance(categories, str) or not isinstance(categories, Iterable):
        raise ArgumentError(
            "must list the labels, or map columns to their labels", argument="categories", value=categories
        )
    labels = []
    for value in categories:
        token = canonical(value)
        if token is None:
            raise ArgumentError(f"categories holds {value!r}, which stands for a missing cell", "leave it out")
        labels.append(as_label(value, token))
    return tuple(labels)


def _coding_of(labels: Sequence[Labels], coding: str | CategoryCoding) -> CategoryCoding:
    if isinstance(coding, CategoryCoding):
        return coding
    if coding == "values":
        return CategoryCoding.of_values(labels[0], len(labels))
    return CategoryCoding.of_labels(labels)


# -- sentences --------------------------------------------------------------------------------------------------------
def _check_number(name: str, count: int) -> None:
    if count > MOST_VALUES:
        raise DataError(
            f"column {name!r} holds {count} different values, but up to {MOST_VALUES} are possible",
            f"cut it into bins (pandas.cut), merge rare values, or drop the column (drop=[{name!r}])",
        )


def _unseen(name: str, value: Any, labels: Labels, declared_by: str | None) -> CodingError:
    shown = ", ".join(map(repr, labels[:LISTED])) + (f", ... ({len(labels)} in all)" if len(labels) > LISTED else "")
    value = value.strip() if isinstance(value, str) else value
    if declared_by is None:
        return CodingError(
            f"column {name!r} holds {value!r}, which is not one of the declared values ({shown})",
            "declare it too, or make the cell missing",
        )
    return CodingError(
        f"column {name!r} holds {value!r}, which {declared_by} has not seen (it knows {shown})",
        "leave such rows out, make the cell missing, or fit with the value declared (`coding=Labels(...)`)",
    )
