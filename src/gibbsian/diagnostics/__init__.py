"""Convergence of chains, existence of maxima, moments of data, and bounds on log Z and likelihoods."""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
