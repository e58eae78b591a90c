"""Stacks of two and more layers against enumeration, and against the pairwise model of the same law."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

import gibbsian as gb
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.models.base import Layered, Model
from gibbsian.models.layers.stack import StackFamily, states_of_side
from gibbsian.models.layers.units import BinaryUnits, CategoricalUnits, GaussianUnits, SpinUnits, enumerate_values
from gibbsian.startup import softmax
from layered_systems import all_values, random_machine, random_stack, stack

STACKS = {
    "binary-3": (BinaryUnits(3), BinaryUnits(2), BinaryUnits(2)),
    "spin-4": (SpinUnits(2), SpinUnits(2), SpinUnits(3), SpinUnits(2)),
    "mixed-4": (BinaryUnits(2), SpinUnits(2), BinaryUnits(2), SpinUnits(1)),
    "categories": (CategoricalUnits((3, 2)), BinaryUnits(2), BinaryUnits(3)),
    "two": (SpinUnits(3), BinaryUnits(2)),
    "two-categories": (BinaryUnits(3), CategoricalUnits((2, 3))),
}


@pytest.fixture(params=STACKS)
def model(request, rng):
    return random_stack(STACKS[request.param], rng)


def every(layers):
    """Every joint state of the layers, as rows of values of each."""
    listed = [all_values(layer) for layer in layers]
    places = np.array(list(itertools.product(*(range(len(part)) for part in listed))))
    return [part[places[:, k]] for k, part in enumerate(listed)]


def law_of(model):
    """All joint states and their log-weights."""
    values = every(model.layers)
    return values, model.family.log_weights_of_values(model.parts, values)


def test_log_partition_is_the_sum_over_all_states(model):
    assert model.family.log_partition(model.parts) == pytest.approx(logsumexp(law_of(model)[1]), abs=1e-10)


def test_the_log_weight_is_linear_in_theta_with_the_statistics_as_slopes(model):
    sizes = model.family.variables.sizes
    codes = np.array(list(itertools.product(*map(range, sizes))), dtype=np.int8)
    expected = model.family.statistics(codes) @ model.theta
    np.testing.assert_allclose(model.log_weights(codes), expected, atol=1e-11)
    np.testing.assert_allclose(model.family.mean_statistics(codes), model.family.statistics(codes).mean(axis=0))
    low, high = model.family.statistic_range
    assert (model.family.statistics(codes) >= low).all()
    assert (model.family.statistics(codes) <= high).all()


def test_evidence_sums_over_the_hidden_layers(model):
    values, logs = law_of(model)
    visible = all_values(model.visible)
    truth = [logsumexp(logs[(values[0] == row).all(axis=1)]) for row in visible]
    np.testing.assert_allclose(model.log_evidence(visible), truth, atol=1e-10)


@pytest.mark.parametrize("side", [0, 1])
def test_a_side_is_weighed_with_the_other_summed_out(model, side):
    values, logs = law_of(model)
    own = np.hstack(values[side::2])
    listed = states_of_side(model.family.layers, side)
    truth = [logsumexp(logs[(own == row).all(axis=1)]) for row in np.hstack(listed[side::2])]
    np.testing.assert_allclose(model.family.log_weights_of_side(model.parts, side, listed), truth, atol=1e-10)


def test_conditional_means_follow_from_the_log_weights(model):
    values, logs = law_of(model)
    weights = np.exp(logs)
    for place in range(len(model.layers)):
        others = [part for k, part in enumerate(values) if k != place]
        same = np.all([(part == part[0]).all(axis=1) for part in others], axis=0)
        truth = weights[same] @ values[place][same] / weights[same].sum()
        found = model.family.means(model.parts, place, [part[:1] for part in values])[0]
        np.testing.assert_allclose(found, truth, atol=1e-12)


def test_draws_given_the_other_side_have_the_conditional_means(model, rng):
    n, values = 20_000, [part[-1:] for part in every(model.layers)]
    many = [np.tile(part, (n, 1)) for part in values]
    for side in (0, 1):
        draws = model.family.draw_side(model.parts, side, many, rng)[side::2]
        means = model.family.means_of_side(model.parts, side, values)[side::2]
        for drawn, mean in zip(draws, means, strict=True):
            z = (drawn.mean(axis=0) - mean[0]) / (drawn.std(axis=0) / np.sqrt(n) + 1e-9)
            assert np.abs(z).max() < 4.5


def test_mean_statistics_of_the_whole_law_are_the_exact_moments(model):
    values, logs = law_of(model)
    found = model.family.statistics_of(values, softmax(logs))
    np.testing.assert_allclose(found, gb.inference.exact(model).moments, atol=1e-12)


def test_the_joint_form_is_the_same_law_and_leads_back(model):
    joint = model.joint()
    assert gb.inference.exact(joint).log_partition == pytest.approx(logsumexp(law_of(model)[1]), rel=1e-12)
    np.testing.assert_allclose(model.family.from_joint(joint), model.theta, atol=1e-12)


@pytest.mark.parametrize("kind", ["binary", "spin"])
def test_the_joint_form_of_one_two_valued_kind_has_the_same_theta(kind, rng):
    machine = random_machine(kind, kind, rng)
    assert isinstance(machine.joint().family, gb.PairwiseFamily)
    np.testing.assert_array_equal(machine.joint().theta, machine.theta)


def test_an_inverse_temperature_scales_all_log_weights(rng):
    machine = random_machine(GaussianUnits(2, (0.5, 1.5)), BinaryUnits(3), rng)
    (h,) = enumerate_values([BinaryUnits(3)], 0, 8)
    v = rng.normal(size=(8, 2))
    colder = machine.at(1.7)
    found = colder.family.log_weights_of_values(colder.parts, [v, h])
    np.testing.assert_allclose(found, 1.7 * machine.family.log_weights_of_values(machine.parts, [v, h]), rtol=1e-12)


@pytest.mark.parametrize("layers", [(GaussianUnits(1, (0.7,)), BinaryUnits(2), BinaryUnits(2))])
def test_a_gaussian_visible_layer_integrates_to_one(layers, rng):
    model = random_stack(layers, rng)
    grid = np.linspace(-15.0, 15.0, 4001)
    density = np.exp(model.log_evidence(grid[:, None]) - model.family.log_partition(model.parts))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-8)


def test_single_precision_agrees_to_its_rounding(rng):
    machine = random_machine("binary", "binary", rng, n_visible=8, n_hidden=6)
    single = machine.replace(machine.theta.astype(np.float32))
    v = (rng.random((20, 8)) < 0.5).astype(np.float64)
    assert single.hidden_means(v).dtype == np.float32
    np.testing.assert_allclose(single.hidden_means(v), machine.hidden_means(v), atol=1e-5)
    np.testing.assert_allclose(single.log_evidence(v), machine.log_evidence(v), rtol=1e-5)


def test_a_start_has_the_means_of_its_visible_units(model, rng):
    means = model.visible.means(rng.normal(size=(1, model.visible.width)))[0]
    started = model.replace(model.family.initialised(means, rng, scale=0.0))
    np.testing.assert_allclose(model.visible.means(started.biases[0][None])[0], means, atol=1e-12)


def test_parts_are_views_in_the_order_of_theta():
    family = StackFamily((SpinUnits(2), SpinUnits(1), SpinUnits(2)))
    parts = family.split(np.arange(9))
    assert [part.tolist() for part in parts.biases] == [[0, 1], [2], [3, 4]]
    assert [part.tolist() for part in parts.weights] == [[[5], [6]], [[7, 8]]]
    assert family.penalised.tolist() == [False] * 5 + [True] * 4
    assert isinstance(family, Layered)
    assert family.n_hidden == 3


def test_a_family_is_pickled_by_its_layers_alone(model):
    import pickle

    again = pickle.loads(pickle.dumps(model.family))
    assert again == model.family
    assert vars(again).keys() == {"layers"}


def test_mistakes_are_named():
    with pytest.raises(ArgumentError, match="hidden Gaussian layer"):
        stack([BinaryUnits(2), GaussianUnits(2), BinaryUnits(1)])
    with pytest.raises(ArgumentError, match="at least one hidden"):
        stack([BinaryUnits(2)])
    with pytest.raises(ArgumentError, match=r"have shape \(2, 3\)"):
        stack([BinaryUnits(2), BinaryUnits(2)], weights=[np.zeros((2, 3))])
    with pytest.raises(ArgumentError, match="has 8 parameters"):
        Model(StackFamily((BinaryUnits(2), BinaryUnits(2))), np.zeros(7))
    large = stack([BinaryUnits(30)] * 3)
    with pytest.raises(TooExpensiveError, match="brackets it"):
        large.family.log_partition(large.parts)
    with pytest.raises(ArgumentError, match="no list of values"):
        stack([GaussianUnits(1), BinaryUnits(1)]).joint()
