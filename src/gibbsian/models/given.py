"""Conditioning on some variables: a linear map of the parameters, whose transpose maps expected statistics back."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from gibbsian.arrays import Floats, Integers

if TYPE_CHECKING:
    from gibbsian.models.base import Family

F = TypeVar("F", bound="Family", covariant=True)
G = TypeVar("G", bound="Family")
Owner = TypeVar("Owner")
Result = TypeVar("Result")


class Given(NamedTuple, Generic[F]):
    """The conditional distributions of a family, given the codes of some variables, as a linear map of its parameters.

    Each parameter adds to at most one parameter of the free variables. Terms of given variables alone add to a constant
    log-weight.

    Parameters
    ----------
    family : Family
        The family of the free variables, in their order. It is the same object for all rows with the same given
        variables, unless its functions depend on the given codes.
    target : ndarray of int
        Index of the new parameter that each old parameter adds to, or -1.
    scale : ndarray
        Factor of each old parameter in the new one.
    constant : ndarray
        Factor of each old parameter in the constant log-weight.
    offset : float
        Log base measure of the given variables, for densities.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(3), [0, 0, 0], [1.0, 2.0, 3.0])
    >>> given = model.family.given([0], [1])
    >>> given.parameters(model.theta)
    (array([1., 2., 3.]), 0.0)
    >>> given.statistics(np.array([0.5, 0.2, 0.3]))
    array([1. , 0.5, 0.2, 0.5, 0.2, 0.3])
    """

    family: F
    target: Integers
    scale: Floats
    constant: Floats
    offset: float = 0.0

    @staticmethod
    def of_products(family: G, target: Integers, factors: Floats) -> Given[G]:
        """Build the map of products of scores; `factors` are the products of the scores of their given variables."""
        constant = target < 0
        return Given(family, target, np.where(constant, 0.0, factors), np.where(constant, factors, 0.0))

    def parameters(self, theta: Floats) -> tuple[Floats, float]:
        """Return the parameters of the free variables, and the constant log-weight."""
        size = self.family.n_parameters
        constant = float((self.constant * theta).sum()) + self.offset
        return np.asarray(np.bincount(self.target + 1, self.scale * theta, size + 1)[1:], np.float64), constant

    def statistics(self, free: Floats) -> Floats:
        """Return the expected statistics of all variables, given those of the free variables."""
        expected: Floats = self.constant + self.scale * np.append(free, 0.0)[self.target]
        return expected


def cached_by_nodes(method: Callable[[Owner, tuple[int, ...]], Result]) -> Callable[[Owner, tuple[int, ...]], Result]:
    """Decorate a method of nodes: each object keeps its last 64 results, since many rows have the same nodes."""
    name = f"_{method.__name__}_cache"

    def cached(owner: Owner, nodes: tuple[int, ...]) -> Result:
        caches = vars(owner)
        if name not in caches:
            caches[name] = lru_cache(maxsize=64)(partial(method, owner))
        result: Result = caches[name](nodes)
        return result

    return cached
