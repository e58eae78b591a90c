"""A pairwise model as one regression per variable: the slopes of its flip costs, which are linear in theta.

The flip cost of variable u is ``+-(gap / T) (b_u + sum_j w_uj x_j)``. Its regressors are the constant and the
neighbours, and its parameters the bias and the couplings of u. In the model the coupling of an edge serves two
regressions; directed, each has its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.backends.parallel import map_in_order

if TYPE_CHECKING:
    from gibbsian.models.pairwise import PairwiseModel


@dataclass(frozen=True, eq=False)
class Regressions:
    """The regressions of a model; parameters are biases and couplings, if directed ``w_ij``, then ``w_ji``."""

    model: PairwiseModel
    directed: bool = False

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.model.theta.size + self.directed * self.model.graph.n_edges

    @property
    def _scale(self) -> float:
        return self.model.domain.gap

    def scores(self, x: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Return the gradient of ``sum_i slopes[m, i] d[m, i]`` of each state, one row per state."""
        numbers, (i, j) = np.asarray(x, dtype=np.float64), self.model.graph.edges.T
        signed = slopes * np.where(numbers == self.model.domain.high, self._scale, -self._scale)
        biases = signed[:, : self.model.n_biases]
        forward, backward = signed[:, i] * numbers[:, j], signed[:, j] * numbers[:, i]
        return np.hstack([biases, forward, backward] if self.directed else [biases, forward + backward])

    def curvature(self, x: np.ndarray, bends: np.ndarray) -> np.ndarray:
        """Return ``sum_m sum_i bends[m, i] z z'`` with z the slopes of flip cost ``d[m, i]``."""
        numbers = np.asarray(x, dtype=np.float64)
        parts = map_in_order(partial(self._of_one, numbers, bends), range(self.model.n_variables))
        total = np.zeros((self.size, self.size))
        for positions, part in zip(self._own_parameters(), parts, strict=True):
            total[np.ix_(positions, positions)] += part
        return total * self._scale**2

    def _of_one(self, x: np.ndarray, bends: np.ndarray, node: int) -> np.ndarray:
        constant = np.ones((len(x), int(self.model.bias)))
        regressors = np.hstack([constant, x[:, self.model.graph.neighbours(node)]])
        return (regressors * bends[:, [node]]).T @ regressors

    def _own_parameters(self) -> list[np.ndarray]:
        """Where the bias and the couplings of each variable stand."""
        graph, n_biases = self.model.graph, self.model.n_biases
        indptr, heads, edge_of = graph.csr
        tails = np.repeat(np.arange(graph.n_nodes), np.diff(indptr))
        backward = self.directed & (tails > heads)
        positions = n_biases + edge_of + np.where(backward, graph.n_edges, 0)
        biases = [[node] if self.model.bias else [] for node in range(graph.n_nodes)]
        return [
            np.concatenate([biases[u], positions[indptr[u] : indptr[u + 1]]]).astype(np.intp)
            for u in range(len(biases))
        ]
