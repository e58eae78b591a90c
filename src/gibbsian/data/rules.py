"""What `coding=` can say besides the name of a coding: each column's own, a threshold, labels, numbers, dummies, units.

A coding that was made by a rule keeps it, so that a fitted model reads new data as it read those of its fit: cells that
are labels already (samples, filled rows) are taken as they are, all others by the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from gibbsian.domain import AnyCoding, CategoryCoding, Label, RealCoding, as_coding
from gibbsian.errors import ArgumentError

Groups = str | Mapping[str, Sequence[str]]

VISIBLE_KINDS = ("auto", "binary", "spin", "gaussian", "categorical")


@dataclass(frozen=True)
class Threshold:
    """Numbers above a threshold are the upper value, all others the lower.

    Parameters
    ----------
    threshold : float
        The threshold.
    coding : str, pair of labels or Coding, default="binary"
        How the two values are written; ``"categorical"`` or ``"values"`` make them 0 and 1 of such a coding.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.Dataset.read([[0.2, 3.1], [1.7, 0.4]], coding=gb.data.Threshold(1.0)).states.tolist()
    [[0, 1], [1, 0]]
    """

    threshold: float
    coding: CodingLike = "binary"

    def __post_init__(self) -> None:
        given = self.threshold
        if isinstance(given, bool) or not isinstance(given, Real) or not np.isfinite(given):
            raise ArgumentError("must be a number", argument="threshold", value=given)


@dataclass(frozen=True)
class Labels:
    """Categories with these labels, in this order, also where some do not occur.

    Parameters
    ----------
    categories : sequence, optional
        Labels of all columns; by default each column has those that it shows.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.Dataset.read([["low"], ["high"]], coding=gb.data.Labels(["low", "mid", "high"])).states.tolist()
    [[0], [2]]
    """

    categories: Sequence[Label] | None = None


@dataclass(frozen=True)
class Ordinal:
    """Levels in an order, whose scores enter products: numbers themselves, words by their place, less the mean.

    Parameters
    ----------
    categories : sequence, optional
        The levels of all columns, the lowest first; by default those that a column shows, where these are numbers, two
        values, or categories that the table itself has ordered.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.Dataset.read([["mid"], ["low"]], coding=gb.data.Ordinal(["low", "mid", "high"])).states.tolist()
    [[0], [1]]
    """

    categories: Sequence[Label] | None = None


@dataclass(frozen=True)
class Columns:
    """Each column in a coding of its own; ``coding={"sex": ["F", "M"]}`` is short for it.

    Parameters
    ----------
    declared : mapping from column to coding
        Labels in their order, a `Threshold`, `Ordinal` or `Labels`, the name of a coding (``"yes/no"``,
        ``"ordinal"``, ``"categorical"``: then the labels are recognised), or ``"drop"``.
    rest : default="auto"
        How the other columns are read, and what all are: ``"auto"`` (two values each), ``"categorical"`` or
        ``"ordinal"``.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [["M", "no"], ["F", "yes"]]
    >>> gb.Dataset.read(rows, names=["sex", "smokes"], coding={"sex": ["M", "F"]}).labels
    (('M', 'F'), ('no', 'yes'))
    """

    declared: Mapping[str, object]
    rest: CodingLike = "auto"

    @property
    def dropped(self) -> list[str]:
        """The columns that are to be left out."""
        return [name for name, coding in self.declared.items() if isinstance(coding, str) and coding == "drop"]

    @property
    def kept(self) -> dict[str, object]:
        """What the others are declared to be."""
        return {name: coding for name, coding in self.declared.items() if name not in self.dropped}


@dataclass(frozen=True)
class Values:
    """Real numbers common to all columns, also where some do not occur.

    Parameters
    ----------
    numbers : sequence of float, optional
        Two or more numbers; by default those that occur.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.Dataset.read([[0, 1], [1, 1]], coding=gb.data.Values([-1, 0, 1])).coding.describe()
    'values (-1/0/1)'
    """

    numbers: Sequence[float] | None = None


@dataclass(frozen=True)
class OneHot:
    """Dummy columns that are put together into the variables they stand for.

    Parameters
    ----------
    groups : str or mapping
        The separator between variable and value in the columns' names (``"_"``; the last one counts), or for each
        variable its columns.
    categories : optional
        As in `Labels`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> names = ["hair_blond", "hair_red"]
    >>> gb.Dataset.read([[1, 0], [0, 1]], names=names, coding=gb.data.OneHot("_")).coding.labels
    (('blond', 'red'),)
    """

    groups: Groups
    categories: Sequence[Label] | None = None


@dataclass(frozen=True)
class Shares:
    """Numbers from 0 to 1 are probabilities of the upper of two values, written 0 and 1.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.Dataset.read([[0.2, 1.0], [0.0, 0.5]], coding=gb.data.Shares()).states.dtype
    dtype('float64')
    """


@dataclass(frozen=True)
class Units:
    """Columns as the visible units of machines made of layers take them.

    Parameters
    ----------
    kind : {"auto", "binary", "spin", "gaussian", "categorical"}, default="auto"
        ``"auto"`` takes two-valued data as they are coded (if all columns have the same two values, whatever they
        are), numbers from 0 to 1 as `Shares`, and words with more than two values as categories. Real numbers are
        Gaussian only when asked for. ``"binary"`` and ``"spin"`` keep the labels of the table and say which numbers
        stand for them in the energy.
    coding : default="auto"
        How two values, or categories, are written; as in `Dataset.read`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.Dataset.read([["no", "yes"], ["yes", "yes"]], coding=gb.data.Units("spin")).variables.scores
    ((-1.0, 1.0), (-1.0, 1.0))
    """

    kind: str = "auto"
    coding: CodingLike = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in VISIBLE_KINDS:
            known = ", ".join(VISIBLE_KINDS)
            raise ArgumentError("is not known", f"use one of {known}", argument="visible", value=self.kind)


Rule = Threshold | Labels | Ordinal | Values | OneHot | Shares | Units | Columns
AnyRule = str | Rule | AnyCoding
CodingLike = AnyRule | Sequence[Label] | Mapping[str, object]
ManyValued = CategoryCoding | Labels | Ordinal | Values | OneHot
# Words that leave it to the data how they are written.
AUTOMATIC = ("auto", "auto-categorical", "auto-visible")
_RULES: dict[str, AnyRule] = {
    "real": RealCoding(), "categorical": Labels(), "ordinal": Ordinal(), "values": Values(), "auto-visible": Units(),
}  # fmt: skip


def as_rule(coding: object) -> AnyRule:
    """Return the rule or coding that a word, pair or mapping stands for; "auto" and "auto-categorical" stay words."""
    if isinstance(coding, str):
        return _RULES[coding] if coding in _RULES else coding if coding in AUTOMATIC else as_coding(coding)
    if isinstance(coding, Mapping):
        return Columns(coding)
    return coding if isinstance(coding, Rule | AnyCoding) else as_coding(coding)
