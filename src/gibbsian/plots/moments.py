"""Moments of the model against those of data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.diagnostics import data_moments
from gibbsian.errors import DataError
from gibbsian.plots.canvas import NEGATIVE, POSITIVE, chart, read_for, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def moment_scatter(machine: Any, data: Any, ax: Axes | None = None) -> Axes:
    """Draw the model's first and second moments against those of data; a perfect match lies on the line.

    The moments of the data are taken over the rows in which the cells in question are present.

    Parameters
    ----------
    machine : BoltzmannMachine
        A fitted machine.
    data : array, frame, path or Dataset
        Data in the machine's coding.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import gibbsian as gb
    >>> X = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
    >>> gb.plots.moment_scatter(gb.BoltzmannMachine().fit(X), X).get_xlabel()
    'data'
    """
    require(machine, "couplings_", "BoltzmannMachine")
    table, model = read_for(machine, data), machine.model_
    moments = data_moments(model, table)
    if moments is None:
        raise DataError("the moments of these rows are not known, because cells are missing", "draw complete rows")
    observed, expected = moments.mean, machine.expect()
    where = "data (over the rows where the cells are present)" if table.has_missing else "data"
    ax = chart(ax, where, "model", (6.4, 6.0))
    ax.axline((0, 0), slope=1, color="0.5", linewidth=1, zorder=0.9)
    columns, pairs = slice(0, model.n_biases), slice(model.n_biases, None)
    for label, part, colour, size in (
        ("columns $E[x_i]$", columns, POSITIVE, 36),
        ("pairs $E[x_i x_j]$", pairs, NEGATIVE, 14),
    ):
        x, y, bars = observed[part], expected.mean[part], 2 * expected.stderr[part]
        if not len(x):
            continue
        if bars.any():
            ax.errorbar(x, y, yerr=bars, fmt="none", ecolor="0.7", zorder=1)
        ax.scatter(x, y, size, colour, marker="o", label=label, alpha=0.75, linewidths=0)
    # the root mean square says what the eye cannot measure
    distance = float(np.sqrt(np.nanmean((observed - expected.mean) ** 2)))
    ax.set_title(f"moments: data and model (rms difference {distance:.2g})")
    ax.set_aspect("equal", adjustable="datalim")
    ax.legend(loc="upper left", frameon=False)
    return ax
