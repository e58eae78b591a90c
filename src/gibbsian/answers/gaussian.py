"""Answers about Gaussian models: everything is a closed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.answers.about import ANSWERS
from gibbsian.answers.modes import Modes, Search
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.estimate import Estimate
from gibbsian.inference.gaussian_posterior import GaussianRows
from gibbsian.learning.objectives.gaussian import GaussianModel
from gibbsian.models.families.gaussian import LOG_TWO_PI, conditional
from gibbsian.startup import ndtr


@ANSWERS.register("gaussian")
class GaussianAnswers:
    """Answers about a Gaussian model; all of them are exact.

    Parameters
    ----------
    model : Model of a GaussianFamily
        What is asked about.
    """

    def __init__(self, model: GaussianModel):
        self.model = model
        self.family = model.family

    def log_partition(self) -> float:
        """Return log Z."""
        return self.family.log_partition(self.model.theta)

    def expect(self, rng: np.random.Generator, method: object = "auto", n_samples: int | None = None) -> Estimate:
        """Return the expected statistics, in standard units."""
        _require_exact(method)
        mean = self.family.expected_statistics(self.model.theta)
        return Estimate(mean, parts={"log_partition": Estimate(self.log_partition())})

    # -- rows ---------------------------------------------------------------------------------------------------------
    def _rows(self, data: Dataset) -> GaussianRows:
        return GaussianRows(self.family, data.states, data.missing)

    def log_evidence(self, data: Dataset) -> np.ndarray:
        """Return the log-density of the present cells of each distinct row, the others integrated out, plus log Z."""
        return self._rows(data).log_evidence(self.model.theta)

    def log_pseudolikelihood(self, data: Dataset) -> float:
        """Return the mean of ``sum_i log P(x_i | the other present cells)``."""
        total = np.empty(data.n_states)
        for rows, mask, deviations, precision in self._rows(data).deviations(self.model.theta):
            widths = np.diag(precision)
            squares = np.square(deviations @ precision) / widths
            units = np.log(self.family.scale[~mask]).sum()
            total[rows] = (np.log(widths) - squares - LOG_TWO_PI).sum(axis=1) / 2.0 - units
        return float(np.average(total, weights=data.weights))

    def cell_probabilities(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return for each cell the probability of a lower number, given the other present cells; a half if missing."""
        below = np.full(data.states.shape, 0.5)
        for rows, mask, deviations, precision in self._rows(data).deviations(self.model.theta):
            below[np.ix_(rows, np.flatnonzero(~mask))] = ndtr(deviations @ precision / np.sqrt(np.diag(precision)))
        return below

    def completed_states(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the distinct rows with missing cells at their conditional means."""
        return self._rows(data).cell_probabilities(self.model.theta)

    def conditional(self, states: np.ndarray, holes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the means of some columns given the others of each row, and their covariance, the same for all."""
        mean, covariance = self.family.moments(self.model.theta)
        carry, left = conditional(covariance, holes)
        return mean[holes] + (states[:, ~holes] - mean[~holes]) @ carry, left

    def most_probable(self, data: Dataset, search: Search, joint: bool = False) -> Modes:
        """Return each row with its missing cells at their conditional means, where the density is largest."""
        search.require_one_peak()
        states = self.completed_states(data, search.rng)[data.row_of]
        logs = self.model.log_weights(states)
        return Modes(states, logs, logs, ("conditional means",) * len(states), log_partition=self.log_partition())

    def joint(self) -> NoReturn:
        """Refuse: tables are for values that can be listed."""
        raise ArgumentError(
            "real numbers have densities and no probabilities of single values",
            "ask `conditional` for means and covariances, and `score_samples` for densities",
        )

    def hidden_variables(self, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """Return none."""
        return {}

    # -- the whole distribution ---------------------------------------------------------------------------------------
    def sample(
        self, n_samples: int, rng: np.random.Generator, method: str = "auto", given: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows, which have no hidden units; of a row `given` its missing cells (NaN) are drawn."""
        _require_exact(method)
        row = np.full(self.model.n_variables, np.nan) if given is None else np.asarray(given, dtype=np.float64)
        if row.shape != (self.model.n_variables,):
            raise ArgumentError(
                f"must be one row of {self.model.n_variables} numbers, NaN where to draw", argument="given", value=given
            )
        holes = np.isnan(row)
        means, covariance = self.conditional(row[None], holes)
        rows = np.tile(row, (n_samples, 1))
        # by the root of the covariance in standard units, whose entries are of one size
        scale = self.family.scale[holes]
        root = np.linalg.cholesky(covariance / np.outer(scale, scale))
        rows[:, holes] = means + scale * (rng.standard_normal((n_samples, len(scale))) @ root.T)
        return rows, np.empty((n_samples, 0))


def _require_exact(method: object) -> None:
    if method not in ("auto", "exact"):
        raise ArgumentError("is not known", "a Gaussian is exact, leave it out", argument="method", value=method)
