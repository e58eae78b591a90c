"""The full-span log-linear model (TA22 eq. 2.1): a Boltzmann machine of every order, most parameters zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from gibbsian.backends.numba.axes import exponentiate, scale, transform
from gibbsian.backends.numba.walsh import aligned_zeros
from gibbsian.backends.parallel import kept_threads
from gibbsian.domain import BINARY, SPIN, AnyDomain, Categories
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import MODELS, ExponentialFamily
from gibbsian.models.conditionals import Conditionals, SpanConditionals, WeightedRows
from gibbsian.models.factors import Factor, FactorGraph, Marginal, interaction_graph
from gibbsian.models.file_parts import COUNT, Listed, wholes
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions
from gibbsian.models.scopes import triangles
from gibbsian.models.span_basis import SpanBasis
from gibbsian.models.states import checked_fixed, checked_shares
from gibbsian.resources import memory_limit, require_memory, row_blocks
from gibbsian.startup import logsumexp

# A table of all states up to this size (2^23 states) is kept between two questions; a larger one is made for each
# question that needs it, and let go: 2^27 states take 1 GiB.
MOST_KEPT_BYTES = 2**26
# Most states of the variables of one function where the model is asked for as a product of small tables.
MOST_FACTOR_STATES = 2**22


def fill_log_weights(table: np.ndarray, basis: SpanBasis, indices: np.ndarray | slice, theta: np.ndarray) -> None:
    """Overwrite a table with ``sum_y theta_y Phi_y(x)`` of all states: one transform of the sparse theta."""
    table.fill(0)
    table[indices] = theta
    transform(table, basis.shape, transposed=True)


@kept_threads()
def fill_probabilities(table: np.ndarray, basis: SpanBasis, indices: np.ndarray | slice, theta: np.ndarray) -> float:
    """Overwrite a table with the probabilities of all states and return log Z."""
    fill_log_weights(table, basis, indices, theta)
    reference = exponentiate(table)
    total = float(table.sum(dtype=np.float64))
    scale(table, 1.0 / total)
    return reference + float(np.log(total))


def fill_dual(table: np.ndarray, basis: SpanBasis, indices: np.ndarray, theta: np.ndarray) -> float:
    """Overwrite a table with the dual, ``<Phi_y>`` for every y, and return log Z: two transforms, no second table."""
    log_partition = fill_probabilities(table, basis, indices, theta)
    transform(table, basis.shape)
    return log_partition


@MODELS.register("full-span", many_valued="categories")
@dataclass(frozen=True, eq=False)
class FullSpanModel(ExponentialFamily):
    """``P(x) = exp(sum_y theta_y Phi_y(x) / T) / Z`` over basis functions of any order.

    Parameters
    ----------
    basis : SpanBasis
        The functions to choose from.
    indices : (k,) of int
        Which functions have a parameter, in any order; 0, the constant, may not.
    theta : (k,) of float
        Their parameters.
    domain : Domain or Categories, optional
        The values of the variables, which the functions number 0, 1, ...; by default those numbers themselves.
    n_hidden : int
        How many of the variables, the last ones, no row of data shows.

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

    is_full_span: ClassVar[bool] = True
    parts_in_file: ClassVar[dict[str, Any]] = {
        "cardinalities": Listed(COUNT, "all"),
        "indices": wholes("parameters", low=1),
    }

    basis: SpanBasis
    indices: np.ndarray
    theta: np.ndarray
    domain: AnyDomain = None  # type: ignore[assignment]  # __post_init__ gives one
    n_hidden: int = 0

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
        if self.domain is None:
            two_valued = set(self.basis.cardinalities) == {2}
            object.__setattr__(self, "domain", BINARY if two_valued else Categories(self.basis.cardinalities))
        if tuple(self.domain.cardinalities(self.n_variables).tolist()) != self.basis.cardinalities:
            raise ArgumentError("the domain has other numbers of values than the basis", "give the same to both")
        for name, array in (("indices", indices), ("theta", theta)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def build(
        cls,
        cardinalities: Sequence[int],
        indices: Sequence[int] | np.ndarray = (),
        theta: Sequence[float] | np.ndarray = (),
        domain: AnyDomain | None = None,
        n_hidden: int = 0,
    ) -> Self:
        """Return a model from plain numbers; without functions it is the uniform distribution."""
        basis = SpanBasis(tuple(cardinalities))
        return cls(basis, np.asarray(indices, np.int64), np.asarray(theta, float), domain, n_hidden)  # type: ignore[arg-type]

    @classmethod
    def zeros(cls, graph: Graph, domain: AnyDomain = SPIN) -> Self:
        """Return the uniform distribution with all functions of a variable, an edge or a triangle of a graph.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.FullSpanModel.zeros(gb.graphs.complete(2)).supports
        [(0,), (1,), (0, 1)]
        """
        basis = SpanBasis(tuple(domain.cardinalities(graph.n_nodes).tolist()))
        scopes = [*((i,) for i in range(graph.n_nodes)), *map(tuple, graph.edges.tolist()), *triangles(graph)]
        indices = np.concatenate([_functions_of(basis, scope) for scope in scopes])
        return cls(basis, indices, np.zeros(indices.size), domain)

    @classmethod
    def of_log_weights(cls, basis: SpanBasis, log_weights: np.ndarray, domain: AnyDomain | None = None) -> Self:
        """Return the model with these log-weights of all states: every distribution without zeros has one.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models import FullSpanModel, SpanBasis
        >>> FullSpanModel.of_log_weights(SpanBasis((3,)), np.log([0.2, 0.3, 0.5])).probabilities().round(6)
        array([0.2, 0.3, 0.5])
        """
        table = np.array(log_weights, dtype=np.float64)
        for i, q in enumerate(basis.cardinalities):
            inverse = np.linalg.inv(basis.local_values(i).T)
            table = (inverse @ table.reshape(-1, q, int(basis.strides[i]))).ravel()
        used = 1 + np.flatnonzero(table[1:])
        return cls(basis, used, table[used], domain)  # type: ignore[arg-type]

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return plain values and arrays that make up the model, for a file."""
        return (
            {"cardinalities": list(self.cardinalities), "n_hidden": self.n_hidden},
            {"theta": self.theta, "indices": self.indices},
        )

    @classmethod
    def from_parts(cls, header: dict[str, Any], tensors: dict[str, np.ndarray], domain: Any) -> Self:
        """Put a model together again; `domain` is that of the columns."""
        basis, n_hidden = SpanBasis(tuple(header["cardinalities"])), header["n_hidden"]
        own = None if n_hidden else domain  # the columns' domain does not hold the hidden variables
        return cls(basis, tensors["indices"], tensors["theta"], own, n_hidden)  # type: ignore[arg-type]

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

    @cached_property
    def graph(self) -> Graph:
        """Which variables share a function."""
        return interaction_graph(self.n_variables, self.supports)

    @property
    def penalised(self) -> np.ndarray:
        """True at functions of two and more variables: an L1 penalty leaves the others alone."""
        return self.orders > 1

    @property
    def statistic_range(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest value of each function: -1 and +1."""
        return np.full(self.theta.size, -1.0), np.ones(self.theta.size)

    def touches(self, variables: np.ndarray) -> np.ndarray:
        """Return which functions depend on any variable of a mask."""
        return np.any(self.basis.digits(self.indices)[:, variables] > 0, axis=1)

    # -- the distribution ---------------------------------------------------------------------------------------------
    # The log-weights of all states are one fast transform of theta.
    has_fast_transform: ClassVar[bool] = True

    def energy(self, x: np.ndarray) -> np.ndarray:
        """Return ``E(x) = -sum_y theta_y Phi_y(x)`` of each state."""
        return -self.log_weights(x)

    def log_weights(self, x: np.ndarray) -> np.ndarray:
        """Return ``-E(x)`` of each state, by itself or from a table, whichever is cheaper."""
        return self.log_weights_of_codes(self._codes(x))

    def log_weights_of_codes(self, codes: np.ndarray) -> np.ndarray:
        """Return the log-weight of each row of codes."""
        if self.table_pays(len(codes)):
            return self.log_weight_table()[self.basis.indices(codes)]
        logs, theta = np.empty(len(codes)), self.theta
        for rows in row_blocks(len(codes), len(theta)):
            logs[rows] = self.basis.values(self.indices, codes[rows]) @ theta
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
        return self._kept("the table of log-weights", "_log_weights", fill_log_weights)

    def probability_table(self) -> np.ndarray:
        """Return the probability of every state, in the order of their indices; not to be written to."""
        return self._kept("a table of all probabilities", "_probabilities", fill_probabilities)

    def _kept(self, what: str, name: str, fill: Callable[..., Any]) -> np.ndarray:
        """Return a table of all states, made once where it is small."""
        if name in self.__dict__:
            return self.__dict__[name]
        table = self._table(what)
        fill(table, self.basis, self.indices, self.theta)
        table.flags.writeable = False
        if table.nbytes <= MOST_KEPT_BYTES:
            object.__setattr__(self, name, table)
        return table

    def log_probabilities(self, x: np.ndarray) -> np.ndarray:
        """Return the logarithm of the probability of each state."""
        return self.log_weights(x) - self.log_partition

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

    def statistics_from_table(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the expected functions, given the probabilities of all states in the order of their indices."""
        table = self._table("the table of the dual")
        table[:] = probabilities
        transform(table, self.basis.shape)
        return table[self.indices]

    def _table(self, what: str) -> np.ndarray:
        size = self.basis.size
        require_memory(
            8.0 * size,
            f"{what} over {size:.3g} states",
            "ask conditional(), pseudo_score() or model_.log_weights(), which need no table over all states",
        )
        return aligned_zeros(size)

    # -- statistics and flips -----------------------------------------------------------------------------------------
    def mean_statistics(self, x: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted means of the functions over the states."""
        codes = self._codes(x)
        shares = checked_shares(weights, len(codes))
        if self.table_pays(len(codes)):
            table = self._table("the table of the data")
            np.add.at(table, self.basis.indices(codes), shares)
            return self.statistics_from_table(table)
        means = np.zeros(self.theta.size)
        for rows in row_blocks(len(codes), len(means)):
            means += shares[rows] @ self.basis.values(self.indices, codes[rows])
        return means

    def bind(self, rows: WeightedRows) -> Conditionals:
        """Return the conditionals of rows that have been checked."""
        return SpanConditionals(self.basis, self.indices, self.value_groups, rows)

    # -- other forms of the same distribution -------------------------------------------------------------------------
    def factors(self) -> FactorGraph:
        """Return the distribution as a table for each set of variables that a function depends on.

        Examples
        --------
        >>> from gibbsian.models import FullSpanModel
        >>> FullSpanModel.build((2, 2), indices=[3], theta=[0.5]).factors().factors[0].table.tolist()
        [[0.5, -0.5], [-0.5, 0.5]]
        """
        theta = self.theta
        factors = []
        for scope, basis, places, own in self._by_scope():
            table = np.empty(basis.size)
            fill_log_weights(table, basis, own, theta[places])
            factors.append(Factor(scope, table.reshape(basis.cardinalities)))
        return FactorGraph(self.basis.shape, tuple(factors))

    def interactions(self) -> Interactions:
        """Return the coefficients of products of spins; where there are more than two values, norms of tables."""
        if any(size != 2 for size in self.cardinalities):
            return super().interactions()
        digits = self.basis.digits(self.indices)
        orders = (digits > 0).sum(axis=1)
        scopes = tuple(tuple(np.flatnonzero(row).tolist()) for row in digits[orders > 1])
        spins = self.theta * (-1.0) ** orders  # a function is a product of signs that are -1 at the upper value
        return Interactions(scopes, spins[orders > 1], self._sizes_of_layers, "coupling of spins")

    def statistics_from(self, marginal: Marginal) -> np.ndarray:
        """Return the expected functions, given the joint probabilities of any few variables that share one."""
        means = np.empty(self.theta.size)
        for scope, basis, places, own in self._by_scope():
            table = np.array(marginal(scope), dtype=np.float64).ravel()
            transform(table, basis.shape)
            means[places] = table[own]
        return means

    def _by_scope(self) -> Iterator[tuple[tuple[int, ...], SpanBasis, np.ndarray, np.ndarray]]:
        """Give each set of variables, its own basis, the functions that depend on just these, and their place there."""
        digits = self.basis.digits(self.indices)
        patterns, which = np.unique(digits > 0, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            scope = np.flatnonzero(pattern)
            basis = SpanBasis(tuple(self.cardinalities[i] for i in scope))
            if basis.size > MOST_FACTOR_STATES:
                raise ArgumentError(
                    f"a function of {scope.size} variables has a table of {basis.size:.3g} states",
                    f"at most {MOST_FACTOR_STATES} can be listed",
                )
            places = np.flatnonzero(which.ravel() == number)
            yield tuple(scope.tolist()), basis, places, digits[places][:, scope] @ basis.strides

    # -- some variables given -----------------------------------------------------------------------------------------
    def restrict(
        self, nodes: Sequence[int] | np.ndarray, codes: np.ndarray
    ) -> tuple[SpanBasis, np.ndarray, np.ndarray]:
        """Fix `nodes` at each row of `codes`; a function keeps its part in the free variables, times a sign.

        Return the basis of the free variables, its functions that are left, 0 for what became constant, and their
        parameters over T, one row for each row of codes.
        """
        nodes = np.asarray(nodes, dtype=np.int64)
        basis, used, part = self._left_of(nodes)
        theta = self.theta * self._signs(nodes, codes)
        if not self.indices.size:
            return basis, used, theta
        order = np.argsort(part, kind="stable")
        starts = np.searchsorted(part[order], np.arange(used.size))
        return basis, used, np.add.reduceat(theta[:, order], starts, axis=1)

    def _left_of(self, nodes: np.ndarray) -> tuple[SpanBasis, np.ndarray, np.ndarray]:
        """Return the basis of the free variables, what is left of the functions there, and which each becomes."""
        free = np.setdiff1d(np.arange(self.n_variables), nodes)
        basis = SpanBasis(tuple(self.cardinalities[i] for i in free))
        used, part = np.unique(self.basis.digits(self.indices)[:, free] @ basis.strides, return_inverse=True)
        return basis, used, part.ravel()

    def _signs(self, nodes: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the part of each function in the given variables, one row for each row of codes."""
        if nodes.size == 0:
            return np.ones((len(codes), self.indices.size))
        given = SpanBasis(tuple(self.cardinalities[i] for i in nodes))
        return given.values(self.basis.digits(self.indices)[:, nodes] @ given.strides, codes)

    def given(self, nodes: Sequence[int] | np.ndarray, codes: Sequence[int] | np.ndarray) -> Given[Self]:
        """Return the distribution of the other variables given the codes of some (see `Given`).

        Examples
        --------
        >>> from gibbsian.models import FullSpanModel
        >>> model = FullSpanModel.build((2, 2), [2, 3], [0.2, 0.5])
        >>> rest, constant = model.given([0], [1]).at(model.theta)
        >>> rest.theta, constant
        (array([-0.5]), -0.2)
        """
        fixed, held = checked_fixed(self.domain.cardinalities(self.n_variables), nodes, codes)
        family, place = self._family_without(fixed)
        return Given.of_products(family, place, self._signs(np.array(fixed, dtype=np.int64), held[None])[0])

    def _make_family_without(self, nodes: tuple[int, ...]) -> tuple[Self, np.ndarray]:
        basis, used, part = self._left_of(np.array(nodes, dtype=np.int64))
        kept, domain = used[used > 0], self.domain.take(np.setdiff1d(np.arange(self.n_variables), nodes))
        family = type(self)(basis, kept, np.zeros(kept.size), domain)
        return family, part - (used.size - kept.size)  # the constant function, if any, comes first

    def without_hidden(self) -> Self:
        """Return the distribution of the visible variables, the hidden ones summed out: again a full-span model."""
        if not self.n_hidden:
            return self
        n = self.n_variables - self.n_hidden
        basis = SpanBasis(self.cardinalities[:n])
        logs = logsumexp(self.log_weight_table().reshape(basis.size, -1), axis=1)
        return type(self).of_log_weights(basis, logs, self.domain.take(np.arange(n)))

    # -- export -------------------------------------------------------------------------------------------------------
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


def _functions_of(basis: SpanBasis, scope: Sequence[int]) -> np.ndarray:
    """Return the functions that depend on all these variables and no other."""
    own = np.zeros(1, np.int64)
    for i in scope:
        own = (own[:, None] + basis.strides[i] * np.arange(1, basis.cardinalities[i])).ravel()
    return own
