"""Distributions: families, parameters, energies, statistics, conditionals.

Models are immutable and independent of learning. They import only the packages below (backends, domain, graphs, ...).
"""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
