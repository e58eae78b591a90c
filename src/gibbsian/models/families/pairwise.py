"""The pairwise Boltzmann machine: two-valued variables, of which neighbours in a graph interact (YU20 eq. 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple, Self

import numpy as np

from gibbsian.backends.numba import pairwise as kernels
from gibbsian.backends.parallel import sum_in_order
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.conditionals import Conditionals, Pairs, WeightedRows, bind_pairs
from gibbsian.models.factors import Factor, FactorGraph, Marginal
from gibbsian.models.family import Array, Model, Parts, fields_alone
from gibbsian.models.file_parts import SIZE, TRUTH, PartsInFile, Plain, reals, wholes
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions
from gibbsian.models.ising import Ising
from gibbsian.models.scopes import Scopes
from gibbsian.models.states import checked_fixed, checked_shares
from gibbsian.models.variables import SPINS, Variables
from gibbsian.resources import LEAST_ROWS, row_blocks

# Rows of a large sparse family whose products are summed together: no more than a few stay near the cache.
FEW_ROWS = 8


class PairwiseParts(NamedTuple):
    """Views of theta: the biases (none without), and the couplings in the order of the edges."""

    biases: Array
    couplings: Array


@dataclass(frozen=True, eq=False)
class PairwiseFamily:
    """``P(x) = exp(sum_i b_i x_i + sum_ij w_ij x_i x_j) / Z`` on a graph, x the scores of two-valued variables.

    Parameters
    ----------
    graph : Graph
        Which pairs interact.
    variables : Variables, default=SPINS
        All with the same two scores: ``Variables.spins(n)``, which is the default, or ``Variables.binary(n)``. The same
        parameters mean another distribution with other scores.
    bias : bool, default=True
        Whether there are biases.
    n_hidden : int, default=0
        How many variables, the last ones, no row of data shows.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.models.families.pairwise import PairwiseFamily
    >>> family = PairwiseFamily(gb.graphs.complete(3))
    >>> theta = np.array([0.1, 0, 0, 1.0, 0.0, -1.0])                 # three biases, then three couplings
    >>> family.log_weights(theta, np.array([[1, 1, 1], [1, 1, 0]]))
    array([0.1, 2.1])
    """

    graph: Graph
    variables: Variables = SPINS
    bias: bool = True
    n_hidden: int = 0

    registered_name: ClassVar[str] = "pairwise"
    parts_in_file: ClassVar[PartsInFile] = {
        "n_variables": SIZE,
        "bias": TRUTH,
        "n_hidden": Plain((int,), 0, size="hidden"),
        "edges": wholes("edges", 2, below="all"),
        "theta": reals("parameters"),
    }
    __getstate__ = fields_alone

    def __post_init__(self) -> None:
        if self.variables == SPINS:
            object.__setattr__(self, "variables", Variables.spins(self.graph.n_nodes))
        if len(self.variables) != self.graph.n_nodes:
            raise ArgumentError(f"are {len(self.variables)} of {self.graph.n_nodes} nodes", argument="variables")
        if not self.variables.two_valued or len(set(self.variables.scores or ((),) * 2)) > 1:
            raise ArgumentError("must all have the same two scores, such as -1 and 1", argument="variables")

    @classmethod
    def model(
        cls,
        graph: Graph,
        biases: Sequence[float] | Array | None,
        couplings: Sequence[float] | Array,
        variables: Variables = SPINS,
    ) -> Model[Self]:
        """Return a model from its biases (None for none) and its couplings in the order of the edges."""
        parts = [np.asarray(part, float) for part in (biases, couplings) if part is not None]
        return Model(cls(graph, variables, bias=biases is not None), np.concatenate(parts))

    # -- structure ----------------------------------------------------------------------------------------------------
    @property
    def n_biases(self) -> int:
        """Number of biases."""
        return self.graph.n_nodes if self.bias else 0

    @property
    def n_parameters(self) -> int:
        """Biases and couplings."""
        return self.n_biases + self.graph.n_edges

    @property
    def penalised(self) -> Array:
        """The couplings."""
        return np.arange(self.n_parameters) >= self.n_biases

    @property
    def low(self) -> float:
        """The lower of the two scores."""
        return self.variables.levels[0][0]

    @property
    def gap(self) -> float:
        """How far the two scores are apart."""
        low, high = self.variables.levels[0]
        return high - low

    @property
    def scopes(self) -> Scopes:
        """The variables that have a bias, and the edges."""
        singles = ((i,) for i in range(self.n_biases))
        return Scopes([*singles, *map(tuple, self.graph.edges.tolist())], self.graph.n_nodes)

    @property
    def statistic_range(self) -> tuple[Array, Array]:
        """From the least to the largest score, and product of two of them."""
        levels = self.variables.levels[0]
        products = np.outer(levels, levels)
        ends = [
            self._in_layout(np.full(self.graph.n_nodes, pick(levels)), np.full(self.graph.n_edges, pick(products)))
            for pick in (np.min, np.max)
        ]
        return ends[0], ends[1]

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the names of single variables and of products, given those of the columns."""
        units = [*names, *(f"h{number}" for number in range(self.n_hidden))]
        return ["*".join(units[i] for i in scope) for scope in self.scopes]

    def to_parts(self) -> Parts:
        """Return the graph, whether there are biases, and how many units are hidden."""
        plain = {"n_variables": self.graph.n_nodes, "bias": self.bias, "n_hidden": self.n_hidden}
        return Parts(plain, self.graph.to_arrays())

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from what a file keeps; hidden units have the scores of the columns."""
        n_hidden, bias = int(str(parts.plain["n_hidden"])), bool(parts.plain["bias"])
        everything = variables + Variables(variables.sizes[:1] * n_hidden, (variables.scores or ())[:1] * n_hidden)
        return cls(Graph.from_arrays(dict(parts.arrays), len(everything)), everything, bias, n_hidden)

    # -- parameters ---------------------------------------------------------------------------------------------------
    def split(self, theta: Array) -> PairwiseParts:
        """Return views of the biases and the couplings."""
        return PairwiseParts(theta[: self.n_biases], theta[self.n_biases :])

    def canonical(self, theta: Array) -> Array:
        """Return theta, which has no other gauge."""
        return theta

    def interactions(self, theta: Array) -> Interactions:
        """Return the couplings along the edges."""
        layers = (self.graph.n_nodes - self.n_hidden, *([self.n_hidden] * (self.n_hidden > 0)))
        return Interactions(tuple(map(tuple, self.graph.edges.tolist())), self.split(theta).couplings, layers)

    def recode(self, theta: Array, variables: Variables) -> tuple[Model[Self], float]:
        """Return the same distribution of codes with other scores, and the constant in the log-weight.

        A family without biases gets them, because conversion makes them.

        Examples
        --------
        >>> import gibbsian as gb
        >>> from gibbsian.models.families.pairwise import PairwiseFamily
        >>> from gibbsian.models.variables import SPINS, Variables
        >>> model = PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
        >>> other, constant = model.family.recode(model.theta, Variables.binary(2))
        >>> other.theta.tolist(), constant
        ([-1.0, -1.0, 2.0], 0.5)
        """
        target = type(self)(self.graph, variables, True, self.n_hidden)
        scale = self.gap / target.gap
        shift = self.low - scale * target.low
        couplings, own = self.split(theta).couplings, np.zeros(self.graph.n_nodes)
        own[: self.n_biases] = self.split(theta).biases
        pull = np.bincount(self.graph.edges.ravel(), np.repeat(couplings, 2), minlength=self.graph.n_nodes)
        biases = scale * (own + shift * pull)
        constant = shift * own.sum() + shift**2 * couplings.sum()
        return Model(target, np.concatenate([biases, scale**2 * couplings])), float(constant)

    # -- rows ---------------------------------------------------------------------------------------------------------
    def coupling_fields(self, theta: Array) -> Callable[[Array], Array]:
        """Return the function that maps rows of scores (float64) to ``sum_j w_ij x_j``."""
        couplings = self.split(theta).couplings
        if self.graph.is_dense:
            matrix = self.graph.matrix(couplings)
            return lambda numbers: numbers @ matrix
        indptr, heads, ids = self.graph.csr
        weights = couplings[ids]
        return lambda numbers: kernels.sparse_fields(numbers, indptr, heads, weights)

    def log_weights(self, theta: Array, x: Array) -> Array:
        """Return ``sum_i b_i x_i + sum_ij w_ij x_i x_j`` of rows of codes."""
        codes, biases, fields = self.variables.checked(x), np.zeros(self.graph.n_nodes), self.coupling_fields(theta)
        biases[: self.n_biases] = self.split(theta).biases
        logs = np.empty(len(codes))
        for block in row_blocks(*codes.shape):
            numbers = self.variables.numbers(codes[block])
            # half the field plus half the bias counts each pair once
            logs[block] = 0.5 * (np.einsum("mi,mi->m", numbers, fields(numbers) + biases) + numbers @ biases)
        return logs

    def statistics(self, x: Array) -> Array:
        """Return the scores and their products along the edges of each row."""
        numbers, (i, j) = self.variables.numbers(self.variables.checked(x)), self.graph.edges.T
        return np.hstack([numbers[:, : self.n_biases], numbers[:, i] * numbers[:, j]])

    def mean_statistics(self, x: Array, weights: Array | None = None) -> Array:
        """Return the weighted means of the scores and of their products along the edges."""
        codes = self.variables.checked(x)
        shares = checked_shares(weights, len(codes))

        def sums(block: slice) -> Array:
            numbers = self.variables.numbers(codes[block])
            weighted, edges = numbers * shares[block, None], self.graph.edges
            if self.graph.is_dense:
                products = kernels.gather_edges(weighted.T @ numbers, edges, both_ways=False)
            else:
                products = kernels.edge_products(weighted, numbers, edges)
            return self._in_layout(weighted.sum(axis=0), products)

        least = LEAST_ROWS if self.graph.is_dense else FEW_ROWS
        return sum_in_order(sums, row_blocks(len(codes), self.graph.n_nodes, least_rows=least), self.n_parameters)

    def _in_layout(self, singles: Array, pairs: Array) -> Array:
        return np.concatenate([singles, pairs]) if self.bias else pairs

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows of codes to the log-odds of each value given the others."""
        return bind_pairs(Pairs(self.graph, self.bias, self.low, self.gap), rows)

    # -- other forms --------------------------------------------------------------------------------------------------
    def factors(self, theta: Array) -> FactorGraph:
        """Return tables of two and of four log-weights."""
        levels, (biases, couplings) = self.variables.levels[0], self.split(theta)
        singles = [Factor((i,), b * levels) for i, b in enumerate(biases)]
        products = np.outer(levels, levels)
        pairs = [Factor((i, j), w * products) for (i, j), w in zip(self.graph.edges.tolist(), couplings, strict=True)]
        return FactorGraph(np.array(self.variables.sizes), (*singles, *pairs))

    def statistics_from(self, marginal: Marginal) -> Array:
        """Return the expected scores and products, given the joint probabilities of any few variables."""
        levels = self.variables.levels[0]
        singles = [marginal((i,)) @ levels for i in range(self.n_biases)]
        pairs = [levels @ marginal((i, j)) @ levels for i, j in self.graph.edges.tolist()]
        return np.array([*singles, *pairs])

    def ising(self, theta: Array) -> Ising:
        """Return the distribution in spins."""
        (biases, couplings), own = self.split(theta), np.zeros(self.graph.n_nodes)
        own[: self.n_biases] = biases
        middle, half = self.low + self.gap / 2, self.gap / 2
        pull = np.bincount(self.graph.edges.ravel(), np.repeat(couplings, 2), minlength=self.graph.n_nodes)
        constant = middle * own.sum() + middle**2 * couplings.sum()
        return Ising(self.graph, half * (own + middle * pull), half**2 * couplings, float(constant))

    def statistics_of_spins(self, means: Array, products: Array) -> Array:
        """Return the expected statistics, given E[s_i] of all spins and E[s_i s_j] along the edges."""
        middle, half, (i, j) = self.low + self.gap / 2, self.gap / 2, self.graph.edges.T
        pairs = middle**2 + middle * half * (means[i] + means[j]) + half**2 * products
        return self._in_layout(middle + half * means, pairs)

    def given(self, nodes: Sequence[int] | Array, codes: Sequence[int] | Array) -> Given[Self]:
        """Return the family of the other variables given the codes of some (see `Given`); it has biases."""
        fixed, held = checked_fixed(self.variables.sizes, nodes, codes)
        family, place = self._without(fixed)
        numbers, (i, j) = np.ones(self.graph.n_nodes), self.graph.edges.T
        numbers[list(fixed)] = self.low + self.gap * held
        return Given.of_products(family, place, self._in_layout(numbers, numbers[i] * numbers[j]))

    @cached_property
    def _without(self) -> Callable[[tuple[int, ...]], tuple[Self, Array]]:
        """The family of the other variables, and where each parameter goes; remembered, as rows ask again."""
        return lru_cache(maxsize=64)(self._make_without)

    def _make_without(self, nodes: tuple[int, ...]) -> tuple[Self, Array]:
        rest, (i, j) = np.setdiff1d(np.arange(self.graph.n_nodes), nodes), self.graph.edges.T
        number = np.full(self.graph.n_nodes, -1)
        number[rest] = np.arange(rest.size)
        graph, kept = self.graph.subgraph(rest)
        edges = np.maximum(number[i], number[j])  # a coupling to a given variable acts on the bias of its other end
        edges[kept] = rest.size + np.arange(kept.size)
        hidden = int((rest >= self.graph.n_nodes - self.n_hidden).sum())
        return type(self)(graph, self.variables.take(rest), n_hidden=hidden), self._in_layout(number, edges)
