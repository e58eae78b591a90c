"""The clamped phase by spatial Monte Carlo: each statistic summed over its own missing cells, sampled around them."""

from __future__ import annotations

import numpy as np

from gibbsian.backends.numba import clamped as kernels
from gibbsian.backends.parallel import threads_for
from gibbsian.domain import SPIN
from gibbsian.expectations.clamped import CLAMPED
from gibbsian.expectations.clamped_chains import ChainPlan, ClampedChains, ClampedState
from gibbsian.expectations.samples import Samples
from gibbsian.expectations.spatial import spatial_statistics
from gibbsian.inference.cut_sets import factorised_statistics, to_spins
from gibbsian.inference.missing import clamp
from gibbsian.models import Model, PairwiseModel
from gibbsian.settings import declared

# Chains whose sums one thread takes at a time; a constant, so that the order of the sums is too.
BLOCK = 256


@CLAMPED.register("spatial")
@declared(frozen=True)
class ClampedSpatial(ClampedChains):
    """1-SMCI of the posterior (Y18 eq. 24 and 25) over persistent chains of the missing cells.

    The region of a statistic is its variables less those that are present in the row. The noise is smaller than that of
    `ClampedChains`, and none is left in statistics whose missing cells have no missing neighbours, as in a
    restricted Boltzmann machine. Compiled for pairwise models; others are summed row by row, which is slow.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations import ClampedSpatial
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = ClampedSpatial()
    >>> data = gb.Dataset.read([[1, float("nan")]], coding="spin")
    >>> estimate, _ = expectation(model, expectation.init(model, data, np.random.default_rng(0)))
    >>> estimate.mean.round(4).tolist(), estimate.stderr.tolist()
    ([1.0, 0.4621, 0.4621], [0.0, 0.0, 0.0])
    """

    def _means(self, model: Model, state: ClampedState) -> np.ndarray:
        plan = state.plan.value
        copies = state.chains.states.reshape(self.copies, plan.n_chains, -1)
        statistics = _pair_regions if model.is_pairwise else _row_by_row
        return np.array([statistics(model, plan, states) / plan.rows.share for states in copies])  # type: ignore[arg-type]


def _pair_regions(model: PairwiseModel, plan: ChainPlan, states: np.ndarray) -> np.ndarray:
    """Expected statistics of the incomplete rows, weighted by their shares."""
    spin, _ = model.to_domain(SPIN)
    indptr, heads, ids = model.graph.csr
    weights, spins = spin.natural_couplings[ids], to_spins(model, states)
    graph = (indptr, heads, ids, weights, np.tanh(weights), BLOCK, model.graph.n_edges)
    where = (plan.shares, plan.row_of, plan.rows.pointers, plan.rows.cells)
    n_updates = len(plan.rows.cells) / max(1, len(plan.rows.shares)) * len(states)
    with threads_for(n_updates * max(1.0, model.graph.degrees.mean())):
        y, extra = kernels.pair_regions(spins, spin.fields(spins) / model.temperature, *where, *graph)
    statistics = factorised_statistics(model, y, plan.shares)
    # products of 0/1 values change by a quarter of what those of spins do
    statistics[model.n_biases :] += extra.sum(axis=0) * (model.domain.gap / SPIN.gap) ** 2
    return statistics


def _row_by_row(model: Model, plan: ChainPlan, states: np.ndarray) -> np.ndarray:
    """The same for any model: 1-SMCI on each row's model of its missing cells."""
    data = plan.rows.data
    assert data is not None
    total = np.zeros_like(model.theta)
    for row, share in enumerate(plan.rows.shares):
        rest, _, missing = clamp(model, data, row)
        draws = states[plan.row_of == row][:, missing]
        free = spatial_statistics(rest, Samples(draws), region=1).mean
        present = np.setdiff1d(np.arange(model.n_variables), missing)
        total += share * model.clamped_statistics(present, data.states[row, present], free)
    return total
