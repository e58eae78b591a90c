"""Spatial Monte Carlo integration over chains that started at the data and follow the model (YU20 Algorithm 2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsian.data import Dataset
from gibbsian.expectations.base import Estimate, Rebuilt
from gibbsian.expectations.contrastive import require_chains, spread_over_rows
from gibbsian.expectations.samples import Samples
from gibbsian.expectations.spatial import REGION, SpatialPlan, plan_regions, spatial_statistics
from gibbsian.models.base import Model
from gibbsian.samplers import ChainState, Sampler, as_sampler
from gibbsian.settings import check, declared, free, whole


class SpatialChainsState(NamedTuple):
    """The regions, the chains, what share each stands for, and whether they still stand at the data.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations import SpatialChains
    >>> data = gb.Dataset.read([[0, 1], [1, 1], [0, 1]])
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2), data.domain)
    >>> SpatialChains(copies=2).init(model, data, np.random.default_rng(0)).chains.states.shape
    (6, 2)
    """

    plan: Rebuilt[SpatialPlan]
    chains: ChainState
    shares: np.ndarray
    fresh: bool


@declared(frozen=True)
class SpatialChains:
    """Spatial Monte Carlo integration over persistent chains, `copies` for every row of the data.

    The first call takes the data themselves; every later one first lets the chains follow the model for `n_steps`. So
    the samples come to be the model's own, and what the data lack of the model's law no longer matters, as it does
    where they are kept for samples.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = gb.expectations.SpatialChains(copies=100)
    >>> estimate, _ = expectation(model, expectation.init(model, data, np.random.default_rng(0)))
    >>> bool(abs(estimate.mean[2] - np.tanh(0.5)) < 1e-12)       # the region of this pair is the whole system
    True
    """

    region: Any = free(1, REGION, doc="int, str, callable, mapping, rule or list of these", kw_only=False)
    copies: int = whole(1, "Chains for each row, e in YU20.", least=1)
    n_steps: int = whole(1, "Sweeps between two calls, kappa in YU20.", least=1)
    sampler: str | Sampler = free("gibbs", "Name of a registered sampler, or a sampler.", doc="str or Sampler")

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> SpatialChainsState:
        """Choose the regions and start the chains at the data."""
        states, shares = spread_over_rows(data, self.copies * data.n_rows)
        require_chains(len(states), model)
        chains = as_sampler(self.sampler).init(model, len(states), rng, states=states)
        return SpatialChainsState(Rebuilt(plan_regions(model, self.region)), chains, shares, fresh=True)

    def __call__(self, model: Model, state: SpatialChainsState) -> tuple[Estimate, SpatialChainsState]:
        """Let the chains follow the model and return the expected statistics over them."""
        chains = state.chains
        if not state.fresh:
            chains, _ = as_sampler(self.sampler).step(model, chains, self.n_steps)
        plan = state.plan.value.renewed(model)
        estimate = spatial_statistics(model, Samples(chains.states, state.shares), plan=plan)
        return estimate, SpatialChainsState(Rebuilt(plan), chains, state.shares, fresh=False)
