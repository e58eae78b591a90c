"""Newton's method, for functions that know their Hessian and have few parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, cast, runtime_checkable

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.learning.optimizers.base import (
    OPTIMIZERS,
    ROUNDED,
    Function,
    Optimizer,
    OptimizerState,
    StepInfo,
    gradient_norm,
)

_DECREASE = 1e-4  # sufficient decrease (Armijo)
_ROUNDING = 1e-14  # relative noise of the value
_MOST_HALVINGS = 40


@runtime_checkable
class HasHessian(Protocol):
    """A function that knows its Hessian."""

    @property
    def hessian(self) -> Callable[[np.ndarray], np.ndarray]:
        """Maps theta to the Hessian."""


@OPTIMIZERS.register("newton")
@dataclass(frozen=True)
class Newton(Optimizer[OptimizerState]):
    """Full Newton steps, damped where the Hessian is not positive and shortened where the value would not fall.

    Needs ``function.hessian(theta)``: exact likelihood of small systems and all objectives on conditionals have it.
    Converges in a handful of steps, each of which costs a Hessian and a solve, so it pays for up to a few hundred
    parameters.

    Examples
    --------
    >>> import gibbsian as gb
    >>> learner = gb.learning.as_learner("mle", optimizer="newton")
    >>> rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]
    >>> gb.BoltzmannMachine(learner=learner, tol=1e-10).fit(rows).result_.n_steps < 6
    True
    """

    needs_hessian: ClassVar[bool] = True

    def init(self, function: Function, theta: np.ndarray, l1: np.ndarray) -> OptimizerState:
        """Evaluate the start."""
        if l1.any():
            raise ArgumentError("takes no l1 penalty", "use `optimizer='lbfgs'`", argument="optimizer", value="newton")
        if not isinstance(function, HasHessian):
            raise ArgumentError(
                "needs an objective with a Hessian", "use `optimizer='lbfgs'`", argument="optimizer", value="newton"
            )
        value, gradient = function(theta)
        return OptimizerState(theta, gradient, value, 1)

    def step(self, function: Function, state: OptimizerState, l1: np.ndarray) -> tuple[OptimizerState, StepInfo]:
        """Take one damped Newton step."""
        direction = _descent(cast("HasHessian", function).hessian(state.theta), state.gradient)
        slope = float(state.gradient @ direction)
        noise = _ROUNDING * max(1.0, abs(state.value))
        size, evaluations = 1.0, state.evaluations
        for _ in range(_MOST_HALVINGS):
            theta = state.theta + size * direction
            value, gradient = function(theta)
            evaluations += 1
            if np.isfinite(value) and value <= state.value + _DECREASE * size * slope + noise:
                norm = gradient_norm(theta, gradient, l1)
                visible = 4 * np.finfo(float).eps * max(1.0, np.abs(theta).max(initial=0.0))
                stalled = bool(np.abs(theta - state.theta).max(initial=0.0) <= visible)
                return OptimizerState(theta, gradient, value, evaluations), StepInfo(
                    value, norm, size, evaluations, outcome=ROUNDED if stalled else None
                )
            size /= 2
        norm = gradient_norm(state.theta, state.gradient, l1)
        return state, StepInfo(state.value, norm, 0.0, evaluations, outcome=ROUNDED)


def _descent(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Solve for the Newton direction, with as much damping as makes the Hessian positive definite."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    damping = 0.0
    scale = max(float(np.abs(np.diag(hessian)).max(initial=0.0)), 1e-300)
    while True:
        try:
            factor = cho_factor(hessian + damping * np.eye(len(hessian)))
            return -cho_solve(factor, gradient)
        except LinAlgError:
            damping = max(10 * damping, 1e-10 * scale)
