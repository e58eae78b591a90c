"""Tables of log-weights over sets of variables: the general Markov random field (YU20 eq. 1) and the Potts model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, Slice, States
from gibbsian.backends.numba import potts
from gibbsian.backends.numba import tables as kernels
from gibbsian.backends.numba.pairwise import by_variable
from gibbsian.backends.table_entries import Entries
from gibbsian.backends.threads import map_ordered, sum_in_order
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import FAMILIES, Model
from gibbsian.models.conditionals import Conditionals, WeightedRows, bind_tables
from gibbsian.models.factors import Factor, FactorGraph, Marginal, zero_sum
from gibbsian.models.families.scoped import ScopedFamily
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions, of_tables
from gibbsian.models.scopes import Scope, Scopes
from gibbsian.models.variables import Variables, VariablesOf, as_variables, checked_fixed, checked_weights
from gibbsian.resources import require_memory, row_blocks

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Vector = TypeVar("Vector", Floats, Integers)


class TablesParts(NamedTuple):
    """Views of theta: the table of each scope, one axis for each variable."""

    tables: list[Floats]


@FAMILIES.register("tables")
class TablesFamily(ScopedFamily):
    """``P(x) = exp(sum_s table_s[x_s]) / Z`` over sets s of variables with any number of values each.

    Parameters are the entries of the tables, which is more than the distribution needs: the part of a table that
    depends on fewer of its variables can be moved to the table of those. `canonical` returns the zero-sum gauge.
    Learners start at zeros, and gradients have no component along these directions, so that fits stay in that gauge.

    Parameters
    ----------
    scopes : Scopes
        The variables of each table. The Potts model of direct coupling analysis has the single variables and the edges
        of a graph (`potts`).
    variables : Variables or callable, default=Variables.spins
        The number of values of each variable; scores are not needed.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.families.tables import TablesFamily
    >>> from gibbsian.models.variables import Variables
    >>> model = TablesFamily.model({(0, 1): np.log([[1, 2, 3], [4, 5, 6]])}, Variables.categories((2, 3)))
    >>> np.exp(model.log_weights(np.array([[0, 0], [1, 2]])))
    array([1., 6.])
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variables.real:
            raise ArgumentError("are real numbers", "build a QuadratureFamily", argument="variables")

    @classmethod
    def model(cls, tables: Mapping[Scope, Floats | Sequence[object]], variables: Variables) -> Model[Self]:
        """Return a model from its tables, one axis for each variable in the order in which the key names them."""
        of: dict[Scope, Floats] = {}
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
    def potts(cls, graph: Graph, variables: VariablesOf) -> Self:
        """Return the Potts family of a graph: a bias of each value, and a coupling for any two values of an edge.

        Examples
        --------
        >>> import gibbsian as gb
        >>> from gibbsian.models.families.tables import TablesFamily
        >>> from gibbsian.models.variables import Variables
        >>> TablesFamily.potts(gb.graphs.complete(3), Variables.categories((2, 3, 4))).n_parameters
        35
        """
        return cls(Scopes.of_graph(graph), as_variables(variables, graph.n_nodes))

    # -- layout of theta ----------------------------------------------------------------------------------------------
    @cached_property
    def layout(self) -> TableLayout:
        """The indices of the entries of the tables in theta."""
        return TableLayout(self.scopes, self.variables.sizes)

    @property
    def n_parameters(self) -> int:
        """Number of entries of all tables."""
        return int(self.layout.offsets[-1])

    @cached_property
    def penalised(self) -> Mask:
        """Mask of the entries of tables of two or more variables."""
        return np.repeat(self.scopes.sizes > 1, np.diff(self.layout.offsets))

    @property
    def statistic_range(self) -> tuple[Floats, Floats]:
        """Zero and one."""
        return np.zeros(self.n_parameters), np.ones(self.n_parameters)

    # -- parameters ---------------------------------------------------------------------------------------------------
    def tables(self, vector: Vector) -> list[Vector]:
        """Return views of a vector in the layout of theta: one for each table."""
        spans = zip(self.layout.offsets[:-1], self.layout.offsets[1:], self.layout.shapes, strict=True)
        return [vector[start:stop].reshape(shape) for start, stop, shape in spans]

    def split(self, theta: Floats) -> TablesParts:
        """Return views of the tables."""
        return TablesParts(self.tables(theta))

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the variables of each table with the codes of each entry."""
        return [
            f"{'*'.join(names[i] for i in scope)}[{','.join(map(str, codes))}]"
            for scope, shape in zip(self.scopes, self.layout.shapes, strict=True)
            for codes in np.ndindex(*shape)
        ]

    def canonical(self, theta: Floats) -> Floats:
        """Return the zero-sum gauge: the part of a table that depends on fewer variables moves to the table of those.

        Without a table of those, the smallest tables that contain them share the part. The constant is dropped. Two
        models of one distribution have the same canonical parameters.

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
        tables = self.tables(gauged)
        for scope, part in zero_sum(zip(self.scopes, self.tables(theta), strict=True)).items():
            homes = self._homes[scope]
            for c in homes:
                axes = tuple(slice(None) if i in scope else None for i in self.scopes[c])
                tables[c] += part[axes] / len(homes)
        return gauged

    @cached_property
    def _homes(self) -> dict[Scope, list[int]]:
        """Indices of the smallest tables that contain each subset of a scope."""
        homes: dict[Scope, list[int]] = {}
        for c, scope in enumerate(self.scopes):  # smaller ones first
            for size in range(1, len(scope) + 1):
                for part in itertools.combinations(scope, size):
                    smallest = homes.setdefault(part, [])
                    if not smallest or len(self.scopes[smallest[0]]) == len(scope):
                        smallest.append(c)
        return homes

    def terms_of(self, variables: Mask) -> Mask:
        """Return the mask of the entries of tables that contain any of the masked variables."""
        return np.repeat(self.scopes.touching(variables), np.diff(self.layout.offsets))

    def log_odds(self, theta: Floats) -> Floats:
        """Return the absolute entries in the zero-sum gauge."""
        return np.abs(self.canonical(theta))

    def interactions(self, theta: Floats) -> Interactions:
        """Return the norms of tables of two or more variables in the zero-sum gauge, signed if there are scores."""
        tables = zero_sum(zip(self.scopes, self.tables(theta), strict=True))
        levels = None if self.variables.scores is None else self.variables.levels
        return of_tables(tables, (self.scopes.n_variables,), levels)

    # -- rows ---------------------------------------------------------------------------------------------------------
    def log_weights(self, theta: Floats, x: States) -> Floats:
        """Return the sum of the entries that each row of codes selects."""
        codes = self.variables.checked(x)
        parts = map_ordered(
            lambda block: kernels.log_weights(by_variable(codes[block]), *self.layout.arrays, theta),
            row_blocks(*codes.shape),
        )
        return np.concatenate([np.empty(0), *parts])

    def statistics(self, x: States) -> Floats:
        """Return indicators of the entries that each row selects."""
        codes = self.variables.checked(x).astype(np.intp)
        indptr, members, strides, offsets = self.layout.arrays
        selected = offsets[:-1] + np.add.reduceat(codes[:, members] * strides, indptr[:-1], axis=1)
        indicators = np.zeros((len(codes), self.n_parameters))
        np.put_along_axis(indicators, selected, 1.0, axis=1)
        return indicators

    def mean_statistics(self, x: States, weights: Floats | None = None) -> Floats:
        """Return the weighted fraction of rows that select each entry."""
        codes = self.variables.checked(x)
        normalised = checked_weights(weights, len(codes))
        return sum_in_order(
            lambda block: kernels.statistics(by_variable(codes[block]), normalised[block], *self.layout.arrays),
            row_blocks(*codes.shape),
            self.n_parameters,
        )

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows, for losses of the log-odds of each variable given all others."""
        return bind_tables(self, rows._replace(codes=self.variables.checked(rows.codes)))

    # -- other forms --------------------------------------------------------------------------------------------------
    def factors(self, theta: Floats) -> FactorGraph:
        """Return the tables."""
        return FactorGraph(np.array(self.variables.sizes), tuple(map(Factor, self.scopes, self.tables(theta))))

    def statistics_from(self, marginal: Marginal) -> Floats:
        """Return the probabilities of the entries: the joint probabilities of the variables of each scope."""
        return np.concatenate([np.empty(0), *(np.ravel(marginal(scope)) for scope in self.scopes)])

    def given(self, nodes: Sequence[int] | Integers, codes: Sequence[int] | States) -> Given[Self]:
        """Condition on the codes of some variables: slices of tables add to the tables of their free variables."""
        fixed, given_codes = checked_fixed(self.variables.sizes, nodes, codes)
        family, index = self._without(fixed)
        code_of = dict(zip(fixed, given_codes.tolist(), strict=True))
        target, constant = np.full(self.n_parameters, -1), np.zeros(self.n_parameters)
        targets = family.tables(np.arange(family.n_parameters))
        for scope, table, one, c in zip(self.scopes, self.tables(target), self.tables(constant), index, strict=True):
            part = tuple(code_of.get(i, slice(None)) for i in scope)
            if c < 0:
                one[part] = 1.0
            else:
                table[part] = targets[c]
        return Given(family, target, (target >= 0).astype(np.float64), constant)


def is_potts(family: object) -> TypeIs[TablesFamily]:
    """Whether a family has the tables of all single variables and of pairs, and no others."""
    if not isinstance(family, TablesFamily):
        return False
    scopes = family.scopes
    return scopes.n_singles == scopes.n_variables and bool((scopes.sizes < 3).all())


def coupling_norms(model: Model[TablesFamily], apc: bool = False) -> Floats:
    """Return the Frobenius norm of each table of a pair in the zero-sum gauge, in the order of the edges.

    Parameters
    ----------
    model : Model of TablesFamily
        The distribution.
    apc : bool, default=False
        Subtract the average product correction ``F_i F_j / F``, with F_i the mean over the edges of i and F over all
        edges: strong variables have large norms with everyone (Dunn, Wahl and Gloor 2008).

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.models.families.tables import coupling_norms
    >>> family = gb.TablesFamily.potts(gb.graphs.complete(2), gb.Variables.spins)
    >>> coupling_norms(gb.Model(family, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0])))
    array([2.])
    """
    family, tables = model.family, model.canonical().parts.tables
    norms = np.array([np.linalg.norm(tables[c]) for c in np.flatnonzero(family.scopes.sizes == 2)])
    if not apc or norms.size == 0 or not norms.any():
        return norms
    (i, j), n = family.graph.edges.T, family.scopes.n_variables
    sums = np.bincount(i, norms, n) + np.bincount(j, norms, n)
    means = sums / np.maximum(family.graph.degrees, 1)
    norms -= means[i] * means[j] / norms.mean()
    return norms


class TableLayout:
    """The indices of the entries of tables in theta: one table after the other, each in C order.

    Parameters
    ----------
    scopes : Scopes
        The variables of each table.
    sizes : tuple of int
        Number of values of each variable.
    """

    def __init__(self, scopes: Scopes, sizes: tuple[int, ...]):
        self.scopes, self.sizes = scopes, sizes

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each table."""
        return tuple(tuple(self.sizes[i] for i in scope) for scope in self.scopes)

    @cached_property
    def offsets(self) -> Integers:
        """Index of the first entry of each table; the last number is the number of all entries."""
        sizes = [math.prod(shape) for shape in self.shapes]
        require_memory(8.0 * sum(sizes), f"{len(sizes)} tables with {sum(sizes):.3g} entries", "use smaller cliques")
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)

    @cached_property
    def strides(self) -> Integers:
        """Stride of the code of each member of each scope, in the order of `Scopes.csr`."""
        strides = (math.prod(shape[t + 1 :]) for shape in self.shapes for t in range(len(shape)))
        return np.fromiter(strides, np.intp, int(self.scopes.sizes.sum()))

    @property
    def arrays(self) -> tuple[Integers, Integers, Integers, Integers]:
        """The layout for kernels: ``(indptr, members, strides, offsets)``."""
        return *self.scopes.csr, self.strides, self.offsets

    @cached_property
    def entries(self) -> Entries:
        """The tables of each variable, as the Gibbs kernels read them."""
        pointers, scopes = self.scopes.membership
        other_pointers, others = self.scopes.companions
        members = self.scopes.csr[1]
        strides = self.strides[np.argsort(members, kind="stable")]
        return Entries(pointers, self.offsets[scopes], strides, other_pointers, members[others], self.strides[others])

    @cached_property
    def orientation(self) -> Orientation:
        """The tables of pairs as seen from each end; an error if a table has three or more variables."""
        if (self.scopes.sizes > 2).any():
            raise ArgumentError("tables of three or more variables have no two ends")
        return Orientation(self.scopes.graph, np.array(self.sizes), self.offsets[self.scopes.n_singles : -1])


class Orientation:
    """Tables of pairs as seen from each end, for sums and samplers that visit one variable after the other.

    Parameters
    ----------
    graph : Graph
        The pairs.
    sizes : ndarray of int
        Number of values of each variable.
    offsets : ndarray of int
        Index of the first entry of the table of each edge.
    """

    def __init__(self, graph: Graph, sizes: Integers, offsets: Integers):
        self.graph, self._sizes, self._offsets = graph, sizes, offsets - offsets[:1].sum()
        indptr, neighbours, edge_of = graph.csr
        # row lengths in the blocks of each variable: its number of values, padded to vector lanes
        self.widths = -(-sizes // potts.LANES) * potts.LANES
        blocks = sizes[neighbours] * np.repeat(self.widths, np.diff(indptr))
        # offsets of the blocks of neighbours, in the order of ``graph.csr``
        self.starts = np.concatenate([[0], np.cumsum(blocks)])
        self._arrays = self._offsets, indptr, neighbours, edge_of, sizes, self.starts, self.widths

    @property
    def size(self) -> int:
        """Number of entries, padding included."""
        return int(self.starts[-1])

    def of(self, couplings: Floats) -> Floats:
        """Return the tables from both ends, all blocks of a variable together."""
        oriented = np.zeros(self.size)
        potts.orient(couplings, *self._arrays, oriented)
        return oriented

    def folded(self, oriented: Floats) -> Floats:
        """Return for each entry of a coupling table the sum over both ends: the transpose of `of`."""
        edges = self.graph.edges
        couplings = np.zeros(int((self._sizes[edges[:, 0]] * self._sizes[edges[:, 1]]).sum()))
        potts.fold(oriented, *self._arrays, couplings)
        return couplings

    def span(self, i: int) -> tuple[Integers, Integers, Slice, int]:
        """Return of a variable its neighbours, the offsets of their blocks, the slice of all, and their row length."""
        indptr, neighbours, _ = self.graph.csr
        first, last = indptr[i], indptr[i + 1]
        starts = self.starts[first:last] - self.starts[first]
        return neighbours[first:last], starts, slice(*self.starts[[first, last]].tolist()), self.widths[i]
