"""The checks before a fit, called with a structure instead of a model."""

from __future__ import annotations

import gibbsian as gb
from gibbsian.models import HigherOrderModel


def preflight_graph(data, graph, *, bias=True, l1=0.0, l2=0.0):
    """Check a model with a coupling, or a table, on every edge of a graph."""
    if data.domain.two_valued:
        model = gb.PairwiseModel.zeros(graph, data.domain, bias=bias)
    else:
        domain = data.domain if graph.n_nodes == data.n_variables else gb.domain.Categories((2,) * graph.n_nodes)
        model = gb.models.PottsModel.zeros(graph, domain)
    return gb.data.preflight(data, model, l1=l1, l2=l2)


def preflight_cliques(data, cliques, *, l1=0.0, l2=0.0):
    """Check a model with a product on every clique."""
    weights = dict.fromkeys(cliques, 0.0)
    return gb.data.preflight(data, HigherOrderModel.build(weights, data.n_variables, data.domain), l1=l1, l2=l2)
