"""Mixtures of exponential families: ``log P(x, a) = S(x) . theta_a + offset_a``, so one E step serves them all.

A family (Gaussians, von Mises-Fisher, independent columns) says what S is, how theta follows from the parameters, and
how the parameters follow from the summed statistics of each class. Rows go through in blocks that fit the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from gibbsian.backends.numba.mixtures import best_classes, hard_assignment, soft_assignment
from gibbsian.backends.parallel import map_in_order, n_threads
from gibbsian.blocks import row_blocks
from gibbsian.mixtures.rows import WeightedRows
from gibbsian.resources import require_memory

# A block is read twice, for the scores and for the sums: the second time from the cache.
BLOCK_CELLS = 2**16
# Products of a cell with a class, below which (some 20 milliseconds) a pool of threads costs more than it saves.
WORTH_THREADS = 2**26
# Narrow rows are cut as if they had this many columns: their scores and shares take room too.
LEAST_WIDTH = 32


class Components(Protocol):
    """The parameters of a mixture at one point of a fit."""

    weights: np.ndarray

    def natural(self) -> tuple[np.ndarray, np.ndarray]:
        """Return theta (classes x statistics) and the offsets (classes), log-weights included."""
        ...

    def features(self, rows: Any) -> Any:
        """Return S(x) of each row."""
        ...


class ClassSums(NamedTuple):
    """What an E step leaves for the M step: additive over rows.

    Parameters
    ----------
    mass : array of shape (n_components,)
        The weight of each class.
    sums : array of shape (n_components, n_statistics)
        Its summed statistics.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.exponential import ClassSums
    >>> ClassSums(np.array([2.0]), np.array([[6.0]])).sums / 2
    array([[3.]])
    """

    mass: np.ndarray
    sums: np.ndarray


class Family(Protocol):
    """One kind of component."""

    def features(self, rows: Any) -> Any:
        """Return S(x) of each row."""
        ...

    def maximise(self, expected: ClassSums, before: Any) -> Any:
        """Return the best parameters for the summed statistics; `before` is None in the first step."""
        ...

    def penalty(self, mixture: Any) -> float:
        """Return minus the log-prior of the parameters, zero for maximum likelihood."""
        ...


@dataclass(frozen=True)
class ExponentialProblem:
    """The data of a fit, ready for the EM loop.

    Parameters
    ----------
    family : Family
        The kind of component.
    data : WeightedRows
        Distinct rows with weights.
    hard : bool
        Give each row to its best class instead of sharing it.

    Examples
    --------
    >>> from gibbsian.mixtures.exponential import ExponentialProblem
    >>> from gibbsian.mixtures.rows import collapse
    >>> from gibbsian.mixtures.soft_kmeans import SphericalGaussians
    >>> ExponentialProblem(SphericalGaussians(), collapse([[0.0], [1.0]])).total_weight
    2.0
    """

    family: Any
    data: WeightedRows
    hard: bool = False
    blocks: list[tuple[Any, np.ndarray]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        features = self.family.features(self.data.rows)
        object.__setattr__(self, "blocks", [(features[b], self.data.weights[b]) for b in _cuts(features)])

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return self.data.total_weight

    def expect(self, mixture: Components) -> tuple[float, ClassSums]:
        """Assign the rows and sum the statistics of each class."""
        theta, offsets = mixture.natural()
        assign = hard_assignment if self.hard else soft_assignment

        def some(blocks: list[tuple[Any, np.ndarray]]) -> list[tuple[float, np.ndarray, np.ndarray]]:
            """One thread's blocks, all in the same memory: fresh pages cost as much as the arithmetic."""
            memory = np.empty(len(offsets) * max(len(weights) for _, weights in blocks))
            results = []
            for features, weights in blocks:
                shares = _scores(features, theta, offsets, memory)
                free_energy = assign(shares, weights)
                results.append((free_energy, shares.sum(axis=1), _class_sums(features, shares)))
            return results

        work = len(offsets) * sum(_n_cells(features) for features, _ in self.blocks)
        parts = _in_threads(some, self.blocks, work)
        energies, masses, sums = zip(*(result for part in parts for result in part), strict=True)
        return float(sum(energies)) + self.family.penalty(mixture), ClassSums(_total(masses), _total(sums))

    def maximise(self, expected: ClassSums, before: Any) -> Any:
        """Take the M step of the family."""
        return self.family.maximise(expected, before)

    def from_labels(self, labels: np.ndarray, n_components: int) -> Any:
        """Return the mixture of a partition: class numbers of the distinct rows (YK15: "initialize a partition")."""
        masses, sums, start = [], [], 0
        for features, weights in self.blocks:
            shares = np.zeros((n_components, len(weights)))
            shares[labels[start : start + len(weights)], np.arange(len(weights))] = weights
            masses.append(shares.sum(axis=1))
            sums.append(_class_sums(features, shares))
            start += len(weights)
        return self.family.maximise(ClassSums(_total(masses), _total(sums)), None)

    def from_means(self, means: np.ndarray) -> Any:
        """Return the mixture of the partition that gives each row to its nearest mean."""
        return self.from_labels(nearest(self.data.rows, means), len(means))


def log_joint(mixture: Components, rows: Any) -> np.ndarray:
    """Return ``log P(x, a)`` of each row and class.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.exponential import log_joint
    >>> from gibbsian.mixtures.soft_kmeans import GaussianComponents
    >>> mixture = GaussianComponents(np.array([1.0]), np.zeros((1, 1)), np.array([1.0]))
    >>> bool(np.isclose(log_joint(mixture, np.zeros((1, 1)))[0, 0], -0.5 * np.log(2 * np.pi)))
    True
    """
    theta, offsets = mixture.natural()
    require_memory(
        8.0 * rows.shape[0] * len(offsets),
        f"the table of {rows.shape[0]:,} rows by {len(offsets)} classes",
        "split the rows",
    )
    features = mixture.features(rows)
    scores = np.empty((rows.shape[0], len(offsets)))
    for block in _cuts(features):
        scores[block] = _scores(features[block], theta, offsets).T
    return scores


def nearest(rows: Any, means: np.ndarray) -> np.ndarray:
    """Return the number of the nearest mean of each row, dense or sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.exponential import nearest
    >>> nearest(np.array([[0.0], [9.0]]), np.array([[10.0], [1.0]]))
    array([1, 0])
    """
    offsets = -np.einsum("ij,ij->i", means, means) / 2.0
    labels = np.empty(rows.shape[0], dtype=np.int64)

    def some(blocks: list[slice]) -> None:
        memory = np.empty(len(means) * max(block.stop - block.start for block in blocks))
        for block in blocks:
            best_classes(_scores(rows[block], means, offsets, memory), labels[block])

    _in_threads(some, _cuts(rows), len(means) * _n_cells(rows))
    return labels


def _in_threads(some: Callable[[list[Any]], Any], blocks: list[Any], work: int) -> list[Any]:
    """Give each thread a run of the blocks, in order; what is summed over blocks does not depend on their number."""
    if work < WORTH_THREADS:
        return [some(blocks)]
    length = -(-len(blocks) // n_threads())
    return list(map_in_order(some, [blocks[start : start + length] for start in range(0, len(blocks), length)]))


def _cuts(features: Any) -> list[slice]:
    n_rows, width = features.shape
    if sparse.issparse(features):
        width = features.nnz // max(1, n_rows)
    return list(row_blocks(n_rows, max(width, LEAST_WIDTH), BLOCK_CELLS))


def _n_cells(features: Any) -> int:
    return features.nnz if sparse.issparse(features) else features.size


def _scores(features: Any, theta: np.ndarray, offsets: np.ndarray, memory: np.ndarray | None = None) -> np.ndarray:
    """``log P(x, a)``, classes first, in `memory` where that is given and the features are dense."""
    shape = (len(offsets), features.shape[0])
    if sparse.issparse(features):
        scores = np.ascontiguousarray((features @ theta.T).T)
    elif memory is None:
        scores = theta @ features.T
    else:
        scores = np.matmul(theta, features.T, out=memory[: shape[0] * shape[1]].reshape(shape))
    scores += offsets[:, None]
    return scores


def _class_sums(features: Any, shares: np.ndarray) -> np.ndarray:
    return (features.T @ shares.T).T if sparse.issparse(features) else shares @ features


def _total(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The sum over blocks, in their order."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total
