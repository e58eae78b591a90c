"""What all pictures share: figures and axes, colours, and the checks of what is drawn."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, FontWarning, notify
from gibbsian.models.interactions import Interactions
from gibbsian.startup import check_is_fitted
from gibbsian.storage import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap

    from gibbsian.estimators.base import Estimator
else:  # a name for annotations: Matplotlib is loaded when something is drawn
    Axes = object

SIGNED = "RdBu_r"  # red is positive, blue negative, white zero
UNSIGNED = "Purples"
LONGEST = 40  # letters of a name beside an axis
FEW = 5  # so few numbers set the end of a colour scale by the largest
POSITIVE, NEGATIVE = "#b2182b", "#2166ac"  # the same red and blue
# Distinguishable also without colour vision (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
CHART = (7.0, 4.2)  # inches


def axes(
    ax: Axes | None,
    size: tuple[float, float],
    projection: str | None = None,
    layout: Any = "constrained",
) -> Axes:
    """Return the axes that were given, or those of a new figure."""
    if ax is not None:
        return ax
    # Python tells by sys.ps1 that a person types; a notebook shows the figures that pyplot has
    if "matplotlib.pyplot" in sys.modules or hasattr(sys, "ps1"):
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=size, layout=layout)
    else:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout=layout)
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


def legend_below(ax: Axes, n_columns: int, y: float = 0.02, **settings: object) -> None:
    """Put a legend without a frame below what is drawn."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, y), ncols=n_columns, frameon=False, **settings)


def colour(k: int) -> str:
    """Return the colour of the k-th of several things."""
    return COLOURS[k % len(COLOURS)]


def interactions_of(machine: Estimator | Interactions) -> Interactions:
    """Return the network of a fitted estimator, or what was given as one."""
    if isinstance(machine, Interactions):
        return machine
    require(machine, "interactions", "fitted estimator")
    return machine.interactions()


def robust_limit(values: np.ndarray, share: float) -> float:
    """Return the end of a colour scale centred at zero: a quantile, which one outlier among several does not set."""
    sizes = np.abs(values[np.isfinite(values)])
    if sizes.size >= FEW:
        sizes = sizes[sizes <= np.quantile(sizes, share, method="lower")]
    return largest(sizes)


def strength_colours(signed: bool) -> ListedColormap:
    """Return colours of lines, from the strongest negative one to the strongest positive, none as pale as the paper."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    shades = np.linspace(0.0, 1.0, 128)
    if not signed:
        return ListedColormap(colormaps[UNSIGNED](0.3 + 0.7 * shades))
    return ListedColormap(colormaps[SIGNED](np.concatenate([0.4 * shades, 0.6 + 0.4 * shades])))


def colour_bar(
    ax: Axes, values: np.ndarray, share: float, drawn: Interactions, inset: Axes | None = None, size: float = 9.0
) -> None:
    """Draw a colour bar that says what the strengths are and where the colours end; below in an inset, else beside."""
    from matplotlib.cm import ScalarMappable

    limit, most = robust_limit(values, share), largest(values[np.isfinite(values)])
    beyond = most > limit * (1 + 1e-9)
    words = f"{drawn.measure}\n(colours end at {limit:.3g}, the {share:.0%} quantile; the largest is {most:.3g})"
    picture = ax.images[-1] if inset is None else ScalarMappable(cmap=strength_colours(drawn.signed))
    picture.set_clim(-limit if drawn.signed else 0.0, limit)
    where: dict[str, Any] = {"ax": ax, "shrink": 0.75} if inset is None else {"cax": inset, "orientation": "horizontal"}
    extend = "neither" if not beyond else "both" if drawn.signed else "max"
    bar = ax.figure.colorbar(picture, extend=extend, **where)
    bar.set_label(words if beyond else drawn.measure, size=size)
    bar.ax.tick_params(labelsize=size, length=2)


# -- text -------------------------------------------------------------------------------------------------------------
def fonts_for(texts: Iterable[str]) -> tuple[str, ...]:
    """Return font families that have all letters of texts between them; one warning where no font has some."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties, findfont

    families = list(rcParams["font.family"])
    letters = {letter for text in texts for letter in text if letter.isprintable()}
    missing = _lacking(findfont(FontProperties(family=families)), letters)
    for name, path in _other_fonts() if missing else ():
        left = _lacking(path, missing)
        if left != missing:
            families.append(name)
            missing = left
    if missing:
        some = "".join(sorted(missing)[:8])
        notify(FontWarning(f"no font here has the letters {some}", "install one that has, such as Noto Sans CJK"))
    return tuple(families)


def _lacking(path: str, letters: set[str]) -> set[str]:
    """The letters that a font does not have."""
    from matplotlib.font_manager import get_font

    font = get_font(path)
    return {letter for letter in letters if not font.get_char_index(ord(letter))}


@functools.cache
def _other_fonts() -> list[tuple[str, str]]:
    """Upright fonts of the machine by name, also those that came after Matplotlib's own list was made; CJK first."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known = {entry.fname for entry in fontManager.ttflist}
    for path in findSystemFonts():
        if path not in known:
            with contextlib.suppress(Exception):  # files that are no fonts are no matter
                fontManager.addfont(path)
    fonts = {entry.name: entry.fname for entry in fontManager.ttflist if (entry.style, entry.weight) == ("normal", 400)}
    order = sorted(fonts, key=lambda name: ("CJK" not in name, "Sans" not in name, name))
    return [(name, fonts[name]) for name in order if "Last Resort" not in name]  # which draws boxes for all letters


@functools.lru_cache(4096)
def text_size(text: str, size: float, fonts: tuple[str, ...]) -> tuple[float, float]:
    """Return width and height of one line in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    font = FontProperties(family=list(fonts), size=size)
    with quiet_about_letters():
        return TextToPath().get_text_width_height_descent(text, font, ismath=False)[:2]


@contextlib.contextmanager
def quiet_about_letters() -> Iterator[None]:
    """Keep Matplotlib from repeating for every letter what `fonts_for` has said once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


# -- checks and files -------------------------------------------------------------------------------------------------
def largest(values: np.ndarray) -> float:
    """Return the end of a colour scale centred at zero."""
    return float(np.abs(values).max(initial=0.0)) or 1.0


def counted(n: int, word: str, words: str | None = None) -> str:
    """Return a number with its noun, in the singular where it is one."""
    return f"{n:,} {word if n == 1 else words or f'{word}s'}"


def require(machine: object, attribute: str, kind: str) -> None:
    """Raise unless a fitted estimator has what is drawn; `kind` is one that has."""
    if hasattr(machine, "fit"):
        check_is_fitted(machine)
    if not hasattr(machine, attribute):
        raise ArgumentError(f"a {type(machine).__name__} has no {attribute}", f"draw this picture of a {kind}")


def read_for(machine: Estimator, rows: object) -> Dataset:
    """Read rows in the labels of a fitted machine."""
    return Dataset.read(rows, coding=machine.coding_, declared_by="the model")


def save_figure(ax: Axes, path: str | os.PathLike[str], dpi: int = 150) -> None:
    """Write the figure of an `Axes` to a file by its extension (.png, .svg, .pdf), whole or not at all.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "couplings.png"
    >>> gb.plots.save_figure(gb.plots.couplings(bm), path)
    >>> path.read_bytes()[1:4]
    b'PNG'
    """
    buffer = io.BytesIO()
    kind = os.path.splitext(path)[1].lstrip(".").lower() or "png"
    with quiet_about_letters():
        ax.figure.canvas.figure.savefig(buffer, format=kind, dpi=dpi, bbox_inches="tight")
    write_atomically(path, buffer.getvalue())
