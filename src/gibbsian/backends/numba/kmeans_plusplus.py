"""Starting points of classes by k-means++ (Arthur and Vassilvitskii, 2007), of dense or sparse rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from gibbsian.resources import PLAIN_PRODUCT, require_memory, row_blocks


def kmeans_plusplus(points: Any, weights: np.ndarray, n_points: int, seed: int) -> np.ndarray:
    """Return the places of points: each the best of a few drawn in proportion to weight and squared distance.

    The best leaves the least weighted sum of squared distances to the nearest chosen point. Numbers are drawn as
    scikit-learn's ``kmeans_plusplus`` draws them, so that a seed chooses the same points: loading it takes longer than
    most fits.
    """
    _require_memory(points, 2 + int(math.log(n_points)))
    rng, points = np.random.RandomState(seed), points.astype(float, copy=False)
    dense = not sparse.issparse(points)
    squares = (
        np.einsum("ij,ij->i", points, points) if dense else np.asarray(points.multiply(points).sum(axis=1)).ravel()
    )
    places = [rng.choice(len(weights), p=weights / weights.sum())]
    nearest = _squared_distances(points, squares, places)[0]
    left = nearest @ weights
    for _ in range(1, n_points):
        draws = rng.uniform(size=2 + int(math.log(n_points))) * left
        drawn = np.minimum(np.searchsorted(np.cumsum(weights * nearest), draws), len(weights) - 1)
        distances = _squared_distances(points, squares, drawn)
        np.minimum(nearest, distances, out=distances)
        sums = distances @ weights[:, None]
        best = np.argmin(sums)
        nearest, left = distances[best], sums[best]
        places.append(drawn[best])
    return np.array(places)


def _require_memory(points: Any, n_drawn: int) -> None:
    """Ask for the points, the data and features that are kept beside them, and distances of a few in three forms."""
    n, d = points.shape
    kept = 45.0 * points.nnz if sparse.issparse(points) else 24.0 * n * d
    what = f"classes around {n:,} rows of {d:,} numbers"
    require_memory(kept + 8.0 * n * (4 * n_drawn + 6), what, "give fewer rows")


def _squared_distances(points: Any, squares: np.ndarray, places: Any) -> np.ndarray:
    """Squared distances of all points to those at some places, a row for each of these."""
    chosen = points[places]
    if sparse.issparse(points):
        products = (chosen @ points.T).toarray()
    else:
        products, columns = np.empty((len(chosen), len(points))), np.ascontiguousarray(chosen.T)
        for block in row_blocks(len(points), chosen.size, PLAIN_PRODUCT):
            products[:, block] = (points[block] @ columns).T
    products *= -2.0  # in place: fresh pages cost as much as the arithmetic
    products += squares[places][:, None]
    products += squares
    return np.maximum(products, 0.0, out=products)
