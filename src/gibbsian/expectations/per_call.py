"""Expectations over the rows of a cluster, taken by the workers that hold them; nothing stays there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, NamedTuple, TypeVar, cast, overload

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.errors import ArgumentError
from gibbsian.estimate import Estimate
from gibbsian.expectations.base import BoundExpectation, Expectation, Starts
from gibbsian.expectations.imputation import fingerprint_of
from gibbsian.models.base import ExponentialFamily, Model
from gibbsian.rng import Key

S = TypeVar("S")


def bind_expectation(
    expectation: Expectation[S],
    model: Model[ExponentialFamily],
    clamp: Rows | None = None,
    starts: Starts | None = None,
) -> BoundExpectation[S]:
    """Bind an expectation to rows wherever they are: those on a cluster are clamped, or started at, by its workers."""
    there = clamp is not None and clamp.on_cluster
    there |= expectation.needs_starts and isinstance(starts, Rows) and starts.on_cluster
    if there:
        return cast("BoundExpectation[S]", RestartedPerCall(expectation).bind(model, clamp, starts))
    return expectation.bind(model, clamp, starts)


@dataclass(frozen=True)
class RestartedPerCall(Generic[S]):
    """An expectation given rows on a cluster: each worker binds its own rows anew in every call.

    Chains that a worker kept would be lost with it. They begin anew in every call, from a key that the fit, the number
    of the call and the rows decide; so the bits do not depend on where a partition is, nor on what happened.

    Parameters
    ----------
    inner : Expectation
        What is taken of the rows of each worker: they are its `clamp`, or else its `starts`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> rows = gb.Dataset.read([[1, float("nan")], [-1, 1]], coding="spin")
    >>> bound = gb.expectations.RestartedPerCall(gb.expectations.Exact()).bind(model, rows)
    >>> bound(model.theta, bound.init(model.theta, gb.rng.Key.of(0)))[0].value.round(3).tolist()
    [0.0, 0.731, -0.269]
    """

    inner: Expectation[S]

    @property
    def needs_starts(self) -> bool:
        """Whether every call begins at complete rows."""
        return self.inner.needs_starts

    def bind(
        self, model: Model[ExponentialFamily], clamp: Rows | None = None, starts: Starts | None = None
    ) -> BoundPerCall[S]:
        """Remember the rows."""
        return BoundPerCall(self.inner, model, starts if clamp is None else clamp, clamp is not None)


class PerCallState(NamedTuple):
    """What seeds the workers, the number of calls so far, and theta of the last one."""

    key: Key
    n_calls: int
    theta: Floats


@dataclass(frozen=True, eq=False)
class BoundPerCall(Generic[S]):
    """An expectation of rows on a cluster."""

    inner: Expectation[S]
    model: Model[ExponentialFamily]
    rows: Starts | None
    clamped: bool

    def init(self, theta: Floats, key: Key) -> PerCallState:
        """Return what seeds the workers."""
        return PerCallState(key, 0, theta)

    def __call__(
        self, theta: Floats, state: PerCallState, starts: Starts | None = None
    ) -> tuple[Estimate, PerCallState]:
        """Return the mean over all rows, and its standard error from those of the partitions."""
        state = PerCallState(state.key, state.n_calls + 1, theta)
        rows = self.rows if self.clamped or starts is None else starts
        assert isinstance(rows, Rows)
        mean, variance, value = rows.mean(self._task(state).estimate)
        parts = {} if np.isnan(value) else {"log_partition": Estimate(float(value))}
        return Estimate(mean, np.sqrt(variance / rows.total_weight), parts), state

    def samples(self, state: PerCallState, copy: int | None = None) -> Rows:
        """Return the rows as the workers complete them."""
        assert isinstance(self.rows, Rows)
        return self.rows.map(partial(self._task(state).completed, copy))

    def _task(self, state: PerCallState) -> PartitionTask[S]:
        return PartitionTask(self.inner, self.model.replace(state.theta), self.clamped, state.key.fold(state.n_calls))


@dataclass(frozen=True)
class PartitionTask(Generic[S]):
    """What a worker does with the rows of a partition in one call."""

    inner: Expectation[S]
    model: Model[ExponentialFamily]
    clamped: bool
    key: Key

    def _called(self, data: Dataset) -> tuple[BoundExpectation[S], Estimate, S]:
        bound = self.inner.bind(self.model, data) if self.clamped else self.inner.bind(self.model, None, data)
        theta = self.model.theta
        return bound, *bound(theta, bound.init(theta, self.key.fold(fingerprint_of(data))))

    def estimate(self, data: Dataset) -> tuple[Floats, Floats, float]:
        """Return mean, variance times weight, and log-evidence or NaN."""
        _, estimate, _ = self._called(data)
        value = float(estimate.parts.get("log_partition", np.nan))
        return estimate.value, data.total_weight * estimate.monte_carlo_error**2, value

    def completed(self, copy: int | None, data: Dataset) -> Dataset:
        """Return the rows as they are completed."""
        if not data.has_missing:
            return data
        bound, _, state = self._called(data)
        return completed_rows(data, bound.samples(state, copy))


@overload
def completed_rows(data: Dataset, samples: Starts | None) -> Dataset: ...
@overload
def completed_rows(data: Rows, samples: Starts | None) -> Rows: ...
def completed_rows(data: Rows, samples: Starts | None) -> Rows:
    """Return completions of rows as rows with the columns of the data, of the same weight."""
    if isinstance(samples, Rows):
        return samples
    if samples is None or not isinstance(data, Dataset):
        raise ArgumentError(
            "gives no completed rows", "use `clamped='pcd'` or 'smci-pcd', or `learner='pcd'`", argument="clamped"
        )
    weights = samples.shares * data.total_weight
    number = np.arange(samples.n_samples)
    return replace(data, states=samples.states, weights=weights, missing=None, row_of=number, row_weights=weights)
