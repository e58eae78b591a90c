"""Parameters that share one value: hyperparameters of a field, such as one smoothness for all pairs of neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.learning.optimizers.base import GradientStep, M


@dataclass(frozen=True, eq=False)
class Tied(Generic[M]):
    """Moves the parameters of each group alike, along the mean of their gradients.

    Parameters that begin equal stay so: any learner by gradients then learns one value for each group.

    Parameters
    ----------
    optimizer : GradientStep
        What makes the steps.
    groups : array of int of shape (n_parameters,)
        The group of each parameter, counted from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.learning.optimizers import Ascent, Tied
    >>> steps = Tied(Ascent(learning_rate=1.0), np.array([0, 0, 1]))
    >>> theta = np.zeros(3)
    >>> steps.move(theta, np.array([1.0, 3.0, 5.0]), np.zeros(3), steps.init_move(theta))[0].tolist()
    [-2.0, -2.0, -5.0]
    """

    optimizer: GradientStep[M]
    groups: Floats

    def init_move(self, theta: Floats) -> M:
        """Return the state before the first move."""
        return self.optimizer.init_move(theta)

    def move(self, theta: Floats, gradient: Floats, l1: Floats, state: M) -> tuple[Floats, M]:
        """Return the next point and the state there."""
        means = np.bincount(self.groups, gradient) / np.bincount(self.groups)
        return self.optimizer.move(theta, means[self.groups], l1, state)

    def rate_at(self, t: int) -> float:
        """Return the rate of the move after `t` others."""
        return self.optimizer.rate_at(t)
