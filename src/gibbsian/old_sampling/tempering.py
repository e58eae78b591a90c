"""Parallel tempering along a path: chains that mix where block Gibbs sampling does not.

Copies of every chain run at places of a path, for machines in layers at inverse temperatures from independent units (0)
to the machine (1); neighbours exchange their states with the probability that keeps all their distributions
(Desjardins, Courville, Bengio, Vincent and Delalleau 2010; Cho, Raiko and Ilin 2010). All copies are rows of a matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.settings import check_whole_number

# Chains and steps of a round in which the places are moved.
PILOT_CHAINS, PILOT_STEPS = 50, 100


class Steps(Protocol):
    """What tempered chains ask of a path: draws from its beginning, and weights and steps at its places."""

    def draw_base(self, n_rows: int, rng: np.random.Generator) -> np.ndarray:
        """Draw values from place 0."""

    def features(self, x: np.ndarray) -> np.ndarray:
        """Return what weights and steps need to know of values."""

    def log_weights(self, x: np.ndarray, features: np.ndarray, place: float) -> np.ndarray:
        """Return the log-weight of each row at a place."""

    def step(self, features: np.ndarray, place: float, rng: np.random.Generator) -> np.ndarray:
        """Return values after a transition at a place."""


class TemperedState(NamedTuple):
    """Where tempered chains stand.

    Parameters
    ----------
    values : ndarray of shape (n_places, n_chains, width)
        Values; the last place is the model.
    n_steps : ndarray of shape ()
        Steps made so far: neighbours take turns in exchanging.
    """

    values: np.ndarray
    n_steps: np.ndarray


class TemperedInfo(NamedTuple):
    """What happened in one call of ``step``.

    Parameters
    ----------
    swap_rates : ndarray of shape (n_places - 1,)
        Share of the proposed exchanges between neighbouring places that were made; nan where none was proposed.
    """

    swap_rates: np.ndarray


@dataclass(frozen=True)
class Tempering:
    """Parallel tempering between the two ends of a path.

    Parameters
    ----------
    betas : int or array-like
        Number of places, evenly from 0 to 1, or the places themselves.
    """

    betas: int | np.ndarray = 10

    def __post_init__(self) -> None:
        if not np.ndim(self.betas):
            check_whole_number("betas", self.betas, least=2)
            return
        ladder = np.asarray(self.betas, dtype=np.float64)
        if ladder.ndim != 1 or ladder.size < 2 or ladder[0] < 0 or ladder[-1] != 1 or (np.diff(ladder) <= 0).any():
            raise ArgumentError("betas must rise, from 0 or more, to 1", "give their number, or all of them")

    @property
    def ladder(self) -> np.ndarray:
        """The places."""
        if np.ndim(self.betas):
            return np.array(self.betas, dtype=np.float64)
        return np.linspace(0.0, 1.0, int(self.betas))

    def init(
        self, path: Steps, n_chains: int, rng: np.random.Generator, values: np.ndarray | None = None
    ) -> TemperedState:
        """Start all copies at values, one row for each chain, or at draws from the beginning of the path."""
        check_whole_number("n_chains", n_chains)
        n_places = len(self.ladder)
        if values is None:
            copies = path.draw_base(n_places * n_chains, rng).reshape(n_places, n_chains, -1)
        else:
            copies = np.repeat(np.asarray(values, np.float64)[None], n_places, axis=0)
        return TemperedState(copies, np.array(0))

    def step(
        self, path: Steps, state: TemperedState, rng: np.random.Generator, n_steps: int = 1
    ) -> tuple[TemperedState, TemperedInfo]:
        """Return the chains some steps later: a step of every copy, then exchanges; `state` is left as it is."""
        check_whole_number("n_steps", n_steps, least=0)
        ladder, values, first = self.ladder, state.values.copy(), int(state.n_steps)
        made, proposed = np.zeros(len(ladder) - 1), np.zeros(len(ladder) - 1)
        features = _features(path, values)
        for number in range(first, first + n_steps):
            for place, beta in enumerate(ladder.tolist()):
                values[place] = path.step(features[place], beta, rng)
            features = _features(path, values)
            for lower in range(number % 2, len(ladder) - 1, 2):
                made[lower] += _exchange(path, values, features, ladder, lower, rng)
                proposed[lower] += values.shape[1]
        rates = np.divide(made, proposed, out=np.full_like(made, np.nan), where=proposed > 0)
        return TemperedState(values, np.array(first + n_steps)), TemperedInfo(rates)

    def adapted(self, path: Steps, rng: np.random.Generator, n_rounds: int = 3) -> Self:
        """Return the same number of places, moved until all neighbours exchange equally often.

        The rejections between 0 and a place grow to a barrier that does not depend on the places, so they are put
        evenly along it (Syed, Bouchard-Cote, Deligiannidis and Doucet 2022).
        """
        sampler = self
        state = sampler.init(path, PILOT_CHAINS, rng)
        for _ in range(n_rounds):
            state, info = sampler.step(path, state, rng, PILOT_STEPS)
            # no gap is closed because a pilot rejected nothing in it
            rejections = np.maximum(1.0 - info.swap_rates, 1e-3)
            barrier = np.concatenate([[0.0], np.cumsum(rejections)])
            ladder = np.interp(np.linspace(0.0, barrier[-1], len(barrier)), barrier, sampler.ladder)
            ladder[-1] = 1.0
            sampler = replace(sampler, betas=ladder)
        return sampler


def _features(path: Steps, values: np.ndarray) -> np.ndarray:
    n_places, n_chains, width = values.shape
    return path.features(values.reshape(-1, width)).reshape(n_places, n_chains, -1)


def _exchange(
    path: Steps,
    values: np.ndarray,
    features: np.ndarray,
    ladder: np.ndarray,
    lower: int,
    rng: np.random.Generator,
) -> int:
    """Exchange the states of two neighbouring places chain by chain; return how many were exchanged."""
    upper = lower + 1
    low, high = float(ladder[lower]), float(ladder[upper])
    gains = [
        path.log_weights(values[place], features[place], high) - path.log_weights(values[place], features[place], low)
        for place in (lower, upper)
    ]
    accepted = np.log(rng.random(values.shape[1])) < gains[0] - gains[1]
    for array in (values, features):
        array[lower, accepted], array[upper, accepted] = array[upper, accepted], array[lower, accepted]
    return int(np.count_nonzero(accepted))
