"""Learning by matching moments: gradient = expected statistics - data statistics.

Where cells are missing the data's statistics are an expectation too, given the present cells: the clamped phase.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.diagnostics.moments import moment_errors
from gibbsian.errors import ArgumentError
from gibbsian.estimate import Estimate
from gibbsian.expectations import EXPECTATIONS, Expectation
from gibbsian.expectations.clamped import CLAMPED, present_means
from gibbsian.learning.base import LearnerState
from gibbsian.learning.hidden import begun_phase
from gibbsian.learning.noisy_steps import NoisySteps, OnWalk, from_independent, paced_adam
from gibbsian.learning.objectives.priors import SmoothPenalty
from gibbsian.learning.optimizers import Ascent, Failed, GradientStep, StepInfo
from gibbsian.learning.preconditioners import preconditioning
from gibbsian.learning.recipe import CLAMPED_HELP, WithPrior, as_optimizer
from gibbsian.models import Model
from gibbsian.settings import declared, flag, free, positional, whole

# Steps on one chunk of rows; Adam forgets the first ones within some chunks.
STEPS_A_CHUNK = 10
OPTIMIZER = (
    "How to move; None is Adam at a rate of at most 0.05 that falls with the number of interactions of a variable."
)
AVERAGE = "Whether the answer is the mean of the parameters over the steps, late ones counting more (Polyak)."
MIN_ITER = "Steps before a fit may end within its Monte Carlo noise; more give a finer answer."
CENTRED = "Make the steps in parameters about the mean of the data, where couplings do not drag biases along."


@dataclass(frozen=True)
class _Progress(OnWalk):
    """The walk of the parameters, and the states of both phases."""

    samples: Any
    posterior: Any


@dataclass(frozen=True, eq=False)
class _Problem:
    """What stays the same, and how the expectation over the data is taken."""

    model: Model
    data: Dataset
    clamped: Any
    steps: NoisySteps
    smooth: SmoothPenalty


@dataclass(frozen=True)
class Runaway:
    """Gives up on equations that seem to have no solution: parameters grow beyond reason, or steps never settle.

    Parameters
    ----------
    remedy : str
        What to do instead.
    largest : float
        Size of a parameter, over T, that ends the fit.
    patience : int, optional
        Steps after which a solver that needs few is given up; by default only ``max_iter`` ends it.
    """

    remedy: str
    largest: float = 20.0
    patience: int | None = None

    def judged(self, info: StepInfo, theta: np.ndarray, n_steps: int) -> StepInfo:
        """Return a step whose outcome is that the fit cannot succeed, where it cannot."""
        size, stopped = float(np.abs(theta).max(initial=0.0)), f"stopped after {n_steps} steps"
        if not size <= self.largest:
            why = f"{stopped}, a parameter has run away to {size:.3g}, so the equations have no solution nearby"
            return info._replace(outcome=Failed(why, self.remedy))
        if self.patience is not None and n_steps >= self.patience:
            why = f"{stopped} that do not settle, so the equations have no good solution"
            return info._replace(outcome=Failed(why, self.remedy))
        return info


@declared(frozen=True)
class MomentMatching(WithPrior):
    """Steps along the gradient of the likelihood, with the model's expectation taken in any way.

    Sampled moments make noisy steps that never come to rest. With ``average=True`` the answer is the running mean of
    the parameters (Polyak), the gradient is averaged in the same way, and from `min_iter` on the fit ends when no
    entry of that mean is larger than two of its Monte Carlo standard errors: the moments agree as far as the samples
    can tell. The errors count samples that repeat each other, as those of persistent chains do, for fewer. Chains that
    are slow still may end after 500 steps, when no moment is further off than half the standard error of the data's.

    Examples
    --------
    >>> import gibbsian as gb
    >>> learner = gb.learning.MomentMatching("exact", gb.learning.optimizers.Ascent(learning_rate=0.5))
    >>> bm = gb.BoltzmannMachine(learner=learner, tol=1e-5).fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> bm.expect().value.round(4).tolist()                            # the data's own moments
    [0.2, 0.2, 0.2]
    """

    expectation: Expectation | str = positional(
        kw_only=False, default=free("exact", "How the model's statistics are computed.", doc="Expectation or str")
    )
    optimizer: GradientStep | str | None = positional(
        kw_only=False,
        default=free(
            Ascent(),
            "How to move: 'ascent', 'adam', 'anderson' (for expectations without noise), or one with its own settings; "
            "None is Adam at a rate that suits the model. Line searches (L-BFGS) have no value to search along.",
            doc="GradientStep, str or None",
        ),
    )
    average: bool = flag(False, AVERAGE)
    min_iter: int = whole(100, MIN_ITER, least=1)
    centred: bool = flag(False, CENTRED)
    runaway: Runaway | None = free(
        None, "When to give up because the parameters grow without end, and what to say then.", doc="Runaway or None"
    )
    clamped: Expectation | str | None = free(None, CLAMPED_HELP, doc="Expectation, str or None")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.expectation, str):
            self._settle(expectation=EXPECTATIONS.create(self.expectation))
        if isinstance(self.clamped, str):
            self._settle(clamped=CLAMPED.create(self.clamped))
        self._settle(optimizer=as_gradient_step(self.optimizer))

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Compute the data's statistics, or prepare their clamped phase, and start the samples."""
        centring, l1 = None, self._l1_of(model, data)
        if self.centred:
            centring = preconditioning(model.family).centred(present_means(data), l1=bool(l1.any()))
        clamped, posterior, rows = begun_phase(self.clamped, self.expectation, model, data, rng)
        optimizer: Any = paced_adam(model) if self.optimizer is None else self.optimizer
        start = model if self.optimizer is not None else from_independent(model, data)
        error = moment_errors(model, data)
        steps = NoisySteps(optimizer, l1, centring, self.average, self.min_iter, error)
        samples = self.expectation.init(start, rows, rng)  # type: ignore[union-attr]
        problem = _Problem(model, data, clamped, steps, self._smooth_of(model, data))
        return LearnerState(problem, _Progress(steps.start(start.theta), samples, posterior))

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take one expectation and one step along the difference of moments; the value is not known."""
        problem, walk = state.problem, state.progress.walk
        model = problem.model.replace(walk.iterate)
        data, posterior, samples = self._clamped_phase(problem, model, state.progress)
        free, samples = self.expectation(model, samples)  # type: ignore[operator]
        gradient = free.value - data.value + problem.smooth(walk.iterate)[1]
        walk, info = problem.steps.step(walk, gradient, np.hypot(free.monte_carlo_error, data.monte_carlo_error))
        if self.runaway is not None:
            info = self.runaway.judged(info, walk.iterate, walk.evaluations)
        return LearnerState(problem, _Progress(walk, samples, posterior)), info

    def rebound(self, state: LearnerState, data: Dataset) -> LearnerState:
        """Go on with the statistics of other rows; chains that start at the rows start at the new ones."""
        walk = state.progress.walk
        # a stream of its own for every chunk, known from what was done before
        fresh = self.init(state.problem.model.replace(walk.iterate), data, np.random.default_rng(walk.evaluations))
        restarts = hasattr(self.expectation, "restarted_at")
        samples = fresh.progress.samples if restarts else state.progress.samples
        model, seen = fresh.problem.model, state.problem.smooth.n_rows
        steps = replace(fresh.problem.steps, l1=self._l1_of(model, data, seen))
        problem = replace(fresh.problem, smooth=self._smooth_of(model, data, seen), steps=steps)
        return LearnerState(problem, replace(fresh.progress, walk=walk, samples=samples))

    def update(
        self, state: LearnerState | None, model: Model, data: Dataset, rng: np.random.Generator
    ) -> tuple[LearnerState, StepInfo]:
        """Learn from one chunk of rows as it arrives, in a few steps on its statistics."""
        state, info = super().update(state, model, data, rng)
        for _ in range(STEPS_A_CHUNK - 1):
            state, info = self.step(state)
        return state, info

    def _clamped_phase(self, problem: _Problem, model: Model, progress: _Progress) -> tuple[Estimate, Any, Any]:
        """Return the data's statistics, the state of their expectation, and the samples of the free phase.

        Chains that restart at the data in every step restart at its rows as they are completed now.
        """
        estimate, posterior = problem.clamped(model, progress.posterior)
        samples = progress.samples
        restart = getattr(self.expectation, "restarted_at", None)
        if restart is not None and problem.data.has_missing:
            rows = problem.clamped.completions(problem.data, posterior)
            samples = restart(model, samples, rows)
        return estimate, posterior, samples


def as_gradient_step(optimizer: object) -> Any:
    """Turn a name into an optimiser that moves by a gradient alone; None stays."""
    made = optimizer if optimizer is None else as_optimizer(optimizer)
    if not isinstance(made, GradientStep | None):
        raise ArgumentError(
            "needs the value of an objective, which this learner does not have",
            "use 'ascent', 'adam' or 'anderson'",
            argument="optimizer",
            value=optimizer,
        )
    return made
