"""The pairwise Boltzmann machine: two-valued variables that interact along the edges of a graph (YU20 eq. 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, Slice, States
from gibbsian.backends.numba import pairwise as kernels
from gibbsian.backends.threads import sum_in_order
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import FAMILIES, Model, Parts, fields_alone
from gibbsian.models.conditionals import Conditionals, Pairs, WeightedRows, bind_pairs
from gibbsian.models.factors import Factor, FactorGraph, Marginal
from gibbsian.models.file_parts import BOOL, SIZE, PartsInFile, Plain, integers, reals
from gibbsian.models.given import Given, cached_by_nodes
from gibbsian.models.interactions import Interactions
from gibbsian.models.ising import Ising
from gibbsian.models.scopes import Scope, Scopes
from gibbsian.models.variables import Variables, VariablesOf, as_variables, checked_fixed, checked_weights
from gibbsian.resources import LEAST_ROWS, row_blocks

# Minimum rows of a block of a large sparse family, few enough to stay near the cache.
FEW_ROWS = 8


class PairwiseParts(NamedTuple):
    """Views of theta: the biases (empty if there are none), and the couplings in the order of the edges."""

    biases: Floats
    couplings: Floats


@FAMILIES.register("pairwise")
@dataclass(frozen=True, eq=False)
class PairwiseFamily:
    """``P(x) = exp(sum_i b_i x_i + sum_ij w_ij x_i x_j) / Z`` on a graph, x the scores of two-valued variables.

    Parameters
    ----------
    graph : Graph
        Which pairs interact.
    variables : Variables or callable, default=Variables.spins
        All with the same two scores: `Variables.spins` (-1/+1) or `Variables.binary` (0/1). The same parameters mean
        another distribution with other scores.
    bias : bool, default=True
        Whether there are biases.
    n_hidden : int, default=0
        Number of hidden variables, which come last.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> family = gb.PairwiseFamily(gb.graphs.complete(3))
    >>> theta = np.array([0.1, 0, 0, 1.0, 0.0, -1.0])                 # three biases, then three couplings
    >>> family.log_weights(theta, np.array([[1, 1, 1], [1, 1, 0]]))
    array([0.1, 2.1])
    """

    graph: Graph
    variables: Variables = Variables.spins  # type: ignore[assignment]
    bias: bool = True
    n_hidden: int = 0

    registered_name: ClassVar[str]
    parts_in_file: ClassVar[PartsInFile] = {
        "n_variables": SIZE,
        "bias": BOOL,
        "n_hidden": Plain((int,), 0, size="hidden"),
        "edges": integers("edges", 2, below="all"),
        "theta": reals("parameters"),
    }
    __getstate__ = fields_alone

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", as_variables(self.variables, self.graph.n_nodes))
        if not self.variables.two_valued or len(set(self.variables.scores or ((),) * 2)) > 1:
            raise ArgumentError("must all have the same two scores, such as -1 and 1", argument="variables")

    @classmethod
    def model(
        cls,
        graph: Graph,
        biases: Sequence[float] | Floats | None,
        couplings: Sequence[float] | Floats,
        variables: VariablesOf = Variables.spins,
    ) -> Model[Self]:
        """Return a model from its biases (None for none) and its couplings in the order of the edges."""
        parts = [np.asarray(part, float) for part in (biases, couplings) if part is not None]
        return Model(cls(graph, as_variables(variables, graph.n_nodes), bias=biases is not None), np.concatenate(parts))

    # -- structure ----------------------------------------------------------------------------------------------------
    @cached_property
    def layout(self) -> Pairs:
        """The layout of theta, with the scores."""
        low, high = self.variables.levels[0]
        return Pairs(self.graph, self.bias, low, high - low)

    @property
    def n_parameters(self) -> int:
        """Number of biases and couplings."""
        return self.layout.n_parameters

    @property
    def penalised(self) -> Mask:
        """Mask of the couplings."""
        return self.layout.penalised

    @cached_property
    def scopes(self) -> Scopes:
        """The variables that have a bias, and the edges."""
        singles = ((i,) for i in range(self.layout.n_biases))
        return Scopes([*singles, *map(tuple, self.graph.edges.tolist())], self.graph.n_nodes)

    @cached_property
    def statistic_range(self) -> tuple[Floats, Floats]:
        """The minimum and the maximum of the score, and of the product of two."""
        scores, counts = self.variables.levels[0], [self.layout.n_biases, self.graph.n_edges]
        products = np.outer(scores, scores)
        return np.repeat([scores.min(), products.min()], counts), np.repeat([scores.max(), products.max()], counts)

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the names of single variables and of products, given those of the columns."""
        units = [*names, *(f"h{number}" for number in range(self.n_hidden))]
        return ["*".join(units[i] for i in scope) for scope in self.scopes]

    def to_parts(self) -> Parts:
        """Return the graph, whether there are biases, and the number of hidden variables."""
        plain = {"n_variables": self.graph.n_nodes, "bias": self.bias, "n_hidden": self.n_hidden}
        return Parts(plain, self.graph.to_arrays())

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from the parts of a model file; hidden variables have the scores of the columns."""
        n_hidden, bias = cast("int", parts.plain["n_hidden"]), bool(parts.plain["bias"])
        everything = variables + variables.take([0] * n_hidden)
        return cls(Graph.from_arrays(dict(parts.arrays), len(everything)), everything, bias, n_hidden)

    # -- parameters ---------------------------------------------------------------------------------------------------
    def split(self, theta: Floats) -> PairwiseParts:
        """Return views of the biases and the couplings."""
        return PairwiseParts(theta[: self.layout.n_biases], theta[self.layout.n_biases :])

    def canonical(self, theta: Floats) -> Floats:
        """Return theta, which is unique."""
        return theta

    def interactions(self, theta: Floats) -> Interactions:
        """Return the couplings along the edges."""
        layers = (self.graph.n_nodes - self.n_hidden, *([self.n_hidden] * (self.n_hidden > 0)))
        return Interactions(tuple(map(tuple, self.graph.edges.tolist())), self.split(theta).couplings, layers)

    def terms_of(self, variables: Mask) -> Mask:
        """Return the mask of the biases of the masked variables, and of the couplings of their edges."""
        return np.concatenate([variables[: self.layout.n_biases], variables[self.graph.edges].any(axis=1)])

    def log_odds(self, theta: Floats) -> Floats:
        """Return the largest change of a log-probability by each parameter alone, in spins."""
        spins = self.ising(theta)
        return 2.0 * np.abs(self.layout.join(spins.fields, spins.couplings))

    def recode(self, theta: Floats, variables: VariablesOf) -> tuple[Model[Self], float]:
        """Return the same distribution of codes with other scores, and the constant in the log-weight.

        The new family has biases, also if this one has none.

        Examples
        --------
        >>> import gibbsian as gb
        >>> from gibbsian.models.families.pairwise import PairwiseFamily
        >>> from gibbsian.models.variables import Variables
        >>> model = PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
        >>> other, constant = model.family.recode(model.theta, Variables.binary(2))
        >>> other.theta.tolist(), constant
        ([-1.0, -1.0, 2.0], 0.5)
        """
        target = type(self)(self.graph, as_variables(variables, self.graph.n_nodes), True, self.n_hidden)
        scale = self.layout.gap / target.layout.gap
        biases, couplings, constant = self._substituted(theta, self.layout.low - scale * target.layout.low, scale)
        return Model(target, np.concatenate([biases, couplings])), constant

    def ising(self, theta: Floats) -> Ising:
        """Return the distribution as an Ising model."""
        return Ising(self.graph, *self._substituted(theta, self.layout.low + self.layout.gap / 2, self.layout.gap / 2))

    def _substituted(self, theta: Floats, shift: float, scale: float) -> tuple[Floats, Floats, float]:
        """Return biases, couplings and the constant of the log-weight as a function of y, with x = shift + scale y."""
        (biases, couplings), (graph, n) = self.layout.split(theta), (self.graph, self.graph.n_nodes)
        sums = np.bincount(graph.edges.ravel(), np.repeat(couplings, 2), minlength=n)  # of the couplings of each node
        constant = shift * biases.sum() + shift**2 * couplings.sum()
        return scale * (biases + shift * sums), scale**2 * couplings, float(constant)

    # -- rows ---------------------------------------------------------------------------------------------------------
    def log_weights(self, theta: Floats, x: States) -> Floats:
        """Return ``sum_i b_i x_i + sum_ij w_ij x_i x_j`` of rows of codes."""
        codes, layout = self.variables.checked(x), self.layout
        biases, fields, logs = layout.split(theta)[0], layout.coupling_fields(theta), np.empty(len(codes))
        for block in row_blocks(*codes.shape):
            scores = self.variables.scores_of(codes[block])
            # half the field plus half the bias counts each pair once
            logs[block] = 0.5 * (np.einsum("mi,mi->m", scores, fields(scores) + biases) + scores @ biases)
        return logs

    def statistics(self, x: States) -> Floats:
        """Return the scores and their products along the edges of each row."""
        scores, (i, j) = self.variables.scores_of(self.variables.checked(x)), self.graph.edges.T
        return np.hstack([scores[:, : self.layout.n_biases], scores[:, i] * scores[:, j]])

    def mean_statistics(self, x: States, weights: Floats | None = None) -> Floats:
        """Return the weighted means of the scores and of their products along the edges."""
        codes, edges = self.variables.checked(x), self.graph.edges
        normalised = checked_weights(weights, len(codes))

        def sums(block: Slice) -> Floats:
            scores = self.variables.scores_of(codes[block])
            weighted = scores * normalised[block, None]
            if self.graph.is_dense:
                products = kernels.gather_edges(weighted.T @ scores, edges, both_ways=False)
            else:
                products = kernels.edge_products(weighted, scores, edges)
            return self.layout.join(weighted.sum(axis=0), products)

        least = LEAST_ROWS if self.graph.is_dense else FEW_ROWS
        return sum_in_order(sums, row_blocks(len(codes), self.graph.n_nodes, least_rows=least), self.n_parameters)

    def present_sums(self, x: States, present: Mask, weights: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the weighted sum of each statistic over the rows where its cells are present, and their weight."""
        normalised = checked_weights(weights, len(x))

        def sums(values: Floats) -> Floats:
            weighted = values * normalised[:, None]
            return self.layout.join(weighted.sum(axis=0), kernels.edge_products(weighted, values, self.graph.edges))

        indicators = present.astype(np.float64)
        return sums(self.variables.scores_of(x) * indicators), sums(indicators)

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows, for losses of the log-odds of each variable given all others."""
        return bind_pairs(self.layout, rows._replace(codes=self.variables.checked(rows.codes)))

    # -- other forms --------------------------------------------------------------------------------------------------
    def factors(self, theta: Floats) -> FactorGraph:
        """Return a table of two log-weights for each bias, and one of four for each coupling."""
        scores, (biases, couplings) = self.variables.levels[0], self.split(theta)
        products = np.outer(scores, scores)
        singles = [Factor((i,), b * scores) for i, b in enumerate(biases)]
        pairs = [Factor((i, j), w * products) for (i, j), w in zip(self.graph.edges.tolist(), couplings, strict=True)]
        return FactorGraph(np.array(self.variables.sizes), (*singles, *pairs))

    def statistics_from(self, marginal: Marginal) -> Floats:
        """Return the expected scores and products, given the joint probabilities of the variables of each."""
        scores = self.variables.levels[0]
        singles = [marginal((i,)) @ scores for i in range(self.layout.n_biases)]
        pairs = [scores @ marginal((i, j)) @ scores for i, j in self.graph.edges.tolist()]
        return np.array([*singles, *pairs])

    def given(self, nodes: Sequence[int] | Integers, codes: Sequence[int] | States) -> Given[Self]:
        """Condition on the codes of some variables: couplings to them add to biases, so the others have biases."""
        fixed, given_codes = checked_fixed(self.variables.sizes, nodes, codes)
        family, target = self._without(fixed)
        scores, (i, j) = np.ones(self.graph.n_nodes), self.graph.edges.T
        scores[list(fixed)] = self.layout.low + self.layout.gap * given_codes
        return Given.of_products(family, target, self.layout.join(scores, scores[i] * scores[j]))

    @cached_by_nodes
    def _without(self, nodes: Scope) -> tuple[Self, Integers]:
        """Return the family of the other variables, and the index of the new parameter of each old one, or -1."""
        rest, (i, j) = np.setdiff1d(np.arange(self.graph.n_nodes), nodes), self.graph.edges.T
        index = np.full(self.graph.n_nodes, -1)
        index[rest] = np.arange(rest.size)
        graph, free_edges = self.graph.subgraph(rest)
        edges = np.maximum(index[i], index[j])  # a coupling to a given variable adds to the bias of its other end
        edges[free_edges] = rest.size + np.arange(free_edges.size)
        n_hidden = int((rest >= self.graph.n_nodes - self.n_hidden).sum())
        family = type(self)(graph, self.variables.take(rest), n_hidden=n_hidden)
        return family, np.concatenate([index[: self.layout.n_biases], edges])
