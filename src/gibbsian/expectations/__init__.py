"""Expected statistics of a model, each with a standard error.

Exact, sampled and approximate expectations share one result, `Estimate`; an exact one reports an error of zero.
Depends on models, samplers, inference and diagnostics.
"""

from gibbsian.expectations.base import EXPECTATIONS, Estimate, Expectation
from gibbsian.expectations.contrastive import PersistentChains, RestartedChains
from gibbsian.expectations.exact import Exact
from gibbsian.expectations.monte_carlo import MonteCarlo

__all__ = [
    "EXPECTATIONS",
    "Estimate",
    "Exact",
    "Expectation",
    "MonteCarlo",
    "PersistentChains",
    "RestartedChains",
]
