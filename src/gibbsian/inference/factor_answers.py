"""What the engines that work on factors have in common: answers that follow from joint probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from gibbsian.domain import Continuum
from gibbsian.errors import ArgumentError
from gibbsian.inference.base import Engine, Moments, check_n_samples, check_nodes, has_spin_form
from gibbsian.inference.log_tables import Axes, LogTables, marginals
from gibbsian.models import Model
from gibbsian.resources import require_memory

SECONDS_PER_SCOPE, SECONDS_PER_PARAMETER = 4e-5, 2e-6


def table_seconds(model: Model) -> float:
    """Predict how long the tables of a model take to put together and to take apart again, which is done in Python."""
    n_scopes = model.n_variables + model.graph.n_edges  # about: the factors are not listed before it is known they fit
    return 1e-4 + SECONDS_PER_SCOPE * n_scopes + SECONDS_PER_PARAMETER * model.theta.size


def needs_factors(model: Any) -> bool:
    """Say whether a model is served through its factors: it has some, and no faster form of its own."""
    return hasattr(model, "factors") and not has_spin_form(model)


class FactorAnswers(Engine):
    """Base of the engines for any model: subclasses sum over states, this class puts the results in the model's words.

    Inside, variables are numbered without those that have one value only (see `LogTables`), and states are codes.

    Parameters
    ----------
    model : Model
        Seen through `factors` and `statistics_from` alone.
    max_seconds : float
        Limit for questions that take longer than `moments`.
    """

    model: Model

    @cached_property
    def _tables(self) -> LogTables:
        return LogTables.of(self.model.factors())

    @cached_property
    def _cardinalities(self) -> np.ndarray:
        """Number of values of every variable of the model."""
        return self.model.domain.cardinalities(self.model.n_variables)

    # -- what an engine computes -------------------------------------------------------------------------------------
    @abstractmethod
    def log_partition(self) -> float:
        """Return log Z."""

    @property
    @abstractmethod
    def _known(self) -> dict[Axes, np.ndarray]:
        """Joint probabilities of each variable and of the variables of each factor."""

    @abstractmethod
    def _joint(self, scope: Axes) -> np.ndarray:
        """Joint probabilities of variables (ascending) that share no factor."""

    @abstractmethod
    def _second_moments(self, levels: list[np.ndarray]) -> np.ndarray:
        """``E[x_i x_j]`` of the variables that are kept, for i != j."""

    @abstractmethod
    def _most_probable(self) -> tuple[np.ndarray, float]:
        """Codes of a state of largest probability, and its log-probability."""

    @abstractmethod
    def _sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Codes of independent states."""

    # -- answers -----------------------------------------------------------------------------------------------------
    def moments(self) -> Moments:
        """Return log Z and the expected statistics in the layout of theta."""
        return Moments(self.log_partition(), self.model.statistics_from(self._marginal))

    def marginal(self, nodes: Iterable[int]) -> np.ndarray:
        """Return the joint probabilities of some variables, an axis for each in the order given, indexed by codes."""
        return self._marginal(tuple(check_nodes(nodes, self.model.n_variables).tolist()))

    def _marginal(self, nodes: tuple[int, ...]) -> np.ndarray:
        wanted = [self._number[node] for node in nodes]
        free = [number for number in wanted if number >= 0]
        scope = tuple(sorted(free))
        table = self._known.get(scope)
        if table is None:
            table = self._from_a_factor(scope)
        if scope != tuple(free):
            table = table.transpose(np.argsort(np.argsort(free)))
        return table.reshape([self._cardinalities[node] for node in nodes]) if len(free) < len(nodes) else table.copy()

    @cached_property
    def _number(self) -> list[int]:
        """The number inside of each variable, -1 for one with a single value."""
        number = np.full(self.model.n_variables, -1)
        number[self._tables.kept] = np.arange(len(self._tables.kept))
        return number.tolist()

    @cached_property
    def _scopes_of(self) -> list[set[Axes]]:
        """For each variable, the scopes of the factors that hold it."""
        held: list[set[Axes]] = [set() for _ in self._tables.cardinalities]
        for scope in self._tables.tables:
            for variable in scope:
                held[variable].add(scope)
        return held

    def _from_a_factor(self, scope: Axes) -> np.ndarray:
        """Sum the probabilities of a factor that holds the scope, where there is one."""
        if not scope:
            return np.ones(())
        holding = set.intersection(*(self._scopes_of[variable] for variable in scope))
        if not holding:
            return self._joint(scope)
        smallest = min(holding, key=len)
        axes = tuple(smallest.index(variable) for variable in scope)
        return marginals(self._known[smallest], [axes])[axes]

    def means(self) -> np.ndarray:
        """Return E[x_i] of each variable, where its values are numbers."""
        levels = self._levels()
        return np.array([self._marginal((node,)) @ numbers for node, numbers in enumerate(levels)])

    def second_moments(self) -> np.ndarray:
        """Return the matrix E[x_i x_j] of all pairs, where the values are numbers."""
        levels, n, kept = self._levels(), self.model.n_variables, self._tables.kept
        instead = "ask for moments()"
        require_memory(24.0 * n**2, f"the matrix of second moments of {n} variables", instead)
        means = self.means()
        second = np.outer(means, means)  # right where one of the two has a single value
        second[np.ix_(kept, kept)] = self._second_moments([levels[node] for node in kept])
        np.fill_diagonal(second, [self._marginal((node,)) @ numbers**2 for node, numbers in enumerate(levels)])
        return second

    def _levels(self) -> tuple[np.ndarray, ...]:
        domain = self.model.domain
        if getattr(domain, "values", ()) is None:
            raise ArgumentError(
                "categories have no means, because they are not numbers",
                "ask for marginal(nodes), the probabilities of their values",
            )
        return domain.levels(self.model.n_variables)

    def most_probable(self) -> tuple[np.ndarray, float]:
        """Return a state of largest probability and its log-probability."""
        if isinstance(self.model.domain, Continuum):
            raise ArgumentError(
                "nodes of continuous variables are weighted, so none is a mode", "ask `most_probable` of a machine"
            )
        codes, log_probability = self._most_probable()
        return self._states(codes[None, :])[0], float(log_probability)

    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent states."""
        n_samples, n = check_n_samples(n_samples), self.model.n_variables
        numbers = n_samples * 8.0 * (2 * max(self._tables.cardinalities, default=1) + 8)
        require_memory(4.0 * n_samples * n + numbers, f"{n_samples} samples of {n} variables", "draw fewer at a time")
        return self._states(self._sample(n_samples, rng))

    def _states(self, codes: np.ndarray) -> np.ndarray:
        """Turn codes of the variables that are kept into states of the model."""
        every = np.zeros((len(codes), self.model.n_variables), np.int8)
        every[:, self._tables.kept] = codes
        return self.model.domain.from_codes(every)
