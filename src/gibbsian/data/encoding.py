"""From a table, or from data in another coding, to codes: the one place where `coding=` is understood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from gibbsian.data.categories import coding_for, coding_of, encode_categories, relabel
from gibbsian.data.numbers import (
    densified,
    holds_shares,
    is_sparse,
    numbers_of,
    pair_of,
    real_numbers,
    require_shares,
    with_zeros,
)
from gibbsian.data.rules import (
    AnyRule,
    CodingLike,
    Columns,
    Labels,
    ManyValued,
    OneHot,
    Ordinal,
    Shares,
    Threshold,
    Units,
    Values,
    as_rule,
)
from gibbsian.data.table import Table, as_factor
from gibbsian.data.two_values import (
    above,
    encode_two_values,
    label_tokens,
    recognised,
    refuse_coding,
    same_coding,
    same_labels,
)
from gibbsian.domain import (
    BINARY,
    CODINGS,
    DOMAINS,
    AnyCoding,
    CategoryCoding,
    Coding,
    RealCoding,
    as_coding,
)
from gibbsian.errors import CodingError, DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from gibbsian.data.dataset import Dataset

Data = TypeVar("Data", bound="Dataset")
OTHER_KINDS = (
    "set `visible='gaussian'` for real numbers, `visible='categorical'` for values without order, or "
    "`coding=Threshold(t)`"
)


@dataclass(frozen=True, eq=False)
class Cells:
    """A table that was read in a coding.

    Parameters
    ----------
    codes : ndarray
        The code of each cell (int8), or the number that it is (float64, dense or CSR); zero where missing.
    missing : bool ndarray or None
        Where nothing stands; None when the table is complete.
    coding : Coding, CategoryCoding or RealCoding
        What was recognised or declared.
    names : tuple of str
        The variables.
    """

    codes: np.ndarray | csr_array
    missing: np.ndarray | None
    coding: AnyCoding
    names: tuple[str, ...]


def encode(table: Table, coding: CodingLike = "auto", declared_by: str | None = None) -> Cells:
    """Read a table in a coding; `declared_by` is who was fitted on it, for messages."""
    rule = as_rule(coding)
    if is_sparse(table.cells) and not isinstance(rule, RealCoding):
        table = _written_out(table, coding)
    match rule:
        case RealCoding():
            return Cells(*real_numbers(table), rule, table.names)
        case Threshold():
            return _cut(table, rule)
        case OneHot():
            return _with_rule(encode(_joined(table, rule), Labels(rule.categories)), OneHot(rule.groups))
        case Labels() | Values() | Ordinal():
            return _labelled(table, rule)
        case Columns():
            return _by_column(table, rule)
        case Shares():
            return _units(table, Units("binary"))
        case Units():
            return _units(table, rule)
        case Coding() | CategoryCoding():
            return _declared(table, rule, declared_by)
        case "auto-categorical":
            found = recognised(table)
            return encode(table, Labels()) if found is None else Cells(*found, table.names)
        case _:
            found = recognised(table)
            return _labelled(table, rule) if found is None else Cells(*found, table.names)


def _written_out(table: Table, coding: object) -> Table:
    """A sparse table with its zeros, for visible units and for models that were fitted."""
    visible = isinstance(coding, str) and coding == "auto-visible"
    wanted = visible or isinstance(coding, Units | Shares | Coding | CategoryCoding)
    if not wanted:
        raise DataError("Sparse data is not supported", "pass a dense array, for example X.toarray()")
    return densified(table)


# -- each column its own ----------------------------------------------------------------------------------------------
def _labelled(table: Table, rule: AnyRule) -> Cells:
    """Read columns by their labels, declared or recognised; two values that all columns share are one coding."""
    table = table.factors()
    coding = coding_of(table, rule)
    if coding.domain.two_valued and len(set(map(str, coding.labels))) == 1:
        return _by_labels(table, as_coding(coding.labels[0]), None)
    return _by_labels(table, coding, None)


def _by_column(table: Table, rule: Columns) -> Cells:
    """Read a table in which columns have codings of their own."""
    for name in rule.declared:
        table.place(name, f"coding={{{name!r}: ...}}")
    own, kind, table = rule.kept, as_rule(rule.rest), table.without(rule.dropped)
    if not own:
        return encode(table, kind)
    if not isinstance(kind, Labels | Ordinal | str):
        reason = "columns have no codings of their own here"
        raise CodingError(reason, "leave out all but 'drop'", argument="coding", value=own)
    cuts = {name: coding for name, coding in own.items() if isinstance(coding, Threshold)}
    cells = _labelled(_cut_columns(table, cuts), Columns(own, rule.rest))
    return _with_rule(cells, Columns(cuts)) if cuts else cells


def _cut_columns(table: Table, cuts: Mapping[str, Threshold]) -> Table:
    """Return a table in which some columns are cut at their thresholds, as the labels that these say."""
    columns = list(table.factors().cells)
    for name, cut in cuts.items():
        high, missing = above(table.select([name]), cut.threshold)
        places = np.where(False if missing is None else missing, -1, high)[:, 0]
        columns[table.names.index(name)] = as_factor(as_coding(cut.coding).labels_of(0), places, name)
    return Table(table.names, columns)


def _joined(table: Table, rule: OneHot) -> Table:
    """Put dummy columns together."""
    from gibbsian.data.one_hot import table_of_dummies  # few tables need it

    return table_of_dummies(table, rule.groups)


def _cut(table: Table, rule: Threshold) -> Cells:
    """Cut numbers at a threshold."""
    high, missing = above(table, rule.threshold)
    codes = high.view(np.int8)
    wanted = as_rule(rule.coding)
    if not isinstance(wanted, ManyValued):
        return _with_rule(Cells(codes, missing, as_coding(wanted), table.names), Threshold(rule.threshold))
    zero_one = Table(table.names, codes if missing is None else np.where(missing, np.nan, codes))
    if not isinstance(wanted, CategoryCoding):
        wanted = Values((0, 1)) if isinstance(wanted, Values) else Labels((0, 1))
    return _with_rule(encode(zero_one, wanted), Threshold(rule.threshold))


def _with_rule(cells: Cells, rule: object) -> Cells:
    return replace(cells, coding=replace(cells.coding, rule=rule))


# -- what a model was fitted on ---------------------------------------------------------------------------------------
def _declared(table: Table, coding: Coding | CategoryCoding, declared_by: str | None) -> Cells:
    """Read labels; cells that are none by the rule that the coding was made by."""
    try:
        return _by_labels(table, coding, declared_by)
    except DataError:
        rule = coding.rule
        if isinstance(rule, Threshold):
            return _with_rule(_cut(table, Threshold(rule.threshold, replace(coding, rule=None))), rule)
        if isinstance(rule, OneHot):
            return _by_labels(_joined(table, rule), coding, declared_by)
        if isinstance(rule, Columns):
            own = {name: coding.labels_of(j) for j, name in enumerate(table.names)}
            cuts = {name: cut for name, cut in rule.declared.items() if isinstance(cut, Threshold)}
            cuts = {name: Threshold(cut.threshold, own[name]) for name, cut in cuts.items()}
            return _by_labels(_cut_columns(table, cuts), coding, declared_by)
        if isinstance(rule, Shares) and holds_shares(numbers_of(table)):
            return _shares(table, coding, "scale the numbers as those of the fit were")
        raise


def _by_labels(table: Table, coding: Coding | CategoryCoding, declared_by: str | None) -> Cells:
    if isinstance(coding, CategoryCoding):
        return Cells(*encode_categories(table, coding, declared_by), table.names)
    return Cells(*encode_two_values(table, coding, declared_by), table.names)


# -- visible units ----------------------------------------------------------------------------------------------------
def _units(table: Table, units: Units) -> Cells:
    """Read a table for the visible units of layers."""
    if units.kind == "gaussian":
        return encode(table, "real")
    rule = as_rule(units.coding)
    if units.kind == "categorical":
        return encode(table, rule if isinstance(rule, ManyValued) else Labels())
    try:
        cells = encode(table, rule) if rule != "auto" else _alike(table)
    except DataError:
        numbers = numbers_of(table)
        pair = pair_of(numbers)
        if rule != "auto" or (units.kind == "spin" and pair is None):
            raise
        if pair is not None:
            return _units(table, Units(units.kind, pair))
        if numbers is not None:
            return _shares(table, CODINGS["binary"], OTHER_KINDS)
        if units.kind != "auto":
            raise
        return encode(table, Labels())
    if cells.coding.domain.two_valued:
        return replace(cells, coding=_coding_of_units(cells.coding, units.kind))
    return cells


def _alike(table: Table) -> Cells:
    """Read a table whose columns have the same two values."""
    found = recognised(table)
    if found is None:
        odd = next((name for j, name in enumerate(table.names) if len(table.column(j).used) > 2), table.names[-1])
        raise DataError(f"column {odd!r} holds other values than the same two as all columns", "use `coding` by column")
    return Cells(*found, table.names)


def _coding_of_units(coding: AnyCoding, kind: str) -> AnyCoding:
    """Return a coding in the domain of units of a kind; where it is 0/1, shares are welcome."""
    # the labels stay those of the table, whatever numbers stand for them in the energy
    if kind in DOMAINS and not isinstance(coding, RealCoding):
        coding = replace(coding, domain=DOMAINS[kind])
    if not isinstance(coding, Coding):
        return coding
    if coding.rule is None and coding.domain == BINARY and label_tokens(coding) == (0.0, 1.0):
        return replace(coding, rule=Shares())
    return coding


def _shares(table: Table, coding: Coding | CategoryCoding, remedy: str) -> Cells:
    numbers = numbers_of(table)
    assert numbers is not None
    require_shares(numbers, table.names, remedy)
    return Cells(*with_zeros(numbers), replace(coding, rule=Shares()), table.names)


# -- data that have been read -----------------------------------------------------------------------------------------
def read_again(data: Data, coding: CodingLike, declared_by: str | None = None) -> Data:
    """Return a data set as `coding` asks for it, and refuse one that is written otherwise."""
    rule = as_rule(coding)
    if isinstance(rule, Units):
        return _as_units(data, rule)
    if isinstance(rule, Columns):
        return _as_columns(data, rule, declared_by)
    if isinstance(data.coding, RealCoding) or isinstance(rule, RealCoding | ManyValued):
        return converted(data, rule, declared_by)
    if not isinstance(rule, Coding):  # a word that leaves it to the data, or a threshold that they have passed
        return data
    if isinstance(data.coding, Coding) and same_labels(data.coding, rule):
        return data.in_coding(rule)
    refuse_coding(data, rule, declared_by)


def converted(data: Data, coding: CodingLike, declared_by: str | None = None) -> Data:
    """Return the same data written in another coding."""
    rule = as_rule(coding)
    if isinstance(data.coding, RealCoding):
        return replace(data, coding=rule) if isinstance(rule, RealCoding) else _numbers_in(data, rule, declared_by)
    if isinstance(rule, RealCoding):
        return replace(_as_reals(data), coding=rule)
    if isinstance(rule, ManyValued):
        listed = Labels(rule.categories) if isinstance(rule, OneHot) else rule
        return _relabelled(data, coding_for(listed, data.names, data.coding.labels_of), declared_by)
    return _in_two_values(data, as_coding(rule))


def _as_columns(data: Data, rule: Columns, declared_by: str | None) -> Data:
    """Return a data set with the labels that its columns were declared to have."""
    data = read_again(data, rule.rest, declared_by)
    if isinstance(data.coding, RealCoding):
        return data
    known = {name: coding for name, coding in rule.declared.items() if name in data.names}
    declared = coding_for(Columns(known, "categorical"), data.names, data.coding.labels_of)
    if declared.labels == data.labels:
        return data
    return _relabelled(data, CategoryCoding(declared.labels, data.coding.domain, data.coding.rule), declared_by)


def _as_units(data: Data, units: Units) -> Data:
    if units.kind == "gaussian":
        return converted(data, "real")
    data = read_again(data, units.coding)
    if units.kind == "categorical":
        return converted(data, Labels()) if data.coding.domain.two_valued else data
    if data.coding.domain.two_valued:
        return data.in_coding(_coding_of_units(data.coding, units.kind))
    if units.kind in DOMAINS:
        reason = f"units have two values but the Dataset is {data.coding.describe()}"
        remedy = "set `visible='categorical'`, or convert it with `Dataset.convert`"
        raise CodingError(reason, remedy, argument="visible", value=units.kind)
    return data


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


def _relabelled(data: Data, target: CategoryCoding, declared_by: str | None) -> Data:
    """Return the data in the codes of another coding that has all its labels."""
    if same_coding(data.coding, target):
        return data
    numbers = relabel(data.names, data.labels, target.labels, declared_by)
    codes = np.column_stack([number[data.states[:, j]] for j, number in enumerate(numbers)]).astype(np.int8)
    if data.missing is not None:
        codes[data.missing] = 0
    return data.with_cells(Cells(codes, data.missing, target, data.names))


def _as_reals(data: Data) -> Data:
    """Return the numbers that the labels are."""
    if data.has_shares:
        return data.with_cells(Cells(data.states, data.missing, RealCoding(), data.names))
    if any(isinstance(label, bool | str) for labels in data.labels for label in labels):
        raise CodingError(f"this takes numbers, but the Dataset is {data.coding.describe()}", "give the table")
    numbers = np.asarray(data.coding.decode(data.states, data.missing), dtype=np.float64)
    return data.with_cells(Cells(*with_zeros(numbers), RealCoding(), data.names))


def _numbers_in(data: Data, rule: AnyRule, declared_by: str | None) -> Data:
    """Read real numbers in a coding, as if they were a table."""
    table = densified(Table(data.names, data.coding.decode(data.states, data.missing)))
    return data.with_cells(encode(table, rule, declared_by))
