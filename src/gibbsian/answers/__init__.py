"""Questions to a model: log Z, rows with missing cells, hidden units, samples, expectations.

The class that answers for a kind of model is registered in `ANSWERS`, and loaded when it is first asked.
"""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
