"""Thin scikit-learn estimators over models, learners and answers. They hold no mathematics and no loops."""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
