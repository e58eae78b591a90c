"""Pictures of what was learned: couplings, moments, the course of a fit, hidden units, classes.

Each function draws on the `Axes` it is given, or on a figure of its own, and returns the `Axes`. Figures are made
without pyplot, so there is no global state and no window: in a notebook the figure (``ax.figure``) shows itself, and
`save_figure` writes it to a file.
"""

from gibbsian.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
