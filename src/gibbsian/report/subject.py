"""What a report is about, and the sections that say it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import GibbsianError
from gibbsian.learning.result import FitResult, Verdict
from gibbsian.models.base import FAMILIES
from gibbsian.registry import Registry

if TYPE_CHECKING:
    from gibbsian.estimators.base import Estimator
    from gibbsian.uncertainty.tables import ConfidenceIntervals

SECTIONS = Registry("section", "gibbsian.report", "SECTIONS")
# Families whose parameters are the weights of products of numbers, one for each scope.
PRODUCTS = ("pairwise", "products")
# Sections look at no more rows and cells than this, chosen at random, so that the time does not grow with the table.
MOST_ROWS = 20_000
MAX_CELLS = 1_000_000
LEVEL = 0.95
SECONDS_OF_INTERVALS = 30.0


@dataclass
class Subject:
    """A fitted machine, the rows it is looked at with, and where both came from.

    Parameters
    ----------
    machine : fitted estimator
        What is reported on.
    data : Dataset, optional
        The rows, in the machine's coding.
    asked : estimator, optional
        Who was asked for a report; a classifier has a machine behind it.
    labels : tuple of (X, y), optional
        Of a classifier the features and labels.
    origin : dict of str to str
        How it was made, by name.
    warnings : list of str
        What was warned of.
    seed : int, default=0
        Of all that a report chooses at random.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
    >>> machine = gb.BoltzmannMachine().fit(rows)
    >>> gb.report.Subject(machine, machine.read(rows)).which_rows
    'all 5 rows'
    """

    machine: Estimator
    data: Dataset | None = None
    asked: object = None
    labels: tuple[Any, Any] | None = None
    origin: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    seed: int = 0

    @property
    def has_rows(self) -> bool:
        """Whether there are rows to look at."""
        return self.data is not None or self.labels is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.machine.names_

    @property
    def rng(self) -> np.random.Generator:
        """A generator that is the same for every section."""
        return np.random.default_rng(self.seed)

    def read(self, labels: object) -> Dataset:
        """Read rows that the machine has written."""
        return self.machine._read(Dataset.read(labels, coding=self.machine.coding_, names=self.names))

    @cached_property
    def chosen(self) -> np.ndarray:
        """Which rows are looked at: all, or a random sample of them."""
        assert self.data is not None  # sections that need rows are asked where there are some
        most = min(MOST_ROWS, max(1000, MAX_CELLS // self.data.n_variables))
        return np.sort(self.rng.choice(self.data.n_rows, min(most, self.data.n_rows), replace=False))

    @cached_property
    def rows(self) -> Dataset:
        """The rows that are looked at."""
        assert self.data is not None
        return self.data if self.chosen.size == self.data.n_rows else self.data.take(self.chosen)

    @property
    def which_rows(self) -> str:
        """Say which rows a section looked at."""
        assert self.data is not None
        n, chosen = self.data.n_rows, self.rows.n_rows
        return f"all {n:,} rows" if n == chosen else f"a random sample of {chosen:,} of the {n:,} rows"

    @cached_property
    def result(self) -> FitResult:
        """The result of the fit, with scores of rows that fits did not see where there are rows and it is quick."""
        from gibbsian.estimators.held_out import measured

        return self.machine.result_ if self.data is None else measured(self.machine, self.rows)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the fit; the page makes no claims where it is bad."""
        return self.result.verdict

    @cached_property
    def intervals(self) -> ConfidenceIntervals | str:
        """Confidence intervals of the parameters, or a sentence that says why there are none."""
        from gibbsian.uncertainty import check_same_data, confidence_intervals

        if self.data is None:
            return "there are no intervals, because they need the rows of the fit"
        if self.verdict.status == "bad":
            return "there are no intervals, because the verdict on the fit is bad"
        # a sample stands for all rows: each of its rows counts for as many
        weights = self.rows.shares * self.data.total_weight
        try:
            check_same_data(self.machine, self.data)
            return confidence_intervals(
                self.machine, self.rows, LEVEL, sample_weight=weights, max_seconds=SECONDS_OF_INTERVALS
            )
        except GibbsianError as error:
            return f"there are no intervals: {error}"

    @property
    def without_intervals(self) -> str:
        """The sentence that says why there are no intervals; empty where there are."""
        return self.intervals if isinstance(self.intervals, str) else ""

    def interval_at(self, place: int | None) -> np.ndarray | None:
        """Return the ends of the interval of a parameter by its place in theta; None where there is none."""
        found = self.intervals
        if place is None or isinstance(found, str):
            return None
        return np.array([found.low[place], found.high[place]])

    def interval_of(self, scope: tuple[int, ...]) -> np.ndarray | None:
        """Return the same of the weight of a product of variables."""
        return self.interval_at(self._places.get(scope))

    @cached_property
    def _places(self) -> dict[tuple[int, ...], int]:
        """Where the weight of each product stands in theta; empty for families of other parameters."""
        family = self.machine.model_.family
        if FAMILIES.name_for(family) not in PRODUCTS:
            return {}
        return {scope: place for place, scope in enumerate(family.scopes)}
