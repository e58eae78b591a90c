"""Missing cells in learners that need complete rows: the cells are completed under the model (see `gradients`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, States
from gibbsian.data import Dataset
from gibbsian.data.distinct import distinct
from gibbsian.data.rows import Rows
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.expectations import PersistentChains
from gibbsian.expectations.per_call import completed_rows
from gibbsian.expectations.rows import MaskedRows
from gibbsian.inference.completions import Completions, count_completions, enumerate_completions
from gibbsian.learning.objectives.base import Scores
from gibbsian.models import Model
from gibbsian.rng import Key

# Completions that are listed with their probabilities; where there are more, chains draw some.
MAX_COMPLETIONS = 2**18
# They are listed as well where there are hardly more of them than rows.
TIMES_THE_ROWS = 2.0
# The same for rows that are completed once only, a minibatch.
MAX_AT_ONCE = 2**14


# -- complete rows ----------------------------------------------------------------------------------------------------
class Completed(Protocol):
    """Rows that can be completed under any model."""

    def under(self, model: Model) -> Dataset:
        """Return the completed rows."""


@dataclass(frozen=True, eq=False)
class AllCompletions:
    """Every way to complete the rows: the distinct complete states, and which completion of which row is which.

    Parameters
    ----------
    rows : Dataset
        The distinct complete states; each has the weight of the rows that are complete already.
    whole : ndarray of int
        The states of the data, of positive weight, without missing cells.
    listed : Completions
        The ways to complete the others.
    weights : ndarray
        For each of these the weight of the state that it completes.
    place : ndarray of int
        The place in `rows` of each of the whole states, then of each completion.
    """

    rows: Dataset
    whole: Integers
    open_states: Integers
    listed: Completions
    weights: Floats
    place: Integers

    @classmethod
    def of(cls, data: Dataset) -> AllCompletions:
        """List the completions of all rows with a weight."""
        holed = np.zeros(data.n_states, bool) if data.missing is None else data.missing.any(axis=1)
        whole, open_states = (np.flatnonzero(kind & (data.weights > 0)) for kind in (~holed, holed))
        missing = None if data.missing is None else data.missing[open_states]
        listed = enumerate_completions(data.variables, data.states[open_states], missing)
        states = np.concatenate([data.states[whole], listed.states])
        first, place = distinct(states, data.coding.domain)
        fixed = np.asarray(np.bincount(place[: len(whole)], data.weights[whole], minlength=len(first)), np.float64)
        weights = data.weights[open_states][listed.row]
        return cls(_rows_like(data, states[first], fixed), whole, open_states, listed, weights, place)

    def under(self, model: Model) -> Dataset:
        """Return the completed rows, each with its weight times its probability given the present cells."""
        _, posterior = self.listed.posterior(model.log_weights(self.listed.states))
        posterior *= self.weights
        weights = np.bincount(self.place[len(self.whole) :], posterior, minlength=self.rows.n_states)
        weights += self.rows.weights
        return replace(self.rows, weights=weights, row_weights=weights)

    def expected_scores(self, objective: Any, model: Model) -> Scores:
        """Yield the expected score of each state with a weight, given its present cells."""
        scores = np.zeros((self.rows.n_states, model.theta.size))
        for block, values in objective.scores(model, self.under(model)):
            scores[block] = values
        whole, places = np.split(self.place, [len(self.whole)])
        for state, place in zip(self.whole, whole, strict=True):
            yield slice(state, state + 1), scores[place][None]
        _, posterior = self.listed.posterior(model.log_weights(self.listed.states))
        starts = np.append(self.listed.starts, len(places))
        for number, state in enumerate(self.open_states):
            run = slice(starts[number], starts[number + 1])
            yield slice(state, state + 1), posterior[None, run] @ scores[places[run]]


@dataclass(frozen=True, eq=False)
class CompletionsThere:
    """The same of rows on a cluster: each worker lists the completions of its rows whenever they are asked for."""

    data: Rows

    def under(self, model: Model) -> Any:
        """Return the completed rows, on the workers."""
        return self.data.map(lambda part: AllCompletions.of(part).under(model) if part.has_missing else part)


def all_completions(data: Dataset) -> Any:
    """List the completions of all rows, or have them listed where the rows are."""
    return CompletionsThere(data) if data.on_cluster else AllCompletions.of(data)


def _rows_like(data: Dataset, states: States, weights: Floats) -> Dataset:
    return replace(
        data, states=states, weights=weights, missing=None, row_of=np.arange(len(states)), row_weights=weights
    )


def are_few(data: Rows, most: int = MAX_COMPLETIONS) -> bool:
    """Whether all completions of all rows can be listed."""
    return data.reduce(_n_completions) <= max(most, TIMES_THE_ROWS * data.n_states)


def _n_completions(data: Dataset) -> float:
    return float(count_completions(data.variables, data.missing, data.n_states)[data.weights > 0].sum())


def never_shown(data: Rows) -> Mask:
    """Which columns no row shows."""
    return data.reduce(_n_shown) == 0


def _n_shown(data: Dataset) -> Integers:
    """Count the states with a weight that show each column."""
    used = np.flatnonzero(data.weights > 0)
    return np.full(data.n_variables, len(used)) if data.missing is None else (~data.missing[used]).sum(axis=0)


def require_shown(data: Rows) -> None:
    """Refuse columns that no row shows: given all others, the expected score of a variable's own bias is zero."""
    if not never_shown(data).any():
        return
    column = data.names[int(np.argmax(never_shown(data)))]
    raise MissingValuesError(
        f"no row shows {column!r}, and conditional distributions of one variable given the others say nothing of one "
        "that is never seen: the equations of its bias hold whatever it is",
        "learn by `learner='mle'`, 'em' or 'pcd'",
    )


def completed(model: Model[Any], data: Dataset, key: Key) -> Dataset:
    """Complete the rows once: in all ways with their probabilities, or by chains that start afresh."""
    if are_few(data, MAX_AT_ONCE):
        return AllCompletions.of(data).under(model)
    chains = PersistentChains(copies=1).bind(model, MaskedRows.of(model.family, data), None)
    _, state = chains.advance(model.theta, chains.init(model.theta, key))
    return completed_rows(data, chains.samples(state))


def as_completing(completions: str | PersistentChains | None, data: Rows) -> PersistentChains | None:
    """Settle how rows are completed: None lists all completions, chains draw some."""
    require_shown(data)
    if isinstance(completions, PersistentChains):
        return completions
    if completions not in (None, "exact", "chains"):
        raise ArgumentError(
            "must be None, 'exact', 'chains' or `PersistentChains`", argument="completions", value=completions
        )
    exact = are_few(data) if completions is None else completions == "exact"
    return None if exact else PersistentChains()
