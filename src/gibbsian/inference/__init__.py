"""Exact inference: log Z, moments, marginals, the most probable state and independent samples.

Two engines answer the same questions: `Enumeration` (any graph, few variables) and `Elimination` (low treewidth, many
variables). `exact` picks the cheaper one by its predicted cost and refuses with the numbers when neither fits.
Depends on models and the compiled backends only.
"""

from gibbsian.inference.base import Cost, ExactInference, Moments
from gibbsian.inference.elimination import Elimination, elimination_cost
from gibbsian.inference.enumeration import Enumeration, enumeration_cost
from gibbsian.inference.exact import conditional, exact, predict_cost

__all__ = [
    "Cost",
    "Elimination",
    "Enumeration",
    "ExactInference",
    "Moments",
    "conditional",
    "elimination_cost",
    "enumeration_cost",
    "exact",
    "predict_cost",
]
