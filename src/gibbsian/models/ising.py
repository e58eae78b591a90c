"""Pairs of two-valued variables as an Ising model, the form that compiled kernels and exact engines use."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from gibbsian.arrays import Floats
from gibbsian.graphs import Graph
from gibbsian.models.base import DiscreteFamily, keeps
from gibbsian.models.conditionals import Pairs

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class Ising(NamedTuple):
    """An Ising model ``log P(s) = constant + fields . s + sum_ij couplings_ij s_i s_j - log Z`` of spins s = -1, 1."""

    graph: Graph
    fields: Floats
    couplings: Floats
    constant: float


@runtime_checkable
class IsingFamily(DiscreteFamily, Protocol):
    """A family of pairs of two-valued variables with any scores."""

    def ising(self, theta: Floats) -> Ising:
        """Return the distribution as an Ising model."""

    @property
    def layout(self) -> Pairs:
        """The layout of theta, with the scores."""


def is_ising(family: object) -> TypeIs[IsingFamily]:
    """Whether a family can be written as an Ising model.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.models.ising import is_ising
    >>> is_ising(gb.PairwiseFamily(gb.graphs.complete(2))), is_ising(gb.graphs.complete(2))
    (True, False)
    """
    return keeps(family, IsingFamily)
