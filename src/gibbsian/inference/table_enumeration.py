"""Exact inference by one table of all states: from factors of any order, or by a fast transform of theta."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import Protocol, Self, TypeGuard, runtime_checkable

import numpy as np

from gibbsian.arrays import Codes, Floats, States
from gibbsian.errors import ArgumentError
from gibbsian.inference.engine import ENGINES, Cost, Engine, ExactAnswers, check_n_samples, check_nodes
from gibbsian.inference.log_tables import Axes, LogTables, add_up, digits, invert, marginals
from gibbsian.inference.quadrature import N_CONFIGURATIONS, SEED, require_resolved
from gibbsian.models.base import DiscreteFamily, Family, keeps
from gibbsian.models.ising import is_ising
from gibbsian.resources import require_memory

# Time to build the tables of factors and to take sums of them, in Python.
SECONDS_PER_SCOPE, SECONDS_PER_PARAMETER = 4e-5, 2e-6
SECONDS_PER_STATE, SECONDS_PER_TRANSFORMED = 4e-8, 1e-7
# Largest exponent in predictions: powers of two beyond it overflow float64.
LARGEST_EXPONENT = 900.0
# Log-weights closer than this, relative to the sum of the factors' largest, differ by rounding only.
TIE = 1e-14


@runtime_checkable
class TransformFamily(DiscreteFamily, Protocol):
    """A discrete family with a fast transform from theta to the log-weights of all rows, if `has_fast_transform`."""

    @property
    def has_fast_transform(self) -> bool:
        """Whether there is a transform."""

    def log_weight_table(self, theta: Floats) -> Floats:
        """Return the log-weights of all rows, a new array; variable 0 is the most significant in their indices."""

    def statistics_from_table(self, probabilities: Floats) -> Floats:
        """Return the expected statistics, given the probabilities of all rows by their indices."""


def needs_factors(family: Family) -> TypeGuard[DiscreteFamily]:
    """Return whether the engines of factors serve a family: it is discrete, and not written in spins."""
    return keeps(family, DiscreteFamily) and not is_ising(family)


def has_transform(family: Family) -> TypeGuard[TransformFamily]:
    """Return whether a family has a transform from theta to the log-weights of all states."""
    return keeps(family, TransformFamily) and family.has_fast_transform


def table_seconds(family: DiscreteFamily) -> float:
    """Predict the time to build the tables of a family's factors and to take the statistics from their marginals."""
    n_scopes = family.graph.n_nodes + family.graph.n_edges  # an estimate: a list of factors may be too long to build
    return 1e-4 + SECONDS_PER_SCOPE * n_scopes + SECONDS_PER_PARAMETER * family.n_parameters


class FactorEngine(Engine):
    """An engine of discrete families."""

    family: DiscreteFamily


class FactorAnswers(ExactAnswers):
    """Exact answers from joint probabilities: subclasses sum over the free variables, this class adds the others.

    Variables with one value are not free (see `LogTables`).
    """

    engine: FactorEngine

    @cached_property
    def tables(self) -> LogTables:
        """The factors."""
        return LogTables.of(self.engine.family.factors(self.theta))

    def checked(self) -> Self:
        """Return the answers, or refuse them where few nodes hold a density of real variables."""
        if self.engine.family.variables.real:
            configurations = self.draw(N_CONFIGURATIONS, np.random.default_rng(SEED))
            require_resolved(self.engine.family.factors(self.theta), configurations)
        return self

    # -- computed by subclasses ----------------------------------------------------------------------------------------
    @cached_property
    @abstractmethod
    def factor_marginals(self) -> dict[Axes, Floats]:
        """Joint probabilities of each free variable and of the variables of each factor."""

    @abstractmethod
    def joint(self, scope: Axes) -> Floats:
        """Joint probabilities of free variables (ascending) that share no factor."""

    @abstractmethod
    def free_products(self, levels: list[Floats]) -> Floats:
        """``E[x_i x_j]`` of the free variables, for i != j."""

    @cached_property
    @abstractmethod
    def free_mode(self) -> tuple[Codes, float]:
        """The free variables in a state of largest probability, and its log-probability."""

    @abstractmethod
    def draw(self, n_samples: int, rng: np.random.Generator) -> Codes:
        """Draw independent states of the free variables."""

    # -- answers -------------------------------------------------------------------------------------------------------
    @cached_property
    def moments(self) -> Floats:
        """The expected sufficient statistics, in the layout of theta."""
        return self.engine.family.statistics_from(self._marginal)

    def marginal(self, nodes: Iterable[int]) -> Floats:
        """Return the joint probabilities of some variables, an axis for each in the order given, indexed by codes."""
        return self._marginal(tuple(check_nodes(nodes, len(self.engine.family.variables)).tolist()))

    def _marginal(self, nodes: Axes) -> Floats:
        free = [self._index[node] for node in nodes if node in self._index]
        scope = tuple(sorted(free))
        table = self.factor_marginals[scope] if scope in self.factor_marginals else self._from_a_factor(scope)
        if scope != tuple(free):
            table = table.transpose(np.argsort(np.argsort(free)))
        sizes = self.engine.family.variables.sizes
        return table.reshape([sizes[node] for node in nodes]) if len(free) < len(nodes) else table.copy()

    @cached_property
    def _index(self) -> dict[int, int]:
        """The index of each free variable among the free ones."""
        return {node: index for index, node in enumerate(self.tables.free.tolist())}

    def _from_a_factor(self, scope: Axes) -> Floats:
        """Sum the probabilities of a factor that contains the scope, or compute the joint distribution."""
        if not scope:
            return np.ones(())
        containing = [each for each in self.tables.tables if set(each) >= set(scope)]
        if not containing:
            return self.joint(scope)
        smallest = min(containing, key=len)
        axes = tuple(smallest.index(variable) for variable in scope)
        return marginals(self.factor_marginals[smallest], [axes])[axes]

    @cached_property
    def means(self) -> Floats:
        """E[x_i] of each variable, if its values are numbers."""
        return np.array([self._marginal((node,)) @ levels for node, levels in enumerate(self._levels)])

    @cached_property
    def second_moments(self) -> Floats:
        """The matrix E[x_i x_j] of all pairs, if the values are numbers."""
        levels, n, free = self._levels, len(self.engine.family.variables), self.tables.free
        require_memory(24.0 * n**2, f"the matrix of second moments of {n} variables", "ask for `moments`")
        second: Floats = np.outer(self.means, self.means)  # right where one of the two has a single value
        second[np.ix_(free, free)] = self.free_products([levels[node] for node in free])
        np.fill_diagonal(second, [self._marginal((node,)) @ each**2 for node, each in enumerate(levels)])
        return second

    @property
    def _levels(self) -> tuple[Floats, ...]:
        if self.engine.family.variables.scores is None:
            raise ArgumentError(
                "categories have no means, because they are not numbers",
                "ask for marginal(nodes), the probabilities of their values",
            )
        return self.engine.family.variables.levels

    @cached_property
    def mode(self) -> tuple[Codes, float]:
        """A state of largest probability and its log-probability."""
        if self.engine.family.variables.real:
            raise ArgumentError(
                "nodes of continuous variables are weighted, so none is a mode", "ask `most_probable` of a machine"
            )
        codes, log_probability = self.free_mode
        return self._with_constants(codes[None, :])[0], log_probability

    def sample(self, n_samples: int, rng: np.random.Generator) -> States:
        """Draw independent states."""
        n_samples, n = check_n_samples(n_samples), len(self.engine.family.variables)
        n_bytes = n_samples * 8.0 * (2 * max(self.tables.cardinalities, default=1) + 8)
        require_memory(4.0 * n_samples * n + n_bytes, f"{n_samples} samples of {n} variables", "draw fewer at a time")
        return self.engine.family.variables.rows_of(self._with_constants(self.draw(n_samples, rng)))

    def _with_constants(self, codes: Codes) -> Codes:
        """Return codes of all variables, given those of the free ones."""
        every = np.zeros((len(codes), len(self.engine.family.variables)), np.int8)
        every[:, self.tables.free] = codes
        return every


@ENGINES.register("table-enumeration")
class TableEnumeration(FactorEngine):
    """Exact answers by one table of the probabilities of all states.

    The log-weights are added up from factors. Families with a transform (Walsh-Hadamard with spins and in the full
    span, TA22 section 2.2.3; sums over subsets with 0/1) need n 2^n additions for any number of parameters. States are
    numbered as in a C-ordered table: the last variable changes fastest.

    Parameters
    ----------
    family : Family
        Any discrete family with up to about 10^9 states; `exact` checks the cost.
    max_seconds : float
        Not used: no question takes longer than the table.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.ProductsFamily.model({(0, 1, 2): 0.5}, n_variables=3)
    >>> gb.inference.TableEnumeration(model.family).at(model.theta).moments.round(4)            # tanh 0.5
    array([0.4621])
    """

    @classmethod
    def price(cls, family: Family) -> Cost | None:
        """Predict the cost for families of factors."""
        if not needs_factors(family):
            return None
        exponent = float(np.log2(family.variables.sizes).sum())
        n_states = 2.0 ** min(exponent, LARGEST_EXPONENT)
        transformed = 1e-4 + SECONDS_PER_TRANSFORMED * family.n_parameters
        seconds = (transformed if has_transform(family) else table_seconds(family)) + SECONDS_PER_STATE * n_states
        # the table of states, and while it is built or summed up halves, quarters ... of it
        n_bytes = 8.0 * (2 * n_states + 4 * family.n_parameters)
        return Cost("enumeration", seconds, n_bytes, lower_bound=exponent > LARGEST_EXPONENT)

    def at(self, theta: Floats) -> TableAnswers:
        """Return the answers at some parameters."""
        return TableAnswers(self, theta)


class TableAnswers(FactorAnswers):
    """Answers from a table of the probabilities of all states."""

    @cached_property
    def tables(self) -> LogTables:
        """The factors; none if there is a transform, and all variables count as free."""
        if has_transform(self.engine.family):
            sizes = self.engine.family.variables.sizes
            return LogTables(sizes, {}, 0.0, np.arange(len(sizes)))
        return super().tables

    @cached_property
    def _distribution(self) -> tuple[Floats, float, int]:
        """Probabilities of all states, log Z without the constant, and the index of the first mode."""
        if has_transform(self.engine.family):
            table = self.engine.family.log_weight_table(self.theta).reshape(self.tables.cardinalities)
            scale = float(np.abs(self.theta).sum())
        else:
            table = add_up(self.tables.cardinalities, list(self.tables.tables.items()))
            scale = sum(float(np.abs(part).max()) for part in self.tables.tables.values())
        top = float(table.max())
        mode = int(np.argmax(table >= top - TIE * scale))
        table -= top
        np.exp(table, out=table)
        total = float(table.sum())
        table /= total
        return table, top + float(np.log(total)), mode

    @cached_property
    def log_partition(self) -> float:
        """Log Z."""
        return self._distribution[1] + self.tables.constant

    @cached_property
    def moments(self) -> Floats:
        """The expected sufficient statistics, in the layout of theta."""
        if has_transform(self.engine.family):
            return self.engine.family.statistics_from_table(self._distribution[0].ravel())
        return super().moments

    @cached_property
    def factor_marginals(self) -> dict[Axes, Floats]:
        """Joint probabilities of each free variable and of the variables of each factor."""
        singles: list[Axes] = [(variable,) for variable in range(len(self.tables.cardinalities))]
        return marginals(self._distribution[0], [*singles, *self.tables.tables])

    def joint(self, scope: Axes) -> Floats:
        """Joint probabilities of free variables (ascending) that share no factor."""
        return marginals(self._distribution[0], [scope])[scope]

    def free_products(self, levels: list[Floats]) -> Floats:
        """``E[x_i x_j]`` of the free variables, for i != j."""
        pairs: list[Axes] = list(itertools.combinations(range(len(levels)), 2))
        second: Floats = np.empty((len(levels), len(levels)))
        for (i, j), joint in marginals(self._distribution[0], pairs).items():
            second[i, j] = second[j, i] = levels[i] @ joint @ levels[j]
        return second

    @cached_property
    def free_mode(self) -> tuple[Codes, float]:
        """The free variables in a state of largest probability, and its log-probability."""
        table, _, mode = self._distribution
        return digits(np.array([mode]), table.shape)[0], float(np.log(table.flat[mode]))

    def draw(self, n_samples: int, rng: np.random.Generator) -> Codes:
        """Draw a row of the table by its mass, then the column within the row."""
        shape = self.tables.cardinalities
        half = int(np.searchsorted(np.cumsum(np.log2(shape)), np.log2(shape).sum() / 2))
        rows = self._distribution[0].reshape(int(np.prod(shape[:half], dtype=np.int64)), -1)
        uniforms = rng.random((2, n_samples))
        drawn = invert(np.cumsum(rows.sum(axis=1)), uniforms[0])
        by_row = np.argsort(drawn, kind="stable")
        present, starts = np.unique(drawn[by_row], return_index=True)
        columns = np.empty(n_samples, np.int64)
        for row, start, stop in zip(present, starts, np.append(starts, n_samples)[1:], strict=True):
            members = by_row[start:stop]
            columns[members] = invert(np.cumsum(rows[row]), uniforms[1][members])
        return digits(drawn * rows.shape[1] + columns, shape)
