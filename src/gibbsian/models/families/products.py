"""Interactions of any order: weighted products of the scores of variables (YU20 section 2.1; any sample space, Y18)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb
from typing import ClassVar, NamedTuple, Self

import numpy as np

from gibbsian.backends.numba import cliques as kernels
from gibbsian.backends.numba.factor_tables import subset_sums, superset_sums
from gibbsian.backends.numba.walsh import aligned_zeros, walsh_hadamard
from gibbsian.backends.parallel import map_in_order, sum_in_order
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.clique_forms import expanded_products, padded_levels, product_ranges, product_tables
from gibbsian.models.conditionals import CliqueConditionals, Conditionals, WeightedRows
from gibbsian.models.factors import FactorGraph, Marginal
from gibbsian.models.family import Array, Model, Parts, fields_alone
from gibbsian.models.file_parts import SIZE, PartsInFile, reals, wholes
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions
from gibbsian.models.scopes import Scope, Scopes, triangles
from gibbsian.models.states import checked_fixed, checked_shares
from gibbsian.models.variables import SPINS, Variables
from gibbsian.resources import require_memory, row_blocks

# About this many products of a row block on one thread at a time: rows cost as much as there are products.
BLOCK_PRODUCTS = 2**22


class ProductsParts(NamedTuple):
    """Theta: the weight of each product."""

    weights: Array


@dataclass(frozen=True, eq=False)
class ProductsFamily:
    """``P(x) = exp(sum_c theta_c prod_{i in c} x_i) / Z`` over sets c of any size, x the scores of the variables.

    Scores are -1/+1, 0/1, or any finite set of real numbers. Products of different sets are linearly independent where
    each variable has at least two values, so that there is no gauge to choose.

    Parameters
    ----------
    scopes : Scopes
        The variables of each product.
    variables : Variables, default=SPINS
        Variables with scores; spins by default.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.families.products import ProductsFamily
    >>> model = ProductsFamily.model({(0, 1, 2): 1.0, (0,): 0.5}, n_variables=3)
    >>> model.family.scopes, model.theta.tolist()
    (((0,), (0, 1, 2)), [0.5, 1.0])
    >>> model.log_weights(np.array([[1, 1, 1], [1, 1, 0]]))
    array([ 1.5, -0.5])
    """

    scopes: Scopes
    variables: Variables = SPINS

    registered_name: ClassVar[str] = "products"
    n_hidden: ClassVar[int] = 0
    parts_in_file: ClassVar[PartsInFile] = {
        "n_variables": SIZE,
        "indptr": wholes("ends"),
        "members": wholes("members", below="all"),
        "theta": reals("parameters"),
    }
    __getstate__ = fields_alone

    def __post_init__(self) -> None:
        if self.variables == SPINS:
            object.__setattr__(self, "variables", Variables.spins(self.scopes.n_variables))
        if len(self.variables) != self.scopes.n_variables:
            raise ArgumentError(f"are {len(self.variables)} of {self.scopes.n_variables}", argument="variables")
        self.variables.levels  # noqa: B018  # raises where values have no numbers

    @classmethod
    def model(cls, weights: Mapping[Scope, float], n_variables: int, variables: Variables = SPINS) -> Model[Self]:
        """Return a model from the weights of its products, in any order; the same set may be named once only."""
        of = {tuple(sorted(scope)): float(weight) for scope, weight in weights.items()}
        if len(of) < len(weights):
            raise ArgumentError("names the same variables twice, give each set once", argument="weights")
        scopes = Scopes.sorted(of, n_variables)
        return Model(cls(scopes, variables), np.array([of[scope] for scope in scopes]))

    @classmethod
    def on_graph(cls, graph: Graph, variables: Variables = SPINS) -> Self:
        """Return the family with the single variables, the edges and the triangles of a graph."""
        return cls(Scopes([*Scopes.of_graph(graph), *triangles(graph)], graph.n_nodes), variables)

    @classmethod
    def of_order(cls, n_variables: int, order: int, variables: Variables = SPINS) -> Self:
        """Return the family with every product of up to `order` variables.

        Examples
        --------
        >>> from gibbsian.models.families.products import ProductsFamily
        >>> ProductsFamily.of_order(30, order=3).n_parameters
        4525
        """
        if not 1 <= order <= n_variables:
            raise ArgumentError(
                f"must be from 1 to the number of variables, {n_variables}", argument="order", value=order
            )
        sizes = range(1, order + 1)
        n_products = sum(comb(n_variables, k) for k in sizes)
        bytes_a_product = 150.0 + 24.0 * order  # a tuple, its numbers twice as arrays, a few vectors like theta
        require_memory(
            bytes_a_product * n_products,
            f"all {n_products:,} products of up to {order} of {n_variables} variables",
            "lower `order`, or give the products that matter",
        )
        products = itertools.chain.from_iterable(itertools.combinations(range(n_variables), k) for k in sizes)
        return cls(Scopes(products, n_variables), variables)

    # -- structure ----------------------------------------------------------------------------------------------------
    @property
    def n_parameters(self) -> int:
        """One for each product."""
        return len(self.scopes)

    @property
    def penalised(self) -> Array:
        """The products of two and more."""
        return self.scopes.sizes > 1

    @cached_property
    def scores(self) -> Array:
        """The score of each code of each variable, one row each; zeros after the last."""
        return padded_levels(self.variables.levels)

    @property
    def statistic_range(self) -> tuple[Array, Array]:
        """The least and the largest value of each product."""
        return product_ranges(self.scopes, self.variables.levels)

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the names of the variables of each product."""
        return ["*".join(names[i] for i in scope) for scope in self.scopes]

    def to_parts(self) -> Parts:
        """Return the scopes."""
        return Parts({"n_variables": self.scopes.n_variables}, self.scopes.to_arrays())

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from what a file keeps."""
        return cls(Scopes.from_arrays(dict(parts.arrays), len(variables)), variables)

    # -- parameters ---------------------------------------------------------------------------------------------------
    def split(self, theta: Array) -> ProductsParts:
        """Return the weights."""
        return ProductsParts(theta)

    def canonical(self, theta: Array) -> Array:
        """Return theta, which has no other gauge."""
        return theta

    def interactions(self, theta: Array) -> Interactions:
        """Return the weights of products of two and more."""
        larger = np.flatnonzero(self.penalised)
        scopes = tuple(self.scopes[c] for c in larger)
        return Interactions(scopes, theta[larger], (self.scopes.n_variables,), "weight")

    def recode(self, theta: Array, variables: Variables) -> tuple[Model[Self], float]:
        """Return the same distribution of two-valued variables with other scores, and the constant in the log-weight.

        A product of k variables becomes one of each of its subsets, so that those of more than 22 are refused.
        """
        (low, gap), (new_low, new_gap) = self.variables.lows_and_gaps, variables.lows_and_gaps
        scale = float(gap[0] / new_gap[0])
        weights = expanded_products(self.scopes, theta, scale, float(low[0] - scale * new_low[0]))
        constant = weights.pop((), 0.0)
        return self.model(weights, len(variables), variables), constant

    # -- rows ---------------------------------------------------------------------------------------------------------
    def _blocks(self, n_rows: int) -> list[slice]:
        return list(row_blocks(n_rows, self.scopes.n_variables + self.n_parameters, BLOCK_PRODUCTS))

    def log_weights(self, theta: Array, x: Array) -> Array:
        """Return the weighted sum of the products of each row of codes."""
        codes = np.ascontiguousarray(self.variables.checked(x))
        parts = map_in_order(
            lambda block: kernels.log_weights(codes[block], self.scores, self.scopes.runs, *self.scopes.csr, theta),
            self._blocks(len(codes)),
        )
        return np.concatenate([np.empty(0), *parts])

    def statistics(self, x: Array) -> Array:
        """Return the products of each row."""
        numbers = self.variables.numbers(self.variables.checked(x))
        indptr, members = self.scopes.csr
        return np.multiply.reduceat(numbers[:, members], indptr[:-1], axis=1)

    def mean_statistics(self, x: Array, weights: Array | None = None) -> Array:
        """Return the weighted means of the products."""
        codes = np.ascontiguousarray(self.variables.checked(x))
        shares = checked_shares(weights, len(codes))
        return sum_in_order(
            lambda block: kernels.statistics(
                codes[block], self.scores, shares[block], self.scopes.runs, *self.scopes.csr
            ),
            self._blocks(len(codes)),
            self.n_parameters,
        )

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows of codes to the log-odds of each value given the others."""
        return CliqueConditionals(self.scopes, self.variables.levels, self.variables.groups, rows)

    # -- all rows at once ---------------------------------------------------------------------------------------------
    @cached_property
    def _places(self) -> Array:
        """The number of the row with ones at the variables of a product: variable 0 is the most significant bit."""
        indptr, members = self.scopes.csr
        bits = np.left_shift(1, self.scopes.n_variables - 1 - members)
        return np.add.reduceat(bits, indptr[:-1]) if self.n_parameters else np.empty(0, np.int64)

    @cached_property
    def _signs(self) -> Array:
        """The transform reads a one as -1 but a code of one is spin +1: odd products change sign."""
        return np.where(self.scopes.sizes % 2 == 1, -1.0, 1.0)

    @property
    def transform(self) -> str:
        """Which fast transform of theta gives the log-weights of all rows: "walsh" of spins, "subsets" of 0/1."""
        known = {((-1.0, 1.0),): "walsh", ((0.0, 1.0),): "subsets"}
        return known.get(tuple(set(self.variables.scores or ())), "")  # type: ignore[arg-type]

    @property
    def has_fast_transform(self) -> bool:
        """Whether there is one."""
        return bool(self.transform)

    def log_weight_table(self, theta: Array) -> Array:
        """Return the log-weights of all rows by their numbers, in n 2^n additions however many products there are.

        With spins they are the Walsh-Hadamard transform of theta (TA22 section 2.2.3), with 0/1 sums over subsets.
        """
        table = aligned_zeros(2**self.scopes.n_variables)
        if self.transform == "walsh":
            table[self._places] = self._signs * theta
            walsh_hadamard(table)
        else:
            table[self._places] = theta
            subset_sums(table)
        return table

    def statistics_from_table(self, probabilities: Array) -> Array:
        """Return the expected products, given the probabilities of all rows by their numbers."""
        table = aligned_zeros(probabilities.size)
        table[:] = probabilities
        if self.transform == "walsh":
            walsh_hadamard(table)
            return self._signs * table[self._places]
        superset_sums(table)
        return table[self._places]

    # -- other forms --------------------------------------------------------------------------------------------------
    def factors(self, theta: Array) -> FactorGraph:
        """Return a table for each product; refused where one has more than 2^22 entries."""
        tables = product_tables(self.scopes, theta, self.variables.levels)
        return FactorGraph(np.array(self.variables.sizes), tables)

    def statistics_from(self, marginal: Marginal) -> Array:
        """Return the expected products, given the joint probabilities of any few variables that share one."""
        expected = np.empty(self.n_parameters)
        for c, scope in enumerate(self.scopes):
            table = marginal(scope)
            for i in reversed(scope):
                table = table @ self.variables.levels[i]
            expected[c] = table
        return expected

    def given(self, nodes: Sequence[int] | Array, codes: Sequence[int] | Array) -> Given[Self]:
        """Return the family of the other variables given the codes of some (see `Given`).

        What is left of each product is a product of the rest, times the product of the given scores.
        """
        fixed, held = checked_fixed(self.variables.sizes, nodes, codes)
        family, place = self._without(fixed)
        numbers = np.ones(self.scopes.n_variables)
        numbers[list(fixed)] = self.scores[list(fixed), held]
        indptr, members = self.scopes.csr
        factors = np.multiply.reduceat(numbers[members], indptr[:-1]) if self.n_parameters else np.ones(0)
        return Given.of_products(family, place, factors)

    @cached_property
    def _without(self) -> Callable[[Scope], tuple[Self, Array]]:
        """The family of the other variables, and where each parameter goes; remembered, as rows ask again."""
        return lru_cache(maxsize=64)(self._make_without)

    def _make_without(self, nodes: Scope) -> tuple[Self, Array]:
        rest, scopes, place = self.scopes.without(nodes)
        return type(self)(scopes, self.variables.take(rest)), place
