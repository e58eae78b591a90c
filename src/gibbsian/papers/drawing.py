"""What the pictures of all papers share: one colour and marker for a method wherever it appears, ours drawn dashed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart by colour-blind eyes and in grey by their markers.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE, GREY = (
    "#000000", "#e69f00", "#56b4e9", "#009e73", "#c9b400", "#0072b2", "#d55e00", "#cc79a7", "#7f7f7f",
)  # fmt: skip

METHOD_STYLES: dict[str, tuple[str, str]] = {
    "mle": (BLACK, "x"),
    "mple": (BLUE, "s"),
    "rm": (GREEN, "^"),
    "mpf": (ORANGE, "D"),
    "mci": (GREY, "v"),
    "1-smci": (RED, "o"),
    "s2-smci": (PURPLE, "P"),
    "2-smci": (SKY, "*"),
    "ais": (YELLOW, "h"),
    "forest-smci": (GREEN, "X"),
    "pcd": (GREY, "v"),
    "cd": (YELLOW, "<"),
    "1-smci+pcd": (ORANGE, "o"),
    "s2-smci+pcd": (SKY, "P"),
    "fl": (RED, "o"),
    "bm-di": (BLUE, "s"),
    "bm-pcd": (ORANGE, "D"),
    "newton": (GREEN, "^"),
}
_OTHERS = tuple(
    (colour, marker)
    for marker in ("p", "8", ">", "d", "H")
    for colour in (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK)
)


def method_style(name: str) -> dict[str, Any]:
    """Return colour and marker of a method, the same in every picture.

    A method that is not in the list gets a pair of its own by its name, so that it too looks alike everywhere.

    Parameters
    ----------
    name : str
        The method as the registries spell it: ``"mple"``, ``"1-smci"``.

    Returns
    -------
    dict
        Keywords for Matplotlib's ``plot``.

    Examples
    --------
    >>> from gibbsian.papers.drawing import method_style
    >>> method_style("mple")
    {'color': '#0072b2', 'marker': 's'}
    """
    key = name.lower()
    colour, marker = METHOD_STYLES.get(key) or _OTHERS[zlib.crc32(key.encode()) % len(_OTHERS)]
    return {"color": colour, "marker": marker}


def curve(
    axes: Axes,
    x: Sequence[float] | np.ndarray,
    mean: Sequence[float] | np.ndarray,
    stderr: Sequence[float] | np.ndarray | None = None,
    label: str = "",
    ours: bool = False,
    method: str | None = None,
    **style: Any,
) -> None:
    """Draw the mean of a method with its standard errors.

    Few points get markers and error bars; long curves (learning steps) a band and a marker now and then.

    Parameters
    ----------
    axes : Axes
        Where to draw.
    x, mean, stderr : array-like of shape (n_points,)
        The curve and, if known, its standard errors.
    label : str
        What the legend says.
    ours : bool
        Whether the paper does not have this method: dashed, and labelled so.
    method : str, optional
        Whose style to take (see `method_style`); the label's when left out.
    **style
        What overrides the method's style.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gibbsian.papers.drawing import curve
    >>> axes = Figure().subplots()
    >>> curve(axes, [1, 2], [0.5, 0.4], [0.1, 0.1], "forest-smci", ours=True)
    >>> axes.get_legend_handles_labels()[1]
    ['forest-smci (ours)']
    """
    x, mean = np.asarray(x, dtype=float), np.asarray(mean, dtype=float)
    look = method_style(method or label) | {"linestyle": "--" if ours else "-", "linewidth": 1.3, "markersize": 4.5}
    look |= {"markerfacecolor": "white" if ours else look["color"]} | style
    told = f"{label} (ours)" if ours and label else label
    if len(x) > 30:
        _long_curve(axes, x, mean, stderr, told, look)
        return
    errors = None if stderr is None else np.nan_to_num(np.asarray(stderr, dtype=float))
    axes.errorbar(x, mean, yerr=errors, label=told, capsize=2.0, elinewidth=0.9, **look)


def log_axes(axes: Axes, x_label: str, y_label: str, log_x: bool = True, log_y: bool = True) -> None:
    """Label the axes, make them logarithmic where asked, and give them a light grid.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gibbsian.papers.drawing import log_axes
    >>> axes = Figure().subplots()
    >>> log_axes(axes, "N", "mean absolute error")
    >>> axes.get_xscale(), axes.get_ylabel()
    ('log', 'mean absolute error')
    """
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(True, which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def legend(axes: Axes, **settings: Any) -> None:
    """Put a small legend without a frame.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gibbsian.papers.drawing import curve, legend
    >>> axes = Figure().subplots()
    >>> curve(axes, [1, 2], [0.5, 0.4], label="mple")
    >>> legend(axes)
    >>> axes.get_legend().get_texts()[0].get_text()
    'mple'
    """
    axes.legend(**({"fontsize": 7.5, "frameon": False, "handlelength": 2.4} | settings))


def _long_curve(axes: Axes, x: np.ndarray, mean: np.ndarray, stderr: Any, label: str, look: dict[str, Any]) -> None:
    axes.plot(x, mean, label=label, markevery=max(len(x) // 8, 1), **look)
    if stderr is not None:
        spread = np.nan_to_num(np.asarray(stderr, dtype=float))
        axes.fill_between(x, mean - spread, mean + spread, color=look["color"], alpha=0.2, linewidth=0)


__all__ = ["METHOD_STYLES", "curve", "legend", "log_axes", "method_style"]
