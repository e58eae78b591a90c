"""Exact inference: log Z, moments, marginals, the most probable state and independent samples.

Every engine is one file on one price list (`ENGINES`): it says what it would cost for a model, or that it does not
serve it. `exact` picks the cheapest and refuses with the numbers when none fits; `plan_exact` does so once for a
family, whose engine is asked at any parameters. Depends on models and the compiled backends only.
"""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
