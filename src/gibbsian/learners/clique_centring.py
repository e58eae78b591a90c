"""Parameters of higher-order machines about the mean of the data: the idea of `centring` for products of any size.

With ``x_i = m_i + (gap / 2) u_i`` a product over a clique c is a sum over its subsets s, so that the parameter of s
about the mean is ``sum over c that hold s of theta_c (gap / 2)^|s| prod_{i in c, not in s} m_i``, and back likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from gibbsian.models import HigherOrderModel, Model


@dataclass(frozen=True, eq=False)
class CliqueCentring:
    """The change of parameters that belongs to a higher-order machine and an origin.

    Parameters
    ----------
    model : HigherOrderModel
        The machine, two-valued, with every part of a clique a clique too; only its structure counts.
    origin : ndarray of shape (n_variables,)
        The mean of the data.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.learners.clique_centring import CliqueCentring
    >>> model = gb.HigherOrderModel.build({(0,): 0.0, (1,): 0.0, (0, 1): 4.0}, 2, gb.domain.BINARY)
    >>> centring = CliqueCentring(model, np.array([0.5, 0.25]))
    >>> centring.inwards(model.theta).tolist()
    [0.5, 1.0, 1.0]
    >>> centring.outwards(np.array([0.5, 1.0, 1.0])).tolist()
    [0.0, 0.0, 4.0]
    """

    model: HigherOrderModel
    origin: np.ndarray

    @classmethod
    def applies(cls, model: Model) -> bool:
        """Say whether the machine has all the parameters that the change needs."""
        if not isinstance(model, HigherOrderModel) or not model.domain.two_valued:
            return False
        known = set(model.cliques)
        return all(part in known for clique in model.cliques if len(clique) > 1 for part in _facets(clique))

    @cached_property
    def _half(self) -> float:
        return self.model.domain.gap / 2  # type: ignore[union-attr]

    @cached_property
    def _sizes(self) -> np.ndarray:
        return np.array([len(clique) for clique in self.model.cliques])

    @cached_property
    def _inner(self) -> csr_array:
        """Rows are parts, columns whole cliques: the product of the origin over what the part leaves out."""
        return _expansion(self.model.cliques, self.origin)

    @cached_property
    def _outer(self) -> csr_array:
        return _expansion(self.model.cliques, -self.origin)

    def inwards(self, theta: np.ndarray) -> np.ndarray:
        """Return the centred parameters of the model with parameters `theta`."""
        return self._half**self._sizes * (self._inner @ theta) / self.model.temperature

    def outwards(self, centred: np.ndarray) -> np.ndarray:
        """Return theta of the model with these centred parameters."""
        return self._outer @ (centred / self._half**self._sizes) * self.model.temperature

    def gradient(self, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient with respect to the centred parameters, given that with respect to theta."""
        return (self._outer.T @ gradient) / self._half**self._sizes * self.model.temperature

    def l1(self, l1: np.ndarray) -> np.ndarray:
        """Return the L1 penalty, which there must not be: it mixes parameters of different cliques."""
        return l1


def _facets(clique: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(combinations(clique, len(clique) - 1))


def _expansion(cliques: Sequence[tuple[int, ...]], origin: np.ndarray) -> csr_array:
    place = {clique: number for number, clique in enumerate(cliques)}
    rows, columns, values = [], [], []
    for number, clique in enumerate(cliques):
        for size in range(1, len(clique) + 1):
            for part in combinations(clique, size):
                rows.append(place[part])
                columns.append(number)
                values.append(float(np.prod([origin[i] for i in clique if i not in part])))
    return csr_array((values, (rows, columns)), shape=(len(cliques), len(cliques)))
