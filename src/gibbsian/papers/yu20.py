"""Yasuda and Uchizawa 2020: networks of 20 variables with biases in [-0.2, 0.2] and couplings in [-0.3, 0.3]."""

from __future__ import annotations

import numpy as np

from gibbsian.graphs import Graph, complete, grid, random
from gibbsian.models import PairwiseModel

GRID = grid(4, 5)
LARGEST_BIAS, LARGEST_COUPLING = 0.2, 0.3


def draw_graph(kind: str | float, rng: np.random.Generator) -> Graph:
    """Return the 4x5 grid, the complete graph, or a random one with this connection probability.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.yu20 import draw_graph
    >>> draw_graph("grid", None).n_edges, draw_graph(0.2, np.random.default_rng(0)).n_nodes
    (31, 20)
    """
    if kind == "grid":
        return GRID
    return complete(GRID.n_nodes) if kind == "complete" else random(GRID.n_nodes, float(kind), random_state=rng)


def draw_network(kind: str | float, rng: np.random.Generator) -> PairwiseModel:
    """Draw a machine on such a graph.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.yu20 import draw_network
    >>> bool(abs(draw_network("grid", np.random.default_rng(0)).biases).max() < 0.2)
    True
    """
    graph = draw_graph(kind, rng)
    biases = rng.uniform(-LARGEST_BIAS, LARGEST_BIAS, graph.n_nodes)
    return PairwiseModel.build(graph, biases, rng.uniform(-LARGEST_COUPLING, LARGEST_COUPLING, graph.n_edges))
