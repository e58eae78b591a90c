"""What iterations towards a fixed point share: where they start, when they end, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from gibbsian.errors import ConvergenceWarning, notify

# The scale of random fields and messages at the start: enough to leave a saddle, too little to choose a valley.
START_SCALE = 0.1

Piece = TypeVar("Piece")


def sweep(update: Callable[[Piece], float], pieces: Iterable[Piece], max_iter: int, tol: float) -> tuple[int, float]:
    """Update one piece after the other until none changes by more than `tol`; return sweeps and the last change."""
    change, n_sweeps = np.inf, 0
    while n_sweeps < max_iter and change > tol:
        change, n_sweeps = max(map(update, pieces), default=0.0), n_sweeps + 1
    return n_sweeps, change


def ending(who: str, n_sweeps: int, change: float, max_iter: int, tol: float, warn: bool) -> dict[str, Any]:
    """Return what there is to say of an approximation by sweeps, with a warning where it did not settle."""
    converged = bool(change <= tol)
    if warn and not converged:
        notify(
            ConvergenceWarning(
                f"{who} did not settle in `max_iter={max_iter}` sweeps (last change {change:.2g}, `tol={tol:g}`)",
                "raise `max_iter`, or trust it less",
            )
        )
    return {"converged": converged, "n_sweeps": int(n_sweeps), "largest_change": float(change)}


def views(flat: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    """Cut a flat vector, which a checkpoint can hold, into views of some sizes."""
    return np.split(flat, np.cumsum(sizes)[:-1]) if sizes else []
