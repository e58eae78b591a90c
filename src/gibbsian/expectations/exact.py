"""Expectations by exact inference, free or given the present cells of the data: no error, no samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.data import Dataset
from gibbsian.estimate import Estimate
from gibbsian.expectations.base import EXPECTATIONS, Rebuilt
from gibbsian.expectations.clamped import CLAMPED, EXACT_CLAMPED, ClampedRows
from gibbsian.inference import Engine, plan_exact
from gibbsian.inference.missing import RowSums, clamped_moments, split_rows
from gibbsian.models import Model
from gibbsian.settings import check, declared, number, positional


@EXPECTATIONS.register("exact")
@declared(frozen=True)
class Exact:
    """The exact expectation of the model's statistics, with the log-partition function.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = gb.expectations.Exact()
    >>> estimate, _ = expectation(model, None)
    >>> estimate.value.round(4), estimate.stderr
    (array([0.    , 0.    , 0.4621]), array([0., 0., 0.]))
    """

    max_seconds: float = positional(
        kw_only=False, default=number(60.0, "Refuse when it is predicted to take longer.", above=0)
    )

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model, data: Dataset | None, rng: np.random.Generator) -> Rebuilt[Engine]:
        """Choose the engine, once for all parameters."""
        return Rebuilt(plan_exact(model.family, max_seconds=self.max_seconds))

    def __call__(self, model: Model, state: Rebuilt[Engine] | None = None) -> tuple[Estimate, Rebuilt[Engine]]:
        """Return the expectation."""
        plan = self.init(model, None, np.random.default_rng(0)) if state is None else state
        answers = plan.value.at(model.theta)
        return Estimate(answers.moments, parts={"log_partition": Estimate(answers.log_partition)}), plan


@dataclass(frozen=True, eq=False)
class ExactRows:
    """The rows: those that are summed out together, in parts, and those that are summed one by one."""

    rows: ClampedRows
    parts: tuple[RowSums, ...]
    heavy: np.ndarray


@CLAMPED.register("exact")
@EXACT_CLAMPED.register("exponential-family")
@declared(frozen=True)
class ClampedExact:
    """The exact expectation given the present cells, with the mean log-evidence.

    Rows whose missing cells hardly interact, or are few, are summed together, all at once; others go through exact
    inference on the missing cells, row by row, which a sparse graph between them makes possible.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations import ClampedExact
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = ClampedExact()
    >>> data = gb.Dataset.read([[1, float("nan")]], coding="spin")
    >>> estimate, _ = expectation(model, expectation.init(model, data, np.random.default_rng(0)))
    >>> estimate.value.round(4).tolist()                                           # tanh(0.5) = 0.4621
    [1.0, 0.4621, 0.4621]
    """

    max_seconds: float = positional(
        kw_only=False, default=number(10.0, "Refuse when one row is predicted to take longer.", above=0)
    )

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> Rebuilt[ExactRows]:
        """Prepare what does not depend on the parameters."""
        rows = ClampedRows.of(model, data)
        if rows.data is None:
            return Rebuilt(ExactRows(rows, (), np.zeros(0, np.int64)))
        split = split_rows(model, rows.data, at_once=np.inf)
        return Rebuilt(ExactRows(rows, tuple(split.parts), split.heavy))

    def __call__(self, model: Model, state: Rebuilt[ExactRows]) -> tuple[Estimate, Rebuilt[ExactRows]]:
        """Return the expectation; its part `log_partition` is the mean log-evidence of the rows."""
        rows, statistics = state.value.rows, state.value.rows.constant.copy()
        value = float(model.theta @ statistics)
        for part in state.value.parts:
            shares = rows.shares[part.which]
            log_evidence, expected = part.expect(model, shares)
            value += float(shares @ log_evidence)
            statistics += expected
        for row in state.value.heavy:
            assert rows.data is not None
            log_weight, expected = clamped_moments(model, rows.data, row, self.max_seconds)
            value += rows.shares[row] * log_weight
            statistics += rows.shares[row] * expected
        return Estimate(statistics, parts={"log_partition": Estimate(value)}), state
