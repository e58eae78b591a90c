"""Tables of numbers: real columns, dense or sparse, and shares of two values."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from gibbsian.data.table import INSTEAD, Table
from gibbsian.errors import DataError, MissingValuesError
from gibbsian.resources import require_memory

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Products of larger numbers with each other, and sums of them, leave the range of float64.
LARGEST_NUMBER = 1e100


def is_sparse(cells: object) -> TypeGuard[csr_array]:
    """Whether cells are a sparse array; says so without importing SciPy."""
    return hasattr(cells, "nnz") and hasattr(cells, "tocsr")


def densified(table: Table) -> Table:
    """Return a table with all its zeros written out."""
    cells = table.cells
    if not is_sparse(cells):
        return table
    require_memory(8 * np.prod(cells.shape, dtype=float), f"a dense copy of {cells.shape} cells", INSTEAD)
    return Table(table.names, cells.toarray())


def numbers_of(table: Table) -> np.ndarray | None:
    """Return all cells as float64, NaN where missing; None where there are words or truth values."""
    if isinstance(table.cells, np.ndarray):
        return None if table.cells.dtype.kind == "b" else table.cells.astype(np.float64, copy=False)
    columns = [column.numbers() for column in table.cells]
    return None if any(column is None for column in columns) else np.column_stack(columns)  # type: ignore[arg-type]


def with_zeros(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return numbers with zero where they are missing, and where that is (None if nowhere)."""
    missing = np.isnan(numbers)
    return (np.where(missing, 0.0, numbers), missing) if missing.any() else (numbers, None)


def real_numbers(table: Table) -> tuple[np.ndarray | csr_array, np.ndarray | None]:
    """Return the cells as float64, dense or CSR, and where they are missing (zero stands there)."""
    if is_sparse(table.cells):
        check_finite(table.cells, table.names)
        return table.cells, None
    numbers = numbers_of(table)
    if numbers is None:
        raise _words(table)
    numbers, missing = with_zeros(numbers)
    check_finite(numbers, table.names)
    return numbers, missing


def _words(table: Table) -> DataError:
    name = next(name for j, name in enumerate(table.names) if table.column(j).numbers() is None)
    return DataError(
        f"column {name!r} holds words, dates or truth values, but this takes numbers", "leave the column out"
    )


def check_finite(numbers: np.ndarray | csr_array, names: tuple[str, ...]) -> None:
    """Raise naming the first cell that is NaN (`MissingValuesError`) or infinite (`DataError`)."""
    values = numbers.data if is_sparse(numbers) else numbers
    with np.errstate(over="ignore", invalid="ignore"):  # sums of huge cells
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
    row, column, value = _first_cell(numbers, ~np.isfinite(values))
    word = "NaN" if np.isnan(value) else "inf" if value > 0 else "-inf"
    kind = MissingValuesError if word == "NaN" else DataError
    raise kind(f"row {row}, column {names[column]!r} holds {word}", "fill it or leave the row out")


def check_squares(numbers: np.ndarray | csr_array, names: tuple[str, ...]) -> None:
    """Raise `DataError` naming the first cell whose square could overflow in a sum."""
    values = numbers.data if is_sparse(numbers) else numbers
    if values.size and max(values.max(), -values.min()) > LARGEST_NUMBER:
        row, column, value = _first_cell(numbers, np.abs(values) > LARGEST_NUMBER)
        raise DataError(
            f"row {row}, column {names[column]!r} holds {value:g}, too large to square", "scale the columns first"
        )


def _first_cell(numbers: np.ndarray | csr_array, chosen: np.ndarray) -> tuple[int, int, float]:
    if not is_sparse(numbers):
        row, column = np.argwhere(chosen)[0]
        return int(row), int(column), float(numbers[row, column])
    cells, place = numbers.tocoo(), int(np.flatnonzero(chosen)[0])
    return int(cells.row[place]), int(cells.col[place]), float(cells.data[place])


# -- shares -----------------------------------------------------------------------------------------------------------
def require_shares(numbers: np.ndarray, names: tuple[str, ...], remedy: str) -> None:
    """Refuse numbers outside 0 to 1."""
    where = np.argwhere((numbers < 0) | (numbers > 1))
    if len(where):
        row, column = where[0]
        raise DataError(
            f"column {names[column]!r} holds {numbers[row, column]:g}, but visible units take "
            "two values, the same in every column, or numbers from 0 to 1",
            remedy,
        )


def holds_shares(numbers: np.ndarray | None) -> bool:
    """Whether some number stands between 0 and 1."""
    return numbers is not None and bool(((numbers > 0) & (numbers < 1)).any())


def pair_of(numbers: np.ndarray | None) -> tuple[float, float] | None:
    """Return the two numbers of a table with no others, such as 0 and 255; None where they may be probabilities."""
    if numbers is None or not ((numbers < 0) | (numbers > 1)).any():
        return None
    present = numbers[~np.isnan(numbers)]
    low, high = present.min(), present.max()
    if not np.isfinite([low, high]).all() or low == high or not ((present == low) | (present == high)).all():
        return None
    first, second = (int(value) if value.is_integer() else float(value) for value in (low, high))
    return first, second
