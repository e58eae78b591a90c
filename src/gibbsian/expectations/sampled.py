"""Expectations over samples: a source of samples, and a region around each statistic that is summed over exactly.

Region 0 is plain Monte Carlo; 1 is 1-SMCI, "s2" is s2-SMCI and so on (YU20). Given rows, the region of a statistic is
the region less the present cells of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast

import numpy as np

from gibbsian.arrays import Floats, Integers, Slice, States
from gibbsian.backends.numba import clamped as kernels
from gibbsian.backends.numba.pairwise import sparse_fields
from gibbsian.backends.threads import map_slices
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.errors import ArgumentError
from gibbsian.estimate import Estimate
from gibbsian.expectations.base import EXPECTATIONS, BoundExpectation, Starts
from gibbsian.expectations.error_rules import spread_of_groups
from gibbsian.expectations.exact import BoundExact
from gibbsian.expectations.mixing import MixingCheck
from gibbsian.expectations.regions import Neighbourhood, as_rules
from gibbsian.expectations.rows import MaskedRows, row_by_row
from gibbsian.expectations.samples import Samples
from gibbsian.expectations.sources import (
    AnnealedWalkers,
    BoundSource,
    Calls,
    ChainsState,
    Drawn,
    FixedSamples,
    PersistentChains,
    Resizable,
    RestartedChains,
    SampleSource,
    TemperedReplicas,
)
from gibbsian.expectations.spatial import SpatialPlan, plan_regions
from gibbsian.expectations.spin_products import SpinStatistics
from gibbsian.inference.cut_sets import factorised_statistics
from gibbsian.inference.posterior import OneByOne
from gibbsian.models.base import DiscreteFamily, ExponentialFamily, Model, keeps
from gibbsian.models.ising import IsingFamily, is_ising
from gibbsian.rng import Key
from gibbsian.sampling import Transition
from gibbsian.settings import check_whole_number

S = TypeVar("S")
# Averages the statistics of samples at theta.
Average = Callable[[Floats, Drawn], Estimate]
# Sweeps between two looks at the second half of the burn-in, from which R-hat is taken: draws in a row would mistake a
# memory of a few sweeps for modes that are lost.
BETWEEN_LOOKS = 10
# Chains whose sums one thread takes at a time; a constant, so that the order of the sums is too.
BLOCK = 256


@dataclass(frozen=True)
class Sampled(Generic[S]):
    """The mean of the model's statistics over samples, each summed exactly over a region around its variables (YU20).

    Parameters
    ----------
    source : SampleSource
        Where the samples come from: `FixedSamples`, `RestartedChains` (CD), `PersistentChains` (PCD, long runs),
        `AnnealedWalkers`, `TemperedReplicas`.
    region : int, str, callable, mapping or rule, or list of these, default 0
        What is summed over exactly around each statistic, see `plan_regions`; 0 is plain Monte Carlo.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.grid(2, 2), [0.1, 0.0, 0.0, 0.0], [0.3, 0.2, 0.1, 0.4])
    >>> chains = gb.expectations.PersistentChains(n_chains=100, n_draws=50, burn_in=500)
    >>> bound = gb.expectations.Sampled(chains, region="s2").bind(model)
    >>> estimate, _ = bound(model.theta, bound.init(model.theta, gb.rng.Key.of(0)))
    >>> truth = gb.inference.exact(model).moments
    >>> bool((abs(estimate.value - truth) <= 5 * estimate.stderr + 1e-12).all())
    True
    """

    source: SampleSource[S]
    region: object = 0

    def __post_init__(self) -> None:
        as_rules(self.region)

    @property
    def needs_starts(self) -> bool:
        """Whether every call begins at complete rows."""
        return self.source.needs_starts

    def bind(
        self, model: Model[ExponentialFamily], clamp: Rows | None = None, starts: Starts | None = None
    ) -> BoundExpectation[S]:
        """Bind a family and rows."""
        rows = MaskedRows.of(model.family, clamp)
        if not len(rows.states):  # there is nothing to sample
            return cast("BoundExpectation[S]", BoundExact(rows, None))
        if rows.all_missing or not self.source.row_by_row:
            return self._bind(model, rows, starts)
        return row_by_row(model, rows, lambda rest: self._bind(rest, MaskedRows.of(rest.family, None), None))

    def _bind(self, model: Model[ExponentialFamily], rows: MaskedRows, starts: Starts | None) -> BoundSampled[S]:

        def plain(theta: Floats, drawn: Drawn) -> Estimate:
            return drawn.rule(model.family, drawn.samples)

        average: Average = plain
        if as_rules(self.region) != [Neighbourhood(0)]:
            clamped = not rows.all_missing
            average = clamped_regions(model, rows, self.region) if clamped else RegionMean.of(model, self.region)
        return BoundSampled(rows, self.source.bind(model, rows, starts), average)

    def with_samples(self, n_samples: int) -> Sampled[S]:
        """Return the expectation with about so many samples in a call."""
        if not isinstance(self.source, Resizable):
            raise ArgumentError("draws no samples of its own", "leave `n_samples` out", argument="method", value=self)
        return replace(self, source=self.source.with_samples(n_samples))


@dataclass(frozen=True, eq=False)
class BoundSampled(Generic[S]):
    """A source bound to a family and rows, and how its samples are averaged."""

    rows: MaskedRows
    source: BoundSource[S]
    average: Average

    def init(self, theta: Floats, key: Key) -> S:
        """Return the state of the source before the first call."""
        return self.source.init(theta, key)

    def __call__(self, theta: Floats, state: S, starts: Starts | None = None) -> tuple[Estimate, S]:
        """Draw samples, and return the mean statistics over them."""
        drawn, state = self.source.advance(theta, state, starts)
        found, share = self.average(theta, drawn), self.rows.share
        return Estimate(self.rows.constant + share * found.value, share * found.stderr, drawn.parts), state

    def samples(self, state: S, copy: int | None = None) -> Samples | None:
        """Return the complete states where the state stands."""
        return self.source.samples(state, copy)


@dataclass(frozen=True, eq=False)
class RegionMean:
    """Spatial Monte Carlo integration: statistics given each sample outside their region, as products of spins.

    Regions that strengths decide about are chosen again in every call.
    """

    spins: SpinStatistics
    plan: SpatialPlan

    @classmethod
    def of(cls, model: Model[ExponentialFamily], region: object) -> RegionMean:
        """Choose the regions."""
        assert keeps(model.family, DiscreteFamily)
        spins = SpinStatistics.of(model.family)
        return cls(spins, plan_regions(spins.model(model.theta), region))

    def __call__(self, theta: Floats, drawn: Drawn) -> Estimate:
        """Return means, with errors from the spread over independent samples."""
        model = self.spins.model(theta)
        return self.spins.outward(self.plan.renewed(model).statistics(model, drawn.samples))


def clamped_regions(model: Model[ExponentialFamily], rows: MaskedRows, region: object) -> ClampedRegions:
    """Return SMCI of the posterior of rows, copy by copy: compiled for 1-SMCI of pairs, row by row for others."""
    family = model.family
    if is_ising(family) and as_rules(region) == [Neighbourhood(1)]:
        return ClampedRegions(PairRegions(family, rows))
    assert keeps(family, DiscreteFamily)
    return ClampedRegions(RowRegions(family, rows, region))


@dataclass(frozen=True, eq=False)
class ClampedRegions:
    """SMCI of the posterior of rows (Y18 eq. 24 and 25); the spread over copies of the rows gives the errors."""

    mean: Callable[[Floats, States, Floats, Integers], Floats]

    def __call__(self, theta: Floats, drawn: Drawn) -> Estimate:
        """Return the means over copies, and their spread."""
        samples, row_of = drawn.samples, drawn.row_of
        assert row_of is not None
        n_copies = int(samples.n_independent)
        cuts = zip(*(np.split(part, n_copies) for part in (samples.states, samples.shares, row_of)), strict=True)
        means = [self.mean(theta, states, shares * n_copies, own) for states, shares, own in cuts]
        return Estimate(np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(n_copies))


@dataclass(frozen=True, eq=False)
class PairRegions:
    """1-SMCI of pairs of two-valued variables, compiled."""

    family: IsingFamily
    rows: MaskedRows

    def __call__(self, theta: Floats, states: States, shares: Floats, row_of: Integers) -> Floats:
        """Return the mean statistics of one copy of the rows."""
        form, spins = self.family.ising(theta), 2 * states - 1
        indptr, heads, ids = form.graph.csr
        weights, numbers = form.couplings[ids], spins.astype(np.float64)
        if form.graph.is_dense:
            fields = numbers @ form.graph.matrix(form.couplings) + form.fields
        else:
            fields = sparse_fields(numbers, indptr, heads, weights) + form.fields
        graph = (indptr, heads, ids, weights, np.tanh(weights), BLOCK, form.graph.n_edges)
        where = (self.rows.pointers, self.rows.cells)

        def run(part: Slice) -> tuple[Floats, Floats]:
            found: tuple[Floats, Floats] = kernels.pair_regions(
                spins[part], fields[part], shares[part], row_of[part], *where, *graph
            )
            return found

        n_updates = len(self.rows.cells) / max(1, len(self.rows.shares)) * len(states)
        parts = map_slices(run, len(spins), n_updates * max(1.0, form.graph.degrees.mean()), grain=BLOCK)
        y, extra = map(np.concatenate, zip(*parts, strict=True))
        statistics = factorised_statistics(self.family, y, shares)
        # products of 0/1 values change by a quarter of what those of spins do
        gap = float(np.ptp(self.family.variables.levels[0]))
        statistics[theta.size - form.graph.n_edges :] += extra.sum(axis=0) * (gap / 2) ** 2
        return statistics


@dataclass(frozen=True, eq=False)
class RowRegions:
    """SMCI of any family and region: on the distribution of each row's missing cells given the present ones."""

    family: DiscreteFamily
    rows: MaskedRows
    region: object

    def __call__(self, theta: Floats, states: States, shares: Floats, row_of: Integers) -> Floats:
        """Return the mean statistics of one copy of the rows."""
        total, rows = np.zeros_like(theta), self.rows
        for row, _, given, rest, _ in OneByOne(self.family, rows.states, rows.missing).conditionals(theta):
            own = row_of == row
            drawn = Drawn(Samples(states[own][:, rows.missing[row]]), spread_of_groups)
            found = RegionMean.of(Model(given.family, rest), self.region)(rest, drawn)
            total += shares[own].sum() * given.statistics(found.value)
        return total


# -- presets, by the names of the literature ---------------------------------------------------------------------------
@EXPECTATIONS.register("monte-carlo")
def monte_carlo(
    n_chains: int = 100,
    n_draws: int = 500,
    burn_in: int = 500,
    sampler: str | Transition = "gibbs",
    warn: bool = True,
    max_r_hat: float = 1.05,
    min_ess: float = 100.0,
    region: object = 0,
) -> Sampled[ChainsState]:
    """Average over long runs of persistent chains, with errors by the spread of the chains' own means.

    With 100 chains the error is itself good to about 7%, whatever the autocorrelation within a chain.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> bound = gb.expectations.EXPECTATIONS.create("monte-carlo").bind(model)
    >>> estimate, state = bound(model.theta, bound.init(model.theta, gb.rng.Key.of(0)))
    >>> bool(abs(estimate.value[2] - np.tanh(0.5)) < 4 * estimate.stderr[2])
    True
    """
    check_whole_number("n_chains", n_chains, least=2)
    mixing = MixingCheck(max_r_hat=max_r_hat, min_ess=min_ess, warn=warn)
    chains = PersistentChains(n_chains=n_chains, n_draws=n_draws, burn_in=burn_in, sampler=sampler, mixing=mixing)
    return Sampled(chains, region)


@EXPECTATIONS.register("cd", needs_starts=True, consistent=False, clamps=False)
def cd(n_steps: int = 1, sampler: str | Transition = "gibbs", n_chains: int | None = None) -> Sampled[Calls]:
    """CD-k: chains that restart at the data in every call (Hinton 2002)."""
    return Sampled(RestartedChains(n_steps=n_steps, sampler=sampler, n_chains=n_chains))


@EXPECTATIONS.register("pcd")
def pcd(
    n_chains: int | None = None,
    n_steps: int = 1,
    sampler: str | Transition = "gibbs",
    copies: int | None = None,
    burn_in: int | None = None,
) -> Sampled[ChainsState]:
    """PCD-k: chains that go on from call to call (Tieleman 2008); given rows, chains of the missing cells.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> rows = gb.Dataset.read([[1, float("nan")]] * 1000, coding="spin")
    >>> bound = gb.expectations.EXPECTATIONS.create("pcd", copies=10).bind(model, rows)
    >>> estimate, _ = bound(model.theta, bound.init(model.theta, gb.rng.Key.of(0)))
    >>> bool(abs(estimate.value[1] - np.tanh(0.5)) < 4 * estimate.stderr[1])
    True
    """
    return Sampled(
        PersistentChains(n_chains=n_chains, n_steps=n_steps, sampler=sampler, copies=copies, burn_in=burn_in)
    )


@EXPECTATIONS.register("smci", needs_starts=True, clamps=False)
def smci(region: object = 1, samples: Starts | States | None = None) -> Sampled[tuple[()]]:
    """SMCI over the data themselves, or over given samples (Y18 section 4; "fix" in YU20)."""
    return Sampled(FixedSamples(samples), region)


@EXPECTATIONS.register("smci-pcd")
def smci_pcd(
    region: object = 1,
    copies: int | None = None,
    n_steps: int = 1,
    sampler: str | Transition = "gibbs",
    burn_in: int | None = None,
) -> Sampled[ChainsState]:
    """SMCI+PCD: SMCI over persistent chains, some for every row of the data, which the first call takes as they are.

    So the samples come to be the model's own (YU20 Algorithm 2). Given rows it is SMCI of the posterior over chains of
    the missing cells (Y18 eq. 24 and 25): its noise is smaller than that of the chains alone, and none is left in
    statistics whose missing cells have no missing neighbours.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> rows = gb.Dataset.read([[1, float("nan")]], coding="spin")
    >>> bound = gb.expectations.EXPECTATIONS.create("smci-pcd").bind(model, rows)
    >>> estimate, _ = bound(model.theta, bound.init(model.theta, gb.rng.Key.of(0)))
    >>> estimate.value.round(4).tolist(), estimate.stderr.tolist()
    ([1.0, 0.4621, 0.4621], [0.0, 0.0, 0.0])
    """
    chains = PersistentChains(copies=copies, n_steps=n_steps, sampler=sampler, burn_in=burn_in, data_first=True)
    return Sampled(chains, region)


def _regions_over_chains(region: object, n_chains: int, n_draws: int, burn_in: int, warn: bool) -> Sampled[ChainsState]:
    mixing = MixingCheck(max_r_hat=1.1, warn=warn, between_looks=BETWEEN_LOOKS)
    return Sampled(PersistentChains(n_chains=n_chains, n_draws=n_draws, burn_in=burn_in, mixing=mixing), region)


@EXPECTATIONS.register("1-smci")
def first_order(n_chains: int = 100, n_draws: int = 50, burn_in: int = 500, warn: bool = True) -> Sampled[ChainsState]:
    """1-SMCI over long runs of chains: the region is the target itself (Y18 eq. 24 and 25; YU20 eq. 14 and 15)."""
    return _regions_over_chains(1, n_chains, n_draws, burn_in, warn)


@EXPECTATIONS.register("s2-smci")
def semi_second_order(
    n_chains: int = 100, n_draws: int = 50, burn_in: int = 500, warn: bool = True
) -> Sampled[ChainsState]:
    """s2-SMCI over long runs of chains: the target and independent neighbours (YU20 eq. 22 and 23)."""
    return _regions_over_chains("s2", n_chains, n_draws, burn_in, warn)


@EXPECTATIONS.register("2-smci")
def second_order(n_chains: int = 100, n_draws: int = 50, burn_in: int = 500, warn: bool = True) -> Sampled[ChainsState]:
    """2-SMCI over long runs of chains: the target and all its neighbours (YU20 eq. 7)."""
    return _regions_over_chains(2, n_chains, n_draws, burn_in, warn)


@EXPECTATIONS.register("forest-smci")
def forest(n_chains: int = 100, n_draws: int = 50, burn_in: int = 500, warn: bool = True) -> Sampled[ChainsState]:
    """SMCI over long runs of chains with a forest around each target, summed over by message passing."""
    return _regions_over_chains("forest", n_chains, n_draws, burn_in, warn)


@EXPECTATIONS.register("planar-smci")
def planar(n_chains: int = 100, n_draws: int = 50, burn_in: int = 500, warn: bool = True) -> Sampled[ChainsState]:
    """SMCI over long runs with a region around each target that is planar with its fields (YU20 section 4.1)."""
    return _regions_over_chains("planar", n_chains, n_draws, burn_in, warn)


@EXPECTATIONS.register("ais")
def ais(
    n_walkers: int = 1000,
    betas: int | Floats = 1000,
    base: str | Dataset | Floats | None = None,
    warn: bool = True,
    region: object = 0,
) -> Sampled[Calls]:
    """Weighted means over walkers of annealed importance sampling, with an estimate of log Z (YU20 section 4.2).

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> bound = gb.expectations.EXPECTATIONS.create("ais").bind(model)
    >>> estimate, state = bound(model.theta, bound.init(model.theta, gb.rng.Key.of(0)))
    >>> bool(abs(estimate.value[2] - np.tanh(0.5)) < 4 * estimate.stderr[2])
    True
    >>> log_z = estimate.parts["log_partition"]
    >>> abs(log_z.value - np.log(4 * np.cosh(0.5))) < 4 * log_z.stderr < 0.02
    True
    """
    return Sampled(AnnealedWalkers(n_walkers=n_walkers, betas=betas, base=base, warn=warn), region)


@EXPECTATIONS.register("tempering")
def tempering(
    n_chains: int = 32, n_draws: int = 500, warn: bool = True, max_r_hat: float = 1.1, min_ess: float = 100.0
) -> Sampled[Calls]:
    """Average over tempered chains, which exchange states with hotter ones, with an estimate of log Z.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.2, 0.0], [5.0])    # Gibbs chains hardly leave a well
    >>> bound = gb.expectations.EXPECTATIONS.create("tempering").bind(model)
    >>> estimate, _ = bound(model.theta, bound.init(model.theta, gb.rng.Key.of(0)))
    >>> bool(abs(estimate.value[0] - np.tanh(0.2)) < 4 * estimate.stderr[0] < 0.1)
    True
    """
    mixing = MixingCheck(max_r_hat=max_r_hat, min_ess=min_ess, warn=warn)
    return Sampled(TemperedReplicas(n_chains=n_chains, n_draws=n_draws, mixing=mixing))
