"""What all pictures share: figures and axes, colours, and the checks of what is drawn."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.scikit import check_is_fitted
from gibbsian.storage import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIGNED = "RdBu_r"  # red is positive, blue negative, white zero
POSITIVE, NEGATIVE = "#b2182b", "#2166ac"  # the same red and blue
# Distinguishable also without colour vision (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
CHART = (7.0, 4.2)  # inches


def axes(ax: Axes | None, size: tuple[float, float], projection: str | None = None) -> Axes:
    """Return the axes that were given, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot(projection=projection)


def chart(ax: Axes | None, x: str, y: str, size: tuple[float, float] = CHART) -> Axes:
    """Return axes with labels and a grid behind what is drawn."""
    ax = axes(ax, size)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(color="0.93")
    ax.set_axisbelow(True)
    return ax


def plain(ax: Axes, half_width: float, half_height: float) -> None:
    """Show the middle of the plane, both directions in one scale, without axes."""
    ax.set_xlim(-half_width, half_width)
    ax.set_ylim(-half_height, half_height)
    ax.set_aspect("equal")
    ax.set_axis_off()


def legend_below(ax: Axes, n_columns: int, y: float = 0.02, **settings: Any) -> None:
    """Put a legend without a frame below what is drawn."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, y), ncols=n_columns, frameon=False, **settings)


def colour(k: int) -> str:
    """Return the colour of the k-th of several things."""
    return COLOURS[k % len(COLOURS)]


def largest(values: np.ndarray) -> float:
    """Return the end of a colour scale centred at zero."""
    return float(np.abs(values).max(initial=0.0)) or 1.0


def counted(n: int, word: str, words: str | None = None) -> str:
    """Return a number with its noun, in the singular where it is one."""
    return f"{n:,} {word if n == 1 else words or f'{word}s'}"


def require(machine: Any, attribute: str, kind: str) -> None:
    """Raise unless a fitted estimator has what is drawn; `kind` is one that has."""
    if hasattr(machine, "fit"):
        check_is_fitted(machine)
    if not hasattr(machine, attribute):
        raise ArgumentError(f"a {type(machine).__name__} has no {attribute}", f"draw this picture of a {kind}")


def read_for(machine: Any, rows: Any) -> Dataset:
    """Read rows in the labels of a fitted machine."""
    return Dataset.read(rows, coding=machine.coding_, declared_by="the model")


def save_figure(ax: Axes, path: str | os.PathLike[str], dpi: int = 150) -> None:
    """Write the figure of an `Axes` to a file by its extension (.png, .svg, .pdf), whole or not at all.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "couplings.png"
    >>> gb.plots.save_figure(gb.plots.heat_map(bm), path)
    >>> path.read_bytes()[1:4]
    b'PNG'
    """
    buffer = io.BytesIO()
    kind = os.path.splitext(path)[1].lstrip(".").lower() or "png"
    ax.figure.canvas.figure.savefig(buffer, format=kind, dpi=dpi, bbox_inches="tight")
    write_atomically(path, buffer.getvalue())
