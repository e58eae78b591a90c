"""Whether the nodes of a quadrature rule resolve a density."""

from __future__ import annotations

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.models.factors import FactorGraph

# Configurations of nodes that are looked at, drawn from the distribution itself.
N_CONFIGURATIONS, SEED = 100, 0
# A conditional distribution that has this share of its weight on one node, on average, is not resolved. By a rule of
# 127 nodes log Z of two to four variables that attract each other is then off by 0.005, at 0.45 by 1e-4, at 0.8 by 0.1.
LARGEST_PEAK = 0.6


def peaks(factors: FactorGraph, codes: np.ndarray) -> np.ndarray:
    """Return for each variable the largest conditional probability of a node given the others, on average over rows."""
    found, rows = np.empty(factors.n_variables), np.ascontiguousarray(codes.T)
    for node, numbers in enumerate(factors.factors_of):
        log_weights = np.zeros((len(codes), int(factors.cardinalities[node])))
        for number in numbers:
            log_weights = log_weights + FactorGraph.given_outside(factors, number, {node}, rows)[1]
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        found[node] = (1.0 / weights.sum(axis=1)).mean()
    return found


def require_resolved(factors: FactorGraph, codes: np.ndarray) -> None:
    """Refuse a density that is so narrow that single nodes hold it: its sums are no integrals."""
    if len(factors.cardinalities) and (peak := float(peaks(factors, codes).max())) > LARGEST_PEAK:
        raise ArgumentError(
            f"are too few for a density this narrow: given the others, {peak:.0%} of a variable's weight is on average "
            "on a single node of the quadrature rule, so that sums over nodes are no integrals",
            "give more of them, up to 127, or fewer or weaker interactions",
            argument="n_nodes",
            value=int(factors.cardinalities.max()),
        )
