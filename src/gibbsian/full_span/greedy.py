"""Algorithms 1 to 3 of TA22: append, adjust or remove one parameter at a time, always the move that gains most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.backends.numba.span import LARGEST_DUAL, best_active_move
from gibbsian.errors import ArgumentError
from gibbsian.full_span.problem import SpanProblem
from gibbsian.full_span.trace import SpanStep
from gibbsian.learners import LearnerState

# Moves after which the dual is transformed afresh, long before rounding errors matter.
REFRESH_EVERY = {np.dtype(np.float64): 1000, np.dtype(np.float32): 100}
# Gains below these are lost in the rounding errors of the tables.
LEAST_EPSILON = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-6}


@dataclass(frozen=True)
class SpanProgress:
    """A fit between two steps: all that a checkpoint needs.

    Parameters
    ----------
    indices, theta : (k,)
        The active functions and their parameters.
    dual : (|X|,)
        The dual of the model. A step changes it in place, so an earlier progress is of no use once a step was
        taken.
    log_partition : float
        log Z.
    cost : float
        The cost, TA22 eq. 2.5.
    append_gain, append_index : float, int
        The best append from here; index -1 where none gains.
    n_moves : int
        Moves since the dual was last transformed afresh.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Greedy, SpanProblem
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> Greedy().init(problem).progress.append_index
    3
    """

    indices: np.ndarray
    theta: np.ndarray
    dual: np.ndarray
    log_partition: float
    cost: float
    append_gain: float
    append_index: int
    n_moves: int = 0


@dataclass(frozen=True)
class Move:
    """A candidate of Algorithm 2.

    Parameters
    ----------
    kind : str
        ``append``, ``adjust`` or ``remove``.
    index : int
        Which function.
    gain : float
        By how much the cost falls.
    target : float
        The dual that the move leads to.

    Examples
    --------
    >>> from gibbsian.full_span.greedy import Move
    >>> Move("append", 3, 0.1, 0.5).kind
    'append'
    """

    kind: str
    index: int
    gain: float
    target: float


@dataclass(frozen=True)
class Greedy:
    """TA22's learning algorithm.

    Parameters
    ----------
    epsilon : float
        Stop when no move lowers the cost by as much.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Greedy, SpanProblem
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> greedy = Greedy()
    >>> state, step = greedy.step(greedy.init(problem))
    >>> step.kind, step.index, round(step.cost, 4)
    ('append', 3, 0.1403)
    """

    epsilon: float = 1e-4

    def init(self, problem: SpanProblem) -> LearnerState:
        """Start from the uniform distribution."""
        check_epsilon(problem, self.epsilon)
        return LearnerState(problem, uniform_start(problem))

    def step(self, state: LearnerState) -> tuple[LearnerState, SpanStep]:
        """Take the best move, or none and say ``stop``."""
        problem, progress = state.problem, state.progress
        move = best_move(problem, progress)
        if move is None or move.gain < self.epsilon:
            return state, SpanStep("stop", -1, 0.0, progress.cost, progress.indices.size)
        after = apply_move(problem, progress, move)
        step = SpanStep(move.kind, move.index, progress.cost - after.cost, after.cost, after.indices.size)
        return LearnerState(problem, after), step


def check_epsilon(problem: SpanProblem, epsilon: float) -> None:
    """Refuse an epsilon that the tables do not resolve, with which a fit might go round in circles.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanProblem
    >>> from gibbsian.full_span.greedy import check_epsilon
    >>> check_epsilon(SpanProblem.build(np.array([[0], [1]]), [3, 5], (2,), np.float32), 1e-9)
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: epsilon=1e-09 is less than float32 tables resolve: give at least 1e-06
    """
    dtype = problem.data_dual.dtype
    least = LEAST_EPSILON[dtype]
    if not epsilon >= least:
        raise ArgumentError(
            f"is less than {dtype} tables resolve", f"give at least {least:g}", argument="epsilon", value=epsilon
        )


def uniform_start(problem: SpanProblem, dual: np.ndarray | None = None) -> SpanProgress:
    """Return the progress of a fit that has done nothing yet, in a given table or a new one.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanProblem
    >>> from gibbsian.full_span.greedy import uniform_start
    >>> uniform_start(SpanProblem.build(np.array([[0], [1]]), [3, 5], (2,))).dual
    array([1., 0.])
    """
    if dual is None:
        dual = problem.uniform_dual()
    return refreshed(problem, dual, np.empty(0, np.int64), np.empty(0))


def refreshed(problem: SpanProblem, dual: np.ndarray, indices: np.ndarray, theta: np.ndarray) -> SpanProgress:
    """Return the progress with given parameters, its dual made by fresh transforms in the given table.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanProblem
    >>> from gibbsian.full_span.greedy import refreshed
    >>> problem = SpanProblem.build(np.array([[0], [1]]), [3, 5], (2,))
    >>> refreshed(problem, np.empty(2), np.array([1]), np.arctanh([-0.25])).dual
    array([ 1.  , -0.25])
    """
    return rescanned(problem, dual, indices, theta, problem.refresh(dual, indices, theta))


def rescanned(
    problem: SpanProblem, dual: np.ndarray, indices: np.ndarray, theta: np.ndarray, log_partition: float
) -> SpanProgress:
    """Return the progress with given parameters whose dual stands in the table already.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanProblem
    >>> from gibbsian.full_span.greedy import rescanned
    >>> problem = SpanProblem.build(np.array([[0], [1]]), [10, 50], (2,))
    >>> rescanned(problem, np.array([1.0, 0.0]), np.array([], int), np.array([]), np.log(2)).append_index
    1
    """
    gain, index = problem.scan(dual, indices)
    return SpanProgress(indices, theta, dual, log_partition, problem.cost(indices, theta, log_partition), gain, index)


def best_move(problem: SpanProblem, progress: SpanProgress) -> Move | None:
    """Return the candidate that lowers the cost most (Algorithm 2); among equal ones that of the smallest index.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanProblem
    >>> from gibbsian.full_span.greedy import best_move, uniform_start
    >>> problem = SpanProblem.build(np.array([[0], [1]]), [10, 50], (2,))
    >>> best_move(problem, uniform_start(problem)).kind
    'append'
    """
    indices = progress.indices
    order = np.argsort(indices)
    active = indices[order]
    gain, position, removes, target = best_active_move(
        progress.dual[active].astype(np.float64),
        problem.data_dual[active].astype(np.float64),
        progress.theta[order],
        problem.penalties(active),
        problem.limit,
        float(problem.shrinkage.l1),
        problem.l2_of(active),
    )
    appended = progress.append_index
    appends_better = position < 0 or (-progress.append_gain, appended) < (-gain, active[position])
    if appended >= 0 and appends_better:
        return Move("append", appended, progress.append_gain, problem.append_target(progress.dual, appended))
    if position < 0:
        return None
    return Move("remove" if removes else "adjust", int(active[position]), gain, target)


def apply_move(problem: SpanProblem, progress: SpanProgress, move: Move) -> SpanProgress:
    """Change one parameter and the dual with it (Algorithm 3, on the dual instead of on the probabilities).

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanProblem
    >>> from gibbsian.full_span.greedy import apply_move, best_move, uniform_start
    >>> problem = SpanProblem.build(np.array([[0], [1]]), [10, 50], (2,))
    >>> start = uniform_start(problem)
    >>> apply_move(problem, start, best_move(problem, start)).theta
    array([-0.80471896])
    """
    dual = progress.dual
    now = min(max(float(dual[move.index]), -LARGEST_DUAL), LARGEST_DUAL)
    target = min(max(move.target, -LARGEST_DUAL), LARGEST_DUAL)
    indices, theta = _changed(progress, move, np.arctanh(target) - np.arctanh(now))
    due = progress.n_moves + 1 >= REFRESH_EVERY[dual.dtype]
    if due or not problem.can_update(move.index):
        return refreshed(problem, dual, indices, theta)
    gain, index = problem.move(dual, indices, move.index, target)
    # Z grows by cosh(delta) + dual sinh(delta), which is the ratio of the standard deviations of Phi_z
    growth = 0.5 * (np.log1p(now) + np.log1p(-now) - np.log1p(target) - np.log1p(-target))
    log_partition = progress.log_partition + float(growth)
    cost = problem.cost(indices, theta, log_partition)
    return SpanProgress(indices, theta, dual, log_partition, cost, gain, index, progress.n_moves + 1)


def _changed(progress: SpanProgress, move: Move, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the active functions and their parameters after a move."""
    if move.kind == "append":
        return np.append(progress.indices, move.index), np.append(progress.theta, delta)
    place = int(np.flatnonzero(progress.indices == move.index)[0])
    if move.kind == "remove":
        return np.delete(progress.indices, place), np.delete(progress.theta, place)
    theta = progress.theta.copy()
    theta[place] += delta
    return progress.indices, theta
