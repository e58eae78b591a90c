"""Exact inference: log Z, moments, marginals, the most probable state and independent samples.

Every engine is one file on one price list (`ENGINES`): it says what it would cost for a model, or that it does not
serve it. `exact` picks the cheapest and refuses with the numbers when none fits; `plan_exact` does so once for many
parameters. Depends on models and the compiled backends only.
"""

from gibbsian.inference.base import ENGINES, Cost, ExactInference, Moments
from gibbsian.inference.elimination import Elimination
from gibbsian.inference.enumeration import Enumeration
from gibbsian.inference.exact import conditional, exact, is_affordable, plan_exact, predict_cost
from gibbsian.inference.factor_elimination import FactorElimination
from gibbsian.inference.factor_enumeration import FactorEnumeration
from gibbsian.inference.layer_sums import LayerSums
from gibbsian.inference.walsh_tables import WalshTables

__all__ = [
    "ENGINES",
    "Cost",
    "Elimination",
    "Enumeration",
    "ExactInference",
    "FactorElimination",
    "FactorEnumeration",
    "LayerSums",
    "Moments",
    "WalshTables",
    "conditional",
    "exact",
    "is_affordable",
    "plan_exact",
    "predict_cost",
]
