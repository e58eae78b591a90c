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
from gibbsian.inference.base import (
    ENGINES,
    Cost,
    Moments,
    SpinEngine,
    check_n_samples,
    check_nodes,
    has_spin_form,
)
from gibbsian.inference.ordering import MAX_WIDTH, EliminationPlan, least_entries, plan_elimination
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
    return Cost("elimination", seconds, 8.0 * n_numbers, plan.width)


@ENGINES.register("elimination")
class Elimination(SpinEngine):
    """Exact answers by variable elimination.

    One pass up the tree of cliques gives log Z and the conditional of each variable given its separator; one pass down
    gives all means and the moments of all edges. Joint marginals of other variables come by conditioning, one pass for
    each state of all but the last of them.

    Parameters
    ----------
    model : PairwiseModel
        On a graph of low treewidth; `exact` checks what that costs.
    max_seconds : float
        Limit for questions that need many passes (`second_moments`, `marginal` of many variables).

    Examples
    --------
    >>> import gibbsian as gb
    >>> chain = gb.PairwiseModel.build(gb.graphs.grid(1, 1000), None, [0.5] * 999)
    >>> engine = gb.inference.Elimination(chain)
    >>> engine.log_partition()                  # 1000 log 2 + 999 log cosh 0.5
    813.14...
    >>> engine.moments().statistics[:2]         # tanh 0.5
    array([0.46211716, 0.46211716])
    """

    shared = ("_plan",)

    @classmethod
    def price(cls, model: Any) -> Cost | None:
        """Predict the cost for models that are pairwise spins in some domain."""
        return _price(model.graph) if has_spin_form(model) else None

    @classmethod
    def least(cls, model: Any) -> float:
        """Return a bound that needs no order."""
        return _seconds(model.graph, least_entries(model.graph)) if has_spin_form(model) else 0.0

    @cached_property
    def _plan(self) -> EliminationPlan:
        plan = plan_elimination(self.model.graph)
        if plan is None:
            raise TooExpensiveError(
                f"eliminating {self.model.n_variables} variables would take {self.cost.describe()}",
                "use sampling or pseudolikelihood",
            )
        return plan

    @property
    def _tree(self) -> _Tree:
        """The plan as the kernels take it."""
        plan = self._plan
        sizes = (plan.stack_size, 2 ** (plan.width + 1))
        return plan.pointers, plan.separators, plan.child_pointers, plan.children, plan.tables, plan.slots, sizes

    @cached_property
    def _separator_couplings(self) -> np.ndarray:
        """Coupling of each node to each node of its separator, zero where elimination joined them."""
        ids = self._plan.edge_ids
        return np.append(self._form.couplings, 0.0)[ids]  # -1 finds the zero

    def _upward(self, biases: np.ndarray, maximise: bool = False) -> tuple[float, np.ndarray]:
        placed = biases[self._plan.order]
        return kernels.upward(*self._tree, placed, self._separator_couplings, maximise)

    @cached_property
    def _up(self) -> tuple[float, np.ndarray]:
        """Log Z of the spin form, and the log-odds of each node given its separator."""
        return self._upward(self._form.biases)

    def _spin_means(self, odds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """E[s_i] by node, and E[s_i s_j] by entry of the separators."""
        placed, products = kernels.downward(*self._tree, odds)
        means = np.empty_like(placed)
        means[self._plan.order] = placed
        return means, products

    @cached_property
    def _spin_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """E[s_i] by node and E[s_i s_j] by edge."""
        means, products = self._spin_means(self._up[1])
        ids = self._plan.edge_ids
        edges = np.empty(self.model.graph.n_edges)
        edges[ids[ids >= 0]] = products[ids >= 0]
        return means, edges

    def log_partition(self) -> float:
        """Return log Z."""
        return float(self._up[0] + self._form.constant)

    def moments(self) -> Moments:
        """Return log Z and the expected statistics in the layout of theta."""
        return Moments(self.log_partition(), self._form.statistics(self.model, *self._spin_moments))

    def means(self) -> np.ndarray:
        """Return E[x_i] of each variable."""
        return self._form.means(self._spin_moments[0])

    def second_moments(self) -> np.ndarray:
        """Return the matrix E[x_i x_j] of all pairs, joined by an edge or not; one pass for each variable."""
        n = self.model.n_variables
        self._require_passes(n, f"all second moments of {n} variables", "ask for moments() over the edges")
        require_memory(
            16.0 * n**2, f"the matrix of second moments of {n} variables", "ask for moments() over the edges"
        )
        means = self._spin_moments[0]
        second = np.empty((n, n))
        for node in range(n):
            sign = 1.0 if means[node] > 0 else -1.0  # the likelier value, so that what is subtracted is smaller
            given = self._means_given({node: sign})
            # E[s s_j] = P(+) E[s_j | +] - P(-) E[s_j | -], and the two terms add up to E[s_j]
            second[node] = sign * ((1.0 + sign * means[node]) * given - means)
            second[node, node] = 1.0
        second = 0.5 * (second + second.T)
        return self._form.products(means[:, None], means[None, :], second)

    def marginal(self, nodes: Iterable[int]) -> np.ndarray:
        """Return the joint probabilities of some variables, shape ``(2,) * k``, axes in the order given.

        Examples
        --------
        >>> import gibbsian as gb
        >>> chain = gb.PairwiseModel.build(gb.graphs.grid(1, 3), None, [1.0, 1.0])
        >>> gb.inference.Elimination(chain).marginal([2, 0]).round(3)
        array([[0.395, 0.105], [0.105, 0.395]])
        """
        nodes = check_nodes(nodes, self.model.n_variables)
        self._require_passes(2.0**nodes.size - 1, f"the joint marginal of {nodes.size} variables", "ask for fewer")
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
            return self._spin_moments[0]
        biases = self._form.biases.copy()
        indptr, _, ids = self.model.graph.csr
        for node, sign in signs.items():
            pull = np.abs(self._form.couplings[ids[indptr[node] : indptr[node + 1]]]).sum()
            biases[node] = sign * (pull + CLAMP_MARGIN)
        return self._spin_means(self._upward(biases)[1])[0]

    def most_probable(self) -> tuple[np.ndarray, float]:
        """Return a state of largest probability and its log-probability."""
        plan = self._plan
        largest, odds = self._upward(self._form.biases, maximise=True)
        placed = kernels.decode(plan.pointers, plan.separators, plan.tables, odds)
        return self._states(placed[None, :])[0], largest - self._up[0]

    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent states: each variable given its separator, from the last eliminated to the first."""
        n_samples, n = check_n_samples(n_samples), self.model.n_variables
        require_memory(n_samples * n, f"{n_samples} samples of {n} variables", "draw fewer at a time")
        samples = np.empty((n_samples, n), np.int8)
        plan = self._plan
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
        bits[:, self._plan.order] = placed
        return self._form.values(bits == 1)

    def _require_passes(self, n_passes: float, what: str, instead: str) -> None:
        seconds = n_passes * self.cost.seconds
        if seconds > self.max_seconds:
            raise TooExpensiveError(
                f"{what} would take about {seconds:.2g} s by elimination but `max_seconds={self.max_seconds:g}`",
                f"{instead}, or raise `max_seconds`",
            )
