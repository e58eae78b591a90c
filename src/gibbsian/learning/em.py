"""Expectation maximisation: machines with hidden units or missing cells, and mixtures (YK15; Neal and Hinton 1998).

The free energy ``F(Q, theta) = log Z - E_Q[theta . S] / T - H(Q)``, averaged over the rows, is lowered in turn: over Q
(the E-step, a clamped expectation) and over theta at fixed Q (the M-step, a convex problem that asks of Q no more than
its expected statistics). With the exact posterior for Q it touches minus the log-likelihood, which therefore never
rises. The steps of mixtures are closed forms (`gibbsian.learning.bound_mixtures`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gibbsian.backends.classes import ClassSums
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.data.sums import added
from gibbsian.errors import ArgumentError, DataError
from gibbsian.expectations import BoundExpectation, Expectation, as_expectation
from gibbsian.inference import Engine, plan_exact
from gibbsian.learning.base import LEARNERS, LearnerState, Rebuilt, has_classes
from gibbsian.learning.bound_mixtures import FAR_APART, Shared, bound, class_sums, placing_setting
from gibbsian.learning.objectives import Equations, Function, Likelihood
from gibbsian.learning.objectives.priors import SmoothPenalty
from gibbsian.learning.optimizers import LBFGS, Failed, StepInfo
from gibbsian.learning.optimizers.anderson import LastRounds
from gibbsian.learning.optimizers.base import ROUNDED, gradient_norm, penalty
from gibbsian.learning.optimizers.lbfgs import LBFGSState
from gibbsian.learning.phases import bind_clamped
from gibbsian.learning.recipe import CLAMPED_HELP, WithPrior
from gibbsian.models.base import Family, Model
from gibbsian.models.mixtures.base import Frame
from gibbsian.rng import Key
from gibbsian.settings import choice, declared, flag, free, number, positional, whole

# Sampled statistics of E-step s are averaged with weights of about s^3, so that early ones are soon forgotten, and ...
FORGETTING = 4.0
# ... a fit may end within their noise after this many steps: at the start the gradient of hidden units is near zero.
FEWEST_SAMPLED = 50
# Rises of the free energy of a mixture below this, per unit of free energy and row, are rounding, ...
ROUNDING = 1e-10
# ... and so are falls below this share of it.
LAST_DIGITS = 1e-14


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
    rounds : LastRounds
        The last EM steps, from which the next are extrapolated.
    """

    theta: np.ndarray
    free: np.ndarray
    clamped: np.ndarray
    log_partition: float
    log_evidence: float
    gap: np.ndarray
    variance: np.ndarray
    e_steps: int
    posterior: object
    moves: np.ndarray
    changes: np.ndarray
    evaluations: int
    rounds: LastRounds


@LEARNERS.register("em")
@declared(frozen=True)
class EM(WithPrior):
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
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> result = gb.learning.run(gb.learning.EM(), model, data, np.random.default_rng(0))
    >>> best = gb.learning.run(gb.learning.as_learner("mle"), model, data, np.random.default_rng(0))
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

    learns_classes: ClassVar[bool] = True
    # What is lowered, by way of the free energy.
    objective: ClassVar[Likelihood] = Likelihood()

    clamped: Expectation | str | None = positional(
        kw_only=False, default=free(None, CLAMPED_HELP, doc="Expectation, str or None")
    )
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
    placing: str = placing_setting()
    components: Any = free(
        None,
        "How the models of classes of any family are fitted and their rows scored.",
        doc="ComponentFits, optional",
        flag=False,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clamped is not None:
            self._settle(clamped=as_expectation(self.clamped, "clamped"))

    def start(self, model: Model[Family], data: Dataset, rng: np.random.Generator) -> Any:
        """Return where learning begins when nothing is said; classes are placed by the data."""
        return model if has_classes(model) else super().start(model, data, rng)

    def init(self, model: Model[Any], data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Take the E-step at the start."""
        if has_classes(model):
            if self.log_prior is not None:
                raise ArgumentError("is of machines, not of classes", "leave it out", argument="log_prior")
            rows = bound(model.family, data, self._hard, rng, self.components)
            alternation: Any = ClassAlternation(rows, self.placing)
        else:
            alternation = MachineAlternation(self, model, data)
        return LearnerState(alternation, alternation.begin(model, rng))

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Raise the expected complete-data likelihood at the present Q, then renew Q."""
        progress, info = state.problem.advance(state.progress)
        return LearnerState(state.problem, progress), info

    def update(
        self, state: LearnerState | None, model: Model[Family], data: Rows | None, rng: np.random.Generator
    ) -> tuple[LearnerState, StepInfo]:
        """Share the rows of a chunk among the classes as they stand, and learn from the sums of all chunks so far."""
        if not has_classes(model):
            raise self.needs_all_rows()
        if state is None:
            return self.step(first_chunk(model, data, self._hard, self.placing, rng))
        return self.step(LearnerState(Chunk(state.problem.family, data, self._hard), state.progress))

    def by_chunks(self, batch_size: int) -> EM:
        """Refuse: minibatches are for machines, whose EM needs all rows; mixtures take whole chunks."""
        raise self.needs_all_rows()

    def equations(self, model: Any, data: Dataset, max_seconds: float = 60.0) -> Equations:
        """Return the likelihood equations, which a fit ends at."""
        from gibbsian.learning.class_equations import class_equations
        from gibbsian.learning.descend import Descend

        if self._hard or self.clamped is not None:
            how = "hard assignments" if self._hard else "a clamped phase of its own"
            raise ArgumentError(
                f"EM with {how} does not end at a maximum of the likelihood", "use `gibbsian.uncertainty.bootstrap`"
            )
        if has_classes(model):
            return class_equations(model, data, max_seconds)
        likelihood = Descend(self.objective, l1=self.l1, l2=self.l2, log_prior=self.log_prior)
        return likelihood.equations(model, data, max_seconds)

    @property
    def _hard(self) -> bool:
        return self.assignment == "hard"

    def fitted(self, model: Model[Family], state: LearnerState) -> Any:
        """Return the model as a state has it."""
        return state.problem.fitted(model, state.progress)

    def warning(self, state: LearnerState) -> str:
        """Say what is wrong with the solution."""
        return state.problem.warning(state.progress)

    def restored(self, state: LearnerState, progress: object) -> LearnerState:
        """Return a fresh state with the progress that a checkpoint held."""
        return LearnerState(state.problem, state.problem.restored(state.progress, progress))

    def kept(self, state: LearnerState) -> LearnerState | None:
        """Return the state at the end of a fit where `partial_fit` can go on from it, None where it begins anew."""
        return state.problem.kept(state.progress)

    def restarted(
        self, state: LearnerState, model: Model[Family], data: Rows, rng: np.random.Generator
    ) -> LearnerState:
        """Begin again from another model with the same data."""
        return state.problem.restarted(model, data, rng)


@dataclass(frozen=True, eq=False)
class MachineAlternation:
    """Both steps of a machine with hidden units or missing cells: expectations, and quasi-Newton steps between them."""

    learner: EM
    model: Model[Any]
    data: Dataset

    @cached_property
    def clamped(self) -> BoundExpectation[Any]:
        """The E-step."""
        return bind_clamped(self.learner.clamped, self.model, self.data)

    @cached_property
    def l1(self) -> np.ndarray:
        """The L1 penalty of each parameter."""
        return self.learner._l1_of(self.model, self.data)

    @cached_property
    def smooth(self) -> SmoothPenalty:
        """The penalties that have a gradient everywhere."""
        return self.learner._smooth_of(self.model, self.data)

    @cached_property
    def _engine(self) -> Engine:
        return plan_exact(self.model.family, max_seconds=self.learner.max_seconds)

    def begin(self, model: Model[Family], rng: np.random.Generator) -> EMProgress:
        """Take both expectations at the start."""
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
            posterior=self.clamped.init(model.theta, Key.of(rng)),
            moves=nothing,
            changes=nothing,
            evaluations=0,
            rounds=LastRounds.none(model.theta),
        )
        return self._expect(start)

    def advance(self, before: EMProgress) -> tuple[EMProgress, StepInfo]:
        """Take a few steps down the free energy at the present Q, then renew Q."""
        m_step = self._maximise(before)
        moved_on = replace(
            before,
            theta=m_step.theta,
            moves=m_step.moves,
            changes=m_step.changes,
            evaluations=m_step.evaluations,
        )
        after = self._expect(moved_on)
        if self.learner.accelerated:
            after = self._extrapolate(before, after)
        gradient = after.gap + self.smooth(after.theta)[1]
        norm = gradient_norm(after.theta, gradient, self.l1)
        noise = _noise(after)
        moved = float(np.abs(after.theta - before.theta).max(initial=0.0))
        value, best = self._value(after), self._value(before)
        stalled = moved == 0 and value >= best  # samples have no value, and another E-step may move them
        return after, StepInfo(value, norm, moved, after.evaluations, noise, ROUNDED if stalled else None)

    def fitted(self, model: Model[Family], progress: EMProgress) -> Model[Any]:
        """Return the model with the parameters."""
        return model.replace(progress.theta)

    def warning(self, progress: EMProgress) -> str:
        """Say nothing: no solution is degenerate."""
        return ""

    def restored(self, fresh: EMProgress, progress: EMProgress) -> EMProgress:
        """Return what a checkpoint held."""
        return progress

    def kept(self, progress: EMProgress) -> None:
        """Return nothing: all rows are needed at once."""

    def restarted(self, model: Model[Family], data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Begin again from another model."""
        return self.learner.init(model, data, rng)

    def _free_phase(self, model: Model[Family]) -> tuple[np.ndarray, float]:
        """Return the expected statistics and log Z."""
        answers = self._engine.at(model.theta)
        return answers.moments, answers.log_partition

    def _maximise(self, progress: EMProgress) -> LBFGSState:
        """The M-step: a few steps down ``log Z - theta . clamped`` and the penalties, none of which goes up."""
        theta, statistics = progress.theta, progress.clamped
        more, slope = self.smooth(theta)
        gradient = progress.free - statistics + slope
        value = float(progress.log_partition - theta @ statistics) + more + penalty(theta, self.l1)
        state = LBFGSState(theta, gradient, value, progress.evaluations, progress.moves, progress.changes)
        function = self.smooth.added_to(self._complete_data(statistics))
        for _ in range(self.learner.m_steps):
            state, info = LBFGS().step(function, state, self.l1)
            if info.outcome is not None:
                break
        return state

    def _complete_data(self, statistics: np.ndarray) -> Function:
        """The function of theta that an M-step goes down, given the clamped statistics."""
        model = self.model

        def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
            free, log_partition = self._free_phase(model.replace(theta))
            value = log_partition - float(theta @ statistics)
            return value, free - statistics

        return function

    def _extrapolate(self, before: EMProgress, after: EMProgress) -> EMProgress:
        """Go where the last steps would end, if that is further down than the plain step; else forget all but it."""
        rounds = before.rounds.added(before.theta, after.theta)
        plain, value = replace(after, rounds=rounds), self._value(after)
        if rounds.is_first or np.isnan(value):
            return plain
        leap = self._expect(replace(plain, theta=rounds.end(after.theta, self.l1)))
        if self._value(leap) < value:
            return leap
        return replace(plain, rounds=rounds.last(), evaluations=leap.evaluations)

    def _expect(self, progress: EMProgress) -> EMProgress:
        """Take both expectations at theta: the free phase, and the E-step, which goes on from where it was."""
        model = self.model.replace(progress.theta)
        free, log_partition = self._free_phase(model)
        estimate, posterior = self.clamped(progress.theta, progress.posterior)
        weight = FORGETTING / (FORGETTING + progress.e_steps) if estimate.monte_carlo_error.any() else 1.0
        return replace(
            progress,
            free=free,
            log_partition=log_partition,
            clamped=(1 - weight) * progress.clamped + weight * estimate.value,
            log_evidence=float(estimate.parts.get("log_partition", "nan")),
            gap=(1 - weight) * progress.gap + weight * (free - estimate.value),
            variance=(1 - weight) ** 2 * progress.variance + weight**2 * estimate.monte_carlo_error**2,
            e_steps=progress.e_steps + 1,
            posterior=posterior,
            evaluations=progress.evaluations + 1,
        )

    def _value(self, progress: EMProgress) -> float:
        theta = progress.theta
        fit = progress.log_partition - progress.log_evidence
        return fit + self.smooth(theta)[0] + penalty(theta, self.l1)


def _noise(progress: EMProgress) -> float:
    """What the gradient is judged by: its standard error; zero while it is too early to end."""
    return 0.0 if progress.e_steps <= FEWEST_SAMPLED else float(np.sqrt(progress.variance.max(initial=0.0)))


# -- mixtures ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ClassProgress:
    """The parameters relative to the frame of the rows, the sums of the classes, and the free energy there.

    `memory` is what the next E-step goes on from, `fall` that of the last step, per unit of weight, and `noise` what of
    it may be rounding.
    """

    theta: np.ndarray
    sums: ClassSums
    memory: Any
    free_energy: float
    fall: float
    noise: float
    e_steps: int
    model: Rebuilt[Any]


@dataclass(frozen=True, eq=False)
class ClassAlternation:
    """Both steps of a mixture in turn over the same rows."""

    rows: Any
    placing: str = FAR_APART

    def begin(self, model: Any, rng: np.random.Generator) -> ClassProgress:
        """Take the E-step at the model's parameters, or at a random start where it has none."""
        fitted = model.theta.any()
        start = self.rows.adopted(model) if fitted else self.rows.start(rng, self.placing)
        energy, sums, memory = self._e_step(start, None, 0)
        return ClassProgress(start.theta, sums, memory, energy, np.nan, self._noise(energy), 0, Rebuilt(start))

    def advance(self, before: ClassProgress) -> tuple[ClassProgress, StepInfo]:
        """Take an M-step and an E-step; the first step only reports the E-step at the start."""
        if before.e_steps == 0:
            after = replace(before, e_steps=1)
            return after, _class_info(after)
        model = self.rows.m_step(Shared(before.free_energy, before.sums, before.memory), before.model.value)
        energy, sums, memory = self._e_step(model, before.memory, before.e_steps)
        weight = self.rows.total_weight
        if not energy <= before.free_energy + ROUNDING * (abs(before.free_energy) + weight):
            hint = "the free energy rose, so a component's own fit is not a maximum"
            return before, _class_info(before)._replace(outcome=Failed(f"stopped at step {before.e_steps}", hint))
        lowest = min(energy, before.free_energy)
        fall, noise = (before.free_energy - lowest) / weight, self._noise(lowest)
        after = ClassProgress(model.theta, sums, memory, lowest, fall, noise, before.e_steps + 1, Rebuilt(model))
        return after, _class_info(after)

    def fitted(self, model: Any, progress: ClassProgress) -> Any:
        """Return the model."""
        return self.rows.reported(progress.model.value)

    def warning(self, progress: ClassProgress) -> str:
        """Say what is wrong with the solution."""
        return self.rows.warning(progress.model.value, progress.sums.mass)

    def kept(self, progress: ClassProgress) -> LearnerState | None:
        """Return where EM by chunks goes on: the sums of the rows of a fit, where these add."""
        if not self.rows.has_sums:
            return None
        family = progress.model.value.family
        return LearnerState(
            Chunk(family, None, False),
            ChunkProgress(progress.theta, family.counted_by_cell(progress.sums), 1, self.rows.frame),
        )

    def restored(self, fresh: ClassProgress, progress: ClassProgress) -> ClassProgress:
        """Put the parameters that a checkpoint held into the model of a fresh start."""
        return replace(progress, model=Rebuilt(fresh.model.value.replace(progress.theta)))

    def restarted(self, model: Model[Family], data: Rows, rng: np.random.Generator) -> LearnerState:
        """Begin again from another model with the same rows."""
        return LearnerState(self, self.begin(model, rng))

    def _noise(self, free_energy: float) -> float:
        """Return what of a fall may be rounding."""
        return LAST_DIGITS * abs(free_energy) / self.rows.total_weight

    def _e_step(self, model: Any, memory: Any, step: int) -> Shared:
        with np.errstate(all="ignore"):  # what overflows shows in the free energy
            shared = self.rows.e_step(model, memory)
        if not np.isfinite(shared.free_energy):
            raise DataError(
                f"the free energy is {shared.free_energy} at step {step}",
                "scale the columns, or give a variance or kappa that is less extreme",
            )
        return shared


def _class_info(progress: ClassProgress) -> StepInfo:
    return StepInfo(progress.free_energy, progress.fall, 1.0, progress.e_steps, noise=progress.noise)


# -- mixtures of rows that come in chunks -----------------------------------------------------------------------------
@dataclass(frozen=True)
class ChunkProgress:
    """The parameters relative to the frame, the sums of each class over all chunks so far, and their number."""

    theta: np.ndarray
    sums: ClassSums
    chunks: int
    frame: Frame


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows that are shared out once, by the parameters of their time: incremental EM in one pass.

    It needs a mixture of exponential families, where the sums of chunks add.
    """

    family: Any
    data: Any
    hard: bool

    def advance(self, before: ChunkProgress) -> tuple[ChunkProgress, StepInfo]:
        """Share the rows of the chunk, add their sums, and learn from all."""
        free_energy, found = class_sums(self.family, before.frame, self.hard, before.theta, self.data)
        total = added(before.sums, found) if before.chunks else found
        theta = self.family.maximise(total, before.theta, before.frame.floor)
        moved = float(np.abs(theta - before.theta).max())
        after = ChunkProgress(theta, total, before.chunks + 1, before.frame)
        return after, StepInfo(free_energy, moved, 1.0, after.chunks)

    def fitted(self, model: Model[Family], progress: ChunkProgress) -> Any:
        """Return the mixture."""
        return Model(self.family, self.family.translated(progress.theta, -progress.frame.origin))

    def warning(self, progress: ChunkProgress) -> str:
        """Say what is wrong with the solution."""
        return self.family.warning(progress.theta, progress.sums.mass, progress.frame.floor) if progress.chunks else ""


def first_chunk(model: Any, data: Any, hard: bool, placing: str, rng: np.random.Generator) -> LearnerState:
    """Take the frame from the first chunk, and place the classes by it where the model has none yet."""
    rows = bound(model.family, data, hard, rng)
    require_sums(rows)
    start = rows.adopted(model) if model.theta.any() else rows.start(rng, placing)
    nothing = ClassSums(np.zeros(0), np.zeros((0, 0)))
    return LearnerState(Chunk(model.family, data, hard), ChunkProgress(start.theta, nothing, 0, rows.frame))


def require_sums(rows: Any) -> None:
    """Raise `ArgumentError` unless sums over the rows of a class are all that the M-step asks for."""
    if not rows.has_sums:
        raise ArgumentError(
            "a mixture of machines needs all rows at once: each step fits the machines anew",
            "use `fit` with `learner='em'`, or `machine='categorical'`",
        )
