"""Hidden units as columns that are always missing.

A machine with hidden units is a model of visible and hidden variables together, learned from rows whose hidden cells
are missing. Everything that sums missing cells out, fills them or samples them then serves hidden units too.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from gibbsian.data.dataset import Dataset
from gibbsian.data.rows import AnyRows
from gibbsian.errors import GraphError
from gibbsian.graphs import Graph, as_graph, complete, from_edges, named_graph
from gibbsian.models.variables import require_two_values

# Graphs that tell hidden from visible units, besides those of `as_graph`.
HIDDEN_GRAPHS = ("restricted", "semi-restricted")


def hidden_names(names: Sequence[str], n_hidden: int, prefix: str = "h") -> tuple[str, ...]:
    """Name the hidden units h0, h1, ...; with underscores where a column is called so."""
    while True:
        found = tuple(f"{prefix}{k}" for k in range(n_hidden))
        if not set(found) & set(names):
            return found
        prefix += "_"


def with_hidden(rows: AnyRows, n_hidden: int) -> AnyRows:
    """Return the rows with hidden units after their columns, missing in every row."""
    return rows.map(partial(_with_hidden, n_hidden=n_hidden))


def _with_hidden(data: Dataset, n_hidden: int) -> Dataset:
    require_two_values(data.variables)
    shape = (data.n_states, n_hidden)
    return replace(
        data,
        states=np.hstack([data.states, np.zeros(shape, data.states.dtype)]),
        missing=np.hstack([data.holes, np.ones(shape, bool)]),
        names=data.names + hidden_names(data.names, n_hidden),
    )


def without_hidden(data: Dataset, n_hidden: int) -> Dataset:
    """Return the visible columns of what `with_hidden` has made."""
    n_visible = data.n_variables - n_hidden
    missing = None if data.missing is None else data.missing[:, :n_visible]
    if missing is not None and not missing.any():
        missing = None
    return replace(data, states=data.states[:, :n_visible], missing=missing, names=data.names[:n_visible])


def graph_with_hidden(graph: object, names: Sequence[Hashable], n_hidden: int) -> Graph:
    """Return the graph over columns and hidden units; `names` lists both, the hidden units last.

    Parameters
    ----------
    graph : str, Graph, networkx graph or list of pairs
        ``"complete"`` (every pair), ``"restricted"`` (every column with every hidden unit), ``"semi-restricted"`` (that
        and every pair of columns), any word of `as_graph`, a `Graph` over columns and hidden units, or pairs of names.
    names : sequence
        All names.
    n_hidden : int
        How many of them are hidden units.
    """
    n_visible = len(names) - n_hidden
    if isinstance(graph, str):
        graph = _by_word(graph, n_visible, n_hidden)
    if isinstance(graph, Graph) and graph.n_nodes != len(names):
        raise GraphError(
            f"the graph has {graph.n_nodes} nodes but the machine has {len(names)} units, {n_visible} "
            f"columns and then {n_hidden} hidden",
            "give a node to each",
        )
    found = as_graph(graph, names)
    alone = np.flatnonzero(found.degrees[n_visible:] == 0)
    if len(alone):
        raise GraphError(
            f"hidden unit {names[n_visible + alone[0]]!r} has no edge, so it changes nothing",
            "join it to a column or lower `n_hidden`",
        )
    return found


def _by_word(word: str, n_visible: int, n_hidden: int) -> Graph:
    if word in HIDDEN_GRAPHS:
        return _in_two_layers(word, n_visible, n_hidden)
    try:
        return named_graph(word, n_visible + n_hidden)
    except GraphError as error:
        raise GraphError(f"{error}; with hidden units also {' or '.join(map(repr, HIDDEN_GRAPHS))}") from None


def _in_two_layers(word: str, n_visible: int, n_hidden: int) -> Graph:
    columns, hidden = np.arange(n_visible), n_visible + np.arange(n_hidden)
    between = np.stack(np.meshgrid(columns, hidden, indexing="ij"), axis=-1).reshape(-1, 2)
    inside = complete(n_visible).edges if word == "semi-restricted" else np.empty((0, 2), np.int64)
    return from_edges(np.concatenate([inside, between]), n_visible + n_hidden)


def visible_graph(graph: Graph, n_hidden: int) -> Graph:
    """Return the edges between columns."""
    return graph.subgraph(np.arange(graph.n_nodes - n_hidden))[0] if n_hidden else graph
