"""Potentials: functions of the values of a few variables, whose weighted sum is the log-weight (YU20 eq. 1).

A potential gives one or several statistics. Scopes that share its name may share its parameters, so that a lattice has
one coupling for all edges. Over finitely many values every function is a table, and the entries of all tables are a
linear map of the parameters: the design.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.conditionals import Conditionals, WeightedRows, bind_tables
from gibbsian.models.factors import FactorGraph, Marginal, zero_sum
from gibbsian.models.families.tables import TablesFamily
from gibbsian.models.family import Array, Parts, fields_alone
from gibbsian.models.file_parts import SIZE, TEXT, Listed, PartsInFile, Plain, Record, reals, refuse, wholes
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions
from gibbsian.models.scopes import Scope, Scopes, numbered
from gibbsian.models.variables import Variables

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Function = Callable[..., object]
Levels = Sequence[Array]
"""The numbers that functions get for the codes of each variable."""

# Beyond so many parameters their gauge is not looked for: it takes a decomposition of a matrix of that size.
MAX_GAUGED = 2000


# -- what a potential is ----------------------------------------------------------------------------------------------
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
        Whether all scopes share its parameters; by default as the family says.

    Examples
    --------
    >>> from gibbsian.models.families.potentials import Potential
    >>> Potential("bound", lambda x, y: abs(x - y) < 2).n_arguments
    2
    """

    name: str
    function: Function | None = None
    scopes: Sequence[Sequence[int | str]] | None = None
    tied: bool | None = None

    def __post_init__(self) -> None:
        if self.function is None and self._kind not in POTENTIALS:
            known = ", ".join(POTENTIALS)
            raise ArgumentError(
                "is not known", f"use one of {known}, or a function", argument="potential", value=self.name
            )

    @property
    def _kind(self) -> str:
        return self.name.partition(":")[0]

    @property
    def n_arguments(self) -> int | None:
        """Number of variables; None for those of two or more, or any."""
        if self.function is not None:
            return len(inspect.signature(self.function).parameters)
        return POTENTIALS[self._kind].n_arguments

    def fits(self, scope: Scope) -> bool:
        """Whether it applies to a clique of this size."""
        wanted = self.n_arguments
        return len(scope) == wanted if wanted else len(scope) > 1 or self.name == "table"

    def on(self, scope: Scope, variables: Variables) -> Function:
        """Return the function of a scope's values."""
        if self.function is not None:
            return self.function
        return POTENTIALS[self._kind].make(variables, scope, self.name.partition(":")[2])


class Named(NamedTuple):
    """A potential that files know by its name.

    Parameters
    ----------
    n_arguments : int or None
        How many variables it takes; None for two or more.
    make : callable
        Gives its function, of the variables, a scope of them, and the argument behind a colon of the name.
    """

    n_arguments: int | None
    make: Callable[[Variables, Scope, str], Function]


def levels_of(variables: Variables) -> Levels:
    """Return what functions get for the codes of each variable: scores, or codes of categories."""
    if variables.scores is None:
        return [np.arange(size, dtype=np.float64) for size in variables.sizes]
    return variables.levels


def _of_numbers(function: Function, variables: Variables, scope: Scope, argument: str) -> Function:
    if variables.scores is None:
        raise ArgumentError("categories have no numbers", "use bias, equal, indicator or table, or `coding='values'`")
    return function


def _of_table(variables: Variables, scope: Scope, argument: str, first: int = 0) -> Function:
    if variables.real:
        raise ArgumentError("continuous variables have no tables", "use other potentials")
    return partial(_one_hot, levels=levels_of(variables.take(scope)), first=first)


def _of_indicator(variables: Variables, scope: Scope, argument: str) -> Function:
    try:
        return partial(np.equal, float(argument))
    except ValueError:
        raise ArgumentError(f"indicator:{argument} names no number", "write it as indicator:2") from None


def _of_bias(variables: Variables, scope: Scope, argument: str) -> Function:
    return _of_table(variables, scope, argument, first=1) if variables.scores is None else np.positive


def _one_hot(*values: Array, levels: Levels, first: int = 0) -> tuple[Array, ...]:
    """An indicator of every combination of values, the last changing fastest, from number `first` on."""
    picks = (zip(levels, places, values, strict=True) for places in np.ndindex(*map(len, levels)))
    return tuple(reduce(np.logical_and, (x == level[k] for level, k, x in pick)) for pick in picks)[first:]


def _product(*values: Array) -> Array:
    return reduce(np.multiply, values)


def _equal(*values: Array) -> Array:
    return reduce(np.logical_and, [values[0] == other for other in values[1:]])


def _absolute_difference(x: Array, y: Array) -> Array:
    return np.abs(x - y)


def _squared_difference(x: Array, y: Array) -> Array:
    return (x - y) ** 2


# every function is a name of a module or a partial of one, so that families travel to other processes
POTENTIALS = {
    "bias": Named(1, _of_bias),  # the value itself; of categories as levels
    "levels": Named(1, partial(_of_table, first=1)),  # an indicator of each value but the first
    "square": Named(1, partial(_of_numbers, np.square)),
    "indicator": Named(1, _of_indicator),
    "product": Named(None, partial(_of_numbers, _product)),
    "equal": Named(None, lambda variables, scope, argument: _equal),
    "absolute-difference": Named(2, partial(_of_numbers, _absolute_difference)),
    "squared-difference": Named(2, partial(_of_numbers, _squared_difference)),
    "table": Named(None, _of_table),
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
    scope: Scope
    places: Array
    function: Function
    named: bool

    def features(self, *values: Array) -> Array:
        """Return the statistics at values that broadcast, on a last axis."""
        values = tuple(np.asarray(value, dtype=np.float64) for value in values)
        result = self.function(*values)
        shape = np.broadcast_shapes(*(value.shape for value in values))
        parts = [np.asarray(part, np.float64) for part in (result if isinstance(result, tuple) else (result,))]
        return np.stack([np.broadcast_to(part, shape) for part in parts], axis=-1)

    def table(self, levels: Levels) -> Array:
        """Return the statistics at all codes, the variables ascending, the statistics on the last axis."""
        grid = np.meshgrid(*(levels[i] for i in self.scope), indexing="ij", sparse=True)
        return self.features(*grid).transpose(*np.argsort(self.scope), -1)

    def along(self, rows: Array, i: int, points: Array) -> Array:
        """Return the statistics of each row while variable i goes through points, the same or some for each row."""
        return self.features(*(points if j == i else rows[:, j, None] for j in self.scope))


def terms_of(
    potentials: Iterable[str | Potential] | Potential,
    variables: Variables,
    graph: Graph | None,
    cliques: Iterable[Sequence[int]],
    tied: bool,
    names: Sequence[str] | None,
) -> tuple[tuple[Term, ...], int]:
    """Apply potentials as `PotentialsFamily.build` says; return the terms and the number of parameters."""
    known = [f"x{i}" for i in range(len(variables))] if names is None else names
    edges = [] if graph is None else map(tuple, graph.edges.tolist())
    scopes = Scopes.sorted([*((i,) for i in range(len(variables))), *edges, *cliques], len(variables))
    levels, terms, n_parameters = levels_of(variables), [], 0
    places: dict[tuple[str, Scope], Array] = {}
    for each in potentials if isinstance(potentials, Iterable) else (potentials,):
        potential = Potential(each) if isinstance(each, str) else each
        if not isinstance(potential, Potential):
            raise ArgumentError(
                "must hold names or Potential objects", "write ['product', 'bias']", argument="potentials", value=each
            )
        shared = tied if potential.tied is None else potential.tied
        fitting = filter(potential.fits, scopes)
        for scope in fitting if potential.scopes is None else numbered(potential.scopes, known):
            function, key = potential.on(scope, variables), (potential.name, () if shared else scope)
            term = Term(potential.name, scope, np.empty(0), function, potential.function is None)
            n_statistics = term.features(*(levels[i][:1] for i in scope)).shape[-1]
            own = places.setdefault(key, np.arange(n_parameters, n_parameters + n_statistics))
            if len(own) != n_statistics:
                raise ArgumentError(
                    f"the potential {potential.name!r} has {len(own)} statistics on one scope and {n_statistics} on "
                    f"{tuple(known[i] for i in scope)}",
                    "give it parameters of its own on each with `tied=False`",
                )
            n_parameters = max(n_parameters, int(own[-1]) + 1)
            terms.append(term._replace(places=own))
    if not terms:
        raise ArgumentError("no potential applies to any variables", "give a graph, cliques or other potentials")
    return tuple(terms), n_parameters


class Label(NamedTuple):
    """What a parameter is called: its potential, its variables where no others share it, and its number of several."""

    potential: str
    scope: Scope
    number: str

    def text(self, names: Sequence[str]) -> str:
        """Return the label, given the names of the variables."""
        variables = f"({','.join(names[i] for i in self.scope)})" if self.scope else ""
        return f"{self.potential}{variables}{self.number}"


def labels_of(terms: Iterable[Term], n_parameters: int) -> tuple[Label, ...]:
    """Return what the parameters of terms are called."""
    labels: dict[int, Label] = {}
    for term in terms:
        for k, place in enumerate(term.places.tolist()):
            scope = () if place in labels else term.scope
            labels[place] = Label(term.name, scope, f"[{k}]" if term.places.size > 1 else "")
    return tuple(labels.get(place, Label("none", (), "")) for place in range(n_parameters))


# -- the family -------------------------------------------------------------------------------------------------------
class PotentialsParts(NamedTuple):
    """Theta: the weight of each statistic."""

    weights: Array


@dataclass(frozen=True, eq=False)
class PotentialsFamily:
    """``P(x) = exp(sum_t theta_t . f_t(x_t)) / Z`` with functions f_t of a few variables each (YU20 eq. 1).

    It is the family of tables over the scopes of the functions, whose entries are ``design @ theta``. Terms of one name
    may share their parameters: then a statistic is the sum of the function over all their scopes.

    Parameters
    ----------
    tables : TablesFamily
        The tables of the functions; `build` makes all.
    design : sparse matrix
        What each entry of the tables (row) has of each parameter (column).
    labels : tuple of Label
        What the parameters are called.

    Examples
    --------
    An Ising lattice with one coupling:

    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.models.families.potentials import PotentialsFamily
    >>> family = PotentialsFamily.build(["product"], gb.models.variables.Variables.spins(4), gb.graphs.grid(2, 2))
    >>> family.log_weights(np.array([0.5]), np.array([[1, 1, 1, 1], [1, 1, 1, 0]]))
    array([2., 0.])
    """

    tables: TablesFamily
    design: csr_array
    labels: tuple[Label, ...]

    registered_name: ClassVar[str] = "potentials"
    n_hidden: ClassVar[int] = 0
    parts_in_file: ClassVar[PartsInFile] = {
        "n_variables": SIZE,
        "labels": Listed(
            Record({"potential": TEXT, "scope": Listed(Plain((int,), 0)), "number": TEXT}), size="parameters"
        ),
        "indptr": wholes("ends"),
        "members": wholes("members", below="all"),
        "entries": wholes("nonzero"),
        "columns": wholes("nonzero", below="parameters"),
        "values": reals("nonzero"),
        "theta": reals("parameters"),
    }
    __getstate__ = fields_alone

    @classmethod
    def build(
        cls,
        potentials: Iterable[str | Potential] | Potential,
        variables: Variables,
        graph: Graph | None = None,
        cliques: Iterable[Sequence[int]] = (),
        *,
        tied: bool = True,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Return the family of potentials on the variables and edges of a graph, and on further cliques.

        Parameters
        ----------
        potentials : sequence of str or Potential
            Named ones, or functions with their scopes.
        variables : Variables
            Their values.
        graph : Graph, optional
            Whose edges are cliques.
        cliques : iterable of tuples, optional
            More sets of variables that potentials of their size apply to.
        tied : bool, default=True
            Whether a potential has the same parameters on all its scopes.
        names : sequence of str, optional
            The variables, for scopes that name them.
        """
        if variables.real:
            raise ArgumentError("are real numbers", "build a QuadratureFamily", argument="variables")
        return cls.of_terms(*terms_of(potentials, variables, graph, cliques, tied, names), variables)

    @classmethod
    def ordinal(cls, graph: Graph, variables: Variables) -> OrdinalFamily:
        """Return the family of ordered levels on a graph (see `OrdinalFamily`)."""
        return OrdinalFamily.build(["levels", "product"], variables, graph, tied=False)

    @classmethod
    def of_terms(
        cls, terms: Sequence[Term], n_parameters: int, variables: Variables, scopes: Iterable[Scope] = ()
    ) -> Self:
        """Write terms out as tables; some scopes have one in any case."""
        from scipy.sparse import csr_array

        levels, n_variables = levels_of(variables), len(variables)
        scopes = Scopes.sorted([*scopes, *(term.scope for term in terms)], n_variables)
        tables = TablesFamily(scopes, variables)
        starts = dict(zip(scopes, tables.layout.offsets.tolist(), strict=False))
        entries, columns, values = [np.empty(0, np.intp)], [np.empty(0, np.intp)], [np.empty(0)]
        for term in terms:
            n_statistics = term.places.size
            table = term.table(levels).reshape(-1, n_statistics)
            start = starts[tuple(sorted(term.scope))]
            entries.append(np.repeat(np.arange(start, start + len(table)), n_statistics))
            columns.append(np.tile(term.places, len(table)))
            values.append(table.ravel())
        where = np.concatenate(entries), np.concatenate(columns)
        design = csr_array((np.concatenate(values), where), shape=(tables.n_parameters, n_parameters))
        design.eliminate_zeros()
        return cls(tables, design, labels_of(terms, n_parameters))

    # -- structure ----------------------------------------------------------------------------------------------------
    @property
    def variables(self) -> Variables:
        """The values of the variables."""
        return self.tables.variables

    @property
    def scopes(self) -> Scopes:
        """The variables of each table."""
        return self.tables.scopes

    @property
    def n_parameters(self) -> int:
        """Number of statistics."""
        return len(self.labels)

    @cached_property
    def penalised(self) -> Array:
        """The parameters that tables of two and more variables depend on."""
        mask = np.zeros(self.n_parameters, bool)
        mask[self.design[self.tables.penalised].indices] = True
        return mask

    @cached_property
    def blocks(self) -> list[tuple[Scope, Array, Array]]:
        """For each scope the parameters that its table depends on, and for each what the entries have of it (a row)."""
        made, starts, offsets = [], self.design.indptr, self.tables.layout.offsets
        for scope, first, last in zip(self.scopes, offsets[:-1], offsets[1:], strict=True):
            own = slice(starts[first], starts[last])
            places, rows = np.unique(self.design.indices[own], return_inverse=True)
            block = np.zeros((places.size, last - first))
            block[rows, np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))] = self.design.data[own]
            made.append((scope, places, block))
        return [part for part in made if part[1].size]

    @cached_property
    def statistic_range(self) -> tuple[Array, Array]:
        """Sums of the least and of the largest entries of each table."""
        low, high = np.zeros((2, self.n_parameters))
        for _, places, block in self.blocks:
            low[places] += block.min(axis=1)
            high[places] += block.max(axis=1)
        return low, high

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the potential of each parameter, with its variables where no others share it."""
        return [label.text(names) for label in self.labels]

    def to_parts(self) -> Parts:
        """Return the scopes, the design and the labels: functions are kept as tables."""
        made = self.design.tocoo()
        where = {"entries": made.row.astype(np.int64), "columns": made.col.astype(np.int64), "values": made.data}
        labels = [{**label._asdict(), "scope": list(label.scope)} for label in self.labels]
        return Parts({"n_variables": len(self.variables), "labels": labels}, {**self.scopes.to_arrays(), **where})

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from what a file keeps."""
        from scipy.sparse import csr_array

        listed: Any = parts.plain["labels"]
        labels = tuple(Label(each["potential"], tuple(each["scope"]), each["number"]) for each in listed)
        if any(i >= len(variables) for label in labels for i in label.scope):
            refuse("labels", "names variables that are not there")
        tables, arrays = TablesFamily.from_parts(parts, variables), parts.arrays
        where = arrays["entries"], arrays["columns"]
        return cls(tables, csr_array((arrays["values"], where), shape=(tables.n_parameters, len(labels))), labels)

    # -- parameters ---------------------------------------------------------------------------------------------------
    def entries(self, theta: Array) -> Array:
        """Return the entries of all tables."""
        return self.design @ theta

    def split(self, theta: Array) -> NamedTuple:
        """Return the weights."""
        return PotentialsParts(theta)

    def canonical(self, theta: Array) -> Array:
        """Return the shortest parameters of the distribution: without what changes nothing."""
        return theta - self.gauge @ (self.gauge.T @ theta) if self.gauge.size else theta

    @cached_property
    def gauge(self) -> Array:
        """Directions of theta that change nothing, orthonormal: the zero-sum parts of all tables vanish along them."""
        from scipy.linalg import null_space

        if self.n_parameters > MAX_GAUGED:
            return np.zeros((self.n_parameters, 0))
        layout = self.tables.layout
        spans = zip(layout.offsets[:-1], layout.offsets[1:], layout.shapes, strict=True)
        tables = (self.design[start:stop].toarray().reshape(*shape, -1) for start, stop, shape in spans)
        triangles = []
        for part in zero_sum(zip(self.scopes, tables, strict=True)).values():
            rows = part.reshape(-1, self.n_parameters)
            touched = rows.any(axis=0)
            # the triangle vanishes along the same directions, and has no more rows than columns
            triangles.append(np.zeros((min(len(rows), int(touched.sum())), self.n_parameters)))
            triangles[-1][:, touched] = np.linalg.qr(rows[:, touched], mode="r")
        return null_space(np.concatenate(triangles), rcond=1e-10)

    def interactions(self, theta: Array) -> Interactions:
        """Return the norms of the tables of two and more variables in the zero-sum gauge, signed where scores are."""
        return self.tables.interactions(self.entries(theta))

    # -- the distribution, by its tables ------------------------------------------------------------------------------
    def log_weights(self, theta: Array, x: Array) -> Array:
        """Return the sum of the weighted statistics of each row."""
        return self.tables.log_weights(self.entries(theta), x)

    def statistics(self, x: Array) -> Array:
        """Return the statistics of each row."""
        return self.tables.statistics(x) @ self.design

    def mean_statistics(self, x: Array, weights: Array | None = None) -> Array:
        """Return the weighted mean of the statistics."""
        return self.design.T @ self.tables.mean_statistics(x, weights)

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows of codes to the log-odds of each value given the others."""
        return bind_tables(self.tables.layout, rows, self.design)

    def factors(self, theta: Array) -> FactorGraph:
        """Return the tables."""
        return self.tables.factors(self.entries(theta))

    def statistics_from(self, marginal: Marginal) -> Array:
        """Return the expected statistics, given the joint probabilities of each scope."""
        return self.design.T @ self.tables.statistics_from(marginal)

    def given(self, nodes: Sequence[int] | Array, codes: Sequence[int] | Array) -> Given[PotentialsFamily]:
        """Return the family of the other variables given the codes of some (see `Given`): the same parameters.

        The tables of the other variables depend on the given values, so that no two rows share them.
        """
        from scipy.sparse import csr_array

        tables, place, _, constant, _ = self.tables.given(nodes, codes)
        kept, size = np.flatnonzero(place >= 0), self.n_parameters
        pick = csr_array((np.ones(kept.size), (place[kept], kept)), shape=(tables.n_parameters, place.size))
        number = {old: new for new, old in enumerate(np.setdiff1d(np.arange(len(self.variables)), nodes).tolist())}
        labels = (label._replace(scope=tuple(number[i] for i in label.scope if i in number)) for label in self.labels)
        family = PotentialsFamily(tables, pick @ self.design, tuple(labels))
        return Given(family, np.arange(size), np.ones(size), constant @ self.design)


class OrdinalParts(NamedTuple):
    """Views of theta: the parameters of each variable's levels above the lowest, and the couplings of the edges."""

    levels: list[Array]
    couplings: Array


@dataclass(frozen=True, eq=False)
class OrdinalFamily(PotentialsFamily):
    """``P(x) = exp(sum_i h_i(x_i) + sum_ij w_ij s_i(x_i) s_j(x_j)) / Z`` with scores s of ordered levels.

    The levels' parameters are free, with zero at the lowest, so every variable given the others is a model of adjacent
    categories: ``log P(x_i = b) / P(x_i = a)`` is ``h_i(b) - h_i(a)`` plus ``s_i(b) - s_i(a)`` times a sum over the
    neighbours. A coupling is the logarithm of the odds ratio of two levels a unit apart in each variable, the same all
    over the table (Goodman 1979: uniform association where scores are a unit apart). Adding a constant to scores
    changes the levels' parameters only. With two levels it is the pairwise machine.

    `PotentialsFamily.ordinal` makes it.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.models.families.potentials import PotentialsFamily
    >>> variables = gb.models.variables.Variables.ordinal([(-1, 0, 1), (-0.5, 0.5)])
    >>> family = PotentialsFamily.ordinal(gb.graphs.complete(2), variables)
    >>> family.log_weights(np.array([0.3, 0.1, 0.5, 2.0]), [[2, 1]])                  # 0.1 + 0.5 + 2.0 * 1.0 * 0.5
    array([1.6])
    """

    registered_name: ClassVar[str] = "ordinal"
    parts_in_file: ClassVar[PartsInFile] = {
        "n_variables": SIZE,
        "edges": wholes("edges", 2, below="all"),
        "theta": reals("parameters"),
    }

    def to_parts(self) -> Parts:
        """Return the graph."""
        return Parts({"n_variables": len(self.variables)}, self.scopes.graph.to_arrays())

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> OrdinalFamily:
        """Build the family from what a file keeps."""
        return cls.ordinal(Graph.from_arrays(dict(parts.arrays), len(variables)), variables)

    def split(self, theta: Array) -> OrdinalParts:
        """Return views of the levels of each variable and of the couplings."""
        ends = np.cumsum(np.array(self.variables.sizes) - 1)
        *levels, couplings = np.split(theta, ends)
        return OrdinalParts(levels, couplings)

    def canonical(self, theta: Array) -> Array:
        """Return theta, which has no other gauge."""
        return theta

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the variable and the code of each level above the lowest, and the pairs."""
        sizes = self.variables.sizes
        levels = [f"{name}[{code}]" for name, size in zip(names, sizes, strict=True) for code in range(1, size)]
        return levels + [f"{names[i]}*{names[j]}" for i, j in self.scopes.graph.edges.tolist()]

    def interactions(self, theta: Array) -> Interactions:
        """Return the couplings along the edges, by unit of both scores."""
        pairs = tuple(map(tuple, self.scopes.graph.edges.tolist()))
        return Interactions(pairs, self.split(theta).couplings, (len(self.variables),))
