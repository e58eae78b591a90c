"""The general Markov random field: a table of log-weights for each of some sets of variables (YU20 eq. 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from gibbsian.domain import SPIN, AnyDomain
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import MODELS
from gibbsian.models.factors import zero_sum
from gibbsian.models.layout import Layout
from gibbsian.models.parameters import checked_theta
from gibbsian.models.scopes import Scopes, triangles
from gibbsian.models.table_model import TableModel
from gibbsian.models.variables import variables_of


@MODELS.register("markov-random-field", many_valued="categories")
@dataclass(frozen=True, eq=False)
class MarkovRandomField(TableModel):
    """``P(x) = exp(sum_s table_s[x_s] / T) / Z`` over sets s of variables.

    The variables may have any number of values each. Parameters are the entries of the tables, so there are more of
    them than the distribution needs: adding a number to a whole table changes nothing. Learners start at zeros and
    gradients have no part along such directions, so they stay where they are; `zero_sum` gives the one form that is
    the same for all fits of a distribution.

    Parameters
    ----------
    n_variables : int
        Number of variables.
    scopes : sequence of tuple of int
        The sets, smaller ones first, then in lexicographic order, the variables of each ascending. `build` takes any
        order.
    theta : ndarray
        The tables one after the other, in each the last variable changing fastest, indexed by codes.
    domain : Domain or Categories
        The values of the variables; tables need no numbers for them.
    layout : Layout, optional
        Made from the scopes and the domain where it is not given.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> domain = gb.domain.Categories((2, 3))
    >>> model = gb.models.MarkovRandomField.build({(0, 1): np.log([[1, 2, 3], [4, 5, 6]])}, 2, domain)
    >>> np.exp(model.log_weights(np.array([[0, 0], [1, 2]])))
    array([1., 6.])
    """

    n_variables: int
    scopes: Sequence[tuple[int, ...]]
    theta: np.ndarray
    domain: AnyDomain = SPIN
    layout: Layout = field(default=None, repr=False)  # type: ignore[assignment]  # __post_init__ makes one

    def __post_init__(self) -> None:
        if self.layout is None:
            scopes = Scopes(self.scopes, self.n_variables)
            object.__setattr__(self, "layout", Layout(scopes, variables_of(self.domain, self.n_variables)))
        object.__setattr__(self, "scopes", self.layout.scopes)
        what = f"{len(self.scopes)} tables with {self.layout.size} entries"
        object.__setattr__(self, "theta", checked_theta(self.theta, self.layout.size, what))

    @classmethod
    def build(
        cls,
        tables: Mapping[tuple[int, ...], np.ndarray | Sequence],
        n_variables: int,
        domain: AnyDomain = SPIN,
    ) -> Self:
        """Return a model from its tables, one axis for each variable in the order in which the key names them."""
        sorted_tables = {}
        for scope, table in tables.items():
            order = np.argsort(scope)
            sorted_tables[tuple(scope[i] for i in order)] = np.asarray(table, dtype=np.float64).transpose(order)
        if len(sorted_tables) < len(tables):
            raise ArgumentError("tables names the same variables twice", "give each set of variables once")
        layout = Layout(Scopes.sorted(sorted_tables, n_variables), variables_of(domain, n_variables))
        for scope, shape in zip(layout.scopes, layout.shapes, strict=True):
            if sorted_tables[scope].shape != shape:
                raise ArgumentError(f"the table of {scope} has shape {sorted_tables[scope].shape}, not {shape}")
        theta = np.concatenate([np.empty(0), *(sorted_tables[scope].ravel() for scope in layout.scopes)])
        return cls(n_variables, layout.scopes, theta, domain, layout)

    @classmethod
    def zeros(cls, graph: Graph, domain: AnyDomain = SPIN) -> Self:
        """Return the uniform distribution with a table for each variable, edge and triangle of a graph.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.models.MarkovRandomField.zeros(gb.graphs.complete(3)).theta.size       # 3 x 2 + 3 x 4 + 8
        26
        """
        return cls.on_cliques([*Scopes.of_graph(graph), *triangles(graph)], graph.n_nodes, domain)

    @classmethod
    def on_cliques(
        cls,
        cliques: Iterable[tuple[int, ...]],
        n_variables: int,
        domain: AnyDomain = SPIN,
    ) -> Self:
        """Return the uniform distribution with a table for each of the cliques, in any order.

        Examples
        --------
        >>> import gibbsian as gb
        >>> domain = gb.domain.Categories((2, 3, 4))
        >>> gb.models.MarkovRandomField.on_cliques([(2, 0), (1,)], 3, domain).tables[1].shape
        (2, 4)
        """
        layout = Layout(Scopes.sorted(cliques, n_variables), variables_of(domain, n_variables))
        return cls(n_variables, layout.scopes, np.zeros(layout.size), domain, layout)

    def _on(self, layout: Layout, domain: AnyDomain, theta: np.ndarray) -> Self:
        scopes = layout.scopes
        return type(self)(scopes.n_variables, scopes, theta, domain, layout)

    @property
    def graph(self) -> Graph:
        """Which variables share a table."""
        return self.layout.scopes.graph

    def zero_sum(self) -> Self:
        """Return the same distribution in the zero-sum gauge: every table sums to zero along each of its axes.

        What a table says of fewer variables moves to the table of those; a missing one is added, and the constant
        is dropped. So two models of one distribution over the same scopes get the same parameters.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.models.MarkovRandomField.build({(0, 1): [[0.0, 4.0], [0.0, 0.0]]}, n_variables=2)
        >>> gauged = model.zero_sum()
        >>> gauged.scopes, [table.tolist() for table in gauged.tables]
        (((0,), (1,), (0, 1)), [[1.0, -1.0], [-1.0, 1.0], [[-1.0, 1.0], [1.0, -1.0]]])
        """
        tables = zero_sum(zip(self.scopes, self.tables, strict=True))
        layout = Layout(Scopes.sorted(tables, self.n_variables), variables_of(self.domain, self.n_variables))
        theta = np.concatenate([np.empty(0), *(tables[scope].ravel() for scope in layout.scopes)])
        return self._on(layout, self.domain, theta)
