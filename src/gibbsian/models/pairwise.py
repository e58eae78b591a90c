"""The pairwise Boltzmann machine (YU20 eq. 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.backends.numba import pairwise as kernels
from gibbsian.backends.parallel import sum_in_order
from gibbsian.domain import BINARY, SPIN, Domain
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import MODELS, ExponentialFamily
from gibbsian.models.conditionals import Conditionals, Pairs, WeightedRows, bind_pairs
from gibbsian.models.factors import Factor, FactorGraph, Marginal
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions
from gibbsian.models.ising import Ising
from gibbsian.models.parameters import change_of_domain, checked_theta
from gibbsian.models.states import checked_fixed, checked_shares, checked_states
from gibbsian.resources import LEAST_ROWS, row_blocks

# Rows of a large sparse model whose products are summed together: no more than a few stay near the cache.
FEW_ROWS = 8


@MODELS.register("pairwise")
@dataclass(frozen=True, eq=False)
class PairwiseModel(ExponentialFamily):
    """``P(x) = exp((sum_i b_i x_i + sum_ij w_ij x_i x_j) / T) / Z`` on a graph.

    Parameters
    ----------
    graph : Graph
        Which pairs interact.
    theta : ndarray
        The biases (unless ``bias=False``), then the couplings in the order of ``graph.edges``.
    domain : Domain
        `SPIN` (-1/+1) or `BINARY` (0/1): the same numbers mean another distribution in the other domain.
    bias : bool
        Whether the model has biases.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(3), biases=[0.1, 0, 0], couplings=[1.0, 0.0, -1.0])
    >>> model.energy(np.array([[1, 1, 1], [1, 1, -1]]))
    array([-0.1, -2.1])
    """

    graph: Graph
    theta: np.ndarray
    domain: Domain = SPIN
    bias: bool = True
    n_hidden: int = 0

    def __post_init__(self) -> None:
        n_edges = self.graph.n_edges
        theta = checked_theta(self.theta, self.n_biases + n_edges, f"{self.n_biases} biases and {n_edges} couplings")
        object.__setattr__(self, "theta", theta)
        if not isinstance(self.domain, Domain):
            raise ArgumentError("must be gibbsian.domain.SPIN or BINARY", argument="domain", value=self.domain)

    @classmethod
    def zeros(cls, graph: Graph, domain: Domain = SPIN, bias: bool = True) -> Self:
        """Return the uniform distribution on a graph.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.PairwiseModel.zeros(gb.graphs.complete(3)).theta.tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        """
        size = graph.n_edges + (graph.n_nodes if bias else 0)
        return cls(graph, np.zeros(size), domain, bias)

    @classmethod
    def build(
        cls,
        graph: Graph,
        biases: Sequence[float] | np.ndarray | None,
        couplings: Sequence[float] | np.ndarray,
        domain: Domain = SPIN,
    ) -> Self:
        """Return a model from its biases (None for none) and its couplings in edge order."""
        parts = ([] if biases is None else [np.asarray(biases, float)]) + [np.asarray(couplings, float)]
        return cls(graph, np.concatenate(parts), domain, bias=biases is not None)

    def in_layers(self) -> Any:
        """Return the same distribution as two dense layers, where every column couples to every hidden unit alone."""
        from gibbsian.models.family import Model
        from gibbsian.models.layers.stack import StackFamily
        from gibbsian.models.layers.units import as_units

        sizes = self.n_variables - self.n_hidden, self.n_hidden
        family = StackFamily(tuple(as_units(self.domain.name, size) for size in sizes))
        if self.n_hidden and self.bias and self.graph == family.joint(np.zeros(family.n_parameters)).graph:
            return Model(family, self.theta)
        return self

    def layered(self) -> Any:
        """Return the same distribution as two dense layers, or refuse."""
        found = self.in_layers()
        if found is not self:
            return found
        raise ArgumentError(
            "learning by layers needs biases, and every column to couple to every hidden unit and to nothing else",
            "set `graph='restricted'`, or learn otherwise" if self.n_hidden else "use `learner='online'`",
        )

    # -- layout -------------------------------------------------------------------------------------------------------
    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.graph.n_nodes

    @property
    def n_biases(self) -> int:
        """Number of bias parameters."""
        return self.graph.n_nodes if self.bias else 0

    @property
    def biases(self) -> np.ndarray:
        """The biases, zeros where the model has none."""
        return self.theta[: self.n_biases] if self.bias else np.zeros(self.n_variables)

    @property
    def couplings(self) -> np.ndarray:
        """The couplings in edge order."""
        return self.theta[self.n_biases :]

    @property
    def penalised(self) -> np.ndarray:
        """True at the couplings: an L1 penalty leaves biases alone."""
        return np.arange(self.theta.size) >= self.n_biases

    @property
    def statistic_range(self) -> tuple[np.ndarray, np.ndarray]:
        """From -1 to 1 for spins, from 0 to 1 in 0/1 coding."""
        return np.full(self.theta.size, float(self.domain.low)), np.ones(self.theta.size)

    @property
    def pairs(self) -> Pairs:
        """Where the parameters stand, for conditionals."""
        return Pairs(self.graph, self.bias, float(self.domain.low), float(self.domain.gap))

    @property
    def is_dense(self) -> bool:
        """Whether full-matrix algebra is the faster way."""
        return self.graph.is_dense

    @cached_property
    def coupling_matrix(self) -> np.ndarray:
        """The symmetric matrix of couplings with a zero diagonal."""
        return self.graph.matrix(self.couplings)

    # -- what learners and expectations ask ---------------------------------------------------------------------------
    is_pairwise: ClassVar[bool] = True
    statistics_are_products: ClassVar[bool] = True

    @property
    def products(self) -> list[tuple[int, ...]]:
        """Which variables each statistic multiplies."""
        singles = [(i,) for i in range(self.n_biases)]
        return [*singles, *map(tuple, self.graph.edges.tolist())]

    def statistics(self, x: np.ndarray) -> np.ndarray:
        """Return the values and the products along the edges of each state."""
        numbers = np.asarray(x, dtype=np.float64)
        i, j = self.graph.edges.T
        products = numbers[:, i] * numbers[:, j]
        return np.hstack([numbers, products]) if self.bias else products

    def touches(self, variables: np.ndarray) -> np.ndarray:
        """Return which parameters are of a variable in the mask or of an edge with one."""
        return self._in_layout(variables, variables[self.graph.edges].any(axis=1))

    def present_sums(
        self, x: np.ndarray, present: np.ndarray, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of the products over the states that show them, and the shares of these states."""
        # with zeros at missing cells products add nothing, and those of the mask of present cells count the others
        return self.mean_statistics(x * present, weights), self.mean_statistics(present, weights)

    @property
    def edge_strengths(self) -> np.ndarray:
        """The sizes of the couplings."""
        return np.abs(self.couplings)

    def interactions(self) -> Interactions:
        """Return the couplings along the edges."""
        return Interactions(
            tuple(zip(*self.graph.edges.T.tolist(), strict=True)), self.couplings, self._sizes_of_layers
        )

    def log_odds(self) -> np.ndarray:
        """Return by how much each parameter alone can change a log-probability, in spins."""
        spin, _ = self.to_domain(SPIN)
        return 2.0 * np.abs(spin.theta)

    # -- distribution -------------------------------------------------------------------------------------------------
    def fields(self, x: np.ndarray) -> np.ndarray:
        """Return the fields ``U_i = b_i + sum_j w_ij x_j`` of each state.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.5, 0.0], [2.0])
        >>> model.fields(np.array([[1, -1]]))
        array([[-1.5,  2. ]])
        """
        return self._fields(np.ascontiguousarray(checked_states(self, x), dtype=np.float64))

    def _fields(self, x: np.ndarray) -> np.ndarray:
        return self._coupling_fields(x) + self.biases

    def _coupling_fields(self, x: np.ndarray) -> np.ndarray:
        if self.is_dense:
            return x @ self.coupling_matrix
        indptr, heads, ids = self.graph.csr
        return kernels.sparse_fields(x, indptr, heads, self.couplings[ids])

    def energy(self, x: np.ndarray) -> np.ndarray:
        """Return ``E(x) = -sum_i b_i x_i - sum_ij w_ij x_i x_j`` of each state."""
        states = checked_states(self, x)
        energies = np.empty(len(states))
        for block in row_blocks(*states.shape):
            energies[block] = self._energy(np.ascontiguousarray(states[block], dtype=np.float64))
        return energies

    def _energy(self, x: np.ndarray) -> np.ndarray:
        # half the field plus half the bias counts each pair once
        return -0.5 * (np.einsum("mi,mi->m", x, self._fields(x)) + x @ self.biases)

    def mean_statistics(self, x: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted means of ``x_i`` and of ``x_i x_j`` over the edges, in the layout of theta.

        Cells of spins may be zero where they are missing: what they enter adds nothing.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
        >>> model.mean_statistics(np.array([[1, 1], [1, -1]]), weights=np.array([3.0, 1.0]))
        array([1. , 0.5, 0.5])
        """
        states = checked_states(self, x, zeros=True)
        shares = checked_shares(weights, len(states))
        if self.is_dense and (twins := twin("moments")) is not None:
            first, second = twins.mean_products(states, shares)
            return self._in_layout(first, kernels.gather_edges(second, self.graph.edges, False))

        def sums(block: slice) -> np.ndarray:
            numbers = np.ascontiguousarray(states[block], dtype=np.float64)
            weighted = numbers * shares[block, None]
            return self._in_layout(weighted.sum(axis=0), self._edge_sums(weighted, numbers))

        least = LEAST_ROWS if self.is_dense else FEW_ROWS
        return sum_in_order(sums, row_blocks(len(states), self.n_variables, least_rows=least), self.theta.size)

    def bind(self, rows: WeightedRows) -> Conditionals:
        """Return the conditionals of rows that have been checked."""
        return bind_pairs(self.pairs, rows)

    def _edge_sums(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """``sum_m left[m, i] right[m, j]`` over the edges."""
        if not self.is_dense:
            return kernels.edge_products(left, right, self.graph.edges)
        return kernels.gather_edges(left.T @ right, self.graph.edges, False)

    def _in_layout(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return np.concatenate([first, second]) if self.bias else second

    # -- other forms of the same distribution -----------------------------------------------------------------------
    def factors(self) -> FactorGraph:
        """Return the distribution as tables of two and of four numbers.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.PairwiseModel.build(gb.graphs.complete(2), None, [0.5]).factors().factors[0].table.tolist()
        [[0.5, -0.5], [-0.5, 0.5]]
        """
        (levels,) = self.domain.levels(1)
        products = np.outer(levels, levels)
        singles = [Factor((i,), b * levels) for i, b in enumerate(self.biases)] if self.bias else []
        edges, couplings = self.graph.edges.tolist(), self.couplings
        pairs = [Factor((i, j), w * products) for (i, j), w in zip(edges, couplings, strict=True)]
        return FactorGraph(self.domain.cardinalities(self.n_variables), (*singles, *pairs))

    def statistics_from(self, marginal: Marginal) -> np.ndarray:
        """Return the means and the edges' products, given the joint probabilities of any few variables.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
        >>> model.statistics_from(lambda nodes: np.full((2,) * len(nodes), 0.5 ** len(nodes)))
        array([0., 0., 0.])
        """
        (levels,) = self.domain.levels(1)
        means = np.array([marginal((i,)) @ levels for i in range(self.n_variables)] if self.bias else [])
        products = [levels @ marginal((i, j)) @ levels for i, j in self.graph.edges.tolist()]
        return np.concatenate([means, np.array(products)])

    def given(self, nodes: Sequence[int] | np.ndarray, codes: Sequence[int] | np.ndarray) -> Given[Self]:
        """Return the distribution of the other variables given the codes of some (see `Given`); it has biases."""
        fixed, held = checked_fixed(self.domain.cardinalities(self.n_variables), nodes, codes)
        family, place = self._family_without(fixed)
        numbers, (i, j) = np.ones(self.n_variables), self.graph.edges.T
        numbers[list(fixed)] = self.domain.low + self.domain.gap * held
        return Given.of_products(family, place, self._in_layout(numbers, numbers[i] * numbers[j]))

    def _make_family_without(self, nodes: tuple[int, ...]) -> tuple[Self, np.ndarray]:
        rest, (i, j) = np.setdiff1d(np.arange(self.n_variables), nodes), self.graph.edges.T
        number = np.full(self.n_variables, -1)
        number[rest] = np.arange(rest.size)
        graph, kept = self.graph.subgraph(rest)
        edges = np.maximum(number[i], number[j])  # a coupling to a given variable acts on the bias of its other end
        edges[kept] = rest.size + np.arange(kept.size)
        return type(self).zeros(graph, self.domain), self._in_layout(number, edges)

    def ising(self, theta: np.ndarray) -> Ising:
        """Return the distribution in spins.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [4.0], gb.domain.BINARY)
        >>> _, fields, couplings, constant = model.ising(model.theta)
        >>> fields.tolist(), couplings.tolist(), constant
        ([1.0, 1.0], [1.0], 1.0)
        """
        biases = theta[: self.n_biases] if self.bias else np.zeros(self.n_variables)
        couplings = theta[self.n_biases :]
        if self.domain == SPIN:
            return Ising(self.graph, biases, couplings, 0.0)
        middle, half = self._middle_and_half
        pull = np.bincount(self.graph.edges.ravel(), np.repeat(couplings, 2), minlength=self.n_variables)
        constant = middle * biases.sum() + middle**2 * couplings.sum()
        fields = half * (biases + middle * pull)
        return Ising(self.graph, fields, half**2 * couplings, float(constant))

    def statistics_of_spins(self, means: np.ndarray, products: np.ndarray) -> np.ndarray:
        """Return the expected statistics, given E[s_i] of all spins and E[s_i s_j] along the edges."""
        (middle, half), (i, j) = self._middle_and_half, self.graph.edges.T
        pairs = middle**2 + middle * half * (means[i] + means[j]) + half**2 * products
        return np.concatenate([middle + half * means, pairs]) if self.bias else pairs

    @property
    def _middle_and_half(self) -> tuple[float, float]:
        return (self.domain.low + self.domain.high) / 2, self.domain.gap / 2

    def to_domain(self, domain: Domain | str) -> tuple[Self, float]:
        """Return the same distribution written in another domain, and the constant in the log-weight.

        ``log_weights`` here equals ``log_weights`` of the returned model at the converted states plus the constant, so
        log Z differs by it. A model without biases gets them, because conversion makes them.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
        >>> other, constant = model.to_domain("binary")
        >>> other.biases.tolist(), other.couplings.tolist(), constant
        ([-1.0, -1.0], [2.0], 0.5)
        """
        target, scale, shift = change_of_domain(self.domain, domain)
        if target == self.domain:
            return self, 0.0
        pull = np.bincount(self.graph.edges.ravel(), np.repeat(self.couplings, 2), minlength=self.n_variables)
        biases = scale * (self.biases + shift * pull)
        constant = shift * self.biases.sum() + shift**2 * self.couplings.sum()
        converted = type(self).build(self.graph, biases, scale**2 * self.couplings, target)
        converted = replace(converted, n_hidden=self.n_hidden)
        return converted, float(constant)


__all__ = ["BINARY", "SPIN", "PairwiseModel"]
