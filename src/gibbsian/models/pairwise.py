"""The pairwise Boltzmann machine (YU20 eq. 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.backends.flip_layout import FlipLayout
from gibbsian.backends.numba import local_states as local_kernels
from gibbsian.backends.numba import packed
from gibbsian.backends.numba import pairwise as kernels
from gibbsian.backends.parallel import sum_in_order
from gibbsian.blocks import LEAST_ROWS, row_blocks
from gibbsian.domain import BINARY, SPIN, Domain
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import MODELS, ExponentialFamily
from gibbsian.models.factors import Factor, FactorGraph, Marginal
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions
from gibbsian.models.ising import Ising
from gibbsian.models.local_states import LocalStates
from gibbsian.models.parameters import change_of_domain, checked_theta
from gibbsian.models.regressions import Regressions
from gibbsian.models.states import checked_fixed, checked_shares, checked_slopes, checked_states

if TYPE_CHECKING:
    from gibbsian.models.restricted import RestrictedModel

FlipLoss = Callable[[np.ndarray, np.ndarray], float]
"""Returns ``sum_m shares[m] sum_i phi(costs[m, i])`` and overwrites the costs with their derivatives."""

# Above this share of all pairs a BLAS product with the full matrix beats a walk over the edges.
DENSE_ABOVE = 0.1
# Up to this size the full matrix always fits the cache, whatever the graph.
ALWAYS_DENSE_UP_TO = 64
# Rows of a large sparse model whose products are summed together: no more than a few stay near the cache.
FEW_ROWS = 8
# Flip costs of a sparse model are made and used this many at a time, within the second-level cache.
SPARSE_CELLS = 2**16
# Costs of a sample of states are made and used this many at a time, for the same reason.
SAMPLED_CELLS = 2**16
# Of so many columns, tables of all states of eight of them stay near the cache and beat products; of so many rows.
TABLED_COLUMNS, WORTH_TABLES = range(16, 129), 1000
# Cells, with lanes that have no column, whose sums by such states are single numbers: not too many for their precision.
TABLED_CELLS = 320_000


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

    def in_layers(self) -> Self | RestrictedModel:
        """Return the same distribution as two dense layers, where every column couples to every hidden unit alone."""
        from gibbsian.models.layers import as_layer
        from gibbsian.models.restricted import RestrictedModel

        n_visible = self.n_variables - self.n_hidden
        layers = as_layer(self.domain.name, n_visible), as_layer(self.domain.name, self.n_hidden)
        if self.n_hidden and self.bias and self.graph == RestrictedModel.build(*layers).joint().graph:
            return RestrictedModel(*layers, self.theta)
        return self

    def layered(self) -> RestrictedModel:
        """Return the same distribution as two dense layers, or refuse."""
        found: Any = self.in_layers()
        if found is not self:
            return found
        raise ArgumentError(
            "learning by layers needs biases, and every column to couple to every hidden unit and to nothing else",
            "set `graph='restricted'`, or learn otherwise" if self.n_hidden else "use `learner='online'`",
        )

    def from_layers(self, model: RestrictedModel) -> Self:
        """Return the model with the parameters of such layers."""
        return self.replace(model.theta)

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
    def is_dense(self) -> bool:
        """Whether full-matrix algebra is the faster way."""
        return self.n_variables <= ALWAYS_DENSE_UP_TO or self.graph.density > DENSE_ABOVE

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

    def flip_scores(self, x: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Return the gradient of ``sum_i slopes[m, i] flip_costs[m, i]`` of each state."""
        return Regressions(self).scores(x, slopes)

    def flip_curvature(self, x: np.ndarray, bends: np.ndarray) -> np.ndarray:
        """Return ``sum_m sum_i bends[m, i] z z'`` with z the slopes of ``flip_costs[m, i]``."""
        return Regressions(self).curvature(x, bends)

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

    def flip_costs(self, x: np.ndarray) -> np.ndarray:
        """Return the log-odds ``log P(x) - log P(x with variable i flipped)``; ``2 x_i U_i / T`` for spins."""
        return self._flip_costs(np.ascontiguousarray(checked_states(self, x), dtype=np.float64))

    def _flip_costs(self, x: np.ndarray) -> np.ndarray:
        costs = self._coupling_fields(x)
        kernels.add_biases_with_signs(costs, self.biases, x, self.domain.gap)
        return costs

    def flip_costs_vjp(self, x: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the gradient of ``sum(c * flip_costs(x))`` with respect to theta. Overwrites nothing."""
        states = np.ascontiguousarray(checked_states(self, x), dtype=np.float64)
        slopes = checked_slopes(c, len(states), self.n_variables)
        return self._overwriting_vjp(states, np.array(slopes, order="C"))

    def _overwriting_vjp(self, x: np.ndarray, c: np.ndarray) -> np.ndarray:
        sums = kernels.sign_and_sum(c, x, self.domain.gap)
        return self._in_layout(sums, self._edge_sums(c, x, both_ways=True))

    def flip_loss(self, x: np.ndarray, shares: np.ndarray, kernel: FlipLoss) -> tuple[float, np.ndarray]:
        """Return a loss of the flip costs, ``sum_m shares[m] sum_i phi(d[m, i])``, with its gradient.

        The same as `flip_costs`, `kernel` and `flip_costs_vjp` in turn, without copies; on a sparse graph the costs
        of a few variables at a time. `kernel` returns the loss and overwrites the costs with their derivatives.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> from gibbsian.backends.numba.flip_losses import logistic
        >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
        >>> value, gradient = model.flip_loss(np.array([[1, 1], [1, -1]]), np.array([0.5, 0.5]), logistic)
        >>> round(value, 6), gradient.tolist()
        (1.386294, [-1.0, 0.0, 0.0])
        """
        states = checked_states(self, x)
        if not self.is_dense:
            return self._sparse_flip_loss(states, shares, kernel)
        numbers = np.ascontiguousarray(states, dtype=np.float64)
        costs = self._flip_costs(numbers)
        value = kernel(costs, shares)
        return value, self._overwriting_vjp(numbers, costs)

    def sampled_flip_loss(self, x: np.ndarray, shares: np.ndarray, kernel: FlipLoss) -> tuple[float, np.ndarray]:
        """Return what `flip_loss` returns of a sample of states, in single precision: its errors are far smaller.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> from gibbsian.backends.numba.flip_losses import logistic
        >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
        >>> value, gradient = model.sampled_flip_loss(np.array([[1, 1], [1, -1]]), np.array([0.5, 0.5]), logistic)
        >>> round(value, 6), gradient.tolist()
        (1.386294, [-1.0, 0.0, 0.0])
        """
        # not checked again: rows of a data set were when they were read, and nothing is indexed by them
        states, n, low, gap = np.asarray(x), self.n_variables, self.domain.low, np.float32(self.domain.gap)
        biases = self.biases.astype(np.float32)
        matrix = self.coupling_matrix.astype(np.float32)
        in_tables = n in TABLED_COLUMNS and len(states) >= WORTH_TABLES and states.dtype == np.int8
        if in_tables:
            tables = packed.tables_of(gap * gap * matrix, gap * (biases + low * matrix.sum(axis=0)))

        def sums(block: slice) -> np.ndarray:
            numbers = states[block].astype(np.float32)
            costs = numbers @ matrix
            kernels.add_biases_with_signs(costs, biases, numbers, gap)
            value = kernel(costs, shares[block])
            first = kernels.sign_and_sum(costs, numbers, gap)
            return np.concatenate([[value], first, (costs.T @ numbers).ravel()])

        def sums_by_tables(block: slice) -> np.ndarray:
            words, slopes = packed.pack(states[block]), packed.kept_lanes("slopes", *tables.shape)
            costs = packed.kept_lanes("costs", blocks[0].stop, len(tables), packed.LANES)[: len(words)]
            packed.fill_costs(words, tables, costs)
            value = kernel(costs.reshape(len(words), -1), shares[block])
            slopes.fill(0.0)
            packed.add_slopes(words, costs, slopes)
            first, second = packed.products(slopes, n)
            return np.concatenate([[value], gap * first, gap * (low * first + gap * second).ravel()])

        sizes = (len(tables) * packed.LANES, TABLED_CELLS) if in_tables else (n, SAMPLED_CELLS)
        blocks = list(row_blocks(len(states), *sizes))
        parts = sum_in_order(sums_by_tables if in_tables else sums, blocks, 1 + n + n * n)
        second = kernels.gather_edges(parts[1 + n :].reshape(n, n), self.graph.edges, both_ways=True)
        return float(parts[0]), self._in_layout(parts[1 : 1 + n], second)

    def in_flip_order(self, x: np.ndarray) -> np.ndarray:
        """Return states in the order in memory in which `flip_loss` reads them: by variable on a sparse graph.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> gb.PairwiseModel.zeros(gb.graphs.grid(30, 30)).in_flip_order(np.ones((3, 900), np.int8)).strides
        (1, 3)
        """
        return x if self.is_dense else kernels.by_variable(checked_states(self, x)).T

    def _sparse_flip_loss(self, x: np.ndarray, shares: np.ndarray, kernel: FlipLoss) -> tuple[float, np.ndarray]:
        rows = x.T if x.flags.f_contiguous else kernels.by_variable(x)
        indptr, heads, ids = self.graph.csr
        weights, biases, gap = self.couplings[ids], self.biases, self.domain.gap
        values = (float(self.domain.low), float(self.domain.high))
        bias_slopes, coupling_slopes = np.zeros(self.n_variables), np.zeros(self.graph.n_edges)
        value = 0.0
        spans = list(row_blocks(self.n_variables, len(x), SPARSE_CELLS, least_rows=1))
        buffer = np.empty((spans[0].stop, len(x)))  # one for all: fresh memory costs as much as the fields
        for nodes in spans:
            span, costs = (nodes.start, nodes.stop), buffer[: nodes.stop - nodes.start]
            kernels.fill_sparse_flip_costs(costs, rows, *span, indptr, heads, weights, biases, *values, gap)
            value += kernel(costs.T, shares)
            kernels.add_sparse_flip_costs_vjp(
                rows, costs, *span, indptr, heads, ids, *values, gap, bias_slopes, coupling_slopes
            )
        return value, self._in_layout(bias_slopes, coupling_slopes)

    def flip_layout(self, x: np.ndarray) -> FlipLayout:
        """Return flip costs as a product with the matrix of couplings."""
        states, gap, sizes = checked_states(self, x), float(self.domain.gap), np.full(self.n_variables, 2)
        places = (np.arange(self.n_biases), self.graph.edges[:, 0], self.graph.edges[:, 1])
        return FlipLayout(states, 2, False, sizes, gap, *places, True, not self.is_dense)

    def local_states(self, n_states: int) -> LocalStates | None:
        """Return an empty table of local states, or None where `n_states` states are too few to gain by it.

        Examples
        --------
        >>> import gibbsian as gb
        >>> grid = gb.PairwiseModel.zeros(gb.graphs.grid(4, 4))
        >>> grid.local_states(10) is None, grid.local_states(2000).shares.size
        (True, 288)
        """
        return LocalStates.if_worthwhile(self.graph, n_states)

    def local_flip_loss(self, local: LocalStates, kernel: FlipLoss) -> tuple[float, np.ndarray]:
        """Return what `flip_loss` returns for the states that were counted in `local`.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> from gibbsian.backends.numba.flip_losses import logistic
        >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.5, 0.0], [0.2])
        >>> x, shares = np.array([[1, 1], [1, -1]], dtype=np.int8), np.array([0.75, 0.25])
        >>> local = gb.models.LocalStates(model.graph)
        >>> local.count(x, shares, slice(0, 2))
        >>> bool(np.isclose(model.local_flip_loss(local, logistic)[0], model.flip_loss(x, shares, logistic)[0]))
        True
        """
        indptr, _, ids = self.graph.csr
        offsets, weights, biases = local.offsets, self.couplings[ids], self.biases
        values = (float(self.domain.low), float(self.domain.gap), self.domain.gap)
        bias_slopes, coupling_slopes = np.zeros(self.n_variables), np.zeros(self.graph.n_edges)
        value = 0.0
        for piece in local.pieces():
            span = (piece.start, piece.stop)
            costs = local_kernels.flip_costs(*span, indptr, offsets, weights, biases, *values)
            value += kernel(costs[:, None], local.shares[offsets[piece.start] : offsets[piece.stop]])
            local_kernels.add_flip_costs_vjp(costs, *span, indptr, offsets, ids, *values, bias_slopes, coupling_slopes)
        return value, self._in_layout(bias_slopes, coupling_slopes)

    def _edge_sums(self, left: np.ndarray, right: np.ndarray, both_ways: bool = False) -> np.ndarray:
        """``sum_m left[m, i] right[m, j]`` over the edges, plus the same with i and j exchanged if `both_ways`."""
        if not self.is_dense:
            sums = kernels.edge_products(left, right, self.graph.edges)
            return sums + kernels.edge_products(right, left, self.graph.edges) if both_ways else sums
        return kernels.gather_edges(left.T @ right, self.graph.edges, both_ways)

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
