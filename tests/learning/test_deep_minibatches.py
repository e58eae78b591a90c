"""Learning deep machines: gradients against finite differences of exact bounds, resuming, weights, missing cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import layered_systems as exact_sums
from gibbsian.errors import ArgumentError, DataError
from gibbsian.expectations import DeepMeanField
from gibbsian.expectations.deep_mean_field import log_weight_bound
from gibbsian.expectations.layer_chains import LayerMoments, NoChains
from gibbsian.learning import Minibatch
from gibbsian.learning.callbacks import EachStep
from gibbsian.learning.imputation import BatchRows
from gibbsian.learning.layer_phases import LayerPhases, phase_difference
from gibbsian.models.base import Model
from gibbsian.models.layers.units import (
    BinaryUnits,
    CategoricalUnits,
    GaussianUnits,
    SpinUnits,
    codes_of,
    spread,
)
from gibbsian.storage import Checkpoint
from layered_systems import data_rows, network, stack, trained

STACKS = {
    "binary-3": (BinaryUnits(3), BinaryUnits(2), BinaryUnits(2)),
    "spin-4": (SpinUnits(2), SpinUnits(2), SpinUnits(3), SpinUnits(2)),
    "categories": (CategoricalUnits((3, 2)), BinaryUnits(2), SpinUnits(3)),
    "gaussian": (GaussianUnits(2, (0.5, 2.0)), BinaryUnits(3), BinaryUnits(2)),
}


class ExactPhase:
    """The negative phase by enumeration."""

    def init(self, model, base, rng):
        return NoChains()

    def __call__(self, at, state, rng):
        theta = np.concatenate([part.ravel() for some in at.parts for part in some])
        return LayerMoments(*at.family.split(exact_sums.layer_sums(Model(at.family, theta)).moments)), state

    def n_samples(self, batch_size):
        return batch_size

    capturable = False


def random_machine(layers, seed=0, scale=0.7):
    rng = np.random.default_rng(seed)
    return stack(layers).replace(scale * rng.standard_normal(stack(layers).theta.size))


def random_rows(layer, n_rows, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    states = codes_of(layer, layer.draw(np.zeros((n_rows, layer.width)), rng))
    return data_rows(states, missing=rng.random(states.shape) < missing if missing else None)


def mean_bound(model, rows):
    mean_field = DeepMeanField(max_iter=3000, tol=1e-13)
    missing = None if rows.missing is None else spread(model.visible, rows.missing)
    posterior = mean_field(model.family, model.parts, model.visible.encode(rows.states), missing)
    return log_weight_bound(model.family, model.parts, posterior).mean() - exact_sums.log_partition(model)


def finite_differences(function, theta, step=1e-5):
    slopes = np.empty_like(theta)
    for k in range(theta.size):
        move = step * (np.arange(theta.size) == k)
        slopes[k] = (function(theta + move) - function(theta - move)) / (2 * step)
    return slopes


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", STACKS)
def test_gradient_is_that_of_the_bound(name, missing):
    if name == "gaussian" and missing:
        pytest.skip("Gaussian units need every number")
    model, rows = random_machine(STACKS[name]), random_rows(STACKS[name][0], 6, missing=missing)
    rng, estimator = np.random.default_rng(0), LayerPhases(model.family, ExactPhase(), centred=False)
    estimator.mean_field = DeepMeanField(max_iter=3000, tol=1e-13)
    values, lacking = BatchRows(rows).with_missing(model.visible, np.arange(rows.n_rows), np.dtype(float))
    found = estimator(model.parts, estimator.init(model, rows, rng), values, rng, lacking).vector
    truth = finite_differences(lambda theta: mean_bound(model.replace(theta), rows), model.theta)
    np.testing.assert_allclose(found, truth, atol=2e-7)


def test_centred_gradient_is_the_gradient_in_centred_coordinates():
    """With ``b_l = a_l - sum W mu`` the slope by a and W, carried back to b and W, is the centred direction."""
    model, rng = random_machine(STACKS["spin-4"]), np.random.default_rng(1)
    widths = [layer.width for layer in model.layers]
    data, free = ([rng.random((n, width)) for width in widths] for n in (5, 7))
    offsets = [rng.random(width) for width in widths]
    plain = phase_difference(model.family, data, free, None)[0]

    def outwards(centred):
        biases, weights = model.family.split(centred)
        biases = [part.copy() for part in biases]
        for place, matrix in enumerate(weights):
            biases[place] -= matrix @ offsets[place + 1]
            biases[place + 1] -= offsets[place] @ matrix
        return np.concatenate([*biases, *(matrix.ravel() for matrix in weights)])

    jacobian = np.column_stack([outwards(unit) for unit in np.eye(model.theta.size)])
    centred = phase_difference(model.family, data, free, offsets)[0]
    np.testing.assert_allclose(centred, jacobian @ (jacobian.T @ plain), atol=1e-12)


def digits_like(n_rows=120, n_units=8, seed=0):
    rng = np.random.default_rng(seed)
    prototypes = rng.random((3, n_units)) < 0.5
    flips = rng.random((n_rows, n_units)) < 0.1
    return data_rows((prototypes[rng.integers(3, size=n_rows)] ^ flips).astype(np.int8))


LEARNERS = {
    "dbm": (Minibatch(max_iter=6, learning_rate=0.1, batch_size=20, momentum=0.5), stack),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_resumed_fit_has_the_same_bits(name, tmp_path):
    learner, build = LEARNERS[name]
    rows, start = digits_like(), build([BinaryUnits(8), BinaryUnits(4), BinaryUnits(3)])
    start = start.replace(0.1 * np.random.default_rng(5).standard_normal(start.theta.size))
    whole = trained(learner, start, rows, np.random.default_rng(0))
    path = tmp_path / "fit.checkpoint"

    class Interrupted(Exception):
        pass

    def stop(step, info):
        if step == 4:
            raise Interrupted

    with pytest.raises(Interrupted):
        trained(learner, start, rows, np.random.default_rng(0), [EachStep(stop), Checkpoint(path, 1)])
    checkpoint = Checkpoint(path, every=1, resume=True)
    again = trained(learner, start, rows, np.random.default_rng(0), [checkpoint])
    assert again.provenance["resumed_at_step"] == 3
    np.testing.assert_array_equal(again.model.theta, whole.model.theta)
    assert again.reason == whole.reason == "trained for 6 epochs"
    assert len(again.trace) == 6
    done = trained(learner, start, rows, np.random.default_rng(0), [checkpoint])
    np.testing.assert_array_equal(done.model.theta, whole.model.theta)


@pytest.mark.parametrize("phase", ["pcd", "cd"])
def test_training_raises_the_exact_likelihood(phase):
    rows = digits_like(n_rows=300)
    rng = np.random.default_rng(1)
    layers = [BinaryUnits(8), BinaryUnits(4), BinaryUnits(3)]
    start = stack(layers).replace(0.05 * rng.standard_normal(stack(layers).theta.size))
    learner = Minibatch(max_iter=60, learning_rate=0.2, batch_size=20, negative_phase=phase)
    values = rows.states.astype(float)

    def likelihood(model):
        return model.log_evidence(values).mean() - model.family.log_partition(model.parts)

    independent = np.log(np.where(values == 1, values.mean(0), 1 - values.mean(0))).sum(axis=1).mean()
    model = trained(learner, start, rows, rng).model
    assert likelihood(model) > independent + 0.3
    assert likelihood(start) < independent


def test_weights_of_rows_stand_for_repeated_rows():
    rows = BatchRows(data_rows(np.array([[0], [1], [2]]), weights=np.array([2.0, 0.0, 3.0])))
    seen = rows.states(rows.data.draws(np.random.default_rng(0)), np.empty(0)).ravel()
    assert sorted(seen) == [0, 0, 2, 2, 2]


def test_penalties_act_on_weights_only():
    rows, rng = digits_like(), np.random.default_rng(3)
    start = stack([BinaryUnits(8), BinaryUnits(4), BinaryUnits(3)])
    start = start.replace(0.1 * rng.standard_normal(start.theta.size))
    learner = Minibatch(max_iter=10, learning_rate=0.1, batch_size=20)
    sparse = trained(replace(learner, l1=5.0), start, rows, np.random.default_rng(0)).model
    assert all((matrix == 0).all() for matrix in sparse.parts.weights)
    assert (sparse.parts.biases[0] != 0).all()
    small = trained(replace(learner, l2=5.0), start, rows, np.random.default_rng(0)).model
    free = trained(learner, start, rows, np.random.default_rng(0)).model
    assert np.abs(small.parts.weights[0]).max() < np.abs(free.parts.weights[0]).max()


def test_single_precision_stays_single():
    rows = digits_like()
    layers = [BinaryUnits(8), BinaryUnits(4), BinaryUnits(3)]
    for learner, build in LEARNERS.values():
        template = build(layers)
        single = replace(learner, max_iter=2, l1=0.01, l2=0.01, dtype="float32")
        fitted = trained(single, template, rows, np.random.default_rng(0))
        assert fitted.model.theta.dtype == np.float32


def test_mistakes_are_named():
    rows = digits_like()
    model = stack([BinaryUnits(7), BinaryUnits(4)])
    with pytest.raises(DataError, match="7 visible units but the rows have 8"):
        Minibatch().bind(model, rows)
    with pytest.raises(ArgumentError, match="momentum=1 must be"):
        Minibatch(momentum=1)
    with pytest.raises(ArgumentError, match="schedule='fast' must be"):
        Minibatch(schedule="fast")
    with pytest.raises(ArgumentError, match="negative_phase=3 must be"):
        Minibatch(negative_phase=3)
    with pytest.raises(ArgumentError, match="learning_rate=0 must be above 0"):
        Minibatch(learning_rate=0)
    with pytest.raises(ArgumentError, match="directed layers of a belief network"):
        Minibatch().bind(network([BinaryUnits(8), BinaryUnits(4)]), rows)
