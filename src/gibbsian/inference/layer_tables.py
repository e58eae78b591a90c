"""Log-weights and moments over all states of one two-valued layer, the other two-valued layer summed analytically.

Both layers are brought to 0/1 form: a spin is ``2 bit - 1``, and ``2 cosh f = exp(-f) (1 + exp(2 f))`` leaves a factor
``1 + exp(field)`` and a part that is linear in the bits. Then `gibbsian.backends.numba.layer_sums` does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.backends.numba import layer_sums as kernels
from gibbsian.backends.parallel import WORTH_THREADS, map_in_order
from gibbsian.models.family import StackParts
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import BinaryUnits, enumerate_values
from gibbsian.resources import spans

# States that are worked on side by side: their products stay in the first-level cache.
LANE_UNITS = 6
# A field this large at most goes through products of exponentials, a half of it by itself twice as large.
LARGEST_FIELD, LARGEST_HALF = 170.0, 300.0
# Logarithm up to which a running product may grow.
LARGEST_PRODUCT = 690.0
# Pieces of work for threads; moments are summed piece by piece, so the number does not follow the threads.
N_PIECES = 8
# Shares that are passed over add up to less than this.
NEGLIGIBLE = 1e-17


Result = TypeVar("Result")


@dataclass(frozen=True)
class _Tables:
    """Parts of the fields of some units of the other layer: over the high bits and over the low bits."""

    units: np.ndarray
    high: np.ndarray  # (n_high_states, n_units)
    low: np.ndarray  # (n_units, n_low_states)


@dataclass(frozen=True, eq=False)
class TwoValuedTable:
    """The enumerated layer in 0/1 form: its bits, what is linear in them, and the fields they make.

    Parameters
    ----------
    n_bits : int
        Number of enumerated units.
    constant, slopes : float and ndarray of shape (n_bits,)
        The part of the log-weight that is linear in the bits.
    fields, field_slopes : ndarray of shape (n_units,) and (n_bits, n_units)
        Fields of the other layer's units at zero bits, and how they grow with each bit.
    stack : StackFamily
        The layers, to bring the moments back to their values.
    side : int
        The side whose states are enumerated.
    """

    n_bits: int
    constant: float
    slopes: np.ndarray
    fields: np.ndarray
    field_slopes: np.ndarray
    stack: StackFamily
    side: int

    @classmethod
    def of(cls, stack: StackFamily, parts: StackParts, side: int) -> TwoValuedTable:
        """Take a machine, each of whose sides has units of one kind, with the layers of a side next to each other."""
        tilts, biases = (np.concatenate([parts.biases[at] for at in stack.sides[own]]) for own in (side, 1 - side))
        couplings = np.zeros((len(tilts), len(biases)))
        for matrix, (rows, columns, is_lower) in zip(parts.weights, _blocks(stack, side), strict=True):
            couplings[rows, columns] = matrix if is_lower else matrix.T
        # fields b + W h with h = low + step * bits
        low, step = (-1.0, 2.0) if _is_spin(stack, side) else (0.0, 1.0)
        fields, field_slopes = biases + low * couplings.sum(axis=0), step * couplings
        constant, slopes = low * float(tilts.sum()), step * tilts
        if _is_spin(stack, 1 - side):
            constant -= float(fields.sum())
            slopes = slopes - field_slopes.sum(axis=1)
            fields, field_slopes = 2.0 * fields, 2.0 * field_slopes
        return cls(len(tilts), constant, slopes, fields, field_slopes, stack, side)

    # -- the two halves ---------------------------------------------------------------------------------------------
    @property
    def n_low(self) -> int:
        """Number of low bits: those that change fastest."""
        return max(min(self.n_bits, LANE_UNITS), self.n_bits // 2)

    @property
    def _bits(self) -> tuple[np.ndarray, np.ndarray]:
        """All states of the high and of the low bits."""
        n_high = self.n_bits - self.n_low
        return _all_bits(n_high), _all_bits(self.n_low)

    @property
    def _shape(self) -> tuple[int, int]:
        return 2 ** (self.n_bits - self.n_low), 2**self.n_low

    def _split(self) -> tuple[_Tables, _Tables]:
        """Return exponentials of the fields of units where nothing overflows, and the fields of the others."""
        bits_high, bits_low = self._bits
        high = self.fields + bits_high @ self.field_slopes[self.n_low :]
        low = bits_low @ self.field_slopes[: self.n_low]
        largest = np.maximum(np.abs(high).max(axis=0), np.abs(low).max(axis=0))
        tame = (high.max(axis=0) + low.max(axis=0) <= LARGEST_FIELD) & (largest <= LARGEST_HALF)
        calm, wild = np.flatnonzero(tame), np.flatnonzero(~tame)
        # factors 1 + 0 fill the last group of units
        padding = -len(calm) % kernels.UNROLLED
        calm_high = np.pad(np.exp(high[:, calm]), ((0, 0), (0, padding)))
        calm_low = np.pad(np.exp(low[:, calm]), ((0, 0), (0, padding)))
        return (
            _Tables(calm, calm_high, np.ascontiguousarray(calm_low.T)),
            _Tables(wild, np.ascontiguousarray(high[:, wild]), np.ascontiguousarray(low[:, wild].T)),
        )

    def _tiles(self) -> list[slice]:
        lanes = 2 ** min(self.n_low, LANE_UNITS)
        return [slice(start, start + lanes) for start in range(0, 2**self.n_low, lanes)]

    def _spread(self, function: Callable[[slice], Result], pieces: list[slice]) -> Iterable[Result]:
        """Give pieces of work to threads, where it is more than waking them up."""
        n_cells = 2.0**self.n_bits * len(self.fields)
        return map(function, pieces) if n_cells < WORTH_THREADS else map_in_order(function, pieces)

    # -- answers ----------------------------------------------------------------------------------------------------
    def log_weights(self) -> np.ndarray:
        """Return the log-weights of all states, the first unit changing fastest."""
        if (twins := twin("layer_sums")) is not None:
            return self.constant + twins.log_weights(self.slopes, self.fields, self.field_slopes)
        bits_high, bits_low = self._bits
        linear_high = self.constant + bits_high @ self.slopes[self.n_low :]
        linear_low = bits_low @ self.slopes[: self.n_low]
        calm, wild = self._split()
        ends = _group_ends(calm)
        table = np.empty(self._shape)

        def fill(tile: slice) -> None:
            part = linear_high[:, None] + linear_low[tile]
            kernels.add_log_products(calm.high, np.ascontiguousarray(calm.low[:, tile]), ends, part)
            kernels.add_log_sums(wild.high, np.ascontiguousarray(wild.low[:, tile]), part)
            table[:, tile] = part

        for _ in self._spread(fill, self._tiles()):
            pass
        return table.ravel()

    def moments(self, shares: np.ndarray) -> np.ndarray:
        """Return the expected statistics in the layout of theta.

        `shares` are the probabilities of the states, or differences of probabilities.
        """
        if (twins := twin("layer_sums")) is not None:
            return self._in_values(float(shares.sum()), *twins.moments(shares, self.fields, self.field_slopes))
        shares = shares.reshape(self._shape)
        bits_high, bits_low = self._bits
        calm, wild = self._split()
        least = NEGLIGIBLE / shares.size

        def sums(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            """Sums of the other layer's means: by row of high bits contracted with them, and with the low bits."""
            by_row = np.zeros((rows.stop - rows.start, len(self.fields)))
            with_low = np.zeros((self.n_low, len(self.fields)))
            for tile in self._tiles():
                part = np.ascontiguousarray(shares[rows, tile])
                for tables, kernel in (
                    (calm, kernels.mean_sums_of_products),
                    (wild, kernels.mean_sums_of_fields),
                ):
                    row_sums = np.zeros((len(part), len(tables.units)))
                    lane_sums = np.zeros((len(tables.units), part.shape[1]))
                    low = np.ascontiguousarray(tables.low[:, tile])
                    kernel(tables.high[rows], low, part, least, row_sums, lane_sums)
                    by_row[:, tables.units] += row_sums
                    with_low[:, tables.units] += bits_low[tile].T @ lane_sums.T
            return np.vstack([with_low, bits_high[rows].T @ by_row]), by_row.sum(axis=0)

        products, means = np.zeros((self.n_bits, len(self.fields))), np.zeros(len(self.fields))
        for piece, part in self._spread(sums, _pieces(len(shares))):
            products += piece
            means += part
        bits = np.concatenate([bits_low.T @ shares.sum(axis=0), bits_high.T @ shares.sum(axis=1)])
        return self._in_values(float(shares.sum()), means, bits, products)

    def _in_values(self, total: float, other: np.ndarray, bits: np.ndarray, products: np.ndarray) -> np.ndarray:
        """Bring moments of bits, of the other side and of their products to the values of the layers."""
        stack, side = self.stack, self.side
        products = products.T
        if _is_spin(stack, 1 - side):
            products, other = 2.0 * products - bits, 2.0 * other - total
        if _is_spin(stack, side):
            products, bits = 2.0 * products - other[:, None], 2.0 * bits - total
        sides = (bits, other) if side == 0 else (other, bits)
        columns = [spans(stack.layers[at].width for at in own) for own in stack.sides]
        biases = [sides[at % 2][columns[at % 2][at // 2]] for at in range(len(stack.layers))]
        weights = [
            (products[columns_, rows].T if is_lower else products[columns_, rows]).ravel()
            for rows, columns_, is_lower in _blocks(stack, side)
        ]
        return np.concatenate([*biases, *weights])


def _is_spin(stack: StackFamily, side: int) -> bool:
    return stack.layers[side].kind == "spin"


def _all_bits(n: int) -> np.ndarray:
    return enumerate_values([BinaryUnits(n)], 0, 2**n)[0]


def _blocks(stack: StackFamily, side: int) -> Iterator[tuple[slice, slice, bool]]:
    """Yield for each pair of neighbours its rows, of the side, and columns, of the other; and if the row is lower."""
    columns = [spans(stack.layers[place].width for place in own) for own in stack.sides]
    for lower in range(len(stack.layers) - 1):
        own, other = (lower, lower + 1) if lower % 2 == side else (lower + 1, lower)
        yield columns[side][own // 2], columns[1 - side][other // 2], own == lower


def _group_ends(calm: _Tables) -> np.ndarray:
    """Ends of groups of units whose product cannot overflow, as few as there may be."""
    factors = 1.0 + calm.high.max(axis=0, initial=0.0) * calm.low.max(axis=1, initial=0.0)
    growth = np.log(factors).reshape(-1, kernels.UNROLLED).sum(axis=1)
    ends, grown = [], 0.0
    for number, more in enumerate(growth.tolist()):
        if grown + more > LARGEST_PRODUCT:
            ends.append(number * kernels.UNROLLED)
            grown = 0.0
        grown += more
    return np.array([*ends, len(factors)], dtype=np.int64)


def _pieces(n_rows: int) -> list[slice]:
    cuts = np.linspace(0, n_rows, min(n_rows, N_PIECES) + 1).astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(cuts)]
