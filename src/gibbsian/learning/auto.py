"""Which learner ``"auto"`` is: exact likelihood where quick, else pseudolikelihood, or chains for missing cells.

Of very many cells pseudolikelihood again, where the missing ones are few in each row, and for very many parameters.
What is not exact likelihood is a start: the moments of its model are compared with those of the data, and where they
differ Monte Carlo likelihood continues from there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.diagnostics.moments import data_moments
from gibbsian.inference import predict_cost
from gibbsian.inference.posterior import PATIENT_SECONDS, clamped_seconds
from gibbsian.learning.around import Around
from gibbsian.learning.base import Fit, Learner, as_learner, name_of
from gibbsian.learning.callbacks import Callback
from gibbsian.learning.completing import are_few, never_shown
from gibbsian.learning.moment_matching import from_independent
from gibbsian.learning.optimizers import Converged, Failed, Running, StepInfo
from gibbsian.learning.run import outcome_of
from gibbsian.learning.stages import continuing
from gibbsian.learning.trained import QUICK_SECONDS, TrainingReport, penalty_pull, training_report
from gibbsian.models import Model
from gibbsian.rng import Key
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


class CheckedState(NamedTuple):
    """The learner at work: the first one, or the second after a check.

    Parameters
    ----------
    first, then : dataclass or tuple
        States of both learners; that of the second has not begun while `stage` is 0.
    stage, n_steps : int
        The checks that were followed by more learning, and the steps since the last of them.
    status : str
        The result of the last check.
    key : Key
        The key of the second learner's starts.
    """

    first: Any
    then: Any
    stage: int
    n_steps: int
    status: str
    key: Key


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
        """Return a callback that writes down which learner the parameters come from."""
        return [_WhichLearner()]

    def bind(self, model: Model[Any], data: Rows) -> CheckedFit:
        """Bind both learners."""
        return CheckedFit(self, model, data)


class CheckedFit(Fit[CheckedState]):
    """Two learners, and the check of the moments between them."""

    def __init__(self, learner: Checked, start: Model[Any], data: Any):
        self.learner, self.start, self.data = learner, start, data
        self.first: Fit[Any] = learner.learner.bind(start, data)
        self.then: Fit[Any] | None = None if learner.then is None else learner.then.bind(start, data)

    def init(self, key: Key, theta: np.ndarray | None = None) -> tuple[CheckedState, StepInfo]:
        """Begin the first learner; the second has a state from the start on, so that a checkpoint can hold it."""
        first, info = self.first.init(key.fold("first"), theta)
        then = None if self.then is None else self.then.init(key.fold("then", 0), self.first.model(first).theta)[0]
        return CheckedState(first, then, 0, 0, "", key), info._replace(metrics={})

    def step(self, state: CheckedState) -> tuple[CheckedState, StepInfo]:
        """Take a step of the learner at work; after its last one compare the moments."""
        stage, metrics = state.stage, {"stage": float(state.stage)}
        if stage:
            assert self.then is not None
            then, info = self.then.step(state.then)
            state, fit, at_work = state._replace(then=then), self.then, then
        else:
            first, info = self.first.step(state.first)
            state, fit, at_work = state._replace(first=first), self.first, first
        state = state._replace(n_steps=state.n_steps + 1, status="")
        outcome = outcome_of(info, state.n_steps, MAX_ROUNDS if stage else None, self.learner.tol)
        info = info._replace(metrics=metrics)
        if isinstance(outcome, Running):
            return state, continuing(info, metrics)
        info, model = info._replace(outcome=outcome), fit.model(at_work)
        report = self._check(model)
        state = state._replace(status="unknown" if report is None else report.status)
        unknown = report is None or state.status == "unknown" or not np.isfinite(model.theta).all()
        if unknown or isinstance(outcome, Failed):
            return state, info
        assert report is not None
        if state.status == "trained":
            if not isinstance(outcome, Converged):
                info = info._replace(outcome=Converged(f"converged: {report.describe()}"))
            return state, info
        if self.then is None or stage == MAX_CONTINUATIONS:
            return state, info._replace(outcome=_differs(report))
        then, _ = self.then.init(state.key.fold("then", stage + 1), self._better_start(model, report, stage))
        return state._replace(then=then, stage=stage + 1, n_steps=0, status=""), continuing(info, metrics)

    def _check(self, model: Model) -> TrainingReport | None:
        """Compare the moments of a model with the data's; None where they cannot be."""
        moments, pull = data_moments(model, self.data), None
        if moments is None:
            return None
        if self.learner.penalties.any:
            pull = penalty_pull(model, *self.learner.penalties, n_rows=float(self.data.n_rows))
        rows = None if self.data.has_missing else self.data
        return training_report(model, moments, np.nan, np.random.default_rng(0), pull, rows=rows)

    def _better_start(self, model: Model, report: TrainingReport, stage: int) -> np.ndarray:
        """Return where the second learner goes on: at this model, or at first at independent columns if nearer."""
        if not stage:
            apart = from_independent(self.start, self.data)
            other = self._check(apart)
            if other is not None and _mismatch(other) < _mismatch(report):
                return apart.theta
        return model.theta

    def model(self, state: CheckedState) -> Any:
        """Return the model of the learner at work."""
        if state.stage:
            assert self.then is not None
            return self.then.model(state.then)
        return self.first.model(state.first)


class _WhichLearner(Callback):
    """Writes down which learner the parameters come from, and what the check of their moments has found."""

    def on_end(self, run: Any) -> None:
        """Write it down at the end."""
        learner, now = run.learner, run.state
        run.provenance["learner"] = (learner.then if now.stage else learner).registered_name
        if now.stage:
            run.provenance["started_by"] = learner.registered_name
        if now.status:
            run.provenance["moments"] = now.status


def _differs(report: TrainingReport) -> Failed:
    """Return the outcome of a fit that ended at a model that does not reproduce its data."""
    size = f"largest |z| {report.largest_z:.2f} of {report.z_scores.size}"
    reason = f"stopped, the moments of the model are not those of the data ({size})"
    return Failed(reason, "try a penalty such as `l2=0.01`")


def _mismatch(report: TrainingReport) -> float:
    """Return the mean square of the z-scores."""
    return float(np.nanmean(np.square(report.z_scores)))
