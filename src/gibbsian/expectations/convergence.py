"""What iterations towards a fixed point share: where they start, when they end, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from gibbsian.arrays import Floats
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


@dataclass(frozen=True)
class Ending:
    """How an approximation by sweeps ended."""

    method: str
    n_sweeps: int
    change: float
    max_iter: int
    tol: float

    def parts(self, warn: bool) -> dict[str, bool | int | float]:
        """Return it as parts of an estimate, with a warning if the sweeps did not settle."""
        converged = bool(self.change <= self.tol)
        if warn and not converged:
            notify(
                ConvergenceWarning(
                    f"{self.method} did not settle in `max_iter={self.max_iter}` sweeps (last change "
                    f"{self.change:.2g}, `tol={self.tol:g}`)",
                    "raise `max_iter`, or trust it less",
                )
            )
        return {"converged": converged, "n_sweeps": int(self.n_sweeps), "largest_change": float(self.change)}


def views(flat: Floats, sizes: list[int]) -> list[Floats]:
    """Cut a flat vector, which a checkpoint can hold, into views of some sizes."""
    return np.split(flat, np.cumsum(sizes)[:-1]) if sizes else []
