"""What turns data into parameters, one step at a time.

A learner is an objective with an optimiser (`Descend`), moment matching with an expectation
(`MomentMatching`), EM, or a recipe of these under a name a practitioner knows. `run` runs any of them with a trace, a
stopping rule and callbacks. To add a learner, drop a file here that registers it. Names are imported when they are
asked for.
"""

from gibbsian.learning.run import run  # noqa: F401  (its module has its name)
from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
