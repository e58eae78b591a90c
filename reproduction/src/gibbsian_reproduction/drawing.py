"""What the pictures of all papers share: one colour and marker for a method wherever it appears, ours drawn dashed."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian_reproduction.experiment import Results, Series, mean_of, stderr_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:  # names for annotations: Matplotlib is loaded when something is drawn
    Axes = Figure = Any
Panel = Callable[[Axes, Results], None]

# Where the legend of a picture is: where there is space, at its right, or above it.
INSIDE: Mapping[str, Any] = {}
BESIDE: Mapping[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
ABOVE: Mapping[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 5}

# Okabe and Ito's colours, which colour-blind eyes can distinguish; in grey their markers do.
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
    "fl newton": (GREEN, "^"),
}
_OTHERS = tuple(
    (colour, marker)
    for marker in ("p", "8", ">", "d", "H")
    for colour in (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK)
)


def method_style(name: str) -> dict[str, Any]:
    """Return colour and marker of a method; one that is not in the list gets a pair of its own by its name."""
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
    """Draw the mean of a method with its standard errors; one that the paper does not have is dashed and labelled so.

    Few points get markers and error bars; long curves (learning steps) a band and a marker now and then.
    """
    x, mean = np.asarray(x, dtype=float), np.asarray(mean, dtype=float)
    look = method_style(method or label) | {"linestyle": "--" if ours else "-", "linewidth": 1.3, "markersize": 4.5}
    look |= {"markerfacecolor": "white" if ours else look["color"]} | style
    shown = f"{label} (ours)" if ours and label else label
    spread = None if stderr is None else np.nan_to_num(np.asarray(stderr, dtype=float))
    if len(x) <= 30:
        axes.errorbar(x, mean, yerr=spread, label=shown, capsize=2.0, elinewidth=0.9, **look)
        return
    axes.plot(x, mean, label=shown, markevery=max(len(x) // 8, 1), **look)
    if spread is not None:
        axes.fill_between(x, mean - spread, mean + spread, color=look["color"], alpha=0.2, linewidth=0)


def label_axes(axes: Axes, x_label: str, y_label: str, log: str = "xy") -> None:
    """Label the axes, make those named in `log` logarithmic, and give them a light grid."""
    for name in log:
        axis = getattr(axes, f"{name}axis")
        getattr(axes, f"set_{name}scale")("log")
        axis.set_minor_formatter(partial(_between_powers, axis))
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(True, which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def _between_powers(axis: Any, value: float, place: int | None = None) -> str:
    """Return the label of a tick between powers of ten: few or none, so that they do not collide."""
    low, high = sorted(axis.get_view_interval())
    decades = np.log10(high / low)
    digit = round(value / 10.0 ** np.floor(np.log10(value) + 1e-9))
    return f"{value:g}" if decades < 0.5 or (decades < 1.5 and digit in (2, 5)) else ""


def legend(axes: Axes, **settings: Any) -> None:
    """Put a small legend without a frame."""
    axes.legend(**({"fontsize": 7.5, "frameon": False, "handlelength": 2.4} | settings))


def lines(
    points: Any,
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    log: str = "xy",
    least: float = -np.inf,
    legend_at: Mapping[str, Any] | None = INSIDE,
) -> Panel:
    """Return what draws a curve for each series that has values; points not above `least` are left out."""

    def draw(axes: Axes, results: Results) -> None:
        for one in series:
            values = one.values(results)
            if np.isfinite(values).any():
                mean = mean_of(values)
                mean = np.where(mean > least, mean, np.nan)
                look = one.method or one.key
                curve(axes, points, mean, stderr_of(values), one.name, one.ours, look, **one.style)
        label_axes(axes, x_label, y_label, log)
        if legend_at is not None:
            legend(axes, **legend_at)

    return draw


def panels(*parts: Panel) -> Callable[[Results, Figure], None]:
    """Return what draws several panels side by side."""

    def draw(results: Results, figure: Figure) -> None:
        for axes, part in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
            part(axes, results)

    return draw
