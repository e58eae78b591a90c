"""Losses of one variable given the others: pseudolikelihood, ratio matching, and minimum probability flow."""

from __future__ import annotations

import numpy as np

from gibbsian.arrays import Mask
from gibbsian.backends.numba.flip_losses import half_exponential, logistic, squared_sigmoid
from gibbsian.backends.numba.grouped_losses import half_exponentials, softmax, squared_distance
from gibbsian.data import Dataset
from gibbsian.data.distinct import distinct_codes
from gibbsian.errors import ArgumentError
from gibbsian.learning.objectives.base import OBJECTIVES, Function
from gibbsian.learning.objectives.conditionals import ConditionalsObjective
from gibbsian.learning.objectives.hidden_pseudolikelihood import HiddenPseudolikelihood
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.conditionals import Loss
from gibbsian.settings import declared, flag, positional

SKIP_DATA = (
    "Leave out flips that lead to a state of the data, as in the derivation of 2011. This is inconsistent: as the data "
    "come to hold most states of a small system, its error grows with the number of rows (0.009 at 2,000, 0.037 at "
    "10,000, where all flips give 0.0034 and 0.0015), and once every state is there nothing is left to minimise."
)


@OBJECTIVES.register("pseudolikelihood")
@declared(frozen=True)
class Pseudolikelihood(ConditionalsObjective):
    """Minus the mean log-pseudolikelihood: ``sum_i -log P(x_i | the others)``, averaged over rows (H06 eq. 8; Y18 3.1).

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


@OBJECTIVES.register("ratio-matching")
@declared(frozen=True)
class RatioMatching(ConditionalsObjective):
    """The ratio-matching objective: ``sum_i P(the other value of x_i | the others)^2``, averaged over rows.

    Consistent, without a partition function, and bounded, so that a row the model finds impossible weighs no more
    than n. It is not convex; from zero couplings no second minimum has been met. With more than two values it is half
    the squared distance between the conditional probabilities and the indicator of the value that is there,
    ``sum_i 1/2 sum_a (1[x_i = a] - P(a | the others))^2``, which for two values is the same.

    Examples
    --------
    >>> from gibbsian.learning.objectives import RatioMatching
    >>> RatioMatching().name
    'ratio matching'

    References
    ----------
    A. Hyvarinen, "Some extensions of score matching", Computational Statistics & Data Analysis 51 (2007).
    """

    name = "ratio matching"
    loss = Loss(squared_sigmoid, squared_distance)
    bounded = True


@OBJECTIVES.register("probability-flow")
@declared(frozen=True)
class ProbabilityFlow(ConditionalsObjective):
    """The probability flow out of the data: ``sum_i sqrt(P(x with x_i flipped) / P(x))``, averaged over rows.

    Consistent, convex, and without a partition function. A variable with more than two values can change to each of the
    others, and all are counted.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.learning.objectives import ProbabilityFlow, value_and_gradient
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1]])
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> value, _ = value_and_gradient(ProbabilityFlow(), model, data)
    >>> flow_out, _ = value_and_gradient(ProbabilityFlow(skip_data=True), model, data)
    >>> value, round(flow_out, 6)            # two flips from every row; of the six, two leave the data
    (2.0, 0.666667)

    References
    ----------
    J. Sohl-Dickstein, P. B. Battaglino, M. R. DeWeese, "New method for parameter estimation in probabilistic models:
    minimum probability flow", Physical Review Letters 107, 220601 (2011).
    """

    name = "probability flow"
    loss = Loss(half_exponential, half_exponentials)

    skip_data: bool = positional(kw_only=False, default=flag(False, SKIP_DATA))

    def bind(self, model: Model[DiscreteFamily], data: Dataset) -> Function:
        """Return the function of theta."""
        if self.skip_data and data.on_cluster:
            raise ArgumentError("compares each row with all others", "leave it out on a cluster", argument="skip_data")
        return super().bind(model, data)

    def masked(self, data: Dataset) -> Mask | None:
        """Return the changes into the data, where they are skipped."""
        return flips_into_data(data) if self.skip_data else None


def flips_into_data(data: Dataset) -> Mask:
    """Say for each state and flip whether it gives a state that the data hold with a positive weight.

    There is a column for each variable, or where variables have several values one for each value; the present value is
    no flip.
    """
    codes, sizes, two_valued = data.states, data.variables.sizes, data.variables.two_valued
    present = codes[data.weights > 0]
    columns = []
    for i, size in enumerate(sizes):
        for value in [None] if two_valued else range(size):
            changed = codes.copy()
            changed[:, i] = 1 - codes[:, i] if value is None else value
            _, name = distinct_codes(np.concatenate([present, changed]), sizes)
            into_data = np.isin(name[len(present) :], name[: len(present)])
            columns.append(into_data & (changed[:, i] != codes[:, i]))
    return np.stack(columns, axis=1)
