"""Transforms of a table whose axes have any cardinality (TA22 section 2.2.2).

An axis of 2^k values has the Walsh basis (eq. 2.2); any other the basis of eq. 2.3, whose functions are +1 at
one value and -1 elsewhere. One axis after the other is transformed in place. The last axes, which fit a block
of the first-level cache, are all done block by block; each further axis is one pass over the table.
"""

from __future__ import annotations

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import relative_exp
from gibbsian.backends.numba.walsh import butterflies_2, butterflies_4, butterflies_8, in_pieces, walsh_hadamard

WALSH, SPREAD, SPREAD_TRANSPOSED = 0, 1, 2
# Entries of a block of axes that are transformed together, and columns or entries that stay on one thread.
_BLOCK = 2**12
_GRAIN = 2**12


# -- transforms -------------------------------------------------------------------------------------------------------
def transform(table: np.ndarray, cardinalities: np.ndarray, transposed: bool = False) -> None:
    """Turn a table over states into one over basis functions, in place: ``sum_x table[x] Phi_y(x)`` (TA22 eq. 2.9).

    Parameters
    ----------
    table : (|X|,), float64 or float32
        In C order: the last variable changes fastest.
    cardinalities : (n,) of int
        Number of values of each variable.
    transposed : bool
        The other way: ``sum_y table[y] Phi_y(x)``, from parameters to log-weights.
    """
    stages = _stages(cardinalities, transposed)
    if (stages[:, 0] == WALSH).all():
        walsh_hadamard(table)
        return
    inner = stages[stages[:, 1] * stages[:, 2] <= _BLOCK]
    outer = stages[len(inner) :]
    block = int(inner[-1, 1] * inner[-1, 2]) if len(inner) else 1
    if len(inner):
        n_blocks = table.size // block
        in_pieces(table.size, n_blocks, 1, lambda first, last: _run_blocks(table, inner, block, first, last))
    for kind, radix, stride in outer.tolist():
        in_pieces(table.size, table.size // radix, _GRAIN, _stage_of(table, kind, radix, stride))


def _stage_of(table, kind, radix, stride):
    return lambda first, last: _run_stage(table, kind, radix, stride, first, last)


def _stages(cardinalities: np.ndarray, transposed: bool) -> np.ndarray:
    """List what to do, innermost axis first: rows of kind, number of entries that mix, and their distance."""
    stages = []
    stride = 1
    for cardinality in reversed(np.asarray(cardinalities).tolist()):
        if is_power_of_two(cardinality):
            left = cardinality
            while left > 1:
                radix = min(left, 8)
                stages.append((WALSH, radix, stride))
                stride *= radix
                left //= radix
        else:
            stages.append((SPREAD_TRANSPOSED if transposed else SPREAD, cardinality, stride))
            stride *= cardinality
    return np.array(stages, dtype=np.int64).reshape(-1, 3)


def is_power_of_two(number: int) -> bool:
    """Whether a variable of that many values has the Walsh basis."""
    return number & (number - 1) == 0


@njit(cache=True, nogil=True)
def _run_blocks(table, stages, block, first, last):
    """Run stages that stay inside blocks, block by block."""
    for number in range(first, last):
        part = table[number * block : (number + 1) * block]
        for kind, radix, stride in stages:
            _run_stage(part, kind, radix, stride, 0, block // radix)


@njit(cache=True, nogil=True)
def _run_stage(x, kind, radix, stride, first, last):
    """Run one stage for columns `first` to `last`."""
    if kind != WALSH:
        _spread(x, kind, radix, stride, first, last)
    elif radix == 8:
        butterflies_8(x, stride, first, last)
    elif radix == 4:
        butterflies_4(x, stride, first, last)
    else:
        butterflies_2(x, stride, first, last)


@njit(cache=True, nogil=True)
def _spread(x, kind, radix, stride, first, last):
    """The local transform of eq. 2.3, or its transpose, in 2 q operations for q values.

    Forward ``x_0 <- sum, x_a <- 2 x_a - sum``; transposed ``x_0 <- x_0 - rest, x_a <- 2 x_a + (x_0 - rest)``.
    """
    longest = min(stride, 512)
    total = np.empty(longest, x.dtype)
    column = first
    while column < last:
        within = column % stride
        run = min(min(stride - within, last - column), longest)
        start = (column - within) * radix + within
        base = x[start : start + run]
        sign = 1 if kind == SPREAD else -1
        for j in range(run):
            total[j] = base[j]
        for a in range(1, radix):
            row = x[start + a * stride : start + a * stride + run]
            for j in range(run):
                total[j] += sign * row[j]
        for a in range(1, radix):
            row = x[start + a * stride : start + a * stride + run]
            for j in range(run):
                row[j] = 2 * row[j] - sign * total[j]
        for j in range(run):
            base[j] = total[j]
        column += run


# -- from log-weights to probabilities ---------------------------------------------------------------------------------
@njit(cache=True, nogil=True)
def _scale(x, factor):
    for j in range(x.size):
        x[j] *= factor


def normalise(log_weights: np.ndarray) -> float:
    """Turn a table of log-weights into probabilities, in place, and return the log of the sum of the weights."""
    size = log_weights.size
    reference = float(max(in_pieces(size, size, _GRAIN, lambda first, last: log_weights[first:last].max())))
    in_pieces(size, size, _GRAIN, lambda first, last: relative_exp(log_weights[first:last], reference))
    total = float(log_weights.sum(dtype=np.float64))
    factor = log_weights.dtype.type(1.0 / total)
    in_pieces(size, size, _GRAIN, lambda first, last: _scale(log_weights[first:last], factor))
    return reference + float(np.log(total))
