"""The likelihood equations of models with one hidden label, for standard errors: by differences of row densities."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from gibbsian.errors import DataError, TooExpensiveError
from gibbsian.learning.objectives import Equations

# The first differences are over this share of the size of theta; they tell how far a parameter has to move for the
# log-density of a row to change by about one, of which the differences proper take a thousandth.
_FIRST, _STEP = 1e-6, 1e-3


def class_equations(model: Any, data: Any, max_seconds: float) -> Equations:
    """Return the equations along the directions that a fit may move in, with second derivatives by differences.

    Shares that sum to one, unit vectors and tied numbers move together (``family.free_directions``).
    """
    family, x = model.family, data.states
    basis, shares = family.free_directions(model.theta), data.weights / data.total_weight

    def rows_at(move: np.ndarray) -> np.ndarray:
        moved = family.normalised(model.theta + basis @ move)
        with np.errstate(invalid="ignore", divide="ignore"):
            return family.log_evidence(moved, x, data.missing)

    size = basis.shape[1]
    _check_time(lambda: rows_at(np.zeros(size)), 2 * size * (size + 2), size, max_seconds)
    first = _FIRST * np.sqrt(np.mean(np.square(model.theta))) or _FIRST
    steps = np.full(size, first)
    for _ in range(2):
        scores = _slopes(rows_at, steps)
        with np.errstate(divide="ignore"):
            steps = _STEP / np.sqrt(shares @ np.square(scores))
    information = -_bends(lambda move: float(shares @ rows_at(move)), steps)
    if not np.isfinite(information).all() or np.linalg.eigvalsh(information * np.outer(steps, steps))[0] <= 0:
        raise DataError(
            "a share is near zero or a class nearly empty: at the edge of what parameters may be errors are not normal",
            "use `gibbsian.uncertainty.bootstrap`",
        )
    return Equations(information, iter([(slice(0, len(shares)), -scores)]), carry=basis.T, is_information=True)


def _check_time(evaluate: Any, n_evaluations: int, size: int, max_seconds: float) -> None:
    """Refuse what would take too long, by the time of one evaluation; of two where the first may have compiled."""
    for _ in range(2):
        began = time.perf_counter()
        evaluate()
        seconds = n_evaluations * (time.perf_counter() - began)
        if seconds <= max_seconds:
            return
    raise TooExpensiveError(
        f"the information about {size} parameters would take about {seconds:.2g} s, but `max_seconds={max_seconds:g}`",
        "raise `max_seconds`, or use `gibbsian.uncertainty.bootstrap`",
    )


def _slopes(rows_at: Any, steps: np.ndarray) -> np.ndarray:
    """Return the derivatives of each row's log-density, one row per row."""
    moves = np.diag(steps)
    return np.array([(rows_at(move) - rows_at(-move)) / (2 * step) for move, step in zip(moves, steps, strict=True)]).T


def _bends(value: Any, steps: np.ndarray) -> np.ndarray:
    """Return the second derivatives of a number."""
    moves, size = np.diag(steps), len(steps)
    bends = np.empty((size, size))
    for i in range(size):
        for j in range(i + 1):
            both, apart = moves[i] + moves[j], moves[i] - moves[j]
            change = value(both) + value(-both) - value(apart) - value(-apart)
            bends[i, j] = bends[j, i] = change / (4 * steps[i] * steps[j])
    return bends
