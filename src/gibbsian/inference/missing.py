"""Missing cells as hidden variables: rows summed out together where that is cheap, else one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from gibbsian.data import Dataset
from gibbsian.domain import given_codes
from gibbsian.inference.completions import complete_in_all_ways, count_completions
from gibbsian.inference.cut_sets import split_by_cut
from gibbsian.inference.engine import exact, predict_cost
from gibbsian.models import Model
from gibbsian.models.given import Given
from gibbsian.models.ising import is_ising
from gibbsian.progress import counted

# Models that are not pairwise have up to this many completions of a state listed (eight missing cells of two values).
MOST_LISTED = 2**8
# Completions listed at a time where nothing has to be kept.
LISTED_AT_ONCE = 2**16
# Seconds for one statistic of one listed completion.
LISTED_SECONDS = 2e-9
# What a state that is summed by itself costs besides its sum: a model of its missing cells is made for it.
ROW_SECONDS = 1e-3
# Missing cells are summed out exactly in every step of a fit while that is predicted to take no longer.
PATIENT_SECONDS = 0.5


class RowSums(Protocol):
    """Some states of a data set whose missing cells are summed out together, for models of one kind."""

    @property
    def which(self) -> np.ndarray:
        """The numbers of the states."""

    def log_evidence(self, model: Any) -> np.ndarray:
        """Return the log of each state's weight, summed over its missing cells."""

    def expect(self, model: Any, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each state's log-evidence, and the sum of their expected statistics with weights `shares`."""

    def fill_probabilities(self, model: Any) -> np.ndarray:
        """Return the probabilities of the cells' values given the present cells, in columns like `value_indicators`."""


@dataclass(frozen=True, eq=False)
class SplitRows:
    """The states of a data set by how their missing cells are summed out.

    Parameters
    ----------
    parts : iterable of RowSums
        Those that are cheap, in parts that are summed together; to be gone through once.
    heavy : ndarray of int
        Those that are summed one by one, by exact inference on their missing cells.
    seconds : float
        Predicted time to sum the parts once.
    """

    parts: Iterable[RowSums]
    heavy: np.ndarray
    seconds: float


def split_rows(model: Any, data: Dataset, at_once: float = LISTED_AT_ONCE) -> SplitRows:
    """Say how the missing cells of each state are summed out.

    Of a pairwise model those states are cheap that a small cut set makes independent (see `CutSets`), of any other
    those with few completions, of which a part lists about `at_once`.
    """
    if is_ising(model.family):
        cuts, heavy = split_by_cut(model, data)
        return SplitRows([cuts] if len(cuts.which) else [], heavy, cuts.seconds)
    counts = count_completions(data)
    light = np.flatnonzero(counts <= MOST_LISTED)
    batch = np.cumsum(counts[light]) // at_once
    parts = (complete_in_all_ways(data, light[batch == number]) for number in np.unique(batch))
    seconds = float(counts[light].sum()) * model.theta.size * LISTED_SECONDS
    return SplitRows(parts, np.flatnonzero(counts > MOST_LISTED), seconds)


def clamped_seconds(model: Any, data: Dataset) -> float:
    """Predict the time to sum the missing cells of all rows out once, right to an order of magnitude.

    On a cluster it is that of a partition, on average.
    """
    return data.mean(partial(_seconds, model))


def _seconds(model: Any, data: Dataset) -> float:
    split = split_rows(model, data)
    if not len(split.heavy):
        return split.seconds
    counts = count_completions(data)
    given, _ = clamp(model, data, int(split.heavy[counts[split.heavy].argmax()]))
    return split.seconds + len(split.heavy) * (ROW_SECONDS + predict_cost(given.family).seconds)


def is_quick(model: Any, data: Dataset, patience: float = PATIENT_SECONDS) -> bool:
    """Say whether all missing cells can be summed out exactly in every step of a fit, within so many seconds."""
    return clamped_seconds(model, data) <= patience


def clamp(model: Model, data: Dataset, state: int) -> tuple[Given[Model], np.ndarray]:
    """Return the distribution of the missing cells of a state given the present ones, and which are missing."""
    missing = np.zeros(data.n_variables, bool) if data.missing is None else data.missing[state]
    present = np.flatnonzero(~missing)
    codes = given_codes(data.domain, data.states[state])
    return model.given(present, codes[present]), np.flatnonzero(missing)


def clamped_moments(model: Model, data: Dataset, state: int, max_seconds: float) -> tuple[float, np.ndarray]:
    """Return a state's log-evidence and the expected statistics given its present cells (the clamped phase of YK15)."""
    given, _ = clamp(model, data, state)
    rest, constant = given.at(model.theta)
    answers = exact(rest, max_seconds=max_seconds)
    return constant + answers.log_partition, given.statistics(answers.moments)


def log_evidence(model: Any, data: Dataset, max_seconds: float = 60.0) -> np.ndarray:
    """Return the log-weight of each state, summed over its missing cells; subtract log Z for the log-probability.

    The states that are summed one by one share `max_seconds`, but each may take one.
    """
    if not data.has_missing:
        return model.log_weights(data.states)
    if hasattr(model, "hidden_means"):  # a restricted machine: its rows are sums over one layer
        from gibbsian.inference.layer_missing import layer_evidence

        return layer_evidence(model, data)
    evidence, split = np.empty(data.n_states), split_rows(model, data)
    for part in split.parts:
        evidence[part.which] = part.log_evidence(model)
    each = max(1.0, max_seconds / max(1, len(split.heavy)))
    for state in counted(split.heavy, "rows one by one", len(split.heavy)):
        rest, constant = clamp(model, data, state)[0].at(model.theta)
        evidence[state] = constant + exact(rest, max_seconds=each).log_partition
    return evidence
