"""Deep models against enumeration and against the pairwise model of the same law."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.deep import DeepModel
from gibbsian.models.joined_layer import JoinedLayer, joined
from gibbsian.models.layers import BinaryLayer, CategoricalLayer, GaussianLayer, SpinLayer

STACKS = {
    "binary-3": (BinaryLayer(3), BinaryLayer(2), BinaryLayer(2)),
    "spin-4": (SpinLayer(2), SpinLayer(2), SpinLayer(3), SpinLayer(2)),
    "mixed-4": (BinaryLayer(2), SpinLayer(2), BinaryLayer(2), SpinLayer(1)),
    "categories": (CategoricalLayer((3, 2)), BinaryLayer(2), BinaryLayer(3)),
    "two": (SpinLayer(3), BinaryLayer(2)),
}


def random_deep(layers, seed=0, temperature=1.3, scale=0.8):
    template = DeepModel.build(layers)
    theta = scale * np.random.default_rng(seed).standard_normal(template.theta.size)
    return DeepModel(layers, theta, temperature)


def random_network(layers, seed=0, temperature=1.3, scale=0.8):
    template = BeliefNetwork.zeros(layers)
    theta = scale * np.random.default_rng(seed).standard_normal(template.theta.size)
    return BeliefNetwork(layers, theta, temperature)


def all_values(layers):
    """Every joint state of the layers, as rows of values of each."""
    every = [layer.enumerate(0, int(layer.n_states)) for layer in layers]
    places = np.array(list(itertools.product(*(range(len(part)) for part in every))))
    return [part[places[:, k]] for k, part in enumerate(every)]


@pytest.mark.parametrize("name", STACKS)
def test_log_partition_is_the_sum_over_all_states(name):
    model = random_deep(STACKS[name])
    truth = logsumexp(-model.energy(all_values(model.layers)) / model.temperature)
    assert model.log_partition() == pytest.approx(truth, abs=1e-10)


@pytest.mark.parametrize("name", STACKS)
def test_log_weights_sum_over_the_hidden_layers(name):
    model = random_deep(STACKS[name], seed=1)
    values = all_values(model.layers)
    visible = model.visible.enumerate(0, int(model.visible.n_states))
    logs = -model.energy(values) / model.temperature
    truth = [logsumexp(logs[(values[0] == row).all(axis=1)]) for row in visible]
    np.testing.assert_allclose(model.value_log_weights(visible), truth, atol=1e-10)


@pytest.mark.parametrize("name", STACKS)
def test_conditional_fields_follow_from_the_energy(name):
    model = random_deep(STACKS[name], seed=2)
    values = all_values(model.layers)
    weights = np.exp(-model.energy(values) / model.temperature)
    for place in range(len(model.layers)):
        others = [part for k, part in enumerate(values) if k != place]
        same = np.all([(part == part[0]).all(axis=1) for part in others], axis=0)
        truth = weights[same] @ values[place][same] / weights[same].sum()
        np.testing.assert_allclose(model.means(place, [part[:1] for part in values])[0], truth, atol=1e-12)


@pytest.mark.parametrize("name", STACKS)
def test_folding_keeps_the_energy(name):
    model = random_deep(STACKS[name], seed=3)
    values = all_values(model.layers)
    folded = model.folded()
    np.testing.assert_allclose(folded.energy(*model.fold_values(values)), model.energy(values), atol=1e-12)
    for part, again in zip(values, model.unfold_values(*model.fold_values(values)), strict=True):
        np.testing.assert_array_equal(part, again)
    np.testing.assert_array_equal(model.unfold(model.fold(model.theta)), model.theta)


def test_gaussian_visible_layer_integrates_to_one():
    model = random_deep((GaussianLayer(1, (0.7,)), BinaryLayer(2), BinaryLayer(2)), seed=5, temperature=1.5)
    grid = np.linspace(-15.0, 15.0, 4001)
    density = np.exp(model.value_log_weights(grid[:, None]) - model.log_partition())
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-8)


def test_joined_layer_is_its_parts():
    layer = joined((CategoricalLayer((2, 3)), SpinLayer(2), GaussianLayer(1, (2.0,))))
    assert isinstance(layer, JoinedLayer)
    assert (layer.n_units, layer.width, layer.n_states) == (5, 8, np.inf)
    states = np.array([[1.0, 2.0, -1.0, 1.0, 0.25]])
    np.testing.assert_array_equal(layer.decode(layer.encode(states)), states)
    means = layer.means(np.random.default_rng(0).standard_normal((3, 8)))
    np.testing.assert_allclose(layer.means(layer.fields_of(means)), means, atol=1e-9)
    np.testing.assert_allclose(layer.fields_of(means)[1], layer.fields_of(means[1]))
    both = joined((CategoricalLayer((2, 3)), SpinLayer(2)))
    every = both.enumerate(0, int(both.n_states))
    assert len(np.unique(every, axis=0)) == 24
    np.testing.assert_array_equal(both.enumerate(5, 9), every[5:9])
    fields = np.random.default_rng(1).standard_normal((1, 7))
    assert both.log_normaliser(fields)[0] == pytest.approx(logsumexp(every @ fields[0]))


@pytest.mark.parametrize("name", ["binary-3", "spin-4", "mixed-4", "categories", "two"])
def test_belief_network_is_a_law(name):
    network = random_network(STACKS[name])
    visible = network.visible.enumerate(0, int(network.visible.n_states))
    top = network.top
    log_z = logsumexp(top.value_log_weights(top.visible.enumerate(0, int(top.visible.n_states))))
    assert logsumexp(network.value_log_weights(visible) - log_z) == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("name", ["binary-3", "spin-4", "categories"])
def test_belief_network_sums_over_its_hidden_layers(name):
    network = random_network(STACKS[name], seed=1)
    values = all_values(network.layers[:-1])
    row = network.visible.enumerate(1, 2)
    at = (values[0] == row).all(axis=1)
    truth = logsumexp(network.log_joint([part[at] for part in values]))
    assert network.value_log_weights(row)[0] == pytest.approx(truth, abs=1e-10)
    recognised = network.log_recognition([part[at] for part in values])
    assert logsumexp(recognised) == pytest.approx(0.0, abs=1e-10)


def test_a_stack_of_two_equal_machines_is_the_lower_one():
    """The network of a machine and its transpose has the machine's own law (Hinton, Osindero and Teh 2006)."""
    lower = random_deep((BinaryLayer(3), BinaryLayer(2)), seed=6).folded()
    network = BeliefNetwork.stack([lower, lower.transposed()])
    visible = lower.visible.enumerate(0, 8)
    log_z = logsumexp(lower.value_log_weights(visible))
    np.testing.assert_allclose(network.value_log_weights(visible), lower.value_log_weights(visible), atol=1e-10)
    top = network.top
    assert logsumexp(top.value_log_weights(top.visible.enumerate(0, 4))) == pytest.approx(log_z)


def test_mistakes_are_named():
    with pytest.raises(ArgumentError, match="hidden Gaussian layer"):
        DeepModel.build([BinaryLayer(2), GaussianLayer(2)])
    with pytest.raises(ArgumentError, match="at least one hidden"):
        DeepModel.build([BinaryLayer(2)])
    with pytest.raises(ArgumentError, match="weights has shape"):
        DeepModel.build([BinaryLayer(2), BinaryLayer(2)], weights=[np.zeros((2, 3))])
    with pytest.raises(ArgumentError, match="need 8 parameters"):
        DeepModel((BinaryLayer(2), BinaryLayer(2)), np.zeros(7))
    with pytest.raises(TooExpensiveError, match="brackets it"):
        DeepModel.build([BinaryLayer(30), BinaryLayer(30), BinaryLayer(30)]).log_partition()
    with pytest.raises(TooExpensiveError, match="bounds it"):
        BeliefNetwork.zeros([BinaryLayer(3), BinaryLayer(30), BinaryLayer(3)]).value_log_weights(np.ones((1, 3)))
    with pytest.raises(ArgumentError, match="no exponential family"):
        BeliefNetwork.zeros([BinaryLayer(2), BinaryLayer(2), BinaryLayer(2)]).joint()


def test_a_start_has_the_means_of_the_data_at_any_temperature(rng):
    layers = [BinaryLayer(3), BinaryLayer(2), BinaryLayer(2)]
    zeros = [np.zeros(layer.width) for layer in layers]
    model = DeepModel.build(layers, zeros, [np.zeros((3, 2)), np.zeros((2, 2))], 1.7)
    means = np.array([0.2, 0.5, 0.9])
    start = model.started(means, rng, scale=0.0)
    np.testing.assert_allclose(1.0 / (1.0 + np.exp(-start.biases[0] / 1.7)), means, rtol=1e-12)


def test_penalties_of_a_belief_network_are_on_its_weights_alone():
    """Restricted machines of 3 x 2, 2 x 4 and 4 x 2 units."""
    layers = BinaryLayer(3), BinaryLayer(2), BinaryLayer(4), BinaryLayer(2)
    network = BeliefNetwork.zeros(layers)
    masks = [machine.replace(machine.theta.astype(float)) for machine in network.replace(network.penalised).machines]
    assert network.penalised.sum() == 3 * 2 + 2 * 4 + 4 * 2
    assert all(mask.weights.all() and not mask.visible_biases.any() for mask in masks)


@pytest.mark.parametrize("name", STACKS)
def test_a_start_has_the_means_of_its_visible_units(name):
    model = random_deep(STACKS[name], temperature=1.7)
    means = model.visible.means(np.random.default_rng(0).normal(size=(1, model.visible.width)))[0]
    started = model.started(means, np.random.default_rng(0), scale=0.0)
    np.testing.assert_allclose(started.tempered[0].means(started.biases[0][None] / 1.7)[0], means, atol=1e-12)
