"""Hard and online k-means at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsian import Dataset, OnlineKMeans, SoftKMeans
from gibbsian.errors import ArgumentError
from gibbsian.learners import EM, run
from gibbsian.models.spherical_gaussians import KMeansModel


@pytest.fixture(scope="module")
def blobs() -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.concatenate([rng.normal(size=(n, 2)) * s + m for n, s, m in ((60, 0.5, 2), (90, 1.0, 9), (30, 2.0, -9))])


class TestKMeans:
    def test_winners_far_from_the_origin(self):
        rows = 1e9 + np.array([[0.0, 0.0], [1.0, 0.0], [100.0, 0.0], [101.0, 0.0]])
        units = OnlineKMeans(2, normalize=False, random_state=0).fit(rows)
        np.testing.assert_allclose(np.sort(units.means_[:, 0]) - 1e9, [0.5, 100.5], atol=1e-6)

    def test_the_number_of_units_is_settled(self, blobs):
        units = OnlineKMeans(2, random_state=0).partial_fit(blobs).set_params(n_components=3)
        with pytest.raises(ArgumentError, match="n_components=3 but there are 2 classes already"):
            units.partial_fit(blobs)

    def test_a_class_that_loses_all_its_rows_is_refilled(self):
        data = Dataset.read([[0.0], [1.0], [10.0], [11.0]], coding="real")
        start = KMeansModel.unplaced(3, 1).em_steps(data).from_means(np.array([[0.5], [10.5], [99.0]]))
        energies = run(EM(), start, data, max_iter=50, tol=0.0).trace.column("value")
        assert energies[-1] == 0.5
        assert (np.diff(energies) <= 0).all()

    def test_energies_never_rise_among_means_that_are_all_but_equally_near(self):
        """Products of such rows lose every digit of the distances within the clumps."""
        rng = np.random.default_rng(0)
        rows = 1e10 * (np.arange(300) % 2)[:, None] + rng.normal(size=(300, 3))
        steps = KMeansModel.unplaced(6, 3).em_steps(Dataset.read(rows, coding="real"))
        for seed in range(5):
            means = steps.from_means(rows[np.random.default_rng(seed).choice(300, 6, replace=False)])
            energy, labels = steps.expect(means)
            energies = [energy]
            for _ in range(20):
                means = steps.maximise(labels, means)
                energy, labels = steps.expect(means, labels)
                energies.append(energy)
            assert (np.diff(energies) <= 1e-9 * energies[0]).all()

    def test_the_story_of_an_annealed_fit_counts_all_stages(self, blobs):
        soft = SoftKMeans(3, variance=0.1, anneal=True, n_init=1, random_state=0).fit(blobs)
        n_stages = len(np.unique(soft.stages_))
        assert soft.result_.reason == f"converged after {soft.n_iter_} steps in {n_stages} stages"
