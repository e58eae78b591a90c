"""Stacking: what a deep machine is made of, what goes up, and that learning together raises the bound."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import layered_systems as exact_sums
from gibbsian.errors import ArgumentError
from gibbsian.expectations.layers import mean_field_bounds
from gibbsian.learning import Minibatch, Stacking
from gibbsian.learning.stacking import BoltzmannStack
from gibbsian.models.layers.stack import top_of
from gibbsian.models.layers.units import BinaryUnits, CategoricalUnits, GaussianUnits, SpinUnits
from layered_systems import data_rows, network, random_stack, stack, start_model, trained


@pytest.mark.parametrize("visible", [BinaryUnits(3), CategoricalUnits((2, 3)), GaussianUnits(2, (0.5, 2.0))])
@pytest.mark.parametrize("sizes", [(2, 3), (2, 3, 4)], ids=["two", "three"])
def test_a_deep_start_has_half_of_every_machine(visible, sizes):
    """E(v, h_1, .., h_L) is half of the sum of the machines' energies, the ends being there twice."""
    rng = np.random.default_rng(0)
    layers = [visible, *map(BinaryUnits, sizes)]
    pretraining = BoltzmannStack(stack(layers).family)
    machines = [random_stack(machine.layers, rng) for machine in pretraining.machines]
    deep = stack(layers).replace(pretraining.stacked([machine.theta for machine in machines]))
    values = [layer.draw(np.zeros((5, layer.width)), rng) for layer in layers]
    ends = [np.hstack([values[0]] * 2), *values[1:-1], np.hstack([values[-1]] * 2)]
    total = sum(machine.log_weights_of_values(ends[k], ends[k + 1]) for k, machine in enumerate(machines))
    np.testing.assert_allclose(deep.log_weights_of_values(*values), 0.5 * total, atol=1e-12)


def test_one_hidden_layer_is_the_restricted_machine():
    rng = np.random.default_rng(1)
    machine = random_stack((BinaryUnits(3), BinaryUnits(2)), rng)
    np.testing.assert_array_equal(BoltzmannStack(machine.family).stacked([machine.theta]), machine.theta)


def test_the_lowest_machine_of_a_network_learns_from_the_rows_alone():
    rows = data_rows(np.random.default_rng(2).integers(0, 2, (80, 5)).astype(np.int8))
    learner = Minibatch(max_iter=4, batch_size=20)
    learner = Stacking(alone=learner, together=None)
    shallow = trained(learner, network([BinaryUnits(5), BinaryUnits(3)]), rows, rng_of(0))
    layers = [BinaryUnits(5), BinaryUnits(3), BinaryUnits(2)]
    deep = trained(learner, network(layers), rows, rng_of(0)).model
    np.testing.assert_array_equal(deep.theta[: shallow.model.theta.size], shallow.model.theta)


def rng_of(seed):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("carried", ["samples", "means"])
def test_machines_above_learn_the_law_of_the_units_below(carried):
    """One hidden unit copies the column; the machine above it must find its share."""
    rng = np.random.default_rng(3)
    rows = data_rows(np.repeat(rng.random((2000, 1)) < 0.8, 6, axis=1).astype(np.int8))
    layers = [BinaryUnits(6), BinaryUnits(1), BinaryUnits(1)]
    learner = Stacking(alone=Minibatch(max_iter=60, batch_size=50, learning_rate=0.3), together=None, carried=carried)
    learned = trained(learner, network(layers), rows, rng).model
    up = learned.family.upward_means(learned.theta, np.array([[1.0] * 6, [0.0] * 6]))[1].ravel()
    assert abs(up[0] - up[1]) > 0.9
    moments = exact_sums.layer_sums(top_of(learned)).moments
    share = moments[0] if up[0] > up[1] else 1.0 - moments[0]
    assert abs(share - 0.8) < 0.06


def test_missing_cells_are_filled_for_the_layers_above():
    rng = np.random.default_rng(4)
    groups = np.repeat(rng.random((300, 1)) < 0.5, 4, axis=1) ^ (rng.random((300, 4)) < 0.1)
    states = groups.astype(np.int8)
    rows = data_rows(states, missing=rng.random(states.shape) < 0.2)
    layers = [SpinUnits(4), SpinUnits(3), SpinUnits(2)]
    joint = Minibatch(max_iter=3, batch_size=20, n_chains=100)
    for model, n_epochs in ((network(layers), 40), (stack(layers), 43)):
        fit = trained(
            Stacking(alone=Minibatch(max_iter=20, batch_size=20, learning_rate=0.2, n_chains=100), together=joint),
            model,
            rows,
            rng_of(1),
        )
        assert len(fit.trace) == n_epochs
        whole = model.replace(fit.model.theta)
        evidence = whole.family.log_evidence(whole.theta, layers[0].encode(states))
        assert evidence.mean() - exact_sums.log_partition(whole) > -2.4  # independent: -2.77


@pytest.fixture(scope="module")
def digits():
    images, _ = load_digits(return_X_y=True)
    cells = (images > 7).astype(np.int8)
    return data_rows(cells[:900]), data_rows(cells[900:1200])


LAYERS = (BinaryUnits(64), BinaryUnits(12), BinaryUnits(8))
GREEDY = Minibatch(max_iter=15, batch_size=20, learning_rate=0.2)


@pytest.mark.long
def test_learning_together_raises_the_bound_of_a_deep_boltzmann_machine(digits):
    rows, test = digits

    def bound(model):
        return mean_field_bounds(model, test).mean() - exact_sums.log_partition(model)

    start = trained(Stacking(alone=GREEDY, together=None), stack(LAYERS), rows, rng_of(0)).model
    joint = Minibatch(max_iter=15, learning_rate=0.1, batch_size=20)
    end = trained(Stacking(alone=GREEDY, together=joint), stack(LAYERS), rows, rng_of(0)).model
    assert bound(end) > bound(start) + 0.2
    shallow = trained(GREEDY, start_model(*LAYERS[:2], rows, rng_of(0)), rows, rng_of(0)).model
    assert bound(start) > exact_sums.log_likelihood(shallow, test.states).mean() - 1.0


def test_mistakes_are_named():
    rows = data_rows(np.array([[1, 0], [0, 1]]))
    layers = [SpinUnits(2), SpinUnits(2), SpinUnits(2)]
    with pytest.raises(ArgumentError, match="carried='all' is not known"):
        Stacking(carried="all")
    with pytest.raises(ArgumentError, match="can be probabilities"):
        trained(Stacking(carried="means"), network(layers), rows, rng_of(0))
