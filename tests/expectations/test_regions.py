"""Sum regions: YU20 Algorithm 1 as written there, forests, and regions that the caller gives."""

import networkx
import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError
from gibbsian.expectations import ForestAround, GivenRegions, IndependentNeighbours, Neighbourhood, PlanarAround
from gibbsian.expectations.regions import as_rule, csr_targets, edge_strengths, independent_sets

GRAPHS = {
    "grid": gb.graphs.grid(4, 5),
    "sparse": gb.graphs.random(20, 0.2, random_state=1),
    "dense": gb.graphs.random(14, 0.5, random_state=2),
    "complete": gb.graphs.complete(7),
}


@pytest.fixture(params=GRAPHS)
def graph(request):
    return GRAPHS[request.param]


def targets_of(graph):
    return [*((i,) for i in range(graph.n_nodes)), *map(tuple, graph.edges.tolist()), (0, 3, 6)]


def algorithm_1(graph, target, strengths):
    """YU20 Algorithm 1 with its tie-break, word for word."""
    strength = {frozenset(edge): s for edge, s in zip(graph.edges.tolist(), strengths, strict=True)}
    joined = {i: set(graph.neighbours(i).tolist()) for i in range(graph.n_nodes)}
    left = set(graph.neighbourhood(target).tolist())
    chosen = set()
    while left:
        degree = {j: len(joined[j] & left) for j in left}
        least = min(degree.values())
        candidates = [j for j in left if degree[j] == least]
        pull = {j: sum(strength[frozenset((i, j))] for i in target if i in joined[j]) for j in candidates}
        best = max(candidates, key=lambda j: pull[j])
        chosen.add(best)
        left -= joined[best] | {best}
    return chosen


def test_independent_sets_are_those_of_algorithm_1(graph, rng):
    strengths = rng.random(graph.n_edges)
    targets = targets_of(graph)
    regions = IndependentNeighbours().regions(graph, targets, strengths)
    for target, region in zip(targets, regions, strict=True):
        assert set(region) - set(target) == algorithm_1(graph, target, strengths)


def test_every_step_is_that_of_algorithm_1(graph, rng):
    """Line 4 as printed: least degree in U; of several with a degree above zero the largest W_j (YU20 section 4.1)."""
    strengths = rng.integers(1, 4, graph.n_edges).astype(float)  # equal W_j occur, and any of them may go first
    strength = {frozenset(edge): s for edge, s in zip(graph.edges.tolist(), strengths, strict=True)}
    joined = {i: set(graph.neighbours(i).tolist()) for i in range(graph.n_nodes)}
    targets = targets_of(graph)
    starts, members, _ = independent_sets(graph, *csr_targets(targets), strengths)
    for number, target in enumerate(targets):
        left = set(graph.neighbourhood(target).tolist())
        for chosen in members[starts[number] : starts[number + 1]].tolist():
            degree = {j: len(joined[j] & left) for j in left}
            pull = {j: sum(strength[frozenset((i, j))] for i in target if i in joined[j]) for j in left}
            tied = [j for j in left if degree[j] == min(degree.values())]
            assert chosen in tied
            assert degree[chosen] == 0 or pull[chosen] == max(pull[j] for j in tied)
            left -= joined[chosen] | {chosen}
        assert not left


def test_ties_go_to_the_strongest_interaction():
    square = gb.graphs.grid(2, 2)  # the neighbours 2 and 3 of (0, 1) are joined: one of them is taken
    edges = square.edges.tolist()
    for strong, chosen in (([0, 2], 2), ([1, 3], 3)):
        strengths = np.array([1.0 if edge == strong else 0.5 for edge in edges])
        assert IndependentNeighbours().regions(square, [(0, 1)], strengths) == [(0, 1, chosen)]
    assert independent_sets(square, *csr_targets([(0, 1)]), np.ones(4))[2]
    assert not independent_sets(square, *csr_targets([(0,), (1,)]), np.ones(4))[2]


def test_forests_are_induced_and_as_large_as_asked(graph, rng):
    strengths = rng.random(graph.n_edges)
    targets = targets_of(graph)
    whole = graph.to_networkx()
    for size in (3, graph.n_nodes):
        for target, region in zip(targets, ForestAround(size).regions(graph, targets, strengths), strict=True):
            others = sorted(set(region) - set(target))
            assert set(target) <= set(region)
            assert len(others) <= size
            assert not others or networkx.is_forest(whole.subgraph(others))


def test_a_forest_cannot_be_extended(graph, rng):
    (region,) = ForestAround(graph.n_nodes).regions(graph, [(0, 1)], rng.random(graph.n_edges))
    whole, others = graph.to_networkx(), set(region) - {0, 1}
    reached = networkx.node_connected_component(whole, 0) | networkx.node_connected_component(whole, 1)
    for node in reached - set(region):
        assert not networkx.is_forest(whole.subgraph(others | {node}))


def test_planar_regions_hold_the_forests_and_close_cycles(graph):
    targets = targets_of(graph)[:30]
    forests = ForestAround(4).regions(graph, targets, np.ones(graph.n_edges))
    grown = PlanarAround(4).regions(graph, targets, None)
    for target, forest, region in zip(targets, forests, grown, strict=True):
        assert set(forest) <= set(region)
        beside = networkx.Graph(graph.to_networkx().subgraph(set(region) - set(target)))
        beside.add_edges_from([("ghost", node) for node in list(beside)])
        assert networkx.check_planarity(beside)[0]
    assert graph.is_complete or sum(map(len, grown)) > sum(map(len, forests))


def test_without_biases_the_inside_of_a_region_needs_no_ghost():
    graph = gb.graphs.grid(7, 7)
    (region,) = PlanarAround(13, biases=False).regions(graph, [(24,)], None)
    assert len(region) == 14
    assert set(graph.region(24, 2).tolist()) <= set(region)  # 2-SMCI and more, which is not outerplanar


@pytest.mark.parametrize("k", [1, 2, 3])
def test_neighbourhoods_are_those_of_the_graph(graph, k):
    for target, region in zip(targets_of(graph), Neighbourhood(k).regions(graph, targets_of(graph), None), strict=True):
        assert list(region) == graph.region(target, k - 1).tolist()


def test_order_zero_has_no_region(graph):
    assert Neighbourhood(0).regions(graph, [(0, 1)], None) == [()]


def test_the_caller_may_give_regions():
    chain = gb.graphs.grid(1, 5)
    assert GivenRegions({0: [2, 1, 0], (1, 2): [1, 2, 4]}).regions(chain, [(0,), (1, 2), (3,)], None) == [
        (0, 1, 2),
        (1, 2, 4),
        (3,),
    ]
    assert as_rule(lambda graph, target: graph.region(target, 1)).regions(chain, [(2,)], None) == [(1, 2, 3)]


def test_names_of_rules():
    assert as_rule("2") == as_rule(2) == Neighbourhood(2)
    assert as_rule("forest") == ForestAround()
    assert as_rule(ForestAround(5)) == ForestAround(5)


@pytest.mark.parametrize("wrong", ["third", -1, 1.5, None, True])
def test_unknown_rules_are_refused(wrong):
    with pytest.raises(ArgumentError):
        as_rule(wrong)


def test_regions_must_hold_their_target():
    chain = gb.graphs.grid(1, 5)
    with pytest.raises(ArgumentError, match=r"\(1, 2\) does not hold its target \(0,\)"):
        GivenRegions({(0,): (1, 2)}).regions(chain, [(0,)], None)
    with pytest.raises(ArgumentError, match=r"outside 0\.\.4"):
        GivenRegions({(0,): (0, 5)}).regions(chain, [(0,)], None)


def test_strengths_of_pairs_are_couplings_in_every_model(rng):
    graph = gb.graphs.random(8, 0.5, random_state=0)
    couplings = rng.normal(size=graph.n_edges)
    pairs = {tuple(edge): w for edge, w in zip(graph.edges.tolist(), couplings, strict=True)}
    pairwise = gb.PairwiseFamily.model(graph, rng.normal(size=8), couplings)
    products = gb.ProductsFamily.model(pairs, 8)
    for model in (pairwise, products):
        assert edge_strengths(model.family, model.family.factors(model.theta)) == pytest.approx(np.abs(couplings))


def test_strengths_sum_over_the_factors_of_an_edge(rng, scores):
    model = gb.ProductsFamily.model({(0, 1): -1.0, (0, 1, 2): 3.0, (1, 2, 3): 0.5, (3,): 9.0}, 4, scores)
    factors, expected = model.family.factors(model.theta), []
    for i, j in model.family.graph.edges.tolist():
        tables = [factor.table for factor in factors.factors if {i, j} <= set(factor.nodes)]
        expected.append(sum((table.max() - table.min()) / 2 for table in tables))
    assert edge_strengths(model.family, factors) == pytest.approx(expected)
