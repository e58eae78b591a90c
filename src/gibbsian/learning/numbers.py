"""The graphical lasso, which learns models over real numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import DataError
from gibbsian.learning.base import LEARNERS, Learner, LearnerState, Penalties
from gibbsian.learning.objectives.gaussian import ExpectedMoments, moments_of
from gibbsian.learning.optimizers import Converged, StepInfo
from gibbsian.models.base import DiscreteFamily, Family, Model
from gibbsian.models.families.gaussian import GaussianFamily, gaussian_loss
from gibbsian.settings import check, declared, number

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

    @property
    def penalties(self) -> Penalties:
        """The L1 penalty."""
        return Penalties(self.l1)

    def refusal(self, model: Model[Family]) -> str:
        """Only a Gaussian on the complete graph has a precision matrix of which any entry may vanish."""
        if not isinstance(model.family, GaussianFamily):
            return "finds a sparse precision matrix of real numbers, and the model has none"
        return "" if model.family.graph.is_complete else "chooses the graph, so that none can be given"

    def init(self, model: Model[DiscreteFamily], data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Settle the penalty."""
        return LearnerState((model, data), LassoProgress(model.theta, self.l1 or _cross_validated(model, data), 0))

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Complete the rows where cells are missing, and solve for the precision matrix."""
        from sklearn.covariance import graphical_lasso

        (model, data), before = state.problem, state.progress
        family = model.family
        complete = not data.has_missing
        moments = moments_of(family, data) if complete else ExpectedMoments(data).under(model.replace(before.theta))
        _, precision = graphical_lasso(moments.covariance, before.penalty, **PRECISELY)
        theta = family.theta_of(precision, moments.mean)
        moved = 0.0 if complete else float(np.abs(theta - before.theta).max())
        value = gaussian_loss(family, theta, moments)[0] + before.penalty * float(np.abs(theta[family.penalised]).sum())
        progress = LassoProgress(theta, before.penalty, before.steps + 1)
        outcome = Converged(f"converged after {progress.steps} steps: moved by {moved:.1g}")
        settled = outcome if 0 < moved < SETTLED else None
        return LearnerState(state.problem, progress), StepInfo(value, moved, 1.0, progress.steps, outcome=settled)


def _cross_validated(model: Any, data: Dataset) -> float:
    """Choose the penalty by the likelihood of rows left out."""
    from sklearn.covariance import GraphicalLassoCV

    if not isinstance(data, Dataset) or data.has_missing or data.row_weights is not None:
        raise DataError(
            "cross-validation needs complete rows in memory without weights", "give the penalty, such as `l1=0.1`"
        )
    return float(GraphicalLassoCV().fit(model.family.standard(data.rows()[0])).alpha_)
