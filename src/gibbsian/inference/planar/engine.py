"""Exact inference on planar graphs without fields, of any treewidth, by Pfaffians (YU20 section 4.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from gibbsian.backends.parallel import one_blas_thread
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.graphs import Graph
from gibbsian.inference.contract import levels_of
from gibbsian.inference.engine import ENGINES, Cost, Engine, check_n_samples, check_nodes
from gibbsian.inference.ising_answers import IsingAnswers
from gibbsian.inference.ordering import min_degree_order
from gibbsian.inference.planar.kasteleyn import ExpandedDual, Front, expanded_dual
from gibbsian.inference.planar.pfaffians import Eliminated, Weights, condition, nodes_of, tree_products
from gibbsian.models.ising import is_ising
from gibbsian.resources import require_memory

# Measured on square lattices: the embedding and the fronts by edge, and the dense blocks of the largest separators.
SECONDS_PER_EDGE, SECONDS_PER_ROOT = 2.5e-4, 3e-9
BYTES_PER_EDGE = 6000.0
# Steps of a Pfaffian, and the search for the best matching by units squared.
SECONDS_PER_STEP, SECONDS_PER_MATCHING = 2e-5, 2e-5
# Numbers that are changed for each sample, and numbers of the inverses that are held at a time while sampling.
SECONDS_PER_CELL, SAMPLE_CELLS = 2e-9, 2**22


@ENGINES.register("planar")
class Planar(Engine):
    """Exact answers on a planar graph: the spins have no fields, or only such that a ghost spin keeps the graph planar.

    Whether edges are cut or not is a perfect matching in the expanded dual graph, and sums over matchings are
    Pfaffians. Time grows like the number of edges to the power 1.5 where treewidth forbids elimination; a field is a
    coupling to one more spin. Fields of the structure count: a model with biases, or in 0/1 coding, is on the price
    list where its graph is outerplanar; one whose fields happen to be zero is served when built by hand.

    Parameters
    ----------
    family : PairwiseModel
        Of any coding.
    max_seconds : float
        Limit for questions that take longer than `moments`.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> lattice = gb.graphs.grid(40, 40)
    >>> critical = gb.PairwiseModel.build(lattice, None, np.full(lattice.n_edges, np.log(1 + 2**0.5) / 2))
    >>> answers = gb.inference.Planar(critical.family).at(critical.theta)
    >>> answers.log_partition / 1600            # 0.9297 on an infinite lattice (Onsager)
    0.920...
    >>> answers.marginal([0, 41]).round(3)       # across the diagonal at a corner
    array([[0.35, 0.15], [0.15, 0.35]])
    """

    @classmethod
    def price(cls, family: Any) -> Cost | None:
        """Predict the cost for planar families whose structure has no fields, or whose ghost keeps them planar."""
        if not is_ising(family) or (_fields(family) and not _may_be_outerplanar(family.graph)):
            return None
        dual = expanded_dual(family.graph, _fields(family))
        if dual is None:
            return None
        n_bytes = BYTES_PER_EDGE * (family.graph.n_edges + family.n_biases)
        return Cost("Pfaffians", cls.least(family), n_bytes, plan=dual)

    @classmethod
    def least(cls, family: Any) -> float:
        """Return the price in seconds if the graph is planar, which takes a while to find out."""
        n_edges = family.graph.n_edges + len(_fields(family)) if is_ising(family) else 0
        return 2e-3 + SECONDS_PER_EDGE * n_edges + SECONDS_PER_ROOT * n_edges**1.5

    def dual(self, fields: tuple[int, ...]) -> ExpandedDual:
        """Return an expanded dual with these fields at least: those of the structure where it is planar with them."""
        found = next((dual for dual in self._duals if set(fields) <= set(dual.fields)), None)
        if found is None:
            found = expanded_dual(self.family.graph, fields)
            if found is None:
                with_ghost = " with a ghost vertex joined to all variables that have a field" if fields else ""
                raise ArgumentError(f"the graph{with_ghost} is not planar", "use `gb.inference.exact(model)`")
            self._duals.append(found)
        return found

    @cached_property
    def _duals(self) -> list[ExpandedDual]:
        """All duals that were found, that of the structure first."""
        offer = self._offer or self.price(self.family)
        return [offer.plan] if offer else []

    def at(self, theta: np.ndarray) -> PlanarAnswers:
        """Return the answers at some parameters."""
        return PlanarAnswers(self, theta)


class PlanarAnswers(IsingAnswers[Planar]):
    """Answers from Pfaffians of the expanded dual."""

    @cached_property
    def _dual(self) -> ExpandedDual:
        return self.engine.dual(tuple(np.flatnonzero(self.ising.fields).tolist()))

    @property
    def _fronts(self) -> list[Front]:
        return self._dual.fronts()

    @cached_property
    def _weights(self) -> Weights:
        fields = self._dual.fields
        couplings = np.zeros(len(self._dual.pairs))
        couplings[: self.ising.graph.n_edges] = self.ising.couplings
        couplings[self.ising.graph.n_edges :][: len(fields)] = self.ising.fields[list(fields)]
        return Weights.of(self._dual, couplings)

    def _eliminate(self, fronts: list[Front], last: int | None = None) -> deque[Eliminated]:
        """Go up and keep all fronts, or some last ones; where rounding spoils it, once more from a ground state."""
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
        return self._eliminate(self._fronts)

    @cached_property
    def _edge_means(self) -> np.ndarray:
        """E[s_i s_j] of all edges of the dual's graph."""
        uncut = np.empty(self._dual.n_units)

        def visit(front: Front, inverse: np.ndarray) -> None:
            uncut[front.own] = self._weights.uncut(front.own, np.arange(front.own.size), inverse)

        eliminated = self._eliminated
        with one_blas_thread():
            self._weights.descend(self._fronts, eliminated, visit)
        pairs, reference = self._dual.pairs, self._weights.reference
        return (2.0 * uncut[: len(pairs)] - 1.0) * reference[pairs].prod(axis=1)

    @cached_property
    def log_partition(self) -> float:
        """Log Z."""
        if not self._dual.n_units:
            return float(np.log(2.0) + self.ising.constant)
        last = (self._eliminated if "_eliminated" in self.__dict__ else self._eliminate(self._fronts, 1))[-1]
        ghost = np.log(2.0) if self._dual.fields else 0.0
        return float(self._weights.constant + last.log_pfaffian - ghost + self.ising.constant)

    @cached_property
    def edge_products(self) -> np.ndarray:
        """E[s_i s_j] along each edge."""
        return self._edge_means[: self.ising.graph.n_edges]

    @cached_property
    def spin_means(self) -> np.ndarray:
        """E[s_i] of each spin."""
        n, fields = self.ising.graph.n_nodes, list(self._dual.fields)
        means = np.zeros(n)
        if fields:
            means[fields] = self._edge_means[self.ising.graph.n_edges :][: len(fields)]
            others = np.setdiff1d(np.arange(n), fields)
            means[others] = self._products([[node, n] for node in others.tolist()])
        return means

    @cached_property
    def spin_products(self) -> np.ndarray:
        """E[s_i s_j] of all pairs; one Pfaffian for each."""
        n = self.ising.graph.n_nodes
        i, j = np.triu_indices(n, 1)
        second = np.eye(n)
        second[i, j] = second[j, i] = self._products(np.stack([i, j], axis=1).tolist())
        return second

    def marginal(self, nodes: Iterable[int]) -> np.ndarray:
        """Return the joint probabilities of some variables, shape ``(2,) * k``, axes in the order given.

        Products of spins are products over the edges of paths between them: a Pfaffian of the inverse at those edges.
        """
        nodes = check_nodes(nodes, self.ising.graph.n_nodes)
        chosen = np.array(list(product((0, 1), repeat=nodes.size)), dtype=np.int64)
        ghost = [self.ising.graph.n_nodes] if self._dual.fields else []
        even = chosen.sum(axis=1) % 2 == 0
        subsets = [
            nodes[row == 1].tolist() + ([] if is_even else ghost) for row, is_even in zip(chosen, even, strict=True)
        ]
        answered = even | bool(ghost)
        means = np.zeros(len(chosen))
        means[answered] = self._products([subset for subset, known in zip(subsets, answered, strict=True) if known])
        signs = 1.0 - 2.0 * (chosen @ (1 - chosen.T) % 2)  # a chosen spin that is low turns the product
        return np.clip(signs.T @ means, 0.0, None).reshape((2,) * nodes.size) / 2.0**nodes.size

    def _products(self, subsets: Sequence[Sequence[int]]) -> np.ndarray:
        """Means of products of the spins of an even number of vertices each."""
        depth = len(self._path(self._dual.order[-1:]))
        self._require(SECONDS_PER_STEP * depth * len(subsets), f"{len(subsets)} products of spins")
        paths = [self._path(subset) for subset in subsets]
        kept = np.array(sorted(set().union(*paths)), dtype=np.int64)
        if not kept.size:
            return np.ones(len(subsets))
        require_memory(128.0 * kept.size**2, f"the inverse at {kept.size} edges", "ask for variables that are nearer")
        (last,) = self._eliminate(self._dual.fronts(tuple(kept.tolist())), 1)
        weights, inverse, means = self._weights, last.inverse(np.zeros((0, 0))), np.ones(len(subsets))
        for number, (subset, path) in enumerate(zip(subsets, paths, strict=True)):
            units = np.array(sorted(path), dtype=np.int64)
            at = nodes_of(np.searchsorted(kept, units))
            means[number] = weights.product_mean(units, inverse[np.ix_(at, at)]) * weights.reference[subset].prod()
        return np.clip(means, -1.0, 1.0)

    def _path(self, vertices: Iterable[int]) -> set[int]:
        """The edges of the spanning tree that an odd number of the vertices' ways to the root pass."""
        edges: set[int] = set()
        for vertex in vertices:
            while self._dual.up[vertex] >= 0:
                edges ^= {int(self._dual.up[vertex])}
                vertex = int(self._dual.parents[vertex])
        return edges

    @cached_property
    def mode(self) -> tuple[np.ndarray, float]:
        """A state of largest probability and its log-probability: a matching of largest weight."""
        self._require(self._matching_seconds, "the most probable state")
        state = self._values(_ground_state(self._weights))
        return state, float(self.model.log_weights(state[None])[0] - self.log_partition)

    def _values(self, spins: np.ndarray) -> np.ndarray:
        """Values of the variables from the spins of all vertices, relative to the ghost's."""
        n = self.ising.graph.n_nodes
        return self.values((spins[:n] * spins[n] if self._dual.fields else spins) > 0)

    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent states: edge by edge, each given those before, from the last front to the first."""
        n_samples, n = check_n_samples(n_samples), self.ising.graph.n_nodes
        require_memory(n_samples * 2.0 * n, f"{n_samples} samples of {n} variables", "draw fewer at a time")
        largest = max((front.own.size + front.boundary.size for front in self._fronts), default=1)
        rows = max(SAMPLE_CELLS // (4 * largest**2), 1)
        cells = sum(4.0 * front.own.size * (front.own.size + front.boundary.size) ** 2 for front in self._fronts)
        self._require(SECONDS_PER_CELL * n_samples * cells, f"{n_samples} samples")
        samples = np.empty((n_samples, n), np.int8)
        for start in range(0, n_samples, rows):
            samples[start : start + rows] = self._draw(min(rows, n_samples - start), rng)
        return samples

    def _draw(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        uncut = np.zeros((self._dual.n_units, n_samples), dtype=bool)
        in_tree = np.zeros(self._dual.n_units, dtype=bool)
        in_tree[self._dual.up[self._dual.order[1:]]] = True

        def visit(front: Front, inverse: np.ndarray) -> None:
            # parts are independent of each other given the whole separator; in a part the others follow from the tree
            for place in np.flatnonzero(in_tree[front.own] | front.separates).tolist():
                unit = int(front.own[place])
                probability = self._weights.uncut(unit, place, inverse)
                uncut[unit] = rng.random(n_samples) < probability
                condition(inverse, place, self._weights.entries[unit], uncut[unit], probability)

        eliminated = self._eliminated
        with one_blas_thread():
            self._weights.descend(self._fronts, eliminated, visit, (n_samples,))
        spins = _spins(self._weights, uncut) * rng.choice(np.array([-1, 1], np.int8), n_samples)
        return self._values(spins).T

    def _require(self, seconds: float, what: str) -> None:
        if seconds > self.engine.max_seconds:
            raise TooExpensiveError(
                f"{what} would take about {seconds:.2g} s by Pfaffians but `max_seconds={self.engine.max_seconds:g}`",
                "ask for less, or raise `max_seconds`",
            )


def _fields(family: Any) -> tuple[int, ...]:
    """The variables that have fields by the structure: all, or none where spins have no biases."""
    low, high = levels_of(family)[0]  # type: ignore[index]  # which families of spins have
    return tuple(range(family.graph.n_nodes)) if family.bias or low + high else ()


def _may_be_outerplanar(graph: Graph) -> bool:
    """Say so at once where treewidth forbids it: that of outerplanar graphs is two, where any least degree is."""
    return min_degree_order(graph, max_width=2) is not None


def _ground_state(weights: Weights) -> np.ndarray:
    """A spin for each vertex such that the energy is least: the complement of a matching of largest weight."""
    import networkx

    dual, couplings = weights.dual, weights.couplings
    units, inner = np.arange(dual.n_units), dual.inner.tolist()
    # the two nodes of a unit may be matched in their city too, where that is better
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


def _spins(weights: Weights, uncut: np.ndarray) -> np.ndarray:
    """Spins of all vertices, given for each edge of the spanning tree whether it is cut relative to the reference."""
    dual = weights.dual
    signs = np.where(uncut, 1, -1).astype(np.int8)[dual.up] if dual.n_units else np.ones((1, *uncut.shape[1:]), np.int8)
    spins = tree_products(dual.order, dual.parents, signs)
    return (spins.T * weights.reference.astype(np.int8)).T
