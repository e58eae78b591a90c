"""Rows and classes: ``log P(x, a) = S(x) . eta_a + offset_a``, so one E-step serves all mixtures of such families.

Rows go through in blocks that fit the cache; sums over blocks do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from gibbsian.arrays import Floats
from gibbsian.backends.device import twin
from gibbsian.backends.numba.mixtures import best_classes, hard_assignment, soft_assignment
from gibbsian.backends.threads import map_slices, one_blas_thread
from gibbsian.resources import require_memory, row_blocks

# A block is read twice, for the scores and for the sums: the second time from the cache.
BLOCK_CELLS = 2**16
# Products of a cell with a class that take as long as one operation by the measure of `map_slices`.
PRODUCTS_AN_OPERATION = 128
# Products that take as long as it takes to read a cell that is not in the cache.
PRODUCTS_A_CELL = 4
# Narrow rows are cut as if they had this many columns: their scores and shares take memory too.
LEAST_WIDTH = 32

Block = tuple[Any, np.ndarray]
Result = TypeVar("Result")


class ClassSums(NamedTuple):
    """What an E-step leaves for the M-step: the weight of each class and its summed statistics, additive over rows."""

    mass: Floats
    sums: Floats


def blocks_of(features: Any, weights: np.ndarray) -> list[Block]:
    """Cut rows with their weights into blocks."""
    twins = twin("mixtures")
    return (list if twins is None else twins.Blocks)((features[block], weights[block]) for block in _cuts(features))


def e_step(blocks: list[Block], theta: np.ndarray, offsets: np.ndarray, hard: bool) -> tuple[float, ClassSums]:
    """Give each row to the classes, or to its best one; return the free energy and the sums of each class."""
    if (twins := twin("mixtures")) is not None:
        energy, *found = twins.e_step(blocks, theta, offsets, hard)
        return energy, ClassSums(*found)
    assign = hard_assignment if hard else soft_assignment

    def some(blocks: list[Block]) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """One thread's blocks, all in the same memory: fresh pages cost as much as the arithmetic."""
        memory = np.empty(len(offsets) * max(len(weights) for _, weights in blocks))
        results = []
        for features, weights in blocks:
            shares = _scores(features, theta, offsets, memory)
            free_energy = assign(shares, weights)
            results.append((free_energy, shares.sum(axis=1), _class_sums(features, shares)))
        return results

    work = len(offsets) * sum(_n_cells(features) for features, _ in blocks)
    energies, masses, sums = zip(*(one for part in _in_threads(some, blocks, work) for one in part), strict=True)
    return float(sum(energies)), ClassSums(total(masses), total(sums))


def sums_of_labels(blocks: list[Block], labels: np.ndarray, n_components: int) -> ClassSums:
    """Return the sums of a partition (YK15: "initialize a partition")."""
    masses, sums, start = [], [], 0
    for features, weights in blocks:
        shares = np.zeros((n_components, len(weights)))
        shares[labels[start : start + len(weights)], np.arange(len(weights))] = weights
        masses.append(shares.sum(axis=1))
        sums.append(_class_sums(features, shares))
        start += len(weights)
    return ClassSums(total(masses), total(sums))


def log_joint(features: Any, theta: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return ``log P(x, a)`` of each row and class."""
    shape = (features.shape[0], len(offsets))
    require_memory(8.0 * shape[0] * shape[1], f"the table of {shape[0]:,} rows by {shape[1]} classes", "split the rows")
    scores = np.empty(shape)
    for block in _cuts(features):
        scores[block] = _scores(features[block], theta, offsets).T
    return scores


def nearest(rows: Any, means: np.ndarray, present: np.ndarray | None = None) -> np.ndarray:
    """Return the nearest mean of each row, dense or sparse, by one product; cells that are not `present` are zero."""
    theta, offsets = means, -np.einsum("ij,ij->i", means, means) / 2.0
    if present is not None:
        rows = np.column_stack([rows, present])
        theta, offsets = np.column_stack([means, -np.square(means) / 2.0]), np.zeros(len(means))
    labels, columns = np.empty(rows.shape[0], dtype=np.int64), np.ascontiguousarray(theta.T)

    def some(blocks: list[slice]) -> None:
        memory = np.empty((max(block.stop - block.start for block in blocks), len(means)))
        for block in blocks:
            best_classes(_products_by_row(rows[block], columns, memory), offsets, labels[block])

    _in_threads(some, _cuts(rows), len(means) * _n_cells(rows))
    return labels


def over_blocks(kernel: Callable[..., Result], rows: np.ndarray, *by_row: np.ndarray) -> list[Result]:
    """Return what a kernel gives for each block of rows and of what belongs to them, in order, on threads."""

    def some(blocks: list[slice]) -> list[Result]:
        return [kernel(*(array[block] for array in (rows, *by_row))) for block in blocks]

    blocks = list(row_blocks(len(rows), max(rows.shape[1], LEAST_WIDTH)))
    return [one for part in _in_threads(some, blocks, PRODUCTS_A_CELL * rows.size) for one in part]


def responsibilities(scores: np.ndarray) -> np.ndarray:
    """Return ``P(class | x)`` from ``log P(x, class)``; a row that no class can explain is shared equally."""
    highest = scores.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        shares = np.exp(np.where(highest == -np.inf, 0.0, scores - highest))
    return shares / shares.sum(axis=1, keepdims=True)


# -- parts ------------------------------------------------------------------------------------------------------------
def _in_threads(some: Callable[[list[Any]], Result], blocks: list[Any], work: int) -> list[Result]:
    """Give each thread runs of the blocks, in order; what is summed over blocks does not depend on their number."""
    with one_blas_thread():
        return map_slices(lambda part: some(blocks[part]), len(blocks), work / PRODUCTS_AN_OPERATION)


def _cuts(features: Any) -> list[slice]:
    n_rows, width = features.shape
    if sparse.issparse(features):
        width = features.nnz // max(1, n_rows)
    return list(row_blocks(n_rows, max(width, LEAST_WIDTH), BLOCK_CELLS))


def _n_cells(features: Any) -> int:
    return features.nnz if sparse.issparse(features) else features.size


def _scores(features: Any, theta: np.ndarray, offsets: np.ndarray, memory: np.ndarray | None = None) -> np.ndarray:
    """``log P(x, a)``, classes first."""
    scores = _products(features, theta, memory)
    scores += offsets[:, None]
    return scores


def _products(features: Any, theta: np.ndarray, memory: np.ndarray | None = None) -> np.ndarray:
    """``S(x) . theta_a``, classes first, in `memory` where that is given and the features are dense."""
    if sparse.issparse(features):
        return np.ascontiguousarray((features @ theta.T).T)
    if memory is None:
        return theta @ features.T
    shape = (len(theta), features.shape[0])
    return np.matmul(theta, features.T, out=memory[: shape[0] * shape[1]].reshape(shape))


def _products_by_row(features: Any, columns: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """The same with rows first, which takes half the time where classes are few."""
    if sparse.issparse(features):
        return features @ columns
    return np.matmul(features, columns, out=memory[: features.shape[0]])


def _class_sums(features: Any, shares: np.ndarray) -> np.ndarray:
    return (features.T @ shares.T).T if sparse.issparse(features) else shares @ features


def total(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The sum over blocks, in their order."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total
