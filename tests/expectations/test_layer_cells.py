"""Rows with missing cells under restricted machines: sums over either side, and chains where both are too many."""

import numpy as np
import pytest
from scipy.special import logsumexp

import gibbsian as gb
from gibbsian.errors import MissingValuesError, TooExpensiveError
from gibbsian.expectations.layers import N_STEPS, _sampled_means, expected_layers
from gibbsian.inference.posterior import log_evidence
from gibbsian.models.layers.units import BinaryUnits, CategoricalUnits, GaussianUnits, SpinUnits, codes_of
from layered_systems import all_values, restricted, rows_of


def test_chains_fill_as_sums_do():
    rng = np.random.default_rng(0)
    model = restricted(BinaryUnits(5), BinaryUnits(3), *(rng.normal(size=s) for s in (5, 3, (5, 3))))
    missing = np.array([[False, True, True, False, True]])
    rows = rows_of(model.visible, np.array([[1, 0, 0, 1, 0]]), missing)
    expected = expected_layers(model, rows, rng)
    values = np.tile(expected[0], (400, 1))
    visible, hidden = _sampled_means(model, values, np.tile(missing, (400, 1)), rng)
    error = 1.0 / np.sqrt(400 * N_STEPS / 20)  # chains of a small machine forget within some steps
    np.testing.assert_allclose(visible.mean(axis=0), expected[0][0], atol=4 * error)
    np.testing.assert_allclose(hidden.mean(axis=0), expected[1][0], atol=4 * error)


@pytest.mark.parametrize("n_hidden", [2, 9], ids=["sum over hidden", "sum over missing"])
def test_either_sum_over_a_row_is_the_same(n_hidden):
    rng = np.random.default_rng(0)
    layer = CategoricalUnits((3, 2, 2, 4))
    parts = [rng.normal(size=s) for s in (11, n_hidden, (11, n_hidden))]
    model = restricted(layer, SpinUnits(n_hidden), *parts)
    v = all_values(layer)
    codes, weights = codes_of(layer, v), model.log_evidence(v)
    missing = np.array([[False, True, True, True], [True, True, True, True]])
    rows = rows_of(layer, np.array([[2, 0, 0, 0], [0, 0, 0, 0]]), missing)
    agree = codes[:, 0] == 2
    np.testing.assert_allclose(log_evidence(model, rows), [logsumexp(weights[agree]), logsumexp(weights)])
    visible, hidden = expected_layers(model, rows, rng)
    shares = np.exp(weights - logsumexp(weights))
    np.testing.assert_allclose(visible[1], shares @ v)
    np.testing.assert_allclose(hidden[1], shares @ model.hidden_means(v))


def test_what_cannot_be_summed_is_refused_by_the_users_row():
    model = restricted(BinaryUnits(30), BinaryUnits(30))
    data = gb.Dataset.read([[1] * 30, [None] * 29 + [1]], coding="binary")
    with pytest.raises(TooExpensiveError, match="row 1 lacks 29 cells"):
        log_evidence(model, data)
    real = restricted(GaussianUnits(2), BinaryUnits(2))
    with pytest.raises(MissingValuesError, match="Gaussian"):
        log_evidence(real, rows_of(real.visible, np.zeros((1, 2)), np.array([[True, False]])))


def test_rows_beyond_reach_are_sampled_some_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    model = restricted(BinaryUnits(4), BinaryUnits(3), *(rng.normal(size=s) for s in (4, 3, (4, 3))))
    missing = rng.random((5, 4)) < 0.5
    missing[:, 0] = True
    rows = rows_of(model.visible, rng.integers(0, 2, (5, 4)), missing)
    exact = expected_layers(model, rows, rng)
    monkeypatch.setattr("gibbsian.expectations.layers.ROWS_AT_ONCE", 2)
    monkeypatch.setattr("gibbsian.inference.layer_posterior.MAX_STATES", 0.5)
    sampled = expected_layers(model, rows, rng)
    assert (sampled[0][missing] > 0).all()
    for found, expected in zip(sampled, exact, strict=True):
        np.testing.assert_allclose(found, expected, atol=4 / np.sqrt(N_STEPS / 20))
