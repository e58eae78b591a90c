"""Conditionals of every registered discrete model: costs, losses, gradients, scores and curvature belong together."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.domain import Continuum
from gibbsian.learning.objectives import ProbabilityFlow, Pseudolikelihood, RatioMatching
from gibbsian.models import QuadratureFamily
from gibbsian.models.conditionals import Mapped, WeightedRows
from gibbsian.models.conditionals.tables import OneHotPairs, OrientedPairs, Tables
from gibbsian.models.scopes import Scopes
from gibbsian.models.variables import Quadrature
from systems import KINDS, all_states, costs_of, models_with_variables, name_of, random_model_of, with_one_changed

# five variables with a triangle and a pendant, so that models of higher order have a term of three
GRAPH = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], 5)
LOSSES = {objective.name: objective.loss for objective in (Pseudolikelihood, RatioMatching, ProbabilityFlow)}


@pytest.fixture(params=models_with_variables(5), ids=lambda case: f"{case[0]}-{name_of(case[1])}")
def model(request, rng):
    name, variables = request.param
    return random_model_of(name, GRAPH, rng, variables, scale=0.7)


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
    codes = all_states(model.variables)
    return codes[rng.integers(0, len(codes), 40)], rng.random(40)


def bind(model, *rows, **kinds):
    """Rows of codes with what else there is to say of them, bound to the model's family."""
    return model.family.conditionals(WeightedRows.of(*rows, **kinds))


def some_masked(model, codes, rng):
    """A quarter of the costs, none of them of a present value."""
    masked = rng.random(costs_of(model, codes).shape) < 0.25
    if not model.variables.two_valued:
        np.put_along_axis(masked, model.variables.offsets[:-1] + codes, False, axis=1)
    return masked


def differentiated(function, theta, h=1e-6):
    return np.array(
        [(function(theta + h * unit) - function(theta - h * unit)) / (2 * h) for unit in np.eye(theta.size)]
    )


def test_costs_are_log_odds(model):
    states = all_states(model.variables)
    costs, changed = costs_of(model, states), list(with_one_changed(model, states))
    assert costs.shape == (len(states), len(changed))
    for cost, others in zip(costs.T, changed, strict=True):
        np.testing.assert_allclose(cost, model.log_weights(states) - model.log_weights(others), atol=1e-12)


def test_slopes_are_pulled_back_by_the_transpose(model, rows):
    """Costs are linear in theta, so that unit vectors give the matrix: see what one column of ones leaves of it."""
    codes, weights = rows
    bound = bind(model, codes, weights, by_row=True)
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
        bound = bind(model, codes, weights, masked)
        _, gradient = bound.evaluate(model.theta, loss)
        slopes = differentiated(lambda theta, bound=bound: bound.evaluate(theta, loss)[0], model.theta)
        np.testing.assert_allclose(gradient, slopes, atol=1e-7)


def test_values_are_losses_of_the_costs_by_weight(model, rows, loss, rng):
    codes, weights = rows
    for masked in (None, some_masked(model, codes, rng)):
        by_row = bind(model, codes, weights, masked, by_row=True)
        costs = by_row.costs(model.theta)
        if masked is not None:
            assert np.isinf(costs[masked]).all()
        expected = loss.of(by_row.groups)(costs.copy(), weights / weights.sum())
        for bound in (by_row, bind(model, codes, weights, masked)):
            assert bound.evaluate(model.theta, loss)[0] == pytest.approx(expected, rel=1e-12)


def test_weights_count_rows(model, rows, loss, rng):
    codes, counts = rows[0], rng.integers(0, 4, 40)
    value, gradient = bind(model, codes, counts.astype(float)).evaluate(model.theta, loss)
    again, slopes = bind(model, np.repeat(codes, counts, axis=0)).evaluate(model.theta, loss)
    assert value == pytest.approx(again, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, atol=1e-12)


def test_scores_sum_to_the_gradient(model, rows, loss, rng):
    codes, weights = rows
    for masked in (None, some_masked(model, codes, rng)):
        bound = bind(model, codes, weights, masked, by_row=True)
        blocks = list(bound.scores(model.theta, loss))
        assert [block for block, _ in blocks] == [slice(0, 40)]
        expected = bound.evaluate(model.theta, loss)[1]
        np.testing.assert_allclose(weights / weights.sum() @ blocks[0][1], expected, atol=1e-12)


def test_curvature_is_the_derivative_of_the_gradient(model, rows, loss, rng):
    codes, weights = rows
    for masked in (None, some_masked(model, codes, rng)):
        bound = bind(model, codes, weights, masked, by_row=True)
        curvature = bound.curvature(model.theta, loss)
        slopes = differentiated(lambda theta, bound=bound: bound.evaluate(theta, loss)[1], model.theta)
        np.testing.assert_allclose(curvature, slopes, atol=1e-6)


@pytest.mark.parametrize("sizes", [(3, 2, 4, 3, 2), (2, 2, 1, 2, 2)])
def test_operators_on_tables_of_pairs_agree(sizes, loss, rng, monkeypatch):
    monkeypatch.setattr("gibbsian.models.conditionals.tables.COST_CELLS", 60)
    monkeypatch.setattr("gibbsian.resources.row_blocks.__defaults__", (2**18, 1))
    scopes = [(0,), (2,), (3,), *map(tuple, GRAPH.edges.tolist())]  # not every variable has a table of its own
    family = gb.TablesFamily(Scopes(scopes, 5), Variables.categories(sizes))
    codes, theta = (rng.random((300, 5)) * sizes).astype(np.int8), rng.normal(size=family.n_parameters)
    rows = WeightedRows.of(codes, rng.random(300), some_masked(gb.Model(family, theta), codes, rng))
    plain = Tables(family, rows)
    value, gradient = plain.evaluate(theta, loss)
    for kind in (OneHotPairs, OrientedPairs):
        bound = kind(family, rows)
        np.testing.assert_allclose(bound.costs(theta), plain.costs(theta), atol=1e-12)
        other, slopes = bound.evaluate(theta, loss)
        assert other == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(slopes, gradient, atol=1e-12)


def test_the_operator_follows_from_the_scopes(density):
    rows, chain = WeightedRows.of(np.zeros((500, 5), np.int8)), gb.graphs.grid(1, 5)
    few, many = (Variables.categories([size] * 5) for size in (3, 40))
    scored = Variables.ordinal([(0, 1, 2)] * 5)
    assert isinstance(KINDS["tables"](GRAPH, few).conditionals(rows), Tables)
    assert isinstance(KINDS["tables"](chain, few).conditionals(rows), OneHotPairs)
    assert isinstance(KINDS["ordinal"](GRAPH, scored).conditionals(rows).base, OneHotPairs)
    assert isinstance(KINDS["tables"](chain, many).conditionals(rows), OrientedPairs)
    spins = KINDS["potts"](GRAPH, Variables.spins(5)).conditionals(rows)
    assert isinstance(spins, Mapped)
    assert spins.groups is None


def test_rows_that_are_summed_have_no_costs():
    bound = gb.PairwiseFamily(gb.graphs.grid(9, 9)).conditionals(WeightedRows.of(np.zeros((5000, 81), np.int8)))
    assert not bound.keeps_rows
    with pytest.raises(NotImplementedError, match="by_row=True"):
        bound.costs(np.zeros(bound.n_parameters))
    with pytest.raises(NotImplementedError, match="by_row=True"):
        bound.scores(np.zeros(bound.n_parameters), Pseudolikelihood.loss)


def test_costs_of_real_variables_are_log_odds_of_densities(rng):
    line = Continuum("gaussian", 0.5, 1.3, 12)
    family = QuadratureFamily.build(["bias", "product"], Quadrature.of(line, 3), gb.graphs.grid(1, 3), tied=False)
    field, numbers = gb.Model(family, rng.normal(0, 0.3, family.n_parameters)), rng.normal(0.5, 1.0, (7, 3))
    bound = bind(field, numbers, by_row=True)
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
