"""Which learner ``"auto"`` is: exact likelihood where quick, else pseudolikelihood, or chains for missing cells.

Of very many cells pseudolikelihood again, where the missing ones are few in each row, and for very many parameters.
What is not exact likelihood is a start: the moments of its model are compared with those of the data, and where they
differ Monte Carlo likelihood continues from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.diagnostics.moments import data_moments
from gibbsian.inference import predict_cost
from gibbsian.inference.posterior import PATIENT_SECONDS, clamped_seconds
from gibbsian.learning.around import Around
from gibbsian.learning.base import Learner, LearnerState, as_learner, name_of
from gibbsian.learning.callbacks import Callback
from gibbsian.learning.completing import are_few, never_shown
from gibbsian.learning.noisy_steps import from_independent
from gibbsian.learning.optimizers import Converged, Failed, Running, StepInfo
from gibbsian.learning.run import outcome_of
from gibbsian.learning.stages import continuing
from gibbsian.learning.trained import QUICK_SECONDS, TrainingReport, mixed_states, penalty_pull, training_report
from gibbsian.models import Model
from gibbsian.models.base import Family
from gibbsian.settings import declared, free, number

# Exact likelihood is taken while one evaluation is predicted to take no longer than QUICK_SECONDS; where cells are
# missing, when chains are the only other way, no longer than PATIENT_SECONDS.
# Of more cells than this, chains would redraw the missing ones for minutes; where all completions of the rows can be
# listed, pseudolikelihood averages over them, and with so many rows its larger errors are small.
MANY_CELLS = 2**24
# Chains and parameters take hundreds of steps to come to rest together, and longer the more there are; of 50 columns
# with 21 values (541,275 parameters) chains are far from it when pseudolikelihood, in a hundred steps, is there.
MANY_PARAMETERS = 2**12
# Rounds of Monte Carlo likelihood between two checks, and how often it continues after a check.
MAX_ROUNDS, MAX_CONTINUATIONS = 100, 2


def choose_learner(model: Model, data: Dataset) -> str:
    """Return the name of the learner that suits a model and data."""
    seconds = predict_cost(model.family).seconds
    if not data.has_missing:
        return "mle" if seconds <= QUICK_SECONDS else "mple"
    if seconds <= PATIENT_SECONDS and seconds + clamped_seconds(model, data) <= PATIENT_SECONDS:
        return "mle"
    many = model.theta.size > MANY_PARAMETERS or (data.n_states * data.n_variables > MANY_CELLS and are_few(data))
    return "mple" if many and not model.n_hidden and not never_shown(data).any() else "pcd"


def auto_learner(model: Model, data: Dataset, tol: float, **penalties: Any) -> Learner:
    """Return the learner that suits a model and data, with a check of the moments where it is not exact."""
    name = choose_learner(model, data)
    first = as_learner(name, **penalties)
    if name == "mle" or data.on_cluster:
        return first
    then = as_learner("mcmle", **penalties) if model.theta.size <= MANY_PARAMETERS else None
    return Checked(learner=first, then=then, tol=tol)


@dataclass(frozen=True)
class CheckedProgress:
    """The progress of both learners; `stage` counts the checks so far, and `status` is the result of the last one."""

    theta: np.ndarray
    first: Any
    then: Any
    stage: int = 0
    n_steps: int = 0
    ended: bool = False
    status: str = ""

    @property
    def present(self) -> Any:
        """The progress of the learner that is at work."""
        return self.then if self.stage else self.first

    @property
    def noise(self) -> float:
        """The noise of the last gradient of all; zero while there is more to do."""
        return getattr(self.present, "noise", 0.0) if self.ended else 0.0


@dataclass(frozen=True)
class CheckedProblem:
    """Model, data and what both learners have made of them."""

    model: Model[Family]
    data: Dataset
    first: Any
    then: Any


@declared(frozen=True)
class Checked(Around):
    """A quick learner whose model is compared with the data, and Monte Carlo likelihood from there where they differ.

    The moments of the model come from exact inference where that is quick, else from chains with several starts, among
    them rows of the data and modes of the model; where they disagree tempered chains decide. A fit that does not
    reproduce its data at the end has not converged. Without a second learner it ends after the first check.
    """

    learner: Any = free("mple", "What learns first.", doc="Learner")
    then: Any = free(None, "The learner that continues where the moments differ.", doc="Learner, optional")
    tol: float = number(1e-6, "Convergence tolerance on the gradient.", least=0)

    @property
    def registered_name(self) -> str:
        """The name of what learns first."""
        return name_of(self.learner)

    def monitors(self, data: Rows, held_out: Rows) -> list[Any]:
        """Return callbacks that keep the learner's figures, and which learner the parameters come from."""
        return [*super().monitors(data, held_out), _WhichLearner()]

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Prepare both learners."""
        first = self.learner.init(model, data, rng)
        then = LearnerState(None, None) if self.then is None else self.then.prepared(model, data, rng)
        progress = CheckedProgress(first.progress.theta, first.progress, then.progress)
        return LearnerState(CheckedProblem(model, data, first.problem, then.problem), progress)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take a step of the learner at work; after its last one compare the moments."""
        problem, now = state.problem, state.progress
        learner = self.then if now.stage else self.learner
        inner, info = learner.step(self.within(state))
        part = "then" if now.stage else "first"
        problem = replace(problem, **{part: inner.problem})
        now = replace(now, **{part: inner.progress}, theta=inner.progress.theta, n_steps=now.n_steps + 1)
        details = {"stage": float(now.stage)}
        outcome = outcome_of(info, now.n_steps, MAX_ROUNDS if now.stage else None, self.tol)
        if isinstance(outcome, Running):
            return LearnerState(problem, now), continuing(info, details)
        info = info._replace(outcome=outcome, metrics=details)
        model = learner.fitted(problem.model, LearnerState(inner.problem, inner.progress))
        report = self._check(model, problem.data)
        now = replace(now, ended=True, status="unknown" if report is None else report.status)
        if report is None or isinstance(outcome, Failed) or now.status == "unknown" or not np.isfinite(now.theta).all():
            return LearnerState(problem, now), info
        if now.status == "trained":
            if not isinstance(outcome, Converged):
                info = info._replace(outcome=Converged(f"converged: {report.describe()}"))
            return LearnerState(problem, now), info
        if self.then is None or now.stage == MAX_CONTINUATIONS:
            return LearnerState(problem, now), info._replace(outcome=_differs(report))
        now = self._further(problem, now, model, report)
        return LearnerState(problem, now), continuing(info, details)

    def _check(self, model: Model, data: Dataset) -> TrainingReport | None:
        """Compare the moments of a model with the data's; None where they cannot be."""
        moments, pull = data_moments(model, data), None
        if moments is None:
            return None
        if self.penalties.any:
            pull = penalty_pull(model, *self.penalties, n_rows=float(data.n_rows))
        rows = None if data.has_missing else data
        return training_report(model, moments, np.nan, np.random.default_rng(0), pull, rows=rows)

    def _further(
        self, problem: CheckedProblem, now: CheckedProgress, model: Model, report: TrainingReport
    ) -> CheckedProgress:
        """Go on by the second learner: from this model, or at first from independent columns if they are nearer."""
        theta, states = model.theta, None
        if not now.stage:
            apart = from_independent(problem.model, problem.data)
            other = self._check(apart, problem.data)
            if other is not None and _mismatch(other) < _mismatch(report):
                theta = apart.theta
        if theta is model.theta:  # chains that are spread over the model as it is, not over the data
            states = mixed_states(model, self.then.n_chains, np.random.default_rng(now.stage))
        then = self.then.begun_at(now.then, theta, states)
        return replace(now, theta=theta, then=then, stage=now.stage + 1, n_steps=0, ended=False)

    def within(self, state: LearnerState) -> LearnerState:
        """Return the state of the learner at work."""
        problem, now = state.problem, state.progress
        return LearnerState(problem.then if now.stage else problem.first, now.present)

    def fitted(self, model: Model[Family], state: LearnerState) -> Any:
        """Return the model of the learner at work."""
        learner = self.then if state.progress.stage else self.learner
        return learner.fitted(model, self.within(state))

    def figures(self, state: LearnerState) -> dict[str, float]:
        """Return no figures: those of two learners are not one curve."""
        return {}

    def restored(self, state: LearnerState, progress: CheckedProgress) -> LearnerState:
        """Go on with the learner that a checkpoint held."""
        problem, fresh = state.problem, state.progress
        first = self.learner.restored(LearnerState(problem.first, fresh.first), progress.first)
        then = LearnerState(problem.then, progress.then)
        if self.then is not None:
            then = self.then.restored(LearnerState(problem.then, fresh.then), progress.then)
        problem = replace(problem, first=first.problem, then=then.problem)
        return LearnerState(problem, replace(progress, first=first.progress, then=then.progress))


class _WhichLearner(Callback):
    """Writes down which learner the parameters come from, and what the check of their moments has found."""

    def on_end(self, run: Any) -> None:
        """Write it down at the end."""
        learner, now = run.learner, run.state.progress
        run.provenance["learner"] = (learner.then if now.stage else learner).registered_name
        if now.stage:
            run.provenance["started_by"] = learner.registered_name
        if now.ended:
            run.provenance["moments"] = now.status


def _differs(report: TrainingReport) -> Failed:
    """Return the outcome of a fit that ended at a model that does not reproduce its data."""
    size = f"largest |z| {report.largest_z:.2f} of {report.z_scores.size}"
    reason = f"stopped, the moments of the model are not those of the data ({size})"
    return Failed(reason, "try a penalty such as `l2=0.01`")


def _mismatch(report: TrainingReport) -> float:
    """Return the mean square of the z-scores."""
    return float(np.nanmean(np.square(report.z_scores)))
