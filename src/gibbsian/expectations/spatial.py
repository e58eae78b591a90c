"""Spatial Monte Carlo integration: expectations exact inside a region, sampled around it (YU20).

`spatial_statistics` takes any samples; `Spatial` is the expectation that brings its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.estimate import Estimate
from gibbsian.expectations.chains import judged, keep_draws
from gibbsian.expectations.compiled_regions import compiled_plan
from gibbsian.expectations.legacy import EXPECTATIONS, Rebuilt
from gibbsian.expectations.regions import as_rules
from gibbsian.expectations.samples import Samples
from gibbsian.expectations.table_regions import TablePlan
from gibbsian.graphs import Graph
from gibbsian.models.base import Array, Model
from gibbsian.old_sampling import ChainState, Sampler, as_sampler
from gibbsian.settings import check, declared, flag, free, number, positional, whole

# Sweeps between two looks at the second half of the burn-in, from which R-hat is taken: draws in a row would mistake a
# memory of a few sweeps for modes that are lost.
BETWEEN_LOOKS = 10
REGION = "What is summed over exactly: see `plan_regions`."


class SpatialPlan(Protocol):
    """The regions of all statistics, ready to be summed over; it serves every model of the same structure."""

    @property
    def graph(self) -> Graph:
        """The graph of the structure."""

    @property
    def n_statistics(self) -> int:
        """Number of statistics."""

    def renewed(self, model: Model[Any]) -> Self:
        """Return the plan with regions chosen again where the parameters decide."""

    def statistics(self, model: Model[Any], samples: Samples) -> Estimate:
        """Return the expected statistics, averaged over samples."""


def plan_regions(model: Model[Any], region: Any = 1) -> SpatialPlan:
    """Choose the regions of all statistics of a model.

    Parameters
    ----------
    model : Model
        The structure matters, and for ``"s2"`` and ``"forest"`` the strengths of the interactions.
    region : int, str, callable, mapping or rule, or list of these
        An order k (0 is plain Monte Carlo, 1 the target itself, 2 its neighbours too ...), ``"s2"``, ``"forest"``,
        ``"planar"``, a function of graph and target, or a mapping from targets to regions. Of several in a list the
        estimates are combined by generalised least squares.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(2, 2)))
    >>> gb.expectations.plan_regions(model, 2).regions[0][0].region
    (0, 1, 2)
    """
    rules = as_rules(region)
    compiled = compiled_plan(model, rules[0]) if len(rules) == 1 else None
    return compiled or TablePlan.of(model, rules)


def spatial_statistics(model: Model[Any], samples: Any, region: Any = 1, plan: SpatialPlan | None = None) -> Estimate:
    """Return the expected statistics of a model by spatial Monte Carlo integration over given samples (YU20 eq. 8).

    Parameters
    ----------
    model : Model
        The distribution.
    samples : Samples, Dataset or ndarray
        States around the regions: an array of independent draws, one of chains with draws each, the data, or `Samples`
        with weights and groups. Arrays hold codes 0, 1, 2 ..., or numbers where variables are real; a `Dataset` may
        have any labels.
    region : int, str, callable, mapping or rule, or list of these
        See `plan_regions`; not used when there is a plan.
    plan : SpatialPlan, optional
        From `plan_regions`, for a model of the same structure. After the parameters changed, ``plan.renewed(model)``
        lets them choose the regions again.

    Returns
    -------
    Estimate
        Means in the layout of theta. The standard error comes from the spread over independent samples; NaN for one.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> estimate = gb.expectations.spatial_statistics(model, np.array([[1, 1], [1, 0]]))
    >>> estimate.value.round(4), estimate.stderr.round(4)
    (array([0.    , 0.4621, 0.4621]), array([0.4621, 0.    , 0.    ]))
    """
    taken = Samples.of(samples)
    taken.check(model)
    chosen = plan_regions(model, region) if plan is None else plan
    if chosen.n_statistics != model.theta.size or chosen.graph != model.family.graph:
        raise ArgumentError("the plan was made for another structure", "make one with plan_regions(model, region)")
    return chosen.statistics(model, taken)


class SpatialState(NamedTuple):
    """The regions, and samples that stay or chains that go on."""

    plan: Rebuilt[SpatialPlan]
    samples: Rebuilt[Any]
    chains: ChainState | None
    fresh: bool


@declared(frozen=True)
class Spatial:
    """Spatial Monte Carlo integration of a model's statistics (YU20).

    The samples are those given; else the data, where there is any (Y18; "fix" in YU20); else persistent Gibbs chains.
    Where the strengths of the interactions decide about regions, they are chosen again in every call. The first call
    says whether the chains, which start at random states, have come to agree.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.grid(2, 2), [0.1, 0.0, 0.0, 0.0], [0.3, 0.2, 0.1, 0.4])
    >>> expectation = gb.expectations.Spatial("s2")
    >>> estimate, _ = expectation(model, expectation.init(model, None, np.random.default_rng(0)))
    >>> truth = gb.inference.exact(model).moments
    >>> bool((abs(estimate.value - truth) <= 5 * estimate.stderr + 1e-12).all())
    True
    """

    region: Any = positional(
        kw_only=False, default=free(1, REGION, doc="int, str, callable, mapping, rule or list of these")
    )
    samples: Any = free(None, "Samples to use in every call.", doc="Samples, Dataset, ndarray or None")
    n_chains: int = whole(100, "Chains, where they are needed.", least=2)
    n_steps: int = whole(50, "Sweeps of them in each call; every one gives a sample.", least=1)
    burn_in: int = whole(500, "Sweeps before the first.")
    sampler: str | Sampler = free("gibbs", "Name of a registered sampler, or a sampler.", doc="str or Sampler")
    warn: bool = flag(True, "Whether to warn when the chains disagree or their draws are too dependent.")
    max_r_hat: float = number(1.1, "Largest R-hat without a warning.", above=1)
    min_ess: float = number(100.0, "Smallest effective sample size, over all chains, without a warning.", least=0)

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model[Any], data: Any, rng: np.random.Generator) -> SpatialState:
        """Choose the regions, and take the samples or start the chains."""
        plan = Rebuilt(plan_regions(model, self.region))
        given = data if self.samples is None else self.samples
        if given is not None:
            return SpatialState(plan, Rebuilt(_samples(given, model, plan.value)), None, fresh=False)
        chains = as_sampler(self.sampler).init(model, self.n_chains, rng)
        return SpatialState(plan, Rebuilt(None), chains, fresh=True)

    def __call__(self, model: Model[Any], state: SpatialState) -> tuple[Estimate, SpatialState]:
        """Return the expected statistics and the state for the next call."""
        plan, samples, chains = state.plan.value.renewed(model), state.samples.value, state.chains
        numbers: dict[str, float] = {}
        if chains is not None:
            early = np.empty((self.n_chains, 0, chains.states.shape[1]), chains.states.dtype)
            if state.fresh:
                n_looks = self.burn_in // (2 * BETWEEN_LOOKS)
                rest = self.burn_in - BETWEEN_LOOKS * n_looks
                early, chains = keep_draws(self.sampler, model, chains, n_looks, rest, thin=BETWEEN_LOOKS)
            draws, chains = keep_draws(self.sampler, model, chains, self.n_steps, 0, cell_bytes=10.0)
            samples = Samples.of(draws)
            if state.fresh:
                numbers = judged(self, model, np.concatenate([early, draws[:, ::BETWEEN_LOOKS]], axis=1))
        over = getattr(samples, "statistics", partial(spatial_statistics, samples=samples))
        estimate = replace(over(model, plan=plan), parts=numbers)
        return estimate, SpatialState(Rebuilt(plan), state.samples, chains, fresh=False)

    def restarted_at(self, model: Model[Any], state: SpatialState, rows: Any) -> SpatialState:
        """Return the state with other rows as samples, where they are the data's."""
        if self.samples is not None:
            return state
        return state._replace(samples=Rebuilt(_samples(rows, model, state.plan.value)))


def _samples(given: Any, model: Model[Any], plan: SpatialPlan) -> Any:
    """Return what is integrated over: samples here, or rows on a cluster."""
    return _OnCluster(given, model, plan) if getattr(given, "on_cluster", False) else Samples.of(given)


class _OnCluster:
    """Rows on a cluster as samples: each worker integrates over its own, by a plan that it was sent once."""

    def __init__(self, data: Any, model: Model[Any], plan: SpatialPlan):
        data.require_complete("spatial Monte Carlo integration over the data")
        self.total, self.estimates = data.total_weight, data.bind(partial(_estimates, model, plan))

    def statistics(self, model: Model[Any], plan: SpatialPlan) -> Estimate:
        """Return the mean over the rows, and its standard error from those of the partitions."""
        mean, variance = self.estimates(model.theta)
        return Estimate(mean, np.sqrt(variance / self.total))


def _estimates(model: Model[Any], plan: SpatialPlan, data: Dataset) -> Callable[[Array], tuple[np.ndarray, Array]]:
    """Return the function that integrates over the rows of a partition."""
    samples = Samples.of(data)

    def function(theta: Array) -> tuple[np.ndarray, Array]:
        current = model.replace(theta)
        estimate = spatial_statistics(current, samples, plan=plan.renewed(current))
        return estimate.value, data.total_weight * estimate.stderr**2

    return function


@EXPECTATIONS.register("1-smci")
@declared(frozen=True)
class FirstOrder(Spatial):
    """1-SMCI: the region is the target itself (Y18 eq. 24 and 25; YU20 eq. 14 and 15)."""

    region: ClassVar[Any] = 1  # type: ignore[misc]  # no setting any more


@EXPECTATIONS.register("s2-smci")
@declared(frozen=True)
class SemiSecondOrder(Spatial):
    """s2-SMCI: the target and independent neighbours (YU20 eq. 22 and 23)."""

    region: ClassVar[Any] = "s2"  # type: ignore[misc]  # no setting any more


@EXPECTATIONS.register("2-smci")
@declared(frozen=True)
class SecondOrder(Spatial):
    """2-SMCI: the target and all its neighbours (YU20 eq. 7)."""

    region: ClassVar[Any] = 2  # type: ignore[misc]  # no setting any more


@EXPECTATIONS.register("forest-smci")
@declared(frozen=True)
class ForestOrder(Spatial):
    """SMCI with a forest around each target, summed over by message passing."""

    region: ClassVar[Any] = "forest"  # type: ignore[misc]  # no setting any more


@EXPECTATIONS.register("planar-smci")
@declared(frozen=True)
class PlanarOrder(Spatial):
    """SMCI with a region around each target that is planar with its fields (YU20 section 4.1): forests and cycles."""

    region: ClassVar[Any] = "planar"  # type: ignore[misc]  # no setting any more
