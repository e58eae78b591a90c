"""Mixtures of machines: independent columns of labels, machines of the library and of others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.neighbors import KernelDensity

import gibbsian as gb
from gibbsian import GaussianMixture, HardKMeans, MachineMixture
from gibbsian.errors import ArgumentError, DataError


@pytest.fixture(scope="module")
def blobs() -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.concatenate([rng.normal(size=(n, 2)) * s + m for n, s, m in ((60, 0.5, 2), (90, 1.0, 9), (30, 2.0, -9))])


@pytest.fixture(scope="module")
def answers() -> tuple[np.ndarray, np.ndarray]:
    """Six answers of two kinds of people, and the kinds."""
    rng = np.random.default_rng(4)
    classes = rng.integers(0, 2, 600)
    return np.where(rng.random((600, 6)) < np.array([0.15, 0.85])[classes][:, None], 1, 0), classes


class TestMachines:
    def test_two_classes_of_independent_answers_are_found(self, answers):
        table, classes = answers
        fitted = MachineMixture(2, machine="bernoulli", smoothing=0.0, random_state=0).fit(table)
        agreement = (fitted.labels_ == classes).mean()
        assert max(agreement, 1 - agreement) > 0.95
        ones = fitted.probabilities_[:, 1::2]
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
        assert fitted.fit(words).converged_
        assert (np.diff(fitted.free_energies_) <= 0).all()
        assert set(np.unique(fitted.sample(50, random_state=0))) <= {"no", "yes", "maybe"}

    def test_smoothing_to_frequencies(self):
        """The rows that are added have values as often as the data, smoothed alike; those of a class lean to them."""
        table = np.array([[0, 0]] * 3 + [[1, 1]])
        fitted = MachineMixture(2, smoothing=0.5, smooth_to="frequencies", start=[[0, 0], [1, 1]], assignment="hard")
        ones = fitted.fit(table).probabilities_[:, 1::2]
        added = 2 * 0.5 * (1 + 0.5) / (4 + 2 * 0.5)
        np.testing.assert_allclose(ones, [[added / (3 + 1)] * 2, [(1 + added) / (1 + 1)] * 2], rtol=1e-14)
        wide = MachineMixture(3, smoothing=2.0, smooth_to="frequencies", random_state=0).fit(
            np.eye(6).repeat(3, axis=0)
        )
        assert np.diff(wide.free_energies_).max() <= 0
        assert (wide.probabilities_[:, 1::2].mean(axis=1) < 0.25).all()  # uniform smoothing has a half among them

    def test_samples_have_the_distribution(self, answers):
        fitted = MachineMixture(2, random_state=0).fit(answers[0])
        rows, classes = fitted.sample(20_000, random_state=0, return_hidden=True)
        for a in range(2):
            share = rows[classes == a].mean(axis=0)
            assert np.abs(share - fitted.probabilities_[a, 1::2]).max() < 0.025

    def test_any_machine_of_the_library(self, answers):
        """Boltzmann machines without couplings are independent columns: the same mixture."""
        table, _ = answers
        prototype = gb.BoltzmannMachine("empty", learner="mle", tol=1e-10)
        machines = MachineMixture(2, machine=prototype, n_init=1, max_iter=200, tol=1e-9, random_state=0).fit(table)
        named = MachineMixture(2, smoothing=0.0, n_init=3, tol=1e-9, random_state=0).fit(table)
        assert machines.converged_
        assert (np.diff(machines.free_energies_) <= 0).all()
        assert machines.score(table) == pytest.approx(named.score(table), abs=1e-5)
        assert machines.n_parameters_ == named.n_parameters_
        assert machines.bic(table) == pytest.approx(named.bic(table), abs=0.02)
        rows = machines.sample(30, random_state=0)
        assert rows.shape == (30, 6)
        assert set(np.unique(rows)) <= {0, 1}

    def test_machines_are_saved_each_as_its_own_model(self, answers, tmp_path):
        prototype = gb.BoltzmannMachine("chain", learner="mle", l2=0.01)
        fitted = MachineMixture(2, machine=prototype, n_init=1, tol=1e-2, random_state=0).fit(answers[0])
        fitted.save(tmp_path / "m.gibbs")
        again = gb.load(tmp_path / "m.gibbs")
        np.testing.assert_array_equal(again.predict_proba(answers[0]), fitted.predict_proba(answers[0]))
        assert [type(machine) for machine in again.machines_] == [gb.BoltzmannMachine] * 2
        assert again.machine.l2 == 0.01
        np.testing.assert_array_equal(again.sample(9, random_state=0), fitted.sample(9, random_state=0))

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
        with pytest.raises(gb.errors.DataError, match="column 'x2' holds 5, which the model has not seen"):
            fitted.predict([[0, 1, 5, 0, 0, 1]])

    def test_frames_of_words(self):
        frame = pd.DataFrame({"colour": ["red", "blue", "red", "blue"], "size": [1, 2, 1, 2]})
        fitted = MachineMixture(2, random_state=0).fit(frame)
        assert sorted(fitted.labels_.tolist()) == [0, 0, 1, 1]
        assert fitted.feature_names_in_.tolist() == ["colour", "size"]

    def test_bernoulli_takes_two_values(self):
        with pytest.raises(gb.errors.DataError, match="column 'x1' has 3 values"):
            MachineMixture(machine="bernoulli").fit([[0, 0], [1, 1], [0, 2]])

    def test_a_machine_that_does_not_reach_its_maximum_is_found_out(self, answers):
        class Careless(gb.BoltzmannMachine):
            """Forgets what it was told: fits the complement of its weights."""

            def fit(self, X, y=None, sample_weight=None):
                return super().fit(X, sample_weight=1.0 - 0.9 * sample_weight / sample_weight.max())

        with pytest.warns(gb.errors.ConvergenceWarning, match="the free energy rose"):
            MachineMixture(2, machine=Careless("empty", l2=0.01), n_init=1, random_state=1).fit(answers[0])


class TestCells:
    @pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT], ids=str)
    def test_missing_cells_are_left_out(self, missing):
        """A row without its second cell has the summed probability of all values of that cell."""
        frame = pd.DataFrame({"colour": ["red", "blue", "red"], "size": ["s", "m", "s"]}, dtype=object)
        fitted = MachineMixture(2, random_state=0).fit(frame)
        holes = frame.iloc[[1]].copy()
        holes["size"] = missing
        every = pd.DataFrame({"colour": ["blue", "blue"], "size": ["s", "m"]})
        assert fitted.score_samples(holes)[0] == pytest.approx(logsumexp(fitted.score_samples(every)))
        assert fitted.impute(holes)["size"].tolist() == ["m"]

    @pytest.mark.parametrize("column", [[1, 2], [1.5, "red"]], ids=str)
    def test_other_types_have_not_been_seen(self, column):
        frame = pd.DataFrame({"colour": ["red", "blue", "red"]})
        with pytest.raises(DataError, match=r"column 'colour' holds .* which the model has not seen"):
            MachineMixture(1).fit(frame).predict(pd.DataFrame({"colour": column}, dtype=object))

    def test_words_where_numbers_were(self):
        fitted = MachineMixture(2, random_state=0).fit(np.array([[0, 1], [1, 0], [0, 1]]))
        with pytest.raises(DataError, match="column 'x0' holds 'a', which the model has not seen"):
            fitted.predict(np.array([["a", "b"]]))

    def test_lists_are_refused(self):
        rows = np.empty((2, 1), dtype=object)
        rows[:, 0] = [["a"], "b"]
        with pytest.raises(TypeError, match="column 'x0' holds"):
            MachineMixture(1).fit(rows)


class TestMachinesOfNumbers:
    def test_a_mixture_of_mixtures(self, blobs):
        fitted = MachineMixture(2, machine=GaussianMixture(1, variance_floor=0.01), n_init=1, random_state=0).fit(blobs)
        assert fitted.sample(9, random_state=0).shape == (9, 2)
        assert fitted.n_parameters_ == 2 * 3 + 1

    @pytest.mark.parametrize(
        ("machine", "words"),
        [
            (None, "machine=None must be 'categorical', 'bernoulli' or an estimator of this library"),
            (GaussianMixture, "an estimator of this library: give one, such as BoltzmannMachine\\(\\)"),
            (KernelDensity(), "machine=KernelDensity.* must be 'categorical', 'bernoulli' or an estimator of this lib"),
            (HardKMeans(), "machine='HardKMeans' has no density"),
        ],
    )
    def test_what_is_no_machine(self, machine, words, blobs):
        with pytest.raises(ArgumentError, match=words):
            MachineMixture(machine=machine).fit(blobs)

    def test_a_class_that_its_machine_cannot_fit_is_named(self):
        rng = np.random.default_rng(0)
        first = np.repeat([-1, 1], 30)
        rows = np.column_stack([first, np.roll(first, 1), np.roll(first, -1), rng.choice([-1, 1], 60)])
        machine = gb.BoltzmannMachine("empty", learner="mle", l2=0.0)
        with pytest.raises(DataError, match=r"the machine of class \d cannot be fitted to the rows of this class: "):
            MachineMixture(2, machine=machine, assignment="hard", random_state=0).fit(rows)
