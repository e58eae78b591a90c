"""Learning one variable at a time: interaction screening and nodewise pseudolikelihood.

Variable u has its own field ``F_u = b_u + sum_j theta_uj x_j`` over its neighbours, and ``theta_uj`` is free to differ
from ``theta_ju``. A loss summed over variables then falls apart into one convex problem per variable; all of them are
evaluated at once by two products with the data, and the two estimates of each coupling are averaged at the end
(Vuffray, Misra, Lokhov and Chertkov 2016; Lokhov, Vuffray, Misra and Chertkov 2018).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.backends.flip_layout import FlipLayout
from gibbsian.backends.numba import pairwise as kernels
from gibbsian.backends.numba.flip_losses import half_exponential, logistic
from gibbsian.backends.numba.screening import scaled_half_exponential
from gibbsian.backends.parallel import map_in_order
from gibbsian.blocks import row_blocks
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.learners.base import LEARNERS, LearnerState
from gibbsian.learners.completing import Rounds, all_completions, are_few, require_shown
from gibbsian.learners.objective import Minimisation, ridge
from gibbsian.learners.recipe import Penalised, as_optimizer, optimizer_setting
from gibbsian.models import PairwiseModel
from gibbsian.models.regressions import Regressions
from gibbsian.objectives import Equations, FlipCostObjective, Function, ProbabilityFlow, Pseudolikelihood
from gibbsian.objectives.base import Scores
from gibbsian.objectives.curvature import state_blocks
from gibbsian.optimizers import Optimizer, StepInfo
from gibbsian.settings import check, declared, number

# c of lambda = c sqrt(log(n^2 / 0.05) / N), as Lokhov et al. 2018 recommend
THEORY = {"rise": 0.4, "logrise": 0.8, "rple": 0.2}
_FAILURE = 0.05
L1_THEORY = (
    "Strength of the L1 penalty on the couplings; 'theory' is `c sqrt(log(n^2 / 0.05) / N)` on the couplings between "
    "spins, with c = 0.4 (rise), 0.8 (logrise) or 0.2 (rple) and N the sum of the weights."
)

Answer = TypeVar("Answer")


def noise_level(n_variables: int, n_rows: float) -> float:
    """Return ``sqrt(log(n^2 / 0.05) / N)``, the scale of the largest coupling that noise alone suggests."""
    return float(np.sqrt(np.log(n_variables**2 / _FAILURE) / n_rows))


# -- directed parameters and their losses -----------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class DirectedModel:
    """The directed parameters of a pairwise model: biases, then ``theta_ij``, then ``theta_ji`` over the edges.

    Parameters
    ----------
    model : PairwiseModel
        Graph, domain and bias; its parameters are where a search starts.
    """

    model: PairwiseModel

    @cached_property
    def owner(self) -> np.ndarray:
        """The variable whose regression each parameter belongs to."""
        nodes = np.arange(self.model.n_biases)
        return np.concatenate([nodes, self.model.graph.edges[:, 0], self.model.graph.edges[:, 1]])

    @property
    def penalised(self) -> np.ndarray:
        """True at the couplings."""
        return np.arange(self.owner.size) >= self.model.n_biases

    @property
    def _scale(self) -> float:
        return self.model.domain.gap

    @property
    def _edges(self) -> np.ndarray:
        return self.model.graph.edges

    @cached_property
    def _reversed_edges(self) -> np.ndarray:
        return np.ascontiguousarray(self._edges[:, ::-1])

    @cached_property
    def _csr_positions(self) -> np.ndarray:
        """Where in the parameters the coupling of each entry of the graph's CSR stands."""
        indptr, heads, ids = self.model.graph.csr
        tails = np.repeat(np.arange(self.model.n_variables), np.diff(indptr))
        return self.model.n_biases + np.where(tails < heads, ids, ids + len(self._edges))

    def start(self) -> np.ndarray:
        """Return the model's own parameters, each coupling in both directions."""
        return np.concatenate([self.model.theta, self.model.couplings])

    def split(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the biases (zeros where there are none), ``theta_ij`` and ``theta_ji``."""
        biases, forward, backward = np.split(theta, np.cumsum([self.model.n_biases, self.model.graph.n_edges]))
        return (biases if self.model.bias else np.zeros(self.model.n_variables)), forward, backward

    def symmetrise(self, theta: np.ndarray) -> np.ndarray:
        """Return the model's parameters: the average of the two couplings of each edge.

        Each variable keeps its field at the middle of the domain, so that the result is the same in both codings.
        """
        biases, forward, backward = self.split(theta)
        couplings = 0.5 * (forward + backward)
        if not self.model.bias:
            return couplings
        middle = 0.5 * (self.model.domain.low + self.model.domain.high)
        excess = np.zeros(self.model.n_variables)
        np.add.at(excess, self.model.graph.edges[:, 0], forward - couplings)
        np.add.at(excess, self.model.graph.edges[:, 1], backward - couplings)
        return np.concatenate([biases + middle * excess, couplings])

    def symmetric(self, theta: np.ndarray) -> PairwiseModel:
        """Return the model with the averages of the directed parameters."""
        return self.model.replace(self.symmetrise(theta))

    def curvature_and_scores(self, objective: FlipCostObjective, data: Dataset) -> tuple[np.ndarray, Scores]:
        """Return the curvature of a loss in the directed parameters, and the scores of the states."""
        model, regressions = self.model, Regressions(self.model, directed=True)
        shares, curvature = data.weights / data.total_weight, np.zeros((regressions.size, regressions.size))
        for block in state_blocks(data):
            bends = objective.bends(model.flip_costs(data.states[block]))
            curvature += regressions.curvature(data.states[block], bends * shares[block, None])

        def scores() -> Scores:
            for block in state_blocks(data):
                x = data.states[block]
                yield block, regressions.scores(x, objective.slopes(model, model.flip_costs(x)))

        return curvature, scores()

    def flip_costs(self, x: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return the log-odds ``log P(x_u | others) - log P(the other value | others)`` of each regression."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        biases, forward, backward = self.split(theta)
        if self.model.is_dense:
            costs = x @ self._matrix(forward, backward)
        else:
            indptr, heads, _ = self.model.graph.csr
            costs = kernels.sparse_fields(x, indptr, heads, theta[self._csr_positions])
        kernels.add_biases_with_signs(costs, biases, x, self._scale)
        return costs

    def flip_loss(
        self, x: np.ndarray, shares: np.ndarray, theta: np.ndarray, kernel: Callable[[np.ndarray, np.ndarray], Answer]
    ) -> tuple[Answer, np.ndarray]:
        """Return what `kernel` says of the flip costs, and the gradient of the loss whose slopes it leaves there."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        costs = self.flip_costs(x, theta)
        answer = kernel(costs, shares)
        bias_slopes = kernels.sign_and_sum(costs, x, self._scale)
        both = (self._edges, self._reversed_edges)
        if self.model.is_dense:
            products = costs.T @ x
            slopes = [kernels.gather_edges(products, pairs, False) for pairs in both]
        else:
            slopes = [kernels.edge_products(costs, x, pairs) for pairs in both]
        return answer, np.concatenate([bias_slopes[: self.model.n_biases], *slopes])

    def flip_layout(self, x: np.ndarray) -> FlipLayout:
        """Return flip costs as a product with the matrix of directed couplings."""
        i, j = self._edges.T
        return self.model.flip_layout(x)._replace(
            sources=np.concatenate([j, i]), targets=np.concatenate([i, j]), tied=False
        )

    def _matrix(self, forward: np.ndarray, backward: np.ndarray) -> np.ndarray:
        """Column u holds the couplings of variable u."""
        matrix = np.zeros((self.model.n_variables, self.model.n_variables))
        i, j = self._edges.T
        matrix[j, i], matrix[i, j] = forward, backward
        return matrix


Loss = Callable[[DirectedModel, Dataset], Function]


def additive(kernel: Callable[[np.ndarray, np.ndarray], float]) -> Loss:
    """Return the loss ``sum_m share_m sum_u phi(d[m, u])`` of a kernel such as those of `flip_losses`."""

    return lambda directed, data: data.bind(partial(_additive, kernel, directed))


def _additive(kernel: Callable[[np.ndarray, np.ndarray], float], directed: DirectedModel, data: Dataset) -> Function:
    states, shares = _present(data)
    on_device = _on_device(directed, states, shares, kernel)
    if on_device is not None:
        return on_device

    def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
        def evaluate(block: slice) -> tuple[float, np.ndarray]:
            return directed.flip_loss(states[block], shares[block], theta, kernel)

        value, gradient = 0.0, np.zeros_like(theta)
        for part, slope in map_in_order(evaluate, row_blocks(*states.shape)):
            value += part
            gradient += slope
        return value, gradient

    return function


def log_screening(directed: DirectedModel, data: Dataset) -> Function:
    """Bind the loss of logRISE: ``sum_u log sum_m share_m exp(-d[m, u] / 2)``, by log-sum-exp over blocks of rows."""
    on_device = None if data.on_cluster else _on_device(directed, *_present(data), scaled_half_exponential)
    if on_device is not None:
        return on_device
    sums = data.bind(partial(_exponential_sums, directed))

    def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
        found = sums(theta)
        return float((found.top + np.log(found.total)).sum()), found.gradient / found.total[directed.owner]

    return function


@dataclass(frozen=True, eq=False)
class _ExponentialSums:
    """Sums of exponentials of each regression, over that of `top`, with their slopes: what adds over rows."""

    owner: np.ndarray
    top: np.ndarray
    total: np.ndarray
    gradient: np.ndarray

    def __add__(self, other: _ExponentialSums) -> _ExponentialSums:
        top = np.maximum(self.top, other.top)
        old, new = np.exp(self.top - top), np.exp(other.top - top)
        gradient = old[self.owner] * self.gradient + new[self.owner] * other.gradient
        return replace(self, top=top, total=old * self.total + new * other.total, gradient=gradient)

    def __mul__(self, factor: float) -> _ExponentialSums:
        return replace(self, total=self.total * factor, gradient=self.gradient * factor)


def _exponential_sums(directed: DirectedModel, data: Dataset) -> Callable[[np.ndarray], _ExponentialSums]:
    """Return the sums over rows in memory as a function of theta."""
    states, shares = _present(data)

    def function(theta: np.ndarray) -> _ExponentialSums:
        def evaluate(block: slice) -> _ExponentialSums:
            (top, total), slopes = directed.flip_loss(states[block], shares[block], theta, scaled_half_exponential)
            return _ExponentialSums(directed.owner, top, total, slopes)

        return reduce(add, map_in_order(evaluate, row_blocks(*states.shape)))

    return function


def _on_device(directed: DirectedModel, states: np.ndarray, shares: np.ndarray, kernel: Any) -> Function | None:
    """Return the loss with the rows on a device; None on the CPU, or where there is no twin of it."""
    products = twin("products")
    return None if products is None else products.bound(directed.flip_layout(states), shares, kernel)


def _present(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """States of positive weight, and their shares."""
    present = data.weights > 0
    return data.states[present], data.weights[present] / data.total_weight


LOSSES: dict[str, Loss] = {
    "rise": additive(half_exponential),
    "logrise": log_screening,
    "rple": additive(logistic),
}


# -- the learners -----------------------------------------------------------------------------------------------------
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
        """Return the number that l1 stands for, in the model's own coding."""
        if not isinstance(self.l1, str):
            return self.l1
        to_spins = (model.domain.gap / 2) ** 2
        return THEORY[self.loss] * noise_level(model.n_variables, data.total_weight) * to_spins

    def init(self, model: Any, data: Dataset, rng: np.random.Generator) -> LearnerState:
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

        def bind(rows: Dataset) -> Minimisation:
            return Minimisation(ridge(LOSSES[self.loss](directed, rows), self.l2), self.optimizer, l1)

        if not data.has_missing:
            problem: Any = bind(data)
        else:
            require_shown(data)
            if not are_few(data):
                raise MissingValuesError(
                    "the regressions need every way to complete the rows, and there are too many",
                    "use `learner='mple'` or 'pcd', which sample them, or drop the rows with the most missing cells",
                )
            problem = Rounds(all_completions(data), bind, directed.symmetric, l1)
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
