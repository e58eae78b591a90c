"""Pictures of what was learned: networks, intervals, moments, the course of a fit, hidden units, classes.

Each function takes a fitted estimator (or a result), draws on the `Axes` it is given as ``ax``, or on a figure of its
own, and returns the `Axes`. Figures are made without pyplot, so there is no global state and no window: in a notebook
the figure (``ax.figure``) shows itself, and `save_figure` writes it to a file.
"""

from gibbsian.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
