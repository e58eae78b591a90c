"""Functions of the parameters and the data that a learner minimises, with value and gradient.

An objective knows models through their contract only. To add one, drop a file in this folder that registers it.
"""

from gibbsian.learning.objectives.base import OBJECTIVES, Equations, Function, Objective, value_and_gradient
from gibbsian.learning.objectives.conditional_likelihood import ConditionalLikelihood, ConditionalPseudolikelihood
from gibbsian.learning.objectives.conditionals import ConditionalsObjective
from gibbsian.learning.objectives.hidden_pseudolikelihood import HiddenPseudolikelihood
from gibbsian.learning.objectives.likelihood import Likelihood
from gibbsian.learning.objectives.losses import ProbabilityFlow, Pseudolikelihood, RatioMatching
from gibbsian.learning.objectives.priors import Laplace, Normal, StudentT

__all__ = [
    "OBJECTIVES",
    "ConditionalLikelihood",
    "ConditionalPseudolikelihood",
    "ConditionalsObjective",
    "Equations",
    "Function",
    "HiddenPseudolikelihood",
    "Laplace",
    "Likelihood",
    "Normal",
    "Objective",
    "ProbabilityFlow",
    "Pseudolikelihood",
    "RatioMatching",
    "StudentT",
    "value_and_gradient",
]
