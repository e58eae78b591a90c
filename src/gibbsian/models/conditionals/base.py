"""The contract of conditionals, losses of log-odds, sums over blocks of rows, and linear maps of parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar, cast

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, Slice, States
from gibbsian.backends.parallel import map_in_order
from gibbsian.models.differences import STEP, symmetric_differences
from gibbsian.resources import row_blocks

Result = TypeVar("Result")
Prepared = TypeVar("Prepared")
Saved = TypeVar("Saved")
Kernel = Callable[[Floats, Floats], Result]
"""Takes costs and the weights of rows; overwrites the costs with derivatives."""
Part = tuple[Slice, States]
"""The rows of a block, and their codes as kernels read them."""
Design = Floats
"""A matrix: dense, or sparse of SciPy, which has the same products."""

# Rows whose scores or curvature are computed together: few next to a matrix over all pairs of parameters.
STATES_AT_ONCE = 4096

_BY_ROW = "bind rows with by_row=True to keep them one by one"


class WeightedRows(NamedTuple):
    """Rows to bind, with their weights.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_variables)
        The rows: codes, or real numbers.
    weights : ndarray
        The weight of each row; weights sum to one.
    masked : ndarray of bool, optional
        Mask of costs that do not count; they are set to infinity.
    by_row : bool
        Whether to keep rows one by one, for costs and scores. Otherwise equal rows may be merged, and rows may be moved
        to a device.
    """

    codes: States
    weights: Floats
    masked: Mask | None = None
    by_row: bool = False

    @classmethod
    def of(
        cls, codes: States, weights: Floats | None = None, masked: Mask | None = None, by_row: bool = False
    ) -> WeightedRows:
        """Return rows with normalised weights; equal ones by default."""
        given = np.ones(len(codes)) if weights is None else weights
        return cls(codes, given / max(given.sum(), np.finfo(float).tiny), masked, by_row)


class Loss(NamedTuple):
    """A loss phi of the log-odds of one variable, as two kernels that also return its derivatives.

    Parameters
    ----------
    two : callable
        For two-valued variables: ``two(costs, weights)`` returns ``sum_m weights[m] sum_i phi(costs[m, i])`` and
        overwrites costs with the derivatives ``weights[m] phi'(costs[m, i])``. Costs may be in C or Fortran order.
    many : callable, optional
        For any number of values: ``many(costs, weights, groups)``, where the columns of variable i are
        ``groups[i]:groups[i + 1]``. None: the loss is defined for two-valued variables only.
    """

    two: Callable[[Floats, Floats], float]
    many: Callable[[Floats, Floats, Integers], float] | None = None

    def of(self, groups: Integers | None) -> Kernel[float]:
        """Return the kernel for the columns of each variable, by default one each."""
        if groups is None:
            return self.two
        assert self.many is not None
        many = self.many
        return lambda costs, weights: many(costs, weights, groups)

    def derivatives(self, costs: Floats, groups: Integers | None = None) -> Floats:
        """Return the derivative of the loss at each cost."""
        derivatives = np.array(costs, order="C")
        self.of(groups)(derivatives, np.ones(len(derivatives)))
        return derivatives

    def second_derivatives(self, costs: Floats) -> Floats:
        """Return the second derivative of the loss of two-valued variables at each cost."""
        return (self.derivatives(costs + STEP) - self.derivatives(costs - STEP)) / (2 * STEP)


class Conditionals(ABC):
    """Rows bound to a family: their costs ``d[m, i] = log P(x_m) - log P(x_m with x_i changed)`` are linear in theta.

    A two-valued variable has one other value, and one column of costs. Any other variable has one column for each
    value; the cost of the present value is zero.
    """

    groups: Integers | None = None
    """Boundaries of the columns of each variable; None if all have two values, with one column each."""
    keeps_rows: bool = True
    """Whether memory grows with the number of rows; if not, a cluster binds rows once and keeps the result."""
    takes_tensors: bool = False
    """Whether theta may be a tensor on a device."""
    n_parameters: int

    @abstractmethod
    def evaluate(self, theta: Floats, loss: Loss) -> tuple[float, Floats]:
        """Return ``sum_m w_m sum_i phi(d[m, i])``, with weights that sum to one, and its gradient."""

    def costs(self, theta: Floats) -> Floats:
        """Return the costs d of each row; needs ``by_row=True``."""
        raise NotImplementedError(_BY_ROW)

    def scores(self, theta: Floats, loss: Loss) -> Iterator[tuple[Slice, Floats]]:
        """Yield blocks of rows with the gradient of the loss of each row; needs ``by_row=True``."""
        raise NotImplementedError(_BY_ROW)

    def curvature(self, theta: Floats, loss: Loss, max_seconds: float = 60.0) -> Floats:
        """Return the Hessian of `evaluate`; by default by differences of its gradient."""
        return symmetric_differences(lambda point: self.evaluate(point, loss)[1], theta, max_seconds)

    def derivative_sums(self, theta: Floats, loss: Loss) -> Floats:
        """Return the sums over rows that update a dense preconditioner of pairs; needs ``by_row=True``."""
        raise NotImplementedError(_BY_ROW)


class RowConditionals(Conditionals, Generic[Prepared, Saved]):
    """Conditionals whose losses are sums over blocks of rows.

    A subclass has a forward pass from parameters to costs, and a backward pass from the derivatives by costs to the
    gradient. Blocks are added in order, regardless of the number of threads.

    Parameters
    ----------
    rows : WeightedRows
        The rows.
    blocks : iterable of slice
        The rows of each block.
    """

    def __init__(self, rows: WeightedRows, blocks: Iterable[Slice]):
        self.codes, self.weights, self.masked, _ = rows
        self.parts = [self._part(block) for block in blocks]

    def arrange(self, codes: States) -> States:
        """Return the rows of a block in the layout that kernels read; called once for each block."""
        return codes

    def prepare(self, theta: Floats) -> Prepared:
        """Return the parameters in the form that kernels read, by default theta itself."""
        return cast(Prepared, theta)

    @abstractmethod
    def forward(self, prepared: Prepared, rows: States) -> tuple[Floats, Saved]:
        """Return the costs of a block of arranged rows, and an intermediate result for `backward`."""

    @abstractmethod
    def backward(self, rows: States, derivatives: Floats, saved: Saved) -> Floats:
        """Return the gradient of ``sum(derivatives * costs)`` by theta; `derivatives` may be overwritten."""

    def evaluate(self, theta: Floats, loss: Loss) -> tuple[float, Floats]:
        """Return the weighted sum of the losses and its gradient."""
        value, gradient = 0.0, np.zeros(self.n_parameters)
        for values, part in self.by_block(theta, loss.of(self.groups)):
            value += sum(values)
            gradient += part
        return value, gradient

    def by_block(self, theta: Floats, kernel: Kernel[Result]) -> Iterator[tuple[list[Result], Floats]]:
        """Yield for each block, in order, the results of a kernel and the gradient of the derivatives that it leaves.

        There is one result, or several for spans of variables where a block is split by variable.
        """
        prepared = self.prepare(theta)
        return map_in_order(lambda part: self._of_block(prepared, part, self.weights[part[0]], kernel), self.parts)

    def _of_block(
        self, prepared: Prepared, part: Part, weights: Floats, kernel: Kernel[Result]
    ) -> tuple[list[Result], Floats]:
        costs, saved = self._masked_costs(prepared, part)
        result = kernel(costs, weights)
        return [result], self.backward(part[1], costs, saved)

    def _masked_costs(self, prepared: Prepared, part: Part) -> tuple[Floats, Saved]:
        rows, arranged = part
        costs, saved = self.forward(prepared, arranged)
        if self.masked is not None:
            costs[self.masked[rows]] = np.inf
        return costs, saved

    def _part(self, rows: Slice) -> Part:
        return rows, self.arrange(self.codes[rows])

    def _small_blocks(self) -> Iterator[Slice]:
        return row_blocks(len(self.codes), 1, STATES_AT_ONCE)

    def costs(self, theta: Floats) -> Floats:
        """Return the costs d of each row."""
        prepared = self.prepare(theta)
        n_columns = self.codes.shape[1] if self.groups is None else int(self.groups[-1])
        costs = np.empty((len(self.codes), n_columns))
        for part in self.parts:
            costs[part[0]], _ = self._masked_costs(prepared, part)
        return costs

    def scores(self, theta: Floats, loss: Loss) -> Iterator[tuple[Slice, Floats]]:
        """Yield blocks of rows with the gradient of the loss of each row."""
        prepared, kernel, one = self.prepare(theta), loss.of(self.groups), np.ones(1)
        for block in self._small_blocks():
            rows = (self._part(slice(m, m + 1)) for m in range(block.start, block.stop))
            yield block, np.array([self._of_block(prepared, row, one, kernel)[1] for row in rows])


class Mapped(Conditionals):
    """Conditionals whose parameters are a linear map ``design @ theta``, such as tied parameters.

    Parameters
    ----------
    base : Conditionals
        The conditionals of the mapped parameters.
    design : matrix
        The linear map, dense or sparse.
    """

    def __init__(self, base: Conditionals, design: Design):
        self.base, self.design = base, design
        self.transposed = design.T if isinstance(design, np.ndarray) else design.T.tocsr()
        self.n_parameters, self.groups = design.shape[1], base.groups
        self.keeps_rows = base.keeps_rows

    def evaluate(self, theta: Floats, loss: Loss) -> tuple[float, Floats]:
        """Return the weighted sum of the losses and its gradient."""
        value, gradient = self.base.evaluate(self.design @ theta, loss)
        return value, self.transposed @ gradient

    def costs(self, theta: Floats) -> Floats:
        """Return the costs d of each row."""
        return self.base.costs(self.design @ theta)

    def scores(self, theta: Floats, loss: Loss) -> Iterator[tuple[Slice, Floats]]:
        """Yield blocks of rows with the gradient of the loss of each row."""
        return ((rows, scores @ self.design) for rows, scores in self.base.scores(self.design @ theta, loss))
