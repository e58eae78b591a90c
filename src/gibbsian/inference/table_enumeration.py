"""Exact inference by one table of all states: from factors of any order, or by a fast transform of theta."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Self

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.inference.contract import (
    factors_of,
    graph_of,
    has_quadrature,
    levels_of,
    log_weight_table,
    rows_of,
    sizes_of,
)
from gibbsian.inference.engine import ENGINES, AnyEngine, Cost, Engine, ExactAnswers, check_n_samples, check_nodes
from gibbsian.inference.log_tables import Axes, LogTables, add_up, digits, marginals
from gibbsian.inference.quadrature import N_CONFIGURATIONS, SEED, require_resolved
from gibbsian.models.factors import FactorFamily, TransformFamily
from gibbsian.models.family import keeps
from gibbsian.models.ising import is_ising
from gibbsian.resources import require_memory

# Tables of a model are put together and taken apart again in Python.
SECONDS_PER_SCOPE, SECONDS_PER_PARAMETER = 4e-5, 2e-6
SECONDS_PER_STATE, SECONDS_PER_TRANSFORMED = 4e-8, 1e-7
# Predictions stop growing here, well before a float64 overflows.
LARGEST_EXPONENT = 900.0
# Log-weights closer than this, relative to the sum of the factors' largest, differ by rounding only.
TIE = 1e-14


def needs_factors(family: Any) -> bool:
    """Say whether a family is served through its factors: it has some, and no form in spins."""
    return keeps(family, FactorFamily) and not is_ising(family)


def has_transform(family: Any) -> bool:
    """Say whether a family lists the log-weights of all states by a transform of its own."""
    return keeps(family, TransformFamily) and family.has_fast_transform


def table_seconds(family: Any) -> float:
    """Predict how long the tables of a family's factors take to put together and to take apart again."""
    graph = graph_of(family)
    n_scopes = graph.n_nodes + graph.n_edges  # about: factors are not listed before it is known they fit
    return float(1e-4 + SECONDS_PER_SCOPE * n_scopes + SECONDS_PER_PARAMETER * family.n_parameters)


class FactorAnswers(ExactAnswers[AnyEngine]):
    """Exact answers from joint probabilities: subclasses sum over states, this class speaks in the model's words.

    Inside, variables are numbered without those that have one value only (see `LogTables`), and states are codes.
    """

    @cached_property
    def tables(self) -> LogTables:
        """The factors."""
        return LogTables.of(factors_of(self.engine.family, self.theta))

    @cached_property
    def _cardinalities(self) -> np.ndarray:
        """Number of values of every variable of the model."""
        return sizes_of(self.engine.family)

    def checked(self) -> Self:
        """Return the answers, or refuse them where few nodes hold a density of real variables."""
        if has_quadrature(self.engine.family):
            require_resolved(
                factors_of(self.engine.family, self.theta), self.draw(N_CONFIGURATIONS, np.random.default_rng(SEED))
            )
        return self

    # -- what subclasses compute ---------------------------------------------------------------------------------------
    @cached_property
    @abstractmethod
    def known(self) -> dict[Axes, np.ndarray]:
        """Joint probabilities of each variable and of the variables of each factor."""

    @abstractmethod
    def joint(self, scope: Axes) -> np.ndarray:
        """Joint probabilities of variables (ascending) that share no factor."""

    @abstractmethod
    def kept_products(self, levels: list[np.ndarray]) -> np.ndarray:
        """``E[x_i x_j]`` of the variables that are kept, for i != j."""

    @cached_property
    @abstractmethod
    def kept_mode(self) -> tuple[np.ndarray, float]:
        """Codes of a state of largest probability, and its log-probability."""

    @abstractmethod
    def draw(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Codes of independent states."""

    # -- answers -------------------------------------------------------------------------------------------------------
    @cached_property
    def moments(self) -> np.ndarray:
        """The expected sufficient statistics, in the layout of theta."""
        return self.engine.family.statistics_from(self._marginal)

    def marginal(self, nodes: Iterable[int]) -> np.ndarray:
        """Return the joint probabilities of some variables, an axis for each in the order given, indexed by codes."""
        return self._marginal(tuple(check_nodes(nodes, self._cardinalities.size).tolist()))

    def _marginal(self, nodes: tuple[int, ...]) -> np.ndarray:
        wanted = [self._number[node] for node in nodes]
        free = [number for number in wanted if number >= 0]
        scope = tuple(sorted(free))
        table = self.known.get(scope)
        if table is None:
            table = self._from_a_factor(scope)
        if scope != tuple(free):
            table = table.transpose(np.argsort(np.argsort(free)))
        return table.reshape([self._cardinalities[node] for node in nodes]) if len(free) < len(nodes) else table.copy()

    @cached_property
    def _number(self) -> list[int]:
        """The number inside of each variable, -1 for one with a single value."""
        number = np.full(self._cardinalities.size, -1)
        number[self.tables.kept] = np.arange(len(self.tables.kept))
        return number.tolist()

    @cached_property
    def _scopes_of(self) -> list[set[Axes]]:
        """For each variable, the scopes of the factors that hold it."""
        held: list[set[Axes]] = [set() for _ in self.tables.cardinalities]
        for scope in self.tables.tables:
            for variable in scope:
                held[variable].add(scope)
        return held

    def _from_a_factor(self, scope: Axes) -> np.ndarray:
        """Sum the probabilities of a factor that holds the scope, where there is one."""
        if not scope:
            return np.ones(())
        holding = set.intersection(*(self._scopes_of[variable] for variable in scope))
        if not holding:
            return self.joint(scope)
        smallest = min(holding, key=len)
        axes = tuple(smallest.index(variable) for variable in scope)
        return marginals(self.known[smallest], [axes])[axes]

    @cached_property
    def means(self) -> np.ndarray:
        """E[x_i] of each variable, where its values are numbers."""
        return np.array([self._marginal((node,)) @ numbers for node, numbers in enumerate(self._levels())])

    @cached_property
    def second_moments(self) -> np.ndarray:
        """The matrix E[x_i x_j] of all pairs, where the values are numbers."""
        levels, n, kept = self._levels(), self._cardinalities.size, self.tables.kept
        require_memory(24.0 * n**2, f"the matrix of second moments of {n} variables", "ask for `moments`")
        second = np.outer(self.means, self.means)  # right where one of the two has a single value
        second[np.ix_(kept, kept)] = self.kept_products([levels[node] for node in kept])
        np.fill_diagonal(second, [self._marginal((node,)) @ numbers**2 for node, numbers in enumerate(levels)])
        return second

    def _levels(self) -> tuple[np.ndarray, ...]:
        levels = levels_of(self.engine.family)
        if levels is None:
            raise ArgumentError(
                "categories have no means, because they are not numbers",
                "ask for marginal(nodes), the probabilities of their values",
            )
        return levels

    @cached_property
    def mode(self) -> tuple[np.ndarray, float]:
        """A state of largest probability and its log-probability."""
        if has_quadrature(self.engine.family):
            raise ArgumentError(
                "nodes of continuous variables are weighted, so none is a mode", "ask `most_probable` of a machine"
            )
        codes, log_probability = self.kept_mode
        return self._states(codes[None, :])[0], float(log_probability)

    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent states."""
        n_samples, n = check_n_samples(n_samples), self._cardinalities.size
        numbers = n_samples * 8.0 * (2 * max(self.tables.cardinalities, default=1) + 8)
        require_memory(4.0 * n_samples * n + numbers, f"{n_samples} samples of {n} variables", "draw fewer at a time")
        return self._states(self.draw(n_samples, rng))

    def _states(self, codes: np.ndarray) -> np.ndarray:
        """Turn codes of the variables that are kept into states of the model."""
        every = np.zeros((len(codes), self._cardinalities.size), np.int8)
        every[:, self.tables.kept] = codes
        return rows_of(self.engine.family, every)


@ENGINES.register("table-enumeration")
class TableEnumeration(Engine):
    """Exact answers by one table of the probabilities of all states.

    The log-weights are added up from factors, or made in n 2^n additions however many parameters there are, where the
    family has a transform: Walsh-Hadamard with spins and in the full span (TA22 section 2.2.3), sums over subsets with
    0/1. States are numbered as in a C-ordered table: the last variable changes fastest.

    Parameters
    ----------
    family : Family
        Any with up to about 10^9 states; `exact` checks what that costs.
    max_seconds : float
        Not needed: nothing takes longer than the table.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.models.HigherOrderModel.build({(0, 1, 2): 0.5}, n_variables=3)
    >>> gb.inference.TableEnumeration(model.family).at(model.theta).moments.round(4)            # tanh 0.5
    array([0.4621])
    """

    @classmethod
    def price(cls, family: Any) -> Cost | None:
        """Predict the cost for families that have factors, or a transform."""
        transform = has_transform(family)
        if not (transform or needs_factors(family)):
            return None
        exponent = float(np.log2(sizes_of(family)).sum())
        n_states = 2.0 ** min(exponent, LARGEST_EXPONENT)
        own = 1e-4 + SECONDS_PER_TRANSFORMED * family.n_parameters if transform else table_seconds(family)
        # the table of states, and while it is built or summed up halves, quarters ... of it
        n_bytes = 8.0 * (2 * n_states + 4 * family.n_parameters)
        bound = exponent > LARGEST_EXPONENT
        return Cost("enumeration", own + SECONDS_PER_STATE * n_states, n_bytes, lower_bound=bound)

    @cached_property
    def transforms(self) -> bool:
        """Whether the log-weights are a transform of theta."""
        return has_transform(self.family)

    def at(self, theta: np.ndarray) -> TableAnswers:
        """Return the answers at some parameters."""
        return TableAnswers(self, theta)


class TableAnswers(FactorAnswers[TableEnumeration]):
    """Answers from a table of the probabilities of all states."""

    @cached_property
    def tables(self) -> LogTables:
        """The factors; none where there is a transform."""
        if not self.engine.transforms:
            return super().tables
        return LogTables(tuple(self._cardinalities.tolist()), {}, 0.0, np.arange(self._cardinalities.size))

    @cached_property
    def _distribution(self) -> tuple[np.ndarray, float, int]:
        """Probabilities of all states, log Z without the constant, and the first of the most probable states."""
        if self.engine.transforms:
            table = log_weight_table(self.engine.family, self.theta).reshape(self.tables.cardinalities)
            scale = float(np.abs(self.theta).sum())
        else:
            table = add_up(self.tables.cardinalities, list(self.tables.tables.items()))
            scale = sum(float(np.abs(part).max()) for part in self.tables.tables.values())
        top = float(table.max())
        best = int(np.argmax(table >= top - TIE * scale))
        table -= top
        np.exp(table, out=table)
        total = float(table.sum())
        table /= total
        return table, top + float(np.log(total)), best

    @cached_property
    def log_partition(self) -> float:
        """Log Z."""
        return self._distribution[1] + self.tables.constant

    @cached_property
    def moments(self) -> np.ndarray:
        """The expected sufficient statistics, in the layout of theta."""
        if self.engine.transforms:
            return self.engine.family.statistics_from_table(self._distribution[0].ravel())
        return super().moments

    @cached_property
    def known(self) -> dict[Axes, np.ndarray]:
        """Joint probabilities of each variable and of the variables of each factor."""
        singles: list[Axes] = [(variable,) for variable in range(len(self.tables.cardinalities))]
        return marginals(self._distribution[0], [*singles, *self.tables.tables])

    def joint(self, scope: Axes) -> np.ndarray:
        """Joint probabilities of variables (ascending) that share no factor."""
        return marginals(self._distribution[0], [scope])[scope]

    def kept_products(self, levels: list[np.ndarray]) -> np.ndarray:
        """``E[x_i x_j]`` of the variables that are kept, for i != j."""
        pairs: list[Axes] = list(itertools.combinations(range(len(levels)), 2))
        second = np.empty((len(levels), len(levels)))
        for (i, j), joint in marginals(self._distribution[0], pairs).items():
            second[i, j] = second[j, i] = levels[i] @ joint @ levels[j]
        return second

    @cached_property
    def kept_mode(self) -> tuple[np.ndarray, float]:
        """Codes of a state of largest probability, and its log-probability."""
        table, _, best = self._distribution
        return digits(np.array([best]), table.shape)[0], float(np.log(table.flat[best]))

    def draw(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw a row of the table by its mass, then the column within the row."""
        shape = self.tables.cardinalities
        half = int(np.searchsorted(np.cumsum(np.log2(shape)), np.log2(shape).sum() / 2))
        rows = self._distribution[0].reshape(int(np.prod(shape[:half], dtype=np.int64)), -1)
        uniforms = rng.random((2, n_samples))
        drawn = _place(np.cumsum(rows.sum(axis=1)), uniforms[0])
        by_row = np.argsort(drawn, kind="stable")
        present, starts = np.unique(drawn[by_row], return_index=True)
        columns = np.empty(n_samples, np.int64)
        for row, start, stop in zip(present, starts, np.append(starts, n_samples)[1:], strict=True):
            members = by_row[start:stop]
            columns[members] = _place(np.cumsum(rows[row]), uniforms[1][members])
        return digits(drawn * rows.shape[1] + columns, shape)


def _place(cumulative: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Where uniform numbers fall among cumulative masses."""
    found = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    return np.minimum(found, len(cumulative) - 1)
