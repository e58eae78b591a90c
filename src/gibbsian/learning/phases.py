"""The gradient of the likelihood as a difference of two phases: statistics of the model less those of the data.

Where cells are missing, or units hidden, the data's statistics are an expectation too, given the present cells (YK15).
All moment matching is this difference with its phases taken in some way: exact, CD, PCD, SMCI, SMCI+PCD.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data.rows import Rows
from gibbsian.expectations import BoundExpectation, Expectation, Sampled, as_expectation
from gibbsian.expectations.exact import BoundExact
from gibbsian.expectations.imputation import fill_at_random, mean_statistics
from gibbsian.expectations.per_call import bind_expectation, completed_rows
from gibbsian.expectations.rows import MaskedRows
from gibbsian.inference.posterior import PATIENT_SECONDS, clamped_seconds
from gibbsian.learning.gradients import Gradient
from gibbsian.models.base import ExponentialFamily, Model
from gibbsian.rng import Key

C = TypeVar("C")
F = TypeVar("F")
# What an exact clamped phase may take beside a free phase that is sampled: some sweeps of its chains. For 5,000 rows of
# 60 columns, a tenth of the cells missing, it takes ten times as long as chains with a third of the free phase's noise.
HURRIED_SECONDS = 0.05


class PhaseStates(NamedTuple, Generic[C, F]):
    """The states of both phases."""

    clamped: C
    free: F


@dataclass(frozen=True, eq=False)
class PhaseDifference(Generic[C, F]):
    """The gradient of minus the log-likelihood per row: the free expectation less the clamped one.

    Parameters
    ----------
    clamped : BoundExpectation
        The statistics of the data, given their present cells.
    free : BoundExpectation
        The statistics of the model.
    data : Rows
        The rows.
    restarts : bool
        Whether the free phase begins at the rows as their missing cells are completed now.
    """

    clamped: BoundExpectation[C]
    free: BoundExpectation[F]
    data: Rows
    restarts: bool

    def init(self, theta: Floats, key: Key) -> PhaseStates[C, F]:
        """Return the states of both phases before the first call."""
        return PhaseStates(self.clamped.init(theta, key.fold("clamped")), self.free.init(theta, key.fold("free")))

    def __call__(
        self, theta: Floats, state: PhaseStates[C, F], rows: Rows, key: Key
    ) -> tuple[Gradient, PhaseStates[C, F]]:
        """Return the gradient at theta; phases are bound to all rows."""
        data, clamped = self.clamped(theta, state.clamped)
        starts = completed_rows(self.data, self.clamped.samples(clamped)) if self.restarts else None
        model, free = self.free(theta, state.free, starts)
        stderr = np.hypot(model.monte_carlo_error, data.monte_carlo_error)
        return Gradient(model.value - data.value, np.nan, stderr), PhaseStates(clamped, free)

    def carry(self, theta: Floats, state: PhaseStates[C, F], key: Key) -> PhaseStates[C, F]:
        """Return the states of other rows as those of these: chains of the model go on."""
        return PhaseStates(self.clamped.init(theta, key.fold("clamped")), state.free)


def bind_phases(
    model: Model[ExponentialFamily], data: Rows, free: Expectation[F], clamped: str | Expectation[Any] | None = None
) -> PhaseDifference[Any, F]:
    """Bind both phases to a model and rows; chains of the model begin at the rows."""
    restarts = data.has_missing and free.needs_starts
    # chains of the model forget where they start: missing cells are filled by the columns alone; those that restart
    # get completed rows with each call
    starts = fill_at_random(data, Key.of(0)) if not restarts else data if data.on_cluster else None
    hurried = isinstance(free, Sampled)
    bound = bind_clamped(clamped, model, data, HURRIED_SECONDS if hurried else PATIENT_SECONDS)
    if restarts:  # here, so that what completes no rows is refused before learning
        completed_rows(data, bound.samples(bound.init(model.theta, Key.of(0))))
    return PhaseDifference(bound, bind_expectation(free, model, None, starts), data, restarts)


def bind_clamped(
    clamped: str | Expectation[Any] | None,
    model: Model[ExponentialFamily],
    data: Rows,
    seconds: float = PATIENT_SECONDS,
) -> BoundExpectation[Any]:
    """Bind the clamped phase of rows; those without missing cells have the same statistics under any model.

    None chooses the exact one if that is predicted to take no longer than `seconds`, else chains of the missing cells.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.learning.phases import bind_clamped
    >>> data = gb.Dataset.read([[1, float("nan")], [-1, 1]], coding="spin")
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> type(bind_clamped(None, model, data)).__name__, type(bind_clamped("pcd", model, data)).__name__
    ('BoundExact', 'BoundSampled')
    """
    if not data.has_missing:
        return BoundExact(MaskedRows.complete(model.family, mean_statistics(model, data)), None)
    if clamped is None:
        clamped = "exact" if clamped_seconds(model, data) <= seconds else "pcd"
    return bind_expectation(as_expectation(clamped, "clamped"), model, data)
