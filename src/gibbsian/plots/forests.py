"""How surely parameters are known: intervals, and what refits agree about."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from gibbsian.display import short
from gibbsian.plots.canvas import COLOURS, LONGEST, Axes, chart, fonts_for
from gibbsian.uncertainty import BootstrapResult, StandardErrors
from gibbsian.uncertainty.tables import ConfidenceIntervals

if TYPE_CHECKING:
    import pandas

Named = TypeVar("Named", ConfidenceIntervals, BootstrapResult)

SURE, UNSURE = COLOURS[0], "0.55"


def intervals(
    result: ConfidenceIntervals | StandardErrors | BootstrapResult,
    *,
    ax: Axes | None = None,
    n: int = 30,
    level: float = 0.95,
    biases: bool = False,
) -> Axes:
    """Draw the strongest parameters with their confidence intervals; those that hold zero are hollow and grey.

    Parameters
    ----------
    result : ConfidenceIntervals, StandardErrors or BootstrapResult
        What `gibbsian.uncertainty` gives.
    ax : Axes, optional
        Where to draw.
    n : int
        How many parameters at most.
    level : float
        Of intervals that are yet to be taken from errors or refits.
    biases : bool
        Draw those of single columns too.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
    >>> limits = gb.uncertainty.confidence_intervals(gb.BoltzmannMachine().fit(rows), rows)
    >>> [label.get_text() for label in gb.plots.intervals(limits).get_yticklabels()]
    ['x0*x1']
    """
    limits = _short(result if isinstance(result, ConfidenceIntervals) else result.intervals(level))
    chosen = np.ones(limits.low.size, bool) if biases else limits.model.penalised
    table = limits.table[chosen].sort_values("estimate", key=np.abs, ascending=False, kind="stable").head(n)
    crossing = ~((table["low"] > 0) | (table["high"] < 0))
    return _forest(ax, table, np.where(crossing, UNSURE, SURE), "parameter", f"{limits.level:.0%} intervals")


def stability(result: BootstrapResult, *, ax: Axes | None = None, n: int = 30) -> Axes:
    """Draw the strongest interactions, the middle 95% of their refits, and how many of these have the same sign.

    Where strengths are norms of tables, which have no sign, that is the share of refits in which they are not zero.

    Parameters
    ----------
    result : BootstrapResult
        What `gibbsian.uncertainty.bootstrap` gives.
    ax : Axes, optional
        Where to draw.
    n : int
        How many interactions at most.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]] * 20
    >>> refits = gb.uncertainty.bootstrap(gb.BoltzmannMachine().fit(rows), rows, n_replicates=20, random_state=0)
    >>> gb.plots.stability(refits).get_title()
    '20 refits, and how many agree about the sign'
    """
    table = _short(result).stability.sort_values("estimate", key=np.abs, ascending=False, kind="stable").head(n)
    words = f"{len(result.thetas)} refits, and how many agree about the sign"
    ax = _forest(ax, table, np.where(table["share"] < 0.95, UNSURE, SURE), result.model.interactions().measure, words)
    for place, share in enumerate(table["share"]):
        ax.text(1.01, place, f"{share:.0%}", transform=ax.get_yaxis_transform(), va="center", fontsize=8)
    return ax


def _short(result: Named) -> Named:
    """The same with names of columns of which several fit beside an axis."""
    return replace(result, names=tuple(short(name, LONGEST * 3 // 4) for name in result.names))


def _forest(ax: Axes | None, table: pandas.DataFrame, colours: np.ndarray, what: str, title: str) -> Axes:
    """Draw estimates with bars from low to high, one below the other."""
    ax = chart(ax, what, "", (7.0, 1.4 + 0.24 * max(len(table), 4)))
    ax.axvline(0.0, color="0.5", linewidth=1, zorder=0.9)
    for place, (estimate, low, high, tint) in enumerate(
        zip(table["estimate"], table["low"], table["high"], colours, strict=True)
    ):
        ax.plot([low, high], [place, place], color=tint, linewidth=2, solid_capstyle="butt")
        ax.plot(estimate, place, "o", color=tint, markersize=5, markerfacecolor=tint if tint == SURE else "white")
    names = list(table.index)
    ax.set_yticks(range(len(names)), names, fontsize=8, family=list(fonts_for(names)), parse_math=False)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_title(title)
    return ax
