"""Objectives against their formulas in the papers, and likelihood with missing cells against enumeration."""

import itertools

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.backends.threads import limited_threads
from gibbsian.data.hidden_columns import with_hidden
from gibbsian.errors import MissingValuesError, TooExpensiveError
from gibbsian.inference.layer_sums import LayerSumAnswers
from gibbsian.learning.objectives import Likelihood, Pseudolikelihood, value_and_gradient
from gibbsian.models.layers.units import as_units
from layered_systems import restricted
from systems import all_states, costs_of, dataset_of, exact_law, name_of, random_model, sampled_data


def test_pseudolikelihood_is_equation_8_of_h06(rng):
    model = random_model(gb.graphs.complete(5), rng)
    data = sampled_data(model, 30, rng)
    x = model.variables.scores_of(data.rows()[0])
    fields = x @ model.family.graph.matrix(model.parts.couplings) + model.parts.biases
    expected = (x * fields - np.log(np.cosh(fields)) - np.log(2)).sum(axis=1).mean()
    value, gradient = value_and_gradient(Pseudolikelihood(), model, data)
    assert -value == pytest.approx(expected, abs=1e-12)
    residual = x - np.tanh(fields)  # H06 eq. 9 and 13, symmetrised
    np.testing.assert_allclose(-gradient[:5], residual.mean(axis=0), atol=1e-12)
    pairs = residual.T @ x / len(x)
    np.testing.assert_allclose(-gradient[5:], (pairs + pairs.T)[np.triu_indices(5, 1)], atol=1e-12)


def test_likelihood_is_the_mean_log_probability(scores, rng):
    model = random_model(gb.graphs.grid(2, 3), rng, scores)
    data = sampled_data(model, 30, rng)
    _, _, log_partition = exact_law(model)
    expected = (model.log_weights(data.states[data.row_of]) - log_partition).mean()
    assert -value_and_gradient(Likelihood(), model, data)[0] == pytest.approx(expected, abs=1e-12)


moments = vars(LayerSumAnswers)["moments"].func


def with_holes(data, share, rng):
    x = data.rows()[0]
    missing = rng.random(x.shape) < share
    return gb.Dataset.of_states(x, data.coding, missing=missing), np.where(missing, np.nan, x)


def test_likelihood_with_missing_cells_sums_over_them(scores, rng):
    model = random_model(gb.graphs.complete(4), rng, scores)
    data, x = with_holes(sampled_data(model, 25, rng), 0.4, rng)
    states, probabilities, _ = exact_law(model)
    expected = np.mean([
        np.log(probabilities[((states == row) | np.isnan(row)).all(axis=1)].sum()) for row in x
    ])  # fmt: skip
    function = Likelihood().bind(model, data)
    value, gradient = function(model.theta)
    assert -value == pytest.approx(expected, abs=1e-12)
    h = 1e-5
    for k, unit in enumerate(np.eye(model.theta.size)):
        slope = (function(model.theta + h * unit)[0] - function(model.theta - h * unit)[0]) / (2 * h)
        assert gradient[k] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize(("n_visible", "n_hidden", "share"), [(3, 5, 0.0), (5, 3, 0.0), (3, 4, 0.3), (7, 8, 0.0)])
def test_two_layers_are_summed_over_one_of_them(n_visible, n_hidden, share, scores, rng, monkeypatch):
    """Rows listed with all states, rows that are not, and rows that lack cells, against the joint form.

    The last column is never high, where a model excludes that it is low: none of these states has a share in the model.
    """
    layers = [as_units(name_of(scores(n)), n) for n in (n_visible, n_hidden)]
    theta = rng.normal(size=restricted(*layers).theta.size)
    theta[n_visible - 1] += 90.0 * (n_visible == 7)
    model = restricted(*layers).replace(theta).joint()
    codes = rng.integers(2, size=(40, n_visible)) * (np.arange(n_visible) < 6)
    data, _ = with_holes(dataset_of(codes, scores(n_visible)), share, rng)
    rows, calls = with_hidden(data, n_hidden), []
    counted = property(lambda answers: calls.append(answers) or moments(answers))
    monkeypatch.setattr(LayerSumAnswers, "moments", counted)
    value, gradient = value_and_gradient(Likelihood(), model, rows)
    assert len(calls) == (n_visible > n_hidden or share > 0)  # else both phases are one sum
    monkeypatch.setattr("gibbsian.learning.objectives.likelihood.in_layers", lambda joint: None)
    expected = value_and_gradient(Likelihood(), model, rows)
    assert value == pytest.approx(expected[0], abs=1e-12)
    np.testing.assert_allclose(gradient, expected[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("graph", "bias"), [("complete", True), ("complete", False), ("chain", True)])
def test_rows_with_many_missing_cells_are_summed_exactly_too(graph, bias, scores, rng, monkeypatch):
    """The road for rows with too many completions to list, against the one that lists them."""
    model = random_model(gb.graphs.as_graph(graph, range(6)), rng, scores, bias=bias)
    data, _ = with_holes(sampled_data(model, 30, rng), 0.5, rng)
    listed = value_and_gradient(Likelihood(), model, data)
    monkeypatch.setattr("gibbsian.inference.posterior.MAX_LISTED", 1)
    summed = value_and_gradient(Likelihood(), model, data)
    assert summed[0] == pytest.approx(listed[0], abs=1e-12)
    np.testing.assert_allclose(summed[1], listed[1], atol=1e-12)


def test_likelihood_refuses_what_it_cannot_sum(rng):
    big = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(60)))
    rows = np.where(rng.random((5, 60)) < 0.5, 1, -1)
    with pytest.raises(TooExpensiveError, match="60 variables"):
        Likelihood().bind(big, gb.Dataset.read(rows))


def test_pseudolikelihood_refuses_missing_cells_and_names_them():
    data = gb.Dataset.read([[1, -1], [np.nan, 1]], names=["first", "second"], coding="spin")
    with pytest.raises(MissingValuesError, match=r"pseudolikelihood.*'first'.*sums them out or completes them"):
        Pseudolikelihood().bind(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2))), data)


def test_pseudolikelihood_of_many_variables_keeps_its_value(rng):
    """More than a thousand factors to a row: the product inside the kernel is taken in pieces."""
    n = 2500
    graph = gb.graphs.grid(1, n)
    model = random_model(graph, rng, scale=0.3)
    x = rng.integers(0, 2, (3, n))
    costs = costs_of(model, x)
    value, _ = value_and_gradient(Pseudolikelihood(), model, dataset_of(x, model.variables))
    assert value == pytest.approx(np.logaddexp(0, -costs).sum(axis=1).mean(), rel=1e-13)


def test_same_bits_for_one_and_two_threads(rng):
    model = random_model(gb.graphs.complete(40), rng, scale=0.1)
    data = gb.Dataset.read(np.where(rng.random((3000, 40)) < 0.5, 1, -1))
    results = []
    for threads in (1, 2):
        with limited_threads(threads):
            results.append(value_and_gradient(Pseudolikelihood(), model, data))
    assert results[0][0] == results[1][0]
    assert np.array_equal(results[0][1], results[1][1])


@pytest.mark.parametrize("n_missing", range(1, 4))
def test_completions_are_all_ways_to_fill(n_missing, scores):
    from gibbsian.inference.completions import enumerate_completions

    row, missing = np.ones((1, 3), np.int8), np.arange(3)[None] < n_missing
    completions = enumerate_completions(scores(3), row, missing)
    filled = set(map(tuple, completions.states.tolist()))
    ways = itertools.product([0, 1], repeat=n_missing)
    assert filled == {(*way, *[1] * (3 - n_missing)) for way in ways}
    assert len(all_states(scores(n_missing))) == len(completions.states)
