"""The full-span log-linear model (TA22 eq. 2.1): a Boltzmann machine of every order, most parameters zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from gibbsian.backends.numba.axes import exponentiate, scale, transform
from gibbsian.backends.numba.walsh import aligned_zeros
from gibbsian.blocks import row_blocks
from gibbsian.errors import ArgumentError
from gibbsian.models.span_basis import SpanBasis
from gibbsian.resources import memory_limit, require_memory

# A table of all states up to this size (2^23 states) is kept between two questions; a larger one is made for each
# question that needs it, and let go: 2^27 states take 1 GiB.
MOST_KEPT_BYTES = 2**26


def fill_log_weights(table: np.ndarray, basis: SpanBasis, indices: np.ndarray | slice, theta: np.ndarray) -> None:
    """Overwrite a table with ``sum_y theta_y Phi_y(x)`` of all states: one transform of the sparse theta.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.span_basis import SpanBasis
    >>> from gibbsian.models.full_span import fill_log_weights
    >>> table = np.empty(2)
    >>> fill_log_weights(table, SpanBasis((2,)), np.array([1]), np.array([0.5]))
    >>> table
    array([ 0.5, -0.5])
    """
    table.fill(0)
    table[indices] = theta
    transform(table, basis.shape, transposed=True)


def fill_probabilities(table: np.ndarray, basis: SpanBasis, indices: np.ndarray | slice, theta: np.ndarray) -> float:
    """Overwrite a table with the probabilities of all states and return log Z.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.span_basis import SpanBasis
    >>> from gibbsian.models.full_span import fill_probabilities
    >>> table = np.empty(2)
    >>> log_partition = fill_probabilities(table, SpanBasis((2,)), np.array([1]), np.array([0.5]))
    >>> round(log_partition, 4), table.round(4)
    (0.8133, array([0.7311, 0.2689]))
    """
    fill_log_weights(table, basis, indices, theta)
    reference = exponentiate(table)
    total = float(table.sum(dtype=np.float64))
    scale(table, 1.0 / total)
    return reference + float(np.log(total))


def fill_dual(table: np.ndarray, basis: SpanBasis, indices: np.ndarray, theta: np.ndarray) -> float:
    """Overwrite a table with the dual, ``<Phi_y>`` for every y, and return log Z: two transforms, no second table.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.span_basis import SpanBasis
    >>> from gibbsian.models.full_span import fill_dual
    >>> table = np.empty(2)
    >>> _ = fill_dual(table, SpanBasis((2,)), np.array([1]), np.array([0.5]))
    >>> np.allclose(table, [1.0, np.tanh(0.5)])
    True
    """
    log_partition = fill_probabilities(table, basis, indices, theta)
    transform(table, basis.shape)
    return log_partition


@dataclass(frozen=True, eq=False)
class FullSpanModel:
    """``P(x) = exp(sum_y theta_y Phi_y(x)) / Z`` over basis functions of any order.

    Parameters
    ----------
    basis : SpanBasis
        The functions to choose from.
    indices : (k,) of int
        Which functions have a parameter, in any order; 0, the constant, may not.
    theta : (k,) of float
        Their parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.full_span import FullSpanModel
    >>> model = FullSpanModel.build((2, 2), indices=[3], theta=[0.5])
    >>> model.supports
    [(0, 1)]
    >>> model.probabilities().reshape(2, 2).round(4)
    array([[0.3655, 0.1345],
           [0.1345, 0.3655]])
    """

    basis: SpanBasis
    indices: np.ndarray
    theta: np.ndarray

    def __post_init__(self) -> None:
        indices, theta = np.array(self.indices, dtype=np.int64), np.array(self.theta, dtype=np.float64)
        if indices.ndim != 1 or theta.shape != indices.shape:
            raise ArgumentError(f"theta has shape {theta.shape} but indices has shape {indices.shape}", "give one each")
        if indices.size and not (indices.min() > 0 and indices.max() < self.basis.size):
            raise ArgumentError(f"indices must lie in 1 to {self.basis.size - 1}", "0 is the constant function")
        if np.unique(indices).size != indices.size:
            raise ArgumentError("indices holds a function twice", "add up its parameters")
        if not np.isfinite(theta).all():
            raise ArgumentError("theta holds NaN or infinite values")
        for name, array in (("indices", indices), ("theta", theta)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def build(
        cls, cardinalities: Sequence[int], indices: Sequence[int] | np.ndarray, theta: Sequence[float] | np.ndarray
    ) -> Self:
        """Return a model from plain numbers."""
        return cls(SpanBasis(tuple(cardinalities)), np.asarray(indices, np.int64), np.asarray(theta, float))

    def replace(self, theta: np.ndarray) -> Self:
        """Return the same functions with other parameters."""
        return replace(self, theta=theta)

    # -- layout -------------------------------------------------------------------------------------------------------
    @property
    def cardinalities(self) -> tuple[int, ...]:
        """How many values each variable has."""
        return self.basis.cardinalities

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.basis.n_variables

    @property
    def orders(self) -> np.ndarray:
        """On how many variables each function depends."""
        return self.basis.orders(self.indices)

    @property
    def supports(self) -> list[tuple[int, ...]]:
        """On which variables each function depends."""
        return self.basis.supports(self.indices)

    # -- the distribution ---------------------------------------------------------------------------------------------
    def log_weights(self, states: np.ndarray) -> np.ndarray:
        """Return ``sum_y theta_y Phi_y(x)`` of each row of codes, by itself or from a table, whichever is cheaper."""
        states = np.asarray(states)
        places = self.basis.indices(states)
        if self.table_pays(len(states)):
            return self.log_weight_table()[places]
        logs = np.empty(len(states))
        for rows in row_blocks(len(states), len(self.theta)):
            logs[rows] = self.basis.values(self.indices, states[rows]) @ self.theta
        return logs

    def table_pays(self, n_rows: int) -> bool:
        """Whether the log-weights of so many rows are cheaper read from a table of all states, and it fits.

        A transform takes a pass over all states for each variable, and rows by themselves one over all pairs of a row
        and a function.
        """
        size = self.basis.size
        return n_rows * self.indices.size >= size and 8.0 * size <= memory_limit()

    def log_weight_table(self) -> np.ndarray:
        """Return the log-weight of every state, in the order of their indices; not to be written to.

        Examples
        --------
        >>> from gibbsian.models.full_span import FullSpanModel
        >>> FullSpanModel.build((2, 2), indices=[3], theta=[0.5]).log_weight_table()
        array([ 0.5, -0.5, -0.5,  0.5])
        """
        if (kept := self.__dict__.get("_log_weight_table")) is not None:
            return kept
        table = self._table("the table of log-weights")
        fill_log_weights(table, self.basis, self.indices, self.theta)
        table.flags.writeable = False
        if table.nbytes <= MOST_KEPT_BYTES:
            object.__setattr__(self, "_log_weight_table", table)
        return table

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_log_weight_table"}

    def log_probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return the logarithm of the probability of each row of codes."""
        return self.log_weights(states) - self.log_partition

    @cached_property
    def log_partition(self) -> float:
        """The logarithm of Z, from a table of all states."""
        return fill_probabilities(self._table("the partition function"), self.basis, self.indices, self.theta)

    def probabilities(self) -> np.ndarray:
        """Return the probability of every state, in the order of their indices."""
        table = self._table("a table of all probabilities")
        fill_probabilities(table, self.basis, self.indices, self.theta)
        return table

    def dual(self) -> np.ndarray:
        """Return ``<Phi_y>`` for every function (TA22 eq. 2.6), in the order of their indices."""
        table = self._table("the table of the dual")
        fill_dual(table, self.basis, self.indices, self.theta)
        return table

    def _table(self, what: str) -> np.ndarray:
        size = self.basis.size
        require_memory(
            8.0 * size,
            f"{what} over {size:.3g} states",
            "ask conditional(), pseudo_score() or model_.log_weights(), which need no table over all states",
        )
        return aligned_zeros(size)

    def to_cliques(self) -> list[tuple[tuple[int, ...], float]]:
        """Return the same distribution of binary variables as weights of products of spins.

        Code 1 is spin +1 and code 0 is spin -1, so that ``Phi_y = (-1)^order * prod_i s_i``.

        Examples
        --------
        >>> from gibbsian.models.full_span import FullSpanModel
        >>> FullSpanModel.build((2, 2, 2), indices=[1, 6], theta=[0.25, 0.5]).to_cliques()
        [((2,), -0.25), ((0, 1), 0.5)]
        """
        if wrong := [i for i, q in enumerate(self.cardinalities) if q != 2]:
            raise ArgumentError(
                f"variable {wrong[0]} has {self.cardinalities[wrong[0]]} values", "only binary variables have spins"
            )
        signs = 1.0 - 2.0 * (self.orders % 2)
        return [(support, float(w)) for support, w in zip(self.supports, signs * self.theta, strict=True)]
