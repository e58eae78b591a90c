"""Score matching (Hyvarinen 2005), which H06 section 1 names as the way for continuous variables."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gibbsian.data import Dataset
from gibbsian.objectives.base import OBJECTIVES, Function
from gibbsian.objectives.moments import MomentObjective
from gibbsian.settings import declared


@OBJECTIVES.register("score-matching", numbers=True)
@declared(frozen=True)
class ScoreMatching:
    """The mean over rows of ``sum_i d psi_i / d x_i + psi_i^2 / 2`` with the score ``psi = grad_x log P(x)``.

    Log Z has no part in it. For a Gaussian model it is quadratic in the parameters, so that the estimate solves linear
    equations; on the complete graph it is that of maximum likelihood. For a restricted machine with Gaussian visible
    units the hidden ones are summed out in closed form; it is not convex then, and its hidden units can be exchanged.
    It depends on the units of the columns: learners take standard ones. Another model of real numbers takes part by
    ``score_loss(x, shares)``, its value and gradient for rows with shares.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.random.default_rng(0).normal(size=(200, 3))
    >>> one, other = (gb.GaussianMachine(learner=name).fit(rows) for name in ("score-matching", "mle"))
    >>> bool(np.allclose(one.precision_, other.precision_))
    True

    References
    ----------
    A. Hyvarinen, "Estimation of non-normalized statistical models by score matching", JMLR 6 (2005).
    """

    name: ClassVar[str] = "score matching"
    takes_missing: ClassVar[bool] = False

    def with_numbers(self) -> MomentObjective:
        """Return the form for Gaussian models."""
        return MomentObjective("score-matching")

    def bind(self, model: Any, data: Dataset) -> Function:
        """Return the function of theta."""
        data.require_complete(self.name)
        states, shares = np.asarray(data.states, dtype=np.float64), data.weights / data.total_weight
        return lambda theta: model.replace(theta).score_loss(states, shares)
