"""Online learning: one minibatch, one step (YK15, stochastic gradient descent).

``theta_(t+1) = theta_t - rate_t * gradient of the minibatch``. The noise of the minibatches dies out when the rates
sum to infinity while their squares do not (Robbins and Monro), and sooner in the average of the parameters (Polyak
and Ruppert), which is what is returned. Steps are made in parameters about the mean of the data (see `centring`).
Rows may be in memory or on disk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.minibatches import draw_seed, seeded
from gibbsian.data.rows import Minibatches, Rows
from gibbsian.errors import CodingError, DataError
from gibbsian.expectations.imputation import present_means
from gibbsian.learning.base import LEARNERS, LearnerState
from gibbsian.learning.completing import completed, require_shown
from gibbsian.learning.moment_matching import as_gradient_step
from gibbsian.learning.noisy_steps import DEFAULT_OPTIMIZER
from gibbsian.learning.objectives import OBJECTIVES, Objective, Pseudolikelihood
from gibbsian.learning.objectives.base import for_model
from gibbsian.learning.objectives.centring import LinearMap
from gibbsian.learning.objectives.priors import SmoothPenalty
from gibbsian.learning.optimizers import Converged, GradientStep, StepInfo
from gibbsian.learning.optimizers.base import gradient_norm, penalty, subgradient
from gibbsian.learning.preconditioners import preconditioning
from gibbsian.learning.recipe import WithPrior, n_rows
from gibbsian.models import Model
from gibbsian.settings import declared, flag, free, positional, whole

# The average forgets its start: step s of t counts like s^3, so the last half of the steps makes up 94% of it.
_FORGETTING = 3
# Value and gradient are reported as means over about this many steps.
_SMOOTHING = 50
# Fewer steps say too little about the noise of the gradient.
_ENOUGH_STEPS = 20
# A pass is the last when the gradient is this share of its sampling error: the steps have settled.
_WITHIN_NOISE = 0.3
# A rate that has not fallen to this share of its start may have settled beside the optimum.
_FALLEN = 0.5


@dataclass(frozen=True)
class OnlineProgress:
    """All that the next step needs besides the rows: plain arrays and numbers.

    Parameters
    ----------
    theta : ndarray
        The parameters to return.
    origin : ndarray
        The mean of the first minibatch, about which the following parameters are centred.
    iterate : ndarray
        The parameters of the last step, from which the next one starts.
    average, zeros : ndarray
        Averages over the steps of the iterate, and of whether its entries are exactly zero.
    moves : Any
        The optimiser's own state.
    steps : int
        Steps so far.
    seed : ndarray
        What the order of the rows follows from.
    epoch, position : int
        The current pass and the minibatches of it that are done.
    value : float
        Penalised value, smoothed.
    gradient : ndarray
        Gradient of the smooth part with respect to theta, smoothed.
    mean_gradient, mean_square : ndarray
        Averages over the steps, weighted as the parameters are, of the centred gradient and of its square.
    within_noise : float
        After a pass: the averaged gradient as a share of the sampling error of a mean over all rows (root mean square
        over the entries); infinite where unknown.
    """

    theta: np.ndarray
    origin: np.ndarray
    iterate: np.ndarray
    average: np.ndarray
    zeros: np.ndarray
    moves: object
    steps: int
    seed: np.ndarray
    epoch: int
    position: int
    value: float
    gradient: np.ndarray
    mean_gradient: np.ndarray
    mean_square: np.ndarray
    within_noise: float


@LEARNERS.register("online", consistent=False, stochastic=True)
@declared(frozen=True)
class Online(WithPrior):
    """Minimise an objective by steps on shuffled minibatches.

    A step of the fit is a minibatch, so ``max_iter`` counts minibatches: see `steps`. The fit ends by itself after a
    pass when the averaged gradient is small against the sampling error of such a mean: the steps have settled, and
    more passes only average out what is left of the order of the rows (after k passes at most about ``1.5 / sqrt(k)``
    standard errors). A constant rate may settle beside the optimum, because the steps are larger than its valley: such
    a fit goes on to ``max_iter`` and is not called converged.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.learning.online import Online
    >>> rng = np.random.default_rng(0)
    >>> a = np.where(rng.random(20_000) < 0.5, 1, -1)
    >>> b = np.where(rng.random(20_000) < 0.8, a, -a)                       # coupling log(4) / 2 = 0.69
    >>> learner = Online(batch_size=200)
    >>> bm = gb.BoltzmannMachine(learner=learner, random_state=0).fit(np.column_stack([a, b]))
    >>> bool(abs(bm.model_.parts.couplings[0] - 0.69) < 0.03)
    True
    """

    reads_disk: ClassVar[bool] = True

    objective: Objective | str = positional(
        kw_only=False,
        default=free(
            Pseudolikelihood(),
            "What to minimise; its mean over rows is estimated by the mean over a minibatch.",
            doc="Objective or str",
        ),
    )
    optimizer: GradientStep | str = positional(
        kw_only=False,
        default=free(
            DEFAULT_OPTIMIZER,
            "What makes steps of gradients: `Adam` or `Ascent`, with a `Decay` for the rates of Robbins and Monro.",
            doc="GradientStep or str",
        ),
    )
    batch_size: int = whole(1000, "About how many rows a minibatch has.", least=1)
    average: bool = flag(
        True,
        "Return the average of the parameters over the steps, late steps counting more, instead of the last ones. "
        "With an L1 penalty, an entry that was zero in most steps is zero in the average.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.objective, str):
            self._settle(objective=OBJECTIVES.create(self.objective))
        self._settle(optimizer=as_gradient_step(self.optimizer))

    def steps(self, data: Rows, passes: int = 1) -> int:
        """Return the number of steps that so many passes over the data make: what to give as ``max_iter``.

        Examples
        --------
        >>> import gibbsian as gb
        >>> from gibbsian.learning.online import Online
        >>> Online(batch_size=100).steps(gb.datasets.load_house_votes(), passes=10)
        40
        """
        return passes * max(1, round(data.n_rows / self.batch_size))

    def init(self, model: Model, data: Rows, rng: np.random.Generator) -> LearnerState:
        """Draw the seed of the shuffling and look at the first minibatch."""
        _check_data(data)
        if isinstance(data, Dataset) and not for_model(self.objective, model).takes_missing:  # type: ignore[arg-type]
            require_shown(data)
        seed = draw_seed(rng)
        problem = self._problem(model, data)
        return LearnerState(problem, self._begun(model, problem.pass_of(seed, 0)[0], seed))

    def _problem(self, model: Model, data: Rows, seen: float = 0.0) -> _Problem:
        penalties = self._l1_of(model, data, seen), self._smooth_of(model, data, seen)
        return _Problem(model, data, self.batch_size, *penalties)

    def _begun(self, model: Model, batch: Dataset, seed: np.ndarray) -> OnlineProgress:
        """Return the progress before the first step, which will be on `batch`."""
        _check_fits(model, batch)
        origin = present_means(batch)
        nothing, start = np.zeros_like(model.theta), _centring(model, origin).inwards(model.theta)
        return OnlineProgress(
            theta=model.theta,
            origin=origin,
            iterate=start,
            average=start,
            zeros=nothing,
            moves=self.optimizer.init_move(start),  # type: ignore[union-attr]
            steps=0,
            seed=seed,
            epoch=0,
            position=0,
            value=0.0,
            gradient=nothing,
            mean_gradient=nothing,
            mean_square=nothing,
            within_noise=np.inf,
        )

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Learn from the next minibatch.

        The value and the gradient norm reported are smoothed over some fifty steps; the parameters move on meanwhile.
        """
        problem, progress = state.problem, state.progress
        if self._settled(progress):
            return state, self._info(problem, progress)
        batches = problem.pass_of(progress.seed, progress.epoch)
        progress = self.learn(problem, progress, batches[progress.position])
        progress = _count(problem.model, progress, len(batches), problem.l1)
        return LearnerState(problem, progress), self._info(problem, progress)

    def update(
        self, state: LearnerState | None, model: Model, data: Dataset, rng: np.random.Generator
    ) -> tuple[LearnerState, StepInfo]:
        """Learn from one chunk of rows as it arrives, in one pass of shuffled minibatches over it.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> model, state, rng = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2))), None, np.random.default_rng(0)
        >>> learner = gb.learning.Online(batch_size=100)
        >>> for _ in range(30):
        ...     a = np.where(rng.random(1000) < 0.5, 1, -1)
        ...     b = np.where(rng.random(1000) < 0.8, a, -a)
        ...     state, _ = learner.update(state, model, gb.Dataset.read(np.column_stack([a, b]), coding="spin"), rng)
        >>> bool(abs(learner.fitted(model, state).parts.couplings[0] - 0.69) < 0.03), state.progress.epoch
        (True, 30)
        """
        _check_data(data)
        _check_fits(model, data)
        progress = self.init(model, data, rng).progress if state is None else replace(state.progress, position=0)
        problem = self._problem(model, data, seen=progress.epoch * n_rows(data))  # as if all chunks were alike
        batches = problem.pass_of(progress.seed, progress.epoch)
        for batch in map(batches.__getitem__, range(len(batches))):
            progress = _count(model, self.learn(problem, progress, batch), len(batches), problem.l1)
        norm = float(np.abs(progress.gradient).max(initial=0.0))
        return LearnerState(None, progress), StepInfo(progress.value, norm, float("nan"), progress.steps)

    def learn(self, problem: _Problem, progress: OnlineProgress, batch: Dataset) -> OnlineProgress:
        """Take one step on one minibatch, whose missing cells are completed where the step starts."""
        model, l1 = problem.model, problem.l1
        centring = _centring(model, progress.origin)
        here = centring.outwards(progress.iterate)
        objective = for_model(self.objective, model)  # type: ignore[arg-type]
        if batch.has_missing and not objective.takes_missing:
            batch = completed(model.replace(here), batch, seeded(progress.seed, progress.steps))
        smooth, slope = objective.sampled(model, batch)(here)
        more, more_slope = problem.smooth(here)
        gradient = slope + more_slope
        value = smooth + more + penalty(here, l1)
        pulled = centring.gradient(gradient)
        iterate, moves = self.optimizer.move(  # type: ignore[union-attr]
            progress.iterate, pulled, centring.l1(l1), progress.moves
        )
        t = progress.steps + 1
        newest = (_FORGETTING + 1) / (t + _FORGETTING)
        average = progress.average + newest * (iterate - progress.average)
        zeros = progress.zeros + newest * ((iterate == 0) - progress.zeros)
        share = 1.0 / min(t, _SMOOTHING)
        return replace(
            progress,
            theta=centring.outwards(np.where(zeros > 0.5, 0.0, average) if self.average else iterate),
            iterate=iterate,
            average=average,
            zeros=zeros,
            moves=moves,
            steps=t,
            value=progress.value + share * (value - progress.value),
            gradient=progress.gradient + share * (gradient - progress.gradient),
            mean_gradient=progress.mean_gradient + newest * (pulled - progress.mean_gradient),
            mean_square=progress.mean_square + newest * (pulled**2 - progress.mean_square),
        )

    def _settled(self, progress: OnlineProgress) -> bool:
        first, last = self.optimizer.rate_at(0), self.optimizer.rate_at(progress.steps)  # type: ignore[union-attr]
        return progress.within_noise <= _WITHIN_NOISE and last <= _FALLEN * first

    def _info(self, problem: _Problem, progress: OnlineProgress) -> StepInfo:
        norm = gradient_norm(progress.theta, progress.gradient, problem.l1)
        rate = self.optimizer.rate_at(progress.steps - 1)  # type: ignore[union-attr]
        outcome = None
        if self._settled(progress):
            passes = f"{progress.epoch} pass{'es' * (progress.epoch != 1)}"
            outcome = Converged(
                f"converged after {passes} ({progress.steps} minibatches): the averaged gradient is "
                f"{progress.within_noise:.2g} of its sampling error"
            )
        return StepInfo(progress.value, norm, rate, progress.steps, outcome=outcome)


@dataclass
class _Problem:
    """The model and its rows, with the current pass kept ready."""

    model: Model
    source: Rows
    batch_size: int
    l1: np.ndarray
    smooth: SmoothPenalty
    _ready: tuple[bytes, int, Minibatches] | None = None

    def pass_of(self, seed: np.ndarray, epoch: int) -> Minibatches:
        if self._ready is None or self._ready[:2] != (seed.tobytes(), epoch):
            self._ready = None  # a stream's window is freed before the next pass loads its own
            self._ready = seed.tobytes(), epoch, self.source.minibatches(self.batch_size, seed, epoch)
        return self._ready[2]


def _centring(model: Model, origin: np.ndarray) -> LinearMap:
    """Return the change of parameters; entries are averaged one by one, so what may be zero must stay apart."""
    return preconditioning(model.family).centred(origin, l1=True)


def _check_data(data: Rows) -> None:
    if not isinstance(data, Rows):
        raise DataError(f"online learning takes a Dataset or a DataStream, not {type(data).__name__}")


def _check_fits(model: Model, batch: Dataset) -> None:
    if batch.n_variables != model.n_variables:
        raise DataError(f"the model has {model.n_variables} variables but the data has {batch.n_variables} columns")
    if batch.variables != model.variables:
        raise CodingError(
            f"the model has other variables than the data, which is {batch.coding.describe()}",
            "make the family with `variables=data.variables`",
        )


def _count(model: Model, progress: OnlineProgress, n_batches: int, l1: np.ndarray) -> OnlineProgress:
    """Count one minibatch, and judge the gradient at the end of a pass."""
    position = progress.position + 1
    if position < n_batches:
        return replace(progress, position=position)
    ratio = _ratio_to_noise(progress, n_batches, _centring(model, progress.origin).l1(l1))
    return replace(progress, epoch=progress.epoch + 1, position=0, within_noise=ratio)


def _ratio_to_noise(progress: OnlineProgress, n_batches: int, l1: np.ndarray) -> float:
    """Compare the averaged gradient with the error that a mean over all rows has.

    Near the optimum the average of the gradients is the gradient at the average of the parameters.
    """
    variance = np.maximum(progress.mean_square - progress.mean_gradient**2, 0.0) / n_batches
    known = variance > 0
    if n_batches == 1 or progress.steps < _ENOUGH_STEPS or not known.any():
        return np.inf
    at = np.where(progress.zeros > 0.5, 0.0, progress.average)
    excess = subgradient(at, progress.mean_gradient, l1)[known]
    return float(np.sqrt(np.mean(excess**2 / variance[known])))
