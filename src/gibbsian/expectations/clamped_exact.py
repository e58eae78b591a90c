"""The clamped phase by exact inference: all ways to fill the missing cells, each with its probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.data import Dataset
from gibbsian.expectations.base import Estimate, Rebuilt
from gibbsian.expectations.clamped import CLAMPED, ClampedRows
from gibbsian.inference.missing import RowSums, clamped_moments, split_rows
from gibbsian.models import Model
from gibbsian.settings import check, declared, number


@dataclass(frozen=True, eq=False)
class ExactRows:
    """The rows: those that are summed out together, in parts, and those that are summed one by one."""

    rows: ClampedRows
    parts: tuple[RowSums, ...]
    heavy: np.ndarray


@CLAMPED.register("exact")
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
    >>> estimate.mean.round(4).tolist()                                           # tanh(0.5) = 0.4621
    [1.0, 0.4621, 0.4621]
    """

    max_seconds: float = number(10.0, "Refuse when one row is predicted to take longer.", above=0, kw_only=False)

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
        """Return the expectation; `log_partition` is the mean log-evidence of the rows."""
        rows, statistics = state.value.rows, state.value.rows.constant.copy()
        value = float(model.theta @ statistics / model.temperature)
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
        return Estimate(statistics, np.zeros_like(statistics), value), state
