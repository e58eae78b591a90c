"""Hard and online k-means as scikit-learn estimators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin

from gibbsian.errors import ArgumentError, DegenerateDataWarning, notify
from gibbsian.estimators.mixture_base import HiddenClassEstimator
from gibbsian.mixtures import EMResult, KMeansPartition, KMeansProblem, OnlineState, WeightedRows
from gibbsian.mixtures.em import best_of, iterate
from gibbsian.mixtures.kmeans import energy, nearest_mean
from gibbsian.mixtures.online_kmeans import show
from gibbsian.mixtures.rows import check_squares, collapse, unit_rows, without_direction
from gibbsian.mixtures.seeds import spread_rows
from gibbsian.rng import RandomState, as_generator


class _MeansEstimator(ClusterMixin, HiddenClassEstimator):
    """What hard clusterings share: rows go to their nearest mean, the score is minus the energy."""

    components = KMeansPartition

    def _prepared(self, rows: np.ndarray) -> np.ndarray:
        check_squares(rows)
        return rows

    def _keep(self, result: EMResult) -> None:
        super()._keep(result)
        self.means_ = result.mixture.means
        self.energy_ = result.mixture.energy

    def _classes(self, rows: np.ndarray) -> np.ndarray:
        return nearest_mean(_plain(rows, np.ones(len(rows))), self.mixture_.means)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the energy of YK15 eq. 1; rows that cannot be scaled to unit norm have no weight."""
        rows = self._rows(X)
        return -energy(_plain(rows, self._row_weights(rows, sample_weight)), self.mixture_.means)


class HardKMeans(_MeansEstimator):
    """Hard k-means with the energy of YK15 eq. 1 traced; the k-means++ start is scikit-learn's.

    Parameters
    ----------
    n_components : int
        k, the number of classes.
    n_init : int
        Starts; the one of least energy is kept.
    max_iter : int
        Most steps of each.
    tol : float
        Converged when the energy per row falls by no more.
    random_state : None, int or Generator
        Where the starts come from.

    Attributes
    ----------
    means_ : array of shape (n_components, n_columns)
        The means m_a.
    labels_ : array of shape (n_rows,)
        The class of each row.
    energy_ : float
        The energy at the end; ``result_.free_energies`` has every step's.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.estimators.mixtures import HardKMeans
    >>> km = HardKMeans(n_components=2, random_state=0).fit([[0.0], [1.0], [10.0], [11.0]])
    >>> np.sort(km.means_.ravel()), km.energy_
    (array([ 0.5, 10.5]), 1.0)
    """

    kind = "k-means"

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_init: int = 5,
        max_iter: int = 300,
        tol: float = 0.0,
        random_state: RandomState = None,
    ):
        self.n_components = n_components
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the means.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_columns)
            The rows.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.
        """
        rows = self._rows(X, fitting=True)
        data = collapse(rows, sample_weight)
        data.require(self.n_components)
        problem = KMeansProblem(data)

        def one(rng: np.random.Generator) -> EMResult:
            start = problem.from_means(spread_rows(data, self.n_components, rng))
            return iterate(problem, start, self.max_iter, self.tol)

        best = best_of(one, self.n_init, as_generator(self.random_state))
        return self._finish(replace(best, mixture=replace(best.mixture, labels=None)), rows)


class OnlineKMeans(_MeansEstimator):
    """Online winner-take-all k-means: rows are shown one at a time and the winner moves towards each (YK15).

    Parameters
    ----------
    n_components : int
        k, the number of units.
    normalize : bool
        Scale inputs and units to unit norm, so that the nearest unit is the one with the greatest dot product.
    rate : float
        How far a unit moves towards its first row; later ones count less and less.
    n_epochs : int
        How often all rows are shown, each time in a new random order.
    random_state : None, int or Generator
        Where start and orders come from.

    Attributes
    ----------
    means_ : array of shape (n_components, n_columns)
        The units' weights.
    energy_ : float
        The energy of YK15 eq. 1 at the end; ``result_.free_energies`` has every epoch's.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.estimators.mixtures import OnlineKMeans
    >>> rows = [[1.0, 0.1], [1.0, -0.1], [0.1, 2.0], [-0.1, 2.0]]
    >>> OnlineKMeans(random_state=0).fit(rows).labels_.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    True
    """

    kind = "online-k-means"

    def __init__(
        self,
        n_components: int = 2,
        *,
        normalize: bool = True,
        rate: float = 1.0,
        n_epochs: int = 10,
        random_state: RandomState = None,
    ):
        self.n_components = n_components
        self.normalize = normalize
        self.rate = rate
        self.n_epochs = n_epochs
        self.random_state = random_state

    def _prepared(self, rows: np.ndarray) -> np.ndarray:
        return unit_rows(rows) if self.normalize else super()._prepared(rows)

    def _silent(self, rows: np.ndarray) -> np.ndarray:
        return without_direction(rows) if self.normalize else super()._silent(rows)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a start of k-means++ rows.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_columns)
            The rows.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.
        """
        rows = self._rows(X, fitting=True)
        data = collapse(rows, self._row_weights(rows, sample_weight))
        rng = as_generator(self.random_state)
        state = OnlineState(spread_rows(data, self.n_components, rng), np.zeros(self.n_components))
        energies = []
        for _ in range(self.n_epochs):
            # a mean of the last epoch's winners alone forgets where the unit came from
            state = OnlineState(state.means, np.zeros(self.n_components))
            state = show(state, data.rows, data.weights, rng.permutation(len(data.weights)), self.rate, self.normalize)
            energies.append(energy(data, state.means))
        return self._end(state, energies, rows)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Show each row once, in the order given, and go on from where the units stand.

        Examples
        --------
        >>> from gibbsian.estimators.mixtures import OnlineKMeans
        >>> units = OnlineKMeans(normalize=False, random_state=0)
        >>> for row in ([[0.0], [9.0]], [[1.0], [10.0]], [[2.0], [11.0]]):
        ...     units = units.partial_fit(row)
        >>> sorted(units.means_.ravel().tolist())
        [1.0, 10.0]
        """
        first = not hasattr(self, "wins_")
        if not first:
            self._ready(fitting=True)
            if self.n_components != len(self.wins_):
                raise ArgumentError(
                    f"but there are {len(self.wins_)} units already",
                    "call fit, or partial_fit on a new OnlineKMeans",
                    argument="n_components",
                    value=self.n_components,
                )
        rows = self._rows(X, fitting=first)
        weights = self._row_weights(rows, sample_weight)
        if first:
            rng = as_generator(self.random_state)
            start = spread_rows(collapse(rows, weights), self.n_components, rng)
            state, energies = OnlineState(start, np.zeros(self.n_components)), []
        else:
            state, energies = OnlineState(self.means_, self.wins_), list(self.result_.free_energies)
        order = np.flatnonzero(weights > 0)
        state = show(state, rows, weights, order, self.rate, self.normalize)
        return self._end(state, [*energies, energy(_plain(rows, weights), state.means)], rows, whole=False)

    def _extra_tensors(self) -> dict[str, np.ndarray]:
        return {"wins": self.wins_}

    def _restore(self, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        self.wins_ = tensors["wins"]

    def _end(self, state: OnlineState, energies: list[float], rows: np.ndarray, whole: bool = True) -> Self:
        lost = np.flatnonzero(state.wins == 0)
        if whole and len(lost):
            said = f"unit {lost[0]} has won no row in the last epoch and stays where it was: ask for fewer units"
            notify(DegenerateDataWarning(said))
        self.wins_ = state.wins
        mixture = KMeansPartition(state.means, energies[-1])
        reason = f"showed the rows {len(energies)} times"
        return self._finish(EMResult(mixture, np.array(energies), np.zeros(len(energies)), True, reason), rows)


def _plain(rows: np.ndarray, weights: np.ndarray) -> WeightedRows:
    """The rows as they stand, in their order."""
    return WeightedRows(rows, weights, len(rows))
