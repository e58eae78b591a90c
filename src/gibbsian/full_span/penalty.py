"""What a basis function costs: r_y for being there (TA22 eq. 2.5), shrinkage for the size of its parameter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.backends.numba.lanes import VECTOR_BYTES
from gibbsian.blocks import row_blocks
from gibbsian.errors import ArgumentError
from gibbsian.full_span.checks import check_number
from gibbsian.models.span_basis import SpanBasis


@dataclass(frozen=True)
class DescriptionLength:
    """``r_y``: a constant for each function, and a term for each variable that it depends on.

    Every penalty of that form is as fast as this one: tables over two halves of the index hold all that a
    scan needs.

    Parameters
    ----------
    base : float
        What a function costs by itself.
    weights : (n,) of float
        What each variable adds.

    Examples
    --------
    >>> from gibbsian.full_span import DescriptionLength, SpanBasis
    >>> basis = SpanBasis((2, 2))
    >>> penalty = DescriptionLength.of_samples(basis, n_samples=100)
    >>> penalty(basis, [1, 3]).round(5)
    array([0.02996, 0.03689])
    """

    base: float
    weights: np.ndarray

    @classmethod
    def of_samples(cls, basis: SpanBasis, n_samples: float, mdl_scale: float = 1.0) -> DescriptionLength:
        """Return the penalty of eq. 2.5 times a factor: nats per sample to send a parameter and its function's name."""
        check_number("mdl_scale", mdl_scale)
        if not 0.0 <= mdl_scale < np.inf:
            raise ArgumentError("must be zero or positive", argument="mdl_scale", value=mdl_scale)
        # a variable with one value is in no function, so its logarithm of zero is never asked for
        choices = np.maximum(basis.shape - 1, 1)
        per_sample = mdl_scale / n_samples
        return cls(0.5 * np.log(n_samples) * per_sample, np.log(basis.n_variables * choices) * per_sample)

    def __call__(self, basis: SpanBasis, indices: np.ndarray | list[int]) -> np.ndarray:
        """Return ``r_y`` of functions."""
        if self.is_zero:
            return np.zeros(len(indices))
        costs = np.empty(len(indices))
        for part in row_blocks(len(indices), basis.n_variables):
            costs[part] = self.base + (basis.digits(indices[part]) > 0) @ self.weights
        return costs

    @property
    def is_zero(self) -> bool:
        """Whether being there costs nothing."""
        return self.base == 0 and not np.any(self.weights)

    def scaled(self, factor: float) -> DescriptionLength:
        """Return the penalty times a factor.

        Examples
        --------
        >>> from gibbsian.full_span import DescriptionLength, SpanBasis
        >>> DescriptionLength.of_samples(SpanBasis((2, 2)), n_samples=100).scaled(0.0).is_zero
        True
        """
        return DescriptionLength(self.base * factor, self.weights * factor)

    def halves(self, basis: SpanBasis, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Return tables with ``r_y = low[y % low.size] + high[y // low.size]``, for powers of two as cardinalities.

        The cut lies between two variables, near the middle of the index, so that both tables are small.
        """
        least = VECTOR_BYTES // np.dtype(dtype).itemsize
        size, axis = 1, basis.n_variables
        while axis > 0 and (size < least or size * size < basis.size):
            axis -= 1
            size *= basis.cardinalities[axis]
        low = self._part(basis, axis, basis.n_variables)
        high = self.base + self._part(basis, 0, axis)
        return low.astype(dtype), high

    def _part(self, basis: SpanBasis, first: int, last: int) -> np.ndarray:
        """Return what the variables `first` to `last` add, for every combination of their digits."""
        table = np.zeros(1)
        for i in range(first, last):
            table = (table[:, None] + self.weights[i] * (np.arange(basis.cardinalities[i]) > 0)).ravel()
        return table


@dataclass(frozen=True)
class Shrinkage:
    """``l1 |theta_y| + l2 * l2_growth^(order of y - 1) * theta_y^2 / 2`` for every active function.

    In units of the cost, nats per sample: an L2 strength of 1/N is a Gaussian prior of variance 1.

    Parameters
    ----------
    l1 : float
        Strength of the absolute value, the same for all orders.
    l2 : float
        Strength of the square for functions of one variable.
    l2_growth : float
        By what factor it grows with every further variable; at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Shrinkage, SpanBasis
    >>> shrinkage = Shrinkage(l1=0.1, l2=0.2, l2_growth=3.0)
    >>> shrinkage(SpanBasis((2, 2)), np.array([1, 3]), np.array([1.0, -1.0]))
    array([0.2, 0.4])
    """

    l1: float = 0.0
    l2: float = 0.0
    l2_growth: float = 1.0

    def __post_init__(self) -> None:
        for name in ("l1", "l2", "l2_growth"):
            check_number(name, getattr(self, name))
        for name in ("l1", "l2"):
            if not 0.0 <= getattr(self, name) < np.inf:
                raise ArgumentError(f"{name}={getattr(self, name)} must be zero or positive")
        if not 1.0 <= self.l2_growth < np.inf:
            raise ArgumentError(
                "must be at least 1",
                "higher orders are shrunk more, not less",
                argument="l2_growth",
                value=self.l2_growth,
            )

    def __call__(self, basis: SpanBasis, indices: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return what parameters cost."""
        return self.l1 * np.abs(theta) + 0.5 * self.l2_of(basis, indices) * theta**2

    def l2_of(self, basis: SpanBasis, indices: np.ndarray | list[int]) -> np.ndarray:
        """Return the L2 strength of functions."""
        if self.l2 == 0.0:
            return np.zeros(len(indices))
        strengths = np.empty(len(indices))
        for part in row_blocks(len(indices), basis.n_variables):
            strengths[part] = self.l2 * self.l2_growth ** (basis.orders(indices[part]) - 1.0)
        return strengths

    def l2_table(self, basis: SpanBasis) -> np.ndarray:
        """Return the L2 strength of every function, in the order of their indices; 0 for the constant.

        Examples
        --------
        >>> from gibbsian.full_span import Shrinkage, SpanBasis
        >>> Shrinkage(l2=1.0, l2_growth=3.0).l2_table(SpanBasis((2, 3)))
        array([0., 1., 1., 1., 3., 3.])
        """
        table = np.full(1, self.l2 / self.l2_growth)
        for q in basis.cardinalities:
            table = np.multiply.outer(table, np.where(np.arange(q) > 0, self.l2_growth, 1.0)).ravel()
        table[0] = 0.0
        return table
