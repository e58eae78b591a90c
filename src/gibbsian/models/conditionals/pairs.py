"""Conditionals of pairs of two-valued variables: ``d = +-gap (b_u + sum_j w_uj x_j)``, one regression per variable.

The regressors of variable u are the constant and its neighbours, its parameters the bias and the couplings of u. In a
model the coupling of an edge serves two regressions; directed, each has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.backends.numba import local_states, packed
from gibbsian.backends.numba import pairwise as kernels
from gibbsian.backends.parallel import map_in_order, sum_in_order
from gibbsian.graphs import Graph
from gibbsian.models.conditionals.base import (
    STATES_AT_ONCE,
    Array,
    Conditionals,
    Kernel,
    Loss,
    RowConditionals,
    WeightedRows,
)
from gibbsian.resources import row_blocks

# Local states are counted and evaluated about this many at a time, within the second-level cache.
PIECE = 2**15
# A local state is a number of 16 bits while it is counted.
MOST_NEIGHBOURS = 15
# Counting takes about as long as one evaluation over the rows, so each later one must be faster by at least this
# factor. With 8 bytes an entry and one a cell, the table is then never larger than the data.
LEAST_GAIN = 8
# Costs of a sparse model are made and used this many at a time, within the second-level cache.
SPARSE_CELLS = 2**16
# From so many cells on a sample of rows is worth single precision; of fewer the time is not spent on them.
MANY_CELLS = 2**14
# Costs of a sample of rows are made and used this many at a time, for the same reason.
SAMPLED_CELLS = 2**16
# Of so many columns, tables of all states of eight of them stay near the cache and beat products; of so many rows.
TABLED_COLUMNS, WORTH_TABLES = range(16, 129), 1000
# Cells, with lanes that have no column, whose sums by such states are single numbers: not too many for their precision.
TABLED_CELLS = 320_000


class Pairs(NamedTuple):
    """Where the parameters of pairs stand: biases, then couplings; directed ``w_ij`` over all edges, then ``w_ji``.

    Parameters
    ----------
    graph : Graph
        Which pairs interact.
    bias : bool
        Whether there are biases.
    low, gap : float
        The lower of the two numbers that stand for the values, and how far they are apart.
    directed : bool
        Whether each end of an edge has a coupling of its own.
    """

    graph: Graph
    bias: bool
    low: float
    gap: float
    directed: bool = False

    @property
    def n_biases(self) -> int:
        """Number of biases."""
        return self.graph.n_nodes if self.bias else 0

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return self.n_biases + self.graph.n_edges * (1 + self.directed)

    @property
    def owner(self) -> Array:
        """The variable whose regression each directed parameter belongs to."""
        return np.concatenate([np.arange(self.n_biases), self.graph.edges[:, 0], self.graph.edges[:, 1]])

    @property
    def coupling_of(self) -> Array:
        """The coupling that each entry of the graph's CSR has in the regression of its row."""
        indptr, heads, edge_of = self.graph.csr
        if not self.directed:
            return edge_of
        tails = np.repeat(np.arange(self.graph.n_nodes), np.diff(indptr))
        return np.where(tails < heads, edge_of, edge_of + self.graph.n_edges)

    def split(self, theta: Array) -> tuple[Array, Array]:
        """Return the biases, zeros where there are none, and the couplings."""
        biases = theta[: self.n_biases] if self.bias else np.zeros(self.graph.n_nodes)
        return biases, theta[self.n_biases :]

    def join(self, biases: Array, *couplings: Array) -> Array:
        """Return parameters, or a gradient, from those of biases and couplings."""
        return np.concatenate([biases[: self.n_biases], *couplings])

    @property
    def penalised(self) -> Array:
        """True at the couplings."""
        return np.arange(self.n_parameters) >= self.n_biases

    def symmetrised(self, theta: Array) -> Array:
        """Return the parameters of a model from directed ones: the average of the two couplings of each edge.

        Each variable keeps its field at the middle of its two numbers, so that the result is the same in both codings.
        """
        biases, couplings = self.split(theta)
        forward, backward = np.split(couplings, 2)
        average, middle, excess = 0.5 * (forward + backward), self.low + 0.5 * self.gap, np.zeros(self.graph.n_nodes)
        np.add.at(excess, self.graph.edges[:, 0], forward - average)
        np.add.at(excess, self.graph.edges[:, 1], backward - average)
        return self.join(biases + middle * excess, average)

    def matrix(self, couplings: Array) -> Array:
        """Return the matrix whose column u has the couplings in the regression of u."""
        if not self.directed:
            return self.graph.matrix(couplings)
        matrix, (i, j) = np.zeros((self.graph.n_nodes, self.graph.n_nodes)), self.graph.edges.T
        matrix[j, i], matrix[i, j] = np.split(couplings, 2)
        return matrix

    def gather(self, products: Array) -> list[Array]:
        """Return the gradient of the couplings from that of the matrix, transposed."""
        edges = self.graph.edges
        if not self.directed:
            return [kernels.gather_edges(products, edges, True)]
        return [kernels.gather_edges(products, ends, False) for ends in (edges, edges[:, ::-1])]


def bind_pairs(pairs: Pairs, rows: WeightedRows) -> Conditionals:
    """Bind rows by the operator that is fastest: local states where they are few, or whole rows."""
    if not rows.by_row and rows.masked is None and LocalPairs.are_few(pairs.graph, len(rows.codes)):
        return LocalPairs(pairs, rows)  # on a device nothing would be left to share out
    return pairs_by_block(pairs, rows)


def pairs_by_block(pairs: Pairs, rows: WeightedRows) -> Any:
    """Bind rows to what goes through all of them in blocks: products with matrices, or sums along edges."""
    if not rows.by_row and (twins := twin("conditionals")) is not None:
        return twins.of_pairs(pairs, rows)
    return (DensePairs if pairs.graph.is_dense else SparsePairs)(pairs, rows)


class PairConditionals(RowConditionals):
    """What dense and sparse pairs have in common: closed forms for scores and curvature."""

    def __init__(self, pairs: Pairs, rows: WeightedRows):
        self.pairs, self.n_parameters, self.coupling_of = pairs, pairs.n_parameters, pairs.coupling_of
        super().__init__(rows, row_blocks(*rows.codes.shape))

    def numbers(self, codes: Array, dtype: type = np.float64) -> Array:
        """Return the numbers that stand for codes."""
        numbers: Array = np.empty(codes.shape, dtype)
        kernels.fill_numbers(numbers, codes, self.pairs.low, self.pairs.low + self.pairs.gap)
        return numbers

    def costs_by_block(self, theta: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Give blocks of rows with their numbers and costs."""
        prepared = self.prepare(theta)
        for rows in row_blocks(len(self.codes), 1, STATES_AT_ONCE):
            costs, _ = self._masked_costs(prepared, rows, self.arranged(self.codes[rows]))
            yield rows, self.numbers(self.codes[rows]), costs

    def scores(self, theta: Array, loss: Loss) -> Iterator[tuple[slice, Array]]:
        """Yield the gradient of each row's loss."""
        (i, j), gap = self.pairs.graph.edges.T, self.pairs.gap
        for rows, numbers, costs in self.costs_by_block(theta):
            signed = loss.slopes(costs) * np.where(self.codes[rows] > 0, gap, -gap)
            forward, backward = signed[:, i] * numbers[:, j], signed[:, j] * numbers[:, i]
            couplings = [forward, backward] if self.pairs.directed else [forward + backward]
            yield rows, np.hstack([signed[:, : self.pairs.n_biases], *couplings])

    def curvature(self, theta: Array, loss: Loss, max_seconds: float = 60.0) -> Array:
        """Return ``sum_m w_m sum_u phi''(d[m, u]) z z'`` with z the slopes of ``d[m, u]``."""
        total = np.zeros((self.n_parameters, self.n_parameters))
        for rows, numbers, costs in self.costs_by_block(theta):
            bends = loss.second_derivatives(costs) * self.weights[rows, None]
            if self.masked is not None:
                bends[self.masked[rows]] = 0.0
            for places, part in map_in_order(partial(self._of_one, numbers, bends), range(numbers.shape[1])):
                total[np.ix_(places, places)] += part
        return total * self.pairs.gap**2

    def _of_one(self, numbers: Array, bends: Array, node: int) -> tuple[Array, Array]:
        """Where the parameters of a regression stand, and its curvature over the squared gap."""
        indptr, heads, _ = self.pairs.graph.csr
        around = slice(indptr[node], indptr[node + 1])
        regressors = np.hstack([np.ones((len(numbers), int(self.pairs.bias))), numbers[:, heads[around]]])
        own = np.arange(node, node + self.pairs.bias)
        places = np.concatenate([own, self.pairs.n_biases + self.coupling_of[around]])
        return places, (regressors * bends[:, [node]]).T @ regressors

    def slope_sums(self, theta: Array, loss: Loss) -> Array:
        """Return how much each variable's loss weighs, and the sums of all columns under these weights.

        In units of spins, and by the slopes of the loss: what a dense preconditioner is renewed from.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> from gibbsian.objectives import Pseudolikelihood
        >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
        >>> model.conditionals(np.array([[1, 1], [1, 0]])).slope_sums(model.theta, Pseudolikelihood.loss).tolist()
        [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
        """
        prepared, n, half = self.prepare(theta), self.pairs.graph.n_nodes, self.pairs.gap / 2

        def sums(part: tuple[slice, Any]) -> Array:
            rows, arranged = part
            slopes, _ = self._masked_costs(prepared, rows, arranged)
            loss.two(slopes, self.weights[rows])
            products = slopes.T @ self.numbers(self.codes[rows])
            return -2.0 * np.column_stack([slopes.sum(axis=0), products / half]).ravel()

        return sum_in_order(sums, self.parts, n * (n + 1)).reshape(n, n + 1)


class DensePairs(PairConditionals):
    """Two products with the full matrix of couplings."""

    def prepare(self, theta: Array) -> tuple[Array, Array]:
        """Return the biases and the matrix of couplings."""
        biases, couplings = self.pairs.split(theta)
        return biases, self.pairs.matrix(couplings)

    def fill(self, prepared: tuple[Array, Array], codes: Array) -> tuple[Array, Array]:
        """Return the costs and the numbers of rows."""
        biases, matrix = prepared
        numbers = self.numbers(codes)
        costs = numbers @ matrix
        kernels.add_biases_with_signs(costs, biases, codes, self.pairs.gap)
        return costs, numbers

    def pull(self, codes: Array, slopes: Array, numbers: Array) -> Array:
        """Return the gradient of ``sum(slopes * costs)``."""
        biases = kernels.sign_and_sum(slopes, codes, self.pairs.gap)
        return self.pairs.join(biases, *self.pairs.gather(slopes.T @ numbers))

    def in_single_precision(self) -> DensePairs:
        """Return the same of a sample of rows, to an accuracy far below the sample's own, where these are many."""
        if self.codes.size < MANY_CELLS or self.masked is not None:
            return self
        return SampledPairs(self.pairs, WeightedRows(self.codes, self.weights))


class SparsePairs(PairConditionals):
    """Sums along edges, some variables at a time: what one needs of its neighbours are whole rows of columns."""

    def arranged(self, codes: Array) -> Array:
        """Return rows by variable."""
        return kernels.by_variable(codes)

    def prepare(self, theta: Array) -> tuple[Array, Array]:
        """Return the biases and the coupling of each entry of the graph's CSR."""
        biases, couplings = self.pairs.split(theta)
        return biases, couplings[self.coupling_of]

    @property
    def _values(self) -> tuple[float, float, float]:
        """The lower number, the upper one, and how far they are apart."""
        return self.pairs.low, self.pairs.low + self.pairs.gap, self.pairs.gap

    def _fill(self, costs: Array, prepared: tuple[Array, Array], rows: Array, nodes: slice) -> None:
        (biases, weights), (indptr, heads, _) = prepared, self.pairs.graph.csr
        span = nodes.start, nodes.stop
        kernels.fill_sparse_costs(costs, rows, *span, indptr, heads, weights, biases, *self._values)

    def fill(self, prepared: tuple[Array, Array], rows: Array) -> tuple[Array, None]:
        """Return the costs of rows."""
        costs = np.empty(rows.shape)
        self._fill(costs, prepared, rows, slice(0, len(rows)))
        return costs.T, None

    def pull(self, rows: Array, slopes: Array, kept: None) -> Array:
        """Return the gradient of ``sum(slopes * costs)``."""
        gradient = self._zeros()
        self._add(gradient, rows, np.ascontiguousarray(slopes.T), slice(0, len(rows)))
        return self.pairs.join(*gradient)

    def _zeros(self) -> tuple[Array, Array]:
        return np.zeros(self.pairs.graph.n_nodes), np.zeros(self.n_parameters - self.pairs.n_biases)

    def _add(self, gradient: tuple[Array, Array], rows: Array, slopes: Array, nodes: slice) -> None:
        indptr, heads, _ = self.pairs.graph.csr
        span = nodes.start, nodes.stop
        kernels.add_sparse_costs_vjp(rows, slopes, *span, indptr, heads, self.coupling_of, *self._values, *gradient)

    def _of_rows(
        self, prepared: Any, rows: slice, arranged: Array, weights: Array, kernel: Kernel, join: Any
    ) -> tuple[Any, Array]:
        answers, gradient = [], self._zeros()
        n_rows = arranged.shape[1]
        spans = list(row_blocks(len(arranged), n_rows, SPARSE_CELLS, least_rows=1))
        buffer = np.empty((spans[0].stop, n_rows))  # one for all: fresh memory costs as much as the fields
        for nodes in spans:
            costs = buffer[: nodes.stop - nodes.start]
            self._fill(costs, prepared, arranged, nodes)
            if self.masked is not None:
                costs.T[self.masked[rows, nodes]] = np.inf
            answers.append(kernel(costs.T, weights))
            self._add(gradient, arranged, costs, nodes)
        return join(answers), self.pairs.join(*gradient)


class LocalPairs(Conditionals):
    """Sums over local states: what the cost of one variable of a sparse graph depends on.

    A variable with k neighbours meets at most 2^(k+1) local states, its own value and its neighbours'. Rows that agree
    there have the same cost, so their weights are summed once and an evaluation goes through the local states instead
    of the rows: on a square grid 32 for each variable, however many rows there are.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.models.conditionals import WeightedRows
    >>> from gibbsian.models.conditionals.pairs import LocalPairs, Pairs
    >>> rows = WeightedRows.of(np.array([[1, 1], [1, 0]], dtype=np.int8), np.array([3.0, 1.0]))
    >>> local = LocalPairs(Pairs(gb.graphs.complete(2), True, -1.0, 2.0), rows)
    >>> local.weights.tolist()                 # variable 0: --, -+, +-, ++ with its neighbour, then variable 1
    [0.0, 0.0, 0.25, 0.75, 0.0, 0.25, 0.0, 0.75]
    """

    keeps_rows = False

    def __init__(self, pairs: Pairs, rows: WeightedRows):
        self.pairs, self.n_parameters, self.coupling_of = pairs, pairs.n_parameters, pairs.coupling_of
        self.offsets = np.concatenate([[0], np.cumsum(2 ** (pairs.graph.degrees + 1))])
        self.weights = np.zeros(self.offsets[-1])
        for _ in map_in_order(lambda nodes: self._count(rows, nodes), self.pieces()):
            pass

    @staticmethod
    def are_few(graph: Graph, n_rows: int) -> bool:
        """Whether going through local states is much faster than through so many rows."""
        degrees = graph.degrees
        if graph.is_dense or degrees.max(initial=0) > MOST_NEIGHBOURS:
            return False
        return bool((2 ** (degrees + 1)).sum() * LEAST_GAIN <= n_rows * graph.n_nodes)

    def pieces(self) -> Iterator[slice]:
        """Cut the variables into spans of about `PIECE` local states."""
        first = 0
        while first < self.pairs.graph.n_nodes:
            fitting = int(np.searchsorted(self.offsets, self.offsets[first] + PIECE, side="right")) - 1
            last = max(first + 1, fitting)
            yield slice(first, last)
            first = last

    def _count(self, rows: WeightedRows, nodes: slice) -> None:
        """Add the weights of rows to the local states of a span of variables."""
        indptr, heads, _ = self.pairs.graph.csr
        pointers = indptr[nodes.start : nodes.stop + 1]
        own, around = np.arange(nodes.start, nodes.stop), heads[pointers[0] : pointers[-1]]
        columns = np.union1d(own, around)
        places = np.searchsorted(columns, own), np.searchsorted(columns, around)
        offsets = self.offsets[nodes.start : nodes.stop + 1]
        local_states.count(rows.codes, rows.weights, columns, *places, pointers - pointers[0], offsets, self.weights)

    def evaluate(self, theta: Array, loss: Loss) -> tuple[float, Array]:
        """Return the weighted sum of the losses and its gradient."""
        value, arrays = 0.0, (self.pairs.graph.csr[0], self.offsets)
        gradient = np.zeros(self.pairs.graph.n_nodes), np.zeros(self.n_parameters - self.pairs.n_biases)
        biases, couplings = self.pairs.split(theta)
        weights, values = couplings[self.coupling_of], (self.pairs.low, self.pairs.gap)
        for nodes in self.pieces():
            span = nodes.start, nodes.stop
            costs = local_states.costs(*span, *arrays, weights, biases, *values)
            value += loss.two(costs[:, None], self.weights[self.offsets[nodes.start] : self.offsets[nodes.stop]])
            local_states.add_costs_vjp(costs, *span, *arrays, self.coupling_of, *values, *gradient)
        return value, self.pairs.join(*gradient)


class SampledPairs(DensePairs):
    """A sample of rows in single precision: products of matrices, or of bits by tables where columns are few."""

    def evaluate(self, theta: Array, loss: Loss) -> tuple[float, Array]:
        """Return the weighted sum of the losses and its gradient."""
        n, n_rows = self.codes.shape[1], len(self.codes)
        biases, matrix = (part.astype(np.float32) for part in self.prepare(theta))
        by_tables = n in TABLED_COLUMNS and n_rows >= WORTH_TABLES
        sums, sizes = (self._by_tables if by_tables else self._by_products)(biases, matrix, loss)
        parts = sum_in_order(sums, row_blocks(n_rows, *sizes), 1 + n + n * n)
        couplings = self.pairs.gather(parts[1 + n :].reshape(n, n))
        return float(parts[0]), self.pairs.join(parts[1 : 1 + n], *couplings)

    def _by_products(self, biases: Array, matrix: Array, loss: Loss) -> tuple[Callable[[slice], Array], Any]:
        gap = np.float32(self.pairs.gap)

        def sums(rows: slice) -> Array:
            numbers = self.numbers(self.codes[rows], np.float32)
            costs = numbers @ matrix
            kernels.add_biases_with_signs(costs, biases, self.codes[rows], gap)
            value = loss.two(costs, self.weights[rows])
            first = kernels.sign_and_sum(costs, self.codes[rows], gap)
            return np.concatenate([[value], first, (costs.T @ numbers).ravel()])

        return sums, (len(matrix), SAMPLED_CELLS)

    def _by_tables(self, biases: Array, matrix: Array, loss: Loss) -> tuple[Callable[[slice], Array], Any]:
        low, gap, n = self.pairs.low, np.float32(self.pairs.gap), len(matrix)
        tables = packed.tables_of(gap * gap * matrix, gap * (biases + np.float32(low) * matrix.sum(axis=0)))
        sizes = len(tables) * packed.LANES, TABLED_CELLS
        most_rows = next(row_blocks(len(self.codes), *sizes)).stop

        def sums(rows: slice) -> Array:
            words, slopes = packed.pack(self.codes[rows]), packed.kept_lanes("slopes", *tables.shape)
            costs = packed.kept_lanes("costs", most_rows, len(tables), packed.LANES)[: len(words)]
            packed.fill_costs(words, tables, costs)
            value = loss.two(costs.reshape(len(words), -1), self.weights[rows])
            slopes.fill(0.0)
            packed.add_slopes(words, costs, slopes)
            first, second = packed.products(slopes, n)
            return np.concatenate([[value], gap * first, gap * (low * first + gap * second).ravel()])

        return sums, sizes
