"""The Gaussian machine: closed forms, scikit-learn's lasso, covariance selection, EM, chunks, files, command line."""

import numpy as np
import pandas
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import GraphicalLassoCV, graphical_lasso
from sklearn.utils.estimator_checks import parametrize_with_checks

import gibbsian as gb
from cli_runner import run
from gibbsian.errors import GibbsianError

RING = [(0, 1), (1, 2), (2, 3), (0, 3)]


MORE_COLUMNS_THAN_ROWS = {
    "check_sample_weight_equivalence_on_dense_data": "no likelihood is largest for 30 columns in 9 rows"
}


@parametrize_with_checks(
    [gb.GaussianMachine(), gb.GaussianMachine(l2=0.1)],
    expected_failed_checks=lambda machine: {} if machine.l2 == 0.1 else MORE_COLUMNS_THAN_ROWS,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture
def rows(rng):
    mixed = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4))
    return mixed * [1.0, 1e4, 1e-3, 1.0] + [5.0, 1e6, 0.0, -3.0]


def relative(found, expected, rows):
    scale = rows.std(axis=0)
    return np.abs((np.asarray(found) - expected) / np.outer(scale, scale)).max()


def test_on_the_complete_graph_the_likelihood_finds_mean_and_covariance_of_the_rows(rows):
    machine = gb.GaussianMachine().fit(rows)
    assert machine.result_.n_steps == 1
    np.testing.assert_allclose(machine.mean_, rows.mean(axis=0), rtol=1e-12, atol=1e-12)
    assert relative(machine.covariance_, np.cov(rows.T, bias=True), rows) < 1e-10
    scale = rows.std(axis=0)
    law = multivariate_normal(rows.mean(axis=0) / scale, np.corrcoef(rows.T))
    np.testing.assert_allclose(machine.score_samples(rows), law.logpdf(rows / scale) - np.log(scale).sum(), rtol=1e-9)


def test_covariance_selection_has_the_graph_in_the_precision_and_the_data_in_the_covariance(rows):
    """Dempster 1972: on edges and diagonal the covariance is that of the rows, elsewhere the precision is zero."""
    machine = gb.GaussianMachine(graph=RING).fit(rows)
    joined = np.eye(4, dtype=bool)
    joined[tuple(np.transpose(RING))] = True
    joined |= joined.T
    scale = rows.std(axis=0)
    gap = (machine.covariance_.to_numpy() - np.cov(rows.T, bias=True)) / np.outer(scale, scale)
    assert np.abs(gap[joined]).max() < 1e-6
    assert not machine.precision_.to_numpy()[~joined].any()
    partial = machine.partial_correlations_
    assert partial.loc["x0", "x2"] == 0
    precision = machine.precision_.to_numpy()
    assert partial.loc["x0", "x1"] == pytest.approx(-precision[0, 1] / np.sqrt(precision[0, 0] * precision[1, 1]))


def test_the_truth_is_found_in_many_rows(rng):
    truth = np.array([[2.0, -0.8, 0, 0.5], [-0.8, 2, 0.6, 0], [0, 0.6, 1.5, -0.4], [0.5, 0, -0.4, 2]])
    rows = rng.multivariate_normal(np.arange(4.0), np.linalg.inv(truth), 50_000)
    machine = gb.GaussianMachine(graph=RING).fit(rows)
    np.testing.assert_allclose(machine.precision_, truth, atol=0.05)


class TestGraphicalLasso:
    def test_is_that_of_scikit_learn_in_standard_units(self, rows):
        machine = gb.GaussianMachine(learner="graphical-lasso", l1=0.1).fit(rows)
        standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        _, expected = graphical_lasso(np.cov(standard.T, bias=True), 0.1, tol=1e-6, enet_tol=1e-9, max_iter=1000)
        model = machine.model_
        np.testing.assert_allclose(model.family.precision(model.theta), expected, atol=1e-8)
        np.testing.assert_allclose(machine.mean_, rows.mean(axis=0), rtol=1e-9, atol=1e-9)

    def test_is_likelihood_under_an_l1_penalty(self, rows):
        lasso = gb.GaussianMachine(learner="graphical-lasso", l1=0.2).fit(rows)
        ours = gb.GaussianMachine(l1=0.2).fit(rows)
        np.testing.assert_allclose(ours.model_.theta, lasso.model_.theta, atol=1e-3)
        assert lasso.result_.trace.column("value")[-1] == pytest.approx(
            ours.result_.trace.column("value")[-1], abs=1e-6
        )
        assert lasso.figures()["interactions"] < 6

    def test_chooses_the_penalty_by_cross_validation(self, rng):
        rows = rng.normal(size=(60, 4))
        standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        machine = gb.GaussianMachine(learner="graphical-lasso").fit(rows)
        expected = gb.GaussianMachine(learner="graphical-lasso", l1=GraphicalLassoCV().fit(standard).alpha_).fit(rows)
        np.testing.assert_allclose(machine.model_.theta, expected.model_.theta, atol=1e-9)

    def test_with_missing_cells_it_goes_on_until_no_parameter_moves(self, rows, rng):
        holed = np.where(rng.random(rows.shape) < 0.2, np.nan, rows)
        machine = gb.GaussianMachine(learner="graphical-lasso", l1=0.2).fit(holed)
        assert machine.result_.converged
        assert machine.result_.trace.column("gradient_norm")[-1] < machine.result_.trace.column("gradient_norm")[0]

    def test_takes_no_graph(self, rows):
        with pytest.raises(GibbsianError, match="chooses the graph"):
            gb.GaussianMachine(learner="graphical-lasso", l1=0.1, graph=RING).fit(rows)


class TestMissingCells:
    @pytest.fixture
    def holed(self, rows, rng):
        return np.where(rng.random(rows.shape) < 0.2, np.nan, rows)

    @pytest.mark.parametrize("graph", ["complete", RING], ids=["complete", "ring"])
    def test_the_likelihood_of_what_is_present_is_maximal(self, holed, graph):
        machine = gb.GaussianMachine(graph=graph).fit(holed)
        model, best = machine.model_, machine.score(holed)
        assert machine.result_.converged
        for unit in np.eye(model.theta.size):
            for step in (-1e-3, 1e-3):
                machine.model_ = model.replace(model.theta + step * unit)
                machine.__dict__.pop("_log_z", None)
                assert machine.score(holed) < best

    def test_cells_are_filled_and_predicted(self, holed):
        machine = gb.GaussianMachine().fit(holed)
        filled = machine.impute(holed)
        assert np.isfinite(filled).all()
        np.testing.assert_array_equal(machine.predict(holed), filled)
        mean, covariance = machine.conditional({"x0": 5.0, "x3": -3.0})
        np.testing.assert_allclose(machine.impute([[5.0, np.nan, np.nan, -3.0]])[0, 1:3], mean)
        assert list(covariance.columns) == ["x1", "x2"]
        below = machine.predict_proba(holed)
        np.testing.assert_allclose(below[np.isnan(holed)], 0.5)
        with pytest.raises(GibbsianError, match="no column 'y'"):
            machine.conditional({"y": 1.0})

    def test_a_cell_far_above_what_its_row_says_is_known_by_its_probability(self, rng):
        a = rng.normal(size=2000)
        rows = np.column_stack([a, a + 0.1 * rng.normal(size=2000)])
        machine = gb.GaussianMachine().fit(rows)
        below = machine.predict_proba(rows)
        assert abs(np.mean(below) - 0.5) < 0.02
        assert abs(np.mean(below < 0.1) - 0.1) < 0.02
        assert machine.predict_proba([[0.0, 1.0]])[0, 1] > 0.999


class TestChunks:
    @pytest.mark.parametrize("graph", ["complete", RING], ids=["complete", "ring"])
    def test_chunks_are_the_whole(self, rows, graph):
        whole, parts = gb.GaussianMachine(graph=graph).fit(rows), gb.GaussianMachine(graph=graph)
        for chunk in np.array_split(rows, 7):
            parts.partial_fit(chunk)
        assert relative(parts.covariance_, whole.covariance_.to_numpy(), rows) < 1e-6
        np.testing.assert_allclose(parts.mean_, whole.mean_, rtol=1e-9, atol=1e-9)

    def test_chunks_go_on_from_a_fit_and_from_a_file(self, rows, tmp_path):
        machine = gb.GaussianMachine().fit(rows[:150])
        machine.save(tmp_path / "m.gibbs")
        for known in (machine, gb.load(tmp_path / "m.gibbs")):
            known.partial_fit(rows[150:])
            assert relative(known.covariance_, np.cov(rows.T, bias=True), rows) < 1e-9


class TestRefusals:
    def test_a_column_that_never_varies(self, rows):
        with pytest.raises(GibbsianError, match="'x1' never varies"):
            gb.GaussianMachine().fit(np.column_stack([rows[:, 0], np.ones(200)]))

    def test_columns_that_determine_each_other(self, rows):
        wide = np.column_stack([rows, rows[:, 0] + rows[:, 3]])
        with pytest.raises(GibbsianError, match="is a linear function of others"):
            gb.GaussianMachine(l2=0.0).fit(wide)
        assert np.isfinite(gb.GaussianMachine(l2=0.01).fit(wide).score(wide))

    def test_an_estimate_that_is_no_distribution(self):
        """A learner object may step beyond what is a distribution."""
        rows = np.random.default_rng(0).normal(size=(6, 5)) @ np.random.default_rng(1).normal(size=(5, 5))
        learner = gb.learning.Descend(gb.learning.objectives.Likelihood(), optimizer=gb.learning.optimizers.Ascent(5.0))
        with pytest.raises(GibbsianError, match="its precision matrix is not positive definite"):
            gb.GaussianMachine(graph=RING, learner=learner, max_iter=2).fit(rows)

    def test_learners_of_discrete_columns(self, rows):
        with pytest.raises(GibbsianError, match="does not learn a GaussianMachine: use one of auto, graphical-lasso"):
            gb.GaussianMachine(learner="pcd").fit(rows)
        with pytest.raises(GibbsianError, match="these are real numbers"):
            gb.GaussianMachine(learner=gb.learning.PCD()).fit(rows)


def test_intervals_cover_the_truth(rng):
    """Fisher's and the sandwich agree where the model is true."""
    truth = np.array([[2.0, -0.8, 0], [-0.8, 2, 0.6], [0, 0.6, 1.5]])
    rows = rng.multivariate_normal(np.zeros(3), np.linalg.inv(truth), 4000)
    machine = gb.GaussianMachine(graph=[(0, 1), (1, 2)]).fit(rows)
    errors = gb.uncertainty.standard_errors(machine, rows)
    assert errors.kind == "fisher"
    scale = machine.model_.family.scale
    wanted = np.array([truth[0, 0] * scale[0] ** 2, truth[0, 1] * scale[0] * scale[1]])
    assert (np.abs(machine.model_.theta[[3, 6]] - wanted) < 4 * errors.theta_se[[3, 6]]).all()
    sandwich = gb.uncertainty.standard_errors(machine, rows, kind="sandwich").theta_se
    np.testing.assert_allclose(sandwich, errors.theta_se, rtol=0.15)
    assert list(errors.table.index[:2]) == ["x0", "x1"]


def test_from_a_file_to_answers_on_the_command_line(tmp_path, rng):
    frame = pandas.DataFrame(rng.normal(size=(80, 3)) @ rng.normal(size=(3, 3)), columns=["a", "b", "c"])
    holed = frame.copy()
    holed.loc[3, "b"] = np.nan
    frame.to_csv(tmp_path / "x.csv", index=False)
    holed.to_csv(tmp_path / "holed.csv", index=False)
    model = tmp_path / "m.gibbs"

    def asked(*words):
        result = run(*words)
        assert result.exit_code == 0, result.stderr
        return result.stdout

    asked("fit", tmp_path / "x.csv", "--model", "gaussian", "--out", model)
    asked(
        "fit", tmp_path / "x.csv", "--model", "gaussian", "--learner", "graphical-lasso", "--l1", "0.1", "--out", model
    )
    machine = gb.load(model)
    mean = float(asked("score", model, tmp_path / "x.csv").split()[4])
    assert mean == pytest.approx(machine.score(frame), abs=1e-5)
    asked("impute", model, tmp_path / "holed.csv", "--out", tmp_path / "filled.csv")
    filled = pandas.read_csv(tmp_path / "filled.csv")
    assert filled.loc[3, "b"] == pytest.approx(machine.impute(holed).loc[3, "b"], rel=1e-6)
    assert "a" in asked("show", model)
    assert "pairs" in asked("expect", model)
    assert len(asked("sample", model, "-n", "5", "--seed", "0").splitlines()) == 6


def test_the_most_probable_row_is_the_conditional_mean_and_temperature_widens(rows):
    machine = gb.GaussianMachine().fit(rows)
    names = list(machine.names_)
    found = machine.most_probable(evidence={names[0]: 1.0})
    mean, covariance = machine.conditional({names[0]: 1.0})
    np.testing.assert_allclose(found.rows[0, 1:], mean, rtol=1e-10)
    assert found.rows[0, 0] == 1.0
    assert found.exact.all()
    some = machine.conditional({names[0]: 1.0}, [names[2]])
    assert some[0].iloc[0] == mean[names[2]]
    assert some[1].iloc[0, 0] == covariance.loc[names[2], names[2]]
    family, theta, hot = machine.model_.family, machine.model_.theta, machine.model_.at(0.25).theta
    np.testing.assert_allclose(family.moments(hot)[1], 4.0 * family.moments(theta)[1], rtol=1e-10)
    np.testing.assert_allclose(family.moments(hot)[0], family.moments(theta)[0], atol=1e-10)
