"""Objectives that see a model only through its flip costs.

For a loss ``phi`` of one flip cost, the objective is ``sum_m share_m sum_i phi(d[m, i])`` with
``d[m, i] = log P(x_m) - log P(x_m with variable i flipped)``. The partition function cancels in d, so each costs
two products with the data. A new one is a file that gives `phi` and its derivative as a kernel.

Variables with more than two values have a column of costs for every value (``model.flip_columns``), and the loss of a
variable is a function of all of them: a second, "grouped" kernel, which for two values is the first.

Any model with `flip_costs` and `flip_costs_vjp` will do. More methods are used where a model offers them, because
they are faster: ``flip_loss(x, shares, kernel)`` joins the two around the kernel, with rows that ``in_flip_order(x)``
has laid out once for all evaluations, ``local_states(n_states)`` with
``local_flip_loss(local, kernel)`` go through distinct neighbourhoods instead of rows (see `PairwiseModel`), and
``whole_flip_loss(x, shares, kernel)`` takes all rows at once and deals its work out to threads (see `PottsModel`).
``sampled_flip_loss(x, shares, kernel)`` is for large minibatches of dense models, in single precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from gibbsian.backends.device import here, twin
from gibbsian.backends.parallel import map_in_order, sum_in_order
from gibbsian.blocks import row_blocks
from gibbsian.data import Dataset
from gibbsian.domain import Continuum
from gibbsian.errors import ArgumentError
from gibbsian.expectations.clamped import mean_statistics
from gibbsian.models import Model
from gibbsian.objectives.base import Function, Scores
from gibbsian.objectives.curvature import STEP, state_blocks, symmetric_differences
from gibbsian.objectives.preconditioners import Preconditioner, preconditioning

Kernel = Callable[[np.ndarray, np.ndarray], float]
GroupedKernel = Callable[[np.ndarray, np.ndarray, np.ndarray], float]
AnyKernel = Kernel | GroupedKernel

# From so many cells on a minibatch is worth single precision; of fewer the time is not spent on them.
MANY_CELLS = 2**14


class FlipCostObjective:
    """A sum of losses over flip costs; a subclass gives the loss.

    Its ``kernel(costs, shares)`` returns ``sum_m shares[m] sum_i phi(costs[m, i])`` and overwrites `costs` with the
    derivatives ``shares[m] phi'(costs[m, i])``; the costs may lie in memory in either order. Its ``grouped(costs,
    shares, columns)`` does the same for variables with several values, where variable i has the columns from
    ``columns[i]`` to ``columns[i + 1]``; without one the objective takes two-valued variables only.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.objectives import FlipCostObjective
    >>> class Hinge(FlipCostObjective):
    ...     name = "hinge"
    ...     @staticmethod
    ...     def kernel(costs, shares):
    ...         value = float((shares[:, None] * np.maximum(1 - costs, 0)).sum())
    ...         costs[:] = -shares[:, None] * (costs < 1)
    ...         return value
    >>> Hinge().grouped is None
    True
    """

    name: ClassVar[str]
    kernel: ClassVar[Any]
    grouped: ClassVar[Any] = None
    takes_missing: ClassVar[bool] = False
    bounded: ClassVar[bool] = False  # whether the derivative of the loss is, so that single precision holds it
    takes_densities: ClassVar[bool] = False  # whether a column may stand for a node of an integral

    def left_out(self, data: Dataset) -> np.ndarray | None:
        """Return which flips do not count, with the columns of the flip costs; None where all do."""
        return None

    def bind(self, model: Any, data: Dataset) -> Function:
        """Return the function of theta."""
        data.require_complete(self.name)
        return data.bind(partial(self._over, model, self._kernel_for(model)))

    def sampled(self, model: Any, data: Dataset) -> Function:
        """Return the function of theta for a sample of rows, to an accuracy well below the sample's own."""
        offered = hasattr(model, "sampled_flip_loss") and model.is_dense and data.states.size >= MANY_CELLS
        if not (self.bounded and offered and self.left_out(data) is None and twin("products") is None):
            return self.bind(model, data)
        data.require_complete(self.name)
        kernel, shares = self._kernel_for(model), data.weights / data.total_weight
        return lambda theta: model.replace(theta).sampled_flip_loss(data.states, shares, kernel)

    def _over(self, model: Any, kernel: AnyKernel, data: Dataset) -> Function:
        """Return the function of theta for rows in memory."""
        shares = data.weights / data.total_weight
        left_out = self.left_out(data)
        on_device = self._on_device(model, data.states, shares, left_out)
        if on_device is not None:
            return on_device
        if left_out is not None:
            return over_rows(kernel, model, data.states, shares, left_out)
        if hasattr(model, "whole_flip_loss"):
            return lambda theta: model.replace(theta).whole_flip_loss(data.states, shares, kernel)
        local = _count_local_states(model, data.states, shares)
        if local is not None:
            return _OverLocalStates(model, local, kernel)
        return over_rows(kernel, model, data.states, shares)

    def _on_device(
        self, model: Any, states: np.ndarray, shares: np.ndarray, left_out: np.ndarray | None
    ) -> Function | None:
        """Return the function with the rows on a device; None on the CPU, or where there is no twin of it."""
        if here() is None or not hasattr(model, "flip_layout"):
            return None
        layout = model.flip_layout(states)
        kernel = self.grouped if layout.one_hot else self.kernel
        if not getattr(kernel, "__module__", "").startswith("gibbsian.backends"):
            return None  # a loss of somebody else's, or none for tables
        if layout.sparse and left_out is None and hasattr(model, "local_states") and model.local_states(len(states)):
            return None  # a pass over the rows counts their neighbourhoods, and nothing there is left to share out
        return twin("products").bound(layout, shares, kernel, left_out)

    def _kernel_for(self, model: Model) -> AnyKernel:
        if model.flip_columns is None:
            return self.kernel
        if isinstance(model.domain, Continuum) and not self.takes_densities:
            raise ArgumentError(
                f"{self.name} compares values, which continuous variables do not have", "use `learner='mple'` or 'mle'"
            )
        if self.grouped is None:
            raise ArgumentError(f"{self.name} is defined for two-valued variables only, and this model has others")
        return self.grouped

    def scores(self, model: Model, data: Dataset, max_seconds: float = 60.0) -> Scores:
        """Yield the gradient of each state's loss."""
        data.require_complete(self.name)
        left_out = self.left_out(data)
        for block in state_blocks(data):
            x = data.states[block]
            slopes = self.slopes(model, model.flip_costs(x), None if left_out is None else left_out[block])
            yield block, model.flip_scores(x, slopes)

    def curvature(self, model: Model, data: Dataset, max_seconds: float = 60.0) -> np.ndarray:
        """Return the Hessian at the model's parameters.

        Flip costs are linear in theta, so it is a weighted sum of products of their slopes; where the model does not
        give these, the gradient is differentiated.
        """
        by_slopes = getattr(model, "flip_curvature", None)
        if by_slopes is None or model.flip_columns is not None:
            function = self.bind(model, data)
            return symmetric_differences(lambda theta: function(theta)[1], model.theta, max_seconds)
        data.require_complete(self.name)
        shares, left_out = data.weights / data.total_weight, self.left_out(data)
        curvature = np.zeros((model.theta.size, model.theta.size))
        for block in state_blocks(data):
            bends = self.bends(model.flip_costs(data.states[block]))
            if left_out is not None:
                bends[left_out[block]] = 0.0
            curvature += by_slopes(data.states[block], bends * shares[block, None])
        return curvature

    def preconditioner(self, model: Model, data: Dataset, mean: np.ndarray, l2: float) -> Preconditioner | None:
        """Return an approximate inverse Hessian at a model of independent columns with these means."""
        known, statistics = preconditioning(model), lambda: mean_statistics(model, data)
        if model.flip_columns is not None:  # in units of its own the loss of many values bends as the likelihood
            return known.preconditioner(mean, statistics, np.ones((2, model.n_variables)), l2)
        ends = model.domain.from_codes(np.repeat([[0], [1]], model.n_variables, axis=1))
        # a flip cost of independent columns follows from the variable's own value, and changes by two with its field
        low, high = -2.0 * self.slopes(model, model.flip_costs(ends))
        rates = (mean - ends[0]) / (ends[1] - ends[0])
        weights = np.array([low + rates * (high - low), (high - low) / 2])
        if (weights[0] <= 0).any():
            return None  # a loss that is flat there, or whose minimum is not the model
        return known.preconditioner(mean, statistics, weights, l2)

    def weights(self, model: Any, data: Dataset) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function of theta for `PairCurvature.renewed`: a pass over the rows costs an evaluation.

        It tells how much each variable's loss weighs, by the slopes of the loss, and the sums of all columns under
        these weights, in units of spins.
        """
        return data.bind(partial(self._weights_over, model))

    def _weights_over(self, model: Any, data: Dataset) -> Callable[[np.ndarray], np.ndarray]:
        shares, n, half = data.weights / data.total_weight, data.n_variables, model.domain.gap / 2

        def weights(theta: np.ndarray) -> np.ndarray:
            current = model.replace(theta)

            def sums(block: slice) -> np.ndarray:
                numbers = np.ascontiguousarray(data.states[block], dtype=np.float64)
                slopes = current.flip_costs(numbers)
                self.kernel(slopes, shares[block])
                return (-2.0 * np.column_stack([slopes.sum(axis=0), slopes.T @ numbers / half])).ravel()

            return sum_in_order(sums, row_blocks(len(shares), n), n * (n + 1)).reshape(n, n + 1)

        return weights

    def bends(self, costs: np.ndarray) -> np.ndarray:
        """Return the second derivative of the loss at each flip cost of two-valued variables."""
        up, down = np.array(costs + STEP, order="C"), np.array(costs - STEP, order="C")
        for shifted in (up, down):
            self.kernel(shifted, np.ones(len(costs)))
        return (up - down) / (2 * STEP)

    def slopes(self, model: Model, costs: np.ndarray, left_out: np.ndarray | None = None) -> np.ndarray:
        """Return the derivative of the loss at each flip cost."""
        slopes = np.array(costs, order="C")
        if left_out is not None:
            slopes[left_out] = np.inf
        groups = () if model.flip_columns is None else (model.flip_columns,)
        self._kernel_for(model)(slopes, np.ones(len(slopes)), *groups)
        return slopes


@dataclass(frozen=True)
class _OverLocalStates:
    """The function of theta over distinct neighbourhoods, which are counted once."""

    model: Any
    local: Any
    kernel: AnyKernel
    keeps_no_rows: ClassVar[bool] = True

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient."""
        return self.model.replace(theta).local_flip_loss(self.local, self.kernel)


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
    """Return the function of theta that goes through the rows, block after block."""
    n_columns = states.shape[1] if model.flip_columns is None else int(model.flip_columns[-1])
    ordered = getattr(model, "in_flip_order", np.asarray) if left_out is None else np.asarray
    blocks = [(block, ordered(states[block])) for block in row_blocks(len(states), n_columns)]

    def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
        current = model.replace(theta)

        def evaluate(rows: tuple[slice, np.ndarray]) -> tuple[float, np.ndarray]:
            block, x = rows
            if left_out is None:
                return flip_loss(current, x, shares[block], kernel)
            return _separate_flip_loss(current, x, shares[block], kernel, left_out[block])

        value, gradient = 0.0, np.zeros_like(theta)
        for part, slope in map_in_order(evaluate, blocks):
            value += part
            gradient += slope
        return value, gradient

    return function


def flip_loss(model: Model, x: np.ndarray, shares: np.ndarray, kernel: AnyKernel) -> tuple[float, np.ndarray]:
    """Return the loss of some states' flip costs and its gradient, by the model's own path where it has one."""
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
