"""Learners of models over real numbers: score matching, and the graphical lasso."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import DataError
from gibbsian.learners.around import Around
from gibbsian.learners.base import LEARNERS, Learner, LearnerState
from gibbsian.learners.minibatch import Minibatch
from gibbsian.learners.objective import ObjectiveLearner
from gibbsian.learners.recipe import Recipe, optimizer_setting
from gibbsian.learners.standard_units import ColumnScale
from gibbsian.objectives.score_matching import ScoreMatching as ScoreObjective
from gibbsian.optimizers import Optimizer, StepInfo
from gibbsian.settings import check, declared, number


@LEARNERS.register("score-matching", models=("gaussian", "restricted"))
@declared(frozen=True)
class ScoreMatching(Recipe):
    """Score matching (Hyvarinen 2005; H06 section 1): real numbers without log Z, of a Gaussian by linear equations.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.random.default_rng(0).normal(size=(100, 3))
    >>> gb.GaussianMachine(graph=[(0, 1), (1, 2)], learner="score-matching").fit(rows).result_.n_steps
    1
    """

    optimizer: Optimizer | str = optimizer_setting("lbfgs", "How to minimise.")

    def build(self) -> Learner:
        """Minimise the score matching objective."""
        return ObjectiveLearner(objective=ScoreObjective(), optimizer=self.optimizer, l1=self.l1, l2=self.l2)

    def refusal(self, model: Any) -> str:
        """Only densities have scores."""
        known = getattr(model, "has_scores", False)
        return "" if known else "needs a density of real numbers in closed form, up to log Z"

    def for_layers(self) -> Learner:
        """Return the learner as it takes a restricted machine of Gaussian visible units."""
        return InStandardUnits(self)


@dataclass(frozen=True)
class InStandardUnits(Around):
    """Learns a machine of Gaussian visible units in standard units, from small random weights."""

    learner: Learner

    def start(self, model: Any, data: Dataset, rng: np.random.Generator) -> Any:
        """Begin where learning by minibatches begins."""
        return Minibatch().start(model, data, rng)

    def init(self, model: Any, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Go over to standard units."""
        scale = ColumnScale.of(data)
        inner = self.learner.init(scale.from_data(model), scale.standard(data), rng)
        return LearnerState((inner.problem, scale), inner.progress)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take a step of the learner within."""
        inner, info = self.learner.step(self.within(state))
        return LearnerState((inner.problem, state.problem[1]), inner.progress), info

    def within(self, state: LearnerState) -> LearnerState:
        """Return the state of the learner in standard units."""
        return LearnerState(state.problem[0], state.progress)

    def fitted(self, model: Any, state: LearnerState) -> Any:
        """Return the machine in the units of the data."""
        _, scale = state.problem
        return scale.to_data(scale.from_data(model).replace(state.progress.theta))


# How well scikit-learn is to solve; its own tolerances leave the second digit open where columns are much alike.
PRECISELY = {"tol": 1e-6, "enet_tol": 1e-9, "max_iter": 1000}
# Completed rows and the matrix have settled when no parameter moves by more.
SETTLED = 1e-5


@dataclass(frozen=True)
class LassoProgress:
    """The parameters, the penalty, and how many steps have been made."""

    theta: np.ndarray
    penalty: float
    steps: int


@LEARNERS.register("graphical-lasso", models=("gaussian",), penalised=False)
@declared(frozen=True)
class GraphicalLasso(Learner):
    """Likelihood of a Gaussian under an L1 penalty on the interactions, by scikit-learn (Y18 section 6).

    Missing cells are completed by their conditional moments before every step.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.random.default_rng(0).normal(size=(300, 4))
    >>> rows[:, 1] += rows[:, 0]
    >>> machine = gb.GaussianMachine(learner="graphical-lasso", l1=0.2).fit(rows)
    >>> machine.precision_.to_numpy()[np.triu_indices(4, 1)].nonzero()[0].tolist()       # the pair (0, 1) alone
    [0]
    """

    l1: float = number(
        0.0, "The penalty in standard units; where it is zero it is chosen by cross-validation.", least=0
    )
    takes_numbers = True

    def __post_init__(self) -> None:
        check(self)

    def refusal(self, model: Any) -> str:
        """Only a Gaussian on the complete graph has a precision matrix of which any entry may vanish."""
        if not getattr(model, "of_numbers", False):
            return "finds a sparse precision matrix of real numbers, and the model has none"
        return "" if model.graph.is_complete else "chooses the graph, so that none can be given"

    def init(self, model: Any, data: Any, rng: np.random.Generator) -> LearnerState:
        """Settle the penalty."""
        return LearnerState((model, data), LassoProgress(model.theta, self.l1 or _cross_validated(model, data), 0))

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Complete the rows where cells are missing, and solve for the precision matrix."""
        from sklearn.covariance import graphical_lasso

        (model, data), before = state.problem, state.progress
        current = model.replace(before.theta)
        moments = current.completions(data).under(current) if data.has_missing else model.moments(data)
        _, precision = graphical_lasso(moments.covariance, before.penalty, **PRECISELY)
        after = model.with_precision(precision, moments)
        moved = float(np.abs(after.theta - before.theta).max()) if data.has_missing else 0.0
        value = after.moment_loss("likelihood", moments)[0]
        value += before.penalty * float(np.abs(after.theta[model.penalised]).sum())
        progress = LassoProgress(after.theta, before.penalty, before.steps + 1)
        verdict = f"converged after {progress.steps} steps: moved by {moved:.1g}" if 0 < moved < SETTLED else ""
        return LearnerState(state.problem, progress), StepInfo(value, moved, 1.0, progress.steps, verdict=verdict)


def _cross_validated(model: Any, data: Dataset) -> float:
    """Choose the penalty by the likelihood of rows left out."""
    from sklearn.covariance import GraphicalLassoCV

    if not isinstance(data, Dataset) or data.has_missing or data.row_weights is not None:
        raise DataError(
            "cross-validation needs complete rows in memory without weights", "give the penalty, such as `l1=0.1`"
        )
    return float(GraphicalLassoCV().fit(model.standard(data.rows()[0])).alpha_)
