"""Posteriors: rows bound to a family, with missing cells and hidden units summed out at any parameters.

A missing cell is a hidden variable of its row, and a hidden unit a variable that is missing in every row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, Slice, States
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.errors import TooExpensiveError
from gibbsian.inference.completions import (
    Completions,
    count_completions,
    enumerate_completions,
    value_columns,
    value_indicators,
)
from gibbsian.inference.engine import Engine, ExactAnswers, plan_exact, predict_cost
from gibbsian.models.base import DiscreteFamily, Family, Model, keeps
from gibbsian.models.given import Given
from gibbsian.models.rows import patterns_of
from gibbsian.models.variables import Variables
from gibbsian.progress import counted
from gibbsian.registry import Registry

# functions that bind the rows of a family that are cheap together, by the names of the families: see `split_rows`
POSTERIORS = Registry("posterior", "gibbsian.inference", "POSTERIORS")
# Maximum number of completions of an enumerated row: eight missing cells of two values.
MAX_LISTED = 2**8
# Maximum memory of completions that are kept between evaluations; others are enumerated again, so many at a time.
MAX_KEPT_BYTES, LISTED_AT_ONCE = 2.0**28, 2**16
# Seconds for one statistic of one enumerated completion.
LISTED_SECONDS = 2e-9
# Seconds for a row that is summed alone, besides its sum.
ROW_SECONDS = 1e-3
# Maximum seconds of one exact sum over missing cells in every step of a fit.
PATIENT_SECONDS = 0.5


@runtime_checkable
class Posterior(Protocol):
    """Rows of data bound to a family, with missing cells and hidden units summed out exactly."""

    @property
    def seconds(self) -> float:
        """Predicted time of one evaluation."""

    def log_evidence(self, theta: Floats) -> Floats:
        """Return the log of each row's weight, summed over its missing cells: log P + log Z."""

    def expect(self, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return each row's log-evidence, and the weighted sum of their expected statistics."""

    def cell_probabilities(self, theta: Floats) -> Floats:
        """Return the probabilities of the cells' values given the present cells, in columns as of `value_indicators`.

        Rows of layers have the columns of the values of all layers.
        """


class Split(NamedTuple):
    """The indices of the rows that are cheap together, these rows bound, and the indices of the others."""

    light: Integers
    together: Posterior
    heavy: Integers


def posterior(family: Family, x: States, missing: Mask | None, max_seconds: float = 60.0) -> Posterior:
    """Bind rows to a family.

    The rows of `split_rows` are summed together, each of the others by an exact engine (`OneByOne`).

    Parameters
    ----------
    family : Family
        A discrete family, or a machine with two layers.
    x : ndarray of shape (n_rows, n_variables)
        The rows: codes, or numbers where variables are real; missing cells are not read. Rows of layers have the
        visible units alone.
    missing : ndarray of bool, or None
        Mask of the missing cells.
    max_seconds : float, default 60
        Refuse if one row is predicted to take longer.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.inference.posterior import posterior
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> rows = posterior(model.family, np.array([[1, 1]], np.int8), np.array([[False, True]]))
    >>> evidence, statistics = rows.expect(model.theta, np.ones(1))
    >>> statistics.round(4).tolist()                                                            # tanh 0.5
    [1.0, 0.4621, 0.4621]
    """
    return _joined(family, x, missing, split_rows(family, x, missing), max_seconds, np.arange(len(x)))


def _joined(
    family: Family, x: States, missing: Mask | None, split: Split, max_seconds: float, row_of: Integers
) -> Posterior:
    """Join the rows of a split with the others, one by one; `row_of` has the user's row of each, for messages."""
    light, together, heavy = split
    parts: list[tuple[Integers, Posterior]] = [(light, together)] if len(light) else []
    if len(heavy):
        assert missing is not None  # complete rows are light
        if not keeps(family, DiscreteFamily):
            row, n_hidden = int(np.flatnonzero(row_of == heavy[0])[0]), len(family.variables) - x.shape[1]
            cells = int(missing[heavy[0]].sum())
            reason = f"row {row} lacks {cells} cells, too many to sum over besides {n_hidden} hidden units"
            raise TooExpensiveError(reason, "leave the row out, or fill its cells first (impute samples them)")
        parts.append((heavy, OneByOne(family, x[heavy], missing[heavy], max_seconds)))
    return parts[0][1] if len(parts) == 1 else InParts(parts)


def split_rows(family: Family, x: States, missing: Mask | None) -> Split:
    """Bind the rows that are cheap together: by the function of `POSTERIORS` for the family, or by completions."""
    if not POSTERIORS.name_for(family) and keeps(family, DiscreteFamily):
        return split_by_count(family, x, missing)
    split: Split = POSTERIORS.of(family)(family, x, missing)
    return split


def split_by_count(family: DiscreteFamily, x: States, missing: Mask | None) -> Split:
    """Bind the rows with few completions."""
    counts = count_completions(family.variables, missing, len(x), by_nodes=True)
    light, heavy = np.flatnonzero(counts <= MAX_LISTED), np.flatnonzero(counts > MAX_LISTED)
    return Split(light, EnumeratedRows(family, x[light], None if missing is None else missing[light]), heavy)


@dataclass(frozen=True, eq=False)
class InParts:
    """Rows in parts that are summed in different ways.

    Parameters
    ----------
    parts : list of (ndarray, Posterior)
        The indices of some rows, and these rows bound.
    """

    parts: list[tuple[Integers, Posterior]]

    @property
    def seconds(self) -> float:
        """Predicted time of one evaluation."""
        return sum(part.seconds for _, part in self.parts)

    @cached_property
    def _order(self) -> Integers:
        """The place of each row among those of all parts."""
        return np.argsort(np.concatenate([np.empty(0, np.intp), *(rows for rows, _ in self.parts)]))

    def log_evidence(self, theta: Floats) -> Floats:
        """Return the log of each row's weight, summed over its missing cells."""
        return np.concatenate([np.empty(0), *(part.log_evidence(theta) for _, part in self.parts)])[self._order]

    def expect(self, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return each row's log-evidence, and the weighted sum of their expected statistics."""
        evidence: list[Floats] = [np.empty(0)]
        statistics: Floats = np.zeros(np.size(theta))
        for rows, part in self.parts:
            logs, expected = part.expect(theta, weights[rows])
            evidence.append(logs)
            statistics += expected
        return np.concatenate(evidence)[self._order], statistics

    def cell_probabilities(self, theta: Floats) -> Floats:
        """Return the probabilities of the cells' values given the present cells."""
        return np.concatenate([part.cell_probabilities(theta) for _, part in self.parts])[self._order]


@dataclass(frozen=True, eq=False)
class EnumeratedRows:
    """Rows with few completions, which are enumerated: of any discrete family.

    Parameters
    ----------
    family : DiscreteFamily
        The family.
    x : ndarray of shape (n_rows, n_variables)
        The rows.
    missing : ndarray of bool, or None
        Mask of the missing cells.
    """

    family: DiscreteFamily
    x: States
    missing: Mask | None

    @cached_property
    def _counts(self) -> Floats:
        return count_completions(self.family.variables, self.missing, len(self.x), by_nodes=True)

    @property
    def seconds(self) -> float:
        """Predicted time of one evaluation."""
        return float(self._counts.sum()) * self.family.n_parameters * LISTED_SECONDS

    @cached_property
    def _cached(self) -> Completions:
        return enumerate_completions(self.family.variables, self.x, self.missing)

    def _blocks(self) -> Iterator[tuple[Slice, Completions]]:
        """Yield rows with their completions; all at once, and kept, if there is memory."""
        if self._counts.sum() * (self.x.shape[1] + 32.0) <= MAX_KEPT_BYTES:
            yield slice(0, len(self.x)), self._cached
            return
        block = np.cumsum(self._counts) // LISTED_AT_ONCE
        ends = [*(1 + np.flatnonzero(np.diff(block))).tolist(), len(self.x)]
        for rows in map(slice, [0, *ends], ends):
            missing = None if self.missing is None else self.missing[rows]
            yield rows, enumerate_completions(self.family.variables, self.x[rows], missing)

    def _posteriors(self, theta: Floats) -> Iterator[tuple[Slice, Completions, Floats, Floats]]:
        """Yield rows, their completions, the log-evidence, and the probabilities of the completions."""
        for rows, completions in self._blocks():
            yield rows, completions, *completions.posterior(self.family.log_weights(theta, completions.states))

    def log_evidence(self, theta: Floats) -> Floats:
        """Return the log of the summed weights of each row's completions."""
        return np.concatenate([np.empty(0), *(evidence for _, _, evidence, _ in self._posteriors(theta))])

    def expect(self, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return each row's log-evidence, and the weighted sum of their expected statistics."""
        evidence, statistics = np.empty(len(self.x)), np.zeros(np.size(theta))
        for rows, completions, evidence[rows], probabilities in self._posteriors(theta):
            posterior = probabilities * weights[rows][completions.row]
            for sign in (1.0, -1.0):  # the weights of a mean have one sign
                part = np.maximum(sign * posterior, 0.0)
                if part.sum() > 0:
                    statistics += sign * part.sum() * self.family.mean_statistics(completions.states, part)
        return evidence, statistics

    def cell_probabilities(self, theta: Floats) -> Floats:
        """Return the probabilities of the cells' values given the present cells."""
        variables, blocks = self.family.variables, []
        for _, completions, evidence, probabilities in self._posteriors(theta):
            codes, n_rows = variables.codes_of(completions.states), len(evidence)
            tables = [
                np.bincount(completions.row * size + codes[:, i], probabilities, n_rows * size).reshape(n_rows, size)
                for i, size in enumerate(variables.sizes)
            ]
            blocks.append(np.hstack([table[:, 1:] for table in tables] if variables.two_valued else tables))
        return np.concatenate(blocks)


@dataclass(frozen=True, eq=False)
class OneByOne:
    """Rows that are summed one by one, by exact inference on the missing cells given the present ones.

    Rows with the same missing cells share one planned engine.

    Parameters
    ----------
    family : DiscreteFamily
        The family.
    x : ndarray of shape (n_rows, n_variables)
        The rows.
    missing : ndarray of bool, shape (n_rows, n_variables)
        Mask of the missing cells, at least one of each row.
    max_seconds : float
        Refuse if one row is predicted to take longer.
    """

    family: DiscreteFamily
    x: States
    missing: Mask
    max_seconds: float = 60.0

    @property
    def seconds(self) -> float:
        """Predicted time of one evaluation, if all rows were as slow as the one with the most completions."""
        counts = count_completions(self.family.variables, self.missing, len(self.x), by_nodes=True)
        return len(self.x) * (ROW_SECONDS + predict_cost(self._given(int(counts.argmax())).family).seconds)

    def _given(self, row: int) -> Given[DiscreteFamily]:
        present = np.flatnonzero(~self.missing[row])
        return self.family.given(present, self.x[row, present])

    @cached_property
    def _engines(self) -> dict[int, Engine]:
        return {}

    def conditionals(self, theta: Floats) -> Iterator[Conditional]:
        """Yield the distribution of the missing cells of each row, group by group."""
        for group, (rows, _) in enumerate(patterns_of(self.x, self.missing)):
            for row in rows.tolist():
                given = self._given(row)
                yield Conditional(row, group, given, *given.parameters(theta))

    def answers(self, conditional: Conditional) -> ExactAnswers:
        """Return exact answers about the missing cells of a row."""
        family, engine = conditional.given.family, self._engines.get(conditional.group)
        if engine is None or engine.family is not family:  # some families depend on the values that are given
            engine = self._engines[conditional.group] = plan_exact(family, max_seconds=self.max_seconds)
        return engine.at(conditional.theta)

    def log_evidence(self, theta: Floats) -> Floats:
        """Return the log of each row's summed weight."""
        evidence: Floats = np.empty(len(self.x))
        for each in counted(self.conditionals(theta), "rows one by one", len(self.x)):
            evidence[each.row] = each.constant + self.answers(each).log_partition
        return evidence

    def expect(self, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return each row's log-evidence, and the weighted sum of their expected statistics."""
        evidence, total = np.empty(len(self.x)), np.zeros(np.size(theta))
        for row, evidence[row], statistics in self.statistics(theta):
            total += weights[row] * statistics
        return evidence, total

    def statistics(self, theta: Floats) -> Iterator[tuple[int, float, Floats]]:
        """Yield each row's index, its log-evidence, and its expected statistics (the clamped phase of YK15)."""
        for each in self.conditionals(theta):
            answers = self.answers(each)
            expected = each.given.statistics(answers.moments)  # first, so that it shares its sums with log Z
            yield each.row, each.constant + answers.log_partition, expected

    def cell_probabilities(self, theta: Floats) -> Floats:
        """Return the probabilities of the cells' values given the present cells."""
        variables, probabilities = self.family.variables, value_indicators(self.family.variables, self.x)
        for each in counted(self.conditionals(theta), "rows one by one", len(self.x)):
            columns = value_columns(variables, self.missing[each.row])
            probabilities[each.row, columns] = value_probabilities(variables, self.answers(each))
        return probabilities


class Conditional(NamedTuple):
    """The distribution of the missing cells of a row given the present ones.

    Parameters
    ----------
    row, group : int
        The index of the row, and of the group of rows with the same missing cells.
    given : Given
        The family of the missing cells, and the map of parameters.
    theta : ndarray
        The parameters of the missing cells.
    constant : float
        The log-weight of the present cells.
    """

    row: int
    group: int
    given: Given[DiscreteFamily]
    theta: Floats
    constant: float


def value_probabilities(variables: Variables, answers: ExactAnswers) -> Floats:
    """Return the probabilities of the values of some of the variables, in columns as of `value_indicators`."""
    rest = answers.engine.family.variables
    if variables.two_valued and rest.scores is not None:
        low, gap = rest.lows_and_gaps
        return (answers.means - low) / gap
    return np.concatenate([answers.marginal([node])[int(variables.two_valued) :] for node in range(len(rest))])


def clamped_seconds(model: Model[Family], data: Rows) -> float:
    """Predict the time of one exact sum over the missing cells of all rows, right to an order of magnitude.

    On a cluster it is that of a partition, on average.
    """
    return data.mean(lambda part: posterior(model.family, part.states, part.missing).seconds)


def log_evidence(model: Model[Family], data: Dataset) -> Floats:
    """Return the log-weight of each state, summed over its missing cells; subtract log Z for the log-probability.

    States that are summed one by one share a minute, with at least one second each.
    """
    if not data.has_missing and data.n_variables == model.n_variables:
        return model.log_weights(data.states)
    rows = model.family, data.states, data.missing
    split = split_rows(*rows)
    return _joined(*rows, split, max(1.0, 60.0 / max(1, len(split.heavy))), data.row_of).log_evidence(model.theta)
