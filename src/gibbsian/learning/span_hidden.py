"""Hidden variables of a full-span model, learned by expectation-maximisation, where the joint table is small.

A hidden variable is a column whose cells are missing in every row. With q the rows spread over the hidden values as the
present model has them,

    KL(data || p'(x)) <= KL(q || p'(x, h))   for every model p', with equality at the present one,

so any step that lowers the right-hand side plus penalties, a fit of the joint table, lowers the cost of the
visible variables at least as much: every round is one fit that goes on from the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.backends.numba.kmeans_plusplus import kmeans_plusplus
from gibbsian.data import Dataset
from gibbsian.diagnostics.moments import DataMoments
from gibbsian.errors import ArgumentError
from gibbsian.inference.span_posterior import SpanRows
from gibbsian.learning.around import Around
from gibbsian.learning.base import LEARNERS, LearnerState, as_learner
from gibbsian.learning.optimizers import StepInfo
from gibbsian.learning.span_base import Change, SpanLearner, in_use, refreshed, step_info
from gibbsian.learning.span_filling import SpreadRows
from gibbsian.learning.span_problem import negative_entropy
from gibbsian.models.base import Array, Model
from gibbsian.models.families.full_span import FullSpanFamily
from gibbsian.models.families.span_basis import SpanBasis
from gibbsian.settings import check, declared, free, number, positional

# How much less likely a class is, at the start, with each variable in which a row differs from its centre.
_NEARNESS = 1.0
# By how much less likely a second hidden variable looks at the columns of the first.
_LEFT_ALONE = 0.99
# A dependence that stands for none.
_TINY = 1e-9


@dataclass(frozen=True)
class HiddenProgress:
    """A fit with hidden variables between two rounds.

    Parameters
    ----------
    indices, theta : (k,)
        The active functions of all variables, and their parameters.
    dual : (|X|,)
        A table to work in.
    cost : float
        Cost of the visible variables, penalties included: it never rises.
    n_steps : int
        Rounds so far.
    done : bool
        Whether the last round gained too little for another one.
    """

    indices: Array
    theta: Array
    dual: Array
    cost: float
    n_steps: int = 0
    done: bool = False

    @property
    def verdict(self) -> str:
        """How a fit that is done ended."""
        return f"converged after {self.n_steps} rounds" if self.done else ""


@LEARNERS.register("span-hidden", models=("full-span",))
@declared(frozen=True)
class SpanHidden(Around):
    """Rounds of expectation-maximisation around another learner, for full-span models with hidden variables.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rng = np.random.default_rng(0)
    >>> rows = (rng.random((300, 5)) < rng.choice([0.1, 0.9], (300, 1))).astype(int)
    >>> model = gb.FullSpanFamily.model({}, gb.Variables.binary(5), hidden=(2,))
    >>> gb.learning.run(gb.learning.SpanHidden(), model, gb.Dataset.read(rows), 0).converged
    True
    """

    learner: Any = positional(
        kw_only=False, default=free("span-newton", "What a round does with the filled rows.", doc="str or learner")
    )
    tol: float = number(1e-5, "Stop when a round lowers the cost by less, in nats per row.", least=0)

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "learner", as_learner(self.learner))
        if not isinstance(self.learner, SpanLearner):
            raise ArgumentError("must choose functions of a full-span model", argument="learner", value=self.learner)

    def start(self, model: Model[FullSpanFamily], data: Dataset, rng: np.random.Generator) -> Model[FullSpanFamily]:
        """Return the model itself: hidden values differ by the rows around which they start."""
        return model

    def init(self, model: Model[FullSpanFamily], data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Start around rows drawn at random, one for each value of each hidden variable."""
        self.learner.require(model)
        if not model.n_hidden:
            raise ArgumentError("the model has no hidden variable", "use `n_components` above 1, or another learner")
        bound = SpanRows.of(model.family, data.states, data.missing)
        codes, missing = bound.x, bound.missing
        assert missing is not None
        rows = SpreadRows.unfilled(self.learner, model.family.basis, codes, missing, data.weights)
        near = _near_some_rows(model.variables.sizes, data.states, missing[:, : data.n_variables], data.weights, rng)
        rows = rows.filled(near)
        nothing = np.empty(0, np.int64), np.empty(0)
        constant = negative_entropy(data)
        return LearnerState((rows, constant), HiddenProgress(*nothing, rows.problem.uniform_dual(), np.inf))

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Fit the filled rows, from the functions of the round before, and fill them anew."""
        (rows, entropy), before = state.problem, state.progress
        problem, table = rows.problem, before.dual
        point = self.learner.lowered(problem, refreshed(problem, table, before.indices, before.theta))
        indices, theta = point.indices, point.theta
        FullSpanFamily(problem.basis, indices).probabilities(theta, out=table)
        cost = float(problem.penalties(indices).sum()) + problem.shrinks(indices, theta)
        cost += entropy - rows.mean_log_probability(table)
        gain = before.cost - cost
        progress = HiddenProgress(indices, theta, table, cost, before.n_steps + 1, bool(gain < self.tol))
        why = f"the last lowers the cost by less than {self.tol:g}"
        info = step_info(Change("fill", -1, gain), cost, indices.size, progress.n_steps, progress.verdict, why)
        return LearnerState((rows.filled(table), entropy), progress), info

    def fitted(self, model: Model[FullSpanFamily], state: LearnerState) -> Model[FullSpanFamily]:
        """Return the model of all variables, the hidden ones last."""
        indices, theta = in_use(state.progress.indices, state.progress.theta)
        return Model(FullSpanFamily(model.family.basis, indices, model.n_hidden), theta)

    def moments(self, model: Model[FullSpanFamily], state: LearnerState) -> DataMoments:
        """Return the means of the model's functions in the rows as it has filled them."""
        (rows, _), (indices, _) = state.problem, in_use(state.progress.indices, state.progress.theta)
        return DataMoments(rows.problem.data_dual[indices], np.full(indices.size, rows.problem.n_samples))

    def costs(self, model: Model[FullSpanFamily], data: Dataset) -> dict[str, float]:
        """Return the cost of a fitted model of the visible columns, and the divergence in it."""
        return self.learner.costs(model, data)

    def require_memory(self, basis: SpanBasis, checkpoint: bool = False, missing: bool = False) -> None:
        """Raise `TooExpensiveError` where the tables of a fit do not fit."""
        self.learner.require_memory(basis, checkpoint, missing)

    def restored(self, state: LearnerState, progress: HiddenProgress) -> LearnerState:
        """Fill the hidden cells by the model of a checkpoint; before the first round they are as they were drawn."""
        if not progress.n_steps:
            return LearnerState(state.problem, progress)
        (rows, entropy), table = state.problem, progress.dual
        FullSpanFamily(rows.problem.basis, progress.indices).probabilities(progress.theta, out=table)
        return LearnerState((rows.filled(table), entropy), progress)


# -- where hidden variables begin -------------------------------------------------------------------------------------
def _near_some_rows(
    sizes: tuple[int, ...], codes: Array, missing: Array, counts: Array, rng: np.random.Generator
) -> Array:
    """Return a table over all states: a hidden value is the likelier, the nearer a row is to one drawn for it.

    Rows without missing cells are drawn where there are some.
    """
    shown, hidden = sizes[: codes.shape[1]], sizes[codes.shape[1] :]
    whole = ~missing.any(axis=1)
    possible = (whole & (counts > 0)) if (counts[whole] > 0).any() else counts > 0
    states, shares = np.where(missing, 0, codes)[possible], counts[possible] / counts[possible].sum()
    order = np.lexsort(states.T[::-1])  # by index, whatever the order of the rows
    begin = _one_beginning if len(hidden) == 1 else _apart
    table = np.ones((int(np.prod(shown)), 1))
    for n_values, (centres, look) in zip(hidden, begin(states[order], shares[order], shown, hidden, rng), strict=True):
        near = np.zeros((len(table), n_values))
        near[:, : len(centres)] = np.column_stack([_nearness(shown, centre, look) for centre in centres])
        table = (table[:, :, None] * near[:, None, :]).reshape(len(table), -1)
    return table.ravel()


def _nearness(sizes: tuple[int, ...], centre: Array, look: Array) -> Array:
    """Return a number for every state of the columns that falls with each column in which it differs from a row."""
    near = np.ones(1)
    for q, value, weight in zip(sizes, centre, look, strict=True):
        near = np.outer(near, np.where(np.arange(q) == value, 1.0, np.exp(-_NEARNESS * weight))).ravel()
    return near


Beginning = tuple[Array, Array]
"""Rows, one for each value of a hidden variable, and how much it looks at each column."""


def _one_beginning(
    states: Array, shares: Array, shown: tuple[int, ...], hidden: tuple[int, ...], rng: np.random.Generator
) -> Iterator[Beginning]:
    """Give the beginning of a single hidden variable: rows drawn at random, all columns alike."""
    rows = rng.choice(len(states), min(hidden[0], len(states)), replace=False, p=shares)
    yield states[rows], np.ones(len(shown))


def _apart(
    states: Array, shares: Array, shown: tuple[int, ...], hidden: tuple[int, ...], rng: np.random.Generator
) -> Iterator[Beginning]:
    """Give the beginnings of several hidden variables, which would else all find the same cause.

    Each looks at the columns that depend on one column, drawn rather not among those that earlier ones look at, and has
    rows that differ there (k-means++).
    """
    values = np.column_stack([states[:, i] == value for i, q in enumerate(shown) for value in range(q)]).astype(float)
    related = _dependence(values, shares, shown)
    chances = related.sum(axis=0)
    for n_values in hidden:
        own = related[rng.choice(len(shown), p=chances / chances.sum())]
        chances = chances * (1.0 - _LEFT_ALONE * own / own.max())
        look = len(shown) * own / own.sum()
        points, seed = values * np.repeat(np.sqrt(look), shown), int(rng.integers(2**31 - 1))
        n_centres = min(n_values, len(states))
        yield states[kmeans_plusplus(points, shares, n_centres, seed)], look


def _dependence(values: Array, shares: Array, shown: tuple[int, ...]) -> Array:
    """Return a number for each two columns, 0 for independent ones: squared correlations of their values, added up.

    No column depends more on itself than on the next, for else a hidden variable begins, and ends, as its copy.
    """
    means, starts = shares @ values, np.cumsum([0, *shown[:-1]])
    squares = np.square((values.T * shares) @ values - np.outer(means, means))
    squares = np.add.reduceat(np.add.reduceat(squares, starts, axis=0), starts, axis=1)
    scales = np.sqrt(np.diag(squares)) + _TINY
    related = squares / np.outer(scales, scales)
    np.fill_diagonal(related, 0.0)
    np.fill_diagonal(related, related.max(axis=0))
    return related + _TINY
