"""Spatial Monte Carlo integration of models of products over cliques: compiled, for two values a variable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gibbsian.backends.numba.regions import independent_sets
from gibbsian.backends.numba.spatial import fill_by_variable
from gibbsian.backends.numba.spatial_cliques import clique_targets
from gibbsian.domain import Domain
from gibbsian.expectations.base import Estimate
from gibbsian.expectations.integration import Part, integrate
from gibbsian.expectations.regions import (
    IndependentNeighbours,
    Neighbourhood,
    RegionRule,
)
from gibbsian.expectations.samples import Samples
from gibbsian.graphs import Graph
from gibbsian.models.higher_order import HigherOrderModel

# The kernel keeps a row of samples for each state of the largest clique.
LARGEST_CLIQUE = 12


def has_kernel(model: Any, rule: RegionRule) -> bool:
    """Whether the compiled road is open for a model and a rule.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.expectations.clique_regions import has_kernel
    >>> has_kernel(gb.models.HigherOrderModel.of_order(4, 3), gb.expectations.Neighbourhood(1))
    True
    """
    first_order = isinstance(rule, Neighbourhood) and rule.k == 1
    return (
        model.statistics_are_products
        and not model.is_pairwise
        and isinstance(model.domain, Domain)
        and model.order <= LARGEST_CLIQUE
        and (first_order or isinstance(rule, IndependentNeighbours))
    )


@dataclass(frozen=True, eq=False)
class CliquePlan:
    """The regions of all cliques of a model: each clique with some of its neighbours, no two of which share a clique.

    Parameters
    ----------
    graph : Graph
        Which variables share a clique.
    rule : RegionRule
        How the regions were chosen.
    n_statistics : int
        Number of cliques.
    starts, members : ndarray
        The members of each clique's region beside the clique.
    tied : bool
        Whether strengths of interactions decided between candidates.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.expectations.clique_regions import CliquePlan
    >>> model = gb.models.HigherOrderModel.build({(0, 1, 2): 0.5, (2, 3): 1.0}, n_variables=4)
    >>> CliquePlan.of(model, gb.expectations.IndependentNeighbours()).members.tolist()    # of (2, 3), then of (0, 1, 2)
    [0, 3]
    """

    graph: Graph
    rule: RegionRule
    n_statistics: int
    starts: np.ndarray
    members: np.ndarray
    tied: bool

    @classmethod
    def of(cls, model: HigherOrderModel, rule: RegionRule) -> Self:
        """Choose the regions."""
        if isinstance(rule, Neighbourhood):
            nothing = np.zeros(len(model.cliques) + 1, np.int64), np.empty(0, np.int64), False
            return cls(model.graph, rule, model.theta.size, *nothing)
        return cls(model.graph, rule, model.theta.size, *_independent(model))

    def renewed(self, model: HigherOrderModel) -> Self:
        """Choose again where the strengths of the interactions decide."""
        if not self.tied:
            return self
        starts, members, _ = _independent(model)
        return replace(self, starts=starts, members=members)

    def statistics(self, model: HigherOrderModel, samples: Samples) -> Estimate:
        """Return the expected statistics, averaged over the samples."""
        starts, members = self.starts, self.members
        low, high = float(model.domain.low), float(model.domain.high)  # type: ignore[union-attr]
        cliques = (*model.clique_csr, *model.membership, model.theta / model.temperature)

        def prepare(rows: slice, number: int) -> tuple[np.ndarray, ...]:
            values = np.empty((model.n_variables, rows.stop - rows.start))
            fill_by_variable(values, samples.states[rows], high, low, high)
            return *cliques, values

        part = Part(
            lambda first, last, *rest: clique_targets(first, last, starts, members, low, high, *rest),
            slice(0, model.theta.size),
        )
        return integrate(samples, model, prepare, [part])


def _independent(model: HigherOrderModel) -> tuple[np.ndarray, np.ndarray, bool]:
    """YU20 Algorithm 1 for each clique."""
    indptr, heads, edge_of = model.graph.csr
    strengths = model.edge_strengths[edge_of]
    return independent_sets(indptr, heads, strengths, model.graph.is_complete, *model.clique_csr)
