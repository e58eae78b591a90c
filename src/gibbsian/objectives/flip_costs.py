"""Objectives that see a model only through its flip costs.

For a loss ``phi`` of one flip cost, the objective is ``sum_m share_m sum_i phi(d[m, i])`` with
``d[m, i] = log P(x_m) - log P(x_m with variable i flipped)``. The partition function cancels in d, so each costs
two products with the data. A new one is a file that gives `phi` and its derivative as a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gibbsian.backends.parallel import map_in_order
from gibbsian.blocks import row_blocks
from gibbsian.data import Dataset
from gibbsian.models import Model
from gibbsian.objectives.base import Function

Kernel = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class FlipCostObjective:
    """A sum of losses over flip costs.

    Parameters
    ----------
    kernel : callable
        ``kernel(costs, shares)`` returns ``sum_m shares[m] sum_i phi(costs[m, i])`` and overwrites `costs`
        with the derivatives ``shares[m] phi'(costs[m, i])``.
    name : str
        What messages call it.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.objectives import FlipCostObjective
    >>> def hinge(costs, shares):
    ...     value = float((shares[:, None] * np.maximum(1 - costs, 0)).sum())
    ...     costs[:] = -shares[:, None] * (costs < 1)
    ...     return value
    >>> FlipCostObjective(hinge, "hinge").name
    'hinge'
    """

    kernel: Kernel
    name: str

    def bind(self, model: Model, data: Dataset) -> Function:
        """Return the function of theta."""
        data.require_complete(self.name)
        shares = data.weights / data.total_weight

        def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
            current = model.replace(theta)

            def evaluate(block: slice) -> tuple[float, np.ndarray]:
                x = data.states[block].astype(np.float64)
                costs = current.flip_costs(x)
                value = self.kernel(costs, shares[block])
                return value, current.flip_costs_vjp(x, costs)

            value, gradient = 0.0, np.zeros_like(theta)
            for part, slope in map_in_order(evaluate, row_blocks(data.n_states, data.n_variables)):
                value += part
                gradient += slope
            return value, gradient

        return function
