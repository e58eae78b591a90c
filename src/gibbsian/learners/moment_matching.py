"""Learning by matching moments: gradient = expected statistics - data statistics.

Where cells are missing the data's statistics are an expectation too, given the present cells: the clamped phase.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.expectations import EXPECTATIONS, Estimate, Expectation, RestartedChains
from gibbsian.expectations.clamped import CLAMPED, present_means
from gibbsian.learners.base import Learner, LearnerState
from gibbsian.learners.centring import Centring
from gibbsian.learners.clique_centring import CliqueCentring
from gibbsian.learners.hidden import choose_clamped, restarted_at, start_of_free_phase
from gibbsian.learners.objective import check_penalties
from gibbsian.learners.pace import paced_adam
from gibbsian.models import Model
from gibbsian.optimizers import OPTIMIZERS, Ascent, GradientStep, StepInfo
from gibbsian.optimizers.base import gradient_norm

# Running means weigh step s by about s^3 (Shamir and Zhang 2013): the last quarter of the steps counts, whatever
# their number, and the way from the start is soon forgotten.
_FORGETTING = 3.0
# The fit has come to rest when its mean gradient is this part of a standard error. Parameters follow the noise, so that
# steps which have settled make mean gradients far smaller than chance does; those under way in any direction do not.
_AT_REST = 0.5


@dataclass(frozen=True)
class _Progress:
    """The answer so far, the point the steps have reached, and all that the next step needs."""

    theta: np.ndarray
    iterate: np.ndarray
    motion: Any
    samples: Any
    posterior: Any
    mean_gradient: np.ndarray
    variance: np.ndarray
    noise: float
    evaluations: int


@dataclass(frozen=True, eq=False)
class _Problem:
    """What stays the same: the data's statistics where rows are complete, else how their expectation is taken."""

    model: Model
    data: Dataset
    statistics: np.ndarray
    clamped: Expectation | None
    l1: np.ndarray
    centring: Centring | CliqueCentring | None
    optimizer: GradientStep


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

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.learners.moment_matching import Runaway
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> Runaway("add l2=0.01").failure(model, np.array([0.0, 0.0, 60.0]), 9)
    'stopped after 9 steps, a parameter has run away to 60, so the equations have no solution nearby: add l2=0.01'
    """

    remedy: str
    largest: float = 20.0
    patience: int | None = None

    def failure(self, model: Model, theta: np.ndarray, n_steps: int) -> str:
        """Say that the fit cannot succeed; nothing while it can."""
        size = float(np.abs(theta).max(initial=0.0)) / model.temperature
        stopped = f"stopped after {n_steps} steps"
        if not size <= self.largest:
            return (
                f"{stopped}, a parameter has run away to {size:.3g}, so the equations have no solution nearby: "
                f"{self.remedy}"
            )
        if self.patience is not None and n_steps >= self.patience:
            return f"{stopped} that do not settle, so the equations have no good solution: {self.remedy}"
        return ""


@dataclass(frozen=True)
class MomentMatching(Learner):
    """Steps along the gradient of the likelihood, with the model's expectation taken in any way.

    Sampled moments make noisy steps that never come to rest. With ``average=True`` the answer is the running mean of
    the parameters (Polyak), the gradient is averaged in the same way, and from `min_steps` on the fit ends when no
    entry of that mean is larger than half its Monte Carlo standard error, which is the noise that is reported. The
    error takes the steps for independent; the samples of persistent chains are not, so it is too small for them and
    the fit goes on rather longer than it must.

    Parameters
    ----------
    expectation : Expectation or str
        How the model's statistics are computed.
    optimizer : GradientStep, str or None
        How to move: ``"ascent"``, ``"adam"``, ``"anderson"`` (for expectations without noise), or one with its own
        settings; None is Adam at a rate that suits the model (`paced_adam`). There is no value to search along, so
        line searches (L-BFGS) do not apply.
    l1, l2 : float
        Penalties, as for `ObjectiveLearner`.
    average : bool
        Whether to average over steps, as said above.
    min_steps : int
        Steps before a fit may end within the noise. More give a finer answer.
    centred : bool
        Make the steps in parameters about the mean of the data (see `centring`), where biases and couplings do not
        drag each other along. Without it the steps are those of the papers.
    runaway : Runaway, optional
        When to give up because the parameters grow without end, and what to say then.
    clamped : Expectation or str, optional
        How the data's statistics are computed where cells are missing, hidden units among them: ``"exact"``,
        ``"chains"``, ``"spatial"``, ``"mean-field"`` or one with its own settings. By default exact where that is
        quick, else chains. Complete data have no use for it.

    Examples
    --------
    >>> import gibbsian as gb
    >>> learner = gb.learners.MomentMatching("exact", gb.optimizers.Ascent(rate=0.5))
    >>> bm = gb.BoltzmannMachine(learner=learner, tol=1e-5).fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> bm.expect().mean.round(4).tolist()                            # the data's own moments
    [0.2, 0.2, 0.2]
    """

    expectation: Expectation | str
    optimizer: GradientStep | str | None = field(default_factory=Ascent)
    l1: float = 0.0
    l2: float = 0.0
    average: bool = False
    min_steps: int = 100
    centred: bool = False
    runaway: Runaway | None = None
    clamped: Expectation | str | None = None

    def __post_init__(self) -> None:
        check_penalties(self.l1, self.l2)
        if self.min_steps < 1:
            raise ArgumentError("must be at least 1", argument="min_steps", value=self.min_steps)
        if isinstance(self.expectation, str):
            object.__setattr__(self, "expectation", EXPECTATIONS.create(self.expectation))
        if isinstance(self.clamped, str):
            object.__setattr__(self, "clamped", CLAMPED.create(self.clamped))
        if isinstance(self.optimizer, str):
            object.__setattr__(self, "optimizer", OPTIMIZERS.create(self.optimizer))
        if not isinstance(self.optimizer, GradientStep | None):
            raise ArgumentError(
                "needs the value of an objective, which moment matching does not have",
                "use 'ascent', 'adam' or 'anderson'",
                argument="optimizer",
                value=self.optimizer,
            )

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Compute the data's statistics, or prepare their clamped phase, and start the samples."""
        l1 = np.where(model.penalised, self.l1, 0.0)
        centring = self._centring(model, present_means(data)) if self.centred else None
        rows, statistics, clamped, posterior = data, np.zeros_like(model.theta), None, None
        if data.has_missing:
            clamped = choose_clamped(self.clamped, self.expectation, model, data)
            posterior = clamped.init(model, data, rng)
            rows = start_of_free_phase(clamped, posterior, data, rng)
        else:
            statistics = model.mean_statistics(data.states, data.weights)
        optimizer: Any = paced_adam(model) if self.optimizer is None else self.optimizer
        problem = _Problem(model, data, statistics, clamped, l1, centring, optimizer)
        samples = self.expectation.init(model, rows, rng)  # type: ignore[union-attr]
        motion = optimizer.init_move(model.theta)
        zeros = np.zeros_like(model.theta)
        progress = _Progress(model.theta, model.theta, motion, samples, posterior, zeros, zeros, 0.0, 0)
        return LearnerState(problem, progress)

    def _centring(self, model: Model, origin: np.ndarray) -> Centring | CliqueCentring:
        if not self.l1 and CliqueCentring.applies(model):
            return CliqueCentring(model, origin)  # type: ignore[arg-type]
        return Centring(model, origin)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take one expectation and one step along the difference of moments.

        The value is not known; the norm reported is that of the gradient that was followed, or of its running mean.
        """
        problem, progress = state.problem, state.progress
        l1, temperature = problem.l1, problem.model.temperature
        model = problem.model.replace(progress.iterate)
        data, posterior, samples = self._clamped_phase(problem, model, progress)
        free, samples = self.expectation(model, samples)  # type: ignore[operator]
        gradient = (free.mean - data.mean) / temperature + self.l2 * progress.iterate
        iterate, motion = self._move(problem, progress, gradient)
        stderr = np.hypot(free.stderr, data.stderr) / temperature
        mean_gradient, variance, noise = self._judge(progress, gradient, stderr)
        norm = gradient_norm(progress.iterate, mean_gradient, l1)
        theta = self._answer(progress, iterate, l1)
        t = progress.evaluations
        rate = problem.optimizer.rate_at(t)
        failure = "" if self.runaway is None else self.runaway.failure(model, iterate, t + 1)
        info = StepInfo(float("nan"), norm, rate, t + 1, noise=noise, failure=failure)
        new = _Progress(theta, iterate, motion, samples, posterior, mean_gradient, variance, noise, t + 1)
        return LearnerState(problem, new), info

    def _clamped_phase(self, problem: _Problem, model: Model, progress: _Progress) -> tuple[Estimate, Any, Any]:
        """Return the data's statistics, the state of their expectation, and the samples of the free phase.

        Chains that restart at the data in every step restart at its rows as they are completed now.
        """
        if problem.clamped is None:
            return Estimate(problem.statistics, np.zeros_like(problem.statistics)), None, progress.samples
        estimate, posterior = problem.clamped(model, progress.posterior)
        samples = progress.samples
        if isinstance(self.expectation, RestartedChains):
            rows = problem.clamped.completions(problem.data, posterior)  # type: ignore[attr-defined]
            samples = restarted_at(model, self.expectation, samples, rows)
        return estimate, posterior, samples

    def _move(self, problem: _Problem, progress: _Progress, gradient: np.ndarray) -> tuple[np.ndarray, Any]:
        move, centring, l1 = problem.optimizer.move, problem.centring, problem.l1
        if centring is None:
            return move(progress.iterate, gradient, l1, progress.motion)
        here = centring.inwards(progress.iterate)
        there, motion = move(here, centring.gradient(gradient), centring.l1(l1), progress.motion)
        return centring.outwards(there), motion

    def _weight(self, t: int) -> float:
        """Weight of the newest of ``t + 1`` steps in the running means."""
        return (_FORGETTING + 1) / (_FORGETTING + 1 + t) if self.average else 1.0

    def _judge(
        self, progress: _Progress, gradient: np.ndarray, stderr: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the mean gradient, its variance, and the noise to judge it by (zero while it is too early)."""
        weight = self._weight(progress.evaluations)
        mean = (1 - weight) * progress.mean_gradient + weight * gradient
        variance = (1 - weight) ** 2 * progress.variance + weight**2 * stderr**2
        if not self.average or progress.evaluations + 1 < self.min_steps:
            return mean, variance, 0.0
        return mean, variance, _AT_REST * float(np.sqrt(variance.max(initial=0.0)))

    def _answer(self, progress: _Progress, iterate: np.ndarray, l1: np.ndarray) -> np.ndarray:
        """Average the iterates; what the penalty holds at zero now is zero in the answer."""
        weight = self._weight(progress.evaluations)
        mean = (1 - weight) * progress.theta + weight * iterate
        return np.where((l1 > 0) & (iterate == 0), 0.0, mean)
