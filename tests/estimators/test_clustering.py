"""Hard and online k-means at the edges."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Dataset, GaussianMixture, HardKMeans, MachineMixture, OnlineKMeans, SoftKMeans
from gibbsian.errors import ArgumentError
from gibbsian.learning import EM, run
from gibbsian.learning.em import mixture_steps
from gibbsian.learning.mixture_steps import random_partition
from gibbsian.models import KMeansFamily


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
        family = KMeansFamily(3, 1)
        start = gb.Model(family, family.equal(np.array([[0.5], [10.5], [99.0]])))
        energies = run(EM(), start, data, max_iter=50, tol=0.0).trace.column("value")
        assert energies[-1] == 0.5
        assert (np.diff(energies) <= 0).all()

    @pytest.mark.parametrize("k", [1, 2, 7, 20])
    def test_rows_that_are_not_looked_at_again_are_where_all_distances_lead(self, k, rng):
        rows, weights = rng.normal(size=(400, 3)), rng.integers(1, 4, 400)
        means, energies = rows[:k].copy(), []
        for _ in range(30):
            distances = np.square(rows[:, None] - means).sum(axis=2)
            energies.append(weights @ distances.min(axis=1))
            shares = (distances.argmin(axis=1) == np.arange(k)[:, None]) * weights
            means = shares @ rows / shares.sum(axis=1, keepdims=True)
        fit = gb.HardKMeans(k, start=rows[:k], max_iter=30).fit(rows, sample_weight=weights)
        n_steps = len(fit.free_energies_)
        assert n_steps > (10 if k > 1 else 1)
        np.testing.assert_allclose(fit.free_energies_, energies[:n_steps], rtol=1e-12)

    def test_rows_belong_to_the_mean_nearest_over_their_present_cells(self, rng, monkeypatch):
        monkeypatch.setattr("gibbsian.backends.classes.LEAST_WIDTH", 2**10)  # blocks of 256 rows
        rows = rng.normal(size=(600, 4))
        rows[:, 1:][rng.random((600, 3)) < 0.4] = np.nan
        fit = gb.HardKMeans(5, random_state=0).fit(rows)
        distances = np.nansum(np.square(rows[:, None] - fit.means_), axis=2)
        assert np.array_equal(fit.predict(rows), distances.argmin(axis=1))
        assert np.array_equal(fit.labels_, distances.argmin(axis=1))

    def test_energies_never_rise_among_means_that_are_all_but_equally_near(self):
        """Products of such rows lose every digit of the distances within the clumps."""
        rng = np.random.default_rng(0)
        rows = 1e10 * (np.arange(300) % 2)[:, None] + rng.normal(size=(300, 3))
        steps = mixture_steps(KMeansFamily(6, 3), Dataset.read(rows, coding="real"), hard=True)
        for seed in range(5):
            theta = steps.from_means(rows[np.random.default_rng(seed).choice(300, 6, replace=False)])
            expected = steps.e_step(theta)
            energies = [expected.value]
            for _ in range(20):
                theta, _ = steps.m_step(theta, expected)
                expected = steps.e_step(theta, expected)
                energies.append(expected.value)
            assert (np.diff(energies) <= 1e-9 * energies[0]).all()

    def test_the_story_of_an_annealed_fit_counts_all_stages(self, blobs):
        soft = SoftKMeans(3, variance=0.1, anneal=True, n_init=1, random_state=0).fit(blobs)
        n_stages = len(np.unique(soft.stages_))
        assert soft.result_.reason == f"converged after {soft.n_iter_} steps in {n_stages} stages"


class TestStarts:
    def test_given_means_by_hand(self):
        """YK15 K-means (2), steps 2 and 3: {0, 1} and {4, 10}, whose means are 0.5 and 7."""
        fitted = HardKMeans(start=[[0.0], [6.0]], n_init=7).fit([[0.0], [1.0], [4.0], [10.0]])
        np.testing.assert_allclose(fitted.free_energies_, [1 + 4 + 16, 0.25 + 0.25 + 9 + 9, 0.25 + 0.25 + 18])
        np.testing.assert_allclose(fitted.means_.ravel(), [0.5, 7.0])

    def test_a_random_partition_begins_near_the_middle(self):
        """Means of classes drawn at random lie near that of all rows, which is not so of rows far apart."""
        rows = np.random.default_rng(0).normal(size=(400, 2)) + 20 * np.eye(2)[np.arange(400) % 2]
        data = gb.Dataset.read(rows, coding="real")
        steps = mixture_steps(KMeansFamily(2, 2), data, hard=True, placing="partition")
        begun = steps.model(*steps.placed(np.random.default_rng(1)))
        assert np.abs(begun.parts.means - rows.mean(axis=0)).max() < 2.0
        labels = random_partition(7, 3, np.random.default_rng(0))
        assert sorted(np.bincount(labels)) == [2, 2, 3]
        for kind in (HardKMeans, SoftKMeans, GaussianMixture, OnlineKMeans):
            for start in ("partition", "random"):
                assert np.isfinite(kind(2, start=start, random_state=0).fit(rows).means_).all()
        steps = mixture_steps(KMeansFamily(2, 2), data, hard=True, placing="random")
        theta, _ = steps.placed(np.random.default_rng(1))
        assert all((steps.points == mean).all(axis=1).any() for mean in steps.family.split(theta).means)

    def test_what_does_not_fit_is_refused(self):
        rows = [[0.0, 1.0], [1.0, 3.0], [10.0, 2.0]]
        for start in ([[0.0, 1.0]], [[0.0], [1.0]], [[0.0, np.nan], [1.0, 1.0]]):
            with pytest.raises(ArgumentError, match="start"):
                HardKMeans(start=start).fit(rows)
        with pytest.raises(ArgumentError, match="all means together"):
            SoftKMeans(anneal=True, start="partition").fit(rows)
        with pytest.raises(ArgumentError, match="places no machines"):
            MachineMixture(2, machine=gb.BoltzmannMachine(l2=0.1), start=[[0, 1], [1, 0]]).fit([[0, 1], [1, 0], [1, 1]])


class TestOnlineRates:
    def test_a_constant_rate_is_the_printed_rule(self):
        """m <- m - 2 zeta (m - x), row by row, for the nearest mean alone; a weight shows a row again."""
        units = OnlineKMeans(start=[0.0, 5.0], normalize=False, schedule="constant", learning_rate=0.5)
        units.partial_fit([[1.0], [4.0], [2.0]])
        np.testing.assert_allclose(units.means_.ravel(), [1.25, 4.5])
        units.partial_fit([[2.25]], sample_weight=[2])
        np.testing.assert_allclose(units.means_.ravel(), [2.0, 4.5])

    def test_units_average_their_present_cells(self):
        rng = np.random.default_rng(0)
        labels = np.arange(60) % 2
        rows = rng.normal(size=(60, 3)) + 50.0 * labels[:, None]
        rows[rng.random(rows.shape) < 0.3] = np.nan
        rows[np.isnan(rows).all(axis=1), 0] = 1.0
        units = OnlineKMeans(start=[[0.0] * 3, [50.0] * 3], normalize=False, max_iter=1, random_state=0).fit(rows)
        expected = [np.nanmean(rows[labels == a], axis=0) for a in range(2)]
        np.testing.assert_allclose(units.means_, expected, rtol=1e-12)
        with pytest.raises(gb.errors.MissingValuesError, match="normalize=False"):
            OnlineKMeans(2).fit(rows)
