"""Data in: any table to a `Dataset`, and the checks before a fit.

Depends on NumPy and on errors, domain, graphs, rng, resources and models; pandas and pyarrow are imported when a table
needs them.
"""

from typing import Any

from gibbsian.data.dataset import Dataset
from gibbsian.data.findings import PreflightReport
from gibbsian.data.preflight import drop_empty_rows, fit_memory, preflight
from gibbsian.data.rules import Columns, Labels, OneHot, Ordinal, Shares, Threshold, Units, Values
from gibbsian.data.table import MISSING_MARKS

__all__ = [
    "MISSING_MARKS",
    "Columns",
    "DataStream",
    "Dataset",
    "Labels",
    "OneHot",
    "Ordinal",
    "PreflightReport",
    "Shares",
    "Threshold",
    "Units",
    "Values",
    "drop_empty_rows",
    "fit_memory",
    "preflight",
]


def __getattr__(name: str) -> Any:
    """Load `DataStream` when it is asked for: most data are in memory."""
    if name == "DataStream":
        from gibbsian.data.stream import DataStream

        return DataStream
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
