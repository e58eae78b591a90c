"""The named learners: each a short recipe over the parts."""

from __future__ import annotations

from gibbsian.learners.base import LEARNERS
from gibbsian.learners.objective import ObjectiveLearner
from gibbsian.objectives import Likelihood, ProbabilityFlow, Pseudolikelihood, RatioMatching
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


@LEARNERS.register("rm")
def ratio_matching(optimizer: Optimizer | str = "lbfgs", l1: float = 0.0, l2: float = 0.0) -> ObjectiveLearner:
    """Return ratio matching (Hyvarinen 2007; Y18 section 5).

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="rm").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """
    return ObjectiveLearner(RatioMatching(), optimizer, l1, l2)


@LEARNERS.register("mpf")
def minimum_probability_flow(
    optimizer: Optimizer | str = "lbfgs", l1: float = 0.0, l2: float = 0.0, skip_data: bool = False
) -> ObjectiveLearner:
    """Return minimum probability flow over one-flip neighbours (Sohl-Dickstein 2011; Y18 section 5).

    With `skip_data` flips into the data are left out, which is inconsistent: see `ProbabilityFlow`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="mpf").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """
    return ObjectiveLearner(ProbabilityFlow(skip_data), optimizer, l1, l2)
