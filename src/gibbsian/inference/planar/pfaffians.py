"""Sums over the perfect matchings of an expanded dual graph, by elimination of its skew-symmetric matrix.

On the way up, the nodes of each front are eliminated by a dense block, which gives the log of the Pfaffian. On the way
down, each front gets the inverse matrix at its nodes and its boundary; its entries give the probabilities of edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self, TypeVar

import numpy as np
import scipy  # linear algebra is loaded when it is used
from scipy import sparse

from gibbsian.arrays import Codes, Floats, Integers, Mask
from gibbsian.backends.threads import one_blas_thread
from gibbsian.errors import TooExpensiveError
from gibbsian.inference.planar.kasteleyn import ExpandedDual, Front, edges_to_parents

AnyFactors = TypeVar("AnyFactors", Floats, Codes)

# Maximum distance of blocks from skew-symmetry, which is due to rounding; the errors of answers are smaller.
MAX_ROUNDING = 1e-6


class Eliminated(NamedTuple):
    """A front after elimination: log of the Pfaffian so far, LU factors of its block, and its solved links."""

    log_pfaffian: float
    factors: tuple[Floats, Integers]
    solved: Floats

    def inverse(self, given: Floats) -> Floats:
        """Return the inverse at the front's nodes and its boundary, given the inverse at the boundary."""
        n, m = self.solved.shape
        inverse, cross = np.empty((*given.shape[:-2], n + m, n + m)), self.solved @ given
        block_inverse = scipy.linalg.lu_solve(self.factors, np.eye(n), check_finite=False)
        inverse[..., :n, :n] = block_inverse + cross @ self.solved.T
        inverse[..., :n, n:] = -cross
        inverse[..., n:, :n] = cross.swapaxes(-1, -2)
        inverse[..., n:, n:] = given
        return 0.5 * (inverse - inverse.swapaxes(-1, -2))


@dataclass(frozen=True, eq=False)
class MatchingWeights:
    """The weights of the matchings of a dual.

    Rows are scaled such that no entry exceeds one. Cuts are relative to a reference state of large probability, so that
    few edges are cut, which keeps the blocks well conditioned.

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
    reference: Floats | Codes
    couplings: Floats

    @classmethod
    def of(cls, dual: ExpandedDual, couplings: Floats) -> Self:
        """Return the weights of couplings of the edges, relative to a state that satisfies the strongest of them."""
        plain = cls(dual, np.ones(dual.order.size), np.pad(couplings, (0, dual.n_units - len(couplings))))
        return plain.relative_to(_strongest_satisfied(dual, couplings))

    def relative_to(self, reference: Floats | Codes) -> Self:
        """Return the same weights relative to another reference state."""
        changed, couplings = self.reference * reference, self.couplings.copy()
        couplings[: len(self.dual.pairs)] *= changed[self.dual.pairs].prod(axis=1)
        return replace(self, reference=reference, couplings=couplings)

    @cached_property
    def entries(self) -> Floats:
        """The entry of the matrix between the two nodes of each unit: the weight of an edge that is not cut."""
        return self.dual.signs * np.exp(2.0 * np.minimum(self.couplings, 0.0))

    @property
    def constant(self) -> float:
        """Log Z less the log of the Pfaffian."""
        return float(np.log(2.0) + np.abs(self.couplings).sum())

    def _matrix(self, fronts: Sequence[Front]) -> sparse.csr_array:
        """Return the skew-symmetric matrix; the rows of each front lack the columns of earlier fronts."""
        inner, n = self.dual.inner, self.dual.n_units
        scaled = np.exp(-np.maximum(self.couplings, 0.0)[inner // 2].sum(axis=1))
        ends = np.concatenate([inner, np.arange(2 * n).reshape(-1, 2)])
        values = np.concatenate([scaled, self.entries])
        index = np.empty(n, np.int64)
        for number, front in enumerate(fronts):
            index[front.units] = number
        rows, columns = np.concatenate([ends, ends[:, ::-1]]).T
        later = index[columns // 2] >= index[rows // 2]
        values = np.concatenate([values, -values])[later]
        return sparse.csr_array((values, (rows[later], columns[later])), shape=(2 * n, 2 * n))

    def eliminate(self, fronts: Sequence[Front]) -> Iterator[Eliminated]:
        """Yield the fronts in order, each after the elimination of its nodes."""
        matrix = self._matrix(fronts)
        updates: list[list[tuple[Integers, Floats]]] = [[] for _ in fronts]
        log_pfaffian, index = 0.0, np.empty(matrix.shape[0], np.int64)
        for number, front in enumerate(fronts):
            inside, boundary = nodes_of(front.units), nodes_of(front.boundary)
            nodes, n = np.concatenate([inside, boundary]), inside.size
            index[nodes] = np.arange(nodes.size)
            block: Floats = np.zeros((nodes.size, nodes.size))
            rows = matrix[inside]
            block[np.repeat(np.arange(n), np.diff(rows.indptr)), index[rows.indices]] = rows.data
            for touched, update in updates[number]:
                block[np.ix_(index[touched], index[touched])] += update
            updates[number], links = [], block[:n, n:]
            factors = scipy.linalg.lu_factor(block[:n, :n], check_finite=False)
            solved: Floats = scipy.linalg.lu_solve(factors, links, check_finite=False)
            if front.parent >= 0:
                update = block[n:, n:] + links.T @ solved
                _check_rounding(update)
                updates[front.parent].append((boundary, 0.5 * (update - update.T)))
            log_pfaffian += 0.5 * float(np.log(np.abs(np.diag(factors[0]))).sum())
            yield Eliminated(log_pfaffian, factors, solved)

    @one_blas_thread()
    def descend(
        self,
        fronts: Sequence[Front],
        eliminated: Sequence[Eliminated],
        visit: Callable[[Front, Floats], None],
        shape: tuple[int, ...] = (),
    ) -> None:
        """Visit the fronts from the last one with the inverse at their nodes, which the visitor may condition.

        `shape` is that of the copies of the inverse, which visitors may condition on different values.
        """
        inverses: dict[int, Floats] = {}
        children: list[list[int]] = [[] for _ in fronts]
        for number, front in enumerate(fronts):
            if front.parent >= 0:
                children[front.parent].append(number)
        index = np.empty(2 * self.dual.n_units, np.int64)
        for number in reversed(range(len(fronts))):
            given = inverses.pop(number, np.zeros((*shape, 0, 0)))
            inverse = eliminated[number].inverse(given)
            visit(fronts[number], inverse)
            nodes = nodes_of(np.concatenate([fronts[number].units, fronts[number].boundary]))
            index[nodes] = np.arange(nodes.size)
            for child in children[number]:
                at = index[nodes_of(fronts[child].boundary)]
                inverses[child] = inverse[..., at[:, None], at]

    def uncut(self, units: Integers | int, indices: Integers | int, inverse: Floats) -> Floats:
        """Return the probabilities that edges are not cut, given the inverse and the indices of the edges in it."""
        return np.clip(self.entries[units] * inverse[..., 2 * indices + 1, 2 * indices], 0.0, 1.0)

    def product_mean(self, units: Integers, inverse: Floats) -> float:
        """Return the mean of the product over edges of +1 where the state agrees with the reference, else -1."""
        sizes = np.repeat(np.sqrt(2.0 * np.abs(self.entries[units])), 2)
        signs = np.sign(self.entries[units])
        matrix = sizes[:, None] * inverse * sizes
        first = 2 * np.arange(units.size)
        matrix[first, first + 1] += signs
        matrix[first + 1, first] -= signs
        return float((-1.0) ** units.size * signs.prod() * pfaffian(matrix))


def condition(inverse: Floats, index: int, entry: float, uncut: Mask, probability: Floats) -> None:
    """Condition the inverse of each sample, in place, on whether the edge at an index is cut."""
    first, second = inverse[:, 2 * index].copy(), inverse[:, 2 * index + 1].copy()
    factor = np.where(
        uncut, -entry / np.where(uncut, probability, 1.0), entry / np.where(uncut, 1.0, 1.0 - probability)
    )
    product = (factor[:, None] * second)[:, :, None] * first[:, None, :]
    inverse += product - product.swapaxes(1, 2)


def pfaffian(matrix: Floats) -> float:
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


def nodes_of(units: Integers) -> Integers:
    """Return the two nodes of each unit."""
    return (2 * units[:, None] + np.arange(2)).ravel()


def tree_products(order: Integers, parents: Integers, factors: AnyFactors) -> AnyFactors:
    """Return the products of factors from the root of a tree down to each vertex."""
    products = np.ones_like(factors)
    for node, parent in zip(order[1:].tolist(), parents[order[1:]].tolist(), strict=True):
        products[node] = products[parent] * factors[node]
    return products


def _check_rounding(update: Floats) -> None:
    rounding = np.abs(update + update.T).max(initial=0.0)
    if not rounding <= MAX_ROUNDING:  # NaN as well
        raise TooExpensiveError(
            "the couplings are so strong, and so many of them cannot be satisfied together, that Pfaffians in double "
            "precision lose all digits",
            "use elimination, sampling or a higher temperature",
        )


def _strongest_satisfied(dual: ExpandedDual, couplings: Floats) -> Floats:
    """Return the spins of a state that satisfies a spanning tree of the strongest couplings."""
    from scipy.sparse import csgraph

    n = dual.order.size
    if n == 1:
        return np.ones(1)
    weak = sparse.csr_array((1.0 / (1.0 + np.abs(couplings)), dual.pairs.T), shape=(n, n))
    order, parents = csgraph.breadth_first_order(csgraph.minimum_spanning_tree(weak), 0, directed=False)
    signs = np.where(couplings < 0, -1.0, 1.0)[edges_to_parents(dual.pairs, order, parents)]
    return tree_products(order, parents, signs)
