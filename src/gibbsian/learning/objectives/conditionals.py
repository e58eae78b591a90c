"""Objectives that see a model only through its conditionals, in which the partition function cancels.

For a loss ``phi`` of one log-odds, the objective is ``sum_m w_m sum_i phi(d[m, i])`` with
``d[m, i] = log P(x_m) - log P(x_m with variable i changed)``. A new one is a file that gives `phi` and its derivative
as kernels: see `gibbsian.models.conditionals.Loss`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from gibbsian.arrays import Floats, Mask
from gibbsian.backends.device import on_device
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.expectations.clamped import mean_statistics
from gibbsian.learning.objectives.base import Function, Objective, Scores
from gibbsian.learning.preconditioners import Preconditioner, frequencies, preconditioning
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.conditionals import Conditionals, Loss, WeightedRows
from gibbsian.models.conditionals.pairs import DensePairs


@dataclass(frozen=True, eq=False)
class BoundLoss:
    """A loss of bound rows as a function of theta."""

    conditionals: Conditionals
    loss: Loss

    @property
    def keeps_rows(self) -> bool:
        """Whether memory grows with the rows."""
        return self.conditionals.keeps_rows

    @property
    def takes_tensors(self) -> bool:
        """Whether theta may be a tensor on a device."""
        return self.conditionals.takes_tensors

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Return value and gradient."""
        return self.conditionals.evaluate(theta, self.loss)

    def derivative_sums(self, theta: Floats) -> Floats:
        """Return the sums over rows that update a dense preconditioner: see `PairConditionals.derivative_sums`."""
        return self.conditionals.derivative_sums(theta, self.loss)


class ConditionalsObjective(Objective[DiscreteFamily]):
    """A sum of losses over conditionals; a subclass gives the loss.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.conditionals import Loss
    >>> from gibbsian.learning.objectives import ConditionalsObjective
    >>> def hinge(costs, weights):
    ...     value = float((weights[:, None] * np.maximum(1 - costs, 0)).sum())
    ...     costs[:] = -weights[:, None] * (costs < 1)
    ...     return value
    >>> class Hinge(ConditionalsObjective):
    ...     name = "hinge"
    ...     loss = Loss(hinge)
    >>> Hinge().loss.many is None
    True
    """

    loss: ClassVar[Loss]
    has_scores: ClassVar[bool] = True
    has_preconditioner: ClassVar[bool] = True
    bounded: ClassVar[bool] = False  # whether the derivative of the loss is, so that single precision holds it
    takes_densities: ClassVar[bool] = False  # whether a column may stand for a node of an integral

    def masked(self, data: Dataset) -> Mask | None:
        """Return which costs do not count; None where all do."""
        return None

    def bind(self, model: Model[DiscreteFamily], data: Dataset) -> Function:
        """Return the function of theta."""
        data.require_complete(self.name)
        self._check(model)
        return data.bind(partial(self._over, model))

    def sampled(self, model: Model[DiscreteFamily], data: Dataset) -> Function:
        """Return the function of theta for a sample of rows, to an accuracy well below the sample's own."""
        function = self.bind(model, data)
        if self.bounded and isinstance(function, BoundLoss) and isinstance(function.conditionals, DensePairs):
            return replace(function, conditionals=function.conditionals.in_single_precision())
        return function

    def _over(self, model: Model[DiscreteFamily], data: Dataset, by_row: bool = False) -> BoundLoss:
        """Return the function of theta for rows in memory."""
        kernel = self.loss.two if model.variables.two_valued else self.loss.many
        has_twin = getattr(kernel, "__module__", "").startswith("gibbsian.backends")  # else it is somebody else's
        with nullcontext() if has_twin else on_device("cpu"):
            rows = WeightedRows.of(data.states, data.weights, self.masked(data), by_row)
            return BoundLoss(model.family.conditionals(rows), self.loss)

    def _check(self, model: Model[DiscreteFamily]) -> None:
        if model.variables.real and not self.takes_densities:
            raise ArgumentError(
                f"{self.name} compares values, which continuous variables do not have", "use `learner='mple'` or 'mle'"
            )
        if not model.variables.two_valued and self.loss.many is None:
            raise ArgumentError(f"{self.name} is defined for two-valued variables only, and this model has others")

    def scores(self, model: Model[DiscreteFamily], data: Dataset, max_seconds: float = 60.0) -> Scores:
        """Yield the gradient of each state's loss."""
        data.require_complete(self.name)
        return self._over(model, data, by_row=True).conditionals.scores(model.theta, self.loss)

    def curvature(self, model: Model[DiscreteFamily], data: Dataset, max_seconds: float = 60.0) -> Floats:
        """Return the Hessian at the model's parameters."""
        data.require_complete(self.name)
        self._check(model)
        return self._over(model, data, by_row=True).conditionals.curvature(model.theta, self.loss, max_seconds)

    def preconditioner(
        self, model: Model[DiscreteFamily], data: Dataset, mean: Floats, l2: float
    ) -> Preconditioner | None:
        """Return an approximate inverse Hessian at a model of independent columns with these means."""
        family, known, statistics = model.family, preconditioning(model.family), lambda: mean_statistics(model, data)
        if not family.variables.two_valued:  # in units of its own the loss of many values bends as the likelihood
            return known.preconditioner(mean, statistics, np.ones((2, model.n_variables)), l2)
        # a cost of independent columns follows from the variable's own value, and changes by two with its field
        both = np.repeat(np.array([[0], [1]], np.int8), model.n_variables, axis=1)
        ends = family.conditionals(WeightedRows.of(both, by_row=True))
        low, high = -2.0 * self.loss.derivatives(ends.costs(model.theta))
        rates = frequencies(family.variables, mean)[1::2]
        weights = np.array([low + rates * (high - low), (high - low) / 2])
        if (weights[0] <= 0).any():
            return None  # a loss that is flat there, or whose minimum is not the model
        return known.preconditioner(mean, statistics, weights, l2)

    def derivative_sums(self, model: Model[DiscreteFamily], data: Dataset) -> Callable[[Floats], Floats]:
        """Return a function of theta for `PairCurvature.renewed`: a pass over the rows costs an evaluation."""
        return data.bind(partial(self._derivative_sums_over, model))

    def _derivative_sums_over(self, model: Model[DiscreteFamily], data: Dataset) -> Callable[[Floats], Floats]:
        return self._over(model, data, by_row=True).derivative_sums
