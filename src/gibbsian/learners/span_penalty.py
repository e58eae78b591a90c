"""What a basis function costs: r_y for being there (TA22 eq. 2.5), shrinkage for the size of its parameter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.backends.numba.lanes import VECTOR_BYTES
from gibbsian.blocks import row_blocks
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
    """

    base: float
    weights: np.ndarray

    @classmethod
    def of_samples(cls, basis: SpanBasis, n_samples: float, mdl_scale: float = 1.0) -> DescriptionLength:
        """Return the penalty of eq. 2.5 times a factor: nats per sample to send a parameter and its function's name."""
        # a variable with one value is in no function, so its logarithm of zero is never asked for
        choices = np.maximum(basis.shape - 1, 1)
        per_sample = mdl_scale / n_samples
        return cls(0.5 * np.log(n_samples) * per_sample, np.log(basis.n_variables * choices) * per_sample)

    def __call__(self, basis: SpanBasis, indices: np.ndarray | list[int]) -> np.ndarray:
        """Return ``r_y`` of functions."""
        if self.base == 0 and not np.any(self.weights):
            return np.zeros(len(indices))
        costs = np.empty(len(indices))
        for part in row_blocks(len(indices), basis.n_variables):
            costs[part] = self.base + (basis.digits(indices[part]) > 0) @ self.weights
        return costs

    def scaled(self, factor: float) -> DescriptionLength:
        """Return the penalty times a factor."""
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
    """

    l1: float = 0.0
    l2: float = 0.0
    l2_growth: float = 1.0

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
        """Return the L2 strength of every function, in the order of their indices; 0 for the constant."""
        table = np.full(1, self.l2 / self.l2_growth)
        for q in basis.cardinalities:
            table = np.multiply.outer(table, np.where(np.arange(q) > 0, self.l2_growth, 1.0)).ravel()
        table[0] = 0.0
        return table
