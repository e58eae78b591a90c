"""Arrays and nested lists to a `Table`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.data.table import Table, factorise, table_of_columns
from gibbsian.errors import DataError
from gibbsian.resources import require_memory

# Codes, masks, packed rows and the distinct states: what reading takes per cell besides the source itself.
BYTES_PER_CELL = 6
# A cell of an object or text array passes through int64 codes: as it was written, as it is compared, and a copy.
BYTES_PER_LABEL = 24
INSTEAD = "read fewer rows or columns, or raise GIBBSIAN_MEMORY_LIMIT"


def table_from_array(source: Any) -> Table:
    """Read a two-dimensional array or nested list, columns called ``x0, x1, ...``."""
    if hasattr(source, "tocsr") and hasattr(source, "nnz"):
        return _table_from_sparse(source)
    array = _as_array(source)
    if array.ndim != 2:
        _refuse_dimensions(array)
    check_shape(array.shape)
    names = [f"x{j}" for j in range(array.shape[1])]
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported", "give real numbers or labels")
    if array.dtype.kind in "biuf":
        require_memory(array.size * BYTES_PER_CELL, f"reading {array.shape[0]} x {array.shape[1]} cells", INSTEAD)
        return Table(tuple(names), array)
    require_memory(array.size * BYTES_PER_LABEL, f"reading {array.shape[0]} x {array.shape[1]} labels", INSTEAD)
    labels = array.astype(object)
    return table_of_columns(names, [factorise(labels[:, j], name) for j, name in enumerate(names)])


def _table_from_sparse(source: Any) -> Table:
    from scipy import sparse

    if source.dtype.kind == "c":
        raise DataError("Complex data not supported", "give real numbers or labels")
    check_shape(source.shape)
    return Table(tuple(f"x{j}" for j in range(source.shape[1])), sparse.csr_array(source, dtype=np.float64))


def _as_array(source: Any) -> np.ndarray:
    if isinstance(source, np.ma.MaskedArray):
        array = source.data.astype(np.float64 if source.dtype.kind in "iuf" else object)
        array[np.ma.getmaskarray(source)] = np.nan
        return array
    try:
        return np.asarray(source)
    except ValueError as error:
        if "inhomogeneous" in str(error):
            raise DataError("the rows of the list have different lengths", "give every row the same columns") from None
        raise


def _refuse_dimensions(array: np.ndarray) -> None:
    # scikit-learn's own words, which its users and its estimator checks know
    if array.ndim > 2:
        raise DataError(f"Found array with dim {array.ndim}, while dim <= 2 is required", "give one row per state")
    kind = "scalar" if array.ndim == 0 else "1D"
    raise DataError(
        f"Expected 2D array, got {kind} array instead (shape={array.shape}). Reshape your "
        "data either using array.reshape(-1, 1) if it has a single column or array.reshape(1, "
        "-1) if it is a single row."
    )


def check_shape(shape: tuple[int, ...]) -> None:
    """Refuse a table without rows or without columns, in scikit-learn's words."""
    for count, what in ((shape[1], "feature(s)"), (shape[0], "sample(s)")):
        if count == 0:
            raise DataError(f"Found array with 0 {what} (shape={tuple(shape)}) while a minimum of 1 is required.")
