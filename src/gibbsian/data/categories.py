"""Columns with any number of values: their labels recognised, or declared and checked.

Numerals are numbers, as everywhere in the reader, and blanks around a word do not count. Letter case does where a
column shows a word in two spellings ("AA" and "Aa" are different genotypes); where it shows one, later data may write
it in any case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from gibbsian.data.rules import AUTOMATIC, AnyRule, Columns, Labels, OneHot, Ordinal, Threshold, Values, as_rule
from gibbsian.data.table import Factor, Table, Token, as_label, as_number, canonical, label_key
from gibbsian.data.two_values import infinite_column, two_labels
from gibbsian.domain import BINARY, MOST_VALUES, CategoryCoding, Coding, Label, as_coding
from gibbsian.errors import ArgumentError, CodingError, DataError

Words = tuple[Label, ...]
# Values that a message lists before it counts the rest.
LISTED = 6


def encode_categories(
    table: Table, coding: CategoryCoding, declared_by: str | None = None
) -> tuple[np.ndarray, np.ndarray | None, CategoryCoding]:
    """Return the number of each cell's value, where nothing stands (None if nowhere), and the coding."""
    if len(coding.labels) != table.shape[1]:
        raise CodingError(f"the data has {table.shape[1]} columns but the coding is of {len(coding.labels)}")
    codes = np.empty(table.shape, np.int8)
    for j, name in enumerate(table.names):
        column, number_of = table.column(j), _Numbering(name, coding.labels[j], declared_by)
        numbers = np.full(len(column.written), -1, np.int8)
        numbers[column.used] = [number_of(column.written[k]) for k in column.used]
        codes[:, j] = column.each(numbers, np.int8(-1))
    missing = codes < 0
    codes[missing] = 0
    return codes, missing if missing.any() else None, coding


def coding_of(table: Table, rule: AnyRule) -> CategoryCoding:
    """Return the labels of a table's columns, declared or recognised by what a rule says that they are."""
    kind = as_rule(rule.rest) if isinstance(rule, Columns) else rule
    recognise: Callable[[str, Factor], Words] = _recognised
    if isinstance(kind, Ordinal):
        recognise = ordered_labels
    elif _is_auto(kind):
        recognise = two_labels
    return coding_for(rule, table.names, lambda j: recognise(table.names[j], table.column(j)))


def coding_for(rule: AnyRule, names: Sequence[str], own: Callable[[int], Words]) -> CategoryCoding:
    """Return the labels that a rule gives to columns; `own` are those of a column for which nothing is declared."""
    if isinstance(rule, CategoryCoding):
        if len(rule.labels) != len(names):
            raise CodingError(f"the data has {len(names)} columns but the coding is of {len(rule.labels)}")
        return rule
    if isinstance(rule, Columns):
        known = {name: declared_labels(name, coding) for name, coding in rule.declared.items()}
        return coding_for(as_rule(rule.rest), names, lambda j: known.get(names[j]) or own(j))
    if isinstance(rule, Values):
        if rule.numbers is not None:
            return CategoryCoding.of_values(_as_numbers(rule.numbers), len(names))
        return CategoryCoding.of_values(_common_numbers([own(j) for j in range(len(names))], names), len(names))
    listed = rule.categories if isinstance(rule, Labels | Ordinal | OneHot) else None
    every = [own(j) for j in range(len(names))] if listed is None else [_as_labels(listed)] * len(names)
    if isinstance(rule, Ordinal):
        return CategoryCoding.of_levels(every)
    return CategoryCoding(tuple(every), BINARY) if _is_auto(rule) else CategoryCoding.of_labels(every)


def _is_auto(rule: AnyRule) -> bool:
    """Whether columns are to have two values each."""
    return isinstance(rule, str) and rule == "auto"


def declared_labels(name: str, coding: object) -> Words | None:
    """Return the labels that a column's own coding lists; None where they are to be recognised."""
    rule = as_rule(coding) if isinstance(coding, str) else coding
    if isinstance(rule, Threshold):
        rule = as_coding(rule.coding)
    if isinstance(rule, Coding):
        return rule.low, rule.high
    if isinstance(rule, Labels | Ordinal):
        return None if rule.categories is None else _as_labels(rule.categories, name)
    return None if rule in AUTOMATIC else _as_labels(rule, name)


def relabel(
    names: Sequence[str], old: Sequence[Sequence[object]], new: Sequence[Words], declared_by: str | None = None
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
    numbers: list[float] = sorted({label for known in labels for label in known if not isinstance(label, str)})
    if len(numbers) > MOST_VALUES:
        raise DataError(
            f"the columns hold {len(numbers)} different numbers, but up to {MOST_VALUES} values are possible",
            "round them or cut them into bins (pandas.cut)",
        )
    return tuple(numbers)


# -- one column -------------------------------------------------------------------------------------------------------
def _recognised(name: str, column: Factor) -> Words:
    """The labels of a column: in its own order where it is a category column, else sorted."""
    labels: dict[Token, Label] = {}
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


def ordered_labels(name: str, column: Factor) -> Words:
    """The levels of a column from the lowest on: two values, numbers, or categories that the table has ordered."""
    if len(column.spellings) < 3 and not column.declared:
        return two_labels(name, column)
    labels = _recognised(name, column)
    if not column.ordered and len(labels) > 2 and any(isinstance(label, str) for label in labels):
        shown = ", ".join(map(repr, labels[:LISTED])) + ", ..." * (len(labels) > LISTED)
        raise CodingError(
            f"column {name!r} holds words whose order is not known ({shown})",
            f"declare it from the lowest on (`coding={{{name!r}: [{shown}]}}`), or use `PottsMachine`",
        )
    return labels


class _Numbering:
    """The number of a value among a column's labels: spelled the same, or the only one alike but for letter case."""

    def __init__(self, name: str, labels: Words, declared_by: str | None):
        self.name, self.labels, self.declared_by = name, labels, declared_by
        self.exact = {label_key(label): k for k, label in enumerate(labels)}
        words = [(key.casefold(), k) for key, k in self.exact.items() if isinstance(key, str)]
        spelled = Counter(word for word, _ in words)
        self.folded = {word: k for word, k in words if spelled[word] == 1}

    def __call__(self, value: object) -> int:
        key = _key_in(self.name, value)
        if key in self.exact:
            return self.exact[key]
        if isinstance(key, str) and key.casefold() in self.folded:
            return self.folded[key.casefold()]
        raise _unseen(self.name, value, self.labels, self.declared_by)


def _key_in(name: str, value: object) -> Token:
    key = label_key(value)
    if isinstance(key, float) and np.isinf(key):
        raise infinite_column(name)
    assert key is not None
    return key


# -- what was declared ------------------------------------------------------------------------------------------------
def _as_numbers(values: Sequence[float]) -> tuple[float, ...]:
    """Return numbers as labels, two or more."""
    listed = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else []
    keys = [label_key(value) for value in listed]
    if len(keys) < 2 or not all(isinstance(key, float) and np.isfinite(key) for key in keys):
        raise ArgumentError("must hold two or more numbers", argument="values", value=values)
    return tuple(as_number(key) for key in keys if isinstance(key, float))


def _as_labels(categories: object, column: str = "") -> Words:
    if isinstance(categories, str | Mapping) or not isinstance(categories, Iterable):
        argument = f"coding[{column!r}]" if column else "categories"
        raise ArgumentError("must list the labels", argument=argument, value=categories)
    labels = []
    for value in categories:
        token = canonical(value)
        if token is None:
            raise ArgumentError(f"categories holds {value!r}, which stands for a missing cell", "leave it out")
        labels.append(as_label(value, token))
    return tuple(labels)


# -- sentences --------------------------------------------------------------------------------------------------------
def _unseen(name: str, value: object, labels: Words, declared_by: str | None) -> CodingError:
    shown = ", ".join(map(repr, labels[:LISTED])) + (f", ... ({len(labels)} in all)" if len(labels) > LISTED else "")
    value = value.strip() if isinstance(value, str) else value
    if declared_by is None:
        return CodingError(
            f"column {name!r} holds {value!r}, which is not one of the declared values ({shown})",
            "declare it too, or make the cell missing",
        )
    return CodingError(
        f"column {name!r} holds {value!r}, which {declared_by} has not seen (it knows {shown})",
        f"leave such rows out, make the cell missing, or fit with the value declared (`coding={{{name!r}: [...]}}`)",
    )
