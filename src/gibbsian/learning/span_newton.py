"""Newton re-fits of all active parameters, read from the same dual table.

The dual holds the whole Hessian of the active set, ``H_yz = <Phi_y Phi_z> - <Phi_y> <Phi_z>``, so a Newton
step costs a small linear system and one fresh dual, whatever the number of parameters; moving them one by one
takes a pass for each, many times over when functions are correlated. The same quadratic form tells what a
function is worth once all others are re-fitted, and so which of them do not pay for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import scipy  # linear algebra is loaded when it is used

from gibbsian.backends.parallel import map_in_order
from gibbsian.learning.base import LEARNERS
from gibbsian.learning.span_base import Change, SelectingLearner, SpanPoint, refreshed, rescanned
from gibbsian.learning.span_greedy import greedy_moves, greedy_step
from gibbsian.learning.span_problem import SpanProblem
from gibbsian.settings import declared

# Newton's method squares its error: a step that promises no more than this is the last one.
LAST_STEP = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-7}
# To what the minimised value, log Z - theta . targets, is known.
_ROUNDING = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-6}
_MOST_STEPS = 50
_MOST_HALVINGS = 30
# Functions appended at once: those that gain this share of the best, at most so many or this share of the active set.
_GAIN_SHARE, _LEAST_POOL, _POOL_SHARE = 0.3, 4, 0.5

# What a fit does next.
POOL, MOVE, REFIT, PRUNE, GREEDY, DONE = range(6)


# -- one re-fit -------------------------------------------------------------------------------------------------------
def refit(problem: SpanProblem, point: SpanPoint) -> SpanPoint:
    """Lead all active means to their targets at once; give the start back where that does not lower the cost.

    The dual table is changed in place.
    """
    if point.indices.size == 0:
        return point
    theta, log_partition = _newton(problem, point)
    after = rescanned(problem, point.dual, point.indices, theta, log_partition)
    if after.cost < point.cost:
        return after
    return refreshed(problem, point.dual, point.indices, point.theta)


def _newton(problem: SpanProblem, point: SpanPoint) -> tuple[np.ndarray, float]:
    """Minimise ``log Z - theta . targets`` and the shrinkage by damped Newton steps; return theta and log Z."""
    dual, indices, theta, log_partition = point.dual, point.indices, point.theta, point.log_partition
    targets = problem.targets(indices)

    def value(theta: np.ndarray, log_partition: float) -> float:
        return log_partition - float(theta @ targets) + problem.shrinks(indices, theta)

    for _ in range(_MOST_STEPS):
        direction, signs, slope = _step(problem, dual, indices, theta)
        highest = value(theta, log_partition) + _ROUNDING[dual.dtype]
        for halving in range(_MOST_HALVINGS):
            share = 0.5**halving
            trial = _moved(problem, theta, share * direction, signs)
            trial_partition = problem.refresh(dual, indices, trial)
            if value(trial, trial_partition) <= highest - 1e-4 * share * slope:
                theta, log_partition = trial, trial_partition
                break
        else:  # rounding allows no lower value
            return theta, problem.refresh(dual, indices, theta)
        if slope <= LAST_STEP[dual.dtype]:
            break
    return theta, log_partition


def _step(problem: SpanProblem, dual: np.ndarray, indices: np.ndarray, theta: np.ndarray) -> tuple:
    """Return Newton's direction, the signs that L1 allows parameters to have, and what the step promises."""
    l2 = problem.l2_of(indices)
    gradient = dual[indices].astype(np.float64) - problem.targets(indices) + l2 * theta
    signs, gradient = _with_l1(theta, gradient, problem.shrinkage.l1)
    direction = _solve(hessian(problem, dual, indices) + np.diag(l2), gradient, signs != 0)
    return direction, signs, float(gradient @ direction)


def _moved(problem: SpanProblem, theta: np.ndarray, change: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Return the parameters after a step; those that would change their sign under L1 stop at zero."""
    after = theta - change
    if problem.shrinkage.l1 > 0:
        after[after * signs < 0] = 0.0
    return after


def _with_l1(theta: np.ndarray, gradient: np.ndarray, l1: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the signs that parameters may have in a step, 0 for those that L1 holds at zero, and the gradient there.

    The absolute value is linear among parameters of these signs (Andrew and Gao 2007).
    """
    if l1 == 0:
        return np.ones(theta.size), gradient
    signs = np.where(theta != 0, np.sign(theta), -np.sign(gradient) * (np.abs(gradient) > l1))
    return signs, np.where(signs != 0, gradient + l1 * signs, 0.0)


def hessian(problem: SpanProblem, dual: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the covariance of the active functions in the model."""
    means = dual[indices].astype(np.float64)
    return problem.pair_expectations(dual, indices) - np.outer(means, means)


def _solve(matrix: np.ndarray, right: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
    """Solve a linear system whose matrix is positive definite up to rounding, on one thread: it is small.

    Unknowns that are not `free` are 0.
    """
    if free is not None and not free.all():
        solution = np.zeros_like(right)
        if free.any():
            solution[free] = _solve(matrix[np.ix_(free, free)], right[free])
        return solution
    (solution,) = map_in_order(lambda system: _solve_here(*system), [(matrix, right)])
    return solution


def _solve_here(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    ridge = 0.0
    while True:
        try:
            return scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix + ridge * np.eye(len(matrix))), right)
        except np.linalg.LinAlgError:
            ridge = max(10.0 * ridge, 1e-12)


# -- functions that do not pay ----------------------------------------------------------------------------------------
def prune(problem: SpanProblem, point: SpanPoint) -> SpanPoint:
    """Remove functions whose penalty is more than they are worth when all others are re-fitted; only if the cost falls.

    Expects a point that was re-fitted. First all are removed that the quadratic form names; should that
    not lower the cost, only the first of them.
    """
    named, _ = worthless(problem, point)
    dual = point.dual
    for places in (named, named[:1]) if len(named) > 1 else (named,):
        if not places:
            return point
        indices, theta = np.delete(point.indices, places), np.delete(point.theta, places)
        after = refit(problem, refreshed(problem, dual, indices, theta))
        if after.cost < point.cost:
            return after
    return refreshed(problem, dual, point.indices, point.theta)


def worthless(problem: SpanProblem, point: SpanPoint) -> tuple[list[int], np.ndarray]:
    """Return the places of functions to remove and the parameters without them.

    The least useful comes first, and each is judged with those before it gone.

    Without y, and the others re-fitted, divergence and shrinkage grow by ``theta_y^2 / (2 C_yy)`` to second
    order, C the inverse Hessian; removing it changes the other parameters by ``-theta_y C_y / C_yy`` and C by ``-C_y
    C_y' / C_yy``.
    """
    n_active = point.indices.size
    if n_active == 0:
        return [], point.theta
    curvature = hessian(problem, point.dual, point.indices) + np.diag(problem.l2_of(point.indices))
    covariance = _solve(curvature, np.eye(n_active))
    theta, penalties = point.theta.copy(), problem.penalties(point.indices)
    left, named = np.ones(n_active, bool), []
    while left.any():
        variances = np.where(left, np.diag(covariance), 1.0)
        surplus = np.where(left, 0.5 * theta**2 / variances - penalties, np.inf)
        worst = int(np.argmin(surplus))
        if surplus[worst] >= 0:
            break
        named.append(worst)
        column = covariance[:, worst] / covariance[worst, worst]
        theta -= theta[worst] * column
        covariance -= np.outer(column, covariance[worst])
        left[worst] = False
    return named, theta


# -- functions that are appended together -----------------------------------------------------------------------------
def pooled(problem: SpanProblem, point: SpanPoint, chosen: np.ndarray) -> SpanPoint:
    """Append functions, take a Newton step of all parameters, and drop those that do not pay, with one fresh dual."""
    indices, theta = np.append(point.indices, chosen), np.append(point.theta, np.zeros(chosen.size))
    direction, signs, _ = _step(problem, point.dual, indices, theta)
    theta = _moved(problem, theta, direction, signs)
    named, theta = worthless(problem, replace(point, indices=indices, theta=theta))
    return refreshed(problem, point.dual, np.delete(indices, named), np.delete(theta, named))


# -- the algorithm ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class NewtonProgress:
    """A fit between two steps.

    Parameters
    ----------
    point : SpanPoint
        Where the present path stands.
    task : int
        What comes next.
    path : int
        0: functions are pooled; 1: greedy moves from nothing, and what follows them.
    changed : bool
        Whether functions changed since the last re-fit.
    best_indices, best_theta, best_cost
        The end of the first path, until both are merged.
    """

    point: SpanPoint
    task: int
    path: int
    changed: bool = True
    best_indices: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    best_theta: np.ndarray = field(default_factory=lambda: np.empty(0))
    best_cost: float = np.inf

    def best(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the functions and parameters of lowest cost so far: the first path may have ended lower."""
        if self.best_cost < self.point.cost:
            return self.best_indices, self.best_theta
        return self.point.best()

    def in_table(self, table: np.ndarray) -> Self:
        """Return the same with its dual copied into a table."""
        return replace(self, point=self.point.in_table(table))


Task = tuple[Change | None, NewtonProgress]


@LEARNERS.register("span-newton", models=("full-span",))
@declared(frozen=True)
class SpanNewton(SelectingLearner):
    """Two paths with Newton steps, merged where the lower one ends: never a higher cost than `SpanGreedy`.

    Each round of the first appends all functions that gain nearly as much as the best of them, takes a Newton step of
    all parameters, and removes functions that do not pay. Functions are so judged when the parameters of the others are
    nearly right, which usually ends lower than one move at a time, but not always: so the second path takes greedy
    moves from nothing to their end. The lower of both is given the functions of the other, and goes on with rounds,
    re-fits and moves until nothing gains.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[x, y, x ^ y] for x in (0, 1) for y in (0, 1)] * 25
    >>> model = gb.FullSpanFamily.model({}, gb.Variables.binary(3))
    >>> gb.learning.run(gb.learning.SpanNewton(), model, gb.Dataset.read(rows)).model.family.scopes
    ((0, 1, 2),)
    """

    def fresh(self, problem: SpanProblem, point: SpanPoint) -> NewtonProgress:
        """Return the progress that starts from nothing, with functions appended together."""
        return NewtonProgress(point, POOL, 0)

    def begin(self, problem: SpanProblem, point: SpanPoint, once: bool = False) -> NewtonProgress:
        """Return the progress that starts at a point, with a re-fit."""
        return NewtonProgress(point, REFIT, int(once))

    def is_done(self, problem: SpanProblem, inner: NewtonProgress) -> bool:
        """Whether both paths have ended."""
        return inner.task == DONE

    def advance(self, problem: SpanProblem, inner: NewtonProgress) -> tuple[NewtonProgress, Change]:
        """Take one step of the present task, or pass on to the next task that has something to do."""
        while inner.task != DONE:
            before = inner.point.cost
            change, inner = _TASKS[inner.task](self, problem, inner)
            if change is not None:
                return inner, change._replace(gain=before - inner.point.cost)
        return inner, Change("stop")

    def lowered(self, problem: SpanProblem, point: SpanPoint) -> SpanPoint:
        """Take greedy moves while there are some, and re-fit all parameters."""
        return refit(problem, greedy_moves(problem, point, self.tol))

    def _pool(self, problem: SpanProblem, inner: NewtonProgress) -> Task:
        """Append functions together while that gains more than the best of them alone."""
        point = inner.point
        if point.append_index >= 0 and point.append_gain >= self.tol:
            floor = max(self.tol, _GAIN_SHARE * point.append_gain)
            most = max(_LEAST_POOL, int(_POOL_SHARE * point.indices.size))
            after = pooled(problem, point, problem.candidates(point.dual, point.indices, floor)[:most])
            if point.cost - after.cost >= point.append_gain:
                return Change("pool"), replace(inner, point=after, changed=True)
            inner = replace(inner, point=refreshed(problem, point.dual, point.indices, point.theta))
        elif inner.path == 0:
            return _second_path(problem, inner)
        return None, replace(inner, task=REFIT if inner.changed else MOVE)

    def _move(self, problem: SpanProblem, inner: NewtonProgress) -> Task:
        """Take one greedy move, where rounds find nothing; without any, the path has ended."""
        point, change = greedy_step(problem, inner.point, self.tol)
        if change.kind != "stop":
            return change, replace(inner, point=point, task=POOL, changed=True)
        return _second_path(problem, inner) if inner.path == 0 else (Change("keep"), replace(inner, task=DONE))

    def _refit(self, problem: SpanProblem, inner: NewtonProgress) -> Task:
        after = refit(problem, inner.point)
        change = Change("refit") if after.cost < inner.point.cost else None
        return change, replace(inner, point=after, task=PRUNE, changed=False)

    def _prune(self, problem: SpanProblem, inner: NewtonProgress) -> Task:
        after = prune(problem, inner.point)
        change = Change("prune") if after.indices.size < inner.point.indices.size else None
        return change, replace(inner, point=after, task=POOL)

    def _greedy(self, problem: SpanProblem, inner: NewtonProgress) -> Task:
        """Take greedy moves to their end; then go on where the cost is lower, with the functions of the other path."""
        point, change = greedy_step(problem, inner.point, self.tol)
        if change.kind != "stop":
            return change, replace(inner, point=point)
        others, end = inner.best_indices, point.cost
        if inner.best_cost < end:
            others = point.indices
            point = refreshed(problem, point.dual, inner.best_indices, inner.best_theta)
        others = np.setdiff1d(others, point.indices)
        if others.size:
            after = pooled(problem, point, others)
            lower = after.cost < point.cost
            point = after if lower else refreshed(problem, point.dual, point.indices, point.theta)
        return Change("merge") if point.cost < end else None, NewtonProgress(point, POOL, 1)


_TASKS = {
    POOL: SpanNewton._pool,
    MOVE: SpanNewton._move,
    REFIT: SpanNewton._refit,
    PRUNE: SpanNewton._prune,
    GREEDY: SpanNewton._greedy,
}


def _second_path(problem: SpanProblem, inner: NewtonProgress) -> Task:
    """Remember the end of the first path and start the second."""
    point = inner.point
    again = refreshed(problem, point.dual, np.empty(0, np.int64), np.empty(0))
    return Change("restart"), NewtonProgress(again, GREEDY, 1, True, point.indices, point.theta, point.cost)
