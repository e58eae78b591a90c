"""Tables of log-weights over sets of variables: the general Markov random field (YU20 eq. 1) and the Potts model."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple, Self

import numpy as np

from gibbsian.backends.numba import tables as kernels
from gibbsian.backends.numba.pairwise import by_variable
from gibbsian.backends.parallel import map_in_order, sum_in_order
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.conditionals import Conditionals, WeightedRows, bind_tables
from gibbsian.models.factors import Factor, FactorGraph, Marginal, zero_sum
from gibbsian.models.family import Array, Model, Parts, fields_alone
from gibbsian.models.file_parts import SIZE, PartsInFile, reals, wholes
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions, of_tables
from gibbsian.models.layout import Layout
from gibbsian.models.scopes import Scope, Scopes
from gibbsian.models.states import checked_fixed, checked_shares
from gibbsian.models.variables import Variables
from gibbsian.resources import row_blocks


class TablesParts(NamedTuple):
    """Views of theta: the table of each scope, one axis for each variable."""

    tables: list[Array]


@dataclass(frozen=True, eq=False)
class TablesFamily:
    """``P(x) = exp(sum_s table_s[x_s]) / Z`` over sets s of variables with any number of values each.

    Parameters are the entries of the tables, so that there are more of them than the distribution needs: what a table
    says of fewer of its variables can stand in the table of those. `canonical` gives the zero-sum gauge. Learners start
    at zeros and gradients have no part along such directions, so that they stay where they are.

    Parameters
    ----------
    scopes : Scopes
        The variables of each table. The Potts model of direct coupling analysis has the single variables and the edges
        of a graph (`potts`).
    variables : Variables
        How many values each variable has; scores are not needed.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.families.tables import TablesFamily
    >>> from gibbsian.models.variables import Variables
    >>> model = TablesFamily.model({(0, 1): np.log([[1, 2, 3], [4, 5, 6]])}, Variables.categories((2, 3)))
    >>> np.exp(model.log_weights(np.array([[0, 0], [1, 2]])))
    array([1., 6.])
    """

    scopes: Scopes
    variables: Variables

    registered_name: ClassVar[str] = "tables"
    n_hidden: ClassVar[int] = 0
    parts_in_file: ClassVar[PartsInFile] = {
        "n_variables": SIZE,
        "indptr": wholes("ends"),
        "members": wholes("members", below="all"),
        "theta": reals("parameters"),
    }
    __getstate__ = fields_alone

    @classmethod
    def model(cls, tables: Mapping[Scope, Array | Sequence[object]], variables: Variables) -> Model[Self]:
        """Return a model from its tables, one axis for each variable in the order in which the key names them."""
        of = {}
        for scope, table in tables.items():
            order = np.argsort(scope)
            of[tuple(scope[i] for i in order)] = np.asarray(table, dtype=np.float64).transpose(order)
        if len(of) < len(tables):
            raise ArgumentError("names the same variables twice, give each set once", argument="tables")
        family = cls(Scopes.sorted(of, len(variables)), variables)
        for scope, shape in zip(family.scopes, family.layout.shapes, strict=True):
            if of[scope].shape != shape:
                raise ArgumentError(f"the table of {scope} has shape {of[scope].shape}, not {shape}")
        return Model(family, np.concatenate([np.empty(0), *(of[scope].ravel() for scope in family.scopes)]))

    @classmethod
    def potts(cls, graph: Graph, variables: Variables) -> Self:
        """Return the Potts family of a graph: biases of each value, and a coupling for every two values of an edge.

        Examples
        --------
        >>> import gibbsian as gb
        >>> from gibbsian.models.families.tables import TablesFamily
        >>> from gibbsian.models.variables import Variables
        >>> TablesFamily.potts(gb.graphs.complete(3), Variables.categories((2, 3, 4))).n_parameters
        35
        """
        return cls(Scopes.of_graph(graph), variables)

    # -- structure ----------------------------------------------------------------------------------------------------
    @cached_property
    def layout(self) -> Layout:
        """Where the entries of the tables stand in theta, and how kernels read them."""
        return Layout(self.scopes, self.variables)

    @property
    def n_parameters(self) -> int:
        """Entries of all tables."""
        return self.layout.size

    @property
    def penalised(self) -> Array:
        """The tables of two and more variables."""
        return self.layout.penalised

    @property
    def statistic_range(self) -> tuple[Array, Array]:
        """Zero and one."""
        return np.zeros(self.n_parameters), np.ones(self.n_parameters)

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the variables of each table with the codes of each entry."""
        return [
            f"{'*'.join(names[i] for i in scope)}[{','.join(map(str, codes))}]"
            for scope, shape in zip(self.scopes, self.layout.shapes, strict=True)
            for codes in np.ndindex(*shape)
        ]

    def to_parts(self) -> Parts:
        """Return the scopes."""
        return Parts({"n_variables": self.scopes.n_variables}, self.scopes.to_arrays())

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from what a file keeps."""
        return cls(Scopes.from_arrays(dict(parts.arrays), len(variables)), variables)

    # -- parameters ---------------------------------------------------------------------------------------------------
    def split(self, theta: Array) -> TablesParts:
        """Return views of the tables."""
        return TablesParts(self.layout.tables(theta))

    def canonical(self, theta: Array) -> Array:
        """Return the zero-sum gauge: what a table says of fewer variables moves to the table of those.

        Where there is none it is shared by the smallest tables over them; the constant is dropped. So two models of one
        distribution have the same parameters.

        Examples
        --------
        >>> import gibbsian as gb
        >>> from gibbsian.models.families.tables import TablesFamily
        >>> from gibbsian.models.variables import Variables
        >>> family = TablesFamily.potts(gb.graphs.complete(2), Variables.spins(2))
        >>> family.canonical(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0])).tolist()
        [1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0]
        """
        gauged = np.zeros_like(theta)
        tables = self.split(gauged).tables
        for scope, part in zero_sum(zip(self.scopes, self.split(theta).tables, strict=True)).items():
            homes = self._homes[scope]
            for number in homes:
                axes = tuple(slice(None) if i in scope else None for i in self.scopes[number])
                tables[number] += part[axes] / len(homes)
        return gauged

    @cached_property
    def _homes(self) -> dict[Scope, list[int]]:
        """The smallest tables over every part of a scope."""
        homes: dict[Scope, list[int]] = {}
        for number, scope in enumerate(self.scopes):  # smaller ones first
            for size in range(1, len(scope) + 1):
                for part in itertools.combinations(scope, size):
                    known = homes.setdefault(part, [])
                    if not known or len(self.scopes[known[0]]) == len(scope):
                        known.append(number)
        return homes

    def interactions(self, theta: Array) -> Interactions:
        """Return the norms of the tables of two and more variables in the zero-sum gauge, signed where scores are."""
        tables = zero_sum(zip(self.scopes, self.split(theta).tables, strict=True))
        levels = None if self.variables.scores is None else self.variables.levels
        return of_tables(tables, (self.scopes.n_variables,), levels)

    # -- rows ---------------------------------------------------------------------------------------------------------
    def log_weights(self, theta: Array, x: Array) -> Array:
        """Return the sum of the entries that each row of codes picks."""
        codes = self.variables.checked(x)
        parts = map_in_order(
            lambda block: kernels.log_weights(by_variable(codes[block]), *self.layout.arrays, theta),
            row_blocks(*codes.shape),
        )
        return np.concatenate([np.empty(0), *parts])

    def statistics(self, x: Array) -> Array:
        """Return ones at the entries that each row picks."""
        codes = self.variables.checked(x).astype(np.int64)
        indptr, members, strides, offsets = self.layout.arrays
        places = offsets[:-1] + np.add.reduceat(codes[:, members] * strides, indptr[:-1], axis=1)
        indicators = np.zeros((len(codes), self.n_parameters))
        np.put_along_axis(indicators, places, 1.0, axis=1)
        return indicators

    def mean_statistics(self, x: Array, weights: Array | None = None) -> Array:
        """Return the weighted shares of the rows that pick each entry."""
        codes = self.variables.checked(x)
        shares = checked_shares(weights, len(codes))
        return sum_in_order(
            lambda block: kernels.statistics(by_variable(codes[block]), shares[block], *self.layout.arrays),
            row_blocks(*codes.shape),
            self.n_parameters,
        )

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows of codes to the log-odds of each value given the others."""
        return bind_tables(self.layout, rows)

    # -- other forms --------------------------------------------------------------------------------------------------
    def factors(self, theta: Array) -> FactorGraph:
        """Return the tables."""
        return FactorGraph(np.array(self.variables.sizes), tuple(map(Factor, self.scopes, self.split(theta).tables)))

    def statistics_from(self, marginal: Marginal) -> Array:
        """Return the probabilities of the entries: the joint ones of each scope's variables."""
        return np.concatenate([np.empty(0), *(np.ravel(marginal(scope)) for scope in self.scopes)])

    def given(self, nodes: Sequence[int] | Array, codes: Sequence[int] | Array) -> Given[Self]:
        """Return the family of the other variables given the codes of some (see `Given`).

        What is left of each table is added to the table of the variables that are left.
        """
        fixed, held = checked_fixed(self.variables.sizes, nodes, codes)
        family, target = self._without(fixed)
        code_of = dict(zip(fixed, held.tolist(), strict=True))
        place, constant = np.full(self.n_parameters, -1), np.zeros(self.n_parameters)
        new = family.split(np.arange(family.n_parameters)).tables
        own = zip(self.scopes, self.split(place).tables, self.split(constant).tables, target.tolist(), strict=True)
        for scope, places, ones, number in own:
            part = tuple(code_of.get(i, slice(None)) for i in scope)
            if number < 0:
                ones[part] = 1.0
            else:
                places[part] = new[number]
        return Given(family, place, (place >= 0).astype(np.float64), constant)

    @cached_property
    def _without(self) -> Callable[[Scope], tuple[Self, Array]]:
        """The family of the other variables, and the table that each is left with; remembered, as rows ask again."""
        return lru_cache(maxsize=64)(self._make_without)

    def _make_without(self, nodes: Scope) -> tuple[Self, Array]:
        rest, scopes, place = self.scopes.without(nodes)
        return type(self)(scopes, self.variables.take(rest)), place
