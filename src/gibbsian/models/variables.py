"""The variables of a family: numbers of values, scores, and the check of rows of codes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers, States
from gibbsian.domain import AnyDomain, Categories, Continuum, Domain
from gibbsian.errors import ArgumentError, CodingError, MissingValuesError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

CUT = "cut them at a threshold with `coding=Threshold(t)`"


def fields_alone(self: DataclassInstance) -> dict[str, object]:
    """Return the fields of a dataclass, without cached properties: the ``__getstate__`` of families."""
    return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True)
class Variables:
    """The number of values of each variable, and their scores.

    Rows of discrete variables hold **codes** 0, 1, ... (int8). If any variable is real, rows hold numbers (float64).
    Scores are the numbers that products of values use, such as -1 and 1 for spins. Labels that a user reads belong to
    the data (`gibbsian.data`), scores to the family.

    Parameters
    ----------
    sizes : tuple of int
        Number of values of each variable (at most 127 for columns of data); 0 for a real variable.
    scores : tuple of tuple of float, optional
        The scores of each variable, one for each code: ``(-1, 1)`` for spins, ``(0, 1)`` for binary variables. None for
        categories without order.

    Examples
    --------
    >>> from gibbsian.models.variables import Variables
    >>> Variables.spins(2).scores
    ((-1.0, 1.0), (-1.0, 1.0))
    >>> Variables.categories((3, 2)).sizes
    (3, 2)
    """

    sizes: tuple[int, ...]
    scores: tuple[tuple[float, ...], ...] | None = None

    __getstate__ = fields_alone

    def __post_init__(self) -> None:
        for i, size in enumerate(self.sizes):
            if size < 0:
                raise ArgumentError(f"gives variable {i} {size} values", argument="sizes")
        if self.scores is not None and tuple(map(len, self.scores)) != self.sizes:
            raise ArgumentError("must hold one number for each value of each variable", argument="scores")

    @classmethod
    def spins(cls, n: int) -> Self:
        """Return two-valued variables with the scores -1 and 1."""
        return cls((2,) * n, ((-1.0, 1.0),) * n)

    @classmethod
    def binary(cls, n: int) -> Self:
        """Return two-valued variables with the scores 0 and 1."""
        return cls((2,) * n, ((0.0, 1.0),) * n)

    @classmethod
    def ordinal(cls, scores: Iterable[Sequence[float]]) -> Self:
        """Return variables with the given scores.

        Examples
        --------
        >>> from gibbsian.models.variables import Variables
        >>> Variables.ordinal([(-1, 0, 1), (0, 1)]).sizes
        (3, 2)
        """
        levels = tuple(tuple(map(float, each)) for each in scores)
        return cls(tuple(map(len, levels)), levels)

    @classmethod
    def categories(cls, sizes: Iterable[int]) -> Self:
        """Return variables whose values have no order, and no scores."""
        return cls(tuple(map(int, sizes)))

    @classmethod
    def reals(cls, n: int) -> Self:
        """Return real variables."""
        return cls((0,) * n)

    def __len__(self) -> int:
        return len(self.sizes)

    def __add__(self, other: Variables) -> Variables:
        """Return the variables followed by others; scores are dropped unless both have them."""
        if self.scores is None or other.scores is None:
            return Variables(self.sizes + other.sizes)
        return Variables(self.sizes + other.sizes, self.scores + other.scores)

    def take(self, nodes: Iterable[int]) -> Self:
        """Return the selected variables, in the order given."""
        chosen = list(nodes)
        scores = None if self.scores is None else tuple(self.scores[i] for i in chosen)
        return replace(self, sizes=tuple(self.sizes[i] for i in chosen), scores=scores)

    @cached_property
    def two_valued(self) -> bool:
        """Whether every variable has two values."""
        return all(size == 2 for size in self.sizes) and not self.real

    @property
    def real(self) -> bool:
        """Whether any variable is a real number, so that rows are float64."""
        return 0 in self.sizes

    @cached_property
    def offsets(self) -> Integers:
        """Index of the first value of each variable in the list of all values; the last entry is its length."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def groups(self) -> Integers | None:
        """Boundaries of the columns of each variable in `Conditionals`; None for two-valued ones, with one each."""
        return None if self.two_valued else self.offsets

    @cached_property
    def levels(self) -> tuple[Floats, ...]:
        """The scores of each variable as arrays; an error for categories, which have none."""
        if self.scores is None:
            raise CodingError(
                "categories have no order and no numbers", "use a family of tables, or give scores (`coding='values'`)"
            )
        return tuple(np.array(each) for each in self.scores)

    @cached_property
    def padded_levels(self) -> Floats:
        """The scores of each variable as the rows of a matrix, padded with zeros."""
        width = max(self.sizes)
        return np.array([scores.tolist() + [0.0] * (width - scores.size) for scores in self.levels])

    @cached_property
    def lows_and_gaps(self) -> tuple[Floats, Floats]:
        """The score of code 0 of each two-valued variable, and the difference to the score of code 1."""
        low, high = np.array(self.scores).reshape(-1, 2).T
        return low, high - low

    def checked(self, x: object, name: str = "x") -> States:
        """Return rows of codes as int8, or of real numbers as float64; an error names the first invalid cell.

        Kernels index tables with codes without further checks. Valid arrays are not copied.
        """
        rows: States = as_reals(x, name) if self.real else as_codes(x, name)
        if rows.ndim != 2 or rows.shape[1] != len(self):
            raise ArgumentError(f"{name} has shape {rows.shape}", f"give rows of {len(self)} variables")
        # as bytes without a sign, negative codes are large: one pass where all variables have as many values
        if not self.real and rows.size and rows.view(np.uint8).max() >= min(self.sizes):
            wrong = np.argwhere((rows < 0) | (rows >= self.sizes))
            if not wrong.size:
                return rows
            row, column = wrong[0].tolist()
            raise CodingError(
                f"{name} holds {rows[row, column]} for variable {column}",
                f"give its code, from 0 to {self.sizes[column] - 1}, or a Dataset",
            )
        return rows

    def scores_of(self, codes: States) -> Floats:
        """Return the scores of codes.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.variables import Variables
        >>> Variables.spins(2).scores_of(np.array([[0, 1]]))
        array([[-1.,  1.]])
        """
        if self.two_valued and self.scores is not None:
            scores = codes.astype(np.float64, order="C")
            low, gap = (float(each[0]) if (each == each[0]).all() else each for each in self.lows_and_gaps)
            scores *= gap
            scores += low
            return scores
        return np.asarray(np.concatenate(self.levels)[self.offsets[:-1] + codes], np.float64)

    def rows_of(self, codes: States) -> States:
        """Return the rows of data for codes: the codes, or the nodes of a `Quadrature`."""
        return codes

    def codes_of(self, rows: States) -> States:
        """Return the codes of rows of data: the rows, or the indices of nodes of a `Quadrature`."""
        return rows

    def log_widths(self, codes: States) -> Floats:
        """Return the log-volume of the cell of each row of codes: 0, or the product of quadrature weights."""
        return np.zeros(len(codes))


@dataclass(frozen=True)
class Quadrature(Variables):
    """Real variables with a quadrature rule, so that integrals are sums over codes.

    Rows hold real numbers (float64) of the support. Codes are the indices of the nodes, which ascend; the nodes are the
    scores.

    Parameters
    ----------
    sizes, scores
        Number of nodes, and the nodes; the constructor `of` sets both.
    support : Continuum
        The support of all variables, with its base measure and quadrature rule.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.domain import Continuum
    >>> from gibbsian.models.variables import Quadrature
    >>> Quadrature.of(Continuum("interval", -1, 1, n_nodes=2), 2).rows_of(np.array([[0, 1]])).round(4)
    array([[-0.5774,  0.5774]])
    """

    support: Continuum = field(default_factory=Continuum)

    @classmethod
    def of(cls, support: Continuum, n: int) -> Self:
        """Return `n` variables with a support."""
        return cls((support.n_nodes,) * n, (tuple(support.nodes.tolist()),) * n, support)

    @property
    def real(self) -> bool:
        """True: rows are float64."""
        return True

    def checked(self, x: object, name: str = "x") -> States:
        """Return rows of real numbers as float64; an error names the first cell outside the support."""
        rows, low, high = super().checked(x, name), self.support.low, self.support.high
        outside = (rows < low) | (rows > high)
        if self.support.bounded and outside.any():
            row, column = np.argwhere(outside)[0].tolist()
            raise CodingError(
                f"{name} holds {rows[row, column]:g} for variable {column}",
                f"the support is from {low:g} to {high:g}",
            )
        return rows

    def codes_of(self, rows: States) -> States:
        """Return the indices of nodes; an error for numbers that are not nodes."""
        nodes = self.support.nodes
        codes = np.searchsorted((nodes[1:] + nodes[:-1]) / 2, rows)
        if not np.array_equal(nodes[codes], rows):
            raise CodingError("this needs discrete values, but the variables are continuous", CUT)
        return codes.astype(np.int8)

    def rows_of(self, codes: States) -> States:
        """Return the nodes of codes."""
        return self.scores_of(codes)

    def log_widths(self, codes: States) -> Floats:
        """Return the log-volume of the cell of each row of nodes: log-probability is log-density plus log-volume."""
        return np.asarray(self.support.node_log_widths[codes].sum(axis=1))


VariablesOf = Variables | Callable[[int], Variables]
"""Variables, or a constructor that takes the number of variables: `Variables.spins`, `Variables.binary`."""


def as_variables(variables: VariablesOf, n: int) -> Variables:
    """Return `n` variables.

    Examples
    --------
    >>> from gibbsian.models.variables import Variables, as_variables
    >>> as_variables(Variables.binary, 2) == Variables.binary(2)
    True
    """
    result = variables if isinstance(variables, Variables) else variables(n)
    if len(result) != n:
        raise ArgumentError(f"has {len(result)} entries for {n} variables", argument="variables")
    return result


def require_two_values(variables: Variables) -> None:
    """Raise `CodingError` unless every variable has two values and scores."""
    if variables.real:
        raise CodingError("this needs two-valued variables, but they are real numbers", CUT)
    if not variables.two_valued or variables.scores is None:
        kind = "are categories of" if variables.scores is None else "have"
        raise CodingError(
            f"this needs two-valued variables, but they {kind} up to {max(variables.sizes)} values",
            "use `PottsMachine`, or `HigherOrderBoltzmannMachine` with `coding='values'`",
        )


def variables_of(domain: AnyDomain, n_variables: int) -> Variables:
    """Return the variables of a domain of data."""
    if isinstance(domain, Continuum):
        return Quadrature.of(domain, n_variables)
    if isinstance(domain, Categories):
        return Variables(domain.sizes, domain.values)
    if isinstance(domain, Domain):
        return Variables((2,) * n_variables, ((float(domain.low), float(domain.high)),) * n_variables)
    return Variables.reals(n_variables)


# -- checks of arrays that come from outside --------------------------------------------------------------------------
def as_codes(x: object, name: str) -> Codes:
    """Return integers as int8; an error for other numbers."""
    try:
        given = np.asarray(x)
    except ValueError:
        raise ArgumentError(f"{name} has rows of different lengths", "give rows of one length") from None
    if given.dtype == np.int8:
        return given
    if given.dtype.kind == "O":
        with contextlib.suppress(TypeError, ValueError):
            given = given.astype(np.float64)
    if given.dtype.kind not in "biuf":
        raise CodingError(f"{name} does not hold numbers", "read labels with `Dataset.read`")
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise MissingValuesError(f"{name} has missing cells (NaN)", "drop those rows, or fill them first")
    with np.errstate(invalid="ignore"):
        codes = given.astype(np.int8)
    if (changed := codes != given).any():
        raise CodingError(
            f"{name} holds {given[changed].flat[0].item()}, which is not a code",
            "give the codes 0, 1, 2 ... of the values, or a Dataset",
        )
    return codes


def as_reals(x: object, name: str) -> Floats:
    """Return finite numbers as float64; an error for other values."""
    try:
        rows: Floats = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise CodingError(f"{name} does not hold numbers", "read it with `Dataset.read`") from None
    if not np.isfinite(rows).all():
        raise MissingValuesError(f"{name} has cells that are not finite", "drop those rows, or fill them first")
    return rows


def checked_weights(weights: object, n_rows: int) -> Floats:
    """Return the weights of rows divided by their sum; equal ones by default."""
    if n_rows == 0:
        raise ArgumentError("x has no rows", "a mean needs at least one row")
    if weights is None:
        return np.full(n_rows, 1.0 / n_rows)
    given: Floats = np.asarray(weights, dtype=np.float64)
    if given.shape != (n_rows,):
        raise ArgumentError(f"weights has shape {given.shape}", f"give one for each of {n_rows} rows")
    return np.asarray(given / given.sum())


def checked_fixed(sizes: Sequence[int], nodes: Iterable[int], codes: object) -> tuple[tuple[int, ...], Integers]:
    """Return the given variables and their codes, after a check of both against the numbers of values."""
    n_variables, given = len(sizes), np.asarray(nodes)
    if given.size == 0:
        given = np.empty(0, np.intp)
    if given.ndim != 1 or given.dtype.kind not in "iu" or given.min(initial=0) < 0:
        raise ArgumentError(f"must be a list of numbers from 0 to {n_variables - 1}", argument="nodes", value=nodes)
    if given.max(initial=0) >= n_variables or np.unique(given).size < given.size:
        raise ArgumentError(
            f"must name variables from 0 to {n_variables - 1}, each once", argument="nodes", value=nodes
        )
    if given.size == n_variables:
        raise ArgumentError("every variable is given", "leave at least one free")
    values = np.asarray(codes)
    if values.shape != given.shape:
        raise ArgumentError(f"codes has shape {values.shape}", f"give one for each of {given.size} nodes")
    for node, code in zip(given.tolist(), values.tolist(), strict=True):
        if code not in range(sizes[node]):
            raise ArgumentError(f"codes gives {code!r} to variable {node}", f"its codes are 0 to {sizes[node] - 1}")
    return tuple(given.tolist()), values.astype(np.intp)
