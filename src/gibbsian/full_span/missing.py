"""Missing cells by expectation-maximisation: rows are filled by the model, the model is fitted to the filled rows.

A fill spreads the weight of each incomplete row over its completions, with the probabilities that the present model
gives them (the E-step), and re-fits all parameters. The steps in between are those of the algorithm for complete
data, on the filled rows (together with the re-fit the M-step). The cost on filled rows is an upper bound of the cost
on the observed cells, ``-<ln P(observed cells)> + sum_y r_y``, and spreading the rows anew makes it tight; no move,
no re-fit and no spreading raises it. So the cost on the observed cells never rises from fill to fill. The first fill
is by a model of the complete rows: filled cells look as the model that filled them, which hides functions that it
lacks. Where the fit ends, no move lowers the bound by epsilon, and no fill by a tenth of it; with missing cells there
may be several such points, and none is promised to be the lowest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp, xlogy

from gibbsian.backends.numba.axes import transform
from gibbsian.errors import DataError
from gibbsian.full_span.dense import Dense, DenseProgress
from gibbsian.full_span.greedy import Greedy, SpanProgress, refreshed
from gibbsian.full_span.newton import REFIT, Newton, NewtonProgress, refit
from gibbsian.full_span.problem import SpanProblem
from gibbsian.full_span.trace import SpanStep
from gibbsian.learners import LearnerState
from gibbsian.models.full_span import fill_log_weights, fill_probabilities
from gibbsian.models.span_basis import SpanBasis
from gibbsian.models.span_completions import completion_places, patterns_of

# Changes of the active set between two fills: at least so many, and this share of it.
_LEAST_BATCH, _BATCH_SHARE = 4, 0.5
# A fill that gains less than this share of epsilon is the last: fills gain ever less, but many together.
_SETTLED = 0.1


@dataclass(frozen=True, eq=False)
class IncompleteRows:
    """Rows with missing cells, and how often each was seen.

    Parameters
    ----------
    basis : SpanBasis
        The variables.
    codes : (m, n) of int
        The rows; what stands in missing cells is not read.
    missing : (m, n) of bool
        Which cells are missing.
    counts : (m,)
        How often each row was seen, or its weight.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanBasis
    >>> from gibbsian.full_span.missing import IncompleteRows
    >>> holes = np.array([[False, False], [False, True]])
    >>> rows = IncompleteRows(SpanBasis((2, 2)), np.array([[0, 0], [1, 0]]), holes, np.array([3.0, 1.0]))
    >>> table = np.zeros(4)
    >>> _ = rows.fill(np.full(4, 0.25), table)
    >>> table
    array([0.75 , 0.   , 0.125, 0.125])
    """

    basis: SpanBasis
    codes: np.ndarray
    missing: np.ndarray
    counts: np.ndarray

    def complete(self) -> IncompleteRows:
        """Return the rows that miss no cell."""
        whole = ~self.missing.any(axis=1)
        return replace(self, codes=self.codes[whole], missing=self.missing[whole], counts=self.counts[whole])

    def independent(self, table: np.ndarray) -> None:
        """Overwrite a table with the product of the shares that each column's values have among its present cells."""
        table[:1] = 1.0
        size = 1
        for i, q in enumerate(self.basis.cardinalities):
            seen = ~self.missing[:, i]
            weights = np.bincount(self.codes[seen, i], self.counts[seen], minlength=q)
            if not weights.sum() > 0:
                raise DataError(f"column {i} has no observed cell", "drop it")
            table[: size * q] = np.outer(table[:size].copy(), weights / weights.sum()).ravel()
            size *= q

    def fill(self, probabilities: np.ndarray, table: np.ndarray) -> float:
        """Overwrite `table` with the shares of all states when each row is spread over its completions.

        Returns
        -------
        negative_entropy : float
            ``sum_r s_r sum_x q_r(x) ln q_r(x)`` over rows of share s and completions of share q: what turns the cross
            entropy of the table and a model into a bound of the cost on the observed cells. The entropy of the rows
            themselves is no part of it: rows that miss different cells overlap, so they have no distribution from
            which a divergence could be taken.
        """
        table.fill(0.0)
        shares = self.counts / self.counts.sum()
        negative_entropy = 0.0
        for rows, places in self._completions():
            # a complete row is its own completion, whatever its probability
            alone = places.shape[1] == 1
            weights = np.ones(places.shape) if alone else probabilities[places].astype(np.float64)
            totals = weights.sum(axis=1, keepdims=True)
            # a row that the model holds for impossible, to the last digit, is spread evenly
            weights = np.divide(weights, totals, out=np.full_like(weights, 1.0 / places.shape[1]), where=totals > 0)
            own = shares[rows]
            negative_entropy += float(own @ xlogy(weights, weights).sum(axis=1))
            np.add.at(table, places, (own[:, None] * weights).astype(table.dtype))
        return negative_entropy

    def mean_log_weight(self, log_weights: np.ndarray) -> float:
        """Return the mean over rows of the logarithm of their completions' weights together."""
        shares = self.counts / self.counts.sum()
        return sum(
            float(shares[rows] @ logsumexp(log_weights[places].astype(np.float64), axis=1))
            for rows, places in self._completions()
        )

    def _completions(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give blocks of rows that miss the same cells, and the indices of the completions of each."""
        for rows, pattern in patterns_of(self.codes, self.missing):
            for part, places in completion_places(self.basis, self.codes[rows], pattern):
                yield rows[part], places


@dataclass(frozen=True)
class FillProgress:
    """A fit with missing cells between two steps.

    Parameters
    ----------
    inner : SpanProgress, NewtonProgress or DenseProgress
        The fit to the filled rows.
    filler_indices, filler_theta : (k,)
        The model that filled the cells; where it is empty, columns were filled independently.
    n_fills : int
        How often they were filled; 0 while the complete rows are fitted.
    n_changes : int
        Changes of the active set since then.
    settled : bool
        Whether neither the last fill nor the steps after it gained enough.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Greedy, SpanBasis
    >>> from gibbsian.full_span.missing import FillAndFit, IncompleteRows, empty_problem
    >>> holes = np.array([[False, False], [False, True]])
    >>> rows = IncompleteRows(SpanBasis((2, 2)), np.array([[0, 0], [1, 0]]), holes, np.array([30.0, 10.0]))
    >>> FillAndFit(Greedy(), rows).init(empty_problem(rows)).progress.n_fills
    0
    """

    inner: Any
    filler_indices: np.ndarray
    filler_theta: np.ndarray
    n_fills: int
    n_changes: int
    settled: bool

    @property
    def indices(self) -> np.ndarray:
        """The active functions."""
        return self.inner.indices

    @property
    def theta(self) -> np.ndarray:
        """Their parameters."""
        return self.inner.theta

    @property
    def cost(self) -> float:
        """The bound of the cost on the observed cells."""
        return self.inner.cost


@dataclass(frozen=True)
class FillAndFit:
    """An algorithm for complete data, and fills of the missing cells in between.

    Newton goes one road only: ends of two roads, filled differently, have no common measure on the way.

    Parameters
    ----------
    learner : Greedy, Newton or Dense
        What learns from filled rows.
    rows : IncompleteRows
        The data.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Greedy, SpanBasis, run
    >>> from gibbsian.full_span.missing import FillAndFit, IncompleteRows, empty_problem
    >>> codes, holes = np.array([[0, 0], [1, 1], [1, 0]]), np.array([[0, 0], [0, 0], [0, 1]], bool)
    >>> rows = IncompleteRows(SpanBasis((2, 2)), codes, holes, np.array([30.0, 30.0, 20.0]))
    >>> learner = FillAndFit(Greedy(), rows)
    >>> state, trace, converged = run(learner, learner.init(empty_problem(rows)))
    >>> converged, {step.kind for step in trace.steps} >= {"append", "fill"}
    (True, True)
    """

    learner: Greedy | Newton | Dense
    rows: IncompleteRows

    def init(self, problem: SpanProblem) -> LearnerState:
        """Start from the uniform distribution, on the complete rows; without any, on columns filled alone."""
        complete = self.rows.complete()
        nothing = np.empty(0, np.int64), np.empty(0)
        if complete.counts.sum() >= 1.0:
            state = self.learner.init(_of_complete_rows(problem, complete))
            return LearnerState(state.problem, FillProgress(state.progress, *nothing, 0, 0, False))
        table = problem.uniform_dual()
        self.rows.independent(table)
        filled = self._filled(problem, table)
        del table
        state = self.learner.init(filled)
        inner = started(self.learner, span_of(state.progress), road=1)
        return LearnerState(state.problem, FillProgress(inner, *nothing, 1, 0, False))

    def step(self, state: LearnerState) -> tuple[LearnerState, SpanStep]:
        """Take a step of the learner; fill when it has none or has changed much; stop when that gains nothing either.

        Functions are chosen well where the cells are filled well, hence the fills on the way.
        """
        progress = state.progress
        batch = max(_LEAST_BATCH, _BATCH_SHARE * progress.indices.size)
        if progress.n_fills and progress.n_changes >= batch:
            return self._fill(state)
        inner, step = self.learner.step(LearnerState(state.problem, progress.inner))
        if step.kind != "stop":
            changes = progress.n_changes + (step.kind in ("append", "remove", "prune"))
            settled = progress.settled and abs(step.gain) < self.learner.epsilon
            after = replace(progress, inner=inner.progress, n_changes=changes, settled=settled)
            return LearnerState(inner.problem, after), step
        if progress.settled:
            return state, step
        return self._fill(state)

    def _fill(self, state: LearnerState) -> tuple[LearnerState, SpanStep]:
        span, basis = span_of(state.progress.inner), state.problem.basis
        first = isinstance(state.problem, CompletePart)
        before = state.problem.whole if first else state.problem
        problem = self._filled(before, self._filler(basis, span.dual, span.indices, span.theta))
        after = refreshed(problem, span.dual, span.indices, span.theta)
        if not isinstance(self.learner, Dense):  # whose own steps re-fit all parameters
            after = refit(problem, after)
        gain = 0.0 if first else span.cost - after.cost  # the cost of the complete rows is that of other data
        progress = FillProgress(
            started(self.learner, after, road=1),
            span.indices,
            span.theta,
            state.progress.n_fills + 1,
            0,
            not first and gain < _SETTLED * self.learner.epsilon,
        )
        return LearnerState(problem, progress), SpanStep("fill", -1, gain, after.cost, after.indices.size)

    def _filler(self, basis: SpanBasis, table: np.ndarray, indices: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Write the probabilities by which cells are filled into a table; a model without functions knows nothing."""
        if indices.size:
            fill_probabilities(table, basis, indices, theta)
        else:
            self.rows.independent(table)
        return table

    def resumed(self, problem: SpanProblem, progress: FillProgress, scratch: np.ndarray) -> LearnerState:
        """Fill the cells as they were filled before an interruption; `scratch` is a table to work in."""
        if progress.n_fills == 0:
            return LearnerState(problem, progress)
        whole = problem.whole if isinstance(problem, CompletePart) else problem
        filler = self._filler(problem.basis, scratch, progress.filler_indices, progress.filler_theta)
        return LearnerState(self._filled(whole, filler), progress)

    def _filled(self, problem: SpanProblem, probabilities: np.ndarray) -> SpanProblem:
        """Return the problem of the filled rows, in the table of the one before."""
        return replace(problem, negative_entropy=_spread(self.rows, probabilities, problem))


@dataclass(frozen=True, eq=False)
class CompletePart(SpanProblem):
    """The problem of the complete rows alone, in the table that will be that of all rows.

    Parameters
    ----------
    whole : SpanProblem
        The problem of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Greedy, SpanBasis
    >>> from gibbsian.full_span.missing import FillAndFit, IncompleteRows, empty_problem
    >>> holes = np.array([[False, False], [False, True]])
    >>> rows = IncompleteRows(SpanBasis((2, 2)), np.array([[0, 0], [1, 0]]), holes, np.array([30.0, 10.0]))
    >>> part = FillAndFit(Greedy(), rows).init(empty_problem(rows)).problem
    >>> part.n_samples, part.whole.n_samples
    (30.0, 40.0)
    """

    whole: Any = None

    def undescribed(self) -> Self:
        """Return the same problem, and that of all rows, with description lengths of zero."""
        return replace(super().undescribed(), whole=self.whole.undescribed())


def _of_complete_rows(problem: SpanProblem, rows: IncompleteRows) -> CompletePart:
    """Return the problem of complete rows; what a function costs is shared by fewer of them."""
    n_samples = float(rows.counts.sum())
    penalty = problem.penalty.scaled(problem.n_samples / n_samples)
    parts = {part.name: getattr(problem, part.name) for part in fields(problem)}
    negative_entropy = _spread(rows, problem.data_dual, problem)
    told = {"n_samples": n_samples, "negative_entropy": negative_entropy, "penalty": penalty, "whole": problem}
    return CompletePart(**{**parts, **told})


def _spread(rows: IncompleteRows, probabilities: np.ndarray, problem: SpanProblem) -> float:
    """Overwrite the data's dual with that of filled rows; return their negative entropy."""
    table = problem.data_dual
    table.flags.writeable = True
    negative_entropy = rows.fill(probabilities, table)
    transform(table, problem.basis.shape)
    table.flags.writeable = False
    return negative_entropy


def observed_cost(
    rows: IncompleteRows, problem: SpanProblem, table: np.ndarray, indices: np.ndarray, theta: np.ndarray
) -> float:
    """Return minus the mean log-likelihood of the observed cells plus the penalties, exactly; overwrites a table.

    Parameters
    ----------
    rows : IncompleteRows
        The data.
    problem : SpanProblem
        Its penalties.
    table : (|X|,), float64 or float32
        To work in.
    indices, theta : (k,)
        The model.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanBasis
    >>> from gibbsian.full_span.missing import IncompleteRows, empty_problem, observed_cost
    >>> holes = np.array([[False, False], [False, True]])
    >>> rows = IncompleteRows(SpanBasis((2, 2)), np.array([[0, 0], [1, 0]]), holes, np.array([1.0, 1.0]))
    >>> nothing = np.empty(0, int), np.empty(0)
    >>> round(observed_cost(rows, empty_problem(rows), np.empty(4), *nothing) / float(np.log(2)), 6)  # two bits, one
    1.5
    """
    log_partition = fill_probabilities(table, problem.basis, indices, theta)
    fill_log_weights(table, problem.basis, indices, theta)
    penalties = float(problem.penalties(indices).sum()) + problem.shrinks(indices, theta)
    return log_partition - rows.mean_log_weight(table) + penalties


def empty_problem(rows: IncompleteRows, **settings: Any) -> SpanProblem:
    """Return the problem of incomplete rows before they are filled; settings as in `SpanProblem.build`.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanBasis
    >>> from gibbsian.full_span.missing import IncompleteRows, empty_problem
    >>> rows = IncompleteRows(SpanBasis((2,)), np.array([[0], [1]]), np.array([[False], [True]]), np.array([3.0, 1.0]))
    >>> empty_problem(rows).n_samples
    4.0
    """
    return SpanProblem.build(np.where(rows.missing, 0, rows.codes), rows.counts, rows.basis.cardinalities, **settings)


def span_of(progress: Any) -> SpanProgress | DenseProgress:
    """Return the table and the active functions inside the progress of any algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Newton, SpanProblem
    >>> from gibbsian.full_span.missing import span_of
    >>> span_of(Newton().init(SpanProblem.build(np.array([[0], [1]]), [3, 5], (2,))).progress).dual
    array([1., 0.])
    """
    progress = getattr(progress, "inner", progress)
    return getattr(progress, "span", progress)


def started(
    learner: Greedy | Newton | Dense, span: SpanProgress | DenseProgress, road: int = 0
) -> SpanProgress | NewtonProgress | DenseProgress:
    """Return the progress of an algorithm that begins with given functions and parameters.

    On road 0 Newton tries afterwards to start from nothing as well; on road 1 it does not.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Newton, SpanProblem
    >>> from gibbsian.full_span.greedy import uniform_start
    >>> from gibbsian.full_span.missing import started
    >>> started(Newton(), uniform_start(SpanProblem.build(np.array([[0], [1]]), [3, 5], (2,)))).road
    0
    """
    if isinstance(learner, Dense):
        return DenseProgress.started(span)
    assert isinstance(span, SpanProgress)
    if isinstance(learner, Greedy):
        return span
    return NewtonProgress(span, REFIT, road, 0, np.empty(0, np.int64), np.empty(0), np.inf)
