"""Belief networks against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.models.base import Layered, Model
from gibbsian.models.layers.belief_network import BeliefNetworkFamily
from gibbsian.models.layers.stack import top_of
from gibbsian.models.layers.units import BinaryUnits
from layered_systems import all_values, random_stack, stack
from models.test_stack import STACKS, every

NAMES = ["binary-3", "spin-4", "mixed-4", "categories", "two"]


def random_network(layers, rng):
    family = BeliefNetworkFamily(layers)
    return Model(family, 0.8 * rng.standard_normal(family.n_parameters))


def log_z_of_top(network):
    top = top_of(network)
    return logsumexp(top.family.log_evidence(top.theta, all_values(top.family.layers[0])))


@pytest.mark.parametrize("name", NAMES)
def test_a_belief_network_is_a_law(name, rng):
    network = random_network(STACKS[name], rng)
    logs = network.family.log_evidence(network.theta, all_values(network.family.layers[0]))
    assert logsumexp(logs) == pytest.approx(log_z_of_top(network), abs=1e-10)
    assert isinstance(network.family, Layered)


@pytest.mark.parametrize("name", ["binary-3", "spin-4", "categories"])
def test_evidence_sums_over_the_hidden_layers(name, rng):
    network = random_network(STACKS[name], rng)
    family, theta = network.family, network.theta
    values = every(family.layers[:-1])
    row = all_values(family.layers[0])[1:2]
    at = (values[0] == row).all(axis=1)
    truth = logsumexp(family.log_joint(theta, [part[at] for part in values]))
    assert family.log_evidence(theta, row)[0] == pytest.approx(truth, abs=1e-10)
    assert logsumexp(family.log_recognition(theta, [part[at] for part in values])) == pytest.approx(0.0, abs=1e-10)


def test_complete_rows_sum_to_the_normaliser(rng):
    network = random_network(STACKS["binary-3"], rng)
    codes = np.array(np.meshgrid(*[[0, 1]] * 7)).reshape(7, -1).T.astype(np.int8)
    assert logsumexp(network.log_weights(codes)) == pytest.approx(log_z_of_top(network), abs=1e-10)


def test_a_network_of_a_machine_and_its_mirror_image_is_the_machine(rng):
    """Hinton, Osindero and Teh 2006."""
    lower = random_stack((BinaryUnits(3), BinaryUnits(2)), rng)
    upper = stack((BinaryUnits(2), BinaryUnits(3)), lower.biases[::-1], [lower.weights.T])
    layers = BinaryUnits(3), BinaryUnits(2), BinaryUnits(3)
    network = Model(BeliefNetworkFamily(layers), np.concatenate([lower.theta, upper.theta]))
    visible = all_values(lower.visible)
    np.testing.assert_allclose(
        network.family.log_evidence(network.theta, visible), lower.log_evidence(visible), atol=1e-10
    )


def test_penalties_are_on_weights_alone():
    """Restricted machines of 3 x 2, 2 x 4 and 4 x 2 units."""
    family = BeliefNetworkFamily((BinaryUnits(3), BinaryUnits(2), BinaryUnits(4), BinaryUnits(2)))
    masks = family.split(family.penalised).machines
    assert family.penalised.sum() == 3 * 2 + 2 * 4 + 4 * 2
    assert all(mask.weights[0].all() and not mask.biases[0].any() for mask in masks)


def test_mistakes_are_named():
    def zeros(*sizes):
        family = BeliefNetworkFamily([BinaryUnits(n) for n in sizes])
        return Model(family, np.zeros(family.n_parameters))

    network = zeros(3, 30, 3)
    with pytest.raises(TooExpensiveError, match="bounds it"):
        network.family.log_evidence(network.theta, np.ones((1, 3)))
    with pytest.raises(ArgumentError, match="no exponential family"):
        zeros(2, 2, 2).family.joint(np.zeros(0))
    with pytest.raises(ArgumentError, match="no temperature"):
        zeros(2, 2, 2).at(0.5)
