"""Expectations by exact inference, free or given the present cells of the data: no error, no samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.estimate import Estimate
from gibbsian.expectations.clamped import CLAMPED, EXACT_CLAMPED, ClampedRows
from gibbsian.expectations.legacy import EXPECTATIONS, Rebuilt
from gibbsian.inference import Engine, plan_exact
from gibbsian.inference.posterior import Posterior, posterior
from gibbsian.models.base import ExponentialFamily, Family, Model
from gibbsian.settings import check, declared, number, positional


@EXPECTATIONS.register("exact")
@declared(frozen=True)
class Exact:
    """The exact expectation of the model's statistics, with the log-partition function.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = gb.expectations.Exact()
    >>> estimate, _ = expectation(model, None)
    >>> estimate.value.round(4), estimate.stderr
    (array([0.    , 0.    , 0.4621]), 0.0)
    """

    max_seconds: float = positional(
        kw_only=False, default=number(60.0, "Refuse when it is predicted to take longer.", above=0)
    )

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model[Family], data: Dataset | None, rng: np.random.Generator) -> Rebuilt[Engine]:
        """Choose the engine, once for all parameters."""
        return Rebuilt(plan_exact(model.family, max_seconds=self.max_seconds))

    def __call__(
        self, model: Model[ExponentialFamily], state: Rebuilt[Engine] | None = None
    ) -> tuple[Estimate, Rebuilt[Engine]]:
        """Return the expectation."""
        plan = self.init(model, None, np.random.default_rng(0)) if state is None else state
        answers = plan.value.at(model.theta)
        return Estimate(answers.moments, parts={"log_partition": Estimate(answers.log_partition)}), plan


class ExactRows(NamedTuple):
    """The statistics of complete rows, the weights of the others, and these bound to the family; None without any."""

    constant: Floats
    weights: Floats
    posterior: Posterior | None


@CLAMPED.register("exact")
@EXACT_CLAMPED.register("pairwise")
@EXACT_CLAMPED.register("products")
@EXACT_CLAMPED.register("tables")
@EXACT_CLAMPED.register("potentials")
@EXACT_CLAMPED.register("quadrature")
@EXACT_CLAMPED.register("full-span")
@declared(frozen=True)
class ClampedExact:
    """The exact expectation given the present cells, with the mean log-evidence.

    Rows whose missing cells hardly interact, or are few, are summed together, all at once; others go through exact
    inference on the missing cells, row by row, which a sparse graph between them makes possible (see `posterior`).

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations import ClampedExact
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
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

    def init(self, model: Model[ExponentialFamily], data: Dataset, rng: np.random.Generator) -> Rebuilt[ExactRows]:
        """Prepare what does not depend on the parameters."""
        rows, bound = ClampedRows.of(model, data), None
        if rows.data is not None:
            bound = posterior(model.family, rows.data.states, rows.data.missing, self.max_seconds)
        return Rebuilt(ExactRows(rows.constant, rows.shares, bound))

    def __call__(self, model: Model[Family], state: Rebuilt[ExactRows]) -> tuple[Estimate, Rebuilt[ExactRows]]:
        """Return the expectation; its part `log_partition` is the mean log-evidence of the rows."""
        statistics, weights, bound = state.value
        value = float(model.theta @ statistics)
        if bound is not None:
            log_evidence, expected = bound.expect(model.theta, weights)
            value += float(weights @ log_evidence)
            statistics = statistics + expected
        return Estimate(statistics, parts={"log_partition": Estimate(value)}), state
