"""Ratio matching (Hyvarinen 2007; Y18 section 5)."""

from __future__ import annotations

from gibbsian.backends.numba.flip_losses import squared_sigmoid
from gibbsian.backends.numba.grouped_losses import squared_distance
from gibbsian.learning.objectives.base import OBJECTIVES
from gibbsian.learning.objectives.conditionals import ConditionalsObjective
from gibbsian.models.conditionals import Loss
from gibbsian.settings import declared


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
