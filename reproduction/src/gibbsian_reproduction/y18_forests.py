"""Forest-region SMCI with the data for samples, fast on small graphs: samples alike around a region are summed once.

A conditional distribution depends on the samples through the neighbours of its region alone. Around a forest on the
4x4 grid these are few, so that thousands of rows show but tens of boundaries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gibbsian.backends.numba.spatial import Forests
from gibbsian.data import Dataset
from gibbsian.estimate import Estimate
from gibbsian.expectations import ForestAround
from gibbsian.expectations.legacy import Rebuilt
from gibbsian.expectations.compiled_regions import PairwisePlan
from gibbsian.graphs import Graph
from gibbsian.models import Model, PairwiseFamily
from gibbsian_reproduction.kernels.spatial_boundaries import forest_means


class Boundaries(NamedTuple):
    """The distinct states around the region of each target, by variable, and the share of the rows that show each."""

    starts: np.ndarray
    states: np.ndarray
    shares: np.ndarray


class ForestState(NamedTuple):
    """The regions and their boundaries, which stay through a fit."""

    regions: Rebuilt[Forests]
    boundaries: Rebuilt[Boundaries]


@dataclass(frozen=True)
class FixedForests:
    """Expected products x_i x_j of a pairwise model without biases, by forests around the edges, over the data.

    Parameters
    ----------
    guide : Model, optional
        Whose couplings decide about the forests, once for the whole fit; by default the model that `init` gets.
    """

    guide: Model[PairwiseFamily] | None = None

    def init(self, model: Model[PairwiseFamily], data: Dataset, rng: np.random.Generator | None) -> ForestState:
        """Choose the forests and count the boundaries that the rows show."""
        regions = PairwisePlan.of(model if self.guide is None else self.guide, ForestAround()).pairs
        assert regions is not None
        return ForestState(Rebuilt(regions), Rebuilt(boundaries_of(model.family.graph, regions, data)))

    def __call__(self, model: Model[PairwiseFamily], state: ForestState) -> tuple[Estimate, ForestState]:
        """Return the expected products; they have no standard error here, since nothing asks for one."""
        graph, couplings = model.family.graph, model.parts.couplings
        indptr, heads, edge_of = graph.csr
        system = (couplings, np.zeros(graph.n_nodes), indptr, heads, couplings[edge_of])
        mean = forest_means(state.regions.value, *system, *state.boundaries.value)
        return Estimate(mean, np.full_like(mean, np.nan)), state


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
