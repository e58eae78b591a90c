"""L1 instead of description lengths (TA22 section 5): a convex cost, and a minimum that can be certified.

At the minimum of ``KL(p_d || p_theta) + l1 sum_y |theta_y|`` the means of functions in use differ from the data's by
just ``l1``, towards zero parameters, and those of all other functions by no more. A function that breaks this by v
lowers the cost by at least ``v^2 / 2`` along its own axis, because a mean moves no faster than its parameter (TA22 eq.
2.12): where no function gains as much as ``tol^2 / 2``, the conditions hold to `tol`, for all functions at once.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.learning.base import LEARNERS
from gibbsian.learning.span_base import Change, SpanLearner, SpanPoint, rescanned
from gibbsian.learning.span_greedy import Move, apply_move
from gibbsian.learning.span_newton import refit
from gibbsian.learning.span_problem import SpanProblem
from gibbsian.models.base import Model
from gibbsian.models.families.full_span import FullSpanFamily
from gibbsian.settings import declared, number

# Functions appended between two re-fits: so many, or this share of those in use.
_LEAST_BATCH, _BATCH_SHARE = 4, 0.25


@LEARNERS.register("span-l1", models=("full-span",))
@declared(frozen=True)
class SpanL1(SpanLearner):
    """All functions under L1: a step appends those that gain most and re-fits all in use; description is free.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[x, y, x ^ y] for x in (0, 1) for y in (0, 1)] * 25
    >>> model = gb.FullSpanFamily.model({}, gb.Variables.binary(3))
    >>> model = gb.learning.run(gb.learning.SpanL1(l1=0.1), model, gb.Dataset.read(rows)).model
    >>> model.family.scopes, model.family.dual(model.theta).values[model.family.functions].round(2)
    (((0, 1, 2),), array([0.89]))
    """

    l1: float = number(0.01, "Strength of the absolute value of parameters, above 0.", least=0)  # type: ignore[misc]
    tol: float = number(1e-5, "To what a mean may differ from the data's by more than `l1`.", least=1e-6)

    why_done: ClassVar[str] = "no mean differs from the data's by `l1` and {:g} more"

    def require(self, model: Model[FullSpanFamily]) -> None:
        """Refuse a fit that nothing keeps from the noise."""
        super().require(model)
        if not self.l1 > 0:
            raise ArgumentError("must be above 0 with `learner='span-l1'`", argument="l1", value=self.l1)

    def begin(self, problem: SpanProblem, point: SpanPoint, once: bool = False) -> SpanPoint:
        """Return the minimum over the functions of a point."""
        return _minimum(problem, point)

    def advance(self, problem: SpanProblem, inner: SpanPoint) -> tuple[SpanPoint, Change]:
        """Append the best functions, one by one, and re-fit all; or do nothing and say ``stop``."""
        if self.is_done(problem, inner):
            return inner, Change("stop")
        point = inner
        for _ in range(max(_LEAST_BATCH, int(_BATCH_SHARE * inner.indices.size))):
            target = problem.append_target(point.dual, point.append_index)
            point = apply_move(problem, point, Move("append", point.append_index, point.append_gain, target))
            if self.is_done(problem, point):
                break
        after = _minimum(problem, point)
        return after, Change("append", -1, inner.cost - after.cost)

    def is_done(self, problem: SpanProblem, inner: SpanPoint) -> bool:
        """Whether no function that is not in use breaks its condition by more than the tolerance."""
        return inner.append_index < 0 or inner.append_gain < 0.5 * self.tol**2

    def lowered(self, problem: SpanProblem, point: SpanPoint) -> SpanPoint:
        """Return the minimum over all functions."""
        inner = self.begin(problem, point)
        while not self.is_done(problem, inner):
            inner, _ = self.advance(problem, inner)
        return inner


def _minimum(problem: SpanProblem, point: SpanPoint) -> SpanPoint:
    """Re-fit the functions in use; those whose parameters end at zero are no longer."""
    after = refit(problem, point)
    used = after.theta != 0
    if used.all():
        return after
    return rescanned(problem, after.dual, after.indices[used], np.asarray(after.theta[used]), after.log_partition)
