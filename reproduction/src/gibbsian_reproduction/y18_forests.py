"""Forest-region SMCI with the data for samples, fast on small graphs: samples alike around a region are summed once.

A conditional distribution depends on the samples through the neighbours of its region alone. Around a forest on the
4x4 grid these are few, so that thousands of rows show but tens of boundaries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.backends.numba.spatial import Forests
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.estimate import Estimate
from gibbsian.expectations import ForestAround
from gibbsian.expectations.base import Starts
from gibbsian.expectations.compiled_regions import PairwisePlan
from gibbsian.graphs import Graph
from gibbsian.models import Model, PairwiseFamily
from gibbsian.models.base import ExponentialFamily
from gibbsian.rng import Key
from gibbsian_reproduction.kernels.spatial_boundaries import forest_means


class Boundaries(NamedTuple):
    """The distinct states around the region of each target, by variable, and the share of the rows that show each."""

    starts: np.ndarray
    states: np.ndarray
    shares: np.ndarray


@dataclass(frozen=True)
class FixedForests:
    """Expected products x_i x_j of a pairwise model without biases, by forests around the edges, over the data.

    Parameters
    ----------
    guide : Model, optional
        Whose couplings decide about the forests, once for the whole fit; by default the model that is bound.
    """

    needs_starts: ClassVar[bool] = True
    guide: Model[PairwiseFamily] | None = None

    def bind(
        self, model: Model[ExponentialFamily], clamp: Rows | None = None, starts: Starts | None = None
    ) -> BoundForests:
        """Choose the forests and count the boundaries that the rows show."""
        assert isinstance(starts, Dataset)
        assert isinstance(model.family, PairwiseFamily)
        guide = Model(model.family, model.theta) if self.guide is None else self.guide
        regions, graph = PairwisePlan.of(guide, ForestAround()).pairs, model.family.graph
        assert regions is not None
        return BoundForests(graph, regions, boundaries_of(graph, regions, starts))


@dataclass(frozen=True, eq=False)
class BoundForests:
    """The regions and their boundaries, which stay through a fit."""

    graph: Graph
    regions: Forests
    boundaries: Boundaries

    def init(self, theta: Floats, key: Key) -> tuple[()]:
        """Return the state, which is empty."""
        return ()

    def __call__(self, theta: Floats, state: tuple[()], starts: Starts | None = None) -> tuple[Estimate, tuple[()]]:
        """Return the expected products, whose errors nothing asks for."""
        indptr, heads, edge_of = self.graph.csr
        system = (theta, np.zeros(self.graph.n_nodes), indptr, heads, theta[edge_of])
        return Estimate(forest_means(self.regions, *system, *self.boundaries), None), state

    def samples(self, state: tuple[()], copy: int | None = None) -> None:
        """Return nothing: the rows are not kept."""


def boundaries_of(graph: Graph, regions: Forests, data: Dataset) -> Boundaries:
    """Count, for each target, the distinct states of the neighbours of its region."""
    weights = data.weights / data.weights.sum()
    starts, states, shares = [0], [], []
    for t, target in enumerate(regions.targets):
        inside = np.concatenate([target, regions.members[regions.starts[t] : regions.starts[t + 1]]])
        outside = sorted({int(j) for i in inside for j in graph.neighbours(i)} - set(inside.tolist()))
        numbers = data.states[:, outside] @ (1 << np.arange(len(outside)))
        _, rows, which = np.unique(numbers, return_index=True, return_inverse=True)
        states.append(data.variables.scores_of(data.states[rows]).T.ravel())
        shares.append(np.bincount(which, weights))
        starts.append(starts[-1] + len(rows))
    return Boundaries(np.array(starts), np.concatenate(states), np.concatenate(shares))
