"""Potentials of real variables: densities, integrated one variable at a time by quadrature (Y18, YU20)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, Self, TypedDict, cast

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers, Mask, States
from gibbsian.errors import ArgumentError
from gibbsian.models.base import FAMILIES, Model, Parts
from gibbsian.models.conditionals import Conditionals, QuadratureConditionals, WeightedRows
from gibbsian.models.factors import FactorGraph, Marginal, Table
from gibbsian.models.families.potentials import (
    POTENTIALS,
    FamilyOfPotentials,
    Function,
    Potential,
    PotentialsFamily,
    Term,
    labels_of,
)
from gibbsian.models.families.tables import TablesFamily
from gibbsian.models.file_parts import SIZE, TEXT, ListOf, PartsInFile, Plain, Record, reals, reject
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions
from gibbsian.models.scopes import Scope, Scopes
from gibbsian.models.variables import Quadrature, Variables, checked_fixed, checked_weights


class WrittenTerm(TypedDict):
    """A `Term` with a named function in the header of a file; `places` are its indices in theta."""

    name: str
    scope: list[int]
    places: list[int]


@FAMILIES.register("quadrature")
@dataclass(frozen=True, eq=False)
class QuadratureFamily(FamilyOfPotentials):
    """``p(x) = exp(sum_t theta_t f_t(x_t)) p0(x) / Z`` with functions f_t of a few real variables each.

    Methods of rows take any numbers of the support: `log_weights` (a log-density), `statistics` and `given`. Sums over
    all rows are sums over codes, the nodes of a quadrature rule with its weights: `factors`, marginals and
    `statistics_from`. So log Z and moments are integrals, to the accuracy of the rule.

    Parameters
    ----------
    terms : tuple of Term
        The functions. `build` makes all from potentials.
    n_parameters : int
        Number of parameters.
    variables : Quadrature
        The support of the variables, with its base measure p0 and quadrature rule.

    Examples
    --------
    >>> import numpy as np
    >>> import gibbsian as gb
    >>> support = gb.domain.Continuum("interval", 0.0, 1.0)
    >>> family = gb.models.QuadratureFamily.build(["bias"], gb.models.Quadrature.of(support, 1))
    >>> nodes = np.arange(24)[:, None]
    >>> log_z = np.logaddexp.reduce(family.factors(np.array([2.0])).log_weights(nodes))
    >>> bool(np.isclose(log_z, np.log((np.exp(2.0) - 1.0) / 2.0)))
    True
    """

    terms: tuple[Term, ...]
    n_parameters: int
    variables: Quadrature

    registered_name: ClassVar[str]
    parts_in_file: ClassVar[PartsInFile] = {
        "n_variables": SIZE,
        "n_parameters": Plain((int,), 0, size="parameters"),
        "terms": ListOf(Record({"name": TEXT, "scope": ListOf(Plain((int,), 0)), "places": ListOf(Plain((int,), 0))})),
        "theta": reals("parameters"),
    }

    @classmethod
    def of_terms(cls, terms: Sequence[Term], n_parameters: int, variables: Variables) -> Self:
        """Return the family of terms."""
        if not isinstance(variables, Quadrature):
            raise ArgumentError("are no nodes of real variables", argument="variables")
        return cls(tuple(terms), n_parameters, variables)

    # -- structure ----------------------------------------------------------------------------------------------------
    @cached_property
    def scopes(self) -> Scopes:
        """The single variables, and the variables of each function."""
        n = len(self.variables)
        return Scopes.sorted([*((i,) for i in range(n)), *(term.scope for term in self.terms)], n)

    @property
    def blocks(self) -> list[tuple[Scope, Integers, Floats]]:
        """The blocks of the tables over the nodes (see `PotentialsFamily.blocks`)."""
        return self.at_nodes.blocks

    @cached_property
    def at_nodes(self) -> PotentialsFamily:
        """The functions as tables over the nodes."""
        nodes = Variables(self.variables.sizes, self.variables.scores)
        return PotentialsFamily.of_terms(self.terms, self.n_parameters, nodes, self.scopes)

    @cached_property
    def _at_corners(self) -> PotentialsFamily:
        """The functions as tables over the ends of the support and the point nearest to zero.

        On the line the ends are four standard deviations away.
        """
        low, high = self.variables.support.low, self.variables.support.high
        if not self.variables.support.bounded:
            low, high = low - 4.0 * high, low + 4.0 * high
        points = low, min(max(low, 0.0), high), high  # a square has its minimum at zero, and equal values at -1 and 1
        corners = Variables.ordinal([points] * len(self.variables))
        return PotentialsFamily.of_terms(self.terms, self.n_parameters, corners)

    @property
    def statistic_range(self) -> tuple[Floats, Floats]:
        """The sums of the minimum and of the maximum of each function; on the line within four deviations."""
        return self._at_corners.statistic_range

    def log_odds(self, theta: Floats) -> Floats:
        """Return the largest change of a log-density by each parameter through one scope; on the line by deviation."""
        return self._at_corners.log_odds(theta) / (1.0 if self.variables.support.bounded else 8.0)

    @cached_property
    def penalised(self) -> Mask:
        """Mask of the parameters of functions of two or more variables."""
        return self._parameters_of(term for term in self.terms if len(term.scope) > 1)

    def terms_of(self, variables: Mask) -> Mask:
        """Return the mask of the parameters of functions of any masked variable."""
        return self._parameters_of(term for term in self.terms if variables[list(term.scope)].any())

    def _parameters_of(self, terms: Iterable[Term]) -> Mask:
        mask = np.zeros(self.n_parameters, bool)
        for term in terms:
            mask[term.indices] = True
        return mask

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the potential of each parameter, with its variables unless several scopes share it."""
        return [label.text(names) for label in labels_of(self.terms, self.n_parameters)]

    def to_parts(self) -> Parts:
        """Return the names of the functions, their scopes and parameters; an error for functions without a name."""
        if unknown := [term.name for term in self.terms if not term.named]:
            raise ArgumentError(
                f"the function {unknown[0]!r} of continuous variables cannot be written to a file",
                f"use named potentials: {', '.join(POTENTIALS)}",
            )
        terms = [{"name": t.name, "scope": list(t.scope), "places": t.indices.tolist()} for t in self.terms]
        return Parts({"n_variables": len(self.variables), "n_parameters": self.n_parameters, "terms": terms}, {})

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from the parts of a model file."""
        n_parameters, terms = cast("int", parts.plain["n_parameters"]), []
        for each in cast("list[WrittenTerm]", parts.plain["terms"]):
            scope, indices = tuple(each["scope"]), np.array(each["places"], np.intp)
            term = Term(each["name"], scope, indices, Potential(each["name"]).on(scope, variables), named=True)
            shape = term.features(*(np.zeros(1) for _ in scope)).shape
            if shape != (1, indices.size) or len({*scope}) < len(scope) or indices.max() >= n_parameters:
                reject("terms", f"holds wrong places or variables for {term.name!r}")
            terms.append(term)
        return cls.of_terms(terms, n_parameters, variables)

    # -- parameters ---------------------------------------------------------------------------------------------------
    def canonical(self, theta: Floats) -> Floats:
        """Return theta: directions without effect at the nodes may have one elsewhere."""
        return theta

    def interactions(self, theta: Floats) -> Interactions:
        """Return the signed norms of the tables over the nodes in the zero-sum gauge."""
        return self.at_nodes.interactions(theta)

    # -- rows of numbers ----------------------------------------------------------------------------------------------
    def log_weights(self, theta: Floats, x: States) -> Floats:
        """Return the log-density of each row, up to log Z."""
        rows, total = self.variables.checked(x), np.zeros(len(x))
        for term in self.terms:
            total += term.features(*rows[:, term.scope].T) @ theta[term.indices]
        total += self.variables.support.log_base(rows).sum(axis=1)
        return total

    def statistics(self, x: States) -> Floats:
        """Return the statistics of each row."""
        rows = self.variables.checked(x)
        statistics = np.zeros((len(rows), self.n_parameters))
        for term in self.terms:
            statistics[:, term.indices] += term.features(*rows[:, term.scope].T)
        return statistics

    def mean_statistics(self, x: States, weights: Floats | None = None) -> Floats:
        """Return the weighted mean of the statistics."""
        return checked_weights(weights, len(x)) @ self.statistics(x)

    def conditional(self, theta: Floats, x: States, i: int, points: Floats) -> Floats:
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
        total = np.zeros((len(x), points.shape[1]))
        for term in self.terms:
            if i in term.scope:
                total += term.along(x, i, points) @ theta[term.indices]
        total += self.variables.support.log_base(points)
        return total

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows, for losses of the log-odds of each variable, against the nodes, given all others."""
        rows = rows._replace(codes=self.variables.checked(rows.codes))
        return QuadratureConditionals(self.terms, self.variables.support, self.n_parameters, rows)

    def given(self, nodes: Sequence[int] | Integers, codes: Sequence[float] | States) -> Given[Self]:
        """Condition on the numbers of some variables: parameters stay, but functions and the family depend on them."""
        fixed, _ = checked_fixed(self.variables.sizes, nodes, np.zeros(np.shape(codes), int))
        values = self.variables.take(fixed).checked(np.reshape(codes, (1, -1)), "codes")[0]
        value_of = dict(zip(fixed, values.tolist(), strict=True))
        rest = [i for i in range(len(self.variables)) if i not in value_of]
        constant, free = np.zeros(self.n_parameters), []
        for term in self.terms:
            given = {k: value_of[i] for k, i in enumerate(term.scope) if i in value_of}
            if len(given) == len(term.scope):
                constant[term.indices] += term.features(*given.values())
                continue
            function = partial(_with_values, term.function, given, len(term.scope)) if given else term.function
            scope = tuple(rest.index(i) for i in term.scope if i not in value_of)
            free.append(term._replace(scope=scope, function=function, named=term.named and not given))
        family = replace(self, terms=tuple(free), variables=self.variables.take(rest))
        offset = float(self.variables.support.log_base(values).sum())
        return Given(family, np.arange(self.n_parameters), np.ones(self.n_parameters), constant, offset)

    # -- sums over nodes ----------------------------------------------------------------------------------------------
    def to_tables(self, theta: Floats) -> Model[TablesFamily]:
        """Return the tables over the nodes, with the log-weights of the rule in those of single variables."""
        entries = self.at_nodes.design @ theta
        weights = np.tile(self.variables.support.node_log_weights, len(self.variables))
        entries[: weights.size] += weights  # the tables of single variables come first
        return Model(self.at_nodes.tables, entries)

    def factors(self, theta: Floats) -> FactorGraph:
        """Return the tables over the nodes, which can also be evaluated at any numbers outside a region."""
        tables = self.to_tables(theta)
        factors = tables.family.factors(tables.theta)
        return QuadratureFactors(factors.cardinalities, factors.factors, self, theta)

    def statistics_from(self, marginal: Marginal) -> Floats:
        """Return the expected statistics, given the joint probabilities of the nodes of any few variables."""
        return self.at_nodes.statistics_from(marginal)


def _with_values(function: Function, fixed: dict[int, float], n_arguments: int, *values: Floats) -> object:
    """Call a function with fixed values of some arguments, by their positions."""
    others = iter(values)
    return function(*(fixed[k] if k in fixed else next(others) for k in range(n_arguments)))


@dataclass(frozen=True, eq=False)
class QuadratureFactors(FactorGraph):
    """Factors over nodes that can be evaluated at any numbers of the variables outside a region (YU20 eq. 8).

    Parameters
    ----------
    cardinalities, factors
        As in `FactorGraph`.
    family : QuadratureFamily
        The family of the factors.
    theta : ndarray
        Its parameters.
    """

    family: QuadratureFamily
    theta: Floats

    def given_outside(self, index: int, inside: set[int], rows: Codes) -> Table:
        """Return one factor as a function of its variables inside a region, given numbers of the others (by row)."""
        scope = self.factors[index].nodes
        free = tuple(node for node in scope if node in inside)
        if len(free) == len(scope):
            return free, self.factors[index].table[None]
        levels, total = self.family.variables.levels, np.zeros((rows.shape[1], *self.cardinalities[list(free)]))
        axes = {i: levels[i].reshape((1, *(-1 if other == i else 1 for other in free))) for i in free}
        for term in self.terms_of[scope]:
            values = (axes[j] if j in axes else rows[j].reshape(-1, *(1,) * len(free)) for j in term.scope)
            total += term.features(*values) @ self.theta[term.indices]
        return free, total

    @cached_property
    def terms_of(self) -> dict[Scope, list[Term]]:
        """The terms of each set of variables."""
        terms: dict[Scope, list[Term]] = {factor.nodes: [] for factor in self.factors}
        for term in self.family.terms:
            terms[tuple(sorted(term.scope))].append(term)
        return terms
