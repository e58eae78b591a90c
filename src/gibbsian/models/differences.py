"""Jacobians and Hessians by central differences of gradients."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.errors import TooExpensiveError

STEP = 1e-5  # of central differences: truncation and rounding are both near 1e-10


def symmetric_differences(gradient: Callable[[Floats], Floats], theta: Floats, max_seconds: float) -> Floats:
    """Return the Hessian of a function, given its gradient."""
    jacobian = differences(gradient, theta, max_seconds)
    return np.asarray((jacobian + jacobian.T) / 2)


def differences(gradient: Callable[[Floats], Floats], theta: Floats, max_seconds: float) -> Floats:
    """Return the derivatives of a vector function, one row for each parameter.

    One or two evaluations predict the time of all; `TooExpensiveError` is raised if it exceeds `max_seconds`.
    """
    for _ in range(2):  # the first may have compiled kernels
        started = time.perf_counter()
        gradient(theta)
        seconds = 2 * theta.size * (time.perf_counter() - started)
        if seconds <= max_seconds:
            break
    else:
        raise TooExpensiveError(
            f"the information about {theta.size} parameters needs {2 * theta.size} evaluations "
            f"and would take about {seconds:.2g} s, but `max_seconds={max_seconds:g}`",
            "raise `max_seconds`, or use bootstrap",
        )
    step = 10 * STEP  # the moments of large systems carry more rounding than one conditional cost
    return np.array(
        [(gradient(theta + step * unit) - gradient(theta - step * unit)) / (2 * step) for unit in np.eye(theta.size)]
    )
