"""The basis functions of the full-span model (TA22 eqs. 2.1-2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.backends.numba.axes import is_power_of_two
from gibbsian.backends.numba.span_axes import strides_of
from gibbsian.errors import ArgumentError, DataError, TooExpensiveError
from gibbsian.resources import row_blocks

# Indices are 64-bit integers; tables end long before.
MOST_STATES = 2**62


@dataclass(frozen=True)
class SpanBasis:
    """One function ``Phi_y(x) = prod_i phi_{y_i}(x_i)``, of values -1 and +1, for every state y of the variables.

    A function is named by its digits y, or by its index: the place of y in a table in C order (the last
    variable changes fastest). States x are numbered alike. Function 0 is the constant 1.

    Parameters
    ----------
    cardinalities : tuple of int
        How many values each variable has. Powers of two have the Walsh basis (eq. 2.2), others that of eq.
        2.3.

    Examples
    --------
    >>> from gibbsian.models.span_basis import SpanBasis
    >>> basis = SpanBasis((2, 3))
    >>> basis.size, basis.digits([0, 1, 5]).tolist()
    (6, [[0, 0], [0, 1], [1, 2]])
    >>> basis.supports([0, 1, 5])
    [(), (1,), (0, 1)]
    """

    cardinalities: tuple[int, ...]

    def __post_init__(self) -> None:
        cardinalities = tuple(int(q) for q in self.cardinalities)
        if not cardinalities:
            raise ArgumentError("cardinalities is empty", "give the number of values of each variable")
        for i, q in enumerate(cardinalities):
            if q < 1:
                raise ArgumentError(f"cardinalities[{i}]={q} must be at least 1")
        object.__setattr__(self, "cardinalities", cardinalities)
        if self.size > MOST_STATES:
            raise TooExpensiveError(
                f"{len(cardinalities)} variables have more than 2^62 states together", "choose fewer variables"
            )

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.cardinalities)

    @cached_property
    def size(self) -> int:
        """Number of states, and of functions: ``|X|``."""
        size = 1
        for q in self.cardinalities:
            size *= q
        return size

    @property
    def is_walsh(self) -> bool:
        """Whether every cardinality is a power of two, so that ``Phi_y Phi_z = Phi_{y xor z}``."""
        return all(is_power_of_two(q) for q in self.cardinalities)

    @cached_property
    def shape(self) -> np.ndarray:
        """The cardinalities as an array."""
        return np.array(self.cardinalities, dtype=np.int64)

    @cached_property
    def strides(self) -> np.ndarray:
        """How much a digit of each variable counts in an index."""
        return strides_of(self.shape)

    def indices(self, codes: np.ndarray) -> np.ndarray:
        """Return the index of each row of codes 0 to q_i - 1, after a check that they are such codes."""
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != self.n_variables:
            raise DataError(f"states has shape {codes.shape}", f"give one row per state, {self.n_variables} columns")
        if not (np.issubdtype(codes.dtype, np.integer) or codes.dtype == bool):
            raise DataError(f"states has type {codes.dtype}", "give integer codes, 0 to q - 1 in each column")
        if wrong := np.flatnonzero(((codes < 0) | (codes >= self.shape)).any(axis=0)).tolist():
            last = self.cardinalities[wrong[0]] - 1
            raise DataError(f"column {wrong[0]} of states holds codes outside 0 to {last}", "code its values from 0")
        return codes.astype(np.int64) @ self.strides

    def digits(self, indices: np.ndarray | list[int]) -> np.ndarray:
        """Return the digits of indices, one row each."""
        return np.asarray(indices, np.int64)[:, None] // self.strides % self.shape

    def orders(self, indices: np.ndarray | list[int]) -> np.ndarray:
        """Return on how many variables each function depends."""
        orders = np.empty(len(indices), np.int64)
        for part in row_blocks(len(indices), self.n_variables):
            orders[part] = np.count_nonzero(self.digits(indices[part]), axis=1)
        return orders

    def supports(self, indices: np.ndarray | list[int]) -> list[tuple[int, ...]]:
        """Return on which variables each function depends."""
        every: list[tuple[int, ...]] = []
        for part in row_blocks(len(indices), self.n_variables):
            digits = self.digits(indices[part])
            nodes = np.nonzero(digits)[1].tolist()
            ends = np.count_nonzero(digits, axis=1).cumsum().tolist()
            every.extend(tuple(nodes[start:end]) for start, end in zip([0, *ends], ends, strict=False))
        return every

    def values(self, indices: np.ndarray | list[int], codes: np.ndarray) -> np.ndarray:
        """Return ``Phi_y(x)``, one row per state and one column per function.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.span_basis import SpanBasis
        >>> SpanBasis((3,)).values([0, 1, 2], np.array([[0], [1], [2]])).tolist()
        [[1.0, -1.0, -1.0], [1.0, 1.0, -1.0], [1.0, -1.0, 1.0]]
        """
        self.indices(codes)
        signs = np.ones((len(codes), len(indices)))
        for i, digits in enumerate(self.digits(indices).T):
            used = np.flatnonzero(digits)
            signs[:, used] *= self.local_values(i)[np.ix_(digits[used], codes[:, i])].T
        return signs

    def local_values(self, variable: int) -> np.ndarray:
        """Return ``phi_j(l)`` of one variable, one row per function.

        Examples
        --------
        >>> from gibbsian.models.span_basis import SpanBasis
        >>> SpanBasis((2,)).local_values(0)
        array([[ 1.,  1.],
               [ 1., -1.]])
        """
        q = self.cardinalities[variable]
        if is_power_of_two(q):
            both = np.arange(q)[:, None] & np.arange(q)
            return 1.0 - 2.0 * (np.bitwise_count(both) % 2)
        values = 2.0 * np.eye(q) - 1.0
        values[0] = 1.0
        return values
