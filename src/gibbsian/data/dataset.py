"""`Dataset`: the one form in which data reaches models, learners and diagnostics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gibbsian.data.categories import encode_categories, numbers_common_to, relabel
from gibbsian.data.coding import check_coding, encode, same_coding
from gibbsian.data.distinct import distinct_codes, distinct_rows
from gibbsian.data.one_hot import Groups, table_from_one_hot, table_of_dummies
from gibbsian.data.readers import read_table
from gibbsian.data.table import Table
from gibbsian.data.weights import check_weights
from gibbsian.domain import MANY_VALUED, AnyCoding, AnyDomain, CategoryCoding, Coding, Domain, as_coding
from gibbsian.errors import ArgumentError, CodingError, DataError, MissingValuesError
from gibbsian.rng import RandomState, as_generator

# What to do about missing cells where a learner cannot have them.
LEARN_OTHERWISE = "learn with learner='mle' or 'em', which sum them out, or 'pcd', which samples them, or "


@dataclass(frozen=True, eq=False)
class Dataset:
    """Distinct states with their weights; made by `Dataset.read`.

    Statistics are sums over rows, so equal rows are kept once with their weights summed. The distinct states stand in
    a fixed order that does not depend on the order of the rows.

    Parameters
    ----------
    states : int8 ndarray of shape (n_states, n_variables)
        Distinct states in the values of the domain. A missing cell holds the lower (or first) value and must not be
        read.
    weights : float64 ndarray of shape (n_states,)
        Summed sample weights of the equal rows; zero where all of them have weight zero.
    missing : bool ndarray like `states`, or None
        Where cells are missing; None when none is.
    coding : Coding or CategoryCoding
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
    coding: AnyCoding
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
        coding: str | tuple[Any, Any] | AnyCoding = "auto",
        names: Sequence[str] | None = None,
        sample_weight: Any = None,
        binarize: float | None = None,
        values: Sequence[float] | None = None,
        categories: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        one_hot: Groups | None = None,
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
            ``.parquet``, ``.npy`` or ``.npz`` file (``file.npz:key`` names one of its arrays); or a `Dataset`, which is
            checked and returned.
        coding : "auto", str, pair of labels, Coding or CategoryCoding
            ``"spin"`` (-1/1), ``"binary"`` (0/1), ``"yes/no"``, ``"y/n"``, ``"true/false"``, or a pair
            ``(low, high)`` of labels. By default it is recognised over all columns together. Letter case does not
            matter and numerals are numbers. Data whose only value is 1 is binary. For columns with any number of
            values ``"categorical"`` (labels of each column; see Notes) or ``"values"`` (real numbers common to all
            columns, such as -1, 0, 1).
        names : sequence of str, optional
            Names of the source's columns, instead of its own.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, zero or positive.
        binarize : float, optional
            Numbers above this threshold become the upper value, all others the lower; the coding is then binary
            unless declared.
        values : sequence of float, optional
            The numbers of the coding ``"values"``, also where some do not occur.
        categories : sequence, or mapping from column to sequence, optional
            Labels of all columns, or of some, in the order they are to have, also where some do not occur; the coding
            is then ``"categorical"``.
        one_hot : str or mapping, optional
            Dummy columns to put together: the separator between variable and value in their names (``"_"``; the last
            one counts), or for each variable its columns. The coding is then ``"categorical"``.
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

        The labels of a ``"categorical"`` column are those it shows, numbers before words, in ascending order. A pandas
        category column or a polars Enum keeps its own order, and also the values it does not show, so that a model may
        know a value before it has seen it. Words in two letter cases in one column are two values. A one-hot array
        of shape (rows, variables, values) is read too. In one-hot data a variable whose values are all zero in a row
        is missing there.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1, None], [1, 1, 0]])
        Dataset(n_rows=2, n_variables=3, n_states=2, coding='binary', n_missing=1)
        >>> gb.Dataset.read([[0.2, 3.1], [1.7, 0.4]], binarize=1.0).states.tolist()
        [[0, 1], [1, 0]]
        >>> hair = gb.Dataset.read([["blond", 1], ["red", 3], ["brown", 2]], coding="categorical")
        >>> hair.states.tolist(), hair.coding.labels
        ([[0, 0], [1, 1], [2, 2]], (('blond', 'brown', 'red'), (1, 2, 3)))
        """
        if isinstance(source, Dataset):
            table_options = (names, binarize, columns, weight_column, drop or None, values, categories, one_hot)
            return cls._again(source, coding, sample_weight, table_options, declared_by)
        settled = _settled(coding, values, categories, one_hot)
        many_valued = isinstance(settled, CategoryCoding) or settled in MANY_VALUED
        if many_valued and getattr(source, "ndim", 0) == 3:
            table = table_from_one_hot(source, names)
        else:
            table = read_table(source, names)
        table, sample_weight = _take_weights(table, weight_column, sample_weight)
        table = table.without([drop] if isinstance(drop, str) else drop)
        if columns is not None:
            table = table.select([columns] if isinstance(columns, str) else list(columns))
        if table.shape[1] == 0:
            raise DataError("no columns are left to model", "drop fewer of them")
        if one_hot is not None:
            table = table_of_dummies(table, one_hot)
        row_weights = None if sample_weight is None else check_weights(sample_weight, table.shape[0])
        if many_valued:
            codes, missing, labels = encode_categories(
                table, settled, values=values, categories=categories, binarize=binarize, declared_by=declared_by
            )
            return cls._of_codes(codes, missing, labels, table.names, row_weights)
        high, missing, found = encode(table, settled, binarize, declared_by)
        return cls._of_rows(high, missing, found, table.names, row_weights)

    @classmethod
    def _again(
        cls, data: Dataset, coding: Any, sample_weight: Any, table_options: tuple[Any, ...], declared_by: str | None
    ) -> Self:
        """Check a data set that was read before."""
        if any(option is not None for option in table_options):
            raise ArgumentError(
                "names, binarize, columns, drop, `weight_column`, values, categories and `one_hot` "
                "belong to the reading of a table",
                "the data is a Dataset already",
            )
        if isinstance(coding, CategoryCoding):
            data = data._relabelled(coding, declared_by)
        elif isinstance(coding, str) and coding in MANY_VALUED:
            data = data.convert(coding)
        elif not (isinstance(coding, str) and coding == "auto"):
            declared = as_coding(coding)
            if declared_by is not None:
                check_coding(data, declared, declared_by)
            elif not same_coding(data.coding, declared):
                raise CodingError(
                    f"coding {declared.describe()} was declared but the Dataset is {data.coding.describe()}",
                    "convert it with `Dataset.convert`",
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

    @classmethod
    def _of_codes(
        cls,
        codes: np.ndarray,
        missing: np.ndarray | None,
        coding: CategoryCoding,
        names: tuple[str, ...],
        row_weights: np.ndarray | None,
    ) -> Self:
        """Build from the code of each cell, rows in the user's order."""
        first, row_of = distinct_codes(codes, coding.domain.sizes, missing)
        weights = np.bincount(row_of, row_weights, minlength=len(first)).astype(np.float64)
        holes = None if missing is None else missing[first]
        return cls(codes[first], weights, holes, coding, names, row_of, row_weights)

    # -- sizes --------------------------------------------------------------------------------------------------------
    @property
    def domain(self) -> AnyDomain:
        """The values as they enter the energy."""
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
    def convert(self, coding: str | tuple[Any, Any] | AnyCoding) -> Self:
        """Return the same data written in another coding: low stays low, high stays high, and labels keep their names.

        Categories with two values each become the lower and upper value of a two-valued coding, in their order.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1], [1, 1]]).convert("spin").states.tolist()
        [[-1, 1], [1, 1]]
        >>> gb.Dataset.read([["no", "yes"], ["yes", "yes"]]).convert("categorical").domain.sizes
        (2, 2)
        """
        if isinstance(coding, CategoryCoding):
            return self._relabelled(coding)
        if isinstance(coding, str) and coding in MANY_VALUED:
            labels = self.labels
            if coding == "values":
                return self._relabelled(CategoryCoding.of_values(numbers_common_to(labels, self.names), len(labels)))
            return self._relabelled(CategoryCoding.of_labels(labels))
        target = as_coding(coding)
        if same_coding(self.coding, target):
            return self
        for name, labels in zip(self.names, self.labels, strict=True):
            if len(labels) != 2:
                raise CodingError(
                    f"column {name!r} has {len(labels)} values, so it cannot be written as {target.describe()}",
                    "drop it, or read the data with `binarize=threshold`",
                )
        return replace(self, states=_in_domain(self.domain.to_codes(self.states) == 1, target.domain), coding=target)

    @property
    def labels(self) -> tuple[tuple[Any, ...], ...]:
        """The labels of each column, in the order of the codes."""
        return tuple(self.coding.labels_of(j) for j in range(self.n_variables))

    def _relabelled(self, target: CategoryCoding, declared_by: str | None = None) -> Self:
        """Return the data in the codes of another coding that has all its labels."""
        if same_coding(self.coding, target):
            return self
        if len(target.labels) != self.n_variables:
            raise CodingError(f"the data has {self.n_variables} columns but the coding is of {len(target.labels)}")
        numbers = relabel(self.names, self.labels, target.labels, declared_by)
        codes = self.domain.to_codes(self.states)
        codes = np.column_stack([number[codes[:, j]] for j, number in enumerate(numbers)]).astype(np.int8)
        if self.missing is not None:
            codes[self.missing] = 0
        missing = None if self.missing is None else self.missing[self.row_of]
        return self._of_codes(codes[self.row_of], missing, target, self.names, self.row_weights)

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

    def require_complete(self, who: str, instead: str = LEARN_OTHERWISE) -> None:
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
            f"(first in column {column!r})",
            f"{instead}use `Dataset.complete_rows()`",
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
            raise DataError("no rows were chosen", "choose 1 or more")
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
                f"every one of the {self.n_rows} rows has a missing cell",
                "drop the columns with the most missing cells",
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
            raise ArgumentError("must lie between 0 and 1", argument="fraction", value=fraction)
        n_train = round(fraction * self.n_rows)
        if not 0 < n_train < self.n_rows:
            raise DataError(
                f"of {self.n_rows} rows leaves one part empty", "give more rows", argument="fraction", value=fraction
            )
        order = as_generator(random_state).permutation(self.n_rows)
        return self.take(np.sort(order[:n_train])), self.take(np.sort(order[n_train:]))


def _settled(coding: Any, values: Any, categories: Any, one_hot: Any) -> Any:
    """The coding that the other arguments imply where it was left open."""
    if not (isinstance(coding, str) and coding == "auto"):
        if any(given is not None for given in (values, categories, one_hot)) and not (
            isinstance(coding, CategoryCoding) or coding in MANY_VALUED
        ):
            raise ArgumentError(
                f"values, categories and `one_hot` are for variables with many values, not for `coding={coding!r}`"
            )
        return coding
    if values is not None:
        return "values"
    return coding if categories is None and one_hot is None else "categorical"


def _in_domain(high: np.ndarray, domain: Domain) -> np.ndarray:
    states = np.ascontiguousarray(high).view(np.int8) * np.int8(domain.gap)
    states += np.int8(domain.low)
    return states


def _take_weights(table: Table, weight_column: str | None, sample_weight: Any) -> tuple[Table, Any]:
    """Take the column of weights out of the table."""
    if weight_column is None:
        return table, sample_weight
    if sample_weight is not None:
        raise ArgumentError("`sample_weight` and `weight_column` were both given", "give one of them")
    weights = table.numbers(weight_column, "weight_column")
    return table.without([weight_column], "weight_column"), weights
