"""Expectations by exact inference: no error, no samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.expectations.base import EXPECTATIONS, Estimate, Rebuilt
from gibbsian.inference import plan_exact
from gibbsian.models import Model
from gibbsian.settings import check, declared, number

Plan = Callable[[Model], Any]


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
    >>> estimate.mean.round(4), estimate.stderr
    (array([0.    , 0.    , 0.4621]), array([0., 0., 0.]))
    """

    max_seconds: float = number(60.0, "Refuse when it is predicted to take longer.", above=0, kw_only=False)

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model, data: Dataset | None, rng: np.random.Generator) -> Rebuilt[Plan]:
        """Choose the engine, once for all parameters."""
        return Rebuilt(plan_exact(model, self.max_seconds))

    def __call__(self, model: Model, state: Rebuilt[Plan] | None = None) -> tuple[Estimate, Rebuilt[Plan]]:
        """Return the expectation."""
        plan = self.init(model, None, np.random.default_rng(0)) if state is None else state
        moments = plan.value(model).moments()
        return Estimate(moments.statistics, np.zeros_like(moments.statistics), moments.log_partition), plan
