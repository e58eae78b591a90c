"""Upper bounds on the log-weight of any state, for models whose most probable state is out of exact reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # linear algebra is loaded when it is used

from gibbsian.models.factors import FactorGraph
from gibbsian.models.ising import is_ising

# Rounds of exchange between factors, and visits of a factor in all.
MOST_ROUNDS, MOST_VISITS = 50, 10_000
# Steps of the eigenvalue bound, which is for so many spins at most.
STEPS, MOST_SPINS = 40, 300


def largest_log_weight_bound(model: Any) -> float:
    """Return a number that no log-weight of the model exceeds.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.inference.upper_bounds import largest_log_weight_bound
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(3), None, [1.0, 1.0, -1.0])
    >>> round(largest_log_weight_bound(model), 3)               # the largest is 1, and the factors alone say 3
    1.5
    """
    if not is_ising(model.family):
        return factor_bound(model.factors())
    if model.n_variables + model.graph.n_edges > MOST_VISITS:  # no round would be made, and factors are many objects
        _, fields, couplings, constant = model.family.ising(model.theta)
        return float(np.abs(fields).sum() + np.abs(couplings).sum() + constant)
    bound = factor_bound(model.factors())
    return min(bound, eigenvalue_bound(model)) if model.n_variables <= MOST_SPINS else bound


def factor_bound(graph: FactorGraph) -> float:
    """Return the sum of the largest entries of the factors, after they have exchanged what they say of each variable.

    A visit of a variable makes the largest entries of its factors, value by value, equal to their mean. The sum of the
    factors stays as it is, so that any visits give a bound, and none raises it (max-sum diffusion; Werner 2007). On
    trees it goes to the largest log-weight.
    """
    tables = [np.array(factor.table, np.float64) for factor in graph.factors]
    n_visits = sum(map(len, graph.factors_of))
    for _ in range(min(MOST_ROUNDS, MOST_VISITS // max(1, n_visits))):
        for node, numbers in enumerate(graph.factors_of):
            views = [np.moveaxis(tables[k], graph.factors[k].nodes.index(node), -1) for k in numbers]
            largest = [view.max(axis=tuple(range(view.ndim - 1))) for view in views]
            for view, own in zip(views, largest, strict=True):
                view += np.mean(largest, axis=0) - own
    return float(sum(table.max() for table in tables))


def eigenvalue_bound(model: Any) -> float:
    """Return ``max_s s A s / 2`` over vectors of the length of s instead of signs, with the best diagonal found.

    With biases as couplings to a spin that is up, ``s A s = s (A + diag d) s - sum d`` for any d, and a vector of
    length ``sqrt(n + 1)`` gives ``(n + 1) lambda_max`` at most (the dual of the semidefinite relaxation).
    """
    graph, fields, couplings, constant = model.family.ising(model.theta)
    n = graph.n_nodes + 1
    matrix = np.zeros((n, n))
    matrix[1:, 1:] = graph.matrix(couplings)
    matrix[0, 1:] = matrix[1:, 0] = fields
    diagonal, best, scale = np.zeros(n), np.inf, float(np.abs(matrix).sum(axis=1).mean())
    for step in range(STEPS):
        values, vectors = scipy.linalg.eigh(matrix + np.diag(diagonal), subset_by_index=(n - 1, n - 1))
        best = min(best, 0.5 * (n * float(values[-1]) - float(diagonal.sum())))
        slope = n * vectors[:, -1] ** 2 - 1.0
        diagonal -= scale / (10.0 + step) * slope / max(1.0, float(np.linalg.norm(slope)))
    return best + constant
