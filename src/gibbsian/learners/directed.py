"""One regression per variable: the couplings of a pairwise model before they are made symmetric.

Variable u has its own field ``F_u = b_u + sum_j theta_uj x_j`` over its neighbours, and ``theta_uj`` is free to differ
from ``theta_ju``. A loss summed over variables then falls apart into one convex problem per variable, and all of them
are evaluated at once by two products with the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from gibbsian.backends.numba import pairwise as kernels
from gibbsian.backends.numba.flip_losses import half_exponential, logistic
from gibbsian.backends.numba.screening import scaled_half_exponential
from gibbsian.backends.parallel import map_in_order
from gibbsian.blocks import row_blocks
from gibbsian.data import Dataset
from gibbsian.models import PairwiseModel
from gibbsian.models.regressions import Regressions
from gibbsian.objectives import FlipCostObjective, Function
from gibbsian.objectives.base import Scores
from gibbsian.objectives.curvature import state_blocks

Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class DirectedModel:
    """The directed parameters of a pairwise model: biases, then ``theta_ij``, then ``theta_ji`` over the edges.

    Parameters
    ----------
    model : PairwiseModel
        Graph, domain, temperature and bias; its parameters are where a search starts.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.learners.directed import DirectedModel
    >>> directed = DirectedModel(gb.PairwiseModel.zeros(gb.graphs.complete(2)))
    >>> directed.owner.tolist()                                  # the variable each parameter belongs to
    [0, 1, 0, 1]
    >>> directed.symmetrise(np.array([0.1, 0.2, 1.0, 3.0])).tolist()
    [0.1, 0.2, 2.0]
    """

    model: PairwiseModel

    @cached_property
    def owner(self) -> np.ndarray:
        """The variable whose regression each parameter belongs to."""
        nodes = np.arange(self.model.n_biases)
        return np.concatenate([nodes, self.model.graph.edges[:, 0], self.model.graph.edges[:, 1]])

    @property
    def penalised(self) -> np.ndarray:
        """True at the couplings."""
        return np.arange(self.owner.size) >= self.model.n_biases

    @property
    def _scale(self) -> float:
        return self.model.domain.gap / self.model.temperature

    @property
    def _edges(self) -> np.ndarray:
        return self.model.graph.edges

    @cached_property
    def _reversed_edges(self) -> np.ndarray:
        return np.ascontiguousarray(self._edges[:, ::-1])

    @cached_property
    def _csr_positions(self) -> np.ndarray:
        """Where in the parameters the coupling of each entry of the graph's CSR stands."""
        indptr, heads, ids = self.model.graph.csr
        tails = np.repeat(np.arange(self.model.n_variables), np.diff(indptr))
        return self.model.n_biases + np.where(tails < heads, ids, ids + len(self._edges))

    def start(self) -> np.ndarray:
        """Return the model's own parameters, each coupling in both directions."""
        return np.concatenate([self.model.theta, self.model.couplings])

    def split(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the biases (zeros where there are none), ``theta_ij`` and ``theta_ji``."""
        biases, forward, backward = np.split(theta, np.cumsum([self.model.n_biases, self.model.graph.n_edges]))
        return (biases if self.model.bias else np.zeros(self.model.n_variables)), forward, backward

    def symmetrise(self, theta: np.ndarray) -> np.ndarray:
        """Return the model's parameters: the average of the two couplings of each edge.

        Each variable keeps its field at the middle of the domain, so that the result is the same in both codings.
        """
        biases, forward, backward = self.split(theta)
        couplings = 0.5 * (forward + backward)
        if not self.model.bias:
            return couplings
        middle = 0.5 * (self.model.domain.low + self.model.domain.high)
        excess = np.zeros(self.model.n_variables)
        np.add.at(excess, self.model.graph.edges[:, 0], forward - couplings)
        np.add.at(excess, self.model.graph.edges[:, 1], backward - couplings)
        return np.concatenate([biases + middle * excess, couplings])

    def symmetric(self, theta: np.ndarray) -> PairwiseModel:
        """Return the model with the averages of the directed parameters."""
        return self.model.replace(self.symmetrise(theta))

    def curvature_and_scores(self, objective: FlipCostObjective, data: Dataset) -> tuple[np.ndarray, Scores]:
        """Return the curvature of a loss in the directed parameters, and the scores of the states."""
        model, regressions = self.model, Regressions(self.model, directed=True)
        shares, curvature = data.weights / data.total_weight, np.zeros((regressions.size, regressions.size))
        for block in state_blocks(data):
            bends = objective.bends(model.flip_costs(data.states[block]))
            curvature += regressions.curvature(data.states[block], bends * shares[block, None])

        def scores() -> Scores:
            for block in state_blocks(data):
                x = data.states[block]
                yield block, regressions.scores(x, objective.slopes(model, model.flip_costs(x)))

        return curvature, scores()

    def flip_costs(self, x: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return the log-odds ``log P(x_u | others) - log P(the other value | others)`` of each regression."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        biases, forward, backward = self.split(theta)
        if self.model.is_dense:
            costs = x @ self._matrix(forward, backward)
        else:
            indptr, heads, _ = self.model.graph.csr
            costs = kernels.sparse_fields(x, indptr, heads, theta[self._csr_positions])
        kernels.add_biases_with_signs(costs, biases, x, self._scale)
        return costs

    def flip_loss(
        self, x: np.ndarray, shares: np.ndarray, theta: np.ndarray, kernel: Callable[[np.ndarray, np.ndarray], Answer]
    ) -> tuple[Answer, np.ndarray]:
        """Return what `kernel` says of the flip costs, and the gradient of the loss whose slopes it leaves there."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        costs = self.flip_costs(x, theta)
        answer = kernel(costs, shares)
        bias_slopes = kernels.sign_and_sum(costs, x, self._scale)
        both = (self._edges, self._reversed_edges)
        if self.model.is_dense:
            products = costs.T @ x
            slopes = [kernels.gather_edges(products, pairs, False) for pairs in both]
        else:
            slopes = [kernels.edge_products(costs, x, pairs) for pairs in both]
        return answer, np.concatenate([bias_slopes[: self.model.n_biases], *slopes])

    def _matrix(self, forward: np.ndarray, backward: np.ndarray) -> np.ndarray:
        """Column u holds the couplings of variable u."""
        matrix = np.zeros((self.model.n_variables, self.model.n_variables))
        i, j = self._edges.T
        matrix[j, i], matrix[i, j] = forward, backward
        return matrix


Loss = Callable[[DirectedModel, Dataset], Function]


def additive(kernel: Callable[[np.ndarray, np.ndarray], float]) -> Loss:
    """Return the loss ``sum_m share_m sum_u phi(d[m, u])`` of a kernel such as those of `flip_losses`."""

    def bind(directed: DirectedModel, data: Dataset) -> Function:
        states, shares = _present(data)

        def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
            def evaluate(block: slice) -> tuple[float, np.ndarray]:
                return directed.flip_loss(states[block], shares[block], theta, kernel)

            value, gradient = 0.0, np.zeros_like(theta)
            for part, slope in map_in_order(evaluate, row_blocks(*states.shape)):
                value += part
                gradient += slope
            return value, gradient

        return function

    return bind


def log_screening(directed: DirectedModel, data: Dataset) -> Function:
    """Bind the loss of logRISE: ``sum_u log sum_m share_m exp(-d[m, u] / 2)``, by log-sum-exp over blocks of rows."""
    states, shares = _present(data)

    def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
        def evaluate(block: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            (tops, totals), gradient = directed.flip_loss(states[block], shares[block], theta, scaled_half_exponential)
            return tops, totals, gradient

        top, total, gradient = np.full(states.shape[1], -np.inf), np.zeros(states.shape[1]), np.zeros_like(theta)
        for tops, totals, slope in map_in_order(evaluate, row_blocks(*states.shape)):
            higher = np.maximum(top, tops)
            old, new = np.exp(top - higher), np.exp(tops - higher)
            total = old * total + new * totals
            gradient = old[directed.owner] * gradient + new[directed.owner] * slope
            top = higher
        return float((top + np.log(total)).sum()), gradient / total[directed.owner]

    return function


def _present(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """States of positive weight, and their shares."""
    present = data.weights > 0
    return data.states[present], data.weights[present] / data.total_weight


LOSSES: dict[str, Loss] = {
    "rise": additive(half_exponential),
    "logrise": log_screening,
    "rple": additive(logistic),
}
