"""Every registered model: energies, statistics, flip costs and conditioning agree with each other."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.models import MODELS, Model
from systems import all_states, exact_law


@pytest.fixture(params=MODELS.names())
def model(request, domain, rng):
    zeros = MODELS.factory(request.param).zeros(gb.graphs.grid(2, 3), domain, temperature=1.3)
    return zeros.replace(rng.normal(size=zeros.theta.size))


@pytest.fixture
def states(model):
    return all_states(model.n_variables, model.domain)


def test_keeps_the_contract(model):
    assert isinstance(model, Model)
    assert model.penalised.shape == model.theta.shape


def test_energy_is_minus_theta_times_the_statistics(model, states):
    statistics = np.array([model.mean_statistics(state[None, :]) for state in states])
    np.testing.assert_allclose(model.energy(states), -statistics @ model.theta, atol=1e-12)
    np.testing.assert_allclose(model.log_weights(states), -model.energy(states) / model.temperature, atol=1e-12)


def test_moments_are_the_gradient_of_log_z(model):
    states, probabilities, _ = exact_law(model)
    moments = model.mean_statistics(states, probabilities)
    h = 1e-5
    for k, unit in enumerate(np.eye(model.theta.size)):
        up, down = (exact_law(model.replace(model.theta + sign * h * unit))[2] for sign in (1, -1))
        assert moments[k] / model.temperature == pytest.approx((up - down) / (2 * h), abs=1e-8)


def test_flip_costs_are_log_odds_and_their_vjp_the_derivative(model, states, rng):
    costs = model.flip_costs(states)
    for i in range(model.n_variables):
        flipped = states.copy()
        flipped[:, i] = model.domain.low + model.domain.high - states[:, i]
        np.testing.assert_allclose(costs[:, i], model.log_weights(states) - model.log_weights(flipped), atol=1e-12)
    c = rng.normal(size=costs.shape)
    gradient = model.flip_costs_vjp(states, c)
    for k, unit in enumerate(np.eye(model.theta.size)):
        assert gradient[k] == pytest.approx((c * model.replace(unit).flip_costs(states)).sum(), abs=1e-10)


def test_conditioning_gives_the_conditional_law_and_its_statistics(model):
    states, probabilities, _ = exact_law(model)
    nodes, values = [1, 4], states[21, [1, 4]]
    agree = (states[:, nodes] == values).all(axis=1)
    rest, constant = model.condition(nodes, values)
    free_states, free_law, free_log_z = exact_law(rest)
    np.testing.assert_allclose(free_law, probabilities[agree] / probabilities[agree].sum(), atol=1e-12)
    np.testing.assert_allclose(constant + free_log_z, np.logaddexp.reduce(model.log_weights(states[agree])), atol=1e-12)
    clamped = model.clamped_statistics(nodes, values, rest.mean_statistics(free_states, free_law))
    np.testing.assert_allclose(clamped, model.mean_statistics(states[agree], probabilities[agree]), atol=1e-12)


def test_replacing_parameters_leaves_the_model_as_it_was(model):
    before = model.theta.copy()
    model.replace(np.zeros_like(before))
    assert np.array_equal(model.theta, before)
