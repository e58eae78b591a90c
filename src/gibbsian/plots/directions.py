"""Classes of directions: on the circle and on the sphere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.data.numbers import is_sparse
from gibbsian.errors import ArgumentError
from gibbsian.models.mixtures.von_mises_fisher import unit_rows, without_direction
from gibbsian.plots.canvas import Axes, axes, colour, counted, legend_below, plain, require

if TYPE_CHECKING:
    from gibbsian.estimators.mixtures import VonMisesFisherMixture

MOST_POINTS = 5000  # more cannot be distinguished
N_ANGLES = 721
GRID = (181, 91)  # longitudes and latitudes of the density on the sphere
# Places added around each mean, in units of its width 1/sqrt(kappa): a narrow peak would fall between the others.
NEAR_A_MEAN = np.array([-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0])


def circle(mixture: VonMisesFisherMixture, X: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw directions in the plane on the unit circle, coloured by class, with the density around it.

    Parameters
    ----------
    mixture : VonMisesFisherMixture
        Fitted on two columns.
    X : array of shape (n_rows, 2)
        The rows to draw.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> angles = np.random.default_rng(0).normal(size=60) / 3 + np.pi * (np.arange(60) % 2)
    >>> X = np.column_stack([np.cos(angles), np.sin(angles)])
    >>> gb.plots.circle(gb.VonMisesFisherMixture(random_state=0).fit(X), X).get_title()
    '2 classes on the circle, 60 rows'
    """
    _check(mixture, 2, "circle")
    ax = axes(ax, (6.4, 6.4))
    rows, labels = _shown(mixture, X)
    own = np.arctan2(mixture.means_[:, 1], mixture.means_[:, 0])
    angles = _refined(np.linspace(-np.pi, np.pi, N_ANGLES), _around(own, mixture), np.pi)
    grid = np.column_stack([np.cos(angles), np.sin(angles)])
    log_density = _log_density(mixture, grid)
    radius = 1.0 + 0.6 * np.exp(log_density - log_density.max())
    ax.plot(grid[:, 0], grid[:, 1], color="0.8", linewidth=1, zorder=1)
    ax.plot(radius * grid[:, 0], radius * grid[:, 1], color="0.25", linewidth=1.5, zorder=2, label="density")
    for a, mean in enumerate(mixture.means_):
        x, y = rows[labels == a].T
        ax.scatter(x, y, s=14, c=colour(a), alpha=0.6, linewidths=0, zorder=3, label=_class_label(mixture, a))
        ax.annotate("", xy=tuple(mean), xytext=(0, 0), arrowprops={"arrowstyle": "->", "color": colour(a), "lw": 2})
    ax.set_title(_title(mixture, X, "circle"))
    plain(ax, 1.75, 1.75)
    legend_below(ax, 2, markerscale=2)
    return ax


def sphere(mixture: VonMisesFisherMixture, X: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw directions in space on a map of the whole sphere (Mollweide), coloured by class, over the density.

    Parameters
    ----------
    mixture : VonMisesFisherMixture
        Fitted on three columns.
    X : array of shape (n_rows, 3)
        The rows to draw.
    ax : Axes, optional
        Where to draw, with ``projection="mollweide"``.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) + 5 * np.eye(3)[np.arange(60) % 3]
    >>> gb.plots.sphere(gb.VonMisesFisherMixture(n_components=3, random_state=0).fit(X), X).get_title()
    '3 classes on the sphere, 60 rows'
    """
    _check(mixture, 3, "sphere")
    ax = axes(ax, (9.0, 5.4), projection="mollweide")
    own = _map_places(mixture.means_)
    longitudes, latitudes = np.meshgrid(
        _refined(np.linspace(-np.pi, np.pi, GRID[0]), _around(own[:, 0], mixture), np.pi),
        _refined(np.linspace(-np.pi / 2, np.pi / 2, GRID[1]), _around(own[:, 1], mixture), np.pi / 2),
    )
    grid = np.stack(
        [np.cos(latitudes) * np.cos(longitudes), np.cos(latitudes) * np.sin(longitudes), np.sin(latitudes)], axis=-1
    )
    density = np.exp(_log_density(mixture, grid.reshape(-1, 3))).reshape(longitudes.shape)
    picture = ax.pcolormesh(longitudes, latitudes, density, cmap="Greys", shading="gouraud", rasterized=True, zorder=0)
    rows, labels = _shown(mixture, X)
    for a, mean in enumerate(mixture.means_):
        x, y = _map_places(rows[labels == a]).T
        ax.scatter(x, y, s=9, c=colour(a), alpha=0.6, linewidths=0, label=_class_label(mixture, a))
        ax.plot(*_map_places(mean[None]).T, "X", markersize=11, color=colour(a), markeredgecolor="white")
    ax.figure.colorbar(picture, ax=ax, shrink=0.6, label="density")
    ax.set_title(_title(mixture, X, "sphere"))
    ax.grid(color="0.85", linewidth=0.5)
    ax.tick_params(labelsize=7, colors="0.4")
    legend_below(ax, 3, y=-0.05, markerscale=2)
    return ax


def _check(mixture: VonMisesFisherMixture, n_columns: int, what: str) -> None:
    require(mixture, "concentrations_", "VonMisesFisherMixture")
    if mixture.n_features_in_ != n_columns:
        raise ArgumentError(f"a {what} shows {n_columns} columns, but the mixture has {mixture.n_features_in_}")


def _shown(mixture: VonMisesFisherMixture, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Unit rows and their classes; of very many an even selection, and none without direction."""
    labels = mixture.predict(X)
    rows = X.toarray() if is_sparse(X) else np.asarray(X, dtype=np.float64)
    kept = np.setdiff1d(np.arange(len(rows)), without_direction(rows))
    kept = kept[:: max(1, -(-len(kept) // MOST_POINTS))]
    return unit_rows(rows[kept]), labels[kept]


def _around(places: np.ndarray, mixture: VonMisesFisherMixture) -> np.ndarray:
    """Angles at and near those of the means, nearer the narrower a class is."""
    widths = 1.0 / np.sqrt(np.maximum(mixture.concentrations_, 1.0))
    return (places[:, None] + widths[:, None] * NEAR_A_MEAN).ravel()


def _refined(angles: np.ndarray, more: np.ndarray, end: float) -> np.ndarray:
    """Evenly spaced angles from -end to end and more of them, in order."""
    wrapped = (more + np.pi) % (2 * np.pi) - np.pi
    return np.union1d(angles, wrapped[np.abs(wrapped) <= end])


def _map_places(rows: np.ndarray) -> np.ndarray:
    return np.column_stack([np.arctan2(rows[:, 1], rows[:, 0]), np.arcsin(np.clip(rows[:, 2], -1, 1))])


def _class_label(mixture: VonMisesFisherMixture, a: int) -> str:
    return f"class {a}: weight {mixture.weights_[a]:.2f}, $\\kappa$ {mixture.concentrations_[a]:.3g}"


def _title(mixture: VonMisesFisherMixture, X: ArrayLike, what: str) -> str:
    classes = counted(len(mixture.means_), "class", "classes")
    return f"{classes} on the {what}, {counted(np.shape(X)[0], 'row')}"


def _log_density(mixture: VonMisesFisherMixture, points: np.ndarray) -> np.ndarray:
    """Return the log-density of directions."""
    model = mixture.model_
    return model.family.log_evidence(model.theta, points)
