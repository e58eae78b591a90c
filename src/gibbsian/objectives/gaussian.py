"""Likelihood of Gaussian models: a function of the first and second moments of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gibbsian.data import Dataset
from gibbsian.objectives.base import Function, Scores
from gibbsian.objectives.curvature import state_blocks


@dataclass(frozen=True)
class GaussianLikelihood:
    """Minus the mean log-likelihood of a Gaussian, given the moments of the rows."""

    name: ClassVar[str] = "likelihood"
    takes_missing: ClassVar[bool] = False

    def bind(self, model: Any, data: Any) -> Function:
        """Take the moments once and return the function of theta."""
        moments = model.moments(data)
        return lambda theta: model.replace(theta).moment_loss(moments)

    def curvature(self, model: Any, data: Any, max_seconds: float = 60.0) -> np.ndarray:
        """Return the second derivatives at the model's parameters."""
        return model.information()

    def scores(self, model: Any, data: Dataset, max_seconds: float = 60.0) -> Scores:
        """Yield the gradient of each state's loss, up to a constant."""
        for block in state_blocks(data):
            yield block, -model.statistics(data.states[block])
