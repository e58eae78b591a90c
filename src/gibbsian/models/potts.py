"""The Potts model: variables with any number of values each, and a table of couplings on every edge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np

from gibbsian.backends.flip_layout import FlipLayout
from gibbsian.backends.numba import potts as kernels
from gibbsian.backends.parallel import map_in_order
from gibbsian.blocks import row_blocks
from gibbsian.domain import SPIN, AnyDomain
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import MODELS
from gibbsian.models.parameters import checked_theta
from gibbsian.models.scopes import Scopes
from gibbsian.models.states import checked_slopes
from gibbsian.models.table_model import Layout, TableModel

# Flip costs of one variable are made and used this many at a time, beside its tables in the second-level cache.
COST_CELLS = 2**15
# Above this share of all pairs a product with the matrix of all couplings is worth its zeros.
DENSE_ABOVE = 0.1


class OrientedTables(NamedTuple):
    """The coupling tables as seen from each end, and where the rows for each neighbour begin.

    Parameters
    ----------
    oriented : ndarray
        The tables of all variables, one after the other.
    starts : ndarray of int
        Where the block of each neighbour begins, in the order of ``graph.csr``.
    widths : ndarray of int
        Length of a row in the blocks of each variable: its number of values, rounded up.
    """

    oriented: np.ndarray
    starts: np.ndarray
    widths: np.ndarray


@MODELS.register("potts", many_valued="categories")
@dataclass(frozen=True, eq=False)
class PottsModel(TableModel):
    """``P(x) = exp((sum_i h_i(x_i) + sum_ij J_ij(x_i, x_j)) / T) / Z`` on a graph.

    Every pair of values has its own coupling (the model of direct coupling analysis). There are more parameters than
    the distribution needs: a row of J_ij can be moved to h_i. `zero_sum` gives the form where each table sums to zero
    along each axis, and norms of couplings are taken there.

    Parameters
    ----------
    graph : Graph
        Which pairs interact.
    theta : ndarray
        h_0, h_1 ..., then the table of each edge (i, j) in the order of ``graph.edges``, the value of j changing
        fastest.
    domain : Domain or Categories
        The values of the variables, as many as each has.
    layout : Layout, optional
        Made from the graph and the domain where it is not given.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> domain = gb.domain.Categories((2, 3))
    >>> model = gb.models.PottsModel.build(gb.graphs.complete(2), [[0, 1], [0, 0, 0]], [[[0, 0, 2], [3, 0, 0]]], domain)
    >>> model.energy(np.array([[0, 2], [1, 0], [1, 1]]))
    array([-2., -4., -1.])
    """

    graph: Graph
    theta: np.ndarray
    domain: AnyDomain = SPIN
    layout: Layout = field(default=None, repr=False)  # type: ignore[assignment]  # __post_init__ makes one

    def __post_init__(self) -> None:
        if self.layout is None:
            object.__setattr__(self, "layout", Layout(Scopes.of_graph(self.graph), self.domain))
        n_biases = int(self.cardinalities.sum())
        what = f"{n_biases} biases and {self.layout.size - n_biases} couplings"
        object.__setattr__(self, "theta", checked_theta(self.theta, self.layout.size, what))

    @classmethod
    def zeros(cls, graph: Graph, domain: AnyDomain = SPIN) -> Self:
        """Return the uniform distribution on a graph.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.models.PottsModel.zeros(gb.graphs.complete(3), gb.domain.Categories((2, 3, 4))).theta.size
        35
        """
        layout = Layout(Scopes.of_graph(graph), domain)
        return cls(graph, np.zeros(layout.size), domain, layout)

    @classmethod
    def build(
        cls,
        graph: Graph,
        biases: Sequence[np.ndarray | Sequence[float]] | None,
        couplings: Sequence[np.ndarray | Sequence],
        domain: AnyDomain = SPIN,
    ) -> Self:
        """Return a model from the biases of each variable (None: zeros) and the table of each edge, in edge order."""
        layout = Layout(Scopes.of_graph(graph), domain)
        if biases is None:
            biases = [np.zeros(shape) for shape in layout.shapes[: graph.n_nodes]]
        tables = [np.asarray(table, dtype=np.float64) for table in [*biases, *couplings]]
        if len(tables) != len(layout.scopes):
            raise ArgumentError(
                f"biases and couplings hold {len(tables)} tables",
                f"use one for each of the {graph.n_nodes} variables and the {graph.n_edges} edges",
            )
        for scope, shape, table in zip(layout.scopes, layout.shapes, tables, strict=True):
            if table.shape != shape:
                raise ArgumentError(f"the table of {scope} has shape {table.shape}, not {shape}")
        return cls(graph, np.concatenate([table.ravel() for table in tables]), domain, layout)

    def _on(self, layout: Layout, theta: np.ndarray) -> Self:
        graph = layout.scopes.graph
        # a variable whose edges all lead to fixed ones keeps its biases, so the scopes are those of the graph
        return type(self)(graph, theta, layout.domain, layout)

    # -- layout -------------------------------------------------------------------------------------------------------
    @property
    def n_variables(self) -> int:  # type: ignore[override]
        """Number of variables."""
        return self.graph.n_nodes

    @property
    def biases(self) -> list[np.ndarray]:
        """h_i for each variable."""
        return self.tables[: self.n_variables]

    @property
    def couplings(self) -> list[np.ndarray]:
        """J_ij for each edge, one row for each value of i."""
        return self.tables[self.n_variables :]

    @property
    def _n_biases(self) -> int:
        return int(self.layout.offsets[self.n_variables])

    # -- by variable ------------------------------------------------------------------------------------------------
    def _orientation(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What `orient` and `fold` want of the structure, up to where the blocks begin."""
        indptr, heads, edge_of = self.graph.csr
        offsets = self.layout.offsets[self.n_variables :] - self._n_biases
        return offsets, indptr, heads, edge_of, self.cardinalities

    @cached_property
    def oriented(self) -> OrientedTables:
        """The coupling tables as seen from each end: what sums and samplers want that go by variable."""
        indptr, heads, _ = self.graph.csr
        widths = -(-self.cardinalities // kernels.LANES) * kernels.LANES
        blocks = self.cardinalities[heads] * np.repeat(widths, np.diff(indptr))
        starts = np.concatenate([[0], np.cumsum(blocks)])
        oriented = np.zeros(starts[-1])
        kernels.orient(self.theta[self._n_biases :], *self._orientation(), starts, widths, oriented)
        return OrientedTables(oriented, starts, widths)

    def _span(self, i: int) -> tuple[np.ndarray, np.ndarray, slice]:
        """The neighbours of a variable, where their blocks begin among its own, and where those stand."""
        indptr, heads, _ = self.graph.csr
        neighbours = slice(indptr[i], indptr[i + 1])
        starts = self.oriented.starts
        return heads[neighbours], starts[neighbours] - starts[indptr[i]], slice(*starts[indptr[i : i + 2]].tolist())

    def _fill_costs(self, costs: np.ndarray, codes: np.ndarray, i: int) -> None:
        heads, starts, own = self._span(i)
        tables, _, widths = self.oriented
        biases = self.theta[self.layout.offsets[i] : self.layout.offsets[i + 1]]
        kernels.fill_costs(costs, codes, i, biases, heads, starts, tables[own], widths[i])

    def _slopes_of(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Zeros for the gradient of the biases of a variable and of its oriented tables."""
        own = self._span(i)[2]
        return np.zeros(self.cardinalities[i]), np.zeros(own.stop - own.start)

    def _add_vjp(self, c: np.ndarray, codes: np.ndarray, i: int, slopes: tuple[np.ndarray, np.ndarray]) -> None:
        heads, starts, _ = self._span(i)
        kernels.add_costs_vjp(c, codes, i, heads, starts, self.oriented.widths[i], *slopes)

    def _joined(self, slopes: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """The gradient with respect to theta from those of all variables."""
        gradient = np.zeros(self.theta.size)
        gradient[: self._n_biases] = np.concatenate([biases for biases, _ in slopes])
        oriented = np.concatenate([tables for _, tables in slopes])
        _, starts, widths = self.oriented
        kernels.fold(oriented, *self._orientation(), starts, widths, gradient[self._n_biases :])
        return gradient

    def _columns(self, i: int) -> slice:
        """Where the flip costs of a variable stand."""
        return slice(i, i + 1) if self.flip_columns is None else slice(*self.flip_columns[i : i + 2].tolist())

    def flip_costs(self, x: np.ndarray) -> np.ndarray:
        """Return ``log P(x) - log P(x with variable i changed)``, in the columns of `flip_columns`."""
        codes = self._codes(x)
        costs = np.empty((len(codes), self.n_flip_columns))
        for i in range(self.n_variables):
            self._fill_costs(costs[:, self._columns(i)], codes, i)
        return costs

    def flip_costs_vjp(self, x: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the gradient of ``sum(c * flip_costs(x))`` with respect to theta."""
        codes = self._codes(x)
        given = checked_slopes(c, len(codes), self.n_flip_columns)
        slopes = [self._slopes_of(i) for i in range(self.n_variables)]
        for i in range(self.n_variables):
            self._add_vjp(given[:, self._columns(i)], codes, i, slopes[i])
        return self._joined(slopes)

    def whole_flip_loss(
        self, x: np.ndarray, shares: np.ndarray, kernel: Callable[..., float]
    ) -> tuple[float, np.ndarray]:
        """Return a loss of the flip costs of all rows with its gradient, variable after variable on all threads.

        A variable's tables stay in the cache while all rows pass. `kernel` takes the costs of some rows, the rows'
        shares and, where variables have a column for each value, where those of each begin; it returns the loss and
        overwrites the costs with their derivatives.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> from gibbsian.backends.numba.grouped_losses import softmax
        >>> model = gb.models.PottsModel.zeros(gb.graphs.complete(2), gb.domain.Categories((2, 3)))
        >>> value, gradient = model.whole_flip_loss(np.array([[0, 2]]), np.array([1.0]), softmax)
        >>> bool(np.isclose(value, np.log(2) + np.log(3))), gradient[:2].tolist()
        (True, [-0.5, 0.5])
        """
        codes = self._codes(x)
        self.oriented  # noqa: B018  # made once, before threads ask for it

        def evaluate(i: int) -> tuple[float, tuple[np.ndarray, np.ndarray]]:
            columns = self._columns(i)
            width = columns.stop - columns.start
            extra = () if self.flip_columns is None else (np.array([0, width]),)
            value, slopes = 0.0, self._slopes_of(i)
            blocks = list(row_blocks(len(codes), width, COST_CELLS))
            buffer = np.empty((blocks[0].stop if blocks else 0, width))
            for block in blocks:
                costs = buffer[: block.stop - block.start]
                self._fill_costs(costs, codes[block], i)
                value += kernel(costs, shares[block], *extra)
                self._add_vjp(costs, codes[block], i, slopes)
            return value, slopes

        results = list(map_in_order(evaluate, range(self.n_variables)))
        return sum(value for value, _ in results), self._joined([slopes for _, slopes in results])

    def flip_layout(self, x: np.ndarray) -> FlipLayout:
        """Return flip costs as a product of one-hot states with the matrix of couplings."""
        q, sizes = int(self.cardinalities.max()), self.cardinalities
        column = np.arange(self.n_variables)[:, None] * q + np.arange(q)
        biases = column[np.arange(q) < sizes[:, None]]
        sources, targets = biases[self.value_pairs.T]
        places, sparse = (biases, sources, targets), self.graph.density <= DENSE_ABOVE
        return FlipLayout(self._codes(x), q, True, sizes, 1.0, *places, True, sparse)

    has_pair_tables: ClassVar[bool] = True

    @cached_property
    def value_pairs(self) -> np.ndarray:
        """Which two values, counted over all variables, each entry of the coupling tables is of: a row for each."""
        values = np.split(np.arange(self._n_biases), self.layout.offsets[1 : self.n_variables])
        grids = [np.meshgrid(values[i], values[j], indexing="ij") for i, j in self.graph.edges.tolist()]
        return np.vstack([np.zeros((0, 2), np.intp), *(np.reshape(grid, (2, -1)).T for grid in grids)])

    # -- gauge --------------------------------------------------------------------------------------------------------
    def zero_sum(self) -> Self:
        """Return the same distribution in the zero-sum gauge: biases and couplings sum to zero along each axis.

        What a coupling says of one value alone moves to the biases; the constant is dropped. Of all gauges this one
        has the smallest couplings in the sense of squares.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.models.PottsModel.build(gb.graphs.complete(2), None, [[[0.0, 4.0], [0.0, 0.0]]])
        >>> gauged = model.zero_sum()
        >>> [table.tolist() for table in gauged.tables]
        [[1.0, -1.0], [-1.0, 1.0], [[-1.0, 1.0], [1.0, -1.0]]]
        """
        theta = self.theta.copy()
        tables = self.layout.tables(theta)
        for (i, j), table in zip(self.graph.edges.tolist(), tables[self.n_variables :], strict=True):
            rows, columns = table.mean(axis=1), table.mean(axis=0)
            table -= rows[:, None] + columns[None, :] - table.mean()
            tables[i] += rows
            tables[j] += columns
        for biases in tables[: self.n_variables]:
            biases -= biases.mean()
        return self.replace(theta)

    def coupling_norms(self, apc: bool = False) -> np.ndarray:
        """Return the Frobenius norm of each coupling table in the zero-sum gauge, in edge order.

        Parameters
        ----------
        apc : bool
            Subtract the average product correction ``F_i F_j / F``, with F_i the mean over the edges of i and F over
            all edges: strong variables have large norms with everyone (Dunn, Wahl and Gloor 2008).

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.models.PottsModel.build(gb.graphs.complete(2), None, [[[0.0, 4.0], [0.0, 0.0]]])
        >>> model.coupling_norms()
        array([2.])
        """
        norms = np.array([np.linalg.norm(table) for table in self.zero_sum().couplings])
        if not apc or norms.size == 0 or not norms.any():
            return norms
        i, j = self.graph.edges.T
        sums = np.bincount(i, norms, self.n_variables) + np.bincount(j, norms, self.n_variables)
        means = sums / np.maximum(self.graph.degrees, 1)
        return norms - means[i] * means[j] / norms.mean()
