"""What a fit of the full-span model is given: the data's dual, the penalty, and the cost (TA22 eq. 2.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gibbsian.backends.numba import span, span_axes
from gibbsian.backends.numba.axes import transform
from gibbsian.backends.numba.vectors import VECTOR_BYTES
from gibbsian.backends.numba.walsh import aligned_zeros
from gibbsian.data import Dataset
from gibbsian.errors import DataError
from gibbsian.models.base import Array
from gibbsian.models.families.full_span import FullSpanFamily
from gibbsian.models.families.span_basis import SpanBasis
from gibbsian.resources import row_blocks


# -- what functions cost ----------------------------------------------------------------------------------------------
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
    weights: Array

    @classmethod
    def of_samples(cls, basis: SpanBasis, n_samples: float, mdl_scale: float = 1.0) -> DescriptionLength:
        """Return the penalty of eq. 2.5 times a factor: nats per sample to send a parameter and its function's name."""
        # a variable with one value is in no function, so its logarithm of zero is never asked for
        choices = np.maximum(basis.shape - 1, 1)
        per_sample = mdl_scale / n_samples
        return cls(0.5 * np.log(n_samples) * per_sample, np.log(len(basis.variables) * choices) * per_sample)

    def __call__(self, basis: SpanBasis, indices: Array) -> Array:
        """Return ``r_y`` of functions."""
        if self.base == 0 and not np.any(self.weights):
            return np.zeros(len(indices))
        costs = np.empty(len(indices))
        for part in row_blocks(len(indices), len(basis.variables)):
            costs[part] = self.base + (basis.digits(indices[part]) > 0) @ self.weights
        return costs

    def scaled(self, factor: float) -> DescriptionLength:
        """Return the penalty times a factor."""
        return DescriptionLength(self.base * factor, self.weights * factor)

    def halves(self, basis: SpanBasis, dtype: np.dtype) -> tuple[Array, Array]:
        """Return tables with ``r_y = low[y % low.size] + high[y // low.size]``, for powers of two as cardinalities.

        The cut lies between two variables, near the middle of the index, so that both tables are small.
        """
        least = VECTOR_BYTES // np.dtype(dtype).itemsize
        size, axis = 1, len(basis.variables)
        while axis > 0 and (size < least or size * size < basis.size):
            axis -= 1
            size *= basis.variables.sizes[axis]
        low = self._part(basis, axis, len(basis.variables))
        high = self.base + self._part(basis, 0, axis)
        return low.astype(dtype), high

    def _part(self, basis: SpanBasis, first: int, last: int) -> Array:
        """Return what the variables `first` to `last` add, for every combination of their digits."""
        table = np.zeros(1)
        for i in range(first, last):
            table = (table[:, None] + self.weights[i] * (np.arange(basis.variables.sizes[i]) > 0)).ravel()
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

    def __call__(self, basis: SpanBasis, indices: Array, theta: Array) -> Array:
        """Return what parameters cost."""
        return self.l1 * np.abs(theta) + 0.5 * self.l2_of(basis, indices) * theta**2

    def l2_of(self, basis: SpanBasis, indices: Array) -> Array:
        """Return the L2 strength of functions."""
        if self.l2 == 0.0:
            return np.zeros(len(indices))
        strengths = np.empty(len(indices))
        for part in row_blocks(len(indices), len(basis.variables)):
            strengths[part] = self.l2 * self.l2_growth ** (basis.orders(indices[part]) - 1.0)
        return strengths

    def l2_table(self, basis: SpanBasis) -> Array:
        """Return the L2 strength of every function, in the order of their indices; 0 for the constant."""
        table = np.full(1, self.l2 / self.l2_growth)
        for q in basis.variables.sizes:
            table = np.multiply.outer(table, np.where(np.arange(q) > 0, self.l2_growth, 1.0)).ravel()
        table[0] = 0.0
        return table


# -- the problem ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class SpanProblem:
    """Data and penalty of a fit; made once, never changed.

    Parameters
    ----------
    basis : SpanBasis
        The functions to choose from.
    data_dual : (|X|,), float64 or float32
        ``<Phi_y>`` in the data, for every y.
    n_samples : float
        N, the sum of the counts.
    negative_entropy : float
        ``<ln p_d>`` in the data: what makes the cost a divergence. With missing cells, that of the filled ones only:
        the cost is then a bound of minus the mean log-likelihood of the observed cells.
    penalty : DescriptionLength
        ``r_y``.
    shrinkage : Shrinkage
        L1 and L2 on the parameters.
    """

    basis: SpanBasis
    data_dual: Array
    n_samples: float
    negative_entropy: float
    penalty: DescriptionLength
    shrinkage: Shrinkage = field(default_factory=Shrinkage)

    @classmethod
    def build(
        cls,
        basis: SpanBasis,
        codes: Array,
        counts: Array,
        dtype: np.dtype | type | str = np.float64,
        *,
        mdl_scale: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        l2_growth: float = 1.0,
    ) -> SpanProblem:
        """Count the data's states and transform them once; equal rows are added up."""
        if basis.size < 2:
            raise DataError("every variable has one value only", "there is nothing to learn")
        distinct, position = np.unique(basis.numbers(codes), return_inverse=True)
        weights = np.bincount(position, weights=counts)
        n_samples = float(weights.sum())
        if n_samples < 1.0:
            raise DataError(f"`sample_weight` adds up to {n_samples:.3g}", "weights count rows here: scale them")
        seen = weights > 0
        shares = weights[seen] / n_samples
        table = aligned_zeros(basis.size, np.dtype(dtype))
        table[distinct[seen]] = shares
        transform(table, basis.shape)
        table.flags.writeable = False
        penalty = DescriptionLength.of_samples(basis, n_samples, mdl_scale)
        return cls(basis, table, n_samples, float(shares @ np.log(shares)), penalty, Shrinkage(l1, l2, l2_growth))

    @property
    def limit(self) -> float:
        """Where targets are clipped: a mean of +-1 has no finite parameter."""
        return 1.0 - 1.0 / self.n_samples

    # -- the cost -----------------------------------------------------------------------------------------------------
    def penalties(self, indices: Array) -> Array:
        """Return ``r_y`` of functions."""
        if not (self._by_xor and self.data_dual.dtype == np.float64):
            return self.penalty(self.basis, indices)
        low, high = self._halves
        return low[indices % low.size] + high[indices // low.size]

    def targets(self, indices: Array) -> Array:
        """Return the means that parameters of functions are led to."""
        return np.clip(self.data_dual[indices].astype(np.float64), -self.limit, self.limit)

    def cost(self, indices: Array, theta: Array, log_partition: float) -> float:
        """Return ``KL(p_d || p_theta) + sum_y r_y``, and the shrinkage."""
        divergence = self.negative_entropy - theta @ self.data_dual[indices] + log_partition
        return float(divergence + self.penalties(indices).sum() + self.shrinks(indices, theta))

    def shrinks(self, indices: Array, theta: Array) -> float:
        """Return what L1 and L2 add to the cost."""
        return float(self.shrinkage(self.basis, indices, theta).sum())

    def l2_of(self, indices: Array) -> Array:
        """Return the L2 strength of functions."""
        return self.shrinkage.l2_of(self.basis, indices)

    def append_target(self, dual: Array, y: int) -> float:
        """Return the mean that an appended function is led to: its target, shrunk."""
        now, data = float(dual[y]), float(self.data_dual[y])
        return float(span.append_gain(y, now, data, 0.0, self.limit, self._shrinkage, self._axes)[1])

    # -- the dual -----------------------------------------------------------------------------------------------------
    def uniform_dual(self) -> Array:
        """Return the dual of the uniform distribution, in a new table."""
        table = aligned_zeros(self.basis.size, self.data_dual.dtype)
        table[0] = 1.0
        return table

    def refresh(self, dual: Array, indices: Array, theta: Array) -> float:
        """Overwrite the dual by fresh transforms of the parameters and return log Z."""
        if len(indices) == 0 and self.basis.is_walsh:  # what the transforms would give, to the same bits
            dual.fill(0)
            dual[0] = 1.0
            return float(np.log(dual.size))
        return FullSpanFamily(self.basis, indices).dual(theta, out=dual).log_partition

    def scan(self, dual: Array, indices: Array) -> tuple[float, int]:
        """Return the gain and the index of the best append; index -1 where none lowers the cost."""
        return self._pass(dual, indices, 0, 1.0, 0.0)

    def candidates(self, dual: Array, indices: Array, floor: float) -> Array:
        """Return the functions whose append gains at least `floor`, the best first."""
        passing = np.setdiff1d(span.passing(dual, self.data_dual, floor + self.penalty.base), indices)
        gains = span.append_gains(
            passing,
            dual[passing].astype(np.float64),
            self.data_dual[passing].astype(np.float64),
            self.penalties(passing),
            self.limit,
            self._shrinkage,
            self._axes,
        )
        order = np.argsort(-gains, kind="stable")
        return passing[order[: np.count_nonzero(gains >= floor)]]

    def move(self, dual: Array, indices: Array, z: int, target: float) -> tuple[float, int]:
        """Lead ``dual[z]`` to `target` by changing its parameter, in place, and scan as `scan` does in the same pass.

        `indices` are the active functions after the move.
        """
        mass, mean = float(dual[0]), float(dual[z])
        now = min(max(mean / mass, -span.LARGEST_DUAL), span.LARGEST_DUAL)
        # dividing by the mass as it is, and not as it should be, keeps its rounding errors from growing step by step
        tilt = (target - now) / (1.0 - target * now)
        keep = 1.0 / (mass + tilt * mean)
        return self._pass(dual, indices, z, keep, tilt * keep)

    def can_update(self, z: int) -> bool:
        """Whether `move` takes this function; one of very high order is cheaper by `refresh`."""
        return self._by_xor or span_axes.n_rows(self.basis.shape, self._digits(z)) <= span_axes.MOST_ROWS

    def pair_expectations(self, dual: Array, indices: Array) -> Array:
        """Return ``<Phi_y Phi_z>`` for all pairs of functions, read from the dual."""
        if self.basis.is_walsh:
            return span.pair_expectations(dual, indices)
        basis = self.basis
        return span_axes.pair_expectations_axes(dual, basis.digits(indices), basis.shape, basis.strides)

    @cached_property
    def _by_xor(self) -> bool:
        return self.basis.is_walsh and self.basis.size >= span.smallest_table(self.data_dual.dtype)

    @cached_property
    def _halves(self) -> tuple[Array, Array]:
        return self.penalty.halves(self.basis, self.data_dual.dtype)

    @cached_property
    def _shrinkage(self) -> tuple[float, float, float]:
        return float(self.shrinkage.l1), float(self.shrinkage.l2), float(self.shrinkage.l2_growth)

    @cached_property
    def _axes(self) -> tuple[Array, Array]:
        return self.basis.shape, self.basis.strides

    def _digits(self, function: int) -> Array:
        return self.basis.digits(np.array([function]))[0]

    def _pass(self, dual: Array, indices: Array, z: int, keep: float, mix: float) -> tuple[float, int]:
        taken = np.sort(np.append(indices, 0))
        if self._by_xor:
            move = (z or 1, keep, mix)  # any pairing will do for a pass that changes nothing
            return span.update_and_scan(
                dual, self.data_dual, self._halves, move, self.limit, taken, 0.0, self._shrinkage, self._axes
            )
        penalties = self.penalty.base, self.penalty.weights
        return span_axes.update_and_scan_axes(
            dual,
            self.data_dual,
            self.basis.shape,
            penalties,
            (self._digits(z), keep, mix),
            self.limit,
            taken,
            0.0,
            self._shrinkage,
        )


def negative_entropy(data: Dataset) -> float:
    """Return ``<ln p_d>`` of the rows, what makes a cost a divergence; 0 with missing cells.

    Rows that miss different cells overlap and have no distribution to diverge from.
    """
    if data.has_missing:
        return 0.0
    shares = data.weights[data.weights > 0] / data.total_weight
    return float(shares @ np.log(shares))
