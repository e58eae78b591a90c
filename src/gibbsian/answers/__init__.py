"""Questions to a model: log Z, rows with missing cells, hidden units, samples, expectations.

Each kind of model names the class that answers for it (``model.answers``), which is loaded when it is first asked.
"""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
