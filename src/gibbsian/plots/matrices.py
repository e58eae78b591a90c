"""Interactions as a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.display import short
from gibbsian.models.interactions import Interactions
from gibbsian.plots.canvas import LONGEST, SIGNED, UNSIGNED, Axes, axes, colour_bar, fonts_for, interactions_of

if TYPE_CHECKING:
    from gibbsian.estimators.base import Estimator

MOST_LABELS = 60  # more cannot be read
SHARE = 0.98  # of the entries have colours of their own


def couplings(machine: Estimator | Interactions, *, ax: Axes | None = None) -> Axes:
    """Draw the matrix of interactions, colours centred at zero; grey where two variables do not interact.

    Where some interactions hold three and more variables, pairs stand above the diagonal, and below it the strongest
    larger one that holds both. Machines whose units interact between two layers only have a matrix of columns and
    hidden units. Colours end at a quantile of the strengths.

    Parameters
    ----------
    machine : fitted estimator or Interactions
        Of any kind; see `network`.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import gibbsian as gb
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> [label.get_text() for label in gb.plots.couplings(bm).get_yticklabels()]
    ['x0', 'x1']
    """
    found = interactions_of(machine)
    matrix, names, n = found.matrix(), list(found.names), found.sizes[0]
    rows, columns = slice(None), slice(None)
    if len(found.sizes) == 2 and np.isnan(matrix[:n, :n]).all():
        rows, columns = slice(0, n), slice(n, None)
    shown = np.ma.masked_invalid(matrix[rows, columns])
    high, wide = (float(np.clip(0.3 * size + 2.6, 3.6, 14.0)) for size in shown.shape)
    ax = axes(ax, (wide + 1.6, high))
    ax.set_facecolor("0.9")  # shows where nothing interacts
    ax.imshow(shown, cmap=SIGNED if found.signed else UNSIGNED, aspect="auto" if rows != columns else "equal")
    _name(ax.set_xticks, names[columns], rotation=45, ha="right", rotation_mode="anchor")
    _name(ax.set_yticks, names[rows])
    ax.tick_params(length=0)
    larger = any(len(scope) > 2 for scope in found.scopes)
    ax.set_title("pairs, and below the diagonal larger sets" if larger else "interactions")
    colour_bar(ax, found.strengths, SHARE, found)
    return ax


def _name(set_ticks: Callable[..., object], names: list[str], **settings: object) -> None:
    """Label an axis with names, of very many with some."""
    ticks = range(0, len(names), max(1, -(-len(names) // MOST_LABELS)))
    chosen = [short(names[tick], LONGEST) for tick in ticks]
    set_ticks(ticks, chosen, fontsize=8, family=list(fonts_for(chosen)), parse_math=False, **settings)
