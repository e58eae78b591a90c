"""Learners of the full-span model: how a search begins, what its next move is, and when nothing gains any more.

With missing cells the moves alternate with fills (`gibbsian.learning.span.fill`). A fill spreads the rows anew by the
present model (the E-step) and re-fits all parameters; the moves in between are the M-step. No move, no re-fit and no
fill raises the cost on the observed cells. The first fill is by a model of the complete rows: filled cells look as the
model that filled them, which hides functions that it lacks. Where the fit ends, no move lowers the bound by `tol`, and
no fill by a tenth of it; there may be several such points, and none is promised to be the lowest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from gibbsian.arrays import Floats, Integers
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.inference.posterior import log_evidence
from gibbsian.inference.span_posterior import SpanRows
from gibbsian.learning.base import LEARNERS, Fit, Learner, Penalties, as_learner, check_supported
from gibbsian.learning.optimizers import Converged, Running, StepInfo
from gibbsian.learning.span.fill import FilledRows, Filler, digest_of, near_some_rows
from gibbsian.learning.span.moves import (
    LAST_DENSE_STEP,
    NO_FUNCTIONS,
    NO_THETA,
    DenseCost,
    DenseState,
    Move,
    MoveKind,
    SearchState,
    SpanState,
    append_many,
    append_move,
    apply_move,
    best_move,
    greedy_moves,
    greedy_step,
    prune,
    refit,
    refreshed,
    rescanned,
)
from gibbsian.learning.span.problem import FunctionCosts, SpanProblem, Table, negative_entropy
from gibbsian.models.base import Model
from gibbsian.models.families.full_span import FullSpanFamily
from gibbsian.models.families.span_basis import SpanBasis
from gibbsian.resources import require_memory
from gibbsian.rng import Key
from gibbsian.settings import check, choice, declared, free, number, positional

S = TypeVar("S", bound=SearchState)

# Gains below these are lost in the rounding errors of the tables.
MIN_TOL = {"float64": 1e-13, "float32": 1e-6}
# Changes of the active set between two fills: at least so many, and this share of it.
_MIN_CHANGES, _CHANGES_SHARE = 4, 0.5
# A fill that gains less than this share of the tolerance is the last: fills gain ever less, but many together.
_SETTLED = 0.1
# Functions that SpanNewton appends at once: those that gain this share of the best, at most so many or this share of
# the active set. Functions that SpanL1 appends between two re-fits: so many, or this share of those in use.
_GAIN_SHARE, _MIN_POOL, _POOL_SHARE = 0.3, 4, 0.5
_MIN_BATCH, _BATCH_SHARE = 4, 0.25


# -- fits -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SpanFitState(Generic[S]):
    """A fit between two steps.

    The dual in `search` is the one table of the fit, which the next step changes in place: a state is of no use once a
    step was taken from it. A checkpoint holds a copy.

    Parameters
    ----------
    search : SpanState, NewtonState or DenseState
        Where the learner stands.
    filler : Filler
        The model that filled missing cells.
    settled : bool
        Whether filling the cells anew gains nothing: neither the last fill nor the moves after it gained enough, or no
        cell is missing.
    n_fills : int
        How often cells were filled; 0 while the complete rows are fitted.
    n_changes : int
        Changes of the active set since the last fill.
    n_steps : int
        Steps so far.
    """

    search: S
    filler: Filler = field(metadata={"varies": True})
    settled: bool
    n_fills: int
    n_changes: int = 0
    n_steps: int = 0

    @property
    def must_fill(self) -> bool:
        """Whether the active set has changed so much that cells are to be filled anew."""
        if not self.n_fills:
            return False
        return self.n_changes >= max(_MIN_CHANGES, _CHANGES_SHARE * self.search.point.theta.size)


class SpanFit(Fit[SpanFitState[S]]):
    """Moves of a learner on one table, with fills between them where cells are missing."""

    def __init__(self, learner: SpanLearner[S], start: Model[FullSpanFamily], data: Dataset):
        self.learner, self.start = learner, start
        problem, self.rows = learner.bind_rows(start, data)
        self.problem = problem.on_device() if learner.on_device and self.rows is None else problem
        self.table = self.problem.new_table()

    def init(self, key: Key, theta: Floats | None = None) -> tuple[SpanFitState[S], StepInfo]:
        """Start from the model's functions, or from the uniform distribution if it has none."""
        functions, rows = self.start.family.functions, self.rows
        n_fills = int(rows is not None and not rows.has_complete)
        filler = Filler(NO_FUNCTIONS, NO_THETA)
        problem = self._problem(n_fills, filler)
        point = refreshed(problem, self.table, functions, self.start.theta if theta is None else theta)
        once = rows is not None and bool(functions.size or n_fills)
        return SpanFitState(self.learner.begin(problem, point, once), filler, rows is None, n_fills), StepInfo()

    def _problem(self, n_fills: int, filler: Filler) -> SpanProblem:
        """Return the problem of the rows as they are filled; the table of the fit may be overwritten."""
        if self.rows is None:
            return self.problem
        return self.rows.filled_by(filler, self.table) if n_fills else self.rows.complete()

    def step(self, state: SpanFitState[S]) -> tuple[SpanFitState[S], StepInfo]:
        """Take a step of the learner; fill when it has none or has changed much, until that gains nothing either.

        Functions are chosen well where the cells are filled well, hence the fills on the way.
        """
        learner, problem = self.learner, self._problem(state.n_fills, state.filler)
        before = state.search if state.search.point.dual is self.table else state.search.in_table(self.table)
        search, move = (before, Move(MoveKind.STOP)) if state.must_fill else learner.advance(problem, before)
        if move.kind is not MoveKind.STOP or (state.settled and not state.must_fill):
            settled, n_changes = state.settled, state.n_changes
            if state.n_fills and move.kind is not MoveKind.STOP:
                settled = settled and abs(move.gain) < learner.tol
                n_changes += np.setxor1d(search.point.indices, before.point.indices).size
            after = SpanFitState(search, state.filler, settled, state.n_fills, n_changes, state.n_steps + 1)
        else:
            problem, after, move = self._filled(state, before)
        done = after.settled and not after.must_fill and learner.is_done(problem, after.search)
        why = f"converged after {after.n_steps} step{'s' * (after.n_steps != 1)}: {learner.why_done}" if done else ""
        point = after.search.point
        return after, step_info(move, point.cost, point.theta.size, after.n_steps, why.format(learner.tol))

    def _filled(self, state: SpanFitState[S], search: S) -> tuple[SpanProblem, SpanFitState[S], Move]:
        """Fill the cells by the present model, and re-fit all parameters."""
        point, learner = search.point, self.learner
        filler = Filler(point.indices, point.theta)
        problem = self._problem(1, filler)
        after = refreshed(problem, self.table, *filler)
        if not learner.refits_all:
            after = refit(problem, after)
        gain = point.cost - after.cost if state.n_fills else 0.0  # the cost of the complete rows is that of other data
        settled = state.n_fills > 0 and gain < _SETTLED * learner.tol
        begun = learner.begin(problem, after, once=True)
        filled = SpanFitState(begun, filler, settled, state.n_fills + 1, 0, state.n_steps + 1)
        return problem, filled, Move(MoveKind.FILL, -1, gain)

    def model(self, state: SpanFitState[S]) -> Model[FullSpanFamily]:
        """Return the model of lowest cost so far."""
        return model_of(self.start, *state.search.best())


def model_of(start: Model[FullSpanFamily], indices: Integers, theta: Floats) -> Model[FullSpanFamily]:
    """Return the model of some functions in the order of their indices; L1 may leave zeros, which are no functions."""
    order = np.argsort(indices)
    order = order[theta[order] != 0]
    return Model(FullSpanFamily(start.family.basis, indices[order], start.family.n_hidden), theta[order])


def step_info(move: Move, cost: float, n_functions: int, n_steps: int, why_done: str) -> StepInfo:
    """Return a step with its metrics; there is no gradient that must vanish."""
    metrics = {
        "kind": float(move.kind),
        "index": float(move.function),
        "gain": move.gain,
        "n_functions": float(n_functions),
    }
    outcome = Converged(why_done) if why_done else Running()
    return StepInfo(cost, evaluations=n_steps, outcome=outcome, metrics=metrics)


# -- learners ---------------------------------------------------------------------------------------------------------
@declared(frozen=True)
class SpanLearner(Learner, Generic[S]):
    """A learner of the full-span model.

    The metrics of a step are its kind (the number of a `MoveKind`), the function's index, the gain and the number of
    functions.
    """

    tol: float = number(1e-4, "Stop when no move lowers the cost by as much, in nats per row.", above=0)
    l2: float = number(0.0, "Strength of the square of parameters of functions of one column.", least=0)
    l2_growth: float = number(1.0, "By what factor `l2` grows with every further column.", least=1)

    why_done: ClassVar[str] = "no move lowers the cost by {:g}"
    requires = (FullSpanFamily,)
    takes = frozenset({"partitions"})
    why_all_rows: ClassVar[str] = ", because what it takes to describe a function depends on their number"
    # What a learner without the setting has.
    mdl_scale: ClassVar[float] = 0.0
    l1: ClassVar[float] = 0.0
    dtype: ClassVar[str] = "float64"
    # Tables of a fit, those a checkpoint takes on top while it is written, and those that filled missing cells.
    n_tables: ClassVar[int] = 2
    n_saved: ClassVar[int] = 1
    n_fillers: ClassVar[int] = 0
    # Whether the table of its problem may stand on a device.
    on_device: ClassVar[bool] = True
    # Whether a step re-fits all parameters, so that filled cells need no re-fit of their own.
    refits_all: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check(self)

    # -- what a learner says ------------------------------------------------------------------------------------------
    def begin(self, problem: SpanProblem, point: SpanState, once: bool = False) -> S:
        """Return the search that starts at a point; `once` asks for no second path beside it."""
        raise NotImplementedError

    def advance(self, problem: SpanProblem, state: S) -> tuple[S, Move]:
        """Take one step, or none and say ``STOP``."""
        raise NotImplementedError

    def is_done(self, problem: SpanProblem, state: S) -> bool:
        """Whether the next step would be none."""
        raise NotImplementedError

    def minimise(self, problem: SpanProblem, point: SpanState) -> S:
        """Return where the steps from a point end: the M-step of a hidden variable."""
        state = self.begin(problem, point)
        while not self.is_done(problem, state):
            state, _ = self.advance(problem, state)
        return state

    # -- the contract of learners -------------------------------------------------------------------------------------
    def bind(self, model: Model[FullSpanFamily], data: Dataset) -> SpanFit[S]:
        """Count the rows in one table."""
        self.require(model)
        return SpanFit(self, model, data)

    def require(self, model: Model[FullSpanFamily]) -> None:
        """Refuse another kind of model, and a tolerance that the tables do not resolve."""
        check_supported(self, model)
        if self.tol < MIN_TOL[self.dtype]:
            least = MIN_TOL[self.dtype]
            reason = f"is less than {self.dtype} tables resolve"
            raise ArgumentError(reason, f"give at least {least:g}", argument="tol", value=self.tol)

    @property
    def penalties(self) -> Penalties:
        """The penalties of functions of one column."""
        return Penalties(self.l1, self.l2)

    def bind_rows(self, model: Model[FullSpanFamily], data: Dataset) -> tuple[SpanProblem, FilledRows | None]:
        """Return the problem of the rows under the penalties of this learner, and the rows if cells are missing.

        Hidden variables are columns whose cells are missing in every row.
        """
        basis, rows = model.family.basis, SpanRows.of(model.family, data.states, data.missing)
        self.require_memory(basis)
        codes = rows.x if rows.missing is None else np.where(rows.missing, 0, rows.x)
        strengths = self.mdl_scale, self.l1, self.l2, self.l2_growth
        problem = SpanProblem.build(basis, codes, data.weights, self.dtype, *strengths)
        return problem, None if rows.missing is None else FilledRows(problem, rows.x, rows.missing, data.weights)

    def costs(self, model: Model[FullSpanFamily], data: Dataset) -> dict[str, float]:
        """Return the cost of a fitted model, TA22 eq. 2.5, and the part of it that is ``KL(data || model)``.

        With missing cells the cost is minus the mean log-likelihood of the observed cells plus the penalties, and there
        is no divergence.
        """
        family, theta = model.family, model.theta
        costs = FunctionCosts.of_samples(
            family.basis, data.total_weight, self.mdl_scale, self.l1, self.l2, self.l2_growth
        )
        penalties = float((costs.lengths(family.functions) + costs.shrinkage(family.functions, theta)).sum())
        evidence = float(np.average(log_evidence(model, data), weights=data.weights))
        mean = evidence - family.probabilities(theta).log_partition
        divergence = negative_entropy(data) - mean
        known = {} if data.has_missing else {"divergence": divergence}
        return {"cost": divergence + penalties, **known}

    def data_means(self, model: Model[FullSpanFamily], data: Dataset) -> Floats:
        """Return the means of a model's functions in the data; missing cells and hidden variables as it fills them."""
        family, problem, rows = model.family, *self.bind_rows(model, data)
        if rows is not None and model.theta.size:
            problem = rows.filled_by(Filler(family.functions, model.theta), problem.new_table())
        means: Floats = problem.data_dual[family.functions].astype(np.float64)
        return means

    def memory(self, basis: SpanBasis, checkpoint: bool = False, missing: bool = False) -> float:
        """Return the bytes of the tables of a fit; everything else is small beside them."""
        n_tables = self.n_tables + self.n_saved * checkpoint + self.n_fillers * missing
        return float(n_tables * np.dtype(self.dtype).itemsize * basis.size)

    def require_memory(self, basis: SpanBasis, checkpoint: bool = False, missing: bool = False) -> None:
        """Raise `TooExpensiveError` if the tables of a fit do not fit."""
        smaller = "choose fewer variables"
        if self.refits_all:
            smaller = "use `learner='span-greedy'`, which takes a seventh of it, or fewer variables"
        elif checkpoint:
            smaller += ", or leave the checkpoint out, which takes a third of it"
        elif self.dtype == "float64":
            smaller += ", or `dtype='float32'`, which takes half"
        what = f"a full-span fit over {len(basis.variables)} variables ({basis.size:.3g} states)"
        require_memory(self.memory(basis, checkpoint, missing), what + " with a checkpoint" * checkpoint, smaller)


@declared(frozen=True)
class SelectingLearner(SpanLearner[S]):
    """A learner that chooses functions by what they save beyond their description length."""

    mdl_scale: float = number(1.0, "Factor on the description lengths of functions: less takes more of them.", least=0)  # type: ignore[misc]
    l1: float = number(0.0, "Strength of the absolute value of parameters.", least=0)  # type: ignore[misc]
    dtype: str = choice("float64", "Of the tables; float32 takes half the memory.", "float64", "float32")  # type: ignore[misc]


@LEARNERS.register("span-greedy", models=("full-span",))
@declared(frozen=True)
class SpanGreedy(SelectingLearner[SpanState]):
    """TA22's learning algorithm (Algorithm 1): one function at a time, always the move that gains most.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[x, y, x ^ y] for x in (0, 1) for y in (0, 1)] * 25
    >>> model = gb.FullSpanFamily.model({}, gb.Variables.binary(3))
    >>> gb.learning.run(gb.learning.SpanGreedy(), model, gb.Dataset.read(rows)).model.family.scopes
    ((0, 1, 2),)
    """

    def begin(self, problem: SpanProblem, point: SpanState, once: bool = False) -> SpanState:
        """Return the point itself: there is nothing else to keep."""
        return point

    def advance(self, problem: SpanProblem, state: SpanState) -> tuple[SpanState, Move]:
        """Make the best move, or none and say ``STOP``."""
        return greedy_step(problem, state, self.tol)

    def is_done(self, problem: SpanProblem, state: SpanState) -> bool:
        """Whether no move gains enough; that an append does is known without a look at the others."""
        can_append = state.append_index >= 0 and state.append_gain >= self.tol
        return not can_append and best_move(problem, state).gain < self.tol

    def minimise(self, problem: SpanProblem, point: SpanState) -> SpanState:
        """Make greedy moves while there are some."""
        return greedy_moves(problem, point, self.tol)


class Task(IntEnum):
    """What `SpanNewton` does next."""

    POOL = 0
    MOVE = 1
    REFIT = 2
    PRUNE = 3
    GREEDY = 4
    DONE = 5


@dataclass(frozen=True)
class NewtonState:
    """A search of `SpanNewton` between two steps.

    Parameters
    ----------
    point : SpanState
        Where the present path stands.
    task : Task
        What comes next.
    path : int
        0: functions are pooled; 1: greedy moves from nothing, and what follows them.
    changed : bool
        Whether functions changed since the last re-fit.
    best_indices, best_theta, best_cost
        The end of the first path, until both are merged.
    """

    point: SpanState
    task: Task
    path: int
    changed: bool = True
    best_indices: Integers = field(default_factory=NO_FUNCTIONS.copy)
    best_theta: Floats = field(default_factory=NO_THETA.copy)
    best_cost: float = np.inf

    def best(self) -> tuple[Integers, Floats]:
        """Return the functions and parameters of lowest cost so far: the first path may have ended lower."""
        if self.best_cost < self.point.cost:
            return self.best_indices, self.best_theta
        return self.point.best()

    def in_table(self, table: Table) -> Self:
        """Return the same with its dual copied into a table."""
        return replace(self, point=self.point.in_table(table))


@LEARNERS.register("span-newton", models=("full-span",))
@declared(frozen=True)
class SpanNewton(SelectingLearner[NewtonState]):
    """Two paths with Newton steps, merged where the lower one ends: never a higher cost than `SpanGreedy`.

    Each round of the first appends all functions that gain nearly as much as the best of them, takes a Newton step of
    all parameters, and removes functions that do not pay. Functions are so judged when the parameters of the others are
    nearly right, which usually ends lower than one move at a time, but not always: so the second path takes greedy
    moves from nothing to their end. The lower of both is given the functions of the other, and goes on with rounds,
    re-fits and moves until nothing gains.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[x, y, x ^ y] for x in (0, 1) for y in (0, 1)] * 25
    >>> model = gb.FullSpanFamily.model({}, gb.Variables.binary(3))
    >>> gb.learning.run(gb.learning.SpanNewton(), model, gb.Dataset.read(rows)).model.family.scopes
    ((0, 1, 2),)
    """

    def begin(self, problem: SpanProblem, point: SpanState, once: bool = False) -> NewtonState:
        """Return the search that starts with a re-fit, or from nothing with functions appended together."""
        fresh = not point.indices.size and not once
        return NewtonState(point, Task.POOL if fresh else Task.REFIT, int(once))

    def is_done(self, problem: SpanProblem, state: NewtonState) -> bool:
        """Whether both paths have ended."""
        return state.task is Task.DONE

    def minimise(self, problem: SpanProblem, point: SpanState) -> NewtonState:
        """Make greedy moves while there are some, and re-fit all parameters."""
        return NewtonState(refit(problem, greedy_moves(problem, point, self.tol)), Task.DONE, 1)

    def advance(self, problem: SpanProblem, state: NewtonState) -> tuple[NewtonState, Move]:
        """Take one step of the present task, or pass on to the next task that has something to do."""
        while state.task is not Task.DONE:
            before = state.point.cost
            state, move = _TASKS[state.task](self, problem, state)
            if move.kind is not MoveKind.STOP:
                return state, move._replace(gain=before - state.point.cost)
        return state, Move(MoveKind.STOP)

    def _pool(self, problem: SpanProblem, state: NewtonState) -> tuple[NewtonState, Move]:
        """Append functions together while that gains more than the best of them alone."""
        point = state.point
        if point.append_index >= 0 and point.append_gain >= self.tol:
            floor = max(self.tol, _GAIN_SHARE * point.append_gain)
            most = max(_MIN_POOL, int(_POOL_SHARE * point.indices.size))
            after = append_many(problem, point, problem.candidates(point.dual, point.indices, floor)[:most])
            if point.cost - after.cost >= point.append_gain:
                return replace(state, point=after, changed=True), Move(MoveKind.POOL)
            state = replace(state, point=refreshed(problem, point.dual, point.indices, point.theta))
        elif state.path == 0:
            return self._second_path(problem, state)
        return replace(state, task=Task.REFIT if state.changed else Task.MOVE), Move(MoveKind.STOP)

    def _move(self, problem: SpanProblem, state: NewtonState) -> tuple[NewtonState, Move]:
        """Make one greedy move, where rounds find nothing; without any, the path has ended."""
        point, move = greedy_step(problem, state.point, self.tol)
        if move.kind is not MoveKind.STOP:
            return replace(state, point=point, task=Task.POOL, changed=True), move
        if state.path == 0:
            return self._second_path(problem, state)
        return replace(state, task=Task.DONE), Move(MoveKind.KEEP)

    def _refit(self, problem: SpanProblem, state: NewtonState) -> tuple[NewtonState, Move]:
        after = refit(problem, state.point)
        kind = MoveKind.REFIT if after.cost < state.point.cost else MoveKind.STOP
        return replace(state, point=after, task=Task.PRUNE, changed=False), Move(kind)

    def _prune(self, problem: SpanProblem, state: NewtonState) -> tuple[NewtonState, Move]:
        after = prune(problem, state.point)
        kind = MoveKind.PRUNE if after.indices.size < state.point.indices.size else MoveKind.STOP
        return replace(state, point=after, task=Task.POOL), Move(kind)

    def _second_path(self, problem: SpanProblem, state: NewtonState) -> tuple[NewtonState, Move]:
        """Remember the end of the first path and start the second."""
        end = state.point
        again = refreshed(problem, end.dual, NO_FUNCTIONS, NO_THETA)
        second = NewtonState(again, Task.GREEDY, 1, True, end.indices, end.theta, end.cost)
        return second, Move(MoveKind.RESTART)

    def _greedy(self, problem: SpanProblem, state: NewtonState) -> tuple[NewtonState, Move]:
        """Make greedy moves to their end; then go on where the cost is lower, with the functions of the other path."""
        point, move = greedy_step(problem, state.point, self.tol)
        if move.kind is not MoveKind.STOP:
            return replace(state, point=point), move
        others, end = state.best_indices, point.cost
        if state.best_cost < end:
            others = point.indices
            point = refreshed(problem, point.dual, state.best_indices, state.best_theta)
        others = np.setdiff1d(others, point.indices)
        if others.size:
            after = append_many(problem, point, others)
            lower = after.cost < point.cost
            point = after if lower else refreshed(problem, point.dual, point.indices, point.theta)
        return NewtonState(point, Task.POOL, 1), Move(MoveKind.MERGE if point.cost < end else MoveKind.STOP)


# By the number of a `Task`.
_TASKS = (SpanNewton._pool, SpanNewton._move, SpanNewton._refit, SpanNewton._prune, SpanNewton._greedy)


@LEARNERS.register("span-l1", models=("full-span",))
@declared(frozen=True)
class SpanL1(SpanLearner[SpanState]):
    """All functions under L1 (TA22 section 5): a step appends those that gain most and re-fits all in use.

    The cost is convex, description is free. At the minimum of ``KL(p_d || p_theta) + l1 sum_y |theta_y|`` the means of
    functions in use differ from the data's by just ``l1``, towards zero parameters, and those of all other functions by
    no more. A function that breaks this by v lowers the cost by at least ``v^2 / 2`` along its own axis, because a mean
    moves no faster than its parameter (eq. 2.12): where no function gains as much as ``tol^2 / 2``, the conditions hold
    to `tol`, for all functions at once.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[x, y, x ^ y] for x in (0, 1) for y in (0, 1)] * 25
    >>> model = gb.FullSpanFamily.model({}, gb.Variables.binary(3))
    >>> model = gb.learning.run(gb.learning.SpanL1(l1=0.1), model, gb.Dataset.read(rows)).model
    >>> model.family.scopes, model.family.dual(model.theta).values[model.family.functions].round(2)
    (((0, 1, 2),), array([0.89]))
    """

    l1: float = number(0.01, "Strength of the absolute value of parameters, above 0.", least=0)  # type: ignore[misc]
    tol: float = number(1e-5, "To what a mean may differ from the data's by more than `l1`.", least=1e-6)

    why_done: ClassVar[str] = "no mean differs from the data's by `l1` and {:g} more"

    def require(self, model: Model[FullSpanFamily]) -> None:
        """Refuse a fit that nothing keeps from the noise."""
        super().require(model)
        if not self.l1 > 0:
            raise ArgumentError("must be above 0 with `learner='span-l1'`", argument="l1", value=self.l1)

    def begin(self, problem: SpanProblem, point: SpanState, once: bool = False) -> SpanState:
        """Return the minimum over the functions of a point; those whose parameters end at zero are no longer in use."""
        after = refit(problem, point)
        used = after.theta != 0
        if used.all():
            return after
        return rescanned(problem, after.dual, after.indices[used], after.theta[used], after.log_partition)

    def advance(self, problem: SpanProblem, state: SpanState) -> tuple[SpanState, Move]:
        """Append the best functions, one by one, and re-fit all; or do nothing and say ``STOP``."""
        if self.is_done(problem, state):
            return state, Move(MoveKind.STOP)
        point = state
        for _ in range(max(_MIN_BATCH, int(_BATCH_SHARE * state.indices.size))):
            point = apply_move(problem, point, append_move(problem, point))
            if self.is_done(problem, point):
                break
        after = self.begin(problem, point)
        return after, Move(MoveKind.APPEND, -1, state.cost - after.cost)

    def is_done(self, problem: SpanProblem, state: SpanState) -> bool:
        """Whether no function that is not in use breaks its condition by more than the tolerance."""
        return state.append_index < 0 or state.append_gain < 0.5 * self.tol**2


@LEARNERS.register("span-dense", models=("full-span",))
@declared(frozen=True)
class SpanDense(SpanLearner[DenseState]):
    """All functions under L2, none selected: one Newton step at a time; description lengths play no part.

    Stops after a step that promises to lower the cost by no more than `tol`, or than 1e-9 where `tol` is above it.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[x, y, x ^ y] for x in (0, 1) for y in (0, 1)] * 25
    >>> model = gb.FullSpanFamily.model({}, gb.Variables.binary(3))
    >>> result = gb.learning.run(gb.learning.SpanDense(l2=0.01), model, gb.Dataset.read(rows))
    >>> result.model.family.functions, result.converged
    (array([7]), True)
    """

    n_tables: ClassVar[int] = 14
    n_saved: ClassVar[int] = 2
    n_fillers: ClassVar[int] = 2
    refits_all: ClassVar[bool] = True
    on_device: ClassVar[bool] = False

    def require(self, model: Model[FullSpanFamily]) -> None:
        """Refuse a fit that nothing keeps from the noise."""
        super().require(model)
        if not self.l2 > 0:
            raise ArgumentError(
                "must be above 0 with `learner='span-dense'`, where shrinkage alone keeps the model from the noise",
                "give `l2`, or use `learner='span-newton'`",
                argument="l2",
                value=self.l2,
            )

    def begin(self, problem: SpanProblem, point: SpanState, once: bool = False) -> DenseState:
        """Return the search that begins with the parameters of a point, in its table."""
        theta = np.zeros(point.dual.size - 1)
        theta[point.indices - 1] = point.theta
        return DenseState(theta, point.dual, point.cost)

    def advance(self, problem: SpanProblem, state: DenseState) -> tuple[DenseState, Move]:
        """Take one Newton step, or none and say ``STOP``."""
        if not state.done:
            after = DenseCost(problem, self.n_tables).lower(state, min(self.tol, LAST_DENSE_STEP))
            if after is not state:
                return after, Move(MoveKind.REFIT, -1, state.cost - after.cost)
        return replace(state, done=True), Move(MoveKind.STOP)

    def is_done(self, problem: SpanProblem, state: DenseState) -> bool:
        """Whether the last step promised too little for another one."""
        return state.done


# -- hidden variables -------------------------------------------------------------------------------------------------
class HiddenState(NamedTuple):
    """A fit with hidden variables between two rounds.

    Parameters
    ----------
    indices, theta : ndarray of shape (k,)
        The active functions of all variables, and their parameters.
    cost : float
        Cost of the visible variables, penalties included: it never rises.
    n_steps : int
        Rounds so far.
    key : Key
        Which rows hidden values begin around.
    """

    indices: Integers
    theta: Floats
    cost: float
    n_steps: int
    key: Key


@LEARNERS.register("span-hidden", models=("full-span",))
@declared(frozen=True)
class SpanHidden(Learner):
    """Rounds of expectation-maximisation around another learner, for full-span models with hidden variables.

    A round fits the filled rows by the learner, from the functions of the round before, and fills them anew.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rng = np.random.default_rng(0)
    >>> rows = (rng.random((300, 5)) < rng.choice([0.1, 0.9], (300, 1))).astype(int)
    >>> model = gb.FullSpanFamily.model({}, gb.Variables.binary(5), hidden=(2,))
    >>> gb.learning.run(gb.learning.SpanHidden(), model, gb.Dataset.read(rows), 0).converged
    True
    """

    learner: SpanLearner[SearchState] = positional(
        kw_only=False, default=free("span-newton", "What a round does with the filled rows.", doc="str or learner")
    )
    tol: float = number(1e-5, "Stop when a round lowers the cost by less, in nats per row.", least=0)

    requires = SpanLearner.requires
    takes = SpanLearner.takes
    why_all_rows: ClassVar[str] = SpanLearner.why_all_rows

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "learner", as_learner(self.learner))
        if not isinstance(self.learner, SpanLearner):
            raise ArgumentError("must choose functions of a full-span model", argument="learner", value=self.learner)

    def bind(self, model: Model[FullSpanFamily], data: Dataset) -> HiddenFit:
        """Append columns whose cells are all missing."""
        self.learner.require(model)
        if not model.n_hidden:
            raise ArgumentError("the model has no hidden variable", "use `n_components` above 1, or another learner")
        return HiddenFit(self, model, data)

    @property
    def penalties(self) -> Penalties:
        """The penalties of functions of one column."""
        return self.learner.penalties

    def start(self, model: Model[FullSpanFamily], data: Dataset, rng: np.random.Generator) -> Model[FullSpanFamily]:
        """Return the model itself: hidden values differ by the rows around which they start."""
        return model


class HiddenFit(Fit[HiddenState]):
    """Rounds of expectation-maximisation: hidden variables are columns whose cells are missing in every row."""

    def __init__(self, settings: SpanHidden, start: Model[FullSpanFamily], data: Dataset):
        self.settings, self.start, self.data = settings, start, data
        problem, rows = settings.learner.bind_rows(start, data)
        assert rows is not None  # in which all hidden variables are missing
        self.rows, self.table, self.entropy = rows, problem.new_table(), negative_entropy(data)

    def init(self, key: Key, theta: Floats | None = None) -> tuple[HiddenState, StepInfo]:
        """Start around rows drawn at random, one for each value of each hidden variable; `theta` is not used."""
        return HiddenState(NO_FUNCTIONS, NO_THETA, np.inf, 0, key), StepInfo()

    def step(self, state: HiddenState) -> tuple[HiddenState, StepInfo]:
        """Fit the filled rows, from the functions of the round before, and fill them anew."""
        learner, rows, table = self.settings.learner, self.rows, self.table
        problem = self._filled(state)
        point = learner.minimise(problem, refreshed(problem, table, state.indices, state.theta)).point
        indices, theta = point.indices, point.theta
        cost = float(problem.lengths(indices).sum()) + problem.shrinkage(indices, theta)
        cost += self.entropy - rows.mean_log_probability(self._probabilities(indices, theta))
        gain, after = state.cost - cost, HiddenState(indices, theta, cost, state.n_steps + 1, state.key)
        why = f"converged after {after.n_steps} rounds: the last lowers the cost by less than {self.settings.tol:g}"
        done = gain < self.settings.tol
        return after, step_info(Move(MoveKind.FILL, -1, gain), cost, theta.size, after.n_steps, why if done else "")

    def _filled(self, state: HiddenState) -> SpanProblem:
        """Return the problem of the rows as the model fills them; before the first round by nearness to drawn rows."""
        if state.n_steps:
            filler = digest_of(state.indices, state.theta)
            return self.rows.filled(filler, lambda: self._probabilities(state.indices, state.theta))
        data, sizes = self.data, self.start.variables.sizes
        missing, rng = self.rows.missing[:, : data.n_variables], state.key.generator()
        near = partial(near_some_rows, sizes, data.states, missing, data.weights, rng)
        return self.rows.filled(digest_of(state.key.words), near)

    def _probabilities(self, indices: Integers, theta: Floats) -> Table:
        """Return the probabilities of all states, in the table of the fit."""
        self.rows.whole.probabilities(self.table, indices, theta)
        return self.table

    def model(self, state: HiddenState) -> Model[FullSpanFamily]:
        """Return the model of all variables, the hidden ones last."""
        return model_of(self.start, state.indices, state.theta)
