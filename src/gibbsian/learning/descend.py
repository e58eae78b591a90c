"""The driver of gradient learning: coordinates, an optimiser, and where steps are noisy the mean of the steps.

On all rows a step of a fit is a step of a line search (L-BFGS), of minibatches an epoch: ``theta_(t+1) = theta_t -
rate_t * gradient of the minibatch`` (YK15, stochastic gradient descent). The noise of the minibatches dies out when the
rates sum to infinity while their squares do not (Robbins and Monro), and sooner in the mean of the parameters (Polyak
and Ruppert), which is what is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from gibbsian.arrays import Floats, Tensor
from gibbsian.backends.device import twin
from gibbsian.data import Dataset
from gibbsian.data.rows import Minibatches, Rows
from gibbsian.errors import ArgumentError, CodingError, DataError, TooExpensiveError
from gibbsian.expectations import PersistentChains, Sampled
from gibbsian.expectations.imputation import present_means, shrunk_means
from gibbsian.expectations.per_call import bind_expectation, completed_rows
from gibbsian.expectations.sources import ChainsState
from gibbsian.learning.averaging import PATIENCE, PolyakMean
from gibbsian.learning.base import Fit
from gibbsian.learning.completing import (
    AllCompletions,
    all_completions,
    are_few,
    as_completing,
    require_shown,
)
from gibbsian.learning.gradients import (
    CompletedObjective,
    GradientEstimator,
    ObjectiveGradient,
    SampledCompletions,
)
from gibbsian.learning.objectives import OBJECTIVES, Equations, Function, Likelihood, Objective, Pseudolikelihood
from gibbsian.learning.objectives.base import for_model
from gibbsian.learning.objectives.centring import LinearMap
from gibbsian.learning.objectives.priors import SmoothPenalty
from gibbsian.learning.optimizers import (
    Adam,
    Ascent,
    Converged,
    Decay,
    GradientStep,
    Optimizer,
    OptimizerState,
    Outcome,
    StepInfo,
)
from gibbsian.learning.optimizers.base import Preconditioned, largest, penalty, subgradient
from gibbsian.learning.preconditioners import PairCurvature, Preconditioner, preconditioning
from gibbsian.learning.recipe import WithPrior, as_optimizer, n_rows
from gibbsian.models.base import ClosedForm, DiscreteFamily, Layered, Model, keeps
from gibbsian.models.differences import differences
from gibbsian.rng import Key
from gibbsian.settings import declared, flag, free, positional, whole

M = TypeVar("M")
S = TypeVar("S")

COMPLETIONS = (
    "How missing cells are completed in every step: 'exact', in all ways with their probabilities, 'chains', by "
    "clamped Gibbs chains (or `PersistentChains` with its own settings); None is exact where there are few ways, else "
    "chains."
)
OPTIMIZER = (
    "How to minimise: 'lbfgs', 'adam', 'ascent', or one with its own settings; None is L-BFGS on all rows, and Adam "
    "with a falling rate where steps are noisy."
)
BATCH_SIZE = (
    "About how many rows a minibatch has: a step of the fit is then an epoch. None takes all rows in every step."
)
AVERAGE = (
    "Of minibatches, return the mean of the parameters over the steps, late steps counting more, instead of the last "
    "ones, and stop when it has settled. With an L1 penalty, an entry that was zero in most steps is zero in the mean."
)
CENTRED = "Make the steps in parameters about the mean of the data, where couplings do not drag biases along."
# Parameters have unequal curvatures, and noise must fade: Adam with a Robbins-Monro rate.
ADAM = Adam(learning_rate=0.05, decay=Decay(power=0.75, delay=100))
# Completions that chains draw have less noise than minibatches, and a preconditioner knows the curvatures: steps of the
# length of Newton's, which shorten soon. Steps before a fit may end within their noise.
OF_COMPLETIONS = Adam(learning_rate=0.1, decay=Decay(power=0.75, delay=50))
PRECONDITIONED = Ascent(learning_rate=1.0, decay=Decay(power=0.75, delay=20))
MIN_SAMPLED_STEPS = 40
# An epoch is the last when the mean gradient is this share of its sampling error: the steps have settled, and more
# epochs only average out what is left of the order of the rows (after k at most about 1.5 / sqrt(k) standard errors).
SETTLED = 0.3
# A rate that has not fallen to this share of its start may have settled beside the optimum.
FALLEN = 0.5
# Moments that are no further from the data's than this part of their standard errors add an eighth to the error of the
# answer at most.
OF_DATA_ERROR = 0.5


# -- all rows in a step -----------------------------------------------------------------------------------------------
class VectorLift(Protocol):
    """Takes the vectors of a state to a device and back."""

    def up(self, state: OptimizerState) -> OptimizerState:
        """Return the state with tensors."""

    def down(self, state: OptimizerState) -> OptimizerState:
        """Return the state with arrays."""


@dataclass(frozen=True, eq=False)
class Minimisation:
    """A function of theta, and what minimises it: by theta itself, or by parameters about the mean of the data.

    States have theta; what an optimiser remembers of its way is in the parameters that it moves.
    """

    function: Function
    optimizer: Optimizer[OptimizerState]
    l1: Floats
    centring: LinearMap | None = None
    preconditioner: Preconditioner | None = None
    refresh: Callable[[Floats], Floats] | None = None  # numbers of the preconditioner at theta

    def start(self, theta: Floats) -> OptimizerState:
        """Evaluate the start."""
        return self.optimizer.init(self.function, theta, self.l1)

    def step(self, state: OptimizerState) -> tuple[OptimizerState, StepInfo]:
        """Take one step of the optimiser, with its vectors on a device where all that it needs is there."""
        if isinstance(self.function, CompletedObjective):
            function, value_at = self.function.along(state)
            after, info = replace(self, function=function).step(state)
            value = value_at(after.theta, after.value)
            return replace(after, value=value), info._replace(value=value)
        if self._there is None:
            return self._step(state)
        there, lift = self._there
        inside = lift.up(state)
        after, info = there._step(inside)
        return state if after is inside else lift.down(after), info

    @cached_property
    def _there(self) -> tuple[Minimisation, VectorLift] | None:
        """The same for tensors, where function and optimiser take them, and what takes states up and down."""
        twins, optimizer = twin("vectors"), self.optimizer
        if twins is None or not (optimizer.takes_tensors and getattr(self.function, "takes_tensors", False)):
            return None
        twins.require_memory(
            self.l1.size, optimizer.n_vectors, self.centring is not None and self.centring.inner is not None
        )
        lifted = replace(
            self,
            l1=twins.put(self.l1),
            centring=None if self.centring is None else self.centring.on_device(twins),
            preconditioner=None if self.preconditioner is None else self.preconditioner.on_device(twins),
        )
        return lifted, twins.Lift()

    def _step(self, state: OptimizerState) -> tuple[OptimizerState, StepInfo]:
        if self.centring is None:
            return self.optimizer.step(self.function, state, self.l1)
        change, refresh = self.centring, self.refresh

        def centred(x: Floats) -> tuple[float, Floats]:
            value, gradient = self.function(change.outwards(x))
            return value, change.gradient(gradient)

        elsewhere = None if refresh is None else lambda x: refresh(change.outwards(x))
        inside = replace(state, theta=change.inwards(state.theta), gradient=change.gradient(state.gradient))
        function = Preconditioned(centred, self.preconditioner, elsewhere)
        after, info = self.optimizer.step(function, inside, change.l1(self.l1))
        if after is inside:
            return state, info
        # the gradient goes back by the same change as it came
        return replace(
            after, theta=change.outwards(after.theta), gradient=change.gradient_outwards(after.gradient)
        ), info


@dataclass(frozen=True, eq=False)
class MinimisationFit(Fit[OptimizerState]):
    """Steps of an optimiser over all rows; what it moves are theta, or parameters from which theta follows."""

    problem: Minimisation
    start: Floats
    inward: Callable[[Floats], Floats]
    model_of: Callable[[Floats], Model[DiscreteFamily]]

    def init(self, key: Key, theta: Floats | None = None) -> tuple[OptimizerState, StepInfo]:
        """Evaluate the start."""
        start = self.start if theta is None or not theta.any() else self.inward(theta)
        return self.problem.start(start), StepInfo()

    def step(self, state: OptimizerState) -> tuple[OptimizerState, StepInfo]:
        """Take one step of the optimiser."""
        return self.problem.step(state)

    def model(self, state: OptimizerState) -> Model[DiscreteFamily]:
        """Return the model at a state."""
        return self.model_of(state.theta)


# -- noisy steps ------------------------------------------------------------------------------------------------------
class DescentState(NamedTuple, Generic[M, S]):
    """Noisy steps between two steps of a fit.

    Parameters
    ----------
    theta, iterate : array
        The answer so far; where the steps have led, in the parameters that they are made in.
    motion, samples : object
        What the optimiser and the estimate of the gradient remember.
    mean : PolyakMean, optional
        The means over the steps.
    origin : array
        The means of the columns that parameters are about.
    n_steps, epoch : int
        Gradient steps, and steps of the fit, so far.
    seen : float
        The weight of the rows of this fit and of those before it: against them a prior counts once.
    key : Key
        What the orders of the rows and all samples follow from.
    """

    theta: Floats
    iterate: Floats
    motion: M
    samples: S
    mean: PolyakMean | None
    origin: Floats
    n_steps: int
    epoch: int
    seen: float
    key: Key


@dataclass(frozen=True, eq=False)
class Descent(Fit[DescentState[M, S]], Generic[M, S]):
    """Noisy gradient steps bound to a model and rows.

    Parameters
    ----------
    gradient : GradientEstimator
        What estimates the gradient of the loss, penalties aside.
    penalties : callable
        Maps the weight of rows seen to the L1 penalty of each parameter and the smooth penalty.
    coordinates : callable
        Maps means of columns to the parameters about them, in which steps are made.
    batch_size : int, optional
        Rows of a minibatch; a step is then an epoch, else one gradient over all rows.
    average : bool
        Whether the answer is the mean over the steps, which also says when they have settled.
    preconditioner : callable, optional
        Maps a gradient to a step.
    min_steps, patience : int
        Steps before a fit may end within its Monte Carlo noise, and before it may do so by the largest of all entries.
    data_error : array, optional
        Standard errors of the gradient as rows are few: of slow chains it is enough to be well within them.
    check : callable, optional
        Judges where a step has led: returns another StepInfo where the fit cannot succeed.
    steps_per_chunk : int
        Steps that `partial_fit` takes with the rows of one chunk.
    """

    model_at_start: Model[DiscreteFamily]
    data: Dataset
    gradient: GradientEstimator[S]
    optimizer: GradientStep[M]
    penalties: Callable[[float], tuple[Floats, SmoothPenalty]]
    coordinates: Callable[[Floats], LinearMap]
    batch_size: int | None = None
    average: bool = True
    preconditioner: Callable[[Floats], Floats] | None = None
    min_steps: int = 1
    patience: int = PATIENCE
    data_error: Floats | None = None
    check: Callable[[StepInfo, Floats, int], StepInfo] | None = None
    steps_per_chunk: int = 1

    def init(self, key: Key, theta: Floats | None = None) -> tuple[DescentState[M, S], StepInfo]:
        """Look at the first minibatch, about whose means parameters are, and start what samples."""
        theta = self.model_at_start.theta if theta is None else theta
        origin = present_means(self._batches(key, 0)[0])
        iterate = self.coordinates(origin).inwards(theta)
        mean = PolyakMean.start(iterate) if self.average else None
        samples, motion = self.gradient.init(theta, key.fold("samples")), self.optimizer.init_move(iterate)
        return DescentState(theta, iterate, motion, samples, mean, origin, 0, 0, n_rows(self.data), key), StepInfo()

    def step(self, state: DescentState[M, S]) -> tuple[DescentState[M, S], StepInfo]:
        """Take one gradient step over all rows, or one over each minibatch of an epoch."""
        l1, smooth = self.penalties(state.seen)
        change = self.coordinates(state.origin)
        inner_l1, epoch = change.l1(l1), state.key.fold("epoch", state.epoch)
        iterate, motion, samples, mean = state.iterate, state.motion, state.samples, state.mean
        batches, total = self._batches(state.key, state.epoch), 0.0
        for k in range(len(batches)):
            here = change.outwards(iterate)
            found, samples = self.gradient(here, samples, batches[k], epoch.fold(k))
            more, slope = smooth(here)
            gradient = found.vector + slope
            total += found.value + more + penalty(here, l1)
            direction = change.gradient(gradient)
            if self.preconditioner is not None:
                direction = self.preconditioner(direction)
            iterate, motion = self.optimizer.move(iterate, direction, inner_l1, motion)
            if mean is not None:
                mean = mean.add(iterate, gradient, found.stderr)
        theta = change.outwards(iterate if mean is None else mean.answer)
        n_steps = state.n_steps + len(batches)
        rest = np.abs(subgradient(here, gradient, l1) if mean is None else subgradient(theta, mean.gradient, l1))
        noise, outcome = 0.0, None
        if mean is not None and found.stderr is not None:
            noise = mean.chain_noise(rest, self.min_steps, self.patience)
            outcome = self._agrees(rest, noise, n_steps)
        elif mean is not None and self.batch_size is not None:
            outcome = self._settled(mean.share_of_sampling_error(rest, len(batches)), n_steps, state.epoch + 1)
        info = StepInfo(
            total / len(batches), largest(rest), self.optimizer.rate_at(n_steps - 1), n_steps, noise, outcome
        )
        if self.check is not None:
            info = self.check(info, change.outwards(iterate), n_steps)
        after = DescentState(
            theta, iterate, motion, samples, mean, state.origin, n_steps, state.epoch + 1, state.seen, state.key
        )
        return after, info

    def model(self, state: DescentState[M, S]) -> Model[DiscreteFamily]:
        """Return the model at a state."""
        return self.model_at_start.replace(state.theta)

    def carry(self, state: DescentState[M, S]) -> DescentState[M, S]:
        """Keep iterate, optimiser and means; cells of other rows are completed anew."""
        theta = self.coordinates(state.origin).outwards(state.iterate)
        samples = self.gradient.carry(theta, state.samples, state.key.fold("carried", state.epoch))
        return state._replace(samples=samples, seen=state.seen + n_rows(self.data))

    def _batches(self, key: Key, epoch: int) -> Sequence[Dataset] | Minibatches:
        if self.batch_size is None:
            return [self.data]
        return self.data.minibatches(self.batch_size, key.words, epoch)

    def _settled(self, share: float, n_steps: int, n_epochs: int) -> Outcome | None:
        """Return that the steps have settled, where the mean gradient and the rate are small enough."""
        if share > SETTLED or self.optimizer.rate_at(n_steps) > FALLEN * self.optimizer.rate_at(0):
            return None
        epochs = f"{n_epochs} epoch{'s' * (n_epochs != 1)} ({n_steps} minibatches)"
        return Converged(f"converged after {epochs}: the mean gradient is {share:.2g} of its sampling error")

    def _agrees(self, rest: Floats, noise: float, n_steps: int) -> Outcome | None:
        """Return that the moments agree within the data's error, for slow chains, where they do."""
        if not noise or largest(rest) <= noise or n_steps < self.patience or self.data_error is None:
            return None
        agree = f"the moments agree with the data's to {OF_DATA_ERROR:g} of their standard errors"
        near = (rest <= OF_DATA_ERROR * self.data_error).all()
        return Converged(f"converged after {n_steps} steps: {agree}") if near else None


# -- learners ---------------------------------------------------------------------------------------------------------
@declared(frozen=True)
class GradientLearner(WithPrior):
    """Minimise ``objective + l1 sum|couplings| + (l2 / 2) sum theta^2 - log_prior / n``; a subclass says what.

    The penalties act on the parameters in the model's own coding; the L1 penalty leaves biases alone. Where cells are
    missing and the objective does not sum them out itself, the equations ``E[gradient of the row's loss | present
    cells] = 0`` are solved under the model (see `gibbsian.learning.gradients`), which is consistent where cells are
    missing at random.
    """

    optimizer: Optimizer[OptimizerState] | GradientStep[object] | str | None = free(
        None, OPTIMIZER, doc="Optimizer or str"
    )
    batch_size: int | None = whole(None, BATCH_SIZE, least=1, optional=True)
    average: bool = flag(True, AVERAGE)
    centred: bool = flag(True, CENTRED)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.optimizer is not None:
            self._settle(optimizer=as_optimizer(self.optimizer))
        if self.batch_size is not None and not isinstance(self.optimizer, GradientStep | None):
            raise ArgumentError(
                "needs the value of the objective over all rows, which minibatches do not have",
                "use 'ascent' or 'adam', or leave `batch_size` out",
                argument="optimizer",
                value=self.optimizer,
            )

    @property
    def takes(self) -> frozenset[str]:  # type: ignore[override]
        """Rows from anywhere, and real numbers where the objective has a form for them."""
        reals = {"reals"} if self.objective.in_closed_form() is not None else set()
        return frozenset({"chunks", "disk", "partitions"} | reals)

    @property
    def imputation(self) -> str | PersistentChains | None:
        """How the missing cells of all rows are completed."""
        return None

    def bind(self, model: Model[DiscreteFamily], data: Dataset) -> Fit[Any]:  # type: ignore[explicit-any]
        """Bind the objective to a model and rows."""
        objective = for_model(self.objective, model)
        if self.batch_size is not None:
            _check_fits(model, data)
            if data.has_missing and not data.on_disk and not objective.takes_missing:
                require_shown(data)
            return Descent(
                model,
                data,
                ObjectiveGradient(objective, model),
                as_optimizer(self.optimizer or ADAM),
                cache(partial(self._penalties, model, data)),
                self._coordinates(model),
                self.batch_size,
                self.average,
            )
        if not data.has_missing or objective.takes_missing:
            problem, start = self._minimisation(objective, model, data)
        elif (chains := as_completing(self.imputation, data)) is None:
            listed = all_completions(data)
            problem, start = self._minimisation(objective, model, data, listed.under)
            bind = partial(self._bound, objective, model)
            problem = replace(problem, function=CompletedObjective(bind, listed, model.replace, problem.l1))
        else:
            return self._sampled(objective, model, data, chains)
        return MinimisationFit(problem, start, lambda theta: theta, model.replace)

    def _sampled(
        self,
        objective: Objective[DiscreteFamily],
        model: Model[DiscreteFamily],
        data: Dataset,
        chains: PersistentChains,
    ) -> Descent[object, ChainsState]:
        """Return steps along gradients over completions that chains draw."""
        bound = bind_expectation(Sampled(chains), model, data)
        _, drawn = bound(model.theta, bound.init(model.theta, Key.of(0)))
        rows = completed_rows(data, bound.samples(drawn, 0))
        problem, start = self._minimisation(objective, model, data, lambda _: rows)
        preconditioner, l1 = problem.preconditioner, bool(problem.l1.any())
        optimizer = as_optimizer(OF_COMPLETIONS if preconditioner is None else PRECONDITIONED)
        if isinstance(self.optimizer, GradientStep):
            preconditioner, optimizer = None, self.optimizer
        return Descent(
            model.replace(start),
            data,
            SampledCompletions(objective, model, data, bound, chains.n_copies),
            optimizer,
            cache(partial(self._penalties, model, data)),
            self._coordinates(model, l1),
            average=self.average,
            preconditioner=preconditioner,
            min_steps=MIN_SAMPLED_STEPS,
            patience=MIN_SAMPLED_STEPS,
        )

    def _coordinates(self, model: Model[DiscreteFamily], l1: bool = True) -> Callable[[Floats], LinearMap]:
        """Return parameters about means; with L1, and averaged entry by entry, what may be zero stays apart."""
        if not self.centred:
            return lambda origin: LinearMap(np.ones(model.theta.size))
        return partial(preconditioning(model.family).centred, l1=l1)

    def _minimisation(
        self,
        objective: Objective[DiscreteFamily],
        model: Model[DiscreteFamily],
        data: Dataset,
        completed: Callable[[Model[DiscreteFamily]], Dataset] | None = None,
    ) -> tuple[Minimisation, Floats]:
        """Return the function with what minimises it, and where to start: independent columns rather than zero.

        `completed` gives the rows as they are completed under a model, where an objective needs complete ones.
        """
        l1, rows_under = self._l1_of(model, data), completed or (lambda model: data)
        optimizer = as_optimizer(self.optimizer or "lbfgs")
        plain = Minimisation(self._bound(objective, model, rows_under(model)), optimizer, l1)
        if not (self.centred and optimizer.takes_preconditioner):
            return plain, model.theta
        if not l1.any() and (inverse := objective.inverse_hessian(model, data, self.l2)) is not None:
            return replace(plain, centring=LinearMap(np.ones_like(l1)), preconditioner=inverse), model.theta
        if not objective.has_preconditioner:
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
            weights = getattr(plain.function, "derivative_sums", None) or objective.derivative_sums(model, data)
            if weights is not None:
                minimised = replace(minimised, refresh=partial(_refreshed, curvature, weights))
        change = centred.centring
        assert change is not None
        if (step := preconditioner.first_step(change.gradient(bend * start))) is not None:
            start = change.outwards(change.inwards(start) + step)
        return minimised, model.theta if model.theta.any() else start

    def _bound(self, objective: Objective[DiscreteFamily], model: Model[DiscreteFamily], rows: Dataset) -> Function:
        """Return the smooth part of what is minimised, as a function of theta."""
        return self._smooth_of(model, rows).added_to(objective.bind(model, rows))

    def equations(self, model: Model[DiscreteFamily], data: Dataset, max_seconds: float = 60.0) -> Equations:
        """Return the equations that an unpenalised fit solves."""
        objective = for_model(self.objective, model)
        if not objective.has_scores or self.log_prior is not None:
            under = f" under the prior {self.log_prior!r}" * (self.log_prior is not None)
            raise ArgumentError(
                f"standard errors are not known for {objective!r}{under}", "use `gibbsian.uncertainty.bootstrap`"
            )
        if data.has_missing and keeps(model.family, ClosedForm):
            raise ArgumentError(
                "errors are not known where numbers are missing", "use `gibbsian.uncertainty.bootstrap`"
            )
        if not data.has_missing or objective.takes_missing:
            curvature = objective.curvature(model, data, max_seconds)
            of_likelihood = isinstance(self.objective, Likelihood)
            return Equations(curvature, objective.scores(model, data, max_seconds), is_information=of_likelihood)
        if not are_few(data):
            raise TooExpensiveError(
                "there are too many ways to complete the rows", "use `gibbsian.uncertainty.bootstrap`"
            )
        rows = AllCompletions.of(data)

        def mean_score(theta: Floats) -> Floats:
            current = model.replace(theta)
            return objective.bind(model, rows.under(current))(theta)[1]

        jacobian = differences(mean_score, model.theta, max_seconds).T
        return Equations(jacobian, rows.expected_scores(objective, model))


@declared(frozen=True)
class CompletingLearner(GradientLearner):
    """A learner whose objective needs complete rows."""

    completions: str | PersistentChains | None = free(None, COMPLETIONS, doc="str, PersistentChains or None")

    @property
    def imputation(self) -> str | PersistentChains | None:
        """How the missing cells of all rows are completed."""
        return self.completions


@declared(frozen=True)
class Descend(CompletingLearner):
    """Minimise any objective by any optimiser, over all rows or minibatches.

    Examples
    --------
    >>> import gibbsian as gb
    >>> descent = gb.learning.optimizers.Ascent(learning_rate=0.2)
    >>> learner = gb.learning.Descend(gb.learning.objectives.Pseudolikelihood(), optimizer=descent)
    >>> rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]
    >>> bm = gb.BoltzmannMachine(learner=learner, tol=1e-4).fit(rows)
    >>> bm.result_.converged
    True
    """

    objective: Objective[DiscreteFamily] | str = positional(
        kw_only=False, default=free(Pseudolikelihood(), "What to minimise.", doc="Objective or str")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.objective, str):
            self._settle(objective=OBJECTIVES.create(self.objective))


def _check_fits(model: Model[DiscreteFamily], rows: Rows) -> None:
    if not isinstance(rows, Rows):
        raise DataError(f"learning takes a Dataset or a DataStream, not {type(rows).__name__}")
    if keeps(model.family, Layered):  # whose hidden layers are no columns
        return
    if rows.n_variables != model.n_variables:
        raise DataError(f"the model has {model.n_variables} variables but the data has {rows.n_variables} columns")
    if rows.variables != model.variables:
        raise CodingError(
            f"the model has other variables than the data, which is {rows.coding.describe()}",
            "make the family with `variables=data.variables`",
        )


def _refreshed(curvature: PairCurvature, weights: Callable[[Tensor], Tensor], theta: Tensor) -> Tensor:
    """Return the numbers of a preconditioner at theta, on the device where theta is there."""
    sums = weights(theta)
    if isinstance(sums, np.ndarray):
        return curvature.renewed(sums)
    return twin("vectors").put(curvature.renewed(sums.cpu().numpy()))
