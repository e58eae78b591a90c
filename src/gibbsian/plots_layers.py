"""Pictures of machines with hidden layers: filters, samples, reconstructions, free energies, training curves.

As in `gibbsian.plots`, each function draws on the `Axes` it is given, or on a figure of its own, and returns it.
Pictures of images need to know their height and width (`shape`); a square number of columns is taken for a square one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gibbsian.errors import ArgumentError
from gibbsian.models.parameters import check_whole_number
from gibbsian.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HISTOGRAM_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # distinguishable also without colour vision
BETWEEN = "0.85"  # the lines between images
N_BINS = 40
# The first of these that a history has is drawn.
CURVES = ("log_likelihood", "log_pseudolikelihood", "log_reconstruction", "reconstruction_error")
N_SAMPLES = 500  # drawn for a histogram of the model's own free energies


def filters(machine: Any, shape: tuple[int, int] | None = None, n: int = 100, ax: Axes | None = None) -> Axes:
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
    >>> gb.plots_layers.filters(rbm).get_title()
    'filters of 3 hidden units'
    """
    check_is_fitted(machine)
    check_whole_number("n", n, least=1)
    weights = np.asarray(machine.components_, dtype=np.float64)
    layer: Any = getattr(getattr(machine, "model_", None), "visible", None)
    if getattr(layer, "kind", "") == "categorical":
        raise ArgumentError(
            f"the filters of {layer.n_units} columns of categories have a weight for each of {layer.width} "
            "values, which are no image",
            "draw machine.components_ otherwise",
        )
    shape = _image_shape(weights.shape[1], shape)
    order = np.argsort(-np.square(weights).sum(axis=1), kind="stable")[:n]
    limit = float(np.abs(weights[order]).max(initial=0.0)) or 1.0
    ax = _mosaic(ax, weights[order], shape, COLOURS, (-limit, limit))
    ax.figure.colorbar(ax.images[-1], ax=ax, shrink=0.7, label="weight")
    some = "" if len(order) == len(weights) else f"{len(order)} strongest of "
    ax.set_title(f"filters of {some}{len(weights)} hidden units")
    return ax


def samples(
    machine: Any, shape: tuple[int, int] | None = None, n: int = 100, ax: Axes | None = None, **settings: Any
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
    >>> gb.plots_layers.samples(rbm, n=9).get_title()
    '9 samples'
    """
    check_is_fitted(machine)
    check_whole_number("n", n, least=1)
    images = _numbers(machine, machine.sample(n, **settings))
    ax = _mosaic(ax, images, _image_shape(images.shape[1], shape), "gray_r", _limits(images))
    ax.set_title(f"{n} sample{'s' * (n != 1)}")
    return ax


def reconstructions(
    machine: Any, X: Any, shape: tuple[int, int] | None = None, n: int = 10, ax: Axes | None = None
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
    >>> gb.plots_layers.reconstructions(rbm, rows, n=5).get_title()
    '5 rows, and below each its reconstruction'
    """
    check_is_fitted(machine)
    check_whole_number("n", n, least=1)
    _require(machine, "reconstruct")
    given = _numbers(machine, X)[:n]
    made = np.asarray(machine.reconstruct(X), dtype=np.float64)[:n]
    images = np.concatenate([given, made])
    ax = _mosaic(ax, images, _image_shape(images.shape[1], shape), "gray_r", _limits(images), n_columns=len(given))
    ax.set_title(f"{len(given)} rows, and below each its reconstruction")
    return ax


def free_energies(machine: Any, data: Mapping[str, Any], sampled: bool = True, ax: Axes | None = None) -> Axes:
    """Draw histograms of the free energies of several sets of rows: where they part, the machine overfits.

    Rows that the fit did not see should lie where those of the fit do, and so should samples of the machine.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        A fitted machine, or any with ``free_energy``.
    data : mapping from label to rows
        Such as ``{"fit": X_train, "held out": X_test}``.
    sampled : bool
        Add samples of the machine.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.repeat(np.eye(4, dtype=int), 10, axis=0)
    >>> rbm = gb.RestrictedBoltzmannMachine(3, random_state=0).fit(rows)
    >>> ax = gb.plots_layers.free_energies(rbm, {"fit": rows})
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['fit: 40 rows', 'samples: 500 rows']
    """
    check_is_fitted(machine)
    _require(machine, "free_energy")
    ax = _axes(ax, (7.0, 4.2))
    sets = {label: machine.free_energy(rows) for label, rows in data.items()}
    if sampled:
        sets["samples"] = machine.free_energy(machine.sample(N_SAMPLES))
    if not sets:
        raise ArgumentError("data holds no rows", "give a mapping from labels to rows, or `sampled=True`")
    edges = np.histogram_bin_edges(np.concatenate(list(sets.values())), bins=N_BINS).tolist()
    for k, (label, energies) in enumerate(sets.items()):
        colour = HISTOGRAM_COLOURS[k % len(HISTOGRAM_COLOURS)]
        told = f"{label}: {len(energies):,} row{'s' * (len(energies) != 1)}"
        ax.hist(energies, bins=edges, density=True, histtype="stepfilled", alpha=0.25, color=colour)
        ax.hist(energies, bins=edges, density=True, histtype="step", linewidth=1.5, color=colour, label=told)
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles, labels, frameon=False)
    ax.set_xlabel("free energy F(v)")
    ax.set_ylabel("density")
    ax.set_title("free energies")
    ax.grid(color="0.93")
    return ax


def training_curves(machine: Any, ax: Axes | None = None) -> Axes:
    """Draw how the likelihoods rose during a fit: of its own rows solid, of rows held out dashed.

    Log-likelihoods are drawn where they were summed, and pseudolikelihoods otherwise; of real numbers the error of
    their reconstruction.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        A fitted machine, or any with ``history_``.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.repeat(np.eye(4, dtype=int), 10, axis=0)
    >>> rbm = gb.RestrictedBoltzmannMachine(3, held_out=0.2, random_state=0).fit(rows)
    >>> ax = gb.plots_layers.training_curves(rbm)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['log-likelihood', 'log-likelihood, held out']
    """
    check_is_fitted(machine)
    history: Mapping[str, np.ndarray] = machine.history_
    figure = next((name for name in CURVES if name in history), None)
    if figure is None:
        raise ArgumentError(
            "the machine has no curve to draw, because its layers never learned together (fine_tune=0, "
            "or a fit that was stopped before)",
            "result_.trace has the epochs of each layer alone",
        )
    ax = _axes(ax, (7.0, 4.2))
    told = figure.replace("log_", "log-").replace("_", " ")
    curves = {figure: (told, "-"), f"held_out_{figure}": (f"{told}, held out", "--")}
    for k, (name, (label, style)) in enumerate(curves.items()):
        if name in history:
            values = np.asarray(history[name])
            ax.plot(np.arange(len(values)), values, style, color=HISTOGRAM_COLOURS[k], label=label, marker=".")
    ax.legend(frameon=False)
    ax.set_xlabel("epoch")
    ax.set_ylabel(f"{told}, nats a row" if figure.startswith("log_") else told)
    ax.set_title(machine.result_.reason, fontsize=10)
    ax.grid(color="0.93")
    return ax


def _require(machine: Any, method: str) -> None:
    if not hasattr(machine, method):
        raise ArgumentError(
            f"a {type(machine).__name__} has no {method}", "draw this picture of a RestrictedBoltzmannMachine"
        )


def _numbers(machine: Any, X: Any) -> np.ndarray:
    """Rows as the machine's own numbers, whatever labels they are written in."""
    return np.asarray(machine._read(X).rows()[0], dtype=np.float64)


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
        raise ArgumentError(f"{n_columns} columns are no image of {height} x {width}", "give shape=(height, width)")
    return height, width


def _limits(images: np.ndarray) -> tuple[float, float]:
    low, high = float(images.min(initial=0.0)), float(images.max(initial=0.0))
    return low, high if high > low else low + 1.0


def _mosaic(
    ax: Axes | None,
    rows: np.ndarray,
    shape: tuple[int, int],
    colours: str,
    limits: tuple[float, float],
    n_columns: int | None = None,
) -> Axes:
    """Draw rows as images side by side, from left to right and then down."""
    from matplotlib import colormaps

    height, width = shape
    n_columns = n_columns or int(np.ceil(np.sqrt(len(rows) * height / width)))
    n_rows = -(-len(rows) // n_columns)
    tiles = np.full((n_rows, n_columns, height + 1, width + 1), np.nan)  # a line between neighbours
    tiles.reshape(-1, height + 1, width + 1)[: len(rows), :height, :width] = rows.reshape(-1, height, width)
    picture = tiles.transpose(0, 2, 1, 3).reshape(n_rows * (height + 1), n_columns * (width + 1))[:-1, :-1]
    size = float(np.clip(picture.shape[1] / 12, 4.0, 12.0))
    ax = _axes(ax, (size, float(np.clip(size * picture.shape[0] / picture.shape[1] + 0.6, 1.6, 14.0))))
    shades = colormaps[colours].with_extremes(bad=BETWEEN)
    ax.imshow(picture, cmap=shades, vmin=limits[0], vmax=limits[1], interpolation="nearest")
    ax.set_axis_off()
    return ax


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()
