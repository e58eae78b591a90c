"""Conditionals of tables over codes: tables of pairs by matrix products, others by lookups in each table."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.arrays import Floats, Integers, Slice, States
from gibbsian.backends.device import twin
from gibbsian.backends.numba import one_hot as kernels
from gibbsian.backends.numba import potts as row_kernels
from gibbsian.backends.numba import tables as table_kernels
from gibbsian.backends.numba.pairwise import by_variable
from gibbsian.backends.parallel import map_in_order
from gibbsian.graphs import Graph
from gibbsian.models.conditionals.base import Conditionals, Design, Loss, Mapped, RowConditionals, WeightedRows
from gibbsian.models.conditionals.pairs import Pairs, bind_pairs
from gibbsian.resources import row_blocks

if TYPE_CHECKING:
    from gibbsian.models.families.tables import TablesFamily

# Multiplications of a matrix product that take as long as one addition of a table entry.
PRODUCTS_AN_ENTRY = 10
# Costs of one variable that are computed and used together, with its tables in the second-level cache.
COST_CELLS = 2**15
# Minimum rows of a block whose result is a matrix over all values, so that sums over blocks cost little.
LEAST_ROWS = 256

Parameters = tuple[Floats, Floats]
"""Biases of all values, and couplings: as a matrix over all values, or as tables from both ends."""


def bind_tables(family: TablesFamily, rows: WeightedRows, design: Design | None = None) -> Conditionals:
    """Bind rows to the fastest operator; with a `design`, the entries of tables are ``design @ theta``."""
    sizes, graph = np.array(family.variables.sizes), family.graph
    if family.scopes.sizes.max(initial=0) > 2:
        bound: Conditionals = Tables(family, rows)
    elif family.variables.two_valued:
        entries = pairs_of_tables(family)
        pairs = Pairs(graph, bias=True, low=0.0, gap=1.0)
        return Mapped(bind_pairs(pairs, rows), entries if design is None else entries @ design)
    elif not rows.by_row and (twins := twin("conditionals")) is not None:
        bound = twins.of_tables(family, rows)
    else:
        bound = (OneHotPairs if one_hot_is_faster(sizes, graph) else OrientedPairs)(family, rows)
    return bound if design is None else Mapped(bound, design)


def one_hot_is_faster(sizes: Integers, graph: Graph) -> bool:
    """Whether a product with the matrix over all values is faster than adding the table entries of each row."""
    return bool(sizes.sum() ** 2 < PRODUCTS_AN_ENTRY * (sizes @ graph.degrees))


def pairs_of_tables(family: TablesFamily) -> Design:
    """Return the sparse matrix from tables of pairs of two-valued variables to biases and couplings in 0/1 coding."""
    from scipy.sparse import csr_array

    n, first = family.scopes.n_variables, int(family.layout.offsets[family.scopes.n_singles])
    single = family.scopes.csr[1][: family.scopes.n_singles]
    i, j = family.graph.edges.T
    edge = np.arange(i.size)
    low, high = 2 * np.arange(single.size), 2 * np.arange(single.size) + 1
    entries = [first + 4 * edge + k for k in range(4)]  # (0, 0), (0, 1), (1, 0), (1, 1)
    parts = [(single, low, -1), (single, high, 1)]
    parts += [(i, entries[2], 1), (i, entries[0], -1), (j, entries[1], 1), (j, entries[0], -1)]
    parts += [(n + edge, columns, sign) for columns, sign in zip(entries, (1, -1, -1, 1), strict=True)]
    rows, columns = (np.concatenate([part[k] for part in parts]) for k in range(2))
    values = np.concatenate([np.full(len(part[0]), float(part[2])) for part in parts])
    matrix: Design = csr_array((values, (rows, columns)), shape=(n + i.size, family.n_parameters))
    return matrix


def _bias_columns(family: TablesFamily) -> Integers:
    """Return the indices of the values, among those of all variables, that have a bias."""
    owner = np.repeat(np.arange(family.scopes.n_variables), family.variables.sizes)
    return np.flatnonzero(np.isin(owner, family.scopes.csr[1][: family.scopes.n_singles]))


class OneHotPairs(RowConditionals[Parameters, Floats]):
    """Conditionals of tables of pairs by two products of indicators of values with the matrix of all couplings."""

    groups: Integers

    def __init__(self, family: TablesFamily, rows: WeightedRows):
        self.groups = groups = family.variables.offsets
        self.n_parameters, n_singles = family.n_parameters, family.scopes.n_singles
        self.n_biases, self.n_values = int(family.layout.offsets[n_singles]), int(groups[-1])
        values = [np.arange(*ends) for ends in pairwise(groups)]
        self.bias_columns = _bias_columns(family)
        pairs = (values[i][:, None] * self.n_values + values[j] for i, j in family.scopes[n_singles:])
        self.cells = np.concatenate([np.empty(0, np.intp), *map(np.ravel, pairs)])  # of the matrix, by parameter
        least_rows = max(LEAST_ROWS, self.n_values // 2)
        super().__init__(rows, row_blocks(len(rows.codes), self.n_values, least_rows=least_rows))

    def prepare(self, theta: Floats) -> Parameters:
        """Return the biases of all values and the matrix of their couplings."""
        biases, matrix = np.zeros(self.n_values), np.zeros((self.n_values, self.n_values))
        biases[self.bias_columns] = theta[: self.n_biases]
        matrix.ravel()[self.cells] = theta[self.n_biases :]
        return biases, matrix + matrix.T

    def forward(self, prepared: Parameters, rows: States) -> tuple[Floats, Floats]:
        """Return the costs of rows and their indicators."""
        biases, matrix = prepared
        indicators = kernels.one_hot(rows, self.groups)
        costs = indicators @ matrix
        kernels.fields_to_costs(costs, biases, rows, self.groups)
        return costs, indicators

    def backward(self, rows: States, derivatives: Floats, saved: Floats) -> Floats:
        """Return the gradient of ``sum(derivatives * costs)``, given the indicators."""
        sums = kernels.costs_to_fields(derivatives, rows, self.groups)
        products = derivatives.T @ saved
        products += products.T
        return np.concatenate([sums[self.bias_columns], products.ravel()[self.cells]])


class OrientedPairs(RowConditionals[Parameters, None]):
    """Conditionals of tables of pairs, one variable at a time, from the rows of its tables that its neighbours select.

    A lookup takes one addition where a product with indicators takes a multiplication for each value. The tables of a
    variable stay in the cache while all rows pass.
    """

    groups: Integers

    def __init__(self, family: TablesFamily, rows: WeightedRows):
        self.n_parameters, self.groups = family.n_parameters, family.variables.offsets
        self.orientation, self.bias_columns = family.layout.orientation, _bias_columns(family)
        super().__init__(rows, row_blocks(len(rows.codes), int(self.groups[-1])))

    def prepare(self, theta: Floats) -> Parameters:
        """Return the biases of all values, and the tables from both ends."""
        biases, n_biases = np.zeros(self.groups[-1]), self.bias_columns.size
        biases[self.bias_columns] = theta[:n_biases]
        return biases, self.orientation.of(theta[n_biases:])

    def _columns(self, i: int) -> Slice:
        return slice(*self.groups[i : i + 2].tolist())

    def _fill(self, costs: Floats, prepared: Parameters, codes: States, i: int) -> None:
        (biases, tables), (neighbours, starts, span, width) = prepared, self.orientation.span(i)
        row_kernels.fill_costs(costs, codes, i, biases[self._columns(i)], neighbours, starts, tables[span], width)

    def _add(self, gradient: Parameters, derivatives: Floats, codes: States, i: int) -> None:
        (neighbours, starts, span, width), (biases, tables) = self.orientation.span(i), gradient
        row_kernels.add_costs_vjp(
            derivatives, codes, i, neighbours, starts, width, biases[self._columns(i)], tables[span]
        )

    def _zeros(self) -> Parameters:
        return np.zeros(self.groups[-1]), np.zeros(self.orientation.size)

    def _folded(self, gradient: Parameters) -> Floats:
        biases, tables = gradient
        return np.concatenate([biases[self.bias_columns], self.orientation.folded(tables)])

    def forward(self, prepared: Parameters, rows: States) -> tuple[Floats, None]:
        """Return the costs of rows."""
        costs = np.empty((len(rows), self.groups[-1]))
        for i in range(rows.shape[1]):
            self._fill(costs[:, self._columns(i)], prepared, rows, i)
        return costs, None

    def backward(self, rows: States, derivatives: Floats, saved: None) -> Floats:
        """Return the gradient of ``sum(derivatives * costs)``."""
        gradient = self._zeros()
        for i in range(rows.shape[1]):
            self._add(gradient, derivatives[:, self._columns(i)], rows, i)
        return self._folded(gradient)

    def evaluate(self, theta: Floats, loss: Loss) -> tuple[float, Floats]:
        """Return the weighted sum of the losses and its gradient, with one thread for each variable."""
        prepared, gradient = self.prepare(theta), self._zeros()  # threads write to disjoint parts of the gradient

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


class Tables(RowConditionals[Floats, None]):
    """Conditionals of tables of any number of variables: lookups of the present entry, and of one for each change."""

    def __init__(self, family: TablesFamily, rows: WeightedRows):
        self.arrays, self.n_parameters, self.groups = family.layout.arrays, family.n_parameters, family.variables.groups
        n_columns = rows.codes.shape[1] if self.groups is None else int(self.groups[-1])
        super().__init__(rows, row_blocks(len(rows.codes), n_columns))

    def arrange(self, codes: States) -> States:
        """Return rows stored by variable."""
        return np.asarray(by_variable(codes))

    def forward(self, prepared: Floats, rows: States) -> tuple[Floats, None]:
        """Return the costs of rows."""
        return np.ascontiguousarray(table_kernels.costs(rows, self.groups, *self.arrays, prepared).T), None

    def backward(self, rows: States, derivatives: Floats, saved: None) -> Floats:
        """Return the gradient of ``sum(derivatives * costs)``."""
        derivatives = np.ascontiguousarray(derivatives.T)
        return np.asarray(table_kernels.costs_vjp(rows, derivatives, self.groups, *self.arrays))
