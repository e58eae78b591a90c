"""The Gaussian model against NumPy and SciPy: density, moments, losses, what is missing."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import gibbsian as gb
from gibbsian.answers import answers_about
from gibbsian.errors import ArgumentError
from gibbsian.learning.objectives import Likelihood
from gibbsian.learning.objectives.base import for_model
from gibbsian.models.families.gaussian import Moments, gaussian_loss

GRAPH = gb.graphs.from_edges([(0, 1), (1, 2), (2, 3), (0, 3)], 4)


@pytest.fixture(params=[gb.graphs.complete(4), GRAPH], ids=["complete", "ring"])
def model(request, rng):
    graph = request.param
    theta = np.concatenate([rng.normal(size=4), 2.5 + rng.random(4), rng.uniform(-0.8, 0.8, graph.n_edges)])
    family = gb.GaussianFamily(graph, np.array([0.0, 5.0, -2.0, 1.0]), np.array([1.0, 10.0, 0.1, 2.0]))
    return gb.Model(family, theta)


def log_z(model):
    return model.family.log_partition(model.theta)


@pytest.fixture
def law(model):
    """The same distribution in SciPy, from the precision matrix by hand."""
    precision = np.diag(model.theta[4:8])
    for (i, j), value in zip(model.family.graph.edges, model.theta[8:], strict=True):
        precision[i, j] = precision[j, i] = value
    covariance = np.linalg.inv(precision)
    mean = model.family.centre + model.family.scale * (covariance @ model.theta[:4])
    return multivariate_normal(mean, covariance * np.outer(model.family.scale, model.family.scale))


@pytest.fixture
def data(law):
    return gb.Dataset.read(law.rvs(300, random_state=0), coding="real")


def test_the_density_is_that_of_scipy(model, law, data):
    np.testing.assert_allclose(model.log_weights(data.states) - log_z(model), law.logpdf(data.states))
    np.testing.assert_allclose(model.family.moments(model.theta)[0], law.mean)
    np.testing.assert_allclose(model.family.moments(model.theta)[1], law.cov)
    evidence = answers_about(model).log_evidence(data) - log_z(model)
    np.testing.assert_allclose(evidence, law.logpdf(data.states))


def test_missing_cells_are_integrated_out(model, law, rng):
    rows = law.rvs(20, random_state=1)
    holes = rng.random(rows.shape) < 0.4
    data = gb.Dataset.read(np.where(holes, np.nan, rows), coding="real")
    found = (answers_about(model).log_evidence(data) - log_z(model))[data.row_of]
    filled = answers_about(model).completed_states(data, rng)[data.row_of]
    for row, hole, score, full in zip(rows, holes, found, filled, strict=True):
        seen = ~hole
        if not seen.any():
            assert score == pytest.approx(0.0)
            continue
        part = law.cov[np.ix_(seen, seen)]
        assert score == pytest.approx(multivariate_normal(law.mean[seen], part).logpdf(row[seen]))
        mean = law.mean[hole] + law.cov[np.ix_(hole, seen)] @ np.linalg.solve(part, row[seen] - law.mean[seen])
        np.testing.assert_allclose(full[hole], mean)
        np.testing.assert_array_equal(full[seen], row[seen])


def test_expected_statistics_are_the_gradient_of_log_z_and_their_covariance_the_curvature(model):
    h = 1e-5
    family = model.family
    expected, information = family.expected_statistics(model.theta), family.information(model.theta)
    for k, unit in enumerate(np.eye(model.theta.size)):
        up, down = model.theta + h * unit, model.theta - h * unit
        assert expected[k] == pytest.approx((family.log_partition(up) - family.log_partition(down)) / (2 * h), abs=1e-8)
        slope = (family.expected_statistics(up) - family.expected_statistics(down)) / (2 * h)
        np.testing.assert_allclose(information[k], slope, atol=1e-7)


def test_gradients_curvatures_and_scores_are_derivatives(model, data, rng):
    objective = for_model(Likelihood(), model)
    function, h = objective.bind(model, data), 1e-5
    theta = model.theta + rng.normal(scale=0.05, size=model.theta.size)
    gradient, here = function(theta)[1], model.replace(theta)
    curvature = objective.curvature(here, data)
    for k, unit in enumerate(np.eye(theta.size)):
        up, down = function(theta + h * unit), function(theta - h * unit)
        assert gradient[k] == pytest.approx((up[0] - down[0]) / (2 * h), abs=1e-7)
        np.testing.assert_allclose(curvature[k], (up[1] - down[1]) / (2 * h), atol=1e-6)
    scores = np.vstack([values for _, values in objective.scores(here, data)])
    mean = data.weights @ scores / data.total_weight
    np.testing.assert_allclose(mean + here.family.expected_statistics(theta), gradient, atol=1e-10)


def test_the_values_are_those_of_their_definitions(model, law, data):
    rows = data.states
    value, _ = for_model(Likelihood(), model).bind(model, data)(model.theta)
    assert value == pytest.approx(-law.logpdf(rows).mean())
    precision = np.linalg.inv(law.cov)
    scores = -(rows - law.mean) @ precision
    conditional = 0.0
    for i in range(4):
        width = 1.0 / precision[i, i]
        mean = rows[:, i] + width * scores[:, i]
        conditional -= multivariate_normal(0.0, width).logpdf(rows[:, i] - mean).mean()
    assert answers_about(model).log_pseudolikelihood(data) == pytest.approx(-conditional)


def test_no_distribution_has_no_likelihood(model):
    broken = model.replace(np.where(np.arange(model.theta.size) == 4, -1.0, model.theta))
    moments = Moments(np.eye(5), 1.0)
    assert broken.family.log_partition(broken.theta) == np.inf
    assert log_z(broken) == np.inf
    assert gaussian_loss(broken.family, broken.theta, moments)[0] == np.inf
    with pytest.raises(ArgumentError, match="positive definite"):
        broken.family.require_distribution(broken.theta)


def test_samples_follow_the_law_and_what_is_given(model, law, rng):
    answers = answers_about(model)
    rows, _ = answers.sample(40_000, rng)
    errors = np.sqrt(np.diag(law.cov) / len(rows))
    assert (np.abs(rows.mean(axis=0) - law.mean) < 5 * errors).all()
    scale = model.family.scale
    np.testing.assert_allclose(np.cov((rows / scale).T), law.cov / np.outer(scale, scale), atol=0.02)
    given = np.array([1.0, np.nan, np.nan, 0.5])
    drawn, _ = answers.sample(40_000, rng, given=given)
    mean, covariance = answers.conditional(given[None], np.isnan(given))
    assert (drawn[:, [0, 3]] == [1.0, 0.5]).all()
    np.testing.assert_allclose(drawn[:, 1:3].mean(axis=0), mean[0], atol=5 * np.sqrt(np.diag(covariance).max() / 4e4))
    widths = model.family.scale[1:3]
    np.testing.assert_allclose(np.cov((drawn[:, 1:3] / widths).T), covariance / np.outer(widths, widths), atol=0.02)


def test_moments_have_the_covariance_of_weighted_rows(rng):
    rows, weights = rng.normal(1.0, 2.0, size=(30, 3)), rng.uniform(size=30)
    moments = Moments.of(rows, weights)
    np.testing.assert_allclose(moments.covariance, np.cov(rows.T, aweights=weights, ddof=0), atol=1e-12)
