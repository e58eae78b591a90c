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
    lowest = data.domain.from_codes(np.zeros((1, data.n_variables), np.int8))
    both = np.hstack([np.where(missing, lowest, rows), missing])
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
