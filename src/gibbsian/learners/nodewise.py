"""Learning one variable at a time: interaction screening and nodewise pseudolikelihood.

Each variable's couplings are estimated by a convex problem of their own, and the two estimates of each coupling are
averaged at the end (Vuffray, Misra, Lokhov and Chertkov 2016; Lokhov, Vuffray, Misra and Chertkov 2018).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.learners.base import LEARNERS, Learner, LearnerState
from gibbsian.learners.directed import LOSSES, DirectedModel
from gibbsian.learners.objective import check_penalties, ridge
from gibbsian.models import Model, PairwiseModel
from gibbsian.optimizers import LBFGS, OPTIMIZERS, Optimizer, StepInfo

# c of lambda = c sqrt(log(n^2 / 0.05) / N), as Lokhov et al. 2018 recommend
THEORY = {"rise": 0.4, "logrise": 0.8, "rple": 0.2}
_FAILURE = 0.05


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


@dataclass(frozen=True)
class Nodewise(Learner):
    """Minimise ``loss + l1 sum|coupling| + (l2 / 2) sum parameter^2`` for each variable, then average.

    The penalties act on the directed parameters in the model's own coding; the L1 penalty leaves biases alone.

    Parameters
    ----------
    loss : {"rise", "logrise", "rple"}
        Interaction screening, its logarithm, or minus the conditional log-likelihood.
    optimizer : Optimizer or str
        How all the problems are solved together.
    l1 : float or "theory"
        ``"theory"`` is ``c sqrt(log(n^2 / 0.05) / N)`` on the couplings between spins at temperature 1, with c = 0.4
        (rise), 0.8 (logrise) or 0.2 (rple) and N the sum of the weights.
    l2 : float
        Strength of the ridge.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.learners.nodewise import Nodewise
    >>> rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]
    >>> gb.BoltzmannMachine(learner=Nodewise("logrise", l1="theory")).fit(rows).model_.couplings
    array([0.])
    """

    loss: Literal["rise", "logrise", "rple"]
    optimizer: Optimizer | str = field(default_factory=LBFGS)
    l1: float | Literal["theory"] = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise ArgumentError("is not known", f"use one of {', '.join(LOSSES)}", argument="loss", value=self.loss)
        if isinstance(self.l1, str) and self.l1 != "theory":
            raise ArgumentError("must be a number or 'theory'", argument="l1", value=self.l1)
        check_penalties(0.0 if isinstance(self.l1, str) else self.l1, self.l2)
        if isinstance(self.optimizer, str):
            object.__setattr__(self, "optimizer", OPTIMIZERS.create(self.optimizer))

    def penalty(self, model: PairwiseModel, data: Dataset) -> float:
        """Return the number that l1 stands for, in the model's own coding and temperature."""
        if not isinstance(self.l1, str):
            return self.l1
        to_spins = (model.domain.gap / 2) ** 2 / model.temperature
        return THEORY[self.loss] * noise_level(model.n_variables, data.total_weight) * to_spins

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Bind the loss to the data and evaluate the start."""
        if not isinstance(model, PairwiseModel):
            raise ArgumentError(
                f"knows pairwise models, not {type(model).__name__}", argument="learner", value=self.loss
            )
        data.require_complete(f"learner={self.loss!r}")
        directed = DirectedModel(model)
        function = ridge(LOSSES[self.loss](directed, data), self.l2)
        l1 = np.where(directed.penalised, self.penalty(model, data), 0.0)
        search = self.optimizer.init(function, directed.start(), l1)  # type: ignore[union-attr]
        return LearnerState((directed, function, l1), _Progress(model.theta, search))

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take one step of the optimiser over all problems, and average."""
        directed, function, l1 = state.problem
        search, info = self.optimizer.step(function, state.progress.search, l1)  # type: ignore[union-attr]
        return LearnerState(state.problem, _Progress(directed.symmetrise(search.theta), search)), info


@LEARNERS.register("rise")
def interaction_screening(
    optimizer: Optimizer | str = "lbfgs", l1: float | Literal["theory"] = 0.0, l2: float = 0.0
) -> Nodewise:
    """Return interaction screening, RISE: ``mean exp(-x_u F_u)`` of each variable (Vuffray et al. 2016).

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="rise").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """
    return Nodewise("rise", optimizer, l1, l2)


@LEARNERS.register("logrise")
def log_interaction_screening(
    optimizer: Optimizer | str = "lbfgs", l1: float | Literal["theory"] = 0.0, l2: float = 0.0
) -> Nodewise:
    """Return logRISE: ``log mean exp(-x_u F_u)`` of each variable (Lokhov et al. 2018).

    Without penalties it has the minimum of RISE; with them it needs fewer rows.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="logrise").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """
    return Nodewise("logrise", optimizer, l1, l2)


@LEARNERS.register("rple")
def nodewise_pseudolikelihood(
    optimizer: Optimizer | str = "lbfgs", l1: float | Literal["theory"] = 0.0, l2: float = 0.0
) -> Nodewise:
    """Return one logistic regression per variable, averaged (Ravikumar, Wainwright and Lafferty 2010).

    ``"mple"`` minimises the same sum with the two couplings of an edge tied.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="rple").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """
    return Nodewise("rple", optimizer, l1, l2)
