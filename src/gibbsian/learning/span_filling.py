"""Missing cells by expectation-maximisation: rows are filled by the model, the model is fitted to the filled rows.

A fill spreads the weight of each incomplete row over its completions, with the probabilities that the present model
gives them (the E-step), and re-fits all parameters. The steps in between are those of the learner for complete
data, on the filled rows (together with the re-fit the M-step). The cost on filled rows is an upper bound of the cost
on the observed cells, ``-<ln P(observed cells)> + sum_y r_y``, and spreading the rows anew makes it tight; no move,
no re-fit and no spreading raises it. So the cost on the observed cells never rises from fill to fill. The first fill
is by a model of the complete rows: filled cells look as the model that filled them, which hides functions that it
lacks. Where the fit ends, no move lowers the bound by `tol`, and no fill by a tenth of it; with missing cells there
may be several such points, and none is promised to be the lowest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gibbsian.backends.numba.axes import transform
from gibbsian.data import Dataset
from gibbsian.errors import DataError
from gibbsian.inference.span_posterior import completion_states
from gibbsian.learning.span_base import Change, SpanLearner, begun, refreshed
from gibbsian.learning.span_newton import refit
from gibbsian.learning.span_problem import SpanProblem
from gibbsian.models.base import Array
from gibbsian.models.families.full_span import FullSpanFamily
from gibbsian.models.families.span_basis import SpanBasis
from gibbsian.models.rows import patterns_of
from gibbsian.resources import row_blocks
from gibbsian.startup import xlogy

# Changes of the active set between two fills: at least so many, and this share of it.
_LEAST_BATCH, _BATCH_SHARE = 4, 0.5
# A fill that gains less than this share of the tolerance is the last: fills gain ever less, but many together.
_SETTLED = 0.1


@dataclass(frozen=True)
class FillProgress:
    """A fit with missing cells between two steps.

    Parameters
    ----------
    inner : Any
        The fit to the filled rows.
    filler_indices, filler_theta : (k,)
        The model that filled the cells; where it is empty, columns were filled independently.
    n_fills : int
        How often they were filled; 0 while the complete rows are fitted.
    n_changes : int
        Changes of the active set since then.
    settled : bool
        Whether neither the last fill nor the steps after it gained enough.
    """

    inner: Any
    filler_indices: Array
    filler_theta: Array
    n_fills: int
    n_changes: int = 0
    settled: bool = False

    @property
    def point(self) -> Any:
        """Where the fit to the filled rows stands."""
        return self.inner.point

    @property
    def is_full(self) -> bool:
        """Whether the active set has changed so much that cells are to be filled anew."""
        return self.n_fills > 0 and self.n_changes >= max(_LEAST_BATCH, _BATCH_SHARE * self.point.indices.size)

    def best(self) -> tuple[Array, Array]:
        """Return the functions and parameters of lowest cost so far."""
        return self.inner.best()


@dataclass(frozen=True, eq=False)
class SpreadRows:
    """Rows with missing cells, as a model has filled them.

    Parameters
    ----------
    codes : (m, n) of int
        The rows; what stands in missing cells is not read.
    missing : (m, n) of bool
        Which cells are missing.
    counts : (m,)
        How often each row was seen, or its weight.
    whole : SpanProblem
        The problem of all rows; its table is overwritten by every fill.
    problem : SpanProblem
        What is being fitted: the complete rows at first, then all of them as they are filled.
    """

    codes: Array
    missing: Array
    counts: Array
    whole: SpanProblem
    problem: SpanProblem

    @classmethod
    def of(cls, learner: SpanLearner, basis: SpanBasis, data: Dataset) -> Self:
        """Return the rows of a dataset before they are filled."""
        assert data.missing is not None
        return cls.unfilled(learner, basis, data.states, data.missing, data.weights)._complete()

    @classmethod
    def unfilled(cls, learner: SpanLearner, basis: SpanBasis, codes: Array, missing: Array, counts: Array) -> Self:
        """Return rows of codes whose table is still to be filled."""
        whole = learner.problem_of(basis, np.where(missing, 0, codes), counts)
        return cls(codes, missing, counts, whole, whole)

    # -- steps --------------------------------------------------------------------------------------------------------
    def begin(self, learner: SpanLearner, indices: Array, theta: Array) -> FillProgress:
        """Start on the complete rows; without any, on columns filled alone. Newton takes one path only."""
        nothing, filled = (np.empty(0, np.int64), np.empty(0)), self.problem is self.whole
        inner = begun(learner, self.problem, *nothing)
        if indices.size or filled:
            inner = learner.begin(self.problem, refreshed(self.problem, inner.point.dual, indices, theta), once=True)
        return FillProgress(inner, *nothing, int(filled))

    def advance(self, learner: SpanLearner, inner: FillProgress) -> tuple[Self, FillProgress, Change]:
        """Take a step of the learner; fill when it has none or has changed much; stop when that gains nothing either.

        Functions are chosen well where the cells are filled well, hence the fills on the way.
        """
        if inner.is_full:
            return self._fill(learner, inner)
        after, change = learner.advance(self.problem, inner.inner)
        if change.kind != "stop":
            changes = inner.n_changes + np.setxor1d(after.point.indices, inner.point.indices).size
            settled = inner.settled and abs(change.gain) < learner.tol
            return self, replace(inner, inner=after, n_changes=changes, settled=settled), change
        if inner.settled:
            return self, inner, change
        return self._fill(learner, inner)

    def is_done(self, learner: SpanLearner, inner: FillProgress) -> bool:
        """Whether neither a step nor a fill gains enough."""
        return inner.settled and not inner.is_full and learner.is_done(self.problem, inner.inner)

    def _fill(self, learner: SpanLearner, inner: FillProgress) -> tuple[Self, FillProgress, Change]:
        point, first = inner.point, inner.n_fills == 0
        rows = self.filled(self._filler(point.dual, point.indices, point.theta))
        after = refreshed(rows.problem, point.dual, point.indices, point.theta)
        if not learner.refits_all:
            after = refit(rows.problem, after)
        gain = 0.0 if first else point.cost - after.cost  # the cost of the complete rows is that of other data
        progress = FillProgress(
            learner.begin(rows.problem, after, once=True),
            point.indices,
            point.theta,
            inner.n_fills + 1,
            settled=not first and gain < _SETTLED * learner.tol,
        )
        return rows, progress, Change("fill", -1, gain)

    def restored(self, learner: SpanLearner, fresh: FillProgress, loaded: FillProgress) -> tuple[Self, FillProgress]:
        """Return what a checkpoint held in the table of a fresh start, the cells filled as they were."""
        rows, table = self, fresh.point.dual
        if loaded.n_fills:
            rows = self.filled(self._filler(table, loaded.filler_indices, loaded.filler_theta))
        return rows, replace(loaded, inner=loaded.inner.in_table(table))

    # -- fills --------------------------------------------------------------------------------------------------------
    def _complete(self) -> Self:
        """Return the problem of the complete rows, in the table that will be that of all rows; without any, of all."""
        keep = np.asarray(~self.missing.any(axis=1))
        n_samples = float(self.counts[keep].sum())
        if n_samples < 1.0:
            table = self.whole.uniform_dual()
            self._independent(table)
            return self.filled(table)
        negative_entropy = self._spread(self.whole.data_dual, keep)
        # what a function costs is shared by fewer rows
        penalty = self.whole.penalty.scaled(self.whole.n_samples / n_samples)
        part = replace(self.whole, n_samples=n_samples, negative_entropy=negative_entropy, penalty=penalty)
        return replace(self, problem=part)

    def _filler(self, table: Array, indices: Array, theta: Array) -> Array:
        """Write the probabilities by which cells are filled into a table; a model without functions knows nothing."""
        if indices.size:
            FullSpanFamily(self.whole.basis, indices).probabilities(theta, out=table)
        else:
            self._independent(table)
        return table

    def _independent(self, table: Array) -> None:
        """Overwrite a table with the product of the shares that each column's values have among its present cells."""
        table[:1] = 1.0
        size = 1
        for i in reversed(range(self.codes.shape[1])):  # the last changes fastest
            seen = ~self.missing[:, i]
            weights = np.bincount(self.codes[seen, i], self.counts[seen], minlength=self.whole.basis.variables.sizes[i])
            if not weights.sum() > 0:
                raise DataError(f"column {i} has no observed cell", "drop it")
            shares = weights / weights.sum()
            for value in reversed(range(shares.size)):  # the first last: it is what the others are made of
                np.multiply(table[:size], shares[value], out=table[value * size : (value + 1) * size])
            size *= shares.size

    def filled(self, probabilities: Array) -> Self:
        """Return the rows filled by given probabilities of all states."""
        negative_entropy = self._spread(probabilities, np.ones(len(self.counts), bool))
        problem = replace(self.whole, negative_entropy=negative_entropy)
        return replace(self, whole=problem, problem=problem)

    def _spread(self, probabilities: Array, keep: Array) -> float:
        """Overwrite the data's dual with that of filled rows; return their negative entropy.

        That is ``sum_r s_r sum_x q_r(x) ln q_r(x)`` over rows of share s and completions of share q: what turns the
        cross entropy of the table and a model into a bound of the cost on the observed cells. The entropy of the rows
        themselves is no part of it: rows that miss different cells overlap, so they have no distribution from
        which a divergence could be taken.
        """
        table = self.whole.data_dual
        table.flags.writeable = True
        table.fill(0.0)
        shares = self.counts[keep] / self.counts[keep].sum()
        negative_entropy = 0.0
        for rows, places in self._completions(keep):
            # a complete row is its own completion, whatever its probability
            alone = places.shape[1] == 1
            weights = np.ones(places.shape) if alone else probabilities[places].astype(np.float64)
            totals = weights.sum(axis=1, keepdims=True)
            # a row that the model holds for impossible, to the last digit, is spread evenly
            weights = np.divide(weights, totals, out=np.full_like(weights, 1.0 / places.shape[1]), where=totals > 0)
            own = shares[rows]
            negative_entropy += float(own @ xlogy(weights, weights).sum(axis=1))
            np.add.at(table, places, (own[:, None] * weights).astype(table.dtype))
        transform(table, self.whole.basis.shape)
        table.flags.writeable = False
        return negative_entropy

    def mean_log_probability(self, probabilities: Array) -> float:
        """Return the mean over rows of the log-probability of their present cells, from that of all states."""
        shares = self.counts / self.counts.sum()
        every = np.ones(len(shares), bool)
        return sum(
            float(shares[rows] @ np.log(probabilities[places].astype(np.float64).sum(axis=1)))
            for rows, places in self._completions(every)
        )

    def _completions(self, keep: Array) -> Iterator[tuple[Array, Array]]:
        """Give blocks of rows that miss the same cells, and the indices of the completions of each."""
        codes, missing = self.codes[keep], self.missing[keep]
        for rows, pattern in patterns_of(codes, missing):
            for block in row_blocks(len(rows), int(self.whole.basis.shape[pattern].prod()), least_rows=1):
                yield rows[block], completion_states(self.whole.basis, codes[rows[block]], pattern)
