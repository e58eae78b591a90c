"""What models made of tables have in common: where the entries stand, and the whole contract over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from gibbsian.backends.numba import tables as kernels
from gibbsian.backends.numba.pairwise import by_variable
from gibbsian.backends.parallel import map_in_order, sum_in_order
from gibbsian.domain import AnyDomain
from gibbsian.models.base import ExponentialFamily
from gibbsian.models.conditionals import Conditionals, WeightedRows, bind_tables
from gibbsian.models.factors import Factor, FactorGraph, Marginal
from gibbsian.models.given import Given
from gibbsian.models.layout import Layout
from gibbsian.models.states import checked_fixed, checked_shares, checked_states
from gibbsian.models.variables import variables_of
from gibbsian.resources import row_blocks


class TableModel(ExponentialFamily):
    """The contract of a model over its tables; `MarkovRandomField` and `PottsModel` are two ways to have them.

    A subclass has ``n_variables``, ``theta``, ``domain`` and the `Layout` of its tables. Statistics
    are indicators: one for each entry, 1 where the state picks it.
    """

    n_variables: int
    theta: np.ndarray
    domain: AnyDomain
    layout: Layout

    def _on(self, layout: Layout, domain: AnyDomain, theta: np.ndarray) -> Self:
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
        domain = self.domain.take(rest)
        layout = Layout(scopes, variables_of(domain, rest.size))
        return self._on(layout, domain, np.zeros(layout.size)), place
