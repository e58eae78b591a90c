"""Rows for mixtures: distinct ones with weights, checked, in an order that does not depend on the table's.

A start drawn from rows in this order is the same however the table was sorted, and the same whether a row stands in it
twice or once with weight two.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from gibbsian.errors import DataError, MissingValuesError, MissingValuesWarning, notify
from gibbsian.mixtures.settings import check

# Rows whose norm differs from one by less count as unit vectors.
UNIT_TOLERANCE = 1e-6
# Sums of squares of smaller entries stay finite.
LARGEST_ENTRY = 1e140


@dataclass(frozen=True)
class WeightedRows:
    """Distinct rows and how much each counts.

    Parameters
    ----------
    rows : array or CSR array of shape (n_distinct, n_columns)
        The rows.
    weights : array of shape (n_distinct,)
        Positive weights; their sum is the number of rows of the table, or the sum of its ``sample_weight``.
    n_rows : int
        Rows of the table.

    Examples
    --------
    >>> from gibbsian.mixtures.rows import collapse
    >>> sorted(collapse([[2.0, 0.0], [1.0, 0.0], [2.0, 0.0]]).weights.tolist())
    [1.0, 2.0]
    """

    rows: Any
    weights: np.ndarray
    n_rows: int

    @property
    def total_weight(self) -> float:
        """The sum of all weights."""
        return float(self.weights.sum())

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return self.rows.shape[1]

    def require(self, n_components: int) -> None:
        """Raise `DataError` unless there are as many distinct rows as classes."""
        check("n_components", n_components)
        if n_components > len(self.weights):
            raise DataError(
                f"is more than the {len(self.weights)} distinct rows (n_samples={self.n_rows})",
                "ask for fewer classes",
                argument="n_components",
                value=n_components,
            )


def collapse(rows: Any, sample_weight: Any = None) -> WeightedRows:
    """Gather equal rows, leave out those of weight zero, and put the rest in a canonical order.

    Examples
    --------
    >>> from gibbsian.mixtures.rows import collapse
    >>> data = collapse([[1.0], [2.0], [1.0]], sample_weight=[1.0, 0.0, 2.5])
    >>> data.rows, data.weights
    (array([[1.]]), array([3.5]))
    """
    rows = rows if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
    n_rows = rows.shape[0]
    weights = checked_weights(sample_weight, n_rows)
    require_weight(weights)
    kept = np.flatnonzero(weights > 0)
    if len(kept) < n_rows:
        rows, weights = rows[kept], weights[kept]
    first, row_of = _distinct_sparse(rows) if sparse.issparse(rows) else _distinct_dense(rows)
    return WeightedRows(rows[first], np.bincount(row_of, weights, minlength=len(first)), n_rows)


def checked_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return one weight per row, ones by default.

    Examples
    --------
    >>> from gibbsian.mixtures.rows import checked_weights
    >>> checked_weights([1, -1], 2)
    Traceback (most recent call last):
        ...
    gibbsian.errors.DataError: sample_weight[1] is -1.0: weights must be finite and not negative
    """
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("`sample_weight` must hold numbers, one for each row") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise DataError(f"`sample_weight` has shape {weights.shape}", f"give one number for each of the {n_rows} rows")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise DataError(f"sample_weight[{wrong[0]}] is {weights[wrong[0]]}", "weights must be finite and not negative")
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise DataError(
                "`sample_weight` is so large that its sum is not finite", "divide the weights by their largest"
            )
    return weights


def require_weight(weights: np.ndarray) -> None:
    """Raise `DataError` unless some row counts.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.rows import require_weight
    >>> require_weight(np.zeros(2))
    Traceback (most recent call last):
        ...
    gibbsian.errors.DataError: no row has a weight above zero: there is nothing to learn from or to score
    """
    if not (weights > 0).any():
        raise DataError("no row has a weight above zero", "there is nothing to learn from or to score")


def column_label(names: Any, column: int) -> str:
    """Return how a message names a column: by its name where it has one, else by its number.

    Examples
    --------
    >>> from gibbsian.mixtures.rows import column_label
    >>> column_label(["age"], 0), column_label(None, 0)
    ("'age'", '0')
    """
    return str(column) if names is None else repr(str(names[column]))


def check_finite(rows: Any, names: Any = None) -> None:
    """Raise naming the first cell that is NaN (`MissingValuesError`) or infinite (`DataError`).

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.rows import check_finite
    >>> check_finite(np.array([[1.0, np.nan]]))
    Traceback (most recent call last):
        ...
    gibbsian.errors.MissingValuesError: row 0, column 1 holds NaN: fill it or leave the row out
    """
    values = rows.data if sparse.issparse(rows) else rows
    with np.errstate(over="ignore", invalid="ignore"):  # sums of huge cells
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
    cells = rows.tocoo() if sparse.issparse(rows) else None
    where = np.argwhere(~np.isfinite(values))[0]
    row, column = (int(cells.row[where[0]]), int(cells.col[where[0]])) if cells is not None else map(int, where)
    value = values[tuple(where)]
    word = "NaN" if np.isnan(value) else "inf" if value > 0 else "-inf"
    kind = MissingValuesError if word == "NaN" else DataError
    raise kind(f"row {row}, column {column_label(names, column)} holds {word}", "fill it or leave the row out")


def check_squares(rows: np.ndarray) -> None:
    """Raise `DataError` naming the first cell whose square could overflow in a sum.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.rows import check_squares
    >>> check_squares(np.array([[1.0, 1e200]]))
    Traceback (most recent call last):
        ...
    gibbsian.errors.DataError: row 0, column 1 holds 1e+200, too large to square: scale the columns first
    """
    if rows.size and max(rows.max(), -rows.min()) > LARGEST_ENTRY:
        row, column = np.argwhere(np.abs(rows) > LARGEST_ENTRY)[0]
        raise DataError(
            f"row {row}, column {column} holds {rows[row, column]:g}, too large to square", "scale the columns first"
        )


def unit_rows(rows: Any, scale: bool = True) -> Any:
    """Return the rows scaled to unit norm, dense or CSR; with ``scale=False`` only check that they are.

    Rows of norm zero have no direction and stay zero: `without_direction` finds them.

    Examples
    --------
    >>> from gibbsian.mixtures.rows import unit_rows
    >>> unit_rows([[3.0, 4.0], [0.0, 0.0]])
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    rows = sparse.csr_array(rows) if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
    # dividing by the largest entry first keeps squares of tiny and huge numbers finite
    largest = _largest_entries(rows)
    largest[largest == 0] = 1.0
    scaled = _divide(rows, largest)
    norms = np.sqrt(scaled.power(2).sum(axis=1) if sparse.issparse(scaled) else np.einsum("ij,ij->i", scaled, scaled))
    if scale:
        return _divide(scaled, np.where(norms > 0, norms, 1.0))
    with np.errstate(over="ignore"):
        norms = norms * largest
    off = np.flatnonzero((np.abs(norms - 1.0) > UNIT_TOLERANCE) & (norms > 0))
    if len(off):
        raise DataError(f"row {off[0]} has norm {norms[off[0]]:.6g}, not 1", "set `normalize=True`")
    return rows


def without_direction(rows: Any) -> np.ndarray:
    """Return the numbers of the rows of norm zero, which tell nothing about directions.

    Examples
    --------
    >>> from gibbsian.mixtures.rows import without_direction
    >>> without_direction([[3.0, 4.0], [0.0, 0.0]])
    array([1])
    """
    return np.flatnonzero(_largest_entries(rows if sparse.issparse(rows) else np.asarray(rows)) == 0)


def notify_without_direction(zero: np.ndarray) -> None:
    """Warn of rows of norm zero, given their numbers; of none there is nothing to say.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from gibbsian.mixtures.rows import notify_without_direction
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     notify_without_direction(np.array([1]))
    >>> print(caught[0].message)
    row 1 has norm zero and so no direction: it tells nothing about the classes
    """
    if len(zero) == 0:
        return
    others = f" and {len(zero) - 1} more have" if len(zero) > 1 else " has"
    it = "they tell" if len(zero) > 1 else "it tells"
    notify(
        MissingValuesWarning(f"row {zero[0]}{others} norm zero and so no direction", f"{it} nothing about the classes")
    )


def _largest_entries(rows: Any) -> np.ndarray:
    largest = np.abs(rows).max(axis=1)
    return np.array(largest.toarray() if sparse.issparse(largest) else largest, dtype=np.float64).ravel()


def _divide(rows: Any, divisors: np.ndarray) -> Any:
    if not sparse.issparse(rows):
        return rows / divisors[:, None]
    return sparse.csr_array(
        (rows.data / np.repeat(divisors, np.diff(rows.indptr)), rows.indices, rows.indptr), rows.shape
    )


def _distinct_dense(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First places of the distinct rows and where each row went, rows compared as bytes."""
    plain = np.ascontiguousarray(rows + 0.0)  # minus zero is zero
    keys = plain.view(np.dtype((np.void, plain.dtype.itemsize * plain.shape[1]))).ravel()
    _, first, row_of = np.unique(keys, return_index=True, return_inverse=True)
    return first, row_of


def _distinct_sparse(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    rows = sparse.csr_array(rows, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    ends = rows.indptr.tolist()
    keys = [
        rows.indices[start:end].astype(np.int64).tobytes() + rows.data[start:end].tobytes()
        for start, end in pairwise(ends)
    ]
    place = {key: number for number, key in enumerate(sorted(set(keys)))}
    row_of = np.array([place[key] for key in keys])
    return np.unique(row_of, return_index=True)[1], row_of
