"""Newton re-fits of all active parameters, read from the same dual table.

The dual holds the whole Hessian of the active set, ``H_yz = <Phi_y Phi_z> - <Phi_y> <Phi_z>``, so a Newton
step costs a small linear system and one fresh dual, whatever the number of parameters; moving them one by one
takes a pass for each, many times over when functions are correlated. The same quadratic form tells what a
function is worth once all others are re-fitted, and so which of them do not pay for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from gibbsian.backends.parallel import map_in_order
from gibbsian.full_span.greedy import (
    Greedy,
    Move,
    SpanProgress,
    apply_move,
    check_epsilon,
    refreshed,
    rescanned,
    uniform_start,
)
from gibbsian.full_span.problem import SpanProblem
from gibbsian.full_span.trace import SpanStep
from gibbsian.learners import LearnerState

# Newton's method squares its error: a step that promises no more than this is the last one.
LAST_STEP = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-7}
# A re-fit on the way, of parameters that will move again, ends earlier.
_LAST_STEP_ON_THE_WAY = 1e-4
# To what the minimised value, log Z - theta . targets, is known.
_ROUNDING = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-6}
_MOST_STEPS = 50
_MOST_HALVINGS = 30
# Appends between two re-fits: at least so many, and this share of the active set.
_LEAST_BATCH, _BATCH_SHARE = 4, 0.5

# What a fit does next.
MOVES, APPENDS, REFIT, PRUNE, DONE = range(5)


# -- one re-fit -------------------------------------------------------------------------------------------------------
def refit(problem: SpanProblem, progress: SpanProgress, last_step: float = 0.0) -> SpanProgress:
    """Lead all active means to their targets at once; give the start back where that does not lower the cost.

    Parameters
    ----------
    problem, progress
        The fit as it is; the dual table is changed in place.
    last_step : float
        Stop after a step that promises no more; never below what the tables resolve.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanProblem
    >>> from gibbsian.full_span.greedy import refreshed
    >>> from gibbsian.full_span.newton import refit
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> start = refreshed(problem, np.empty(4), np.array([1, 3]), np.zeros(2))
    >>> refit(problem, start).dual[[1, 3]].round(6), problem.data_dual[[1, 3]]
    (array([0.  , 0.75]), array([0.  , 0.75]))
    """
    if progress.indices.size == 0:
        return progress
    theta, log_partition = _newton(problem, progress, max(last_step, LAST_STEP[progress.dual.dtype]))
    after = rescanned(problem, progress.dual, progress.indices, theta, log_partition)
    if after.cost < progress.cost:
        return after
    return refreshed(problem, progress.dual, progress.indices, progress.theta)


def _newton(problem: SpanProblem, progress: SpanProgress, last_step: float) -> tuple[np.ndarray, float]:
    """Minimise ``log Z - theta . targets`` and the shrinkage by damped Newton steps; return theta and log Z."""
    dual, indices, theta, log_partition = progress.dual, progress.indices, progress.theta, progress.log_partition
    targets, l1, l2 = problem.targets(indices), problem.shrinkage.l1, problem.l2_of(indices)

    def value(theta: np.ndarray, log_partition: float) -> float:
        return log_partition - float(theta @ targets) + problem.shrinks(indices, theta)

    for _ in range(_MOST_STEPS):
        gradient = dual[indices].astype(np.float64) - targets + l2 * theta
        signs, gradient = _with_l1(theta, gradient, l1)
        direction = _solve(hessian(problem, dual, indices) + np.diag(l2), gradient, signs != 0)
        slope = float(gradient @ direction)
        highest = value(theta, log_partition) + _ROUNDING[dual.dtype]
        for halving in range(_MOST_HALVINGS):
            share = 0.5**halving
            trial = theta - share * direction
            if l1 > 0:
                trial[trial * signs < 0] = 0.0
            trial_partition = problem.refresh(dual, indices, trial)
            if value(trial, trial_partition) <= highest - 1e-4 * share * slope:
                theta, log_partition = trial, trial_partition
                break
        else:  # rounding allows no lower value
            return theta, problem.refresh(dual, indices, theta)
        if slope <= last_step:
            break
    return theta, log_partition


def _with_l1(theta: np.ndarray, gradient: np.ndarray, l1: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the signs that parameters may have in a step, 0 for those that L1 holds at zero, and the gradient there.

    The absolute value is linear among parameters of these signs (Andrew and Gao 2007).
    """
    if l1 == 0:
        return np.ones(theta.size), gradient
    signs = np.where(theta != 0, np.sign(theta), -np.sign(gradient) * (np.abs(gradient) > l1))
    return signs, np.where(signs != 0, gradient + l1 * signs, 0.0)


def hessian(problem: SpanProblem, dual: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the covariance of the active functions in the model.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanProblem
    >>> from gibbsian.full_span.newton import hessian
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> hessian(problem, np.array([1.0, 0.5, 0.2, 0.1]), np.array([1, 2]))
    array([[0.75, 0.  ],
           [0.  , 0.96]])
    """
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
            return cho_solve(cho_factor(matrix + ridge * np.eye(len(matrix))), right)
        except LinAlgError:
            ridge = max(10.0 * ridge, 1e-12)


# -- functions that do not pay ----------------------------------------------------------------------------------------
def prune(problem: SpanProblem, progress: SpanProgress) -> SpanProgress:
    """Remove functions whose penalty is more than they are worth when all others are re-fitted; only if the cost falls.

    Expects a progress that was re-fitted. First all are removed that the quadratic form names; should that
    not lower the cost, only the first of them.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanProblem
    >>> from gibbsian.full_span.greedy import refreshed
    >>> from gibbsian.full_span.newton import prune, refit
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> start = refit(problem, refreshed(problem, np.empty(4), np.array([1, 3]), np.zeros(2)))
    >>> prune(problem, start).indices
    array([3])
    """
    named = worthless(problem, progress)
    dual = progress.dual
    for places in (named, named[:1]) if len(named) > 1 else (named,):
        if not places:
            return progress
        indices, theta = np.delete(progress.indices, places), np.delete(progress.theta, places)
        after = refit(problem, refreshed(problem, dual, indices, theta))
        if after.cost < progress.cost:
            return after
    return refreshed(problem, dual, progress.indices, progress.theta)


def worthless(problem: SpanProblem, progress: SpanProgress) -> list[int]:
    """Return the places of functions to remove, least useful first, each judged with those before it gone.

    Without y, and the others re-fitted, divergence and shrinkage grow by ``theta_y^2 / (2 C_yy)`` to second
    order, C the inverse Hessian; removing it changes the other parameters by ``-theta_y C_y / C_yy`` and C by ``-C_y
    C_y' / C_yy``.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanProblem
    >>> from gibbsian.full_span.greedy import refreshed
    >>> from gibbsian.full_span.newton import worthless
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> worthless(problem, refreshed(problem, np.empty(4), np.array([1, 3]), np.array([0.01, 1.0])))
    [0]
    """
    n_active = progress.indices.size
    if n_active == 0:
        return []
    curvature = hessian(problem, progress.dual, progress.indices) + np.diag(problem.l2_of(progress.indices))
    covariance = _solve(curvature, np.eye(n_active))
    theta, penalties = progress.theta.copy(), problem.penalties(progress.indices)
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
    return named


# -- the algorithm ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class NewtonProgress:
    """A fit between two steps.

    Parameters
    ----------
    span : SpanProgress
        The road that is being gone.
    task : int
        What comes next.
    road : int
        0: greedy first; 1: re-fits from the start; 2: the better of both is in `span`.
    n_changes : int
        Changes of the active set since the last re-fit.
    best_indices, best_theta, best_cost
        The end of the first road.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Newton, SpanProblem
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> Newton().init(problem).progress.road
    0
    """

    span: SpanProgress
    task: int
    road: int
    n_changes: int
    best_indices: np.ndarray
    best_theta: np.ndarray
    best_cost: float

    @property
    def indices(self) -> np.ndarray:
        """The active functions."""
        return self.span.indices

    @property
    def theta(self) -> np.ndarray:
        """Their parameters."""
        return self.span.theta

    @property
    def cost(self) -> float:
        """The cost, TA22 eq. 2.5."""
        return self.span.cost


@dataclass(frozen=True)
class Newton:
    """Two roads with Newton re-fits, and the better of their ends: never a higher cost than `Greedy`.

    The first road takes the greedy moves to their end, then re-fits all parameters, removes functions that do
    not pay, and goes on with greedy moves, until nothing gains; it starts from greedy's result and every step
    lowers the cost. The second starts anew: appends in batches, a re-fit and a pruning after each, greedy
    moves at the end. It usually ends lower, because functions are judged when the parameters of the others
    are right.

    Parameters
    ----------
    epsilon : float
        Stop when no greedy move lowers the cost by as much.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Newton, SpanProblem
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> newton = Newton()
    >>> state, step = newton.step(newton.init(problem))
    >>> step.kind, step.index
    ('append', 3)
    """

    epsilon: float = 1e-4

    def init(self, problem: SpanProblem) -> LearnerState:
        """Start from the uniform distribution."""
        check_epsilon(problem, self.epsilon)
        span = uniform_start(problem)
        nothing = np.empty(0, np.int64), np.empty(0), np.inf
        return LearnerState(problem, NewtonProgress(span, MOVES, 0, 0, *nothing))

    def step(self, state: LearnerState) -> tuple[LearnerState, SpanStep]:
        """Take one step of the present task, or pass on to the next task that has something to do."""
        problem, progress = state.problem, state.progress
        while progress.task != DONE:
            before = progress.span
            kind, index, progress = _TASKS[progress.task](self, problem, progress)
            if kind:
                after = progress.span
                gain = before.cost - after.cost
                return LearnerState(problem, progress), SpanStep(kind, index, gain, after.cost, after.indices.size)
        ended = progress.span
        return LearnerState(problem, progress), SpanStep("stop", -1, 0.0, ended.cost, ended.indices.size)

    def _move(self, problem: SpanProblem, progress: NewtonProgress):
        """Take a greedy move; when there is none, re-fit, or end the road if nothing changed since the last re-fit."""
        state, step = Greedy(self.epsilon).step(LearnerState(problem, progress.span))
        if step.kind != "stop":
            return step.kind, step.index, replace(progress, span=state.progress, n_changes=progress.n_changes + 1)
        if progress.n_changes:
            return "", -1, replace(progress, task=REFIT)
        return _next_road(problem, progress)

    def _append(self, problem: SpanProblem, progress: NewtonProgress):
        """Append the best function, until the batch is full; go over to greedy moves where none gains enough."""
        span = progress.span
        if span.append_index < 0 or span.append_gain < self.epsilon:
            return "", -1, replace(progress, task=REFIT if progress.n_changes else MOVES)
        if progress.n_changes >= max(_LEAST_BATCH, _BATCH_SHARE * span.indices.size):
            return "", -1, replace(progress, task=REFIT)
        move = Move("append", span.append_index, span.append_gain, problem.append_target(span.dual, span.append_index))
        after = apply_move(problem, span, move)
        return "append", move.index, replace(progress, span=after, n_changes=progress.n_changes + 1)

    def _refit(self, problem: SpanProblem, progress: NewtonProgress):
        on_the_way = progress.road and progress.span.append_gain >= self.epsilon
        after = refit(problem, progress.span, _LAST_STEP_ON_THE_WAY if on_the_way else 0.0)
        kind = "refit" if after.cost < progress.span.cost else ""
        return kind, -1, replace(progress, span=after, task=PRUNE, n_changes=0)

    def _prune(self, problem: SpanProblem, progress: NewtonProgress):
        after = prune(problem, progress.span)
        kind = "prune" if after.indices.size < progress.indices.size else ""
        return kind, -1, replace(progress, span=after, task=APPENDS if progress.road else MOVES)


_TASKS = {MOVES: Newton._move, APPENDS: Newton._append, REFIT: Newton._refit, PRUNE: Newton._prune}


def _next_road(problem: SpanProblem, progress: NewtonProgress):
    """Remember the end of the first road and start the second; after the second keep the better end."""
    span = progress.span
    if progress.road == 0:
        again = uniform_start(problem, span.dual)
        ended = NewtonProgress(again, APPENDS, 1, 0, span.indices, span.theta, span.cost)
        return "restart", -1, ended
    if progress.best_cost <= span.cost:
        span = refreshed(problem, span.dual, progress.best_indices, progress.best_theta)
    return "keep", -1, replace(progress, span=span, task=DONE, road=2)
