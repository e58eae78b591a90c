"""What the checks before a fit found, and the sentences that say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gibbsian.data.dataset import Dataset
from gibbsian.data.rows import Rows
from gibbsian.errors import (
    ConstantColumnError,
    DataError,
    DegenerateDataWarning,
    MaximumDoesNotExistError,
    MissingValuesWarning,
    notify,
)
from gibbsian.registry import Registry

CHECKS = Registry("check before a fit", "gibbsian.data", "CHECKS")
"""By family: ``check(found, model)`` looks whether the data determine the parameters."""

# Names listed in a message before it counts the rest.
LISTED = 3
TO_DROP = 20  # where they are to be dropped
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
    >>> family = gb.PairwiseFamily(gb.graphs.complete(2), data.variables)
    >>> gb.data.preflight(data, gb.Model.zeros(family)).notes
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


@dataclass
class Findings:
    """What checks find, in sentences: errors are raised, warnings given, and the rest is kept for the report."""

    data: Rows
    l1: float
    l2: float
    constant: tuple[str, ...] = ()
    nearly_constant: tuple[str, ...] = ()
    duplicates: tuple[tuple[str, str, str], ...] = ()
    notes: list[str] = field(default_factory=list)

    @property
    def unpenalised(self) -> bool:
        """Whether nothing holds the interactions."""
        return self.l1 == 0 and self.l2 == 0

    def report(self) -> PreflightReport:
        """Put what was found beside the sizes of the data."""
        data = self.data
        n_empty = int(data.empty_rows().sum()) if data.has_missing else 0
        found = (self.constant, self.nearly_constant, self.duplicates, tuple(self.notes))
        return PreflightReport(data.n_rows, data.n_states, data.n_missing, n_empty, *found)

    # -- rows and columns ---------------------------------------------------------------------------------------------
    def check_rows(self) -> None:
        """Refuse a single row and rows without any observed cell; warn where some are without."""
        data = self.data
        if data.n_rows < 2:
            raise DataError(f"`n_samples` = {data.n_rows} is too few to fit", "give at least 2 rows")
        empty = np.flatnonzero(data.empty_rows()) if data.has_missing else np.empty(0)
        refuse_nothing(data, len(empty))
        if len(empty):
            what = "1 row carries" if len(empty) == 1 else f"{len(empty)} rows carry"
            reason = f"{what} no information because all cells are missing (first: row {empty[0]})"
            notify(MissingValuesWarning(reason, "left out of the fit"))

    def check_observed(self, observed_rows: np.ndarray) -> None:
        """Refuse a column that no row of positive weight shows."""
        unseen = self.names_where(observed_rows == 0)
        if unseen:
            raise DataError(
                f"{columns_have(unseen)} no observed cell in any row of positive weight", f"drop {them(unseen)}"
            )

    def judge_constant(self, unbounded: Sequence[str], remedy: str, idle: str, otherwise: str) -> None:
        """Raise when nothing holds the biases of constant columns, and warn of the others."""
        if unbounded and self.l2 == 0:
            raise ConstantColumnError(
                f"{columns_have(unbounded, limit=TO_DROP)} one value only, so no finite bias is the most likely",
                f"drop {them(unbounded)}{remedy} or add a penalty by `l2='auto'`",
            )
        if self.constant:
            warn(f"{columns_have(self.constant)} one value only{idle}", otherwise)

    def names_where(self, chosen: np.ndarray) -> tuple[str, ...]:
        """Name the chosen columns."""
        return tuple(self.data.names[j] for j in np.flatnonzero(chosen))

    def cell(self, column: int, code: int) -> str:
        """Name a value of a column in words of the user's table."""
        return f"{self.data.names[column]!r}={self.data.coding.labels_of(column)[code]}"

    # -- what never occurs --------------------------------------------------------------------------------------------
    def judge_empty(self, clauses: list[str], free: bool, kind: str, remedy: str) -> None:
        """Raise when nothing holds the parameters of what never occurs; note where a penalty does."""
        if not clauses:
            return
        shown = listed(clauses, f"other {kind}", f"other {kind}s")
        if free:
            raise MaximumDoesNotExistError(
                f"the likelihood has no finite maximum, because {shown}",
                f"add a penalty by `l2='auto'`, or {remedy}",
            )
        self.notes.append(f"{shown}: the penalty alone keeps the parameters finite")

    def judge_pairs(self, apart: list[str], certain: list[str], doubtful: list[str]) -> None:
        """Judge pairs of columns never observed together, with empty cells, and with cells only holes may fill."""
        if apart and self.unpenalised:
            raise MaximumDoesNotExistError(
                f"{apart[0]} are never observed in the same row, so nothing determines their coupling",
                "add a penalty by `l2='auto'`, or leave the edge out of the graph",
            )
        self.judge_empty(certain, self.unpenalised, "pair", "drop or merge columns or rare values")
        if doubtful:
            shown = listed(doubtful, "other pair", "other pairs")
            how = "only rows with missing cells decide how large the parameters are"
            self.notes.append(f"in the observed cells {shown}: {how}")

    def warn_of_duplicates(self, pairs: Iterable[tuple[int, int, str]]) -> None:
        """Warn of pairs of columns that say the same; constant ones say nothing."""
        named = ((self.data.names[i], self.data.names[j], kind) for i, j, kind in sorted(pairs))
        self.duplicates = tuple(entry for entry in named if not {*self.constant} & {*entry[:2]})
        if self.duplicates:
            clauses = [f"{first!r} and {second!r} are {kind} in every row" for first, second, kind in self.duplicates]
            warn(
                f"columns {listed(clauses, 'other pair', 'other pairs')}",
                "the data do not distinguish their parameters",
            )


def warn(reason: str, remedy: str) -> None:
    """Warn of data that determine parameters poorly."""
    notify(DegenerateDataWarning(reason, remedy))


def counted_rows(data: Dataset) -> np.ndarray:
    """Return how many rows of positive weight show each distinct state."""
    counted = None if data.row_weights is None else (data.row_weights > 0).astype(np.float64)
    return np.bincount(data.row_of, counted, minlength=data.n_states).astype(np.float64)


def observed_rows(data: Dataset) -> np.ndarray:
    """Return how many rows of positive weight show each column."""
    rows = counted_rows(data)
    return np.full(data.n_variables, rows.sum()) if data.missing is None else rows @ ~data.missing


def refuse_nothing(data: Rows, n_empty: int) -> None:
    """Refuse rows that are all empty."""
    if n_empty == data.n_rows:
        raise DataError(f"all cells of all {data.n_rows} rows are missing", "there is nothing to fit")


def is_rare(rows: np.ndarray, of_rows: np.ndarray | float) -> np.ndarray:
    """Whether a value occurs, but in too few rows to learn from."""
    return (rows > 0) & (rows < RARE_ROWS) & (rows < RARE_SHARE * of_rows)


# -- words ------------------------------------------------------------------------------------------------------------
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
