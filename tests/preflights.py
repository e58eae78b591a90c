"""The checks before a fit, called with a structure instead of a model."""

from __future__ import annotations

import gibbsian as gb
from gibbsian import Model, Variables
from gibbsian.models.scopes import Scopes


def preflight_graph(data, graph, *, bias=True, l1=0.0, l2=0.0):
    """Check a model with a coupling, or a table, on every edge of a graph."""
    if data.coding.domain.two_valued:
        scores = {"spin": Variables.spins, "binary": Variables.binary}[data.coding.domain.name]
        family = gb.PairwiseFamily(graph, scores, bias)
    else:
        fits = graph.n_nodes == data.n_variables
        family = gb.TablesFamily.potts(graph, data.variables if fits else Variables.categories((2,) * graph.n_nodes))
    return gb.data.preflight(data, Model.zeros(family), l1=l1, l2=l2)


def preflight_cliques(data, cliques, *, l1=0.0, l2=0.0):
    """Check a model with a product on every clique."""
    family = gb.ProductsFamily(Scopes.sorted(cliques, data.n_variables), data.variables)
    return gb.data.preflight(data, Model.zeros(family), l1=l1, l2=l2)
