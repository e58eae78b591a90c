"""Every registered objective: gradient against finite differences, weights as repetition, consistency."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.learning import Descend, run
from gibbsian.learning.objectives import OBJECTIVES, ConditionalsObjective, Objective, value_and_gradient
from gibbsian.models.variables import as_variables
from systems import dataset_of, exact_law, models_with_variables, name_of, random_model, random_model_of, sampled_data


@pytest.fixture(params=OBJECTIVES.names())
def objective(request):
    return OBJECTIVES.create(request.param)


@pytest.fixture
def consistent(objective):
    """An objective whose minimum at the exact distribution is the truth."""
    if not OBJECTIVES.trait(objective.registered_name, "consistent", True):
        pytest.skip("promises no consistency")
    return objective


@pytest.fixture(params=[gb.graphs.complete(4), gb.graphs.grid(2, 3)], ids=["complete", "grid"])
def graph(request):
    return request.param


def test_keeps_the_contract(objective):
    assert isinstance(objective, Objective)


@pytest.mark.parametrize("bias", [True, False])
def test_gradient_is_the_derivative(objective, graph, scores, bias, rng):
    model = random_model(graph, rng, scores, bias=bias)
    function = objective.bind(model, sampled_data(model, 40, rng))
    theta = model.theta + rng.normal(scale=0.3, size=model.theta.size)
    value, gradient = function(theta)
    h = 1e-5
    for k, unit in enumerate(np.eye(theta.size)):
        slope = (function(theta + h * unit)[0] - function(theta - h * unit)[0]) / (2 * h)
        assert gradient[k] == pytest.approx(slope, abs=1e-8)
    assert np.isfinite(value)


def test_weights_count_as_repetition(objective, graph, scores, rng):
    model = random_model(graph, rng, scores)
    (x, _), counts = sampled_data(model, 12, rng).rows(), rng.integers(0, 4, size=12)
    weighted = dataset_of(x, model.variables, counts)
    repeated = dataset_of(np.repeat(x, counts, axis=0), model.variables)
    value, gradient = value_and_gradient(objective, model, weighted)
    expected_value, expected_gradient = value_and_gradient(objective, model, repeated)
    assert value == pytest.approx(expected_value, abs=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-12)


def test_exact_probabilities_as_weights_give_back_the_parameters(consistent, graph, scores, rng):
    """Consistency without Monte Carlo: at the true law the minimum is the truth (H06 theorem 1)."""
    truth = random_model(graph, rng, scores, scale=0.5)
    states, probabilities, _ = exact_law(truth)
    data = dataset_of(states, truth.variables, probabilities)
    start = truth.replace(np.zeros_like(truth.theta))
    result = run(Descend(consistent), start, data, rng, tol=1e-10)
    np.testing.assert_allclose(result.model.theta, truth.theta, atol=1e-6)


# a triangle, so that there is a term of three, and a pendant
SMALL = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)], 4)


@pytest.fixture(params=models_with_variables(4), ids=lambda case: f"{case[0]}-{name_of(case[1])}")
def any_model(request, rng, objective):
    name, variables = request.param
    two_valued_only = isinstance(objective, ConditionalsObjective) and objective.loss.many is None
    if two_valued_only and not as_variables(variables, 4).two_valued:
        pytest.skip("is defined for two values only")
    return random_model_of(name, SMALL, rng, variables, scale=0.5)


def test_gradient_is_the_derivative_for_every_model(objective, any_model, rng):
    function = objective.bind(any_model, sampled_data(any_model, 40, rng))
    theta = any_model.theta + rng.normal(scale=0.3, size=any_model.theta.size)
    _, gradient = function(theta)
    h = 1e-5
    for direction in rng.normal(size=(5, theta.size)):
        slope = (function(theta + h * direction)[0] - function(theta - h * direction)[0]) / (2 * h)
        assert gradient @ direction == pytest.approx(slope, abs=1e-7)


def test_exact_probabilities_as_weights_give_back_the_law_of_every_model(consistent, any_model, rng):
    """Tables have more parameters than the law, so laws are compared."""
    states, probabilities, _ = exact_law(any_model)
    data = dataset_of(states, any_model.variables, sample_weight=probabilities)
    start = any_model.replace(np.zeros_like(any_model.theta))
    result = run(Descend(consistent), start, data, rng, tol=1e-9)
    np.testing.assert_allclose(exact_law(result.model)[1], probabilities, atol=1e-6)


def test_huge_parameters_of_every_model_are_safe(objective, any_model, rng):
    data = sampled_data(any_model, 20, rng)
    huge = any_model.replace(np.where(rng.random(any_model.theta.size) < 0.5, 50.0, -50.0))
    value, gradient = value_and_gradient(objective, huge, data)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_value_is_finite_for_huge_parameters(objective, scores, rng):
    graph = gb.graphs.complete(4)
    model = random_model(graph, rng, scores).replace(np.where(rng.random(10) < 0.5, 50.0, -50.0))
    value, gradient = value_and_gradient(objective, model, sampled_data(random_model(graph, rng, scores), 20, rng))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_many_rows_in_blocks_equal_one_block(objective, scores, rng, monkeypatch):
    model = random_model(gb.graphs.complete(4), rng, scores)
    data = sampled_data(model, 200, rng)
    whole = value_and_gradient(objective, model, data)
    monkeypatch.setattr("gibbsian.resources.row_blocks.__defaults__", (8, 1))
    blocked = value_and_gradient(objective, model, data)
    assert blocked[0] == pytest.approx(whole[0], abs=1e-13)
    np.testing.assert_allclose(blocked[1], whole[1], atol=1e-13)
