"""Exact inference on planar graphs without fields, of any treewidth, by Pfaffians (YU20 section 4.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import product

import numpy as np

from gibbsian.arrays import Codes, Floats, Mask
from gibbsian.backends.threads import one_blas_thread
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference.engine import ENGINES, Cost, check_n_samples, check_nodes
from gibbsian.inference.ising_answers import IsingAnswers, IsingEngine
from gibbsian.inference.ordering import min_degree_order
from gibbsian.inference.planar.kasteleyn import ExpandedDual, Front, expanded_dual
from gibbsian.inference.planar.pfaffians import Eliminated, MatchingWeights, condition, nodes_of, tree_products
from gibbsian.models.base import Family
from gibbsian.models.ising import IsingFamily, is_ising
from gibbsian.resources import require_memory

# Measured on square lattices: seconds for the embedding and the fronts, and for the blocks of the largest separators.
SECONDS_PER_EDGE, SECONDS_PER_ROOT = 2.5e-4, 3e-9
BYTES_PER_EDGE = 6000.0
# Seconds for a step of a Pfaffian, and for a pair of units in the search for the best matching.
SECONDS_PER_STEP, SECONDS_PER_MATCHING = 2e-5, 2e-5
# Seconds for one entry of the inverse of one sample, and the maximum number of entries in memory.
SECONDS_PER_CELL, SAMPLE_CELLS = 2e-9, 2**22


@ENGINES.register("planar")
class Planar(IsingEngine):
    """Exact answers on a planar graph of spins without fields, or with fields if a ghost spin keeps the graph planar.

    The cut edges of a state are a perfect matching in the expanded dual graph, and sums over matchings are Pfaffians.
    The time grows as the number of edges to the power 1.5, also on graphs of large treewidth. A field is a coupling to
    a ghost spin. On the price list, a family with biases, or with scores 0/1, has all fields, so that its graph must be
    outerplanar; an engine that is built by hand serves any theta whose nonzero fields keep the graph planar.

    Parameters
    ----------
    family : PairwiseFamily
        With any scores.
    max_seconds : float
        Limit for questions that take longer than `moments`.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> lattice = gb.graphs.grid(40, 40)
    >>> critical = gb.PairwiseFamily.model(lattice, None, np.full(lattice.n_edges, np.log(1 + 2**0.5) / 2))
    >>> answers = gb.inference.Planar(critical.family).at(critical.theta)
    >>> answers.log_partition / 1600            # 0.9297 on an infinite lattice (Onsager)
    0.920...
    >>> answers.marginal([0, 41]).round(3)       # across the diagonal at a corner
    array([[0.35, 0.15], [0.15, 0.35]])
    """

    @classmethod
    def price(cls, family: Family) -> Cost | None:
        """Predict the cost for families that are planar without fields, or with all fields."""
        if not is_ising(family):
            return None
        graph, fields = family.graph, _fields(family)
        if fields and min_degree_order(graph, max_width=2) is None:
            return None  # outerplanar graphs have treewidth two, and this order has the treewidth then
        dual = expanded_dual(graph, fields)
        if dual is None:
            return None
        return Cost("Pfaffians", cls.cost_lower_bound(family), BYTES_PER_EDGE * family.n_parameters, plan=dual)

    @classmethod
    def cost_lower_bound(cls, family: Family) -> float:
        """Return the price in seconds if the graph is planar; the test takes longer."""
        n_edges = family.graph.n_edges + len(_fields(family)) if is_ising(family) else 0
        return float(2e-3 + SECONDS_PER_EDGE * n_edges + SECONDS_PER_ROOT * n_edges**1.5)

    def dual(self, fields: tuple[int, ...]) -> ExpandedDual:
        """Return an expanded dual with these fields or more; that of the price is the first choice."""
        for built in self._duals:
            if set(fields) <= set(built.fields):
                return built
        dual = expanded_dual(self.family.graph, fields)
        if dual is None:
            with_ghost = " with a ghost vertex joined to all variables that have a field" if fields else ""
            raise ArgumentError(f"the graph{with_ghost} is not planar", "use `gb.inference.exact(model)`")
        self._duals.append(dual)
        return dual

    @cached_property
    def _duals(self) -> list[ExpandedDual]:
        """The expanded duals so far, that of the price first."""
        offer = self._offer or self.price(self.family)
        return [offer.plan] if offer and isinstance(offer.plan, ExpandedDual) else []

    def at(self, theta: Floats) -> PlanarAnswers:
        """Return the answers at some parameters."""
        return PlanarAnswers(self, theta)


class PlanarAnswers(IsingAnswers):
    """Answers from Pfaffians of the expanded dual."""

    engine: Planar

    @cached_property
    def _dual(self) -> ExpandedDual:
        return self.engine.dual(tuple(np.flatnonzero(self.ising.fields).tolist()))

    @cached_property
    def _weights(self) -> MatchingWeights:
        fields = self._dual.fields
        couplings: Floats = np.zeros(len(self._dual.pairs))
        couplings[: self.ising.graph.n_edges] = self.ising.couplings
        couplings[self.ising.graph.n_edges :][: len(fields)] = self.ising.fields[list(fields)]
        return MatchingWeights.of(self._dual, couplings)

    def _eliminate(self, fronts: list[Front], last: int | None = None) -> deque[Eliminated]:
        """Eliminate all fronts and return the last ones, all by default; after rounding errors, from a ground state."""
        with one_blas_thread():
            try:
                return deque(self._weights.eliminate(fronts), maxlen=last)
            except TooExpensiveError:
                if self._matching_seconds > self.engine.max_seconds:
                    raise
                self._weights = self._weights.relative_to(_ground_state(self._weights))
                return deque(self._weights.eliminate(fronts), maxlen=last)

    @property
    def _matching_seconds(self) -> float:
        return SECONDS_PER_MATCHING * self._dual.n_units**2

    @cached_property
    def _eliminated(self) -> deque[Eliminated]:
        return self._eliminate(self._dual.fronts())

    @cached_property
    def _edge_means(self) -> Floats:
        """E[s_i s_j] of all edges of the dual's graph."""
        uncut: Floats = np.empty(self._dual.n_units)

        def visit(front: Front, inverse: Floats) -> None:
            uncut[front.units] = self._weights.uncut(front.units, np.arange(front.units.size), inverse)

        eliminated = self._eliminated
        self._weights.descend(self._dual.fronts(), eliminated, visit)
        pairs, reference = self._dual.pairs, self._weights.reference
        signs: Floats = reference[pairs].prod(axis=1)
        return (2.0 * uncut[: len(pairs)] - 1.0) * signs

    @cached_property
    def log_partition(self) -> float:
        """Log Z."""
        if not self._dual.n_units:
            return float(np.log(2.0) + self.ising.constant)
        last = (self._eliminated if "_eliminated" in self.__dict__ else self._eliminate(self._dual.fronts(), 1))[-1]
        ghost = np.log(2.0) if self._dual.fields else 0.0
        return float(self._weights.constant + last.log_pfaffian - ghost + self.ising.constant)

    @cached_property
    def edge_products(self) -> Floats:
        """E[s_i s_j] along each edge."""
        return self._edge_means[: self.ising.graph.n_edges]

    @cached_property
    def spin_means(self) -> Floats:
        """E[s_i] of each spin."""
        n, fields = self.ising.graph.n_nodes, list(self._dual.fields)
        means: Floats = np.zeros(n)
        if fields:
            means[fields] = self._edge_means[self.ising.graph.n_edges :][: len(fields)]
            others = np.setdiff1d(np.arange(n), fields)
            means[others] = self._products([[node, n] for node in others.tolist()])
        return means

    @cached_property
    def spin_products(self) -> Floats:
        """E[s_i s_j] of all pairs; one Pfaffian for each."""
        n = self.ising.graph.n_nodes
        i, j = np.triu_indices(n, 1)
        second: Floats = np.eye(n)
        second[i, j] = second[j, i] = self._products(np.stack([i, j], axis=1).tolist())
        return second

    def marginal(self, nodes: Iterable[int]) -> Floats:
        """Return the joint probabilities of some variables, shape ``(2,) * k``, axes in the order given.

        A product of spins is a product over the edges of paths between them: a Pfaffian of the inverse at these edges.
        """
        nodes = check_nodes(nodes, self.ising.graph.n_nodes)
        chosen = np.array(list(product((0, 1), repeat=nodes.size)), dtype=np.int64)
        ghost = [self.ising.graph.n_nodes] if self._dual.fields else []
        means: Floats = np.zeros(len(chosen))  # without fields, products of an odd number of spins have mean zero
        nonzero = np.flatnonzero((chosen.sum(axis=1) % 2 == 0) | bool(ghost))
        subsets = [nodes[row == 1].tolist() for row in chosen[nonzero]]
        means[nonzero] = self._products([subset + ghost * (len(subset) % 2) for subset in subsets])
        signs = 1.0 - 2.0 * (chosen @ (1 - chosen.T) % 2)  # a chosen spin that is low changes the sign of the product
        return np.clip(signs.T @ means, 0.0, None).reshape((2,) * nodes.size) / 2.0**nodes.size

    def _products(self, subsets: Sequence[Sequence[int]]) -> Floats:
        """Return the means of products of spins, of an even number of vertices each."""
        depth = len(self._path(self._dual.order[-1:]))
        self._require(SECONDS_PER_STEP * depth * len(subsets), f"{len(subsets)} products of spins")
        paths = [self._path(subset) for subset in subsets]
        on_paths = np.array(sorted(set().union(*paths)), dtype=np.int64)
        if not on_paths.size:
            return np.ones(len(subsets))
        require_memory(
            128.0 * on_paths.size**2, f"the inverse at {on_paths.size} edges", "ask for variables that are nearer"
        )
        (last,) = self._eliminate(self._dual.fronts(tuple(on_paths.tolist())), 1)
        weights, inverse = self._weights, last.inverse(np.zeros((0, 0)))
        means: Floats = np.ones(len(subsets))
        for number, (subset, path) in enumerate(zip(subsets, paths, strict=True)):
            units = np.array(sorted(path), dtype=np.int64)
            at = nodes_of(np.searchsorted(on_paths, units))
            means[number] = weights.product_mean(units, inverse[np.ix_(at, at)]) * weights.reference[subset].prod()
        return np.clip(means, -1.0, 1.0)

    def _path(self, vertices: Iterable[int]) -> set[int]:
        """Return the edges of the spanning tree on an odd number of the paths from the vertices to the root."""
        edges: set[int] = set()
        for vertex in vertices:
            while self._dual.up[vertex] >= 0:
                edges ^= {int(self._dual.up[vertex])}
                vertex = int(self._dual.parents[vertex])
        return edges

    @cached_property
    def mode(self) -> tuple[Codes, float]:
        """A state of largest probability and its log-probability: a matching of largest weight."""
        self._require(self._matching_seconds, "the most probable state")
        state = self._codes(_ground_state(self._weights))
        log_weight = self.engine.family.log_weights(self.theta, state[None])[0]
        return state, float(log_weight - self.log_partition)

    def _codes(self, spins: Codes) -> Codes:
        """Return the codes of the variables, given the spins of all vertices; those relative to the ghost count."""
        n = self.ising.graph.n_nodes
        return ((spins[:n] * spins[n] if self._dual.fields else spins) > 0).astype(np.int8)

    def sample(self, n_samples: int, rng: np.random.Generator) -> Codes:
        """Draw independent states: edge by edge, each given those before, from the last front to the first."""
        n_samples, n = check_n_samples(n_samples), self.ising.graph.n_nodes
        require_memory(n_samples * 2.0 * n, f"{n_samples} samples of {n} variables", "draw fewer at a time")
        sizes = [(front.units.size, front.units.size + front.boundary.size) for front in self._dual.fronts()]
        rows = max(SAMPLE_CELLS // (4 * max((size for _, size in sizes), default=1) ** 2), 1)
        cells = sum(4.0 * n_units * size**2 for n_units, size in sizes)
        self._require(SECONDS_PER_CELL * n_samples * cells, f"{n_samples} samples")
        samples = np.empty((n_samples, n), np.int8)
        for start in range(0, n_samples, rows):
            samples[start : start + rows] = self._draw(min(rows, n_samples - start), rng)
        return samples

    def _draw(self, n_samples: int, rng: np.random.Generator) -> Codes:
        uncut: Mask = np.zeros((self._dual.n_units, n_samples), dtype=bool)
        in_tree = np.zeros(self._dual.n_units, dtype=bool)
        in_tree[self._dual.up[self._dual.order[1:]]] = True

        def visit(front: Front, inverse: Floats) -> None:
            # parts are independent of each other given the full separator; in a part the tree gives the other edges
            for index in np.flatnonzero(in_tree[front.units] | front.separates).tolist():
                unit = int(front.units[index])
                probability = self._weights.uncut(unit, index, inverse)
                uncut[unit] = rng.random(n_samples) < probability
                condition(inverse, index, self._weights.entries[unit], uncut[unit], probability)

        eliminated = self._eliminated
        self._weights.descend(self._dual.fronts(), eliminated, visit, (n_samples,))
        spins = _spins(self._weights, uncut) * rng.choice(np.array([-1, 1], np.int8), n_samples)
        return self._codes(spins).T

    def _require(self, seconds: float, what: str) -> None:
        if seconds > self.engine.max_seconds:
            raise TooExpensiveError(
                f"{what} would take about {seconds:.2g} s by Pfaffians but `max_seconds={self.engine.max_seconds:g}`",
                "ask for less, or raise `max_seconds`",
            )


def _fields(family: IsingFamily) -> tuple[int, ...]:
    """Return the variables that may have fields: all, or none where spins have no biases."""
    low, high = family.variables.levels[0]
    return tuple(range(family.graph.n_nodes)) if family.n_parameters > family.graph.n_edges or low + high else ()


def _ground_state(weights: MatchingWeights) -> Codes:
    """Return the spins of all vertices in a state of minimum energy: the complement of a matching of maximum weight."""
    import networkx

    dual, couplings = weights.dual, weights.couplings
    units, inner = np.arange(dual.n_units), dual.inner.tolist()
    # the two nodes of a unit may also be matched inside their city
    both = {i // 2 for i, j in inner if i // 2 == j // 2 and couplings[i // 2] < 0}
    together = networkx.Graph()
    together.add_weighted_edges_from((i, j, 0.0) for i, j in inner)
    together.add_weighted_edges_from(
        (2 * unit, 2 * unit + 1, 2.0 * couplings[unit]) for unit in units if unit not in both
    )
    matched = networkx.max_weight_matching(together, maxcardinality=True)
    uncut = np.zeros(dual.n_units, dtype=bool)
    uncut[[i // 2 for i, j in matched if i // 2 == j // 2 and i // 2 not in both]] = True
    return _spins(weights, uncut)


def _spins(weights: MatchingWeights, uncut: Mask) -> Codes:
    """Return the spins of all vertices, given the mask of the edges that are not cut relative to the reference."""
    dual = weights.dual
    signs = np.where(uncut, 1, -1).astype(np.int8)[dual.up] if dual.n_units else np.ones((1, *uncut.shape[1:]), np.int8)
    spins = tree_products(dual.order, dual.parents, signs)
    return (spins.T * weights.reference.astype(np.int8)).T
