"""Data with missing cells and hidden columns for tests, row by row, as a table would have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gibbsian.data import Dataset


def holed(data: Dataset, rng: np.random.Generator, share: float = 0.0, hidden: Sequence[int] = ()) -> Dataset:
    """Take away a share of the cells at random, and whole columns; equal rows are put together again."""
    rows = data.states[data.row_of]
    missing = rng.random(rows.shape) < share
    missing[:, list(hidden)] = True
    both = np.hstack([np.where(missing, 0, rows), missing])
    distinct, row_of, counts = np.unique(both, axis=0, return_inverse=True, return_counts=True)
    n = data.n_variables
    holes = distinct[:, n:].astype(bool)
    return Dataset(
        distinct[:, :n].astype(np.int8),
        counts.astype(np.float64),
        holes if holes.any() else None,
        data.coding,
        data.names,
        row_of.reshape(-1),
    )


def rows_with_holes(
    rng: np.random.Generator, n_rows: int, n_columns: int, share: float, coding: str = "binary"
) -> np.ndarray:
    """Draw independent cells, a share of them missing."""
    rows = rng.integers(0, 2, (n_rows, n_columns)).astype(float)
    if coding == "spin":
        rows = 2 * rows - 1
    rows[rng.random(rows.shape) < share] = np.nan
    return rows
