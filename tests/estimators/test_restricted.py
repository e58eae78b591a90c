"""The restricted machine as an estimator: scikit-learn's contract, tables of every kind, answers, files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import gibbsian as gb
from gibbsian.errors import (
    ArgumentError,
    CodingError,
    DataError,
    FileFormatError,
    GibbsianWarning,
    MissingValuesError,
    TooExpensiveError,
)
from gibbsian.learning.standard_units import ColumnScale, residual_deviations
from gibbsian.models.layers.units import (
    BinaryUnits,
    CategoricalUnits,
    GaussianUnits,
    SpinUnits,
    codes_of,
    count_states,
)
from gibbsian.storage import Checkpoint
from layered_systems import all_values, bits, restricted, small_machine
from layered_systems import rbm as RBM


# scikit-learn's checks feed continuous numbers: taken as they are, or cut.
@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@parametrize_with_checks(
    [RBM(3, max_iter=2, visible="gaussian"), RBM(3, max_iter=2, coding=gb.data.Threshold(0.0))],
    expected_failed_checks=lambda machine: {
        "check_sample_weight_equivalence_on_dense_data": "random minibatches: weights and repeated rows agree in law",
        "check_sample_weight_equivalence_on_sparse_data": "random minibatches: weights and repeated rows agree in law",
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    images, labels = load_digits(return_X_y=True)
    return (images > 7).astype(float), labels


def enumerated(model) -> tuple[np.ndarray, np.ndarray]:
    """The codes of all visible rows and their exact log-probabilities, summed from joint energies."""
    v, h = map(all_values, model.family.layers)
    pairs = np.repeat(v, len(h), axis=0), np.tile(h, (len(v), 1))
    weights = model.family.log_weights_of_values(model.parts, pairs).reshape(len(v), len(h))
    return codes_of(model.family.layers[0], v), logsumexp(weights, axis=1) - logsumexp(weights)


class TestDropIn:
    @pytest.mark.parametrize("kind", [BernoulliRBM, RBM], ids=["scikit-learn", "gibbsian"])
    def test_a_pipeline_runs_with_the_class_swapped(self, digits, kind):
        X, y = digits
        epochs = {"n_iter" if kind is BernoulliRBM else "max_iter": 10}
        settings = {"n_components": 50, "learning_rate": 0.1, "random_state": 0, **epochs}
        pipeline = Pipeline([("rbm", kind(**settings)), ("logistic", LogisticRegression(max_iter=500))])
        pipeline.fit(X[:800], y[:800])
        assert pipeline.score(X[800:], y[800:]) > 0.7
        rbm = pipeline.named_steps["rbm"]
        assert rbm.components_.shape == (50, 64)
        assert (rbm.intercept_hidden_.shape, rbm.intercept_visible_.shape) == ((50,), (64,))
        assert rbm.h_samples_.shape[1] == 50
        assert list(rbm.get_feature_names_out())[:1] == [f"{type(rbm).__name__.lower()}0"]

    def test_better_than_scikit_learn_at_equal_epochs_by_exact_likelihood(self, digits):
        X = digits[0]
        fit, test = X[:1500], X[1500:]
        theirs = BernoulliRBM(20, random_state=0).fit(fit)
        as_model = restricted(
            BinaryUnits(64), BinaryUnits(20), theirs.intercept_visible_, theirs.intercept_hidden_, theirs.components_.T
        )
        ours = RBM(20, random_state=0).fit(fit)
        their_score = (as_model.log_evidence(test) - gb.inference.exact(as_model).log_partition).mean()
        assert ours.score(test) > their_score + 3

    def test_clone_set_params_and_grid_search(self, digits):
        X = digits[0][:200]
        rates = [gb.learning.Minibatch(max_iter=5, learning_rate=rate) for rate in (1e-4, 0.2)]
        search = GridSearchCV(RBM(4, random_state=0), {"learner": rates}, cv=2).fit(X)
        assert search.best_params_ == {"learner": rates[1]}
        other = clone(search.best_estimator_).set_params(n_components=7, learner="em")
        assert (other.n_components, other.learner, hasattr(other, "model_")) == (7, "em", False)

    def test_sparse_rows_are_the_dense_ones(self, digits):
        X = digits[0][:100]
        dense, thin = (RBM(5, max_iter=2, random_state=0).fit(x) for x in (X, sparse.csr_array(X)))
        np.testing.assert_array_equal(dense.model_.theta, thin.model_.theta)
        np.testing.assert_array_equal(dense.transform(X), dense.transform(sparse.csr_matrix(X)))

    def test_pandas_output_and_names(self, digits):
        frame = pd.DataFrame(digits[0][:50, 20:30]).add_prefix("pixel")
        rbm = RBM(2, max_iter=1, random_state=0).set_output(transform="pandas").fit(frame)
        assert list(rbm.feature_names_in_) == list(frame.columns)
        assert list(rbm.transform(frame).columns) == ["restrictedboltzmannmachine0", "restrictedboltzmannmachine1"]
        with pytest.raises(ValueError, match="feature names should match"):
            rbm.transform(frame[frame.columns[::-1]])


class TestTables:
    def test_labels_of_two_values(self):
        rows = [["yes", "no"], ["no", "?"], ["no", "no"]] * 5
        rbm = RBM(2, max_iter=2, random_state=0).fit(rows)
        assert (rbm.coding_.name, rbm.model_.family.layers) == ("yes/no", (BinaryUnits(2), BinaryUnits(2)))
        assert set(rbm.sample(20).ravel()) <= {"yes", "no"}
        with pytest.raises(CodingError):
            rbm.transform([["yes", "perhaps"]])

    def test_spins_make_spin_units(self):
        X = np.where(np.random.default_rng(0).random((40, 3)) < 0.5, -1, 1)
        rbm = RBM(2, max_iter=2, random_state=0).fit(X)
        assert [layer.kind for layer in rbm.model_.family.layers] == ["spin", "spin"]
        hidden = rbm.transform(X)
        assert hidden.min() >= 0
        assert hidden.max() <= 1
        np.testing.assert_allclose(2 * hidden - 1, np.tanh(rbm.intercept_hidden_ + X @ rbm.components_.T))
        assert RBM(2, hidden="binary", max_iter=1).fit(X).model_.family.layers[1].kind == "binary"

    def test_the_kind_of_units_need_not_be_the_coding_of_the_table(self):
        rows = [["yes", "no"], ["no", "yes"]] * 5
        rbm = RBM(2, visible="spin", max_iter=2, random_state=0).fit(rows)
        assert [layer.kind for layer in rbm.model_.family.layers] == ["spin", "spin"]
        assert set(rbm.sample(20).ravel()) <= {"yes", "no"}
        data = gb.Dataset.read(rows)
        np.testing.assert_allclose(rbm.score_samples(data), rbm.score_samples(rows))

    def test_numbers_between_0_and_1_are_probabilities(self):
        X = np.random.default_rng(0).random((50, 4))
        rbm = RBM(3, max_iter=2, random_state=0).fit(X)
        assert rbm.model_.family.layers[0] == BinaryUnits(4)
        np.testing.assert_allclose(rbm.transform(X), 1 / (1 + np.exp(-X @ rbm.components_.T - rbm.intercept_hidden_)))
        assert set(rbm.sample(5).ravel()) <= {0, 1}
        with pytest.raises(DataError, match="x2"):
            rbm.transform([[0.5, 0.5, 1.5, 0.5]])

    def test_grey_rows_are_taken_by_a_machine_fitted_on_black_and_white(self):
        rbm = RBM(3, max_iter=2, random_state=0).fit(np.eye(4))
        assert rbm.transform(np.full((1, 4), 0.5)).shape == (1, 3)

    def test_other_numbers_are_refused_with_the_ways_out(self):
        with pytest.raises(DataError, match=r"column 'b' holds 7.*visible='gaussian'.*coding=Threshold"):
            RBM(2).fit(pd.DataFrame({"a": [0.1, 0.2], "b": [0.5, 7.0]}))

    def test_words_with_many_values_are_categories(self):
        rng = np.random.default_rng(0)
        hair = rng.choice(["red", "brown", "blond"], 60)
        frame = pd.DataFrame({"hair": hair, "again": hair, "size": rng.choice(["s", "l"], 60)})
        rbm = RBM(4, max_iter=300, learning_rate=0.5, random_state=0).fit(frame)
        assert rbm.model_.family.layers[0] == CategoricalUnits((3, 3, 2))
        assert rbm.components_.shape == (4, 8)
        drawn = rbm.sample(200)
        assert (drawn["hair"] == drawn["again"]).mean() > 0.9
        filled = rbm.impute(pd.DataFrame({"hair": ["red", None], "again": [None, "blond"], "size": ["s", "l"]}))
        assert filled.to_numpy().tolist() == [["red", "red", "s"], ["blond", "blond", "l"]]
        assert rbm.predict_proba(frame).shape == (60, 3, 3)

    def test_whole_numbers_are_categories_when_asked(self):
        rbm = RBM(2, visible="categorical", max_iter=1, random_state=0).fit([[1, 2], [3, 2], [5, 9]])
        assert rbm.coding_.labels == ((1, 3, 5), (2, 9))

    def test_a_dataset_and_its_table_are_the_same(self):
        votes = gb.datasets.load_house_votes()
        rbm = RBM(3, max_iter=2, random_state=0).fit(votes)
        assert rbm.names_ == votes.names
        assert rbm.result_.provenance["missing_cells"] == 392
        assert rbm.transform(votes).shape == (435, 3)

    def test_a_path_is_read(self, tmp_path):
        np.savez(tmp_path / "t.npz", x=np.eye(3) * 5, flat=np.eye(3))
        rbm = RBM(2, max_iter=1, random_state=0).fit(tmp_path / "t.npz:flat")
        assert rbm.n_features_in_ == 3

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"visible": "magic"}, "visible='magic' is not known"),
            ({"hidden": "gaussian"}, "hidden='gaussian' is not known"),
            ({"n_components": 0}, "n_components=0 must be at least 1"),
            ({"max_iter": 2.5}, "max_iter=2.5 must be a whole number"),
            ({"learning_rate": "fast"}, "learning_rate='fast' must be a number"),
            ({"learning_rate": -1.0}, "learning_rate=-1.0 must be above 0"),
            ({"negative_phase": "magic"}, "magic"),
            ({"validation_fraction": 1.0}, "validation_fraction=1.0 must be at least 0 and below 1"),
            ({"temperature": 0.0}, "temperature=0.0 must be above 0"),
        ],
        ids=lambda given: given if isinstance(given, str) else "-".join(given),
    )
    def test_bad_settings_are_named(self, settings, said):
        with pytest.raises(ArgumentError, match=said):
            RBM(**{"n_components": 2, **settings}).fit(np.eye(4))

    def test_a_refused_fit_leaves_the_machine_as_it_was(self):
        rbm = RBM(2, max_iter=1, random_state=0).fit(np.eye(4))
        with pytest.raises(DataError):
            rbm.fit(np.full((3, 2), 9.5))
        assert rbm.transform(np.eye(4)).shape == (4, 2)


class TestAnswers:
    @pytest.fixture(scope="class", params=["binary", "spin", "categorical"])
    @staticmethod
    def fitted(request):
        rng = np.random.default_rng(1)
        codes = rng.integers(0, 3 if request.param == "categorical" else 2, (60, 4))
        codes[:, 1] = codes[:, 0]
        X = 2 * codes - 1 if request.param == "spin" else codes
        return RBM(3, visible=request.param, max_iter=20, learning_rate=0.3, temperature=1.3, random_state=0).fit(X)

    def test_scores_are_exact_log_probabilities(self, fitted):
        states, log_probabilities = enumerated(fitted.model_)
        labels = fitted.coding_.decode(states)
        np.testing.assert_allclose(fitted.score_samples(labels), log_probabilities, atol=1e-10)
        assert np.exp(fitted.score_samples(labels)).sum() == pytest.approx(1.0)
        weights = np.arange(1.0, len(labels) + 1)
        assert fitted.score(labels, sample_weight=weights) == pytest.approx(
            np.average(log_probabilities, weights=weights)
        )
        found = fitted.log_likelihood(labels, sample_weight=weights)
        assert found.exact
        assert found.lower == pytest.approx(np.average(log_probabilities, weights=weights))

    def test_missing_cells_are_summed_out(self, fitted):
        states, log_probabilities = enumerated(fitted.model_)
        labels = fitted.coding_.decode(states).astype(float)
        row = labels[5].copy()
        row[[1, 3]] = np.nan
        agree = (labels[:, [0, 2]] == row[[0, 2]]).all(axis=1)
        total = logsumexp(log_probabilities[agree])
        assert fitted.score_samples(row[None])[0] == pytest.approx(total)
        shares = np.exp(log_probabilities[agree] - total)
        hidden = fitted.transform(labels[agree])
        np.testing.assert_allclose(fitted.transform(row[None])[0], shares @ hidden, atol=1e-10)
        probabilities = fitted.predict_proba(row[None])[0, 3]
        top = np.atleast_1d(probabilities)[-1]
        assert top == pytest.approx(shares[labels[agree, 3] == labels[:, 3].max()].sum())

    def test_samples_have_the_exact_law(self, fitted):
        states, log_probabilities = enumerated(fitted.model_)
        labels = fitted.coding_.decode(states)
        expected = np.exp(log_probabilities) @ labels
        spread = np.sqrt(np.exp(log_probabilities) @ labels.astype(float) ** 2 - expected**2)
        for settings in ({}, {"method": "gibbs", "n_steps": 200}):
            drawn = fitted.sample(4000, random_state=3, **settings)
            assert np.abs((drawn.mean(axis=0) - expected) / (spread / np.sqrt(4000))).max() < 4.5

    def test_pseudo_score_multiplies_conditionals(self, fitted):
        states, log_probabilities = enumerated(fitted.model_)
        labels = fitted.coding_.decode(states)
        known = {tuple(row): value for row, value in zip(labels.tolist(), log_probabilities, strict=True)}
        row = labels[7].tolist()
        total = 0.0
        for i in range(4):
            others = [known[(*row[:i], value, *row[i + 1 :])] for value in sorted(set(labels[:, i].tolist()))]
            total += known[tuple(row)] - logsumexp(others)
        assert fitted.pseudo_score([row]) == pytest.approx(total)

    def test_free_energy_and_log_partition(self, fitted):
        X = fitted.sample(10)
        np.testing.assert_allclose(
            fitted.score_samples(X), -fitted.free_energy(X) / 1.3 - fitted.log_partition("exact"), atol=1e-10
        )
        bracket = fitted.log_partition("ais", n_samples=100, betas=200)
        assert bracket.lower - 0.1 < fitted.log_partition() < bracket.upper + 0.1

    def test_same_seed_same_answers(self, fitted):
        np.testing.assert_array_equal(fitted.sample(5), fitted.sample(5))
        np.testing.assert_array_equal(fitted.gibbs(fitted.sample(5)), fitted.gibbs(fitted.sample(5)))
        assert not np.array_equal(fitted.sample(50, random_state=1), fitted.sample(50, random_state=2))

    def test_questions_that_need_whole_rows_say_so(self, fitted):
        row = fitted.sample(1).astype(float)
        row[0, 2] = np.nan
        for ask in (fitted.gibbs, fitted.pseudo_score):
            with pytest.raises(MissingValuesError, match=r"needs complete rows.*column 'x2'"):
                ask(row)

    def test_wrong_questions_are_refused(self, fitted):
        for ask, said in (
            (lambda: fitted.sample(3, method="magic"), "method='magic' is not known"),
            (lambda: fitted.sample(3, method="exact", n_steps=5), "belong to method='gibbs'"),
            (lambda: fitted.log_partition("magic"), "method='magic' is not known"),
            (lambda: fitted.log_partition("exact", betas=5), "belong to method='ais'"),
            (lambda: fitted.inverse_transform(np.ones((2, 9))), r"H has shape \(2, 9\)"),
            (
                lambda: fitted.score_samples(fitted.sample(1)[:, :3].tolist()),
                "expecting 4 features|the machine was fitted on|has 3 columns",
            ),
        ):
            with pytest.raises(ValueError, match=said):
                ask()


class TestLargeMachines:
    @pytest.fixture(scope="class")
    @staticmethod
    def large():
        rows = (np.random.default_rng(0).random((100, 30)) < 0.3).astype(int)
        return RBM(28, max_iter=1, random_state=0).fit(rows), rows

    def test_scores_are_estimates_and_say_so_once(self, large):
        rbm, rows = large
        rbm.__dict__.pop("_log_z", None)
        with pytest.warns(GibbsianWarning, match="log Z is estimated"):
            score = rbm.score(rows)
        found = rbm.log_likelihood(rows, n_samples=50, betas=500)
        assert not found.exact
        assert score <= found.upper
        assert score == pytest.approx(found.lower, abs=0.2)
        assert rbm.score_samples(rows).mean() == pytest.approx(score)  # no second warning: they are errors here

    def test_the_exact_sum_is_refused_with_the_way_out(self, large):
        with pytest.raises(TooExpensiveError, match="method='ais'"):
            large[0].log_partition("exact")

    def test_held_out_rows_get_a_pseudolikelihood(self, large):
        rbm = RBM(28, max_iter=2, validation_fraction=0.25, random_state=0).fit(large[1])
        assert rbm.result_.held_out.kind == "log-pseudolikelihood"
        assert rbm.result_.held_out.n_rows == 25
        assert set(rbm.history_) == {"log_pseudolikelihood", "held_out_log_pseudolikelihood", "free_energy_gap"}


class TestGaussian:
    def test_scale_and_place_of_the_columns_do_not_matter(self):
        X = load_iris(return_X_y=True)[0]
        settings = {"visible": "gaussian", "max_iter": 5, "random_state": 0}
        plain = RBM(4, **settings).fit(X)
        moved = RBM(4, **settings).fit(1000.0 * X + 5.0)
        np.testing.assert_allclose(plain.transform(X), moved.transform(1000.0 * X + 5.0), atol=1e-6)
        assert moved.score(1000.0 * X + 5.0) == pytest.approx(plain.score(X) - 4 * np.log(1000.0))

    def test_it_learns_clusters(self):
        X = load_iris(return_X_y=True)[0]
        rbm = RBM(6, visible="gaussian", max_iter=200, batch_size=10, random_state=0).fit(X)
        standard = (X - X.mean(axis=0)) / X.std(axis=0)
        independent = -0.5 * (standard**2 + np.log(2 * np.pi * X.var(axis=0))).sum(axis=1).mean()
        assert rbm.score(X) > independent + 1.0
        drawn = rbm.sample(2000)
        np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.6)
        assert np.corrcoef(drawn.T)[2, 3] > 0.7

    def test_densities_integrate_to_one(self):
        X = np.random.default_rng(0).normal(3.0, 2.0, (50, 1))
        rbm = RBM(2, visible="gaussian", max_iter=3, random_state=0).fit(X)
        grid = np.linspace(-30, 40, 20001)[:, None]
        assert np.exp(rbm.score_samples(grid)).sum() * (grid[1, 0] - grid[0, 0]) == pytest.approx(1.0, abs=1e-6)

    def test_deviations_can_be_given(self):
        X = np.random.default_rng(0).normal(size=(50, 2)) * [1.0, 10.0]
        given = RBM(2, visible="gaussian", deviations=[0.5, 4.0], max_iter=1).fit(X)
        np.testing.assert_allclose(given.model_.family.layers[0].deviations, [0.5, 4.0])
        plain = RBM(2, visible="gaussian", deviations="plain", max_iter=1).fit(X)
        np.testing.assert_allclose(plain.model_.family.layers[0].deviations, X.std(axis=0))
        with pytest.raises(ArgumentError, match="deviations='wide'"):
            RBM(2, visible="gaussian", deviations="wide").fit(X)

    def test_missing_numbers_are_refused(self):
        with pytest.raises(MissingValuesError, match="row 1, column 'x0' holds NaN"):
            RBM(2, visible="gaussian").fit([[1.0, 2.0], [np.nan, 3.0]])

    def test_units_change_exactly(self):
        rng = np.random.default_rng(0)
        model = restricted(GaussianUnits(2, (0.5, 2.0)), BinaryUnits(3), *(rng.normal(size=s) for s in (2, 3, (2, 3))))
        scale = ColumnScale(np.array([3.0, -1.0]), np.array([10.0, 0.1]))
        u, there = rng.normal(size=(6, 2)), scale.to_data(model)
        before, after = (
            model.log_evidence(u),
            there.family.log_evidence(there.theta, u * scale.spreads + scale.centres),
        )
        np.testing.assert_allclose(after - before, (after - before)[0])
        np.testing.assert_allclose(scale.from_data(scale.to_data(model)).theta, model.theta)

    def test_constant_and_equal_columns_have_deviations(self):
        x = np.random.default_rng(0).normal(size=200)
        widths = residual_deviations(gb.Dataset.read(np.column_stack([x, x, np.full(200, 5.0)]), coding="real"))
        assert widths[2] == 1.0
        assert (widths[:2] < 0.2 * x.std()).all()
        assert (widths[:2] >= 0.1 * x.std()).all()


class TestLearning:
    @pytest.mark.parametrize("phase", ["pcd", "cd", "smci", "tempering"])
    def test_every_negative_phase_raises_the_exact_likelihood(self, phase):
        rng = np.random.default_rng(0)
        X = np.repeat(rng.random((100, 2)) < 0.5, 2, axis=1).astype(int)
        machine = RBM(
            3, negative_phase=phase, max_iter=30, learning_rate=0.5, validation_fraction=0.2, random_state=0
        ).fit(X)
        curve = machine.history_["held_out_log_likelihood"]
        assert len(curve) == 31
        assert curve[-1] > curve[0] + 0.5
        assert machine.result_.held_out.score == pytest.approx(curve[-1])
        assert machine.result_.reason == "trained for 30 epochs"

    def test_same_seed_same_machine(self):
        X = np.random.default_rng(0).integers(0, 2, (60, 5))
        first, second = (RBM(3, max_iter=3, random_state=4).fit(X).model_.theta for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_single_precision(self):
        X = np.random.default_rng(0).integers(0, 2, (60, 5))
        rbm = RBM(3, max_iter=3, dtype="float32", random_state=0).fit(X)
        assert rbm.model_.theta.dtype == np.float32
        assert np.isfinite(rbm.score(X))

    def test_rows_of_weight_zero_are_left_out(self):
        X = np.random.default_rng(0).integers(0, 2, (60, 5))
        kept = np.arange(60) % 3 > 0
        weighted = RBM(3, max_iter=3, random_state=4).fit(X, sample_weight=kept.astype(float))
        alone = RBM(3, max_iter=3, random_state=4).fit(X[kept], sample_weight=np.ones(40))
        np.testing.assert_array_equal(weighted.model_.theta, alone.model_.theta)

    def test_a_rate_beyond_all_measure_is_refused(self):
        X = np.random.default_rng(0).normal(size=(60, 5))
        with pytest.raises(ArgumentError, match=r"lower learning_rate=1e\+100"), np.errstate(all="ignore"):
            RBM(3, visible="gaussian", max_iter=5, learning_rate=1e100, random_state=0).fit(X)

    def test_chunks_are_learned_one_after_the_other(self):
        rng = np.random.default_rng(0)
        X = np.repeat(rng.random((300, 2)) < 0.5, 2, axis=1).astype(int)
        rbm = RBM(3, learning_rate=0.5, curves=True, random_state=0)
        for _ in range(5):
            for chunk in np.array_split(X, 3):
                rbm.partial_fit(chunk)
        assert rbm.score(X) > -2.5  # log 1/16 = -2.77 without any learning
        assert rbm.result_.reason == "learned from 1500 rows in 15 chunks"
        assert len(rbm.history_["log_pseudolikelihood"]) == 15
        assert rbm.result_.n_steps == 15
        with pytest.raises(ArgumentError, match="n_components=5 but the machine has learned with 3"):
            rbm.set_params(n_components=5).partial_fit(X)

    def test_chunks_go_on_after_a_fit_and_after_a_load(self, tmp_path):
        X = load_iris(return_X_y=True)[0]
        rbm = RBM(3, visible="gaussian", max_iter=20, validation_fraction=0.2, random_state=0).fit(X)
        rbm.save(tmp_path / "m")
        before = rbm.model_.theta.copy()
        score = rbm.score(X)
        for machine in (rbm, gb.load(tmp_path / "m")):
            machine.partial_fit(X)
            assert machine.result_.reason.endswith("rows in 1 chunk after a fit")
            assert not np.array_equal(machine.model_.theta, before)
            assert machine.score(X) > score - 0.5

    def test_verbose_prints_a_line_an_epoch(self, capsys):
        RBM(2, max_iter=3, verbose=1, random_state=0).fit(np.eye(4))
        lines = capsys.readouterr().out.splitlines()
        assert [line.split(",")[0] for line in lines] == [
            f"[RestrictedBoltzmannMachine] Iteration {k}" for k in (1, 2, 3)
        ]

    def test_house_votes_with_all_missing_cells(self):
        """Hidden cells are predicted better than by the majority."""
        votes = gb.datasets.load_house_votes()
        states, missing = votes.states[votes.row_of].astype(float), votes.missing[votes.row_of]
        rng = np.random.default_rng(0)
        hidden = (rng.random(states.shape) < 0.1) & ~missing
        X = np.where(missing | hidden, np.nan, states)
        rbm = RBM(8, max_iter=30, learning_rate=0.4, l2=0.001, random_state=0).fit(X)
        probabilities = rbm.predict_proba(X)[hidden]
        majority = np.tile(np.nanmean(X, axis=0) > 0.5, (len(X), 1))[hidden]
        truth = states[hidden] == 1
        assert ((probabilities > 0.5) == truth).mean() > (majority == truth).mean() + 0.15
        assert np.isfinite(rbm.score_samples(X)).all()


class TestFiles:
    @pytest.mark.parametrize("visible", ["binary", "spin", "gaussian", "categorical"])
    def test_every_kind_comes_back(self, tmp_path, visible):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 3)) if visible == "gaussian" else rng.integers(0, 2, (40, 3))
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        rbm = RBM(2, visible=visible, max_iter=3, validation_fraction=0.25, temperature=1.5, random_state=0).fit(frame)
        rbm.save(tmp_path / "m.gibbs")
        again = gb.load(tmp_path / "m.gibbs")
        assert type(again) is gb.RestrictedBoltzmannMachine
        assert again.model_.family == rbm.model_.family
        np.testing.assert_array_equal(again.model_.theta, rbm.model_.theta)
        np.testing.assert_array_equal(again.score_samples(frame), rbm.score_samples(frame))
        np.testing.assert_array_equal(again.sample(5, random_state=1), rbm.sample(5, random_state=1))
        assert again.result_.held_out == rbm.result_.held_out
        for name, curve in rbm.history_.items():
            np.testing.assert_array_equal(again.history_[name], curve)
        assert (again.visible, again.temperature, again.coding_) == (visible, 1.5, rbm.coding_)
        with pytest.raises(AttributeError, match="h_samples_"):
            again.h_samples_  # noqa: B018

    def test_a_fit_goes_on_from_its_checkpoint_to_the_same_bits(self, tmp_path):
        X = np.random.default_rng(0).integers(0, 2, (80, 6))
        settings = {"max_iter": 12, "validation_fraction": 0.2, "random_state": 0}
        whole = RBM(3, **settings).fit(X)

        def stop(step, info):
            if step == 7:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            RBM(3, **settings, checkpoint=Checkpoint(tmp_path / "c", every=3), callbacks=stop).fit(X)
        resumed = RBM(3, **settings, checkpoint=Checkpoint(tmp_path / "c", resume=True)).fit(X)
        assert resumed.result_.provenance["resumed_at_step"] == 6
        np.testing.assert_array_equal(resumed.model_.theta, whole.model_.theta)
        for name, curve in whole.history_.items():
            np.testing.assert_array_equal(resumed.history_[name], curve)
        with pytest.raises(FileFormatError, match="checkpoint of another fit"):
            RBM(4, **settings, checkpoint=Checkpoint(tmp_path / "c", resume=True)).fit(X)


@pytest.mark.parametrize("labels", [(0, 255), (1, 2), (-3.5, 4)])
@pytest.mark.parametrize("visible", ["auto", "binary", "spin"])
def test_any_two_numbers_are_two_values(labels, visible):
    X = np.where(bits() == 1, labels[1], labels[0])
    found = gb.Dataset.read(X, coding=gb.data.Units(visible))
    assert (found.coding.low, found.coding.high) == labels
    np.testing.assert_array_equal(found.rows()[0] > 0, labels[1] == X)
    assert set(np.unique(RBM(2, visible=visible, max_iter=1, random_state=0).fit(X).sample(20))) <= set(labels)


@pytest.mark.parametrize("visible", ["binary", "gaussian"])
def test_dates_are_refused_in_a_sentence(visible):
    frame = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=4), "x": [0, 1, 0, 1]})
    with pytest.raises(DataError, match="column 'day' holds"):
        RBM(2, visible=visible).fit(frame)


def test_machines_with_thousands_of_columns_can_be_asked():
    X = bits(10, 1100)
    rbm = RBM(3, max_iter=1, validation_fraction=0.2, random_state=0).fit(X)
    assert rbm.sample(2).shape == (2, 1100)
    assert np.isfinite(rbm.score(X))
    wide = RBM(1100, max_iter=1, random_state=0).fit(X)
    with pytest.raises(TooExpensiveError, match="method='gibbs'"):
        wide.sample(2, method="exact")
    for layer in (BinaryUnits(2000), SpinUnits(2000), CategoricalUnits([3] * 2000)):
        assert np.isfinite(count_states([layer]))


@pytest.mark.parametrize(("first", "then"), [("pcd", "tempering"), ("tempering", "pcd"), ("cd", "smci")])
def test_the_negative_phase_may_change_after_a_fit(first, then):
    rbm = RBM(3, negative_phase=first, max_iter=1, random_state=0).fit(bits())
    fitted = rbm.model_.theta
    rbm.set_params(learner=gb.learning.Minibatch(negative_phase=then)).partial_fit(bits())
    assert rbm.result_.reason.endswith("1 chunk after a fit")
    assert not np.array_equal(rbm.model_.theta, fitted)


def test_other_chains_begin_anew_and_the_same_go_on():
    rbm = RBM(3, n_chains=20, max_iter=1, random_state=0).fit(bits())
    assert rbm.partial_fit(bits()).h_samples_.shape == (20, 3)
    assert rbm.set_params(learner=gb.learning.Minibatch(n_chains=7)).partial_fit(bits()).h_samples_.shape == (7, 3)


@pytest.mark.parametrize("settings", [{"validation_fraction": 0.2}, {"checkpoint": "c"}], ids=",".join)
def test_what_belongs_to_a_fit_is_refused_by_the_first_chunk(settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=rf"{next(iter(settings))}=.* is for fit"):
        RBM(2, **settings).partial_fit(bits())


def test_unfitted_machines_say_so():
    with pytest.raises(NotFittedError):
        RBM(2).free_energy([[0, 1]])


def test_hidden_probabilities_must_be_numbers():
    rbm = small_machine("rbm").fit(bits())
    with pytest.raises(ArgumentError, match="H holds what is no number"):
        rbm.inverse_transform([["a", "b", "c"]])
    with pytest.raises(MissingValuesError, match="row 0, column 1 of H is NaN"):
        rbm.inverse_transform([[0.5, np.nan, 0.5]])
