"""Spatial Monte Carlo integration over chains that follow the model: from the data, or of their missing cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.numba import clamped as kernels
from gibbsian.backends.parallel import in_slices
from gibbsian.data import Dataset
from gibbsian.domain import SPIN
from gibbsian.estimate import Estimate
from gibbsian.expectations.base import Rebuilt
from gibbsian.expectations.chains import start_at_rows
from gibbsian.expectations.clamped import CLAMPED
from gibbsian.expectations.clamped_chains import ChainPlan, ClampedChains
from gibbsian.expectations.samples import Samples
from gibbsian.expectations.spatial import REGION, SpatialPlan, plan_regions, spatial_statistics
from gibbsian.expectations.there import GoesOn
from gibbsian.inference.cut_sets import factorised_statistics, to_spins
from gibbsian.inference.posterior import OneByOne
from gibbsian.models import Model, PairwiseModel
from gibbsian.samplers import ChainState, Sampler, as_sampler
from gibbsian.settings import check, declared, free, positional, whole

# Chains whose sums one thread takes at a time; a constant, so that the order of the sums is too.
BLOCK = 256
# Chains that start at rows of a cluster.
MOST_OF_A_CLUSTER = 10_000


class SpatialChainsState(NamedTuple):
    """The regions (None: chosen in every call), the chains with their shares, and whether they stand at the data."""

    plan: Rebuilt[SpatialPlan | None]
    chains: ChainState
    shares: np.ndarray
    fresh: bool

    @property
    def states(self) -> np.ndarray:
        """Where the chains stand."""
        return self.chains.states


@declared(frozen=True)
class SpatialChains(GoesOn):
    """Spatial Monte Carlo integration over persistent chains, `copies` for every row of the data (YU20 Algorithm 2).

    The first call takes the data themselves; every later one first lets the chains follow the model for `n_steps`. So
    the samples come to be the model's own, and what the data lack of its distribution no longer matters, as it does
    where they are kept for samples.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = gb.expectations.SpatialChains(copies=100)
    >>> estimate, _ = expectation(model, expectation.init(model, data, np.random.default_rng(0)))
    >>> bool(abs(estimate.value[2] - np.tanh(0.5)) < 1e-12)       # the region of this pair is the whole system
    True
    """

    region: Any = positional(
        kw_only=False, default=free(1, REGION, doc="int, str, callable, mapping, rule or list of these")
    )
    copies: int = whole(1, "Chains for each row, e in YU20.", least=1)
    n_steps: int = whole(1, "Sweeps between two calls, kappa in YU20.", least=1)
    sampler: str | Sampler = free("gibbs", "Name of a registered sampler, or a sampler.", doc="str or Sampler")

    def __post_init__(self) -> None:
        check(self)

    def start(self, model: Model, data: Dataset, rng: np.random.Generator) -> SpatialChainsState:
        """Choose the regions and start the chains at the data."""
        n_chains = self.copies * data.n_rows
        if data.on_cluster:  # as many chains as rows would not travel
            n_chains = min(n_chains, MOST_OF_A_CLUSTER)
            chains = as_sampler(self.sampler).init(model, n_chains, rng, states=data.sample(n_chains, rng).rows()[0])
            shares = np.full(n_chains, 1.0 / n_chains)
        else:
            chains, shares = start_at_rows(self.sampler, model, data, n_chains, rng)
        return SpatialChainsState(Rebuilt(plan_regions(model, self.region)), chains, shares, fresh=True)

    def moved(self, model: Model, state: SpatialChainsState) -> tuple[Estimate, SpatialChainsState]:
        """Let the chains follow the model and return the expected statistics over them."""
        chains, known = state.chains, state.plan.value
        if not state.fresh:
            chains, _ = as_sampler(self.sampler).step(model, chains, self.n_steps)
        plan = plan_regions(model, self.region) if known is None else known.renewed(model)
        estimate = spatial_statistics(model, Samples(chains.states, state.shares), plan=plan)
        kept = Rebuilt(None if known is None else plan)
        return estimate, SpatialChainsState(kept, chains, state.shares, fresh=False)

    def part(self, state: SpatialChainsState, chosen: slice) -> SpatialChainsState:
        """Return the state of some of the chains, without the regions: to choose them is as quick as to send them."""
        return SpatialChainsState(Rebuilt(None), state.chains.part(chosen), state.shares[chosen], state.fresh)


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
    >>> estimate.value.round(4).tolist(), estimate.stderr.tolist()
    ([1.0, 0.4621, 0.4621], [0.0, 0.0, 0.0])
    """

    def _mean(self, model: Any, plan: ChainPlan, states: np.ndarray) -> np.ndarray:
        statistics = _pair_regions if model.is_pairwise else _row_by_row
        return statistics(model, plan, states) / plan.rows.share


def _pair_regions(model: PairwiseModel, plan: ChainPlan, states: np.ndarray) -> np.ndarray:
    """Expected statistics of the incomplete rows, weighted by their shares."""
    spin, _ = model.to_domain(SPIN)
    indptr, heads, ids = model.graph.csr
    weights, spins = spin.couplings[ids], to_spins(model, states)
    graph = (indptr, heads, ids, weights, np.tanh(weights), BLOCK, model.graph.n_edges)
    where = (plan.rows.pointers, plan.rows.cells)
    fields = spin.fields(spins)
    n_updates = len(plan.rows.cells) / max(1, len(plan.rows.shares)) * len(states)
    parts = in_slices(
        lambda part: kernels.pair_regions(
            spins[part], fields[part], plan.shares[part], plan.row_of[part], *where, *graph
        ),
        len(spins),
        n_updates * max(1.0, model.graph.degrees.mean()),
        grain=BLOCK,
    )
    y, extra = map(np.concatenate, zip(*parts, strict=True))
    statistics = factorised_statistics(model, y, plan.shares)
    # products of 0/1 values change by a quarter of what those of spins do
    statistics[model.n_biases :] += extra.sum(axis=0) * (model.domain.gap / SPIN.gap) ** 2
    return statistics


def _row_by_row(model: Model, plan: ChainPlan, states: np.ndarray) -> np.ndarray:
    """The same for any model: 1-SMCI on each row's model of its missing cells."""
    data = plan.rows.data
    assert data is not None
    assert data.missing is not None
    total = np.zeros_like(model.theta)
    for row, _, given, theta, _ in OneByOne(model.family, data.states, data.missing).conditionals(model.theta):
        draws = states[plan.row_of == row][:, data.missing[row]]
        rest = given.family.replace(theta)
        total += plan.rows.shares[row] * given.statistics(spatial_statistics(rest, Samples(draws), region=1).value)
    return total
