"""The basis functions of the full span (TA22 eqs. 2.1 to 2.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.backends.numba.axes import is_power_of_two, transform
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.models.family import Array, fields_alone
from gibbsian.models.scopes import Scope
from gibbsian.models.variables import Variables
from gibbsian.resources import row_blocks

# Numbers of states and functions are 64-bit integers; tables end long before.
MAX_STATES = 2**62


@dataclass(frozen=True)
class SpanBasis:
    """One function ``Phi_y(x) = prod_i phi_{y_i}(x_i)``, of values -1 and +1, for every row y of codes (TA22 eq. 2.1).

    A function is named by its digits y, or by its number: the place of y in a table in C order (the last variable
    changes fastest). Rows x are numbered alike. Function 0 is the constant 1.

    Parameters
    ----------
    variables : Variables
        Those with 2^k values have the Walsh basis (eq. 2.2), others that of eq. 2.3.

    Examples
    --------
    >>> from gibbsian.models.families.span_basis import SpanBasis
    >>> from gibbsian.models.variables import Variables
    >>> basis = SpanBasis(Variables.categories((2, 3)))
    >>> basis.size, basis.digits(np.array([0, 1, 5])).tolist(), basis.supports(np.array([0, 1, 5]))
    (6, [[0, 0], [0, 1], [1, 2]], [(), (1,), (0, 1)])
    """

    variables: Variables

    __getstate__ = fields_alone

    def __post_init__(self) -> None:
        if self.variables.real:
            raise ArgumentError("must have finitely many values", argument="variables")
        if self.size > MAX_STATES:
            raise TooExpensiveError(
                f"{len(self.variables)} variables have more than 2^62 states together", "choose fewer variables"
            )

    @cached_property
    def size(self) -> int:
        """Number of rows, and of functions: ``|X|``."""
        return math.prod(self.variables.sizes)

    @property
    def is_walsh(self) -> bool:
        """Whether every variable has 2^k values, so that ``Phi_y Phi_z = Phi_{y xor z}``."""
        return all(map(is_power_of_two, self.variables.sizes))

    @cached_property
    def shape(self) -> Array:
        """Number of values of each variable."""
        return np.array(self.variables.sizes, dtype=np.int64)

    @cached_property
    def strides(self) -> Array:
        """How much a digit of each variable counts in a number."""
        return self.size // np.cumprod(self.shape)

    def numbers(self, codes: Array) -> Array:
        """Return the number of each row of codes."""
        return codes.astype(np.int64) @ self.strides

    def digits(self, functions: Array) -> Array:
        """Return the digits of functions, one row each."""
        return functions[:, None] // self.strides % self.shape

    def orders(self, functions: Array) -> Array:
        """Return on how many variables each function depends."""
        orders = np.empty(len(functions), np.int64)
        for block in row_blocks(len(functions), len(self.variables)):
            orders[block] = np.count_nonzero(self.digits(functions[block]), axis=1)
        return orders

    def supports(self, functions: Array) -> list[Scope]:
        """Return on which variables each function depends."""
        every: list[Scope] = []
        for block in row_blocks(len(functions), len(self.variables)):
            digits = self.digits(functions[block])
            nodes, ends = np.nonzero(digits)[1].tolist(), np.count_nonzero(digits, axis=1).cumsum().tolist()
            every.extend(tuple(nodes[start:end]) for start, end in zip([0, *ends], ends, strict=False))
        return every

    def within(self, functions: Array, nodes: Sequence[int] | Array) -> tuple[SpanBasis, Array]:
        """Return the basis of some variables, and the part of each function in them."""
        places = np.asarray(nodes, dtype=np.int64)
        basis = SpanBasis(self.variables.take(places.tolist()))
        return basis, (functions[:, None] // self.strides[places] % self.shape[places]) @ basis.strides

    def functions_of(self, scope: Scope) -> Array:
        """Return the functions that depend on all these variables and no other."""
        functions = np.zeros(1, np.int64)
        for i in scope:
            functions = (functions[:, None] + self.strides[i] * np.arange(1, self.shape[i])).ravel()
        return functions

    def local_values(self, variable: int) -> Array:
        """Return ``phi_j(l)`` of one variable, one row per function (TA22 eqs. 2.2, 2.3).

        Examples
        --------
        >>> from gibbsian.models.families.span_basis import SpanBasis
        >>> from gibbsian.models.variables import Variables
        >>> SpanBasis(Variables.categories((3,))).local_values(0).tolist()
        [[1.0, 1.0, 1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
        """
        q = self.variables.sizes[variable]
        if is_power_of_two(q):
            return 1.0 - 2.0 * (np.bitwise_count(np.arange(q)[:, None] & np.arange(q)) % 2)
        values = 2.0 * np.eye(q) - 1.0
        values[0] = 1.0
        return values

    def values(self, functions: Array, codes: Array) -> Array:
        """Return ``Phi_y(x)``, one row per row of codes and one column per function."""
        values = np.ones((len(codes), len(functions)))
        for i, digits in enumerate(self.digits(functions).T):
            used = np.flatnonzero(digits)
            values[:, used] *= self.local_values(i)[np.ix_(digits[used], codes[:, i])].T
        return values

    def fill(self, table: Array, functions: Array | slice, theta: Array) -> None:
        """Overwrite a table with ``sum_y theta_y Phi_y(x)`` of all rows: one transform of the sparse theta."""
        table.fill(0)
        table[functions] = theta
        transform(table, self.shape, transposed=True)
