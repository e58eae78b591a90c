"""Missing cells of variables with any number of values: completions, evidence, likelihood, fill-in probabilities."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Model, ProductsFamily, TablesFamily, Variables
from gibbsian.data import Dataset
from gibbsian.expectations.missing_cells import fill_probabilities
from gibbsian.inference import exact
from gibbsian.inference.completions import count_completions, enumerate_completions, value_indicators
from gibbsian.inference.posterior import log_evidence
from gibbsian.learning import as_learner, run
from gibbsian.learning.objectives import Likelihood
from gibbsian.models.scopes import Scopes
from systems import BINARY, SPINS, all_states, dataset_of

LISTED = "gibbsian.inference.posterior.MAX_LISTED"


def tables(rng):
    scopes = Scopes.sorted([(0, 1, 2), (2, 3), (0,), (3,)], 4)
    family = TablesFamily(scopes, Variables.categories((3, 2, 4, 2)))
    return Model(family, rng.normal(size=family.n_parameters))


def products(rng, variables=SPINS):
    return ProductsFamily.model({c: rng.normal() for c in [(0,), (0, 1), (1, 2, 3), (2,)]}, 4, variables)


MODELS = {
    "tables": tables,
    "numbers": lambda rng: products(rng, Variables.ordinal([(-1, 0, 2)] * 4)),
    "spin": products,
    "binary": lambda rng: products(rng, BINARY),
}


def data_of(states, variables, weights, missing=None):
    """Rows of codes that are states of their own."""
    coding = dataset_of(states[:1], variables).coding
    return Dataset.of_states(states, coding, sample_weight=weights, missing=missing, distinct=False)


def incomplete(model, n_rows, share, rng):
    """Distinct states of a model with holes and weights, cells under a hole at code zero."""
    states = exact(model).sample(n_rows, rng)
    missing = rng.random(states.shape) < share
    rows = np.unique(np.concatenate([np.where(missing, 0, states), missing], axis=1), axis=0)
    states, missing = rows[:, : model.n_variables].astype(np.int8), rows[:, model.n_variables :].astype(bool)
    weights = rng.integers(1, 4, size=len(rows)).astype(float)
    return data_of(states, model.variables, weights, missing if share else None)


def agreeing(model, data, m):
    """All states that agree with the present cells of a row, and their weights."""
    states = all_states(model.variables)
    states = states[((states == data.states[m]) | data.missing[m]).all(axis=1)]
    return states, np.exp(model.log_weights(states))


@pytest.fixture(params=MODELS)
def system(request, rng):
    model = MODELS[request.param](rng)
    return model, incomplete(model, 25, 0.4, rng)


def test_completions_are_all_ways_to_fill(system):
    model, data = system
    completions = enumerate_completions(data.variables, data.states, data.missing)
    for m, count in enumerate(count_completions(data.variables, data.missing, data.n_states)):
        expected, _ = agreeing(model, data, m)
        assert len(expected) == count
        assert set(map(tuple, completions.states[completions.row == m])) == set(map(tuple, expected))
        assert np.count_nonzero(completions.row == m) == count


@pytest.mark.parametrize("most_listed", [256, 2, 0])
def test_evidence_and_fill_probabilities_sum_over_the_missing_cells(system, most_listed, monkeypatch, rng):
    model, data = system
    monkeypatch.setattr(LISTED, most_listed)
    if most_listed == 0:  # every row clamped; one with nothing missing has nothing to clamp
        keep = np.flatnonzero(data.missing.any(axis=1))
        data = data_of(data.states[keep], data.variables, data.weights[keep], data.missing[keep])
    evidence, filled = log_evidence(model, data), fill_probabilities(model, data, rng)
    for m in range(data.n_states):
        states, weights = agreeing(model, data, m)
        assert evidence[m] == pytest.approx(np.log(weights.sum()), abs=1e-12)
        expected = weights @ value_indicators(model.variables, states) / weights.sum()
        np.testing.assert_allclose(filled[m], expected, atol=1e-12)


@pytest.mark.parametrize("most_listed", [256, 2])
def test_likelihood_and_its_gradient(system, most_listed, monkeypatch):
    model, data = system
    monkeypatch.setattr(LISTED, most_listed)
    function = Likelihood().bind(model, data)
    value, gradient = function(model.theta)
    log_partition = np.logaddexp.reduce(model.log_weights(all_states(model.variables)))
    expected = [np.log(agreeing(model, data, m)[1].sum()) - log_partition for m in range(data.n_states)]
    assert -value == pytest.approx(np.average(expected, weights=data.weights), abs=1e-12)
    h = 1e-5
    for k, unit in enumerate(np.eye(model.theta.size)):
        slope = (function(model.theta + h * unit)[0] - function(model.theta - h * unit)[0]) / (2 * h)
        assert gradient[k] == pytest.approx(slope, abs=1e-8)


def test_likelihood_of_complete_rows(system, rng):
    model, _ = system
    complete = incomplete(model, 25, 0.0, rng)
    log_partition = np.logaddexp.reduce(model.log_weights(all_states(model.variables)))
    expected = np.average(model.log_weights(complete.states) - log_partition, weights=complete.weights)
    function = Likelihood().bind(model, complete)
    value, gradient = function(model.theta)
    assert -value == pytest.approx(expected, abs=1e-12)
    h = 1e-5
    for k, unit in enumerate(np.eye(model.theta.size)):
        slope = (function(model.theta + h * unit)[0] - function(model.theta - h * unit)[0]) / (2 * h)
        assert gradient[k] == pytest.approx(slope, abs=1e-8)


def test_curvature_is_the_derivative_of_the_gradient(system, rng):
    """By the covariance over all states and, with missing cells, by differences; tables make it singular."""
    model, data = system
    for rows in (incomplete(model, 25, 0.0, rng), data):
        function, h = Likelihood().bind(model, rows), 1e-5
        hessian = Likelihood().curvature(model, rows)
        expected = [
            (function(model.theta + h * unit)[1] - function(model.theta - h * unit)[1]) / (2 * h)
            for unit in np.eye(model.theta.size)
        ]
        np.testing.assert_allclose(hessian, expected, atol=1e-8)


def test_learning_ends_where_moments_match(system, rng):
    """Also where the information matrix is singular, as that of tables is."""
    model, _ = system
    sizes = model.variables.sizes
    codes = np.concatenate([rng.integers(0, sizes, size=(300, len(sizes))), all_states(model.variables)])
    data = dataset_of(codes, model.variables)
    result = run(as_learner("mle"), model, data, rng, tol=1e-8)
    assert result.converged
    expected = model.family.mean_statistics(data.states, data.weights)
    np.testing.assert_allclose(exact(result.model).moments, expected, atol=1e-7)


def test_two_valued_columns_keep_their_layout():
    model = ProductsFamily.model({(0, 1, 2): 0.7}, 3)
    data = gb.Dataset.read([[1, float("nan"), -1]], coding="spin")
    filled = fill_probabilities(model, data, np.random.default_rng(0))
    np.testing.assert_allclose(filled, [[1.0, 1 / (1 + np.exp(1.4)), 0.0]], atol=1e-14)


def test_columns_of_values():
    variables = Variables.categories((3, 1, 2))
    assert variables.offsets.tolist() == [0, 3, 4, 6]
    indicators = value_indicators(variables, np.array([[2, 0, 1], [0, 0, 0]]))
    assert indicators.tolist() == [[0, 0, 1, 1, 0, 1], [1, 0, 0, 1, 1, 0]]


def test_many_missing_cells_do_not_overflow():
    n = 2000
    model = Model.zeros(TablesFamily.potts(gb.graphs.grid(1, n), Variables.categories((3,) * n)))
    missing = np.ones((1, n), bool)
    missing[0, 0] = False
    data = data_of(np.zeros((1, n), np.int8), model.variables, np.ones(1), missing)
    assert log_evidence(model, data)[0] == pytest.approx((n - 1) * np.log(3), rel=1e-12)
    filled = fill_probabilities(model, data, np.random.default_rng(0))
    np.testing.assert_allclose(filled[0, 3:], 1 / 3, atol=1e-12)
    assert filled[0, :3].tolist() == [1, 0, 0]
