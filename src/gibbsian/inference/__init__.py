"""Exact inference: log Z, moments, marginals, the most probable state and independent samples.

Every engine is one file on one price list (`ENGINES`): it says what it would cost for a model, or that it does not
serve it. `exact` picks the cheapest and refuses with the numbers when none fits; `plan_exact` does so once for many
parameters. Depends on models and the compiled backends only.
"""

from gibbsian.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "ENGINES": "gibbsian.inference.base",
        "Cost": "gibbsian.inference.base",
        "Elimination": "gibbsian.inference.elimination",
        "Enumeration": "gibbsian.inference.enumeration",
        "ExactInference": "gibbsian.inference.base",
        "FactorElimination": "gibbsian.inference.factor_elimination",
        "FactorEnumeration": "gibbsian.inference.factor_enumeration",
        "LayerSums": "gibbsian.inference.layer_sums",
        "Moments": "gibbsian.inference.base",
        "Planar": "gibbsian.inference.planar",
        "WalshTables": "gibbsian.inference.walsh_tables",
        "conditional": "gibbsian.inference.choice",
        "exact": "gibbsian.inference.choice",
        "is_affordable": "gibbsian.inference.choice",
        "largest_log_weight_bound": "gibbsian.inference.upper_bounds",
        "plan_exact": "gibbsian.inference.choice",
        "predict_cost": "gibbsian.inference.choice",
    },
)
