"""Exact inference: log Z, moments, marginals, the most probable state and independent samples.

Every engine is one file on one price list (`ENGINES`): it predicts its cost for a family, or does not serve it. `exact`
takes the cheapest engine, or refuses with the predicted costs if none is within the limits. `plan_exact` does so once
for a family, whose engine is then evaluated at any parameters. Depends on models and the compiled backends only.
"""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
