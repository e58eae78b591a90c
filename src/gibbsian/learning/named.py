"""Learners by gradients, under the names that practitioners know."""

from __future__ import annotations

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.learning.base import LEARNERS, Fit
from gibbsian.learning.descend import BATCH_SIZE, CompletingLearner, Descend, GradientLearner
from gibbsian.learning.objectives import (
    ConditionalLikelihood,
    ConditionalPseudolikelihood,
    Likelihood,
    Pseudolikelihood,
)
from gibbsian.learning.objectives import ProbabilityFlow as FlowObjective
from gibbsian.learning.objectives import RatioMatching as RatioObjective
from gibbsian.learning.objectives.conditional_likelihood import TARGETS
from gibbsian.learning.objectives.losses import SKIP_DATA
from gibbsian.models.base import DiscreteFamily, ExponentialFamily, Family, Layered, Model, keeps
from gibbsian.models.layers.units import mean_values
from gibbsian.settings import declared, flag, free, number, whole


@LEARNERS.register("mle")
@declared(frozen=True)
class MLE(GradientLearner):
    """Exact maximum likelihood (Y18 section 2); missing cells are summed out.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="mle").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """

    max_seconds: float = number(10.0, "Refuse when one evaluation is predicted to take longer.", above=0)

    @property
    def objective(self) -> Likelihood:
        """Minus the log-likelihood."""
        return Likelihood(max_seconds=self.max_seconds)


@LEARNERS.register("mple")
@declared(frozen=True)
class MPLE(CompletingLearner):
    """Maximum pseudolikelihood (H06; Y18 section 3.1).

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="mple").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """

    @property
    def objective(self) -> Pseudolikelihood:
        """Minus the log-pseudolikelihood."""
        return Pseudolikelihood()


@LEARNERS.register("rm")
@declared(frozen=True)
class RatioMatching(CompletingLearner):
    """Ratio matching (Hyvarinen 2007; Y18 section 5).

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="rm").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """

    @property
    def objective(self) -> RatioObjective:
        """The squared probabilities of the other values."""
        return RatioObjective()


@LEARNERS.register("mpf")
@declared(frozen=True)
class ProbabilityFlow(CompletingLearner):
    """Minimum probability flow over one-flip neighbours (Sohl-Dickstein 2011; Y18 section 5).

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="mpf").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """

    skip_data: bool = flag(False, SKIP_DATA)

    @property
    def objective(self) -> FlowObjective:
        """The flow out of the rows."""
        return FlowObjective(skip_data=self.skip_data)


@LEARNERS.register("mcl")
@declared(frozen=True)
class MCL(GradientLearner):
    """Maximum conditional likelihood of the `targets` given the other columns (YK15); all else is summed out.

    Where the targets are separable the likelihood rises for ever; a penalty such as ``l2=0.01`` holds it.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]]
    >>> machine = gb.BoltzmannMachine(learner=gb.learning.MCL(targets=1)).fit(rows)
    >>> machine.predict_proba(rows[:1], columns="x1").round(3).tolist()
    [[0.667, 0.333]]
    """

    requires = (ExponentialFamily, Layered)  # a restricted machine knows its clamped sums, whatever its units are

    targets: object = free(None, TARGETS, doc="str, int or sequence, optional")
    max_seconds: float = number(10.0, "Refuse when one row is predicted to take longer.", above=0)

    @property
    def objective(self) -> ConditionalLikelihood:
        """Minus the conditional log-likelihood."""
        return ConditionalLikelihood(targets=self.targets, max_seconds=self.max_seconds)

    def start(self, model: Model[Family], data: Dataset, rng: np.random.Generator) -> Model[Family]:
        """Begin with random weights of hidden layers, and biases that have the means of the columns."""
        if not keeps(model.family, Layered):
            return super().start(model, data, rng)
        return model.replace(model.family.initialised(mean_values(model.family.layers[0], data), rng))

    def bind(self, model: Model[DiscreteFamily], data: Dataset) -> Fit[object]:
        """Bind the objective, where the hidden units of a row have a closed form."""
        if keeps(model.family, Layered) and len(model.family.layers) > 2:
            reason = "the hidden layers of a row have no sum in closed form"
            raise ArgumentError(reason, argument="learner", value="mcl")
        return super().bind(model, data)


@LEARNERS.register("mcple")
@declared(frozen=True)
class MCPLE(CompletingLearner):
    """Maximum conditional pseudolikelihood: each of the `targets` given all other columns.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]]
    >>> machine = gb.BoltzmannMachine(learner=gb.learning.MCPLE(targets=["x1"])).fit(rows)
    >>> machine.predict_proba(rows[:1], columns="x1").round(3).tolist()
    [[0.667, 0.333]]
    """

    targets: object = free(None, TARGETS, doc="str, int or sequence, optional")

    @property
    def objective(self) -> ConditionalPseudolikelihood:
        """Minus the log-pseudolikelihood of the targets."""
        return ConditionalPseudolikelihood(targets=self.targets)


@LEARNERS.register("online", consistent=False, stochastic=True)
@declared(frozen=True)
class Online(Descend):
    """Stochastic gradient descent: an objective, of shuffled minibatches (YK15); a step of the fit is an epoch.

    A fit ends after an epoch when the mean gradient is small against the sampling error of such a mean. A constant rate
    may settle beside the optimum, because the steps are larger than its valley: such a fit goes on to ``max_iter`` and
    is not called converged.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rng = np.random.default_rng(0)
    >>> a = np.where(rng.random(20_000) < 0.5, 1, -1)
    >>> b = np.where(rng.random(20_000) < 0.8, a, -a)                       # coupling log(4) / 2 = 0.69
    >>> bm = gb.BoltzmannMachine(learner=gb.learning.Online(batch_size=200), random_state=0)
    >>> bool(abs(bm.fit(np.column_stack([a, b])).model_.parts.couplings[0] - 0.69) < 0.03)
    True
    """

    batch_size: int = whole(1000, BATCH_SIZE, least=1)
