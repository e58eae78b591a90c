"""Spatial Monte Carlo integration of any model through its factors, one region or several for each statistic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from gibbsian.backends.numba.spatial import accumulate_rows
from gibbsian.expectations.base import Estimate
from gibbsian.expectations.composite import combine
from gibbsian.expectations.contractions import Contraction, contraction_of
from gibbsian.expectations.region_sums import RegionPlan, conditional_law, plan_region
from gibbsian.expectations.regions import Neighbourhood, Region, RegionRule, Target
from gibbsian.expectations.samples import Samples
from gibbsian.graphs import Graph
from gibbsian.models.base import Model
from gibbsian.resources import require_memory


@dataclass(frozen=True, eq=False)
class TablePlan:
    """The regions of the statistics of any model, summed over through its factors.

    Parameters
    ----------
    graph : Graph
        Which variables interact.
    rule : RegionRule
        How the regions were chosen.
    contraction : Contraction
        Which joint laws the statistics need.
    regions : tuple of RegionPlan
        The region of each of those laws.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.expectations.table_regions import TablePlan
    >>> model = gb.PairwiseModel.zeros(gb.graphs.grid(2, 2))
    >>> [plan.region for plan in TablePlan.of(model, gb.expectations.Neighbourhood(2)).regions[:2]]
    [(0, 1, 2), (0, 1, 3)]
    """

    graph: Graph
    rule: RegionRule
    contraction: Contraction
    regions: tuple[RegionPlan, ...]
    known: Mapping[tuple[Target, Region], RegionPlan] = field(repr=False)

    @property
    def n_statistics(self) -> int:
        """Number of statistics."""
        return sum(map(len, self.contraction.statistics))

    @classmethod
    def of(cls, model: Model, rule: RegionRule) -> Self:
        """Choose the regions and plan their sums."""
        return cls(model.graph, rule, contraction_of(model), (), {})._planned(model)

    def renewed(self, model: Model) -> Self:
        """Choose again; sums that were planned before are kept."""
        return self if isinstance(self.rule, Neighbourhood) else self._planned(model)

    def _planned(self, model: Model) -> Self:
        targets, factors = self.contraction.targets, model.factors()
        known = dict(self.known)
        chosen = self.rule.regions(model.graph, targets, model.edge_strengths)
        for wanted in zip(targets, chosen, strict=True):
            if wanted not in known:
                known[wanted] = plan_region(factors, *wanted)
        regions = tuple(known[wanted] for wanted in zip(targets, chosen, strict=True))
        return replace(self, regions=regions, known=known)

    def statistics(self, model: Model, samples: Samples) -> Estimate:
        """Return the expected statistics, averaged over the samples."""
        sums = samples.running_sums(model.theta.size)
        ((_, block),) = samples.blocks(samples.n_samples)
        for places, values in self.values(model, samples):
            own = samples.running_sums(len(places))
            accumulate_rows(own, np.ascontiguousarray(values.T), block)
            sums[places] = own
        return Estimate(*samples.summarise(sums))

    def values(self, model: Model, samples: Samples) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, target by target, the places of its statistics and their values for each sample."""
        factors, codes = model.factors(), _codes_by_variable(model, samples)
        parts = zip(self.regions, self.contraction.statistics, self.contraction.coefficients, strict=True)
        for plan, places, coefficients in parts:
            law = conditional_law(factors, plan, codes).reshape(samples.n_samples, -1)
            yield places, law @ coefficients.T


@dataclass(frozen=True, eq=False)
class CompositePlan:
    """Several regions for every statistic, combined by generalised least squares.

    Parameters
    ----------
    plans : tuple of TablePlan
        One for each choice of regions.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseModel.zeros(gb.graphs.grid(2, 2))
    >>> len(gb.expectations.plan_regions(model, ["s2", "forest"]).plans)
    2
    """

    plans: tuple[TablePlan, ...]

    @property
    def graph(self) -> Graph:
        """Which variables interact."""
        return self.plans[0].graph

    @property
    def n_statistics(self) -> int:
        """Number of statistics."""
        return self.plans[0].n_statistics

    def renewed(self, model: Model) -> Self:
        """Choose again."""
        return replace(self, plans=tuple(plan.renewed(model) for plan in self.plans))

    def statistics(self, model: Model, samples: Samples) -> Estimate:
        """Return the combined expected statistics."""
        mean, stderr = np.zeros(model.theta.size), np.zeros(model.theta.size)
        for parts in zip(*(plan.values(model, samples) for plan in self.plans), strict=True):
            places = parts[0][0]
            mean[places], stderr[places] = combine(samples, np.stack([values for _, values in parts]))
        return Estimate(mean, stderr)


def _codes_by_variable(model: Model, samples: Samples) -> np.ndarray:
    n_cells = samples.states.size
    require_memory(17.0 * n_cells, f"{samples.n_samples:,} samples of {model.n_variables:,} variables", "use fewer")
    return np.ascontiguousarray(model.domain.to_codes(samples.states).T, dtype=np.intp)
