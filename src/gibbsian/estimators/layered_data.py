"""Tables for machines made of layers: what kind of visible units a table asks for, and its rows in their states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gibbsian.data import Dataset, Threshold, Units
from gibbsian.data.encoding import coding_of_units
from gibbsian.data.numbers import check_squares
from gibbsian.domain import DOMAINS, AnyCoding, CategoryCoding, Coding, RealCoding
from gibbsian.errors import ArgumentError
from gibbsian.layered.rows import LayerRows
from gibbsian.models.layers import Layer, as_layer

HIDDEN_KINDS = ("auto", "binary", "spin")


@dataclass(frozen=True, eq=False)
class VisibleRows:
    """Rows of a table in the states of a visible layer.

    Parameters
    ----------
    rows : LayerRows
        States, weights and missing cells, in the order of the table.
    kind : str
        Kind of the units: ``"binary"``, ``"spin"``, ``"gaussian"`` or ``"categorical"``.
    coding : Coding, CategoryCoding or None
        How the table writes the states; None where they are real numbers.
    names : tuple of str
        The columns.

    Examples
    --------
    >>> from gibbsian.estimators.layered_data import read_visible
    >>> votes = read_visible([["yes", "no"], ["no", "?"]])
    >>> votes.kind, votes.rows.states.tolist(), votes.rows.missing.tolist()
    ('binary', [[1, 0], [0, 0]], [[False, False], [False, True]])
    """

    rows: LayerRows
    kind: str
    coding: AnyCoding | None
    names: tuple[str, ...]

    @property
    def n_missing(self) -> int:
        """Number of missing cells."""
        return 0 if self.rows.missing is None else int(self.rows.missing.sum())

    def layer(self, deviations: Sequence[float] = ()) -> Layer:
        """Return a visible layer for these rows.

        Examples
        --------
        >>> from gibbsian.estimators.layered_data import read_visible
        >>> read_visible([["red", 1], ["blue", 2], ["green", 1]]).layer()
        CategoricalLayer(sizes=(3, 2))
        """
        if isinstance(self.coding, CategoryCoding):
            return as_layer("categorical", len(self.names), sizes=self.coding.domain.sizes)
        settings = {"deviations": tuple(deviations)} if self.kind == "gaussian" else {}
        return as_layer(self.kind, len(self.names), **settings)


def read_visible(
    source: Any,
    visible: str = "auto",
    coding: Any = "auto",
    *,
    binarize: float | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weight_column: str | None = None,
) -> VisibleRows:
    """Read a table for a fit.

    Parameters
    ----------
    source : array-like, sparse array, data frame, path or Dataset
        The table.
    visible : "auto", "binary", "spin", "gaussian" or "categorical"
        Kind of the units. ``"auto"`` takes two-valued data as they are coded (spin for -1/1, else binary, whatever the
        labels, if all columns have the same two), numbers from 0 to 1 as probabilities of binary units, and words with
        more than two values as categories. Real numbers are Gaussian only when asked for.
    coding : as in `Dataset.read`
        How two values, or categories, are written.
    binarize : float, optional
        Numbers above this threshold become the upper value, all others the lower.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    columns, drop, weight_column : optional
        As in `Dataset.read`.

    Examples
    --------
    >>> from gibbsian.estimators.layered_data import read_visible
    >>> read_visible([[-1, 1], [1, 1]]).kind, read_visible([[0.2, 1.0], [0.9, 0.0]]).kind
    ('spin', 'binary')
    >>> read_visible([[0.2, 3.7], [0.9, 0.0]])
    Traceback (most recent call last):
        ...
    gibbsian.errors.DataError: column 'x1' holds 3.7, but visible units take two values, the same in every column, or
    numbers from 0 to 1: set visible='gaussian' for real numbers, visible='categorical' for values without order, or
    binarize=threshold
    """
    asked = coding if binarize is None else Threshold(binarize, "binary" if coding == "auto" else coding)
    data = Dataset.read(
        source,
        coding=Units(visible, asked),
        sample_weight=sample_weight,
        columns=columns,
        drop=drop,
        weight_column=weight_column,
    )
    return _unfolded(data)


def read_again(
    source: Any,
    kind: str,
    coding: AnyCoding | None,
    *,
    binarize: float | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    weight_column: str | None = None,
) -> VisibleRows:
    """Read a table for a machine that was fitted on this kind and coding.

    Where the coding is 0/1 any numbers from 0 to 1 are taken, as probabilities.

    Examples
    --------
    >>> from gibbsian.domain import as_coding
    >>> from gibbsian.estimators.layered_data import read_again
    >>> read_again([[0.25, 1.0]], "binary", as_coding("binary")).rows.states
    array([[0.25, 1.  ]])
    """
    known = replace(RealCoding() if coding is None else coding)
    if binarize is not None and known.rule is None:
        known = replace(known, rule=Threshold(binarize))
    elif kind == "binary" and isinstance(known, Coding):
        known = coding_of_units(known, "auto")
    data = Dataset.read(
        source,
        coding=known,
        sample_weight=sample_weight,
        columns=columns,
        weight_column=weight_column,
        declared_by="the model",
    )
    return _unfolded(data)


def hidden_kind(hidden: str, visible: str) -> str:
    """Settle ``"auto"``: hidden units are coded as two-valued visible ones are, and else 0/1.

    Examples
    --------
    >>> from gibbsian.estimators.layered_data import hidden_kind
    >>> hidden_kind("auto", "spin"), hidden_kind("auto", "gaussian")
    ('spin', 'binary')
    """
    if not isinstance(hidden, str) or hidden not in HIDDEN_KINDS:
        raise ArgumentError("is not known", f"use one of {', '.join(HIDDEN_KINDS)}", argument="hidden", value=hidden)
    if hidden != "auto":
        return hidden
    return visible if visible in DOMAINS else "binary"


def _unfolded(data: Dataset) -> VisibleRows:
    """The rows of a data set in their own order."""
    if isinstance(data.coding, RealCoding):
        data.require_complete("Gaussian units", "")
        check_squares(data.states, data.names)
    states, missing = data.rows()
    kind = {"real": "gaussian", "values": "categorical"}.get(data.domain.name, data.domain.name)
    coding = None if isinstance(data.coding, RealCoding) else data.coding
    return VisibleRows(LayerRows(states, data.row_weights, missing), kind, coding, data.names)
