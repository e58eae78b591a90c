"""One-hot data to a table of categories: an array (rows, variables, values), or a table of dummy columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gibbsian.data.rules import Groups
from gibbsian.data.table import INSTEAD, Factor, Table, as_factor, check_shape, default_names
from gibbsian.domain import MOST_VALUES, Label
from gibbsian.errors import ArgumentError, DataError
from gibbsian.resources import require_memory

# Which value a cell holds is found by a sum in int64, and its code is kept in one too.
BYTES_PER_VARIABLE = 24
ONES_ONLY = "one-hot columns hold 0 and 1 only"


def table_from_one_hot(array: object, names: Sequence[str] | None = None) -> Table:
    """Read an array of shape (rows, variables, values) of zeros and ones.

    A cell whose values are all zero is missing. The values are called 0, 1, ...
    """
    array = np.asarray(array)
    check_shape(array.shape[:2])
    n_rows, n, q = array.shape
    if not 1 <= q <= MOST_VALUES:
        raise DataError(f"the one-hot array has {q} values a variable", f"from 1 to {MOST_VALUES} are possible")
    require_memory(n_rows * n * BYTES_PER_VARIABLE, f"reading {n_rows} x {n} one-hot cells", INSTEAD)
    words = Table(default_names(n), array).renamed(names).names
    labels = list(range(q))
    columns = [_factor(word, array[:, j], [f"{word}[{k}]" for k in labels], labels) for j, word in enumerate(words)]
    return Table(words, columns)


def table_of_dummies(table: Table, groups: Groups) -> Table:
    """Put dummy columns together into the variables they stand for; other columns stay as they are.

    Parameters
    ----------
    table : Table
        Columns of zeros and ones, named as ``pandas.get_dummies`` or scikit-learn's ``OneHotEncoder`` do.
    groups : str or mapping
        The separator, such as ``"_"``, that stands between the variable and its value in a column's name (the last one
        counts); or for each variable the names of its columns.
    """
    named = _separated(table.names, groups) if isinstance(groups, str) else _checked(table, groups)
    group_of = {column: name for name, columns in named.items() for column in columns}
    kept: dict[str, Factor] = {}
    for place, column in enumerate(table.names):
        name = group_of.get(column, column)
        if name in kept:
            if column not in group_of:
                raise DataError(
                    f"`one_hot` makes a variable {name!r}, but the data has a column of that name", "rename it"
                )
            continue
        kept[name] = _joined(table, name, named[name], groups) if column in group_of else table.column(place)
    return Table(tuple(kept), list(kept.values()))


# -- which columns belong together ------------------------------------------------------------------------------------
def _separated(names: Sequence[str], separator: str) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        variable, found, value = name.rpartition(separator) if separator else ("", "", name)
        if found and variable and value:
            groups.setdefault(variable, []).append(name)
    if not groups:
        raise ArgumentError(
            "stands in no column's name", "give the separator or a mapping", argument="one_hot", value=separator
        )
    for variable, columns in groups.items():
        if len(columns) == 1:
            reason = f"finds one column only, {columns[0]!r}, for the variable {variable!r}"
            remedy = (
                "keep the column of every value (no drop_first), or give `one_hot` a mapping from variables to columns"
            )
            raise DataError(reason, remedy, argument="one_hot", value=separator)
    return groups


def _checked(table: Table, groups: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    if not isinstance(groups, Mapping) or not groups:
        raise ArgumentError(
            "must be a separator or map variables to their columns", "give '=' or {'colour': ['red', 'blue']}",
            argument="one_hot", value=groups,
        )  # fmt: skip
    owner: dict[str, str] = {}
    for name, columns in groups.items():
        if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
            raise ArgumentError(f"one_hot[{name!r}]={columns!r} must be a list of column names")
        for column in columns:
            table.place(column, f"one_hot[{name!r}]")
            if column in owner:
                raise ArgumentError(f"`one_hot` has the column {column!r} in {owner[column]!r} and in {name!r}")
            owner[column] = name
    return {str(name): list(columns) for name, columns in groups.items()}


# -- one variable -----------------------------------------------------------------------------------------------------
def _joined(table: Table, name: str, columns: Sequence[str], groups: Groups) -> Factor:
    numbers = np.column_stack([_dummy(table, column, name) for column in columns])
    return _factor(name, numbers, columns, _values_in(name, columns, groups))


def _values_in(name: str, columns: Sequence[str], groups: Groups) -> list[str]:
    """What the dummy columns call the values: the part after the separator, or the names less what they share."""
    if isinstance(groups, str):
        return [column[len(name) + len(groups) :] for column in columns]
    prefixed = all(len(column) > len(name) + 1 and column.startswith(name) for column in columns)
    marks = {column[len(name)] for column in columns} if prefixed else set()
    shared = len(marks) == 1 and not marks.pop().isalnum()
    return [column[len(name) + 1 :] if shared else column for column in columns]


def _dummy(table: Table, column: str, name: str) -> np.ndarray:
    place = table.place(column, "one_hot")
    if isinstance(table.cells, np.ndarray):
        return table.cells[:, place]
    numbers = table.cells[place].numbers(truths=True)
    if numbers is None:
        raise DataError(f"column {column!r} of the one-hot variable {name!r} holds text", ONES_ONLY)
    return numbers


def _factor(name: str, numbers: np.ndarray, columns: Sequence[str], labels: Sequence[Label]) -> Factor:
    """Find which value each row holds, -1 where none."""
    ones = numbers == 1
    foreign = ~(ones | (numbers == 0))
    if numbers.dtype.kind == "f":
        foreign &= ~np.isnan(numbers)
    if foreign.any():
        row, k = np.argwhere(foreign)[0]
        raise DataError(
            f"column {columns[k]!r} of the one-hot variable {name!r} holds {float(numbers[row, k]):g} at row {row}",
            ONES_ONLY,
        )
    count = np.count_nonzero(ones, axis=1)
    if count.max(initial=0) > 1:
        row = int(np.argmax(count > 1))
        first, second = (columns[k] for k in np.flatnonzero(ones[row])[:2])
        raise DataError(
            f"row {row} has a one in both {first!r} and {second!r}, which are values of the one variable {name!r}",
            "a row has one value at most",
        )
    return as_factor(list(labels), np.where(count == 1, ones.argmax(axis=1), -1), name, declared=True)
