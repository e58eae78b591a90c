"""What the learners of the full-span model share: settings, steps with a kind, the best functions so far.

A fit holds two tables over all states, the dual of the model and that of the data, and changes the first in place. A
learner says how it begins at given functions, what its next change is, and whether there is one; missing cells are
filled around it (`span_filling`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from gibbsian.data import Dataset
from gibbsian.diagnostics.moments import DataMoments
from gibbsian.errors import ArgumentError
from gibbsian.inference.posterior import log_evidence
from gibbsian.learning.base import Learner, LearnerState, Penalties
from gibbsian.learning.optimizers import Converged, Running, StepInfo
from gibbsian.learning.span_device import DeviceSpanProblem
from gibbsian.learning.span_problem import DescriptionLength, Shrinkage, SpanProblem, negative_entropy
from gibbsian.models.base import FAMILIES, Array, Family, Model
from gibbsian.models.families.full_span import FullSpanFamily
from gibbsian.models.families.span_basis import SpanBasis
from gibbsian.resources import require_memory
from gibbsian.settings import check, choice, declared, number

# What a step did, by its number in a trace: nothing; one function appended, adjusted or removed (TA22 section 2.2); all
# re-fitted by Newton's method; several removed; a second path begun from nothing; its end kept; cells filled; several
# appended; two paths put together.
KINDS = ("stop", "append", "adjust", "remove", "refit", "prune", "restart", "keep", "fill", "pool", "merge")
# Gains below these are lost in the rounding errors of the tables.
LEAST_TOL = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-6}


class Change(NamedTuple):
    """What one step did: its kind, which function (-1: several or none), and by how much the cost fell."""

    kind: str
    function: int = -1
    gain: float = 0.0


class OwnPoint:
    """Progress that is one point: of all learners' progress one asks for its point."""

    @property
    def point(self) -> Self:
        """The point itself."""
        return self

    def best(self: Any) -> tuple[Array, Array]:
        """Return the functions and parameters of lowest cost so far."""
        return self.indices, self.theta

    def in_table(self: Any, table: Array) -> Any:
        """Return the same with its dual copied into a table."""
        table[...] = self.dual
        return replace(self, dual=table)


@dataclass(frozen=True)
class SpanPoint(OwnPoint):
    """Functions with their parameters, and the table that belongs to them.

    Parameters
    ----------
    indices, theta : (k,)
        The active functions and their parameters.
    dual : (|X|,)
        The dual of the model. A step changes it in place, so an earlier point is of no use once a step was taken.
    log_partition : float
        log Z.
    cost : float
        The cost, TA22 eq. 2.5.
    append_gain, append_index : float, int
        The best append from here; index -1 where none gains.
    n_moves : int
        Moves since the dual was last transformed afresh.
    """

    indices: Array
    theta: Array
    dual: Array
    log_partition: float
    cost: float
    append_gain: float
    append_index: int
    n_moves: int = 0


def uniform_start(problem: SpanProblem) -> SpanPoint:
    """Return the point of a fit that has done nothing yet, in a new table."""
    return refreshed(problem, problem.uniform_dual(), np.empty(0, np.int64), np.empty(0))


def refreshed(problem: SpanProblem, dual: Array, indices: Array, theta: Array) -> SpanPoint:
    """Return the point of given parameters, its dual made by fresh transforms in the given table."""
    return rescanned(problem, dual, indices, theta, problem.refresh(dual, indices, theta))


def rescanned(problem: SpanProblem, dual: Array, indices: Array, theta: Array, log_partition: float) -> SpanPoint:
    """Return the point of given parameters whose dual stands in the table already."""
    gain, index = problem.scan(dual, indices)
    return SpanPoint(indices, theta, dual, log_partition, problem.cost(indices, theta, log_partition), gain, index)


@dataclass(frozen=True)
class SpanProgress:
    """A fit between two steps: all that a checkpoint needs.

    Parameters
    ----------
    inner : Any
        Where the learner stands.
    n_steps : int
        Steps so far.
    done : bool
        Whether nothing gains any more.
    """

    inner: Any
    n_steps: int = 0
    done: bool = False

    @property
    def verdict(self) -> str:
        """How a fit that is done ended."""
        return f"converged after {self.n_steps} step{'s' * (self.n_steps != 1)}" if self.done else ""

    @property
    def theta(self) -> Array:
        """The parameters of the active functions."""
        return self.inner.point.theta


class CompleteRows:
    """Rows without missing cells: the learner's own steps, and nothing around them.

    Parameters
    ----------
    problem : SpanProblem
        Their dual, penalties and cost.
    """

    def __init__(self, problem: SpanProblem):
        self.problem = problem

    def begin(self, learner: SpanLearner, indices: Array, theta: Array) -> Any:
        """Return the progress that starts at given functions."""
        return begun(learner, self.problem, indices, theta)

    def advance(self, learner: SpanLearner, inner: Any) -> tuple[Self, Any, Change]:
        """Take one step."""
        return self, *learner.advance(self.problem, inner)

    def is_done(self, learner: SpanLearner, inner: Any) -> bool:
        """Whether nothing gains any more."""
        return learner.is_done(self.problem, inner)

    def restored(self, learner: SpanLearner, fresh: Any, loaded: Any) -> tuple[Self, Any]:
        """Return what a checkpoint held, in the table of a fresh start."""
        return self, loaded.in_table(fresh.point.dual)


def begun(learner: SpanLearner, problem: SpanProblem, indices: Array, theta: Array) -> Any:
    """Return the progress of a learner that starts at given functions, from the uniform distribution without any."""
    start = uniform_start(problem)
    if indices.size == 0:
        return learner.fresh(problem, start)
    return learner.begin(problem, refreshed(problem, start.dual, indices, theta))


@declared(frozen=True)
class SpanLearner(Learner):
    """A learner of the full-span model.

    A step's details are its kind (the place in `KINDS`), the function's index, the gain and the number of functions.
    """

    tol: float = number(1e-4, "Stop when no move lowers the cost by as much, in nats per row.", above=0)
    l2: float = number(0.0, "Strength of the square of parameters of functions of one column.", least=0)
    l2_growth: float = number(1.0, "By what factor `l2` grows with every further column.", least=1)

    why_done: ClassVar[str] = "no move lowers the cost by {:g}"
    why_all_rows: ClassVar[str] = ", because what it takes to describe a function depends on their number"
    # What a learner without the setting has.
    mdl_scale: ClassVar[float] = 0.0
    l1: ClassVar[float] = 0.0
    dtype: ClassVar[str] = "float64"
    # Tables of a fit, those a checkpoint takes on top while it is written, and those that filled missing cells.
    n_tables: ClassVar[int] = 2
    n_saved: ClassVar[int] = 1
    n_fillers: ClassVar[int] = 0
    # Whether its steps ask the problem for all that they do to tables, which may then stand on a device.
    on_device: ClassVar[bool] = True
    # Whether a step re-fits all parameters, so that filled cells need no re-fit of their own.
    refits_all: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check(self)

    # -- what a learner says ------------------------------------------------------------------------------------------
    def fresh(self, problem: SpanProblem, point: SpanPoint) -> Any:
        """Return the progress that starts from nothing."""
        return self.begin(problem, point)

    def begin(self, problem: SpanProblem, point: SpanPoint, once: bool = False) -> Any:
        """Return the progress that starts at a point; `once` asks for no second path beside it."""
        raise NotImplementedError

    def advance(self, problem: SpanProblem, inner: Any) -> tuple[Any, Change]:
        """Take one step, or none and say ``stop``."""
        raise NotImplementedError

    def is_done(self, problem: SpanProblem, inner: Any) -> bool:
        """Whether the next step would be none."""
        raise NotImplementedError

    def lowered(self, problem: SpanProblem, point: SpanPoint) -> Any:
        """Return where the steps from a point end: the M-step of a hidden variable."""
        raise NotImplementedError

    # -- the contract of learners -------------------------------------------------------------------------------------
    def init(self, model: Model[FullSpanFamily], data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Start from the model's functions, or from the uniform distribution where it has none."""
        self.require(model)
        rows = self.rows_of(model.family.basis, data)
        inner = rows.begin(self, model.family.functions, model.theta)
        return LearnerState(rows, SpanProgress(inner))

    def refusal(self, model: Model[Family]) -> str:
        """Only full-span models have functions to choose."""
        kind = FAMILIES.name_for(model.family)
        return "" if kind == FullSpanFamily.registered_name else "chooses functions of a full-span model"

    def require(self, model: Model[FullSpanFamily]) -> None:
        """Refuse another kind of model, and a tolerance that the tables do not resolve."""
        if refusal := self.refusal(model):
            raise ArgumentError(refusal, argument="learner", value=type(self).__name__)
        dtype = np.dtype(self.dtype)
        if self.tol < LEAST_TOL[dtype]:
            raise ArgumentError(
                f"is less than {dtype} tables resolve",
                f"give at least {LEAST_TOL[dtype]:g}",
                argument="tol",
                value=self.tol,
            )

    def rows_of(self, basis: SpanBasis, data: Dataset) -> Any:
        """Return the data as the steps take them."""
        if not data.has_missing:
            problem = self.problem_of(basis, data.states, data.weights)
            return CompleteRows(DeviceSpanProblem.of(problem) if self.on_device else problem)
        from gibbsian.learning.span_filling import SpreadRows

        return SpreadRows.of(self, basis, data)

    @property
    def penalties(self) -> Penalties:
        """The penalties of functions of one column."""
        return Penalties(self.l1, self.l2)

    def problem_of(self, basis: SpanBasis, codes: Array, counts: Array) -> SpanProblem:
        """Return the problem of counted rows under the penalties of this learner."""
        self.require_memory(basis)
        return SpanProblem.build(
            basis, codes, counts, self.dtype, mdl_scale=self.mdl_scale, l1=self.l1, l2=self.l2, l2_growth=self.l2_growth
        )

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take one step."""
        rows, inner, change = state.problem.advance(self, state.progress.inner)
        progress = SpanProgress(inner, state.progress.n_steps + 1, rows.is_done(self, inner))
        why = self.why_done.format(self.tol)
        info = step_info(change, inner.point.cost, inner.point.indices.size, progress.n_steps, progress.verdict, why)
        return LearnerState(rows, progress), info

    def fitted(self, model: Model[FullSpanFamily], state: LearnerState) -> Model[FullSpanFamily]:
        """Return the model of lowest cost so far."""
        indices, theta = in_use(*state.progress.inner.best())
        return Model(FullSpanFamily(model.family.basis, indices), theta)

    def moments(self, model: Model[FullSpanFamily], state: LearnerState) -> DataMoments:
        """Return the means of the model's functions in the data; in missing cells as the model has filled them."""
        problem, (indices, _) = state.problem.problem, in_use(*state.progress.inner.best())
        return DataMoments(problem.data_dual[indices].astype(np.float64), np.full(indices.size, problem.n_samples))

    def restored(self, state: LearnerState, progress: SpanProgress) -> LearnerState:
        """Put what a checkpoint held into the tables of a fresh start, and fill missing cells as they were."""
        rows, inner = state.problem.restored(self, state.progress.inner, progress.inner)
        return LearnerState(rows, replace(progress, inner=inner))

    # -- costs --------------------------------------------------------------------------------------------------------
    def costs(self, model: Model[FullSpanFamily], data: Dataset) -> dict[str, float]:
        """Return the cost of a fitted model, TA22 eq. 2.5, and the part of it that is ``KL(data || model)``.

        With missing cells the cost is minus the mean log-likelihood of the observed cells plus the penalties, and there
        is no divergence.
        """
        family, theta = model.family, model.theta
        length = DescriptionLength.of_samples(family.basis, data.total_weight, self.mdl_scale)
        shrinkage = Shrinkage(self.l1, self.l2, self.l2_growth)
        costs = length(family.basis, family.functions) + shrinkage(family.basis, family.functions, theta)
        penalties = float(costs.sum())
        evidence = float(np.average(log_evidence(model, data), weights=data.weights))
        mean = evidence - family.probabilities(theta).log_partition
        divergence = negative_entropy(data) - mean
        known = {} if data.has_missing else {"divergence": divergence}
        return {"cost": divergence + penalties, **known}

    # -- memory -------------------------------------------------------------------------------------------------------
    def memory(self, basis: SpanBasis, checkpoint: bool = False, missing: bool = False) -> float:
        """Return the bytes of the tables of a fit; everything else is small beside them."""
        n_tables = self.n_tables + self.n_saved * checkpoint + self.n_fillers * missing
        return float(n_tables * np.dtype(self.dtype).itemsize * basis.size)

    def require_memory(self, basis: SpanBasis, checkpoint: bool = False, missing: bool = False) -> None:
        """Raise `TooExpensiveError` where the tables of a fit do not fit."""
        smaller = "choose fewer variables"
        if self.refits_all:
            smaller = "use `learner='span-greedy'`, which takes a seventh of it, or fewer variables"
        elif checkpoint:
            smaller += ", or leave the checkpoint out, which takes a third of it"
        elif self.dtype == "float64":
            smaller += ", or `dtype='float32'`, which takes half"
        require_memory(
            self.memory(basis, checkpoint, missing),
            f"a full-span fit over {len(basis.variables)} variables ({basis.size:.3g} states)"
            + " with a checkpoint" * checkpoint,
            smaller,
        )


@declared(frozen=True)
class SelectingLearner(SpanLearner):
    """A learner that chooses functions by what they save beyond their description length."""

    mdl_scale: float = number(1.0, "Factor on the description lengths of functions: less takes more of them.", least=0)  # type: ignore[misc]
    l1: float = number(0.0, "Strength of the absolute value of parameters.", least=0)  # type: ignore[misc]
    dtype: str = choice("float64", "Of the tables; float32 takes half the memory.", "float64", "float32")  # type: ignore[misc]


def in_use(indices: Array, theta: Array) -> tuple[Array, Array]:
    """Return functions in the order of their indices, and their parameters.

    A re-fit under L1 may leave zeros, which are no functions.
    """
    order = np.argsort(indices)
    order = order[theta[order] != 0]
    return indices[order], theta[order]


def step_info(change: Change, cost: float, n_functions: int, n_steps: int, verdict: str, why: str) -> StepInfo:
    """Return a step: a learner of functions has no gradient that must vanish, and says itself when it is done."""
    details = {
        "kind": float(KINDS.index(change.kind)),
        "index": float(change.function),
        "gain": change.gain,
        "n_functions": float(n_functions),
    }
    outcome = Converged(f"{verdict}: {why}") if verdict else Running()
    return StepInfo(cost, 0.0 if verdict else 1.0, 1.0, n_steps, outcome=outcome, metrics=details)
