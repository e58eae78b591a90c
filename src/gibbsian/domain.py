"""What values a variable takes, and how users write them.

A `Domain` is mathematical: the two numbers that enter the energy, -1/+1 (spin) or 0/1 (binary). A `Coding` is what
stands in the user's table: it names the two labels and the domain whose parameters it gets. Both belong to the model:
the same numbers mean another distribution in another domain, so data in a foreign coding is refused, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.errors import CodingError


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
    >>> SPIN.low, SPIN.high, SPIN.gap
    (-1, 1, 2)
    """

    name: str
    low: int
    high: int

    @property
    def gap(self) -> int:
        """Distance between the two values."""
        return self.high - self.low


SPIN = Domain("spin", -1, 1)
BINARY = Domain("binary", 0, 1)
DOMAINS = {domain.name: domain for domain in (SPIN, BINARY)}


@dataclass(frozen=True)
class Coding:
    """How the two values are written in a table.

    Parameters
    ----------
    name : str
        What messages call it.
    low, high : Any
        The labels of the lower and upper value.
    domain : Domain
        The numbers that stand for them in the energy.

    Examples
    --------
    >>> from gibbsian.domain import as_coding
    >>> as_coding("yes/no").high
    'yes'
    >>> as_coding(("disagree", "agree")).domain.name
    'binary'
    """

    name: str
    low: Any
    high: Any
    domain: Domain

    def describe(self) -> str:
        """Name the coding with its labels, for messages."""
        return f"{self.name} ({self.low}/{self.high})"

    def decode(self, states: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
        """Return states of the domain in the labels of the coding.

        Number codings give integers, or floats with NaN where `missing`; truth values give booleans; labels, and
        truth values with missing cells, give objects with None.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.domain import as_coding
        >>> as_coding("yes/no").decode(np.array([[0, 1]])).tolist()
        [['no', 'yes']]
        """
        high = np.asarray(states) == self.domain.high
        holes = missing is not None and bool(np.any(missing))
        if isinstance(self.low, bool) and not holes:
            return high
        if any(isinstance(label, bool | str) for label in (self.low, self.high)):
            labels = np.array([self.low, self.high], dtype=object)[high.astype(np.intp)]
            if holes:
                labels[missing] = None
            return labels
        values = np.where(high, self.high, self.low)
        if holes:
            values = values.astype(np.float64)
            values[missing] = np.nan
            return values
        small = values.dtype.kind == "i" and max(abs(self.low), abs(self.high)) <= 127
        return values.astype(np.int8) if small else values


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


def as_coding(coding: str | tuple[Any, Any] | Coding) -> Coding:
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
        raise CodingError(
            f"coding={coding!r} is not known: use one of {', '.join(CODINGS)}, or a pair (low, high) of labels"
        )
    try:
        low, high = coding
    except (TypeError, ValueError):
        raise CodingError(f"coding={coding!r} must be a name or a pair (low, high) of labels") from None
    if low == high:
        raise CodingError(f"coding={coding!r} needs two different labels")
    for known in CODINGS.values():
        if (type(low), low, type(high), high) == (type(known.low), known.low, type(known.high), known.high):
            return known
    return Coding(f"{low}/{high}", low, high, BINARY)
