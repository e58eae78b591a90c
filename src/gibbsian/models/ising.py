"""Two-valued pairs as spins: the one form of them that compiled kernels and exact engines take."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsian.graphs import Graph
from gibbsian.models.family import keeps


class Ising(NamedTuple):
    """``log P(s) = constant + fields . s + sum_ij couplings_ij s_i s_j - log Z`` of spins s."""

    graph: Graph
    fields: np.ndarray
    couplings: np.ndarray
    constant: float


@runtime_checkable
class IsingFamily(Protocol):
    """A family whose variables are spins in some coding, joined in pairs."""

    def ising(self, theta: np.ndarray) -> Ising:
        """Return the distribution in spins."""

    def statistics_of_spins(self, means: np.ndarray, products: np.ndarray) -> np.ndarray:
        """Return the expected statistics, given E[s_i] of all variables and E[s_i s_j] along the edges."""


def is_ising(family: object) -> bool:
    """Say whether a family has a form in spins.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.models.ising import is_ising
    >>> is_ising(gb.PairwiseModel.zeros(gb.graphs.complete(2)).family), is_ising(gb.graphs.complete(2))
    (True, False)
    """
    return keeps(family, IsingFamily)
