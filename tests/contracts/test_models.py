"""Every registered model: energies, statistics and conditioning agree with each other."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.inference.layer_pseudolikelihood import conditional_costs
from gibbsian.models import FAMILIES, BinaryUnits, CategoricalUnits, PotentialField, SpinUnits
from gibbsian.models import Model as AnyModel
from gibbsian.models.family import Layered, Model
from layered_systems import random_stack
from systems import all_states, exact_law, models_with_domains, random_model_of

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
    assert isinstance(model, AnyModel)
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
LAYERED = [name for name in FAMILIES if FAMILIES.trait(name, "layers", False)]


@pytest.fixture(params=[(name, layers) for name in LAYERED for layers in LAYERS], ids="-".join)
def layered(request, rng):
    """A model of any registered family that is made of layers, with random parameters."""
    name, layers = request.param
    three = (*LAYERS[layers], LAYERS[layers][1])
    family = FAMILIES.factory(name)(three)
    return Model(family, rng.normal(size=family.n_parameters))


def visible_codes(family):
    return np.array(list(np.ndindex(*family.layers[0].variables.sizes)), dtype=np.int8)


def test_models_of_layers_keep_what_all_models_have(layered):
    family = layered.family
    assert isinstance(family, Layered)
    assert family.penalised.shape == layered.theta.shape
    assert layered.n_variables == family.layers[0].n_units + family.n_hidden
    before = layered.theta.copy()
    layered.replace(np.zeros_like(before))
    assert np.array_equal(layered.theta, before)
    again = type(family).from_parts(family.to_parts(), family.layers[0].variables)
    assert again == family


@pytest.mark.parametrize("layers", LAYERS)
def test_conditional_costs_of_visible_units_are_log_odds(layers, rng):
    model = random_stack(LAYERS[layers], rng)
    if not model.visible.variables.two_valued:
        return
    codes = visible_codes(model.family)
    costs = conditional_costs(model, np.asarray(model.visible.encode(codes), float))
    for unit in range(codes.shape[1]):
        others = codes.copy()
        others[:, unit] ^= 1
        here, there = (model.log_evidence(model.visible.encode(each)) for each in (codes, others))
        np.testing.assert_allclose(costs[:, unit], here - there, atol=1e-12)


def test_evidence_sums_the_hidden_units_out_of_complete_rows(layered):
    family = layered.family
    visible, everything = visible_codes(family), np.array(list(np.ndindex(*family.variables.sizes)), dtype=np.int8)
    weights = layered.log_weights(everything)
    found = family.log_evidence(layered.theta, family.layers[0].encode(visible))
    for row, evidence in zip(visible, found, strict=True):
        shown = (everything[:, : len(row)] == row).all(axis=1)
        assert evidence == pytest.approx(np.logaddexp.reduce(weights[shown]), abs=1e-10)


@pytest.mark.parametrize("layers", LAYERS)
def test_any_joint_model_of_layers_is_one_of_them(layers, rng):
    model = random_stack(LAYERS[layers], rng)
    other = model.joint().replace(rng.normal(size=model.joint().theta.size))
    again = model.replace(model.family.from_joint(other)).joint()
    states = all_states(other.n_variables, other.domain)
    difference = again.log_weights(states) - other.log_weights(states)
    np.testing.assert_allclose(difference, difference[0], atol=1e-10)
