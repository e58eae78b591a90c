"""Potentials: functions of the values of a few variables, whose weighted sum is the log-weight (YU20 eq. 1).

A potential has one or several statistics. Its scopes may share parameters, so that a lattice has one coupling for all
edges. Over finitely many values every function is a table, and the entries of all tables are a linear map of the
parameters: the design.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, TypedDict, cast

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, States
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import FAMILIES, Model, Parts, fields_alone
from gibbsian.models.conditionals import Conditionals, WeightedRows, bind_tables
from gibbsian.models.factors import FactorGraph, Marginal, zero_sum
from gibbsian.models.families.scoped import Weights
from gibbsian.models.families.tables import TablesFamily
from gibbsian.models.file_parts import SIZE, TEXT, ListOf, PartsInFile, Plain, Record, integers, reals, reject
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions
from gibbsian.models.scopes import Scope, Scopes, numbered
from gibbsian.models.variables import Variables

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Function = Callable[..., object]  # type: ignore[explicit-any]  # of any number of arrays, written by users
Levels = Sequence[Floats]
"""The arguments of functions for the codes of each variable."""

# Maximum number of parameters whose gauge is computed: it takes a decomposition of a matrix of that size.
MAX_GAUGED = 2000


# -- potentials -------------------------------------------------------------------------------------------------------
def levels_of(variables: Variables) -> Levels:
    """Return the arguments of functions for the codes of each variable: scores, or the codes of categories."""
    if variables.scores is None:
        return [np.arange(size, dtype=np.float64) for size in variables.sizes]
    return variables.levels


def _one_hot(*values: Floats, levels: Levels, first: int) -> tuple[Mask, ...]:
    """Return an indicator of every combination of values, the last changing fastest, without the `first` ones."""
    picks = (zip(levels, codes, values, strict=True) for codes in np.ndindex(*map(len, levels)))
    return tuple(reduce(np.logical_and, (x == level[k] for level, k, x in pick)) for pick in picks)[first:]


def _equal(*values: Floats) -> Mask:
    return reduce(np.logical_and, [values[0] == other for other in values[1:]])


def _product(*values: Floats) -> Floats:
    return reduce(np.multiply, values)


def _absolute_difference(x: Floats, y: Floats) -> Floats:
    return np.abs(x - y)


def _squared_difference(x: Floats, y: Floats) -> Floats:
    return (x - y) ** 2


# Named potentials, which a file or the command line can say: number of variables (None for two or more), and function.
# Functions are names of a module, or partial ones, so that families can be pickled.
POTENTIALS: dict[str, tuple[int | None, Function]] = {
    "bias": (1, np.positive),  # of categories as `levels`
    "levels": (1, _one_hot),  # without the first value
    "square": (1, np.square),
    "indicator": (1, np.equal),  # of the value after a colon
    "product": (None, _product),
    "equal": (None, _equal),
    "absolute-difference": (2, _absolute_difference),
    "squared-difference": (2, _squared_difference),
    "table": (None, _one_hot),
}


@dataclass(frozen=True)
class Potential:
    """A function of the values of some variables, and where it applies.

    Parameters
    ----------
    name : str
        The name of its parameters; potentials of one name share them. Without a `function` one of `POTENTIALS`.
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
    >>> import gibbsian as gb
    >>> gb.models.Potential("bound", lambda x, y: abs(x - y) < 2).n_arguments
    2
    """

    name: str
    function: Function | None = None
    scopes: Sequence[Sequence[int | str]] | None = None
    tied: bool | None = None

    def __post_init__(self) -> None:
        if self.function is None and self._kind not in POTENTIALS:
            remedy = f"use one of {', '.join(POTENTIALS)}, or a function"
            raise ArgumentError("is not known", remedy, argument="potential", value=self.name)

    @property
    def _kind(self) -> str:
        return self.name.partition(":")[0]

    @property
    def n_arguments(self) -> int | None:
        """Number of variables; None for two or more, or any."""
        if self.function is not None:
            return len(inspect.signature(self.function).parameters)
        return POTENTIALS[self._kind][0]

    def fits(self, scope: Scope) -> bool:
        """Whether it applies to cliques of this size."""
        wanted = self.n_arguments
        return len(scope) == wanted if wanted else len(scope) > 1 or self.name == "table"

    def on(self, scope: Scope, variables: Variables) -> Function:
        """Return the function of the values of a scope."""
        if self.function is not None:
            return self.function
        categories = variables.scores is None and not variables.real
        kind, _, argument = self.name.partition(":")
        if kind == "indicator":
            try:
                return partial(np.equal, float(argument))
            except ValueError:
                raise ArgumentError(f"indicator:{argument} names no number", "write it as indicator:2") from None
        if kind in ("levels", "table") or (kind == "bias" and categories):
            if variables.real:
                raise ArgumentError("continuous variables have no tables", "use other potentials")
            return partial(_one_hot, levels=levels_of(variables.take(scope)), first=int(kind != "table"))
        if kind != "equal" and categories:
            remedy = "use bias, equal, indicator or table, or `coding='values'`"
            raise ArgumentError("categories have no numbers", remedy)
        return POTENTIALS[kind][1]


class Term(NamedTuple):
    """A potential on one scope.

    Parameters
    ----------
    name : str
        The potential.
    scope : tuple of int
        Its variables, in the order of the arguments.
    indices : ndarray of int
        The indices in theta of the parameters of its statistics.
    function : callable
        The function of the scope's values.
    named : bool
        Whether the name alone determines the function, so that a file can hold the term.
    """

    name: str
    scope: Scope
    indices: Integers
    function: Function
    named: bool

    def features(self, *values: States | float) -> Floats:
        """Return the statistics at values that broadcast, on a last axis."""
        arrays = tuple(np.asarray(value, dtype=np.float64) for value in values)
        result = self.function(*arrays)
        shape = np.broadcast_shapes(*(value.shape for value in arrays))
        parts = [np.asarray(part, np.float64) for part in (result if isinstance(result, tuple) else (result,))]
        return np.stack([np.broadcast_to(part, shape) for part in parts], axis=-1)

    def table(self, levels: Levels) -> Floats:
        """Return the statistics at all codes, the variables ascending, the statistics on the last axis."""
        grid = np.meshgrid(*(levels[i] for i in self.scope), indexing="ij", sparse=True)
        return self.features(*grid).transpose(*np.argsort(self.scope), -1)

    def along(self, rows: States, i: int, points: Floats) -> Floats:
        """Return the statistics of each row for values of variable i: ``(1 or n_rows, n_points)`` of them."""
        return self.features(*(points if j == i else rows[:, j, None] for j in self.scope))


class Label(NamedTuple):
    """The name of a parameter: potential, variables unless several scopes share it, and number among statistics."""

    potential: str
    scope: Scope
    number: str

    def text(self, names: Sequence[str]) -> str:
        """Return the label, given the names of the variables."""
        variables = f"({','.join(names[i] for i in self.scope)})" if self.scope else ""
        return f"{self.potential}{variables}{self.number}"


class WrittenLabel(TypedDict):
    """A `Label` in the header of a file."""

    potential: str
    scope: list[int]
    number: str


def labels_of(terms: Iterable[Term], n_parameters: int) -> tuple[Label, ...]:
    """Return the names of the parameters of terms."""
    labels: dict[int, Label] = {}
    for term in terms:
        for k, index in enumerate(term.indices.tolist()):
            scope = () if index in labels else term.scope
            labels[index] = Label(term.name, scope, f"[{k}]" if term.indices.size > 1 else "")
    return tuple(labels.get(index, Label("none", (), "")) for index in range(n_parameters))


# -- families ---------------------------------------------------------------------------------------------------------
class FamilyOfPotentials(ABC):
    """Base of the families of potentials: over finitely many values, and over real variables."""

    n_hidden: ClassVar[int] = 0
    __getstate__ = fields_alone

    @classmethod
    @abstractmethod
    def of_terms(cls, terms: Sequence[Term], n_parameters: int, variables: Variables) -> Self:
        """Return the family of terms."""

    @property
    @abstractmethod
    def scopes(self) -> Scopes:
        """The variables of the tables."""

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
            A graph whose edges are cliques.
        cliques : iterable of tuples, optional
            More sets of variables that potentials of their size apply to.
        tied : bool, default=True
            Whether a potential has the same parameters on all its scopes.
        names : sequence of str, optional
            The variables, for scopes that name them.
        """
        columns = [f"x{i}" for i in range(len(variables))] if names is None else names
        edges = [] if graph is None else map(tuple, graph.edges.tolist())
        scopes = Scopes.sorted([*((i,) for i in range(len(variables))), *edges, *cliques], len(variables))
        terms: list[Term] = []
        n_parameters, levels = 0, levels_of(variables)
        indices_of: dict[tuple[str, Scope], Integers] = {}
        for each in potentials if isinstance(potentials, Iterable) else (potentials,):
            potential = Potential(each) if isinstance(each, str) else each
            if not isinstance(potential, Potential):
                remedy = "write ['product', 'bias']"
                raise ArgumentError("must hold names or Potential objects", remedy, argument="potentials", value=each)
            shared = tied if potential.tied is None else potential.tied
            fitting = filter(potential.fits, scopes)
            for scope in fitting if potential.scopes is None else numbered(potential.scopes, columns):
                function, key = potential.on(scope, variables), (potential.name, () if shared else scope)
                term = Term(potential.name, scope, np.empty(0, np.intp), function, potential.function is None)
                n_statistics = term.features(*(levels[i][:1] for i in scope)).shape[-1]
                indices = indices_of.setdefault(key, np.arange(n_parameters, n_parameters + n_statistics))
                if len(indices) != n_statistics:
                    raise ArgumentError(
                        f"the potential {potential.name!r} has {len(indices)} statistics on one scope "
                        f"and {n_statistics} on {tuple(columns[i] for i in scope)}",
                        "give it parameters of its own on each with `tied=False`",
                    )
                n_parameters = max(n_parameters, int(indices[-1]) + 1)
                terms.append(term._replace(indices=indices))
        if not terms:
            raise ArgumentError("no potential applies to any variables", "give a graph, cliques or other potentials")
        return cls.of_terms(terms, n_parameters, variables)

    @property
    def graph(self) -> Graph:
        """The pairs of variables that share a potential."""
        return self.scopes.graph

    def split(self, theta: Floats) -> NamedTuple:
        """Return the weights."""
        return Weights(theta)


@FAMILIES.register("potentials")
@dataclass(frozen=True, eq=False)
class PotentialsFamily(FamilyOfPotentials):
    """``P(x) = exp(sum_t theta_t f_t(x_t)) / Z`` with functions f_t of a few variables each (YU20 eq. 1).

    It is the family of tables over the scopes of the functions, with entries ``design @ theta``. If terms of one name
    share parameters, a statistic is the sum of the function over all their scopes.

    Parameters
    ----------
    tables : TablesFamily
        The tables of the functions. `build` makes all three from potentials.
    design : sparse matrix
        The derivative of each entry of the tables (row) by each parameter (column).
    labels : tuple of Label
        The names of the parameters.

    Examples
    --------
    An Ising lattice with one coupling:

    >>> import numpy as np, gibbsian as gb
    >>> family = gb.PotentialsFamily.build(["product"], gb.Variables.spins(4), gb.graphs.grid(2, 2))
    >>> family.log_weights(np.array([0.5]), np.array([[1, 1, 1, 1], [1, 1, 1, 0]]))
    array([2., 0.])
    """

    tables: TablesFamily
    design: csr_array
    labels: tuple[Label, ...]

    registered_name: ClassVar[str]
    parts_in_file: ClassVar[PartsInFile] = {
        "n_variables": SIZE,
        "labels": ListOf(
            Record({"potential": TEXT, "scope": ListOf(Plain((int,), 0)), "number": TEXT}), size="parameters"
        ),
        "indptr": integers("ends"),
        "members": integers("members", below="all"),
        "entries": integers("nonzero"),
        "columns": integers("nonzero", below="parameters"),
        "values": reals("nonzero"),
        "theta": reals("parameters"),
    }

    @classmethod
    def ordinal(cls, graph: Graph, variables: Variables) -> OrdinalFamily:
        """Return the family of ordered levels on a graph (see `OrdinalFamily`)."""
        return OrdinalFamily.build(["levels", "product"], variables, graph, tied=False)

    @classmethod
    def of_terms(
        cls, terms: Sequence[Term], n_parameters: int, variables: Variables, scopes: Iterable[Scope] = ()
    ) -> Self:
        """Return the family of terms; `scopes` get a table also without a term."""
        from scipy.sparse import csr_array

        levels, n_variables = levels_of(variables), len(variables)
        scopes = Scopes.sorted([*scopes, *(term.scope for term in terms)], n_variables)
        tables = TablesFamily(scopes, variables)
        starts = dict(zip(scopes, tables.layout.offsets.tolist(), strict=False))
        rows, columns, values = [np.empty(0, np.intp)], [np.empty(0, np.intp)], [np.empty(0)]
        for term in terms:
            n_statistics = term.indices.size
            table = term.table(levels).reshape(-1, n_statistics)
            start = starts[tuple(sorted(term.scope))]
            rows.append(np.repeat(np.arange(start, start + len(table)), n_statistics))
            columns.append(np.tile(term.indices, len(table)))
            values.append(table.ravel())
        cells = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        design = csr_array(cells, shape=(tables.n_parameters, n_parameters))
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
    def penalised(self) -> Mask:
        """Mask of the parameters of tables of two or more variables."""
        return self._parameters_of(self.tables.penalised)

    def terms_of(self, variables: Mask) -> Mask:
        """Return the mask of the parameters of tables that contain any of the masked variables."""
        return self._parameters_of(self.tables.terms_of(variables))

    def _parameters_of(self, entries: Mask) -> Mask:
        """Return the mask of the parameters that any of the masked entries depends on."""
        return np.isin(np.arange(self.n_parameters), self.design[entries].indices)

    @cached_property
    def blocks(self) -> list[tuple[Scope, Integers, Floats]]:
        """For each scope the indices of the parameters of its table, and the block of the design, transposed."""
        blocks, starts, offsets = [], self.design.indptr, self.tables.layout.offsets
        for scope, first, last in zip(self.scopes, offsets[:-1], offsets[1:], strict=True):
            cells = slice(starts[first], starts[last])
            indices, rows = np.unique(self.design.indices[cells], return_inverse=True)
            block = np.zeros((indices.size, last - first))
            block[rows, np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))] = self.design.data[cells]
            blocks.append((scope, indices, block))
        return [block for block in blocks if block[1].size]

    @cached_property
    def statistic_range(self) -> tuple[Floats, Floats]:
        """The sums of the minimum and of the maximum of each table."""
        low, high = np.zeros((2, self.n_parameters))
        for _, indices, block in self.blocks:
            low[indices] += block.min(axis=1)
            high[indices] += block.max(axis=1)
        return low, high

    def log_odds(self, theta: Floats) -> Floats:
        """Return the largest change of a log-probability by each parameter through one of its tables."""
        largest = np.zeros(self.n_parameters)
        for _, indices, block in self.blocks:
            largest[indices] = np.maximum(largest[indices], np.ptp(block, axis=1))
        return largest * np.abs(theta)

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the potential of each parameter, with its variables unless several scopes share it."""
        return [label.text(names) for label in self.labels]

    def to_parts(self) -> Parts:
        """Return the scopes, the design and the labels; functions are written as tables."""
        cells = self.design.tocoo()
        design = {"entries": cells.row.astype(np.int64), "columns": cells.col.astype(np.int64), "values": cells.data}
        labels = [{**label._asdict(), "scope": list(label.scope)} for label in self.labels]
        return Parts({"n_variables": len(self.variables), "labels": labels}, {**self.scopes.to_arrays(), **design})

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from the parts of a model file."""
        from scipy.sparse import csr_array

        written = cast("list[WrittenLabel]", parts.plain["labels"])
        labels = tuple(Label(each["potential"], tuple(each["scope"]), each["number"]) for each in written)
        if any(i >= len(variables) for label in labels for i in label.scope):
            reject("labels", "names variables that are not there")
        tables, arrays = TablesFamily.from_parts(parts, variables), parts.arrays
        cells = arrays["values"], (arrays["entries"], arrays["columns"])
        return cls(tables, csr_array(cells, shape=(tables.n_parameters, len(labels))), labels)

    # -- parameters ---------------------------------------------------------------------------------------------------
    def to_tables(self, theta: Floats) -> Model[TablesFamily]:
        """Return the same distribution as tables."""
        return Model(self.tables, self.design @ theta)

    def canonical(self, theta: Floats) -> Floats:
        """Return the parameters of the distribution with the smallest norm."""
        return theta - self._gauge @ (self._gauge.T @ theta) if self._gauge.size else theta

    @cached_property
    def _gauge(self) -> Floats:
        """Orthonormal directions of theta in which the distribution is constant: zero-sum parts of tables vanish."""
        from scipy.linalg import null_space

        if self.n_parameters > MAX_GAUGED:
            return np.zeros((self.n_parameters, 0))
        layout = self.tables.layout
        spans = zip(layout.offsets[:-1], layout.offsets[1:], layout.shapes, strict=True)
        tables = (self.design[start:stop].toarray().reshape(*shape, -1) for start, stop, shape in spans)
        triangles = []
        for part in zero_sum(zip(self.scopes, tables, strict=True)).values():
            rows = part.reshape(-1, self.n_parameters)
            used = rows.any(axis=0)
            # the triangle of QR vanishes in the same directions, and is square at most
            triangles.append(np.zeros((min(len(rows), int(used.sum())), self.n_parameters)))
            triangles[-1][:, used] = np.linalg.qr(rows[:, used], mode="r")
        return np.asarray(null_space(np.concatenate(triangles), rcond=1e-10))

    def interactions(self, theta: Floats) -> Interactions:
        """Return the norms of tables of two or more variables in the zero-sum gauge, signed if there are scores."""
        return self.tables.interactions(self.design @ theta)

    # -- the distribution, by its tables ------------------------------------------------------------------------------
    def log_weights(self, theta: Floats, x: States) -> Floats:
        """Return the sum of the weighted statistics of each row."""
        return self.tables.log_weights(self.design @ theta, x)

    def statistics(self, x: States) -> Floats:
        """Return the statistics of each row."""
        return np.asarray(self.tables.statistics(x) @ self.design)

    def mean_statistics(self, x: States, weights: Floats | None = None) -> Floats:
        """Return the weighted mean of the statistics."""
        return np.asarray(self.design.T @ self.tables.mean_statistics(x, weights))

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows, for losses of the log-odds of each variable given all others."""
        return bind_tables(self.tables, rows._replace(codes=self.variables.checked(rows.codes)), self.design)

    def factors(self, theta: Floats) -> FactorGraph:
        """Return the tables."""
        return self.tables.factors(self.design @ theta)

    def statistics_from(self, marginal: Marginal) -> Floats:
        """Return the expected statistics, given the joint probabilities of the variables of each scope."""
        return np.asarray(self.design.T @ self.tables.statistics_from(marginal))

    def given(self, nodes: Sequence[int] | Integers, codes: Sequence[int] | States) -> Given[PotentialsFamily]:
        """Condition on the codes of some variables: parameters stay, but tables and the family depend on the codes."""
        from scipy.sparse import csr_array

        tables, target, _, constant, _ = self.tables.given(nodes, codes)
        free, size = np.flatnonzero(target >= 0), self.n_parameters
        pick = csr_array((np.ones(free.size), (target[free], free)), shape=(tables.n_parameters, target.size))
        new = {old: i for i, old in enumerate(np.setdiff1d(np.arange(len(self.variables)), nodes).tolist())}
        labels = (label._replace(scope=tuple(new[i] for i in label.scope if i in new)) for label in self.labels)
        family = PotentialsFamily(tables, pick @ self.design, tuple(labels))
        return Given(family, np.arange(size), np.ones(size), constant @ self.design)


class OrdinalParts(NamedTuple):
    """Views of theta: the parameters of each variable's levels above the lowest, and the couplings of the edges."""

    levels: list[Floats]
    couplings: Floats


@FAMILIES.register("ordinal")
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
    >>> variables = gb.Variables.ordinal([(-1, 0, 1), (-0.5, 0.5)])
    >>> family = gb.PotentialsFamily.ordinal(gb.graphs.complete(2), variables)
    >>> family.log_weights(np.array([0.3, 0.1, 0.5, 2.0]), [[2, 1]])                  # 0.1 + 0.5 + 2.0 * 1.0 * 0.5
    array([1.6])
    """

    registered_name: ClassVar[str]
    parts_in_file: ClassVar[PartsInFile] = {
        "n_variables": SIZE,
        "edges": integers("edges", 2, below="all"),
        "theta": reals("parameters"),
    }

    def to_parts(self) -> Parts:
        """Return the graph."""
        return Parts({"n_variables": len(self.variables)}, self.scopes.graph.to_arrays())

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> OrdinalFamily:
        """Build the family from the graph of a model file."""
        return cls.ordinal(Graph.from_arrays(dict(parts.arrays), len(variables)), variables)

    def split(self, theta: Floats) -> OrdinalParts:
        """Return views of the levels of each variable and of the couplings."""
        ends = np.cumsum(np.array(self.variables.sizes) - 1)
        *levels, couplings = np.split(theta, ends)
        return OrdinalParts(levels, couplings)

    def canonical(self, theta: Floats) -> Floats:
        """Return theta, which is unique."""
        return theta

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the variable and the code of each level above the lowest, and the pairs."""
        sizes = self.variables.sizes
        levels = [f"{name}[{code}]" for name, size in zip(names, sizes, strict=True) for code in range(1, size)]
        return levels + [f"{names[i]}*{names[j]}" for i, j in self.scopes.graph.edges.tolist()]

    def interactions(self, theta: Floats) -> Interactions:
        """Return the couplings along the edges, by unit of both scores."""
        pairs = tuple(map(tuple, self.scopes.graph.edges.tolist()))
        return Interactions(pairs, self.split(theta).couplings, (len(self.variables),))
