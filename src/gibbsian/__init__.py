"""gibbsian learns Gibbs distributions (Boltzmann machines and their relatives) from discrete data.

Names are loaded when they are first used, so importing the package and asking the command line for help stay fast.
"""

from __future__ import annotations

from gibbsian.startup import attach

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)
