"""Potentials of real variables: densities, integrated one variable at a time by quadrature (Y18, YU20)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.conditionals import Conditionals, QuadratureConditionals, WeightedRows
from gibbsian.models.factors import FactorGraph, Marginal, Table
from gibbsian.models.families.potentials import (
    POTENTIALS,
    Function,
    Potential,
    PotentialsFamily,
    PotentialsParts,
    Term,
    labels_of,
    terms_of,
)
from gibbsian.models.families.tables import TablesFamily
from gibbsian.models.family import Array, Model, Parts, fields_alone
from gibbsian.models.file_parts import SIZE, TEXT, Listed, PartsInFile, Plain, Record, reals, refuse
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions
from gibbsian.models.scopes import Scope, Scopes
from gibbsian.models.states import checked_fixed, checked_shares
from gibbsian.models.variables import Quadrature, Variables


@dataclass(frozen=True, eq=False)
class QuadratureFamily:
    """``p(x) = exp(sum_t theta_t . f_t(x_t)) p0(x) / Z`` with functions f_t of a few real variables each.

    What is about rows takes numbers, any of the support: `log_weights`, which is a log-density, `statistics`, and
    `given`. What is a sum over all rows goes over codes, the nodes of the rule, weighted by the volumes that they stand
    for: `factors`, marginals and `statistics_from`. So log Z and moments are integrals, to the accuracy of the rule.

    Parameters
    ----------
    terms : tuple of Term
        The functions; `build` makes all.
    n_parameters : int
        Number of parameters.
    variables : Quadrature
        The support of the variables with its base measure p0, and the nodes of the rule.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.domain import Continuum
    >>> from gibbsian.models.families.quadrature import QuadratureFamily
    >>> from gibbsian.models.variables import Quadrature
    >>> family = QuadratureFamily.build(["bias"], Quadrature.of(Continuum("interval", 0.0, 1.0), 1))
    >>> nodes = np.arange(24)[:, None]
    >>> log_z = np.logaddexp.reduce(family.factors(np.array([2.0])).log_weights(nodes))
    >>> bool(np.isclose(log_z, np.log((np.exp(2.0) - 1.0) / 2.0)))
    True
    """

    terms: tuple[Term, ...]
    n_parameters: int
    variables: Quadrature

    registered_name: ClassVar[str] = "quadrature"
    n_hidden: ClassVar[int] = 0
    parts_in_file: ClassVar[PartsInFile] = {
        "n_variables": SIZE,
        "n_parameters": Plain((int,), 0, size="parameters"),
        "terms": Listed(Record({"name": TEXT, "scope": Listed(Plain((int,), 0)), "places": Listed(Plain((int,), 0))})),
        "theta": reals("parameters"),
    }
    __getstate__ = fields_alone

    @classmethod
    def build(
        cls,
        potentials: Iterable[str | Potential] | Potential,
        variables: Quadrature,
        graph: Graph | None = None,
        cliques: Iterable[Sequence[int]] = (),
        *,
        tied: bool = True,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Return the family of potentials on variables, edges and cliques, as `PotentialsFamily.build` does."""
        return cls(*terms_of(potentials, variables, graph, cliques, tied, names), variables)

    # -- structure ----------------------------------------------------------------------------------------------------
    @cached_property
    def scopes(self) -> Scopes:
        """The single variables, and the variables of each function."""
        n = len(self.variables)
        return Scopes.sorted([*((i,) for i in range(n)), *(term.scope for term in self.terms)], n)

    @cached_property
    def at_nodes(self) -> PotentialsFamily:
        """The functions as tables over the nodes."""
        nodes = Variables(self.variables.sizes, self.variables.scores)
        return PotentialsFamily.of_terms(self.terms, self.n_parameters, nodes, self.scopes)

    @cached_property
    def penalised(self) -> Array:
        """The parameters of functions of two and more variables."""
        mask = np.zeros(self.n_parameters, bool)
        for term in self.terms:
            mask[term.places] |= len(term.scope) > 1
        return mask

    @cached_property
    def statistic_range(self) -> tuple[Array, Array]:
        """Sums of the extremes of each function at the ends and nearest to zero; on the line within four deviations."""
        low, high = self.variables.support.low, self.variables.support.high
        if not self.variables.support.bounded:
            low, high = low - 4.0 * high, low + 4.0 * high
        points = low, min(max(low, 0.0), high), high  # a square is least at zero, and the same at both ends of (-1, 1)
        variables = Variables.ordinal([points] * len(self.variables))
        return PotentialsFamily.of_terms(self.terms, self.n_parameters, variables).statistic_range

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the potential of each parameter, with its variables where no others share it."""
        return [label.text(names) for label in labels_of(self.terms, self.n_parameters)]

    def to_parts(self) -> Parts:
        """Return the names of the functions, which must be known, their scopes and parameters."""
        if unknown := [term.name for term in self.terms if not term.named]:
            raise ArgumentError(
                f"the function {unknown[0]!r} of continuous variables cannot be written to a file",
                f"use named potentials: {', '.join(POTENTIALS)}",
            )
        terms = [{"name": t.name, "scope": list(t.scope), "places": t.places.tolist()} for t in self.terms]
        return Parts({"n_variables": len(self.variables), "n_parameters": self.n_parameters, "terms": terms}, {})

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from what a file keeps."""
        if not isinstance(variables, Quadrature):
            raise ArgumentError("are no nodes of real variables", argument="variables")
        header: Any = parts.plain
        terms = []
        for each in header["terms"]:
            scope, places = tuple(each["scope"]), np.array(each["places"], np.intp)
            term = Term(each["name"], scope, places, Potential(each["name"]).on(scope, variables), named=True)
            shape = term.features(*(np.zeros(1) for _ in scope)).shape
            if shape != (1, places.size) or len({*scope}) < len(scope) or places.max() >= header["n_parameters"]:
                refuse("terms", f"holds wrong places or variables for {term.name!r}")
            terms.append(term)
        return cls(tuple(terms), header["n_parameters"], variables)

    # -- parameters ---------------------------------------------------------------------------------------------------
    def split(self, theta: Array) -> PotentialsParts:
        """Return the weights."""
        return PotentialsParts(theta)

    def canonical(self, theta: Array) -> Array:
        """Return theta: what changes nothing at the nodes may do so elsewhere."""
        return theta

    def interactions(self, theta: Array) -> Interactions:
        """Return the signed norms of the tables over the nodes in the zero-sum gauge."""
        return self.at_nodes.interactions(theta)

    # -- rows of numbers ----------------------------------------------------------------------------------------------
    def log_weights(self, theta: Array, x: Array) -> Array:
        """Return the log-density of each row, up to log Z."""
        rows, total = self.variables.checked(x), np.zeros(len(x))
        for term in self.terms:
            total += term.features(*rows[:, term.scope].T) @ theta[term.places]
        return total + self.variables.support.log_base(rows).sum(axis=1)

    def statistics(self, x: Array) -> Array:
        """Return the statistics of each row."""
        rows = self.variables.checked(x)
        statistics = np.zeros((len(rows), self.n_parameters))
        for term in self.terms:
            statistics[:, term.places] += term.features(*rows[:, term.scope].T)
        return statistics

    def mean_statistics(self, x: Array, weights: Array | None = None) -> Array:
        """Return the weighted mean of the statistics."""
        return checked_shares(weights, len(x)) @ self.statistics(x)

    def conditional(self, theta: Array, x: Array, i: int, points: Array) -> Array:
        """Return the log-density of variable i at points given the others, up to a constant for each row.

        Parameters
        ----------
        theta : ndarray
            The parameters.
        x : ndarray of shape (n_rows, n_variables)
            The other variables.
        i : int
            The variable.
        points : ndarray of shape (1 or n_rows, n_points)
            Its values.
        """
        total = np.zeros((len(x), points.shape[1])) + self.variables.support.log_base(points)
        for term in self.terms:
            if i in term.scope:
                total += term.along(x, i, points) @ theta[term.places]
        return total

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows of numbers to the log-odds against the nodes of each variable given the others."""
        return QuadratureConditionals(self.terms, self.variables.support, self.n_parameters, rows)

    def given(self, nodes: Sequence[int] | Array, codes: Sequence[float] | Array) -> Given[Self]:
        """Return the family of the other variables given the numbers of some (see `Given`): the same parameters.

        The functions of the other variables depend on the given numbers, so that no two rows share them.
        """
        fixed, _ = checked_fixed(self.variables.sizes, nodes, np.zeros(np.shape(codes), int))
        held = self.variables.take(fixed).checked(np.reshape(codes, (1, -1)), "codes")[0]
        number_of = dict(zip(fixed, held.tolist(), strict=True))
        rest = [i for i in range(len(self.variables)) if i not in number_of]
        settled, free = np.zeros(self.n_parameters), []
        for term in self.terms:
            values = {place: number_of[i] for place, i in enumerate(term.scope) if i in number_of}
            if len(values) == len(term.scope):
                settled[term.places] += term.features(*values.values())
                continue
            function = partial(_with_values, term.function, values, len(term.scope)) if values else term.function
            scope = tuple(rest.index(i) for i in term.scope if i not in number_of)
            free.append(term._replace(scope=scope, function=function, named=term.named and not values))
        family = replace(self, terms=tuple(free), variables=self.variables.take(rest))
        offset = float(self.variables.support.log_base(held).sum())
        return Given(family, np.arange(self.n_parameters), np.ones(self.n_parameters), settled, offset)

    # -- sums over nodes ----------------------------------------------------------------------------------------------
    def discretised(self, theta: Array) -> Model[TablesFamily]:
        """Return the tables over the nodes, the weights of the rule in those of single variables."""
        entries = self.at_nodes.entries(theta)
        weights = np.tile(self.variables.support.node_log_weights, len(self.variables))
        entries[: weights.size] += weights  # the tables of single variables come first
        return Model(self.at_nodes.tables, entries)

    def factors(self, theta: Array) -> FactorGraph:
        """Return the tables over the nodes; outside a region they are taken at any numbers."""
        tables = self.discretised(theta)
        made = tables.family.factors(tables.theta)
        return QuadratureFactors(made.cardinalities, made.factors, self, theta)

    def statistics_from(self, marginal: Marginal) -> Array:
        """Return the expected statistics, given the joint probabilities of the nodes of any few variables."""
        return self.at_nodes.statistics_from(marginal)


def _with_values(function: Function, fixed: dict[int, float], n_arguments: int, *values: Array) -> object:
    """Call a function of which some arguments, by their places, have fixed values."""
    others = iter(values)
    return function(*(fixed[place] if place in fixed else next(others) for place in range(n_arguments)))


@dataclass(frozen=True, eq=False)
class QuadratureFactors(FactorGraph):
    """Factors over nodes that can be evaluated at any numbers of the variables outside a region (YU20 eq. 8).

    Parameters
    ----------
    cardinalities, factors
        As in `FactorGraph`.
    family : QuadratureFamily
        Whose factors.
    theta : ndarray
        Its parameters.
    """

    family: QuadratureFamily
    theta: Array

    def given_outside(self, number: int, inside: set[int], rows: Array) -> Table:
        """Return a factor with the variables outside the region fixed at numbers, which `rows` holds by variable."""
        scope = self.factors[number].nodes
        free = tuple(node for node in scope if node in inside)
        if len(free) == len(scope):
            return free, self.factors[number].table[None]
        levels, total = self.family.variables.levels, np.zeros((rows.shape[1], *self.cardinalities[list(free)]))
        axes = {i: levels[i].reshape((1, *(-1 if other == i else 1 for other in free))) for i in free}
        for term in self.terms_of[scope]:
            values = (axes[j] if j in axes else rows[j].reshape(-1, *(1,) * len(free)) for j in term.scope)
            total += term.features(*values) @ self.theta[term.places]
        return free, total

    @cached_property
    def terms_of(self) -> dict[Scope, list[Term]]:
        """The terms of each set of variables."""
        found: dict[Scope, list[Term]] = {factor.nodes: [] for factor in self.factors}
        for term in self.family.terms:
            found[tuple(sorted(term.scope))].append(term)
        return found
