"""Naive mean field: of all distributions with independent variables, one of lowest free energy (YK15).

The free phase is the clamped one of a single row without present cells. Compiled for pairwise models; others go row by
row through their factors, which is slow.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.numba import clamped as kernels
from gibbsian.backends.parallel import in_slices
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.estimate import Estimate
from gibbsian.expectations.clamped import CLAMPED, ClampedRows, spin_system
from gibbsian.expectations.convergence import START_SCALE, ending, sweep, views
from gibbsian.expectations.legacy import EXPECTATIONS, Rebuilt
from gibbsian.inference.cut_sets import factorised_statistics
from gibbsian.models.base import Array, DiscreteFamily, Family, Model
from gibbsian.models.factors import FactorGraph
from gibbsian.models.ising import IsingFamily, is_ising
from gibbsian.resources import row_blocks
from gibbsian.rng import RandomState, as_generator
from gibbsian.settings import check, declared, flag, number, whole
from gibbsian.startup import logsumexp, softmax


class FreeCells(NamedTuple):
    """Rows, the cells of each that Q is a distribution of, and what each row counts for."""

    states: Array
    pointers: Array
    cells: Array
    shares: Array

    @classmethod
    def all_of(cls, n: int) -> FreeCells:
        """Return one row of n cells that are all free."""
        return cls(np.zeros((1, n), np.int8), np.array([0, n]), np.arange(n), np.ones(1))

    @classmethod
    def of(cls, rows: ClampedRows) -> FreeCells:
        """Return the missing cells of incomplete rows."""
        assert rows.data is not None
        return cls(rows.data.states, rows.pointers, rows.cells, rows.shares)


class Solution(NamedTuple):
    """The means of spins with free cells filled in, their fields, the rows' entropies, and how the sweeps ended."""

    means: Array
    fields: Array
    entropies: Array
    n_sweeps: int
    change: float


class Settled(NamedTuple):
    """What all rows add to the statistics, the mean entropy of their Q, its fields, and how it settled."""

    statistics: Array
    entropy: float
    fields: Array
    n_sweeps: int
    change: float


class FactorisedState(NamedTuple):
    """The rows, and the Q of their missing cells: fields of spins (means are their tanh), or logits of many values."""

    rows: Rebuilt[ClampedRows]
    fields: Array


@EXPECTATIONS.register("mean-field", consistent=False, sampled=False)
@declared(frozen=True)
class MeanField:
    """Statistics of the factorised Q that lowers the free energy, ``m_i = tanh(field_i)`` for spins.

    One factor at a time is set to its best, so that no update raises the free energy; minus that is a lower bound on
    log Z, given as the part `log_partition`. There is no sampling, but an error that is not known: strong or many
    couplings make it large, and below its critical temperature Q settles in one valley. A call goes on from the Q of
    the call before.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.5, 0.0], [0.3])
    >>> expectation = gb.expectations.MeanField()
    >>> estimate, _ = expectation(model, expectation.init(model, None, np.random.default_rng(0)))
    >>> truth = gb.inference.exact(model)
    >>> bool(abs(estimate.value - truth.moments).max() < 0.3)
    True
    >>> float(estimate.parts["log_partition"]) < truth.log_partition, estimate.is_exact
    (True, False)
    >>> estimate.parts["converged"], estimate.is_exact
    (True, False)
    """

    max_iter: int = whole(1000, "Sweeps over the variables in one call, at most.", least=1)
    tol: float = number(1e-10, "Done when no probability (mean of a spin) changes by more in a sweep.", least=0)
    warn: bool = flag(True, "Whether to warn when `max_iter` ends the updates.")
    n_init: int = whole(
        10, "Random starts of the first call; the one that ends with the lowest free energy is kept.", least=1
    )

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model[DiscreteFamily], data: Dataset | None, rng: np.random.Generator) -> Array:
        """Start Q near the uniform distribution, several times, and keep the best; `data` is not used."""
        rows = FreeCells.all_of(model.n_variables)
        starts = START_SCALE * rng.standard_normal((self.n_init, _n_fields(model.family, rows.cells)))
        ends = [settle(model, rows, start, self.max_iter, self.tol) for start in starts]
        return max(ends, key=lambda end: _bound(model, end.statistics, end.entropy)).fields

    def __call__(self, model: Model[DiscreteFamily], state: Array) -> tuple[Estimate, Array]:
        """Return the expectation under Q and where Q has come to."""
        settled = settle(model, FreeCells.all_of(model.n_variables), state, self.max_iter, self.tol)
        notes = ending("mean field", settled.n_sweeps, settled.change, self.max_iter, self.tol, self.warn)
        return _estimate(model, settled.statistics, settled.entropy, notes), settled.fields


@CLAMPED.register("mean-field", consistent=False)
@declared(frozen=True)
class ClampedMeanField:
    """Expectations under the factorised Q of each row's missing cells that lowers the free energy of YK15.

    ``F(Q) = sum_h Q(h) log Q(h) - sum_h Q(h) theta . S(v, h) / T`` is an upper bound on minus the log-evidence of a
    row, and with log Z added on ``-log P(v)``. One factor of Q at a time is set to its best (for spins,
    ``m_i = tanh(field_i)``), so that no sweep raises F; Q goes on from call to call.

    Notes
    -----
    ``parts["free_energy"]`` is the average of F over the data, ``log_partition`` minus it; ``"largest_change"``
    and ``"n_sweeps"`` say how the slowest row ended.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations import ClampedMeanField
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = ClampedMeanField()
    >>> data = gb.Dataset.read([[1, float("nan")]], coding="spin")
    >>> estimate, _ = expectation(model, expectation.init(model, data, np.random.default_rng(0)))
    >>> estimate.value.round(4).tolist()                       # one missing cell: mean field is exact, tanh(0.5)
    [1.0, 0.4621, 0.4621]
    """

    max_iter: int = whole(100, "Sweeps over the missing cells of a row in one call, at most.", least=1)
    tol: float = number(1e-8, "Done when no mean changes by more in a sweep.", least=0)

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model[DiscreteFamily], data: Dataset, rng: np.random.Generator) -> FactorisedState:
        """Start Q near the uniform distribution."""
        rows = ClampedRows.of(model, data)
        return FactorisedState(Rebuilt(rows), START_SCALE * rng.standard_normal(_n_fields(model.family, rows.cells)))

    def __call__(self, model: Model[Any], state: FactorisedState) -> tuple[Estimate, FactorisedState]:
        """Lower the free energy from where the last call left Q, and return the expectation under Q."""
        rows = state.rows.value
        settled = Settled(np.zeros_like(model.theta), 0.0, state.fields, 0, 0.0)
        if rows.data is not None:
            settled = settle(model, FreeCells.of(rows), state.fields, self.max_iter, self.tol)
        notes = {"largest_change": settled.change, "n_sweeps": settled.n_sweeps}
        estimate = _estimate(model, rows.constant + settled.statistics, settled.entropy, notes)
        return estimate, state._replace(fields=settled.fields)


def mean_field_evidence(
    model: Model[Any], data: Dataset, rng: RandomState = None, max_iter: int = 1000, tol: float = 1e-10
) -> Array:
    """Return for each state a lower bound on its log-weight summed over the missing cells, minus YK15's free energy."""
    if data.missing is None:
        return model.log_weights(data.states)
    cells = np.nonzero(data.missing)[1].copy()
    pointers = np.concatenate([[0], np.cumsum(data.missing.sum(axis=1))])
    # a field for each variable, the same in every row, so that equal rows have equal bounds
    fields = START_SCALE * as_generator(rng).standard_normal(model.n_variables)[cells]
    rows = FreeCells(data.states, pointers, cells, data.weights)
    solution = solve(model.family, model.theta, rows, fields, max_iter, tol)
    form, means = model.family.ising(model.theta), solution.means
    first, second = form.graph.edges.T
    weights = form.constant + means @ form.fields
    for block in row_blocks(data.n_states, form.graph.n_edges):
        weights[block] += (means[block, first] * means[block, second]) @ form.couplings
    return weights + solution.entropies


def _bound(model: Model[Family], statistics: Array, entropy: float) -> float:
    """Minus the free energy of Q."""
    return float(model.theta @ statistics) + entropy


def _estimate(model: Model[Any], statistics: Array, entropy: float, notes: dict[str, Any]) -> Estimate:
    bound = _bound(model, statistics, entropy)
    return Estimate(statistics, None, {"log_partition": Estimate(bound, None), "free_energy": -bound, **notes})


def _n_fields(family: DiscreteFamily, cells: Array) -> int:
    """How many numbers the Q of some cells has."""
    return len(cells) if is_ising(family) else int(np.array(family.variables.sizes)[cells].sum())


def settle(model: Model[DiscreteFamily], rows: FreeCells, fields: Array, max_iter: int, tol: float) -> Settled:
    """Lower the free energy of all rows from the Q with these fields."""
    family, theta = model.family, model.theta
    if family.variables.real:
        raise ArgumentError("mean field has no formula for continuous variables", "use 'exact' or 'monte-carlo'")
    if not is_ising(family):
        return _row_by_row(family, theta, rows, fields, max_iter, tol)
    means, fields, entropies, n_sweeps, change = solve(family, theta, rows, fields, max_iter, tol)
    statistics = factorised_statistics(family, means, rows.shares)
    return Settled(statistics, float(rows.shares @ entropies), fields, n_sweeps, change)


def solve(family: IsingFamily, theta: Array, rows: FreeCells, fields: Array, max_iter: int, tol: float) -> Solution:
    """Lower the free energy of each row of spins."""
    form, means, own = family.ising(theta), 2.0 * rows.states - 1.0, fields.copy()
    row = np.repeat(np.arange(len(means)), np.diff(rows.pointers))
    means[row, rows.cells] = np.tanh(fields)
    lower: Any = kernels.dense_mean_field if form.graph.is_dense else kernels.sparse_mean_field
    system = (rows.cells, *spin_system(form), max_iter, tol)
    ends = in_slices(
        lambda part: lower(means[part], own, rows.pointers[part.start : part.stop + 1], *system),
        len(means),
        float(len(own)) * max(1.0, form.graph.degrees.mean()) * 4.0,
    )
    entropies, changes, sweeps = map(np.concatenate, zip(*ends, strict=True))
    return Solution(means, own, entropies, int(sweeps.max(initial=0)), float(changes.max(initial=0.0)))


def _row_by_row(
    family: DiscreteFamily, theta: Array, rows: FreeCells, logits: Array, max_iter: int, tol: float
) -> Settled:
    """Mean field on the distribution of each row's free cells."""
    statistics, entropy, change, n_sweeps, ends = np.zeros_like(theta), 0.0, 0.0, 0, []
    sizes = np.array(family.variables.sizes)
    starts = np.concatenate([[0], np.cumsum(sizes[rows.cells])])[rows.pointers]
    for row, share in enumerate(rows.shares):
        free = rows.cells[rows.pointers[row] : rows.pointers[row + 1]]
        present = np.setdiff1d(np.arange(sizes.size), free)
        given = family.given(present, rows.states[row][present])
        rest, _ = given.parameters(theta)
        q = IndependentFactors(given.family.factors(rest), logits[starts[row] : starts[row + 1]])
        sweeps, last = q.settle(max_iter, tol)
        statistics += share * given.statistics(given.family.statistics_from(q.marginal))
        entropy += share * q.entropy
        change, n_sweeps = max(change, last), max(n_sweeps, sweeps)
        ends.append(q.logits)
    return Settled(statistics, entropy, np.concatenate(ends), n_sweeps, change)


class IndependentFactors:
    """Independent variables, the probabilities of each improved in turn given those of the others.

    Parameters
    ----------
    factors : FactorGraph
        The distribution that is approximated.
    logits : ndarray
        Log-probabilities of the values of all variables, up to a constant for each; copied.
    """

    def __init__(self, factors: FactorGraph, logits: Array):
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

    def _expected_table(self, number: int, kept: int) -> Array:
        """Mean log-weight of a factor for each value of one of its variables."""
        factor = self.factors.factors[number]
        table = factor.table
        for axis in range(len(factor.nodes) - 1, -1, -1):
            if factor.nodes[axis] != kept:
                table = np.tensordot(table, self._probabilities[factor.nodes[axis]], axes=(axis, 0))
        return table

    def marginal(self, nodes: tuple[int, ...]) -> Array:
        """Return the joint probabilities of some variables."""
        return reduce(np.multiply.outer, [self._probabilities[i] for i in nodes])
