"""Sums over the perfect matchings of an expanded dual graph, by elimination of its skew-symmetric matrix.

Going up, each front's own nodes are eliminated by a dense block (log of the Pfaffian); going down, each front learns
the inverse matrix at its own nodes and its boundary, of which the probabilities of edges are entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy  # linear algebra is loaded when it is used
from scipy import sparse

from gibbsian.errors import TooExpensiveError
from gibbsian.inference.planar.kasteleyn import ExpandedDual, Front, edges_to_parents

# How far blocks may be from skew-symmetric, which only rounding does; the answers are better than this.
MOST_ROUNDING = 1e-6


class Eliminated(NamedTuple):
    """A front whose own nodes went: log of the Pfaffian so far, factors of its block, links to the boundary solved."""

    log_pfaffian: float
    factors: Any
    solved: np.ndarray

    def inverse(self, given: np.ndarray) -> np.ndarray:
        """Return the inverse at the front's own nodes and its boundary, from that at the boundary."""
        n, m = self.solved.shape
        inverse = np.empty((*given.shape[:-2], n + m, n + m))
        cross = self.solved @ given
        own = scipy.linalg.lu_solve(self.factors, np.eye(n), check_finite=False)
        inverse[..., :n, :n] = own + cross @ self.solved.T
        inverse[..., :n, n:] = -cross
        inverse[..., n:, :n] = cross.swapaxes(-1, -2)
        inverse[..., n:, n:] = given
        return 0.5 * (inverse - inverse.swapaxes(-1, -2))


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of the matchings of a dual.

    Rows are scaled such that no entry exceeds one. Edges are looked at relative to a reference state: where it is cut
    or not is then rarely undone, which keeps the blocks well conditioned.

    Parameters
    ----------
    dual : ExpandedDual
        The structure.
    reference : ndarray
        A spin for each vertex.
    couplings : ndarray
        The couplings of all units, relative to the reference.
    """

    dual: ExpandedDual
    reference: np.ndarray
    couplings: np.ndarray

    @classmethod
    def of(cls, dual: ExpandedDual, couplings: np.ndarray) -> Self:
        """Gauge the couplings of the edges such that the strongest ones that form no cycle are satisfied."""
        plain = cls(dual, np.ones(dual.order.size), np.pad(couplings, (0, dual.n_units - len(couplings))))
        return plain.relative_to(_strongest_satisfied(dual, couplings))

    def relative_to(self, reference: np.ndarray) -> Self:
        """Return the same weights relative to another reference state."""
        changed, couplings = self.reference * reference, self.couplings.copy()
        couplings[: len(self.dual.pairs)] *= changed[self.dual.pairs].prod(axis=1)
        return replace(self, reference=reference, couplings=couplings)

    @cached_property
    def entries(self) -> np.ndarray:
        """The matrix between the two nodes of each unit: how much it counts that the edge is not cut."""
        return self.dual.signs * np.exp(2.0 * np.minimum(self.couplings, 0.0))

    @property
    def constant(self) -> float:
        """What log Z has beside the log of the Pfaffian."""
        return float(np.log(2.0) + np.abs(self.couplings).sum())

    def _matrix(self, fronts: Sequence[Front]) -> sparse.csr_array:
        """The skew-symmetric matrix without what earlier fronts have taken."""
        inner, n = self.dual.inner, self.dual.n_units
        scaled = np.exp(-np.maximum(self.couplings, 0.0)[inner // 2].sum(axis=1))
        ends = np.concatenate([inner, np.arange(2 * n).reshape(-1, 2)])
        values = np.concatenate([scaled, self.entries])
        place = np.empty(n, np.int64)
        for number, front in enumerate(fronts):
            place[front.own] = number
        rows, columns = np.concatenate([ends, ends[:, ::-1]]).T
        later = place[columns // 2] >= place[rows // 2]
        values = np.concatenate([values, -values])[later]
        return sparse.csr_array((values, (rows[later], columns[later])), shape=(2 * n, 2 * n))

    def eliminate(self, fronts: Sequence[Front]) -> Iterator[Eliminated]:
        """Yield the fronts in order, each after its own nodes went."""
        matrix = self._matrix(fronts)
        updates: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in fronts]
        place, log_pfaffian = np.empty(matrix.shape[0], np.int64), 0.0
        for number, front in enumerate(fronts):
            own, boundary = nodes_of(front.own), nodes_of(front.boundary)
            nodes, n = np.concatenate([own, boundary]), own.size
            place[nodes] = np.arange(nodes.size)
            block, rows = np.zeros((nodes.size, nodes.size)), matrix[own]
            block[np.repeat(np.arange(n), np.diff(rows.indptr)), place[rows.indices]] = rows.data
            for touched, update in updates[number]:
                block[np.ix_(place[touched], place[touched])] += update
            updates[number], links = [], block[:n, n:]
            factors = scipy.linalg.lu_factor(block[:n, :n], check_finite=False)
            solved = scipy.linalg.lu_solve(factors, links, check_finite=False)
            if front.parent >= 0:
                update = block[n:, n:] + links.T @ solved
                _check_rounding(update)
                updates[front.parent].append((boundary, 0.5 * (update - update.T)))
            log_pfaffian += 0.5 * float(np.log(np.abs(np.diag(factors[0]))).sum())
            yield Eliminated(log_pfaffian, factors, solved)

    def descend(
        self,
        fronts: Sequence[Front],
        eliminated: Sequence[Eliminated],
        visit: Callable[[Front, np.ndarray], None],
        shape: tuple[int, ...] = (),
    ) -> None:
        """Visit the fronts from the last one with the inverse at their nodes, which the visitor may condition.

        `shape` says how many copies of the inverse there are, which visitors may make different.
        """
        inverses: dict[int, np.ndarray] = {}
        children: list[list[int]] = [[] for _ in fronts]
        for number, front in enumerate(fronts):
            if front.parent >= 0:
                children[front.parent].append(number)
        place = np.empty(2 * self.dual.n_units, np.int64)
        for number in reversed(range(len(fronts))):
            given = inverses.pop(number, np.zeros((*shape, 0, 0)))
            inverse = eliminated[number].inverse(given)
            visit(fronts[number], inverse)
            nodes = nodes_of(np.concatenate([fronts[number].own, fronts[number].boundary]))
            place[nodes] = np.arange(nodes.size)
            for child in children[number]:
                at = place[nodes_of(fronts[child].boundary)]
                inverses[child] = inverse[..., at[:, None], at]

    def uncut(self, units: np.ndarray | int, places: np.ndarray | int, inverse: np.ndarray) -> np.ndarray:
        """Return the probabilities that edges are not cut, from the inverse where they have these places."""
        return np.clip(self.entries[units] * inverse[..., 2 * places + 1, 2 * places], 0.0, 1.0)

    def product_mean(self, units: np.ndarray, inverse: np.ndarray) -> float:
        """Return the mean of the product over edges of +1 where it agrees with the reference and -1 elsewhere."""
        sizes = np.repeat(np.sqrt(2.0 * np.abs(self.entries[units])), 2)
        signs = np.sign(self.entries[units])
        matrix = sizes[:, None] * inverse * sizes
        first = 2 * np.arange(units.size)
        matrix[first, first + 1] += signs
        matrix[first + 1, first] -= signs
        return float((-1.0) ** units.size * signs.prod() * pfaffian(matrix))


def condition(inverse: np.ndarray, place: int, entry: float, uncut: np.ndarray, probability: np.ndarray) -> None:
    """Condition inverses, one for each sample, on whether the edge at a place is cut."""
    first, second = inverse[:, 2 * place].copy(), inverse[:, 2 * place + 1].copy()
    factor = np.where(
        uncut, -entry / np.where(uncut, probability, 1.0), entry / np.where(uncut, 1.0, 1.0 - probability)
    )
    product = (factor[:, None] * second)[:, :, None] * first[:, None, :]
    inverse += product - product.swapaxes(1, 2)


def pfaffian(matrix: np.ndarray) -> float:
    """Return the Pfaffian of a skew-symmetric matrix, by elimination with pivots."""
    matrix, result = matrix.copy(), 1.0
    for k in range(0, len(matrix), 2):
        pivot = k + 1 + int(np.argmax(np.abs(matrix[k, k + 1 :])))
        if pivot != k + 1:
            matrix[[k + 1, pivot]] = matrix[[pivot, k + 1]]
            matrix[:, [k + 1, pivot]] = matrix[:, [pivot, k + 1]]
            result = -result
        result *= matrix[k, k + 1]
        if matrix[k, k + 1] == 0.0:
            return 0.0
        product = np.outer(matrix[k, k + 2 :] / matrix[k, k + 1], matrix[k + 2 :, k + 1])
        matrix[k + 2 :, k + 2 :] += product - product.T
    return float(result)


def nodes_of(units: np.ndarray) -> np.ndarray:
    """Return the two nodes of each unit."""
    return (2 * units[:, None] + np.arange(2)).ravel()


def tree_products(order: np.ndarray, parents: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return the products of factors from the root of a tree down to each vertex."""
    products = np.ones_like(factors)
    for node, parent in zip(order[1:].tolist(), parents[order[1:]].tolist(), strict=True):
        products[node] = products[parent] * factors[node]
    return products


def _check_rounding(update: np.ndarray) -> None:
    rounding = np.abs(update + update.T).max(initial=0.0)
    if not rounding <= MOST_ROUNDING:
        raise TooExpensiveError(
            "the couplings are so strong, and so many of them cannot be satisfied together, that Pfaffians in double "
            "precision lose all digits",
            "use elimination, sampling or a higher temperature",
        )


def _strongest_satisfied(dual: ExpandedDual, couplings: np.ndarray) -> np.ndarray:
    """A state that satisfies the strongest couplings, as far as they form no cycle."""
    from scipy.sparse import csgraph

    n = dual.order.size
    if n == 1:
        return np.ones(1)
    weak = sparse.csr_array((1.0 / (1.0 + np.abs(couplings)), dual.pairs.T), shape=(n, n))
    order, parents = csgraph.breadth_first_order(csgraph.minimum_spanning_tree(weak), 0, directed=False)
    signs = np.where(couplings < 0, -1.0, 1.0)[edges_to_parents(dual.pairs, order, parents)]
    return tree_products(order, parents, signs)
