"""Conditionals of pairs of two-valued variables: ``d = +-gap (b_u + sum_j w_uj x_j)``, one regression per variable.

The regressors of variable u are the constant and its neighbours; its parameters are the bias and the couplings of u. In
a model the coupling of an edge is shared by two regressions. *Directed* parameters have one coupling for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, Slice, States
from gibbsian.backends.device import twin
from gibbsian.backends.numba import local_states, packed
from gibbsian.backends.numba import pairwise as kernels
from gibbsian.backends.parallel import map_in_order, sum_in_order
from gibbsian.graphs import Graph
from gibbsian.models.conditionals.base import Conditionals, Kernel, Loss, Part, Result, RowConditionals, WeightedRows
from gibbsian.resources import row_blocks

# Local states that are counted and evaluated together, within the second-level cache.
PIECE = 2**15
# Local states are numbers of 16 bits while they are counted.
MOST_NEIGHBOURS = 15
# Counting takes about as long as one evaluation over the rows, so each later one must be faster by at least this
# factor. With 8 bytes an entry and one a cell, the table is then never larger than the data.
LEAST_GAIN = 8
# Costs of a sparse model that are computed and used together, within the second-level cache.
SPARSE_CELLS = 2**16
# Cells from which a sample of rows is evaluated in single precision; fewer take little time anyway.
MANY_CELLS = 2**14
# Costs of a sample of rows that are computed and used together, within the second-level cache.
SAMPLED_CELLS = 2**16
# Numbers of columns, and minimum number of rows, for which tables of all states of eight columns beat matrix products.
TABLED_COLUMNS, WORTH_TABLES = range(16, 129), 1000
# Cells, padding included, whose sums by these tables are in single precision: few enough for their accuracy.
TABLED_CELLS = 320_000

Parameters = tuple[Floats, Floats]
"""Biases, and couplings: as a matrix, or one for each entry of the graph's CSR."""
_BlockSums = tuple[Callable[[Slice], Floats], tuple[int, int]]
"""The loss and its gradient for a block of rows, and the sizes that `row_blocks` cuts by."""
_Singles = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
Saved = TypeVar("Saved")


class Pairs(NamedTuple):
    """The layout of the parameters of pairs: biases, then couplings; directed, all ``w_ij``, then all ``w_ji``.

    Parameters
    ----------
    graph : Graph
        The pairs that interact.
    bias : bool
        Whether there are biases.
    low, gap : float
        The score of code 0, and the difference to the score of code 1.
    directed : bool
        Whether the two ends of an edge have separate couplings.
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
    def owner(self) -> Integers:
        """The variable to whose regression each directed parameter belongs."""
        return np.concatenate([np.arange(self.n_biases), self.graph.edges[:, 0], self.graph.edges[:, 1]])

    @property
    def coupling_of(self) -> Integers:
        """Index of the coupling of each entry of the graph's CSR, in the regression of its row."""
        indptr, neighbours, edge_of = self.graph.csr
        if not self.directed:
            return np.asarray(edge_of)
        tails = np.repeat(np.arange(self.graph.n_nodes), np.diff(indptr))
        return np.where(tails < neighbours, edge_of, edge_of + self.graph.n_edges)

    def split(self, theta: Floats) -> Parameters:
        """Return the biases (zeros if the model has none) and the couplings."""
        biases = theta[: self.n_biases] if self.bias else np.zeros(self.graph.n_nodes)
        return biases, theta[self.n_biases :]

    def join(self, biases: Floats, *couplings: Floats) -> Floats:
        """Return parameters, or a gradient, from the parts of biases and couplings."""
        return np.concatenate([biases[: self.n_biases], *couplings])

    @property
    def penalised(self) -> Mask:
        """Mask of the couplings."""
        return np.arange(self.n_parameters) >= self.n_biases

    def symmetrised(self, theta: Floats) -> Floats:
        """Return the parameters of a model from directed ones: the average of the two couplings of each edge.

        Each variable keeps its field where its neighbours are midway between their scores, so that the result is the
        same in both codings.
        """
        biases, couplings = self.split(theta)
        forward, backward = np.split(couplings, 2)
        average, middle, excess = 0.5 * (forward + backward), self.low + 0.5 * self.gap, np.zeros(self.graph.n_nodes)
        np.add.at(excess, self.graph.edges[:, 0], forward - average)
        np.add.at(excess, self.graph.edges[:, 1], backward - average)
        return self.join(biases + middle * excess, average)

    def coupling_fields(self, theta: Floats) -> Callable[[Floats], Floats]:
        """Return the function that maps rows of scores (float64) to ``sum_j w_ij x_j``."""
        couplings = theta[self.n_biases :]
        if self.graph.is_dense:
            matrix = self.graph.matrix(couplings)
            return lambda scores: scores @ matrix
        indptr, neighbours, ids = self.graph.csr
        weights = couplings[ids]
        return lambda scores: kernels.sparse_fields(scores, indptr, neighbours, weights)

    def statistics_of_spins(self, means: Floats, products: Floats) -> Floats:
        """Return the expected statistics, given E[s_i] of all spins and E[s_i s_j] along the edges."""
        middle, half, (i, j) = self.low + self.gap / 2, self.gap / 2, self.graph.edges.T
        pairs = middle**2 + middle * half * (means[i] + means[j]) + half**2 * products
        return self.join(middle + half * means, pairs)

    def matrix(self, couplings: Floats) -> Floats:
        """Return the matrix whose column u holds the couplings of the regression of u."""
        if not self.directed:
            return self.graph.matrix(couplings)
        matrix, (i, j) = np.zeros((self.graph.n_nodes, self.graph.n_nodes)), self.graph.edges.T
        matrix[j, i], matrix[i, j] = np.split(couplings, 2)
        return matrix

    def gather(self, products: Floats) -> list[Floats]:
        """Return the gradient of the couplings from that of the transposed matrix."""
        edges = self.graph.edges
        if not self.directed:
            return [kernels.gather_edges(products, edges, True)]
        return [kernels.gather_edges(products, ends, False) for ends in (edges, edges[:, ::-1])]


def bind_pairs(pairs: Pairs, rows: WeightedRows) -> Conditionals:
    """Bind rows to the fastest operator: on local states if these are few, else on all rows."""
    if not rows.by_row and rows.masked is None and LocalPairs.are_few(pairs.graph, len(rows.codes)):
        return LocalPairs(pairs, rows)  # on the CPU even if there is a device: too little work for it
    return pairs_by_block(pairs, rows)


def pairs_by_block(pairs: Pairs, rows: WeightedRows) -> DensePairs | SparsePairs:
    """Bind rows to an operator on blocks of rows: products with matrices, or sums along edges."""
    if not rows.by_row and (twins := twin("conditionals")) is not None:
        bound: DensePairs = twins.of_pairs(pairs, rows)  # or its twin on the device
        return bound
    return (DensePairs if pairs.graph.is_dense else SparsePairs)(pairs, rows)


class PairConditionals(RowConditionals[Parameters, Saved]):
    """Conditionals of pairs, with closed forms for scores and curvature."""

    def __init__(self, pairs: Pairs, rows: WeightedRows):
        self.pairs, self.n_parameters, self.coupling_of = pairs, pairs.n_parameters, pairs.coupling_of
        super().__init__(rows, row_blocks(*rows.codes.shape))

    def scores_of(self, codes: States, dtype: type = np.float64) -> Floats:
        """Return the scores of codes."""
        x: Floats = np.empty(codes.shape, dtype)
        kernels.fill_numbers(x, codes, self.pairs.low, self.pairs.low + self.pairs.gap)
        return x

    def costs_by_block(self, theta: Floats) -> Iterator[tuple[Slice, Floats, Floats]]:
        """Yield blocks of rows with the scores of their codes, and their costs."""
        prepared = self.prepare(theta)
        for rows in self._small_blocks():
            costs, _ = self._masked_costs(prepared, self._part(rows))
            yield rows, self.scores_of(self.codes[rows]), costs

    def scores(self, theta: Floats, loss: Loss) -> Iterator[tuple[Slice, Floats]]:
        """Yield blocks of rows with the gradient of the loss of each row."""
        (i, j), gap = self.pairs.graph.edges.T, self.pairs.gap
        for rows, x, costs in self.costs_by_block(theta):
            signed = loss.derivatives(costs) * np.where(self.codes[rows] > 0, gap, -gap)
            forward, backward = signed[:, i] * x[:, j], signed[:, j] * x[:, i]
            couplings = [forward, backward] if self.pairs.directed else [forward + backward]
            yield rows, np.hstack([signed[:, : self.pairs.n_biases], *couplings])

    def curvature(self, theta: Floats, loss: Loss, max_seconds: float = 60.0) -> Floats:
        """Return the Hessian ``sum_m w_m sum_u phi''(d[m, u]) z z'`` with z the gradient of ``d[m, u]``."""
        total = np.zeros((self.n_parameters, self.n_parameters))
        for rows, x, costs in self.costs_by_block(theta):
            curvatures = loss.second_derivatives(costs) * self.weights[rows, None]
            if self.masked is not None:
                curvatures[self.masked[rows]] = 0.0
            for indices, part in map_in_order(partial(self._regression_curvature, x, curvatures), range(x.shape[1])):
                total[np.ix_(indices, indices)] += part
        return total * self.pairs.gap**2

    def _regression_curvature(self, x: Floats, curvatures: Floats, node: int) -> tuple[Integers, Floats]:
        """Return the indices of the parameters of one regression, and its Hessian over the squared gap."""
        indptr, neighbours, _ = self.pairs.graph.csr
        entries = slice(indptr[node], indptr[node + 1])
        regressors = np.hstack([np.ones((len(x), int(self.pairs.bias))), x[:, neighbours[entries]]])
        bias = np.arange(node, node + self.pairs.bias)
        indices = np.concatenate([bias, self.pairs.n_biases + self.coupling_of[entries]])
        return indices, (regressors * curvatures[:, [node]]).T @ regressors

    def derivative_sums(self, theta: Floats, loss: Loss) -> Floats:
        """Return the sums over rows that update a dense preconditioner, in units of spins.

        Row u sums the derivatives of the loss of variable u, then these times each column.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> from gibbsian.learning.objectives import Pseudolikelihood
        >>> from gibbsian.models.conditionals import WeightedRows
        >>> rows = WeightedRows.of(np.array([[1, 1], [1, 0]]))
        >>> bound = gb.PairwiseFamily(gb.graphs.complete(2)).conditionals(rows)
        >>> bound.derivative_sums(np.zeros(3), Pseudolikelihood.loss).tolist()
        [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
        """
        prepared, n, half = self.prepare(theta), self.pairs.graph.n_nodes, self.pairs.gap / 2

        def sums(part: Part) -> Floats:
            derivatives, _ = self._masked_costs(prepared, part)
            loss.two(derivatives, self.weights[part[0]])
            products = derivatives.T @ self.scores_of(self.codes[part[0]])
            return -2.0 * np.column_stack([derivatives.sum(axis=0), products / half]).ravel()

        return sum_in_order(sums, self.parts, n * (n + 1)).reshape(n, n + 1)


class DensePairs(PairConditionals[Floats]):
    """Conditionals of pairs by two products with the full matrix of couplings."""

    def prepare(self, theta: Floats) -> Parameters:
        """Return the biases and the matrix of couplings."""
        biases, couplings = self.pairs.split(theta)
        return biases, self.pairs.matrix(couplings)

    def forward(self, prepared: Parameters, rows: States) -> tuple[Floats, Floats]:
        """Return the costs and the scores of rows."""
        biases, matrix = prepared
        x = self.scores_of(rows)
        costs = x @ matrix
        kernels.add_biases_with_signs(costs, biases, rows, self.pairs.gap)
        return costs, x

    def backward(self, rows: States, derivatives: Floats, saved: Floats) -> Floats:
        """Return the gradient of ``sum(derivatives * costs)``, given the scores of rows."""
        biases = kernels.sign_and_sum(derivatives, rows, self.pairs.gap)
        return self.pairs.join(biases, *self.pairs.gather(derivatives.T @ saved))

    def in_single_precision(self) -> DensePairs:
        """Return an operator in single precision, accurate enough for a sample of rows; itself if rows are few."""
        if self.codes.size < MANY_CELLS or self.masked is not None:
            return self
        return SampledPairs(self.pairs, WeightedRows(self.codes, self.weights))


class SparsePairs(PairConditionals[None]):
    """Conditionals of pairs by sums along edges, some variables at a time, over columns of rows stored by variable."""

    def arrange(self, codes: States) -> States:
        """Return rows stored by variable."""
        return np.asarray(kernels.by_variable(codes))

    def prepare(self, theta: Floats) -> Parameters:
        """Return the biases and the coupling of each entry of the graph's CSR."""
        biases, couplings = self.pairs.split(theta)
        return biases, couplings[self.coupling_of]

    @property
    def _values(self) -> tuple[float, float, float]:
        """The lower score, the upper one, and their difference."""
        return self.pairs.low, self.pairs.low + self.pairs.gap, self.pairs.gap

    def _fill(self, costs: Floats, prepared: Parameters, rows: States, nodes: Slice) -> None:
        (biases, weights), (indptr, neighbours, _) = prepared, self.pairs.graph.csr
        span = nodes.start, nodes.stop
        kernels.fill_sparse_costs(costs, rows, *span, indptr, neighbours, weights, biases, *self._values)

    def forward(self, prepared: Parameters, rows: States) -> tuple[Floats, None]:
        """Return the costs of rows."""
        costs = np.empty(rows.shape)
        self._fill(costs, prepared, rows, slice(0, len(rows)))
        return costs.T, None

    def backward(self, rows: States, derivatives: Floats, saved: None) -> Floats:
        """Return the gradient of ``sum(derivatives * costs)``."""
        gradient = self._zeros()
        self._add(gradient, rows, np.ascontiguousarray(derivatives.T), slice(0, len(rows)))
        return self.pairs.join(*gradient)

    def _zeros(self) -> Parameters:
        return np.zeros(self.pairs.graph.n_nodes), np.zeros(self.n_parameters - self.pairs.n_biases)

    def _add(self, gradient: Parameters, rows: States, derivatives: Floats, nodes: Slice) -> None:
        indptr, neighbours, _ = self.pairs.graph.csr
        span = nodes.start, nodes.stop
        kernels.add_sparse_costs_vjp(
            rows, derivatives, *span, indptr, neighbours, self.coupling_of, *self._values, *gradient
        )

    def _of_block(
        self, prepared: Parameters, part: Part, weights: Floats, kernel: Kernel[Result]
    ) -> tuple[list[Result], Floats]:
        (rows, arranged), results, gradient = part, [], self._zeros()
        n_rows = arranged.shape[1]
        spans = list(row_blocks(len(arranged), n_rows, SPARSE_CELLS, least_rows=1))
        buffer = np.empty((spans[0].stop, n_rows))  # one for all: fresh memory costs as much as the fields
        for nodes in spans:
            costs = buffer[: nodes.stop - nodes.start]
            self._fill(costs, prepared, arranged, nodes)
            if self.masked is not None:
                costs.T[self.masked[rows, nodes]] = np.inf
            results.append(kernel(costs.T, weights))
            self._add(gradient, arranged, costs, nodes)
        return results, self.pairs.join(*gradient)


class LocalPairs(Conditionals):
    """Conditionals of a sparse graph by sums over local states: the values of a variable and its neighbours.

    The cost of a variable with k neighbours depends on 2^(k+1) local states. The weights of rows with the same local
    state are added up once. An evaluation is then a sum over local states: on a square grid 32 for each variable,
    however many rows there are.

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
        """Whether local states are so few that sums over them are much faster than over rows."""
        degrees = graph.degrees
        if graph.is_complete or degrees.max(initial=0) > MOST_NEIGHBOURS:
            return False
        return bool((2 ** (degrees + 1)).sum() * LEAST_GAIN <= n_rows * graph.n_nodes)

    def pieces(self) -> Iterator[Slice]:
        """Yield spans of variables with about `PIECE` local states."""
        first = 0
        while first < self.pairs.graph.n_nodes:
            fitting = int(np.searchsorted(self.offsets, self.offsets[first] + PIECE, side="right")) - 1
            last = max(first + 1, fitting)
            yield slice(first, last)
            first = last

    def _count(self, rows: WeightedRows, nodes: Slice) -> None:
        """Add the weights of rows to the local states of a span of variables."""
        indptr, neighbours, _ = self.pairs.graph.csr
        pointers = indptr[nodes.start : nodes.stop + 1]
        span, neighbours = np.arange(nodes.start, nodes.stop), neighbours[pointers[0] : pointers[-1]]
        columns = np.union1d(span, neighbours)
        positions = np.searchsorted(columns, span), np.searchsorted(columns, neighbours)
        offsets = self.offsets[nodes.start : nodes.stop + 1]
        local_states.count(rows.codes, rows.weights, columns, *positions, pointers - pointers[0], offsets, self.weights)

    def evaluate(self, theta: Floats, loss: Loss) -> tuple[float, Floats]:
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
    """Conditionals of a sample of rows in single precision: by matrix products, or by tables if columns are few."""

    def evaluate(self, theta: Floats, loss: Loss) -> tuple[float, Floats]:
        """Return the weighted sum of the losses and its gradient."""
        n, n_rows = self.codes.shape[1], len(self.codes)
        biases, matrix = (part.astype(np.float32) for part in self.prepare(theta))
        by_tables = n in TABLED_COLUMNS and n_rows >= WORTH_TABLES
        sums, (width, cells) = (self._by_tables if by_tables else self._by_products)(biases, matrix, loss)
        parts = sum_in_order(sums, row_blocks(n_rows, width, cells), 1 + n + n * n)
        couplings = self.pairs.gather(parts[1 + n :].reshape(n, n))
        return float(parts[0]), self.pairs.join(parts[1 : 1 + n], *couplings)

    def _by_products(self, biases: _Singles, matrix: _Singles, loss: Loss) -> _BlockSums:
        gap = np.float32(self.pairs.gap)

        def sums(rows: Slice) -> Floats:
            x = self.scores_of(self.codes[rows], np.float32)
            costs = x @ matrix
            kernels.add_biases_with_signs(costs, biases, self.codes[rows], gap)
            value = loss.two(costs, self.weights[rows])
            first = kernels.sign_and_sum(costs, self.codes[rows], gap)
            return np.concatenate([[value], first, (costs.T @ x).ravel()])

        return sums, (len(matrix), SAMPLED_CELLS)

    def _by_tables(self, biases: _Singles, matrix: _Singles, loss: Loss) -> _BlockSums:
        low, gap, n = self.pairs.low, np.float32(self.pairs.gap), len(matrix)
        tables = packed.tables_of(gap * gap * matrix, gap * (biases + np.float32(low) * matrix.sum(axis=0)))
        sizes = len(tables) * packed.LANES, TABLED_CELLS
        most_rows = next(row_blocks(len(self.codes), *sizes)).stop

        def sums(rows: Slice) -> Floats:
            words, derivatives = packed.pack(self.codes[rows]), packed.kept_lanes("derivatives", *tables.shape)
            costs = packed.kept_lanes("costs", most_rows, len(tables), packed.LANES)[: len(words)]
            packed.fill_costs(words, tables, costs)
            value = loss.two(costs.reshape(len(words), -1), self.weights[rows])
            derivatives.fill(0.0)
            packed.add_slopes(words, costs, derivatives)
            first, second = packed.products(derivatives, n)
            return np.concatenate([[value], gap * first, gap * (low * first + gap * second).ravel()])

        return sums, sizes
