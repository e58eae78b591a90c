"""Exact inference by variable elimination, for graphs of low treewidth (trees, strips, grids up to about 20 wide)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from gibbsian.backends.numba import elimination as kernels
from gibbsian.backends.parallel import in_slices
from gibbsian.errors import TooExpensiveError
from gibbsian.graphs import Graph
from gibbsian.inference.contract import sizes_of
from gibbsian.inference.engine import ENGINES, Cost, Engine, check_n_samples, check_nodes
from gibbsian.inference.ising_answers import IsingAnswers
from gibbsian.inference.ordering import MAX_WIDTH, EliminationPlan, least_entries, plan_elimination
from gibbsian.models.ising import is_ising
from gibbsian.resources import require_memory

SECONDS_PER_ENTRY = 3e-8
SECONDS_PER_NODE = 5e-7
# A field that outweighs all others by this much leaves the other value a probability of zero.
CLAMP_MARGIN = 400.0
# Uniform numbers held at a time while sampling.
DRAWS_PER_CHUNK = 2**22

_Tree = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]


def _seconds(graph: Graph, n_entries: float) -> float:
    return 1e-4 + SECONDS_PER_ENTRY * n_entries + SECONDS_PER_NODE * graph.n_nodes


def _price(graph: Graph) -> Cost:
    """Predict what eliminating the variables of a graph costs."""
    plan = plan_elimination(graph)
    if plan is None:
        entries = 2.0 ** (MAX_WIDTH + 1)
        return Cost("elimination", SECONDS_PER_ENTRY * entries, 8 * entries, MAX_WIDTH + 1, lower_bound=True)
    seconds = _seconds(graph, plan.n_entries)
    # the log-odds, the stack of messages, a clique's table with its signed half, and the plan with the statistics
    n_numbers = plan.n_entries + plan.stack_size + 3 * 2**plan.width + 4 * plan.separators.size + 12 * graph.n_nodes
    return Cost("elimination", seconds, 8.0 * n_numbers, plan.width, plan=plan)


@ENGINES.register("elimination")
class Elimination(Engine):
    """Exact answers by variable elimination.

    One pass up the tree of cliques gives log Z and the conditional of each variable given its separator; one pass down
    gives all means and the moments of all edges. Joint marginals of other variables come by conditioning, one pass for
    each state of all but the last of them.

    Parameters
    ----------
    family : PairwiseModel
        On a graph of low treewidth; `exact` checks what that costs.
    max_seconds : float
        Limit for questions that need many passes (`second_moments`, `marginal` of many variables).

    Examples
    --------
    >>> import gibbsian as gb
    >>> chain = gb.PairwiseModel.build(gb.graphs.grid(1, 1000), None, [0.5] * 999)
    >>> answers = gb.inference.Elimination(chain.family).at(chain.theta)
    >>> answers.log_partition                   # 1000 log 2 + 999 log cosh 0.5
    813.14...
    >>> answers.moments[:2]                     # tanh 0.5
    array([0.46211716, 0.46211716])
    """

    @classmethod
    def price(cls, family: Any) -> Cost | None:
        """Predict the cost for families of spins in some coding."""
        return _price(family.graph) if is_ising(family) else None

    @classmethod
    def least(cls, family: Any) -> float:
        """Return a bound that needs no order."""
        return _seconds(family.graph, least_entries(family.graph)) if is_ising(family) else 0.0

    @cached_property
    def plan(self) -> EliminationPlan:
        """The order of elimination and what follows from it."""
        if self.cost.plan is None:
            raise TooExpensiveError(
                f"eliminating {sizes_of(self.family).size} variables would take {self.cost.describe()}",
                "use sampling or pseudolikelihood",
            )
        return self.cost.plan

    @cached_property
    def tree(self) -> _Tree:
        """The plan as the kernels take it."""
        plan = self.plan
        sizes = (plan.stack_size, 2 ** (plan.width + 1))
        return plan.pointers, plan.separators, plan.child_pointers, plan.children, plan.tables, plan.slots, sizes

    def at(self, theta: np.ndarray) -> EliminationAnswers:
        """Return the answers at some parameters."""
        return EliminationAnswers(self, theta)


class EliminationAnswers(IsingAnswers[Elimination]):
    """Answers from one pass up the tree of cliques and one down."""

    @cached_property
    def _separator_couplings(self) -> np.ndarray:
        """Coupling of each node to each node of its separator, zero where elimination joined them."""
        ids = self.engine.plan.edge_ids
        return np.append(self.ising.couplings, 0.0)[ids]  # -1 finds the zero

    def _upward(self, biases: np.ndarray, maximise: bool = False) -> tuple[float, np.ndarray]:
        placed = biases[self.engine.plan.order]
        return kernels.upward(*self.engine.tree, placed, self._separator_couplings, maximise)

    @cached_property
    def _up(self) -> tuple[float, np.ndarray]:
        """Log Z of the spin form, and the log-odds of each node given its separator."""
        return self._upward(self.ising.fields)

    def _spin_means(self, odds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """E[s_i] by node, and E[s_i s_j] by entry of the separators."""
        placed, products = kernels.downward(*self.engine.tree, odds)
        means = np.empty_like(placed)
        means[self.engine.plan.order] = placed
        return means, products

    @cached_property
    def _spin_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """E[s_i] by node and E[s_i s_j] by edge."""
        means, products = self._spin_means(self._up[1])
        ids = self.engine.plan.edge_ids
        edges = np.empty(self.ising.graph.n_edges)
        edges[ids[ids >= 0]] = products[ids >= 0]
        return means, edges

    @cached_property
    def log_partition(self) -> float:
        """Log Z."""
        return float(self._up[0] + self.ising.constant)

    @cached_property
    def spin_means(self) -> np.ndarray:
        """E[s_i] of each spin."""
        return self._spin_moments[0]

    @cached_property
    def edge_products(self) -> np.ndarray:
        """E[s_i s_j] along each edge."""
        return self._spin_moments[1]

    @cached_property
    def spin_products(self) -> np.ndarray:
        """E[s_i s_j] of all pairs; one pass for each variable."""
        n = self.ising.graph.n_nodes
        self.engine.require_passes(n, f"all second moments of {n} variables", "ask for `moments`, over the edges")
        require_memory(
            16.0 * n**2, f"the matrix of second moments of {n} variables", "ask for `moments`, over the edges"
        )
        means = self.spin_means
        second = np.empty((n, n))
        for node in range(n):
            sign = 1.0 if means[node] > 0 else -1.0  # the likelier value, so that what is subtracted is smaller
            given = self._means_given({node: sign})
            # E[s s_j] = P(+) E[s_j | +] - P(-) E[s_j | -], and the two terms add up to E[s_j]
            second[node] = sign * ((1.0 + sign * means[node]) * given - means)
            second[node, node] = 1.0
        return 0.5 * (second + second.T)

    def marginal(self, nodes: Iterable[int]) -> np.ndarray:
        """Return the joint probabilities of some variables, shape ``(2,) * k``, axes in the order given.

        Examples
        --------
        >>> import gibbsian as gb
        >>> chain = gb.PairwiseModel.build(gb.graphs.grid(1, 3), None, [1.0, 1.0])
        >>> gb.inference.exact(chain).marginal([2, 0]).round(3)
        array([[0.395, 0.105], [0.105, 0.395]])
        """
        nodes = check_nodes(nodes, self.ising.graph.n_nodes)
        what = f"the joint marginal of {nodes.size} variables"
        self.engine.require_passes(2.0**nodes.size - 1, what, "ask for fewer")
        table = np.ones(1)
        for depth, node in enumerate(nodes):
            means = [self._conditional_mean(node, nodes[:depth], state, p) for state, p in enumerate(table)]
            table = (table[:, None] * (0.5 * (1.0 + np.outer(means, [-1.0, 1.0])))).ravel()
        return table.reshape((2,) * nodes.size)

    def _conditional_mean(self, node: int, given: np.ndarray, state: int, probability: float) -> float:
        """E[s_node] when the nodes `given`, the first at the top bit, are in one state."""
        if probability == 0.0:
            return 0.0
        bits = (state >> np.arange(given.size - 1, -1, -1)) & 1
        return self._means_given(dict(zip(given.tolist(), 2.0 * bits - 1.0, strict=True)))[node]

    def _means_given(self, signs: dict[int, float]) -> np.ndarray:
        """Means of all spins when some are held at +1 or -1, by fields that nothing can outweigh."""
        if not signs:
            return self.spin_means
        biases = self.ising.fields.copy()
        indptr, _, ids = self.ising.graph.csr
        for node, sign in signs.items():
            pull = np.abs(self.ising.couplings[ids[indptr[node] : indptr[node + 1]]]).sum()
            biases[node] = sign * (pull + CLAMP_MARGIN)
        return self._spin_means(self._upward(biases)[1])[0]

    @cached_property
    def mode(self) -> tuple[np.ndarray, float]:
        """A state of largest probability and its log-probability."""
        plan = self.engine.plan
        largest, odds = self._upward(self.ising.fields, maximise=True)
        placed = kernels.decode(plan.pointers, plan.separators, plan.tables, odds)
        return self._states(placed[None, :])[0], largest - self._up[0]

    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent states: each variable given its separator, from the last eliminated to the first."""
        n_samples, n = check_n_samples(n_samples), self.ising.graph.n_nodes
        require_memory(n_samples * n, f"{n_samples} samples of {n} variables", "draw fewer at a time")
        samples = np.empty((n_samples, n), np.int8)
        plan = self.engine.plan
        tree = (plan.pointers, plan.separators, plan.tables, self._up[1])
        rows = max(DRAWS_PER_CHUNK // n, 1)
        for start in range(0, n_samples, rows):
            uniforms = rng.random((min(rows, n_samples - start), n))

            def draw(part: slice, uniforms: np.ndarray = uniforms) -> np.ndarray:
                return kernels.sample(*tree, uniforms[part])

            placed = np.concatenate(in_slices(draw, len(uniforms), uniforms.size))
            samples[start : start + len(placed)] = self._states(placed)
        return samples

    def _states(self, placed: np.ndarray) -> np.ndarray:
        """Turn bits by place into values by node."""
        bits = np.empty_like(placed)
        bits[:, self.engine.plan.order] = placed
        return self.values(bits == 1)
