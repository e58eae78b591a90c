"""Exact inference through factors against plain summation over all states."""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import gibbsian as gb
from gibbsian import Model, ProductsFamily, TablesFamily, Variables
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference import (
    ExactAnswers,
    FactorElimination,
    TableEnumeration,
    conditional,
    exact,
    plan_exact,
    predict_cost,
)
from gibbsian.inference.log_tables import add_up, marginals
from gibbsian.inference.table_enumeration import has_transform
from systems import BINARY, SPINS, all_states, ask, name_of, products_of_order, products_on

ENGINES = [TableEnumeration, FactorElimination]


def law(model):
    """Log Z, and the probabilities of all states as a table with an axis for each variable."""
    log_weights = model.log_weights(all_states(model.variables))
    log_partition = float(np.logaddexp.reduce(log_weights))
    return log_partition, np.exp(log_weights - log_partition).reshape(model.variables.sizes)


def joint(table, nodes):
    """The joint probabilities of some variables, axes in the order given."""
    kept = table.sum(axis=tuple(i for i in range(table.ndim) if i not in nodes))
    return kept.transpose([sorted(nodes).index(node) for node in nodes])


def tables_on(sizes, scopes, rng, scale=1.0):
    shapes = {scope: tuple(sizes[i] for i in scope) for scope in scopes}
    tables = {scope: scale * rng.normal(size=shape) for scope, shape in shapes.items()}
    return TablesFamily.model(tables, Variables.categories(sizes))


SYSTEMS = {
    "one variable": ((4,), [(0,)]),
    "no factors": ((2, 3), []),
    "chain": ((3, 2, 4, 3, 2), [(0, 1), (1, 2), (2, 3), (3, 4), (2,)]),
    "third order": ((2, 3, 2, 4, 2, 3), [(0, 1, 3), (1, 2, 4), (3, 5), (0,), (2, 4, 5)]),
    "fourth order": ((2, 3, 2, 2, 3), [(0, 1, 2, 4), (3,), (2, 3), (0, 1)]),
    "complete": ((3,) * 5, [*itertools.combinations(range(5), 2), *itertools.combinations(range(5), 3)]),
    "two parts": ((2, 3, 3, 2, 5), [(0, 2), (1, 4), (4,)]),
    "with single values": ((1, 3, 1, 2, 3, 1), [(0, 1, 3), (2,), (3, 4), (0, 5), (2, 4)]),
    "only single values": ((1, 1), [(0, 1), (1,)]),
    "a loop": ((2, 3, 4, 2, 3, 4), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)]),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scale", [0.7, 50.0])
@pytest.mark.parametrize("name", SYSTEMS)
def test_everything_against_summation(name, scale, engine, rng):
    model = tables_on(*SYSTEMS[name], rng, scale)
    asked, (log_partition, table) = ask(engine, model), law(model)
    assert isinstance(asked, ExactAnswers)
    assert asked.log_partition == pytest.approx(log_partition, rel=1e-13)
    tolerance = 1e-13 * max(scale, 1.0)
    expected = model.family.mean_statistics(all_states(model.variables), table.ravel())
    np.testing.assert_allclose(asked.moments, expected, atol=tolerance)
    n = model.n_variables
    for nodes in [(), *itertools.permutations(range(n), 1), *itertools.permutations(range(n), 2), tuple(range(n))]:
        np.testing.assert_allclose(asked.marginal(nodes), joint(table, nodes), atol=tolerance)
    state, log_probability = asked.mode
    assert state.dtype == np.int8
    assert table[tuple(state)] == pytest.approx(table.max(), rel=1e-10)
    assert log_probability == pytest.approx(np.log(table.max()), abs=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("variables", [SPINS(5), BINARY(5), Variables.ordinal([(-1, 0, 2)] * 5)], ids=name_of)
def test_means_and_second_moments(variables, engine, rng):
    model = ProductsFamily.model(
        {clique: rng.normal() for clique in [(0,), (1,), (0, 1), (1, 2, 4), (3,), (0, 3)]}, 5, variables
    )
    _, table = law(model)
    x = variables.scores_of(all_states(variables))
    asked = ask(engine, model)
    np.testing.assert_allclose(asked.means, table.ravel() @ x, atol=1e-13)
    np.testing.assert_allclose(asked.second_moments, (x.T * table.ravel()) @ x, atol=1e-13)


@pytest.mark.parametrize("engine", ENGINES)
def test_single_values_have_means_and_second_moments_too(engine, rng):
    variables = Variables.ordinal([(-1, 2), (5,), (0, 1, 3)])
    model = ProductsFamily.model({(0, 1): 0.3, (1, 2): 0.1, (0,): 0.2, (1,): 1.0}, 3, variables)
    log_partition, table = law(model)
    x = variables.scores_of(all_states(variables))
    asked = ask(engine, model)
    assert asked.log_partition == pytest.approx(log_partition, abs=1e-12)
    np.testing.assert_allclose(asked.second_moments, (x.T * table.ravel()) @ x, atol=1e-12)


def test_categories_without_numbers_have_no_means(rng):
    asked = exact(tables_on((3, 2), [(0, 1)], rng))
    for question in ("means", "second_moments"):
        with pytest.raises(ArgumentError, match=r"not numbers: ask for marginal\(nodes\)"):
            getattr(asked, question)


# -- random factor graphs ---------------------------------------------------------------------------------------------
@st.composite
def factor_graphs(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    scope = st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=4).map(lambda s: tuple(sorted(s)))
    scopes = draw(st.lists(scope, max_size=8, unique=True))
    seed, scale = draw(st.integers(0, 2**32)), draw(st.sampled_from([0.1, 1.0, 10.0, 50.0]))
    return tables_on(sizes, scopes, np.random.default_rng(seed), scale)


@settings(max_examples=60, deadline=None)
@given(model=factor_graphs(), data=st.data())
def test_both_engines_agree_on_random_factor_graphs(model, data):
    log_partition, table = law(model)
    nodes = tuple(data.draw(st.permutations(range(model.n_variables))))[: data.draw(st.integers(0, 3))]
    for engine in ENGINES:
        asked = ask(engine, model)
        assert asked.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-12)
        expected = model.family.mean_statistics(all_states(model.variables), table.ravel())
        np.testing.assert_allclose(asked.moments, expected, atol=1e-11)
        np.testing.assert_allclose(asked.marginal(nodes), joint(table, nodes), atol=1e-11)
        assert table[tuple(asked.mode[0])] == pytest.approx(table.max(), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_sums_and_marginals_of_tables(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=5)))
    scope = st.sets(st.integers(0, len(shape) - 1)).map(lambda s: tuple(sorted(s)))
    scopes = data.draw(st.lists(scope, max_size=6))
    rng = np.random.default_rng(0)
    terms = [(axes, rng.normal(size=[shape[axis] for axis in axes])) for axes in scopes]
    given_tables = [table.copy() for _, table in terms]
    expected = np.zeros(shape)
    for axes, table in terms:
        expected += table.reshape([shape[axis] if axis in axes else 1 for axis in range(len(shape))])
    np.testing.assert_allclose(add_up(shape, terms), expected, atol=1e-13)
    for (_, table), before in zip(terms, given_tables, strict=True):
        np.testing.assert_array_equal(table, before)
    for axes, marginal in marginals(expected, scopes).items():
        others = tuple(axis for axis in range(len(shape)) if axis not in axes)
        np.testing.assert_allclose(marginal, expected.sum(axis=others), atol=1e-12)


# -- strong interactions ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ENGINES)
def test_strong_tables_keep_their_digits(engine, rng):
    """Parameters of size 50 against forty digits; single probabilities down to 1e-60 keep their relative accuracy."""
    model = tables_on((3, 2, 3, 2), [(0, 1, 2), (2, 3), (0,), (1, 3)], rng, scale=50.0)
    with localcontext(prec=40):
        weights = [Decimal(float(w)).exp() for w in model.log_weights(all_states(model.variables))]
        total = sum(weights)
        log_partition = float(total.ln())
        expected = np.array([float(w / total) for w in weights]).reshape(3, 2, 3, 2)
    asked = ask(engine, model)
    assert asked.log_partition == pytest.approx(log_partition, rel=1e-14)
    far = joint(expected, (0, 3))
    assert far.min() < 1e-20
    np.testing.assert_allclose(asked.marginal([0, 3]), far, rtol=1e-10, atol=1e-290)


def test_conflicting_strong_couplings():
    """A message whose smallest entries decide: they lie below the range of float64 relative to its largest."""
    n = 22
    pull = np.where(np.eye(3, dtype=bool), 100.0, 0.0)
    tables = {(0, i): pull for i in range(1, n)}
    tables |= {(i,): [0.0, 3000.0, 0.0] for i in range(1, n - 1)}  # twenty leaves stay at value 1 and pull node 0 there
    tables[(n - 1,)] = [0.0, 0.0, 9000.0]  # the last one stays at 2 and pulls as hard as all of them, less a half
    tables[(0, n - 1)] = pull * 20 - np.where(np.eye(3, dtype=bool), 0.5, 0.0)
    asked = ask(FactorElimination, TablesFamily.model(tables, Variables.categories((3,) * n)))
    assert asked.marginal([0]) == pytest.approx([0.0, 1 / (1 + np.exp(-0.5)), 1 / (1 + np.exp(0.5))], rel=1e-9)


# -- large systems ----------------------------------------------------------------------------------------------------
def potts(graph, n_values, rng, scale=1.0):
    tables = {(i,): scale * rng.normal(size=n_values) for i in range(graph.n_nodes)}
    tables |= {(i, j): scale * rng.normal(size=(n_values, n_values)) for i, j in graph.edges.tolist()}
    return TablesFamily.model(tables, Variables.categories((n_values,) * graph.n_nodes))


def test_long_chain_agrees_with_transfer_matrices(rng):
    n = 3000
    model = potts(gb.graphs.grid(1, n), 3, rng)
    tables = dict(zip(model.family.scopes, model.parts.tables, strict=True))
    forward, log_scale = np.exp(tables[(0,)]), 0.0
    for i in range(1, n):
        forward = forward @ np.exp(tables[(i - 1, i)] + tables[(i,)])
        log_scale += np.log(forward.sum())
        forward /= forward.sum()
    asked = exact(model)
    assert isinstance(asked.engine, FactorElimination)
    assert asked.log_partition == pytest.approx(log_scale, rel=1e-13)
    np.testing.assert_allclose(asked.marginal([n - 1]), forward, atol=1e-13)
    statistics = asked.moments
    assert statistics.min() >= 0.0
    np.testing.assert_allclose(statistics[: 3 * n].reshape(n, 3).sum(axis=1), 1.0, atol=1e-12)


def test_grid_moments_are_the_gradient_of_log_z(rng):
    model = potts(gb.graphs.grid(7, 7), 3, rng)
    direction, step = rng.normal(size=model.theta.size), 1e-5
    ahead = ask(FactorElimination, model.replace(model.theta + step * direction)).log_partition
    behind = ask(FactorElimination, model.replace(model.theta - step * direction)).log_partition
    slope = direction @ ask(FactorElimination, model).moments
    assert (ahead - behind) / (2 * step) == pytest.approx(slope, rel=1e-6)


# -- states -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["chain", "third order", "with single values", "two parts"])
def test_samples_have_the_exact_law(name, engine, rng):
    model = tables_on(*SYSTEMS[name], rng, scale=0.5)
    _, table = law(model)
    samples = ask(engine, model).sample(40_000, np.random.default_rng(3))
    assert samples.shape == (40_000, model.n_variables)
    assert samples.dtype == np.int8
    numbers = np.ravel_multi_index(tuple(samples.T.astype(int)), table.shape)
    assert table.min() * len(samples) > 1
    assert chisquare(np.bincount(numbers, minlength=table.size), table.ravel() * len(samples)).pvalue > 1e-3


@pytest.mark.parametrize("engine", ENGINES)
def test_samples_are_codes(scores, engine):
    model = ProductsFamily.model({(0, 1, 2): 0.5}, 3, scores)
    samples = ask(engine, model).sample(200, np.random.default_rng(0))
    assert set(np.unique(samples)) == {0, 1}
    assert ask(engine, model).sample(0, np.random.default_rng(0)).shape == (0, 3)


@pytest.mark.parametrize("engine", ENGINES)
def test_ties_give_one_of_the_most_probable_states(engine):
    same = np.where(np.eye(3, dtype=bool), 1.0, 0.0)
    model = TablesFamily.model({(0, 1): same, (1, 2): same}, Variables.categories((3, 3, 3, 2)))
    state, log_probability = ask(engine, model).mode
    assert state[0] == state[1] == state[2]
    assert log_probability == pytest.approx(2 - ask(engine, model).log_partition, abs=1e-12)


# -- products of two-valued variables ---------------------------------------------------------------------------------
@pytest.mark.parametrize("scale", [0.5, 50.0])
def test_transforms_agree_with_summation(scale, scores, rng):
    family = products_of_order(7, 7, scores)
    model = Model(family, scale * rng.normal(size=family.n_parameters))
    log_partition, table = law(model)
    asked = exact(model)
    assert has_transform(asked.engine.family)
    assert asked.log_partition == pytest.approx(log_partition, rel=1e-13)
    tolerance = 1e-13 * max(scale, 1.0) ** 1.5
    expected = model.family.mean_statistics(all_states(model.variables), table.ravel())
    np.testing.assert_allclose(asked.moments, expected, atol=tolerance)
    np.testing.assert_allclose(asked.marginal([5, 0, 3]), joint(table, (5, 0, 3)), atol=tolerance)
    assert table[tuple(asked.mode[0])] == pytest.approx(table.max(), rel=1e-10)


def test_transforms_of_sparse_cliques(scores, rng):
    model = ProductsFamily.model({clique: rng.normal() for clique in [(0, 2, 4), (1,), (3, 4)]}, 6, scores)
    sums, transforms = ask(FactorElimination, model), ask(TableEnumeration, model)
    assert has_transform(transforms.engine.family)
    np.testing.assert_allclose(transforms.moments, sums.moments, atol=1e-13)
    np.testing.assert_allclose(transforms.second_moments, sums.second_moments, atol=1e-13)
    empty = ProductsFamily.model({}, 3, scores)
    assert ask(TableEnumeration, empty).log_partition == pytest.approx(3 * np.log(2))
    assert ask(TableEnumeration, empty).moments.shape == (0,)


# -- the choice, and conditioning -------------------------------------------------------------------------------------
def test_the_cheaper_engine_is_chosen_and_priced(rng):
    complete = tables_on((3,) * 7, list(itertools.combinations(range(7), 3)), rng)
    grid = potts(gb.graphs.grid(6, 6), 3, rng)
    assert isinstance(exact(complete).engine, TableEnumeration)
    assert isinstance(exact(grid).engine, FactorElimination)
    for model in (complete, grid):
        assert exact(model).engine.cost == predict_cost(model.family)
    assert predict_cost(gb.PairwiseFamily(gb.graphs.complete(20))).engine == "enumeration"


def test_refusal_says_what_both_would_cost(rng, monkeypatch):
    big = potts(gb.graphs.complete(40), 3, rng)
    message = (
        r"exact inference on 40 variables would take at least .* GiB by elimination \(treewidth 35 or more\),"
        r" or about .* GiB by enumeration, but max_seconds=60 .*: use sampling"
    )
    with pytest.raises(TooExpensiveError, match=message):
        exact(big)
    grid = potts(gb.graphs.grid(11, 11), 3, rng)
    with pytest.raises(TooExpensiveError, match=r"treewidth 11.*max_seconds=0\.001"):
        exact(grid, max_seconds=0.001)
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.001")
    monkeypatch.setattr(TablesFamily, "factors", lambda self, theta: pytest.fail("nothing may be built"))
    with pytest.raises(TooExpensiveError, match="MiB may be used"):
        exact(grid)


def test_what_has_no_factors_is_refused():
    with pytest.raises(ArgumentError, match="needs a model with factors or layers, not Graph"):
        plan_exact(gb.graphs.complete(3))


def test_questions_of_many_passes_are_refused_by_their_price(rng):
    chain = ask(FactorElimination, potts(gb.graphs.grid(1, 300), 3, rng), max_seconds=0.1)
    with pytest.raises(TooExpensiveError, match="the joint marginal of 9 variables would take about"):
        chain.marginal(range(0, 45, 5))
    family = products_on(gb.graphs.grid(1, 300), Variables.ordinal([(0, 1, 2)] * 300))
    numbers = ask(FactorElimination, Model.zeros(family), max_seconds=0.1)
    with pytest.raises(TooExpensiveError, match="all second moments of 300 variables would take about"):
        numbers.second_moments  # noqa: B018


def test_conditional_is_the_ratio_of_marginals(rng):
    model = tables_on(*SYSTEMS["third order"], rng)
    log_partition, table = law(model)
    rest, constant = conditional(model, [3, 0], [2, 1])
    given_both = table[1, :, :, 2]
    np.testing.assert_allclose(rest.marginal(range(4)), given_both / given_both.sum(), atol=1e-13)
    evidence = rest.log_partition + constant - log_partition
    assert evidence == pytest.approx(np.log(given_both.sum()), abs=1e-12)


def test_conditional_speaks_of_codes(rng):
    model = tables_on((3, 2), [(0, 1)], rng)
    with pytest.raises(ArgumentError, match="codes gives 2 to variable 1: its codes are 0 to 1"):
        conditional(model, [1], [2])
    with pytest.raises(ArgumentError, match=r"codes gives 0\.5 to variable 0"):
        conditional(model, [0], [0.5])
    with pytest.raises(ArgumentError, match=r"names 2: use numbers from 0 to 1"):
        exact(model).marginal([2])
