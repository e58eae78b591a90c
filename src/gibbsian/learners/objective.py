"""Learning by minimising an objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.learners.base import Learner, LearnerState
from gibbsian.models import Model
from gibbsian.objectives import Function, Objective
from gibbsian.objectives.curvature import curvature
from gibbsian.optimizers import LBFGS, OPTIMIZERS, Optimizer, StepInfo


@dataclass(frozen=True)
class ObjectiveLearner(Learner):
    """Minimise ``objective + l1 sum|couplings| + (l2 / 2) sum theta^2``.

    The penalties act on the parameters in the model's own coding; the L1 penalty leaves biases alone.

    Parameters
    ----------
    objective : Objective
        What to minimise.
    optimizer : Optimizer or str
        How.
    l1, l2 : float
        Strength of the penalties.

    Examples
    --------
    >>> import gibbsian as gb
    >>> learner = gb.learners.ObjectiveLearner(gb.objectives.Pseudolikelihood(), gb.optimizers.Ascent(rate=0.2))
    >>> rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]
    >>> bm = gb.BoltzmannMachine(learner=learner, tol=1e-4).fit(rows)
    >>> bm.result_.converged
    True
    """

    objective: Objective
    optimizer: Optimizer | str = field(default_factory=LBFGS)
    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        check_penalties(self.l1, self.l2)
        if isinstance(self.optimizer, str):
            object.__setattr__(self, "optimizer", OPTIMIZERS.create(self.optimizer))

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Bind the objective to the data and evaluate the start."""
        function = ridge(self.objective.bind(model, data), self.l2)
        if getattr(self.optimizer, "needs_hessian", False):
            function = WithHessian(function, self._hessian(model, data))
        l1 = np.where(model.penalised, self.l1, 0.0)
        return LearnerState((function, l1), self.optimizer.init(function, model.theta, l1))  # type: ignore[union-attr]

    def by_chunks(self, batch_size: int) -> Learner:
        """Return the same objective by minibatches."""
        from gibbsian.learners.online import Online

        return Online(objective=self.objective, l1=self.l1, l2=self.l2, batch_size=batch_size)

    def _hessian(self, model: Model, data: Dataset) -> Callable[[np.ndarray], np.ndarray]:
        def hessian(theta: np.ndarray) -> np.ndarray:
            return curvature(self.objective, model.replace(theta), data) + self.l2 * np.eye(theta.size)

        return hessian

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take one step of the optimiser."""
        function, l1 = state.problem
        progress, info = self.optimizer.step(function, state.progress, l1)  # type: ignore[union-attr]
        return LearnerState(state.problem, progress), info


@dataclass(frozen=True)
class WithHessian:
    """A function of theta that also knows its second derivatives."""

    value_and_gradient: Function
    hessian: Callable[[np.ndarray], np.ndarray]

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient."""
        return self.value_and_gradient(theta)


def ridge(function: Function, l2: float) -> Function:
    """Add ``(l2 / 2) |theta|^2`` to a function."""
    if l2 == 0:
        return function

    def penalised(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = function(theta)
        return value + 0.5 * l2 * float(theta @ theta), gradient + l2 * theta

    return penalised


def check_penalties(l1: float, l2: float) -> None:
    """Refuse penalties that are not finite and at least zero."""
    for name, value in (("l1", l1), ("l2", l2)):
        if not (np.isfinite(value) and value >= 0):
            raise ArgumentError(f"{name}={value} must be zero or positive")
