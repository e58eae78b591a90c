"""Rows and weights as images.

An image needs its height and width (`shape`); a square number of columns is taken for a square one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.plots.canvas import SIGNED, Axes, axes, counted, largest, read_for, require
from gibbsian.settings import check_whole_number

if TYPE_CHECKING:
    from gibbsian.estimators.base import Estimator
    from gibbsian.estimators.layered import LayeredMachine
    from gibbsian.estimators.restricted import RestrictedBoltzmannMachine

SHADES = "gray_r"
BETWEEN = "0.85"  # the lines between images


def filters(
    machine: LayeredMachine, *, ax: Axes | None = None, shape: tuple[int, int] | None = None, n: int = 100
) -> Axes:
    """Draw the weights of hidden units as images, strongest first: red excites, blue inhibits.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        A fitted machine, or any estimator with ``components_``.
    shape : (height, width), optional
        Of the images.
    n : int
        How many units at most.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.repeat(np.eye(4, dtype=int), 10, axis=0)
    >>> rbm = gb.RestrictedBoltzmannMachine(3, random_state=0).fit(rows)
    >>> gb.plots.filters(rbm).get_title()
    'filters of 3 hidden units'
    """
    require(machine, "components_", "RestrictedBoltzmannMachine")
    check_whole_number("n", n, least=1)
    weights = np.asarray(machine.components_, dtype=np.float64)
    n_columns, n_values = machine.n_features_in_, weights.shape[1]
    if n_columns != n_values:
        raise ArgumentError(
            f"the filters of {n_columns} columns of categories have a weight for each of {n_values} values, "
            "which are no image",
            "draw machine.components_ otherwise",
        )
    order = np.argsort(-np.square(weights).sum(axis=1), kind="stable")[:n]
    limit = largest(weights[order])
    ax = _mosaic(ax, weights[order], shape, SIGNED, (-limit, limit))
    ax.figure.colorbar(ax.images[-1], ax=ax, shrink=0.7, label="weight")
    some = "" if len(order) == len(weights) else f"{len(order)} strongest of "
    ax.set_title(f"filters of {some}{len(weights)} hidden units")
    return ax


def samples(
    machine: Estimator, *, ax: Axes | None = None, shape: tuple[int, int] | None = None, n: int = 100, **settings: Any
) -> Axes:
    """Draw samples of a machine as images.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        A fitted machine, or any that samples rows.
    shape : (height, width), optional
        Of the images.
    n : int
        How many.
    ax : Axes, optional
        Where to draw.
    **settings
        For ``machine.sample``.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.repeat(np.eye(4, dtype=int), 10, axis=0)
    >>> rbm = gb.RestrictedBoltzmannMachine(3, random_state=0).fit(rows)
    >>> gb.plots.samples(rbm, n=9).get_title()
    '9 samples'
    """
    require(machine, "sample", "RestrictedBoltzmannMachine")
    check_whole_number("n", n, least=1)
    images = _numbers(machine, machine.sample(n, **settings))
    ax = _mosaic(ax, images, shape, SHADES, _limits(images))
    ax.set_title(counted(n, "sample"))
    return ax


def reconstructions(
    machine: RestrictedBoltzmannMachine,
    X: object,
    *,
    ax: Axes | None = None,
    shape: tuple[int, int] | None = None,
    n: int = 10,
) -> Axes:
    """Draw rows as images, and below each what the machine makes of it from its hidden units alone.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        A fitted machine, or any with ``reconstruct``.
    X : array, frame, path or Dataset
        The rows; the first `n` are drawn.
    shape : (height, width), optional
        Of the images.
    n : int
        How many at most.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.repeat(np.eye(4, dtype=int), 10, axis=0)
    >>> rbm = gb.RestrictedBoltzmannMachine(3, random_state=0).fit(rows)
    >>> gb.plots.reconstructions(rbm, rows, n=5).get_title()
    '5 rows, and below each its reconstruction'
    """
    require(machine, "reconstruct", "RestrictedBoltzmannMachine")
    check_whole_number("n", n, least=1)
    given = _numbers(machine, X)[:n]
    made = np.asarray(machine.reconstruct(X), dtype=np.float64)[:n]
    images = np.concatenate([given, made])
    ax = _mosaic(ax, images, shape, SHADES, _limits(images), n_across=len(given))
    ax.set_title(f"{counted(len(given), 'row')}, and below each its reconstruction")
    return ax


def _numbers(machine: Estimator, rows: object) -> np.ndarray:
    """Rows as the machine's own numbers, whatever labels they are written in."""
    table = read_for(machine, rows)
    numbers = table.rows()[0]
    return numbers.astype(np.float64) if table.variables.scores is None else table.variables.scores_of(numbers)


def _limits(images: np.ndarray) -> tuple[float, float]:
    low, high = float(images.min(initial=0.0)), float(images.max(initial=0.0))
    return low, high if high > low else low + 1.0


def _image_shape(n_columns: int, shape: tuple[int, int] | None) -> tuple[int, int]:
    if shape is None:
        side = isqrt(n_columns)
        shape = side, side
    whole = isinstance(shape, Sequence | np.ndarray) and all(isinstance(size, int | np.integer) for size in shape)
    if not whole or len(shape) != 2 or min(shape) < 1:
        raise ArgumentError(
            "must be the height and the width of the images, such as (28, 28)", argument="shape", value=shape
        )
    height, width = shape
    if height * width != n_columns:
        raise ArgumentError(f"{n_columns} columns are no image of {height} x {width}", "give `shape=(height, width)`")
    return height, width


def _mosaic(
    ax: Axes | None,
    rows: np.ndarray,
    shape: tuple[int, int] | None,
    colours: str,
    limits: tuple[float, float],
    n_across: int | None = None,
) -> Axes:
    """Draw rows as images side by side, from left to right and then down."""
    from matplotlib import colormaps

    height, width = _image_shape(rows.shape[1], shape)
    n_across = n_across or int(np.ceil(np.sqrt(len(rows) * height / width)))
    n_down = -(-len(rows) // n_across)
    tiles = np.full((n_down, n_across, height + 1, width + 1), np.nan)  # a line between neighbours
    tiles.reshape(-1, height + 1, width + 1)[: len(rows), :height, :width] = rows.reshape(-1, height, width)
    picture = tiles.transpose(0, 2, 1, 3).reshape(n_down * (height + 1), n_across * (width + 1))[:-1, :-1]
    size = float(np.clip(picture.shape[1] / 12, 4.0, 12.0))
    ax = axes(ax, (size, float(np.clip(size * picture.shape[0] / picture.shape[1] + 0.6, 1.6, 14.0))))
    shades = colormaps[colours].with_extremes(bad=BETWEEN)
    ax.imshow(picture, cmap=shades, vmin=limits[0], vmax=limits[1], interpolation="nearest")
    ax.set_axis_off()
    return ax
