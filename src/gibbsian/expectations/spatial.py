"""Spatial Monte Carlo integration over any samples: expectations exact inside a region, sampled around it (YU20)."""

from __future__ import annotations

from typing import Protocol, Self, cast

from gibbsian.arrays import States
from gibbsian.data.rows import Rows
from gibbsian.errors import ArgumentError
from gibbsian.estimate import Estimate
from gibbsian.expectations.compiled_regions import compiled_plan
from gibbsian.expectations.regions import as_rules
from gibbsian.expectations.samples import Samples
from gibbsian.expectations.table_regions import TablePlan
from gibbsian.graphs import Graph
from gibbsian.models.base import DiscreteFamily, Model


class SpatialPlan(Protocol):
    """The regions of all statistics, ready to be summed over; it serves every model of the same structure."""

    @property
    def graph(self) -> Graph:
        """The graph of the structure."""

    @property
    def n_statistics(self) -> int:
        """Number of statistics."""

    def renewed(self, model: Model[DiscreteFamily]) -> Self:
        """Return the plan with regions chosen again where the parameters decide."""

    def statistics(self, model: Model[DiscreteFamily], samples: Samples) -> Estimate:
        """Return the expected statistics, averaged over samples."""


def plan_regions(model: Model[DiscreteFamily], region: object = 1) -> SpatialPlan:
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
    return cast("SpatialPlan", compiled or TablePlan.of(model, rules))


def spatial_statistics(
    model: Model[DiscreteFamily], samples: Samples | Rows | States, region: object = 1, plan: SpatialPlan | None = None
) -> Estimate:
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
