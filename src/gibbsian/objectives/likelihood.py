"""Exact likelihood, with missing cells summed out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import TooExpensiveError
from gibbsian.expectations import ClampedExact
from gibbsian.inference import ExactInference, plan_exact
from gibbsian.models import Model
from gibbsian.objectives.base import OBJECTIVES, Function


@OBJECTIVES.register("likelihood")
@dataclass(frozen=True)
class Likelihood:
    """Minus the mean log-likelihood of the rows, by exact inference.

    A missing cell is a hidden variable of its row: the row's likelihood is summed over the values it might have.

    Parameters
    ----------
    max_seconds : float
        Refuse when one evaluation is predicted to take longer.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.objectives import Likelihood, value_and_gradient
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1]])
    >>> value, gradient = value_and_gradient(Likelihood(), gb.PairwiseModel.zeros(gb.graphs.complete(2)), data)
    >>> round(value, 6), gradient.round(3).tolist()
    (1.386294, [-0.333, 0.333, -0.333])
    """

    max_seconds: float = 10.0

    def bind(self, model: Model, data: Dataset) -> Function:
        """Return the function of theta."""
        plan = self._plan(model, data)
        clamped = ClampedExact(self.max_seconds)
        rows = clamped.init(model, data, np.random.default_rng())

        def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
            current = model.replace(theta)
            moments, (data_side, _) = plan(current).moments(), clamped(current, rows)
            assert data_side.log_partition is not None
            value = moments.log_partition - data_side.log_partition
            return value, (moments.statistics - data_side.mean) / model.temperature

        return function

    def _plan(self, model: Model, data: Dataset) -> Callable[[Model], ExactInference]:
        """Choose the engine or refuse; with missing cells there is no pseudolikelihood to turn to."""
        try:
            return plan_exact(model, self.max_seconds)
        except TooExpensiveError as error:
            if not data.has_missing:
                raise
            raise TooExpensiveError(
                error.reason,
                "with missing cells use `learner='pcd'`, which samples them, a sparser graph or "
                "`Dataset.complete_rows()`",
            ) from None
