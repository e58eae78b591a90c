"""The Potts model: layout, gauge, norms, and its road by variable against the plain one."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.backends.parallel import limited_threads
from gibbsian.domain import BINARY, SPIN, Categories
from gibbsian.errors import ArgumentError
from gibbsian.models import MarkovRandomField, PottsModel
from gibbsian.models.scopes import Scopes
from gibbsian.objectives import OBJECTIVES, value_and_gradient
from systems import all_states, costs_of, dataset_of, exact_law, random_model, random_model_of

MIXED = Categories((2, 3, 5, 1, 4))
GRAPH = gb.graphs.from_edges([(0, 1), (0, 2), (1, 2), (2, 4)], 5)  # variable 3 is alone


def random_potts(rng, domain=MIXED, graph=GRAPH):
    return random_model_of("potts", graph, rng, domain, scale=1.0)


def as_field(model):
    return MarkovRandomField(model.n_variables, Scopes.of_graph(model.graph), model.theta, model.domain)


@pytest.mark.parametrize("domain", [SPIN, BINARY, MIXED], ids=lambda domain: domain.name)
def test_is_the_field_with_tables_of_one_and_two(domain, rng):
    model = random_potts(rng, domain)
    field, states = as_field(model), all_states(5, domain)
    np.testing.assert_allclose(model.energy(states), field.energy(states), atol=1e-12)
    np.testing.assert_allclose(costs_of(model, states), costs_of(field, states), atol=1e-12)


def test_same_bits_for_one_and_two_threads(rng):
    domain = Categories((7,) * 12)
    model = random_potts(rng, domain, gb.graphs.complete(12))
    data = dataset_of(rng.integers(0, 7, size=(3000, 12)).astype(np.int8), domain)
    results = []
    for threads in (1, 2):
        with limited_threads(threads):
            results.append(value_and_gradient(OBJECTIVES.create("pseudolikelihood"), model, data))
    assert results[0][0] == results[1][0]
    assert np.array_equal(results[0][1], results[1][1])


@pytest.mark.parametrize("domain", [SPIN, BINARY, MIXED], ids=lambda domain: domain.name)
def test_zero_sum_is_the_same_law_with_tables_that_sum_to_zero(domain, rng):
    model = random_potts(rng, domain)
    gauged = model.zero_sum()
    np.testing.assert_allclose(exact_law(gauged)[1], exact_law(model)[1], atol=1e-14)
    for table in gauged.tables:
        for axis in range(table.ndim):
            np.testing.assert_allclose(table.sum(axis=axis), 0.0, atol=1e-12)
    np.testing.assert_allclose(gauged.theta, as_field(model).zero_sum().theta, atol=1e-12)


def test_spins_in_the_zero_sum_gauge_are_the_pairwise_machine(rng):
    pairwise = random_model(GRAPH, rng)
    factors = {factor.nodes: factor.table for factor in pairwise.factors().factors}
    edges = [factors[tuple(edge)] for edge in GRAPH.edges.tolist()]
    model = PottsModel.build(GRAPH, [factors[(i,)] for i in range(5)], edges).zero_sum()
    np.testing.assert_allclose([table[1] for table in model.biases], pairwise.biases, atol=1e-12)
    np.testing.assert_allclose([table[1, 1] for table in model.couplings], pairwise.couplings, atol=1e-12)
    np.testing.assert_allclose(model.coupling_norms(), 2 * np.abs(pairwise.couplings), atol=1e-12)


def test_norms_do_not_depend_on_the_gauge_and_the_correction_is_as_published(rng):
    graph, domain = gb.graphs.complete(4), Categories((3,) * 4)
    model = random_potts(rng, domain, graph)
    norms = model.coupling_norms()
    np.testing.assert_allclose(model.zero_sum().coupling_norms(), norms, atol=1e-12)
    matrix = np.zeros((4, 4))
    i, j = graph.edges.T
    matrix[i, j] = matrix[j, i] = norms
    means = matrix.sum(axis=0) / 3
    expected = matrix - np.outer(means, means) / norms.mean()
    np.testing.assert_allclose(model.coupling_norms(apc=True), expected[i, j], atol=1e-12)
    assert not PottsModel.zeros(graph, domain).coupling_norms(apc=True).any()


def test_conditioning_keeps_the_kind_and_the_graph(rng):
    rest = random_potts(rng).given([2], [3]).family
    assert isinstance(rest, PottsModel)
    assert rest.graph.edges.tolist() == [[0, 1]]
    assert rest.cardinalities.tolist() == [2, 3, 1, 4]


def test_bad_tables_are_named(rng):
    graph, domain = gb.graphs.complete(2), Categories((2, 3))
    with pytest.raises(ArgumentError, match=r"the table of \(0, 1\) has shape \(3, 2\), not \(2, 3\)"):
        PottsModel.build(graph, None, [np.zeros((3, 2))], domain)
    with pytest.raises(ArgumentError, match="hold 2 tables"):
        PottsModel.build(graph, None, [], domain)
    with pytest.raises(ArgumentError, match="5 biases and 6 couplings"):
        PottsModel(graph, np.zeros(3), domain)
