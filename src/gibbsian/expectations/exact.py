"""Expectations by exact inference: no error, no samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data.rows import Rows
from gibbsian.estimate import Estimate
from gibbsian.expectations.base import EXPECTATIONS, NoSamples, Starts
from gibbsian.expectations.rows import MaskedRows
from gibbsian.expectations.samples import Samples
from gibbsian.inference import Engine, plan_exact
from gibbsian.inference.completions import Completions, enumerate_completions
from gibbsian.inference.posterior import Posterior, posterior
from gibbsian.models.base import ExponentialFamily, Model
from gibbsian.registry import Registry
from gibbsian.rng import Key
from gibbsian.settings import check, declared, number, positional

# functions (model, rows, max_seconds) that bind the rows of a family whose rows are not all of its variables
EXACT_ROWS = Registry("exact expectation of rows", "gibbsian.expectations", "EXACT_ROWS")
NO_STATE = ()
NoState = tuple[()]


@EXPECTATIONS.register("exact")
@declared(frozen=True)
class Exact:
    """The exact expectation of the model's statistics, with the log-partition function or the mean log-evidence.

    Rows whose missing cells hardly interact, or are few, are summed together; others go through exact inference on
    their missing cells, which a sparse graph between these makes possible.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> free = gb.expectations.Exact().bind(model)
    >>> estimate, _ = free(model.theta, ())
    >>> estimate.value.round(4), estimate.stderr
    (array([0.    , 0.    , 0.4621]), 0.0)
    >>> rows = gb.Dataset.read([[1, float("nan")]], coding="spin")
    >>> clamped = gb.expectations.Exact().bind(model, rows)
    >>> clamped(model.theta, ())[0].value.round(4).tolist()                        # tanh(0.5) = 0.4621
    [1.0, 0.4621, 0.4621]
    """

    needs_starts: ClassVar[bool] = False

    max_seconds: float = positional(
        kw_only=False, default=number(60.0, "Refuse if a sum is predicted to take longer.", above=0)
    )

    def __post_init__(self) -> None:
        check(self)

    def bind(
        self, model: Model[ExponentialFamily], clamp: Rows | None = None, starts: Starts | None = None
    ) -> BoundExact:
        """Choose the engine, or bind the rows; `starts` are not used."""
        if clamp is not None and EXACT_ROWS.name_for(model.family):
            bound: BoundExact = EXACT_ROWS.of(model.family)(model, clamp, self.max_seconds)
            return bound
        rows = MaskedRows.of(model.family, clamp)
        if rows.all_missing:
            return BoundExact(rows, OneSum(plan_exact(model.family, max_seconds=self.max_seconds)))
        together = posterior(model.family, rows.states, rows.missing, self.max_seconds) if len(rows.states) else None
        return BoundExact(rows, together)


@dataclass(frozen=True, eq=False)
class OneSum:
    """One row whose cells are all missing: the sum over all states by an exact engine."""

    engine: Engine

    def expect(self, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return the log-evidence of the row, log Z, and its expected statistics times its weight."""
        answers = self.engine.at(theta)
        moments: Floats = weights[0] * answers.moments  # first, so that it shares its sums with log Z
        return np.array([answers.log_partition]), moments


@dataclass(frozen=True, eq=False)
class BoundExact(NoSamples):
    """Rows bound to a family: the statistics of complete rows, and a posterior of the others; None without any."""

    rows: MaskedRows
    posterior: Posterior | OneSum | None

    def init(self, theta: Floats, key: Key) -> NoState:
        """Return the state, which is empty."""
        return NO_STATE

    def __call__(self, theta: Floats, state: NoState, starts: Starts | None = None) -> tuple[Estimate, NoState]:
        """Return the expectation; its part `log_partition` is log Z, or the mean log-evidence of the rows."""
        value, statistics = float(theta @ self.rows.constant), self.rows.constant
        if self.posterior is not None:
            log_evidence, expected = self.posterior.expect(theta, self.rows.shares)
            value += float(self.rows.shares @ log_evidence)
            statistics = statistics + expected
        return Estimate(statistics, parts={"log_partition": Estimate(value)}), state


@dataclass(frozen=True)
class ListedCompletions:
    """The exact expectation by listing all completions of the rows, which are samples with weights at the same time.

    SMCI over data with missing cells takes the completions for samples.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> rows = gb.Dataset.read([[1, float("nan")], [-1, 1]], coding="spin")
    >>> bound = gb.expectations.ListedCompletions().bind(model, rows)
    >>> _, state = bound(model.theta, bound.init(model.theta, gb.rng.Key.of(0)))
    >>> samples = bound.samples(state)
    >>> samples.states.tolist(), samples.repeats.round(3).tolist()
    ([[0, 1], [1, 0], [1, 1]], [1.0, 0.269, 0.731])
    """

    needs_starts: ClassVar[bool] = False

    def bind(
        self, model: Model[ExponentialFamily], clamp: Rows | None = None, starts: Starts | None = None
    ) -> BoundCompletions:
        """List the completions; `starts` are not used."""
        rows = MaskedRows.of(model.family, clamp)
        return BoundCompletions(
            model.family, rows, enumerate_completions(model.family.variables, rows.states, rows.missing)
        )


@dataclass(frozen=True, eq=False)
class BoundCompletions:
    """Completions of rows; the state is the theta of the last call."""

    family: ExponentialFamily
    rows: MaskedRows
    completions: Completions

    def init(self, theta: Floats, key: Key) -> Floats:
        """Return the theta under which the rows are completed."""
        return theta

    def __call__(self, theta: Floats, state: Floats, starts: Starts | None = None) -> tuple[Estimate, Floats]:
        """Return the expectation, and theta."""
        evidence, weights = self._posterior(theta)
        statistics = self.rows.constant
        if len(weights):
            expected = self.family.mean_statistics(self.completions.states, weights) * weights.sum()
            statistics = statistics + expected
        value = float(theta @ self.rows.constant + self.rows.shares @ evidence)
        return Estimate(statistics, parts={"log_partition": Estimate(value)}), theta

    def _posterior(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the log-evidence of the rows, and the weight of each completion."""
        logs = self.family.log_weights(theta, self.completions.states)
        evidence, probabilities = self.completions.posterior(logs)
        return evidence, probabilities * self.rows.shares[self.completions.row]

    def samples(self, state: Floats, copy: int | None = None) -> Samples:
        """Return the complete rows and all completions of the others, by their probabilities."""
        return self.rows.completed(self.completions.states, self._posterior(state)[1])
