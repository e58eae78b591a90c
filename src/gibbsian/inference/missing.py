"""Missing cells as hidden variables: rows summed out together where that is cheap, else one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from gibbsian.data import Dataset
from gibbsian.inference.completions import complete_in_all_ways, count_completions
from gibbsian.inference.cut_sets import split_by_cut
from gibbsian.inference.exact import exact, predict_cost
from gibbsian.inference.layer_missing import layer_evidence
from gibbsian.models import Model, PairwiseModel

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
    """Some states of a data set whose missing cells are summed out together, for models of the kind they were read for.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.inference.missing import light_parts
    >>> data = gb.Dataset.read([[1, float("nan")], [-1, 1]], coding="spin")
    >>> [part.which.tolist() for part in light_parts(gb.PairwiseModel.zeros(gb.graphs.complete(2)), data)]
    [[0, 1]]
    """

    @property
    def which(self) -> np.ndarray:
        """The numbers of the states."""

    def log_evidence(self, model: Any) -> np.ndarray:
        """Return the log of each state's weight, summed over its missing cells."""

    def expect(self, model: Any, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each state's log-evidence, and the sum of their expected statistics with weights `shares`."""

    def fill_probabilities(self, model: Any) -> np.ndarray:
        """Return the probabilities of the cells' values given the present cells, in columns like `value_indicators`."""


def count_missing(data: Dataset) -> np.ndarray:
    """Return the number of missing cells of each distinct state.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.inference.missing import count_missing
    >>> count_missing(gb.Dataset.read([[0, 1], [1, 1]])).tolist()
    [0, 0]
    """
    return np.zeros(data.n_states, np.int64) if data.missing is None else data.missing.sum(axis=1)


def light_parts(model: Model, data: Dataset, at_once: float = LISTED_AT_ONCE) -> Iterator[RowSums]:
    """Yield the states that are cheap to sum out, in parts that are summed together.

    Of a pairwise model they are those that a small cut set makes independent (see `CutSets`), of any other those with
    few completions, of which a part lists about `at_once`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.inference.missing import light_parts
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> data = gb.Dataset.read([[1, float("nan")]], coding="spin")
    >>> [part.fill_probabilities(model).tolist() for part in light_parts(model, data)]      # 1 / (1 + exp(-1))
    [[[1.0, 0.7310585786300049]]]
    """
    if isinstance(model, PairwiseModel):
        cuts, _ = split_by_cut(model, data)
        if len(cuts.which):
            yield cuts
        return
    counts = count_completions(data)
    light = np.flatnonzero(counts <= MOST_LISTED)
    batch = np.cumsum(counts[light]) // at_once
    for number in np.unique(batch):
        yield complete_in_all_ways(data, light[batch == number])


def heavy_states(model: Model, data: Dataset) -> np.ndarray:
    """Return the states that are summed one by one, by exact inference on their missing cells.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.inference.missing import heavy_states
    >>> data = gb.Dataset.read([[1] + [float("nan")] * 15], coding="spin")
    >>> [heavy_states(gb.PairwiseModel.zeros(graph), data).tolist() for graph in (gb.graphs.complete(16),
    ...                                                                           gb.graphs.grid(1, 16))]
    [[0], []]
    """
    if isinstance(model, PairwiseModel):
        return split_by_cut(model, data)[1]
    return np.flatnonzero(count_completions(data) > MOST_LISTED)


def clamped_seconds(model: Model, data: Dataset) -> float:
    """Predict the time to sum the missing cells of all rows out once, right to an order of magnitude.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.inference.missing import clamped_seconds
    >>> data = gb.Dataset.read([[1] + [float("nan")] * 39], coding="spin")
    >>> dense, sparse = (gb.PairwiseModel.zeros(graph) for graph in (gb.graphs.complete(40), gb.graphs.grid(1, 40)))
    >>> clamped_seconds(sparse, data) < 0.1 < clamped_seconds(dense, data)
    True
    """
    counts = count_completions(data)
    if isinstance(model, PairwiseModel):
        cuts, heavy = split_by_cut(model, data)
        together = cuts.seconds
    else:
        heavy = np.flatnonzero(counts > MOST_LISTED)
        together = float(counts[counts <= MOST_LISTED].sum()) * model.theta.size * LISTED_SECONDS
    if not len(heavy):
        return together
    rest, _, _ = clamp(model, data, int(heavy[counts[heavy].argmax()]))
    return together + len(heavy) * (ROW_SECONDS + predict_cost(rest).seconds)


def is_quick(model: Model, data: Dataset, patience: float = PATIENT_SECONDS) -> bool:
    """Say whether all missing cells can be summed out exactly in every step of a fit, within so many seconds.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.inference.missing import is_quick
    >>> data = gb.Dataset.read([[1, float("nan")], [-1, 1]], coding="spin")
    >>> is_quick(gb.PairwiseModel.zeros(gb.graphs.complete(2)), data)
    True
    """
    return clamped_seconds(model, data) <= patience


def clamp(model: Model, data: Dataset, state: int) -> tuple[Model, float, np.ndarray]:
    """Fix the present cells of a state.

    Returns the model of the missing cells, the log-weight that was taken out, and the missing variables.
    """
    present, missing = _split(data, state)
    rest, constant = model.condition(present, data.states[state, present])
    return rest, constant, missing


def clamped_moments(model: Model, data: Dataset, state: int, max_seconds: float) -> tuple[float, np.ndarray]:
    """Return a state's log-evidence and the expected statistics given its present cells (the clamped phase of YK15)."""
    rest, constant, _ = clamp(model, data, state)
    moments = exact(rest, max_seconds=max_seconds).moments()
    present, _ = _split(data, state)
    statistics = model.clamped_statistics(present, data.states[state, present], moments.statistics)
    return constant + moments.log_partition, statistics


def _split(data: Dataset, state: int) -> tuple[np.ndarray, np.ndarray]:
    """Which cells of a state are present, and which are missing."""
    holes = np.zeros(data.n_variables, bool) if data.missing is None else data.missing[state]
    return np.flatnonzero(~holes), np.flatnonzero(holes)


def log_evidence(model: Any, data: Dataset, max_seconds: float = 60.0) -> np.ndarray:
    """Return the log-weight of each state, summed over its missing cells; subtract log Z for the log-probability.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.inference.missing import log_evidence
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> data = gb.Dataset.read([[1, float("nan")]], coding="spin")
    >>> log_evidence(model, data)                               # one missing cell with two equal values: log 2
    array([0.69314718])
    """
    if not data.has_missing:
        return model.log_weights(data.states)
    if hasattr(model, "hidden_means"):  # a restricted machine: its rows are sums over one layer
        return layer_evidence(model, data)
    evidence = np.empty(data.n_states)
    for part in light_parts(model, data):
        evidence[part.which] = part.log_evidence(model)
    for state in heavy_states(model, data):
        rest, constant, _ = clamp(model, data, state)
        evidence[state] = constant + exact(rest, max_seconds=max_seconds).log_partition()
    return evidence
