"""The full-span family against the full-span model at the same parameters."""

import numpy as np
import pytest

from gibbsian.domain import BINARY, SPIN, Categories
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.models import FullSpanModel
from gibbsian.models.families.full_span import FullSpanFamily
from gibbsian.models.families.span_basis import SpanBasis
from gibbsian.models.full_span import fill_dual, fill_probabilities
from gibbsian.models.span_basis import SpanBasis as OldBasis
from gibbsian.models.variables import Variables
from span_reference import all_functions

# sizes, number of functions (None: all), number of hidden variables
SYSTEMS = [
    ((2,) * 3, 5, 0),
    ((2,) * 7, 30, 0),
    ((2,) * 6, None, 0),
    ((4, 2, 8), 12, 0),
    ((3,), 2, 0),
    ((3, 3, 3), None, 0),
    ((2, 3, 4), 1, 0),
    ((5, 2, 2, 3), 25, 0),
    ((1, 3, 2), None, 0),
    ((2, 3, 2, 2), 15, 1),
    ((2,) * 6, 20, 2),
    ((2,) * 4, 0, 0),
]


@pytest.fixture(params=SYSTEMS, ids=str)
def pair(request, rng):
    """A model, the family, theta, and rows as numbers of the model's domain and as codes."""
    sizes, n_functions, n_hidden = request.param
    columns = len(sizes) - n_hidden
    variables = Variables.binary(columns) if set(sizes) == {2} else Variables.categories(sizes[:columns])
    family = FullSpanFamily.uniform(variables, sizes[columns:])
    if n_functions is None:
        family = FullSpanFamily.dense(variables)
    else:
        family = family.append(1 + rng.permutation(family.basis.size - 1)[:n_functions])
    theta = rng.normal(size=family.n_parameters)
    old = FullSpanModel.build(sizes, family.functions, theta, n_hidden=n_hidden)
    return old, family, theta, np.array(list(np.ndindex(*sizes)), dtype=np.int8)


def test_structure_is_the_same(pair):
    old, family, _, _ = pair
    names = [f"x{i}" for i in range(old.n_variables)]
    assert family.variables.sizes == old.cardinalities
    assert family.n_parameters == old.n_parameters
    assert family.n_hidden == old.n_hidden
    assert family.parameter_names(names) == old.parameter_names(names)
    assert np.array_equal(family.penalised, old.penalised)
    assert np.array_equal(family.orders, old.orders)
    assert family.supports == old.supports
    assert all(map(np.array_equal, family.statistic_range, old.statistic_range))
    assert family.scopes.graph == old.graph
    parts = family.to_parts()
    plain, arrays = old.to_parts()
    assert parts.plain == plain
    assert np.array_equal(parts.arrays["indices"], arrays["indices"])


def test_rows_have_the_same_log_weights_and_statistics(pair, rng):
    old, family, theta, codes = pair
    for rows in (codes, codes[:1], np.repeat(codes[::2], 3, axis=0)):
        weights = rng.random(len(rows))
        assert np.array_equal(family.log_weights(theta, rows), old.log_weights(rows))
        assert np.array_equal(family.mean_statistics(rows), old.mean_statistics(rows))
        assert np.array_equal(family.mean_statistics(rows, weights), old.mean_statistics(rows, weights))
        assert np.array_equal(family.statistics(rows), old.basis.values(old.indices, rows))


def test_tables_are_the_same(pair):
    old, family, theta, _ = pair
    law = family.probabilities(theta)
    assert np.array_equal(family.log_weight_table(theta), old.log_weight_table())
    assert np.array_equal(law.values, old.probability_table())
    assert law.log_partition == old.log_partition
    assert np.array_equal(family.dual(theta).values, old.dual())
    assert family.dual(theta).log_partition == old.log_partition
    assert np.array_equal(family.statistics_from_table(law.values), old.statistics_from_table(law.values))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tables_that_a_learner_holds_are_overwritten(pair, dtype):
    old, family, theta, _ = pair
    mine, its = np.full(family.basis.size, np.nan, dtype), np.empty(family.basis.size, dtype)
    for function, fill in ((family.probabilities, fill_probabilities), (family.dual, fill_dual)):
        found = function(theta, out=mine)
        assert found.values is mine
        assert found.log_partition == fill(its, old.basis, old.indices, theta)
        assert np.array_equal(mine, its)


def test_factors_and_their_statistics_are_the_same(pair):
    old, family, theta, _ = pair
    mine, its = family.factors(theta), old.factors()
    assert [factor.nodes for factor in mine.factors] == [factor.nodes for factor in its.factors]
    for one, other in zip(mine.factors, its.factors, strict=True):
        assert np.array_equal(one.table, other.table)
    table = old.probabilities().reshape(old.cardinalities)

    def marginal(nodes):
        return table.sum(axis=tuple(i for i in range(table.ndim) if i not in nodes))

    assert np.array_equal(family.statistics_from(marginal), old.statistics_from(marginal))


def test_interactions_are_the_same(pair):
    old, family, theta, _ = pair
    mine, its = family.interactions(theta), old.interactions()
    assert (mine.scopes, mine.sizes, mine.measure, mine.signed) == (its.scopes, its.sizes, its.measure, its.signed)
    assert np.array_equal(mine.strengths, its.strengths)


def test_given_variables_leave_the_same(pair):
    old, family, theta, codes = pair
    n = old.n_variables
    for nodes in ([], [0], [n - 1], [n - 2, 0], list(range(1, n))):
        if len(set(nodes)) < len(nodes) or not len(nodes) < n or min(nodes, default=0) < 0:
            continue
        row = codes[-1, nodes]
        mine, its = family.given(nodes, row), old.given(nodes, row)
        assert np.array_equal(mine.family.functions, its.family.indices)
        assert mine.family.variables.sizes == its.family.cardinalities
        assert all(map(np.array_equal, mine[1:4], its[1:4]))
        parameters, constant = mine.parameters(theta)
        assert np.array_equal(parameters, its.parameters(theta)[0])
        assert constant == its.parameters(theta)[1]
        # rows at once are the same map; the old one keeps the constant among the functions
        rest, rows, constants = family.given_rows(theta, nodes, codes[:, nodes])
        assert rest is mine.family
        basis, used, sums = old.restrict(nodes, codes[:, nodes])
        assert basis.cardinalities == rest.variables.sizes
        assert np.array_equal(used[used > 0], rest.functions)
        np.testing.assert_allclose(rows, sums[:, used > 0], atol=1e-13)
        np.testing.assert_allclose(constants, sums[:, used == 0].sum(axis=1), atol=1e-13)


def test_hidden_variables_that_stay_free_stay_hidden():
    family = FullSpanFamily.model({5: 0.2, 11: 0.1}, Variables.binary(3), hidden=(3, 2)).family
    assert family.given([0, 4], [1, 1]).family.n_hidden == 1


def test_hidden_variables_are_summed_out_alike(pair):
    old, family, theta, _ = pair
    mine, its = family.without_hidden(theta), old.without_hidden()
    assert np.array_equal(mine.family.functions, its.indices)
    assert np.array_equal(mine.theta, its.theta)
    assert mine.family.n_hidden == 0


def test_every_distribution_without_zeros_is_a_model(pair, rng):
    old, family, _, _ = pair
    logs = rng.normal(size=family.basis.size)
    mine = FullSpanFamily.of_log_weights(logs, family.variables)
    its = FullSpanModel.of_log_weights(old.basis, logs)
    assert np.array_equal(mine.family.functions, its.indices)
    assert np.array_equal(mine.theta, its.theta)


def test_the_same_spin_products(pair):
    old, family, theta, codes = pair
    if not family.variables.two_valued:
        with pytest.raises(ArgumentError, match="two values"):
            family.to_products(theta)
        return
    products = family.to_products(theta)
    assert dict(zip(products.family.scopes, products.theta.tolist(), strict=True)) == dict(old.to_cliques())
    np.testing.assert_allclose(products.log_weights(codes), family.log_weights(theta, codes), atol=1e-12)


@pytest.mark.parametrize(
    ("domain", "variables"),
    [
        (SPIN, Variables.spins(5)),
        (BINARY, Variables.binary(5)),
        (Categories((2, 3, 2, 4, 3)), Variables.categories((2, 3, 2, 4, 3))),
    ],
)
def test_the_same_family_of_a_graph(domain, variables, rng):
    from family_cases import GRAPH

    old, family = FullSpanModel.zeros(GRAPH, domain), FullSpanFamily.on_graph(GRAPH, variables)
    theta = rng.normal(size=family.n_parameters)
    old = old.replace(theta)
    assert np.array_equal(family.functions, old.indices)
    codes = rng.integers(0, 2, size=(10, 5)).astype(np.int8)
    assert np.array_equal(family.log_weights(theta, codes), old.log_weights(domain.from_codes(codes)))
    assert np.array_equal(family.interactions(theta).strengths, old.interactions().strengths)


@pytest.mark.parametrize("sizes", [system[0] for system in SYSTEMS], ids=str)
def test_the_same_basis(sizes, rng):
    basis, old = SpanBasis(Variables.categories(sizes)), OldBasis(sizes)
    functions, codes = np.arange(basis.size), np.array(list(np.ndindex(*sizes)))
    assert basis.size == old.size
    assert basis.is_walsh == old.is_walsh
    assert np.array_equal(basis.strides, old.strides)
    assert np.array_equal(basis.shape, old.shape)
    assert np.array_equal(basis.numbers(codes), functions)
    assert np.array_equal(basis.digits(functions), old.digits(functions))
    assert np.array_equal(basis.orders(functions), old.orders(functions))
    assert basis.supports(functions) == old.supports(functions)
    assert np.array_equal(basis.values(functions, codes), all_functions(sizes).T)


def test_log_weights_from_a_table_are_those_of_the_functions(rng, monkeypatch):
    family = FullSpanFamily.dense(Variables.categories((2, 3, 4, 2)))
    theta, codes = rng.normal(size=family.n_parameters), family.basis.digits(rng.integers(0, family.basis.size, 30))
    by_table = family.log_weights(theta, codes)
    monkeypatch.setattr(FullSpanFamily, "table_pays", lambda self, n_rows: False)
    np.testing.assert_allclose(by_table, family.log_weights(theta, codes), atol=1e-12)


def test_few_rows_and_functions_and_little_memory_need_no_table(monkeypatch):
    sparse = FullSpanFamily.uniform(Variables.binary(12)).append([3, 5])
    assert not sparse.table_pays(100)
    assert sparse.table_pays(2048)
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1e-5")
    assert not sparse.table_pays(2048)
    with pytest.raises(TooExpensiveError, match=r"conditional\(\), pseudo_score\(\) or model_\.log_weights\(\)"):
        sparse.probabilities(np.zeros(2))


@pytest.mark.parametrize("functions", [[0], [4], [1, 1], [[1, 2]], [-1]], ids=str)
def test_functions_that_are_none_are_refused(functions):
    with pytest.raises(ArgumentError, match="different numbers from 1 to 3"):
        FullSpanFamily(SpanBasis(Variables.binary(2)), functions)


def test_functions_come_and_go_and_theta_follows(rng):
    family = FullSpanFamily.uniform(Variables.categories((2, 3, 2)), hidden=(2,))
    theta, codes = np.empty(0), family.basis.digits(np.arange(family.basis.size))
    family, theta = family.append([5, 2, 17]), np.append(theta, rng.normal(size=3))
    assert family.n_hidden == 1
    larger = family.append([9])
    assert np.array_equal(larger.log_weights(np.append(theta, 0.0), codes), family.log_weights(theta, codes))
    order = np.argsort(family.functions)
    np.testing.assert_allclose(
        family.take(order).log_weights(theta[order], codes), family.log_weights(theta, codes), atol=1e-14
    )
    left = family.functions != 2
    assert family.take(left).functions.tolist() == [5, 17]
    assert family.take(left).basis is family.basis


def test_what_is_no_full_span_is_refused():
    with pytest.raises(ArgumentError, match="finitely many"):
        SpanBasis(Variables.reals(2))
    with pytest.raises(TooExpensiveError, match="2\\^62"):
        SpanBasis(Variables.binary(63))
    parts = FullSpanFamily.uniform(Variables.binary(2)).append([3]).to_parts()
    with pytest.raises(ArgumentError, match="columns"):
        FullSpanFamily.from_parts(parts, Variables.categories((2, 3)))
