"""Hard and online k-means as scikit-learn estimators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.data import Dataset
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.mixtures import ClassEstimator, UnitNorm
from gibbsian.learning import EM, FitResult, Learner
from gibbsian.learning.base import LearnerState
from gibbsian.learning.stages import Restarts
from gibbsian.learning.winner_take_all import SCHEDULE, UnitsProgress, WinnerTakeAll
from gibbsian.models.file_parts import reject
from gibbsian.models.mixtures.gaussian import KMeansFamily
from gibbsian.rng import as_pcg64, generator_words
from gibbsian.settings import choice, declared, flag, number, whole
from gibbsian.startup import ClusterMixin


@declared
class MeansEstimator(ClusterMixin, ClassEstimator):
    """What hard clusterings share: rows go to their nearest mean, the score is minus the energy per row."""

    has_density: ClassVar[bool] = False
    _value_name: ClassVar[str] = "energy"
    fit_predict = ClassEstimator.fit_predict  # which knows of rows on a cluster, before that of scikit-learn

    def _family(self, data: Dataset) -> Any:
        return KMeansFamily(self.n_components, data.n_variables)

    def _shown_parts(self) -> dict[str, Any]:
        return {"means": self.model_.parts.means}

    @property
    def energy_(self) -> float:
        """The energy of YK15 eq. 1 at the end of the fit."""
        return float(self.free_energies_[-1])

    def score_samples(self, X: Any, **known: Any) -> np.ndarray:
        """Return minus the squared distance of each row to its nearest mean: its part of YK15 eq. 1.

        This is what is left of a log-density as the variance goes to zero, so that it compares rows and fits, but is
        not one.
        """
        return super().score_samples(X, **known)


@ESTIMATORS.register("k-means", about="numbers, each row at its nearest mean", rows="numbers")
@declared
class HardKMeans(MeansEstimator):
    """Hard k-means with the energy of YK15 eq. 1 traced (YK15, "K-means (2)"); the k-means++ start is scikit-learn's.

    Distances are taken over present cells. The fit leaves ``means_``, ``labels_``, ``energy_`` and ``free_energies_``,
    the energy of every step.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> km = gb.HardKMeans(n_components=2, random_state=0).fit([[0.0], [1.0], [10.0], [11.0]])
    >>> np.sort(km.means_.ravel()), km.energy_
    (array([ 0.5, 10.5]), 1.0)
    >>> gb.HardKMeans(start=[[1.0], [2.0]]).fit([[0.0], [1.0], [10.0], [11.0]]).free_energies_
    array([146.,   1.,   1.])
    """

    n_init: int = whole(1, "Starts by k-means++, as many as in scikit-learn; the one of least energy is kept.", least=1)
    max_iter: int = whole(300, "Most steps of each start.", least=1)
    tol: float = number(0.0, "Converged when the energy per row falls by no more.", least=0.0)

    def _learner(self, model: Any, data: Dataset) -> Learner:
        n_init = 1 if self._is_given else self.n_init
        learner = EM(assignment="hard", **self._placing)
        return Restarts(learner=learner, n_init=n_init, max_iter=self.max_iter, tol=self.tol)


@ESTIMATORS.register(
    "online-k-means",
    about="numbers or directions, one row at a time moves the nearest unit",
    rows="numbers",
    missing=False,
    epochs=True,
)
@declared
class OnlineKMeans(UnitNorm, MeansEstimator):
    """Online winner-take-all k-means: rows are shown one at a time and the winner moves towards each (YK15).

    ``schedule="constant"`` is the rule as the lecture prints it, ``m <- m - 2 zeta (m - x)``, with `learning_rate` for
    2 zeta; otherwise each unit averages what it has won. Without `normalize` cells may be missing: distances and
    averages are then over present cells.

    The fit leaves ``means_`` (the units' weights), ``wins_``, ``labels_``, ``energy_`` and ``free_energies_``, the
    energy after every epoch.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1.0, 0.1], [1.0, -0.1], [0.1, 2.0], [-0.1, 2.0]]
    >>> gb.OnlineKMeans(random_state=0).fit(rows).labels_.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    True
    """

    normalize: bool = flag(
        True, "Scale inputs and units to unit norm, so that the nearest unit is the one with the greatest dot product."
    )
    learning_rate: float = number(
        1.0, "The share of the way to its first row that a unit moves: the lecture's 2 zeta.", above=0.0, most=1.0
    )
    schedule: str = choice("wins", SCHEDULE, "wins", "constant")
    max_iter: int = whole(10, "How often all rows are shown, each time in a new random order.", least=1)

    _without_norm: ClassVar[str] = ", or set `normalize=False`"
    _learns_on_cluster: ClassVar[bool] = False  # rows are shown one after the other

    def _prepared(self, data: Dataset) -> Dataset:
        return self._scaled(data) if self.normalize else super()._prepared(data)

    def _learner(self, model: Any, data: Dataset) -> Learner:
        return self._shower(in_order=False)

    def _chunk_learner(self, model: Any, data: Dataset) -> Learner:
        return self._shower(in_order=True)

    def _shower(self, in_order: bool) -> Learner:
        return WinnerTakeAll(
            normalize=self.normalize,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            max_iter=self.max_iter,
            in_order=in_order,
            **self._placing,
        )

    @property
    def wins_(self) -> np.ndarray:
        """The weight of the rows that each unit has won."""
        return self._state.progress.wins

    def tables(self, n: int = 10) -> dict[str, Any]:
        """Return what each unit has won, and its largest means."""
        tables = super().tables(n)
        tables["classes"]["win"] = self.wins_
        return tables

    def _carried(self) -> dict[str, np.ndarray]:
        return {"wins": self._state.progress.wins, "cells": self._state.progress.cells}

    def _resume(self, carried: dict[str, np.ndarray]) -> None:
        wins, cells = carried["wins"], carried["cells"]
        if (*wins.shape, *cells.shape) != (self.n_components, *self.means_.shape):
            reject("carry", f"has shapes {wins.shape} and {cells.shape}, but there are {self.means_.shape} means")
        stream = generator_words(as_pcg64(self._rng()))
        self._state = LearnerState(None, UnitsProgress(self.model_.theta, wins, cells, 0, stream))

    def _set_fitted(self, result: FitResult, coding: Any, names: tuple[str, ...]) -> Self:
        # an online pass has no maximum to reach: it ends when all rows were shown
        return super()._set_fitted(replace(result, converged=True), coding, names)

    def partial_fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Show each row once, in the order given, and go on from where the units stand.

        Examples
        --------
        >>> import gibbsian as gb
        >>> units = gb.OnlineKMeans(normalize=False, random_state=0)
        >>> for row in ([[0.0], [9.0]], [[1.0], [10.0]], [[2.0], [11.0]]):
        ...     units = units.partial_fit(row)
        >>> sorted(units.means_.ravel().tolist())
        [1.0, 10.0]
        """
        return super().partial_fit(X, y, sample_weight)
