"""The higher-order machine: products over cliques of any size, and its conversions."""

import time

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.domain import BINARY, SPIN, Categories
from gibbsian.errors import ArgumentError, CodingError, TooExpensiveError
from gibbsian.models import HigherOrderModel
from gibbsian.objectives import Pseudolikelihood, value_and_gradient
from gibbsian.objectives.preconditioners import preconditioning
from systems import all_states, costs_of, dataset_of, exact_law, random_model

VALUES = Categories.of_values((-1, 0, 1), 6)


def random_cliques(rng, n, sizes, domain=SPIN):
    """A few random cliques of each size."""
    cliques = {tuple(sorted(rng.choice(n, size, replace=False).tolist())) for size in sizes for _ in range(4)}
    weights = {clique: float(rng.normal()) for clique in sorted(cliques)}
    return HigherOrderModel.build(weights, n, domain)


def values_of(model, states):
    levels = model.domain.levels(model.n_variables)
    codes = model.domain.to_codes(states)
    return np.stack([levels[i][codes[:, i]] for i in range(model.n_variables)], axis=1)


def products(model, states):
    x = values_of(model, states)
    return np.stack([x[:, list(clique)].prod(axis=1) for clique in model.cliques], axis=1)


@pytest.fixture(params=[SPIN, BINARY, VALUES], ids=lambda domain: domain.name)
def any_domain(request):
    return request.param


def test_energy_and_statistics_are_sums_of_products(any_domain, rng):
    model = random_cliques(rng, 6, (1, 2, 3, 4, 5, 6), any_domain)
    states = all_states(6, any_domain)
    direct = products(model, states)
    np.testing.assert_allclose(model.energy(states), -direct @ model.theta, atol=1e-12)
    weights = rng.random(len(states))
    np.testing.assert_allclose(model.mean_statistics(states, weights), weights @ direct / weights.sum(), atol=1e-13)
    low, high = model.statistic_range
    assert np.array_equal(low, direct.min(axis=0))
    assert np.array_equal(high, direct.max(axis=0))


def test_fields_are_the_slopes_of_the_log_weight(any_domain, rng):
    model = random_cliques(rng, 6, (1, 2, 3, 4, 6), any_domain)
    states = all_states(6, any_domain)
    fields = model.fields(states)
    x = values_of(model, states)
    for i in range(6):
        without = np.zeros(len(states))
        for clique, weight in zip(model.cliques, model.theta, strict=True):
            if i in clique:
                without += weight * x[:, [j for j in clique if j != i]].prod(axis=1)
        np.testing.assert_allclose(fields[:, i], without, atol=1e-12)


def test_is_the_pairwise_machine_where_cliques_are_pairs(domain, rng):
    pairwise = random_model(gb.graphs.complete(5), rng, domain)
    model = HigherOrderModel.of_order(5, 2, domain).replace(pairwise.theta)
    states = all_states(5, domain)
    np.testing.assert_allclose(model.log_weights(states), pairwise.log_weights(states), atol=1e-12)
    np.testing.assert_allclose(costs_of(model, states), costs_of(pairwise, states), atol=1e-12)
    data = dataset_of(states[rng.integers(0, 32, 200)], domain)
    for one, other in zip(
        value_and_gradient(Pseudolikelihood(), model, data),
        value_and_gradient(Pseudolikelihood(), pairwise, data),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-13)


def test_more_rows_than_a_strip_or_a_block(any_domain, rng, monkeypatch):
    monkeypatch.setattr("gibbsian.models.higher_order.BLOCK_PRODUCTS", 2**12)
    monkeypatch.setattr("gibbsian.models.conditionals.products.BLOCK_PRODUCTS", 2**12)
    model = random_cliques(rng, 6, (1, 2, 3, 4, 5), any_domain)
    every = all_states(6, any_domain)
    states = every[rng.integers(0, len(every), 1037)]
    direct = products(model, states)
    np.testing.assert_allclose(model.energy(states), -direct @ model.theta, atol=1e-12)
    np.testing.assert_allclose(model.mean_statistics(states), direct.mean(axis=0), atol=1e-12)
    bound = model.conditionals(any_domain.to_codes(states))
    assert len(bound.parts) > 1
    scores = np.concatenate([part for _, part in bound.scores(model.theta, Pseudolikelihood.loss)])
    gradient = bound.evaluate(model.theta, Pseudolikelihood.loss)[1]
    np.testing.assert_allclose(scores.mean(axis=0), gradient, atol=1e-10)


def test_big_cliques_need_no_tables(any_domain, rng):
    """Cliques of 40 variables: energies, conditionals and Gibbs sweeps go through products alone."""
    n = 40
    domain = Categories.of_values((-1, 0.5, 1), n) if any_domain is VALUES else any_domain
    model = HigherOrderModel.build({tuple(range(n)): 3.0, tuple(range(0, n, 2)): -1.0, (0,): 0.2}, n, domain)
    chains, _ = gb.samplers.Gibbs().step(model, gb.samplers.Gibbs().init(model, 4, rng), 5)
    x = values_of(model, chains.states)
    expected = 3.0 * x.prod(axis=1) - x[:, ::2].prod(axis=1) + 0.2 * x[:, 0]
    np.testing.assert_allclose(model.log_weights(chains.states), expected, atol=1e-12)
    assert np.isfinite(costs_of(model, chains.states)).all()
    with pytest.raises(TooExpensiveError, match=r"the clique of .. variables from 0 to 3"):
        model.factors()


def test_cliques_of_fifteen_have_factors_and_moments(rng):
    n = 15
    model = HigherOrderModel.build({tuple(range(n)): 0.7, (0,): 0.3, (2, 9): -0.4}, n)
    states, probabilities, _ = exact_law(model)
    codes = model.domain.to_codes(states)
    np.testing.assert_allclose(model.factors().log_weights(codes), model.log_weights(states), atol=1e-12)
    table = probabilities.reshape((2,) * n)
    moments = model.statistics_from(lambda nodes: table.sum(axis=tuple(i for i in range(n) if i not in nodes)))
    np.testing.assert_allclose(moments, model.mean_statistics(states, probabilities), atol=1e-12)


@pytest.mark.parametrize("target", ["spin", "binary"])
def test_conversion_is_exact_and_comes_back(domain, target, rng):
    model = random_cliques(rng, 6, (1, 3, 4), domain)
    other, constant = model.to_domain(target)
    codes = all_states(6, BINARY)
    here, there = model.domain.from_codes(codes), other.domain.from_codes(codes)
    np.testing.assert_allclose(model.log_weights(here), other.log_weights(there) + constant, atol=1e-11)
    back, _ = other.to_domain(domain)
    weights = dict(zip(back.cliques, back.theta, strict=True))
    for clique, weight in zip(model.cliques, model.theta, strict=True):
        assert weights.pop(clique) == pytest.approx(weight, abs=1e-11)
    np.testing.assert_allclose(list(weights.values()), 0.0, atol=1e-11)


def test_values_cannot_be_converted():
    with pytest.raises(ArgumentError, match="two-valued"):
        HigherOrderModel.of_order(6, 1, VALUES).to_domain("spin")


def test_all_cliques_up_to_an_order():
    model = HigherOrderModel.of_order(5, 3)
    assert len(model.cliques) == 5 + 10 + 10
    assert model.graph.is_complete
    assert model.order == 3
    assert model.penalised.tolist() == [False] * 5 + [True] * 20


def test_too_many_cliques_are_refused_before_they_are_made():
    with pytest.raises(TooExpensiveError, match="lower order,"):
        HigherOrderModel.of_order(500, 20)


@pytest.mark.parametrize(
    ("cliques", "message"),
    [
        ([(1, 0)], "ascending"),
        ([()], "at least one variable"),
        ([(0, 3)], r"outside 0\.\.2"),
        ([(0, 1), (0,)], "smaller ones first"),
        ([(0,), (0,)], "each once"),
    ],
)
def test_bad_cliques_are_named(cliques, message):
    with pytest.raises(ArgumentError, match=message):
        HigherOrderModel(3, cliques, np.zeros(len(cliques)))


def test_bad_parameters_are_named():
    with pytest.raises(ArgumentError, match="theta has shape"):
        HigherOrderModel(2, [(0,)], np.zeros(2))
    with pytest.raises(ArgumentError, match="same variables twice"):
        HigherOrderModel.build({(0, 1): 1.0, (1, 0): 2.0}, 2)
    with pytest.raises(ArgumentError, match="order=4"):
        HigherOrderModel.of_order(3, 4)
    with pytest.raises(CodingError, match="no numbers"):
        HigherOrderModel.of_order(2, 1, Categories((2, 3)))


def test_a_learned_third_order_term_is_the_planted_one(rng):
    """Parity data: no pair shows anything, the triple does."""
    model = HigherOrderModel.of_order(3, 3)
    planted = model.replace(np.array([0, 0, 0, 0, 0, 0, 0.8]))
    states, probabilities, _ = exact_law(planted)
    data = gb.Dataset.read(states, sample_weight=probabilities)
    for name in ("mple", "rm", "mpf", "mle"):
        result = gb.learners.run(gb.learners.LEARNERS.create(name), model, data, rng, tol=1e-10)
        np.testing.assert_allclose(result.model.theta, planted.theta, atol=1e-7)


def test_parameters_about_a_mean_are_the_same_energy(domain, rng):
    model = gb.models.HigherOrderModel.of_order(4, 3, domain)
    model = model.replace(rng.normal(size=model.theta.size))
    origin = rng.normal(size=4)
    change = preconditioning(model).centred(origin)
    centred = change.inwards(model.theta)
    states = all_states(4, domain)
    units = 2 * (states - origin) / domain.gap
    products = np.array([[np.prod(row[list(clique)]) for clique in model.cliques] for row in units])
    energies = products @ centred
    np.testing.assert_allclose(
        energies - energies[0], np.diff(model.log_weights(states[[0, *range(16)]]), 1).cumsum(), atol=1e-12
    )
    np.testing.assert_allclose(change.outwards(centred), model.theta, atol=1e-12)
    slopes = rng.normal(size=model.theta.size)
    assert change.gradient(slopes) @ centred == pytest.approx(slopes @ model.theta)
    np.testing.assert_allclose(change.gradient_outwards(change.gradient(slopes)), slopes, atol=1e-12)


def test_parts_that_are_no_products_leave_parameters_as_they_are(rng):
    model = gb.models.HigherOrderModel.build({(0, 1, 2): 1.0, (0,): 0.5, (0, 1): 0.2, (1, 2): 0.1}, 3)
    np.testing.assert_array_equal(preconditioning(model).centred(rng.normal(size=3)).inwards(model.theta), model.theta)


def test_all_products_of_many_columns_are_centred_in_no_time():
    model = gb.models.HigherOrderModel.of_order(14, 14)
    began = time.process_time()
    change = preconditioning(model).centred(np.full(14, 0.1))
    assert change.inwards(np.ones(model.theta.size))[0] == pytest.approx(1.1**13)
    assert time.process_time() - began < 8  # all parts of all products took half a minute
