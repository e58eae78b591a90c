"""Spatial Monte Carlo integration over chains that follow the model: from the data, or of their missing cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.numba import clamped as kernels
from gibbsian.backends.numba.pairwise import sparse_fields
from gibbsian.backends.parallel import in_slices
from gibbsian.data import Dataset
from gibbsian.estimate import Estimate
from gibbsian.expectations.chains import start_at_rows
from gibbsian.expectations.clamped import CLAMPED
from gibbsian.expectations.clamped_chains import ChainPlan, ClampedChains
from gibbsian.expectations.legacy import Rebuilt
from gibbsian.expectations.samples import Samples
from gibbsian.expectations.spatial import REGION, SpatialPlan, plan_regions, spatial_statistics
from gibbsian.expectations.there import GoesOn
from gibbsian.inference.cut_sets import factorised_statistics
from gibbsian.inference.posterior import OneByOne
from gibbsian.models.base import Array, DiscreteFamily, Model
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.ising import is_ising
from gibbsian.old_sampling import ChainState, Sampler, as_sampler
from gibbsian.settings import check, declared, free, positional, whole

# Chains whose sums one thread takes at a time; a constant, so that the order of the sums is too.
BLOCK = 256
# Chains that start at rows of a cluster.
MOST_OF_A_CLUSTER = 10_000


class SpatialChainsState(NamedTuple):
    """The regions (None: chosen in every call), the chains with their shares, and whether they stand at the data."""

    plan: Rebuilt[SpatialPlan | None]
    chains: ChainState
    shares: Array
    fresh: bool

    @property
    def states(self) -> Array:
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
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = gb.expectations.SpatialChains(copies=100)
    >>> estimate, _ = expectation(model, expectation.init(model, data, np.random.default_rng(0)))
    >>> bool(abs(estimate.value[2] - np.tanh(0.5)) < 1e-12)       # the region of this pair is the whole system
    True
    """

    region: object = positional(
        kw_only=False, default=free(1, REGION, doc="int, str, callable, mapping, rule or list of these")
    )
    copies: int = whole(1, "Chains for each row, e in YU20.", least=1)
    n_steps: int = whole(1, "Sweeps between two calls, kappa in YU20.", least=1)
    sampler: str | Sampler = free("gibbs", "Name of a registered sampler, or a sampler.", doc="str or Sampler")

    def __post_init__(self) -> None:
        check(self)

    def start(self, model: Model[DiscreteFamily], data: Dataset, rng: np.random.Generator) -> SpatialChainsState:
        """Choose the regions and start the chains at the data."""
        n_chains = self.copies * data.n_rows
        if data.on_cluster:  # as many chains as rows would not travel
            n_chains = min(n_chains, MOST_OF_A_CLUSTER)
            chains = as_sampler(self.sampler).init(model, n_chains, rng, states=data.sample(n_chains, rng).rows()[0])
            shares = np.full(n_chains, 1.0 / n_chains)
        else:
            chains, shares = start_at_rows(self.sampler, model, data, n_chains, rng)
        return SpatialChainsState(Rebuilt(plan_regions(model, self.region)), chains, shares, fresh=True)

    def moved(self, model: Model[DiscreteFamily], state: SpatialChainsState) -> tuple[Estimate, SpatialChainsState]:
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
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = ClampedSpatial()
    >>> data = gb.Dataset.read([[1, float("nan")]], coding="spin")
    >>> estimate, _ = expectation(model, expectation.init(model, data, np.random.default_rng(0)))
    >>> estimate.value.round(4).tolist(), estimate.stderr.tolist()
    ([1.0, 0.4621, 0.4621], [0.0, 0.0, 0.0])
    """

    def _mean(self, model: Model[Any], plan: ChainPlan, states: Array) -> Array:
        statistics = _pair_regions if is_ising(model.family) else _row_by_row
        return statistics(model.family, model.theta, plan, states) / plan.rows.share


def _pair_regions(family: PairwiseFamily, theta: Array, plan: ChainPlan, states: Array) -> Array:
    """Expected statistics of the incomplete rows, weighted by their shares."""
    form, spins = family.ising(theta), 2 * states - 1
    indptr, heads, ids = form.graph.csr
    weights, numbers = form.couplings[ids], spins.astype(np.float64)
    if form.graph.is_dense:
        fields = numbers @ form.graph.matrix(form.couplings) + form.fields
    else:
        fields = sparse_fields(numbers, indptr, heads, weights) + form.fields
    graph = (indptr, heads, ids, weights, np.tanh(weights), BLOCK, form.graph.n_edges)
    where = (plan.rows.pointers, plan.rows.cells)
    n_updates = len(plan.rows.cells) / max(1, len(plan.rows.shares)) * len(states)
    parts = in_slices(
        lambda part: kernels.pair_regions(
            spins[part], fields[part], plan.shares[part], plan.row_of[part], *where, *graph
        ),
        len(spins),
        n_updates * max(1.0, form.graph.degrees.mean()),
        grain=BLOCK,
    )
    y, extra = map(np.concatenate, zip(*parts, strict=True))
    statistics = factorised_statistics(family, y, plan.shares)
    # products of 0/1 values change by a quarter of what those of spins do
    statistics[family.n_biases :] += extra.sum(axis=0) * (family.gap / 2) ** 2
    return statistics


def _row_by_row(family: DiscreteFamily, theta: Array, plan: ChainPlan, states: Array) -> Array:
    """The same for any family: 1-SMCI on the distribution of each row's missing cells."""
    data = plan.rows.data
    assert data is not None
    assert data.missing is not None
    total = np.zeros_like(theta)
    for row, _, given, rest, _ in OneByOne(family, data.states, data.missing).conditionals(theta):
        draws = Samples(states[plan.row_of == row][:, data.missing[row]])
        statistics = spatial_statistics(Model(given.family, rest), draws, region=1).value
        total += plan.rows.shares[row] * given.statistics(statistics)
    return total
