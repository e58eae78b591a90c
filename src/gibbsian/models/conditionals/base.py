"""What all conditionals share: losses of log-odds, sums over blocks of rows, and linear maps of the parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsian.backends.parallel import map_in_order
from gibbsian.models.differences import STEP, symmetric_differences
from gibbsian.resources import row_blocks

Array = np.ndarray
Kernel = Callable[..., Any]
Design = Any
"""A matrix, dense or sparse of SciPy."""

# Rows whose scores or whose curvature are made together: small against matrices over all pairs of parameters.
STATES_AT_ONCE = 4096


_BY_ROW = "bind rows with by_row=True to keep them one by one"


class WeightedRows(NamedTuple):
    """Rows to be bound.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_variables)
        The rows; numbers where variables are real.
    weights : ndarray
        The weight of each row; they sum to one.
    masked : ndarray of bool, optional
        Costs that do not count: they are infinite.
    by_row : bool
        Whether rows are kept one by one, for costs and scores; else they may be summed, or go to a device.
    """

    codes: Array
    weights: Array
    masked: Array | None = None
    by_row: bool = False

    @classmethod
    def of(
        cls, codes: Array, weights: Array | None = None, masked: Array | None = None, by_row: bool = False
    ) -> WeightedRows:
        """Return rows with normalised weights, by default all the same."""
        given = np.ones(len(codes)) if weights is None else weights
        return cls(codes, given / max(given.sum(), np.finfo(float).tiny), masked, by_row)


class Loss(NamedTuple):
    """A loss of the log-odds of one variable, as two kernels that are fused with their derivatives.

    Parameters
    ----------
    two : callable
        Of two values: ``two(costs, weights)`` returns ``sum_m weights[m] sum_i phi(costs[m, i])`` and overwrites the
        costs with the derivatives ``weights[m] phi'(costs[m, i])``; they may lie in memory in either order.
    many : callable, optional
        Of any number of values: ``many(costs, weights, groups)``, where variable i has the columns from ``groups[i]``
        to ``groups[i + 1]``. Without one the loss is of two-valued variables only.
    """

    two: Kernel
    many: Kernel | None = None

    def of(self, groups: Array | None) -> Kernel:
        """Return the kernel of costs and weights for the columns of each variable, None for one each."""
        if groups is None:
            return self.two
        assert self.many is not None
        many = self.many
        return lambda costs, weights: many(costs, weights, groups)

    def slopes(self, costs: Array, groups: Array | None = None) -> Array:
        """Return the derivative of the loss at each cost."""
        slopes = np.array(costs, order="C")
        self.of(groups)(slopes, np.ones(len(slopes)))
        return slopes

    def second_derivatives(self, costs: Array) -> Array:
        """Return the second derivative of the loss of two-valued variables at each cost."""
        return (self.slopes(costs + STEP) - self.slopes(costs - STEP)) / (2 * STEP)


class Conditionals(ABC):
    """Rows bound once: ``d[m, i] = log P(x_m) - log P(x_m with x_i changed)`` is linear in theta.

    Two-valued variables have one other value, so one column. With more values a variable has a column for each of them,
    and that of its present value is zero.
    """

    groups: Array | None = None
    """Where the columns of each variable begin and end; None where all have two values, with one column each."""
    keeps_rows: bool = True
    """Whether memory grows with the rows; a cluster binds what keeps none once."""
    takes_tensors: bool = False
    """Whether theta may be a tensor on a device."""
    n_parameters: int

    @abstractmethod
    def evaluate(self, theta: Array, loss: Loss) -> tuple[float, Array]:
        """Return ``sum_m w_m sum_i phi(d[m, i])`` with weights that sum to one, and its gradient."""

    def costs(self, theta: Array) -> Array:
        """Return d of each row, where rows are bound one by one."""
        raise NotImplementedError(_BY_ROW)

    def scores(self, theta: Array, loss: Loss) -> Iterator[tuple[slice, Array]]:
        """Yield the gradient of each row's loss, where rows are bound one by one."""
        raise NotImplementedError(_BY_ROW)

    def curvature(self, theta: Array, loss: Loss, max_seconds: float = 60.0) -> Array:
        """Return the Hessian of `evaluate`: by differences of its gradient where d has no simpler slopes."""
        return symmetric_differences(lambda point: self.evaluate(point, loss)[1], theta, max_seconds)


@runtime_checkable
class HasConditionals(Protocol):
    """A model of variables with finitely many values, or with nodes of a quadrature."""

    def conditionals(
        self, codes: Array, weights: Array | None = None, masked: Array | None = None, by_row: bool = False
    ) -> Conditionals:
        """Bind rows of codes once: see `WeightedRows`."""


class RowConditionals(Conditionals):
    """Conditionals that go through rows, a block at a time.

    A subclass turns theta into what its kernels read (`prepare`), fills the costs of a block (`fill`), and pulls slopes
    of costs back to the gradient (`pull`). Sums are made block by block in one order, on any number of threads.

    Parameters
    ----------
    rows : WeightedRows
        The rows.
    blocks : iterable of slice
        The rows that are worked on together.
    """

    def __init__(self, rows: WeightedRows, blocks: Iterable[slice]):
        self.codes, self.weights, self.masked, _ = rows
        self.parts = [(block, self.arranged(self.codes[block])) for block in blocks]

    def arranged(self, codes: Array) -> Any:
        """Return the rows of a block as the kernels read them; done once."""
        return codes

    @abstractmethod
    def prepare(self, theta: Array) -> Any:
        """Return the parameters as the kernels read them."""

    @abstractmethod
    def fill(self, prepared: Any, rows: Any) -> tuple[Array, Any]:
        """Return the costs of arranged rows, and what else `pull` needs of them."""

    @abstractmethod
    def pull(self, rows: Any, slopes: Array, kept: Any) -> Array:
        """Return the gradient of ``sum(slopes * costs)``; `slopes` may be overwritten."""

    def evaluate(self, theta: Array, loss: Loss) -> tuple[float, Array]:
        """Return the weighted sum of the losses and its gradient."""
        value, gradient = 0.0, np.zeros(self.n_parameters)
        for part, slope in self.by_block(theta, loss.of(self.groups)):
            value += part
            gradient += slope
        return value, gradient

    def by_block(self, theta: Array, kernel: Kernel, join: Callable[[list[Any]], Any] = sum) -> Iterator[Any]:
        """Give what a kernel returns of each block, in order, with the gradient of the slopes that it leaves.

        `join` makes one answer of those for some variables each, where a block is not worked on as a whole.
        """
        prepared = self.prepare(theta)

        def of_block(part: tuple[slice, Any]) -> tuple[Any, Array]:
            rows, arranged = part
            return self._of_rows(prepared, rows, arranged, self.weights[rows], kernel, join)

        return map_in_order(of_block, self.parts)

    def _of_rows(
        self, prepared: Any, rows: slice, arranged: Any, weights: Array, kernel: Kernel, join: Any
    ) -> tuple[Any, Array]:
        costs, kept = self._masked_costs(prepared, rows, arranged)
        answer = kernel(costs, weights)
        return answer, self.pull(arranged, costs, kept)

    def _masked_costs(self, prepared: Any, rows: slice, arranged: Any) -> tuple[Array, Any]:
        costs, kept = self.fill(prepared, arranged)
        if self.masked is not None:
            costs[self.masked[rows]] = np.inf
        return costs, kept

    def costs(self, theta: Array) -> Array:
        """Return d of each row."""
        prepared = self.prepare(theta)
        n_columns = self.codes.shape[1] if self.groups is None else int(self.groups[-1])
        costs = np.empty((len(self.codes), n_columns))
        for rows, arranged in self.parts:
            costs[rows], _ = self._masked_costs(prepared, rows, arranged)
        return costs

    def scores(self, theta: Array, loss: Loss) -> Iterator[tuple[slice, Array]]:
        """Yield the gradient of each row's loss: each is a block of its own."""
        prepared, kernel, one = self.prepare(theta), loss.of(self.groups), np.ones(1)

        def of_row(number: int) -> Array:
            row = slice(number, number + 1)
            return self._of_rows(prepared, row, self.arranged(self.codes[row]), one, kernel, sum)[1]

        for block in row_blocks(len(self.codes), 1, STATES_AT_ONCE):
            yield block, np.array([of_row(number) for number in range(block.start, block.stop)])


class Mapped(Conditionals):
    """Conditionals behind a linear map of parameters: tied ones, functions of few values, two-valued tables.

    Parameters
    ----------
    base : Conditionals
        What the images of parameters belong to.
    design : matrix
        The images of unit vectors, as columns.
    offset : ndarray, optional
        What is added to the images.
    """

    def __init__(self, base: Conditionals, design: Design, offset: Array | None = None):
        self.base, self.design, self.offset = base, design, offset
        self.transposed = design.T.tocsr() if hasattr(design, "tocsr") else design.T
        self.n_parameters, self.groups = design.shape[1], base.groups
        self.keeps_rows = base.keeps_rows

    def _image(self, theta: Array) -> Array:
        image = self.design @ theta
        return image if self.offset is None else image + self.offset

    def evaluate(self, theta: Array, loss: Loss) -> tuple[float, Array]:
        """Return the weighted sum of the losses and its gradient."""
        value, gradient = self.base.evaluate(self._image(theta), loss)
        return value, self.transposed @ gradient

    def costs(self, theta: Array) -> Array:
        """Return d of each row."""
        return self.base.costs(self._image(theta))

    def scores(self, theta: Array, loss: Loss) -> Iterator[tuple[slice, Array]]:
        """Yield the gradient of each row's loss."""
        return ((rows, scores @ self.design) for rows, scores in self.base.scores(self._image(theta), loss))
