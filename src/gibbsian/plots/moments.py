"""Moments of the model against those of data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsian.diagnostics import data_moments
from gibbsian.errors import ArgumentError, DataError
from gibbsian.plots.canvas import Axes, chart, colour, read_for, require

if TYPE_CHECKING:
    from gibbsian.estimators.base import Estimator


def moment_scatter(machine: Estimator, data: object, *, ax: Axes | None = None) -> Axes:
    """Draw the model's moments against those of data; a perfect match lies on the line.

    The moments of the data are taken over the rows in which the cells in question are present. Bars are two standard
    errors: of the data's mean from left to right, and of the model's, where it is estimated, up and down.

    Parameters
    ----------
    machine : fitted estimator
        A machine whose columns are all that its parameters are about.
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
    require(machine, "expect", "BoltzmannMachine")
    table, model = read_for(machine, data), machine.model_
    if model.n_hidden:
        raise ArgumentError("hidden units have no moments in the data", "draw `free_energies` or `convergence`")
    moments = data_moments(model, table)
    if moments is None:
        raise DataError("the moments of these rows are not known, because cells are missing", "draw complete rows")
    observed, expected = moments.mean, machine.expect()
    low, high = model.family.statistic_range
    # exact where a statistic has two values, and else no less than the truth
    errors = np.sqrt(np.maximum((observed - low) * (high - observed), 0.0) / np.maximum(moments.count, 1.0))
    where = "data (over the rows where the cells are present)" if table.has_missing else "data"
    ax = chart(ax, where, "model", (6.4, 6.0))
    ax.axline((0, 0), slope=1, color="0.5", linewidth=1, zorder=0.9)
    start = 0
    for number, (label, named) in enumerate(machine.statistics().items()):
        part = slice(start, start := start + len(named))
        if len(named):
            x, y = observed[part], expected.value[part]
            bars = {"xerr": 2 * errors[part], "yerr": 2 * expected.monte_carlo_error[part]}
            ax.errorbar(x, y, fmt="none", ecolor="0.8", elinewidth=0.8, zorder=1, **bars)
            ax.scatter(x, y, 36 if number == 0 else 14, colour(number), label=label, alpha=0.75, linewidths=0)
    # the root mean square says what the eye cannot measure
    distance = float(np.sqrt(np.nanmean((observed - expected.value) ** 2)))
    ax.set_title(f"moments: data and model (rms difference {distance:.2g})")
    ax.set_aspect("equal", adjustable="datalim")
    ax.legend(loc="upper left", frameon=False)
    return ax
