"""Columns with any number of values: their labels recognised, or declared and checked.

Numerals are numbers, as everywhere in the reader, and blanks around a word do not count. Letter case does where a
column shows a word in two spellings ("AA" and "Aa" are different genotypes); where it shows one, later data may write
it in any case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gibbsian.data.rules import Labels, Values
from gibbsian.data.table import Factor, Table, Token, as_label, canonical, label_key
from gibbsian.data.two_values import infinite_column
from gibbsian.domain import MOST_VALUES, CategoryCoding
from gibbsian.errors import ArgumentError, CodingError, DataError

Words = tuple[Any, ...]
# Values that a message lists before it counts the rest.
LISTED = 6


def encode_categories(
    table: Table, rule: CategoryCoding | Labels | Values, declared_by: str | None = None
) -> tuple[np.ndarray, np.ndarray | None, CategoryCoding]:
    """Return the number of each cell's value, where nothing stands (None if nowhere), and the coding."""
    columns = [table.column(j) for j in range(table.shape[1])]
    coding = coding_for(rule, table.names, lambda j: _recognised(table.names[j], columns[j]))
    codes = np.empty(table.shape, np.int8)
    for j, (name, column) in enumerate(zip(table.names, columns, strict=True)):
        number_of = _Numbering(name, coding.labels[j], declared_by)
        numbers = np.full(len(column.written), -1, np.int8)
        numbers[column.used] = [number_of(column.written[k]) for k in column.used]
        codes[:, j] = column.each(numbers, np.int8(-1))
    missing = codes < 0
    codes[missing] = 0
    return codes, missing if missing.any() else None, coding


def coding_for(
    rule: CategoryCoding | Labels | Values, names: Sequence[str], own: Callable[[int], Words]
) -> CategoryCoding:
    """Return the labels that a rule gives to columns; `own` are those of a column for which nothing is declared."""
    if isinstance(rule, CategoryCoding):
        if len(rule.labels) != len(names):
            raise CodingError(f"the data has {len(names)} columns but the coding is of {len(rule.labels)}")
        return rule
    if isinstance(rule, Values):
        if rule.numbers is not None:
            return CategoryCoding.of_values(_as_numbers(rule.numbers), len(names))
        return CategoryCoding.of_values(_common_numbers([own(j) for j in range(len(names))], names), len(names))
    listed = _listed_labels(names, rule.categories)
    return CategoryCoding.of_labels([own(j) if labels is None else labels for j, labels in enumerate(listed)])


def relabel(
    names: Sequence[str], old: Sequence[Words], new: Sequence[Words], declared_by: str | None = None
) -> list[np.ndarray]:
    """Return for each column the number that each old label has among the new ones; refuse a label that has none."""
    numbered = []
    for name, labels, known in zip(names, old, new, strict=True):
        number_of = _Numbering(name, known, declared_by)
        numbered.append(np.array([number_of(label) for label in labels]))
    return numbered


def _common_numbers(labels: Sequence[Words], names: Sequence[str]) -> tuple[float, ...]:
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
def _recognised(name: str, column: Factor) -> Words:
    """The labels of a column: in its own order where it is a category column, else sorted."""
    labels: dict[Token, Any] = {}
    for k in range(len(column.written)) if column.declared else column.used:
        token = column.tokens[k]
        if token is not None:
            labels.setdefault(_key_in(name, column.written[k]), as_label(column.written[k], token))
    if len(labels) > MOST_VALUES:
        raise DataError(
            f"column {name!r} holds {len(labels)} different values, but up to {MOST_VALUES} are possible",
            f"cut it into bins (pandas.cut), merge rare values, or drop the column (drop=[{name!r}])",
        )
    if not labels:
        raise DataError(f"column {name!r} has no observed cell", f"drop the column (drop=[{name!r}])")
    order = labels if column.declared else sorted(labels, key=lambda key: (isinstance(key, str), key))
    return tuple(labels[key] for key in order)


class _Numbering:
    """The number of a value among a column's labels: spelled the same, or the only one alike but for letter case."""

    def __init__(self, name: str, labels: Words, declared_by: str | None):
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
def _as_numbers(values: Sequence[float]) -> Words:
    """Return numbers as labels, two or more."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ArgumentError("must hold two or more numbers", argument="values", value=values)
    keys = [label_key(value) for value in values]
    if len(keys) < 2 or not all(isinstance(key, float) and np.isfinite(key) for key in keys):
        raise ArgumentError("must hold two or more numbers", argument="values", value=values)
    return tuple(as_label(value, key) for value, key in zip(values, keys, strict=True) if key is not None)


def _listed_labels(names: Sequence[str], categories: Any) -> Sequence[Words | None]:
    """Return the declared labels of each column, None where they are to be recognised."""
    if categories is None:
        return [None] * len(names)
    if not isinstance(categories, Mapping):
        return [_as_labels(categories)] * len(names)
    unknown = [name for name in categories if name not in names]
    if unknown:
        raise DataError(f"`categories` names the column {unknown[0]!r}, which the data does not have")
    return [_as_labels(categories[name]) if name in categories else None for name in names]


def _as_labels(categories: Any) -> Words:
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


# -- sentences --------------------------------------------------------------------------------------------------------
def _unseen(name: str, value: Any, labels: Words, declared_by: str | None) -> CodingError:
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
