"""Tables of labels: the values of each column, how they become numbers and back, and which cells cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from gibbsian.errors import DataError, MissingValuesError
from gibbsian.mixtures.rows import column_label

NUMBERS = "biuf"  # kinds of arrays whose values compare with each other


@dataclass(frozen=True)
class Levels:
    """The values of each column, in order: how labels become numbers and back.

    Parameters
    ----------
    values : tuple of arrays
        The values of each column.
    names : sequence of str, optional
        What messages call the columns; their numbers otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.levels import Levels
    >>> levels = Levels.of(np.array([["red", "s"], ["blue", "s"]], dtype=object))
    >>> levels.one_hot(np.array([["red", "s"]], dtype=object)).toarray()
    array([[0., 1., 1.]])
    """

    values: tuple[np.ndarray, ...]
    names: Any = None

    @classmethod
    def of(cls, table: np.ndarray, names: Any = None) -> Levels:
        """Collect the values of each column of a table."""
        return cls(tuple(_values(table[:, j], column_label(names, j)) for j in range(table.shape[1])), names)

    @property
    def starts(self) -> np.ndarray:
        """Where each column's values begin among the one-hot columns, and the end."""
        return np.concatenate([[0], np.cumsum([len(values) for values in self.values])])

    def codes(self, table: np.ndarray) -> np.ndarray:
        """Return the number of each cell's value."""
        codes = np.empty(table.shape, dtype=np.int64)
        for j, values in enumerate(self.values):
            codes[:, j] = _codes(values, table[:, j], column_label(self.names, j))
            unseen = np.flatnonzero(codes[:, j] < 0)
            if len(unseen):
                raise DataError(
                    f"row {unseen[0]}, column {column_label(self.names, j)} holds {_plain(table[unseen[0], j])!r}, "
                    "which the fit has not seen",
                    f"its values were {_listed(values)}",
                )
        return codes

    def one_hot(self, table: np.ndarray) -> Any:
        """Return the rows written one-hot, as a CSR array."""
        return self.one_hot_of_codes(self.codes(table))

    def one_hot_of_codes(self, codes: np.ndarray) -> Any:
        """Return rows of value numbers written one-hot, as a CSR array."""
        n_rows, n_columns = codes.shape
        indices = (codes + self.starts[:-1]).ravel()
        ends = np.arange(n_rows + 1) * n_columns
        return sparse.csr_array((np.ones(codes.size), indices, ends), (n_rows, int(self.starts[-1])))

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the labels of value numbers; columns of different kinds stay what they are, as objects."""
        columns = [values[codes[:, j]] for j, values in enumerate(self.values)]
        if len({values.dtype.kind for values in self.values}) > 1:
            columns = [column.astype(object) for column in columns]
        return np.column_stack(columns)

    def written(self) -> list[list[Any]]:
        """Return the values as plain words and numbers, which a file can hold."""
        plain = [[_plain(value) for value in values] for values in self.values]
        for j, values in enumerate(plain):
            strange = next((value for value in values if not isinstance(value, str | int | float)), None)
            if strange is not None:
                raise DataError(
                    f"column {column_label(self.names, j)} holds {strange!r}, which a file of a mixture cannot keep",
                    "fit words or numbers instead",
                )
        return plain

    @classmethod
    def read(cls, written: list[list[Any]], as_objects: bool, names: Any = None) -> Levels:
        """Rebuild from `written`."""
        return cls(tuple(np.array(values, dtype=object if as_objects else None) for values in written), names)


def check_present(table: np.ndarray, names: Any = None) -> None:
    """Raise `MissingValuesError` naming the first missing cell: None, NaN, NaT or pandas' NA.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.levels import check_present
    >>> check_present(np.array([["a"], [None]], dtype=object), ["colour"])
    Traceback (most recent call last):
        ...
    gibbsian.errors.MissingValuesError: row 1, column 'colour' is missing: fill it or leave the row out
    """
    if table.dtype.kind in "mM":
        missing = np.isnat(table)
    elif table.dtype == object:
        missing = np.array([_is_missing(value) for value in table.ravel()], dtype=bool).reshape(table.shape)
    else:
        return
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise MissingValuesError(
            f"row {row}, column {column_label(names, column)} is missing", "fill it or leave the row out"
        )


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is neither true nor false
        return True


def _values(column: np.ndarray, label: str) -> np.ndarray:
    try:
        return np.unique(column)
    except TypeError:
        raise DataError(f"column {label} mixes words and numbers", "write all of its values as words") from None


def _codes(values: np.ndarray, column: np.ndarray, label: str) -> np.ndarray:
    """The place of each cell among the values, -1 where it is not one of them."""
    kinds = values.dtype.kind, column.dtype.kind
    if (kinds[0] == kinds[1] and values.dtype != object) or (kinds[0] in NUMBERS and kinds[1] in NUMBERS):
        places = np.minimum(np.searchsorted(values, column), len(values) - 1)
        return np.where(values[places] == column, places, -1)
    places_of = {value: place for place, value in enumerate(values.tolist())}
    try:
        return np.array([places_of.get(value, -1) for value in column.tolist()], dtype=np.int64)
    except TypeError:
        raise DataError(f"column {label} holds lists or other objects", "give words or numbers") from None


def _listed(values: np.ndarray) -> str:
    return f"{', '.join(map(str, values[:5]))}{' ...' if len(values) > 5 else ''}"


def _plain(value: Any) -> Any:
    """A NumPy scalar as the plain value it is."""
    return value.item() if isinstance(value, np.generic) and value.dtype.kind not in "mM" else value
