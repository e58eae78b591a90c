"""Missing cells of variables with any number of values: completions, evidence, likelihood, fill-in probabilities."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.data import Dataset
from gibbsian.domain import BINARY, SPIN, Categories, CategoryCoding, as_coding
from gibbsian.expectations.missing_cells import fill_probabilities
from gibbsian.inference import exact
from gibbsian.inference.completions import complete_in_all_ways, count_completions, value_indicators, value_offsets
from gibbsian.inference.posterior import log_evidence
from gibbsian.learners import as_learner, run
from gibbsian.models import HigherOrderModel, MarkovRandomField
from gibbsian.objectives import Likelihood

LISTED = "gibbsian.inference.posterior.MOST_LISTED"


def tables(rng):
    domain = Categories((3, 2, 4, 2))
    model = MarkovRandomField.on_cliques([(0, 1, 2), (2, 3), (0,), (3,)], 4, domain)
    return model.replace(rng.normal(size=model.theta.size))


def numbers(rng):
    domain = Categories.of_values((-1, 0, 2), 4)
    return HigherOrderModel.build({c: rng.normal() for c in [(0,), (0, 1), (1, 2, 3), (2,)]}, 4, domain)


def products(rng, domain=SPIN):
    return HigherOrderModel.build({c: rng.normal() for c in [(0,), (0, 1), (1, 2, 3), (2,)]}, 4, domain)


MODELS = {"tables": tables, "numbers": numbers, "spin": products, "binary": lambda rng: products(rng, BINARY)}


def coding_of(domain):
    if domain.two_valued:
        return as_coding(domain.name)
    return CategoryCoding(tuple(tuple(f"value {a}" for a in range(size)) for size in domain.sizes), domain)


def incomplete(model, n_rows, share, rng):
    """Distinct states of a model with holes and weights, cells under a hole at the lower value."""
    states = exact(model).sample(n_rows, rng)
    missing = rng.random(states.shape) < share
    lowest = model.domain.from_codes(np.zeros_like(states))
    rows = np.unique(np.concatenate([np.where(missing, lowest, states), missing], axis=1), axis=0)
    states, missing = rows[:, : model.n_variables].astype(np.int8), rows[:, model.n_variables :].astype(bool)
    names = tuple(f"x{i}" for i in range(model.n_variables))
    weights = rng.integers(1, 4, size=len(rows)).astype(float)
    return Dataset(states, weights, missing, coding_of(model.domain), names, np.arange(len(rows)))


def every_codes(sizes):
    return np.array(list(itertools.product(*map(range, sizes))), dtype=np.int8)


def every_state(model):
    return model.domain.from_codes(every_codes(model.domain.cardinalities(model.n_variables)))


def agreeing(model, data, m):
    """All states that agree with the present cells of a row, and their weights."""
    states = every_state(model)
    states = states[((states == data.states[m]) | data.missing[m]).all(axis=1)]
    return states, np.exp(model.log_weights(states))


@pytest.fixture(params=MODELS)
def system(request, rng):
    model = MODELS[request.param](rng)
    return model, incomplete(model, 25, 0.4, rng)


def test_completions_are_all_ways_to_fill(system):
    model, data = system
    completions = complete_in_all_ways(data.domain, data.states, data.missing)
    for m, count in enumerate(count_completions(data.domain, data.missing, data.n_states)):
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
        data = Dataset(
            data.states[keep], data.weights[keep], data.missing[keep], data.coding, data.names, np.arange(len(keep))
        )
    evidence, filled = log_evidence(model, data), fill_probabilities(model, data, rng)
    for m in range(data.n_states):
        states, weights = agreeing(model, data, m)
        assert evidence[m] == pytest.approx(np.log(weights.sum()), abs=1e-12)
        expected = weights @ value_indicators(model.domain, states) / weights.sum()
        np.testing.assert_allclose(filled[m], expected, atol=1e-12)


@pytest.mark.parametrize("most_listed", [256, 2])
def test_likelihood_and_its_gradient(system, most_listed, monkeypatch):
    model, data = system
    monkeypatch.setattr(LISTED, most_listed)
    function = Likelihood().bind(model, data)
    value, gradient = function(model.theta)
    log_partition = np.logaddexp.reduce(model.log_weights(every_state(model)))
    expected = [np.log(agreeing(model, data, m)[1].sum()) - log_partition for m in range(data.n_states)]
    assert -value == pytest.approx(np.average(expected, weights=data.weights), abs=1e-12)
    h = 1e-5
    for k, unit in enumerate(np.eye(model.theta.size)):
        slope = (function(model.theta + h * unit)[0] - function(model.theta - h * unit)[0]) / (2 * h)
        assert gradient[k] == pytest.approx(slope, abs=1e-8)


def complete_rows(model, rng):
    rows = incomplete(model, 25, 0.0, rng)
    return Dataset(rows.states, rows.weights, None, rows.coding, rows.names, rows.row_of)


def test_likelihood_of_complete_rows(system, rng):
    model, _ = system
    complete = complete_rows(model, rng)
    log_partition = np.logaddexp.reduce(model.log_weights(every_state(model)))
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
    for rows in (complete_rows(model, rng), data):
        function, h = Likelihood().bind(model, rows), 1e-5
        hessian = Likelihood().curvature(model, rows)
        expected = [
            (function(model.theta + h * unit)[1] - function(model.theta - h * unit)[1]) / (2 * h)
            for unit in np.eye(model.theta.size)
        ]
        np.testing.assert_allclose(hessian, expected, atol=1e-8)


@pytest.mark.parametrize("optimizer", ["lbfgs", "newton"])
def test_learning_ends_where_moments_match(system, optimizer, rng):
    """Also where the information matrix is singular, as that of tables is."""
    model, _ = system
    sizes = model.domain.cardinalities(model.n_variables)
    codes = np.concatenate([rng.integers(0, sizes, size=(300, len(sizes))), every_codes(sizes)])
    states, counts = np.unique(codes, axis=0, return_counts=True)
    names = tuple(f"x{i}" for i in range(len(sizes)))
    states = model.domain.from_codes(states)
    data = Dataset(states, counts.astype(float), None, coding_of(model.domain), names, np.arange(len(states)))
    result = run(as_learner("mle", optimizer=optimizer), model, data, rng, tol=1e-8)
    assert result.converged
    expected = model.mean_statistics(data.states, data.weights)
    np.testing.assert_allclose(exact(result.model).moments, expected, atol=1e-7)


def test_two_valued_columns_keep_their_layout():
    model = HigherOrderModel.build({(0, 1, 2): 0.7}, 3)
    data = gb.Dataset.read([[1, float("nan"), -1]], coding="spin")
    filled = fill_probabilities(model, data, np.random.default_rng(0))
    np.testing.assert_allclose(filled, [[1.0, 1 / (1 + np.exp(1.4)), 0.0]], atol=1e-14)


def test_columns_of_values():
    domain = Categories((3, 1, 2))
    assert value_offsets(domain, 3).tolist() == [0, 3, 4, 6]
    indicators = value_indicators(domain, np.array([[2, 0, 1], [0, 0, 0]]))
    assert indicators.tolist() == [[0, 0, 1, 1, 0, 1], [1, 0, 0, 1, 1, 0]]


def test_many_missing_cells_do_not_overflow():
    n = 2000
    model = MarkovRandomField.zeros(gb.graphs.grid(1, n), Categories((3,) * n))
    missing = np.ones((1, n), bool)
    missing[0, 0] = False
    coding = coding_of(model.domain)
    data = Dataset(np.zeros((1, n), np.int8), np.ones(1), missing, coding, tuple(map(str, range(n))), np.arange(1))
    assert log_evidence(model, data)[0] == pytest.approx((n - 1) * np.log(3), rel=1e-12)
    filled = fill_probabilities(model, data, np.random.default_rng(0))
    np.testing.assert_allclose(filled[0, 3:], 1 / 3, atol=1e-12)
    assert filled[0, :3].tolist() == [1, 0, 0]
