"""What a full-span fit is given: the table of the data, the costs of functions, and the cost of a model (TA22 eq. 2.5).

A table holds one number for each function of the basis, in float64 or float32: `data_dual` the means ``<Phi_y>`` in the
data, a dual those in a model (TA22 eq. 2.6). On a device tables stay there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self, TypeAlias, cast

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers
from gibbsian.backends.device import twin
from gibbsian.backends.numba import span, span_axes
from gibbsian.backends.numba.axes import normalise, transform
from gibbsian.backends.numba.vectors import VECTOR_BYTES
from gibbsian.backends.threads import kept_threads
from gibbsian.data import Dataset
from gibbsian.errors import DataError
from gibbsian.models.families.span_basis import SpanBasis
from gibbsian.resources import row_blocks

# A table of float64 or float32, of NumPy or on a device. Moves change the dual of a model IN PLACE: all states of a fit
# share one table, so a state is of no use once a step was taken from it. A checkpoint holds a copy.
Table: TypeAlias = Floats
Halves = tuple[Floats, Floats]
XorMove = tuple[int, float, float]
Shrinkage = tuple[float, float, float]
Axes = tuple[Integers, Integers]


class SpanKernels(Protocol):
    """The functions of `backends.numba.span`, where they are documented, and of `backends.torch.span`."""

    new_table: Callable[[int, np.dtype[np.float64]], Table]
    place: Callable[[Table, Halves], Halves]
    fill_dual: Callable[[Table, Integers, Floats, Integers], float]
    passing: Callable[[Table, Table, float], Integers]
    pair_expectations: Callable[[Table, Integers], Floats]
    update_and_scan: Callable[
        [Table, Table, Halves, XorMove, float, Integers, float, Shrinkage, Axes], tuple[float, int]
    ]


ON_CPU = cast("SpanKernels", span)


# -- what functions cost ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class FunctionCosts:
    """What functions and their parameters cost, in nats per sample.

    A function costs ``r_y``, a constant and a term for each variable that it depends on; its parameter ``l1 |theta_y| +
    l2 * l2_growth^(order of y - 1) * theta_y^2 / 2``. An `l2` of 1/N is a Gaussian prior of variance 1.

    Parameters
    ----------
    basis : SpanBasis
        All functions.
    base : float
        What a function costs by itself.
    weights : ndarray of shape (n,)
        What each variable adds.
    l1 : float, default=0.0
        Strength of the absolute value, the same for all orders.
    l2 : float, default=0.0
        Strength of the square for functions of one variable.
    l2_growth : float, default=1.0
        The factor by which `l2` grows with every further variable; at least 1.
    """

    basis: SpanBasis
    base: float
    weights: Floats
    l1: float = 0.0
    l2: float = 0.0
    l2_growth: float = 1.0

    @classmethod
    def of_samples(
        cls,
        basis: SpanBasis,
        n_samples: float,
        mdl_scale: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        l2_growth: float = 1.0,
    ) -> Self:
        """Return the costs with the description length of eq. 2.5 times a factor.

        That is the nats per sample to send a parameter and the name of its function.
        """
        # a variable with one value is in no function, so its logarithm of zero is never asked for
        choices = np.maximum(basis.shape - 1, 1)
        per_sample = mdl_scale / n_samples
        base, weights = 0.5 * np.log(n_samples) * per_sample, np.log(len(basis.variables) * choices) * per_sample
        return cls(basis, base, weights, l1, l2, l2_growth)

    def with_samples(self, factor: float) -> Self:
        """Return the costs with the description lengths times a factor."""
        return replace(self, base=self.base * factor, weights=self.weights * factor)

    def lengths(self, indices: Integers) -> Floats:
        """Return ``r_y`` of functions."""
        if self.base == 0 and not np.any(self.weights):
            return np.zeros(len(indices))
        lengths = np.empty(len(indices))
        for part in row_blocks(len(indices), len(self.basis.variables)):
            lengths[part] = self.base + (self.basis.digits(indices[part]) > 0) @ self.weights
        return lengths

    def shrinkage(self, indices: Integers, theta: Floats) -> Floats:
        """Return what parameters cost."""
        return self.l1 * np.abs(theta) + 0.5 * self.l2_of(indices) * theta**2

    def l2_of(self, indices: Integers) -> Floats:
        """Return the L2 strength of functions."""
        if self.l2 == 0.0:
            return np.zeros(len(indices))
        strengths = np.empty(len(indices))
        for part in row_blocks(len(indices), len(self.basis.variables)):
            strengths[part] = self.l2 * self.l2_growth ** (self.basis.orders(indices[part]) - 1.0)
        return strengths

    def l2_table(self) -> Floats:
        """Return the L2 strength of every function; 0 for the constant."""
        table: Floats = np.array([self.l2 / self.l2_growth])
        for q in self.basis.variables.sizes:
            growth = np.array([1.0] + (q - 1) * [self.l2_growth])
            table = np.asarray(table[:, None] * growth, np.float64).ravel()
        table[0] = 0.0
        return table

    def halves(self, dtype: np.dtype[np.float64]) -> Halves:
        """Return tables with ``r_y = low[y % low.size] + high[y // low.size]``, for powers of two as cardinalities.

        The cut lies between two variables, near the middle of the index, so that both tables are small.
        """
        n, sizes = len(self.basis.variables), self.basis.variables.sizes
        size, axis = 1, n
        while axis > 0 and (size < VECTOR_BYTES // dtype.itemsize or size * size < self.basis.size):
            axis -= 1
            size *= sizes[axis]
        tables = []
        for variables in (range(axis, n), range(axis)):
            table = np.zeros(1)
            for i in variables:
                table = (table[:, None] + self.weights[i] * (np.arange(sizes[i]) > 0)).ravel()
            tables.append(table)
        return tables[0].astype(dtype), self.base + tables[1]


# -- the problem ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class SpanProblem:
    """The data and the costs of a fit.

    Parameters
    ----------
    data_dual : ndarray of shape (|X|,)
        ``<Phi_y>`` in the data, for every y.
    n_samples : float
        N, the sum of the counts.
    negative_entropy : float
        ``<ln p_d>`` in the data, which makes the cost a divergence. With missing cells, that of the completions only:
        the cost is then a bound of minus the mean log-likelihood of the observed cells.
    costs : FunctionCosts
        What functions and their parameters cost.
    kernels : SpanKernels
        Where tables are, and what works on them.
    """

    data_dual: Table
    n_samples: float
    negative_entropy: float
    costs: FunctionCosts
    kernels: SpanKernels = ON_CPU

    @classmethod
    def build(
        cls,
        basis: SpanBasis,
        codes: Codes | Integers,
        counts: Floats,
        dtype: str = "float64",
        mdl_scale: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        l2_growth: float = 1.0,
    ) -> Self:
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
        table: Table = span.new_table(basis.size, np.dtype(dtype))
        table[distinct[seen]] = shares
        transform(table, basis.shape)
        table.flags.writeable = False
        costs = FunctionCosts.of_samples(basis, n_samples, mdl_scale, l1, l2, l2_growth)
        return cls(table, n_samples, float(shares @ np.log(shares)), costs)

    def on_device(self) -> SpanProblem:
        """Return the problem with its tables on the current device; itself on the CPU, or in another basis."""
        if not self.by_xor or (kernels := twin("span")) is None:
            return self
        table = kernels.new_table(self.basis.size, self.dtype)
        table[...] = self.data_dual
        return replace(self, data_dual=table, kernels=kernels)

    @property
    def basis(self) -> SpanBasis:
        """The functions to choose from."""
        return self.costs.basis

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """The type of the tables."""
        return self.data_dual.dtype

    @cached_property
    def limit(self) -> float:
        """Where targets are clipped: a mean of +-1 has no finite parameter."""
        return 1.0 - 1.0 / self.n_samples

    @cached_property
    def by_xor(self) -> bool:
        """Whether ``Phi_y Phi_z = Phi_{y xor z}``, in a table that is large enough for vectors of such pairs."""
        return self.basis.is_walsh and self.basis.size >= span.smallest_table(self.dtype)

    # -- the cost -----------------------------------------------------------------------------------------------------
    def lengths(self, indices: Integers) -> Floats:
        """Return ``r_y`` of functions."""
        if not (self.by_xor and self.dtype == np.float64):
            return self.costs.lengths(indices)
        low, high = self._halves
        return low[indices % low.size] + high[indices // low.size]

    def targets(self, indices: Integers) -> Floats:
        """Return the means that parameters of functions are led to."""
        return np.clip(self.data_dual[indices].astype(np.float64), -self.limit, self.limit)

    def cost(self, indices: Integers, theta: Floats, log_partition: float) -> float:
        """Return ``KL(p_d || p_theta) + sum_y r_y``, and the shrinkage."""
        divergence = self.negative_entropy - theta @ self.data_dual[indices] + log_partition
        return float(divergence + self.lengths(indices).sum() + self.shrinkage(indices, theta))

    def shrinkage(self, indices: Integers, theta: Floats) -> float:
        """Return what L1 and L2 add to the cost."""
        return float(self.costs.shrinkage(indices, theta).sum())

    def append_target(self, dual: Table, y: int) -> float:
        """Return the mean that an appended function is led to: its target, shrunk."""
        now, data = float(dual[y]), float(self.data_dual[y])
        return float(span.append_gain(y, now, data, 0.0, self.limit, self._shrinkage, self._axes)[1])

    # -- tables -------------------------------------------------------------------------------------------------------
    def new_table(self) -> Table:
        """Return a table of zeros, for the duals of a fit."""
        return self.kernels.new_table(self.basis.size, self.dtype)

    @kept_threads()
    def probabilities(self, table: Table, indices: Integers, theta: Floats) -> float:
        """Overwrite a table of the CPU with the probabilities of all states and return log Z."""
        self.basis.fill(table, indices, theta)
        return normalise(table)

    def refresh(self, dual: Table, indices: Integers, theta: Floats) -> float:
        """Overwrite the dual by fresh transforms of the parameters and return log Z."""
        if len(indices) == 0 and self.basis.is_walsh:  # what the transforms would give, to the same bits
            dual[...] = 0.0
            dual[0] = 1.0
            return float(np.log(self.basis.size))
        return self.kernels.fill_dual(dual, indices, theta, self.basis.shape)

    def scan(self, dual: Table, indices: Integers) -> tuple[float, int]:
        """Return the gain and the index of the best append; index -1 where none lowers the cost."""
        return self._pass(dual, indices, 0, 1.0, 0.0)

    def update(self, dual: Table, indices: Integers, z: int, target: float) -> tuple[float, int]:
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
        """Whether `update` takes this function; one of very high order is cheaper by `refresh`."""
        return self.by_xor or span_axes.n_rows(self.basis.shape, self._digits(z)) <= span_axes.MOST_ROWS

    def candidates(self, dual: Table, indices: Integers, floor: float) -> Integers:
        """Return the functions whose append gains at least `floor`, the best first."""
        passing = np.setdiff1d(
            self.kernels.passing(dual, self.data_dual, floor + self.costs.base), np.append(indices, 0)
        )
        gains = span.append_gains(
            passing,
            dual[passing].astype(np.float64),
            self.data_dual[passing].astype(np.float64),
            self.lengths(passing),
            self.limit,
            self._shrinkage,
            self._axes,
        )
        order = np.argsort(-gains, kind="stable")
        best: Integers = passing[order[: np.count_nonzero(gains >= floor)]]
        return best

    def pair_expectations(self, dual: Table, indices: Integers) -> Floats:
        """Return ``<Phi_y Phi_z>`` for all pairs of functions, read from the dual."""
        if self.basis.is_walsh:
            return self.kernels.pair_expectations(dual, indices)
        basis = self.basis
        products: Floats = span_axes.pair_expectations_axes(dual, basis.digits(indices), basis.shape, basis.strides)
        return products

    def _digits(self, function: int) -> Integers:
        digits: Integers = self.basis.digits(np.array([function]))[0]
        return digits

    def _pass(self, dual: Table, indices: Integers, z: int, keep: float, mix: float) -> tuple[float, int]:
        taken = np.sort(np.append(indices, 0))
        if self.by_xor:
            move = (z or 1, keep, mix)  # any pairing will do for a pass that changes nothing
            return self.kernels.update_and_scan(
                dual, self.data_dual, self._placed_halves, move, self.limit, taken, 0.0, self._shrinkage, self._axes
            )
        lengths, move_by_digits = (self.costs.base, self.costs.weights), (self._digits(z), keep, mix)
        return span_axes.update_and_scan_axes(
            dual, self.data_dual, self.basis.shape, lengths, move_by_digits, self.limit, taken, 0.0, self._shrinkage
        )

    @cached_property
    def _halves(self) -> Halves:
        return self.costs.halves(self.dtype)

    @cached_property
    def _placed_halves(self) -> Halves:
        return self.kernels.place(self.data_dual, self._halves)

    @cached_property
    def _shrinkage(self) -> Shrinkage:
        return float(self.costs.l1), float(self.costs.l2), float(self.costs.l2_growth)

    @cached_property
    def _axes(self) -> Axes:
        return self.basis.shape, self.basis.strides


def negative_entropy(data: Dataset) -> float:
    """Return ``<ln p_d>`` of the rows, which makes a cost a divergence; 0 with missing cells.

    Rows that miss different cells overlap and have no distribution to diverge from.
    """
    if data.has_missing:
        return 0.0
    shares = data.weights[data.weights > 0] / data.total_weight
    return float(shares @ np.log(shares))
