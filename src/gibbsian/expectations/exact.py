"""Expectations by exact inference: no error, no samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.expectations.base import EXPECTATIONS, Estimate
from gibbsian.inference import exact
from gibbsian.models import Model


@EXPECTATIONS.register("exact")
@dataclass(frozen=True)
class Exact:
    """The exact expectation of the model's statistics, with the log-partition function.

    Parameters
    ----------
    max_seconds : float
        Refuse when the prediction is longer.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = gb.expectations.Exact()
    >>> estimate, _ = expectation(model, None)
    >>> estimate.mean.round(4), estimate.stderr
    (array([0.    , 0.    , 0.4621]), array([0., 0., 0.]))
    """

    max_seconds: float = 60.0

    def init(self, model: Model, data: Dataset | None, rng: np.random.Generator) -> None:
        """Nothing to keep between calls."""

    def __call__(self, model: Model, state: Any = None) -> tuple[Estimate, None]:
        """Return the expectation."""
        moments = exact(model, max_seconds=self.max_seconds).moments()
        return Estimate(moments.statistics, np.zeros_like(moments.statistics), moments.log_partition), None
