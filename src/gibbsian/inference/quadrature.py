"""A check that the nodes of a quadrature rule resolve a density."""

from __future__ import annotations

import numpy as np

from gibbsian.arrays import Codes, Floats
from gibbsian.errors import ArgumentError
from gibbsian.models.factors import FactorGraph

# Number of configurations of nodes that are checked, drawn from the distribution itself.
N_CONFIGURATIONS, SEED = 100, 0
# A density is not resolved if conditional distributions have more than this share of their weight on one node, on
# average. The error of log Z of two to four variables that attract each other is 0.005 at this limit by a rule of 127
# nodes, 1e-4 at 0.45 and 0.1 at 0.8.
LARGEST_PEAK = 0.6


def peaks(factors: FactorGraph, codes: Codes) -> Floats:
    """Return for each variable the largest conditional probability of a node given the others, on average over rows."""
    means, rows = np.empty(factors.n_variables), np.ascontiguousarray(codes.T)
    for node, factor_indices in enumerate(factors.factors_of):
        log_weights = np.zeros((len(codes), int(factors.cardinalities[node])))
        for index in factor_indices:
            log_weights = log_weights + FactorGraph.given_outside(factors, index, {node}, rows)[1]
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        means[node] = (1.0 / weights.sum(axis=1)).mean()
    return means


def require_resolved(factors: FactorGraph, codes: Codes) -> None:
    """Refuse a density so narrow that sums over nodes do not resolve its integrals."""
    if len(factors.cardinalities) and (peak := float(peaks(factors, codes).max())) > LARGEST_PEAK:
        raise ArgumentError(
            f"are too few for a density this narrow: given the others, {peak:.0%} of a variable's weight is on average "
            "on a single node of the quadrature rule, so that sums over nodes are no integrals",
            "give more of them, up to 127, or fewer or weaker interactions",
            argument="n_nodes",
            value=int(factors.cardinalities.max()),
        )
