"""EM in every variant: the free energy never rises, limits meet, independent programs agree."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture as ScikitGaussianMixture

import gibbsian as gb
from gibbsian.estimators.mixtures import (
    GaussianMixture,
    HardKMeans,
    MachineMixture,
    OnlineKMeans,
    SoftKMeans,
    VonMisesFisherMixture,
)
from gibbsian.mixtures import (
    ExponentialProblem,
    KMeansProblem,
    SphericalGaussians,
    collapse,
    em,
    exponential,
    spread_rows,
    unit_rows,
)
from gibbsian.mixtures.concentration import METHODS
from gibbsian.mixtures.online_kmeans import OnlineState


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


@pytest.fixture(scope="module")
def answers() -> tuple[np.ndarray, np.ndarray]:
    """Six answers of two kinds of people, and the kinds."""
    rng = np.random.default_rng(4)
    classes = rng.integers(0, 2, 600)
    return np.where(rng.random((600, 6)) < np.array([0.15, 0.85])[classes][:, None], 1, 0), classes


VARIANTS = [
    HardKMeans(4),
    SoftKMeans(4, variance=0.7),
    SoftKMeans(4, variance=0.05, anneal=True, n_init=1),
    GaussianMixture(4),
    GaussianMixture(4, variance="tied"),
    *[
        VonMisesFisherMixture(4, kappa=kappa, weights=weights, assignment=assignment)
        for kappa, weights, assignment in itertools.product(("free", "tied", 20.0), ("free", "equal"), ("soft", "hard"))
    ],
    *[VonMisesFisherMixture(4, kappa_method=method) for method in METHODS],
    *[VonMisesFisherMixture(4, kappa="tied", kappa_method=method) for method in METHODS],
]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.filterwarnings("ignore::gibbsian.errors.DegenerateDataWarning")
def test_the_free_energy_never_rises(variant, seed, overlapping):
    """The trace itself is checked from step to step by the loop; here by the definition of what is traced."""
    weights = np.random.default_rng(seed).random(len(overlapping)) + 0.5
    fitted = variant.set_params(random_state=seed).fit(overlapping, sample_weight=weights)
    result = fitted.result_
    assert result.converged, result.reason
    for stage in np.unique(result.stages):
        part = result.free_energies[result.stages == stage]
        assert (np.diff(part) <= 0).all()
    if hasattr(fitted, "score_samples") and getattr(fitted, "assignment", "soft") == "soft":
        assert result.free_energy == pytest.approx(-(weights @ fitted.score_samples(overlapping)), rel=1e-9)


def test_raw_steps_do_not_rise(overlapping):
    """Without the loop, which would hide a rise within rounding: both steps by hand."""
    problem = ExponentialProblem(SphericalGaussians(), collapse(overlapping))
    mixture = problem.from_means(spread_rows(problem.data, 4, np.random.default_rng(0)))
    energies = []
    for _ in range(50):
        energy, expected = problem.expect(mixture)
        energies.append(energy)
        mixture = problem.maximise(expected, mixture)
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
    assert (shares * (np.log(shares) - joint)).sum() == pytest.approx(fitted.result_.free_energy, rel=1e-9)
    other = np.random.default_rng(0).dirichlet(np.ones(3), len(overlapping))
    assert (other * (np.log(other) - joint)).sum() > fitted.result_.free_energy


class TestHardKMeans:
    def test_same_as_scikit_learn_from_the_same_start(self, overlapping):
        data = collapse(overlapping)
        start = spread_rows(data, 5, np.random.default_rng(1))
        problem = KMeansProblem(data)
        ours = em.iterate(problem, problem.from_means(start), 500, 0.0)
        theirs = KMeans(5, init=start, n_init=1, max_iter=500, tol=0.0).fit(data.rows)
        np.testing.assert_allclose(ours.mixture.means, theirs.cluster_centers_, atol=1e-10)
        assert ours.free_energy == pytest.approx(theirs.inertia_, rel=1e-12)

    def test_energy_by_equation_1(self, overlapping):
        fitted = HardKMeans(5, random_state=0).fit(overlapping)
        distances = np.square(overlapping[:, None] - fitted.means_).sum(axis=2)
        assert fitted.energy_ == pytest.approx(distances.min(axis=1).sum())
        assert fitted.score(overlapping) == pytest.approx(-fitted.energy_)
        np.testing.assert_array_equal(fitted.labels_, distances.argmin(axis=1))

    def test_an_emptied_class_is_restarted(self):
        """A start far from all rows wins none of them; the energy still falls."""
        problem = KMeansProblem(collapse([[0.0], [1.0], [10.0], [11.0]]))
        result = em.iterate(problem, problem.from_means(np.array([[5.0], [500.0]])), 100, 0.0)
        assert result.free_energy == 1.0
        assert (np.diff(result.free_energies) <= 0).all()

    def test_far_from_the_origin(self, separated):
        near, far = (HardKMeans(3, random_state=0).fit(separated + shift) for shift in (0.0, 1e8))
        assert far.energy_ == pytest.approx(near.energy_, rel=1e-5)


class TestSoftKMeans:
    def test_a_small_variance_reproduces_hard_k_means(self, overlapping):
        """From the same start, row by row; sigma -> 0 (YK15)."""
        data = collapse(overlapping)
        start = spread_rows(data, 4, np.random.default_rng(3))
        hard_problem = KMeansProblem(data)
        hard = em.iterate(hard_problem, hard_problem.from_means(start), 500, 0.0)
        soft_problem = ExponentialProblem(SphericalGaussians(1e-7, free_weights=False), data)
        soft = em.iterate(soft_problem, soft_problem.from_means(start), 500, 0.0)
        np.testing.assert_allclose(soft.mixture.means, hard.mixture.means, atol=1e-9)
        # 2 sigma^2 F is the energy of eq. 1, up to the constants of the normalisation
        constant = data.total_weight * (1.5 * np.log(2 * np.pi * 1e-7) + np.log(4))
        assert 2e-7 * (soft.free_energy - constant) == pytest.approx(hard.free_energy, rel=1e-6)

    def test_annealing_ends_at_a_hard_solution_of_little_energy(self, overlapping):
        annealed = SoftKMeans(4, variance=1e-6, anneal=True, n_init=1, random_state=0).fit(overlapping)
        best = HardKMeans(4, n_init=30, random_state=0).fit(overlapping)
        shares = annealed.predict_proba(overlapping)
        assert np.sort(shares, axis=1)[:, -1].min() > 0.999
        ends = HardKMeans(4, random_state=0).fit(overlapping)
        ends._keep(em.iterate(*_one_step(annealed.means_, overlapping)))
        assert ends.energy_ <= 1.02 * best.energy_
        assert len(np.unique(annealed.result_.stages)) > 20

    def test_means_of_the_lecture(self, overlapping):
        """At the end m_a is the mean of the rows weighted by P(a | x), those by the lecture's formula."""
        fitted = SoftKMeans(3, variance=2.0, tol=1e-13, random_state=0).fit(overlapping)
        exponents = -np.square(overlapping[:, None] - fitted.means_).sum(axis=2) / 4.0
        shares = np.exp(exponents - logsumexp(exponents, axis=1, keepdims=True))
        np.testing.assert_allclose(fitted.predict_proba(overlapping), shares, atol=1e-10)
        np.testing.assert_allclose(fitted.means_, shares.T @ overlapping / shares.sum(axis=0)[:, None], atol=1e-4)


def _one_step(means, rows):
    problem = KMeansProblem(collapse(rows))
    return problem, problem.from_means(means), 500, 0.0


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

    def test_samples_have_the_law(self):
        truth = GaussianMixture(2, random_state=0).fit(np.random.default_rng(0).normal(size=(200, 2)) ** 3)
        rows, classes = truth.sample(40_000, random_state=1)
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
        batch = VonMisesFisherMixture(3, kappa=1.0, weights="equal", assignment="hard", random_state=seed).fit(rows)
        energy = 2 * (1 - (rows @ batch.means_.T).max(axis=1)).sum()
        online = OnlineKMeans(3, random_state=seed).fit(separated)
        np.testing.assert_allclose(np.linalg.norm(online.means_, axis=1), 1.0)
        assert energy * (1 - 1e-12) <= online.energy_ <= 1.05 * energy

    def test_one_row_moves_only_the_winner(self):
        units = OnlineKMeans(normalize=False, rate=0.5, random_state=0).partial_fit([[0.0, 0.0], [4.0, 4.0]])
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
        units = OnlineKMeans(2, random_state=0).fit(rows)
        with pytest.warns(gb.errors.DegenerateDataWarning, match="unit 1 has won no row"):
            units._end(OnlineState(units.means_, np.array([3.0, 0.0])), [0.0], rows)


class TestMachines:
    def test_two_classes_of_independent_answers_are_found(self, answers):
        table, classes = answers
        fitted = MachineMixture(2, machine="bernoulli", smoothing=0.0, random_state=0).fit(table)
        agreement = (fitted.labels_ == classes).mean()
        assert max(agreement, 1 - agreement) > 0.95
        ones = fitted.mixture_.probabilities[:, 1::2]
        np.testing.assert_allclose(np.sort(ones.mean(axis=1)), [0.15, 0.85], atol=0.04)
        # the likelihood by its definition
        joint = np.log(fitted.weights_) + table @ np.log(ones).T + (1 - table) @ np.log1p(-ones).T
        np.testing.assert_allclose(fitted.score_samples(table), logsumexp(joint, axis=1), rtol=1e-12)
        assert fitted.n_parameters_ == 2 * 6 + 1

    @pytest.mark.parametrize("assignment", ["soft", "hard"])
    @pytest.mark.parametrize("smoothing", [0.0, 0.5])
    def test_monotone(self, answers, assignment, smoothing):
        words = np.array(["no", "yes", "maybe"])[answers[0] + (np.arange(600) % 7 == 0)[:, None]]
        fitted = MachineMixture(3, assignment=assignment, smoothing=smoothing, random_state=0)
        result = fitted.fit(words).result_
        assert result.converged
        assert (np.diff(result.free_energies) <= 0).all()
        assert set(np.unique(fitted.sample(50, random_state=0)[0])) <= {"no", "yes", "maybe"}

    def test_samples_have_the_law(self, answers):
        fitted = MachineMixture(2, random_state=0).fit(answers[0])
        rows, classes = fitted.sample(20_000, random_state=0)
        for a in range(2):
            share = rows[classes == a].mean(axis=0)
            assert np.abs(share - fitted.mixture_.probabilities[a, 1::2]).max() < 0.025

    def test_any_machine_of_the_library(self, answers):
        """Boltzmann machines without couplings are independent columns: the same mixture."""
        table, _ = answers
        prototype = gb.BoltzmannMachine("empty", learner="mle", tol=1e-10)
        machines = MachineMixture(2, machine=prototype, n_init=1, max_iter=200, tol=1e-9, random_state=0).fit(table)
        named = MachineMixture(2, smoothing=0.0, n_init=3, tol=1e-9, random_state=0).fit(table)
        assert machines.result_.converged
        assert (np.diff(machines.result_.free_energies) <= 0).all()
        assert machines.score(table) == pytest.approx(named.score(table), abs=1e-5)
        assert machines.n_parameters_ == named.n_parameters_
        assert machines.bic(table) == pytest.approx(named.bic(table), abs=0.02)
        rows, _ = machines.sample(30, random_state=0)
        assert rows.shape == (30, 6)
        assert set(np.unique(rows)) <= {0, 1}
        with pytest.raises(gb.errors.ArgumentError, match="save each of"):
            machines.save("nowhere.gibbs")

    def test_interacting_machines(self):
        """Two classes that agree in every mean and differ in the sign of a coupling, unlike independent columns."""
        rng = np.random.default_rng(0)
        first = rng.choice([-1, 1], 400)
        sign = np.where(np.arange(400) < 200, 1, -1)
        second = first * sign * rng.choice([1, 1, 1, 1, 1, 1, -1], 400)
        third = sign * rng.choice([1, 1, 1, 1, 1, 1, -1], 400)
        table = np.column_stack([first, second, third])
        prototype = gb.BoltzmannMachine(learner="mle", l2=0.001)
        fitted = MachineMixture(2, machine=prototype, n_init=1, max_iter=30, tol=1e-3, random_state=0).fit(table)
        assert fitted.score(table) > MachineMixture(2, random_state=0).fit(table).score(table)

    def test_unseen_value(self, answers):
        fitted = MachineMixture(2, random_state=0).fit(answers[0])
        with pytest.raises(gb.errors.DataError, match="row 0, column 2 holds 5, which the fit has not seen"):
            fitted.predict([[0, 1, 5, 0, 0, 1]])

    def test_frames_of_words(self):
        frame = pd.DataFrame({"colour": ["red", "blue", "red", "blue"], "size": [1, 2, 1, 2]})
        fitted = MachineMixture(2, random_state=0).fit(frame)
        assert sorted(fitted.labels_.tolist()) == [0, 0, 1, 1]
        assert fitted.feature_names_in_.tolist() == ["colour", "size"]

    @pytest.mark.parametrize(
        ("column", "words"),
        [
            (["a", None, "b"], "row 1, column 0 is missing: fill it"),
            (["a", 1, "b"], "column 0 mixes words and numbers"),
        ],
    )
    def test_columns_that_cannot_be_ordered(self, column, words):
        with pytest.raises(gb.errors.DataError, match=words):
            MachineMixture(2).fit(np.array([column, ["x", "y", "z"]], dtype=object).T)

    def test_bernoulli_takes_two_values(self):
        with pytest.raises(gb.errors.DataError, match="column 1 has 3 values"):
            MachineMixture(machine="bernoulli").fit([[0, 0], [1, 1], [0, 2]])

    def test_a_machine_that_does_not_reach_its_maximum_is_found_out(self, answers):
        class Careless:
            """Forgets what it was told: fits the complement of its weights."""

            def __init__(self, step=0):
                self.step = step

            def get_params(self, deep=True):
                return {"step": self.step}

            def fit(self, X, sample_weight):
                mean = np.average(X, axis=0, weights=1.0 - 0.9 * sample_weight / sample_weight.max())
                self.mean_ = np.clip(mean, 0.01, 0.99)
                return self

            def score_samples(self, X):
                return np.asarray(X) @ np.log(self.mean_) + (1 - np.asarray(X)) @ np.log1p(-self.mean_)

        with pytest.warns(gb.errors.ConvergenceWarning, match="the free energy rose"):
            MachineMixture(2, machine=Careless(), n_init=1, random_state=1).fit(answers[0])


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(exponential, "WORTH_THREADS", 0)
    rows = np.random.default_rng(0).normal(size=(9000, 20))
    problem = ExponentialProblem(SphericalGaussians(), collapse(rows))
    assert len(problem.blocks) > 2
    mixture = problem.from_means(rows[:3])
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = problem.expect(mixture)
    finally:
        numba.set_num_threads(threads)
    together = problem.expect(mixture)
    assert alone[0] == together[0]
    np.testing.assert_array_equal(alone[1].sums, together[1].sums)
