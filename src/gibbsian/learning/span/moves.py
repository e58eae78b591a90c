"""Moves of a full-span fit: one parameter at a time (TA22 Algorithms 2 and 3), or all at once by Newton's method.

A move works on the dual of the model, IN PLACE (see `problem.Table`). The dual holds the whole Hessian of the active
functions, ``H_yz = <Phi_y Phi_z> - <Phi_y> <Phi_z>``, so a Newton step costs a small linear system and one fresh dual,
whatever the number of parameters. The same quadratic form tells what a function is worth once all others are re-fitted,
and so which of them do not pay for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple, Protocol, Self

import numpy as np
import scipy  # linear algebra is loaded when it is used

from gibbsian.arrays import Floats, Integers, Mask, Tensor
from gibbsian.backends.device import twin
from gibbsian.backends.numba.axes import normalise, transform
from gibbsian.backends.numba.span import LARGEST_DUAL, best_active_move
from gibbsian.backends.threads import kept_threads, map_ordered
from gibbsian.learning.span.problem import SpanProblem, Table
from gibbsian.models.families.span_basis import SpanBasis

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)
# Moves after which the dual is transformed afresh, long before rounding errors matter.
REFRESH_EVERY = {DOUBLE: 1000, SINGLE: 100}
# Newton's method squares its error: a step that promises no more than this is the last one.
LAST_STEP = {DOUBLE: 1e-12, SINGLE: 1e-7}
# To what the minimised value, log Z - theta . targets, is known.
_ROUNDING = {DOUBLE: 1e-13, SINGLE: 1e-6}
_MAX_STEPS, _MAX_HALVINGS = 50, 30
# The same for a fit of all functions, and products with the Hessian in one of its steps.
LAST_DENSE_STEP, _MAX_PRODUCTS = 1e-9, 500


class MoveKind(IntEnum):
    """What a step did, by its number in a trace."""

    STOP = 0  # nothing
    APPEND = 1  # one function, or several (TA22 section 2.2)
    ADJUST = 2
    REMOVE = 3
    REFIT = 4  # all parameters, by Newton's method
    PRUNE = 5  # several functions removed
    RESTART = 6  # a second path begun from nothing
    KEEP = 7  # its end kept
    FILL = 8  # missing cells filled
    POOL = 9  # several functions appended
    MERGE = 10  # two paths put together


class Move(NamedTuple):
    """A change of the model: its kind, the function (-1: several or none), by how much the cost falls.

    `target` is the mean to which a candidate of Algorithm 2 leads its function.
    """

    kind: MoveKind
    function: int = -1
    gain: float = 0.0
    target: float = np.nan


# -- states -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SpanState:
    """Functions with their parameters, and the table that belongs to them.

    Parameters
    ----------
    indices, theta : ndarray of shape (k,)
        The active functions and their parameters.
    dual : ndarray of shape (|X|,)
        The dual of the model. A move changes it in place, so this state is of no use once a move was made.
    log_partition : float
        log Z.
    cost : float
        The cost, TA22 eq. 2.5.
    append_gain, append_index : float, int
        The best append from here; index -1 where none gains.
    n_moves : int, default=0
        Number of moves since the dual was last transformed afresh.
    """

    indices: Integers = field(metadata={"varies": True})
    theta: Floats = field(metadata={"varies": True})
    dual: Table
    log_partition: float
    cost: float
    append_gain: float
    append_index: int
    n_moves: int = 0

    @property
    def point(self) -> Self:
        """The state itself."""
        return self

    def best(self) -> tuple[Integers, Floats]:
        """Return the functions and parameters."""
        return self.indices, self.theta

    def in_table(self, table: Table) -> Self:
        """Return the same with its dual copied into a table."""
        table[...] = self.dual
        return replace(self, dual=table)


@dataclass(frozen=True)
class DenseState:
    """A fit of all functions.

    Parameters
    ----------
    theta : ndarray of shape (|X| - 1,)
        Parameters of all functions but the constant, in the order of their indices.
    dual : ndarray of shape (|X|,)
        The dual of the model. A step changes it in place, so this state is of no use once a step was taken.
    cost : float
        Divergence and shrinkage.
    done : bool, default=False
        Whether the last step promised too little for another one.
    """

    theta: Floats
    dual: Table
    cost: float
    done: bool = False

    @property
    def indices(self) -> Integers:
        """All functions but the constant."""
        return np.arange(1, self.dual.size)

    @property
    def point(self) -> Self:
        """The state itself."""
        return self

    def best(self) -> tuple[Integers, Floats]:
        """Return the functions and parameters."""
        return self.indices, self.theta

    def in_table(self, table: Table) -> Self:
        """Return the same with its dual copied into a table."""
        table[...] = self.dual
        return replace(self, dual=table)


class SearchState(Protocol):
    """A search for functions between two moves."""

    @property
    def point(self) -> SpanState | DenseState:
        """The point where it stands."""

    def best(self) -> tuple[Integers, Floats]:
        """Return the functions and parameters of lowest cost so far."""

    def in_table(self, table: Table) -> Self:
        """Return the same with its dual copied into a table."""


NO_FUNCTIONS: Integers = np.empty(0, np.int64)
NO_THETA: Floats = np.empty(0)


def uniform_start(problem: SpanProblem) -> SpanState:
    """Return the uniform distribution, in a new table."""
    return refreshed(problem, problem.new_table(), NO_FUNCTIONS, NO_THETA)


def refreshed(problem: SpanProblem, dual: Table, indices: Integers, theta: Floats) -> SpanState:
    """Return the state of given parameters, its dual made by fresh transforms in the given table."""
    return rescanned(problem, dual, indices, theta, problem.refresh(dual, indices, theta))


def rescanned(problem: SpanProblem, dual: Table, indices: Integers, theta: Floats, log_partition: float) -> SpanState:
    """Return the state of given parameters whose dual stands in the table already."""
    gain, index = problem.scan(dual, indices)
    return SpanState(indices, theta, dual, log_partition, problem.cost(indices, theta, log_partition), gain, index)


# -- append, adjust, remove -------------------------------------------------------------------------------------------
def best_move(problem: SpanProblem, state: SpanState) -> Move:
    """Return the move that lowers the cost most (Algorithm 2), among equal ones that of the smallest index."""
    order = np.argsort(state.indices)
    active = state.indices[order]
    gain, position, removes, target = best_active_move(
        state.dual[active].astype(np.float64),
        problem.data_dual[active].astype(np.float64),
        state.theta[order],
        problem.lengths(active),
        problem.limit,
        float(problem.costs.l1),
        problem.costs.l2_of(active),
    )
    appended = state.append_index
    appends_better = position < 0 or (-state.append_gain, appended) < (-gain, active[position])
    if appended >= 0 and appends_better:
        return append_move(problem, state)
    if position < 0:
        return Move(MoveKind.STOP)
    return Move(MoveKind.REMOVE if removes else MoveKind.ADJUST, int(active[position]), gain, target)


def append_move(problem: SpanProblem, state: SpanState) -> Move:
    """Return the best append."""
    y = state.append_index
    return Move(MoveKind.APPEND, y, state.append_gain, problem.append_target(state.dual, y))


def apply_move(problem: SpanProblem, state: SpanState, move: Move) -> SpanState:
    """Change one parameter and the dual with it (Algorithm 3, on the dual instead of on the probabilities)."""
    dual, z = state.dual, move.function
    now = min(max(float(dual[z]), -LARGEST_DUAL), LARGEST_DUAL)
    target = min(max(move.target, -LARGEST_DUAL), LARGEST_DUAL)
    delta, indices, theta = np.arctanh(target) - np.arctanh(now), state.indices, state.theta
    if move.kind is MoveKind.APPEND:
        indices, theta = np.append(indices, z), np.append(theta, delta)
    else:
        place = int(np.flatnonzero(indices == z)[0])
        if move.kind is MoveKind.REMOVE:
            indices, theta = np.delete(indices, place), np.delete(theta, place)
        else:
            theta = theta.copy()
            theta[place] += delta
    if state.n_moves + 1 >= REFRESH_EVERY[dual.dtype] or not problem.can_update(z):
        return refreshed(problem, dual, indices, theta)
    gain, index = problem.update(dual, indices, z, target)
    # Z grows by cosh(delta) + dual sinh(delta), which is the ratio of the standard deviations of Phi_z
    growth = 0.5 * (np.log1p(now) + np.log1p(-now) - np.log1p(target) - np.log1p(-target))
    log_partition = state.log_partition + float(growth)
    return SpanState(indices, theta, dual, log_partition, state.cost - move.gain, gain, index, state.n_moves + 1)


def greedy_step(problem: SpanProblem, state: SpanState, tol: float) -> tuple[SpanState, Move]:
    """Make the best move where it gains enough, or none and say ``STOP``."""
    move = best_move(problem, state)
    if move.gain < tol:
        return state, Move(MoveKind.STOP)
    after = apply_move(problem, state, move)
    return after, move._replace(gain=state.cost - after.cost)


def greedy_moves(problem: SpanProblem, state: SpanState, tol: float) -> SpanState:
    """Return where the moves from a state end."""
    while (move := best_move(problem, state)).gain >= tol:
        state = apply_move(problem, state, move)
    return state


# -- re-fit all parameters --------------------------------------------------------------------------------------------
def refit(problem: SpanProblem, state: SpanState) -> SpanState:
    """Lead all active means to their targets at once; give the start back where that does not lower the cost."""
    if state.indices.size == 0:
        return state
    theta, log_partition = _minimised(problem, state)
    after = rescanned(problem, state.dual, state.indices, theta, log_partition)
    if after.cost < state.cost:
        return after
    return refreshed(problem, state.dual, state.indices, state.theta)


def _minimised(problem: SpanProblem, state: SpanState) -> tuple[Floats, float]:
    """Minimise ``log Z - theta . targets`` and the shrinkage by damped Newton steps; return theta and log Z."""
    dual, indices, theta, log_partition = state.dual, state.indices, state.theta, state.log_partition
    targets, dtype = problem.targets(indices), dual.dtype

    def value(theta: Floats, log_partition: float) -> float:
        return log_partition - float(theta @ targets) + problem.shrinkage(indices, theta)

    for _ in range(_MAX_STEPS):
        direction, signs, slope = _newton_direction(problem, dual, indices, theta)
        highest = value(theta, log_partition) + _ROUNDING[dtype]
        for halving in range(_MAX_HALVINGS):
            share = 0.5**halving
            trial = _moved(problem, theta, share * direction, signs)
            trial_partition = problem.refresh(dual, indices, trial)
            if value(trial, trial_partition) <= highest - 1e-4 * share * slope:
                theta, log_partition = trial, trial_partition
                break
        else:  # rounding allows no lower value
            return theta, problem.refresh(dual, indices, theta)
        if slope <= LAST_STEP[dtype]:
            break
    return theta, log_partition


def _newton_direction(
    problem: SpanProblem, dual: Table, indices: Integers, theta: Floats
) -> tuple[Floats, Floats, float]:
    """Return Newton's direction, the signs that L1 allows parameters to have, and what the step promises.

    The absolute value is linear among parameters of these signs: those that they have, or would get, and 0 for those
    that L1 holds at zero (Andrew and Gao 2007).
    """
    l1, l2 = problem.costs.l1, problem.costs.l2_of(indices)
    gradient = dual[indices].astype(np.float64) - problem.targets(indices) + l2 * theta
    signs = np.ones(theta.size)
    if l1 > 0:
        signs = np.where(theta != 0, np.sign(theta), -np.sign(gradient) * (np.abs(gradient) > l1))
        gradient = np.where(signs != 0, gradient + l1 * signs, 0.0)
    direction = _solve(hessian(problem, dual, indices) + np.diag(l2), gradient, signs != 0)
    return direction, signs, float(gradient @ direction)


def _moved(problem: SpanProblem, theta: Floats, change: Floats, signs: Floats) -> Floats:
    """Return the parameters after a step; those that would change their sign under L1 stop at zero."""
    after: Floats = theta - change
    if problem.costs.l1 > 0:
        after[after * signs < 0] = 0.0
    return after


def hessian(problem: SpanProblem, dual: Table, indices: Integers) -> Floats:
    """Return the covariance of the active functions in the model."""
    means = dual[indices].astype(np.float64)
    covariance: Floats = problem.pair_expectations(dual, indices) - np.outer(means, means)
    return covariance


def _solve(matrix: Floats, right: Floats, free: Mask | None = None) -> Floats:
    """Solve a linear system whose matrix is positive definite up to rounding, on one thread: it is small.

    Unknowns that are not `free` are 0.
    """
    if free is not None and not free.all():
        solution = np.zeros_like(right)
        if free.any():
            solution[free] = _solve(matrix[np.ix_(free, free)], right[free])
        return solution

    def solved(ridge: float) -> Floats:
        while True:
            try:
                factor = scipy.linalg.cho_factor(matrix + ridge * np.eye(len(matrix)))
                return np.asarray(scipy.linalg.cho_solve(factor, right), np.float64)
            except np.linalg.LinAlgError:
                ridge = max(10.0 * ridge, 1e-12)

    (solution,) = map_ordered(solved, [0.0])
    return solution


# -- remove what does not pay, append several -------------------------------------------------------------------------
def prune(problem: SpanProblem, state: SpanState) -> SpanState:
    """Remove functions whose penalty is more than they are worth when all others are re-fitted; only if the cost falls.

    Expects a state that was re-fitted. First all are removed that the quadratic form names; should that not lower the
    cost, only the first of them.
    """
    named, _ = prunable(problem, state.dual, state.indices, state.theta)
    if not named:
        return state
    for places in (named, named[:1]) if len(named) > 1 else (named,):
        indices, theta = np.delete(state.indices, places), np.delete(state.theta, places)
        after = refit(problem, refreshed(problem, state.dual, indices, theta))
        if after.cost < state.cost:
            return after
    return refreshed(problem, state.dual, state.indices, state.theta)


def prunable(problem: SpanProblem, dual: Table, indices: Integers, theta: Floats) -> tuple[list[int], Floats]:
    """Return the places of functions to remove and the parameters without them.

    The least useful comes first, and each is judged with those before it gone.

    Without y, and the others re-fitted, divergence and shrinkage grow by ``theta_y^2 / (2 C_yy)`` to second
    order, C the inverse Hessian; removing it changes the other parameters by ``-theta_y C_y / C_yy`` and C by ``-C_y
    C_y' / C_yy``.
    """
    if indices.size == 0:
        return [], theta
    curvature = hessian(problem, dual, indices) + np.diag(problem.costs.l2_of(indices))
    covariance = _solve(curvature, np.eye(indices.size))
    theta, lengths = theta.copy(), problem.lengths(indices)
    left, named = np.ones(indices.size, bool), list[int]()
    while left.any():
        variances = np.where(left, np.diag(covariance), 1.0)
        surplus = np.where(left, 0.5 * theta**2 / variances - lengths, np.inf)
        worst = int(np.argmin(surplus))
        if surplus[worst] >= 0:
            break
        named.append(worst)
        column = covariance[:, worst] / covariance[worst, worst]
        theta -= theta[worst] * column
        covariance -= np.outer(column, covariance[worst])
        left[worst] = False
    return named, theta


def append_many(problem: SpanProblem, state: SpanState, chosen: Integers) -> SpanState:
    """Append functions, take a Newton step of all parameters, and drop those that do not pay, with one fresh dual."""
    indices = np.append(state.indices, chosen)
    before = np.append(state.theta, np.zeros(chosen.size))
    direction, signs, _ = _newton_direction(problem, state.dual, indices, before)
    named, theta = prunable(problem, state.dual, indices, _moved(problem, before, direction, signs))
    return refreshed(problem, state.dual, np.delete(indices, named), np.delete(theta, named))


# -- all functions at once --------------------------------------------------------------------------------------------
class CpuTables:
    """What a fit of all functions does to tables, on the CPU; on a device `backends.torch.span.Tables` does it."""

    def __init__(self, basis: SpanBasis) -> None:
        self.basis, self.put, self.got = basis, np.asarray, np.asarray

    def transformed(self, table: Tensor, transposed: bool = False) -> Tensor:
        """Return the transform of a table, which is overwritten."""
        transform(table, self.basis.shape, transposed=transposed)
        return table

    @kept_threads()
    def probabilities(self, theta: Tensor) -> tuple[float, Tensor]:
        """Return log Z and the probabilities of all states."""
        p = self.transformed(theta.copy(), transposed=True)
        return normalise(p), p

    def dot(self, one: Tensor, other: Tensor) -> float:
        """Return the inner product, on one thread: those of BLAS and of the transforms would spin at each other."""
        return float(np.einsum("i,i", one, other))


class DenseCost:
    """The cost as a function of all parameters, that of the constant too, and products with its Hessian.

    The Hessian is ``Phi (diag(p) - p p') Phi' + diag(l2)``, two transforms a product, and its diagonal ``1 - dual^2 +
    l2``, which preconditions conjugate gradients. The penalty is a Gaussian prior on ``log p``; its covariance of two
    states of binary variables falls by the factor ``(l2_growth - 1) / (l2_growth + 1)`` with each variable in which
    they differ.
    """

    def __init__(self, problem: SpanProblem, n_tables: int) -> None:
        kernels = twin("span") if problem.by_xor else None
        self.tables: CpuTables = (
            CpuTables(problem.basis) if kernels is None else kernels.Tables(problem.basis.size, n_tables)
        )
        self.negative_entropy = problem.negative_entropy
        self.l2, self.data_dual = map(self.tables.put, (problem.costs.l2_table(), problem.data_dual))

    def lower(self, state: DenseState, last_step: float) -> DenseState:
        """Return the state after one damped Newton step; the same where rounding allows no lower cost."""
        value, slope, direction = self._direction(state)
        theta = self.tables.put(np.append(0.0, state.theta))
        for halving in range(_MAX_HALVINGS):
            share = 0.5**halving
            trial = theta - share * direction
            trial_value, table = self.value(trial)
            if trial_value <= value - 1e-4 * share * slope:
                if not trial_value < state.cost:
                    break
                np.copyto(state.dual, self.tables.got(self.tables.transformed(table)))
                return DenseState(self.tables.got(trial)[1:].copy(), state.dual, trial_value, slope <= last_step)
        return state

    def _direction(self, state: DenseState) -> tuple[float, float, Tensor]:
        """Return the cost, how fast it falls along Newton's direction, and that direction."""
        theta, dual = self.tables.put(np.append(0.0, state.theta)), self.tables.put(state.dual)
        value, p = self.value(theta)
        gradient = dual - self.data_dual
        gradient += self.l2 * theta
        gradient[0] = 0.0
        del theta  # a table that the conjugate gradients can have
        direction = self._solve(p, dual, gradient)
        return value, self.tables.dot(gradient, direction), direction

    def value(self, theta: Tensor) -> tuple[float, Tensor]:
        """Return the cost and the probabilities."""
        log_partition, p = self.tables.probabilities(theta)
        divergence = self.negative_entropy + log_partition - self.tables.dot(theta, self.data_dual)
        return divergence + 0.5 * self.tables.dot(self.l2, theta**2), p

    def _solve(self, p: Tensor, dual: Tensor, gradient: Tensor) -> Tensor:
        """Solve for Newton's direction by preconditioned conjugate gradients, the closer the smaller the gradient."""
        dot, scale = self.tables.dot, 1.0 - dual**2
        scale += self.l2
        scale[0] = 1.0  # the constant, whose gradient and products are 0
        scale = 1.0 / scale
        solution, residual = 0.0 * gradient, 1.0 * gradient
        search = scale * residual
        size = dot(residual, search)
        enough = size * min(0.25, size)
        for _ in range(_MAX_PRODUCTS):
            if size <= enough or size <= 1e-20:
                break
            product = self._hessian_times(p, search)
            step = size / dot(search, product)
            product *= step
            residual -= product
            del product
            solution += step * search
            preconditioned = scale * residual
            before, size = size, dot(residual, preconditioned)
            search *= size / before
            search += preconditioned
        return solution

    def _hessian_times(self, p: Tensor, vector: Tensor) -> Tensor:
        table = self.tables.transformed(1.0 * vector, transposed=True)
        table -= self.tables.dot(p, table)
        table *= p
        table = self.tables.transformed(table)
        table[0] = 0.0
        table += self.l2 * vector
        return table
