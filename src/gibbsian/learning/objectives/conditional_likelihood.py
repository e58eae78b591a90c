"""Conditional likelihood: how well some columns are predicted from the others (YK15)."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask
from gibbsian.backends.numba.flip_losses import logistic
from gibbsian.backends.numba.grouped_losses import softmax
from gibbsian.data import Dataset
from gibbsian.expectations.clamped import EXACT_CLAMPED
from gibbsian.inference.completions import value_indicators
from gibbsian.learning.objectives.base import OBJECTIVES, Function, Objective
from gibbsian.learning.objectives.conditionals import ConditionalsObjective
from gibbsian.models.base import Family, Model
from gibbsian.models.conditionals import Loss
from gibbsian.settings import check, declared, free, number, positional

TARGETS = (
    "The columns to be predicted from the others, by name or number; None are all, and nothing is given. Parameters "
    "that touch no target, nor a hidden unit, change nothing and stay where they are."
)


def target_places(targets: object, data: Dataset) -> Integers:
    """Return the numbers of the target columns."""
    return np.arange(data.n_variables) if targets is None else data.places(targets, "targets")


@OBJECTIVES.register("conditional-likelihood")
@declared(frozen=True)
class ConditionalLikelihood(Objective[Family]):
    """Minus the mean of ``log P(y | x)`` over rows: y are the targets, x the present cells of all other columns.

    It is the log-evidence of the row less that of the row without its targets, so no partition function of the whole is
    needed, and its gradient is the difference of two clamped phases. Hidden units and missing cells are summed out.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.learning.objectives import ConditionalLikelihood, value_and_gradient
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1]])
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> value, gradient = value_and_gradient(ConditionalLikelihood(1), model, data)
    >>> round(value, 6), gradient.round(3).tolist()                # log 2; the bias of the first column does not count
    (0.693147, [0.0, 0.333, -0.333])
    """

    name: ClassVar[str] = "conditional likelihood"
    takes_missing: ClassVar[bool] = True
    joint_targets: ClassVar[bool] = True

    targets: object = positional(kw_only=False, default=free(None, TARGETS, doc="str, int or sequence, optional"))
    max_seconds: float = positional(
        kw_only=False, default=number(10.0, "Refuse when one row is predicted to take longer.", above=0)
    )

    def __post_init__(self) -> None:
        check(self)

    def bind(self, model: Model[Family], data: Dataset) -> Function:
        """Return the function of theta."""
        return data.bind(partial(self._over, model))

    def _over(self, model: Model[Family], data: Dataset) -> Function:
        """Return the function of theta for rows in memory."""
        clamped = EXACT_CLAMPED.of(model.family)(max_seconds=self.max_seconds)
        unseen = data.hide(target_places(self.targets, data))
        with_y, without_y = (clamped.init(model, rows, np.random.default_rng(0)) for rows in (data, unseen))

        def function(theta: Floats) -> tuple[float, Floats]:
            current = model.replace(theta)
            (with_all, _), (free_y, _) = clamped(current, with_y), clamped(current, without_y)
            below, above = (float(each.parts["log_partition"]) for each in (with_all, free_y))
            return above - below, free_y.value - with_all.value

        return function


@OBJECTIVES.register("conditional-pseudolikelihood")
@declared(frozen=True)
class ConditionalPseudolikelihood(ConditionalsObjective):
    """Minus the mean of ``sum_i log P(y_i | all other columns)`` over the targets i only.

    With one target it is the conditional likelihood; with several it needs no sum over their joint values.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.learning.objectives import ConditionalPseudolikelihood, value_and_gradient
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1]])
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> round(value_and_gradient(ConditionalPseudolikelihood([1]), model, data)[0], 6)
    0.693147
    """

    name = "conditional pseudolikelihood"
    loss = Loss(logistic, softmax)
    has_preconditioner: ClassVar[bool] = False  # parameters that touch no target are to stay where they are

    targets: object = positional(kw_only=False, default=free(None, TARGETS, doc="str, int or sequence, optional"))

    def masked(self, data: Dataset) -> Mask | None:
        """Return the costs of columns that are given."""
        if self.targets is None:
            return None
        given = np.ones(data.n_variables, bool)
        given[target_places(self.targets, data)] = False
        variables = data.variables
        if variables.two_valued:
            return np.broadcast_to(given, data.states.shape)
        columns = np.repeat(given, variables.sizes)
        return columns & (value_indicators(variables, data.states) == 0)  # the present value is no flip
