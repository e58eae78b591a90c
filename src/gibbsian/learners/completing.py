"""Missing cells in learners that need complete rows: the cells are completed under the model, again and again.

Where the loss of a complete row x has the gradient ``g(x, theta)``, the equations ``mean over rows of
E_theta[g(x, theta) | present cells] = 0`` are solved. Under the true parameters both expectations are over the true
distribution, provided that cells are missing at random, so that the equations are consistent where those of complete
rows are. They are the gradient of nothing; so completing the rows and lowering the loss of the completed rows take
turns, as in EM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.distinct import distinct
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.expectations.base import Estimate, Rebuilt
from gibbsian.expectations.clamped_chains import ClampedChains, ClampedState
from gibbsian.inference.completions import Completions, complete_in_all_ways, count_completions
from gibbsian.learners.noisy_steps import NoisySteps, OnWalk
from gibbsian.models import Model
from gibbsian.objectives import Function
from gibbsian.objectives.base import Scores
from gibbsian.optimizers import StepInfo
from gibbsian.optimizers.anderson import LastRounds
from gibbsian.optimizers.base import gradient_norm, with_memory_of

# Completions that are listed with their probabilities; where there are more, chains draw some.
MOST_COMPLETIONS = 2**18
# They are listed as well where there are hardly more of them than rows.
TIMES_THE_ROWS = 2.0
# The same for rows that are completed once only, a minibatch.
MOST_AT_ONCE = 2**14
# Steps of the optimiser on completed rows before these are completed anew.
STEPS_A_ROUND = 3
# Rounds are extrapolated where completing the rows anew makes the gradient so many times larger.
RAISED = 2.0


# -- complete rows ----------------------------------------------------------------------------------------------------
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
    whole: np.ndarray
    listed: Completions
    weights: np.ndarray
    place: np.ndarray

    @classmethod
    def of(cls, data: Dataset) -> AllCompletions:
        """List the completions of all rows with a weight."""
        holed = np.zeros(data.n_states, bool) if data.missing is None else data.missing.any(axis=1)
        whole, open_states = (np.flatnonzero(kind & (data.weights > 0)) for kind in (~holed, holed))
        listed = complete_in_all_ways(data, open_states)
        states = np.concatenate([data.states[whole], listed.states])
        first, place = distinct(data.domain.to_codes(states), data.domain)
        fixed = np.bincount(place[: len(whole)], data.weights[whole], minlength=len(first))
        return cls(_rows_like(data, states[first], fixed), whole, listed, data.weights[listed.which][listed.row], place)

    def under(self, model: Model) -> Dataset:
        """Return the completed rows, each with its weight times its probability given the present cells."""
        _, posterior = self.listed.posterior(model)
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
        _, posterior = self.listed.posterior(model)
        starts = np.append(self.listed.starts, len(places))
        for number, state in enumerate(self.listed.which):
            run = slice(starts[number], starts[number + 1])
            yield slice(state, state + 1), posterior[None, run] @ scores[places[run]]


class CompletedState(NamedTuple):
    """All completions of the rows, and the rows as they were completed last."""

    completions: Rebuilt[AllCompletions]
    rows: Rebuilt[Dataset]


class CompletedRows:
    """The clamped phase over all completions of the rows, which it also hands out: see `Expectation`."""

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> CompletedState:
        """List the completions."""
        listed = AllCompletions.of(data)
        return CompletedState(Rebuilt(listed), Rebuilt(listed.under(model)))

    def __call__(self, model: Model, state: CompletedState) -> tuple[Estimate, CompletedState]:
        """Return the expected statistics given the present cells."""
        rows = state.completions.value.under(model)
        mean = model.mean_statistics(rows.states, rows.weights)
        return Estimate(mean, np.zeros_like(mean)), state._replace(rows=Rebuilt(rows))

    def completions(self, data: Dataset, state: CompletedState) -> Dataset:
        """Return the rows as they were completed last."""
        return state.rows.value


def _rows_like(data: Dataset, states: np.ndarray, weights: np.ndarray) -> Dataset:
    return replace(
        data, states=states, weights=weights, missing=None, row_of=np.arange(len(states)), row_weights=weights
    )


def are_few(data: Dataset, most: int = MOST_COMPLETIONS) -> bool:
    """Whether all completions of all rows can be listed."""
    return float(count_completions(data)[data.weights > 0].sum()) <= max(most, TIMES_THE_ROWS * data.n_states)


def require_shown(data: Dataset) -> None:
    """Refuse columns that no row shows: given all others, the expected score of a variable's own bias is zero."""
    if data.missing is None or not data.missing[data.weights > 0].all(axis=0).any():
        return
    column = data.names[int(np.argmax(data.missing[data.weights > 0].all(axis=0)))]
    raise MissingValuesError(
        f"no row shows {column!r}, and conditional distributions of one variable given the others say nothing of one "
        "that is never seen: the equations of its bias hold whatever it is",
        "learn by `learner='mle'`, 'em' or 'pcd'",
    )


def completed(model: Model, data: Dataset, rng: np.random.Generator) -> Dataset:
    """Complete the rows once: in all ways with their probabilities, or by chains that start afresh."""
    if are_few(data, MOST_AT_ONCE):
        return AllCompletions.of(data).under(model)
    chains = ClampedChains()
    return chains.completions(data, chains.advance(model, chains.init(model, data, rng)))


def as_completing(completions: str | ClampedChains | None, data: Dataset) -> ClampedChains | None:
    """Settle how rows are completed: None lists all completions, chains draw some."""
    require_shown(data)
    if isinstance(completions, ClampedChains):
        return completions
    if completions not in (None, "exact", "chains"):
        raise ArgumentError(
            "must be None, 'exact', 'chains' or clamped chains", argument="completions", value=completions
        )
    exact = are_few(data) if completions is None else completions == "exact"
    return None if exact else ClampedChains()


# -- all completions --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class RoundProgress:
    """The parameters, the optimiser at the rows as they are completed there, and the last rounds."""

    theta: np.ndarray
    search: Any
    rounds: LastRounds


@dataclass(eq=False)
class Rounds:
    """Alternate between completing the rows in all ways and steps of an optimiser on the completed rows.

    `bind` makes what is minimised (see `Minimisation`) from complete rows, `model_of` the model under which they are
    completed.
    """

    completions: AllCompletions
    bind: Callable[[Dataset], Any]
    model_of: Callable[[np.ndarray], Model]
    l1: np.ndarray
    _ready: tuple[bytes, Any] | None = None

    def start(self, theta: np.ndarray, memory: Any = None) -> RoundProgress:
        """Complete the rows and evaluate the start; `memory` is of an optimiser that came here on other rows."""
        search = self._minimised(theta).start(theta)
        search = search if memory is None else with_memory_of(memory, search)
        return RoundProgress(theta, search, LastRounds.none(theta))

    def step(self, progress: RoundProgress) -> tuple[RoundProgress, StepInfo]:
        """Take one round, and go where the last rounds would end where that is nearer a solution."""
        search = progress.search
        minimised = self._minimised(progress.theta)
        for _ in range(STEPS_A_ROUND):
            search, inner = minimised.step(search)
            if inner.stalled:
                break
        rounds = progress.rounds.added(progress.theta, search.theta)
        after = RoundProgress(search.theta, self._renewed(search, search.theta), rounds)
        # what is left of the gradient is the optimiser's to lower, unless completing the rows anew has raised it
        if not rounds.is_first and self._norm(after.search) > RAISED * self._norm(search):
            after = self._extrapolated(after)
        moved = float(np.abs(after.theta - progress.theta).max(initial=0.0))
        state = after.search
        info = StepInfo(state.value, self._norm(state), moved, state.evaluations, stalled=moved == 0)
        return after, info

    def _extrapolated(self, plain: RoundProgress) -> RoundProgress:
        theta = plain.rounds.end(plain.theta, self.l1)
        leap = self._renewed(plain.search, theta)
        if self._norm(leap) < self._norm(plain.search):
            return replace(plain, theta=theta, search=leap)
        search = replace(plain.search, evaluations=leap.evaluations)
        return replace(plain, search=search, rounds=plain.rounds.last())

    def _renewed(self, before: Any, theta: np.ndarray) -> Any:
        """Evaluate a point with the rows as they are completed there; the optimiser keeps its memory."""
        fresh = self._minimised(theta).start(theta)
        return replace(with_memory_of(before, fresh), evaluations=before.evaluations + fresh.evaluations)

    def _norm(self, state: Any) -> float:
        return gradient_norm(state.theta, state.gradient, self.l1)

    def _minimised(self, theta: np.ndarray) -> Any:
        """Return the loss of the rows as they are completed at theta, with what minimises it."""
        key = theta.tobytes()
        if self._ready is None or self._ready[0] != key:
            self._ready = key, self.bind(self.completions.under(self.model_of(theta)))
        return self._ready[1]


# -- some completions -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SampledProgress(OnWalk):
    """The walk of the parameters and the chains of the missing cells."""

    chains: ClampedState


@dataclass(frozen=True, eq=False)
class SampledRounds:
    """One sweep of the missing cells, one step along the mean gradient of the copies that they complete."""

    data: Dataset
    chains: ClampedChains
    bind: Callable[[Dataset], Function]
    model_of: Callable[[np.ndarray], Model]
    steps: NoisySteps

    def start(self, theta: np.ndarray, rng: np.random.Generator) -> SampledProgress:
        """Start the chains."""
        return SampledProgress(self.steps.start(theta), self.chains.init(self.model_of(theta), self.data, rng))

    def step(self, progress: SampledProgress) -> tuple[SampledProgress, StepInfo]:
        """Complete the rows anew and move."""
        here = progress.walk.iterate
        chains = self.chains.advance(self.model_of(here), progress.chains)
        copies = range(self.chains.copies)
        gradients = np.array([self.bind(self.chains.completions(self.data, chains, k))(here)[1] for k in copies])
        stderr = gradients.std(axis=0, ddof=1) / np.sqrt(len(gradients))
        walk, info = self.steps.step(progress.walk, gradients.mean(axis=0), stderr)
        return SampledProgress(walk, chains), info
