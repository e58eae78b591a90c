"""The full-span family against its definition, and the forms it can take."""

import numpy as np
import pytest
from scipy.special import logsumexp

from gibbsian import FullSpanFamily, Model, Variables
from gibbsian.errors import ArgumentError, CodingError, TooExpensiveError
from gibbsian.models import SpanBasis
from gibbsian.models.families.full_span import as_products, from_log_weights, without_hidden
from span_fits import basis_of, dense_model, dual_of, span_model, table_of
from span_reference import all_functions
from systems import every_function

SYSTEMS = [(2,) * 3, (2,) * 6, (4, 2, 8), (3,), (3, 3, 3), (2, 3, 4), (5, 2, 2, 3), (1, 3, 2), (7, 4, 3)]


@pytest.mark.parametrize("sizes", SYSTEMS, ids=str)
def test_model_agrees_with_its_definition(sizes, rng):
    basis = basis_of(sizes)
    indices = rng.permutation(np.arange(1, basis.size))[:5]
    model = span_model(sizes, indices, rng.normal(size=indices.size))
    codes = np.array(list(np.ndindex(*sizes)), dtype=np.int8)
    functions = all_functions(sizes)
    logs = model.theta @ functions[indices]
    assert np.array_equal(basis.values(np.arange(basis.size), codes), functions.T)
    assert np.allclose(model.log_weights(codes), logs, rtol=0, atol=1e-13)
    table = table_of(model)
    assert table.log_partition == pytest.approx(logsumexp(logs), abs=1e-12)
    assert np.allclose(table.values, np.exp(logs - logsumexp(logs)), rtol=0, atol=1e-14)
    assert np.allclose(dual_of(model), functions @ table.values, rtol=0, atol=1e-13)
    orders = model.family.basis.orders(model.family.functions)
    assert sorted({*orders.tolist()}) == sorted({*model.family.scopes.sizes.tolist()})
    assert np.array_equal(basis.numbers(basis.digits(indices)), indices)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tables_that_a_learner_holds_are_overwritten(dtype, rng):
    model = dense_model(rng)
    held, close = np.full(model.family.basis.size, np.nan, dtype), 4 * float(np.finfo(dtype).eps)
    for ask in (model.family.probabilities, model.family.dual):
        found, fresh = ask(model.theta, out=held), ask(model.theta)
        assert found.values is held
        np.testing.assert_allclose(held, fresh.values, atol=close)
        assert found.log_partition == pytest.approx(fresh.log_partition, rel=close)


def test_products_of_spins_are_the_same_distribution(rng):
    model = span_model((2,) * 4, [1, 6, 7, 15], rng.normal(size=4))
    codes = np.array(list(np.ndindex(2, 2, 2, 2)), dtype=np.int8)
    products = as_products(model)
    spins = 2.0 * codes - 1.0
    logs = sum(
        weight * spins[:, list(scope)].prod(axis=1)
        for scope, weight in zip(products.family.scopes, products.theta, strict=True)
    )
    assert np.allclose(logs, model.log_weights(codes), rtol=0, atol=1e-13)
    assert np.allclose(products.log_weights(codes), logs, rtol=0, atol=1e-13)
    with pytest.raises(ArgumentError, match="variables must all have two values"):
        as_products(span_model((2, 3), [1], [0.5]))


@pytest.mark.parametrize("functions", [[0], [4], [1, 1], [[1, 2]], [-1]], ids=str)
def test_functions_that_are_none_are_refused(functions):
    with pytest.raises(ArgumentError, match="different numbers from 1 to 3"):
        FullSpanFamily(basis_of((2, 2)), functions)


def test_what_is_no_full_span_is_refused():
    with pytest.raises(ArgumentError, match="finitely many"):
        SpanBasis(Variables.reals(2))
    with pytest.raises(TooExpensiveError, match="2\\^62"):
        basis_of((2,) * 63)
    with pytest.raises(ArgumentError, match="columns"):
        FullSpanFamily.from_parts(span_model((2, 2), [3], [1.0]).family.to_parts(), Variables.categories((2, 3)))


def test_functions_come_and_go_and_theta_follows(rng):
    family, theta = FullSpanFamily.uniform(Variables.categories((2, 3, 2)), hidden=(2,)), rng.normal(size=3)
    codes, family = family.basis.digits(np.arange(family.basis.size)), family.append([5, 2, 17])
    logs, order, left = family.log_weights(theta, codes), np.argsort(family.functions), family.take([0, 2])
    assert np.array_equal(family.append([9]).log_weights(np.append(theta, 0.0), codes), logs)
    np.testing.assert_allclose(family.take(order).log_weights(theta[order], codes), logs, atol=1e-14)
    assert (left.functions.tolist(), left.n_hidden, left.basis is family.basis) == ([5, 17], 1, True)


def test_log_weights_from_a_table_are_those_of_the_functions(rng, monkeypatch):
    model = dense_model(rng)
    basis = model.family.basis
    codes = basis.digits(rng.integers(0, basis.size, 30))
    by_table = model.log_weights(codes)
    monkeypatch.setattr(SpanBasis, "table_pays", lambda self, n_rows, n_functions: False)
    np.testing.assert_allclose(by_table, model.log_weights(codes), atol=1e-12)


def test_few_rows_and_functions_and_little_memory_need_no_table(monkeypatch):
    sparse = span_model((2,) * 12, [3, 5], [0.5, 0.1])
    assert not sparse.family.basis.table_pays(100, sparse.family.n_parameters)
    assert sparse.family.basis.table_pays(2048, sparse.family.n_parameters)
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1e-5")
    assert not sparse.family.basis.table_pays(2048, sparse.family.n_parameters)
    with pytest.raises(TooExpensiveError, match=r"conditional\(\), pseudo_score\(\) or model_\.log_weights\(\)"):
        table_of(sparse)


def test_orders_and_supports_of_many_functions():
    basis = basis_of((2, 3, 2) + (2,) * 15)
    indices = np.arange(100_000)
    digits = basis.digits(indices)
    assert np.array_equal(basis.orders(indices), (digits > 0).sum(axis=1))
    supports = basis.supports(indices)
    assert len(supports) == indices.size
    assert all(supports[k] == tuple(np.flatnonzero(digits[k]).tolist()) for k in range(0, indices.size, 997))
    assert basis.supports(indices[:0]) == []


@pytest.mark.parametrize("sizes", SYSTEMS, ids=str)
def test_every_distribution_without_zeros_is_a_model(sizes, rng):
    p = rng.dirichlet(np.ones(basis_of(sizes).size))
    model = from_log_weights(np.log(p), Variables.categories(sizes))
    np.testing.assert_allclose(table_of(model).values, p, rtol=1e-10)


def test_hidden_variables_are_summed_out(rng):
    model = dense_model(rng, (2, 3, 2))
    hidden = FullSpanFamily(model.family.basis, model.family.functions, n_hidden=1)
    expected = table_of(model).values.reshape(6, 2).sum(axis=1)
    np.testing.assert_allclose(table_of(without_hidden(Model(hidden, model.theta))).values, expected, atol=1e-14)
    assert without_hidden(model) is model
    assert FullSpanFamily.uniform(Variables.binary(3), (3, 2)).given([0, 4], [1, 1]).family.n_hidden == 1


def test_codes_that_are_none_are_named():
    model = Model.zeros(every_function(Variables.categories((2, 2))))
    for codes, error, message in (
        ([[0, 2]], CodingError, "x holds 2 for variable 1: give its code, from 0 to 1"),
        ([[0, -1]], CodingError, "x holds -1 for variable 1"),
        ([[0.5, 1.0]], CodingError, "x holds 0.5, which is not a code"),
        ([[0, 1, 1]], ArgumentError, "give rows of 2 variables"),
    ):
        with pytest.raises(error, match=message):
            model.log_weights(codes)


def test_rows_that_give_the_same_variables_share_the_family_of_the_rest(rng):
    for model in (dense_model(rng), span_model((2, 3, 4), [1, 16, 20], [0.3, -0.2, 0.1])):
        codes = model.family.basis.digits(np.arange(model.family.basis.size))
        for nodes in ([], [0], [2, 0]):
            rest, parameters, constants = model.family.given_rows(model.theta, nodes, codes[:, nodes])
            free = np.delete(codes, nodes, axis=1)
            logs = (rest.statistics(free) * parameters).sum(axis=1) + constants
            np.testing.assert_allclose(logs, model.log_weights(codes), atol=1e-13)
            assert rest is model.family.given(nodes, codes[-1, nodes]).family


def test_functions_of_fixed_variables_alone_are_numbers():
    nothing, model = np.empty(0), span_model((2, 2), [2], [0.2])
    held = model.family.given([0], [1]).statistics(nothing)
    np.testing.assert_array_equal(held, model.family.statistics(np.array([[1, 0]]))[0])
    assert span_model((2, 2)).family.given([0], [1]).statistics(nothing).size == 0
