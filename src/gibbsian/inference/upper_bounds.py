"""Upper bounds on the log-weights of a model, where no engine finds its most probable state."""

from __future__ import annotations

import numpy as np
import scipy  # linear algebra is loaded when it is used

from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.factors import FactorGraph
from gibbsian.models.ising import Ising, is_ising

# Maximum number of rounds of exchange between factors, and of visits of a factor in all rounds.
MAX_ROUNDS, MAX_VISITS = 50, 10_000
# Number of steps of the eigenvalue bound, and its maximum number of spins.
STEPS, MAX_SPINS = 40, 300


def largest_log_weight_bound(model: Model[DiscreteFamily]) -> float:
    """Return a number that no log-weight of the model exceeds.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.inference.upper_bounds import largest_log_weight_bound
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(3), None, [1.0, 1.0, -1.0])
    >>> round(largest_log_weight_bound(model), 3)               # the largest is 1, and the factors alone say 3
    1.5
    """
    family = model.family
    if is_ising(family) and family.graph.n_nodes + family.graph.n_edges > MAX_VISITS:
        # the bound of `factor_bound` after no rounds, without an object for each factor
        _, fields, couplings, constant = family.ising(model.theta)
        return float(np.abs(fields).sum() + np.abs(couplings).sum() + constant)
    bound = factor_bound(family.factors(model.theta))
    if not is_ising(family) or model.n_variables > MAX_SPINS:
        return bound
    return min(bound, eigenvalue_bound(family.ising(model.theta)))


def factor_bound(graph: FactorGraph) -> float:
    """Return the sum of the largest entries of the factors after max-sum diffusion (Werner 2007).

    A visit of a variable makes the largest entries of its factors, value by value, equal to their mean. This does not
    change the sum of the factors, so that any number of visits gives a bound, and none raises it. On trees the bound
    converges to the largest log-weight.
    """
    tables = [np.array(factor.table, np.float64) for factor in graph.factors]
    n_visits = sum(map(len, graph.factors_of))
    for _ in range(min(MAX_ROUNDS, MAX_VISITS // max(1, n_visits))):
        for node, indices in enumerate(graph.factors_of):
            views = [np.moveaxis(tables[k], graph.factors[k].nodes.index(node), -1) for k in indices]
            largest = [view.max(axis=tuple(range(view.ndim - 1))) for view in views]
            for view, each in zip(views, largest, strict=True):
                view += np.mean(largest, axis=0) - each
    return float(sum(table.max() for table in tables))


def eigenvalue_bound(ising: Ising) -> float:
    """Return the maximum of ``s A s / 2`` over vectors of the length of spins s, minimised over the diagonal of A.

    Fields are couplings to one more spin, which is up. ``s A s = s (A + diag d) s - sum d`` for any d, and its maximum
    over vectors of length ``sqrt(n + 1)`` is ``(n + 1) lambda_max - sum d`` (the dual of the semidefinite relaxation).
    """
    graph, fields, couplings, constant = ising
    n = graph.n_nodes + 1
    matrix = np.zeros((n, n))
    matrix[1:, 1:] = graph.matrix(couplings)
    matrix[0, 1:] = matrix[1:, 0] = fields
    diagonal, best, scale = np.zeros(n), np.inf, float(np.abs(matrix).sum(axis=1).mean())
    for step in range(STEPS):
        values, vectors = scipy.linalg.eigh(matrix + np.diag(diagonal), subset_by_index=(n - 1, n - 1))
        best = min(best, 0.5 * (n * float(values[-1]) - float(diagonal.sum())))
        gradient = n * vectors[:, -1] ** 2 - 1.0
        diagonal -= scale / (10.0 + step) * gradient / max(1.0, float(np.linalg.norm(gradient)))
    return float(best + constant)
