"""Sample weights: one finite number, zero or positive, per row, or one for all."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.errors import DataError


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return sample weights as float64 after checking them; one number stands for all rows."""
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("`sample_weight` must be a list of numbers, one per row") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise DataError("Sample weights must be 1D array or scalar", f"`sample_weight` has shape {weights.shape}")
    if len(weights) != n_rows:
        raise DataError(
            f"`sample_weight` has {len(weights)} entries but the data has {n_rows} rows (`sample_weight`.shape)"
        )
    for bad, what in ((~np.isfinite(weights), "finite"), (weights < 0, "zero or positive")):
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise DataError(f"`sample_weight` holds {weights[row]} at row {row}", f"weights must be {what}")
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise DataError(
                "`sample_weight` has a sum beyond the largest number", "divide all weights by the same factor"
            )
    if not weights.any():
        raise DataError("`sample_weight` is zero for every row", "give at least one row a positive weight")
    return weights


def systematic_draws(weights: np.ndarray, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draw places with frequencies as near to the weights as whole numbers can be."""
    edges = np.cumsum(weights) * (n_draws / weights.sum())
    edges[-1] = n_draws  # rounding must not lose the last draw
    ends = np.ceil(edges - rng.random()).clip(0, n_draws).astype(np.int64)
    return np.repeat(np.arange(len(weights)), np.diff(ends, prepend=0))
