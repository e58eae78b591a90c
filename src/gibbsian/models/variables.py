"""The values of the variables of a family."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Self

import numpy as np

from gibbsian.domain import AnyDomain, Categories, Continuum, Domain
from gibbsian.errors import ArgumentError, CodingError
from gibbsian.models.states import check_values, real_numbers, whole_numbers


def fields_alone(self: object) -> dict[str, object]:
    """Return the fields of a dataclass, for pickles: plans and tables that it keeps are not sent to other processes.

    Families have ``__getstate__ = fields_alone``.
    """
    return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class Variables:
    """The number of values of each variable, and the scores that stand for them in products.

    Rows of a family hold **codes** 0, 1, ..., one for each variable (int8), and the numbers themselves for real
    variables (float64). The labels that a user reads belong to the data, the scores to the family.

    Parameters
    ----------
    sizes : tuple of int
        Number of values of each variable, from 1 on (columns of data have no more than 127); 0 for a real number.
    scores : tuple of tuple of float, optional
        The numbers that stand for the codes of each variable in products: ``(-1, 1)`` for spins, ``(0, 1)`` for binary
        variables. None where values are categories without order.

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
        """Return variables with the scores -1 and 1."""
        return cls((2,) * n, ((-1.0, 1.0),) * n)

    @classmethod
    def binary(cls, n: int) -> Self:
        """Return variables with the scores 0 and 1."""
        return cls((2,) * n, ((0.0, 1.0),) * n)

    @classmethod
    def ordinal(cls, scores: Iterable[Sequence[float]]) -> Self:
        """Return variables with these scores.

        Examples
        --------
        >>> from gibbsian.models.variables import Variables
        >>> Variables.ordinal([(-1, 0, 1), (0, 1)]).sizes
        (3, 2)
        """
        listed = tuple(tuple(map(float, each)) for each in scores)
        return cls(tuple(map(len, listed)), listed)

    @classmethod
    def categories(cls, sizes: Iterable[int]) -> Self:
        """Return variables whose values have no order."""
        return cls(tuple(map(int, sizes)))

    @classmethod
    def reals(cls, n: int) -> Self:
        """Return real variables."""
        return cls((0,) * n)

    def __len__(self) -> int:
        return len(self.sizes)

    def __add__(self, other: Variables) -> Variables:
        """Return these variables followed by others."""
        if self.scores is None or other.scores is None:
            return Variables(self.sizes + other.sizes)
        return Variables(self.sizes + other.sizes, self.scores + other.scores)

    def take(self, nodes: Iterable[int]) -> Self:
        """Return some of the variables, in the order given."""
        chosen = list(nodes)
        scores = None if self.scores is None else tuple(self.scores[i] for i in chosen)
        return replace(self, sizes=tuple(self.sizes[i] for i in chosen), scores=scores)

    @property
    def two_valued(self) -> bool:
        """Whether every variable has two values."""
        return all(size == 2 for size in self.sizes) and not self.real

    @property
    def real(self) -> bool:
        """Whether any variable is a real number, so that rows are float64."""
        return 0 in self.sizes

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where the values of each variable begin among all values, and where the last ones end."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def groups(self) -> np.ndarray | None:
        """Where the columns of each variable begin and end in conditionals; None for two-valued ones, with one each."""
        return None if self.two_valued else self.offsets

    @cached_property
    def levels(self) -> tuple[np.ndarray, ...]:
        """The scores of each variable; refused for categories, products of which mean nothing."""
        if self.scores is None:
            raise CodingError("categories have no order and no numbers", "use a family of tables, or give scores")
        return tuple(np.array(each) for each in self.scores)

    @cached_property
    def lows_and_gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """The lower score of each two-valued variable, and the distance to the upper one."""
        low, high = np.array(self.scores).reshape(-1, 2).T
        return low, high - low

    def checked(self, x: object, name: str = "x") -> np.ndarray:
        """Return rows of codes as int8, or of numbers as float64, or say which cell is none.

        Kernels index tables with codes, so that a foreign number would read foreign memory.
        """
        rows = real_numbers(x, name) if self.real else whole_numbers(x, name)
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

    def numbers(self, codes: np.ndarray) -> np.ndarray:
        """Return the scores of codes.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.variables import Variables
        >>> Variables.spins(2).numbers(np.array([[0, 1]]))
        array([[-1.,  1.]])
        """
        if self.two_valued and self.scores is not None:
            numbers = codes.astype(np.float64, order="C")
            low, gap = (float(each[0]) if (each == each[0]).all() else each for each in self.lows_and_gaps)
            numbers *= gap
            numbers += low
            return numbers
        return np.concatenate(self.levels)[self.offsets[:-1] + codes]

    def rows_of(self, codes: np.ndarray) -> np.ndarray:
        """Return the rows of data that codes stand for: the codes, but numbers at the nodes of a `Quadrature`."""
        return codes

    def log_widths(self, codes: np.ndarray) -> np.ndarray:
        """Return how much each row of codes stands for, as a logarithm: one value each but in a `Quadrature`."""
        return np.zeros(len(codes))


@dataclass(frozen=True)
class Quadrature(Variables):
    """Real variables that list the nodes of a quadrature rule as their values, so that integrals are sums over codes.

    Rows hold numbers (float64), any of the support. Codes number the nodes, ascending, which are the scores.

    Parameters
    ----------
    sizes, scores
        How many nodes, and which: `of` makes both.
    support : Continuum
        The support of all variables with its measure and its rule.

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
        """Return variables with a support."""
        return cls((support.n_nodes,) * n, (tuple(support.nodes.tolist()),) * n, support)

    @property
    def real(self) -> bool:
        """True: rows are float64."""
        return True

    def checked(self, x: object, name: str = "x") -> np.ndarray:
        """Return rows of numbers as float64, or say which cell is outside the support."""
        rows = super().checked(x, name)
        check_values(self.support, rows, name)
        return rows

    def rows_of(self, codes: np.ndarray) -> np.ndarray:
        """Return the numbers of nodes."""
        return self.numbers(codes)

    def log_widths(self, codes: np.ndarray) -> np.ndarray:
        """Return the logarithm of the volume of each row of nodes: the density times it is the probability."""
        return self.support.node_log_widths[codes].sum(axis=1)


SPINS = Variables(())
"""Stands for as many spins as a structure has nodes."""


def variables_of(domain: AnyDomain, n_variables: int) -> Variables:
    """Return the variables whose values a domain of data lists."""
    if isinstance(domain, Continuum):
        return Quadrature.of(domain, n_variables)
    if isinstance(domain, Categories):
        return Variables(domain.sizes, domain.values)
    if isinstance(domain, Domain):
        return Variables((2,) * n_variables, ((float(domain.low), float(domain.high)),) * n_variables)
    return Variables.reals(n_variables)
