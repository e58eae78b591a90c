"""The estimator: scikit-learn's own checks, every answer against enumeration, bad input."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import gibbsian as gb
from gibbsian.errors import (
    ArgumentError,
    CodingError,
    ConstantColumnError,
    ConvergenceWarning,
    DataError,
    GibbsianWarning,
    GraphError,
    MaximumDoesNotExistError,
    TooExpensiveError,
)
from gibbsian.learning.optimizers import Ascent
from holes import rows_with_holes
from systems import BINARY, exact_law, random_model, sampled_data


# scikit-learn's checks feed continuous numbers, so the machine is told where to cut them; a penalty keeps the tiny
# separable tables of some checks finite, as it would for a user.
@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@parametrize_with_checks(
    [
        gb.BoltzmannMachine(coding=gb.data.Threshold(0.0), l2=0.1),
        gb.BoltzmannMachine("chain", learner="mple", coding=gb.data.Threshold(0.0), l2=0.1),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def fitted(rng, scores):
    data = sampled_data(random_model(gb.graphs.complete(4), rng, scores), 300, rng)
    return gb.BoltzmannMachine(learner="mle", random_state=0).fit(data)


def law(machine):
    """Every row of a machine as it is written, its probability, and log Z."""
    states, probabilities, log_partition = exact_law(machine.model_)
    return machine.coding_.decode(states), probabilities, log_partition


class TestAnswers:
    def test_scores_are_log_probabilities(self, fitted):
        states, probabilities, log_partition = law(fitted)
        np.testing.assert_allclose(fitted.score_samples(states), np.log(probabilities), atol=1e-12)
        assert fitted.log_partition() == pytest.approx(log_partition, abs=1e-12)
        weights = np.arange(1.0, len(states) + 1)
        expected = np.average(np.log(probabilities), weights=weights)
        assert fitted.score(states, sample_weight=weights) == pytest.approx(expected, abs=1e-12)

    def test_scores_sum_missing_cells_out(self, fitted):
        states, probabilities, _ = law(fitted)
        row = states[5].astype(float)
        row[[1, 3]] = np.nan
        expected = probabilities[(states[:, [0, 2]] == row[[0, 2]]).all(axis=1)].sum()
        assert np.exp(fitted.score_samples([row]))[0] == pytest.approx(expected, abs=1e-12)

    def test_expectations(self, fitted):
        states, probabilities, _ = exact_law(fitted.model_)
        expected = fitted.model_.family.mean_statistics(states, probabilities)
        estimate = fitted.expect()
        np.testing.assert_allclose(estimate.value, expected, atol=1e-12)
        assert estimate.is_exact
        sampled = fitted.expect("monte-carlo")
        assert np.all(np.abs(sampled.value - expected) < 5 * sampled.stderr)
        assert sampled.stderr.max() < 0.1

    @pytest.mark.parametrize("method", ["auto", "exact", "gibbs"])
    def test_samples_follow_the_law(self, fitted, method):
        states, probabilities, _ = law(fitted)
        n = 20_000
        drawn = fitted.sample(n, method=method)
        assert drawn.shape == (n, 4)
        place = {tuple(state): k for k, state in enumerate(states)}
        counts = np.bincount([place[tuple(row)] for row in drawn], minlength=16)
        # of 15 degrees of freedom, one in ten thousand is above 45 where draws are independent
        chi_square = ((counts - n * probabilities) ** 2 / (n * probabilities)).sum()
        assert chi_square < 45

    def test_missing_cells_are_predicted(self, fitted):
        states, probabilities, _ = law(fitted)
        low, high = fitted.coding_.labels_of(0)
        row = np.array([high, np.nan, low, np.nan])
        match = (states[:, [0, 2]] == row[[0, 2]]).all(axis=1)
        posterior = probabilities[match] / probabilities[match].sum()
        expected = posterior @ (states[match] == high)
        got = fitted.predict_proba([row])
        np.testing.assert_allclose(got[0], expected, atol=1e-12)
        filled = fitted.impute([row])[0]
        assert filled.tolist() == np.where(expected > 0.5, high, low).tolist()

    def test_fit_matches_the_moments_of_the_data(self, fitted, rng):
        x = fitted.sample(400, random_state=1)
        refit = gb.BoltzmannMachine(learner="mle", tol=1e-9).fit(x)
        data = gb.Dataset.read(x, coding=refit.coding_)
        expected = refit.model_.family.mean_statistics(data.states, data.weights)
        np.testing.assert_allclose(refit.expect().value, expected, atol=1e-8)

    def test_own_samples_are_not_cut_again(self, rng):
        machine = gb.BoltzmannMachine(coding=gb.data.Threshold(5.0), random_state=0).fit(rng.normal(size=(200, 4)) * 10)
        drawn = machine.sample(50)
        plain = gb.Dataset.read(drawn, coding="binary")
        np.testing.assert_array_equal(machine.score_samples(drawn), machine.score_samples(plain))
        assert len(np.unique(machine.score_samples(drawn))) > 3

    def test_sampled_answers_do_not_depend_on_other_rows(self, rng):
        model = random_model(gb.graphs.complete(40), rng, BINARY, scale=0.1)
        names = tuple(f"x{i}" for i in range(40))
        stored = gb.storage.StoredModel(model, gb.domain.as_coding("binary"), names, {"random_state": 0})
        machine = gb.BoltzmannMachine.from_stored(stored)
        rows = np.where(rng.random((3, 40)) < 0.1, rng.integers(0, 2, (3, 40)), np.nan)
        together, alone = machine.predict_proba(rows), machine.predict_proba(rows[1:2])
        np.testing.assert_array_equal(together[1:2], alone)


def test_many_missing_cells_are_predicted_exactly_on_sparse_graphs(rng):
    """30 missing cells of a chain: too many to list, easy to sum by elimination."""
    model = random_model(gb.graphs.grid(1, 40), rng)
    machine = gb.BoltzmannMachine.from_stored(
        gb.storage.StoredModel(model, gb.domain.as_coding("spin"), tuple(f"x{i}" for i in range(40)))
    )
    row = np.ones(40)
    row[5:35] = np.nan
    conditional, _ = model.given(np.flatnonzero(~np.isnan(row)), np.ones(10, int))
    expected = (gb.inference.exact(conditional).means + 1) / 2
    np.testing.assert_allclose(machine.predict_proba([row])[0, 5:35], expected, atol=1e-12)
    assert np.isfinite(machine.score([row]))


def test_many_missing_cells_of_a_dense_machine_are_sampled(rng):
    """60 missing cells of a complete graph are out of exact reach; symmetric couplings make the answer known."""
    n = 70
    graph = gb.graphs.complete(n)
    model = gb.PairwiseFamily.model(graph, np.r_[np.full(35, 0.5), np.full(35, -0.5)], np.zeros(graph.n_edges))
    machine = gb.BoltzmannMachine.from_stored(
        gb.storage.StoredModel(
            model, gb.domain.as_coding("spin"), tuple(f"x{i}" for i in range(n)), {"random_state": 0}
        )
    )
    row = np.full(n, np.nan)
    row[:10] = 1
    expected = 1 / (1 + np.exp(-2 * model.parts.biases[10:]))
    assert np.abs(machine.predict_proba([row])[0, 10:] - expected).max() < 5 * 0.5 / np.sqrt(4000)


class TestMissingCellsInFit:
    @pytest.mark.filterwarnings("ignore::gibbsian.errors.MissingValuesWarning")  # some rows lose all their cells
    def test_hidden_cells_at_random_keep_the_truth(self, rng):
        truth = random_model(gb.graphs.complete(4), rng, scale=0.5)
        x = sampled_data(truth, 20_000, rng)
        cells = 2.0 * x.states[x.row_of] - 1.0
        cells[rng.random(cells.shape) < 0.2] = np.nan
        machine = gb.BoltzmannMachine().fit(cells)
        assert machine.result_.provenance["learner"] == "mle"
        used = cells[~np.isnan(cells).all(axis=1)]
        assert machine.result_.provenance["missing_cells"] == int(np.isnan(used).sum())
        assert np.abs(machine.model_.theta - truth.theta).max() < 0.06

    @pytest.mark.parametrize("learner", ["mple", "rm", "mpf", "rise", "smci", "mean-field"])
    def test_every_learner_takes_them(self, learner):
        rows = [[1, np.nan], [-1, 1], [1, -1], [1, 1], [-1, -1]]
        machine = gb.BoltzmannMachine(learner=learner, l2=0.1, max_iter=100, random_state=0).fit(rows)
        assert np.isfinite(machine.model_.theta).all()

    def test_too_large_says_so(self, rng):
        x = np.where(rng.random((200, 60)) < 0.5, 1.0, -1.0)
        x[0, 0] = np.nan
        with pytest.raises(TooExpensiveError, match="60 variables"):
            gb.BoltzmannMachine(learner="mle").fit(x)

    def test_columns_never_seen_together(self):
        nan = np.nan
        rows = np.array([[1, nan], [0, nan], [1, nan], [nan, 1], [nan, 0]] * 5)
        with pytest.raises(MaximumDoesNotExistError, match="never observed in the same row"):
            gb.BoltzmannMachine(l2=0.0).fit(rows)
        assert gb.BoltzmannMachine(l2=0.1).fit(rows).result_.converged

    def test_rows_without_weight_do_not_count(self, rng):
        x = rng.integers(0, 2, (600, 4)).astype(float)
        weights = np.zeros(600)
        weights[:60] = 1
        x[300, 0] = np.nan  # a hole where it does not matter
        machine = gb.BoltzmannMachine(learner="mple", validation_fraction=0.2, l2=0.1, random_state=1).fit(
            x, sample_weight=weights
        )
        assert machine.result_.held_out.n_rows == 12

    def test_missing_cells_out_of_reach_name_the_learners_that_complete_them(self, rng):
        x = rng.integers(0, 2, (200, 60)).astype(float)
        x[0, 0] = np.nan
        with pytest.raises(TooExpensiveError, match=r"learner='mple' or 'pcd', which complete.*complete_rows"):
            gb.BoltzmannMachine(learner="mle").fit(x)

    def test_held_out_rows_with_missing_cells_do_not_cost_a_large_machine_its_fit(self, rng):
        rows = rows_with_holes(rng, 60, 40, 0.02)
        machine = gb.BoltzmannMachine(learner="pcd", l2=0.1, max_iter=3, validation_fraction=0.1, random_state=0)
        with pytest.warns(ConvergenceWarning):
            machine.fit(rows)
        held_out = machine.result_.held_out
        assert held_out.kind == "lower side of the log-likelihood"
        assert -60 < held_out.score < 0


class TestTables:
    frame = pd.DataFrame(
        {"smokes": ["yes", "no", "yes", "no", "yes"], "drinks": ["yes", "no", "no", "yes", "yes"]}, index=list("pqrst")
    )

    def test_frames_in_labels_out(self):
        machine = gb.BoltzmannMachine(random_state=0).fit(self.frame)
        assert machine.feature_names_in_.tolist() == ["smokes", "drinks"]
        assert machine.biases_.index.tolist() == ["smokes", "drinks"]
        assert machine.couplings_.loc["smokes", "drinks"] == machine.couplings_.loc["drinks", "smokes"]
        assert set(np.ravel(machine.sample(20))) <= {"yes", "no"}

    def test_impute_keeps_the_frame(self):
        machine = gb.BoltzmannMachine().fit(self.frame)
        holes = self.frame.copy()
        holes.iloc[0, 1] = None
        filled = machine.impute(holes)
        assert filled.index.tolist() == list("pqrst")
        assert filled["smokes"].tolist() == self.frame["smokes"].tolist()
        assert set(filled["drinks"]) == {"yes", "no"}

    def test_polars_frames(self):
        frame = pl.DataFrame(self.frame.reset_index(drop=True).to_dict("list"))
        machine = gb.BoltzmannMachine().fit(frame)
        assert isinstance(machine.impute(frame), pl.DataFrame)
        np.testing.assert_array_equal(machine.model_.theta, gb.BoltzmannMachine().fit(self.frame).model_.theta)

    def test_columns_in_another_order_are_refused(self):
        machine = gb.BoltzmannMachine().fit(self.frame)
        with pytest.raises(ValueError, match=r"[Ff]eature names"):
            machine.score(self.frame[["drinks", "smokes"]])

    def test_loaded_machine_refuses_columns_in_another_order(self, tmp_path):
        gb.BoltzmannMachine().fit(self.frame).save(tmp_path / "m.gibbs")
        machine = gb.load(tmp_path / "m.gibbs")
        turned = self.frame[["drinks", "smokes"]]
        turned.to_csv(tmp_path / "turned.csv", index=False)
        with pytest.raises(ValueError, match=r"[Ff]eature names"):
            machine.score(turned)
        for source in (tmp_path / "turned.csv", gb.Dataset.read(turned)):
            with pytest.raises(ArgumentError, match=r"'drinks', 'smokes' but .* fitted on 'smokes', 'drinks'"):
                machine.score(source)
        assert machine.score(self.frame) == machine.score(gb.Dataset.read(self.frame))

    def test_graph_by_column_names(self):
        machine = gb.BoltzmannMachine(graph=[("drinks", "smokes")]).fit(self.frame)
        assert machine.model_.family.graph.edges.tolist() == [[0, 1]]

    def test_columns_called_by_numbers(self, x):
        machine = gb.BoltzmannMachine(graph=[(1, 0)]).fit(pd.DataFrame(x, columns=[3, 2, 1, 0]))
        assert machine.model_.family.graph.edges.tolist() == [[2, 3]]
        far = gb.BoltzmannMachine(graph=[(10, 11)]).fit(pd.DataFrame(x, columns=[10, 11, 12, 13]))
        assert far.model_.family.graph.edges.tolist() == [[0, 1]]
        with pytest.raises(GraphError, match="99"):
            gb.BoltzmannMachine(graph=[(10, 99)]).fit(pd.DataFrame(x, columns=[10, 11, 12, 13]))


def test_works_in_pipelines_and_grid_searches(rng):
    x = sampled_data(random_model(gb.graphs.complete(4), rng), 120, rng)
    rows = 2 * x.states[x.row_of] - 1
    pipeline = make_pipeline(FunctionTransformer(lambda z: z), gb.BoltzmannMachine(learner="mple"))
    assert np.isfinite(pipeline.fit(rows).score(rows))
    search = GridSearchCV(gb.BoltzmannMachine(learner="mple"), {"l2": [0.001, 0.1, 100.0]}, cv=3).fit(rows)
    assert search.best_params_["l2"] < 100.0


def test_score_beyond_exact_reach_is_an_estimate_within_its_interval(rng):
    x = np.where(rng.random((300, 50)) < 0.5, 1, -1)
    machine = gb.BoltzmannMachine(l2=0.1, tol=1e-4, random_state=0).fit(x)
    assert machine.result_.provenance["learner"] == "mple"
    with pytest.warns(GibbsianWarning, match="log Z is estimated, .* standard error"):
        score = machine.score(x)
    interval = machine.score_interval(x)
    assert score == pytest.approx((interval.lower + interval.upper) / 2, abs=0.03)  # six standard errors
    assert machine.score_samples(x).mean() == pytest.approx(score)  # found once, said once: warnings are errors here
    with pytest.raises(TooExpensiveError, match="50 variables"):
        machine.log_partition("exact")
    assert machine.pseudo_score(x) < 0
    assert machine.sample(3, random_state=0).shape == (3, 50)


def test_conversion_of_a_machine_keeps_every_probability(fitted):
    target = "binary" if fitted.coding_.name == "spin" else "spin"
    other = fitted.convert(target)
    states, probabilities, _ = law(fitted)
    converted = gb.Dataset.read(states, coding=fitted.coding_).convert(target)
    np.testing.assert_allclose(np.exp(other.score_samples(converted)), probabilities, atol=1e-12)
    with pytest.raises(CodingError):
        other.score(states)


class TestBadInput:
    """Each with its own sentence that names the thing."""

    def test_one_row(self):
        with pytest.raises(DataError, match=r"1 sample|n_samples ?= ?1"):
            gb.BoltzmannMachine().fit([[1, -1]])

    def test_constant_column(self):
        x = pd.DataFrame({"a": [0, 1, 0, 1], "always": [1, 1, 1, 1]})
        with pytest.raises(ConstantColumnError, match=r"'always'.*l2"):
            gb.BoltzmannMachine(l2=0.0).fit(x)

    def test_empty_pair_table(self):
        x = pd.DataFrame({"a": [0, 1, 0, 1, 0], "b": [0, 1, 0, 1, 1]})
        with pytest.raises(MaximumDoesNotExistError, match=r"'a'=1 .*'b'=0.*l2"):
            gb.BoltzmannMachine(l2=0.0).fit(x)
        assert gb.BoltzmannMachine(l2=0.1).fit(x).result_.converged

    @pytest.mark.parametrize("learner", ["mle", "mple"])
    def test_three_columns_that_determine_each_other(self, learner):
        """No pair table is empty, yet every row satisfies a triangle inequality with equality."""
        rows = [[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]]
        tight = [row for row in rows if row[0] * row[1] + row[0] * row[2] + row[1] * row[2] == -1]
        assert len(tight) == 6
        with pytest.raises(MaximumDoesNotExistError, match=r"no finite maximum.*l2"):
            gb.BoltzmannMachine(learner=learner, bias=True, l2=0.0).fit(np.array(tight))

    def test_another_coding_at_predict_time(self, fitted):
        other = [[0, 1, 0, 1]] if fitted.coding_.name == "spin" else [[-1, 1, 1, 1]]
        with pytest.raises(CodingError, match=f"fitted on {fitted.coding_.name}"):
            fitted.score(other)

    def test_another_number_of_columns(self, fitted):
        with pytest.raises(ValueError, match=r"features|columns"):
            fitted.score(np.ones((2, 7)))

    def test_unknown_node(self):
        with pytest.raises(GraphError, match="'z'"):
            gb.BoltzmannMachine(graph=[("x0", "z")]).fit([[0, 1], [1, 0], [1, 1], [0, 0]])

    def test_weights(self):
        x = [[0, 1], [1, 0], [1, 1], [0, 0]]
        for weights, words in (
            ([1, 1, np.nan, 1], "NaN|nan"),
            ([1, 1, -2, 1], "zero or positive"),
            ([1, 1, np.inf, 1], "inf"),
        ):
            with pytest.raises(DataError, match=words):
                gb.BoltzmannMachine().fit(x, sample_weight=weights)

    def test_settings(self):
        x = [[0, 1], [1, 0], [1, 1], [0, 0]]
        for settings, words in (
            ({"learner": "magic"}, "'magic'"),
            ({"l2": -1.0}, "l2=-1"),
            ({"temperature": 0.0}, "temperature=0"),
            ({"max_iter": 0}, "max_iter=0"),
            ({"coding": "ternary"}, "'ternary'"),
            ({"random_state": "x"}, "random_state='x'"),
        ):
            with pytest.raises((ArgumentError, CodingError), match=words):
                gb.BoltzmannMachine(**settings).fit(x)
        with pytest.raises(ArgumentError, match="n_samples=0"):
            gb.BoltzmannMachine().fit(x).sample(0)

    def test_stopping_early_warns(self, rng):
        data = sampled_data(random_model(gb.graphs.complete(4), rng), 200, rng)
        with pytest.warns(ConvergenceWarning, match="raise max_iter"):
            machine = gb.BoltzmannMachine(learner="mple", max_iter=2).fit(data)
        assert not machine.result_.converged

    def test_weights_with_an_infinite_sum(self, x):
        with pytest.raises(DataError, match="sum"):
            gb.BoltzmannMachine().fit(x, sample_weight=np.full(300, 1e307))

    def test_a_refused_refit_leaves_the_machine_as_it_was(self, x):
        machine = gb.BoltzmannMachine(l2=0.0).fit(x)
        before = machine.score(x)
        constant = np.column_stack([x, np.ones(300, int)])
        with pytest.raises(ConstantColumnError):
            machine.fit(constant)
        assert machine.score(x) == before

    def test_streams_and_lazy_frames_are_named(self, x, tmp_path):
        import polars

        np.save(tmp_path / "x.npy", x)
        machine = gb.BoltzmannMachine().fit(x)
        with pytest.raises(DataError, match="DataStream is learned by fit"):
            machine.score(gb.data.DataStream.open(tmp_path / "x.npy"))
        with pytest.raises(DataError, match="collect"):
            machine.score(polars.DataFrame({"a": [0, 1]}).lazy())

    @pytest.mark.parametrize(
        "setting",
        [
            {"l2": "x"},
            {"temperature": "a"},
            {"max_iter": 2.5},
            {"tol": None},
            {"validation_fraction": "x"},
            {"l1": True},
        ],
    )
    def test_settings_that_are_no_numbers(self, x, setting):
        ((name, value),) = setting.items()
        with pytest.raises(ArgumentError, match=f"{name}={value!r} must be a"):
            gb.BoltzmannMachine(**setting).fit(x)

    def test_a_fit_that_is_too_large(self, rng, monkeypatch):
        x = rng.integers(0, 2, (50, 200))
        monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.002")
        with pytest.raises(TooExpensiveError, match=r"fitting 200 variables .* needs .* MiB .* about \d+ variables"):
            gb.BoltzmannMachine(learner="mple", l2=0.1).fit(x)


class TestStart:
    @pytest.mark.parametrize("learner", ["mle", "mple"])
    def test_every_start_leads_to_the_same_solution(self, rng, scores, learner):
        data = sampled_data(random_model(gb.graphs.complete(5), rng, scores, scale=0.4), 1000, rng)
        plain = gb.BoltzmannMachine(learner=learner, tol=1e-9).fit(data)
        other = plain.convert("binary" if plain.coding_.name == "spin" else "spin")
        for start in ("sessak-monasson", "bethe", plain, plain.model_, other):
            machine = gb.BoltzmannMachine(learner=learner, tol=1e-9, start=start).fit(data)
            np.testing.assert_allclose(machine.model_.theta, plain.model_.theta, atol=1e-6)
        again = gb.BoltzmannMachine(learner=learner, tol=1e-8, start=plain).fit(data)
        assert again.result_.n_steps <= 2

    def test_bad_starts_are_named(self, rng):
        data = sampled_data(random_model(gb.graphs.complete(3), rng, scale=0.2), 100, rng)
        other = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(1, 3)))
        for start, words in (("magic", "start='magic'"), (other, "another graph"), (3, "start=3")):
            with pytest.raises(ArgumentError, match=words):
                gb.BoltzmannMachine(start=start).fit(data)


def test_bits_do_not_depend_on_blas_threads():
    code = (
        "import sys, warnings, hashlib, numpy as np, gibbsian as gb\n"
        "warnings.simplefilter('ignore')\n"
        "x = np.random.default_rng(0).integers(0, 2, (2000, 12))\n"
        "for learner in ('cd', 'pcd', 'mle', 'mple'):\n"
        "    bm = gb.BoltzmannMachine(learner=learner, l2=0.01, random_state=0, max_iter=30).fit(x)\n"
        "    print(learner, hashlib.sha256(bm.model_.theta.tobytes()).hexdigest())\n"
    )
    digests = []
    for threads in "12":
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads}
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        digests.append(ran.stdout)
    assert len(digests[0].splitlines()) == 4
    assert digests[0] == digests[1]


def test_a_conversion_makes_biases_and_says_so():
    machine = gb.BoltzmannMachine(bias=False).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    converted = machine.convert("binary")
    assert converted.model_.family.bias
    assert converted.bias
    assert not machine.bias
    assert not machine.convert("spin").bias


def test_steps_that_are_too_large_are_blamed_on_an_argument():
    rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]
    learner = gb.learning.MomentMatching("exact", optimizer=Ascent(learning_rate=50.0))
    with pytest.warns(ConvergenceWarning, match=r"optimizer=Adam\(learning_rate=\.\.\.\) of the learner"):
        machine = gb.BoltzmannMachine(learner=learner, max_iter=20).fit(rows)
    assert machine.result_.remedy.startswith("lower the rate of the steps (`optimizer=")
