"""Log-weights and moments over all states of one two-valued layer, the other two-valued layer summed analytically.

Both layers are written in 0/1: a spin is ``2 bit - 1``, and ``2 cosh f = exp(-f) (1 + exp(2 f))`` is a factor
``1 + exp(field)`` times a part that is linear in the bits. The kernels are in `gibbsian.backends.numba.layer_sums`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from gibbsian.arrays import Floats, Integers, Slice
from gibbsian.backends.device import twin
from gibbsian.backends.numba import layer_sums as kernels
from gibbsian.backends.parallel import WORTH_THREADS, map_in_order
from gibbsian.models.base import StackParts
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import BinaryUnits, enumerate_values
from gibbsian.resources import spans

# Bits of the states in a tile: their products stay in the first-level cache.
LANE_UNITS = 6
# Maximum field for products of exponentials, and maximum of its part from the high or from the low bits.
LARGEST_FIELD, LARGEST_HALF = 170.0, 300.0
# Maximum logarithm of a running product.
LARGEST_PRODUCT = 690.0
# Pieces of work for threads; moments are summed piece by piece, so that the number must not depend on the threads.
N_PIECES = 8
# The sum of the weights of states that are left out is less.
NEGLIGIBLE = 1e-17


Result = TypeVar("Result")


@dataclass(frozen=True)
class _FieldTables:
    """Parts of the fields of some units of the other layer: over the high bits and over the low bits."""

    units: Integers
    high: Floats  # (n_high_states, n_units)
    low: Floats  # (n_units, n_low_states)


@dataclass(frozen=True, eq=False)
class TwoValuedTable:
    """The enumerated layer in 0/1 form: its bits, the linear part of the log-weights, and the fields from the bits.

    Parameters
    ----------
    n_bits : int
        Number of enumerated units.
    constant, linear : float and ndarray of shape (n_bits,)
        The part of the log-weight that is linear in the bits.
    fields, couplings : ndarray of shape (n_units,) and (n_bits, n_units)
        Fields of the other layer's units at zero bits, and what each bit adds.
    stack : StackFamily
        The layers, to bring the moments back to their values.
    side : int
        The enumerated side.
    """

    n_bits: int
    constant: float
    linear: Floats
    fields: Floats
    couplings: Floats
    stack: StackFamily
    side: int

    @classmethod
    def of(cls, stack: StackFamily, parts: StackParts, side: int) -> TwoValuedTable:
        """Return the table of a machine with units of one kind on each side; the layers of a side are concatenated."""
        tilts, biases = (np.concatenate([parts.biases[at] for at in stack.sides[k]]) for k in (side, 1 - side))
        weights: Floats = np.zeros((len(tilts), len(biases)))
        for matrix, (rows, columns, is_lower) in zip(parts.weights, _blocks(stack, side), strict=True):
            weights[rows, columns] = matrix if is_lower else matrix.T
        # fields b + W h with h = low + step * bits
        low, step = (-1.0, 2.0) if _is_spin(stack, side) else (0.0, 1.0)
        fields, couplings = biases + low * weights.sum(axis=0), step * weights
        constant, linear = low * float(tilts.sum()), step * tilts
        if _is_spin(stack, 1 - side):
            constant -= float(fields.sum())
            linear = linear - couplings.sum(axis=1)
            fields, couplings = 2.0 * fields, 2.0 * couplings
        return cls(len(tilts), constant, linear, fields, couplings, stack, side)

    # -- the two halves ---------------------------------------------------------------------------------------------
    @property
    def n_low(self) -> int:
        """Number of low bits: those that change fastest."""
        return max(min(self.n_bits, LANE_UNITS), self.n_bits // 2)

    @property
    def _bits(self) -> tuple[Floats, Floats]:
        """All states of the high and of the low bits."""
        high, low = (enumerate_values([BinaryUnits(n)], 0, 2**n)[0] for n in (self.n_bits - self.n_low, self.n_low))
        return high, low

    def _split(self) -> tuple[_FieldTables, _FieldTables]:
        """Return exponentials of the fields of units where nothing overflows, and the fields of the others."""
        bits_high, bits_low = self._bits
        high, low = self.fields + bits_high @ self.couplings[self.n_low :], bits_low @ self.couplings[: self.n_low]
        largest = np.maximum(np.abs(high).max(axis=0), np.abs(low).max(axis=0))
        is_small = (high.max(axis=0) + low.max(axis=0) <= LARGEST_FIELD) & (largest <= LARGEST_HALF)
        small, large = np.flatnonzero(is_small), np.flatnonzero(~is_small)
        # factors 1 + 0 fill the last group of units
        padding = (0, 0), (0, -len(small) % kernels.UNROLLED)
        small_low = np.pad(np.exp(low[:, small]), padding)
        return (
            _FieldTables(small, np.pad(np.exp(high[:, small]), padding), np.ascontiguousarray(small_low.T)),
            _FieldTables(large, np.ascontiguousarray(high[:, large]), np.ascontiguousarray(low[:, large].T)),
        )

    def _tiles(self) -> list[Slice]:
        lanes = 2 ** min(self.n_low, LANE_UNITS)
        return [slice(start, start + lanes) for start in range(0, 2**self.n_low, lanes)]

    def _map(self, function: Callable[[Slice], Result], pieces: list[Slice]) -> Iterable[Result]:
        """Apply a function to pieces of work, on threads where that is quicker."""
        n_cells = 2.0**self.n_bits * len(self.fields)
        return map(function, pieces) if n_cells < WORTH_THREADS else map_in_order(function, pieces)

    # -- answers ----------------------------------------------------------------------------------------------------
    def log_weights(self) -> Floats:
        """Return the log-weights of all states, the first unit changing fastest."""
        if (device_kernels := twin("layer_sums")) is not None:
            return np.asarray(self.constant + device_kernels.log_weights(self.linear, self.fields, self.couplings))
        bits_high, bits_low = self._bits
        linear_high = self.constant + bits_high @ self.linear[self.n_low :]
        linear_low = bits_low @ self.linear[: self.n_low]
        small, large = self._split()
        ends = _group_ends(small)
        table: Floats = np.empty((len(bits_high), len(bits_low)))

        def fill(tile: Slice) -> None:
            part = linear_high[:, None] + linear_low[tile]
            kernels.add_log_products(small.high, np.ascontiguousarray(small.low[:, tile]), ends, part)
            kernels.add_log_sums(large.high, np.ascontiguousarray(large.low[:, tile]), part)
            table[:, tile] = part

        for _ in self._map(fill, self._tiles()):
            pass
        return table.ravel()

    def moments(self, weights: Floats) -> Floats:
        """Return the sums of the statistics with these weights of the states, in the layout of theta.

        The weights are probabilities, or differences of probabilities.
        """
        if (device_kernels := twin("layer_sums")) is not None:
            return self._in_values(float(weights.sum()), *device_kernels.moments(weights, self.fields, self.couplings))
        bits_high, bits_low = self._bits
        weights = weights.reshape(len(bits_high), len(bits_low))
        small, large = self._split()
        threshold = NEGLIGIBLE / weights.size

        def sums(rows: Slice) -> tuple[Floats, Floats]:
            """Sums of the other layer's means: by row of high bits contracted with them, and with the low bits."""
            by_row: Floats = np.zeros((rows.stop - rows.start, len(self.fields)))
            with_low: Floats = np.zeros((self.n_low, len(self.fields)))
            for tile in self._tiles():
                part = np.ascontiguousarray(weights[rows, tile])
                for tables, kernel in (
                    (small, kernels.mean_sums_of_products),
                    (large, kernels.mean_sums_of_fields),
                ):
                    row_sums = np.zeros((len(part), len(tables.units)))
                    lane_sums = np.zeros((len(tables.units), part.shape[1]))
                    low = np.ascontiguousarray(tables.low[:, tile])
                    kernel(tables.high[rows], low, part, threshold, row_sums, lane_sums)
                    by_row[:, tables.units] += row_sums
                    with_low[:, tables.units] += bits_low[tile].T @ lane_sums.T
            return np.vstack([with_low, bits_high[rows].T @ by_row]), by_row.sum(axis=0)

        products, means = np.zeros((self.n_bits, len(self.fields))), np.zeros(len(self.fields))
        cuts = np.linspace(0, len(weights), min(len(weights), N_PIECES) + 1).astype(int).tolist()
        for piece, part in self._map(sums, [slice(start, stop) for start, stop in pairwise(cuts)]):
            products += piece
            means += part
        bits = np.concatenate([bits_low.T @ weights.sum(axis=0), bits_high.T @ weights.sum(axis=1)])
        return self._in_values(float(weights.sum()), means, bits, products)

    def _in_values(self, total: float, other: Floats, bits: Floats, products: Floats) -> Floats:
        """Return the moments of values, given those of bits, of the other side and of their products."""
        stack, side = self.stack, self.side
        products = products.T
        if _is_spin(stack, 1 - side):
            products, other = 2.0 * products - bits, 2.0 * other - total
        if _is_spin(stack, side):
            products, bits = 2.0 * products - other[:, None], 2.0 * bits - total
        sides, columns = (bits, other) if side == 0 else (other, bits), _columns(stack)
        biases = [sides[index % 2][columns[index % 2][index // 2]] for index in range(len(stack.layers))]
        blocks = [
            products[of_other, of_side].T if is_lower else products[of_other, of_side]
            for of_side, of_other, is_lower in _blocks(stack, side)
        ]
        return np.concatenate([*biases, *(block.ravel() for block in blocks)])


def _is_spin(stack: StackFamily, side: int) -> bool:
    return stack.layers[side].kind == "spin"


def _columns(stack: StackFamily) -> list[list[Slice]]:
    """Return the columns of the layers of each side."""
    return [spans(stack.layers[index].width for index in side) for side in stack.sides]


def _blocks(stack: StackFamily, side: int) -> Iterator[tuple[Slice, Slice, bool]]:
    """Yield the columns of each two neighbours, on the side and on the other, and whether the first is the lower."""
    columns = _columns(stack)
    for lower in range(len(stack.layers) - 1):
        inner, other = (lower, lower + 1) if lower % 2 == side else (lower + 1, lower)
        yield columns[side][inner // 2], columns[1 - side][other // 2], inner == lower


def _group_ends(small: _FieldTables) -> Integers:
    """Return the ends of the fewest groups of units whose product cannot overflow."""
    factors = 1.0 + small.high.max(axis=0, initial=0.0) * small.low.max(axis=1, initial=0.0)
    growth = np.log(factors).reshape(-1, kernels.UNROLLED).sum(axis=1)
    ends, grown = [], 0.0
    for number, more in enumerate(growth.tolist()):
        if grown + more > LARGEST_PRODUCT:
            ends.append(number * kernels.UNROLLED)
            grown = 0.0
        grown += more
    return np.array([*ends, len(factors)], dtype=np.int64)
