"""What the checks before a fit found, and the sentences that say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsian.data.dataset import Dataset
from gibbsian.errors import (
    DataError,
    DegenerateDataWarning,
    MaximumDoesNotExistError,
    MissingValuesWarning,
    notify,
)

# Names listed in a message before it counts the rest.
LISTED = 3
# A value is rare when fewer rows than this show it (a bias learned from two rows has a standard error of 0.7) ...
RARE_ROWS = 3
# ... and they are a smaller share than this: in a table of twenty rows two are no sign of anything.
RARE_SHARE = 0.05


@dataclass(frozen=True)
class PreflightReport:
    """What the checks found; the fit may go on.

    Parameters
    ----------
    n_rows, n_states, n_missing : int
        Rows, distinct states and missing cells of the data.
    empty_rows : int
        Rows without any observed cell; leave them out with `drop_empty_rows`.
    constant, nearly_constant : tuple of str
        Columns with one value, and with a value in a handful of rows.
    duplicates : tuple of (str, str, str)
        Pairs of columns that are ``"equal"`` or ``"opposite"`` wherever both are observed; with many values
        ``"relabelled"``, one the other under other names.
    notes : tuple of str
        Sentences on what a penalty keeps in check or missing cells leave open.

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.Dataset.read([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> gb.data.preflight(data, gb.PairwiseModel.zeros(gb.graphs.complete(2), data.domain)).notes
    ()
    """

    n_rows: int
    n_states: int
    n_missing: int
    empty_rows: int = 0
    constant: tuple[str, ...] = ()
    nearly_constant: tuple[str, ...] = ()
    duplicates: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[str, ...] = ()


def report_of(data: Any, n_empty: int, **findings: Any) -> PreflightReport:
    """Put what was found beside the sizes of the data."""
    n_missing = int(data.missing[data.row_of].sum()) if data.has_missing else 0
    return PreflightReport(data.n_rows, data.n_states, n_missing, n_empty, **findings)


# -- rows and columns -------------------------------------------------------------------------------------------------
def check_rows(data: Any) -> None:
    """Refuse a single row."""
    if data.n_rows < 2:
        raise DataError(f"`n_samples` = {data.n_rows} is too few to fit", "give at least 2 rows")


def counted_rows(data: Dataset) -> np.ndarray:
    """Return how many rows of positive weight show each distinct state."""
    counted = None if data.row_weights is None else (data.row_weights > 0).astype(np.float64)
    return np.bincount(data.row_of, counted, minlength=data.n_states).astype(np.float64)


def empty_rows(data: Dataset) -> np.ndarray:
    """Return which rows have no observed cell."""
    if data.missing is None:
        return np.zeros(data.n_rows, bool)
    return data.missing[data.row_of].all(axis=1)


def warn_of_empty_rows(data: Dataset) -> int:
    """Warn of rows without an observed cell, refuse if all are such, and count them."""
    empty = np.flatnonzero(empty_rows(data))
    if len(empty) == data.n_rows:
        raise DataError(f"all cells of all {data.n_rows} rows are missing", "there is nothing to fit")
    if len(empty):
        what = "1 row carries" if len(empty) == 1 else f"{len(empty)} rows carry"
        notify(
            MissingValuesWarning(
                f"{what} no information because all cells are missing (first: row {empty[0]})", "left out of the fit"
            )
        )
    return len(empty)


def check_observed(data: Any, observed_rows: np.ndarray) -> None:
    """Refuse a column that no row of positive weight shows."""
    unseen = names_where(data, observed_rows == 0)
    if unseen:
        raise DataError(
            f"{columns_have(unseen)} no observed cell in any row of positive weight", f"drop {them(unseen)}"
        )


# -- pairs ------------------------------------------------------------------------------------------------------------
def warn_of_duplicates(duplicates: tuple[tuple[str, str, str], ...]) -> tuple[tuple[str, str, str], ...]:
    """Warn of pairs of columns that say the same, and return them."""
    if duplicates:
        clauses = [f"{first!r} and {second!r} are {kind} in every row" for first, second, kind in duplicates]
        notify(
            DegenerateDataWarning(
                f"columns {listed(clauses, 'other pair', 'other pairs')}", "their parameters cannot be told apart"
            )
        )
    return duplicates


@dataclass
class PairClauses:
    """Clauses on pairs of columns: never observed together, empty for certain, empty unless missing cells fill it."""

    apart: list[str] = field(default_factory=list)
    certain: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)

    def judge(self, unpenalised: bool) -> tuple[str, ...]:
        """Raise when a pair rules out a finite maximum; return notes on what is only in doubt or penalised."""
        if self.apart and unpenalised:
            raise MaximumDoesNotExistError(
                f"{self.apart[0]} are never observed in the same row, so nothing determines their coupling",
                "add a penalty such as `l2=0.01`, or leave the edge out of the graph",
            )
        notes = judge_empty(self.certain, unpenalised, "pair", "drop or merge columns or rare values")
        if self.doubtful:
            shown = listed(self.doubtful, "other pair", "other pairs")
            how = "only rows with missing cells decide how large the parameters are"
            notes.append(f"in the observed cells {shown}: {how}")
        return tuple(notes)


def judge_empty(clauses: list[str], free: bool, kind: str, remedy: str) -> list[str]:
    """Raise when nothing holds the parameters of what never occurs; return a note where a penalty does."""
    if not clauses:
        return []
    shown = listed(clauses, f"other {kind}", f"other {kind}s")
    if free:
        raise MaximumDoesNotExistError(
            f"the likelihood has no finite maximum, because {shown}", f"add a penalty such as `l2=0.01`, or {remedy}"
        )
    return [f"{shown}: the penalty alone keeps the parameters finite"]


# -- words ------------------------------------------------------------------------------------------------------------
def names_where(data: Any, chosen: np.ndarray) -> tuple[str, ...]:
    """Name the chosen columns."""
    return tuple(data.names[j] for j in np.flatnonzero(chosen))


def columns_have(names: Sequence[str], limit: int = LISTED) -> str:
    """Name the columns as the subject of a sentence."""
    shown = ", ".join(repr(name) for name in names[:limit])
    more = f" and {len(names) - limit} others" if len(names) > limit else ""
    return f"column {shown} has" if len(names) == 1 else f"columns {shown}{more} have"


def them(names: Sequence[str]) -> str:
    """Refer back to the columns."""
    return "it" if len(names) == 1 else "them"


def listed(clauses: list[str], one: str, many: str) -> str:
    """Join the first clauses and count the rest."""
    rest = len(clauses) - LISTED
    shown = "; ".join(clauses[:LISTED])
    return shown if rest <= 0 else f"{shown}; and {rest} {one if rest == 1 else many} likewise"
