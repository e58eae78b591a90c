"""Missing cells as hidden variables: every way to fill them, with its probability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gibbsian.data import Dataset
from gibbsian.domain import AnyDomain
from gibbsian.inference.exact import exact
from gibbsian.models import Model
from gibbsian.resources import require_memory

# States with at most this many completions (eight missing cells of two values) have them listed, many states at a
# time; for more, exact inference on the missing cells of one state is faster.
MOST_LISTED = 2**8
# Completions listed at a time where nothing has to be kept.
LISTED_AT_ONCE = 2**16
# Counts stop growing here, well before a float64 overflows.
LARGEST_EXPONENT = 900.0


@dataclass(frozen=True)
class Completions:
    """All completions of the incomplete states of a data set, each state's completions in one run.

    Parameters
    ----------
    states : ndarray of shape (n_completions, n_variables)
        Complete states.
    row : ndarray of shape (n_completions,)
        The place (in `which`) of the state that each one completes, ascending.
    starts : ndarray of shape (n_states,)
        Where each state's run begins.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.inference.missing import complete_in_all_ways
    >>> data = gb.Dataset.read([[1, float("nan")], [-1, 1]], coding="spin")
    >>> completions = complete_in_all_ways(data)
    >>> len(completions.states)
    3
    """

    states: np.ndarray
    row: np.ndarray
    starts: np.ndarray

    def posterior(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """Return each state's log-evidence (unnormalised) and each completion's probability given the present cells."""
        log_weights = model.log_weights(self.states)
        top = np.maximum.reduceat(log_weights, self.starts)
        weights = np.exp(log_weights - top[self.row])
        totals = np.add.reduceat(weights, self.starts)
        return top + np.log(totals), weights / totals[self.row]

    def fill_probabilities(self, model: Model) -> np.ndarray:
        """Return the probabilities of the cells' values given the present cells, in columns like `value_indicators`."""
        _, posterior = self.posterior(model)
        codes, n_rows = model.domain.to_codes(self.states), len(self.starts)
        tables = [
            np.bincount(self.row * size + codes[:, i], posterior, minlength=n_rows * size).reshape(n_rows, size)
            for i, size in enumerate(model.domain.cardinalities(model.n_variables))
        ]
        return np.hstack([table[:, 1:] for table in tables] if model.domain.two_valued else tables)


def value_offsets(domain: AnyDomain, n_variables: int) -> np.ndarray:
    """Return where the columns of each variable begin and end, when there is one for each value of each variable.

    Examples
    --------
    >>> from gibbsian.domain import Categories
    >>> from gibbsian.inference.missing import value_offsets
    >>> value_offsets(Categories((3, 2)), 2).tolist()
    [0, 3, 5]
    """
    return np.concatenate([[0], np.cumsum(domain.cardinalities(n_variables))])


def value_indicators(domain: AnyDomain, states: np.ndarray) -> np.ndarray:
    """Return ones where cells take a value and zeros elsewhere.

    A two-valued domain has one column for each variable, which stands for its upper value; `Categories` have one for
    each value of each variable (see `value_offsets`).

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.domain import SPIN, Categories
    >>> from gibbsian.inference.missing import value_indicators
    >>> value_indicators(SPIN, np.array([[-1, 1]])).tolist()
    [[0.0, 1.0]]
    >>> value_indicators(Categories((3, 2)), np.array([[2, 0]])).tolist()
    [[0.0, 0.0, 1.0, 1.0, 0.0]]
    """
    codes = domain.to_codes(states)
    if domain.two_valued:
        return codes.astype(np.float64)
    offsets = value_offsets(domain, states.shape[1])
    indicators = np.zeros((len(states), offsets[-1]))
    np.put_along_axis(indicators, offsets[:-1] + codes, 1.0, axis=1)
    return indicators


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


def count_completions(data: Dataset) -> np.ndarray:
    """Return in how many ways the missing cells of each distinct state can be filled, as floats that do not overflow.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.inference.missing import count_completions
    >>> count_completions(gb.Dataset.read([[1, float("nan")], [-1, 1]], coding="spin")).tolist()
    [1.0, 2.0]
    """
    if data.missing is None:
        return np.ones(data.n_states)
    exponents = data.missing @ np.log2(data.domain.cardinalities(data.n_variables))
    return np.rint(np.exp2(np.minimum(exponents, LARGEST_EXPONENT)))


def complete_in_all_ways(data: Dataset, which: np.ndarray | None = None) -> Completions:
    """List every completion of every state (or of the states numbered `which`), asking for the memory first.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.inference.missing import complete_in_all_ways
    >>> complete_in_all_ways(gb.Dataset.read([[0, 1], [1, 1]])).row.tolist()
    [0, 1]
    """
    which = np.arange(data.n_states) if which is None else which
    counts = count_completions(data)[which]
    total = float(counts.sum())
    require_memory(
        total * (data.n_variables + 32.0),
        f"listing the {total:.3g} completions of the rows with missing cells",
        "leave out the rows with the most missing cells",
    )
    counts = counts.astype(np.int64)
    row = np.repeat(np.arange(len(which)), counts)
    starts = np.cumsum(counts) - counts
    states = data.states[which][row]
    if data.missing is not None:
        _fill(states, data.missing[which], starts, counts, data.domain)
    return Completions(states, row, starts)


def light_states(data: Dataset) -> np.ndarray:
    """Return the states whose completions are few enough to list."""
    return np.flatnonzero(count_completions(data) <= MOST_LISTED)


def light_batches(data: Dataset) -> Iterator[np.ndarray]:
    """Cut the light states into batches whose completions are few enough to list together."""
    light = light_states(data)
    batch = np.cumsum(count_completions(data)[light]) // LISTED_AT_ONCE
    for number in np.unique(batch):
        yield light[batch == number]


def heavy_states(data: Dataset) -> np.ndarray:
    """Return the states with too many missing cells to list."""
    return np.flatnonzero(count_completions(data) > MOST_LISTED)


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


def log_evidence(model: Model, data: Dataset, max_seconds: float = 60.0) -> np.ndarray:
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
    evidence = np.empty(data.n_states)
    for batch in light_batches(data):
        evidence[batch] = complete_in_all_ways(data, batch).posterior(model)[0]
    for state in heavy_states(data):
        rest, constant, _ = clamp(model, data, state)
        evidence[state] = constant + exact(rest, max_seconds=max_seconds).log_partition()
    return evidence


def _fill(states, missing, starts, counts, domain):
    """Write the digits of each completion's number, to the bases of the missing cells, into those cells of its run."""
    sizes = domain.cardinalities(states.shape[1])
    for r in np.flatnonzero(missing.any(axis=1)):
        cells = np.flatnonzero(missing[r])
        steps = np.cumprod(sizes[cells]) // sizes[cells]
        digits = np.arange(counts[r])[:, None] // steps % sizes[cells]
        states[starts[r] : starts[r] + counts[r], cells] = domain.from_codes(digits)
