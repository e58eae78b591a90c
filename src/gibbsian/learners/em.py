"""Expectation maximisation for machines with hidden units or missing cells (YK15; Neal and Hinton 1998).

The free energy ``F(Q, theta) = log Z - E_Q[theta . S] / T - H(Q)``, averaged over the rows, is lowered in turn: over Q
(the E-step, a clamped expectation) and over theta at fixed Q (the M-step, a convex problem that asks of Q no more than
its expected statistics). With the exact posterior for Q it touches minus the log-likelihood, which therefore never
rises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.expectations import CLAMPED, Expectation, as_clamped
from gibbsian.inference import ExactInference, plan_exact
from gibbsian.learners import class_em
from gibbsian.learners.base import LEARNERS, LearnerState
from gibbsian.learners.moment_matching import CLAMPED_HELP
from gibbsian.learners.objective import ridge
from gibbsian.learners.recipe import Penalised
from gibbsian.models import Model
from gibbsian.objectives import Function
from gibbsian.optimizers import LBFGS, StepInfo
from gibbsian.optimizers.anderson import extrapolate
from gibbsian.optimizers.base import gradient_norm, penalty
from gibbsian.optimizers.lbfgs import LBFGSState
from gibbsian.settings import check, choice, declared, flag, free, number, whole

# Sampled statistics of E-step s are averaged with weights of about s^3, so that early ones are soon forgotten, and ...
FORGETTING = 4.0
# ... a fit may end within their noise after this many steps: at the start the gradient of hidden units is near zero.
FEWEST_SAMPLED = 50
# EM steps that are extrapolated together.
MEMORY = 8


@dataclass(frozen=True)
class EMProgress:
    """The parameters with both phases there, and what the M-steps remember of the curvature.

    Parameters
    ----------
    theta : ndarray
        The parameters.
    free, clamped : ndarray
        Expected statistics of the model, and of the data given their present cells.
    log_partition, log_evidence : float
        log Z, and the mean log-evidence of the rows or a bound on it; NaN where the E-step does not give it.
    gap, variance : ndarray
        ``free - clamped``, averaged over the steps where the E-step draws samples, and its variance.
    e_steps : int
        E-steps so far.
    posterior : Any
        State of the E-step.
    moves, changes : ndarray
        Memory of the quasi-Newton steps. The curvature of the M-step does not depend on Q, so it serves them all.
    evaluations : int
        Evaluations of the free phase so far.
    points, steps : ndarray
        Where the last EM steps began, oldest first, and the steps, from which they are extrapolated.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> data = gb.Dataset.read([[1, float("nan")], [-1, 1]], coding="spin")
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> gb.learners.EM().init(model, data, np.random.default_rng(0)).progress.clamped.tolist()
    [0.0, 0.5, -0.5]
    """

    theta: np.ndarray
    free: np.ndarray
    clamped: np.ndarray
    log_partition: float
    log_evidence: float
    gap: np.ndarray
    variance: np.ndarray
    e_steps: int
    posterior: Any
    moves: np.ndarray
    changes: np.ndarray
    evaluations: int
    points: np.ndarray
    steps: np.ndarray


@dataclass(frozen=True, eq=False)
class _Problem:
    """What stays the same from step to step."""

    model: Model
    clamped: Expectation
    l1: np.ndarray
    plan: Callable[[Model], ExactInference]

    def free_phase(self, model: Model) -> tuple[np.ndarray, float]:
        """Return the expected statistics and log Z."""
        moments = self.plan(model).moments()
        return moments.statistics, moments.log_partition


@LEARNERS.register("em")
@declared(frozen=True)
class EM(Penalised):
    """Generalised EM: in every step a few quasi-Newton steps on the expected complete-data likelihood, then an E-step.

    Each step lowers the penalised negative log-likelihood (or, with ``clamped="mean-field"``, the free energy, an upper
    bound on it), which is the value that is reported. Plain EM is slow where much is hidden; so the last steps are
    extrapolated to where they would end (Anderson's acceleration), and the extrapolation is taken where it lowers the
    value further than the plain step. ``"mle"`` climbs the same function. Hidden units need a start that is not
    symmetric in them: see `break_symmetry`.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [1, -1], [-1, 1], [float("nan"), 1], [-1, float("nan")]]
    >>> data = gb.Dataset.read(rows, coding="spin")
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> result = gb.learners.run(gb.learners.EM(), model, data, np.random.default_rng(0))
    >>> best = gb.learners.run(gb.learners.as_learner("mle"), model, data, np.random.default_rng(0))
    >>> result.converged, bool(np.allclose(result.model.theta, best.model.theta, atol=1e-4))
    (True, True)
    >>> bool((np.diff(result.trace.column("value")) <= 1e-12).all())
    True

    References
    ----------
    R. M. Neal and G. E. Hinton, "A view of the EM algorithm that justifies incremental, sparse, and other variants",
    Learning in Graphical Models (1998).
    B. Delyon, M. Lavielle and E. Moulines, "Convergence of a stochastic approximation version of the EM algorithm",
    Annals of Statistics 27 (1999).
    N. C. Henderson and R. Varadhan, "Damped Anderson acceleration with restarts and monotonicity control for
    accelerating EM and EM-like algorithms", Journal of Computational and Graphical Statistics 28 (2019).
    """

    clamped: Expectation | str | None = free(None, CLAMPED_HELP, doc="Expectation, str or None", kw_only=False)
    m_steps: int = whole(3, "Quasi-Newton steps in each M-step.", least=1)
    max_seconds: float = number(10.0, "Refuse when the exact free phase is predicted to take longer.", above=0)
    accelerated: bool = flag(
        True,
        "Whether to extrapolate, at the price of one more evaluation a step. E-steps that draw samples have no value "
        "to judge it by, and make plain steps.",
    )
    assignment: str = choice(
        "soft",
        "For models of classes: 'soft' weighs a row by the probabilities of its classes, 'hard' gives it to the "
        "likeliest (k-means).",
        "soft",
        "hard",
    )

    def __post_init__(self) -> None:
        check(self)
        if isinstance(self.clamped, str):
            self._settle(clamped=CLAMPED.create(self.clamped))

    def start(self, model: Any, data: Any, rng: np.random.Generator) -> Any:
        """Return where learning begins when nothing is said; classes are placed by the data."""
        return model if hasattr(model, "em_steps") else super().start(model, data, rng)

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Take both expectations at the start."""
        if hasattr(model, "em_steps"):
            return class_em.init(model.em_steps(data, self.assignment == "hard"), model, rng)
        clamped = as_clamped(self.clamped, model, data)
        problem = _Problem(model, clamped, self._l1_of(model), plan_exact(model, self.max_seconds))
        nothing, zeros = np.empty((0, model.theta.size)), np.zeros_like(model.theta)
        start = EMProgress(
            theta=model.theta,
            free=zeros,
            clamped=zeros,
            log_partition=float("nan"),
            log_evidence=float("nan"),
            gap=zeros,
            variance=zeros,
            e_steps=0,
            posterior=clamped.init(model, data, rng),
            moves=nothing,
            changes=nothing,
            evaluations=0,
            points=nothing,
            steps=nothing,
        )
        return LearnerState(problem, self._expect(problem, start))

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Raise the expected complete-data likelihood at the present Q, then renew Q."""
        if isinstance(state.progress, class_em.ClassProgress):
            return class_em.step(state)
        problem, before = state.problem, state.progress
        m_step = self._maximise(problem, before)
        moved_on = replace(
            before,
            theta=m_step.theta,
            moves=m_step.moves,
            changes=m_step.changes,
            evaluations=m_step.evaluations,
        )
        after = self._expect(problem, moved_on)
        if self.accelerated:
            after = self._extrapolate(problem, before, after)
        gradient = after.gap / problem.model.temperature + self.l2 * after.theta
        norm = gradient_norm(after.theta, gradient, problem.l1)
        noise = self._noise(after) / problem.model.temperature
        moved = float(np.abs(after.theta - before.theta).max(initial=0.0))
        value, best = (self._value(progress, problem.l1) for progress in (after, before))
        stalled = moved == 0 and value >= best  # samples have no value, and another E-step may move them
        return LearnerState(problem, after), StepInfo(value, norm, moved, after.evaluations, stalled, noise)

    def fitted(self, model: Any, state: LearnerState) -> Any:
        """Return the model as a state has it."""
        if isinstance(state.progress, class_em.ClassProgress):
            return class_em.fitted(state)
        return super().fitted(model, state)

    def restored(self, state: LearnerState, progress: Any) -> LearnerState:
        """Return a fresh state with the progress that a checkpoint held."""
        if isinstance(progress, class_em.ClassProgress):
            return class_em.restored(state, progress)
        return super().restored(state, progress)

    def kept(self, state: LearnerState) -> LearnerState | None:
        """Return the state at the end of a fit where `partial_fit` can go on from it, None where it begins anew."""
        return class_em.kept(state) if isinstance(state.progress, class_em.ClassProgress) else super().kept(state)

    def restarted(self, state: LearnerState, model: Any, data: Any, rng: np.random.Generator) -> LearnerState:
        """Begin again from another model with the same data."""
        if isinstance(state.progress, class_em.ClassProgress):
            return class_em.init(state.problem, model, rng)
        return super().restarted(state, model, data, rng)

    def _maximise(self, problem: _Problem, progress: EMProgress) -> LBFGSState:
        """The M-step: a few steps down ``log Z - theta . clamped / T`` and the penalties, none of which goes up."""
        theta, statistics, temperature = progress.theta, progress.clamped, problem.model.temperature
        smooth = progress.log_partition - theta @ statistics / temperature + 0.5 * self.l2 * theta @ theta
        gradient = (progress.free - statistics) / temperature + self.l2 * theta
        value = float(smooth) + penalty(theta, problem.l1)
        state = LBFGSState(theta, gradient, value, progress.evaluations, progress.moves, progress.changes)
        function = ridge(_complete_data(problem, statistics), self.l2)
        for _ in range(self.m_steps):
            state, info = LBFGS().step(function, state, problem.l1)
            if info.stalled:
                break
        return state

    def _extrapolate(self, problem: _Problem, before: EMProgress, after: EMProgress) -> EMProgress:
        """Go where the last steps would end, if that is further down than the plain step; else forget all but it."""
        points = np.vstack([before.points, before.theta])[-MEMORY:]
        steps = np.vstack([before.steps, after.theta - before.theta])[-MEMORY:]
        plain, value = replace(after, points=points, steps=steps), self._value(after, problem.l1)
        if len(points) == 1 or np.isnan(value):
            return plain
        stays_zero = (problem.l1 > 0) & (after.theta == 0)
        theta = np.where(stays_zero, 0.0, extrapolate(points, steps))
        leap = self._expect(problem, replace(plain, theta=theta))
        if self._value(leap, problem.l1) < value:
            return leap
        return replace(plain, points=points[-1:], steps=steps[-1:], evaluations=leap.evaluations)

    def _expect(self, problem: _Problem, progress: EMProgress) -> EMProgress:
        """Take both expectations at theta: the free phase, and the E-step, which goes on from where it was."""
        model = problem.model.replace(progress.theta)
        (free, log_partition), (estimate, posterior) = (
            problem.free_phase(model),
            problem.clamped(model, progress.posterior),
        )
        weight = FORGETTING / (FORGETTING + progress.e_steps) if estimate.stderr.any() else 1.0
        return replace(
            progress,
            free=free,
            log_partition=log_partition,
            clamped=(1 - weight) * progress.clamped + weight * estimate.mean,
            log_evidence=float("nan") if estimate.log_partition is None else estimate.log_partition,
            gap=(1 - weight) * progress.gap + weight * (free - estimate.mean),
            variance=(1 - weight) ** 2 * progress.variance + weight**2 * estimate.stderr**2,
            e_steps=progress.e_steps + 1,
            posterior=posterior,
            evaluations=progress.evaluations + 1,
        )

    def _noise(self, progress: EMProgress) -> float:
        """What the gradient is judged by: its standard error; zero while it is too early to end."""
        return 0.0 if progress.e_steps <= FEWEST_SAMPLED else float(np.sqrt(progress.variance.max(initial=0.0)))

    def _value(self, progress: EMProgress, l1: np.ndarray) -> float:
        theta = progress.theta
        fit = progress.log_partition - progress.log_evidence
        return fit + 0.5 * self.l2 * float(theta @ theta) + penalty(theta, l1)


def _complete_data(problem: _Problem, statistics: np.ndarray) -> Function:
    """The function of theta that an M-step goes down, given the clamped statistics."""
    model = problem.model

    def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
        free, log_partition = problem.free_phase(model.replace(theta))
        value = log_partition - float(theta @ statistics) / model.temperature
        return value, (free - statistics) / model.temperature

    return function
