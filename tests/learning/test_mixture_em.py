"""EM in every variant: the free energy never rises, limits meet, independent programs agree."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture as ScikitGaussianMixture

from gibbsian import Dataset, GaussianMixture, HardKMeans, OnlineKMeans, SoftKMeans, VonMisesFisherMixture
from gibbsian.backends import classes
from gibbsian.backends.parallel import limited_threads
from gibbsian.learning import EM, LearnerState, run
from gibbsian.learning.bound_mixtures import bound, starting_points
from gibbsian.learning.winner_take_all import WinnerTakeAll
from gibbsian.models import GaussianMixtureFamily, KMeansFamily
from gibbsian.models.base import Model
from gibbsian.models.mixtures.von_mises_fisher import unit_rows


@pytest.fixture(scope="module")
def overlapping() -> np.ndarray:
    rng = np.random.default_rng(7)
    return (
        rng.normal(size=(400, 3)) * rng.choice([0.5, 1.5], (400, 1)) + 2 * rng.normal(size=(4, 3))[np.arange(400) % 4]
    )


@pytest.fixture(scope="module")
def separated() -> np.ndarray:
    rng = np.random.default_rng(8)
    return rng.normal(size=(300, 4)) / 3 + 8 * np.eye(4)[np.arange(300) % 3]


def real(rows) -> Dataset:
    return Dataset.read(np.asarray(rows), coding="real")


def k_means_from(means, data):
    """Run k-means from given means."""
    family = KMeansFamily(*means.shape)
    return run(EM(), Model(family, family.equal(means)), data, max_iter=500, tol=0.0)


VARIANTS = [
    HardKMeans(4),
    SoftKMeans(4, variance=0.7),
    SoftKMeans(4, variance=0.05, anneal=True, n_init=1),
    GaussianMixture(4),
    GaussianMixture(4, variance="tied"),
    *[
        VonMisesFisherMixture(4, kappa=kappa, class_weights=weights, assignment=assignment)
        for kappa, weights, assignment in itertools.product(("free", "tied", 20.0), ("free", "equal"), ("soft", "hard"))
    ],
]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.filterwarnings("ignore::gibbsian.errors.DegenerateDataWarning")
def test_the_free_energy_never_rises(variant, seed, overlapping):
    """The trace itself is checked from step to step by the loop; here by the definition of what is traced."""
    weights = np.random.default_rng(seed).random(len(overlapping)) + 0.5
    fitted = variant.set_params(random_state=seed).fit(overlapping, sample_weight=weights)
    assert fitted.converged_, fitted.result_.reason
    energies = fitted.free_energies_
    stages = getattr(fitted, "stages_", np.zeros(len(energies)))
    for stage in np.unique(stages):
        assert (np.diff(energies[stages == stage]) <= 0).all()
    if getattr(fitted, "assignment", "soft") == "soft":
        assert energies[-1] == pytest.approx(-(weights @ fitted.score_samples(overlapping)), rel=1e-9)


def test_raw_steps_do_not_rise(overlapping):
    """Without the loop, which would hide a rise within rounding: both steps by hand."""
    steps = bound(GaussianMixtureFamily(4, 3), real(overlapping), hard=False)
    mixture = steps.start(np.random.default_rng(0))
    energies = []
    for _ in range(50):
        shared = steps.e_step(mixture)
        energies.append(shared.free_energy)
        mixture = steps.m_step(shared, mixture)
    assert energies[-1] < energies[0] - 10
    assert (np.diff(energies) < 1e-9).all()


def test_free_energy_by_its_definition(overlapping):
    """F(Q, theta) with any shares lies above its minimum over the shares, minus the log-likelihood."""
    fitted = GaussianMixture(3, random_state=0).fit(overlapping)
    joint = np.stack(
        [
            np.log(w) - np.square(overlapping - m).sum(axis=1) / (2 * v) - 1.5 * np.log(2 * np.pi * v)
            for w, m, v in zip(fitted.weights_, fitted.means_, fitted.variances_, strict=True)
        ],
        axis=1,
    )
    np.testing.assert_allclose(fitted.score_samples(overlapping), logsumexp(joint, axis=1), rtol=1e-10)
    shares = fitted.predict_proba(overlapping)
    assert (shares * (np.log(shares) - joint)).sum() == pytest.approx(fitted.free_energies_[-1], rel=1e-9)
    other = np.random.default_rng(0).dirichlet(np.ones(3), len(overlapping))
    assert (other * (np.log(other) - joint)).sum() > fitted.free_energies_[-1]


class TestHardKMeans:
    def test_same_as_scikit_learn_from_the_same_start(self, overlapping):
        data = real(overlapping)
        start = starting_points(data.states, data.weights, 5, np.random.default_rng(1))
        ours = k_means_from(start, data)
        theirs = KMeans(5, init=start, n_init=1, max_iter=500, tol=0.0).fit(data.states)
        np.testing.assert_allclose(ours.model.parts.means, theirs.cluster_centers_, atol=1e-10)
        assert ours.trace.column("value")[-1] == pytest.approx(theirs.inertia_, rel=1e-12)

    def test_energy_by_equation_1(self, overlapping):
        fitted = HardKMeans(5, random_state=0).fit(overlapping)
        distances = np.square(overlapping[:, None] - fitted.means_).sum(axis=2)
        assert fitted.energy_ == pytest.approx(distances.min(axis=1).sum())
        assert fitted.score(overlapping) == pytest.approx(-fitted.energy_ / len(overlapping))
        np.testing.assert_array_equal(fitted.labels_, distances.argmin(axis=1))

    def test_an_emptied_class_is_restarted(self):
        """A start far from all rows wins none of them; the energy still falls."""
        result = k_means_from(np.array([[5.0], [500.0]]), real([[0.0], [1.0], [10.0], [11.0]]))
        energies = result.trace.column("value")
        assert energies[-1] == 1.0
        assert (np.diff(energies) <= 0).all()

    def test_far_from_the_origin(self, separated):
        near, far = (HardKMeans(3, random_state=0).fit(separated + shift) for shift in (0.0, 1e8))
        assert far.energy_ == pytest.approx(near.energy_, rel=1e-5)


class TestSoftKMeans:
    def test_a_small_variance_reproduces_hard_k_means(self, overlapping):
        """From the same start, row by row; sigma -> 0 (YK15)."""
        data = real(overlapping)
        start = starting_points(data.states, data.weights, 4, np.random.default_rng(3))
        hard = k_means_from(start, data)
        steps = bound(GaussianMixtureFamily(4, 3, variance=1e-7, free_weights=False), data, hard=False)
        soft = run(EM(), steps.reported(steps.from_means(start)), data, max_iter=500, tol=0.0)
        np.testing.assert_allclose(soft.model.parts.means, hard.model.parts.means, atol=1e-9)
        # 2 sigma^2 F is the energy of eq. 1, up to the constants of the normalisation
        constant = data.total_weight * (1.5 * np.log(2 * np.pi * 1e-7) + np.log(4))
        energies = [result.trace.column("value")[-1] for result in (soft, hard)]
        assert 2e-7 * (energies[0] - constant) == pytest.approx(energies[1], rel=1e-6)

    def test_annealing_ends_at_a_hard_solution_of_little_energy(self, overlapping):
        annealed = SoftKMeans(4, variance=1e-6, anneal=True, n_init=1, random_state=0).fit(overlapping)
        best = HardKMeans(4, n_init=30, random_state=0).fit(overlapping)
        shares = annealed.predict_proba(overlapping)
        assert np.sort(shares, axis=1)[:, -1].min() > 0.999
        ends = k_means_from(annealed.means_, real(overlapping)).trace.column("value")[-1]
        assert ends <= 1.02 * best.energy_
        assert len(np.unique(annealed.stages_)) > 20

    def test_means_of_the_lecture(self, overlapping):
        """At the end m_a is the mean of the rows weighted by P(a | x), those by the lecture's formula."""
        fitted = SoftKMeans(3, variance=2.0, tol=1e-13, random_state=0).fit(overlapping)
        exponents = -np.square(overlapping[:, None] - fitted.means_).sum(axis=2) / 4.0
        shares = np.exp(exponents - logsumexp(exponents, axis=1, keepdims=True))
        np.testing.assert_allclose(fitted.predict_proba(overlapping), shares, atol=1e-10)
        np.testing.assert_allclose(fitted.means_, shares.T @ overlapping / shares.sum(axis=0)[:, None], atol=1e-4)


class TestGaussianMixture:
    def test_agrees_with_scikit_learn(self, overlapping):
        ours = GaussianMixture(4, n_init=10, tol=1e-11, max_iter=5000, random_state=0).fit(overlapping)
        theirs = ScikitGaussianMixture(
            4,
            covariance_type="spherical",
            reg_covar=0.0,
            tol=1e-11,
            max_iter=5000,
            weights_init=ours.weights_,
            means_init=ours.means_,
            precisions_init=1 / ours.variances_,
        ).fit(overlapping)
        np.testing.assert_allclose(theirs.means_, ours.means_, atol=1e-4)
        np.testing.assert_allclose(theirs.covariances_, ours.variances_, rtol=1e-4)
        assert ours.score(overlapping) == pytest.approx(theirs.score(overlapping), abs=1e-9)

    def test_one_component_is_the_sample_mean_and_variance(self, overlapping):
        fitted = GaussianMixture(1).fit(overlapping + 1e6)
        np.testing.assert_allclose(fitted.means_[0] - 1e6, overlapping.mean(axis=0), atol=1e-8)
        assert fitted.variances_[0] == pytest.approx(overlapping.var(axis=0).mean(), rel=1e-8)

    def test_samples_have_the_distribution(self):
        truth = GaussianMixture(2, random_state=0).fit(np.random.default_rng(0).normal(size=(200, 2)) ** 3)
        rows, classes = truth.sample(40_000, random_state=1, return_hidden=True)
        counts = np.bincount(classes, minlength=2)
        assert np.abs(counts / 40_000 - truth.weights_).max() < 4 * np.sqrt(0.25 / 40_000)
        for a in range(2):
            error = np.sqrt(truth.variances_[a] / counts[a])
            assert np.abs(rows[classes == a].mean(axis=0) - truth.means_[a]).max() < 4.5 * error
            assert rows[classes == a].var() == pytest.approx(truth.variances_[a], rel=0.1)


class TestOnlineKMeans:
    @pytest.mark.parametrize("seed", range(5))
    def test_reaches_the_batch_energy_in_space(self, seed, separated):
        batch = HardKMeans(3, random_state=seed).fit(separated)
        online = OnlineKMeans(3, normalize=False, random_state=seed).fit(separated)
        assert batch.energy_ * (1 - 1e-12) <= online.energy_ <= 1.05 * batch.energy_

    @pytest.mark.parametrize("seed", range(5))
    def test_reaches_the_batch_energy_on_the_sphere(self, seed, separated):
        """Against spherical k-means, whose means have unit norm too."""
        rows = unit_rows(separated)
        batch = VonMisesFisherMixture(3, kappa=1.0, class_weights="equal", assignment="hard", random_state=seed).fit(
            rows
        )
        energy = 2 * (1 - (rows @ batch.means_.T).max(axis=1)).sum()
        online = OnlineKMeans(3, random_state=seed).fit(separated)
        np.testing.assert_allclose(np.linalg.norm(online.means_, axis=1), 1.0)
        assert energy * (1 - 1e-12) <= online.energy_ <= 1.05 * energy

    def test_one_row_moves_only_the_winner(self):
        units = OnlineKMeans(normalize=False, learning_rate=0.5, random_state=0).partial_fit([[0.0, 0.0], [4.0, 4.0]])
        before = units.means_.copy()
        winner = units.predict([[3.0, 4.0]])[0]
        units.partial_fit([[3.0, 4.0]])
        expected = before.copy()
        expected[winner] += (np.array([3.0, 4.0]) - before[winner]) / (1 / 0.5 - 1 + units.wins_[winner])
        np.testing.assert_allclose(units.means_, expected)
        assert units.wins_.sum() == 3

    def test_an_idle_unit_is_said(self):
        """Units start at rows and win at least those, so an idle one is put there by hand."""
        rows = np.array([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0]])
        learner, start = WinnerTakeAll(), Model.zeros(KMeansFamily(2, 2))
        state, _ = learner.step(learner.init(start, real(rows), np.random.default_rng(0)))
        idle = LearnerState(state.problem, replace(state.progress, wins=np.array([3.0, 0.0])))
        assert learner.warning(idle).startswith("unit 1 has won no row")


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(classes, "WORTH_THREADS", 0)
    rows = np.random.default_rng(0).normal(size=(9000, 20))
    steps = bound(GaussianMixtureFamily(3, 20), real(rows), hard=False)
    assert len(steps.blocks) > 2
    mixture = steps.from_means(rows[:3])
    with limited_threads(1):
        alone = steps.e_step(mixture)
    with limited_threads(3):
        together = steps.e_step(mixture)
    assert alone[0] == together[0]
    np.testing.assert_array_equal(alone.sums.sums, together.sums.sums)
