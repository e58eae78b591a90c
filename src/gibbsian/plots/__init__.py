"""Pictures of what was learned: couplings, moments, the course of a fit, hidden units, classes.

Each function draws on the `Axes` it is given, or on a figure of its own, and returns the `Axes`. Figures are made
without pyplot, so there is no global state and no window: in a notebook the figure (``ax.figure``) shows itself, and
`save_figure` writes it to a file.
"""

from gibbsian.lazy import attach

_MODULES = {
    "canvas": ("save_figure",),
    "couplings": ("heat_map", "network"),
    "curves": ("free_energies", "free_energy_trace", "trace", "training_curves"),
    "directions": ("circle", "sphere"),
    "images": ("filters", "reconstructions", "samples"),
    "moments": ("moment_scatter",),
}
__getattr__, __dir__, __all__ = attach(
    __name__, {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
)
