"""Graphs: layout, neighbourhoods, colouring, conversions."""

import os
import subprocess
import sys

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gibbsian as gb
from gibbsian.errors import GraphError, TooExpensiveError
from gibbsian.graphs import as_graph

edge_lists = st.integers(2, 9).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] != e[1]), max_size=20),
    )
)


@given(edge_lists)
def test_edges_are_canonical_and_csr_agrees(case):
    n, edges = case
    graph = gb.graphs.from_edges(edges, n)
    assert {tuple(edge) for edge in graph.edges} == {tuple(sorted(edge)) for edge in edges}
    assert np.array_equal(graph.edges, graph.edges[np.lexsort((graph.edges[:, 1], graph.edges[:, 0]))])
    indptr, heads, ids = graph.csr
    for i in range(n):
        for j, e in zip(heads[indptr[i] : indptr[i + 1]], ids[indptr[i] : indptr[i + 1]], strict=True):
            assert sorted((i, j)) == graph.edges[e].tolist()
        assert np.all(np.diff(heads[indptr[i] : indptr[i + 1]]) > 0)
    assert indptr[-1] == 2 * graph.n_edges


def test_equal_graphs_hash_alike_in_other_processes():
    """A graph may bring its hash along, pickled, where hashes of bytes are salted otherwise."""
    graph = gb.graphs.grid(2, 3)
    assert hash(graph) == hash(gb.graphs.from_edges(graph.edges[::-1].tolist(), 6))
    code = "import gibbsian as gb; print(hash(gb.graphs.grid(2, 3)))"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    other = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert int(other.stdout) == hash(graph)


@given(edge_lists)
def test_triangles_are_those_of_networkx(case):
    n, edges = case
    graph = gb.graphs.from_edges(edges, n)
    assert graph.has_triangles == any(networkx.triangles(graph.to_networkx()).values())


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (2, 3), (3, 2), (4, 4)])
def test_grids_are_those_of_networkx_in_canonical_order(shape):
    lattice = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(*shape), ordering="sorted")
    assert gb.graphs.grid(*shape) == gb.graphs.from_networkx(lattice, range(shape[0] * shape[1]))


@given(edge_lists)
def test_colouring_is_proper_and_two_colours_where_bipartite(case):
    n, edges = case
    graph = gb.graphs.from_edges(edges, n)
    colours = graph.colouring
    assert all(colours[i] != colours[j] for i, j in graph.edges)
    assert set(colours) == set(range(colours.max() + 1))
    if graph.n_edges and networkx.is_bipartite(graph.to_networkx()):
        assert colours.max() == 1


@given(edge_lists, st.integers(0, 4))
def test_neighbourhoods_are_distances(case, k):
    n, edges = case
    graph = gb.graphs.from_edges(edges, n)
    distances = networkx.single_source_shortest_path_length(graph.to_networkx(), 0)
    assert set(graph.neighbourhood(0, k)) == {node for node, d in distances.items() if d == k}
    assert set(graph.region(0, k)) == {node for node, d in distances.items() if d <= k}


@given(edge_lists)
def test_networkx_round_trip(case):
    n, edges = case
    names = [f"v{i}" for i in range(n)]
    graph = gb.graphs.from_edges(edges, n)
    assert gb.graphs.from_networkx(graph.to_networkx(names), names) == graph


def test_neighbourhoods_of_figure_3_of_yu20():
    grid = gb.graphs.grid(5, 5)  # the paper counts from 1
    assert (grid.neighbourhood(12, 2) + 1).tolist() == [3, 7, 9, 11, 15, 17, 19, 23]
    assert (grid.neighbourhood([11, 12], 1) + 1).tolist() == [7, 8, 11, 14, 17, 18]


def test_random_graph_has_the_asked_density_and_repeats_with_its_seed():
    graph = gb.graphs.random(400, 0.3, random_state=1)
    assert abs(graph.density - 0.3) < 4 * np.sqrt(0.3 * 0.7 / (400 * 399 / 2))
    assert graph == gb.graphs.random(400, 0.3, random_state=1)
    assert gb.graphs.random(7, 1.0) == gb.graphs.complete(7)
    assert gb.graphs.random(7, 0.0).n_edges == 0


def test_subgraph_keeps_edge_ids_when_the_order_changes():
    graph = gb.graphs.complete(4)
    sub, kept = graph.subgraph([3, 0, 2])
    for (i, j), e in zip(sub.edges, kept, strict=True):
        assert sorted(np.array([3, 0, 2])[[i, j]]) == graph.edges[e].tolist()


@pytest.mark.parametrize("word", ["complete", "empty", "chain", "grid:2x3"])
def test_named_graphs(word):
    assert as_graph(word, list("abcdef")).n_nodes == 6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: as_graph([("a", "z")], ["a", "b"]), "'z'"),
        (lambda: as_graph([(0, 5)], ["a", "b"]), "5"),
        (lambda: as_graph(networkx.path_graph(["a", "q"]), ["a", "b"]), "'q'"),
        (lambda: as_graph("ring", ["a", "b"]), "'ring'"),
        (lambda: as_graph("grid:3x3", ["a", "b"]), "9 nodes"),
        (lambda: as_graph(3.5, ["a", "b"]), "3.5"),
        (lambda: as_graph([("a", "a")], ["a", "b"]), "itself"),
        (lambda: as_graph(["ab"], ["a", "b"]), "pair"),
        (lambda: gb.graphs.random(3, 1.5), "1.5"),
        (lambda: gb.graphs.grid(0, 3), "at least 1"),
        (lambda: gb.graphs.complete(3).region(7), "7"),
        (lambda: gb.graphs.complete(3).region(0, -1), "k=-1"),
    ],
)
def test_bad_graphs_are_named(make, words):
    with pytest.raises(GraphError, match=words):
        make()


def test_a_graph_that_is_too_large():
    with pytest.raises(TooExpensiveError, match=r"complete graph on 3,000,000 nodes needs .* nodes would fit"):
        gb.graphs.complete(3_000_000)
