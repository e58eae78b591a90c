"""The base of exact answers about two-valued pairs: engines work with spins, answers are in the family's scores."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

from gibbsian.arrays import Floats
from gibbsian.inference.engine import Engine, ExactAnswers
from gibbsian.models.ising import Ising, IsingFamily


class IsingEngine(Engine):
    """An engine that works with spins."""

    family: IsingFamily


class IsingAnswers(ExactAnswers):
    """Exact answers about spins: subclasses compute the moments of spins, this class those of the scores."""

    engine: IsingEngine

    @cached_property
    def ising(self) -> Ising:
        """The distribution in spins."""
        return self.engine.family.ising(self.theta)

    @cached_property
    @abstractmethod
    def spin_means(self) -> Floats:
        """E[s_i] of each spin."""

    @cached_property
    @abstractmethod
    def edge_products(self) -> Floats:
        """E[s_i s_j] along each edge."""

    @cached_property
    @abstractmethod
    def spin_products(self) -> Floats:
        """E[s_i s_j] of all pairs."""

    @cached_property
    def moments(self) -> Floats:
        """The expected sufficient statistics, in the layout of theta."""
        return self.engine.family.layout.statistics_of_spins(self.spin_means, self.edge_products)

    @cached_property
    def means(self) -> Floats:
        """E[x_i] of each variable."""
        middle, half = self._middle_and_half
        return middle + half * self.spin_means

    @cached_property
    def second_moments(self) -> Floats:
        """The matrix E[x_i x_j] of all pairs, joined by an edge or not."""
        (middle, half), means = self._middle_and_half, self.spin_means
        sums: Floats = means[:, None] + means[None, :]
        return middle**2 + middle * half * sums + half**2 * self.spin_products

    @property
    def _middle_and_half(self) -> tuple[float, float]:
        low, high = self.engine.family.variables.levels[0]
        return (low + high) / 2, (high - low) / 2
