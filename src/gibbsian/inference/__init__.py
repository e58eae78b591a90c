"""Exact inference: log Z, moments, marginals, the most probable state and independent samples.

Two kinds of engine answer the same questions: enumeration (any interactions, few variables) and elimination (low
treewidth, many variables). `Enumeration` and `Elimination` serve pairwise models of two-valued variables,
`FactorEnumeration` and `FactorElimination` all others, `ProductEnumeration` products of any order of two-valued
variables. `exact` picks the cheaper one by its predicted cost and refuses with the numbers when neither fits.
Depends on models and the compiled backends only.
"""

from gibbsian.inference.base import Cost, ExactInference, Moments
from gibbsian.inference.elimination import Elimination, elimination_cost
from gibbsian.inference.enumeration import Enumeration, enumeration_cost
from gibbsian.inference.exact import conditional, exact, predict_cost, predict_cost_of
from gibbsian.inference.factor_elimination import FactorElimination, factor_elimination_cost
from gibbsian.inference.factor_enumeration import FactorEnumeration, factor_enumeration_cost
from gibbsian.inference.product_enumeration import ProductEnumeration, product_enumeration_cost

__all__ = [
    "Cost",
    "Elimination",
    "Enumeration",
    "ExactInference",
    "FactorElimination",
    "FactorEnumeration",
    "Moments",
    "ProductEnumeration",
    "conditional",
    "elimination_cost",
    "enumeration_cost",
    "exact",
    "factor_elimination_cost",
    "factor_enumeration_cost",
    "predict_cost",
    "predict_cost_of",
    "product_enumeration_cost",
]
