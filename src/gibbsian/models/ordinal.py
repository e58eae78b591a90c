"""Ordered levels with scores: free levels for each variable, and one coupling of scores for each pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gibbsian.domain import SPIN, AnyDomain
from gibbsian.graphs import Graph
from gibbsian.models.base import MODELS
from gibbsian.models.interactions import Interactions
from gibbsian.models.potential_field import PotentialField
from gibbsian.models.potentials import Structure
from gibbsian.models.scopes import Scopes


@MODELS.register("ordinal", many_valued="values")
@dataclass(frozen=True, eq=False)
class OrdinalModel(PotentialField):
    """``P(x) = exp((sum_i h_i(x_i) + sum_ij w_ij s_i(x_i) s_j(x_j)) / T) / Z`` with scores s of the levels.

    The levels' parameters are free, with zero at the lowest, so every variable given the others is a model of adjacent
    categories: ``log P(x_i = b) / P(x_i = a)`` is ``h_i(b) - h_i(a)`` plus ``s_i(b) - s_i(a)`` times a sum over the
    neighbours. A coupling is the logarithm of the odds ratio of two levels a unit apart in each variable, the same all
    over the table (Goodman 1979: uniform association where scores are a unit apart). Adding a constant to scores
    changes the levels' parameters only. With two levels it is the pairwise machine.

    Parameters
    ----------
    structure, theta
        As in `PotentialField`; `zeros` makes them.

    Examples
    --------
    >>> import gibbsian as gb
    >>> coding = gb.domain.CategoryCoding.of_levels([("low", "mid", "high"), (0, 1)])
    >>> model = gb.models.OrdinalModel.zeros(gb.graphs.complete(2), coding.domain).replace([0.3, 0.1, 0.5, 2.0])
    >>> model.energy([[2, 1]])                                      # -(0.1 + 0.5 + 2.0 * 1.0 * 0.5)
    array([-1.6])
    """

    @classmethod
    def zeros(cls, graph: Graph, domain: AnyDomain = SPIN) -> Self:
        """Return the uniform distribution on a graph.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.models.OrdinalModel.zeros(gb.graphs.complete(2), gb.domain.Categories.of_values((0, 1, 2), 2)).theta.size
        5
        """
        names = [str(i) for i in range(graph.n_nodes)]
        structure = Structure.build(["levels", "product"], Scopes.of_graph(graph), domain, names, tied=False)
        return cls(structure, np.zeros(structure.n_parameters))

    @property
    def n_biases(self) -> int:
        """Number of the levels' parameters, which stand first."""
        return self.theta.size - self.graph.n_edges

    @property
    def biases(self) -> list[np.ndarray]:
        """The parameters of each variable's levels, the lowest at zero."""
        sizes = self.domain.cardinalities(self.n_variables) - 1
        parts = np.split(self.theta[: self.n_biases], np.cumsum(sizes)[:-1])
        return [np.append(0.0, levels) for levels in parts]

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the variable and the code of each level above the lowest, and the pairs."""
        sizes = self.domain.cardinalities(self.n_variables)
        levels = [f"{name}[{code}]" for name, size in zip(names, sizes, strict=True) for code in range(1, size)]
        return levels + [f"{names[i]}*{names[j]}" for i, j in self.graph.edges.tolist()]

    @property
    def couplings(self) -> np.ndarray:
        """The coupling of each edge, in the order of ``graph.edges``."""
        return self.theta[self.n_biases :]

    def interactions(self) -> Interactions:
        """Return the couplings along the edges, by unit of both scores."""
        return Interactions(tuple(map(tuple, self.graph.edges.tolist())), self.couplings, (self.n_variables,))

    @property
    def coupling_matrix(self) -> Any:
        """The symmetric matrix of couplings with a zero diagonal."""
        return self.graph.matrix(self.couplings)
