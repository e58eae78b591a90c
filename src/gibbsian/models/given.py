"""Some variables given values: a linear map of the parameters, whose transpose maps expected statistics back."""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np


class Parametrised(Protocol):
    """The part of a family that the map of its parameters needs."""

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""


AnyModel = TypeVar("AnyModel", bound=Parametrised)


class Given(NamedTuple, Generic[AnyModel]):
    """The distribution of the other variables when some are given.

    Every parameter goes to at most one parameter of the other variables; what depends on the given ones alone is a
    constant in the log-weight.

    Parameters
    ----------
    family : Model
        The other variables, in their order, with zero parameters. Rows that give the same variables share it, unless
        its functions depend on their values.
    place : ndarray of int
        The place of each old parameter in the new ones; -1 for none.
    scale : ndarray
        The factor of each old parameter there.
    constant : ndarray
        The factor of each old parameter in the log-weight that is taken out.
    offset : float
        Log-weight of the given values themselves, as nodes of a density have it.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(3), [0, 0, 0], [1.0, 2.0, 3.0])
    >>> given = model.given([0], [1])
    >>> given.parameters(model.theta)
    (array([1., 2., 3.]), 0.0)
    >>> given.statistics(np.array([0.5, 0.2, 0.3]))
    array([1. , 0.5, 0.2, 0.5, 0.2, 0.3])
    """

    family: AnyModel
    place: np.ndarray
    scale: np.ndarray
    constant: np.ndarray
    offset: float = 0.0

    @classmethod
    def of_products(cls, family: AnyModel, place: np.ndarray, factors: np.ndarray) -> Self:
        """Build the map of products: each keeps its free variables, times the `factors` of the given ones."""
        settled = place < 0
        return cls(family, place, np.where(settled, 0.0, factors), np.where(settled, factors, 0.0))

    def parameters(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the parameters of the other variables, and the log-weight taken out."""
        size = self.family.n_parameters
        constant = float((self.constant * theta).sum()) + self.offset
        return np.bincount(self.place + 1, self.scale * theta, size + 1)[1:], constant

    def at(self, theta: np.ndarray) -> tuple[AnyModel, float]:
        """Return the model of the other variables, and the log-weight taken out.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.PairwiseModel.build(gb.graphs.complete(3), [0, 0, 0], [1.0, 2.0, 3.0])
        >>> rest, constant = model.given([0], [1]).at(model.theta)
        >>> rest.biases.tolist(), rest.couplings.tolist(), constant
        ([1.0, 2.0], [3.0], 0.0)
        """
        parameters, constant = self.parameters(theta)
        return self.family.replace(parameters), constant  # type: ignore[attr-defined]

    def statistics(self, free: np.ndarray) -> np.ndarray:
        """Return the expected statistics of all variables, those of the others being `free`."""
        return self.constant + self.scale * np.append(free, 0.0)[self.place]
