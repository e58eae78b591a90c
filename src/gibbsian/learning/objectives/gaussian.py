"""Likelihood of Gaussian models: a function of the first and second moments of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from gibbsian.data import Dataset
from gibbsian.inference.gaussian_posterior import GaussianRows
from gibbsian.learning.objectives.base import Function, Objective, Scores
from gibbsian.learning.objectives.curvature import state_blocks
from gibbsian.models.base import Model
from gibbsian.models.families.gaussian import GaussianFamily, Moments, gaussian_loss

GaussianModel = Model[GaussianFamily]


def moments_of(family: GaussianFamily, data: Dataset | Moments) -> Moments:
    """Return the moments of complete rows in the units of a family, or moments that are known."""
    return data if isinstance(data, Moments) else Moments.of(family.standard(data.states), data.weights)


class ExpectedMoments(NamedTuple):
    """Rows of which some numbers are missing: their moments under a model, the E step of EM in closed form."""

    data: Dataset

    def under(self, model: GaussianModel) -> Moments:
        """Return the expected moments of the rows given their present cells; NaN where the model is no distribution."""
        if not np.isfinite(model.family.log_partition(model.theta)):  # as a line search may ask
            size = model.n_variables + 1
            return Moments(np.full((size, size), np.nan), np.nan)
        rows = GaussianRows(model.family, self.data.states, self.data.missing)
        return rows.moments(model.theta, self.data.weights)


@dataclass(frozen=True)
class GaussianLikelihood(Objective[GaussianFamily]):
    """Minus the mean log-likelihood of a Gaussian, given the moments of the rows."""

    name: ClassVar[str] = "likelihood"
    has_scores: ClassVar[bool] = True

    def bind(self, model: GaussianModel, data: Dataset | Moments) -> Function:
        """Take the moments once and return the function of theta."""
        return partial(gaussian_loss, model.family, moments=moments_of(model.family, data))

    def curvature(self, model: GaussianModel, data: Dataset, max_seconds: float = 60.0) -> np.ndarray:
        """Return the second derivatives at the model's parameters."""
        return model.family.information(model.theta)

    def scores(self, model: GaussianModel, data: Dataset, max_seconds: float = 60.0) -> Scores:
        """Yield the gradient of each state's loss, up to a constant."""
        for block in state_blocks(data):
            yield block, -model.family.statistics(data.states[block])
