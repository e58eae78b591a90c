"""The restricted machine against its energies: marginals, conditional laws, the pairwise model, temperature."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError
from gibbsian.models.layers import BinaryLayer, GaussianLayer
from gibbsian.models.restricted import RestrictedModel
from layered_systems import DISCRETE, joint_law, random_machine, statistics_of

PAIRS = [(v, h) for v in DISCRETE for h in DISCRETE]


@pytest.fixture(params=PAIRS, ids=lambda pair: "-".join(pair))
def machine(request, rng):
    return random_machine(*request.param, rng, n_visible=4, n_hidden=3, temperature=1.7)


def test_log_weights_sum_the_other_layer_out(machine):
    v, h, law, log_z = joint_law(machine)
    np.testing.assert_allclose(machine.value_log_weights(v) - log_z, np.log(law.sum(axis=1)), rtol=1e-11)
    np.testing.assert_allclose(machine.hidden_log_weights(h) - log_z, np.log(law.sum(axis=0)), rtol=1e-11)
    np.testing.assert_allclose(machine.free_energy(v), -1.7 * machine.value_log_weights(v))


def test_conditional_means_are_those_of_the_joint_law(machine):
    v, h, law, _ = joint_law(machine)
    np.testing.assert_allclose(machine.hidden_means(v), law @ h / law.sum(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(machine.visible_means(h), law.T @ v / law.sum(axis=0)[:, None], atol=1e-12)


def test_draws_given_the_other_layer_have_the_conditional_means(machine, rng):
    v, h, _, _ = joint_law(machine)
    n = 20_000
    for draw, means, given in (
        (machine.draw_hidden, machine.hidden_means, v[3]),
        (machine.draw_visible, machine.visible_means, h[2]),
    ):
        draws, expected = draw(np.tile(given, (n, 1)), rng), means(given[None])[0]
        assert np.abs((draws.mean(axis=0) - expected) / (draws.std(axis=0) / np.sqrt(n) + 1e-9)).max() < 4.5


def test_mean_statistics_of_the_whole_law(machine):
    v, h, law, _ = joint_law(machine)
    pairs = np.repeat(v, len(h), axis=0), np.tile(h, (len(v), 1))
    np.testing.assert_allclose(machine.mean_statistics(*pairs, law.ravel()), statistics_of(v, h, law), atol=1e-13)


def test_transposed_exchanges_the_layers(machine):
    _, h, _, _ = joint_law(machine)
    np.testing.assert_allclose(machine.transposed().value_log_weights(h), machine.hidden_log_weights(h), rtol=1e-12)


@pytest.mark.parametrize("kind", ["binary", "spin"])
def test_the_joint_form_of_one_two_valued_kind_has_the_same_theta(kind, rng):
    machine = random_machine(kind, kind, rng, n_visible=4, n_hidden=3)
    joint = machine.joint()
    assert isinstance(joint, gb.PairwiseModel)
    np.testing.assert_array_equal(joint.theta, machine.theta)
    assert gb.inference.exact(joint).log_partition == pytest.approx(joint_law(machine)[3], rel=1e-12)


def test_real_numbers_have_no_joint_form(rng):
    with pytest.raises(ArgumentError, match="no list of values"):
        random_machine("gaussian", "binary", rng).joint()


def test_gaussian_visible_marginal_is_the_sum_over_hidden_states(rng):
    machine = random_machine(GaussianLayer(2, (0.5, 1.5)), BinaryLayer(3), rng, temperature=1.3)
    v, h = rng.normal(size=(5, 2)), BinaryLayer(3).enumerate(0, 8)
    energies = np.array([machine.energy(np.tile(row, (8, 1)), h) for row in v])
    np.testing.assert_allclose(machine.value_log_weights(v), np.logaddexp.reduce(-energies / 1.3, axis=1), rtol=1e-12)


def test_single_precision_agrees_to_its_rounding(rng):
    machine = random_machine("binary", "binary", rng, n_visible=8, n_hidden=6)
    single = machine.replace(machine.theta.astype(np.float32))
    v = (rng.random((20, 8)) < 0.5).astype(np.float64)
    assert single.hidden_means(v).dtype == np.float32
    np.testing.assert_allclose(single.hidden_means(v), machine.hidden_means(v), atol=1e-5)
    np.testing.assert_allclose(single.value_log_weights(v), machine.value_log_weights(v), rtol=1e-5)


@pytest.mark.parametrize("temperature", [0.0, -1.0, np.inf])
def test_temperature_must_be_positive(temperature):
    with pytest.raises(ArgumentError, match="temperature"):
        RestrictedModel.build(BinaryLayer(1), BinaryLayer(1), temperature=temperature)


def test_parameters_of_another_size_are_refused():
    with pytest.raises(ArgumentError, match="need 5 parameters"):
        RestrictedModel(BinaryLayer(2), BinaryLayer(1), np.zeros(4))
    with pytest.raises(ArgumentError, match="weights has shape"):
        RestrictedModel.build(BinaryLayer(2), BinaryLayer(1), weights=np.zeros((1, 2)))
