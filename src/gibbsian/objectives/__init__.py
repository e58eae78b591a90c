"""Functions of the parameters and the data that a learner minimises, with value and gradient.

An objective knows models through their contract only. To add one, drop a file in this folder that registers it.
"""

from gibbsian.objectives.base import OBJECTIVES, Equations, Function, Objective, value_and_gradient
from gibbsian.objectives.conditional_likelihood import ConditionalLikelihood, ConditionalPseudolikelihood
from gibbsian.objectives.conditionals import ConditionalsObjective
from gibbsian.objectives.hidden_pseudolikelihood import HiddenPseudolikelihood
from gibbsian.objectives.likelihood import Likelihood
from gibbsian.objectives.priors import Laplace, Normal, StudentT
from gibbsian.objectives.probability_flow import ProbabilityFlow
from gibbsian.objectives.pseudolikelihood import Pseudolikelihood
from gibbsian.objectives.ratio_matching import RatioMatching

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
