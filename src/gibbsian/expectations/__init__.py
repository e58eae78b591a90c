"""Expected statistics of a model, each with a standard error.

Exact, sampled and approximate expectations share one result, `Estimate`; an exact one reports an error of zero.
Depends on models, samplers, inference and diagnostics.
"""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
