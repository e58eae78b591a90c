"""The Boltzmann machine with interactions of any order (YU20 section 2.1; with any finite sample space, Y18)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import ClassVar, Self

import numpy as np

from gibbsian.backends.numba import cliques as kernels
from gibbsian.backends.numba.factor_tables import subset_sums, superset_sums
from gibbsian.backends.numba.walsh import aligned_zeros, walsh_hadamard
from gibbsian.backends.parallel import map_in_order, sum_in_order
from gibbsian.domain import SPIN, AnyDomain, Domain
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import MODELS, ExponentialFamily
from gibbsian.models.clique_forms import expanded_products, padded_levels, product_ranges, product_tables
from gibbsian.models.conditionals import CliqueConditionals, Conditionals, WeightedRows
from gibbsian.models.conditionals.products import BLOCK_PRODUCTS
from gibbsian.models.factors import FactorGraph, Marginal
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions
from gibbsian.models.parameters import change_of_domain, checked_theta
from gibbsian.models.scopes import Scopes, spread_over_edges, triangles
from gibbsian.models.states import checked_fixed, checked_shares
from gibbsian.resources import require_memory, row_blocks


@MODELS.register("higher-order", many_valued="values")
@dataclass(frozen=True, eq=False)
class HigherOrderModel(ExponentialFamily):
    """``P(x) = exp(sum_c theta_c prod_{i in c} x_i / T) / Z`` over cliques c of any size.

    A clique of one variable is its bias, one of two a coupling. Values are the numbers of the domain: -1/+1, 0/1, or
    any finite set of real numbers. Products of different cliques are linearly independent where each variable has at
    least two values, so the parameters are identified and there is no gauge to choose.

    Parameters
    ----------
    n_variables : int
        Number of variables.
    cliques : sequence of tuple of int
        The cliques, smaller ones first, then in lexicographic order, the variables of each ascending. `build` takes
        any order.
    theta : ndarray
        The weight of each clique.
    domain : Domain or Categories
        `SPIN`, `BINARY`, or `Categories` with `values`.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.models.HigherOrderModel.build({(0, 1, 2): 1.0, (0,): 0.5}, n_variables=3)
    >>> model.cliques, model.theta.tolist()
    (((0,), (0, 1, 2)), [0.5, 1.0])
    >>> model.energy(np.array([[1, 1, 1], [1, 1, -1]]))
    array([-1.5,  0.5])
    """

    n_variables: int
    cliques: Sequence[tuple[int, ...]]
    theta: np.ndarray
    domain: AnyDomain = SPIN

    def __post_init__(self) -> None:
        if not isinstance(self.cliques, Scopes) or self.cliques.n_variables != self.n_variables:
            object.__setattr__(self, "cliques", Scopes(self.cliques, self.n_variables))
        self.domain.levels(self.n_variables)  # raises where values have no numbers
        self.domain.cardinalities(self.n_variables)
        what = f"{len(self.cliques)} cliques"
        object.__setattr__(self, "theta", checked_theta(self.theta, len(self.cliques), what))

    @classmethod
    def build(
        cls,
        cliques: Mapping[tuple[int, ...], float],
        n_variables: int,
        domain: AnyDomain = SPIN,
    ) -> Self:
        """Return a model from the weights of its cliques, in any order; the same clique may be named once only."""
        weights = {tuple(sorted(clique)): float(weight) for clique, weight in cliques.items()}
        if len(weights) < len(cliques):
            raise ArgumentError("cliques names the same variables twice", "give each clique once")
        scopes = Scopes.sorted(weights, n_variables)
        return cls(n_variables, scopes, np.array([weights[clique] for clique in scopes]), domain)

    @classmethod
    def zeros(cls, graph: Graph, domain: AnyDomain = SPIN) -> Self:
        """Return the uniform distribution with the single variables, the edges and the triangles of a graph.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.models.HigherOrderModel.zeros(gb.graphs.complete(3)).cliques
        ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
        """
        scopes = Scopes([*Scopes.of_graph(graph), *triangles(graph)], graph.n_nodes)
        return cls(graph.n_nodes, scopes, np.zeros(len(scopes)), domain)

    @classmethod
    def of_order(cls, n_variables: int, order: int, domain: AnyDomain = SPIN) -> Self:
        """Return the uniform distribution with every clique of up to `order` variables.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.models.HigherOrderModel.of_order(30, order=3).theta.size
        4525
        """
        if not 1 <= order <= n_variables:
            raise ArgumentError(
                f"must be from 1 to the number of variables, {n_variables}", argument="order", value=order
            )
        n_cliques = sum(comb(n_variables, k) for k in range(1, order + 1))
        bytes_a_clique = 150.0 + 24.0 * order  # a tuple, its numbers twice as arrays, a few vectors like theta
        require_memory(
            bytes_a_clique * n_cliques,
            f"all {n_cliques:,} cliques of up to {order} of {n_variables} variables",
            "lower `order`, or give the cliques that matter",
        )
        sizes = range(1, order + 1)
        cliques = itertools.chain.from_iterable(itertools.combinations(range(n_variables), k) for k in sizes)
        return cls(n_variables, Scopes(cliques, n_variables), np.zeros(n_cliques), domain)

    def replace(self, theta: np.ndarray) -> Self:
        """Return the same structure with other parameters."""
        new = replace(self, theta=theta)
        new.__dict__["level_table"] = self.level_table
        return new

    # -- layout -------------------------------------------------------------------------------------------------------
    @property
    def scopes(self) -> Scopes:
        """The cliques with their indices."""
        return self.cliques  # type: ignore[return-value]  # __post_init__ made it so

    @property
    def clique_csr(self) -> tuple[np.ndarray, np.ndarray]:
        """``(indptr, members)``: the variables of clique c stand from ``indptr[c]`` to ``indptr[c + 1]``."""
        return self.scopes.csr

    @property
    def membership(self) -> tuple[np.ndarray, np.ndarray]:
        """``(indptr, cliques)``: the numbers of the cliques that hold variable i."""
        return self.scopes.membership

    @property
    def graph(self) -> Graph:
        """Which variables share a clique."""
        return self.scopes.graph

    @property
    def order(self) -> int:
        """Size of the largest clique."""
        return int(self.scopes.sizes.max(initial=0))

    @property
    def penalised(self) -> np.ndarray:
        """True at the cliques of two and more: an L1 penalty leaves biases alone."""
        return self.scopes.sizes > 1

    @cached_property
    def level_table(self) -> np.ndarray:
        """The number that stands for each code of each variable; zeros after the last."""
        return padded_levels(self.domain.levels(self.n_variables))

    @property
    def statistic_range(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest value of each statistic."""
        return product_ranges(self.scopes, self.domain.levels(self.n_variables))

    # -- what learners and expectations ask ---------------------------------------------------------------------------
    statistics_are_products: ClassVar[bool] = True

    @property
    def products(self) -> list[tuple[int, ...]]:
        """Which variables each statistic multiplies."""
        return list(self.cliques)

    def statistics(self, x: np.ndarray) -> np.ndarray:
        """Return the products over the cliques of each state."""
        numbers = np.take_along_axis(self.level_table, self._codes(x).T.astype(np.intp), axis=1).T
        indptr, members = self.clique_csr
        return np.multiply.reduceat(numbers[:, members], indptr[:-1], axis=1)

    def touches(self, variables: np.ndarray) -> np.ndarray:
        """Return which cliques hold any variable of a mask."""
        return self.scopes.touching(variables)

    @property
    def interactions_around(self) -> np.ndarray:
        """Number of cliques of two and more around each variable: there may be many on an edge."""
        indptr, members = self.clique_csr
        sizes = np.diff(indptr)
        return np.bincount(members[np.repeat(sizes > 1, sizes)], minlength=self.n_variables)

    @property
    def edge_strengths(self) -> np.ndarray:
        """Half the ranges of the log-weights of the cliques on each edge."""
        return spread_over_edges(self.graph, self.scopes, self.log_odds() / 2)

    def interactions(self) -> Interactions:
        """Return the weights of cliques of two and more."""
        larger = [c for c, scope in enumerate(self.scopes) if len(scope) > 1]
        return Interactions(tuple(self.scopes[c] for c in larger), self.theta[larger], self._sizes_of_layers, "weight")

    # -- distribution -------------------------------------------------------------------------------------------------
    def _blocks(self, n_rows: int) -> list[slice]:
        return list(row_blocks(n_rows, self.n_variables + self.theta.size, BLOCK_PRODUCTS))

    def energy(self, x: np.ndarray) -> np.ndarray:
        """Return ``E(x) = -sum_c theta_c prod_{i in c} x_i`` of each state."""
        codes, levels = self._codes(x), self.level_table
        parts = map_in_order(
            lambda block: kernels.log_weights(codes[block], levels, self.scopes.runs, *self.clique_csr, self.theta),
            self._blocks(len(codes)),
        )
        return -np.concatenate([np.empty(0), *parts])

    def mean_statistics(self, x: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted means of the products over the cliques.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> model = gb.models.HigherOrderModel.build({(0,): 0, (0, 1): 0}, n_variables=2)
        >>> model.mean_statistics(np.array([[1, 1], [1, -1]]), weights=np.array([3.0, 1.0]))
        array([1. , 0.5])
        """
        return self._mean_products(self._codes(x), self.level_table, weights)

    def present_sums(
        self, x: np.ndarray, present: np.ndarray, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of the products over the states that show them, and the shares of these states."""
        # a missing cell is one more value, zero; the products of ones count the states that have no such
        missing, levels = self.level_table.shape[1], np.pad(self.level_table, ((0, 0), (0, 1)))
        codes = np.where(present, self._codes(x), missing).astype(np.uint8)
        ones = (np.arange(missing + 1) < missing) * np.ones_like(levels)
        return self._mean_products(codes, levels, weights), self._mean_products(codes, ones, weights)

    def _mean_products(self, codes: np.ndarray, levels: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        shares = checked_shares(weights, len(codes))
        return sum_in_order(
            lambda block: kernels.statistics(codes[block], levels, shares[block], self.scopes.runs, *self.clique_csr),
            self._blocks(len(codes)),
            self.theta.size,
        )

    def fields(self, x: np.ndarray) -> np.ndarray:
        """Return what multiplies each value in minus the energy, ``U_i = sum_{c with i} theta_c prod_{c but i} x_j``.

        Given the others, the log-weight of ``x_i = v`` is ``v U_i / T`` up to a constant.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> model = gb.models.HigherOrderModel.build({(0,): 0.5, (0, 1, 2): 2.0}, n_variables=3)
        >>> model.fields(np.array([[1, -1, 1]]))
        array([[-1.5,  2. , -2. ]])
        """
        return self._fields(self._codes(x))

    def _fields(self, codes: np.ndarray) -> np.ndarray:
        return kernels.fields(codes, self.level_table, self.scopes.runs, *self.clique_csr, self.theta)

    def bind(self, rows: WeightedRows) -> Conditionals:
        """Return the conditionals of rows that have been checked."""
        levels = self.domain.levels(self.n_variables)
        return CliqueConditionals(self.scopes, levels, self.value_groups, rows)

    # -- all states at once -------------------------------------------------------------------------------------------
    @property
    def has_fast_transform(self) -> bool:
        """Whether the log-weights of all states are one fast transform of theta: two-valued variables."""
        return self.domain.two_valued

    @cached_property
    def _places(self) -> np.ndarray:
        """The number of the state with ones at the variables of a clique: variable 0 is the most significant bit."""
        indptr, members = self.clique_csr
        bits = np.left_shift(1, self.n_variables - 1 - members)
        return np.add.reduceat(bits, indptr[:-1]) if self.theta.size else np.empty(0, np.int64)

    @cached_property
    def _signs(self) -> np.ndarray:
        """The transform reads a one as -1 but a code of one is spin +1: odd cliques change sign."""
        return np.where(np.diff(self.clique_csr[0]) % 2 == 1, -1.0, 1.0)

    def log_weight_table(self) -> np.ndarray:
        """Return the log-weights of all states by their numbers, in n 2^n additions however many cliques there are.

        With spins they are the Walsh-Hadamard transform of theta (TA22 section 2.2.3), with 0/1 sums over subsets.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.models.HigherOrderModel.build({(0, 1): 0.5}, n_variables=2).log_weight_table()
        array([ 0.5, -0.5, -0.5,  0.5])
        """
        table = aligned_zeros(2**self.n_variables)
        if self.domain == SPIN:
            table[self._places] = self._signs * self.theta
            walsh_hadamard(table)
        else:
            table[self._places] = self.theta
            subset_sums(table)
        return table

    def statistics_from_table(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the expected statistics, given the probabilities of all states by their numbers."""
        table = aligned_zeros(probabilities.size)
        table[:] = probabilities
        if self.domain == SPIN:
            walsh_hadamard(table)
            return self._signs * table[self._places]
        superset_sums(table)
        return table[self._places]

    def factors(self) -> FactorGraph:
        """Return the distribution as a table for each clique; refused where a clique has more than 2^22 states.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.models.HigherOrderModel.build({(0, 1): 0.5}, 2).factors().factors[0].table.tolist()
        [[0.5, -0.5], [-0.5, 0.5]]
        """
        tables = product_tables(self.scopes, self.theta, self.domain.levels(self.n_variables))
        return FactorGraph(self.domain.cardinalities(self.n_variables), tables)

    def statistics_from(self, marginal: Marginal) -> np.ndarray:
        """Return the expected products, given the joint probabilities of any few variables that share a clique.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> model = gb.models.HigherOrderModel.of_order(3, order=3)
        >>> model.statistics_from(lambda nodes: np.full((2,) * len(nodes), 0.5 ** len(nodes))).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        """
        levels = self.domain.levels(self.n_variables)
        products = np.empty(self.theta.size)
        for c, clique in enumerate(self.scopes):
            table = marginal(clique)
            for i in reversed(clique):
                table = table @ levels[i]
            products[c] = table
        return products

    def given(self, nodes: Sequence[int] | np.ndarray, codes: Sequence[int] | np.ndarray) -> Given[Self]:
        """Return the distribution of the other variables given the codes of some (see `Given`).

        What is left of each clique is a clique of the rest, times the product of the given values.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.models.HigherOrderModel.build({(0,): 0.5, (0, 1, 2): 2.0}, n_variables=3)
        >>> rest, constant = model.given([0], [0]).at(model.theta)
        >>> rest.cliques, rest.theta.tolist(), constant
        (((0, 1),), [-2.0], -0.5)
        """
        fixed, held = checked_fixed(self.domain.cardinalities(self.n_variables), nodes, codes)
        family, place = self._family_without(fixed)
        numbers = np.ones(self.n_variables)
        numbers[list(fixed)] = self.level_table[list(fixed), held]
        indptr, members = self.clique_csr
        factors = np.multiply.reduceat(numbers[members], indptr[:-1]) if len(self.scopes) else np.ones(0)
        return Given.of_products(family, place, factors)

    def _make_family_without(self, nodes: tuple[int, ...]) -> tuple[Self, np.ndarray]:
        rest, scopes, place = self.scopes.without(nodes)
        return type(self)(rest.size, scopes, np.zeros(len(scopes)), self.domain.take(rest)), place

    def to_domain(self, domain: Domain | str) -> tuple[Self, float]:
        """Return the same distribution of two-valued variables in another domain, and the constant in the log-weight.

        ``log_weights`` here equals ``log_weights`` of the returned model at the converted states plus the constant. A
        clique of k variables becomes one of each of its subsets, so cliques of more than 22 are refused.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.models.HigherOrderModel.build({(0, 1): 0.5}, n_variables=2)
        >>> other, constant = model.to_domain("binary")
        >>> dict(zip(other.cliques, other.theta.tolist())), constant
        ({(0,): -1.0, (1,): -1.0, (0, 1): 2.0}, 0.5)
        """
        target, scale, shift = change_of_domain(self.domain, domain)
        if target == self.domain:
            return self, 0.0
        weights = expanded_products(self.scopes, self.theta, scale, shift)
        constant = weights.pop((), 0.0)
        return type(self).build(weights, self.n_variables, target), constant
