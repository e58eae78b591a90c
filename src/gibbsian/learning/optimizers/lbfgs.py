"""Limited-memory BFGS, and its orthant-wise form for L1 penalties.

SciPy's L-BFGS-B runs to its end in one call; this one stops after every step with its whole state in arrays, which is
what checkpoints that resume to the same bits need.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, cast

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.backends.device import library_of, rounding
from gibbsian.backends.threads import one_blas_thread
from gibbsian.learning.optimizers.base import (
    OPTIMIZERS,
    ROUNDED,
    Function,
    Inverse,
    Optimizer,
    OptimizerState,
    Preconditioned,
    Renewable,
    StepInfo,
    gradient_norm,
    largest,
    penalty,
    subgradient,
)
from gibbsian.settings import check, declared, positional, whole

_DECREASE = 1e-4  # sufficient decrease (Armijo)
_CURVATURE = 0.9  # weak Wolfe condition
_MAX_TRIALS = 40
# A preconditioner is renewed after so many evaluations, when first steps have been taken, and again after so many more.
_FIRST_RENEWAL, _NEXT_RENEWAL = 5, 12
_SHORT = 2**18  # numbers that past moves may take in any case: of few parameters they cost nothing


@dataclass(frozen=True)
class LBFGSState(OptimizerState):
    """The point with the last `memory` moves (rows of `moves`) and gradient changes, oldest first.

    The preconditioner is made of `numbers`, none where it is that of the start; it is renewed after `renewal`
    evaluations.
    """

    moves: Floats
    changes: Floats
    numbers: Floats = field(default_factory=lambda: np.empty((0, 0)))
    renewal: int = _FIRST_RENEWAL


@OPTIMIZERS.register("lbfgs")
@declared(frozen=True)
class LBFGS(Optimizer[LBFGSState]):
    """Quasi-Newton steps with a weak Wolfe line search; orthant-wise (OWL-QN) where there is an L1 penalty.

    A `Preconditioned` function brings an approximate inverse Hessian in place of the multiple of one that the recursion
    starts from; of few parameters all steps are then remembered. It is renewed now and then where that is offered.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.learning.optimizers import LBFGS
    >>> scale = np.array([1.0, 100.0])
    >>> valley = lambda theta: (float(scale @ theta**2) / 2, scale * theta)
    >>> optimizer, l1 = LBFGS(), np.zeros(2)
    >>> state = optimizer.init(valley, np.array([1.0, 1.0]), l1)
    >>> for _ in range(20):
    ...     state, info = optimizer.step(valley, state, l1)
    >>> info.gradient_norm < 1e-6
    True
    """

    takes_preconditioner: ClassVar[bool] = True
    takes_tensors: ClassVar[bool] = True

    memory: int = positional(kw_only=False, default=whole(20, "How many past steps shape the next one.", least=1))

    def __post_init__(self) -> None:
        check(self)

    @property
    def n_vectors(self) -> int:
        """Vectors as long as theta that a step has at a time: moves and changes before and after it, and its own.

        Short ones may be more, by some megabytes in all.
        """
        return 4 * (self.memory + 1) + 12

    def init(self, function: Function, theta: Floats, l1: Floats) -> LBFGSState:
        """Evaluate the start."""
        value, gradient = function(theta)
        empty = np.empty((0, theta.size))
        return LBFGSState(theta, gradient, value + penalty(theta, l1), 1, empty, empty)

    def step(self, function: Function, state: LBFGSState, l1: Floats) -> tuple[LBFGSState, StepInfo]:
        """Search along one quasi-Newton direction; where that fails, along simpler ones down to the gradient itself."""
        library = library_of(state.theta)
        known = function if isinstance(function, Preconditioned) else Preconditioned(function)
        if known.renewed is not None and state.evaluations >= state.renewal:
            count = state.evaluations + 1
            state = replace(state, numbers=known.renewed(state.theta), evaluations=count, renewal=count + _NEXT_RENEWAL)
        steepest = -subgradient(state.theta, state.gradient, l1)
        inverse = known.preconditioner
        if len(state.numbers):
            inverse = cast("Renewable", inverse).at(state.numbers)
        evaluations, moves = state.evaluations, state.moves
        for moves, shape in self._shapes(state.moves, inverse):
            # of long vectors: threads would wait for each other a hundred times
            with one_blas_thread() if library is np else nullcontext():
                direction = _quasi_newton(steepest, moves, state.changes[: len(moves)], shape)
            if l1.any():
                direction = library.where((direction * steepest > 0) | (l1 == 0), direction, 0.0)
            found = _line_search(function, state, direction, steepest, l1)
            evaluations += found.trials
            if not found.failed:
                break
        if found.failed:
            norm = gradient_norm(state.theta, state.gradient, l1)
            return state, StepInfo(state.value, norm, 0.0, evaluations, outcome=ROUNDED)
        most = self.memory if inverse is None else max(self.memory, _SHORT // len(state.theta))
        moves, changes = _remember(state, found, len(moves), most)
        shaped = (moves, changes, state.numbers, state.renewal)
        new = LBFGSState(found.theta, found.gradient, found.value, evaluations, *shaped)
        norm = gradient_norm(new.theta, new.gradient, l1)
        # within the noise of the value steps may still flatten the gradient, until they drown in the rounding of theta
        visible = 4.0 * float(np.finfo(float).eps) * (rounding() / 1e-14) * max(1.0, largest(new.theta))
        stalled = bool(new.value >= state.value) and largest(new.theta - state.theta) <= visible
        return new, StepInfo(new.value, norm, found.size, evaluations, outcome=ROUNDED if stalled else None)

    @staticmethod
    def _shapes(moves: Floats, inverse: Inverse | None) -> Iterator[tuple[Floats, Inverse | None]]:
        """What directions are made of, the best first: memory and preconditioner, the latter, neither."""
        if len(moves):
            yield moves, inverse
        if inverse is not None:
            yield moves[:0], inverse
        yield moves[:0], None


def _remember(state: LBFGSState, found: _Trial, kept: int, most: int) -> tuple[Floats, Floats]:
    """Return the moves and changes of gradient so far, of which the first `kept` were of use, with the last."""
    move, change = found.theta - state.theta, found.gradient - state.gradient
    if move @ change <= 1e-10 * ((move @ move) * (change @ change)) ** 0.5:
        return state.moves[:kept], state.changes[:kept]  # no positive curvature seen: it would spoil the model
    joined = library_of(move).concatenate
    moves = joined([state.moves[:kept], move[None]])[-most:]
    return moves, joined([state.changes[:kept], change[None]])[-most:]


def _quasi_newton(steepest: Floats, moves: Floats, changes: Floats, inverse: Inverse | None) -> Floats:
    """Multiply by the implicit inverse Hessian (the two-loop recursion about a preconditioner)."""
    if not len(moves):
        # a first step of unit length at most, unless something is known of the curvature
        return steepest / max(1.0, float(abs(steepest).sum())) if inverse is None else inverse(steepest)
    direction = 1.0 * steepest
    curvatures = library_of(steepest).einsum("kp,kp->k", moves, changes)
    weights = [curvatures[0]] * len(moves)
    for k in range(len(moves) - 1, -1, -1):
        weights[k] = moves[k] @ direction / curvatures[k]
        direction -= weights[k] * changes[k]
    last = changes[-1]
    direction = direction if inverse is None else inverse(direction)
    direction *= curvatures[-1] / (last @ (last if inverse is None else inverse(last)))
    for k in range(len(moves)):
        direction += (weights[k] - changes[k] @ direction / curvatures[k]) * moves[k]
    return direction


class _Trial(NamedTuple):
    theta: Floats
    gradient: Floats
    value: float
    size: float
    trials: int
    failed: bool


def _line_search(function: Function, state: LBFGSState, direction: Floats, steepest: Floats, l1: Floats) -> _Trial:
    """Find a step that lowers the value enough and flattens the slope, by bracketing and interpolation."""
    slope = -float(steepest @ direction)
    noise = rounding() * max(1.0, abs(state.value))  # no decrease smaller than this can be seen
    library, orthant = library_of(state.theta), None
    if l1.any():
        orthant = library.where(state.theta != 0, library.sign(state.theta), library.sign(steepest))
    low, high, size = 0.0, np.inf, 1.0
    trials = 0
    while slope < 0 and trials < _MAX_TRIALS:
        theta = state.theta + size * direction
        if orthant is not None:
            theta = library.where((theta * orthant > 0) | (l1 == 0), theta, 0.0)
        smooth, gradient = function(theta)
        trials += 1
        value = float(smooth) + penalty(theta, l1)
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
