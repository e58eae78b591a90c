"""Paths of distributions, from one whose normaliser is known to a model: what annealing and tempering go along.

A path has places from 0 to 1. It knows nothing of temperatures: between independent variables and a model they are the
places, but any chain of distributions will do whose first one has a known normaliser.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from gibbsian.arrays import Tensor
from gibbsian.backends.parallel import map_in_order
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.inference import exact
from gibbsian.models.base import Family, Layered, Model, keeps

# Walkers that step as rows of a matrix are moved in this many groups, of this many at least; a group has a random
# stream of its own, so that results do not depend on the number of threads.
MOST_GROUPS, LEAST_WALKERS = 16, 25


class Path(ABC):
    """Unnormalised distributions ``f_0 .. f_1``, and walkers that move along them.

    Walkers are whatever the path makes them, with `cut` and `take` for groups that owe nothing to each other; `walk`
    moves them in place.
    """

    model: Model[Family]
    # Names of ways to start at the model, other than states and data.
    known_starts: ClassVar[tuple[str, ...]] = ("tempering", "gibbs", "exact")

    @property
    @abstractmethod
    def log_base_partition(self) -> float:
        """Logarithm of the normaliser at place 0."""

    @abstractmethod
    def require_memory(self, n_walkers: int) -> None:
        """Raise unless so many walkers fit."""

    @abstractmethod
    def from_base(self, n_walkers: int, rng: np.random.Generator) -> Any:
        """Return walkers at draws from place 0."""

    @abstractmethod
    def from_states(self, states: np.ndarray, rng: np.random.Generator) -> Any:
        """Return a walker at each of some states of the model."""

    @abstractmethod
    def states_of(self, walkers: Any) -> np.ndarray:
        """Return where walkers stand, as states of the model."""

    @abstractmethod
    def walk(self, walkers: Any, places: np.ndarray) -> np.ndarray:
        """Move walkers through the places, up or down, and return the increase of each one's log-weight.

        From each place to the next a walker's weight takes up how much likelier its state has become, then a
        transition that leaves the new place's distribution as it is moves it. The way down reverses the way up.
        """

    @property
    def coldest(self) -> float:
        """The place beyond the model to which walkers can be cooled."""
        return 4.0

    @abstractmethod
    def log_weights_of(self, walkers: Any, places: np.ndarray) -> np.ndarray:
        """Return the log-weight of each walker's state at rising places, shape (places, walkers), up to a constant.

        The constant is the same at all places.
        """

    def swept(self, walkers: Any, place: float, n_sweeps: int, places: np.ndarray) -> np.ndarray:
        """Move walkers at a place, and return their log-weights at some places as `log_weights_of` does."""
        self.walk(walkers, np.full(n_sweeps + 1, place))
        return self.log_weights_of(walkers, places)

    @abstractmethod
    def exchange(self, some: Any, others: Any, which: np.ndarray) -> None:
        """Let those walkers of two sets change places for which a mask has a True."""

    def exchanged(
        self, walkers: list[Any], places: np.ndarray, n_sweeps: int, numbers: range, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Move the walkers of all places and let neighbours exchange, in rounds with these numbers, which take turns.

        Returns how much likelier each state would be at its neighbour's place, upwards and downwards, each of shape
        (n_places - 1, n_rounds, n_walkers).
        """
        last, ups, downs = len(places) - 1, [], []
        for number in numbers:
            around = [places[max(k - 1, 0) : k + 2] for k in range(len(places))]
            steps = [
                np.diff(self.swept(some, float(place), n_sweeps, near), axis=0)
                for some, place, near in zip(walkers, places, around, strict=True)
            ]
            ups.append([step[-1] for step in steps[:-1]])
            downs.append([-step[0] for step in steps[1:]])
            for k in range(number % 2, last, 2):
                taken = np.log(rng.random(len(ups[-1][k]))) < ups[-1][k] + downs[-1][k]
                self.exchange(walkers[k], walkers[k + 1], taken)
        return np.swapaxes(ups, 0, 1), np.swapaxes(downs, 0, 1)

    # -- states of the model, to start the way back -------------------------------------------------------------------
    @abstractmethod
    def check_states(self, states: Tensor, what: str) -> np.ndarray:
        """Return states as an array, or say why the model does not have them."""

    @abstractmethod
    def rows_of(self, data: Dataset, numbers: np.ndarray) -> np.ndarray:
        """Return the states of the model that stand for some of the data's."""

    @abstractmethod
    def chains(self, n_walkers: int, rng: np.random.Generator, burn_in: int) -> tuple[np.ndarray, str]:
        """Return states at the end of chains, and what they are in words."""

    def exact_draws(self, n_walkers: int, rng: np.random.Generator) -> np.ndarray:
        """Draw states of the model exactly."""
        return exact(self.model).sample(n_walkers, rng)

    def check_start(self, start: Any) -> Any:
        """Refuse what the way back cannot start from before the way there is made."""
        if isinstance(start, str):
            if start not in self.known_starts:
                known = ", ".join(repr(name) for name in self.known_starts)
                raise ArgumentError(
                    "is not known", f"use {known}, states or a Dataset", argument="samples", value=start
                )
            return start
        if isinstance(start, Dataset):
            self.rows_of(start, np.arange(1))
            return start
        return self.check_states(start, "samples")

    def starts(self, start: Any, n_walkers: int, rng: np.random.Generator, burn_in: int) -> tuple[np.ndarray, str]:
        """Return states for the way back, and what they are in words."""
        if isinstance(start, str):
            if start == "exact":
                return self.exact_draws(n_walkers, rng), f"{n_walkers} exact draws"
            return self.chains(n_walkers, rng, burn_in)
        if isinstance(start, Dataset):
            numbers = rng.choice(len(start.weights), n_walkers, p=start.weights / start.weights.sum())
            return self.rows_of(start, numbers), f"{n_walkers} rows of the data"
        return start, f"the {len(start)} states given"


@dataclass
class Groups:
    """Walkers as rows of matrices, each group with a random stream of its own, and the stream of what they share."""

    values: list[np.ndarray]
    streams: list[np.random.Generator]
    shared: np.random.Generator

    def cut(self) -> list[Groups]:
        """Return each group by itself."""
        return [Groups([own], [stream], self.shared) for own, stream in zip(self.values, self.streams, strict=True)]

    def take(self, groups: list[Groups]) -> None:
        """Go on where such groups have come to."""
        self.values, self.streams = [group.values[0] for group in groups], [group.streams[0] for group in groups]


class SteppedPath(Path):
    """A path given by its weights and its steps, for walkers that are rows of a matrix of values."""

    @abstractmethod
    def draw_base(self, n_rows: int, rng: np.random.Generator) -> np.ndarray:
        """Draw values from place 0."""

    @abstractmethod
    def features(self, x: np.ndarray) -> np.ndarray:
        """Return what `log_weights` and `step` need to know of values, to be computed once for both."""

    @abstractmethod
    def log_weights(self, x: np.ndarray, features: np.ndarray, place: float) -> np.ndarray:
        """Return the log-weight of each row at a place, less what is the same at all places."""

    @abstractmethod
    def step(self, features: np.ndarray, place: float, rng: np.random.Generator) -> np.ndarray:
        """Return values after a transition that leaves the distribution at a place as it is."""

    def enter(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return values of walkers that start at states of the model."""
        return np.asarray(states, np.float64)

    def leave(self, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return states of the model that walkers stand for."""
        return values

    def from_base(self, n_walkers: int, rng: np.random.Generator) -> Groups:
        """Draw walkers from place 0, group by group."""
        groups = _groups(n_walkers)
        streams = rng.spawn(len(groups))
        values = [
            self.draw_base(group.stop - group.start, stream) for group, stream in zip(groups, streams, strict=True)
        ]
        return Groups(values, streams, rng)

    def from_states(self, states: np.ndarray, rng: np.random.Generator) -> Groups:
        """Put a walker at each state."""
        values, groups = self.enter(states, rng), _groups(len(states))
        return Groups([values[group] for group in groups], rng.spawn(len(groups)), rng)

    def states_of(self, walkers: Groups) -> np.ndarray:
        """Return the states that the walkers stand for."""
        return self.leave(np.concatenate(walkers.values), walkers.shared)

    def walk(self, walkers: Groups, places: np.ndarray) -> np.ndarray:
        """Move the groups, each on a thread."""

        def run(task: tuple[np.ndarray, np.random.Generator]) -> tuple[np.ndarray, np.ndarray]:
            values, rng = task
            increases = np.zeros(len(values))
            for before, place in zip(places[:-1].tolist(), places[1:].tolist(), strict=True):
                features = self.features(values)
                if place != before:
                    increases += self.log_weights(values, features, place) - self.log_weights(values, features, before)
                values = self.step(features, place, rng)
            return values, increases

        ends = list(map_in_order(run, zip(walkers.values, walkers.streams, strict=True)))
        walkers.values = [values for values, _ in ends]
        return np.concatenate([increases for _, increases in ends])

    def log_weights_of(self, walkers: Groups, places: np.ndarray) -> np.ndarray:
        """Return the log-weight of each walker's values at some places."""
        values = np.concatenate(walkers.values)
        features = self.features(values)
        return np.array([self.log_weights(values, features, place) for place in places.tolist()])

    def exchange(self, some: Groups, others: Groups, which: np.ndarray) -> None:
        """Exchange the values of rows."""
        ends = np.cumsum([len(values) for values in some.values])[:-1]
        for one, other, rows in zip(some.values, others.values, np.split(which, ends), strict=True):
            one[rows], other[rows] = other[rows], one[rows]


def _groups(n_walkers: int) -> list[slice]:
    size = max(LEAST_WALKERS, -(-n_walkers // MOST_GROUPS))
    starts = [start for start in range(0, n_walkers, size) if not start or 2 * (n_walkers - start) > size]
    # a small rest goes with those before it
    return [slice(*ends) for ends in pairwise([*starts, n_walkers])]


def as_path(model: Path | Model[Any], rng: np.random.Generator) -> Path:
    """Return a path as it is, and for a model the one from independent variables to it."""
    if isinstance(model, Path):
        return model
    if keeps(model.family, Layered):
        from gibbsian.old_sampling.layer_paths import layer_path

        return layer_path(model, rng=rng)
    from gibbsian.old_sampling.variable_paths import variable_path

    return variable_path(model)
