"""The full-span model against its definition, and the forms it can take."""

import pickle

import numpy as np
import pytest
from scipy.special import logsumexp

from gibbsian.errors import ArgumentError, DataError, TooExpensiveError
from gibbsian.models import FullSpanModel, SpanBasis
from span_reference import all_functions

SYSTEMS = [(2,) * 3, (2,) * 6, (4, 2, 8), (3,), (3, 3, 3), (2, 3, 4), (5, 2, 2, 3), (1, 3, 2), (7, 4, 3)]


@pytest.mark.parametrize("cardinalities", SYSTEMS, ids=str)
def test_model_agrees_with_its_definition(cardinalities, rng):
    basis = SpanBasis(cardinalities)
    indices = rng.permutation(np.arange(1, basis.size))[:5]
    theta = rng.normal(size=indices.size)
    model = FullSpanModel(basis, indices, theta)
    states = np.array(list(np.ndindex(*cardinalities)))
    functions = all_functions(cardinalities)
    logs = theta @ functions[indices]
    assert np.array_equal(basis.values(np.arange(basis.size), states), functions.T)
    assert np.allclose(model.log_weights(states), logs, rtol=0, atol=1e-13)
    assert model.log_partition == pytest.approx(logsumexp(logs), abs=1e-12)
    assert np.allclose(model.probabilities(), np.exp(logs - logsumexp(logs)), rtol=0, atol=1e-14)
    assert np.allclose(model.dual(), functions @ model.probabilities(), rtol=0, atol=1e-13)
    assert model.orders.tolist() == [len(support) for support in model.supports]
    assert np.array_equal(basis.indices(basis.digits(indices)), indices)


def test_cliques_are_the_same_distribution(rng):
    model = FullSpanModel.build((2,) * 4, [1, 6, 7, 15], rng.normal(size=4))
    states = np.array(list(np.ndindex(2, 2, 2, 2)))
    spins = 2.0 * states - 1.0
    logs = sum(weight * spins[:, list(clique)].prod(axis=1) for clique, weight in model.to_cliques())
    assert np.allclose(logs, model.log_weights(states), rtol=0, atol=1e-13)
    with pytest.raises(ArgumentError, match="variable 1 has 3 values"):
        FullSpanModel.build((2, 3), [1], [0.5]).to_cliques()


def test_a_model_with_wrong_parts_is_refused():
    with pytest.raises(ArgumentError, match="1 to 3"):
        FullSpanModel.build((2, 2), [0], [1.0])
    with pytest.raises(ArgumentError, match="twice"):
        FullSpanModel.build((2, 2), [1, 1], [1.0, 2.0])
    with pytest.raises(ArgumentError, match="one each"):
        FullSpanModel.build((2, 2), [1], [1.0, 2.0])
    with pytest.raises(ArgumentError, match="NaN"):
        FullSpanModel.build((2, 2), [1], [np.nan])


def dense_model(rng, cardinalities=(2, 3, 4, 2)):
    basis = SpanBasis(cardinalities)
    used = np.arange(1, basis.size)
    return FullSpanModel(basis, used, rng.normal(size=used.size) * 0.5 ** basis.orders(used))


def test_log_weights_from_a_table_are_those_of_the_functions(rng, monkeypatch):
    model = dense_model(rng)
    states = model.basis.digits(rng.integers(0, model.basis.size, 30))
    by_table = model.log_weights(states)
    monkeypatch.setattr(FullSpanModel, "table_pays", lambda self, n_rows: False)
    np.testing.assert_allclose(by_table, model.log_weights(states), atol=1e-12)


def test_few_rows_and_functions_and_little_memory_need_no_table(rng, monkeypatch):
    sparse = FullSpanModel.build((2,) * 12, [3, 5], [0.5, 0.1])
    assert not sparse.table_pays(100)
    assert sparse.table_pays(2048)
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1e-5")
    assert not sparse.table_pays(2048)


def test_a_small_table_is_kept_and_not_pickled(rng, monkeypatch):
    model = dense_model(rng)
    assert model.log_weight_table() is model.log_weight_table()
    assert "_log_weights" not in vars(pickle.loads(pickle.dumps(model)))
    monkeypatch.setattr("gibbsian.models.full_span.MOST_KEPT_BYTES", 1)
    large = dense_model(rng)
    assert large.log_weight_table() is not large.log_weight_table()


def test_orders_and_supports_of_many_functions():
    basis = SpanBasis((2, 3, 2) + (2,) * 15)
    indices = np.arange(100_000)
    digits = basis.digits(indices)
    assert np.array_equal(basis.orders(indices), (digits > 0).sum(axis=1))
    supports = basis.supports(indices)
    assert len(supports) == indices.size
    assert all(supports[k] == tuple(np.flatnonzero(digits[k]).tolist()) for k in range(0, indices.size, 997))
    assert basis.supports([]) == []


def test_what_needs_no_table_is_named(monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1e-5")
    with pytest.raises(TooExpensiveError, match=r"conditional\(\), pseudo_score\(\) or model_\.log_weights\(\)"):
        FullSpanModel.build((2,) * 20, [3], [0.5]).probabilities()


@pytest.mark.parametrize("cardinalities", SYSTEMS, ids=str)
def test_every_distribution_without_zeros_is_a_model(cardinalities, rng):
    basis = SpanBasis(cardinalities)
    p = rng.dirichlet(np.ones(basis.size))
    np.testing.assert_allclose(FullSpanModel.of_log_weights(basis, np.log(p)).probabilities(), p, rtol=1e-10)


def test_hidden_variables_are_summed_out(rng):
    model = dense_model(rng, (2, 3, 2))
    hidden = FullSpanModel(model.basis, model.indices, model.theta, n_hidden=1)
    expected = model.probabilities().reshape(6, 2).sum(axis=1)
    np.testing.assert_allclose(hidden.without_hidden().probabilities(), expected, atol=1e-14)
    assert model.without_hidden() is model


def test_codes_that_are_none_are_named():
    basis = SpanBasis((2, 2))
    for codes, message in (
        ([[0, 2]], "column 1 of states holds codes outside 0 to 1"),
        ([[0, -1]], "column 1"),
        ([[0.5, 1.0]], "integer codes"),
        ([[0, 1, 1]], "2 columns"),
    ):
        with pytest.raises(DataError, match=message):
            basis.indices(np.array(codes))


def test_functions_of_fixed_variables_alone_are_numbers():
    nothing = np.empty(0)
    model = FullSpanModel.build((2, 2), [2], [0.2])
    np.testing.assert_array_equal(model.given([0], [1]).statistics(nothing), model.statistics(np.array([[1, 0]]))[0])
    assert FullSpanModel.build((2, 2), [], []).given([0], [1]).statistics(nothing).size == 0
