"""Families of tables: gauge, norms of the Potts model, errors, and families that are special cases."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.backends.threads import limited_threads
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.learning.objectives import OBJECTIVES, Pseudolikelihood, value_and_gradient
from gibbsian.models.families.tables import coupling_norms, is_potts
from gibbsian.models.scopes import Scopes
from systems import BINARY, SPINS, all_states, dataset_of, exact_law, name_of, random_model

MIXED = Variables.categories((2, 3, 4))
EACH = pytest.mark.parametrize("variables", [SPINS(3), BINARY(3), MIXED], ids=name_of)


def random_tables(rng, scopes, variables=MIXED):
    family = gb.TablesFamily(Scopes(scopes, 3), variables)
    return gb.Model(family, rng.normal(size=family.n_parameters))


def random_potts(rng, variables, graph):
    family = gb.TablesFamily.potts(graph, variables)
    return gb.Model(family, rng.normal(size=family.n_parameters))


def test_energy_is_the_sum_of_the_entries(rng):
    model = random_tables(rng, [(0,), (1, 2), (0, 1, 2)])
    for a, b, c in all_states(MIXED):
        one, two, three = model.parts.tables
        assert model.energy([[a, b, c]])[0] == pytest.approx(-(one[a] + two[b, c] + three[a, b, c]), abs=1e-12)


def test_tables_are_given_with_variables_in_any_order(rng):
    table = rng.normal(size=(4, 2))
    model = gb.TablesFamily.model({(2, 0): table}, MIXED)
    assert list(model.family.scopes) == [(0, 2)]
    assert np.array_equal(model.parts.tables[0], table.T)


@EACH
def test_the_gauge_is_the_same_law_with_tables_that_sum_to_zero(variables, rng):
    model = random_tables(rng, [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)], variables)
    gauged = model.canonical()
    np.testing.assert_allclose(exact_law(gauged)[1], exact_law(model)[1], atol=1e-14)
    for table in gauged.parts.tables:
        for axis in range(table.ndim):
            np.testing.assert_allclose(table.sum(axis=axis), 0.0, atol=1e-12)


def test_spin_tables_in_the_gauge_are_products(rng):
    """For -1/+1 the zero-sum table of a clique is a weight times the product of its variables."""
    weights = {(0,): 0.3, (0, 1): -0.6, (0, 1, 2): 0.9}
    machine = gb.Model(gb.ProductsFamily(Scopes(weights, 3)), np.array(list(weights.values())))
    tables = {scope: np.zeros((2,) * len(scope)) for scope in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]}
    tables |= {factor.nodes: factor.table for factor in machine.family.factors(machine.theta).factors}
    gauged = gb.TablesFamily.model(tables, SPINS(3)).canonical()
    for scope, table in zip(gauged.family.scopes, gauged.parts.tables, strict=True):
        assert table[(1,) * len(scope)] == pytest.approx(weights.get(scope, 0.0), abs=1e-12)


def test_spins_of_a_potts_model_in_the_gauge_are_the_pairwise_machine(rng):
    graph = gb.graphs.from_edges([(0, 1), (0, 2), (1, 2), (2, 4)], 5)
    pairwise = random_model(graph, rng)
    tables = {factor.nodes: factor.table for factor in pairwise.family.factors(pairwise.theta).factors}
    model = gb.TablesFamily.model(tables, SPINS(5)).canonical()
    assert is_potts(model.family)
    singles, pairs = model.parts.tables[:5], model.parts.tables[5:]
    np.testing.assert_allclose([table[1] for table in singles], pairwise.parts.biases, atol=1e-12)
    np.testing.assert_allclose([table[1, 1] for table in pairs], pairwise.parts.couplings, atol=1e-12)
    norms = coupling_norms(model)
    np.testing.assert_allclose(norms, 2 * np.abs(pairwise.parts.couplings), atol=1e-12)


def test_norms_do_not_depend_on_the_gauge_and_the_correction_is_as_published(rng):
    graph, variables = gb.graphs.complete(4), Variables.categories((3,) * 4)
    model = random_potts(rng, variables, graph)
    norms = coupling_norms(model)
    np.testing.assert_allclose(coupling_norms(model.canonical()), norms, atol=1e-12)
    matrix = np.zeros((4, 4))
    i, j = graph.edges.T
    matrix[i, j] = matrix[j, i] = norms
    means = matrix.sum(axis=0) / 3
    expected = matrix - np.outer(means, means) / norms.mean()
    np.testing.assert_allclose(coupling_norms(model, apc=True), expected[i, j], atol=1e-12)
    assert not coupling_norms(gb.Model.zeros(model.family), apc=True).any()


def test_same_bits_for_one_and_two_threads(rng):
    variables = Variables.categories((7,) * 12)
    model = random_potts(rng, variables, gb.graphs.complete(12))
    data = dataset_of(rng.integers(0, 7, size=(3000, 12)), variables)
    results = []
    for threads in (1, 2):
        with limited_threads(threads):
            results.append(value_and_gradient(OBJECTIVES.create("pseudolikelihood"), model, data))
    assert results[0][0] == results[1][0]
    assert np.array_equal(results[0][1], results[1][1])


def test_conditioning_keeps_the_kind_and_the_graph():
    graph = gb.graphs.from_edges([(0, 1), (0, 2), (1, 2), (2, 4)], 5)
    rest = gb.TablesFamily.potts(graph, Variables.categories((2, 3, 5, 1, 4))).given([2], [3]).family
    assert is_potts(rest)
    assert rest.graph.edges.tolist() == [[0, 1]]
    assert rest.variables.sizes == (2, 3, 1, 4)


def test_a_fit_from_zeros_stays_out_of_the_flat_directions(rng):
    """Gradients have no part along the directions that change nothing, so a fit's tables are balanced."""
    truth = random_tables(rng, [(0,), (1,), (2,), (0, 1), (1, 2)])
    states, probabilities, _ = exact_law(truth)
    data = dataset_of(states, MIXED, sample_weight=probabilities)
    start = truth.replace(np.zeros_like(truth.theta))
    result = gb.learning.run(gb.learning.Descend(Pseudolikelihood()), start, data, rng, tol=1e-10)
    np.testing.assert_allclose(exact_law(result.model)[1], probabilities, atol=1e-7)
    for table in result.model.parts.tables:
        assert table.sum() == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(result.model.canonical().theta, truth.canonical().theta, atol=1e-6)


def test_variables_without_a_table_are_uniform():
    model = gb.TablesFamily.model({(1,): [0.0, 1.0, 0.0]}, MIXED)
    states, probabilities, _ = exact_law(model)
    np.testing.assert_allclose([probabilities[states[:, 0] == a].sum() for a in (0, 1)], 0.5)
    chains, _ = gb.sampling.Gibbs().step(model, gb.sampling.Gibbs().init(model, 50, np.random.default_rng(0)), 3)
    assert set(chains.states[:, 0]) == {0, 1}


def test_bad_tables_are_named():
    with pytest.raises(ArgumentError, match=r"the table of \(0, 1\) has shape \(3, 2\), not \(2, 3\)"):
        gb.TablesFamily.model({(0, 1): np.zeros((3, 2))}, MIXED)
    with pytest.raises(ArgumentError, match="same variables twice"):
        gb.TablesFamily.model({(0, 1): np.zeros((2, 3)), (1, 0): np.zeros((3, 2))}, MIXED)
    with pytest.raises(ArgumentError, match="the family has 6 parameters"):
        gb.Model(gb.TablesFamily(Scopes([(0, 1)], 3), MIXED), np.zeros(5))
    with pytest.raises(ArgumentError, match="has 3 entries for 4 variables"):
        gb.TablesFamily(Scopes([(0,)], 4), MIXED)


def test_tables_beyond_the_memory_are_refused(monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.001")
    with pytest.raises(TooExpensiveError, match="use smaller cliques"):
        gb.Model.zeros(gb.TablesFamily(Scopes([tuple(range(20))], 20)))


def test_conditioning_on_everything_is_refused(rng):
    with pytest.raises(ArgumentError, match="leave at least one free"):
        random_tables(rng, [(0,)]).given([0, 1, 2], [0, 0, 0])


def test_tables_of_three_variables_have_no_two_ends():
    family = gb.TablesFamily(Scopes([(0,), (0, 1, 2)], 3))
    with pytest.raises(ArgumentError, match="no two ends"):
        family.layout.orientation  # noqa: B018
