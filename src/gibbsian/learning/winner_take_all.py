"""Online k-means (YK15, "The online version of k-means"): units compete for each row and only the winner learns.

``m_winner <- m_winner - 2 zeta (m_winner - x)``, stochastic gradient descent on eq. 1, over the present cells. With
inputs and units of unit norm the nearest mean is the one with the greatest dot product, which a neuron computes. The
rate is constant, as the lecture prints it, or falls with the rows that a unit has won there, ``2 zeta = 1 /
(1/learning_rate - 1 + wins)`` (Robbins and Monro), which makes it the mean of its present cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.backends.numba.mixtures import winner_take_all
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.learning.base import LEARNERS, Learner, LearnerState
from gibbsian.learning.bound_mixtures import BoundKMeans, placing_setting
from gibbsian.learning.optimizers import Converged, Outcome, Running, StepInfo
from gibbsian.models.base import Family, Model
from gibbsian.models.mixtures.base import WeightedSample, require_all_cells
from gibbsian.models.mixtures.gaussian import KMeansFamily
from gibbsian.rng import as_pcg64, generator_of, generator_words
from gibbsian.settings import check, choice, declared, flag, number, whole

SCHEDULE = "Whether later rows count less, each unit averaging those it has won, or all as much as the first (YK15)."


@dataclass(frozen=True)
class UnitsProgress:
    """The parameters, the rows and present cells that each unit has won, epochs, and the generator of their orders."""

    theta: np.ndarray
    wins: np.ndarray
    cells: np.ndarray
    epochs: int
    stream: np.ndarray


@dataclass(frozen=True)
class _Problem:
    """Both the distinct rows and all of them in their order."""

    rows: BoundKMeans
    data: Any


@LEARNERS.register("winner-take-all", models=("k-means",), stochastic=True)
@declared(frozen=True)
class WinnerTakeAll(Learner):
    """Shows the rows one at a time; the unit nearest to a row moves towards it, the others stay.

    A step shows every distinct row once in a new random order, and averages over the rows of this epoch alone. With
    `in_order` it shows the rows as they come and goes on from what the units have won: what `partial_fit` asks for.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.learning.winner_take_all import WinnerTakeAll
    >>> WinnerTakeAll(learning_rate=0.5).max_iter
    10
    """

    normalize: bool = flag(True, "Keep the units at unit norm and compare dot products.")
    learning_rate: float = number(
        1.0, "The share of the way to its first row that a unit moves: the lecture's 2 zeta.", above=0, most=1
    )
    schedule: str = choice("wins", SCHEDULE, "wins", "constant")
    max_iter: int = whole(10, "How often all rows are shown.", least=1)
    in_order: bool = flag(False, "Show rows in their own order, and keep what the units have won.")
    placing: str = placing_setting()

    def __post_init__(self) -> None:
        check(self)

    def refusal(self, model: Model[Family]) -> str:
        """Only k-means has classes that are their means."""
        return (
            ""
            if isinstance(model.family, KMeansFamily)
            else "learns classes that are their means, and the model has no such"
        )

    def init(self, model: Any, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Put the units on rows that lie far apart."""
        problem, family, rng = self._problem(model.family, data), model.family, as_pcg64(rng)
        fitted = model.theta.any()
        start = model if fitted else problem.rows.reported(problem.rows.start(rng, self.placing))
        nothing = np.zeros(family.n_components), np.zeros((family.n_components, family.n_columns))
        return LearnerState(problem, UnitsProgress(start.theta, *nothing, 0, generator_words(rng)))

    def _problem(self, family: object, data: Any) -> _Problem:
        if self.normalize:
            require_all_cells(data.missing)
        return _Problem(BoundKMeans.of_rows(family, data, hard=True), data)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Show the rows once."""
        problem, before = state.problem, state.progress
        bound, rng = problem.rows, generator_of(before.stream)
        means = bound.family.split(before.theta).means.copy()
        if self.in_order:
            (rows, weights), wins, cells = _in_order(problem.data), before.wins.copy(), before.cells.copy()
            order = np.flatnonzero(weights > 0)
        else:
            rows, weights = _filled(bound.rows), bound.rows.weights
            # a mean of the last epoch's winners alone forgets where the unit came from
            order, wins, cells = rng.permutation(len(weights)), np.zeros_like(before.wins), np.zeros_like(before.cells)
        constant = self.schedule == "constant"
        winner_take_all(rows, weights, order, means, wins, cells, float(self.learning_rate), constant, self.normalize)
        model = Model(bound.family, bound.family.equal(means))
        energy, epochs = bound.e_step(bound.adopted(model)).free_energy, before.epochs + 1
        progress = UnitsProgress(model.theta, wins, cells, epochs, generator_words(rng))
        moved = float(np.abs(progress.theta - before.theta).max())
        outcome: Outcome | None = None if moved else Running()  # units that rest for an epoch may move in the next
        if epochs >= self.max_iter and not self.in_order:
            outcome = Converged(f"showed the rows {epochs} times")
        return LearnerState(problem, progress), StepInfo(energy, moved, 1.0, epochs, outcome=outcome)

    def warning(self, state: LearnerState) -> str:
        """Say which unit has won no row."""
        lost = np.flatnonzero(state.progress.wins == 0)
        if not len(lost) or self.in_order or not state.progress.epochs:
            return ""
        return f"unit {lost[0]} has won no row in the last epoch and stays where it was: ask for fewer units"

    def kept(self, state: LearnerState) -> LearnerState:
        """Return what the units have won, for `partial_fit`."""
        return LearnerState(None, state.progress)

    def rebound(self, state: LearnerState, data: Rows | None) -> LearnerState:
        """Go on with other rows."""
        family = KMeansFamily(*state.progress.cells.shape)
        return LearnerState(self._problem(family, data), state.progress)


def _in_order(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """All rows in their own order, with their weights."""
    weights = np.ones(data.n_rows) if data.row_weights is None else data.row_weights
    states, missing = data.rows()
    return _filled(WeightedSample(states, weights, missing)), weights


def _filled(rows: WeightedSample) -> np.ndarray:
    """Rows with NaN for missing cells, as the kernel wants them."""
    x = np.asarray(rows.x, dtype=np.float64)
    return np.ascontiguousarray(x if rows.mask is None else np.where(rows.mask, np.nan, x))
