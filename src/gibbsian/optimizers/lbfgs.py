"""Limited-memory BFGS, and its orthant-wise form for L1 penalties.

SciPy's L-BFGS-B runs to its end in one call; this one stops after every step with its whole state in arrays, which is
what checkpoints that resume to the same bits need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gibbsian.optimizers.base import (
    OPTIMIZERS,
    Function,
    OptimizerState,
    StepInfo,
    gradient_norm,
    penalty,
    subgradient,
)
from gibbsian.settings import check, declared, whole

_DECREASE = 1e-4  # sufficient decrease (Armijo)
_CURVATURE = 0.9  # weak Wolfe condition
_ROUNDING = 1e-14  # relative noise of the value: no decrease smaller than this can be seen
_MOST_TRIALS = 40


@dataclass(frozen=True)
class LBFGSState(OptimizerState):
    """The point with the last `memory` moves (rows of `moves`) and gradient changes, oldest first."""

    moves: np.ndarray
    changes: np.ndarray


@OPTIMIZERS.register("lbfgs")
@declared(frozen=True)
class LBFGS:
    """Quasi-Newton steps with a weak Wolfe line search; orthant-wise (OWL-QN) where there is an L1 penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.optimizers import LBFGS
    >>> scale = np.array([1.0, 100.0])
    >>> valley = lambda theta: (float(scale @ theta**2) / 2, scale * theta)
    >>> optimizer, l1 = LBFGS(), np.zeros(2)
    >>> state = optimizer.init(valley, np.array([1.0, 1.0]), l1)
    >>> for _ in range(20):
    ...     state, info = optimizer.step(valley, state, l1)
    >>> info.gradient_norm < 1e-6
    True
    """

    memory: int = whole(20, "How many past steps shape the next one.", least=1, kw_only=False)

    def __post_init__(self) -> None:
        check(self)

    def init(self, function: Function, theta: np.ndarray, l1: np.ndarray) -> LBFGSState:
        """Evaluate the start."""
        value, gradient = function(theta)
        empty = np.empty((0, theta.size))
        return LBFGSState(theta, gradient, value + penalty(theta, l1), 1, empty, empty)

    def step(self, function: Function, state: LBFGSState, l1: np.ndarray) -> tuple[LBFGSState, StepInfo]:
        """Search along one quasi-Newton direction; fall back to the gradient when that direction fails."""
        steepest = -subgradient(state.theta, state.gradient, l1)
        direction = _quasi_newton(steepest, state.moves, state.changes)
        if l1.any():
            direction = np.where(direction * steepest > 0, direction, 0.0)
        found = _line_search(function, state, direction, steepest, l1)
        if found.failed and len(state.moves):
            restart = LBFGSState(
                state.theta,
                state.gradient,
                state.value,
                state.evaluations + found.trials,
                state.moves[:0],
                state.changes[:0],
            )
            return self.step(function, restart, l1)
        evaluations = state.evaluations + found.trials
        if found.failed:
            norm = gradient_norm(state.theta, state.gradient, l1)
            return state, StepInfo(state.value, norm, 0.0, evaluations, stalled=True)
        moves, changes = self._remember(state, found)
        new = LBFGSState(found.theta, found.gradient, found.value, evaluations, moves, changes)
        norm = gradient_norm(new.theta, new.gradient, l1)
        # within the noise of the value steps may still flatten the gradient, until they drown in the rounding of theta
        visible = 4 * np.finfo(float).eps * max(1.0, np.abs(new.theta).max(initial=0.0))
        stalled = new.value >= state.value and bool(np.abs(new.theta - state.theta).max(initial=0.0) <= visible)
        return new, StepInfo(new.value, norm, found.size, evaluations, stalled)

    def _remember(self, state: LBFGSState, found: _Trial) -> tuple[np.ndarray, np.ndarray]:
        move, change = found.theta - state.theta, found.gradient - state.gradient
        if move @ change <= 1e-10 * np.sqrt((move @ move) * (change @ change)):
            return state.moves, state.changes  # no positive curvature seen: the pair would spoil the model
        moves = np.vstack([state.moves, move])[-self.memory :]
        changes = np.vstack([state.changes, change])[-self.memory :]
        return moves, changes


def _quasi_newton(steepest: np.ndarray, moves: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """Multiply by the implicit inverse Hessian (the two-loop recursion)."""
    direction = steepest.copy()
    if not len(moves):
        return direction / max(1.0, np.abs(direction).sum())  # a first step of unit length at most
    curvatures = np.einsum("kp,kp->k", moves, changes)
    weights = np.empty(len(moves))
    for k in range(len(moves) - 1, -1, -1):
        weights[k] = moves[k] @ direction / curvatures[k]
        direction -= weights[k] * changes[k]
    direction *= curvatures[-1] / (changes[-1] @ changes[-1])
    for k in range(len(moves)):
        direction += (weights[k] - changes[k] @ direction / curvatures[k]) * moves[k]
    return direction


class _Trial(NamedTuple):
    theta: np.ndarray
    gradient: np.ndarray
    value: float
    size: float
    trials: int
    failed: bool


def _line_search(
    function: Function, state: LBFGSState, direction: np.ndarray, steepest: np.ndarray, l1: np.ndarray
) -> _Trial:
    """Find a step that lowers the value enough and flattens the slope, by bracketing and interpolation."""
    slope = -float(steepest @ direction)
    noise = _ROUNDING * max(1.0, abs(state.value))
    orthant = np.where(state.theta != 0, np.sign(state.theta), np.sign(steepest)) if l1.any() else None
    low, high, size = 0.0, np.inf, 1.0
    trials = 0
    while slope < 0 and trials < _MOST_TRIALS:
        theta = state.theta + size * direction
        if orthant is not None:
            theta = np.where(theta * orthant > 0, theta, 0.0)
        smooth, gradient = function(theta)
        trials += 1
        value = smooth + penalty(theta, l1)
        bound = state.value + _DECREASE * (size * slope if orthant is None else -steepest @ (theta - state.theta))
        if not np.isfinite(value) or value > bound + noise:
            high = size
            size = _interpolate(low, high, state.value, slope, value)
        elif orthant is None and gradient @ direction < _CURVATURE * slope:
            low = size
            size = 2.0 * low if np.isinf(high) else 0.5 * (low + high)
        else:
            return _Trial(theta, gradient, value, size, trials, failed=bool((theta == state.theta).all()))
    return _Trial(state.theta, state.gradient, state.value, 0.0, trials, failed=True)


def _interpolate(low: float, high: float, start: float, slope: float, value: float) -> float:
    """Minimise the parabola through the start and the failed trial; stay inside the bracket."""
    middle = 0.5 * (low + high)
    if low > 0 or not np.isfinite(value):
        return middle
    vertex = -slope * high**2 / (2.0 * (value - start - slope * high))
    return float(np.clip(vertex, 0.1 * high, 0.9 * high)) if np.isfinite(vertex) else middle
