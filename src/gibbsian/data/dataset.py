"""`Dataset`: the one form in which data reaches models, learners and diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gibbsian.data.coding import check_coding, encode, same_coding
from gibbsian.data.distinct import distinct_rows
from gibbsian.data.readers import read_table
from gibbsian.data.table import Table
from gibbsian.data.weights import check_weights
from gibbsian.domain import Coding, Domain, as_coding
from gibbsian.errors import ArgumentError, CodingError, DataError, MissingValuesError
from gibbsian.rng import RandomState, as_generator


@dataclass(frozen=True, eq=False)
class Dataset:
    """Distinct states with their weights; made by `Dataset.read`.

    Statistics are sums over rows, so equal rows are kept once with their weights summed. The distinct states stand in
    a fixed order that does not depend on the order of the rows.

    Parameters
    ----------
    states : int8 ndarray of shape (n_states, n_variables)
        Distinct states in the values of the domain. A missing cell holds the lower value and must not be read.
    weights : float64 ndarray of shape (n_states,)
        Summed sample weights of the equal rows; zero where all of them have weight zero.
    missing : bool ndarray like `states`, or None
        Where cells are missing; None when none is.
    coding : Coding
        How the user writes the values.
    names : tuple of str
        The variables.
    row_of : int64 ndarray of shape (n_rows,)
        The distinct state of each original row, so ``per_state[data.row_of]`` is in the user's order.
    row_weights : float64 ndarray of shape (n_rows,), or None
        Sample weights of the original rows; None when all are one.

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.Dataset.read([["no", "yes"], ["yes", "yes"], ["no", "yes"]])
    >>> data.states.tolist(), data.weights.tolist(), data.row_of.tolist()
    ([[0, 1], [1, 1]], [2.0, 1.0], [0, 1, 0])
    """

    states: np.ndarray
    weights: np.ndarray
    missing: np.ndarray | None
    coding: Coding
    names: tuple[str, ...]
    row_of: np.ndarray
    row_weights: np.ndarray | None = None

    def __repr__(self) -> str:
        holes = f", n_missing={int(self.missing[self.row_of].sum())}" if self.missing is not None else ""
        return (
            f"Dataset(n_rows={self.n_rows}, n_variables={self.n_variables}, n_states={self.n_states}, "
            f"coding={self.coding.name!r}{holes})"
        )

    # -- reading ----------------------------------------------------------------------------------------------------
    @classmethod
    def read(
        cls,
        source: Any,
        *,
        coding: str | tuple[Any, Any] | Coding = "auto",
        names: Sequence[str] | None = None,
        sample_weight: Any = None,
        binarize: float | None = None,
        columns: str | Sequence[str] | None = None,
        drop: str | Sequence[str] = (),
        weight_column: str | None = None,
        declared_by: str | None = None,
    ) -> Self:
        """Read data from an array, a data frame or a file.

        Parameters
        ----------
        source : array-like, data frame, path or Dataset
            A NumPy array or nested list; a pandas or polars frame; the path of a ``.csv``, ``.tsv``, ``.txt``,
            ``.parquet``, ``.npy`` or ``.npz`` file; or a `Dataset`, which is checked and returned.
        coding : "auto", str, pair of labels or Coding
            ``"spin"`` (-1/1), ``"binary"`` (0/1), ``"yes/no"``, ``"y/n"``, ``"true/false"``, or a pair
            ``(low, high)`` of labels. By default it is recognised over all columns together. Letter case does not
            matter and numerals are numbers. Data whose only value is 1 is binary.
        names : sequence of str, optional
            Names of the source's columns, instead of its own.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, zero or positive.
        binarize : float, optional
            Numbers above this threshold become the upper value, all others the lower; the coding is then binary
            unless declared.
        columns, drop : str or sequence of str, optional
            Columns to keep, in that order; columns to leave out.
        weight_column : str, optional
            A column that holds the sample weights.
        declared_by : str, optional
            Who was fitted on `coding` (``"the model"``), so that messages can say so.

        Notes
        -----
        Missing cells are blanks, None, NaN, ``pandas.NA``, and the words ``?``, ``NA``, ``N/A``, ``nan``, ``<NA>`` and
        ``null`` in any letter case.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1, None], [1, 1, 0]])
        Dataset(n_rows=2, n_variables=3, n_states=2, coding='binary', n_missing=1)
        >>> gb.Dataset.read([[0.2, 3.1], [1.7, 0.4]], binarize=1.0).states.tolist()
        [[0, 1], [1, 0]]
        """
        if isinstance(source, Dataset):
            table_options = (names, binarize, columns, weight_column, drop or None)
            return cls._again(source, coding, sample_weight, table_options, declared_by)
        table = read_table(source, names)
        table, sample_weight = _take_weights(table, weight_column, sample_weight)
        table = table.without([drop] if isinstance(drop, str) else drop)
        if columns is not None:
            table = table.select([columns] if isinstance(columns, str) else list(columns))
        if table.shape[1] == 0:
            raise DataError("no columns are left to model: drop fewer of them")
        row_weights = None if sample_weight is None else check_weights(sample_weight, table.shape[0])
        high, missing, found = encode(table, coding, binarize, declared_by)
        return cls._of_rows(high, missing, found, table.names, row_weights)

    @classmethod
    def _again(
        cls, data: Dataset, coding: Any, sample_weight: Any, table_options: tuple[Any, ...], declared_by: str | None
    ) -> Self:
        """Check a data set that was read before."""
        if any(option is not None for option in table_options):
            raise ArgumentError(
                "names, binarize, columns, drop and weight_column belong to the reading of a table: "
                "the data is a Dataset already"
            )
        if not (isinstance(coding, str) and coding == "auto"):
            declared = as_coding(coding)
            if declared_by is not None:
                check_coding(data, declared, declared_by)
            elif not same_coding(data.coding, declared):
                raise CodingError(
                    f"coding {declared.describe()} was declared but the Dataset is {data.coding.describe()}: "
                    "convert it with Dataset.convert"
                )
        if sample_weight is None:
            return data  # type: ignore[return-value]
        row_weights = check_weights(sample_weight, data.n_rows)
        weights = np.bincount(data.row_of, row_weights, minlength=data.n_states)
        return replace(data, weights=weights, row_weights=row_weights)  # type: ignore[return-value]

    @classmethod
    def _of_rows(
        cls,
        high: np.ndarray,
        missing: np.ndarray | None,
        coding: Coding,
        names: tuple[str, ...],
        row_weights: np.ndarray | None,
    ) -> Self:
        """Build from one bool per cell, rows in the user's order."""
        first, row_of = distinct_rows(high, missing)
        weights = np.bincount(row_of, row_weights, minlength=len(first)).astype(np.float64)
        states = _in_domain(high[first], coding.domain)
        return cls(states, weights, None if missing is None else missing[first], coding, names, row_of, row_weights)

    # -- sizes --------------------------------------------------------------------------------------------------------
    @property
    def domain(self) -> Domain:
        """The two values as they enter the energy."""
        return self.coding.domain

    @property
    def n_rows(self) -> int:
        """Number of original rows."""
        return len(self.row_of)

    @property
    def n_states(self) -> int:
        """Number of distinct states."""
        return self.states.shape[0]

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.states.shape[1]

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    @property
    def has_missing(self) -> bool:
        """Whether any cell is missing."""
        return self.missing is not None

    @property
    def nbytes(self) -> int:
        """Memory that the arrays take."""
        arrays = (self.states, self.weights, self.missing, self.row_of, self.row_weights)
        return sum(array.nbytes for array in arrays if array is not None)

    # -- other forms --------------------------------------------------------------------------------------------------
    def convert(self, coding: str | tuple[Any, Any] | Coding) -> Self:
        """Return the same data written in another coding: low stays low and high stays high.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1], [1, 1]]).convert("spin").states.tolist()
        [[-1, 1], [1, 1]]
        """
        target = as_coding(coding)
        if same_coding(self.coding, target):
            return self
        return replace(self, states=_in_domain(self.states == self.domain.high, target.domain), coding=target)

    def decode(self, states: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
        """Return states in the user's own labels.

        Number codings give integers, or floats with NaN where `missing`; truth values give booleans; labels, and
        truth values with missing cells, give objects with None.

        Examples
        --------
        >>> import gibbsian as gb
        >>> data = gb.Dataset.read([["no", "yes"], ["yes", "yes"]])
        >>> data.decode(data.states).tolist()
        [['no', 'yes'], ['yes', 'yes']]
        """
        return self.coding.decode(states, missing)

    def require_complete(self, who: str, instead: str = "learn with learner='mle', which sums them out, or ") -> None:
        """Raise `MissingValuesError` when cells are missing; `who` cannot handle them, `instead` could.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1], [1, None]]).require_complete("learner='mple'")
        Traceback (most recent call last):
            ...
        gibbsian.errors.MissingValuesError: learner='mple' needs complete rows but 1 of 2 rows has missing cells
        (first in column 'x1'): ...
        """
        if self.missing is None:
            return
        holed = int(self.missing[self.row_of].any(axis=1).sum())
        have = "has" if holed == 1 else "have"
        column = self.names[int(np.flatnonzero(self.missing.any(axis=0))[0])]
        raise MissingValuesError(
            f"{who} needs complete rows but {holed} of {self.n_rows} rows {have} missing cells "
            f"(first in column {column!r}): {instead}use Dataset.complete_rows()"
        )

    # -- parts --------------------------------------------------------------------------------------------------------
    def take(self, rows: Any) -> Self:
        """Return the data of some original rows (numbers or a mask), weights kept.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1], [1, 1], [0, 0]]).take([2, 0, 0]).weights.tolist()
        [1.0, 2.0]
        """
        rows = np.arange(self.n_rows)[np.asarray(rows)]
        if rows.size == 0:
            raise DataError("no rows were chosen: choose 1 or more")
        kept, row_of = np.unique(self.row_of[rows], return_inverse=True)
        row_weights = None if self.row_weights is None else self.row_weights[rows]
        missing = None if self.missing is None else self.missing[kept]
        return replace(
            self,
            states=self.states[kept],
            weights=np.bincount(row_of, row_weights, minlength=len(kept)).astype(np.float64),
            missing=missing if missing is not None and missing.any() else None,
            row_of=row_of.astype(np.int64),
            row_weights=row_weights,
        )

    def complete_rows(self) -> Self:
        """Return the rows that have no missing cell.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1], [1, None]]).complete_rows().n_rows
        1
        """
        if self.missing is None:
            return self
        complete = ~self.missing[self.row_of].any(axis=1)
        if not complete.any():
            raise MissingValuesError(
                f"every one of the {self.n_rows} rows has a missing cell: drop the columns with the most missing cells"
            )
        return self.take(complete)

    def split(self, fraction: float = 0.8, random_state: RandomState = None) -> tuple[Self, Self]:
        """Split the original rows at random into a training part of share `fraction` and a test part.

        Examples
        --------
        >>> import gibbsian as gb
        >>> train, test = gb.datasets.load_house_votes().split(0.8, random_state=0)
        >>> train.n_rows, test.n_rows
        (348, 87)
        """
        if not 0 < fraction < 1:
            raise ArgumentError(f"fraction={fraction} must lie between 0 and 1")
        n_train = round(fraction * self.n_rows)
        if not 0 < n_train < self.n_rows:
            raise DataError(f"fraction={fraction} of {self.n_rows} rows leaves one part empty: give more rows")
        order = as_generator(random_state).permutation(self.n_rows)
        return self.take(np.sort(order[:n_train])), self.take(np.sort(order[n_train:]))


def _in_domain(high: np.ndarray, domain: Domain) -> np.ndarray:
    states = np.ascontiguousarray(high).view(np.int8) * np.int8(domain.gap)
    states += np.int8(domain.low)
    return states


def _take_weights(table: Table, weight_column: str | None, sample_weight: Any) -> tuple[Table, Any]:
    """Take the column of weights out of the table."""
    if weight_column is None:
        return table, sample_weight
    if sample_weight is not None:
        raise ArgumentError("sample_weight and weight_column were both given: give one of them")
    weights = table.numbers(weight_column, "weight_column")
    return table.without([weight_column], "weight_column"), weights
