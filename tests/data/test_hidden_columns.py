"""Hidden units as columns that are always missing."""

from __future__ import annotations

import gibbsian as gb
from gibbsian.data.hidden_columns import graph_with_hidden, hidden_names, visible_graph, with_hidden


def test_names_that_columns_have_are_avoided():
    assert hidden_names(["a", "b"], 2) == ("h0", "h1")
    assert hidden_names(["h0", "b"], 2) == ("h_0", "h_1")


def test_hidden_columns_are_missing_in_every_row():
    data = with_hidden(gb.Dataset.read([[0, 1], [1, None]]), 1)
    assert data.names == ("x0", "x1", "h0")
    assert data.missing.tolist() == [[False, False, True], [False, True, True]]


def test_graphs_over_columns_and_hidden_units():
    names = ["a", "b", "h0"]
    assert graph_with_hidden("restricted", names, 1).edges.tolist() == [[0, 2], [1, 2]]
    assert graph_with_hidden("semi-restricted", names, 1).edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert graph_with_hidden([("a", "h0"), ("a", "b")], names, 1).edges.tolist() == [[0, 1], [0, 2]]
    assert visible_graph(gb.graphs.complete(4), 1).n_edges == 3
