"""Markov chains: transitions, paths of distributions, annealing and exchange along them.

A transition is bound to a family and becomes a kernel, which moves chains: pure functions of theta and of where the
chains stand. Depends on models, backends, rng and resources, and knows nothing of learning.
"""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
