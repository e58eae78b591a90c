"""Losses over groups of costs: the two-valued ones where there are two values, and their definitions elsewhere."""

import itertools

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.backends.numba import flip_losses, grouped_losses
from gibbsian.errors import ArgumentError
from gibbsian.learning.objectives import (
    OBJECTIVES,
    ConditionalPseudolikelihood,
    ConditionalsObjective,
    ProbabilityFlow,
    value_and_gradient,
)
from gibbsian.models.conditionals import Loss
from systems import all_states, costs_of, dataset_of, random_model_of

PAIRS = {
    "pseudolikelihood": (flip_losses.logistic, grouped_losses.softmax),
    "ratio-matching": (flip_losses.squared_sigmoid, grouped_losses.squared_distance),
    "probability-flow": (flip_losses.half_exponential, grouped_losses.half_exponentials),
}
COLUMNS = np.array([0, 2, 5, 6, 10])


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("scale", [1.0, 50.0, 2000.0])
def test_two_values_give_the_two_valued_loss(name, scale, rng):
    single, grouped = PAIRS[name]
    costs, shares = rng.normal(scale=scale, size=(30, 4)), rng.random(30)
    present = rng.integers(0, 2, size=(30, 4))  # in which of its two columns the present value stands
    doubled = np.where(np.arange(2) == present[:, :, None], 0.0, costs[:, :, None]).reshape(30, 8)
    slopes = costs.copy()
    expected = single(slopes, shares)
    value = grouped(doubled, shares, np.arange(0, 9, 2))
    assert value == pytest.approx(expected, rel=1e-12)
    other = np.take_along_axis(doubled.reshape(30, 4, 2), 1 - present[:, :, None], axis=2)[:, :, 0]
    np.testing.assert_allclose(other, slopes, rtol=1e-10, atol=1e-15 * max(1.0, np.abs(slopes).max()))


def random_costs(rng, scale):
    costs = rng.normal(scale=scale, size=(25, 10))
    present = np.stack([rng.integers(first, last, 25) for first, last in itertools.pairwise(COLUMNS)], axis=1)
    np.put_along_axis(costs, present, 0.0, axis=1)
    return costs, present


def groups(array):
    return np.split(array, COLUMNS[1:-1], axis=1)


@pytest.mark.parametrize("scale", [1.0, 60.0])
def test_losses_are_their_definitions(scale, rng):
    costs, present = random_costs(rng, scale)
    shares = rng.random(25)
    chances = [np.exp(-g - np.logaddexp.reduce(-g, axis=1)[:, None]) for g in groups(costs)]
    is_present = groups(np.put_along_axis(zeros := np.zeros_like(costs), present, 1.0, axis=1) or zeros)
    minus_logs = sum(np.logaddexp.reduce(-g, axis=1) for g in groups(costs))
    distances = sum(0.5 * ((p - i) ** 2).sum(axis=1) for p, i in zip(chances, is_present, strict=True))
    flows = np.where(np.concatenate(is_present, axis=1) == 1, 0.0, np.exp(-costs / 2)).sum(axis=1)
    for kernel, losses in (
        (grouped_losses.softmax, minus_logs),
        (grouped_losses.squared_distance, distances),
        (grouped_losses.half_exponentials, flows),
    ):
        assert kernel(costs.copy(), shares, COLUMNS) == pytest.approx(shares @ losses, rel=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_derivatives_are_those_of_the_losses(name, rng):
    kernel = PAIRS[name][1]
    costs, present = random_costs(rng, 2.0)
    shares = rng.random(25)
    slopes = costs.copy()
    kernel(slopes, shares, COLUMNS)
    h = 1e-6
    for m, k in [(0, 0), (3, 4), (7, 6), (11, 9), (20, 2)]:
        if k in present[m]:
            continue  # the cost of the present value is zero whatever the parameters
        up, down = costs.copy(), costs.copy()
        up[m, k] += h
        down[m, k] -= h
        slope = (kernel(up, shares, COLUMNS) - kernel(down, shares, COLUMNS)) / (2 * h)
        assert slopes[m, k] == pytest.approx(slope, abs=1e-8)


def test_flow_goes_on_straight_where_it_would_overflow():
    costs = np.array([[0.0, -5000.0, 3.0]])
    value = grouped_losses.half_exponentials(costs, np.array([1.0]), np.array([0, 3]))
    assert np.isfinite(value)
    assert np.isfinite(costs).all()


def test_value_is_minus_the_mean_log_of_the_conditional_probabilities(rng):
    variables = Variables.categories((3, 2, 4))
    model = random_model_of("tables", gb.graphs.complete(3), rng, variables)
    every = all_states(variables)
    states = every[rng.integers(0, len(every), 20)]
    total = 0.0
    for state in states:
        for i in range(3):
            same = (np.delete(every, i, axis=1) == np.delete(state, i)).all(axis=1)
            weights = model.log_weights(every[same])
            total += np.logaddexp.reduce(weights) - model.log_weights(state[None, :])[0]
    value, _ = value_and_gradient(OBJECTIVES.create("pseudolikelihood"), model, dataset_of(states, variables))
    assert value == pytest.approx(total / 20, rel=1e-12)


def test_skipping_data_leaves_out_flips_to_rows_that_are_there(rng):
    """Of the five flips of each row those that give another row are not counted."""
    variables = Variables.categories((2, 3, 3))
    model = gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.complete(3), variables))
    states = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0]], dtype=np.int8)
    value, _ = value_and_gradient(ProbabilityFlow(skip_data=True), model, dataset_of(states, variables))
    assert value == pytest.approx((3 + 4 + 4) / 3, abs=1e-12)


@pytest.mark.parametrize("name", ["tables", "full-span"])
@pytest.mark.parametrize(
    "objective", [ProbabilityFlow(skip_data=True), ConditionalPseudolikelihood([1, 3])], ids=["flow", "targets"]
)
def test_categories_of_two_values_leave_out_what_two_valued_variables_do(name, objective, rng):
    """Costs of both have one column each: those that are left out are told alike."""
    graph, variables = gb.graphs.complete(4), Variables.categories((2, 2, 2, 2))
    model, codes = random_model_of(name, graph, rng, variables), all_states(variables)[rng.integers(0, 16, 9)]
    found = value_and_gradient(objective, model, dataset_of(codes, variables))[0]
    costs = costs_of(model, codes)
    left_out = np.tile([True, False, True, False], (9, 1))
    if objective.name == "probability flow":
        flipped = codes[:, None] ^ np.eye(4, dtype=np.int8)
        left_out = (flipped[:, :, None] == codes).all(axis=3).any(axis=2)
        assert left_out.any()
    losses = np.exp(-costs / 2) if objective.name == "probability flow" else np.logaddexp(0.0, -costs)
    assert found == pytest.approx(losses[~left_out].sum() / 9, rel=1e-12)


def test_an_objective_of_two_values_says_so():
    class MyLoss(ConditionalsObjective):
        name = "my loss"
        loss = Loss(flip_losses.logistic)

    objective = MyLoss()
    model = gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.complete(2), Variables.categories((2, 3))))
    with pytest.raises(ArgumentError, match="my loss is defined for two-valued variables only"):
        objective.bind(model, dataset_of(np.array([[0, 1], [1, 2]], dtype=np.int8), model.variables))
