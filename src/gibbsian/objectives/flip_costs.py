"""Objectives that see a model only through its flip costs.

For a loss ``phi`` of one flip cost, the objective is ``sum_m share_m sum_i phi(d[m, i])`` with
``d[m, i] = log P(x_m) - log P(x_m with variable i flipped)``. The partition function cancels in d, so each costs
two products with the data. A new one is a file that gives `phi` and its derivative as a kernel.

Variables with more than two values have a column of costs for every value (``model.flip_columns``), and the loss of a
variable is a function of all of them: a second, "grouped" kernel, which for two values is the first.

Any model with `flip_costs` and `flip_costs_vjp` will do. More verbs are used where a model offers them, because
they are faster: ``flip_loss(x, shares, kernel)`` joins the two around the kernel, ``local_states(n_states)`` with
``local_flip_loss(local, kernel)`` go through distinct neighbourhoods instead of rows (see `PairwiseModel`), and
``whole_flip_loss(x, shares, kernel)`` takes all rows at once and deals its work out to threads (see `PottsModel`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsian.backends.parallel import map_in_order
from gibbsian.blocks import row_blocks
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.models import Model
from gibbsian.objectives.base import Function

Kernel = Callable[[np.ndarray, np.ndarray], float]
GroupedKernel = Callable[[np.ndarray, np.ndarray, np.ndarray], float]
AnyKernel = Kernel | GroupedKernel
LeftOut = Callable[[Dataset], np.ndarray]


@dataclass(frozen=True)
class FlipCostObjective:
    """A sum of losses over flip costs.

    Parameters
    ----------
    kernel : callable
        ``kernel(costs, shares)`` returns ``sum_m shares[m] sum_i phi(costs[m, i])`` and overwrites `costs`
        with the derivatives ``shares[m] phi'(costs[m, i])``. The costs may lie in memory in either order.
    name : str
        What messages call it.
    left_out : callable, optional
        ``left_out(data)`` says which flips do not count, as a bool array with the columns of the flip costs.
    grouped : callable, optional
        The same for variables with several values: ``grouped(costs, shares, columns)``, where variable i has the
        columns from ``columns[i]`` to ``columns[i + 1]``. Without it the objective takes two-valued variables only.

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

    kernel: Kernel = field(repr=False)  # a function's repr is another in every process, and the name tells
    name: str
    left_out: LeftOut | None = field(default=None, repr=False)
    grouped: GroupedKernel | None = field(default=None, repr=False)

    def bind(self, model: Model, data: Dataset) -> Function:
        """Return the function of theta."""
        data.require_complete(self.name)
        shares = data.weights / data.total_weight
        kernel = self._kernel_for(model)
        if self.left_out is not None:
            return over_rows(kernel, model, data.states, shares, self.left_out(data))
        if hasattr(model, "whole_flip_loss"):
            return lambda theta: model.replace(theta).whole_flip_loss(data.states, shares, kernel)
        local = _count_local_states(model, data.states, shares)
        if local is not None:
            return lambda theta: model.replace(theta).local_flip_loss(local, kernel)  # type: ignore[attr-defined]
        return over_rows(kernel, model, data.states, shares)

    def _kernel_for(self, model: Model) -> AnyKernel:
        if model.flip_columns is None:
            return self.kernel
        if self.grouped is None:
            raise ArgumentError(f"{self.name} is defined for two-valued variables only, and this model has others")
        return self.grouped


def _count_local_states(model: Model, states: np.ndarray, shares: np.ndarray) -> Any:
    """Return the model's table of local states, filled, or None where it has none or would not gain by it."""
    offer = getattr(model, "local_states", None)
    local = None if offer is None else offer(len(states))
    if local is not None:
        for _ in map_in_order(lambda piece: local.count(states, shares, piece), local.pieces()):
            pass
    return local


def over_rows(
    kernel: AnyKernel, model: Model, states: np.ndarray, shares: np.ndarray, left_out: np.ndarray | None = None
) -> Function:
    """Return the function of theta that goes through the rows, block after block.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.backends.numba.flip_losses import half_exponential
    >>> from gibbsian.objectives.flip_costs import over_rows
    >>> model, x = gb.PairwiseModel.zeros(gb.graphs.complete(2)), np.array([[1, 1], [1, -1]], dtype=np.int8)
    >>> value, gradient = over_rows(half_exponential, model, x, np.array([0.5, 0.5]))(np.zeros(3))
    >>> value, gradient.tolist()
    (2.0, [-1.0, 0.0, 0.0])
    """
    n_columns = states.shape[1] if model.flip_columns is None else int(model.flip_columns[-1])

    def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
        current = model.replace(theta)

        def evaluate(block: slice) -> tuple[float, np.ndarray]:
            if left_out is None:
                return flip_loss(current, states[block], shares[block], kernel)
            return _separate_flip_loss(current, states[block], shares[block], kernel, left_out[block])

        value, gradient = 0.0, np.zeros_like(theta)
        for part, slope in map_in_order(evaluate, row_blocks(len(states), n_columns)):
            value += part
            gradient += slope
        return value, gradient

    return function


def flip_loss(model: Model, x: np.ndarray, shares: np.ndarray, kernel: AnyKernel) -> tuple[float, np.ndarray]:
    """Return the loss of some states' flip costs and its gradient, by the model's own road where it has one.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.backends.numba.flip_losses import half_exponential
    >>> from gibbsian.objectives.flip_costs import flip_loss
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> value, gradient = flip_loss(model, np.array([[1, 1], [1, -1]]), np.array([0.5, 0.5]), half_exponential)
    >>> value, gradient.tolist()
    (2.0, [-1.0, 0.0, 0.0])
    """
    own = getattr(model, "flip_loss", None)
    return own(x, shares, kernel) if own is not None else _separate_flip_loss(model, x, shares, kernel)


def _separate_flip_loss(
    model: Model, x: np.ndarray, shares: np.ndarray, kernel: AnyKernel, left_out: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """Costs, losses, gradient in turn; a flip left out is one of infinite cost."""
    costs = model.flip_costs(x)
    if left_out is not None:
        costs[left_out] = np.inf
    groups = () if model.flip_columns is None else (model.flip_columns,)
    value = kernel(costs, shares, *groups)
    return value, model.flip_costs_vjp(x, costs)
