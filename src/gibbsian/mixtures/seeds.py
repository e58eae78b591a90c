"""Where fits begin: k-means++ rows, on the line, in space or on the sphere."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus

from gibbsian.mixtures.rows import WeightedRows


def spread_rows(data: WeightedRows, n_components: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows far apart by k-means++ (scikit-learn's), as a dense array of starting means.

    Between unit vectors ``|x - m|^2 = 2 (1 - x.m)``, so that on the sphere this is k-means++ on the sphere.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.rows import collapse
    >>> from gibbsian.mixtures.seeds import spread_rows
    >>> np.sort(spread_rows(collapse([[0.0], [0.1], [9.0]]), 2, np.random.default_rng(0)).ravel())[1].item()
    9.0
    """
    data.require(n_components)
    rows = sparse.csr_matrix(data.rows) if sparse.issparse(data.rows) else data.rows
    seed = int(rng.integers(2**31 - 1))
    weights = data.weights / data.weights.max()  # so that sums of squares stay finite, whatever the unit of the weights
    _, places = kmeans_plusplus(rows, n_components, sample_weight=weights, random_state=seed)
    chosen = data.rows[np.sort(places)]
    return chosen.toarray() if sparse.issparse(chosen) else np.array(chosen)
