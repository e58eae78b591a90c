"""Products of any order: definition, limits, other scores."""

import time

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import ProductsFamily, Variables
from gibbsian.errors import ArgumentError, CodingError, TooExpensiveError
from gibbsian.learning.objectives import Pseudolikelihood, value_and_gradient
from gibbsian.learning.preconditioners import preconditioning
from gibbsian.models.conditionals import WeightedRows
from gibbsian.models.scopes import Scopes
from systems import BINARY, SPINS, all_states, costs_of, dataset_of, exact_law, name_of, products_of_order, random_model

THREE = Variables.ordinal([(-1, 0, 1)] * 6)


def random_products(rng, n, sizes, variables=SPINS):
    """A few random products of each size."""
    scopes = {tuple(sorted(rng.choice(n, size, replace=False).tolist())) for size in sizes for _ in range(4)}
    return ProductsFamily.model({scope: float(rng.normal()) for scope in sorted(scopes)}, n, variables)


def products(model, states):
    x = model.variables.scores_of(states)
    return np.stack([x[:, list(scope)].prod(axis=1) for scope in model.family.scopes], axis=1)


@pytest.fixture(params=[SPINS(6), BINARY(6), THREE], ids=name_of)
def variables(request):
    return request.param


def test_energy_and_statistics_are_sums_of_products(variables, rng):
    model = random_products(rng, 6, (1, 2, 3, 4, 5, 6), variables)
    states = all_states(variables)
    direct = products(model, states)
    np.testing.assert_allclose(model.energy(states), -direct @ model.theta, atol=1e-12)
    weights = rng.random(len(states))
    found = model.family.mean_statistics(states, weights)
    np.testing.assert_allclose(found, weights @ direct / weights.sum(), atol=1e-13)
    low, high = model.family.statistic_range
    assert np.array_equal(low, direct.min(axis=0))
    assert np.array_equal(high, direct.max(axis=0))


def test_is_the_pairwise_machine_where_products_are_pairs(scores, rng):
    pairwise = random_model(gb.graphs.complete(5), rng, scores)
    model = gb.Model(products_of_order(5, 2, scores), pairwise.theta)
    states = all_states(model.variables)
    np.testing.assert_allclose(model.log_weights(states), pairwise.log_weights(states), atol=1e-12)
    np.testing.assert_allclose(costs_of(model, states), costs_of(pairwise, states), atol=1e-12)
    data = dataset_of(states[rng.integers(0, 32, 200)], model.variables)
    for one, other in zip(
        value_and_gradient(Pseudolikelihood(), model, data),
        value_and_gradient(Pseudolikelihood(), pairwise, data),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-13)


def test_more_rows_than_a_strip_or_a_block(variables, rng, monkeypatch):
    monkeypatch.setattr("gibbsian.models.families.products.BLOCK_PRODUCTS", 2**12)
    monkeypatch.setattr("gibbsian.models.conditionals.products.BLOCK_PRODUCTS", 2**12)
    model = random_products(rng, 6, (1, 2, 3, 4, 5), variables)
    every = all_states(variables)
    states = every[rng.integers(0, len(every), 1037)]
    direct = products(model, states)
    np.testing.assert_allclose(model.energy(states), -direct @ model.theta, atol=1e-12)
    np.testing.assert_allclose(model.family.mean_statistics(states), direct.mean(axis=0), atol=1e-12)
    bound = model.family.conditionals(WeightedRows.of(states))
    assert len(bound.parts) > 1
    scores = np.concatenate([part for _, part in bound.scores(model.theta, Pseudolikelihood.loss)])
    gradient = bound.evaluate(model.theta, Pseudolikelihood.loss)[1]
    np.testing.assert_allclose(scores.mean(axis=0), gradient, atol=1e-10)


def test_big_products_need_no_tables(variables, rng):
    """Products of 40 variables: energies, conditionals and Gibbs sweeps go through products alone."""
    n = 40
    variables = Variables.ordinal([(-1, 0.5, 1)] * n) if variables is THREE else variables.take([0] * n)
    model = ProductsFamily.model({tuple(range(n)): 3.0, tuple(range(0, n, 2)): -1.0, (0,): 0.2}, n, variables)
    kernel = gb.sampling.kernel_for(model.family)
    chains, _ = kernel.step(model.theta, kernel.init(4, gb.rng.Key.of(rng)), 5)
    x = variables.scores_of(chains.states)
    expected = 3.0 * x.prod(axis=1) - x[:, ::2].prod(axis=1) + 0.2 * x[:, 0]
    np.testing.assert_allclose(model.log_weights(chains.states), expected, atol=1e-12)
    assert np.isfinite(costs_of(model, chains.states)).all()
    with pytest.raises(TooExpensiveError, match=r"the clique of .. variables from 0 to 3"):
        model.family.factors(model.theta)


def test_products_of_fifteen_have_factors_and_moments(rng):
    n = 15
    model = ProductsFamily.model({tuple(range(n)): 0.7, (0,): 0.3, (2, 9): -0.4}, n)
    states, probabilities, _ = exact_law(model)
    factors = model.family.factors(model.theta)
    np.testing.assert_allclose(factors.log_weights(states), model.log_weights(states), atol=1e-12)
    table = probabilities.reshape((2,) * n)
    moments = model.family.statistics_from(lambda nodes: table.sum(axis=tuple(i for i in range(n) if i not in nodes)))
    np.testing.assert_allclose(moments, model.family.mean_statistics(states, probabilities), atol=1e-12)


@pytest.mark.parametrize("target", [SPINS(6), BINARY(6), Variables.ordinal([(0, 1), (-1, 1), (1, 3)] * 2)], ids=name_of)
def test_other_scores_are_exact_and_come_back(scores, target, rng):
    model = random_products(rng, 6, (1, 3, 4), scores)
    other, constant = model.family.recode(model.theta, target)
    states = all_states(model.variables)
    np.testing.assert_allclose(model.log_weights(states), other.log_weights(states) + constant, atol=1e-11)
    back, _ = other.family.recode(other.theta, scores)
    weights = dict(zip(back.family.scopes, back.theta, strict=True))
    for scope, weight in zip(model.family.scopes, model.theta, strict=True):
        assert weights.pop(scope) == pytest.approx(weight, abs=1e-11)
    np.testing.assert_allclose(list(weights.values()), 0.0, atol=1e-11)


def test_only_two_values_have_other_scores():
    with pytest.raises(CodingError, match="two-valued"):
        products_of_order(6, 1, THREE).recode(np.zeros(6), SPINS)


def test_all_products_up_to_an_order():
    family = products_of_order(5, 3)
    assert len(family.scopes) == 5 + 10 + 10
    assert family.graph.is_complete
    assert family.penalised.tolist() == [False] * 5 + [True] * 20


def test_too_many_products_are_refused_before_they_are_made():
    with pytest.raises(TooExpensiveError, match="lower order,"):
        products_of_order(500, 20)


@pytest.mark.parametrize(
    ("scopes", "message"),
    [
        ([(1, 0)], "ascending"),
        ([()], "at least one variable"),
        ([(0, 3)], r"outside 0\.\.2"),
        ([(0, 1), (0,)], "smaller ones first"),
        ([(0,), (0,)], "each once"),
    ],
)
def test_bad_scopes_are_named(scopes, message):
    with pytest.raises(ArgumentError, match=message):
        Scopes(scopes, 3)


def test_bad_parameters_are_named():
    with pytest.raises(ArgumentError, match="same variables twice"):
        ProductsFamily.model({(0, 1): 1.0, (1, 0): 2.0}, 2)
    with pytest.raises(ArgumentError, match="order=4"):
        products_of_order(3, 4)
    with pytest.raises(CodingError, match="no numbers"):
        products_of_order(2, 1, Variables.categories((2, 3)))


def test_a_learned_third_order_term_is_the_planted_one(rng):
    """Parity data: no pair shows anything, the triple does."""
    planted = gb.Model(products_of_order(3, 3), np.array([0, 0, 0, 0, 0, 0, 0.8]))
    states, probabilities, _ = exact_law(planted)
    data = dataset_of(states, planted.variables, probabilities)
    for name in ("mple", "rm", "mpf", "mle"):
        learner = gb.learning.LEARNERS.create(name)
        result = gb.learning.run(learner, gb.Model.zeros(planted.family), data, rng, tol=1e-10)
        np.testing.assert_allclose(result.model.theta, planted.theta, atol=1e-7)


def test_parameters_about_a_mean_are_the_same_energy(scores, rng):
    model = gb.Model(products_of_order(4, 3, scores), rng.normal(size=14))
    origin = rng.normal(size=4)
    change = preconditioning(model.family).centred(origin)
    centred = change.inwards(model.theta)
    states = all_states(model.variables)
    _, gap = model.variables.lows_and_gaps
    units = 2 * (model.variables.scores_of(states) - origin) / gap
    products = np.array([[np.prod(row[list(scope)]) for scope in model.family.scopes] for row in units])
    energies = products @ centred
    np.testing.assert_allclose(
        energies - energies[0], np.diff(model.log_weights(states[[0, *range(16)]]), 1).cumsum(), atol=1e-12
    )
    np.testing.assert_allclose(change.outwards(centred), model.theta, atol=1e-12)
    slopes = rng.normal(size=model.theta.size)
    assert change.gradient(slopes) @ centred == pytest.approx(slopes @ model.theta)
    np.testing.assert_allclose(change.gradient_outwards(change.gradient(slopes)), slopes, atol=1e-12)


def test_parts_that_are_no_products_leave_parameters_as_they_are(rng):
    model = ProductsFamily.model({(0, 1, 2): 1.0, (0,): 0.5, (0, 1): 0.2, (1, 2): 0.1}, 3)
    change = preconditioning(model.family).centred(rng.normal(size=3))
    np.testing.assert_array_equal(change.inwards(model.theta), model.theta)


def test_all_products_of_many_columns_are_centred_in_no_time():
    family = products_of_order(14, 14)
    began = time.process_time()
    change = preconditioning(family).centred(np.full(14, 0.1))
    assert change.inwards(np.ones(family.n_parameters))[0] == pytest.approx(1.1**13)
    assert time.process_time() - began < 8  # all parts of all products took half a minute
