"""The points of k-means++ are those that scikit-learn chooses with the same seed."""

import numpy as np
import pytest
import sklearn.cluster
from scipy import sparse

from gibbsian.backends.numba.kmeans_plusplus import kmeans_plusplus


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array, lambda x: (x > 0).astype(np.int8)])
@pytest.mark.parametrize("seed", range(5))
def test_the_same_points_as_scikit_learn(kind, seed):
    rng = np.random.default_rng(seed)
    points, weights = kind(rng.normal(size=(60, 4))), rng.random(60)
    chosen = sklearn.cluster.kmeans_plusplus(points, 2 + 2 * seed, sample_weight=weights, random_state=seed)[1]
    np.testing.assert_array_equal(kmeans_plusplus(points, weights, 2 + 2 * seed, seed), chosen)
