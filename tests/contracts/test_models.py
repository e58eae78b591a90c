"""Every registered model: energies, statistics and conditioning agree with each other."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError
from gibbsian.models import MODELS, BinaryUnits, CategoricalUnits, Model, PotentialField, SpinUnits
from systems import all_states, exact_law, models_with_domains, random_model_of, with_one_changed

# five variables with a triangle and a pendant, so that models of higher order have a term of three
GRAPH = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], 5)


@pytest.fixture(params=models_with_domains(5), ids=lambda case: f"{case[0]}-{case[1].name}")
def model(request, rng):
    name, domain = request.param
    return random_model_of(name, GRAPH, rng, domain, scale=1.0)


@pytest.fixture
def states(model):
    return all_states(model.n_variables, model.domain)


def test_keeps_the_contract(model):
    assert isinstance(model, Model)
    assert model.penalised.shape == model.theta.shape


def test_energy_is_minus_theta_times_the_statistics(model, states):
    statistics = np.array([model.mean_statistics(state[None, :]) for state in states])
    np.testing.assert_allclose(model.energy(states), -statistics @ model.theta, atol=1e-12)
    np.testing.assert_allclose(model.log_weights(states), -model.energy(states), atol=1e-12)


def test_moments_are_the_gradient_of_log_z(model):
    states, probabilities, _ = exact_law(model)
    moments = model.mean_statistics(states, probabilities)
    h = 1e-5
    for k, unit in enumerate(np.eye(model.theta.size)):
        up, down = (exact_law(model.replace(model.theta + sign * h * unit))[2] for sign in (1, -1))
        assert moments[k] == pytest.approx((up - down) / (2 * h), abs=1e-8)


def test_factors_are_the_same_distribution(model, states):
    factors = model.factors()
    np.testing.assert_allclose(
        factors.log_weights(model.domain.to_codes(states)), model.log_weights(states), atol=1e-12
    )
    assert {tuple(edge) for edge in factors.graph.edges.tolist()} <= {
        tuple(edge) for edge in model.graph.edges.tolist()
    }


def test_statistics_follow_from_marginals(model):
    states, probabilities, _ = exact_law(model)
    sizes = model.domain.cardinalities(model.n_variables)
    table = probabilities.reshape(tuple(sizes))

    def marginal(nodes):
        return table.sum(axis=tuple(i for i in range(model.n_variables) if i not in nodes))

    expected = model.mean_statistics(states, probabilities)
    np.testing.assert_allclose(model.statistics_from(marginal), expected, atol=1e-12)


def test_moments_of_what_rows_show_are_those_of_the_rows_that_show_it(model, states, rng):
    weights = rng.random(len(states))
    shown = rng.random(len(states)) < 0.4
    sums, shares = model.present_sums(states, np.repeat(shown[:, None], model.n_variables, axis=1), weights)
    np.testing.assert_allclose(shares, weights[shown].sum() / weights.sum())
    np.testing.assert_allclose(sums / shares, model.mean_statistics(states[shown], weights[shown]), atol=1e-12)


def test_given_variables_leave_the_conditional_law_and_its_statistics(model, rng):
    states, probabilities, _ = exact_law(model)
    nodes, codes = [1, 4], model.domain.to_codes(states)[-2, [1, 4]]
    agree = (model.domain.to_codes(states)[:, nodes] == codes).all(axis=1)
    given = model.given(nodes, codes)
    rest, constant = given.at(model.theta)
    free_states, free_law, free_log_z = exact_law(rest)
    np.testing.assert_allclose(free_law, probabilities[agree] / probabilities[agree].sum(), atol=1e-12)
    np.testing.assert_allclose(constant + free_log_z, np.logaddexp.reduce(model.log_weights(states[agree])), atol=1e-12)
    expected = given.statistics(rest.mean_statistics(free_states, free_law))
    np.testing.assert_allclose(expected, model.mean_statistics(states[agree], probabilities[agree]), atol=1e-12)


def test_given_statistics_are_the_transpose_of_given_parameters(model, rng):
    given = model.given([1, 4], [0, 1])
    direction, free = rng.normal(size=model.theta.size), rng.normal(size=given.family.theta.size)
    parameters, constant = given.parameters(direction)
    energy = constant - given.offset
    assert parameters @ free + energy == pytest.approx(given.statistics(free) @ direction, abs=1e-12)


def test_rows_that_give_the_same_variables_share_a_family(model):
    first, second = model.given([1, 4], [0, 1]), model.given([1, 4], [1, 0])
    # functions of given values are those of one row
    assert (first.family is second.family) != isinstance(model, PotentialField)


def test_replacing_parameters_leaves_the_model_as_it_was(model):
    before = model.theta.copy()
    model.replace(np.zeros_like(before))
    assert np.array_equal(model.theta, before)


# -- models of layers -------------------------------------------------------------------------------------------------
LAYERS = {
    "binary": (BinaryUnits(3), BinaryUnits(2)),
    "spin": (SpinUnits(3), SpinUnits(2)),
    "spin-binary": (SpinUnits(2), BinaryUnits(2)),
    "categorical": (CategoricalUnits((2, 3)), SpinUnits(2)),
    "categorical-both": (CategoricalUnits((2, 3)), CategoricalUnits((3,))),
}
LAYERED = [name for name in MODELS.names() if MODELS.trait(name, "layers", False)]


def layered_model(name, layers, rng):
    """A model of any registered kind that is made of layers, with random parameters."""
    if name == "restricted":
        zeros = MODELS.factory(name).build(*layers)
    else:
        make = MODELS.factory(name).build if name == "deep" else MODELS.factory(name).zeros
        zeros = make((*layers, layers[1]))
    return zeros.replace(rng.normal(size=zeros.theta.size))


@pytest.fixture(params=[(name, layers) for name in LAYERED for layers in LAYERS], ids="-".join)
def layered(request, rng):
    name, layers = request.param
    return layered_model(name, LAYERS[layers], rng)


def test_models_of_layers_keep_what_all_models_have(layered):
    assert layered.penalised.shape == layered.theta.shape
    assert layered.n_variables == layered.visible.n_units
    assert layered.n_hidden == sum(layer.n_units for layer in layered.layers[1:])
    before = layered.theta.copy()
    layered.replace(np.zeros_like(before))
    assert np.array_equal(layered.theta, before)


def test_conditional_costs_of_visible_units_are_log_odds(layered):
    states = all_states(layered.n_variables, layered.domain)
    costs, changed = layered.conditional_costs(states), list(with_one_changed(layered, states))
    assert costs.shape == (len(states), len(changed))
    for cost, others in zip(costs.T, changed, strict=True):
        np.testing.assert_allclose(cost, layered.log_weights(states) - layered.log_weights(others), atol=1e-12)


def test_log_weights_sum_the_hidden_units_of_the_joint_form_out(layered):
    if type(layered).__name__ == "BeliefNetwork":
        with pytest.raises(ArgumentError, match="no exponential family"):
            layered.joint()
        return
    joint = layered.joint()
    assert joint.n_variables == layered.n_variables + layered.n_hidden
    everything = all_states(joint.n_variables, joint.domain)
    visible = joint.domain.to_codes(everything)[:, : layered.n_variables]
    states, weights = all_states(layered.n_variables, layered.domain), joint.log_weights(everything)
    for state, code in zip(states, layered.domain.to_codes(states), strict=True):
        truth = np.logaddexp.reduce(weights[(visible == code).all(axis=1)])
        assert layered.log_weights(state[None])[0] == pytest.approx(truth, abs=1e-10)


def test_the_layers_are_read_off_their_joint_form(layered, rng):
    if type(layered).__name__ == "BeliefNetwork":
        return
    joint = layered.joint()
    np.testing.assert_allclose(layered.from_joint(joint).theta, layered.theta, atol=1e-12)
    # any joint model on this graph is one of such layers
    other = joint.replace(rng.normal(size=joint.theta.size))
    again = layered.from_joint(other).joint()
    states = all_states(joint.n_variables, joint.domain)
    difference = again.log_weights(states) - other.log_weights(states)
    np.testing.assert_allclose(difference, difference[0], atol=1e-10)
