"""Online k-means (YK15, "The online version of k-means"): units compete for each row and only the winner learns.

``m_winner <- m_winner - 2 zeta (m_winner - x)``, stochastic gradient descent on eq. 1. With inputs and weights of unit
norm the nearest mean is the one with the greatest dot product, which a neuron computes. The rate of a unit falls with
the rows it has won, ``2 zeta = 1 / (1/rate - 1 + wins)`` (Robbins and Monro).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.backends.numba.mixtures import winner_take_all
from gibbsian.mixtures.settings import check


@dataclass(frozen=True)
class OnlineState:
    """The units and what they have won so far.

    Parameters
    ----------
    means : array of shape (n_components, n_columns)
        The weights of the units.
    wins : array of shape (n_components,)
        The weight of the rows that each has won.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.online_kmeans import OnlineState
    >>> OnlineState(np.eye(2), np.zeros(2)).means.shape
    (2, 2)
    """

    means: np.ndarray
    wins: np.ndarray


def show(
    state: OnlineState, rows: np.ndarray, weights: np.ndarray, order: np.ndarray, rate: float, normalised: bool
) -> OnlineState:
    """Show rows in the order given and return the units afterwards.

    Parameters
    ----------
    state : OnlineState
        The units before.
    rows : array of shape (n_rows, n_columns)
        The inputs, of unit norm where `normalised`.
    weights : array of shape (n_rows,)
        How much each row counts.
    order : array of int
        Which rows are shown, one after the other.
    rate : float
        The share of the way to its first row that a unit moves, above 0 and at most 1.
    normalised : bool
        Keep the units' norms at one and compare dot products.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.online_kmeans import OnlineState, show
    >>> state = OnlineState(np.array([[0.0], [9.0]]), np.zeros(2))
    >>> rows = np.array([[1.0], [3.0], [8.0]])
    >>> show(state, rows, np.ones(3), np.arange(3), rate=1.0, normalised=False).means
    array([[2.],
           [8.]])
    """
    check("rate", rate)
    means, wins = state.means.copy(), state.wins.copy()
    winner_take_all(np.ascontiguousarray(rows), weights, order.astype(np.int64), means, wins, float(rate), normalised)
    return OnlineState(means, wins)
