"""The Potts model: variables with any number of values each, and a table of couplings on every edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from gibbsian.domain import SPIN, AnyDomain
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import MODELS
from gibbsian.models.layout import Layout
from gibbsian.models.parameters import checked_theta
from gibbsian.models.scopes import Scopes
from gibbsian.models.table_model import TableModel
from gibbsian.models.variables import variables_of


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
            variables = variables_of(self.domain, self.graph.n_nodes)
            object.__setattr__(self, "layout", Layout(Scopes.of_graph(self.graph), variables))
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
        layout = Layout(Scopes.of_graph(graph), variables_of(domain, graph.n_nodes))
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
        layout = Layout(Scopes.of_graph(graph), variables_of(domain, graph.n_nodes))
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

    def _on(self, layout: Layout, domain: AnyDomain, theta: np.ndarray) -> Self:
        graph = layout.scopes.graph
        # a variable whose edges all lead to fixed ones keeps its biases, so the scopes are those of the graph
        return type(self)(graph, theta, domain, layout)

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

    @cached_property
    def oriented(self) -> np.ndarray:
        """The coupling tables as seen from each end (see `Orientation`)."""
        return self.layout.orientation.of(self.theta[self._n_biases :])

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
