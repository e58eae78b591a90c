"""From whatever holds the data to a `Table`: arrays, lists, data frames and files.

pandas and polars frames are recognised by the module of their class, so neither is imported for a user who has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.data.numbers import is_sparse
from gibbsian.data.rows import Rows
from gibbsian.data.table import (
    INSTEAD,
    Factor,
    Table,
    as_factor,
    as_names,
    check_shape,
    default_names,
    factorise,
    table_of_columns,
)
from gibbsian.errors import DataError
from gibbsian.resources import require_memory

if TYPE_CHECKING:
    import pandas
    from scipy.sparse import csr_array

# Comparisons with both values, and the mask: what reading takes per cell besides the source itself.
BYTES_PER_CELL = 3
# A cell of an object or text array passes through int64 codes: as it was written, as it is compared, and a copy.
BYTES_PER_LABEL = 24


def read_table(source: Any, names: Sequence[str] | None = None) -> Table:
    """Read an array, a list, a data frame or the path of a file; `names` stand instead of its own."""
    if isinstance(source, Table):
        table = source
    elif isinstance(source, str | Path):
        from gibbsian.data.files import read_file

        table = read_file(Path(source), names)
    elif _is_frame_of(source, "polars"):
        from gibbsian.data.files import table_from_arrow

        # an Enum lists its values in order; a Categorical of polars keeps whatever order its cache met them in
        listed = [name for name, dtype in source.schema.items() if type(dtype).__name__ == "Enum"]
        table = table_from_arrow(source.to_arrow(), declared=listed)
    elif _is_frame_of(source, "pandas"):
        table = table_from_pandas(source)
    elif hasattr(source, "to_batches"):
        from gibbsian.data.files import table_from_arrow

        table = table_from_arrow(source)
    elif hasattr(source, "collect") and type(source).__module__.startswith("polars"):
        raise DataError("a LazyFrame holds no rows yet", "collect() it first")
    elif is_on_disk(source):
        raise DataError("a DataStream is learned by fit", "for anything else read rows into memory with `Dataset.read`")
    else:
        table = table_from_array(source)
    check_shape(table.shape)
    return table.renamed(names)


# -- arrays ------------------------------------------------------------------------------------------------------------
def table_from_array(source: object) -> Table:
    """Read a two-dimensional array or nested list, columns called ``x0, x1, ...``."""
    if is_sparse(source):
        return _table_from_sparse(source)
    array = _as_array(source)
    if array.ndim != 2:
        _refuse_dimensions(array)
    check_shape(array.shape)
    names = default_names(array.shape[1])
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported", "give real numbers or labels")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind in "biuf":
        require_memory(array.size * BYTES_PER_CELL, f"reading {array.shape[0]} x {array.shape[1]} cells", INSTEAD)
        return Table(names, array)
    require_memory(array.size * BYTES_PER_LABEL, f"reading {array.shape[0]} x {array.shape[1]} labels", INSTEAD)
    labels = array.astype(object)
    return table_of_columns(names, [factorise(labels[:, j], name) for j, name in enumerate(names)])


def _table_from_sparse(source: csr_array) -> Table:
    from scipy import sparse

    if source.dtype.kind == "c":
        raise DataError("Complex data not supported", "give real numbers or labels")
    check_shape(source.shape)
    return Table(default_names(source.shape[1]), sparse.csr_array(source, dtype=np.float64))


def _as_array(source: object) -> np.ndarray:
    if type(source) is not np.ndarray and isinstance(source, np.ma.MaskedArray):
        array = source.data.astype(np.float64 if source.dtype.kind in "iuf" else object)
        array[np.ma.getmaskarray(source)] = np.nan
        return array
    if hasattr(source, "__dlpack_device__") and not isinstance(source, np.ndarray):
        return _from_tensor(source)
    try:
        return np.asarray(source)
    except ValueError as error:
        if "inhomogeneous" in str(error):
            raise DataError("the rows of the list have different lengths", "give every row the same columns") from None
        raise


def _from_tensor(source: Any) -> np.ndarray:
    """Take a tensor of any library; what stands on a card comes to the host, where values are recognised."""
    on_host = source.detach().cpu() if hasattr(source, "detach") else source  # PyTorch has no other way down
    return np.asarray(on_host) if hasattr(on_host, "__array__") else np.from_dlpack(on_host)


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


def is_on_disk(source: object) -> bool:
    """Whether a source is a stream of rows that stay on disk."""
    return isinstance(source, Rows) and source.on_disk


def is_on_cluster(source: object) -> bool:
    """Whether rows are on the workers of a cluster: those of gibbsian, or a frame or an array of Dask."""
    return (isinstance(source, Rows) and source.on_cluster) or is_dask(source)


def is_dask(source: object) -> bool:
    """Whether a source is a frame or an array of Dask."""
    return type(source).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(source, "to_delayed")


# -- data frames ------------------------------------------------------------------------------------------------------
def _is_frame_of(source: object, package: str) -> bool:
    kind = type(source)
    return any(c.__name__ == "DataFrame" and c.__module__.partition(".")[0] == package for c in kind.__mro__)


def table_from_pandas(frame: pandas.DataFrame) -> Table:
    """Read a data frame of pandas; its categories are in the order of their declaration."""
    check_shape(frame.shape)
    require_memory(frame.size * BYTES_PER_LABEL, f"reading {len(frame)} x {frame.shape[1]} cells", INSTEAD)
    dtypes = list(frame.dtypes)
    if all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in dtypes):
        return Table(as_names(frame.columns), frame.to_numpy())
    columns = [_pandas_column(frame.iloc[:, j], str(name)) for j, name in enumerate(frame.columns)]
    return table_of_columns(list(frame.columns), columns)


def _pandas_column(column: pandas.Series, name: str) -> np.ndarray | Factor:
    from pandas.api import types

    dtype = column.dtype
    if isinstance(dtype, types.CategoricalDtype):
        return as_factor(list(dtype.categories), column.cat.codes.to_numpy(), name, True, bool(dtype.ordered))
    if types.is_complex_dtype(dtype):
        raise DataError("Complex data not supported", f"column {name!r} holds complex numbers")
    if types.is_bool_dtype(dtype):
        return column.to_numpy(dtype=bool) if not column.isna().any() else factorise(column.astype(object), name)
    if types.is_numeric_dtype(dtype):
        if isinstance(dtype, np.dtype):
            return column.to_numpy()
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return factorise(column.astype(object), name)
