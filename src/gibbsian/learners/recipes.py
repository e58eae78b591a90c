"""The named learners: each a short recipe over the parts."""

from __future__ import annotations

from gibbsian.learners.base import LEARNERS
from gibbsian.learners.objective import ObjectiveLearner
from gibbsian.objectives import Likelihood, Pseudolikelihood
from gibbsian.optimizers import Optimizer


@LEARNERS.register("mle")
def maximum_likelihood(
    optimizer: Optimizer | str = "lbfgs", l1: float = 0.0, l2: float = 0.0, max_seconds: float = 10.0
) -> ObjectiveLearner:
    """Return exact maximum likelihood (Y18 section 2); missing cells are summed out.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="mle").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """
    return ObjectiveLearner(Likelihood(max_seconds), optimizer, l1, l2)


@LEARNERS.register("mple")
def maximum_pseudolikelihood(
    optimizer: Optimizer | str = "lbfgs", l1: float = 0.0, l2: float = 0.0
) -> ObjectiveLearner:
    """Return maximum pseudolikelihood (H06; Y18 section 3.1).

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="mple").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """
    return ObjectiveLearner(Pseudolikelihood(), optimizer, l1, l2)
