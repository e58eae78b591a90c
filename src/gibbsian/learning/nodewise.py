"""Learning one variable at a time: interaction screening and nodewise pseudolikelihood.

Variable u has its own field ``F_u = b_u + sum_j theta_uj x_j`` over its neighbours, and ``theta_uj`` is free to differ
from ``theta_ju``. A loss summed over variables then falls apart into one convex problem per variable; all of them are
evaluated at once by two products with the data, and the two estimates of each coupling are averaged at the end
(Vuffray, Misra, Lokhov and Chertkov 2016; Lokhov, Vuffray, Misra and Chertkov 2018).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import ClassVar, Literal

import numpy as np

from gibbsian.arrays import Floats, Integers, Tensor
from gibbsian.backends.device import library_of
from gibbsian.backends.numba.screening import scaled_half_exponential
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.learning.base import LEARNERS
from gibbsian.learning.completing import all_completions, are_few, require_shown
from gibbsian.learning.descend import Minimisation, MinimisationFit
from gibbsian.learning.gradients import CompletedObjective
from gibbsian.learning.objectives import Equations, Function, ProbabilityFlow, Pseudolikelihood
from gibbsian.learning.objectives.conditionals import BoundLoss
from gibbsian.learning.objectives.priors import SmoothPenalty
from gibbsian.learning.optimizers import Optimizer, OptimizerState
from gibbsian.learning.recipe import Penalised, as_optimizer
from gibbsian.models.base import Model
from gibbsian.models.conditionals import Loss, Pairs, WeightedRows, bind_pairs, pairs_by_block
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.ising import is_ising
from gibbsian.settings import check, declared, free, number

# c of lambda = c sqrt(log(n^2 / 0.05) / N), as Lokhov et al. 2018 recommend
THEORY = {"rise": 0.4, "logrise": 0.8, "rple": 0.2}
_FAILURE = 0.05
L1_THEORY = (
    "Strength of the L1 penalty on the couplings; 'theory' is `c sqrt(log(n^2 / 0.05) / N)` on the couplings between "
    "spins, with c = 0.4 (rise), 0.8 (logrise) or 0.2 (rple) and N the sum of the weights."
)


def noise_level(n_variables: int, n_rows: float) -> float:
    """Return ``sqrt(log(n^2 / 0.05) / N)``, the scale of the largest coupling that noise alone suggests."""
    return float(np.sqrt(np.log(n_variables**2 / _FAILURE) / n_rows))


# -- directed parameters and their losses -----------------------------------------------------------------------------
def directed_pairs(model: Model[PairwiseFamily]) -> tuple[Pairs, Floats]:
    """Return where the directed parameters of a model stand, and its own, each coupling in both directions."""
    return model.family.layout._replace(directed=True), np.concatenate([model.theta, model.parts.couplings])


Bind = Callable[[Pairs, Dataset], Function]
"""Binds a loss of directed parameters to data."""


def additive(loss: Loss) -> Bind:
    """Return what binds the loss ``sum_m w_m sum_u phi(d[m, u])``."""
    return lambda pairs, data: data.bind(partial(_additive, loss, pairs))


def _additive(loss: Loss, pairs: Pairs, data: Dataset) -> Function:
    return BoundLoss(bind_pairs(pairs, WeightedRows.of(data.states, data.weights)), loss)


def log_screening(pairs: Pairs, data: Dataset) -> Function:
    """Bind the loss of logRISE: ``sum_u log sum_m w_m exp(-d[m, u] / 2)``, by log-sum-exp over blocks of rows."""
    return _LogScreening(pairs.owner, data.bind(partial(_ExponentialSums.bind, pairs)))


@dataclass(frozen=True, eq=False)
class _LogScreening:
    """The sum of the logarithms of sums of exponentials."""

    owner: Integers
    sums: Callable[[Tensor], _ExponentialSums]

    def __call__(self, theta: Tensor) -> tuple[float, Tensor]:
        """Return value and gradient."""
        found = self.sums(theta)
        value = (found.top + library_of(found.total).log(found.total)).sum()
        return value, found.gradient / found.total[self.owner]


@dataclass(frozen=True, eq=False)
class _ExponentialSums:
    """Sums of exponentials of each regression, over that of `top`, with their slopes: what adds over rows."""

    owner: Integers
    top: Tensor
    total: Tensor
    gradient: Tensor

    @classmethod
    def bind(cls, pairs: Pairs, data: Dataset) -> Callable[[Tensor], _ExponentialSums]:
        """Return the sums over rows in memory, or on a device, as a function of theta."""
        present, owner = data.weights > 0, pairs.owner
        bound = pairs_by_block(pairs, WeightedRows.of(data.states[present], data.weights[present]))

        def function(theta: Tensor) -> _ExponentialSums:
            blocks = bound.by_block(theta, scaled_half_exponential)
            return reduce(add, (cls(owner, *_side_by_side(parts), gradient) for parts, gradient in blocks))

        return function

    def __add__(self, other: _ExponentialSums) -> _ExponentialSums:
        library = library_of(self.top)
        top = library.maximum(self.top, other.top)
        old, new = library.exp(self.top - top), library.exp(other.top - top)
        gradient = old[self.owner] * self.gradient + new[self.owner] * other.gradient
        return replace(self, top=top, total=old * self.total + new * other.total, gradient=gradient)

    def __mul__(self, factor: float) -> _ExponentialSums:
        return replace(self, total=self.total * factor, gradient=self.gradient * factor)


def _side_by_side(parts: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Return the results for all variables from those for spans of variables; a device has one span, of tensors."""
    if len(parts) == 1:
        return parts[0]
    top, total = map(np.concatenate, zip(*parts, strict=True))
    return top, total


LOSSES: dict[str, Bind] = {
    "rise": additive(ProbabilityFlow.loss),
    "logrise": log_screening,
    "rple": additive(Pseudolikelihood.loss),
}


# -- the learners -----------------------------------------------------------------------------------------------------
@declared(frozen=True)
class Nodewise(Penalised):
    """Minimise ``loss + l1 sum|coupling| + (l2 / 2) sum parameter^2`` for each variable, then average.

    The penalties act on the directed parameters in the model's own coding; the L1 penalty leaves biases alone. A pair
    has one coupling in each of two regressions, which is what a pairwise model of two-valued variables has; other
    models are refused. Missing cells are completed under the averaged model (see `gibbsian.learning.gradients`).

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes().complete_rows()
    >>> model = gb.BoltzmannMachine(learner="rise", l1=0.1).fit(votes).model_
    >>> couplings = model.parts.couplings
    >>> int((couplings != 0).sum()), couplings.size
    (26, 136)
    """

    loss: ClassVar[str]
    takes = frozenset({"partitions"})

    l1: float | Literal["theory"] = number(  # type: ignore[assignment]
        0.0, L1_THEORY, least=0, words=("theory",)
    )
    optimizer: Optimizer[OptimizerState] | str = free(
        "lbfgs", "How all the problems are solved together.", doc="Optimizer or str"
    )

    def __post_init__(self) -> None:
        check(self)
        self._settle(optimizer=as_optimizer(self.optimizer))

    def penalty(self, model: Model[PairwiseFamily], data: Dataset) -> float:
        """Return the number that l1 stands for, in the model's own coding."""
        if not isinstance(self.l1, str):
            return self.l1
        to_spins = (model.family.layout.gap / 2) ** 2
        return THEORY[self.loss] * noise_level(model.n_variables, data.total_weight) * to_spins

    def bind(self, model: Model[PairwiseFamily], data: Dataset) -> MinimisationFit:
        """Bind the losses of all variables to the rows, as one function of the directed parameters."""
        if not is_ising(model.family):
            raise ArgumentError(
                f"solves a regression with one coupling for each pair, which a "
                f"{type(model.family).__name__} does not have",
                "use 'mple', which ties the regressions of any model",
                argument="learner",
                value=self.loss,
            )
        pairs, start = directed_pairs(model)
        l1 = np.where(pairs.penalised, self.penalty(model, data), 0.0)

        def bound(rows: Dataset) -> Function:
            return SmoothPenalty(self.l2).added_to(LOSSES[self.loss](pairs, rows))

        def averaged(directed: Floats) -> Model[PairwiseFamily]:
            return model.replace(pairs.symmetrised(directed))

        if not data.has_missing:
            function = bound(data)
        else:
            require_shown(data)
            if not are_few(data):
                raise MissingValuesError(
                    "the regressions need every way to complete the rows, and there are too many",
                    "use `learner='mple'` or 'pcd', which sample them, or drop the rows with the most missing cells",
                )
            function = CompletedObjective(bound, all_completions(data), averaged, l1)
        problem = Minimisation(function, as_optimizer(self.optimizer), l1)
        return MinimisationFit(problem, start, lambda theta: directed_pairs(model.replace(theta))[1], averaged)

    def equations(self, model: Model[PairwiseFamily], data: Dataset, max_seconds: float = 60.0) -> Equations:
        """Return the equations of the directed parameters, taken at their averages, which are as near to the truth.

        Without penalty logRISE solves the equations of RISE.
        """
        if self.l1 or (self.l2 and self.loss == "logrise"):
            raise ArgumentError(f"standard errors are not known for {self!r}", "use `gibbsian.uncertainty.bootstrap`")
        data.require_complete("standard errors of regressions", "ask for bootstrap, or ")
        pairs, theta = directed_pairs(model)
        carry = np.array([pairs.symmetrised(unit) for unit in np.eye(theta.size)])
        loss = (Pseudolikelihood if self.loss == "rple" else ProbabilityFlow).loss
        bound = pairs_by_block(pairs, WeightedRows.of(data.states, data.weights, by_row=True))
        return Equations(bound.curvature(theta, loss), bound.scores(theta, loss), carry)


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
    >>> gb.BoltzmannMachine(learner=gb.learning.LogRISE(l1="theory")).fit(rows).model_.parts.couplings
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
