"""The rate of learning by minibatches, and how it falls."""

from __future__ import annotations

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.optimizers import Decay


class FallingRate:
    """What learners with a rate, a schedule and a momentum share.

    Examples
    --------
    >>> from gibbsian.layered.rates import FallingRate
    >>> from gibbsian.layered.training import RestrictedLearner
    >>> isinstance(RestrictedLearner(), FallingRate)
    True
    """

    learning_rate: float
    schedule: Decay | str
    momentum: float

    def _check_rate(self) -> None:
        if not (np.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ArgumentError("must be positive", argument="learning_rate", value=self.learning_rate)
        if not 0 <= self.momentum < 1:
            raise ArgumentError("must be at least 0 and below 1", argument="momentum", value=self.momentum)
        if not isinstance(self.schedule, Decay) and self.schedule not in ("linear", "constant"):
            raise ArgumentError("must be 'linear', 'constant' or a Decay", argument="schedule", value=self.schedule)

    def rate_after(self, steps: int, last: int) -> float:
        """Return the rate after so many minibatches, of so many in all.

        Examples
        --------
        >>> from gibbsian.layered.training import RestrictedLearner
        >>> [round(RestrictedLearner(learning_rate=0.1).rate_after(t, 1000), 3) for t in (0, 500, 1000)]
        [0.1, 0.05, 0.0]
        """
        if isinstance(self.schedule, Decay):
            return self.learning_rate * self.schedule(steps)
        return self.learning_rate * (max(0.0, 1.0 - steps / last) if self.schedule == "linear" else 1.0)


__all__ = ["FallingRate"]
