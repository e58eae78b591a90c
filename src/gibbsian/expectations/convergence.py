"""How iterations towards a fixed point ended, said in one way."""

from __future__ import annotations

from typing import Any

from gibbsian.errors import ConvergenceWarning, notify


def ending(who: str, n_sweeps: int, change: float, max_iter: int, tol: float, warn: bool) -> dict[str, Any]:
    """Return the diagnostics of an approximation by fixed-point sweeps, with a warning where it did not settle.

    Examples
    --------
    >>> from gibbsian.expectations.convergence import ending
    >>> ending("mean field", 12, 1e-12, max_iter=100, tol=1e-10, warn=True)["converged"]
    True
    """
    converged = bool(change <= tol)
    if warn and not converged:
        notify(
            ConvergenceWarning(
                f"{who} did not settle in `max_iter={max_iter}` sweeps (last change {change:.2g}, `tol={tol:g}`)",
                "raise `max_iter`, or trust it less",
            )
        )
    return {"approximate": True, "converged": converged, "n_sweeps": int(n_sweeps), "largest_change": float(change)}
