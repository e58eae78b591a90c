"""Learning by matching moments: gradient = expected statistics - data statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.expectations import EXPECTATIONS, Estimate, Expectation
from gibbsian.learners.base import LearnerState
from gibbsian.learners.centring import Centring
from gibbsian.learners.clique_centring import CliqueCentring
from gibbsian.learners.objective import check_penalties
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
    mean_gradient: np.ndarray
    variance: np.ndarray
    noise: float
    evaluations: int


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
class MomentMatching:
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
    optimizer : GradientStep or str
        How to move: ``"ascent"``, ``"adam"``, ``"anderson"`` (for expectations without noise), or one with its own
        settings. There is no value to search along, so
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

    Examples
    --------
    >>> import gibbsian as gb
    >>> learner = gb.learners.MomentMatching("exact", gb.optimizers.Ascent(rate=0.5))
    >>> bm = gb.BoltzmannMachine(learner=learner, tol=1e-5).fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> bm.expect().mean.round(4).tolist()                            # the data's own moments
    [0.2, 0.2, 0.2]
    """

    expectation: Expectation | str
    optimizer: GradientStep | str = field(default_factory=Ascent)
    l1: float = 0.0
    l2: float = 0.0
    average: bool = False
    min_steps: int = 100
    centred: bool = False
    runaway: Runaway | None = None

    def __post_init__(self) -> None:
        check_penalties(self.l1, self.l2)
        if self.min_steps < 1:
            raise ArgumentError(f"min_steps={self.min_steps} must be at least 1")
        if isinstance(self.expectation, str):
            object.__setattr__(self, "expectation", EXPECTATIONS.create(self.expectation))
        if isinstance(self.optimizer, str):
            object.__setattr__(self, "optimizer", OPTIMIZERS.create(self.optimizer))
        if not isinstance(self.optimizer, GradientStep):
            raise ArgumentError(
                f"optimizer={self.optimizer!r} needs the value of an objective, which moment matching does not have: "
                "use 'ascent', 'adam' or 'anderson'"
            )

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Compute the data's statistics and start the samples."""
        data.require_complete("moment matching")
        l1 = np.where(model.penalised, self.l1, 0.0)
        origin = np.average(data.states, axis=0, weights=data.weights)
        centring = self._centring(model, origin) if self.centred else None
        problem = (model, model.mean_statistics(data.states, data.weights), l1, centring)
        samples = self.expectation.init(model, data, rng)  # type: ignore[union-attr]
        motion = self.optimizer.init_move(model.theta)  # type: ignore[union-attr]
        zeros = np.zeros_like(model.theta)
        return LearnerState(problem, _Progress(model.theta, model.theta, motion, samples, zeros, zeros, 0.0, 0))

    def _centring(self, model: Model, origin: np.ndarray) -> Centring | CliqueCentring:
        if not self.l1 and CliqueCentring.applies(model):
            return CliqueCentring(model, origin)  # type: ignore[arg-type]
        return Centring(model, origin)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take one expectation and one step along the difference of moments.

        The value is not known; the norm reported is that of the gradient that was followed, or of its running mean.
        """
        model, statistics, l1, centring = state.problem
        progress = state.progress
        estimate, samples = self.expectation(model.replace(progress.iterate), progress.samples)  # type: ignore[operator]
        gradient = (estimate.mean - statistics) / model.temperature + self.l2 * progress.iterate
        iterate, motion = self._move(progress, gradient, l1, centring)
        mean_gradient, variance, noise = self._judge(progress, gradient, estimate, model.temperature)
        norm = gradient_norm(progress.iterate, mean_gradient, l1)
        theta = self._answer(progress, iterate, l1)
        t = progress.evaluations
        rate = self.optimizer.rate_at(t)  # type: ignore[union-attr]
        failure = "" if self.runaway is None else self.runaway.failure(model, iterate, t + 1)
        info = StepInfo(float("nan"), norm, rate, t + 1, noise=noise, failure=failure)
        new = _Progress(theta, iterate, motion, samples, mean_gradient, variance, noise, t + 1)
        return LearnerState(state.problem, new), info

    def _move(
        self, progress: _Progress, gradient: np.ndarray, l1: np.ndarray, centring: Centring | CliqueCentring | None
    ) -> tuple[np.ndarray, Any]:
        move = self.optimizer.move  # type: ignore[union-attr]
        if centring is None:
            return move(progress.iterate, gradient, l1, progress.motion)
        here = centring.inwards(progress.iterate)
        there, motion = move(here, centring.gradient(gradient), centring.l1(l1), progress.motion)
        return centring.outwards(there), motion

    def _weight(self, t: int) -> float:
        """Weight of the newest of ``t + 1`` steps in the running means."""
        return (_FORGETTING + 1) / (_FORGETTING + 1 + t) if self.average else 1.0

    def _judge(
        self, progress: _Progress, gradient: np.ndarray, estimate: Estimate, temperature: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the mean gradient, its variance, and the noise to judge it by (zero while it is too early)."""
        weight = self._weight(progress.evaluations)
        mean = (1 - weight) * progress.mean_gradient + weight * gradient
        variance = (1 - weight) ** 2 * progress.variance + weight**2 * (estimate.stderr / temperature) ** 2
        if not self.average or progress.evaluations + 1 < self.min_steps:
            return mean, variance, 0.0
        return mean, variance, _AT_REST * float(np.sqrt(variance.max(initial=0.0)))

    def _answer(self, progress: _Progress, iterate: np.ndarray, l1: np.ndarray) -> np.ndarray:
        """Average the iterates; what the penalty holds at zero now is zero in the answer."""
        weight = self._weight(progress.evaluations)
        mean = (1 - weight) * progress.theta + weight * iterate
        return np.where((l1 > 0) & (iterate == 0), 0.0, mean)
