"""The basis functions of the full span (TA22 eqs. 2.1 to 2.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, Slice, States
from gibbsian.backends.numba.axes import is_power_of_two, transform
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.models.scopes import Scope
from gibbsian.models.variables import Variables, fields_alone
from gibbsian.resources import memory_limit, row_blocks

# Numbers of states and functions are 64-bit integers.
MAX_STATES = 2**62


@dataclass(frozen=True)
class SpanBasis:
    """One function ``Phi_y(x) = prod_i phi_{y_i}(x_i)``, of values -1 and +1, for every row y of codes (TA22 eq. 2.1).

    A function has digits y, and a number: the index of y in a table in C order (the last variable changes fastest).
    Rows x have numbers in the same order. Function 0 is the constant 1.

    Parameters
    ----------
    variables : Variables
        Variables with 2^k values have the Walsh basis (eq. 2.2), others that of eq. 2.3.

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
    def shape(self) -> Integers:
        """Number of values of each variable."""
        return np.array(self.variables.sizes, dtype=np.int64)

    @cached_property
    def strides(self) -> Integers:
        """The stride of the digit of each variable."""
        return self.size // np.cumprod(self.shape)

    def table_pays(self, n_rows: int, n_functions: int) -> bool:
        """Whether a table of all rows fits in memory and is the cheaper way to the log-weights of some rows.

        The table costs a pass over all rows for each variable, the direct way one over all pairs of row and function.
        """
        return n_rows * n_functions >= self.size and 8.0 * self.size <= memory_limit()

    def numbers(self, codes: States | Integers | Mask) -> Integers:
        """Return the number of each row of codes."""
        return codes.astype(np.int64) @ self.strides

    def digits(self, functions: Integers) -> Integers:
        """Return the digits of functions, one row each."""
        return functions[:, None] // self.strides % self.shape

    def orders(self, functions: Integers) -> Integers:
        """Return the number of variables of each function."""
        orders = np.empty(len(functions), np.int64)
        for block in row_blocks(len(functions), len(self.variables)):
            orders[block] = np.count_nonzero(self.digits(functions[block]), axis=1)
        return orders

    def supports(self, functions: Integers) -> list[Scope]:
        """Return the variables of each function."""
        supports: list[Scope] = []
        for block in row_blocks(len(functions), len(self.variables)):
            digits = self.digits(functions[block])
            nodes, ends = np.nonzero(digits)[1].tolist(), np.count_nonzero(digits, axis=1).cumsum().tolist()
            supports.extend(tuple(nodes[start:end]) for start, end in zip([0, *ends], ends, strict=False))
        return supports

    def restricted(self, functions: Integers, nodes: Sequence[int] | Integers) -> tuple[SpanBasis, Integers]:
        """Return the basis of some variables, and the factor of each function that depends on them."""
        chosen = np.asarray(nodes, dtype=np.int64)
        basis = SpanBasis(self.variables.take(chosen.tolist()))
        return basis, (functions[:, None] // self.strides[chosen] % self.shape[chosen]) @ basis.strides

    def functions_of(self, scope: Scope) -> Integers:
        """Return the functions that depend on all variables of a scope and no others."""
        functions = np.zeros(1, np.int64)
        for i in scope:
            functions = (functions[:, None] + self.strides[i] * np.arange(1, self.shape[i])).ravel()
        return functions

    def local_values(self, variable: int) -> Floats:
        """Return the matrix ``phi_j(l)`` of one variable: row j, code l (TA22 eqs. 2.2, 2.3).

        Examples
        --------
        >>> from gibbsian.models.families.span_basis import SpanBasis
        >>> from gibbsian.models.variables import Variables
        >>> SpanBasis(Variables.categories((3,))).local_values(0).tolist()
        [[1.0, 1.0, 1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
        """
        q = self.variables.sizes[variable]
        if is_power_of_two(q):
            return np.asarray(1.0 - 2.0 * (np.bitwise_count(np.arange(q)[:, None] & np.arange(q)) % 2))
        values = 2.0 * np.eye(q) - 1.0
        values[0] = 1.0
        return values

    def values(self, functions: Integers, codes: States | Integers) -> Floats:
        """Return the matrix ``Phi_y(x)``: a row for each row of codes, a column for each function."""
        values = np.ones((len(codes), len(functions)))
        for i, digits in enumerate(self.digits(functions).T):
            used = np.flatnonzero(digits)
            values[:, used] *= self.local_values(i)[np.ix_(digits[used], codes[:, i])].T
        return values

    def fill(self, table: Floats, functions: Integers | Slice, theta: Floats) -> None:
        """Overwrite a table with ``sum_y theta_y Phi_y(x)`` of all rows, by one transform."""
        table.fill(0)
        table[functions] = theta
        transform(table, self.shape, transposed=True)
