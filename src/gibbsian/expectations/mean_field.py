"""Naive mean field: of all distributions with independent variables, one of lowest free energy (YK15).

Compiled for pairwise models; others go row by row through their factors, which is slow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, NamedTuple

import numpy as np

from gibbsian.arrays import Floats, Slice
from gibbsian.backends.numba import clamped as kernels
from gibbsian.backends.threads import map_slices
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.errors import ArgumentError
from gibbsian.estimate import Estimate
from gibbsian.expectations.base import EXPECTATIONS, BoundExpectation, NoSamples, Starts
from gibbsian.expectations.convergence import START_SCALE, Ending, sweep, views
from gibbsian.expectations.rows import MaskedRows, row_by_row
from gibbsian.inference.cut_sets import factorised_statistics
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.factors import FactorGraph
from gibbsian.models.ising import Ising, IsingFamily, is_ising
from gibbsian.resources import row_blocks
from gibbsian.rng import Key, RandomState, as_generator
from gibbsian.settings import check, declared, flag, number, whole
from gibbsian.startup import logsumexp, softmax


@EXPECTATIONS.register("mean-field", consistent=False, sampled=False)
@declared(frozen=True)
class MeanField:
    """Statistics of the factorised Q that lowers the free energy of YK15, ``m_i = tanh(field_i)`` for spins.

    ``F(Q) = sum_h Q(h) log Q(h) - sum_h Q(h) theta . S(v, h)`` is an upper bound on minus log Z, or, for rows with
    missing cells h, on minus their log-evidence. One factor of Q at a time is set to its best, so that no update raises
    F. There is no sampling, but an error that is not known: strong or many couplings make it large, and below its
    critical temperature Q settles in one valley. A call goes on from the Q of the call before.

    Notes
    -----
    ``parts["free_energy"]`` of an estimate is F, on average over the rows, and ``log_partition`` minus it;
    ``"largest_change"`` and ``"n_sweeps"`` say how the slowest row ended.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.5, 0.0], [0.3])
    >>> free = gb.expectations.MeanField().bind(model)
    >>> estimate, _ = free(model.theta, free.init(model.theta, gb.rng.Key.of(0)))
    >>> truth = gb.inference.exact(model)
    >>> bool(abs(estimate.value - truth.moments).max() < 0.3)
    True
    >>> float(estimate.parts["log_partition"]) < truth.log_partition, estimate.is_exact
    (True, False)
    >>> rows = gb.Dataset.read([[1, float("nan")]], coding="spin")
    >>> clamped = gb.expectations.MeanField().bind(model, rows)    # one missing cell: mean field is exact, tanh(0.3)
    >>> clamped(model.theta, clamped.init(model.theta, gb.rng.Key.of(0)))[0].value.round(4).tolist()
    [1.0, 0.2913, 0.2913]
    """

    needs_starts: ClassVar[bool] = False

    max_iter: int = whole(1000, "Maximum number of sweeps over the variables in one call.", least=1)
    tol: float = number(1e-10, "Done when no probability (mean of a spin) changes by more in a sweep.", least=0)
    warn: bool = flag(True, "Whether to warn when `max_iter` ends the updates.")
    n_init: int = whole(
        10, "Number of random starts of the first call; that of the lowest free energy is kept.", least=1
    )

    def __post_init__(self) -> None:
        check(self)

    def bind(
        self, model: Model[DiscreteFamily], clamp: Rows | None = None, starts: Starts | None = None
    ) -> BoundExpectation[Floats]:
        """Bind a family and rows; `starts` are not used."""
        family, rows = model.family, MaskedRows.of(model.family, clamp)
        if family.variables.real:
            raise ArgumentError("mean field has no formula for continuous variables", "use 'exact' or 'monte-carlo'")
        if is_ising(family):
            return BoundMeanField(self, rows, len(rows.cells), _SpinQ(family, rows))
        if rows.all_missing:
            return self._bind_factors(model)
        return row_by_row(model, rows, self._bind_factors)

    def _bind_factors(self, model: Model[DiscreteFamily]) -> BoundMeanField:
        family = model.family
        return BoundMeanField(self, MaskedRows.of(family, None), int(np.sum(family.variables.sizes)), _FactorQ(family))


class Lowered(NamedTuple):
    """What all rows add to the statistics, the mean entropy of their Q, its fields, and how the sweeps ended."""

    statistics: Floats
    entropy: float
    fields: Floats
    n_sweeps: int
    change: float


@dataclass(frozen=True, eq=False)
class BoundMeanField(NoSamples):
    """Mean field of one family and set of rows; the state is Q: fields of spins, or logits of many values."""

    settings: MeanField
    rows: MaskedRows
    n_fields: int
    lower: Callable[[Floats, Floats, int, float], Lowered]

    def init(self, theta: Floats, key: Key) -> Floats:
        """Start Q near the uniform distribution, several times, and keep the best."""
        settings, rng = self.settings, key.generator()
        starts = START_SCALE * rng.standard_normal((settings.n_init, self.n_fields))
        if settings.n_init == 1:
            only: Floats = starts[0]
            return only
        ends = [self.lower(theta, start, settings.max_iter, settings.tol) for start in starts]
        return max(ends, key=lambda end: float(theta @ end.statistics) + end.entropy).fields

    def __call__(self, theta: Floats, state: Floats, starts: Starts | None = None) -> tuple[Estimate, Floats]:
        """Lower the free energy from where Q was left, and return the expectation under Q."""
        settings = self.settings
        end = self.lower(theta, state, settings.max_iter, settings.tol)
        statistics = self.rows.constant + end.statistics
        bound = float(theta @ statistics) + end.entropy
        ending = Ending("mean field", end.n_sweeps, end.change, settings.max_iter, settings.tol)
        parts = {"log_partition": Estimate(bound, None), "free_energy": -bound, **ending.parts(settings.warn)}
        return Estimate(statistics, None, parts), end.fields


@dataclass(frozen=True, eq=False)
class _SpinQ:
    """Lowers the free energy of rows of spins."""

    family: IsingFamily
    rows: MaskedRows

    def __call__(self, theta: Floats, fields: Floats, max_iter: int, tol: float) -> Lowered:
        means, own, entropies, n_sweeps, change = solve_spins(
            self.family.ising(theta), self.rows, fields, max_iter, tol
        )
        statistics = factorised_statistics(self.family, means, self.rows.shares)
        return Lowered(statistics, float(self.rows.shares @ entropies), own, n_sweeps, change)


def solve_spins(
    form: Ising, rows: MaskedRows, fields: Floats, max_iter: int, tol: float
) -> tuple[Floats, Floats, Floats, int, float]:
    """Lower the free energy of each row of spins.

    Returns the means of all spins, the fields of the missing cells, the entropy of each row, and how the sweeps ended.
    """
    means: Floats = np.asarray(2.0 * rows.states - 1.0, np.float64)
    own: Floats = fields.copy()
    means[rows.missing] = np.tanh(fields)
    lower = kernels.dense_mean_field if form.graph.is_dense else kernels.sparse_mean_field
    system = (rows.cells, *spin_system(form), max_iter, tol)

    def run(part: Slice) -> tuple[Floats, Floats, Floats]:
        ended: tuple[Floats, Floats, Floats] = lower(
            means[part], own, rows.pointers[part.start : part.stop + 1], *system
        )
        return ended

    n_updates = float(len(own)) * max(1.0, form.graph.degrees.mean()) * 4.0
    ends = map_slices(run, len(means), n_updates)
    parts: list[Floats] = [np.concatenate(part) for part in zip(*ends, strict=True)]
    entropies, changes, sweeps = parts
    return means, own, entropies, int(sweeps.max(initial=0)), float(changes.max(initial=0.0))


def spin_system(form: Ising) -> tuple[Floats, ...]:
    """Return biases and couplings of the spins as kernels take them: a matrix of a dense graph, else along edges."""
    if form.graph.is_dense:
        return form.fields, form.graph.matrix(form.couplings)
    indptr, heads, ids = form.graph.csr
    return form.fields, indptr, heads, form.couplings[ids]


def mean_field_evidence(
    model: Model[IsingFamily], data: Dataset, rng: RandomState = None, max_iter: int = 1000, tol: float = 1e-10
) -> Floats:
    """Return for each state a lower bound on its log-weight summed over the missing cells, minus YK15's free energy."""
    if data.missing is None:
        return model.log_weights(data.states)
    rows = MaskedRows(data.states, data.missing, data.weights, np.zeros_like(model.theta))
    # a field for each variable, the same in every row, so that equal rows have equal bounds
    fields = START_SCALE * as_generator(rng).standard_normal(model.n_variables)[rows.cells]
    form = model.family.ising(model.theta)
    means, _, entropies, _, _ = solve_spins(form, rows, fields, max_iter, tol)
    first, second = form.graph.edges.T
    weights: Floats = form.constant + means @ form.fields
    for block in row_blocks(data.n_states, form.graph.n_edges):
        weights[block] += (means[block, first] * means[block, second]) @ form.couplings
    return weights + entropies


@dataclass(frozen=True, eq=False)
class _FactorQ:
    """Lowers the free energy of all variables of a family through its factors."""

    family: DiscreteFamily

    def __call__(self, theta: Floats, logits: Floats, max_iter: int, tol: float) -> Lowered:
        q = IndependentFactors(self.family.factors(theta), logits)
        n_sweeps, change = q.settle(max_iter, tol)
        return Lowered(self.family.statistics_from(q.marginal), q.entropy, q.logits, n_sweeps, change)


class IndependentFactors:
    """Independent variables, the probabilities of each improved in turn given those of the others.

    Parameters
    ----------
    factors : FactorGraph
        The distribution that is approximated.
    logits : ndarray
        Log-probabilities of the values of all variables, up to a constant for each; copied.
    """

    def __init__(self, factors: FactorGraph, logits: Floats):
        self.factors = factors
        self.logits = np.array(logits)
        self._own = views(self.logits, factors.cardinalities.tolist())
        self._probabilities = [softmax(own) for own in self._own]

    @property
    def entropy(self) -> float:
        """The entropy of all variables."""
        both = zip(self._own, self._probabilities, strict=True)
        return sum(float(logsumexp(own) - probabilities @ own) for own, probabilities in both)

    def settle(self, max_iter: int, tol: float) -> tuple[int, float]:
        """Update one variable after the other until none changes by more than `tol`; return sweeps and last change."""
        return sweep(self._update, range(self.factors.n_variables), max_iter, tol)

    def _update(self, i: int) -> float:
        self._own[i][:] = sum(self._expected_table(number, i) for number in self.factors.factors_of[i])
        probabilities = softmax(self._own[i])
        change = float(np.abs(probabilities - self._probabilities[i]).max())
        self._probabilities[i] = probabilities
        return change

    def _expected_table(self, number: int, kept: int) -> Floats:
        """Mean log-weight of a factor for each value of one of its variables."""
        factor = self.factors.factors[number]
        table = factor.table
        for axis in range(len(factor.nodes) - 1, -1, -1):
            if factor.nodes[axis] != kept:
                table = np.tensordot(table, self._probabilities[factor.nodes[axis]], axes=(axis, 0))
        return table

    def marginal(self, nodes: tuple[int, ...]) -> Floats:
        """Return the joint probabilities of some variables."""
        return reduce(np.multiply.outer, [self._probabilities[i] for i in nodes])
