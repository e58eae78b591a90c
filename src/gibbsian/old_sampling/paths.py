"""Paths of distributions, from one whose normaliser is known to a model: what annealing and tempering go along.

A path has places from 0 to 1. It knows nothing of temperatures: between independent variables and a model they are the
places, but any chain of distributions will do whose first one has a known normaliser.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from gibbsian.models.base import Family, Model

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


def as_path(model: Path | Model[Any], rng: np.random.Generator) -> Path:
    """Return a path as it is, and for a model the one from independent variables to it."""
    if isinstance(model, Path):
        return model
    from gibbsian.old_sampling.variable_paths import variable_path

    return variable_path(model)
