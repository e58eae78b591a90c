"""Tables of results: most have a row for each point of a curve, and the mean and standard error of some series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas

from gibbsian_reproduction.experiment import Results, Series, mean_of, stderr_of


@dataclass(frozen=True)
class Table:
    """A table of results with a title; standard errors have columns of their own.

    Parameters
    ----------
    name : str
        The title.
    content : mapping or sequence of mappings
        Columns by name, or rows by name of the column.
    note : str
        What stands below.
    """

    name: str
    content: Any
    note: str = ""

    @cached_property
    def frame(self) -> pandas.DataFrame:
        """The content as a data frame."""
        return pandas.DataFrame(self.content)


def with_stderr(label: str, values: np.ndarray) -> dict[str, Any]:
    """Return the columns of a mean over the trials and of its standard error."""
    return {label: mean_of(values), f"{label} stderr": stderr_of(values)}


def mean_columns(results: Results, series: Sequence[Series], shown: Any = slice(None)) -> dict[str, Any]:
    """Return the columns of means and standard errors of several series, at the points that are shown."""
    columns: dict[str, Any] = {}
    for one in series:
        columns |= with_stderr(one.name, one.values(results)[:, shown])
    return columns


def mean_table(
    name: str, x_name: str, points: Any, series: Sequence[Series], note: str = "", shown: Any = slice(None)
) -> Callable[[Results], Table]:
    """Return what makes the table of some series along a curve: a row for each point."""
    return lambda results: Table(name, {x_name: list(points)} | mean_columns(results, series, shown), note)
