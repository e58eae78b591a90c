"""The likelihood equations of models with one hidden label, for standard errors: by differences of row densities."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.errors import DataError, TooExpensiveError
from gibbsian.learning.objectives import Equations
from gibbsian.models.base import Model
from gibbsian.models.mixtures.base import MixtureFamily

# The first differences are over this share of the size of theta; they tell how far a parameter has to move for the
# log-density of a row to change by about one, of which the differences proper take a thousandth.
_FIRST, _STEP = 1e-6, 1e-3


def class_equations(model: Model[MixtureFamily[NamedTuple]], data: Dataset, max_seconds: float) -> Equations:
    """Return the equations along the directions that a fit may move in, with second derivatives by differences.

    Shares that sum to one, unit vectors and tied numbers move together (``family.free_directions``).
    """
    family, theta, shares = model.family, model.theta, data.weights / data.total_weight
    basis = family.free_directions(theta)
    size = basis.shape[1]

    def log_densities(move: Floats) -> Floats:
        """Return the log-density of each row after a move."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return family.log_evidence(family.normalised(theta + basis @ move), data.states, data.missing)

    def mean(move: Floats) -> float:
        return float(shares @ log_densities(move))

    _require_time(lambda: log_densities(np.zeros(size)), 2 * size * (size + 2), size, max_seconds)
    first = _FIRST * np.sqrt(np.mean(np.square(theta))) or _FIRST
    steps = np.full(size, first)
    for _ in range(2):
        slopes = [(log_densities(move) - log_densities(-move)) / (2 * move.sum()) for move in np.diag(steps)]
        scores = np.array(slopes).T
        with np.errstate(divide="ignore"):
            steps = _STEP / np.sqrt(shares @ np.square(scores))
    moves, information = np.diag(steps), np.empty((size, size))
    for i in range(size):
        for j in range(i + 1):
            both, apart = moves[i] + moves[j], moves[i] - moves[j]
            change = mean(both) + mean(-both) - mean(apart) - mean(-apart)
            information[i, j] = information[j, i] = -change / (4 * steps[i] * steps[j])
    if not np.isfinite(information).all() or np.linalg.eigvalsh(information * np.outer(steps, steps))[0] <= 0:
        raise DataError(
            "a class is nearly empty or its share near zero, so normal-theory standard errors are not valid",
            "use `gibbsian.uncertainty.bootstrap`",
        )
    return Equations(information, iter([(slice(0, len(shares)), -scores)]), carry=basis.T, is_information=True)


def _require_time(evaluate: Callable[[], Floats], n_evaluations: int, size: int, max_seconds: float) -> None:
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
