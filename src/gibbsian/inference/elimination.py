"""Exact inference by variable elimination, for graphs of low treewidth (trees, strips, grids up to about 20 wide)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers
from gibbsian.backends.numba import elimination as kernels
from gibbsian.backends.threads import map_slices
from gibbsian.errors import TooExpensiveError
from gibbsian.graphs import Graph
from gibbsian.inference.engine import ENGINES, INSTEAD, Cost, check_n_samples, check_nodes
from gibbsian.inference.ising_answers import IsingAnswers, IsingEngine
from gibbsian.inference.ordering import MAX_WIDTH, EliminationPlan, min_entries, plan_elimination
from gibbsian.models.base import Family
from gibbsian.models.ising import is_ising
from gibbsian.resources import require_memory

SECONDS_PER_ENTRY = 3e-8
SECONDS_PER_NODE = 5e-7
# A field that outweighs all others by this much leaves the other value a probability of zero.
CLAMP_MARGIN = 400.0
# Uniform numbers held at a time while sampling.
DRAWS_PER_CHUNK = 2**22

_Tree = tuple[Integers, Integers, Integers, Integers, Integers, Integers, tuple[int, int]]


def _seconds(graph: Graph, n_entries: float) -> float:
    return 1e-4 + SECONDS_PER_ENTRY * n_entries + SECONDS_PER_NODE * graph.n_nodes


@ENGINES.register("elimination")
class Elimination(IsingEngine):
    """Exact answers by variable elimination.

    One pass up the tree of cliques gives log Z and the conditional of each variable given its separator; one pass down
    gives all means and the moments of all edges. A joint marginal of other variables takes a pass for each state of all
    but the last of them, which conditions on that state.

    Parameters
    ----------
    family : PairwiseFamily
        On a graph of low treewidth; `exact` checks what that costs.
    max_seconds : float
        Limit for questions that need many passes (`second_moments`, `marginal` of many variables).

    Examples
    --------
    >>> import gibbsian as gb
    >>> chain = gb.PairwiseFamily.model(gb.graphs.grid(1, 1000), None, [0.5] * 999)
    >>> answers = gb.inference.Elimination(chain.family).at(chain.theta)
    >>> answers.log_partition                   # 1000 log 2 + 999 log cosh 0.5
    813.14...
    >>> answers.moments[:2]                     # tanh 0.5
    array([0.46211716, 0.46211716])
    """

    @classmethod
    def price(cls, family: Family) -> Cost | None:
        """Predict the cost for families of spins in some coding."""
        if not is_ising(family):
            return None
        plan = plan_elimination(family.graph)
        if plan is None:
            entries = 2.0 ** (MAX_WIDTH + 1)
            return Cost("elimination", SECONDS_PER_ENTRY * entries, 8 * entries, MAX_WIDTH + 1, lower_bound=True)
        # the log-odds, the stack of messages, a clique's table with its signed half, the plan, the statistics
        n_nodes, in_plan = family.graph.n_nodes, 4 * plan.separators.size
        n_cells = plan.n_entries + plan.stack_size + 3 * 2**plan.width + in_plan + 12 * n_nodes
        seconds = _seconds(family.graph, plan.n_entries)
        return Cost("elimination", seconds, 8.0 * n_cells, plan.width, plan=plan)

    @classmethod
    def cost_lower_bound(cls, family: Family) -> float:
        """Return a bound that needs no order."""
        return _seconds(family.graph, min_entries(family.graph)) if is_ising(family) else 0.0

    @cached_property
    def plan(self) -> EliminationPlan:
        """The order of elimination and what follows from it."""
        if not isinstance(self.cost.plan, EliminationPlan):
            raise TooExpensiveError(
                f"eliminating {self.family.graph.n_nodes} variables would take {self.cost.describe()}", INSTEAD
            )
        return self.cost.plan

    @cached_property
    def tree(self) -> _Tree:
        """The plan as arguments of the kernels."""
        plan = self.plan
        sizes = (plan.stack_size, 2 ** (plan.width + 1))
        return plan.pointers, plan.separators, plan.child_pointers, plan.children, plan.tables, plan.slots, sizes

    def at(self, theta: Floats) -> EliminationAnswers:
        """Return the answers at some parameters."""
        return EliminationAnswers(self, theta)


class EliminationAnswers(IsingAnswers):
    """Answers from one pass up the tree of cliques and one down."""

    engine: Elimination

    @cached_property
    def _separator_couplings(self) -> Floats:
        """Coupling of each node to each node of its separator, zero where elimination joined them."""
        return np.append(self.ising.couplings, 0.0).take(self.engine.plan.edge_ids)  # -1 is the index of the zero

    def _upward(self, biases: Floats, maximise: bool = False) -> tuple[float, Floats]:
        placed = biases[self.engine.plan.order]
        result: tuple[float, Floats] = kernels.upward(*self.engine.tree, placed, self._separator_couplings, maximise)
        return result

    @cached_property
    def _up(self) -> tuple[float, Floats]:
        """Log Z of the spin form, and the log-odds of each node given its separator."""
        return self._upward(self.ising.fields)

    def _spin_means(self, odds: Floats) -> tuple[Floats, Floats]:
        """E[s_i] by node, and E[s_i s_j] by entry of the separators."""
        placed, products = kernels.downward(*self.engine.tree, odds)
        means = np.empty_like(placed)
        means[self.engine.plan.order] = placed
        return means, products

    @cached_property
    def _spin_moments(self) -> tuple[Floats, Floats]:
        """E[s_i] by node and E[s_i s_j] by edge."""
        means, products = self._spin_means(self._up[1])
        ids = self.engine.plan.edge_ids
        edges: Floats = np.empty(self.ising.graph.n_edges)
        edges[ids[ids >= 0]] = products[ids >= 0]
        return means, edges

    @cached_property
    def log_partition(self) -> float:
        """Log Z."""
        return float(self._up[0] + self.ising.constant)

    @cached_property
    def spin_means(self) -> Floats:
        """E[s_i] of each spin."""
        return self._spin_moments[0]

    @cached_property
    def edge_products(self) -> Floats:
        """E[s_i s_j] along each edge."""
        return self._spin_moments[1]

    @cached_property
    def spin_products(self) -> Floats:
        """E[s_i s_j] of all pairs; one pass for each variable."""
        n = self.ising.graph.n_nodes
        instead = "ask for `moments`, over the edges"
        self.engine.require_passes(n, f"all second moments of {n} variables", instead)
        require_memory(16.0 * n**2, f"the matrix of second moments of {n} variables", instead)
        means = self.spin_means
        second: Floats = np.empty((n, n))
        for node in range(n):
            sign = 1.0 if means[node] > 0 else -1.0  # given the likelier value, less is subtracted below
            given = self._means_given({node: sign})
            # E[s s_j] = P(+) E[s_j | +] - P(-) E[s_j | -], and the two terms add up to E[s_j]
            second[node] = sign * ((1.0 + sign * means[node]) * given - means)
            second[node, node] = 1.0
        return 0.5 * (second + second.T)

    def marginal(self, nodes: Iterable[int]) -> Floats:
        """Return the joint probabilities of some variables, shape ``(2,) * k``, axes in the order given.

        Examples
        --------
        >>> import gibbsian as gb
        >>> chain = gb.PairwiseFamily.model(gb.graphs.grid(1, 3), None, [1.0, 1.0])
        >>> gb.inference.exact(chain).marginal([2, 0]).round(3)
        array([[0.395, 0.105], [0.105, 0.395]])
        """
        nodes = check_nodes(nodes, self.ising.graph.n_nodes)
        what = f"the joint marginal of {nodes.size} variables"
        self.engine.require_passes(2.0**nodes.size - 1, what, "ask for fewer")
        table: Floats = np.ones(1)
        for depth, node in enumerate(nodes):
            means = [self._conditional_mean(node, nodes[:depth], state, p) for state, p in enumerate(table)]
            table = (table[:, None] * (0.5 * (1.0 + np.outer(means, [-1.0, 1.0])))).ravel()
        return table.reshape((2,) * nodes.size)

    def _conditional_mean(self, node: int, given: Integers, state: int, probability: float) -> float:
        """E[s_node] given the state of some nodes by its number; the first node is the most significant bit."""
        if probability == 0.0:
            return 0.0
        bits = (state >> np.arange(given.size - 1, -1, -1)) & 1
        return float(self._means_given(dict(zip(given.tolist(), 2.0 * bits - 1.0, strict=True)))[node])

    def _means_given(self, signs: dict[int, float]) -> Floats:
        """Means of all spins given the values of some, which get fields that outweigh all others."""
        if not signs:
            return self.spin_means
        biases = self.ising.fields.copy()
        indptr, _, ids = self.ising.graph.csr
        for node, sign in signs.items():
            largest_field = np.abs(self.ising.couplings[ids[indptr[node] : indptr[node + 1]]]).sum()
            biases[node] = sign * (largest_field + CLAMP_MARGIN)
        return self._spin_means(self._upward(biases)[1])[0]

    @cached_property
    def mode(self) -> tuple[Codes, float]:
        """A state of largest probability and its log-probability."""
        plan = self.engine.plan
        largest, odds = self._upward(self.ising.fields, maximise=True)
        placed: Codes = kernels.decode(plan.pointers, plan.separators, plan.tables, odds)
        return self._states(placed[None, :])[0], largest - self._up[0]

    def sample(self, n_samples: int, rng: np.random.Generator) -> Codes:
        """Draw independent states: each variable given its separator, from the last eliminated to the first."""
        n_samples, n = check_n_samples(n_samples), self.ising.graph.n_nodes
        require_memory(n_samples * n, f"{n_samples} samples of {n} variables", "draw fewer at a time")
        samples = np.empty((n_samples, n), np.int8)
        plan = self.engine.plan
        tree = (plan.pointers, plan.separators, plan.tables, self._up[1])
        rows = max(DRAWS_PER_CHUNK // n, 1)
        for start in range(0, n_samples, rows):
            uniforms = rng.random((min(rows, n_samples - start), n))
            drawn = map_slices(lambda part: kernels.sample(*tree, uniforms[part]), len(uniforms), uniforms.size)  # noqa: B023
            placed = np.concatenate(drawn)
            samples[start : start + len(placed)] = self._states(placed)
        return samples

    def _states(self, placed: Codes) -> Codes:
        """Return the codes by node of spins by place."""
        codes = np.empty(placed.shape, np.int8)
        codes[:, self.engine.plan.order] = placed == 1
        return codes
