"""Pseudolikelihood (Besag; H06 eq. 8; Y18 section 3.1)."""

from __future__ import annotations

from gibbsian.backends.numba.flip_losses import logistic
from gibbsian.backends.numba.grouped_losses import softmax
from gibbsian.learning.objectives.base import OBJECTIVES
from gibbsian.learning.objectives.conditionals import ConditionalsObjective
from gibbsian.learning.objectives.hidden_pseudolikelihood import HiddenPseudolikelihood
from gibbsian.models.conditionals import Loss
from gibbsian.settings import declared


@OBJECTIVES.register("pseudolikelihood")
@declared(frozen=True)
class Pseudolikelihood(ConditionalsObjective):
    """Minus the mean log-pseudolikelihood: ``sum_i -log P(x_i | the others)``, averaged over rows.

    Consistent (H06 theorem 1), convex, and without a partition function. The expected step of contrastive divergence
    with one Gibbs update of a random variable is its gradient, up to factors: 2/n for a coupling (H06 eq. 26, where the
    last ``b_i`` is to be read ``b_j``) and 1/n for a bias, which H06 eq. 27 lacks as printed.

    Examples
    --------
    >>> from gibbsian.learning.objectives import Pseudolikelihood
    >>> Pseudolikelihood().name
    'pseudolikelihood'
    """

    name = "pseudolikelihood"
    loss = Loss(logistic, softmax)
    bounded = True
    takes_densities = True

    def with_hidden(self) -> HiddenPseudolikelihood:
        """Return the form for models with hidden units, which are summed out."""
        return HiddenPseudolikelihood()
