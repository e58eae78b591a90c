"""Conditionals of tables over codes: by a product of matrices where they are of pairs, else table after table."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.backends.numba import one_hot as kernels
from gibbsian.backends.numba import potts as row_kernels
from gibbsian.backends.numba import tables as table_kernels
from gibbsian.backends.numba.pairwise import by_variable
from gibbsian.backends.parallel import map_in_order
from gibbsian.graphs import Graph
from gibbsian.models.conditionals.base import Array, Conditionals, Design, Loss, Mapped, RowConditionals, WeightedRows
from gibbsian.models.conditionals.pairs import Pairs, bind_pairs
from gibbsian.resources import row_blocks

if TYPE_CHECKING:
    from gibbsian.models.layout import Layout

# So many multiplications of a product of matrices take as long as to add an entry of a table.
PRODUCTS_AN_ENTRY = 10
# Costs of one variable are made and used this many at a time, beside its tables in the second-level cache.
COST_CELLS = 2**15
# Rows of a block whose product is a matrix over all values: its sum over blocks shall cost little beside it.
LEAST_ROWS = 256


def bind_tables(layout: Layout, rows: WeightedRows, design: Design = None) -> Conditionals:
    """Bind rows by the operator that is fastest; entries may be linear functions ``design @ theta`` of parameters."""
    if layout.scopes.sizes.max(initial=0) > 2:
        return _mapped(Tables(layout, rows), design)
    if layout.variables.two_valued:
        entries = pairs_of_tables(layout)
        pairs = Pairs(layout.scopes.graph, bias=True, low=0.0, gap=1.0)
        return Mapped(bind_pairs(pairs, rows), entries if design is None else entries @ design)
    if not rows.by_row and (twins := twin("conditionals")) is not None:
        return _mapped(twins.of_tables(layout, rows), design)
    few = one_hot_is_faster(layout.cardinalities, layout.scopes.graph)
    return _mapped((OneHotPairs if few else OrientedPairs)(layout, rows), design)


def one_hot_is_faster(sizes: Array, graph: Graph) -> bool:
    """Whether a product with the matrix of all values beats adding up the entries that a row picks."""
    return bool(sizes.sum() ** 2 < PRODUCTS_AN_ENTRY * (sizes @ graph.degrees))


def _mapped(base: Conditionals, design: Design) -> Conditionals:
    return base if design is None else Mapped(base, design)


def pairs_of_tables(layout: Layout) -> Design:
    """Return the biases and couplings in 0/1 coding of tables of pairs of two-valued variables, as a sparse matrix."""
    from scipy.sparse import csr_array

    n, first = layout.scopes.n_variables, int(layout.offsets[layout.n_singles])
    single = layout.scopes.csr[1][: layout.n_singles]
    i, j = layout.scopes.graph.edges.T
    edge = np.arange(i.size)
    low, high = 2 * np.arange(single.size), 2 * np.arange(single.size) + 1
    entries = [first + 4 * edge + k for k in range(4)]  # (0, 0), (0, 1), (1, 0), (1, 1)
    parts = [(single, low, -1), (single, high, 1)]
    parts += [(i, entries[2], 1), (i, entries[0], -1), (j, entries[1], 1), (j, entries[0], -1)]
    parts += [(n + edge, places, sign) for places, sign in zip(entries, (1, -1, -1, 1), strict=True)]
    rows, columns = (np.concatenate([part[k] for part in parts]) for k in range(2))
    values = np.concatenate([np.full(len(part[0]), float(part[2])) for part in parts])
    return csr_array((values, (rows, columns)), shape=(n + i.size, layout.size))


class OneHotPairs(RowConditionals):
    """Tables of pairs by two products of indicators of values with the matrix of all couplings."""

    def __init__(self, layout: Layout, rows: WeightedRows):
        self.groups = groups = np.concatenate([[0], np.cumsum(layout.cardinalities)])
        self.n_parameters, n_singles = layout.size, layout.n_singles
        self.n_biases, self.n_values = int(layout.offsets[n_singles]), int(groups[-1])
        values = [np.arange(*ends) for ends in pairwise(groups)]
        self.bias_columns = np.concatenate([np.empty(0, np.intp), *(values[i] for (i,) in layout.scopes[:n_singles])])
        pairs = (values[i][:, None] * self.n_values + values[j] for i, j in layout.scopes[n_singles:])
        self.places = np.concatenate([np.empty(0, np.intp), *map(np.ravel, pairs)])
        least_rows = max(LEAST_ROWS, self.n_values // 2)
        super().__init__(rows, row_blocks(len(rows.codes), self.n_values, least_rows=least_rows))

    def prepare(self, theta: Array) -> tuple[Array, Array]:
        """Return the biases of all values and the matrix of their couplings."""
        biases, matrix = np.zeros(self.n_values), np.zeros((self.n_values, self.n_values))
        biases[self.bias_columns] = theta[: self.n_biases]
        matrix.ravel()[self.places] = theta[self.n_biases :]
        return biases, matrix + matrix.T

    def fill(self, prepared: tuple[Array, Array], codes: Array) -> tuple[Array, Array]:
        """Return the costs of rows and their indicators."""
        biases, matrix = prepared
        indicators = kernels.one_hot(codes, self.groups)
        costs = indicators @ matrix
        kernels.fields_to_costs(costs, biases, codes, self.groups)
        return costs, indicators

    def pull(self, codes: Array, slopes: Array, indicators: Array) -> Array:
        """Return the gradient of ``sum(slopes * costs)``."""
        sums = kernels.costs_to_fields(slopes, codes, self.groups)
        products = slopes.T @ indicators
        products += products.T
        return np.concatenate([sums[self.bias_columns], products.ravel()[self.places]])


class OrientedPairs(RowConditionals):
    """Tables of pairs, one variable at a time: what it gets from its neighbours are rows of its own tables.

    To pick rows takes as many additions as a product with indicators takes multiplications by one. A variable's tables
    stay in the cache while all rows pass.
    """

    groups: Array

    def __init__(self, layout: Layout, rows: WeightedRows):
        self.layout, self.orientation, self.n_parameters = layout, layout.orientation, layout.size
        self.groups = np.concatenate([[0], np.cumsum(layout.cardinalities)])
        singles = [np.arange(self.groups[i], self.groups[i + 1]) for (i,) in layout.scopes[: layout.n_singles]]
        self.bias_columns = np.concatenate([np.empty(0, np.intp), *singles])
        super().__init__(rows, row_blocks(len(rows.codes), int(self.groups[-1])))

    def prepare(self, theta: Array) -> tuple[Array, Array]:
        """Return the biases of all values, and the tables as seen from both ends."""
        biases, n_biases = np.zeros(self.groups[-1]), self.bias_columns.size
        biases[self.bias_columns] = theta[:n_biases]
        return biases, self.orientation.of(theta[n_biases:])

    def _columns(self, i: int) -> slice:
        return slice(*self.groups[i : i + 2].tolist())

    def _fill(self, costs: Array, prepared: tuple[Array, Array], codes: Array, i: int) -> None:
        (biases, tables), (heads, starts, own, width) = prepared, self.orientation.span(i)
        row_kernels.fill_costs(costs, codes, i, biases[self._columns(i)], heads, starts, tables[own], width)

    def _add(self, gradient: tuple[Array, Array], slopes: Array, codes: Array, i: int) -> None:
        (heads, starts, own, width), (biases, tables) = self.orientation.span(i), gradient
        row_kernels.add_costs_vjp(slopes, codes, i, heads, starts, width, biases[self._columns(i)], tables[own])

    def _zeros(self) -> tuple[Array, Array]:
        return np.zeros(self.groups[-1]), np.zeros(self.orientation.size)

    def _folded(self, gradient: tuple[Array, Array]) -> Array:
        biases, tables = gradient
        return np.concatenate([biases[self.bias_columns], self.orientation.folded(tables)])

    def fill(self, prepared: tuple[Array, Array], codes: Array) -> tuple[Array, None]:
        """Return the costs of rows."""
        costs = np.empty((len(codes), self.groups[-1]))
        for i in range(codes.shape[1]):
            self._fill(costs[:, self._columns(i)], prepared, codes, i)
        return costs, None

    def pull(self, codes: Array, slopes: Array, kept: None) -> Array:
        """Return the gradient of ``sum(slopes * costs)``."""
        gradient = self._zeros()
        for i in range(codes.shape[1]):
            self._add(gradient, slopes[:, self._columns(i)], codes, i)
        return self._folded(gradient)

    def evaluate(self, theta: Array, loss: Loss) -> tuple[float, Array]:
        """Return the weighted sum of the losses and its gradient."""
        prepared, gradient = self.prepare(theta), self._zeros()  # each variable has a part of the gradient

        def of_variable(i: int) -> float:
            columns, value = self._columns(i), 0.0
            width = columns.stop - columns.start
            kernel, blocks = loss.of(np.array([0, width])), list(row_blocks(len(self.codes), width, COST_CELLS))
            buffer = np.empty((blocks[0].stop if blocks else 0, width))
            for rows in blocks:
                costs, codes = buffer[: rows.stop - rows.start], self.codes[rows]
                self._fill(costs, prepared, codes, i)
                if self.masked is not None:
                    costs[self.masked[rows, columns]] = np.inf
                value += kernel(costs, self.weights[rows])
                self._add(gradient, costs, codes, i)
            return value

        value = sum(map_in_order(of_variable, range(self.codes.shape[1])))
        return float(value), self._folded(gradient)


class Tables(RowConditionals):
    """Tables of any number of variables: each row looks up its entry, and those of one changed value."""

    def __init__(self, layout: Layout, rows: WeightedRows):
        self.layout, self.n_parameters = layout, layout.size
        if not layout.variables.two_valued:
            self.groups = np.concatenate([[0], np.cumsum(layout.cardinalities)])
        n_columns = rows.codes.shape[1] if self.groups is None else int(self.groups[-1])
        super().__init__(rows, row_blocks(len(rows.codes), n_columns))

    def arranged(self, codes: Array) -> Array:
        """Return rows by variable."""
        return by_variable(codes)

    def prepare(self, theta: Array) -> Array:
        """Return the entries."""
        return theta

    def fill(self, theta: Array, rows: Array) -> tuple[Array, None]:
        """Return the costs of rows."""
        return np.ascontiguousarray(table_kernels.costs(rows, self.groups, *self.layout.arrays, theta).T), None

    def pull(self, rows: Array, slopes: Array, kept: None) -> Array:
        """Return the gradient of ``sum(slopes * costs)``."""
        by_column = np.ascontiguousarray(slopes.T)
        return table_kernels.costs_vjp(rows, by_column, self.groups, *self.layout.arrays)
