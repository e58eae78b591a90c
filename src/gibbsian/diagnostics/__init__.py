"""Whether to believe a result. Depends on models and what stands above them."""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
