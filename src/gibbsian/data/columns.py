"""What columns are, seen from their cells: identifiers, two values, ordered levels, categories or real numbers."""

from __future__ import annotations

import re

import numpy as np

from gibbsian.data.categories import declared_labels
from gibbsian.data.numbers import is_sparse
from gibbsian.data.rules import Columns, Labels, Ordinal, Threshold, Units, as_rule
from gibbsian.data.table import Factor, Table
from gibbsian.domain import CategoryCoding
from gibbsian.errors import IdentifierWarning, notify

# Names of columns that number rows: id, user_id, userId, index, and what pandas calls an index that it wrote.
_KEY = re.compile(r"(?:.*[\W_]|)(?:id|ids|key|index|uuid|guid|rownames?)|unnamed: ?\d+(?:_.*)?", re.IGNORECASE)
_CAMEL = re.compile(r".*[a-z0-9]I[dD]")
# Fewer rows than this show nothing by having different values, unless the column's name says it too.
FEW_ROWS, FEW_NAMED_ROWS = 11, 3
# Share of different words from which on they name rows.
NEARLY_ALL = 0.95
# Rows whose values tell most columns from identifiers.
FIRST_ROWS = 64
# Whole numbers with up to so many values are levels of a scale.
MOST_LEVELS = 10


def columns_in(coding: object) -> Columns:
    """Return what is declared of single columns."""
    rule = as_rule(coding)
    rule = as_rule(rule.coding) if isinstance(rule, Units) else rule
    return rule if isinstance(rule, Columns) else Columns({})


# -- identifiers ------------------------------------------------------------------------------------------------------
def identifiers(table: Table, coding: object) -> list[str]:
    """Return the columns that name the rows of a table; those that were declared do not count."""
    if isinstance(coding, CategoryCoding):
        return []
    known = columns_in(coding).declared
    found = [table.names[j] for j in _candidates(table) if table.names[j] not in known and _is_identifier(table, j)]
    return found if len(found) < len(table.names) else []


def without_identifiers(table: Table, coding: object) -> tuple[Table, list[str]]:
    """Return a table without the columns that name its rows, and these; a warning says so."""
    found = identifiers(table, coding)
    for name in found:
        identifier_notice(name)
    return table.without(found), found


def identifier_notice(name: str) -> None:
    """Warn that a column is left out."""
    reason = f"column {name!r} has a value of its own in every row, so it is left out as an identifier"
    notify(IdentifierWarning(reason, f"declare it to keep it, `coding={{{name!r}: 'categorical'}}`"))


def _candidates(table: Table) -> list[int]:
    """The columns whose first rows differ, as those of an identifier do, and are no fractions."""
    n_rows = min(table.shape[0], FIRST_ROWS)
    if n_rows < FEW_NAMED_ROWS or is_sparse(table.cells):
        return []
    if isinstance(table.cells, list):
        differ = [j for j, column in enumerate(table.cells) if len(column.written) >= NEARLY_ALL * n_rows]
        return [j for j in differ if not any(map(_is_fraction, table.cells[j].written[:FIRST_ROWS]))]
    first = np.sort(table.cells[:n_rows], axis=0)
    whole = (first == np.floor(first)).all(axis=0)
    return np.flatnonzero(whole & (first[1:] != first[:-1]).all(axis=0)).tolist()


def _is_fraction(value: object) -> bool:
    return isinstance(value, float) and not value.is_integer()


def _is_identifier(table: Table, place: int) -> bool:
    column, name = table.column(place), table.names[place]
    n_cells, tokens = int((column.places >= 0).sum()), list(column.spellings)
    named = _KEY.fullmatch(name) is not None or _CAMEL.fullmatch(name) is not None
    if len(tokens) < (FEW_NAMED_ROWS if named else FEW_ROWS):
        return False
    if are_whole(column):
        numbers = np.array(tokens)
        return len(tokens) == n_cells and bool(named or np.ptp(numbers) == len(numbers) - 1)
    return all(isinstance(token, str) for token in tokens) and len(tokens) >= NEARLY_ALL * n_cells


# -- kinds ------------------------------------------------------------------------------------------------------------
def kinds_of(table: Table, coding: object = "auto") -> dict[str, str]:
    """Return for each column whether it is "two-valued", "ordered", "categories" or "numbers", as declared or seen."""
    known = columns_in(coding).kept
    return {name: _declared_kind(name, table.column(j), known.get(name)) for j, name in enumerate(table.names)}


def _declared_kind(name: str, column: Factor, coding: object) -> str:
    """The kind of a column; what is declared about it goes before what it shows."""
    rule = as_rule(coding) if isinstance(coding, str) else coding
    if isinstance(rule, Threshold):
        return "two-valued"
    labels = None if rule is None else declared_labels(name, rule)
    count = len(column.spellings) if labels is None else len(labels)
    if count <= 2 and (labels is not None or _shown_kind(column) == "two-valued"):
        return "two-valued"
    if isinstance(rule, Ordinal):
        return "ordered"
    return "categories" if isinstance(rule, Labels) or labels is not None else _shown_kind(column)


def _shown_kind(column: Factor) -> str:
    tokens = list(column.spellings)
    if column.declared:
        n_values = sum(token is not None for token in column.tokens)
        return "two-valued" if n_values <= 2 else "ordered" if column.ordered else "categories"
    words = [isinstance(token, str) for token in tokens]
    whole = are_whole(column)
    if len(tokens) <= 2 and (whole or all(words)):
        return "two-valued"
    if any(words):
        return "categories"
    return "ordered" if whole and len(tokens) <= MOST_LEVELS else "numbers"


def are_whole(column: Factor) -> bool:
    """Whether all values are whole numbers."""
    return all(isinstance(token, float) and token.is_integer() for token in column.spellings)
