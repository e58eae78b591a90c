"""Exact likelihood, with missing cells summed out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import TooExpensiveError
from gibbsian.inference import exact
from gibbsian.inference.missing import clamped_moments, complete_in_all_ways, heavy_states, light_states
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
        self._check_cost(model, data)
        evidence = _hidden_cells(data, self.max_seconds) if data.has_missing else _complete_rows(model, data)

        def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
            current = model.replace(theta)
            log_weight, statistics = evidence(current)
            moments = exact(current, max_seconds=self.max_seconds).moments()
            return moments.log_partition - log_weight, (moments.statistics - statistics) / model.temperature

        return function

    def _check_cost(self, model: Model, data: Dataset) -> None:
        """Refuse before anything is built; with missing cells there is no pseudolikelihood to turn to."""
        try:
            exact(model, max_seconds=self.max_seconds)
        except TooExpensiveError as error:
            if not data.has_missing:
                raise
            sentence = str(error).removesuffix("use sampling or pseudolikelihood")
            raise TooExpensiveError(
                f"{sentence}missing cells need it, so use Dataset.complete_rows(), a sparser graph or fewer columns"
            ) from None


def _complete_rows(model, data):
    """Mean log-weight and statistics of the data: the statistics are computed once."""
    statistics = model.mean_statistics(data.states, data.weights)

    def evidence(current: Model) -> tuple[float, np.ndarray]:
        return float(current.theta @ statistics / current.temperature), statistics

    return evidence


def _hidden_cells(data, max_seconds):
    """The same, averaged over what the missing cells may be (the clamped phase of YK15).

    States with few missing cells have their completions listed once; those with many are summed exactly each time.
    """
    shares = data.weights / data.total_weight
    light, heavy = light_states(data), heavy_states(data)
    completions = complete_in_all_ways(data, light) if len(light) else None

    def evidence(current: Model) -> tuple[float, np.ndarray]:
        value, statistics = 0.0, np.zeros_like(current.theta)
        if completions is not None:
            log_evidence, posterior = completions.posterior(current)
            weights = posterior * shares[light][completions.row]
            value += float(shares[light] @ log_evidence)
            statistics += current.mean_statistics(completions.states, weights) * weights.sum()
        for state in heavy:
            log_weight, expected = clamped_moments(current, data, state, max_seconds)
            value += shares[state] * log_weight
            statistics += shares[state] * expected
        return value, statistics

    return evidence
