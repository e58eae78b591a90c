"""What models made of tables have in common: where the entries stand, and the whole contract over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from gibbsian.backends.numba import potts
from gibbsian.backends.numba import tables as kernels
from gibbsian.backends.numba.pairwise import by_variable
from gibbsian.backends.parallel import map_in_order, sum_in_order
from gibbsian.backends.table_entries import Entries
from gibbsian.domain import AnyDomain
from gibbsian.graphs import Graph
from gibbsian.models.base import ExponentialFamily
from gibbsian.models.conditionals import Conditionals, WeightedRows, bind_tables
from gibbsian.models.factors import Factor, FactorGraph, Marginal
from gibbsian.models.given import Given
from gibbsian.models.scopes import Scopes
from gibbsian.models.states import checked_fixed, checked_shares, checked_states
from gibbsian.resources import require_memory, row_blocks


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the entries of the tables stand in theta, and all else that does not depend on their values.

    Parameters
    ----------
    scopes : Scopes
        The variables of each table.
    domain : Domain or Categories
        Their values.
    """

    scopes: Scopes
    domain: AnyDomain

    @cached_property
    def cardinalities(self) -> np.ndarray:
        """Number of values of each variable."""
        return self.domain.cardinalities(self.scopes.n_variables)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each table."""
        sizes = self.cardinalities.tolist()
        return tuple(tuple(sizes[i] for i in scope) for scope in self.scopes)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each table begins, and the end of the last."""
        sizes = [math.prod(shape) for shape in self.shapes]
        require_memory(8.0 * sum(sizes), f"{len(sizes)} tables with {sum(sizes):.3g} entries", "use smaller cliques")
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def strides(self) -> np.ndarray:
        """What one more of a code adds to the place of an entry, for each member of each scope."""
        steps = (math.prod(shape[t + 1 :]) for shape in self.shapes for t in range(len(shape)))
        return np.fromiter(steps, np.int64, int(self.scopes.sizes.sum()))

    @cached_property
    def n_singles(self) -> int:
        """Number of tables of one variable, which stand first."""
        return int((self.scopes.sizes == 1).sum())

    @property
    def size(self) -> int:
        """Number of entries of all tables."""
        return int(self.offsets[-1])

    @cached_property
    def penalised(self) -> np.ndarray:
        """True at the tables of two and more variables."""
        return np.repeat(self.scopes.sizes > 1, np.diff(self.offsets))

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What the kernels want: ``(indptr, members, strides, offsets)``."""
        return *self.scopes.csr, self.strides, self.offsets

    @cached_property
    def entries(self) -> Entries:
        """The tables that hold each variable, as kernels want them."""
        pointers, held = self.scopes.membership
        other_pointers, places = self.scopes.companions
        members = self.scopes.csr[1]
        own = np.argsort(members, kind="stable")  # where each variable stands in its scopes, in the order of entries
        others = other_pointers, members[places], self.strides[places]
        return Entries(pointers, self.offsets[held], self.strides[own], *others)

    @cached_property
    def orientation(self) -> Orientation:
        """The tables of pairs as seen from each end."""
        return Orientation(self.scopes.graph, self.cardinalities, self.offsets[self.n_singles : -1])

    def tables(self, theta: np.ndarray) -> list[np.ndarray]:
        """Cut a vector into the tables; they are views."""
        spans = zip(self.offsets[:-1], self.offsets[1:], self.shapes, strict=True)
        return [theta[start:stop].reshape(shape) for start, stop, shape in spans]


class Orientation:
    """Tables of pairs as seen from each end: what sums and samplers want that go by variable.

    Parameters
    ----------
    graph : Graph
        The pairs.
    sizes : ndarray of int
        Number of values of each variable.
    offsets : ndarray of int
        Where the table of each edge begins.
    """

    def __init__(self, graph: Graph, sizes: np.ndarray, offsets: np.ndarray):
        self.graph, self._sizes, self._offsets = graph, sizes, offsets - offsets[:1].sum()
        indptr, heads, edge_of = graph.csr
        # the number of values of each variable, rounded up: the length of a row in its blocks
        self.widths = -(-sizes // potts.LANES) * potts.LANES
        blocks = sizes[heads] * np.repeat(self.widths, np.diff(indptr))
        # where the block of each neighbour begins, in the order of ``graph.csr``
        self.starts = np.concatenate([[0], np.cumsum(blocks)])
        self._arrays = self._offsets, indptr, heads, edge_of, sizes, self.starts, self.widths

    @property
    def size(self) -> int:
        """Number of entries, with what rows are padded by."""
        return int(self.starts[-1])

    def of(self, couplings: np.ndarray) -> np.ndarray:
        """Return the tables from both ends, all of a variable together."""
        oriented = np.zeros(self.size)
        potts.orient(couplings, *self._arrays, oriented)
        return oriented

    def folded(self, oriented: np.ndarray) -> np.ndarray:
        """Return the sums of what both ends say of each entry."""
        edges = self.graph.edges
        couplings = np.zeros(int((self._sizes[edges[:, 0]] * self._sizes[edges[:, 1]]).sum()))
        potts.fold(oriented, *self._arrays, couplings)
        return couplings

    def span(self, i: int) -> tuple[np.ndarray, np.ndarray, slice, int]:
        """Return the neighbours of a variable, where their blocks begin among its own, where those stand, and a row."""
        indptr, heads, _ = self.graph.csr
        first, last = indptr[i], indptr[i + 1]
        starts = self.starts[first:last] - self.starts[first]
        return heads[first:last], starts, slice(*self.starts[[first, last]].tolist()), self.widths[i]


class TableModel(ExponentialFamily):
    """The contract of a model over its tables; `MarkovRandomField` and `PottsModel` are two ways to have them.

    A subclass has ``n_variables``, ``theta``, ``domain`` and the `Layout` of its tables. Statistics
    are indicators: one for each entry, 1 where the state picks it.
    """

    n_variables: int
    theta: np.ndarray
    domain: AnyDomain
    layout: Layout

    def _on(self, layout: Layout, theta: np.ndarray) -> Self:
        """Return a model of the same kind over other variables."""
        raise NotImplementedError

    # -- layout -------------------------------------------------------------------------------------------------------
    @property
    def cardinalities(self) -> np.ndarray:
        """Number of values of each variable."""
        return self.layout.cardinalities

    @property
    def tables(self) -> list[np.ndarray]:
        """The table of each scope, one axis for each variable."""
        return self.layout.tables(self.theta)

    @property
    def penalised(self) -> np.ndarray:
        """True at tables of two and more variables: an L1 penalty leaves biases alone."""
        return self.layout.penalised

    @property
    def statistic_range(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest value of each statistic: zero and one."""
        return np.zeros(self.theta.size), np.ones(self.theta.size)

    # -- what learners and expectations ask ---------------------------------------------------------------------------
    def statistics(self, x: np.ndarray) -> np.ndarray:
        """Return ones at the entries that each state picks."""
        codes = self.domain.to_codes(checked_states(self, x)).astype(np.int64)
        indptr, members, strides, offsets = self.layout.arrays
        places = offsets[:-1] + np.add.reduceat(codes[:, members] * strides, indptr[:-1], axis=1)
        indicators = np.zeros((len(codes), self.theta.size))
        np.put_along_axis(indicators, places, 1.0, axis=1)
        return indicators

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the variables of each table with the codes of each entry."""
        return [
            f"{'*'.join(names[i] for i in scope)}[{','.join(map(str, codes))}]"
            for scope, shape in zip(self.layout.scopes, self.layout.shapes, strict=True)
            for codes in np.ndindex(*shape)
        ]

    def canonical(self) -> Self:
        """Return the same distribution in the zero-sum gauge."""
        return self.zero_sum()

    def zero_sum(self) -> Self:
        """Return the same distribution with tables that sum to zero along each axis."""
        raise NotImplementedError

    def touches(self, variables: np.ndarray) -> np.ndarray:
        """Return which entries belong to a table of any variable of a mask."""
        return np.repeat(self.layout.scopes.touching(variables), np.diff(self.layout.offsets))

    def log_odds(self) -> np.ndarray:
        """Return by how much each parameter alone can change a log-probability, in the zero-sum gauge."""
        return np.abs(self.zero_sum().theta)

    # -- distribution -------------------------------------------------------------------------------------------------
    def _rows(self, states: np.ndarray) -> np.ndarray:
        return by_variable(self.domain.to_codes(states))

    def energy(self, x: np.ndarray) -> np.ndarray:
        """Return minus the sum of the entries that each state picks."""
        states = checked_states(self, x)
        parts = map_in_order(
            lambda block: kernels.log_weights(self._rows(states[block]), *self.layout.arrays, self.theta),
            row_blocks(*states.shape),
        )
        return -np.concatenate([np.empty(0), *parts])

    def mean_statistics(self, x: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted shares of the states that pick each entry, in the layout of theta."""
        states = checked_states(self, x)
        shares = checked_shares(weights, len(states))
        return sum_in_order(
            lambda block: kernels.statistics(self._rows(states[block]), shares[block], *self.layout.arrays),
            row_blocks(*states.shape),
            self.theta.size,
        )

    def bind(self, rows: WeightedRows) -> Conditionals:
        """Return the conditionals of rows that have been checked."""
        return bind_tables(self.layout, rows)

    # -- other forms of the same distribution -----------------------------------------------------------------------
    def factors(self) -> FactorGraph:
        """Return the tables over T."""
        tables = self.layout.tables(self.theta)
        return FactorGraph(self.cardinalities, tuple(map(Factor, self.layout.scopes, tables)))

    def statistics_from(self, marginal: Marginal) -> np.ndarray:
        """Return the probabilities of the entries: the joint ones of each scope's variables."""
        return np.concatenate([np.empty(0), *(np.ravel(marginal(scope)) for scope in self.layout.scopes)])

    def given(self, nodes: Sequence[int] | np.ndarray, codes: Sequence[int] | np.ndarray) -> Given[Self]:
        """Return the distribution of the other variables given the codes of some (see `Given`).

        What is left of each table is added to the table of the variables that are left.
        """
        fixed, held = checked_fixed(self.domain.cardinalities(self.n_variables), nodes, codes)
        family, target = self._family_without(fixed)
        picked: list[int | slice] = [slice(None)] * self.n_variables
        for node, code in zip(fixed, held.tolist(), strict=True):
            picked[node] = code
        place, constant, left = np.full(self.theta.size, -1), np.zeros(self.theta.size), family.layout
        new = left.tables(np.arange(left.size))
        own = zip(self.layout.scopes, self.layout.tables(place), self.layout.tables(constant), strict=True)
        for (scope, places, ones), number in zip(own, target.tolist(), strict=True):
            part = tuple(picked[i] for i in scope)
            if number < 0:
                ones[part] = 1.0
            else:
                places[part] = new[number]
        return Given(family, place, (place >= 0).astype(np.float64), constant)

    def _make_family_without(self, nodes: tuple[int, ...]) -> tuple[Self, np.ndarray]:
        rest, scopes, place = self.layout.scopes.without(nodes)
        layout = Layout(scopes, self.domain.take(rest))
        return self._on(layout, np.zeros(layout.size)), place
