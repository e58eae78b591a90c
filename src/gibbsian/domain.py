"""How users write the values of variables, and the numbers that stand for them in products.

A `Coding` is what stands in the user's table: it names the two labels of all columns and the two numbers that stand for
them (`Domain`); a `CategoryCoding` does so for each column (`Domain` or `Categories`), and a `RealCoding` has no
labels. Data hold codes 0, 1, ... in the order of the labels, or real numbers; `Rows.variables` are what families get.
The same labels mean another distribution with other numbers, so data in a foreign coding is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from gibbsian.errors import CodingError

Label = bool | int | float | str


@dataclass(frozen=True)
class Domain:
    """The two values of a variable as they enter the energy.

    Parameters
    ----------
    name : str
        ``"spin"`` or ``"binary"``.
    low, high : int
        The two values.

    Examples
    --------
    >>> from gibbsian.domain import SPIN
    >>> SPIN.low, SPIN.high
    (-1, 1)
    """

    name: str
    low: int
    high: int
    two_valued: ClassVar[bool] = True


SPIN = Domain("spin", -1, 1)
BINARY = Domain("binary", 0, 1)
DOMAINS = {domain.name: domain for domain in (SPIN, BINARY)}


# States are int8, so that a million rows of a hundred variables take 100 MB.
MOST_VALUES = 127
# Labels that a message lists; beyond them it counts.
MOST_LABELS_SHOWN = 6


@dataclass(frozen=True)
class Categories:
    """Variables with q_i values each.

    Parameters
    ----------
    sizes : tuple of int
        Number of values of each variable, from 1 to 127.
    values : tuple of tuple of float, optional
        The real numbers that stand for the values of each variable in products ``x_i x_j`` (Y18: any finite sample
        space, e.g. -1, 0, 1). By default the values are categories without order, and models are tables over them.

    Examples
    --------
    >>> from gibbsian.domain import Categories
    >>> Categories.of_values((-1, 0, 1), n_variables=2).values
    ((-1.0, 0.0, 1.0), (-1.0, 0.0, 1.0))
    """

    sizes: tuple[int, ...]
    values: tuple[tuple[float, ...], ...] | None = None
    two_valued: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for i, size in enumerate(self.sizes):
            if not 1 <= size <= MOST_VALUES:
                raise CodingError(f"variable {i} has {size} values", f"from 1 to {MOST_VALUES} are possible")
        if self.values is not None and tuple(map(len, self.values)) != tuple(self.sizes):
            raise CodingError("values must hold as many numbers for each variable as sizes says")

    @classmethod
    def of_values(cls, values: Sequence[float], n_variables: int) -> Self:
        """Give every variable the same real values."""
        numbers = tuple(float(value) for value in values)
        if len(set(numbers)) < len(numbers):
            raise CodingError("names a number twice", "give each once", argument="values", value=values)
        return cls((len(numbers),) * n_variables, (numbers,) * n_variables)

    @property
    def name(self) -> str:
        """``"categorical"``, or ``"values"`` where the values are numbers."""
        return "categorical" if self.values is None else "values"


@dataclass(frozen=True)
class Reals:
    """Variables that are real numbers, which no codes stand for.

    Examples
    --------
    >>> from gibbsian.domain import REALS
    >>> REALS.name, REALS.two_valued
    ('real', False)
    """

    name: str = "real"
    two_valued: ClassVar[bool] = False


@dataclass(frozen=True)
class Continuum(Reals):
    """Real variables whose integrals are sums over the nodes of a Gaussian quadrature rule, which stand as codes.

    Parameters
    ----------
    name : {"interval", "gaussian"}
        From `low` to `high` with Lebesgue measure (Gauss-Legendre), or the whole line with the normal density of mean
        `low` and standard deviation `high` as base measure (Gauss-Hermite).
    low, high : float
        The ends, or mean and standard deviation.
    n_nodes : int
        Nodes of the rule, up to 127. Smooth log-densities need few; kinks such as ``|x - y|`` need many.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.domain import Continuum
    >>> line = Continuum("gaussian", 1.0, 2.0)
    >>> bool(np.isclose(np.exp(line.node_log_weights) @ line.nodes**2, 1.0**2 + 2.0**2))
    True
    >>> Continuum("interval", -1, 1, n_nodes=2).nodes.round(4).tolist()
    [-0.5774, 0.5774]
    """

    name: str = "interval"
    low: float = 0.0
    high: float = 1.0
    n_nodes: int = 24

    def __post_init__(self) -> None:
        if self.name not in ("interval", "gaussian"):
            raise CodingError("is not known", "use 'interval' or 'gaussian'", argument="name", value=self.name)
        ends = np.isfinite([self.low, self.high]).all()
        if not ends or not (self.high > self.low if self.bounded else self.high > 0):
            words = "two ends, the lower first" if self.bounded else "a mean and a positive standard deviation"
            raise CodingError(f"({self.low}, {self.high}) is no support", f"give {words}")
        if not 2 <= self.n_nodes <= MOST_VALUES:
            raise CodingError(f"must be from 2 to {MOST_VALUES}", argument="n_nodes", value=self.n_nodes)

    @property
    def bounded(self) -> bool:
        """Whether the support is an interval."""
        return self.name == "interval"

    @cached_property
    def _rule(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights on the support."""
        if self.bounded:
            nodes, weights = np.polynomial.legendre.leggauss(self.n_nodes)
            half = (self.high - self.low) / 2
            return self.low + half * (nodes + 1), half * weights
        nodes, weights = np.polynomial.hermite_e.hermegauss(self.n_nodes)
        return self.low + self.high * nodes, weights / weights.sum()

    @property
    def nodes(self) -> np.ndarray:
        """The nodes, ascending."""
        return self._rule[0]

    @property
    def node_log_weights(self) -> np.ndarray:
        """The logarithms of the nodes' weights."""
        return np.log(self._rule[1])

    @property
    def node_log_widths(self) -> np.ndarray:
        """The logarithms of how much of the support the nodes stand for: a density times it is a probability."""
        return self.node_log_weights - self.log_base(self.nodes)

    def log_base(self, states: np.ndarray) -> np.ndarray:
        """Return the log-density of the base measure at numbers."""
        if self.bounded:
            return np.zeros(np.shape(states))
        return -(((states - self.low) / self.high) ** 2) / 2 - np.log(self.high * np.sqrt(2 * np.pi))


REALS = Reals()
AnyDomain = Domain | Categories | Reals


@dataclass(frozen=True)
class Coding:
    """How the two values are written in a table.

    Parameters
    ----------
    name : str
        What messages call it.
    low, high : bool, int, float or str
        The labels of the lower and upper value.
    domain : Domain
        The numbers that stand for them in the energy.
    rule : Threshold, Shares or OneHot, optional
        How cells that are none of these labels become such (see `gibbsian.data.rules`). It has no part in whether two
        codings are equal.

    Examples
    --------
    >>> from gibbsian.domain import as_coding
    >>> as_coding("yes/no").high
    'yes'
    >>> as_coding(("disagree", "agree")).domain.name
    'binary'
    """

    name: str
    low: Label
    high: Label
    domain: Domain
    rule: object = field(default=None, compare=False, repr=False)

    def describe(self) -> str:
        """Name the coding with its labels, for messages."""
        return f"{self.name} ({self.low}/{self.high})"

    def labels_of(self, column: int) -> tuple[Label, ...]:
        """Return the labels of a column in the order of the codes: the same for all."""
        return self.low, self.high

    def decode(self, codes: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
        """Return codes in the labels of the coding.

        Number codings give integers, or floats with NaN where `missing`; truth values give booleans; labels, and
        truth values with missing cells, give objects with None.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.domain import as_coding
        >>> as_coding("yes/no").decode(np.array([[0, 1]])).tolist()
        [['no', 'yes']]
        """
        high = np.asarray(codes) == 1
        holes = missing is not None and bool(np.any(missing))
        if isinstance(self.low, bool) and not holes:
            return high
        if any(isinstance(label, bool | str) for label in (self.low, self.high)):
            labels = np.array([self.low, self.high], dtype=object)[high.astype(np.intp)]
            if holes:
                labels[missing] = None
            return labels
        small = all(isinstance(label, int) and abs(label) <= 127 for label in (self.low, self.high)) and not holes
        pair = np.array([self.high, self.low], np.int8 if small else None)
        # whole numbers beyond those of the machine
        values = np.where(high, *(pair.astype(np.float64) if pair.dtype == object else pair))
        if holes:
            values = values.astype(np.float64)
            values[missing] = np.nan
        return values


@dataclass(frozen=True)
class CategoryCoding:
    """How the values of each column are written, each column by itself.

    Parameters
    ----------
    labels : tuple of tuple
        For each column its labels (words, numbers or truth values), in the order of the codes 0, 1, ...
    domain : Categories or Domain
        The values as they enter the energy: categories, real numbers (the labels themselves, or scores of ordered
        ones), or the two numbers of a two-valued domain where every column has two labels.
    rule : Threshold, Shares, OneHot or Columns, optional
        How cells that are none of these labels become such (see `gibbsian.data.rules`). It has no part in whether two
        codings are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.domain import CategoryCoding
    >>> coding = CategoryCoding.of_labels([("blond", "brown", "red"), ("no", "yes")])
    >>> coding.domain.sizes
    (3, 2)
    >>> coding.decode(np.array([[2, 0]])).tolist()
    [['red', 'no']]
    """

    labels: tuple[tuple[Label, ...], ...]
    domain: Categories | Domain
    rule: object = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for column, labels in enumerate(self.labels):
            if len(set(zip(map(type, labels), labels, strict=True))) < len(labels):
                raise CodingError(f"the labels {labels} of column {column} name a value twice", "give each once")
        sizes = self.domain.sizes if isinstance(self.domain, Categories) else (2,) * len(self.labels)
        if tuple(map(len, self.labels)) != tuple(sizes):
            raise CodingError("labels must hold as many for each column as the domain has values")

    @classmethod
    def of_labels(cls, labels: Sequence[Sequence[Label]]) -> Self:
        """Build from the labels of each column; they are categories without order."""
        listed = tuple(map(tuple, labels))
        return cls(listed, Categories(tuple(map(len, listed))))

    @classmethod
    def of_values(cls, values: Sequence[float], n_variables: int) -> Self:
        """Build for columns that all take the same real values.

        Examples
        --------
        >>> from gibbsian.domain import CategoryCoding
        >>> CategoryCoding.of_values((-1, 0, 1), n_variables=4).describe()
        'values (-1/0/1)'
        """
        return cls((tuple(values),) * n_variables, Categories.of_values(values, n_variables))

    @classmethod
    def of_levels(cls, labels: Sequence[Sequence[Label]]) -> Self:
        """Build from the labels of each column in their order; their scores are numbers, less the mean of the column's.

        Numbers are their own scores, other labels are counted.

        Examples
        --------
        >>> from gibbsian.domain import CategoryCoding
        >>> CategoryCoding.of_levels([("low", "mid", "high"), (0, 1), (1, 2, 6)]).domain.values
        ((-1.0, 0.0, 1.0), (-0.5, 0.5), (-2.0, -1.0, 3.0))
        """
        listed = tuple(map(tuple, labels))
        return cls(listed, Categories(tuple(map(len, listed)), tuple(map(_scores, listed))))

    @property
    def name(self) -> str:
        """The domain's name; ``"ordinal"`` where the labels are ordered and have scores."""
        scored = isinstance(self.domain, Categories) and self.domain.values not in (None, self.labels)
        return "ordinal" if scored else self.domain.name

    def describe(self) -> str:
        """Name the coding with its labels, or their numbers, for messages."""
        kinds = {"/".join(map(str, labels)): len(labels) for labels in self.labels}
        if sum(kinds.values()) <= MOST_LABELS_SHOWN:
            return f"{self.name} ({', '.join(kinds)})"
        fewest, most = min(kinds.values()), max(kinds.values())
        return f"{self.name} ({most} values each)" if fewest == most else f"{self.name} ({fewest} to {most} values)"

    def labels_of(self, column: int) -> tuple[Label, ...]:
        """Return the labels of a column in the order of the codes."""
        return self.labels[column]

    def decode(self, codes: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
        """Return codes in the labels of the coding.

        Labels that are all numbers give numbers, NaN where `missing`; all truth values give booleans; anything else
        gives objects, None where `missing`.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.domain import CategoryCoding
        >>> CategoryCoding.of_labels([(1, 5), (0.5, 2)]).decode(np.array([[1, 0]]))
        array([[5. , 0.5]])
        """
        codes = np.asarray(codes).astype(np.intp)
        if codes.ndim != 2 or codes.shape[1] != len(self.labels):
            raise CodingError(f"codes have the shape {codes.shape}, not one column for each of {len(self.labels)}")
        holes = missing is not None and bool(np.any(missing))
        kind = self._kind_of_labels(holes)
        decoded: np.ndarray = np.empty(codes.shape, dtype=kind)
        for j, labels in enumerate(self.labels):
            known: np.ndarray = np.empty(len(labels), dtype=kind)
            known[:] = labels
            decoded[:, j] = known[codes[:, j]]
        if holes:
            decoded[missing] = None if kind is object else np.nan
        return decoded

    def _kind_of_labels(self, holes: bool) -> type:
        every = [label for labels in self.labels for label in labels]
        truths = [isinstance(label, bool) for label in every]
        if all(truths):
            return object if holes else np.bool_
        if any(truths) or any(isinstance(label, str) for label in every):
            return object
        whole = [label for label in every if isinstance(label, int)]
        if holes or len(whole) < len(every):
            return np.float64
        return np.int8 if max(map(abs, whole)) <= np.iinfo(np.int8).max else np.int64


def _scores(labels: Sequence[Label]) -> tuple[float, ...]:
    """The labels themselves where all are numbers, else their places, less their mean."""
    numbers = not any(isinstance(label, bool | str) for label in labels)
    scores = np.array(labels if numbers else range(len(labels)), dtype=np.float64)
    return tuple((scores - scores.mean()).tolist())


@dataclass(frozen=True)
class RealCoding:
    """Columns of real numbers, written as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.domain import RealCoding
    >>> RealCoding().decode(np.array([[0.5, 2.0]]), np.array([[False, True]]))
    array([[0.5, nan]])
    """

    domain: Reals = REALS
    rule: object = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """``"real"``."""
        return self.domain.name

    def describe(self) -> str:
        """Name the coding, for messages."""
        return "real numbers"

    def labels_of(self, column: int) -> tuple[Label, ...]:
        """Return the labels of a column: none."""
        return ()

    def decode(self, states: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
        """Return the numbers, NaN where `missing`."""
        return states if missing is None else np.where(missing, np.nan, states)


AnyCoding = Coding | CategoryCoding | RealCoding

# Codings of many values, which only the data can fill with labels.
MANY_VALUED = ("categorical", "values", "ordinal")


CODINGS = {
    coding.name: coding
    for coding in (
        Coding("spin", -1, 1, SPIN),
        Coding("binary", 0, 1, BINARY),
        Coding("yes/no", "no", "yes", BINARY),
        Coding("y/n", "n", "y", BINARY),
        Coding("true/false", False, True, BINARY),
    )
}


def as_coding(coding: object) -> Coding:
    """Turn a name, a pair ``(low, high)`` of labels or a `Coding` into a `Coding`.

    Examples
    --------
    >>> from gibbsian.domain import as_coding
    >>> as_coding("spin")
    Coding(name='spin', low=-1, high=1, domain=Domain(name='spin', low=-1, high=1))
    """
    if isinstance(coding, Coding):
        return coding
    if isinstance(coding, str):
        if coding in CODINGS:
            return CODINGS[coding]
        if coding in MANY_VALUED:
            raise CodingError(
                "is for variables with many values",
                "read the data with `Dataset.read` and learn it with `PottsMachine` or `HigherOrderBoltzmannMachine`",
                argument="coding",
                value=coding,
            )
        raise CodingError(
            "is not known",
            f"use one of {', '.join(CODINGS)}, or a pair (low, high) of labels",
            argument="coding",
            value=coding,
        )
    try:
        low, high = coding if isinstance(coding, Iterable) else ()
    except (TypeError, ValueError):
        raise CodingError("must be a name or a pair (low, high) of labels", argument="coding", value=coding) from None
    if low == high:
        raise CodingError("needs two different labels", argument="coding", value=coding)
    for known in CODINGS.values():
        if (type(low), low, type(high), high) == (type(known.low), known.low, type(known.high), known.high):
            return known
    return Coding(f"{low}/{high}", low, high, BINARY)
