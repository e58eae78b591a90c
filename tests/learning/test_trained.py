"""Is it trained? z-scores of the moments, held-out rows, and the table of several learners."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.diagnostics import data_moments
from gibbsian.diagnostics.moments import DataMoments
from gibbsian.errors import ArgumentError
from gibbsian.estimate import Estimate
from gibbsian.learning import trained
from gibbsian.learning.trained import TrainingReport, penalty_pull, training_report
from systems import BINARY, exact_law, random_model, sampled_data


@pytest.fixture
def data(rng, scores):
    return sampled_data(random_model(gb.graphs.complete(4), rng, scores, scale=0.4), 600, rng)


def test_maximum_likelihood_matches_every_moment(data):
    report = gb.BoltzmannMachine(learner="mle", tol=1e-8).fit(data).result_.training
    assert report.exact
    assert report.is_trained
    assert np.abs(report.z_scores).max() < 1e-4
    assert "agree" in report.describe()


def test_z_scores_are_differences_in_standard_errors(data, rng):
    model = random_model(gb.graphs.complete(4), rng, data.variables)
    states, probabilities, _ = exact_law(model)
    x, law = (data.variables.scores_of(codes) for codes in (data.states[data.row_of], states))
    i, j = model.family.graph.edges.T
    values, law = (np.hstack([each, each[:, i] * each[:, j]]) for each in (x, law))
    mean = probabilities @ law
    deviation = np.sqrt(probabilities @ law**2 - mean**2)
    expected = (values.mean(axis=0) - mean) / (deviation / np.sqrt(len(x)))
    report = training_report(model, data_moments(model, data), 0.0, rng)
    np.testing.assert_allclose(report.z_scores, expected, rtol=1e-10)


def test_z_scores_count_the_error_of_sampled_moments(data, rng, monkeypatch):
    """A difference has the variance of the data's mean and that of the model's."""
    model = random_model(gb.graphs.complete(4), rng, data.variables)
    moments = data_moments(model, data)
    exact = training_report(model, moments, 0.0, rng)
    blur = 0.05
    sampled = Estimate(exact.mean, np.full_like(exact.mean, blur), {"r_hat": 1.0})
    monkeypatch.setattr(trained, "_expect", lambda model, rng: sampled)
    report = training_report(model, moments, 0.0, rng)
    np.testing.assert_allclose(report.z_scores, exact.z_scores / np.sqrt(1.0 + (blur / exact.error) ** 2), rtol=1e-12)


def test_z_scores_of_a_full_span_fit(rng):
    """Functions of values -1 and +1: the variance of a mean is (1 - m^2) / N."""
    rows = rng.integers(0, 2, (200, 3))
    rows[:, 2] = np.where(rng.random(200) < 0.8, rows[:, 0], rows[:, 1])
    result = gb.FullSpan().fit(rows).result_
    model = result.model.replace(1.3 * result.model.theta)  # further from uniform than the data
    report = training_report(model, result.moments, 0.0, rng)
    mean = report.mean
    expected = (result.moments.mean - mean) / np.sqrt((1.0 - mean) * (1.0 + mean) / 200)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(report.z_scores, expected, rtol=1e-9)


def test_a_wrong_model_is_not_trained(rng):
    data = sampled_data(random_model(gb.graphs.complete(4), rng, scale=1.0), 2000, rng)
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(4)))
    report = training_report(model, data_moments(model, data), 0.5, rng)
    assert not report.is_trained
    assert report.n_far >= 1
    assert "more than 3 standard errors" in report.describe()


def test_true_model_has_z_scores_of_about_one(rng):
    truth = random_model(gb.graphs.complete(6), rng, scale=0.3)
    squares = [
        training_report(truth, data_moments(truth, sampled_data(truth, 400, rng)), 0.0, rng).z_scores ** 2
        for _ in range(60)
    ]
    assert np.mean(squares) == pytest.approx(1.0, abs=0.1)


def test_large_machines_are_judged_by_sampling(rng):
    x = np.where(rng.random((500, 40)) < 0.5, 1, -1)
    result = gb.BoltzmannMachine(l2=0.01, tol=1e-4).fit(x).result_
    assert not result.training.exact
    assert result.training.r_hat < 1.1
    assert result.training.is_trained
    assert "sampled" in result.training.describe()


def test_report_survives_a_file(data, tmp_path):
    machine = gb.BoltzmannMachine(learner="mle", l2=0.1, validation_fraction=0.25, random_state=0).fit(data)
    machine.save(tmp_path / "m.gibbs")
    loaded = gb.load(tmp_path / "m.gibbs")
    np.testing.assert_array_equal(loaded.result_.training.z_scores, machine.result_.training.z_scores)
    assert loaded.result_.penalised
    assert loaded.result_.held_out == machine.result_.held_out


def test_held_out_rows_are_kept_out(data):
    machine = gb.BoltzmannMachine(learner="mle", validation_fraction=0.25, random_state=3).fit(data)
    training, test = data.split(0.75, np.random.default_rng(3))
    assert machine.result_.provenance["rows"] == training.n_rows
    assert machine.result_.held_out.n_rows == test.n_rows == 150
    assert machine.result_.held_out.score == machine.score(test)
    assert machine.result_.held_out.kind == "log-likelihood"


def test_held_out_rows_of_a_large_machine_get_the_pseudo_score(rng):
    x = np.where(rng.random((300, 40)) < 0.5, 1, -1)
    held_out = gb.BoltzmannMachine(l2=0.1, tol=1e-3, validation_fraction=0.5, random_state=0).fit(x).result_.held_out
    assert held_out.kind == "log-pseudolikelihood"


@pytest.mark.parametrize("share", [-0.1, 1.0, 3])
def test_bad_share_is_named(data, share):
    with pytest.raises(ArgumentError, match="validation_fraction="):
        gb.BoltzmannMachine(validation_fraction=share).fit(data)


class TestComparison:
    def test_one_row_for_each_learner(self, data):
        rows = gb.comparison.compare(data, ["mle", "mple"], random_state=0)
        assert [row.learner for row in rows] == ["mle", "mple"]
        mle, mple = rows
        assert mle.distance == 0.0
        apart = mple.machine.model_.theta - mle.machine.model_.theta
        assert mple.distance == pytest.approx(np.sqrt(np.mean(apart**2)))
        assert mle.held_out.n_rows == 120
        assert mle.largest_z < 1e-3 < mple.largest_z

    def test_distance_to_exact_likelihood_even_if_that_was_not_asked_for(self, data):
        (alone,) = gb.comparison.compare(data, ["mple"], random_state=0)
        _, beside = gb.comparison.compare(data, ["mle", "mple"], random_state=0)
        assert alone.distance == pytest.approx(beside.distance, abs=1e-6)

    def test_learner_objects_are_taken_too(self, data):
        named, given = gb.comparison.compare(data, ["mple", gb.learning.as_learner("mple")], random_state=0)
        assert given.distance == named.distance
        assert given.learner == "MPLE"

    def test_a_failing_learner_keeps_its_reason(self):
        rows = gb.comparison.compare(
            gb.datasets.load_house_votes(), ["minibatch", "mle"], gb.BoltzmannMachine(l2=0.01), random_state=0
        )
        assert rows[0].machine is None
        assert "does not learn a BoltzmannMachine" in rows[0].verdict
        assert rows[1].machine.result_.converged


def test_a_model_without_parameters_has_nothing_to_compare(x):
    result = gb.BoltzmannMachine("empty", bias=False).fit(x).result_
    assert result.training.status == result.verdict.status == "unknown"
    assert not result.training.is_trained
    assert result.training.largest_z == 0.0
    assert "no moments were compared" in result.training.describe()


def test_what_samples_never_show_is_not_infinitely_far(rng):
    """The model's samples are all of one value: no variance of theirs, yet a difference."""
    model = gb.PairwiseFamily.model(gb.graphs.complete(2), [-50.0, -50.0], [0.0], BINARY)
    data = gb.Dataset.read([[0, 0]] * 99 + [[1, 0]])
    report = training_report(model, data_moments(model, data), 0.0, rng)
    assert np.isfinite(report.z_scores).all()
    assert 0 < report.largest_z < 3


@pytest.mark.filterwarnings("ignore::gibbsian.errors.UntrainedWarning")  # that is the case
def test_a_penalty_is_blamed_where_it_pulls_as_hard_as_moments_differ(rng):
    """Two modes far apart: contrastive divergence starts in each and cannot weigh them, penalty or not."""
    n = 8
    rows = np.vstack([np.ones((900, n)), -np.ones((100, n))])
    rows = np.where(rng.random(rows.shape) < 0.05, -rows, rows).astype(int)
    missed = gb.BoltzmannMachine(learner="cd", l2=0.003, random_state=0).fit(rows).result_.training
    held = gb.BoltzmannMachine(learner="mle", l2=1.0).fit(rows).result_.training
    assert missed.n_far
    assert "penalty" not in missed.describe()
    assert "does not reproduce the data" in missed.describe()
    assert missed.status == "untrained"
    assert held.n_far
    assert held.status == "trained"
    assert "the penalty holds them there" in held.describe()


def test_what_samples_never_show_varies_as_what_lies_halfway_to_the_data(rng, monkeypatch):
    model = gb.Model(gb.PairwiseFamily(gb.graphs.grid(1, 1)), np.zeros(1))
    monkeypatch.setattr(trained, "_expect", lambda model, rng: Estimate(np.ones(1), np.zeros(1)))
    report = training_report(model, DataMoments(np.array([0.2]), np.array([50.0])), 0.0, rng)
    halfway = 0.6
    assert report.z_scores[0] == pytest.approx((0.2 - 1.0) / np.sqrt((1 - halfway) * (1 + halfway) / 50))
    assert report.worst == 0


@pytest.mark.parametrize(("theta", "expected"), [(0.5, (0.0, 0.3)), (-0.5, (-0.3, 0.0)), (0.0, (-0.2, 0.2))])
def test_a_penalty_pulls_towards_zero(theta, expected):
    """By l1 + l2 |theta| at most, and to either side of a coupling that it holds at zero."""
    model = gb.Model(gb.PairwiseFamily(gb.graphs.complete(2)), np.array([0.0, 0.0, theta]))
    low, high = penalty_pull(model, 0.2, 0.2, None, 100.0)
    np.testing.assert_allclose((low[2], high[2]), expected)
    assert low[0] == high[0] == 0.0


def test_of_many_moments_some_are_far_by_chance(rng):
    """3 of 1,275 beyond 3 are chance (issue 31, item 1); one beyond 5, or a tenth of them beyond 3, are not."""

    def status(*far):
        z = rng.uniform(-2.5, 2.5, 1275)
        z[: len(far)] = far
        return TrainingReport(z, 0.0, exact=True).status

    assert status(3.2, -3.5, 3.9) == "trained"
    assert status(5.0) == "untrained"
    assert status(*[3.1] * 128) == "untrained"
    assert TrainingReport(np.array([2.99, 0.1]), 0.0, exact=True).threshold == 3.0  # never below


def test_the_level_of_the_rules_is_that_of_the_family(rng):
    """Of right models, whose z-scores are normal, no more than a few in a hundred are called untrained."""
    reports = [TrainingReport(rng.normal(size=500), 0.0, exact=True) for _ in range(1000)]
    assert 0 < sum(report.status == "untrained" for report in reports) <= 35


def test_chains_that_have_not_mixed_are_no_evidence(monkeypatch):
    """Tempered chains decide; where these do not settle it nothing is known (issue 31, item 2)."""
    rng = np.random.default_rng(11)
    half = rng.random(400) < 0.5
    rows = (half[:, None] ^ (rng.random((400, 40)) < 0.1)).astype(int)
    result = gb.BoltzmannMachine(learner=gb.learning.InverseMeanField("tap")).fit(rows).result_
    assert result.training.status == "untrained"  # chains in both modes agree with the data, and with R-hat 22
    assert result.training.mean[0] < 0.1 < rows[:, 0].mean()
    monkeypatch.setattr(trained, "_tempered", lambda model, rng: None)
    report = training_report(result.model, result.moments, 0.0, rng)
    assert report.status == "unknown"
    assert "disagree" in report.describe()


def test_chains_from_the_data_alone_are_no_evidence(monkeypatch):
    """All 30 variables at one have nearly all the weight; chains from zeros, as of sparse rows, never go there."""
    n = 30
    model = gb.PairwiseFamily.model(gb.graphs.complete(n), np.full(n, -4.0), np.full(n * (n - 1) // 2, 0.4), BINARY)
    sparse = DataMoments(np.concatenate([np.full(n, 0.02), np.full(model.theta.size - n, 0.0006)]), np.full(465, 1e4))
    monkeypatch.setattr(trained, "EXACT_SECONDS", 1e-9)
    report = training_report(model, sparse, 0.0, np.random.default_rng(0))
    assert report.status == "untrained"
    assert report.mean[0] > 0.9


def test_a_penalty_that_leaves_nothing_is_no_excuse(rng):
    """Parameters under an absurd penalty say nothing of the data; under a common one they do (issue 31, item 4)."""
    a = rng.normal(size=400)
    numbers = np.column_stack([a, a + rng.normal(size=400), rng.normal(size=400)])
    labels = (numbers > 0).astype(int)
    for machine, rows in ((gb.GaussianMachine, numbers), (gb.BoltzmannMachine, labels)):
        for l2, status in ((0.0, "trained"), (1 / 400, "trained"), (0.02, "trained"), (1e9, "untrained")):
            assert machine(l2=l2).fit(rows).result_.training.status == status, (machine, l2)


def test_a_prior_that_a_file_does_not_hold_explains_nothing(tmp_path):
    rows = np.repeat([[0, 0], [1, 1], [0, 1], [1, 0]], [150, 150, 50, 50], axis=0)

    def strong(theta):
        return -1000.0 * float(theta @ theta), -2000.0 * theta

    machine = gb.BoltzmannMachine(learner="mle", log_prior=strong).fit(rows)
    machine.save(tmp_path / "m.gibbs")
    assert gb.load(tmp_path / "m.gibbs").result_.training.status == "unknown"


class TestGaussianMoments:
    def test_the_variances_are_the_diagonal_of_the_information(self, rng):
        root = rng.normal(size=(4, 4))
        machine = gb.GaussianMachine(graph="chain").fit(rng.normal(size=(300, 4)) @ root + 1.0)
        model = machine.model_.replace(machine.model_.theta + rng.normal(scale=0.02, size=machine.model_.theta.size))
        family, theta = model.family, model.theta
        np.testing.assert_allclose(family.statistic_variances(theta), np.diag(family.information(theta)), rtol=1e-10)

    def test_moments_are_compared_over_the_rows_that_show_them(self, rng):
        numbers = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3))
        numbers[rng.random(numbers.shape) < 0.1] = np.nan
        result = gb.GaussianMachine().fit(numbers).result_
        present = ~np.isnan(numbers)
        u = (numbers - result.model.family.centre) / result.model.family.scale
        expected = [np.nanmean(u[:, 0]), -np.nanmean(u[:, 0] ** 2) / 2, -np.nanmean(u[:, 0] * u[:, 1])]
        np.testing.assert_allclose(result.moments.mean[[0, 3, 6]], expected, atol=1e-12)
        assert result.moments.count[6] == pytest.approx((present[:, 0] & present[:, 1]).sum())
        assert result.training.status == "trained"
