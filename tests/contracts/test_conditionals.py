"""Conditionals of every registered discrete model: costs, losses, gradients, scores and curvature belong together."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.domain import SPIN, Categories, Continuum
from gibbsian.models.conditionals import Mapped, WeightedRows
from gibbsian.models.conditionals.tables import OneHotPairs, OrientedPairs, Tables
from gibbsian.objectives import ProbabilityFlow, Pseudolikelihood, RatioMatching
from systems import all_states, costs_of, models_with_domains, random_model_of, with_one_changed

# five variables with a triangle and a pendant, so that models of higher order have a term of three
GRAPH = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], 5)
LOSSES = {objective.name: objective.loss for objective in (Pseudolikelihood, RatioMatching, ProbabilityFlow)}


@pytest.fixture(params=models_with_domains(5), ids=lambda case: f"{case[0]}-{case[1].name}")
def model(request, rng):
    name, domain = request.param
    return random_model_of(name, GRAPH, rng, domain, scale=0.7)


@pytest.fixture(params=["dense", "sparse"], autouse=True)
def density(request, monkeypatch):
    """Small graphs are dense; as sparse ones they take the other operators."""
    if request.param == "sparse":
        monkeypatch.setattr("gibbsian.graphs.ALWAYS_DENSE_UP_TO", 0)
        monkeypatch.setattr("gibbsian.graphs.DENSE_ABOVE", 1.1)


@pytest.fixture(params=list(LOSSES.values()), ids=list(LOSSES))
def loss(request):
    return request.param


@pytest.fixture
def rows(model, rng):
    codes = model.domain.to_codes(all_states(5, model.domain))
    return codes[rng.integers(0, len(codes), 40)], rng.random(40)


def some_masked(model, codes, rng):
    """A quarter of the costs, none of them of a present value."""
    masked = rng.random(model.conditionals(codes, by_row=True).costs(model.theta).shape) < 0.25
    if not model.domain.two_valued:
        sizes = model.domain.cardinalities(5)
        np.put_along_axis(masked, np.cumsum(sizes) - sizes + codes.astype(int), False, axis=1)
    return masked


def differentiated(function, theta, h=1e-6):
    return np.array(
        [(function(theta + h * unit) - function(theta - h * unit)) / (2 * h) for unit in np.eye(theta.size)]
    )


def test_costs_are_log_odds(model):
    states = all_states(5, model.domain)
    costs, changed = costs_of(model, states), list(with_one_changed(model, states))
    assert costs.shape == (len(states), len(changed))
    for cost, others in zip(costs.T, changed, strict=True):
        np.testing.assert_allclose(cost, model.log_weights(states) - model.log_weights(others), atol=1e-12)


def test_slopes_are_pulled_back_by_the_transpose(model, rows):
    """Costs are linear in theta, so that unit vectors give the matrix: see what one column of ones leaves of it."""
    codes, weights = rows
    bound = model.conditionals(codes, weights, by_row=True)
    operator = bound.base if isinstance(bound, Mapped) else bound
    columns = np.array([operator.costs(unit) for unit in np.eye(operator.n_parameters)])
    for k in range(columns.shape[2]):

        def pick(costs, shares, k=k):
            costs[:] = 0.0
            costs[:, k] = shares
            return 0.0

        gradient = sum(part for _, part in operator.by_block(np.zeros(operator.n_parameters), pick))
        np.testing.assert_allclose(gradient, columns[:, :, k] @ (weights / weights.sum()), atol=1e-12)


def test_gradients_are_the_derivatives_of_values(model, rows, loss, rng):
    codes, weights = rows
    for masked in (None, some_masked(model, codes, rng)):
        bound = model.conditionals(codes, weights, masked)
        _, gradient = bound.evaluate(model.theta, loss)
        slopes = differentiated(lambda theta, bound=bound: bound.evaluate(theta, loss)[0], model.theta)
        np.testing.assert_allclose(gradient, slopes, atol=1e-7)


def test_values_are_losses_of_the_costs_by_weight(model, rows, loss, rng):
    codes, weights = rows
    for masked in (None, some_masked(model, codes, rng)):
        by_row = model.conditionals(codes, weights, masked, by_row=True)
        costs = by_row.costs(model.theta)
        if masked is not None:
            assert np.isinf(costs[masked]).all()
        expected = loss.of(by_row.groups)(costs.copy(), weights / weights.sum())
        for bound in (by_row, model.conditionals(codes, weights, masked)):
            assert bound.evaluate(model.theta, loss)[0] == pytest.approx(expected, rel=1e-12)


def test_weights_count_rows(model, rows, loss, rng):
    codes, counts = rows[0], rng.integers(0, 4, 40)
    value, gradient = model.conditionals(codes, counts.astype(float)).evaluate(model.theta, loss)
    again, slopes = model.conditionals(np.repeat(codes, counts, axis=0)).evaluate(model.theta, loss)
    assert value == pytest.approx(again, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, atol=1e-12)


def test_scores_sum_to_the_gradient(model, rows, loss, rng):
    codes, weights = rows
    for masked in (None, some_masked(model, codes, rng)):
        bound = model.conditionals(codes, weights, masked, by_row=True)
        blocks = list(bound.scores(model.theta, loss))
        assert [block for block, _ in blocks] == [slice(0, 40)]
        expected = bound.evaluate(model.theta, loss)[1]
        np.testing.assert_allclose(weights / weights.sum() @ blocks[0][1], expected, atol=1e-12)


def test_curvature_is_the_derivative_of_the_gradient(model, rows, loss, rng):
    codes, weights = rows
    for masked in (None, some_masked(model, codes, rng)):
        bound = model.conditionals(codes, weights, masked, by_row=True)
        curvature = bound.curvature(model.theta, loss)
        slopes = differentiated(lambda theta, bound=bound: bound.evaluate(theta, loss)[1], model.theta)
        np.testing.assert_allclose(curvature, slopes, atol=1e-6)


@pytest.mark.parametrize("sizes", [(3, 2, 4, 3, 2), (2, 2, 1, 2, 2)])
def test_operators_on_tables_of_pairs_agree(sizes, loss, rng, monkeypatch):
    monkeypatch.setattr("gibbsian.models.conditionals.tables.COST_CELLS", 60)
    monkeypatch.setattr("gibbsian.resources.row_blocks.__defaults__", (2**18, 1))
    scopes = [(0,), (2,), (3,), *map(tuple, GRAPH.edges.tolist())]  # not every variable has a table of its own
    field = gb.models.MarkovRandomField.on_cliques(scopes, 5, Categories(sizes))
    codes, theta = (rng.random((300, 5)) * sizes).astype(np.int8), rng.normal(size=field.theta.size)
    rows = WeightedRows.of(codes, rng.random(300), some_masked(field, codes, rng))
    plain = Tables(field.layout, rows)
    value, gradient = plain.evaluate(theta, loss)
    for kind in (OneHotPairs, OrientedPairs):
        bound = kind(field.layout, rows)
        np.testing.assert_allclose(bound.costs(theta), plain.costs(theta), atol=1e-12)
        other, slopes = bound.evaluate(theta, loss)
        assert other == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(slopes, gradient, atol=1e-12)


def test_the_operator_follows_from_the_scopes(density):
    pairs, triangles = gb.models.MarkovRandomField.zeros, gb.models.OrdinalModel.zeros
    codes, chain = np.zeros((500, 5), np.int8), gb.graphs.grid(1, 5)
    few, many = Categories((3,) * 5), Categories.of_values((0, 1, 2), 5)
    assert isinstance(pairs(GRAPH, few).conditionals(codes), Tables)
    assert isinstance(pairs(chain, few).conditionals(codes), OneHotPairs)
    assert isinstance(triangles(GRAPH, many).conditionals(codes).base, OneHotPairs)
    assert isinstance(pairs(chain, Categories((40,) * 5)).conditionals(codes), OrientedPairs)
    spins = gb.models.PottsModel.zeros(GRAPH, SPIN).conditionals(codes)
    assert isinstance(spins, Mapped)
    assert spins.groups is None


def test_rows_that_are_summed_have_no_costs():
    bound = gb.PairwiseModel.zeros(gb.graphs.grid(9, 9)).conditionals(np.zeros((5000, 81), np.int8))
    assert not bound.keeps_rows
    with pytest.raises(NotImplementedError, match="by_row=True"):
        bound.costs(np.zeros(bound.n_parameters))
    with pytest.raises(NotImplementedError, match="by_row=True"):
        bound.scores(np.zeros(bound.n_parameters), Pseudolikelihood.loss)


def test_costs_of_real_variables_are_log_odds_of_densities(rng):
    line = Continuum("gaussian", 0.5, 1.3, 12)
    field = gb.models.PotentialField.build(["bias", "product"], gb.graphs.grid(1, 3), line, tied=False)
    field, numbers = field.replace(rng.normal(0, 0.3, field.theta.size)), rng.normal(0.5, 1.0, (7, 3))
    bound = field.conditionals(numbers, by_row=True)
    costs, places = bound.costs(field.theta).reshape(7, 3, 12), bound.groups
    assert places.tolist() == [0, 12, 24, 36]
    for i in range(3):
        for k in (0, 5, 11):
            changed = numbers.copy()
            changed[:, i] = line.nodes[k]
            odds = field.log_weights(numbers) - field.log_weights(changed) + line.log_base(changed[:, i])
            np.testing.assert_allclose(costs[:, i, k], odds - line.node_log_weights[k], atol=1e-12)
    _, gradient = bound.evaluate(field.theta, Pseudolikelihood.loss)
    slopes = differentiated(lambda theta: bound.evaluate(theta, Pseudolikelihood.loss)[0], field.theta)
    np.testing.assert_allclose(gradient, slopes, atol=1e-8)
    ((_, scores),) = bound.scores(field.theta, Pseudolikelihood.loss)
    np.testing.assert_allclose(scores.mean(axis=0), gradient, atol=1e-12)
