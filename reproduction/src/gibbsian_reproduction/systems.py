"""What trials of several papers share: systems small enough to list, and sequences of values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import softmax

from gibbsian.models import Model, SpanBasis
from gibbsian_reproduction.experiment import Trial


def all_states(n: int) -> np.ndarray:
    """List the codes of all states of n two-valued variables, the first changing fastest."""
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.int8)


def distribution_of(model: Model[Any], states: np.ndarray) -> np.ndarray:
    """Return the probabilities of all states, given as a list of codes."""
    return softmax(model.log_weights(states))


def largest_rise(values: np.ndarray) -> float:
    """Return the largest rise from one value to the next, relative to their size."""
    values = np.asarray(values, dtype=float)
    return float((np.diff(values) / np.abs(values[:-1])).max())


def first_values(values: np.ndarray, n: int) -> np.ndarray:
    """Return the first values; where there are fewer the last one stays."""
    return np.pad(values[:n], (0, max(n - len(values), 0)), mode="edge")


def stacked(parts: Iterable[Trial]) -> Trial:
    """Put what several systems of one trial found side by side."""
    found = list(parts)
    return {name: np.array([part[name] for part in found]) for name in found[0]}


def dense_theta(basis: SpanBasis, functions: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Return the parameters of all functions of a basis, given those of some; the others are zero."""
    dense = np.zeros(basis.size)
    dense[functions] = theta
    return dense
