"""The contract every objective keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np

from gibbsian.data import Dataset
from gibbsian.models import Model
from gibbsian.registry import Registry

OBJECTIVES = Registry("objective", "gibbsian.objectives", "OBJECTIVES")

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""Maps theta to a value and its gradient."""


@runtime_checkable
class Objective(Protocol):
    """Something to minimise: a loss per row, averaged with the rows' weights.

    Examples
    --------
    >>> from gibbsian.objectives import Objective, Pseudolikelihood
    >>> isinstance(Pseudolikelihood(), Objective)
    True
    """

    def bind(self, model: Model, data: Dataset) -> Function:
        """Do once what does not depend on theta and return the function of theta."""


def value_and_gradient(objective: Objective, model: Model, data: Dataset) -> tuple[float, np.ndarray]:
    """Evaluate an objective once, at the model's own parameters.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.objectives import Pseudolikelihood, value_and_gradient
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1]])
    >>> value, gradient = value_and_gradient(Pseudolikelihood(), gb.PairwiseModel.zeros(gb.graphs.complete(2)), data)
    >>> round(value / 2, 6)                                    # log 2 for each variable
    0.693147
    """
    return objective.bind(model, data)(model.theta)
