"""What the engines of two-valued pairs have in common: they see spins, and answer in the family's own values."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np

from gibbsian.inference.contract import levels_of, rows_of
from gibbsian.inference.engine import AnyEngine, ExactAnswers
from gibbsian.models.ising import Ising


class IsingAnswers(ExactAnswers[AnyEngine]):
    """Exact answers about spins: subclasses say the moments of spins, this class turns them into those of values."""

    @cached_property
    def ising(self) -> Ising:
        """The distribution in spins."""
        return self.engine.family.ising(self.theta)

    @cached_property
    @abstractmethod
    def spin_means(self) -> np.ndarray:
        """E[s_i] of each spin."""

    @cached_property
    @abstractmethod
    def edge_products(self) -> np.ndarray:
        """E[s_i s_j] along each edge."""

    @cached_property
    @abstractmethod
    def spin_products(self) -> np.ndarray:
        """E[s_i s_j] of all pairs."""

    @cached_property
    def moments(self) -> np.ndarray:
        """The expected sufficient statistics, in the layout of theta."""
        return self.engine.family.statistics_of_spins(self.spin_means, self.edge_products)

    @cached_property
    def means(self) -> np.ndarray:
        """E[x_i] of each variable."""
        middle, half = self._middle_and_half
        return middle + half * self.spin_means

    @cached_property
    def second_moments(self) -> np.ndarray:
        """The matrix E[x_i x_j] of all pairs, joined by an edge or not."""
        (middle, half), means = self._middle_and_half, self.spin_means
        sums = means[:, None] + means[None, :]
        return middle**2 + middle * half * sums + half**2 * self.spin_products

    @property
    def _middle_and_half(self) -> tuple[float, float]:
        low, high = levels_of(self.engine.family)[0]  # type: ignore[index]  # which families of spins have
        return (low + high) / 2, (high - low) / 2

    def values(self, is_high: np.ndarray) -> np.ndarray:
        """Turn bits into rows of the family."""
        return rows_of(self.engine.family, is_high.astype(np.int8))
