"""Learning by minimising an objective, and the named learners that do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.arrays import Tensor
from gibbsian.backends.device import twin
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.expectations.imputation import present_means, shrunk_means
from gibbsian.learning.base import LEARNERS, Learner, LearnerState
from gibbsian.learning.objectives import Equations, Function, Likelihood, Objective, Pseudolikelihood
from gibbsian.learning.objectives import ProbabilityFlow as FlowObjective
from gibbsian.learning.objectives import RatioMatching as RatioObjective
from gibbsian.learning.objectives.base import for_model
from gibbsian.learning.objectives.centring import LinearMap
from gibbsian.learning.objectives.gaussian import ExpectedMoments
from gibbsian.learning.objectives.priors import SmoothPenalty
from gibbsian.learning.objectives.probability_flow import SKIP_DATA
from gibbsian.learning.optimizers import Optimizer, StepInfo
from gibbsian.learning.optimizers.base import Preconditioned
from gibbsian.learning.preconditioners import PairCurvature, Preconditioner, preconditioning
from gibbsian.learning.recipe import Recipe, WithPrior, as_optimizer, optimizer_setting
from gibbsian.models.base import ClosedForm, Model, keeps
from gibbsian.models.differences import differences
from gibbsian.settings import declared, flag, free, number, positional

if TYPE_CHECKING:
    from gibbsian.expectations.clamped_chains import ClampedChains

COMPLETIONS = (
    "How missing cells are completed in every step: 'exact', in all ways with their probabilities, 'chains', by "
    "clamped Gibbs chains (or `ClampedChains` with its own settings); None is exact where there are few ways, else "
    "chains."
)


@declared(frozen=True)
class ObjectiveLearner(WithPrior):
    """Minimise ``objective + l1 sum|couplings| + (l2 / 2) sum theta^2 - log_prior / n``.

    The penalties act on the parameters in the model's own coding; the L1 penalty leaves biases alone. Where cells are
    missing and the objective does not sum them out itself, the equations ``E[gradient of the row's loss | present
    cells] = 0`` are solved under the model (see `gibbsian.learning.completing`), which is consistent where cells are
    missing at random.

    Examples
    --------
    >>> import gibbsian as gb
    >>> descent = gb.learning.optimizers.Ascent(learning_rate=0.2)
    >>> learner = gb.learning.ObjectiveLearner(gb.learning.objectives.Pseudolikelihood(), optimizer=descent)
    >>> rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]
    >>> bm = gb.BoltzmannMachine(learner=learner, tol=1e-4).fit(rows)
    >>> bm.result_.converged
    True
    """

    objective: Objective = positional(
        kw_only=False, default=free(Pseudolikelihood(), "What to minimise.", doc="Objective")
    )
    optimizer: Optimizer | str = positional(kw_only=False, default=optimizer_setting("lbfgs", "How to minimise."))
    completions: str | ClampedChains | None = free(None, COMPLETIONS, doc="str, ClampedChains or None")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle(optimizer=as_optimizer(self.optimizer))

    @property
    def takes_numbers(self) -> bool:
        """Whether the objective has a form for real numbers."""
        return self.objective.in_closed_form() is not None

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Bind the objective to the data and evaluate the start."""
        if not data.has_missing or for_model(self.objective, model).takes_missing:
            plain, theta = self._minimisation(model, data)
            return LearnerState(plain, plain.start(theta))
        return self._completing(model, data, rng)

    def _minimisation(
        self, model: Model, data: Dataset, completed: Callable[[Model], Any] | None = None
    ) -> tuple[Minimisation, np.ndarray]:
        """Return the function with what minimises it, and where to start: independent columns rather than zero.

        `completed` gives the rows as they are completed under a model, where an objective needs complete ones.
        """
        l1, rows_under = self._l1_of(model, data), completed or (lambda model: data)
        plain = Minimisation(self._bind(model, rows_under(model)), self.optimizer, l1)
        objective = for_model(self.objective, model)
        if not (objective.has_preconditioner and plain.optimizer.takes_preconditioner):
            return plain, model.theta
        origin, near, known = present_means(data), None, preconditioning(model.family)
        centred = replace(plain, centring=known.centred(origin, l1=bool(l1.any())))
        if not ((data.has_missing and completed is None) or model.n_hidden or l1.any()):
            mean = shrunk_means(model, data, origin)
            near = known.independent(mean)
        if near is None:
            return centred, model.theta
        bend, apart = self._smooth_of(model, data).bend(near), model.replace(near)
        preconditioner, start = objective.preconditioner(apart, rows_under(apart), mean, bend), near
        if preconditioner is None:
            return plain, model.theta if model.theta.any() else start
        minimised, curvature = replace(centred, preconditioner=preconditioner), preconditioner.curvature
        if completed is None and curvature is not None:  # a function of rows in memory, or on a device, has them there
            weights = getattr(plain.function, "slope_sums", None) or objective.slope_sums(model, data)
            if weights is not None:
                minimised = replace(minimised, renewed=partial(_renewed, curvature, weights))
        change: Any = centred.centring
        if (step := preconditioner.first_step(change.gradient(bend * start))) is not None:
            start = change.outwards(change.inwards(start) + step)
        return minimised, model.theta if model.theta.any() else start

    def _completing(self, model: Model, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Prepare to complete the rows again and again under the model."""
        from gibbsian.learning.completing import SampledRounds, all_completions, as_completing, in_all_copies

        if keeps(model.family, ClosedForm):
            return self._rounds(model, data, ExpectedMoments)
        chains = as_completing(self.completions, data)
        if chains is None:
            return self._rounds(model, data, all_completions)
        state = chains.advance(model, chains.init(model, data, rng))
        rows = in_all_copies(chains, state, data)
        first, theta = self._minimisation(model, data, lambda _: rows)
        sampled = SampledRounds(data, chains, self._binding(first, model), model.replace, first.l1)
        return LearnerState(sampled, sampled.start(theta, state))

    def _rounds(self, model: Model, data: Dataset, complete: Callable[[Dataset], Any]) -> LearnerState:
        """Prepare to complete the rows in all ways."""
        from gibbsian.learning.completing import Rounds

        listed = complete(data)
        first, theta = self._minimisation(model, data, listed.under)
        rounds = Rounds(listed, self._binding(first, model), model.replace, first.l1)
        return LearnerState(rounds, rounds.start(theta))

    def _binding(self, first: Minimisation, model: Model) -> Callable[[Dataset], Minimisation]:
        """Return the same minimisation for other complete rows."""
        return lambda rows: replace(first, function=self._bind(model, rows))

    def _bind(self, model: Model, rows: Dataset) -> Function:
        """Return the smooth part of what is minimised, as a function of theta."""
        objective, smooth = for_model(self.objective, model), self._smooth_of(model, rows)
        function = smooth.added_to(objective.bind(model, rows))
        if not as_optimizer(self.optimizer).needs_hessian or not objective.has_scores:
            return function

        def hessian(theta: np.ndarray) -> np.ndarray:
            return objective.curvature(model.replace(theta), rows) + smooth.hessian(theta)

        return WithHessian(function, hessian)

    def equations(self, model: Model, data: Dataset, max_seconds: float = 60.0) -> Equations:
        """Return the equations that an unpenalised fit solves."""
        objective = for_model(self.objective, model)
        if not objective.has_scores or self.log_prior is not None:
            under = f" under the prior {self.log_prior!r}" * (self.log_prior is not None)
            raise ArgumentError(
                f"standard errors are not known for {objective!r}{under}", "use `gibbsian.uncertainty.bootstrap`"
            )
        if not data.has_missing or objective.takes_missing:
            curvature = objective.curvature(model, data, max_seconds)
            of_likelihood = isinstance(self.objective, Likelihood)
            return Equations(curvature, objective.scores(model, data, max_seconds), is_information=of_likelihood)
        from gibbsian.learning.completing import AllCompletions, are_few

        if keeps(model.family, ClosedForm):
            raise ArgumentError(
                "errors are not known where numbers are missing", "use `gibbsian.uncertainty.bootstrap`"
            )
        if not are_few(data):
            raise TooExpensiveError(
                "there are too many ways to complete the rows", "use `gibbsian.uncertainty.bootstrap`"
            )
        rows = AllCompletions.of(data)

        def mean_score(theta: np.ndarray) -> np.ndarray:
            current = model.replace(theta)
            return objective.bind(model, rows.under(current))(theta)[1]

        jacobian = differences(mean_score, model.theta, max_seconds).T
        return Equations(jacobian, rows.expected_scores(objective, model))

    def by_chunks(self, batch_size: int) -> Learner:
        """Return the same objective by minibatches."""
        from gibbsian.learning.online import Online

        return Online(objective=self.objective, l1=self.l1, l2=self.l2, log_prior=self.log_prior, batch_size=batch_size)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take one step of the optimiser, or one round of completing the rows and stepping."""
        progress, info = state.problem.step(state.progress)
        return LearnerState(state.problem, progress), info


@dataclass(frozen=True, eq=False)
class Minimisation:
    """A function of theta, and what minimises it: by theta itself, or by parameters about the mean of the data.

    States have theta; what an optimiser remembers of its way is in the parameters that it moves.
    """

    function: Function
    optimizer: Any
    l1: np.ndarray
    centring: LinearMap | None = None
    preconditioner: Preconditioner | None = None
    renewed: Callable[[np.ndarray], np.ndarray] | None = None  # numbers of the preconditioner at theta

    def start(self, theta: np.ndarray) -> Any:
        """Evaluate the start."""
        return self.optimizer.init(self.function, theta, self.l1)

    def step(self, progress: object) -> tuple[Any, StepInfo]:
        """Take one step of the optimiser, with its vectors on a device where all that it needs is there."""
        if self._there is None:
            return self._step(progress)
        there, lift = self._there
        inside = lift.up(progress)
        after, info = there._step(inside)
        return progress if after is inside else lift.down(after), info

    @cached_property
    def _there(self) -> tuple[Minimisation, Any] | None:
        """The same for tensors, where function and optimiser take them, and what takes states up and down."""
        twins = twin("vectors")
        if twins is None or not all(getattr(part, "takes_tensors", False) for part in (self.function, self.optimizer)):
            return None
        twins.require_memory(self.l1.size, self.optimizer.n_vectors, getattr(self.centring, "inner", None) is not None)
        parts: list[Any] = [self.centring, self.preconditioner]
        centring, preconditioner = (None if part is None else part.on_device(twins) for part in parts)
        lifted = replace(self, l1=twins.put(self.l1), centring=centring, preconditioner=preconditioner)
        return lifted, twins.Lift()

    def _step(self, progress: Any) -> tuple[Any, StepInfo]:
        if self.centring is None:
            return self.optimizer.step(self.function, progress, self.l1)
        inside = replace(
            progress, theta=self.centring.inwards(progress.theta), gradient=self.centring.gradient(progress.gradient)
        )
        outwards, renewed = self.centring.outwards, self.renewed
        elsewhere = None if renewed is None else lambda centred: renewed(outwards(centred))
        function = Preconditioned(self._of_centred, self.preconditioner, elsewhere)
        after, info = self.optimizer.step(function, inside, self.centring.l1(self.l1))
        if after is inside:
            return progress, info
        # the gradient goes back by the same change as it came
        gradient = self.centring.gradient_outwards(after.gradient)
        return replace(after, theta=self.centring.outwards(after.theta), gradient=gradient), info

    def _of_centred(self, centred: np.ndarray) -> tuple[float, np.ndarray]:
        assert self.centring is not None
        value, gradient = self.function(self.centring.outwards(centred))
        return value, self.centring.gradient(gradient)


@dataclass(frozen=True)
class WithHessian:
    """A function of theta that also knows its second derivatives."""

    value_and_gradient: Function
    hessian: Callable[[np.ndarray], np.ndarray]

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient."""
        return self.value_and_gradient(theta)


def _renewed(curvature: PairCurvature, weights: Callable[[Any], Any], theta: Tensor) -> Any:
    """Return the numbers of a preconditioner at theta, on the device where theta is there."""
    sums = weights(theta)
    if isinstance(sums, np.ndarray):
        return curvature.renewed(sums)
    return twin("vectors").put(curvature.renewed(sums.cpu().numpy()))


def ridge(function: Function, l2: float) -> Function:
    """Add ``(l2 / 2) |theta|^2`` to a function."""
    return SmoothPenalty(l2).added_to(function)


# -- the named learners -----------------------------------------------------------------------------------------------
@LEARNERS.register("mle")
@declared(frozen=True)
class MLE(Recipe):
    """Exact maximum likelihood (Y18 section 2); missing cells are summed out.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="mle").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """

    optimizer: Optimizer | str = optimizer_setting("lbfgs", "How to minimise.")
    max_seconds: float = number(10.0, "Refuse when one evaluation is predicted to take longer.", above=0)

    def build(self) -> Learner:
        """Minimise minus the log-likelihood."""
        return ObjectiveLearner(
            objective=Likelihood(max_seconds=self.max_seconds), optimizer=self.optimizer, **self.penalties._asdict()
        )


@declared(frozen=True)
class ConditionalsLearner(Recipe):
    """Minimise an objective on conditionals, which needs complete rows or completes them."""

    optimizer: Optimizer | str = optimizer_setting("lbfgs", "How to minimise.")
    completions: str | ClampedChains | None = free(None, COMPLETIONS, doc="str, ClampedChains or None")

    def minimised(self) -> Objective:
        """Return what is minimised."""
        raise NotImplementedError

    def build(self) -> Learner:
        """Minimise it."""
        return ObjectiveLearner(
            objective=self.minimised(),
            optimizer=self.optimizer,
            completions=self.completions,
            **self.penalties._asdict(),
        )


@LEARNERS.register("mple")
@declared(frozen=True)
class MPLE(ConditionalsLearner):
    """Maximum pseudolikelihood (H06; Y18 section 3.1).

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="mple").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """

    def minimised(self) -> Objective:
        """Return minus the log-pseudolikelihood."""
        return Pseudolikelihood()


@LEARNERS.register("rm")
@declared(frozen=True)
class RatioMatching(ConditionalsLearner):
    """Ratio matching (Hyvarinen 2007; Y18 section 5).

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="rm").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """

    def minimised(self) -> Objective:
        """Return the squared probabilities of the other values."""
        return RatioObjective()


@LEARNERS.register("mpf")
@declared(frozen=True)
class ProbabilityFlow(ConditionalsLearner):
    """Minimum probability flow over one-flip neighbours (Sohl-Dickstein 2011; Y18 section 5).

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="mpf").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """

    skip_data: bool = flag(False, SKIP_DATA)

    def minimised(self) -> Objective:
        """Return the flow out of the rows."""
        return FlowObjective(skip_data=self.skip_data)
