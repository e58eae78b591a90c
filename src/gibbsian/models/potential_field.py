"""Markov random fields of any potentials, with parameters that may be shared, over discrete or continuous variables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from gibbsian.domain import SPIN, AnyDomain, Categories, Continuum
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import MODELS, ExponentialFamily
from gibbsian.models.conditionals import Conditionals, QuadratureConditionals, WeightedRows, bind_tables
from gibbsian.models.factors import Factor, FactorGraph, Marginal, Table
from gibbsian.models.file_parts import MOST, SIZE, TEXT, TRUTH, Listed, Plain, reals, refuse, wholes
from gibbsian.models.given import Given
from gibbsian.models.parameters import checked_theta
from gibbsian.models.potentials import Potential, Structure
from gibbsian.models.scopes import Scopes
from gibbsian.models.states import checked_fixed, checked_shares, checked_states
from gibbsian.models.tables import MarkovRandomField


@MODELS.register("potential-field", many_valued="categories")
@dataclass(frozen=True, eq=False)
class PotentialField(ExponentialFamily):
    """``P(x) = exp(sum_t theta_t·f_t(x_t) / T) / Z`` with functions f_t of a few variables each (YU20 eq. 1).

    Terms of one name may share their parameters: then a statistic is the sum of the function over all their scopes.

    Parameters
    ----------
    structure : Structure
        The terms; `build` makes it.
    theta : ndarray
        The parameters.

    Examples
    --------
    An Ising lattice with one coupling:

    >>> import numpy as np, gibbsian as gb
    >>> field = gb.models.PotentialField.build(["product"], gb.graphs.grid(2, 2), theta=[0.5])
    >>> field.energy(np.array([[1, 1, 1, 1], [1, 1, 1, -1]]))
    array([-2., -0.])
    """

    structure: Structure
    theta: np.ndarray

    # Preflight asks what data must show of the statistics, which need not be those of full tables.
    has_potentials: ClassVar[bool] = True
    parts_in_file: ClassVar[dict[str, Any]] = {
        "n_variables": SIZE,
        "n_parameters": Plain((int,), 0, MOST, size="parameters"),
        "terms": Listed(TEXT, "terms"),
        "named": Listed(TRUTH, "terms"),
        "ends": wholes("terms", 2),
        "scopes": wholes("members", below="all"),
        "places": wholes("places", below="parameters"),
        "functions": reals("functions"),
    }

    def __post_init__(self) -> None:
        n_parameters = self.structure.n_parameters
        object.__setattr__(self, "theta", checked_theta(self.theta, n_parameters, f"{n_parameters} parameters"))

    @classmethod
    def build(
        cls,
        potentials: Sequence[str | Potential],
        graph: Graph | None = None,
        domain: AnyDomain = SPIN,
        *,
        cliques: Iterable[Sequence[int]] = (),
        theta: Any = None,
        tied: bool = True,
        names: Sequence[str] | None = None,
        n_variables: int | None = None,
    ) -> PotentialField:
        """Return a field of potentials on the variables and edges of a graph, and on further cliques.

        Parameters
        ----------
        potentials : sequence of str or Potential
            Named ones, or functions with their scopes.
        graph : Graph, optional
            Where potentials of one variable and of pairs apply.
        domain : Domain, Categories or Continuum
            The values; a `Continuum` gives a field of densities.
        cliques : iterable of tuples, optional
            More sets of variables that potentials of their size apply to.
        theta : array-like, optional
            The parameters; zeros by default.
        tied : bool
            Whether a potential has the same parameters on all its scopes.
        names : sequence of str, optional
            The variables, for scopes that name them.
        n_variables : int, optional
            Number of variables, where there is no graph.
        """
        count = n_variables if graph is None else graph.n_nodes
        if count is None:
            raise ArgumentError("the number of variables is not known", "give a graph, or `n_variables`")
        known = [f"x{i}" for i in range(count)] if names is None else names
        listed = [(i,) for i in range(count)] if graph is None else Scopes.of_graph(graph)
        structure = Structure.build(potentials, Scopes.sorted([*listed, *cliques], count), domain, known, tied)
        kind = ContinuousField if isinstance(domain, Continuum) else PotentialField
        return kind(structure, np.zeros(structure.n_parameters) if theta is None else theta)

    @classmethod
    def zeros(cls, graph: Graph, domain: AnyDomain = SPIN) -> PotentialField:
        """Return the uniform distribution with a bias for each variable and one weight of equal neighbours.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.models.PotentialField.zeros(gb.graphs.grid(2, 3)).theta.size
        7
        """
        biases = Potential("bias", tied=False)
        return cls.build([biases, "equal"], graph, domain)

    # -- parts --------------------------------------------------------------------------------------------------------
    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return plain values and arrays that make up the model, for a file."""
        header, arrays = self.structure.to_parts()
        plain = {"n_variables": self.n_variables}
        return {**header, **plain}, {**arrays, "theta": self.theta}

    @classmethod
    def from_parts(cls, header: dict[str, Any], tensors: dict[str, np.ndarray], domain: Any) -> Self:
        """Put a model together again; `domain` is that of the columns."""
        if isinstance(domain, Continuum) != issubclass(cls, ContinuousField):
            refuse("kind", "is of other values than the coding")
        structure = Structure.from_parts(header, tensors, domain, header["n_variables"])
        return cls(structure, tensors["theta"])

    # -- layout -------------------------------------------------------------------------------------------------------
    @property
    def domain(self) -> Any:
        """The values of the variables."""
        return self.structure.domain

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.structure.n_variables

    @property
    def graph(self) -> Graph:
        """Which variables share a potential."""
        return self.structure.graph

    @property
    def penalised(self) -> np.ndarray:
        """True at parameters of potentials of two and more variables."""
        return self._parameters_where(lambda scope: len(scope) > 1)

    def touches(self, variables: np.ndarray) -> np.ndarray:
        """Return which parameters belong to a term of any variable of a mask."""
        return self._parameters_where(lambda scope: variables[list(scope)].any())

    def _parameters_where(self, holds: Any) -> np.ndarray:
        chosen = np.zeros(self.theta.size, bool)
        for term in self.structure.terms:
            chosen[term.places] |= holds(term.scope)
        return chosen

    def shared_statistics(self) -> list[tuple[tuple[int, ...], np.ndarray, np.ndarray]]:
        """Return for each set of variables the statistics that depend on it, and what each cell counts for."""
        return self.structure.contraction

    @property
    def statistic_range(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of each statistic: the sums of those of its terms."""
        low, high, _ = self.structure.ranges
        return low, high

    def log_odds(self) -> np.ndarray:
        """Return by how much each parameter can change a log-probability through one of its terms."""
        return self.structure.ranges[2] * np.abs(self.theta)

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the potential of each parameter, with its variables where no others share it."""
        found: dict[int, list[tuple[str, tuple[int, ...], str]]] = {}
        for term in self.structure.terms:
            for k, place in enumerate(term.places.tolist()):
                found.setdefault(place, []).append((term.name, term.scope, f"[{k}]" if term.places.size > 1 else ""))
        labels = []
        for place in range(self.theta.size):
            terms = found.get(place, [("none", (), "")])
            name, scope, number = terms[0]
            alone = f"({','.join(names[i] for i in scope)})" if len(terms) == 1 else ""
            labels.append(f"{name}{alone}{number}")
        return labels

    def canonical(self) -> Self:
        """Return the same distribution without what changes nothing: the shortest theta."""
        gauge = self.structure.gauge
        return self.replace(self.theta - gauge @ (gauge.T @ self.theta)) if gauge.size else self

    # -- distribution: linear in the tables of a field ----------------------------------------------------------------
    @cached_property
    def field(self) -> MarkovRandomField:
        """The same distribution as tables over codes, which kernels work on."""
        structure = self.structure
        tables = structure.design @ self.theta + structure.base
        layout = structure.layout
        return MarkovRandomField(self.n_variables, layout.scopes, tables, self.domain, layout)

    def energy(self, x: np.ndarray) -> np.ndarray:
        """Return minus the sum of the weighted statistics of each state."""
        return self.field.energy(x)

    def statistics(self, x: np.ndarray) -> np.ndarray:
        """Return S(x) of each state."""
        return self.field.statistics(x) @ self.structure.design

    def mean_statistics(self, x: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted mean of S over the states."""
        return self.structure.design.T @ self.field.mean_statistics(x, weights)

    def bind(self, rows: WeightedRows) -> Conditionals:
        """Return the conditionals of rows that have been checked."""
        return bind_tables(self.structure.layout, rows, self.structure.design)

    # -- other forms of the same distribution -----------------------------------------------------------------------
    def factors(self) -> FactorGraph:
        """Return the tables over T."""
        return self.field.factors()

    def statistics_from(self, marginal: Marginal) -> np.ndarray:
        """Return the expected statistics, given the joint probabilities of each scope."""
        return self.structure.design.T @ self.field.statistics_from(marginal)

    def given(self, nodes: Sequence[int] | np.ndarray, codes: Sequence[int] | np.ndarray) -> Given[Self]:
        """Return the distribution of the other variables given the codes of some (see `Given`).

        The functions of the other variables depend on the given values, so no two rows share them.
        """
        fixed, held = checked_fixed(self.domain.cardinalities(self.n_variables), nodes, codes)
        levels = self.structure.levels
        return self._given_numbers({i: float(levels[i][code]) for i, code in zip(fixed, held.tolist(), strict=True)})

    def _given_numbers(self, numbers: dict[int, float], offset: float = 0.0) -> Given[Self]:
        structure, settled = self.structure.given(numbers)
        nothing, size = np.zeros_like(self.theta), self.theta.size
        family = type(self)(structure, nothing)
        return Given(family, np.arange(size), np.ones(size), settled, offset)


@MODELS.register("continuous-field", continuous=True)
@dataclass(frozen=True, eq=False)
class ContinuousField(PotentialField):
    """A `PotentialField` of real variables: densities, integrated one variable at a time by quadrature (Y18, YU20).

    Exact engines see the nodes of the domain's rule as values, weighted, so that log Z and moments are integrals to
    the accuracy of the rule. States are any numbers of the support: potentials are evaluated there, and costs go
    to the nodes, ``d_k = log p(x) - log p(x with x_i at node k) - log w_k``, whose softmax is the conditional density.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> box = gb.domain.Continuum("interval", 0.0, 1.0)
    >>> field = gb.models.PotentialField.build(["bias"], gb.graphs.complete(1), box, theta=[2.0])
    >>> log_z = gb.inference.exact(field).log_partition
    >>> bool(np.isclose(log_z, np.log((np.exp(2.0) - 1.0) / 2.0)))
    True
    """

    @property
    def discretised(self) -> MarkovRandomField:
        """The nodes of the quadrature as values of a discrete field, their weights in its tables."""
        scopes, sizes = self.structure.layout.scopes, self.structure.layout.cardinalities
        return MarkovRandomField(self.n_variables, scopes, self.field.theta, Categories(tuple(sizes)))

    def log_odds(self) -> np.ndarray:
        """Return by how much each parameter alone can change a log-density; on the line within a deviation."""
        return super().log_odds() * (1.0 if self.domain.bounded else 1 / 8)

    def log_weights(self, x: np.ndarray) -> np.ndarray:
        """Return ``-E(x)`` and the log-density of the base measure."""
        return -self.energy(x) + self.domain.log_base(np.asarray(x)).sum(axis=1)

    def energy(self, x: np.ndarray) -> np.ndarray:
        """Return minus the sum of the weighted statistics of each state."""
        states, total = checked_states(self, x), np.zeros(len(x))
        for term in self.structure.terms:
            total -= term.features(*states[:, term.scope].T) @ self.theta[term.places]
        return total

    def statistics(self, x: np.ndarray) -> np.ndarray:
        """Return S(x) of each state."""
        states = checked_states(self, x)
        found = np.zeros((len(states), self.theta.size))
        for term in self.structure.terms:
            found[:, term.places] += term.features(*states[:, term.scope].T)
        return found

    def mean_statistics(self, x: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted mean of S over the states."""
        return checked_shares(weights, len(x)) @ self.statistics(x)

    @cached_property
    def _terms_of(self) -> list[list[Any]]:
        return [[term for term in self.structure.terms if i in term.scope] for i in range(self.n_variables)]

    def conditional(self, states: np.ndarray, i: int, points: np.ndarray) -> np.ndarray:
        """Return the log-density of variable i at points given the others, up to a constant for each state.

        Parameters
        ----------
        states : ndarray of shape (n_states, n_variables)
            The other variables.
        i : int
            The variable.
        points : ndarray of shape (1 or n_states, n_points)
            Its values.
        """
        total = np.zeros((len(states), points.shape[1]))
        for term in self._terms_of[i]:
            total += term.along(states, i, points) @ self.theta[term.places]
        return total

    def bind(self, rows: WeightedRows) -> Conditionals:
        """Return the conditionals of rows that have been checked."""
        return QuadratureConditionals(self.structure.terms, self.domain, self.theta.size, rows)

    def factors(self) -> FactorGraph:
        """Return the tables over the nodes, weights included; outside a region they are taken at any numbers."""
        tables = super().factors()
        return ContinuousFactors(tables.cardinalities, tables.factors, self)

    def rows_by_variable(self, states: np.ndarray) -> np.ndarray:
        """Return states as `ContinuousFactors` want them."""
        return np.ascontiguousarray(states.T)

    def given(self, nodes: Sequence[int] | np.ndarray, codes: Sequence[float] | np.ndarray) -> Given[Self]:
        """Return the distribution of the other variables given the numbers of some, which are their own codes."""
        held = np.asarray(codes, dtype=np.float64)
        offset = float(self.domain.log_base(held).sum())
        return self._given_numbers(dict(zip(np.asarray(nodes).tolist(), held.tolist(), strict=True)), offset)


@dataclass(frozen=True, eq=False)
class ContinuousFactors(FactorGraph):
    """Factors over nodes that can be evaluated at any values of the variables outside a region.

    Parameters
    ----------
    cardinalities, factors
        As in `FactorGraph`.
    model : ContinuousField
        Whose factors.
    """

    model: ContinuousField

    def given_outside(self, number: int, inside: set[int], rows: np.ndarray) -> Table:
        """Return a factor with the variables outside the region fixed at real numbers."""
        factor: Factor = self.factors[number]
        free = tuple(node for node in factor.nodes if node in inside)
        if len(free) == len(factor.nodes):
            return free, factor.table[None]
        model, total = self.model, np.zeros((rows.shape[1], *(self.cardinalities[node] for node in free)))
        nodes = model.domain.nodes
        axes = {node: nodes.reshape((1, *(-1 if other == node else 1 for other in free))) for node in free}
        for term in self.terms_of[factor.nodes]:
            values = (axes[j] if j in axes else rows[j].reshape(-1, *(1,) * len(free)) for j in term.scope)
            total += term.features(*values) @ model.theta[term.places]
        return free, total

    @cached_property
    def terms_of(self) -> dict[tuple[int, ...], list[Any]]:
        """The terms of each set of variables."""
        found: dict[tuple[int, ...], list[Any]] = {}
        for term in self.model.structure.terms:
            found.setdefault(tuple(sorted(term.scope)), []).append(term)
        return found
