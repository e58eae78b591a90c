"""Markov chains: ``init`` and ``step`` pairs over plain arrays.

A sampler knows how to move chains and nothing of learning. Depends on models, backends, rng and resources.
"""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
