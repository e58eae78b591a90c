"""What rows do not show, summed out: rows are bound to a family once, and asked at any parameters.

A missing cell is a hidden variable of its row, and a hidden unit a variable that is missing in every row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsian.data import Dataset
from gibbsian.domain import given_codes
from gibbsian.inference.completions import (
    Completions,
    complete_in_all_ways,
    count_completions,
    value_indicators,
    value_offsets,
)
from gibbsian.inference.contract import domain_of, levels_of, model_at, sizes_of
from gibbsian.inference.cut_sets import split_by_cut
from gibbsian.inference.engine import Engine, ExactAnswers, plan_exact, predict_cost
from gibbsian.models.family import Layered, keeps
from gibbsian.models.given import Given
from gibbsian.models.ising import is_ising
from gibbsian.progress import counted

# Families that are not pairwise have up to this many completions of a row listed (eight missing cells of two values).
MOST_LISTED = 2**8
# Completions are kept between evaluations while they take no more bytes than this, else listed anew, so many at a time.
MOST_KEPT_BYTES, LISTED_AT_ONCE = 2.0**28, 2**16
# Seconds for one statistic of one listed completion.
LISTED_SECONDS = 2e-9
# What a row that is summed by itself costs besides its sum.
ROW_SECONDS = 1e-3
# Missing cells are summed out exactly in every step of a fit while that is predicted to take no longer.
PATIENT_SECONDS = 0.5


@runtime_checkable
class Posterior(Protocol):
    """Rows of data bound to a family, what they do not show summed out exactly."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def seconds(self) -> float:
        """Predicted time of one evaluation."""

    def log_evidence(self, theta: np.ndarray) -> np.ndarray:
        """Return the log of each row's weight, summed over what it does not show: log P and log Z."""

    def expect(self, theta: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each row's log-evidence, and the weighted sum of their expected statistics."""

    def cell_probabilities(self, theta: np.ndarray) -> np.ndarray:
        """Return the probabilities of the cells' values given the present cells, in columns like `value_indicators`."""


def posterior(family: Any, x: np.ndarray, missing: np.ndarray | None, max_seconds: float = 60.0) -> Posterior:
    """Bind rows to a family of discrete variables.

    Of pairs those rows are summed together that a small cut set makes independent (`CutSets`), of any other family
    those with few completions (`Listed`); each of the others is summed by an exact engine (`OneByOne`).

    Parameters
    ----------
    family : Family
        With `given` and factors.
    x : ndarray of shape (n_rows, n_variables)
        The rows, with any values at missing cells.
    missing : ndarray of bool, or None
        Which cells are missing.
    max_seconds : float, default 60
        Refuse when one row is predicted to take longer.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.inference.posterior import posterior
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> rows = posterior(model.family, np.array([[1, 1]], np.int8), np.array([[False, True]]))
    >>> evidence, statistics = rows.expect(model.theta, np.ones(1))
    >>> statistics.round(4).tolist()                                                            # tanh 0.5
    [1.0, 0.4621, 0.4621]
    """
    return _join(family, x, missing, split_rows(family, x, missing), max_seconds)


class Split(NamedTuple):
    """Rows by how they are summed: the numbers of those that are cheap together, these bound, and the others."""

    light: np.ndarray
    together: Posterior
    heavy: np.ndarray


def _join(family: Any, x: np.ndarray, missing: np.ndarray | None, split: Split, max_seconds: float) -> Posterior:
    light, together, heavy = split
    parts: list[tuple[np.ndarray, Posterior]] = [(light, together)] if len(light) else []
    if len(heavy):
        assert missing is not None  # complete rows are light
        parts.append((heavy, OneByOne(family, x[heavy], missing[heavy], max_seconds)))
    return parts[0][1] if len(parts) == 1 else InParts(family, parts)


def split_rows(family: Any, x: np.ndarray, missing: np.ndarray | None) -> Split:
    """Say which rows are summed together, and bind them."""
    if is_ising(family):
        return Split(*split_by_cut(family, x, missing))
    counts = count_completions(domain_of(family), missing, len(x), by_nodes=True)
    light, heavy = np.flatnonzero(counts <= MOST_LISTED), np.flatnonzero(counts > MOST_LISTED)
    return Split(light, Listed(family, x[light], None if missing is None else missing[light]), heavy)


@dataclass(frozen=True, eq=False)
class InParts:
    """Rows in parts that are summed in different ways.

    Parameters
    ----------
    family : Family
        Of all parts.
    parts : list of (ndarray, Posterior)
        The numbers of some rows, and these rows bound.
    """

    family: Any
    parts: list[tuple[np.ndarray, Posterior]]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(part.n_rows for _, part in self.parts)

    @property
    def seconds(self) -> float:
        """Predicted time of one evaluation."""
        return sum(part.seconds for _, part in self.parts)

    def log_evidence(self, theta: np.ndarray) -> np.ndarray:
        """Return the log of each row's summed weight."""
        evidence = np.empty(self.n_rows)
        for which, part in self.parts:
            evidence[which] = part.log_evidence(theta)
        return evidence

    def expect(self, theta: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each row's log-evidence, and the weighted sum of their expected statistics."""
        evidence, statistics = np.empty(self.n_rows), np.zeros(np.size(theta))
        for which, part in self.parts:
            evidence[which], expected = part.expect(theta, weights[which])
            statistics += expected
        return evidence, statistics

    def cell_probabilities(self, theta: np.ndarray) -> np.ndarray:
        """Return the probabilities of the cells' values given the present cells."""
        columns = value_columns(self.family, np.arange(sizes_of(self.family).size))
        probabilities = np.empty((self.n_rows, len(columns)))
        for which, part in self.parts:
            probabilities[which] = part.cell_probabilities(theta)
        return probabilities


@dataclass(frozen=True, eq=False)
class Listed:
    """Rows with few completions, which are listed: for any family.

    Parameters
    ----------
    family : Family
        Whose log-weights and statistics are known.
    x : ndarray of shape (n_rows, n_variables)
        The rows.
    missing : ndarray of bool, or None
        Which cells are missing.
    """

    family: Any
    x: np.ndarray
    missing: np.ndarray | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.x)

    @cached_property
    def _counts(self) -> np.ndarray:
        return count_completions(domain_of(self.family), self.missing, len(self.x), by_nodes=True)

    @property
    def seconds(self) -> float:
        """Predicted time of one evaluation."""
        return float(self._counts.sum()) * self.family.n_parameters * LISTED_SECONDS

    @cached_property
    def _kept(self) -> Completions:
        return complete_in_all_ways(domain_of(self.family), self.x, self.missing)

    def _blocks(self) -> Iterator[tuple[slice, Completions]]:
        """Yield rows with their completions; all at once, and kept, where there is room."""
        if self._counts.sum() * (self.x.shape[1] + 32.0) <= MOST_KEPT_BYTES:
            yield slice(0, self.n_rows), self._kept
            return
        block = np.cumsum(self._counts) // LISTED_AT_ONCE
        ends = [*(1 + np.flatnonzero(np.diff(block))).tolist(), self.n_rows]
        for rows in map(slice, [0, *ends], ends):
            missing = None if self.missing is None else self.missing[rows]
            yield rows, complete_in_all_ways(domain_of(self.family), self.x[rows], missing)

    def log_evidence(self, theta: np.ndarray) -> np.ndarray:
        """Return the log of the summed weights of each row's completions."""
        model = model_at(self.family, theta)
        return np.concatenate([np.empty(0), *(listed.posterior(model)[0] for _, listed in self._blocks())])

    def expect(self, theta: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each row's log-evidence, and the weighted sum of their expected statistics."""
        model, evidence, statistics = model_at(self.family, theta), np.empty(self.n_rows), np.zeros(np.size(theta))
        for rows, listed in self._blocks():
            evidence[rows], probabilities = listed.posterior(model)
            shares = probabilities * weights[rows][listed.row]
            for sign in (1.0, -1.0):  # means have weights of one sign
                part = np.maximum(sign * shares, 0.0)
                if part.sum() > 0:
                    statistics += sign * part.sum() * self.family.mean_statistics(listed.states, part)
        return evidence, statistics

    def cell_probabilities(self, theta: np.ndarray) -> np.ndarray:
        """Return the probabilities of the cells' values given the present cells."""
        model = model_at(self.family, theta)
        tables = [listed.cell_probabilities(model, domain_of(self.family)) for _, listed in self._blocks()]
        return np.concatenate(tables)


@dataclass(frozen=True, eq=False)
class OneByOne:
    """Rows that are summed each by itself, by exact inference on what it does not show given what it does.

    Rows that lack the same cells share one planned engine.

    Parameters
    ----------
    family : Family
        That can be conditioned (`given`).
    x : ndarray of shape (n_rows, n_variables)
        The rows.
    missing : ndarray of bool, shape (n_rows, n_variables)
        Which cells are missing, at least one of each row.
    max_seconds : float
        Refuse when one row is predicted to take longer.
    """

    family: Any
    x: np.ndarray
    missing: np.ndarray
    max_seconds: float = 60.0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.x)

    @property
    def seconds(self) -> float:
        """Predicted time of one evaluation, by the row that lacks most."""
        counts = count_completions(domain_of(self.family), self.missing, self.n_rows, by_nodes=True)
        heaviest = int(counts.argmax())
        return self.n_rows * (ROW_SECONDS + predict_cost(self._given(heaviest).family).seconds)

    def _given(self, row: int) -> Given[Any]:
        present = np.flatnonzero(~self.missing[row])
        return self.family.given(present, given_codes(domain_of(self.family), self.x[row])[present])

    @cached_property
    def groups(self) -> list[np.ndarray]:
        """The numbers of the rows that lack the same cells."""
        _, number = np.unique(self.missing, axis=0, return_inverse=True)
        order = np.argsort(number.ravel(), kind="stable")
        return np.split(order, np.flatnonzero(np.diff(number.ravel()[order])) + 1)

    @cached_property
    def _engines(self) -> dict[int, Engine]:
        return {}

    def conditionals(self, theta: np.ndarray) -> Iterator[Conditional]:
        """Yield the distribution of what each row does not show, group by group."""
        for group, rows in enumerate(self.groups):
            for row in rows.tolist():
                given = self._given(row)
                yield Conditional(row, group, given, *given.parameters(theta))

    def answers(self, conditional: Conditional) -> ExactAnswers[Any]:
        """Return exact answers about what a row does not show."""
        family, engine = conditional.given.family, self._engines.get(conditional.group)
        if engine is None or engine.family is not family:  # some families depend on the values that are given
            engine = self._engines[conditional.group] = plan_exact(family, max_seconds=self.max_seconds)
        return engine.at(conditional.theta)

    def log_evidence(self, theta: np.ndarray) -> np.ndarray:
        """Return the log of each row's summed weight."""
        evidence = np.empty(self.n_rows)
        for each in counted(self.conditionals(theta), "rows one by one", self.n_rows):
            evidence[each.row] = each.constant + self.answers(each).log_partition
        return evidence

    def expect(self, theta: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each row's log-evidence, and the weighted sum of their expected statistics."""
        evidence, total = np.empty(self.n_rows), np.zeros(np.size(theta))
        for row, own, statistics in self.statistics(theta):
            evidence[row] = own
            total += weights[row] * statistics
        return evidence, total

    def statistics(self, theta: np.ndarray) -> Iterator[tuple[int, float, np.ndarray]]:
        """Yield each row's number, its log-evidence, and its expected statistics (the clamped phase of YK15)."""
        for each in self.conditionals(theta):
            answers = self.answers(each)
            expected = each.given.statistics(answers.moments)  # first, so that it shares its sums with log Z
            yield each.row, each.constant + answers.log_partition, expected

    def cell_probabilities(self, theta: np.ndarray) -> np.ndarray:
        """Return the probabilities of the cells' values given the present cells."""
        probabilities = value_indicators(domain_of(self.family), self.x)
        for each in counted(self.conditionals(theta), "rows one by one", self.n_rows):
            columns = value_columns(self.family, np.flatnonzero(self.missing[each.row]))
            probabilities[each.row, columns] = value_probabilities(self.family, self.answers(each))
        return probabilities


class Conditional(NamedTuple):
    """What a row does not show, given what it does.

    Parameters
    ----------
    row, group : int
        The number of the row, and of the rows that lack the same cells.
    given : Given
        The family of the missing cells, and the map of parameters.
    theta : ndarray
        The parameters of the missing cells.
    constant : float
        The log-weight of what is shown.
    """

    row: int
    group: int
    given: Given[Any]
    theta: np.ndarray
    constant: float


def value_probabilities(family: Any, answers: ExactAnswers[Any]) -> np.ndarray:
    """Return the probabilities of the values of some variables of a family, in columns like its `value_indicators`."""
    rest = answers.engine.family
    n, levels = sizes_of(rest).size, levels_of(rest)
    if domain_of(family).two_valued:  # what is left of others may be, and has two columns for each all the same
        if levels is None:
            return np.array([answers.marginal([node])[1] for node in range(n)])
        low, high = np.reshape(levels, (n, 2)).T
        return (answers.means - low) / (high - low)
    return np.concatenate([answers.marginal([node]) for node in range(n)])


def value_columns(family: Any, variables: np.ndarray) -> np.ndarray:
    """Return where the probabilities of some variables' values stand, in columns like `value_indicators`."""
    if domain_of(family).two_valued:
        return variables
    offsets = value_offsets(domain_of(family), sizes_of(family).size)
    return np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in variables])


def posterior_of(model: Any, data: Dataset, max_seconds: float = 60.0) -> Posterior:
    """Bind the states of a data set to a model's family."""
    return posterior(model.family, data.states, data.missing, max_seconds)


def clamped_seconds(model: Any, data: Dataset) -> float:
    """Predict the time to sum the missing cells of all rows out once, right to an order of magnitude.

    On a cluster it is that of a partition, on average.
    """
    return data.mean(partial(_seconds, model))


def _seconds(model: Any, data: Dataset) -> float:
    return posterior_of(model, data).seconds


def is_quick(model: Any, data: Dataset, patience: float = PATIENT_SECONDS) -> bool:
    """Say whether all missing cells can be summed out exactly in every step of a fit, within so many seconds."""
    return clamped_seconds(model, data) <= patience


def log_evidence(model: Any, data: Dataset, max_seconds: float = 60.0) -> np.ndarray:
    """Return the log-weight of each state, summed over its missing cells; subtract log Z for the log-probability.

    The states that are summed one by one share `max_seconds`, but each may take one.
    """
    if keeps(model.family, Layered):  # rows of a machine of two layers are sums over one of them
        from gibbsian.inference.layer_missing import layer_evidence

        return layer_evidence(model, data)
    if not data.has_missing:
        return model.log_weights(data.states)
    rows = model.family, data.states, data.missing
    split = split_rows(*rows)
    each = max(1.0, max_seconds / max(1, len(split.heavy)))
    return _join(*rows, split, each).log_evidence(model.theta)
