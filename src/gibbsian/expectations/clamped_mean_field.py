"""The clamped phase by mean field: a factorised law over the missing cells of each row (YK15's free energy)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.numba import clamped as kernels
from gibbsian.backends.parallel import threads_for
from gibbsian.data import Dataset
from gibbsian.domain import SPIN
from gibbsian.errors import ArgumentError
from gibbsian.expectations.base import Estimate, Rebuilt
from gibbsian.expectations.clamped import CLAMPED, ClampedRows
from gibbsian.expectations.factor_messages import FactorisedLaw
from gibbsian.inference.cut_sets import factorised_statistics, to_spins
from gibbsian.inference.missing import clamp
from gibbsian.models import Model, PairwiseModel
from gibbsian.settings import check, declared, number, whole

# The scale of the random fields at which Q starts: enough to leave a saddle, too little to choose a valley.
START_SCALE = 0.1


class FactorisedState(NamedTuple):
    """The rows, and the Q of their missing cells: fields of spins (means are their tanh), or logits of many values.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations import ClampedMeanField
    >>> data = gb.Dataset.read([[1, float("nan")], [-1, 1]], coding="spin")
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> ClampedMeanField().init(model, data, np.random.default_rng(0)).fields.shape
    (1,)
    """

    rows: Rebuilt[ClampedRows]
    fields: np.ndarray


class Solution(NamedTuple):
    """Spins' means with missing cells filled in, the cells' fields, the rows' entropies, and how the sweeps ended."""

    means: np.ndarray
    fields: np.ndarray
    entropies: np.ndarray
    change: float
    n_sweeps: int


class Settled(NamedTuple):
    """What all incomplete rows add to the statistics, the mean entropy of their Q, its fields, and how it settled."""

    statistics: np.ndarray
    entropy: float
    fields: np.ndarray
    change: float
    n_sweeps: int


@CLAMPED.register("mean-field", consistent=False)
@declared(frozen=True)
class ClampedMeanField:
    """Expectations under the factorised Q of each row's missing cells that lowers the free energy of YK15.

    ``F(Q) = sum_h Q(h) log Q(h) - sum_h Q(h) theta . S(v, h) / T`` is an upper bound on minus the log-evidence of a
    row, and with log Z added on ``-log P(v)``. One factor of Q at a time is set to its best (for spins,
    ``m_i = tanh(field_i)``), so that no sweep raises F; Q goes on from call to call. Compiled for pairwise models;
    others go row by row, which is slow.

    Notes
    -----
    ``diagnostics["free_energy"]`` is the average of F over the data, ``log_partition`` minus it; ``"largest_change"``
    and ``"n_sweeps"`` say how the slowest row ended.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations import ClampedMeanField
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = ClampedMeanField()
    >>> data = gb.Dataset.read([[1, float("nan")]], coding="spin")
    >>> estimate, _ = expectation(model, expectation.init(model, data, np.random.default_rng(0)))
    >>> estimate.mean.round(4).tolist()                       # one missing cell: mean field is exact, tanh(0.5)
    [1.0, 0.4621, 0.4621]
    """

    max_iter: int = whole(100, "Sweeps over the missing cells of a row in one call, at most.", least=1)
    tol: float = number(1e-8, "Done when no mean changes by more in a sweep.", least=0)

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> FactorisedState:
        """Start Q near the uniform law."""
        rows = ClampedRows.of(model, data)
        size = len(rows.cells)
        if not model.is_pairwise:
            size = int(model.domain.cardinalities(model.n_variables)[rows.cells].sum())
        return FactorisedState(Rebuilt(rows), START_SCALE * rng.standard_normal(size))

    def __call__(self, model: Model, state: FactorisedState) -> tuple[Estimate, FactorisedState]:
        """Lower the free energy from where the last call left Q, and return the expectation under Q."""
        rows = state.rows.value
        if rows.data is None:
            settled = Settled(np.zeros_like(model.theta), 0.0, state.fields, 0.0, 0)
        elif model.is_pairwise:
            settled = self._spins(model, rows, state.fields)
        else:
            settled = self._row_by_row(model, rows, state.fields)
        statistics = rows.constant + settled.statistics
        bound = float(model.theta @ statistics / model.temperature) + settled.entropy
        notes = {"free_energy": -bound, "largest_change": settled.change, "n_sweeps": settled.n_sweeps}
        estimate = Estimate(statistics, np.zeros_like(statistics), bound, {"approximate": True, **notes})
        return estimate, FactorisedState(state.rows, settled.fields)

    def _spins(self, model: Any, rows: ClampedRows, fields: np.ndarray) -> Settled:
        states = rows.data.states  # type: ignore[union-attr]
        solution = solve(model, states, rows.pointers, rows.cells, fields, self.max_iter, self.tol)
        statistics = factorised_statistics(model, solution.means, rows.shares)
        entropy = float(rows.shares @ solution.entropies)
        return Settled(statistics, entropy, solution.fields, solution.change, solution.n_sweeps)

    def _row_by_row(self, model: Model, rows: ClampedRows, logits: np.ndarray) -> Settled:
        """Mean field on each row's model of its missing cells."""
        data = rows.data
        assert data is not None
        statistics, entropy, change, n_sweeps, ends = np.zeros_like(model.theta), 0.0, 0.0, 0, []
        sizes = model.domain.cardinalities(model.n_variables)
        starts = np.concatenate([[0], np.cumsum(sizes[rows.cells])])[rows.pointers]
        for row, share in enumerate(rows.shares):
            rest, _, missing = clamp(model, data, row)
            law = FactorisedLaw(rest.factors(), logits[starts[row] : starts[row + 1]])
            sweeps, last = law.settle(self.max_iter, self.tol)
            present = np.setdiff1d(np.arange(model.n_variables), missing)
            free = rest.statistics_from(law.marginal)
            statistics += share * model.clamped_statistics(present, data.states[row, present], free)
            entropy += share * law.entropy
            change, n_sweeps = max(change, last), max(n_sweeps, sweeps)
            ends.append(law.logits)
        return Settled(statistics, entropy, np.concatenate(ends), change, n_sweeps)


def require_pairwise(model: Model, who: str) -> None:
    """Refuse models that the compiled sweeps do not serve."""
    if not model.is_pairwise:
        raise ArgumentError(f"{who} needs a pairwise model, not {type(model).__name__}", "use 'exact' or chains")


def solve(
    model: PairwiseModel,
    states: np.ndarray,
    pointers: np.ndarray,
    cells: np.ndarray,
    fields: np.ndarray,
    max_iter: int,
    tol: float,
) -> Solution:
    """Lower the free energy of each row from the Q whose cells have these fields."""
    spin, _ = model.to_domain(SPIN)
    means = to_spins(model, states).astype(np.float64)
    row = np.repeat(np.arange(len(states)), np.diff(pointers))
    means[row, cells] = np.tanh(fields)
    own = fields.copy()
    with threads_for(float(len(cells)) * max(1.0, model.graph.degrees.mean()) * 4.0):
        if model.is_dense:
            road = (spin.natural_biases, spin.coupling_matrix / model.temperature)
            ends = kernels.dense_mean_field(means, own, pointers, cells, *road, max_iter, tol)
        else:
            indptr, heads, ids = model.graph.csr
            graph = (spin.natural_biases, indptr, heads, spin.natural_couplings[ids])
            ends = kernels.sparse_mean_field(means, own, pointers, cells, *graph, max_iter, tol)
    entropies, changes, sweeps = ends
    return Solution(means, own, entropies, float(changes.max(initial=0.0)), int(sweeps.max(initial=0)))
