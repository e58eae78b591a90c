"""A data set in another coding: what `Dataset.read` does with a `Dataset`, and `Dataset.convert`."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from gibbsian.data.categories import as_numbers, listed_labels, numbers_common_to, relabel
from gibbsian.data.coding import refuse_coding, same_coding, same_labels
from gibbsian.data.encoding import AUTOMATIC, Cells, coding_of_units, encode, is_many_valued, is_real
from gibbsian.data.numbers import densified
from gibbsian.data.rules import Labels, OneHot, Shares, Threshold, Units, Values
from gibbsian.data.table import Table
from gibbsian.domain import DOMAINS, CategoryCoding, Coding, RealCoding, as_coding
from gibbsian.errors import CodingError

Data = TypeVar("Data", bound=Any)  # a Dataset, which imports this module


def read_again(data: Data, coding: Any, declared_by: str | None = None) -> Data:
    """Return a data set as `coding` asks for it, and refuse one that is written otherwise."""
    if isinstance(coding, Units):
        return _as_units(data, coding)
    if isinstance(coding, str) and coding == "auto-visible":
        return _as_units(data, Units())
    if isinstance(data.coding, RealCoding):
        return data if is_real(coding) else _cut(data, coding, declared_by)
    if _says_nothing(coding):
        return data
    if is_real(coding) or is_many_valued(coding):
        return converted(data, coding, declared_by)
    declared = as_coding(coding)
    if isinstance(data.coding, Coding) and same_labels(data.coding, declared):
        return data.in_coding(declared)
    refuse_coding(data, declared, declared_by)


def converted(data: Data, coding: Any, declared_by: str | None = None) -> Data:
    """Return the same data written in another coding."""
    if isinstance(data.coding, RealCoding):
        return data if is_real(coding) else _cut(data, coding, declared_by)
    if is_real(coding):
        return _as_reals(data)
    if is_many_valued(coding):
        return _relabelled(data, _labels_for(data, coding), declared_by)
    return _in_two_values(data, as_coding(coding))


def _says_nothing(coding: Any) -> bool:
    """Whether a coding asks nothing of data that have been read; a threshold has been passed."""
    return isinstance(coding, Threshold | Shares) or (isinstance(coding, str) and coding in AUTOMATIC)


# -- two values -------------------------------------------------------------------------------------------------------
def _in_two_values(data: Data, target: Coding) -> Data:
    if same_coding(data.coding, target):
        return data
    for name, labels in zip(data.names, data.labels, strict=True):
        if len(labels) != 2:
            raise CodingError(
                f"column {name!r} has {len(labels)} values, so it cannot be written as {target.describe()}",
                "drop it, or read the data with `coding=Threshold(t)`",
            )
    return data.in_coding(target)


def _as_units(data: Data, units: Units) -> Data:
    if units.kind == "gaussian":
        return converted(data, "real")
    data = read_again(data, units.coding)
    if units.kind == "categorical":
        return converted(data, "categorical") if isinstance(data.coding, Coding) else data
    if isinstance(data.coding, Coding):
        return data.in_coding(coding_of_units(data.coding, units.kind))
    if units.kind in DOMAINS:
        raise CodingError(
            f"units have two values but the Dataset is {data.coding.describe()}",
            "set `visible='categorical'`, or convert it with `Dataset.convert`",
            argument="visible",
            value=units.kind,
        )
    return data


# -- many values ------------------------------------------------------------------------------------------------------
def _labels_for(data: Any, coding: Any) -> CategoryCoding:
    """The labels that a coding of many values gives to the columns of discrete data."""
    labels = data.labels
    if isinstance(coding, CategoryCoding):
        return coding
    if isinstance(coding, Values):
        return CategoryCoding.of_values(as_numbers(coding.numbers), len(labels))
    if isinstance(coding, str) and coding == "values":
        return CategoryCoding.of_values(numbers_common_to(labels, data.names), len(labels))
    declared = coding.categories if isinstance(coding, Labels | OneHot) else None
    listed = listed_labels(data.names, declared)
    return CategoryCoding.of_labels([own or known for own, known in zip(listed, labels, strict=True)])


def _relabelled(data: Data, target: CategoryCoding, declared_by: str | None) -> Data:
    """Return the data in the codes of another coding that has all its labels."""
    if same_coding(data.coding, target):
        return data
    if len(target.labels) != data.n_variables:
        raise CodingError(f"the data has {data.n_variables} columns but the coding is of {len(target.labels)}")
    numbers = relabel(data.names, data.labels, target.labels, declared_by)
    codes = data.codes
    codes = np.column_stack([number[codes[:, j]] for j, number in enumerate(numbers)]).astype(np.int8)
    if data.missing is not None:
        codes[data.missing] = 0
    return data.with_cells(Cells(codes, data.missing, target, data.names))


# -- numbers ----------------------------------------------------------------------------------------------------------
def _as_reals(data: Data) -> Data:
    """Return the numbers that the labels are."""
    if data.has_shares:
        return data.with_cells(Cells(data.states, data.missing, RealCoding(), data.names))
    words = [label for labels in data.labels for label in labels if isinstance(label, bool | str)]
    if words:
        raise CodingError(f"this takes numbers, but the Dataset is {data.coding.describe()}", "give the table")
    numbers = np.asarray(data.coding.decode(data.states), dtype=np.float64)
    if data.missing is not None:
        numbers[data.missing] = 0.0
    return data.with_cells(Cells(numbers, data.missing, RealCoding(), data.names))


def _cut(data: Data, coding: Any, declared_by: str | None) -> Data:
    """Read real numbers in a coding, as if they were a table."""
    table = densified(Table(data.names, data.coding.decode(data.states, data.missing)))
    return data.with_cells(encode(table, coding, declared_by))
