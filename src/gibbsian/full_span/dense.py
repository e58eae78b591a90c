"""All functions at once, none selected: shrinkage by order alone keeps the model from the noise.

The penalty ``l2 * l2_growth^(order - 1) / 2 * theta_y^2`` on every function is a Gaussian prior on ``log p`` whose
covariance of two states of binary variables depends on the number of variables in which they differ: it falls
by the factor ``(l2_growth - 1) / (l2_growth + 1)`` with each. The fit is smooth and convex, so Newton's method
finds it; its linear systems are solved by conjugate gradients, two transforms for each product with the
Hessian ``Phi (diag(p) - p p') Phi' + diag(l2)``, whose diagonal, ``1 - dual^2 + l2``, is known and preconditions them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gibbsian.backends.numba.axes import transform
from gibbsian.errors import ArgumentError
from gibbsian.full_span.greedy import SpanProgress, check_epsilon
from gibbsian.full_span.memory import require_tables
from gibbsian.full_span.problem import SpanProblem
from gibbsian.full_span.trace import SpanStep
from gibbsian.learners import LearnerState
from gibbsian.models.full_span import fill_probabilities

# Newton's method squares its error: a step that promises no more than this is the last one.
LAST_STEP = 1e-9
_MOST_NEWTON_STEPS = 100
_MOST_PRODUCTS = 500
_MOST_HALVINGS = 30


# -- the algorithm ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class DenseProgress:
    """A fit of all functions between two steps.

    Parameters
    ----------
    theta : (|X| - 1,)
        Parameters of all functions but the constant, in the order of their indices.
    dual : (|X|,)
        The dual of the model. A step changes it in place, so an earlier progress is of no use once a step was taken.
    cost : float
        Divergence and shrinkage.
    n_products : int
        Products with the Hessian so far.
    done : bool
        Whether the last step promised too little for another one.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Dense, SpanProblem
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2), l2=0.01)
    >>> Dense().init(problem).progress.indices
    array([1, 2, 3])
    """

    theta: np.ndarray
    dual: np.ndarray
    cost: float
    n_products: int = 0
    done: bool = False

    @classmethod
    def started(cls, span: SpanProgress | DenseProgress) -> DenseProgress:
        """Return the progress of a fit that begins with the parameters of another one, in its table."""
        theta = np.zeros(span.dual.size - 1)
        theta[span.indices - 1] = span.theta
        return cls(theta, span.dual, span.cost)

    @property
    def indices(self) -> np.ndarray:
        """All functions but the constant."""
        return np.arange(1, self.dual.size)


@dataclass(frozen=True)
class Dense:
    """All functions under L2, none selected: one Newton step at a time; description lengths play no part.

    Parameters
    ----------
    epsilon : float
        Stop after a step that promises to lower the cost by no more; where it is above 1e-9, that is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Dense, SpanProblem
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2), l2=0.01)
    >>> dense = Dense()
    >>> state, step = dense.step(dense.init(problem))
    >>> step.kind, step.n_functions
    ('refit', 3)
    """

    epsilon: float = 1e-4

    def init(self, problem: SpanProblem) -> LearnerState:
        """Start from the uniform distribution."""
        check_dense(problem.shrinkage.l1, problem.shrinkage.l2, problem.data_dual.dtype)
        check_epsilon(problem, self.epsilon)
        require_tables(problem.basis, problem.data_dual.dtype, "dense")
        problem = problem.undescribed()
        nothing = np.empty(0, np.int64), np.empty(0)
        cost = problem.cost(*nothing, float(np.log(problem.basis.size)))
        return LearnerState(problem, DenseProgress(np.zeros(problem.basis.size - 1), problem.uniform_dual(), cost))

    def step(self, state: LearnerState) -> tuple[LearnerState, SpanStep]:
        """Take one Newton step, or none and say ``stop``."""
        problem, progress = state.problem, state.progress
        if not progress.done:
            after = _DenseCost(problem).lower(progress, min(self.epsilon, LAST_STEP))
            if after.cost < progress.cost:
                step = SpanStep("refit", -1, progress.cost - after.cost, after.cost, after.theta.size)
                return LearnerState(problem, after), step
        ended = replace(progress, done=True)
        return LearnerState(problem, ended), SpanStep("stop", -1, 0.0, ended.cost, ended.theta.size)


def check_dense(l1: float, l2: float, dtype: np.dtype | type | str = np.float64) -> None:
    """Refuse settings that a dense fit cannot have.

    Examples
    --------
    >>> from gibbsian.full_span.dense import check_dense
    >>> check_dense(l1=0.0, l2=0.0)
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: l2=0 must be above 0 with algorithm='dense', where shrinkage alone keeps the model
    from the noise: give l2, or use algorithm='newton'
    """
    if not l2 > 0:
        raise ArgumentError(
            "must be above 0 with `algorithm='dense'`, where shrinkage alone keeps the model from the noise",
            "give `l2`, or use `algorithm='newton'`",
            argument="l2",
            value=l2,
        )
    if l1 != 0:
        raise ArgumentError(
            "must be 0 with `algorithm='dense'`, whose cost is smooth",
            "leave `l1` out, or use `algorithm='newton'`",
            argument="l1",
            value=l1,
        )
    if np.dtype(dtype) != np.float64:
        raise ArgumentError(
            "must be float64 with `algorithm='dense'`, whose linear systems need the digits",
            "leave dtype out",
            argument="dtype",
            value=np.dtype(dtype),
        )


# -- the same in one call ---------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class DenseFit:
    """The minimum of ``KL(p_d || p_theta) + sum_y l2_y theta_y^2 / 2`` over all functions.

    Parameters
    ----------
    theta : (|X|,)
        Parameters of all functions; that of the constant is 0.
    probabilities : (|X|,)
        Of every state.
    cost, divergence : float
        With and without the shrinkage.
    n_steps, n_products : int
        Newton steps, and products with the Hessian.
    converged : bool
        Whether no step lowers the cost by more than the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanProblem, fit_dense
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2), l2=0.01, l2_growth=5.0)
    >>> fit = fit_dense(problem)
    >>> fit.converged, fit.theta.round(2)
    (True, array([ 0.  , -0.46,  0.6 ,  1.09]))
    """

    theta: np.ndarray
    probabilities: np.ndarray
    cost: float
    divergence: float
    n_steps: int
    n_products: int
    converged: bool


def fit_dense(problem: SpanProblem, start: np.ndarray | None = None, tolerance: float = LAST_STEP) -> DenseFit:
    """Fit all parameters at once under the L2 shrinkage of the problem; description lengths play no part.

    Parameters
    ----------
    problem : SpanProblem
        Data and shrinkage: l2 above 0, l1 0, tables of float64.
    start : (|X|,), optional
        Parameters to start from, the constant's first.
    tolerance : float
        Stop after a step that promises to lower the cost by no more; at most 1e-9.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanProblem, fit_dense
    >>> states = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> fit = fit_dense(SpanProblem.build(states, [50, 0, 20, 30], (2, 2), l2=1e-3))
    >>> fit.probabilities.round(3)
    array([0.5  , 0.001, 0.2  , 0.3  ])
    """
    dense = Dense(tolerance)
    state = dense.init(problem)
    cost = _DenseCost(state.problem)
    if start is not None:
        state = LearnerState(state.problem, cost.progress_at(np.asarray(start, dtype=np.float64)))
    n_steps, kind = 0, ""
    while kind != "stop" and n_steps < _MOST_NEWTON_STEPS:
        state, step = dense.step(state)
        kind = step.kind
        n_steps += kind != "stop"
    ended = state.progress
    theta = np.append(0.0, ended.theta)
    value, probabilities = cost.value(theta)
    divergence = value - 0.5 * _dot(cost.l2, theta**2)
    return DenseFit(theta, probabilities, value, divergence, n_steps, ended.n_products, ended.done)


# -- one step ---------------------------------------------------------------------------------------------------------
class _DenseCost:
    """The cost as a function of all parameters, that of the constant too, and products with its Hessian."""

    def __init__(self, problem: SpanProblem) -> None:
        self.problem = problem
        self.shape = problem.basis.shape
        self.l2 = problem.shrinkage.l2_table(problem.basis)
        self.n_products = 0

    def lower(self, progress: DenseProgress, last_step: float) -> DenseProgress:
        """Return the progress after one damped Newton step; the same where rounding allows no lower cost."""
        value, slope, direction = self._direction(progress)
        theta = np.append(0.0, progress.theta)
        for halving in range(_MOST_HALVINGS):
            share = 0.5**halving
            trial = theta - share * direction
            trial_value, table = self.value(trial)
            if trial_value <= value - 1e-4 * share * slope:
                np.copyto(progress.dual, table)
                transform(progress.dual, self.shape)
                n_products = progress.n_products + self.n_products
                return DenseProgress(trial[1:].copy(), progress.dual, trial_value, n_products, slope <= last_step)
        return progress

    def _direction(self, progress: DenseProgress) -> tuple[float, float, np.ndarray]:
        """Return the cost, how fast it falls along Newton's direction, and that direction."""
        theta = np.append(0.0, progress.theta)
        value, p = self.value(theta)
        gradient = progress.dual - self.problem.data_dual
        gradient += self.l2 * theta
        gradient[0] = 0.0
        del theta  # a table that the conjugate gradients can have
        direction = self._solve(p, progress.dual, gradient)
        return value, _dot(gradient, direction), direction

    def progress_at(self, theta: np.ndarray) -> DenseProgress:
        """Return a progress that begins with given parameters."""
        value, table = self.value(theta)
        transform(table, self.shape)
        return DenseProgress(theta[1:].copy(), table, value)

    def value(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the cost and the probabilities."""
        p = np.empty_like(theta)
        log_partition = fill_probabilities(p, self.problem.basis, slice(None), theta)
        divergence = self.problem.negative_entropy + log_partition - _dot(theta, self.problem.data_dual)
        return divergence + 0.5 * _dot(self.l2, theta**2), p

    def _solve(self, p: np.ndarray, dual: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Solve for Newton's direction by preconditioned conjugate gradients, the closer the smaller the gradient."""
        scale = 1.0 - dual**2
        scale += self.l2
        scale[0] = 1.0  # the constant, whose gradient and products are 0
        np.reciprocal(scale, out=scale)
        solution, residual = np.zeros_like(gradient), gradient.copy()
        preconditioned = scale * residual
        search, size = preconditioned.copy(), _dot(residual, preconditioned)
        enough = size * min(0.25, size)
        for _ in range(_MOST_PRODUCTS):
            if size <= enough or size <= 1e-20:
                break
            product = self._hessian_times(p, search)
            step = size / _dot(search, product)
            product *= step
            residual -= product
            del product
            solution += step * search
            np.multiply(scale, residual, out=preconditioned)
            before, size = size, _dot(residual, preconditioned)
            search *= size / before
            search += preconditioned
        return solution

    def _hessian_times(self, p: np.ndarray, vector: np.ndarray) -> np.ndarray:
        self.n_products += 1
        table = vector.copy()
        transform(table, self.shape, transposed=True)
        table -= _dot(p, table)
        table *= p
        transform(table, self.shape)
        table[0] = 0.0
        table += self.l2 * vector
        return table


def _dot(one: np.ndarray, other: np.ndarray) -> float:
    """Inner product on one thread: those of BLAS and of the transforms would spin against each other."""
    return float(np.einsum("i,i", one, other))
