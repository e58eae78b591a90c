"""Algorithms 1 to 3 of TA22: append, adjust or remove one parameter at a time, always the move that gains most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsian.backends.numba.span import LARGEST_DUAL, best_active_move
from gibbsian.learning.base import LEARNERS
from gibbsian.learning.span_base import Change, SelectingLearner, SpanPoint, refreshed
from gibbsian.learning.span_problem import SpanProblem
from gibbsian.settings import declared

# Moves after which the dual is transformed afresh, long before rounding errors matter.
REFRESH_EVERY = {np.dtype(np.float64): 1000, np.dtype(np.float32): 100}


class Move(NamedTuple):
    """A candidate of Algorithm 2: ``append``, ``adjust`` or ``remove`` a function, the gain, the dual it leads to."""

    kind: str
    function: int
    gain: float
    target: float


@LEARNERS.register("span-greedy", models=("full-span",))
@declared(frozen=True)
class SpanGreedy(SelectingLearner):
    """TA22's learning algorithm: one function at a time, always the move that gains most.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[x, y, x ^ y] for x in (0, 1) for y in (0, 1)] * 25
    >>> model = gb.FullSpanFamily.model({}, gb.Variables.binary(3))
    >>> gb.learning.run(gb.learning.SpanGreedy(), model, gb.Dataset.read(rows)).model.family.scopes
    ((0, 1, 2),)
    """

    def begin(self, problem: SpanProblem, point: SpanPoint, once: bool = False) -> SpanPoint:
        """Return the point itself: there is nothing else to keep."""
        return point

    def advance(self, problem: SpanProblem, inner: SpanPoint) -> tuple[SpanPoint, Change]:
        """Take the best move, or none and say ``stop``."""
        return greedy_step(problem, inner, self.tol)

    def is_done(self, problem: SpanProblem, inner: SpanPoint) -> bool:
        """Whether no move gains enough; that no append does is known without a look at the others."""
        can_append = inner.append_index >= 0 and inner.append_gain >= self.tol
        return not can_append and _worthwhile(problem, inner, self.tol) is None

    def lowered(self, problem: SpanProblem, point: SpanPoint) -> SpanPoint:
        """Take greedy moves while there are some."""
        return greedy_moves(problem, point, self.tol)


def greedy_step(problem: SpanProblem, point: SpanPoint, tol: float) -> tuple[SpanPoint, Change]:
    """Take the best move where it gains enough, or none and say ``stop``."""
    move = _worthwhile(problem, point, tol)
    if move is None:
        return point, Change("stop")
    after = apply_move(problem, point, move)
    return after, Change(move.kind, move.function, point.cost - after.cost)


def greedy_moves(problem: SpanProblem, point: SpanPoint, tol: float) -> SpanPoint:
    """Return where the moves from a point end."""
    while (move := _worthwhile(problem, point, tol)) is not None:
        point = apply_move(problem, point, move)
    return point


def _worthwhile(problem: SpanProblem, point: SpanPoint, tol: float) -> Move | None:
    move = best_move(problem, point)
    return None if move is None or move.gain < tol else move


def best_move(problem: SpanProblem, point: SpanPoint) -> Move | None:
    """Return the candidate that lowers the cost most (Algorithm 2); among equal ones that of the smallest index."""
    order = np.argsort(point.indices)
    active = point.indices[order]
    gain, position, removes, target = best_active_move(
        point.dual[active].astype(np.float64),
        problem.data_dual[active].astype(np.float64),
        point.theta[order],
        problem.penalties(active),
        problem.limit,
        float(problem.shrinkage.l1),
        problem.l2_of(active),
    )
    appended = point.append_index
    appends_better = position < 0 or (-point.append_gain, appended) < (-gain, active[position])
    if appended >= 0 and appends_better:
        return Move("append", appended, point.append_gain, problem.append_target(point.dual, appended))
    if position < 0:
        return None
    return Move("remove" if removes else "adjust", int(active[position]), gain, target)


def apply_move(problem: SpanProblem, point: SpanPoint, move: Move) -> SpanPoint:
    """Change one parameter and the dual with it (Algorithm 3, on the dual instead of on the probabilities)."""
    dual = point.dual
    now = min(max(float(dual[move.function]), -LARGEST_DUAL), LARGEST_DUAL)
    target = min(max(move.target, -LARGEST_DUAL), LARGEST_DUAL)
    indices, theta = _changed(point, move, np.arctanh(target) - np.arctanh(now))
    due = point.n_moves + 1 >= REFRESH_EVERY[dual.dtype]
    if due or not problem.can_update(move.function):
        return refreshed(problem, dual, indices, theta)
    gain, index = problem.move(dual, indices, move.function, target)
    # Z grows by cosh(delta) + dual sinh(delta), which is the ratio of the standard deviations of Phi_z
    growth = 0.5 * (np.log1p(now) + np.log1p(-now) - np.log1p(target) - np.log1p(-target))
    log_partition = point.log_partition + float(growth)
    return SpanPoint(indices, theta, dual, log_partition, point.cost - move.gain, gain, index, point.n_moves + 1)


def _changed(point: SpanPoint, move: Move, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the active functions and their parameters after a move."""
    if move.kind == "append":
        return np.append(point.indices, move.function), np.append(point.theta, delta)
    place = int(np.flatnonzero(point.indices == move.function)[0])
    if move.kind == "remove":
        return np.delete(point.indices, place), np.delete(point.theta, place)
    theta = point.theta.copy()
    theta[place] += delta
    return point.indices, theta
