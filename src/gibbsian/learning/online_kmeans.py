"""Online k-means (YK15, "The online version of k-means"): units compete for each row and only the winner learns.

``m_winner <- m_winner - 2 zeta (m_winner - x)``, stochastic gradient descent on eq. 1, over the present cells. With
inputs and units of unit norm the nearest mean is the one with the greatest dot product, which a neuron computes. The
rate is constant, as the lecture prints it, or falls with the rows that a unit has won there, ``2 zeta = 1 /
(1/learning_rate - 1 + wins)`` (Robbins and Monro), which makes it the mean of its present cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.backends.numba.mixtures import winner_take_all
from gibbsian.data import Dataset
from gibbsian.learning.base import LEARNERS, Fit, Learner, check_supported
from gibbsian.learning.em import placing_setting
from gibbsian.learning.mixture_steps import KMeansSteps
from gibbsian.learning.optimizers import Converged, Outcome, Running, StepInfo
from gibbsian.models.base import Model
from gibbsian.models.mixtures.base import WeightedSample, require_all_cells
from gibbsian.models.mixtures.gaussian import KMeansFamily
from gibbsian.rng import Key
from gibbsian.settings import check, choice, declared, flag, number, whole

SCHEDULE = "Whether later rows count less, each unit averaging those it has won, or all as much as the first (YK15)."


class OnlineKMeansState(NamedTuple):
    """Units between two epochs.

    Parameters
    ----------
    theta : ndarray
        The parameters.
    wins, cells : ndarray
        The weight of the rows that each unit has won, and of their present cells by column.
    n_epochs : int
        Number of epochs so far.
    key : Key
        The key of the orders of all epochs.
    carried : bool
        Whether the units go on with other rows, which are shown in their own order.
    """

    theta: Floats
    wins: Floats
    cells: Floats
    n_epochs: int
    key: Key
    carried: bool = False


@LEARNERS.register("online-kmeans", models=("k-means",), stochastic=True)
@declared(frozen=True)
class OnlineKMeansRule(Learner):
    """Shows the rows one at a time; the unit nearest to a row moves towards it, the others stay (winner-take-all).

    A step shows every distinct row once in a new random order, and averages over the rows of this epoch alone. Rows in
    chunks are shown as they come, and units go on from what they have won.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.learning import OnlineKMeansRule
    >>> OnlineKMeansRule(learning_rate=0.5).max_iter
    10
    """

    requires = (KMeansFamily,)

    normalize: bool = flag(True, "Keep the units at unit norm and compare dot products.")
    learning_rate: float = number(
        1.0, "The share of the way to its first row that a unit moves: the lecture's 2 zeta.", above=0, most=1
    )
    schedule: str = choice("wins", SCHEDULE, "wins", "constant")
    max_iter: int = whole(10, "How often all rows are shown.", least=1)
    placing: str = placing_setting()

    def __post_init__(self) -> None:
        check(self)

    def bind(self, model: Model[KMeansFamily], data: Dataset) -> OnlineKMeansFit:
        """Bind the units to rows."""
        check_supported(self, model)
        return OnlineKMeansFit(self, model, data)


class OnlineKMeansFit(Fit[OnlineKMeansState]):
    """Epochs over the rows."""

    def __init__(self, learner: OnlineKMeansRule, start: Model[KMeansFamily], data: Dataset):
        if learner.normalize:
            require_all_cells(data.missing)
        self.learner, self.start, self.data = learner, start, data
        self.steps = KMeansSteps(start.family, data, hard=True, placing=learner.placing)

    def init(self, key: Key, theta: Floats | None = None) -> tuple[OnlineKMeansState, StepInfo]:
        """Put the units on rows that lie far apart."""
        family, theta = self.start.family, self.start.theta if theta is None else theta
        if not theta.any():
            theta = self.steps.model(self.steps.placed(key.fold("start").generator())[0]).theta
        wins, cells = np.zeros(family.n_components), np.zeros((family.n_components, family.n_columns))
        return OnlineKMeansState(theta, wins, cells, 0, key), StepInfo()

    def step(self, state: OnlineKMeansState) -> tuple[OnlineKMeansState, StepInfo]:
        """Show the rows once."""
        learner, family, rows = self.learner, self.start.family, self.steps.rows
        if state.carried:  # all rows in their own order
            weights = np.ones(self.data.n_rows) if self.data.row_weights is None else self.data.row_weights
            states, missing = self.data.rows()
            rows, order = WeightedSample(states, weights, missing), np.flatnonzero(weights > 0)
            wins, cells = state.wins.copy(), state.cells.copy()
        else:  # a mean of the last epoch's winners alone forgets where the unit came from
            order = state.key.fold("epoch", state.n_epochs).generator().permutation(len(rows.weights))
            wins, cells = np.zeros_like(state.wins), np.zeros_like(state.cells)
        x = np.asarray(rows.x, dtype=np.float64)  # with NaN for missing cells, as the kernel wants them
        x = np.ascontiguousarray(x if rows.mask is None else np.where(rows.mask, np.nan, x))
        means, rate, constant = family.split(state.theta).means.copy(), learner.learning_rate, learner.schedule
        winner_take_all(
            x, rows.weights, order, means, wins, cells, float(rate), constant == "constant", learner.normalize
        )
        theta, n_epochs = family.equal(means), state.n_epochs + 1
        energy, moved = self.steps.e_step(self.steps.adopted(theta)[0]).value, float(np.abs(theta - state.theta).max())
        outcome: Outcome | None = None if moved else Running()  # units that rest for an epoch may move in the next
        warning, lost = "", np.flatnonzero(wins == 0)
        if len(lost) and not state.carried:
            warning = f"unit {lost[0]} has won no row in the last epoch and stays where it was: ask for fewer units"
        if n_epochs >= learner.max_iter and not state.carried:
            outcome = Converged(f"showed the rows {n_epochs} times")
        after = OnlineKMeansState(theta, wins, cells, n_epochs, state.key)
        return after, StepInfo(energy, moved, 1.0, n_epochs, outcome=outcome, warning=warning)

    def model(self, state: OnlineKMeansState) -> Model[KMeansFamily]:
        """Return the means."""
        return self.start.replace(state.theta)

    def carry(self, state: OnlineKMeansState) -> OnlineKMeansState:
        """Return units that go on from what they have won elsewhere."""
        return state._replace(carried=True)
