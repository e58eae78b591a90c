"""Potentials: functions of the values of a few variables, whose sums with weights are energies (YU20 eq. 1).

A potential gives one or several statistics. Scopes that share its name share its parameters, so that a lattice may have
one coupling for all edges. Named potentials are known to files; functions of discrete values are kept as tables.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any, NamedTuple, Self

import numpy as np

from gibbsian.domain import AnyDomain, Categories, Continuum
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.layout import Layout
from gibbsian.models.scopes import Scopes, numbered
from gibbsian.models.variables import variables_of

Function = Callable[..., Any]

# Beyond so many parameters their gauge is not looked for: it takes a decomposition of a matrix of that size.
MOST_GAUGED = 2000


@dataclass(frozen=True)
class Potential:
    """A function of the values of some variables, and where it applies.

    Parameters
    ----------
    name : str
        What its parameters are called; potentials of one name share them. Without a `function` one of `POTENTIALS`.
    function : callable, optional
        Takes one array of values for each variable (codes of categories), which broadcast, and returns a statistic of
        that shape, or a tuple of several.
    scopes : sequence of tuples, optional
        The variables that it is applied to, by column name or number, in the order of the arguments; by default all
        cliques of its size.
    tied : bool, optional
        Whether all scopes share its parameters; by default as the machine says.

    Examples
    --------
    >>> from gibbsian.models.potentials import Potential
    >>> Potential("bound", lambda x, y: abs(x - y) < 2).n_arguments
    2
    """

    name: str
    function: Function | None = None
    scopes: Sequence[Sequence[Any]] | None = None
    tied: bool | None = None

    def __post_init__(self) -> None:
        if self.function is None and self.name.partition(":")[0] not in POTENTIALS:
            known = ", ".join(POTENTIALS)
            raise ArgumentError(
                "is not known", f"use one of {known}, or a function", argument="potential", value=self.name
            )

    @property
    def n_arguments(self) -> int | None:
        """Number of variables; None for those of two or more, or any."""
        if self.function is not None:
            return len(inspect.signature(self.function).parameters)
        return POTENTIALS[self.name.partition(":")[0]].n_arguments

    def fits(self, scope: Sequence[int]) -> bool:
        """Whether it applies to a clique of this size."""
        wanted = self.n_arguments
        return len(scope) == wanted if wanted else len(scope) > 1 or self.name == "table"

    def on(self, scope: Sequence[int], domain: AnyDomain, levels: Sequence[np.ndarray]) -> Function:
        """Return the function of a scope's values."""
        if self.function is not None:
            return self.function
        name, _, argument = self.name.partition(":")
        return POTENTIALS[name].make(domain, [levels[i] for i in scope], argument)


def _one_hot(*values: np.ndarray, levels: Sequence[np.ndarray], first: int = 0) -> tuple[np.ndarray, ...]:
    """An indicator of every combination of values, the last changing fastest, from number `first` on."""
    shape = tuple(map(len, levels))
    picks = (zip(levels, places, values, strict=True) for places in np.ndindex(*shape))
    chosen = [reduce(np.logical_and, (x == level[k] for level, k, x in pick)) for pick in picks]
    return tuple(chosen[first:])


class _Named(NamedTuple):
    """A named potential: how many variables it takes (None: two or more) and how its function is made."""

    n_arguments: int | None
    make: Callable[[AnyDomain, Sequence[np.ndarray], str], Function]


def _of_numbers(function: Function) -> Callable[[AnyDomain, Sequence[np.ndarray], str], Function]:
    """A function of numbers, which categories are not."""

    def make(domain: AnyDomain, levels: Sequence[np.ndarray], argument: str) -> Function:
        if isinstance(domain, Categories) and domain.values is None:
            raise ArgumentError(
                "categories have no numbers", "use bias, equal, indicator or table, or `coding='values'`"
            )
        return function

    return make


def _table(domain: AnyDomain, levels: Sequence[np.ndarray], argument: str) -> Function:
    if isinstance(domain, Continuum):
        raise ArgumentError("continuous variables have no tables", "use other potentials")
    return partial(_one_hot, levels=levels)


def _itself(x: np.ndarray) -> np.ndarray:
    return x


def _bias(domain: AnyDomain, levels: Sequence[np.ndarray], argument: str) -> Function:
    """The value itself; of categories an indicator of each but the first."""
    return _levels(domain, levels, argument) if isinstance(domain, Categories) and domain.values is None else _itself


def _levels(domain: AnyDomain, levels: Sequence[np.ndarray], argument: str) -> Function:
    """An indicator of each value but the first."""
    _table(domain, levels, argument)
    return partial(_one_hot, levels=levels, first=1)


def _indicator(domain: AnyDomain, levels: Sequence[np.ndarray], argument: str) -> Function:
    try:
        value = float(argument)
    except ValueError:
        raise ArgumentError(f"indicator:{argument} names no number", "write it as indicator:2") from None
    return partial(np.equal, value)


def _square(x: np.ndarray) -> np.ndarray:
    return x * x


def _product(*values: np.ndarray) -> np.ndarray:
    return reduce(np.multiply, values)


def _all_equal(*values: np.ndarray) -> np.ndarray:
    return reduce(np.logical_and, [values[0] == other for other in values[1:]])


def _equal(domain: AnyDomain, levels: Sequence[np.ndarray], argument: str) -> Function:
    return _all_equal


def _absolute_difference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.abs(x - y)


def _squared_difference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x - y) ** 2


# every function is a name of this module or a partial of one, so that models travel to other processes
POTENTIALS = {
    "bias": _Named(1, _bias),
    "levels": _Named(1, _levels),
    "square": _Named(1, _of_numbers(_square)),
    "indicator": _Named(1, _indicator),
    "product": _Named(None, _of_numbers(_product)),
    "equal": _Named(None, _equal),
    "absolute-difference": _Named(2, _of_numbers(_absolute_difference)),
    "squared-difference": _Named(2, _of_numbers(_squared_difference)),
    "table": _Named(None, _table),
}
"""Named potentials: what a file or the command line can say."""


class Term(NamedTuple):
    """A potential on one scope.

    Parameters
    ----------
    name : str
        The potential.
    scope : tuple of int
        Its variables, in the order of the arguments.
    places : ndarray of int
        Where the parameters of its statistics stand in theta.
    function : callable
        Of the scope's values.
    named : bool
        Whether the name alone says which function it is.
    """

    name: str
    scope: tuple[int, ...]
    places: np.ndarray
    function: Function
    named: bool

    def features(self, *values: np.ndarray) -> np.ndarray:
        """Return the statistics at values that broadcast, on a last axis."""
        return evaluated(self.function, values)

    def on_grid(self, levels: Sequence[np.ndarray]) -> np.ndarray:
        """Return the statistics at all combinations of the variables' levels, in the order of the arguments."""
        return self.features(*np.meshgrid(*(levels[i] for i in self.scope), indexing="ij", sparse=True))

    def along(self, states: np.ndarray, i: int, points: np.ndarray) -> np.ndarray:
        """Return the statistics of each row while variable i goes through points."""
        return self.features(*(points if j == i else states[:, j, None] for j in self.scope))

    def given(self, fixed: dict[int, float], number: dict[int, int]) -> Term:
        """Return the term of the other variables, renumbered, when some have fixed values."""
        held = {place: fixed[i] for place, i in enumerate(self.scope) if i in fixed}
        rest = tuple(number[i] for i in self.scope if i not in fixed)
        if not held:
            return self._replace(scope=rest)
        free = partial(_with_fixed, self.function, held, len(self.scope))
        return Term(self.name, rest, self.places, free, named=False)


def _with_fixed(function: Function, fixed: dict[int, float], n_arguments: int, *values: np.ndarray) -> Any:
    """Call a function of which some arguments, by their places, have fixed values."""
    others = iter(values)
    return function(*(fixed[place] if place in fixed else next(others) for place in range(n_arguments)))


def evaluated(function: Function, values: Sequence[np.ndarray]) -> np.ndarray:
    """Return one or several statistics of a function as floats, on a last axis."""
    given = [np.asarray(value, dtype=np.float64) for value in values]
    result = function(*given)
    parts = result if isinstance(result, tuple) else (result,)
    shape = np.broadcast_shapes(*(value.shape for value in given))
    return np.stack([np.broadcast_to(np.asarray(part, dtype=np.float64), shape) for part in parts], axis=-1)


def levels_of(domain: AnyDomain, n_variables: int) -> tuple[np.ndarray, ...]:
    """Return the numbers that functions get: values, codes of categories, nodes of a continuum."""
    if isinstance(domain, Categories) and domain.values is None:
        return tuple(np.arange(size, dtype=np.float64) for size in domain.sizes)
    return domain.levels(n_variables)


@dataclass(frozen=True, eq=False)
class Structure:
    """The terms of a field over some variables: all that does not depend on the parameters' values."""

    n_variables: int
    terms: tuple[Term, ...]
    n_parameters: int
    domain: AnyDomain

    @classmethod
    def build(
        cls,
        potentials: Sequence[str | Potential],
        cliques: Sequence[tuple[int, ...]],
        domain: AnyDomain,
        names: Sequence[str],
        tied: bool = True,
    ) -> Self:
        """Apply potentials to cliques, or to the scopes that they name."""
        levels, terms, size = levels_of(domain, len(names)), [], 0
        starts: dict[Any, tuple[int, int]] = {}
        for each in potentials if isinstance(potentials, Iterable) else (potentials,):
            potential = Potential(each) if isinstance(each, str) else each
            if not isinstance(potential, Potential):
                raise ArgumentError(
                    "must hold names or Potential objects",
                    "write ['product', 'bias']",
                    argument="potentials",
                    value=each,
                )
            given = potential.scopes
            scopes = [c for c in cliques if potential.fits(c)] if given is None else numbered(given, names)
            for scope in scopes:
                function = potential.on(scope, domain, levels)
                n_statistics = evaluated(function, [levels[i][:1] for i in scope]).shape[-1]
                shared = tied if potential.tied is None else potential.tied
                key = (potential.name, () if shared else scope)
                start, known = starts.setdefault(key, (size, n_statistics))
                if known != n_statistics:
                    raise ArgumentError(
                        f"the potential {potential.name!r} has {known} statistics on one scope and {n_statistics} on "
                        f"{tuple(names[i] for i in scope)}",
                        "give it parameters of its own on each with `tied=False`",
                    )
                size = max(size, start + known)
                places = np.arange(start, start + known)
                terms.append(Term(potential.name, tuple(scope), places, function, potential.function is None))
        if not terms:
            raise ArgumentError("no potential applies to any variables", "give a graph, cliques or other potentials")
        return cls(len(names), tuple(terms), size, domain)

    @cached_property
    def levels(self) -> tuple[np.ndarray, ...]:
        """The numbers that functions get for the codes of each variable."""
        return levels_of(self.domain, self.n_variables)

    @cached_property
    def layout(self) -> Layout:
        """Where the entries of the terms' tables stand, a table for each set of variables."""
        scopes = {tuple(sorted(term.scope)) for term in self.terms}
        if isinstance(self.domain, Continuum):
            scopes |= {(i,) for i in range(self.n_variables)}  # where the nodes' weights stand
        return Layout(Scopes.sorted(scopes, self.n_variables), variables_of(self.domain, self.n_variables))

    @property
    def graph(self) -> Graph:
        """Which variables share a term."""
        return self.layout.scopes.graph

    def table(self, term: Term) -> np.ndarray:
        """Return the statistics of a term at all codes, its variables ascending, the statistics on the last axis."""
        return term.on_grid(self.levels).transpose(*np.argsort(term.scope), -1)

    @cached_property
    def design(self) -> Any:
        """The entries of all tables as linear functions of theta, a sparse matrix."""
        from scipy.sparse import csr_array

        number = {scope: place for place, scope in enumerate(self.layout.scopes)}
        rows, columns, values = [], [], []
        for term in self.terms:
            table = self.table(term).reshape(-1, term.places.size)
            start = self.layout.offsets[number[tuple(sorted(term.scope))]]
            rows.append(np.repeat(np.arange(start, start + len(table)), term.places.size))
            columns.append(np.tile(term.places, len(table)))
            values.append(table.ravel())
        where = (np.concatenate(rows), np.concatenate(columns))
        made = csr_array((np.concatenate(values), where), shape=(self.layout.size, self.n_parameters))
        made.eliminate_zeros()
        return made

    @cached_property
    def base(self) -> np.ndarray:
        """What the entries hold besides: the log-weights of a continuum's nodes at the tables of single variables."""
        base = np.zeros(self.layout.size)
        if isinstance(self.domain, Continuum):
            base[: self.n_variables * self.domain.n_nodes] = np.tile(self.domain.node_log_weights, self.n_variables)
        return base

    @cached_property
    def contraction(self) -> list[tuple[tuple[int, ...], np.ndarray, np.ndarray]]:
        """For each set of variables, the statistics that depend on it and what each cell counts for."""
        found, spans = [], zip(self.layout.scopes, self.layout.offsets[:-1], self.layout.offsets[1:], strict=True)
        for scope, start, stop in spans:
            block = self.design[start:stop].toarray()
            places = np.flatnonzero(block.any(axis=0))
            found.append((scope, places, block[:, places].T))
        return [part for part in found if part[1].size]

    @cached_property
    def ranges(self) -> np.ndarray:
        """Bounds of each statistic, and the widest range of one of its terms; on the line within four deviations."""
        low, high, widest = ranges = np.zeros((3, self.n_parameters))
        levels = [self._near(level) for level in self.levels]
        for term in self.terms:
            features = term.on_grid(levels).reshape(-1, term.places.size)
            low[term.places] += features.min(axis=0)
            high[term.places] += features.max(axis=0)
            widest[term.places] = np.maximum(widest[term.places], np.ptp(features, axis=0))
        return ranges

    def _near(self, level: np.ndarray) -> np.ndarray:
        domain = self.domain
        if not isinstance(domain, Continuum):
            return level
        ends = np.array([-4.0, 4.0]) * domain.high + domain.low
        if domain.bounded:  # a square is least at zero, and the same at both ends of (-1, 1)
            return np.array([domain.low, np.clip(0.0, domain.low, domain.high), domain.high])
        return np.append(ends, domain.low)

    @cached_property
    def gauge(self) -> np.ndarray:
        """Directions of theta that change nothing, orthonormal: those whose parts of every set of variables vanish."""
        from scipy.linalg import null_space

        parts: dict[tuple[int, ...], np.ndarray] = {}
        if self.n_parameters > MOST_GAUGED or isinstance(self.domain, Continuum):
            return np.zeros((self.n_parameters, 0))
        for term in self.terms:
            table, ordered = self.table(term), tuple(sorted(term.scope))
            for chosen in np.ndindex(*(2,) * len(ordered)):
                if not any(chosen):
                    continue
                part = table.mean(axis=tuple(axis for axis, kept in enumerate(chosen) if not kept))
                for axis in range(part.ndim - 1):
                    part = part - part.mean(axis=axis, keepdims=True)
                subset = tuple(i for i, kept in zip(ordered, chosen, strict=True) if kept)
                rows = part.reshape(-1, term.places.size)
                total = parts.setdefault(subset, np.zeros((len(rows), self.n_parameters)))
                total[:, term.places] += rows
        return null_space(np.concatenate(list(parts.values())), rcond=1e-10)

    def given(self, fixed: dict[int, float]) -> tuple[Self, np.ndarray]:
        """Return the structure of the other variables, and the statistics of the terms that are fixed altogether."""
        rest = [i for i in range(self.n_variables) if i not in fixed]
        if not rest:
            raise ArgumentError("every variable is given", "leave at least one free")
        number = {old: new for new, old in enumerate(rest)}
        settled = np.zeros(self.n_parameters)
        free = []
        for term in self.terms:
            if all(i in fixed for i in term.scope):
                settled[term.places] += term.features(*(np.array(fixed[i]) for i in term.scope))
            else:
                free.append(term.given(fixed, number))
        domain = self.domain.take(np.array(rest))
        return type(self)(len(rest), tuple(free), self.n_parameters, domain), settled

    # -- files --------------------------------------------------------------------------------------------------------
    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return plain values and arrays for a file: names of potentials, and tables of functions."""
        own = [term for term in self.terms if not term.named]
        if own and isinstance(self.domain, Continuum):
            raise ArgumentError(
                f"the function {own[0].name!r} of continuous variables cannot be written to a file",
                f"use named potentials: {', '.join(POTENTIALS)}",
            )
        tables = [term.on_grid(self.levels).ravel() for term in own]
        arrays = {
            "scopes": np.concatenate([term.scope for term in self.terms]).astype(np.int64),
            "places": np.concatenate([term.places for term in self.terms]).astype(np.int64),
            "ends": np.cumsum([[len(term.scope), len(term.places)] for term in self.terms], axis=0),
            "functions": np.concatenate([np.empty(0), *tables]),
        }
        names = [term.name for term in self.terms]
        return {"terms": names, "named": [term.named for term in self.terms], "n_parameters": self.n_parameters}, arrays

    @classmethod
    def from_parts(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], domain: AnyDomain, n_variables: int
    ) -> Self:
        """Put a structure together again."""
        levels, tables, terms = levels_of(domain, n_variables), arrays["functions"], []
        scopes, places = (np.split(arrays[name], arrays["ends"][:-1, k]) for k, name in enumerate(("scopes", "places")))
        for name, named, scope, own in zip(header["terms"], header["named"], scopes, places, strict=True):
            nodes = tuple(scope.tolist())
            if named:
                function = Potential(name).on(nodes, domain, levels)
            else:
                shape = (*(len(levels[i]) for i in nodes), len(own))
                table, tables = tables[: np.prod(shape)].reshape(shape), tables[np.prod(shape) :]
                function = partial(_looked_up, table=table, levels=[levels[i] for i in nodes])
            if evaluated(function, [levels[i][:1] for i in nodes]).shape != (1, len(own)) or len({*nodes}) < len(nodes):
                raise ArgumentError(f"places has {len(own)} entries for the potential {name!r} on {nodes}")
            terms.append(Term(name, nodes, own, function, named))
        return cls(n_variables, tuple(terms), header["n_parameters"], domain)


def _looked_up(*values: np.ndarray, table: np.ndarray, levels: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The statistics of a function that is kept as a table over the values."""
    codes = [np.abs(value[..., None] - level).argmin(axis=-1) for value, level in zip(values, levels, strict=True)]
    return tuple(np.moveaxis(table[tuple(codes)], -1, 0))
