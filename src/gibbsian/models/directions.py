"""Along which directions parameters with constraints may move: shares that sum to one, unit vectors, tied numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def across(vectors: Sequence[np.ndarray]) -> np.ndarray:
    """Return, for vectors side by side in one, the directions that change none of them along itself.

    For vectors of ones these are the directions of shares that sum to one; for unit vectors, those on the sphere.
    """
    from scipy.linalg import block_diag, null_space

    return block_diag(*(null_space(vector[None, :]) for vector in vectors))


def of_shares(sizes: Sequence[int]) -> np.ndarray:
    """Return the directions of shares, of these numbers of parts, that sum to one."""
    return across([np.ones(size) for size in sizes])


def of_scales(n: int, how: float | str) -> np.ndarray:
    """Return the directions of numbers that are learned each (``"free"``), as one (``"tied"``), or given."""
    return {"free": np.eye(n), "tied": np.full((n, 1), n**-0.5)}.get(str(how), np.empty((n, 0)))


def side_by_side(*parts: np.ndarray) -> np.ndarray:
    """Return the directions of parts of theta, one after the other."""
    from scipy.linalg import block_diag

    return block_diag(*parts)
