"""The graphical lasso, which learns models over real numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, DataError
from gibbsian.learning.base import LEARNERS, Fit, Learner, Penalties, check_supported
from gibbsian.learning.em import EMFit, EMState, EMSteps, Expected
from gibbsian.learning.objectives.gaussian import ExpectedMoments, GaussianModel, moments_of
from gibbsian.learning.optimizers import Converged, StepInfo
from gibbsian.learning.optimizers.anderson import LastRounds
from gibbsian.models.base import Model
from gibbsian.models.families.gaussian import GaussianFamily, Moments, gaussian_loss
from gibbsian.rng import Key
from gibbsian.settings import check, declared, number

# How well scikit-learn is to solve; its own tolerances leave the second digit open where columns are much alike.
PRECISELY = {"tol": 1e-6, "enet_tol": 1e-9, "max_iter": 1000}
# Completed rows and the matrix have settled when no parameter moves by more.
SETTLED = 1e-5


@LEARNERS.register("graphical-lasso", models=("gaussian",), penalised=False)
@declared(frozen=True)
class GraphicalLasso(Learner):
    """Likelihood of a Gaussian under an L1 penalty on the interactions, by scikit-learn (Y18 section 6).

    Missing cells are completed by their conditional moments before every step, which is EM.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.random.default_rng(0).normal(size=(300, 4))
    >>> rows[:, 1] += rows[:, 0]
    >>> machine = gb.GaussianMachine(learner="graphical-lasso", l1=0.2).fit(rows)
    >>> machine.precision_.to_numpy()[np.triu_indices(4, 1)].nonzero()[0].tolist()       # the pair (0, 1) alone
    [0]
    """

    requires = (GaussianFamily,)
    takes = frozenset({"reals", "partitions"})

    l1: float = number(
        0.0, "The penalty in standard units; where it is zero it is chosen by cross-validation.", least=0
    )

    def __post_init__(self) -> None:
        check(self)

    @property
    def penalties(self) -> Penalties:  # a prior is any function
        """The L1 penalty."""
        return Penalties(self.l1)

    def bind(self, model: GaussianModel, data: Dataset | Moments) -> Fit[LassoState]:
        """Bind both steps of EM to rows, or to their moments."""
        check_supported(self, model)
        if not model.family.graph.is_complete:
            raise ArgumentError(
                "chooses the graph, so that none can be given", argument="learner", value="graphical-lasso"
            )
        return EMFit(LassoSteps(model.family, data, self.l1), model.theta)


LassoExpected = Expected[Moments, tuple[()]]
LassoState = EMState[Moments, tuple[()], tuple[()]]


class LassoSteps(EMSteps[Moments, tuple[()], tuple[()]]):
    """The E-step completes the rows where cells are missing, the M-step solves for the precision matrix."""

    learner_name = "graphical-lasso"

    def __init__(self, family: GaussianFamily, data: Dataset | Moments, l1: float):
        self.family, self.data, self.l1 = family, data, l1
        self.complete = isinstance(data, Moments) or not data.has_missing
        if isinstance(data, Moments) or self.complete:
            known = moments_of(family, data)
            self.moments_under: Callable[[GaussianModel], Moments] = lambda model: known
        else:
            self.moments_under = ExpectedMoments(data).under

    @cached_property
    def penalty(self) -> float:
        """The penalty, given or chosen by the likelihood of rows left out."""
        return self.l1 or _cross_validated(self.family, self.data)

    def start(self, key: Key, theta: Floats) -> LassoState:
        """Complete the rows at the start."""
        return EMState(theta, (), self.e_step(theta), 1, LastRounds.none(np.zeros(0)))

    def e_step(self, theta: Floats, before: LassoExpected | None = None, memory: tuple[()] = ()) -> LassoExpected:
        """Return the expected moments of the rows."""
        return Expected(np.nan, self.moments_under(Model(self.family, theta)), ())

    def m_step(self, theta: Floats, expected: LassoExpected, memory: tuple[()]) -> tuple[Floats, tuple[()]]:
        """Solve for the precision matrix."""
        from sklearn.covariance import graphical_lasso

        moments = expected.statistics
        _, precision = graphical_lasso(moments.covariance, self.penalty, **PRECISELY)
        return self.family.theta_of(precision, moments.mean), ()

    def judge(self, before: LassoState, after: LassoState) -> tuple[LassoState, StepInfo]:
        """Return the state after the step; complete rows need one."""
        theta, n_steps = after.theta, before.n_e_steps
        moved = 0.0 if self.complete else float(np.abs(theta - before.theta).max())
        loss = gaussian_loss(self.family, theta, before.expected.statistics)[0]
        value = loss + self.penalty * float(np.abs(theta[self.family.penalised]).sum())
        outcome = Converged(f"converged after {n_steps} steps: moved by {moved:.1g}")
        return after, StepInfo(value, moved, 1.0, n_steps, outcome=outcome if 0 < moved < SETTLED else None)

    def model(self, theta: Floats, memory: tuple[()]) -> GaussianModel:
        """Return the model."""
        return Model(self.family, theta)


def _cross_validated(family: GaussianFamily, data: Dataset | Moments) -> float:
    """Choose the penalty by the likelihood of rows left out."""
    from sklearn.covariance import GraphicalLassoCV

    if not isinstance(data, Dataset) or data.has_missing or data.row_weights is not None:
        raise DataError(
            "cross-validation needs complete rows in memory without weights", "give the penalty, such as `l1=0.1`"
        )
    return float(GraphicalLassoCV().fit(family.standard(data.rows()[0])).alpha_)
