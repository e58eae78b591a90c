"""The full-span log-linear model (TA22 eq. 2.1): functions of any order over variables with any number of values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple, Self

import numpy as np

from gibbsian.backends.numba.axes import exponentiate, scale, transform
from gibbsian.backends.numba.walsh import aligned_zeros
from gibbsian.backends.parallel import kept_threads
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.conditionals import Conditionals, SpanConditionals, WeightedRows
from gibbsian.models.factors import Factor, FactorGraph, Marginal, zero_sum
from gibbsian.models.families.products import ProductsFamily
from gibbsian.models.families.span_basis import SpanBasis
from gibbsian.models.family import Array, Model, Parts, fields_alone
from gibbsian.models.file_parts import COUNT, Listed, PartsInFile, Plain, reals, wholes
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions, of_tables
from gibbsian.models.scopes import Scope, Scopes, triangles
from gibbsian.models.states import checked_fixed, checked_shares
from gibbsian.models.variables import SPINS, Variables
from gibbsian.resources import memory_limit, require_memory, row_blocks
from gibbsian.startup import logsumexp

# Most states of the variables of one function where the family is asked for as a product of small tables.
MAX_FACTOR_STATES = 2**22


class SpanParts(NamedTuple):
    """Theta: the parameter of each function."""

    parameters: Array


class SpanTable(NamedTuple):
    """A table over all rows, or over all functions, at some theta, and log Z there.

    The family keeps none: who asks more than once, as learners do, holds it in a state of his own.
    """

    values: Array
    log_partition: float


@dataclass(frozen=True, eq=False)
class FullSpanFamily:
    """``P(x) = exp(sum_y theta_y Phi_y(x)) / Z`` over some functions of a basis that spans all (TA22 eq. 2.1).

    Functions are linearly independent and none is constant, so that there is no gauge to choose. A family is cheap to
    make: learners that choose functions go from one to the next (`append`, `take`) and hold theta beside it.

    Parameters
    ----------
    basis : SpanBasis
        All functions of the variables; families share it.
    functions : ndarray of int
        The numbers of those that have a parameter, each once, in any order; 0, the constant, may not.
    n_hidden : int, default=0
        How many variables, the last ones, no row of data shows.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.families.full_span import FullSpanFamily
    >>> from gibbsian.models.variables import Variables
    >>> model = FullSpanFamily.model({3: 0.5}, Variables.binary(2))
    >>> model.family.supports, model.log_weights(np.array([[0, 0], [0, 1]]))
    ([(0, 1)], array([ 0.5, -0.5]))

    A learner holds the family, theta and the dual (TA22 eq. 2.6) in its state. A step appends functions or takes some
    of them, theta follows, and the dual of the next family overwrites the last.

    >>> family, theta = FullSpanFamily.uniform(Variables.binary(2)), np.empty(0)
    >>> dual = family.dual(theta)
    >>> family, theta = family.append([1, 3]), np.append(theta, [0.0, 0.5])
    >>> dual = family.dual(theta, out=dual.values)
    >>> dual.values.round(4)                                         # <Phi_3> = tanh 0.5
    array([1.    , 0.    , 0.    , 0.4621])
    >>> used = theta != 0
    >>> family, theta = family.take(used), theta[used]               # the same distribution, so the dual stays
    >>> family.functions, round(dual.log_partition, 4)
    (array([3]), 1.5064)
    """

    basis: SpanBasis
    functions: Array
    n_hidden: int = 0

    registered_name: ClassVar[str] = "full-span"
    has_fast_transform: ClassVar[bool] = True
    parts_in_file: ClassVar[PartsInFile] = {
        "cardinalities": Listed(COUNT, "all"),
        "n_hidden": Plain((int,), 0, size="hidden"),
        "indices": wholes("parameters", low=1),
        "theta": reals("parameters"),
    }
    __getstate__ = fields_alone

    def __post_init__(self) -> None:
        functions = np.array(self.functions, dtype=np.int64)
        ordered, size = np.sort(functions, axis=None), self.basis.size
        within = ordered.size == 0 or 0 < ordered[0] <= ordered[-1] < size
        if functions.ndim != 1 or not within or (ordered[1:] == ordered[:-1]).any():
            raise ArgumentError(
                f"must be different numbers from 1 to {size - 1}", "0 is the constant", argument="functions"
            )
        functions.flags.writeable = False
        object.__setattr__(self, "functions", functions)

    @classmethod
    def uniform(cls, variables: Variables, hidden: Sequence[int] = ()) -> Self:
        """Return the family without functions, with which learners that choose some begin.

        Hidden variables have as many values as `hidden` says; their scores, where columns have some, are their codes.
        """
        return cls(SpanBasis(variables + Variables.ordinal(map(range, hidden))), np.empty(0, np.int64), len(hidden))

    @classmethod
    def dense(cls, variables: Variables, hidden: Sequence[int] = ()) -> Self:
        """Return the family of all positive distributions: that with every function."""
        family = cls.uniform(variables, hidden)
        require_memory(16.0 * family.basis.size, f"all {family.basis.size:.3g} functions", "choose fewer variables")
        return family.append(np.arange(1, family.basis.size))

    @classmethod
    def model(cls, parameters: Mapping[int, float], variables: Variables, hidden: Sequence[int] = ()) -> Model[Self]:
        """Return a model from the parameters of its functions."""
        family = cls.uniform(variables, hidden).append(list(parameters))
        return Model(family, np.array(list(parameters.values()), dtype=np.float64))

    @classmethod
    def on_graph(cls, graph: Graph, variables: Variables = SPINS) -> Self:
        """Return the family with all functions of a variable, an edge or a triangle of a graph; spins by default.

        Examples
        --------
        >>> import gibbsian as gb
        >>> from gibbsian.models.families.full_span import FullSpanFamily
        >>> FullSpanFamily.on_graph(gb.graphs.complete(2)).supports
        [(0,), (1,), (0, 1)]
        """
        family = cls.uniform(Variables.spins(graph.n_nodes) if variables == SPINS else variables)
        scopes = [*Scopes.of_graph(graph), *triangles(graph)]
        return family.append(np.concatenate([family.basis.functions_of(scope) for scope in scopes]))

    @classmethod
    def of_log_weights(cls, log_weights: Array, variables: Variables) -> Model[Self]:
        """Return the model with these log-weights of all rows: every distribution without zeros has one.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.families.full_span import FullSpanFamily
        >>> from gibbsian.models.variables import Variables
        >>> model = FullSpanFamily.of_log_weights(np.log([0.2, 0.3, 0.5]), Variables.categories((3,)))
        >>> model.family.probabilities(model.theta).values.round(6)
        array([0.2, 0.3, 0.5])
        """
        family, table = cls.uniform(variables), np.array(log_weights, dtype=np.float64)
        for i, (q, stride) in enumerate(zip(variables.sizes, family.basis.strides.tolist(), strict=True)):
            table = (np.linalg.inv(family.basis.local_values(i).T) @ table.reshape(-1, q, stride)).ravel()
        used = 1 + np.flatnonzero(table[1:])
        return Model(family.append(used), table[used])

    # -- structure ----------------------------------------------------------------------------------------------------
    @property
    def variables(self) -> Variables:
        """The values of all variables."""
        return self.basis.variables

    @property
    def n_parameters(self) -> int:
        """One for each function."""
        return self.functions.size

    @property
    def orders(self) -> Array:
        """On how many variables each function depends."""
        return self.basis.orders(self.functions)

    @property
    def supports(self) -> list[Scope]:
        """On which variables each function depends."""
        return self.basis.supports(self.functions)

    @property
    def penalised(self) -> Array:
        """The functions of two and more variables."""
        return self.orders > 1

    @property
    def statistic_range(self) -> tuple[Array, Array]:
        """Minus one and one."""
        return np.full(self.n_parameters, -1.0), np.ones(self.n_parameters)

    @cached_property
    def scopes(self) -> Scopes:
        """The sets of variables on which a function depends."""
        return Scopes.sorted(set(self.supports), len(self.variables))

    def append(self, functions: Sequence[int] | Array) -> Self:
        """Return the family with further functions: theta follows by ``np.append(theta, parameters)``."""
        added = np.asarray(functions, dtype=np.int64)
        return type(self)(self.basis, np.concatenate([self.functions, added]), self.n_hidden)

    def take(self, places: Array) -> Self:
        """Return the family of some functions, by a mask or by their places; theta follows by ``theta[places]``."""
        return type(self)(self.basis, self.functions[places], self.n_hidden)

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter."""
        return [f"theta[{place}]" for place in range(self.n_parameters)]

    def to_parts(self) -> Parts:
        """Return the number of values of each variable and the functions."""
        plain = {"cardinalities": list(self.variables.sizes), "n_hidden": self.n_hidden}
        return Parts(plain, {"indices": self.functions})

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from what a file keeps."""
        sizes, n = tuple(np.asarray(parts.plain["cardinalities"]).tolist()), len(variables)
        if sizes[:n] != variables.sizes or len(sizes) - n != parts.plain["n_hidden"]:
            raise ArgumentError("holds other numbers of values than the columns have", argument="cardinalities")
        return cls.uniform(variables, sizes[n:]).append(parts.arrays["indices"])

    # -- parameters ---------------------------------------------------------------------------------------------------
    def split(self, theta: Array) -> SpanParts:
        """Return the parameters."""
        return SpanParts(theta)

    def canonical(self, theta: Array) -> Array:
        """Return theta, which has no other gauge."""
        return theta

    def interactions(self, theta: Array) -> Interactions:
        """Return the coefficients of products of spins; where there are more than two values, norms of tables."""
        layers = (len(self.variables) - self.n_hidden, *([self.n_hidden] * (self.n_hidden > 0)))
        if self.variables.two_valued:
            larger = self.penalised
            scopes = tuple(self.basis.supports(self.functions[larger]))
            return Interactions(scopes, self._spin_weights(theta)[larger], layers, "coupling of spins")
        tables = zero_sum((factor.nodes, factor.table) for factor in self.factors(theta).factors)
        return of_tables(tables, layers, None if self.variables.scores is None else self.variables.levels)

    def _spin_weights(self, theta: Array) -> Array:
        """The weights of products of spins: a function is a product of signs that are -1 at the upper value."""
        return theta * (-1.0) ** self.orders

    def to_products(self, theta: Array) -> Model[ProductsFamily]:
        """Return the same distribution of two-valued variables as products of spins; log Z is the same.

        Examples
        --------
        >>> from gibbsian.models.families.full_span import FullSpanFamily
        >>> from gibbsian.models.variables import Variables
        >>> model = FullSpanFamily.model({1: 0.25, 6: 0.5}, Variables.binary(3))
        >>> products = model.family.to_products(model.theta)
        >>> products.family.scopes, products.theta
        (((2,), (0, 1)), array([-0.25, 0.5 ]))
        """
        if not self.variables.two_valued:
            raise ArgumentError("must all have two values to be spins", argument="variables")
        weights = zip(self.supports, self._spin_weights(theta).tolist(), strict=True)
        return ProductsFamily.model(dict(weights), len(self.variables))

    # -- all rows at once ---------------------------------------------------------------------------------------------
    # Tables are in the order of the numbers of rows or of functions. `out` is overwritten: one as large, float64 or
    # float32, that the caller owns.
    def log_weight_table(self, theta: Array, out: Array | None = None) -> Array:
        """Return the log-weights of all rows, by one fast transform of theta (TA22 section 2.2.2)."""
        table = self._table("the table of log-weights", out)
        self.basis.fill(table, self._places, theta)
        return table

    @kept_threads()
    def probabilities(self, theta: Array, out: Array | None = None) -> SpanTable:
        """Return the probabilities of all rows."""
        table = self.log_weight_table(theta, self._table("a table of all probabilities", out))
        reference = exponentiate(table)
        total = float(table.sum(dtype=np.float64))
        scale(table, 1.0 / total)
        return SpanTable(table, reference + float(np.log(total)))

    def dual(self, theta: Array, out: Array | None = None) -> SpanTable:
        """Return ``<Phi_y>`` of every function of the basis (TA22 eq. 2.6): two transforms, no second table."""
        found = self.probabilities(theta, self._table("the table of the dual", out))
        transform(found.values, self.basis.shape)
        return found

    def statistics_from_table(self, probabilities: Array) -> Array:
        """Return the expected functions, given the probabilities of all rows."""
        table = self._table("the table of the dual", None)
        table[:] = probabilities
        transform(table, self.basis.shape)
        return table[self._places]

    @cached_property
    def _places(self) -> Array | slice:
        """Where theta stands in a table: in one piece where every function has a parameter."""
        all_in_order = self.n_parameters == self.basis.size - 1 and bool((np.diff(self.functions) == 1).all())
        return slice(1, None) if all_in_order else self.functions

    def _table(self, what: str, out: Array | None) -> Array:
        if out is not None:
            return out
        size = self.basis.size
        require_memory(
            8.0 * size,
            f"{what} over {size:.3g} states",
            "ask conditional(), pseudo_score() or model_.log_weights(), which need no table over all states",
        )
        return aligned_zeros(size)

    def table_pays(self, n_rows: int) -> bool:
        """Whether the log-weights of so many rows are cheaper read from a table of all rows, and it fits.

        A transform takes a pass over all rows for each variable, and rows by themselves one over all pairs of a row and
        a function.
        """
        return n_rows * self.n_parameters >= self.basis.size and 8.0 * self.basis.size <= memory_limit()

    # -- rows ---------------------------------------------------------------------------------------------------------
    def log_weights(self, theta: Array, x: Array) -> Array:
        """Return the log-weight of each row of codes, by itself or from a table, whichever is cheaper."""
        codes = self.variables.checked(x)
        if self.table_pays(len(codes)):
            return self.log_weight_table(theta)[self.basis.numbers(codes)]
        logs = np.empty(len(codes))
        for rows in row_blocks(len(codes), self.n_parameters):
            logs[rows] = self.basis.values(self.functions, codes[rows]) @ theta
        return logs

    def statistics(self, x: Array) -> Array:
        """Return the functions at each row."""
        return self.basis.values(self.functions, self.variables.checked(x))

    def mean_statistics(self, x: Array, weights: Array | None = None) -> Array:
        """Return the weighted means of the functions over the rows."""
        codes = self.variables.checked(x)
        shares = checked_shares(weights, len(codes))
        if self.table_pays(len(codes)):
            table = self._table("the table of the data", None)
            np.add.at(table, self.basis.numbers(codes), shares)
            return self.statistics_from_table(table)
        means = np.zeros(self.n_parameters)
        for rows in row_blocks(len(codes), self.n_parameters):
            means += shares[rows] @ self.basis.values(self.functions, codes[rows])
        return means

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows of codes to the log-odds of each value given the others."""
        return SpanConditionals(self.basis, self.functions, self.variables.groups, rows)

    # -- other forms --------------------------------------------------------------------------------------------------
    def factors(self, theta: Array) -> FactorGraph:
        """Return a table for each set of variables on which a function depends.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.families.full_span import FullSpanFamily
        >>> from gibbsian.models.variables import Variables
        >>> family = FullSpanFamily.uniform(Variables.binary(2)).append([3])
        >>> family.factors(np.array([0.5])).factors[0].table.tolist()
        [[0.5, -0.5], [-0.5, 0.5]]
        """
        factors = []
        for scope, basis, own, places in self._by_scope:
            table = np.empty(basis.size)
            basis.fill(table, own, theta[places])
            factors.append(Factor(scope, table.reshape(basis.variables.sizes)))
        return FactorGraph(self.basis.shape, tuple(factors))

    def statistics_from(self, marginal: Marginal) -> Array:
        """Return the expected functions, given the joint probabilities of any few variables that share one."""
        means = np.empty(self.n_parameters)
        for scope, basis, own, places in self._by_scope:
            table = np.array(marginal(scope), dtype=np.float64).ravel()
            transform(table, basis.shape)
            means[places] = table[own]
        return means

    @cached_property
    def _by_scope(self) -> list[tuple[Scope, SpanBasis, Array, Array]]:
        """The sets of variables on which a function depends: their basis, the functions there, and their places."""
        lowest = self.basis.numbers(self.basis.digits(self.functions) > 0)  # the first function of the same variables
        lowest, which = np.unique(lowest, return_inverse=True)
        every = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
        found = []
        for scope, places in zip(self.basis.supports(lowest), every, strict=False):  # one piece where there is none
            basis, own = self.basis.within(self.functions[places], scope)
            if basis.size > MAX_FACTOR_STATES:
                raise ArgumentError(
                    f"a function of {len(scope)} variables has a table of {basis.size:.3g} states",
                    f"at most {MAX_FACTOR_STATES} can be listed",
                )
            found.append((scope, basis, own, places))
        return found

    # -- some variables given -----------------------------------------------------------------------------------------
    def given(self, nodes: Sequence[int] | Array, codes: Sequence[int] | Array) -> Given[Self]:
        """Return the family of the other variables given the codes of some (see `Given`).

        A function keeps its part in the free variables, times the sign of its part in the given ones.
        """
        fixed, held = checked_fixed(self.variables.sizes, nodes, codes)
        family, place, given, own = self._without(fixed)
        return Given.of_products(family, place, given.values(own, held[None])[0])

    def given_rows(self, theta: Array, nodes: Sequence[int], codes: Array) -> tuple[Self, Array, Array]:
        """Return `given` for many rows at once: the family they share, and the parameters and the constant of each.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.families.full_span import FullSpanFamily
        >>> from gibbsian.models.variables import Variables
        >>> family = FullSpanFamily.uniform(Variables.binary(2)).append([2, 3])
        >>> rest, parameters, constants = family.given_rows(np.array([0.2, 0.5]), [0], np.array([[0], [1]]))
        >>> rest.supports, parameters.tolist(), constants.tolist()
        ([(0,)], [[0.5], [-0.5]], [0.2, -0.2])
        """
        family, place, given, own = self._without(tuple(nodes))
        n_rows, width = len(codes), family.n_parameters + 1
        columns = np.arange(n_rows)[:, None] * width + place + 1  # the constant stands first
        terms = theta * given.values(own, codes)
        sums = np.bincount(columns.ravel(), terms.ravel(), n_rows * width).reshape(n_rows, width)
        return family, sums[:, 1:], sums[:, 0]

    @cached_property
    def _without(self) -> Callable[[Scope], tuple[Self, Array, SpanBasis, Array]]:
        """The family of the other variables, where each parameter goes, and the basis and functions of the given ones.

        Remembered, as rows ask again.
        """
        return lru_cache(maxsize=64)(self._make_without)

    def _make_without(self, nodes: Scope) -> tuple[Self, Array, SpanBasis, Array]:
        rest = np.setdiff1d(np.arange(len(self.variables)), nodes)
        basis, parts = self.basis.within(self.functions, rest)
        used, place = np.unique(parts, return_inverse=True)
        functions = used[used > 0]  # the constant comes first where there is one
        n_hidden = int(np.count_nonzero(rest >= len(self.variables) - self.n_hidden))
        family = type(self)(basis, functions, n_hidden)
        return family, place.ravel() - (used.size - functions.size), *self.basis.within(self.functions, nodes)

    def without_hidden(self, theta: Array) -> Model[Self]:
        """Return the distribution of the columns, the hidden variables summed out: again a full-span model."""
        if not self.n_hidden:
            return Model(self, theta)
        columns = self.variables.take(range(len(self.variables) - self.n_hidden))
        table = self.log_weight_table(theta).reshape(math.prod(columns.sizes), -1)
        return self.of_log_weights(logsumexp(table, axis=1), columns)
