"""Spatial Monte Carlo integration of pairwise two-valued models: compiled, and without tables of samples by edges.

The fields of a block of samples are computed once and shared by all targets. Regions are flat arrays; the couplings are
looked up when the kernels run, so a plan serves every model on its graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gibbsian.backends.numba import regions as region_kernels
from gibbsian.backends.numba import spatial as kernels
from gibbsian.backends.numba.spatial_forests import forest_targets
from gibbsian.domain import BINARY, SPIN
from gibbsian.expectations.base import Estimate
from gibbsian.expectations.integration import Kernel, Part, integrate
from gibbsian.expectations.regions import (
    ForestAround,
    IndependentNeighbours,
    Neighbourhood,
    RegionRule,
    csr_targets,
    forests,
    independent_sets,
)
from gibbsian.expectations.samples import Samples
from gibbsian.graphs import Graph
from gibbsian.models.pairwise import PairwiseModel


def has_kernels(model: Any, rule: RegionRule) -> bool:
    """Whether the compiled road is open for a model and a rule.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.expectations.pairwise_regions import has_kernels
    >>> has_kernels(gb.PairwiseModel.zeros(gb.graphs.grid(2, 2)), gb.expectations.IndependentNeighbours())
    True
    """
    first_order = isinstance(rule, Neighbourhood) and rule.k == 1
    return model.is_pairwise and (first_order or isinstance(rule, IndependentNeighbours | ForestAround))


@dataclass(frozen=True, eq=False)
class PairwisePlan:
    """The regions of all statistics of a pairwise model.

    Parameters
    ----------
    graph : Graph
        The graph it was made for.
    rule : RegionRule
        How the regions were chosen.
    n_statistics : int
        Number of biases and couplings.
    nodes, pairs : Forests or None
        The regions of single variables and of edges; None where the target is its own region.
    tied : bool
        Whether the strengths of the interactions decided between candidates: then they decide again for other ones.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.expectations.pairwise_regions import PairwisePlan
    >>> model = gb.PairwiseModel.zeros(gb.graphs.grid(3, 3))
    >>> PairwisePlan.of(model, gb.expectations.IndependentNeighbours()).tied
    True
    """

    graph: Graph
    rule: RegionRule
    n_statistics: int
    nodes: kernels.Forests | None
    pairs: kernels.Forests | None
    tied: bool

    @classmethod
    def of(cls, model: PairwiseModel, rule: RegionRule) -> Self:
        """Choose the regions."""
        if isinstance(rule, Neighbourhood):
            return cls(model.graph, rule, model.theta.size, None, None, tied=False)
        strengths = model.edge_strengths
        singles = np.arange(model.n_variables if model.bias else 0)[:, None]
        nodes, some = _regions(model.graph, rule, singles, strengths)
        pairs, others = _regions(model.graph, rule, model.graph.edges, strengths)
        return cls(model.graph, rule, model.theta.size, nodes, pairs, tied=some or others)

    def renewed(self, model: PairwiseModel) -> Self:
        """Choose again where the strengths of the interactions decide."""
        if not self.tied:
            return self
        strengths = model.edge_strengths
        assert self.nodes is not None
        assert self.pairs is not None
        nodes, _ = _regions(self.graph, self.rule, self.nodes.targets, strengths)
        pairs, _ = _regions(self.graph, self.rule, self.pairs.targets, strengths)
        return replace(self, nodes=nodes, pairs=pairs)

    def statistics(self, model: PairwiseModel, samples: Samples) -> Estimate:
        """Return the expected statistics, averaged over the samples."""
        return integrate(samples, model, _Preparation(model, samples.states), self._parts(model))

    def _parts(self, model: PairwiseModel) -> list[Part]:
        """The kernels for biases and couplings, and the places in theta that they fill."""
        pairs = Part(self._pair_kernel(), slice(model.n_biases, model.theta.size))
        return [Part(self._node_kernel(), slice(0, model.n_biases)), pairs] if model.bias else [pairs]

    def _node_kernel(self) -> Kernel:
        if self.nodes is None:
            return kernels.first_order_nodes
        regions = self.nodes
        kernel = forest_targets if isinstance(self.rule, ForestAround) else kernels.independent_nodes
        return lambda first, last, *rest: kernel(first, last, regions, *rest)

    def _pair_kernel(self) -> Kernel:
        if self.pairs is None:
            edges = self.graph.edges
            return lambda first, last, *rest: kernels.first_order_pairs(first, last, edges, *rest)
        regions = self.pairs
        kernel = forest_targets if isinstance(self.rule, ForestAround) else kernels.independent_pairs
        return lambda first, last, *rest: kernel(first, last, regions, *rest)


def _regions(
    graph: Graph, rule: RegionRule, targets: np.ndarray, strengths: np.ndarray
) -> tuple[kernels.Forests, bool]:
    """Regions of single variables or of the edges, laid out for the kernels, and whether strengths decided."""
    if isinstance(rule, ForestAround):
        starts, members = forests(graph, targets, strengths, rule.size)
        tied = True  # strengths order the candidates at one distance
    else:
        starts, members, tied = independent_sets(graph, targets, strengths)
    pointers, nodes = csr_targets(targets)
    layout = region_kernels.rooted(*graph.csr, pointers, nodes, starts, members)
    own = np.arange(len(targets)) if targets.shape[1] == 2 else np.full(len(targets), -1)
    return kernels.Forests(np.ascontiguousarray(targets), own, starts, *layout), bool(tied)


class _Preparation:
    """Turns a block of samples into spins and their fields, by variable, in memory that is used again."""

    def __init__(self, model: PairwiseModel, states: np.ndarray):
        self.spin_model, _ = model.to_domain(SPIN)
        self.binary, self.high, self.states = model.domain == BINARY, model.domain.high, states
        self.biases, self.couplings = self.spin_model.natural_biases, self.spin_model.natural_couplings
        self.rooms: dict[tuple[int, int], np.ndarray] = {}

    def __call__(self, rows: slice, number: int) -> kernels.Spins:
        n_samples = rows.stop - rows.start
        if (number, n_samples) not in self.rooms:  # fresh memory costs as much as the fields
            self.rooms[number, n_samples] = np.empty((2, self.spin_model.n_variables, n_samples))
        spins, fields = self.rooms[number, n_samples]
        kernels.fill_by_variable(spins, self.states[rows], self.high, -1.0, 1.0)
        self._fill_fields(fields, spins)
        return kernels.Spins(self.couplings, spins, fields, self.binary)

    def _fill_fields(self, fields: np.ndarray, spins: np.ndarray) -> None:
        if self.spin_model.is_dense:
            np.matmul(self.spin_model.coupling_matrix, spins, out=fields)
            fields /= self.spin_model.temperature
            fields += self.biases[:, None]
        else:
            indptr, heads, edge_of = self.spin_model.graph.csr
            kernels.fill_fields(fields, spins, self.biases, indptr, heads, self.couplings[edge_of])
