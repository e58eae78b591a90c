"""All functions at once, none selected: shrinkage by order alone keeps the model from the noise.

The penalty ``l2 * l2_growth^(order - 1) / 2 * theta_y^2`` on every function is a Gaussian prior on ``log p`` whose
covariance of two states of binary variables depends on the number of variables in which they differ: it falls
by the factor ``(l2_growth - 1) / (l2_growth + 1)`` with each. The fit is smooth and convex, so Newton's method
finds it; its linear systems are solved by conjugate gradients, two transforms for each product with the
Hessian ``Phi (diag(p) - p p') Phi' + diag(l2)``, whose diagonal, ``1 - dual^2 + l2``, is known and preconditions them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gibbsian.arrays import Tensor
from gibbsian.backends.device import twin
from gibbsian.backends.numba.axes import transform
from gibbsian.backends.threads import kept_threads
from gibbsian.errors import ArgumentError
from gibbsian.learning.base import LEARNERS
from gibbsian.learning.span_base import Change, OwnPoint, SpanLearner, SpanPoint
from gibbsian.learning.span_problem import SpanProblem
from gibbsian.models.base import Array, Model
from gibbsian.models.families.full_span import FullSpanFamily, normalise
from gibbsian.models.families.span_basis import SpanBasis
from gibbsian.settings import declared

# Newton's method squares its error: a step that promises no more than this is the last one.
LAST_STEP = 1e-9
_MOST_PRODUCTS = 500
_MOST_HALVINGS = 30


@dataclass(frozen=True)
class DenseProgress(OwnPoint):
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
    """

    theta: Array
    dual: Array
    cost: float
    n_products: int = 0
    done: bool = False

    @property
    def indices(self) -> Array:
        """All functions but the constant."""
        return np.arange(1, self.dual.size)


@LEARNERS.register("span-dense", models=("full-span",))
@declared(frozen=True)
class SpanDense(SpanLearner):
    """All functions under L2, none selected: one Newton step at a time; description lengths play no part.

    Stops after a step that promises to lower the cost by no more than `tol`, or than 1e-9 where `tol` is above it.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[x, y, x ^ y] for x in (0, 1) for y in (0, 1)] * 25
    >>> model = gb.FullSpanFamily.model({}, gb.Variables.binary(3))
    >>> result = gb.learning.run(gb.learning.SpanDense(l2=0.01), model, gb.Dataset.read(rows))
    >>> result.model.family.functions, result.converged
    (array([7]), True)
    """

    n_tables: ClassVar[int] = 14
    n_saved: ClassVar[int] = 2
    n_fillers: ClassVar[int] = 2
    refits_all: ClassVar[bool] = True
    on_device: ClassVar[bool] = False

    def require(self, model: Model[FullSpanFamily]) -> None:
        """Refuse a fit that nothing keeps from the noise."""
        super().require(model)
        if not self.l2 > 0:
            raise ArgumentError(
                "must be above 0 with `learner='span-dense'`, where shrinkage alone keeps the model from the noise",
                "give `l2`, or use `learner='span-newton'`",
                argument="l2",
                value=self.l2,
            )

    def begin(self, problem: SpanProblem, point: Any, once: bool = False) -> DenseProgress:
        """Return the progress that begins with the parameters of a point, in its table."""
        theta = np.zeros(point.dual.size - 1)
        theta[point.indices - 1] = point.theta
        return DenseProgress(theta, point.dual, point.cost)

    def advance(self, problem: SpanProblem, inner: DenseProgress) -> tuple[DenseProgress, Change]:
        """Take one Newton step, or none and say ``stop``."""
        if not inner.done:
            after = _DenseCost(problem, self.n_tables).lower(inner, min(self.tol, LAST_STEP))
            if after.cost < inner.cost:
                return after, Change("refit", -1, inner.cost - after.cost)
        return replace(inner, done=True), Change("stop")

    def lowered(self, problem: SpanProblem, point: SpanPoint) -> DenseProgress:
        """Take Newton steps while they lower the cost."""
        inner = self.begin(problem, point)
        while not inner.done:
            inner, _ = self.advance(problem, inner)
        return inner

    def is_done(self, problem: SpanProblem, inner: DenseProgress) -> bool:
        """Whether the last step promised too little for another one."""
        return inner.done


class _Tables:
    """What a fit of all functions does to tables, on the CPU; on a device `backends.torch.span.Tables` does it."""

    def __init__(self, basis: SpanBasis) -> None:
        self.basis, self.put, self.got = basis, np.asarray, np.asarray

    def transformed(self, table: Array, transposed: bool = False) -> Array:
        """Return the transform of a table, which is overwritten."""
        transform(table, self.basis.shape, transposed=transposed)
        return table

    @kept_threads()
    def probabilities(self, theta: Array) -> tuple[float, Array]:
        """Return log Z and the probabilities of all states."""
        p = np.empty_like(theta)
        self.basis.fill(p, slice(None), theta)
        return normalise(p), p

    def dot(self, one: Array, other: Array) -> float:
        """Return the inner product, on one thread: those of BLAS and of the transforms would spin at each other."""
        return float(np.einsum("i,i", one, other))


class _DenseCost:
    """The cost as a function of all parameters, that of the constant too, and products with its Hessian."""

    def __init__(self, problem: SpanProblem, n_tables: int) -> None:
        kernels: Any = twin("span")
        by_twin = kernels is not None and problem._by_xor
        self.tables: Any = kernels.Tables(problem.basis.size, n_tables) if by_twin else _Tables(problem.basis)
        self.negative_entropy, self.n_products = problem.negative_entropy, 0
        tables = (problem.shrinkage.l2_table(problem.basis), problem.data_dual)
        self.l2, self.data_dual = map(self.tables.put, tables)

    def lower(self, inner: DenseProgress, last_step: float) -> DenseProgress:
        """Return the progress after one damped Newton step; the same where rounding allows no lower cost."""
        value, slope, direction = self._direction(inner)
        theta = self.tables.put(np.append(0.0, inner.theta))
        for halving in range(_MOST_HALVINGS):
            share = 0.5**halving
            trial = theta - share * direction
            trial_value, table = self.value(trial)
            if trial_value <= value - 1e-4 * share * slope:
                np.copyto(inner.dual, self.tables.got(self.tables.transformed(table)))
                found, n_products = self.tables.got(trial)[1:].copy(), inner.n_products + self.n_products
                return DenseProgress(found, inner.dual, trial_value, n_products, slope <= last_step)
        return inner

    def _direction(self, inner: DenseProgress) -> tuple[float, float, Any]:
        """Return the cost, how fast it falls along Newton's direction, and that direction."""
        theta, dual = self.tables.put(np.append(0.0, inner.theta)), self.tables.put(inner.dual)
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
        for _ in range(_MOST_PRODUCTS):
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
        self.n_products += 1
        table = self.tables.transformed(1.0 * vector, transposed=True)
        table -= self.tables.dot(p, table)
        table *= p
        table = self.tables.transformed(table)
        table[0] = 0.0
        table += self.l2 * vector
        return table
