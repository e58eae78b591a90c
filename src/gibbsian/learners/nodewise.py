"""Learning one variable at a time: interaction screening and nodewise pseudolikelihood.

Each variable's couplings are estimated by a convex problem of their own, and the two estimates of each coupling are
averaged at the end (Vuffray, Misra, Lokhov and Chertkov 2016; Lokhov, Vuffray, Misra and Chertkov 2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.learners.base import LEARNERS, LearnerState
from gibbsian.learners.completing import AllCompletions, Rounds, are_few, require_shown
from gibbsian.learners.directed import LOSSES, DirectedModel
from gibbsian.learners.objective import Minimisation, ridge
from gibbsian.learners.recipe import Penalised, as_optimizer, optimizer_setting
from gibbsian.models import Model, PairwiseModel
from gibbsian.objectives import Equations, Function, ProbabilityFlow, Pseudolikelihood
from gibbsian.optimizers import Optimizer, StepInfo
from gibbsian.settings import check, declared, number

# c of lambda = c sqrt(log(n^2 / 0.05) / N), as Lokhov et al. 2018 recommend
THEORY = {"rise": 0.4, "logrise": 0.8, "rple": 0.2}
_FAILURE = 0.05
L1_THEORY = (
    "Strength of the L1 penalty on the couplings; 'theory' is `c sqrt(log(n^2 / 0.05) / N)` on the couplings between "
    "spins at temperature 1, with c = 0.4 (rise), 0.8 (logrise) or 0.2 (rple) and N the sum of the weights."
)


def noise_level(n_variables: int, n_rows: float) -> float:
    """Return ``sqrt(log(n^2 / 0.05) / N)``, the scale of the largest coupling that noise alone suggests.

    Examples
    --------
    >>> from gibbsian.learners.nodewise import noise_level
    >>> round(noise_level(10, 1000), 4)
    0.0872
    """
    return float(np.sqrt(np.log(n_variables**2 / _FAILURE) / n_rows))


@dataclass(frozen=True)
class _Progress:
    """The symmetric parameters, and the optimiser's state over the directed ones."""

    theta: np.ndarray
    search: Any


@declared(frozen=True)
class Nodewise(Penalised):
    """Minimise ``loss + l1 sum|coupling| + (l2 / 2) sum parameter^2`` for each variable, then average.

    The penalties act on the directed parameters in the model's own coding; the L1 penalty leaves biases alone. A pair
    has one coupling in each of two regressions, which is what a pairwise model of two-valued variables has; other
    models are refused. Missing cells are completed under the averaged model (see `gibbsian.learners.completing`).

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes().complete_rows()
    >>> model = gb.BoltzmannMachine(learner="rise", l1=0.1).fit(votes).model_
    >>> int((model.couplings != 0).sum()), model.couplings.size
    (26, 136)
    """

    loss: ClassVar[str]

    l1: float | Literal["theory"] = number(0.0, L1_THEORY, least=0, words=("theory",))
    optimizer: Optimizer | str = optimizer_setting("lbfgs", "How all the problems are solved together.")

    def __post_init__(self) -> None:
        check(self)
        self._settle(optimizer=as_optimizer(self.optimizer))

    def penalty(self, model: PairwiseModel, data: Dataset) -> float:
        """Return the number that l1 stands for, in the model's own coding and temperature."""
        if not isinstance(self.l1, str):
            return self.l1
        to_spins = (model.domain.gap / 2) ** 2 / model.temperature
        return THEORY[self.loss] * noise_level(model.n_variables, data.total_weight) * to_spins

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Bind the loss to the data and evaluate the start."""
        if not model.is_pairwise:
            raise ArgumentError(
                f"solves a regression with one coupling for each pair, which a {type(model).__name__} does not have",
                "use 'mple', which ties the regressions of any model",
                argument="learner",
                value=self.loss,
            )
        directed = DirectedModel(model)
        l1 = np.where(directed.penalised, self.penalty(model, data), 0.0)

        def bind(rows: Dataset) -> Function:
            return ridge(LOSSES[self.loss](directed, rows), self.l2)

        if not data.has_missing:
            problem: Any = Minimisation(bind(data), self.optimizer, l1)
        else:
            require_shown(data)
            if not are_few(data):
                raise MissingValuesError(
                    "the regressions need every way to complete the rows, and there are too many",
                    "use `learner='mple'` or 'pcd', which sample them, or drop the rows with the most missing cells",
                )
            problem = Rounds(AllCompletions.of(data), bind, directed.symmetric, self.optimizer, l1)  # type: ignore[arg-type]
        return LearnerState((directed, problem), _Progress(model.theta, problem.start(directed.start())))

    def equations(self, model: PairwiseModel, data: Dataset, max_seconds: float = 60.0) -> Equations:
        """Return the equations of the directed parameters, taken at their averages, which are as near to the truth.

        Without penalty logRISE solves the equations of RISE.
        """
        if self.l1 or (self.l2 and self.loss == "logrise"):
            raise ArgumentError(f"standard errors are not known for {self!r}", "use `gibbsian.uncertainty.bootstrap`")
        data.require_complete("standard errors of regressions", "ask for bootstrap, or ")
        directed = DirectedModel(model)
        carry = np.array([directed.symmetrise(unit) for unit in np.eye(directed.owner.size)])
        objective: Any = Pseudolikelihood() if self.loss == "rple" else ProbabilityFlow()
        return Equations(*directed.curvature_and_scores(objective, data), carry)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take one step of the optimiser over all problems, and average."""
        directed, problem = state.problem
        search, info = problem.step(state.progress.search)
        return LearnerState(state.problem, _Progress(directed.symmetrise(search.theta), search)), info


@LEARNERS.register("rise")
@declared(frozen=True)
class RISE(Nodewise):
    """Interaction screening, RISE: ``mean exp(-x_u F_u)`` of each variable (Vuffray et al. 2016).

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="rise").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """

    loss: ClassVar[str] = "rise"


@LEARNERS.register("logrise")
@declared(frozen=True)
class LogRISE(Nodewise):
    """logRISE: ``log mean exp(-x_u F_u)`` of each variable (Lokhov et al. 2018).

    Without penalties it has the minimum of RISE; with them it needs fewer rows.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]
    >>> gb.BoltzmannMachine(learner=gb.learners.LogRISE(l1="theory")).fit(rows).model_.couplings
    array([0.])
    """

    loss: ClassVar[str] = "logrise"


@LEARNERS.register("rple")
@declared(frozen=True)
class RPLE(Nodewise):
    """One logistic regression per variable, averaged (Ravikumar, Wainwright and Lafferty 2010).

    ``"mple"`` minimises the same sum with the two couplings of an edge tied.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="rple").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """

    loss: ClassVar[str] = "rple"
