"""Pictures of what was learned: networks, intervals, moments, the course of a fit, hidden units, classes.

Each function takes a fitted estimator (or a result), draws on the `Axes` it is given as ``ax``, or on a figure of its
own, and returns the `Axes`. In a notebook, in an interactive Python and in a program that has imported pyplot this
figure is one of pyplot's: it is shown under the cell, by ``plt.show()`` in a window, and kept until it is closed. Other
programs do not load pyplot, and `save_figure` writes the figure (``ax.figure``) to a file.
"""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
