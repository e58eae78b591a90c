"""Rows with a mask, which clamped expectations share; the free one is of one row whose cells are all missing.

A missing cell is a hidden unit of its row, a hidden unit a column that is missing in every row (YK15).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Self, TypeVar, cast

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, States
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.estimate import Estimate
from gibbsian.expectations.base import BoundExpectation, NoSamples, Starts
from gibbsian.expectations.imputation import in_memory
from gibbsian.expectations.samples import Samples
from gibbsian.models.base import DiscreteFamily, ExponentialFamily, Model, keeps
from gibbsian.models.given import Given
from gibbsian.rng import Key

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class MaskedRows:
    """Rows as clamped expectations see them: complete rows are statistics, the others states with missing cells.

    Rows of zero weight are left out.

    Parameters
    ----------
    states : ndarray of shape (n_states, n_variables)
        The rows with missing cells.
    missing : ndarray of bool, same shape
        Their missing cells.
    shares : ndarray of shape (n_states,)
        The share of each of them in the weight of all rows.
    constant : ndarray
        What the complete rows add to the mean statistics.
    whole : Samples or None
        The complete rows, weighted by their shares.
    n_rows : int
        Rows of the user's table that those with missing cells stand for.
    data : Dataset or None
        All rows as they came.
    """

    states: States
    missing: Mask
    shares: Floats
    constant: Floats
    whole: Samples | None = None
    n_rows: int = 1
    data: Dataset | None = None

    @classmethod
    def of(cls, family: ExponentialFamily, clamp: Rows | None) -> Self:
        """Split the rows; None is one row whose cells are all missing."""
        n, zeros = len(family.variables), np.zeros(family.n_parameters)
        if clamp is None:
            states: States = np.zeros((1, n)) if family.variables.real else np.zeros((1, n), np.int8)
            return cls(states, np.ones((1, n), bool), np.ones(1), zeros)
        data = in_memory(clamp)
        shares, incomplete = data.weights / data.total_weight, data.holes.any(axis=1)
        complete, holed = np.flatnonzero(~incomplete & (shares > 0)), np.flatnonzero(incomplete & (shares > 0))
        whole, constant = None, zeros
        if len(complete):
            whole = Samples(data.states[complete], repeats=data.weights[complete])
            constant = family.mean_statistics(data.states[complete], shares[complete]) * shares[complete].sum()
        n_rows = int(np.isin(data.row_of, holed).sum())
        return cls(data.states[holed], data.holes[holed], shares[holed], constant, whole, n_rows, data)

    @classmethod
    def complete(cls, family: ExponentialFamily, statistics: Floats) -> Self:
        """Return rows without missing cells, given their mean statistics."""
        n = len(family.variables)
        return cls(np.zeros((0, n), np.int8), np.zeros((0, n), bool), np.zeros(0), statistics)

    @property
    def share(self) -> float:
        """The share of the rows with missing cells."""
        return float(self.shares.sum())

    @property
    def all_missing(self) -> bool:
        """Whether there is one row, all of whose cells are missing."""
        return self.whole is None and len(self.missing) == 1 and bool(self.missing.all())

    def completed(self, states: States, shares: Floats) -> Samples:
        """Return complete states and completions of the other rows, by their shares, as samples of all rows."""
        total, used = 1.0 if self.data is None else self.data.total_weight, shares > 0
        if self.whole is None:
            return Samples(states[used], repeats=total * shares[used])
        assert self.whole.repeats is not None
        repeats = np.concatenate([self.whole.repeats, total * shares[used]])
        return Samples(np.concatenate([self.whole.states, states[used]]), repeats=repeats)

    @cached_property
    def pointers(self) -> Integers:
        """The missing cells of row r are ``cells[pointers[r] : pointers[r + 1]]``."""
        return np.concatenate([[0], np.cumsum(self.missing.sum(axis=1))])

    @cached_property
    def cells(self) -> Integers:
        """The columns of the missing cells, row by row."""
        return np.nonzero(self.missing)[1].copy()


def row_by_row(
    model: Model[ExponentialFamily],
    rows: MaskedRows,
    bind: Callable[[Model[DiscreteFamily]], BoundExpectation[S]],
) -> BoundExpectation[S]:
    """Return the mean over rows of free expectations; callers hand its state on, whatever it is."""
    assert keeps(model.family, DiscreteFamily)
    return cast("BoundExpectation[S]", RowByRow(Model(model.family, model.theta), rows, bind))


class RowByRow(NoSamples, Generic[S]):
    """The mean over rows of the free expectations of their missing cells given the present ones, row by row.

    Any free expectation is a clamped one of the conditional distribution of each row. A state is the tuple of theirs.
    """

    def __init__(
        self,
        model: Model[DiscreteFamily],
        rows: MaskedRows,
        bind: Callable[[Model[DiscreteFamily]], BoundExpectation[S]],
    ):
        self.rows, self.each = rows, list[tuple[Given[DiscreteFamily], BoundExpectation[S]]]()
        for states, missing in zip(rows.states, rows.missing, strict=True):
            present = np.flatnonzero(~missing)
            given = model.family.given(present.tolist(), states[present])
            self.each.append((given, bind(Model.zeros(given.family))))

    def init(self, theta: Floats, key: Key) -> tuple[S, ...]:
        """Return the state of each row before the first call."""
        return tuple(
            bound.init(given.parameters(theta)[0], key.fold(row)) for row, (given, bound) in enumerate(self.each)
        )

    def __call__(
        self, theta: Floats, state: tuple[S, ...], starts: Starts | None = None
    ) -> tuple[Estimate, tuple[S, ...]]:
        """Return the mean over the rows, and the states of all."""
        mean, variance, known, after = self.rows.constant.copy(), np.zeros_like(theta), True, []
        evidence, squares, told = float(theta @ self.rows.constant), 0.0, True
        for share, (given, bound), own in zip(self.rows.shares, self.each, state, strict=True):
            rest, constant = given.parameters(theta)
            estimate, new = bound(rest, own)
            after.append(new)
            mean += share * given.statistics(estimate.value)
            error = np.append(estimate.monte_carlo_error, 0.0)[given.target]
            variance += (share * given.scale * error) ** 2
            known &= estimate.stderr is not None
            log_z = estimate.parts.get("log_partition", Estimate(np.nan))
            evidence += float(share * (constant + log_z.value))
            squares += float((share * log_z.monte_carlo_error) ** 2)
            told &= log_z.stderr is not None
        parts = {} if np.isnan(evidence) else {"log_partition": Estimate(evidence, np.sqrt(squares) if told else None)}
        return Estimate(mean, np.sqrt(variance) if known else None, parts), tuple(after)
