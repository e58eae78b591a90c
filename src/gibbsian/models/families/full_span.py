"""The full-span log-linear model (TA22 eq. 2.1): functions of any order over variables with any number of values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers, Mask, Slice, States
from gibbsian.backends.numba.axes import exponentiate, scale, transform
from gibbsian.backends.numba.walsh import aligned_zeros
from gibbsian.backends.parallel import kept_threads
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import FAMILIES, Model, Parts, fields_alone
from gibbsian.models.conditionals import Conditionals, SpanConditionals, WeightedRows
from gibbsian.models.factors import Factor, FactorGraph, Marginal, zero_sum
from gibbsian.models.families.products import ProductsFamily
from gibbsian.models.families.scoped import Weights
from gibbsian.models.families.span_basis import SpanBasis
from gibbsian.models.file_parts import COUNT, ListOf, PartsInFile, Plain, integers, reals
from gibbsian.models.given import Given, cached_by_nodes
from gibbsian.models.interactions import Interactions, of_tables
from gibbsian.models.scopes import Scope, Scopes
from gibbsian.models.variables import Variables, checked_fixed, checked_weights
from gibbsian.resources import require_memory, row_blocks
from gibbsian.startup import logsumexp

# Maximum number of states of the variables of one function in a factor graph.
MAX_FACTOR_STATES = 2**22


class SpanTable(NamedTuple):
    """A table over all rows, or over all functions, at one theta, and log Z. The family does not cache tables."""

    values: Floats
    log_partition: float


def normalise(log_weights: Floats) -> float:
    """Overwrite a table of log-weights with probabilities and return log Z."""
    reference = exponentiate(log_weights)
    total = float(log_weights.sum(dtype=np.float64))
    scale(log_weights, 1.0 / total)
    return reference + float(np.log(total))


@FAMILIES.register("full-span")
@dataclass(frozen=True, eq=False)
class FullSpanFamily:
    """``P(x) = exp(sum_y theta_y Phi_y(x)) / Z`` over some functions of a basis that spans all (TA22 eq. 2.1).

    Functions are linearly independent and none is constant, so that parameters are unique. A family is cheap to
    construct: learners that select functions go from one family to the next (`append`, `take`).

    Parameters
    ----------
    basis : SpanBasis
        All functions of the variables, shared by families.
    functions : ndarray of int
        The numbers of those that have a parameter, each once, in any order, without the constant 0.
    n_hidden : int, default=0
        Number of hidden variables, which come last.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian import FullSpanFamily, Variables
    >>> model = FullSpanFamily.model({3: 0.5}, Variables.binary(2))
    >>> model.family.scopes, model.log_weights(np.array([[0, 0], [0, 1]]))
    (((0, 1),), array([ 0.5, -0.5]))

    The state of a learner has the family, theta and the dual (TA22 eq. 2.6). A step appends functions or takes some of
    them, extends or cuts theta likewise, and overwrites the dual.

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
    functions: Integers
    n_hidden: int = 0

    registered_name: ClassVar[str]
    has_fast_transform: ClassVar[bool] = True
    parts_in_file: ClassVar[PartsInFile] = {
        "cardinalities": ListOf(COUNT, "all"),
        "n_hidden": Plain((int,), 0, size="hidden"),
        "indices": integers("parameters", low=1),
        "theta": reals("parameters"),
    }
    __getstate__ = fields_alone

    def __post_init__(self) -> None:
        functions = np.array(self.functions, dtype=np.int64)
        ordered, size = np.sort(functions, axis=None), self.basis.size
        valid = ordered.size == 0 or 0 < ordered[0] <= ordered[-1] < size
        if functions.ndim != 1 or not valid or (ordered[1:] == ordered[:-1]).any():
            raise ArgumentError(
                f"must be different numbers from 1 to {size - 1}", "0 is the constant", argument="functions"
            )
        functions.flags.writeable = False
        object.__setattr__(self, "functions", functions)

    @classmethod
    def uniform(cls, variables: Variables, hidden: Sequence[int] = ()) -> Self:
        """Return the family without functions, from which greedy learners start.

        `hidden` has the number of values of each hidden variable. Their scores are their codes if columns have scores.
        """
        return cls(SpanBasis(variables + Variables.ordinal(map(range, hidden))), np.empty(0, np.int64), len(hidden))

    @classmethod
    def model(cls, parameters: Mapping[int, float], variables: Variables, hidden: Sequence[int] = ()) -> Model[Self]:
        """Return a model from the parameters of its functions."""
        family = cls.uniform(variables, hidden).append(list(parameters))
        return Model(family, np.array(list(parameters.values()), dtype=np.float64))

    # -- structure ----------------------------------------------------------------------------------------------------
    @property
    def variables(self) -> Variables:
        """The columns, then the hidden variables."""
        return self.basis.variables

    @property
    def n_parameters(self) -> int:
        """Number of functions."""
        return self.functions.size

    @property
    def penalised(self) -> Mask:
        """Mask of the functions of two or more variables."""
        return self.basis.orders(self.functions) > 1

    @property
    def statistic_range(self) -> tuple[Floats, Floats]:
        """Minus one and one."""
        return np.full(self.n_parameters, -1.0), np.ones(self.n_parameters)

    @cached_property
    def scopes(self) -> Scopes:
        """The sets of variables with a function."""
        return Scopes.sorted(set(self.basis.supports(self.functions)), len(self.variables))

    @property
    def graph(self) -> Graph:
        """The pairs of variables that share a function."""
        return self.scopes.graph

    def terms_of(self, variables: Mask) -> Mask:
        """Return the mask of the functions of any masked variable."""
        return np.asarray(np.any(self.basis.digits(self.functions)[:, variables] > 0, axis=1))

    def log_odds(self, theta: Floats) -> Floats:
        """Return the largest change of a log-probability by each parameter: functions are -1 and +1."""
        return 2.0 * np.abs(theta)

    def append(self, functions: Sequence[int] | Integers) -> Self:
        """Return the family with further functions; the new theta is ``np.append(theta, parameters)``."""
        added = np.asarray(functions, dtype=np.int64)
        return type(self)(self.basis, np.concatenate([self.functions, added]), self.n_hidden)

    def take(self, chosen: Integers | Mask) -> Self:
        """Return the family of some functions, by their indices or a mask; the new theta is ``theta[chosen]``."""
        return type(self)(self.basis, self.functions[chosen], self.n_hidden)

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter."""
        return [f"theta[{index}]" for index in range(self.n_parameters)]

    def to_parts(self) -> Parts:
        """Return the number of values of each variable and the functions."""
        plain = {"cardinalities": list(self.variables.sizes), "n_hidden": self.n_hidden}
        return Parts(plain, {"indices": self.functions})

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from the parts of a model file."""
        sizes, n = tuple(cast("list[int]", parts.plain["cardinalities"])), len(variables)
        if sizes[:n] != variables.sizes or len(sizes) - n != parts.plain["n_hidden"]:
            raise ArgumentError("holds other numbers of values than the columns have", argument="cardinalities")
        return cls.uniform(variables, sizes[n:]).append(np.asarray(parts.arrays["indices"], np.intp))

    # -- parameters ---------------------------------------------------------------------------------------------------
    def split(self, theta: Floats) -> Weights:
        """Return the parameters."""
        return Weights(theta)

    def canonical(self, theta: Floats) -> Floats:
        """Return theta, which is unique."""
        return theta

    def interactions(self, theta: Floats) -> Interactions:
        """Return the weights of products of spins; if variables have more than two values, norms of tables."""
        layers = (len(self.variables) - self.n_hidden, *([self.n_hidden] * (self.n_hidden > 0)))
        if self.variables.two_valued:
            larger = self.penalised
            scopes = tuple(self.basis.supports(self.functions[larger]))
            return Interactions(scopes, self._spin_weights(theta)[larger], layers, "coupling of spins")
        tables = zero_sum((factor.nodes, factor.table) for factor in self.factors(theta).factors)
        return of_tables(tables, layers, None if self.variables.scores is None else self.variables.levels)

    def _spin_weights(self, theta: Floats) -> Floats:
        """Return the weights of products of spins: a function is a product of signs that are -1 at code 1."""
        return theta * (-1.0) ** self.basis.orders(self.functions)

    # -- all rows at once ---------------------------------------------------------------------------------------------
    # Tables are in the order of the numbers of rows or of functions. `out` is a table of the same size, float64 or
    # float32, to be overwritten.
    def log_weight_table(self, theta: Floats, out: Floats | None = None) -> Floats:
        """Return the log-weights of all rows, by one fast transform of theta (TA22 section 2.2.2)."""
        table = self._table("the table of log-weights", out)
        self.basis.fill(table, self._indices, theta)
        return table

    @kept_threads()
    def probabilities(self, theta: Floats, out: Floats | None = None) -> SpanTable:
        """Return the probabilities of all rows."""
        table = self.log_weight_table(theta, self._table("a table of all probabilities", out))
        return SpanTable(table, normalise(table))

    def dual(self, theta: Floats, out: Floats | None = None) -> SpanTable:
        """Return ``<Phi_y>`` of every function of the basis (TA22 eq. 2.6): two transforms in one table."""
        dual = self.probabilities(theta, self._table("the table of the dual", out))
        transform(dual.values, self.basis.shape)
        return dual

    def statistics_from_table(self, probabilities: Floats) -> Floats:
        """Return the expected functions, given the probabilities of all rows."""
        table = self._table("the table of the dual", None)
        table[:] = probabilities
        transform(table, self.basis.shape)
        return table[self._indices]

    @cached_property
    def _indices(self) -> Integers | Slice:
        """The indices of theta in a table: a slice if every function has a parameter."""
        all_in_order = self.n_parameters == self.basis.size - 1 and bool((np.diff(self.functions) == 1).all())
        return slice(1, self.basis.size) if all_in_order else self.functions

    def _table(self, what: str, out: Floats | None) -> Floats:
        if out is not None:
            return out
        size = self.basis.size
        require_memory(
            8.0 * size,
            f"{what} over {size:.3g} states",
            "use conditional(), pseudo_score() or model_.log_weights(), which need no table over all states",
        )
        return aligned_zeros(size)

    # -- rows ---------------------------------------------------------------------------------------------------------
    def log_weights(self, theta: Floats, x: States) -> Floats:
        """Return the log-weight of each row of codes, directly or from a table, whichever is cheaper."""
        codes = self.variables.checked(x)
        if self.basis.table_pays(len(codes), self.n_parameters):
            return self.log_weight_table(theta)[self.basis.numbers(codes)]
        logs = np.empty(len(codes))
        for rows in row_blocks(len(codes), self.n_parameters):
            logs[rows] = self.basis.values(self.functions, codes[rows]) @ theta
        return logs

    def statistics(self, x: States) -> Floats:
        """Return the functions at each row."""
        return self.basis.values(self.functions, self.variables.checked(x))

    def mean_statistics(self, x: States, weights: Floats | None = None) -> Floats:
        """Return the weighted means of the functions over the rows."""
        codes = self.variables.checked(x)
        normalised = checked_weights(weights, len(codes))
        if self.basis.table_pays(len(codes), self.n_parameters):
            table = self._table("the table of the data", None)
            np.add.at(table, self.basis.numbers(codes), normalised)
            return self.statistics_from_table(table)
        means = np.zeros(self.n_parameters)
        for rows in row_blocks(len(codes), self.n_parameters):
            means += normalised[rows] @ self.basis.values(self.functions, codes[rows])
        return means

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows, for losses of the log-odds of each variable given all others."""
        rows = rows._replace(codes=self.variables.checked(rows.codes))
        return SpanConditionals(self.basis, self.functions, self.variables.groups, rows)

    # -- other forms --------------------------------------------------------------------------------------------------
    def factors(self, theta: Floats) -> FactorGraph:
        """Return a table for each set of variables with a function.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian import FullSpanFamily, Variables
        >>> family = FullSpanFamily.uniform(Variables.binary(2)).append([3])
        >>> family.factors(np.array([0.5])).factors[0].table.tolist()
        [[0.5, -0.5], [-0.5, 0.5]]
        """
        factors = []
        for scope, basis, functions, indices in self._by_scope:
            table = np.empty(basis.size)
            basis.fill(table, functions, theta[indices])
            factors.append(Factor(scope, table.reshape(basis.variables.sizes)))
        return FactorGraph(self.basis.shape, tuple(factors))

    def statistics_from(self, marginal: Marginal) -> Floats:
        """Return the expected functions, given the joint probabilities of the variables of each."""
        means = np.empty(self.n_parameters)
        for scope, basis, functions, indices in self._by_scope:
            table = np.array(marginal(scope), dtype=np.float64).ravel()
            transform(table, basis.shape)
            means[indices] = table[functions]
        return means

    @cached_property
    def _by_scope(self) -> list[tuple[Scope, SpanBasis, Integers, Integers]]:
        """For each set of variables with a function: the set, its basis, the functions in it, and their indices."""
        first = self.basis.numbers(self.basis.digits(self.functions) > 0)  # the first function of the same variables
        first, which = np.unique(first, return_inverse=True)
        groups = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
        parts = []
        for scope, indices in zip(self.basis.supports(first), groups, strict=False):  # one empty group if no function
            basis, functions = self.basis.restricted(self.functions[indices], scope)
            if basis.size > MAX_FACTOR_STATES:
                raise ArgumentError(
                    f"a function of {len(scope)} variables has a table of {basis.size:.3g} states",
                    f"at most {MAX_FACTOR_STATES} can be listed",
                )
            parts.append((scope, basis, functions, indices))
        return parts

    # -- some variables given -----------------------------------------------------------------------------------------
    def given(self, nodes: Sequence[int] | Integers, codes: Sequence[int] | States) -> Given[Self]:
        """Condition on the codes of some variables.

        A function becomes its factor of the free variables, times the sign of its factor of the given ones.
        """
        fixed, given_codes = checked_fixed(self.variables.sizes, nodes, codes)
        family, target, basis, functions = self._without(fixed)
        return Given.of_products(family, target, basis.values(functions, given_codes[None])[0])

    def given_rows(self, theta: Floats, nodes: Sequence[int] | Integers, codes: Codes) -> tuple[Self, Floats, Floats]:
        """Condition on the codes of many rows: return the family they share, and parameters and constant of each.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian import FullSpanFamily, Variables
        >>> family = FullSpanFamily.uniform(Variables.binary(2)).append([2, 3])
        >>> rest, parameters, constants = family.given_rows(np.array([0.2, 0.5]), [0], np.array([[0], [1]]))
        >>> rest.scopes, parameters.tolist(), constants.tolist()
        (((0,),), [[0.5], [-0.5]], [0.2, -0.2])
        """
        family, target, basis, functions = self._without(tuple(nodes))
        n_rows, width = len(codes), family.n_parameters + 1
        columns = np.arange(n_rows)[:, None] * width + target + 1  # column 0 is the constant
        terms = theta * basis.values(functions, codes)
        sums = np.asarray(np.bincount(columns.ravel(), terms.ravel(), n_rows * width), np.float64)
        sums = sums.reshape(n_rows, width)
        return family, sums[:, 1:], sums[:, 0]

    @cached_by_nodes
    def _without(self, nodes: Scope) -> tuple[Self, Integers, SpanBasis, Integers]:
        """Return the family of the other variables, and where each function went.

        That is its index in the new family, or -1, and the basis of the given variables with its factor there.
        """
        rest = np.setdiff1d(np.arange(len(self.variables)), nodes)
        basis, parts = self.basis.restricted(self.functions, rest)
        used, target = np.unique(parts, return_inverse=True)
        functions = used[used > 0]  # without the constant, which comes first
        n_hidden = int(np.count_nonzero(rest >= len(self.variables) - self.n_hidden))
        family = type(self)(basis, functions, n_hidden)
        return family, target.ravel() - (used.size - functions.size), *self.basis.restricted(self.functions, nodes)


def from_log_weights(log_weights: Floats, variables: Variables) -> Model[FullSpanFamily]:
    """Return the model with these log-weights of all rows; there is one for every distribution without zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian import Variables
    >>> from gibbsian.models.families.full_span import from_log_weights
    >>> model = from_log_weights(np.log([0.2, 0.3, 0.5]), Variables.categories((3,)))
    >>> model.family.probabilities(model.theta).values.round(6)
    array([0.2, 0.3, 0.5])
    """
    family, table = FullSpanFamily.uniform(variables), np.array(log_weights, dtype=np.float64)
    for i, (q, stride) in enumerate(zip(variables.sizes, family.basis.strides.tolist(), strict=True)):
        table = (np.linalg.inv(family.basis.local_values(i).T) @ table.reshape(-1, q, stride)).ravel()
    used = 1 + np.flatnonzero(table[1:])
    return Model(family.append(used), table[used])


def without_hidden(model: Model[FullSpanFamily]) -> Model[FullSpanFamily]:
    """Return the distribution of the columns, with hidden variables summed out, again as a full-span model."""
    family = model.family
    if not family.n_hidden:
        return model
    columns = family.variables.take(range(len(family.variables) - family.n_hidden))
    table = family.log_weight_table(model.theta).reshape(math.prod(columns.sizes), -1)
    return from_log_weights(logsumexp(table, axis=1), columns)


def as_products(model: Model[FullSpanFamily]) -> Model[ProductsFamily]:
    """Return the same distribution of two-valued variables as products of spins; log Z is the same.

    Examples
    --------
    >>> from gibbsian import FullSpanFamily, Variables
    >>> from gibbsian.models.families.full_span import as_products
    >>> products = as_products(FullSpanFamily.model({1: 0.25, 6: 0.5}, Variables.binary(3)))
    >>> products.family.scopes, products.theta
    (((2,), (0, 1)), array([-0.25, 0.5 ]))
    """
    if not model.variables.two_valued:
        raise ArgumentError("must all have two values to be spins", argument="variables")
    weights = model.theta * (-1.0) ** model.family.basis.orders(model.family.functions)
    return ProductsFamily.model(
        dict(zip(model.family.basis.supports(model.family.functions), weights.tolist(), strict=True)), model.n_variables
    )
