"""From a table to states: the one place where `coding=` is understood."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbsian.data.categories import encode_categories
from gibbsian.data.coding import above, encode_two_values, label_tokens
from gibbsian.data.numbers import densified, holds_shares, is_sparse, numbers_of, pair_of, real_numbers, require_shares
from gibbsian.data.rules import Labels, OneHot, Shares, Threshold, Units, Values
from gibbsian.data.table import Table
from gibbsian.domain import (
    BINARY,
    CODINGS,
    DOMAINS,
    MANY_VALUED,
    AnyCoding,
    AnyDomain,
    CategoryCoding,
    Coding,
    Domain,
    RealCoding,
    as_coding,
)
from gibbsian.errors import DataError

# Words that leave it to the data how they are written, and what each may find.
AUTOMATIC = ("auto", "auto-categorical", "auto-visible")
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
        For each cell whether it is the upper of two values (bool), which of the categories it is (int8), or the number
        that it is (float64, dense or CSR). The lowest, or zero, where missing.
    missing : bool ndarray or None
        Where nothing stands; None when the table is complete.
    coding : Coding, CategoryCoding or RealCoding
        What was recognised or declared.
    names : tuple of str
        The variables.
    """

    codes: Any
    missing: np.ndarray | None
    coding: AnyCoding
    names: tuple[str, ...]

    @property
    def states(self) -> Any:
        """The cells as they enter the energy."""
        return states_of(self.codes, self.coding.domain)


def states_of(codes: Any, domain: AnyDomain) -> Any:
    """Return cells as they enter the energy."""
    if not (isinstance(domain, Domain) and codes.dtype.kind == "b"):
        return codes
    states = np.ascontiguousarray(codes).view(np.int8) * np.int8(domain.gap)
    states += np.int8(domain.low)
    return states


def encode(table: Table, coding: Any = "auto", declared_by: str | None = None) -> Cells:
    """Read a table in a coding; `declared_by` is who was fitted on it, for messages."""
    if is_real(coding):
        return _reals(table)
    if is_sparse(table.cells):
        return encode(_written_out(table, coding), coding, declared_by)
    if isinstance(coding, Threshold):
        return _cut(table, coding)
    if isinstance(coding, OneHot):
        cells = _categories(_joined(table, coding), "categorical", categories=coding.categories)
        return _with_rule(cells, OneHot(coding.groups))
    if isinstance(coding, Labels):
        return _categories(table, "categorical", categories=coding.categories)
    if isinstance(coding, Values):
        return _categories(table, "values", values=coding.numbers)
    if isinstance(coding, Shares):
        return _units(table, Units("binary"))
    if isinstance(coding, Units):
        return _units(table, coding)
    if isinstance(coding, Coding | CategoryCoding):
        return _declared(table, coding, declared_by)
    if coding == "auto-visible":
        return _units(table, Units())
    if coding == "auto-categorical":
        return _two_values_or_categories(table)
    if isinstance(coding, str) and coding in MANY_VALUED:
        return _categories(table, coding)
    return _two_values(table, None if coding == "auto" else as_coding(coding), declared_by)


def _written_out(table: Table, coding: Any) -> Table:
    """A sparse table with its zeros, for visible units and for models that were fitted."""
    wanted = isinstance(coding, Units | Shares | Coding | CategoryCoding) or coding == "auto-visible"
    if not wanted:
        raise DataError("Sparse data is not supported", "pass a dense array, for example X.toarray()")
    return densified(table)


def is_real(coding: Any) -> bool:
    """Whether a coding asks for real numbers."""
    return isinstance(coding, RealCoding) or (isinstance(coding, str) and coding == "real")


def is_many_valued(coding: Any) -> bool:
    """Whether a coding asks for categories, or for numbers as values."""
    word = isinstance(coding, str) and coding in MANY_VALUED
    return word or isinstance(coding, CategoryCoding | Labels | Values | OneHot)


# -- the kinds of cells -----------------------------------------------------------------------------------------------
def _reals(table: Table) -> Cells:
    return Cells(*real_numbers(table), RealCoding(), table.names)


def _two_values(table: Table, coding: Coding | None, declared_by: str | None = None) -> Cells:
    return Cells(*encode_two_values(table, coding, declared_by), table.names)


def _categories(table: Table, coding: str | CategoryCoding, **declared: Any) -> Cells:
    return Cells(*encode_categories(table, coding, **declared), table.names)


def _two_values_or_categories(table: Table) -> Cells:
    try:
        return _two_values(table, None)
    except DataError:
        return _categories(table, "categorical")


def _joined(table: Table, rule: OneHot) -> Table:
    """Put dummy columns together."""
    from gibbsian.data.one_hot import table_of_dummies  # few tables need it

    return table_of_dummies(table, rule.groups)


def _cut(table: Table, rule: Threshold) -> Cells:
    """Cut numbers at a threshold."""
    high, missing = above(table, rule.threshold)
    wanted: Any = rule.coding
    if not is_many_valued(wanted):
        return _with_rule(Cells(high, missing, as_coding(wanted), table.names), Threshold(rule.threshold))
    zero_one = Table(table.names, high.astype(np.int8) if missing is None else np.where(missing, np.nan, high))
    if not isinstance(wanted, CategoryCoding):
        wanted = Values((0, 1)) if wanted == "values" else Labels((0, 1))
    return _with_rule(encode(zero_one, wanted), Threshold(rule.threshold))


def _with_rule(cells: Cells, rule: Any) -> Cells:
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
        if isinstance(rule, Shares) and holds_shares(numbers_of(table)):
            return _shares(table, coding, "scale the numbers as those of the fit were")
        raise


def _by_labels(table: Table, coding: Coding | CategoryCoding, declared_by: str | None) -> Cells:
    if isinstance(coding, CategoryCoding):
        return _categories(table, coding, declared_by=declared_by)
    return _two_values(table, coding, declared_by)


# -- visible units ----------------------------------------------------------------------------------------------------
def _units(table: Table, units: Units) -> Cells:
    """Read a table for the visible units of layers."""
    if units.kind == "gaussian":
        return _reals(table)
    if units.kind == "categorical":
        return encode(table, units.coding if is_many_valued(units.coding) else "categorical")
    try:
        cells = encode(table, units.coding)
    except DataError:
        numbers = numbers_of(table)
        pair = pair_of(numbers)
        if not _is_auto(units.coding) or (units.kind == "spin" and pair is None):
            raise
        if pair is not None:
            return _units(table, Units(units.kind, pair))
        if numbers is not None:
            return _shares(table, CODINGS["binary"], OTHER_KINDS)
        if units.kind != "auto":
            raise
        return _categories(table, "categorical")
    if isinstance(cells.coding, Coding):
        return replace(cells, coding=coding_of_units(cells.coding, units.kind))
    return cells


def _is_auto(coding: Any) -> bool:
    return isinstance(coding, str) and coding == "auto"


def coding_of_units(coding: Coding, kind: str) -> Coding:
    """Return a coding in the domain of units of a kind; where it is 0/1, shares are welcome."""
    if kind in DOMAINS:  # the labels stay those of the table, whatever numbers stand for them in the energy
        coding = replace(coding, domain=DOMAINS[kind])
    if coding.rule is None and coding.domain == BINARY and label_tokens(coding) == (0.0, 1.0):
        return replace(coding, rule=Shares())
    return coding


def _shares(table: Table, coding: Coding | CategoryCoding, remedy: str) -> Cells:
    numbers = numbers_of(table)
    assert numbers is not None
    require_shares(numbers, table.names, remedy)
    missing = np.isnan(numbers)
    coding = replace(coding, rule=Shares())
    if not missing.any():
        return Cells(numbers, None, coding, table.names)
    return Cells(np.where(missing, 0.0, numbers), missing, coding, table.names)
