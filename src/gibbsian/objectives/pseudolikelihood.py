"""Pseudolikelihood (Besag; H06 eq. 8; Y18 section 3.1)."""

from __future__ import annotations

from gibbsian.backends.numba.flip_losses import logistic
from gibbsian.backends.numba.grouped_losses import softmax
from gibbsian.objectives.base import OBJECTIVES
from gibbsian.objectives.flip_costs import FlipCostObjective
from gibbsian.settings import declared


@OBJECTIVES.register("pseudolikelihood")
@declared(frozen=True)
class Pseudolikelihood(FlipCostObjective):
    """Minus the mean log-pseudolikelihood: ``sum_i -log P(x_i | the others)``, averaged over rows.

    Consistent (H06 theorem 1), convex, and without a partition function.

    Examples
    --------
    >>> from gibbsian.objectives import Pseudolikelihood
    >>> Pseudolikelihood().name
    'pseudolikelihood'
    """

    name = "pseudolikelihood"
    kernel = staticmethod(logistic)
    grouped = staticmethod(softmax)
    takes_densities = True
