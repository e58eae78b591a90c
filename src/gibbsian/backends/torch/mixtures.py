"""Rows to classes (`backends.numba.mixtures`), all rows at once; float64, because scores are small differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse

from gibbsian.backends.device import require_card_memory, there


def soft_assignment(scores: Any, weights: Any) -> Any:
    """Shares proportional to exp(score); returns ``-sum_i w_i log sum_a exp(score_ai)``."""
    totals = torch.logsumexp(scores, dim=0)
    explained = totals > -torch.inf  # a row that no class can explain counts in none
    scores.sub_(torch.where(explained, totals, 0.0)).exp_().mul_(weights)
    return -(weights * totals).sum()


def hard_assignment(scores: Any, weights: Any) -> Any:
    """All of a row to its best class (the first of equals); returns ``-sum_i w_i max_a score_ai``."""
    highest = scores.amax(dim=0)
    best = (scores == highest).int().argmax(dim=0)
    scores.zero_().scatter_(0, best[None], weights[None])
    return -(weights * highest).sum()


class Blocks(list):
    """Blocks of rows as on the CPU, which also stand on the device once somebody has shared them among classes."""

    kept: Any = None


def e_step(blocks: Blocks, theta: np.ndarray, offsets: np.ndarray, hard: bool) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the free energy, the weight of each class and its sums."""
    device = there()
    if blocks.kept is None:
        blocks.kept = _put(blocks, len(offsets))
    features, by_column, weights = blocks.kept
    scores = (features @ device.put(theta.T, torch.float64)).T.contiguous()
    scores += device.put(offsets, torch.float64)[:, None]
    energy = (hard_assignment if hard else soft_assignment)(scores, weights)
    return float(energy), scores.sum(dim=1).cpu().numpy(), (by_column @ scores.T).T.cpu().numpy()


def _put(blocks: Blocks, n_classes: int) -> tuple[Any, Any, Any]:
    """Put all rows there, the same by columns, and their weights."""
    device, parts = there(), [block[0] for block in blocks]
    n_rows, dense = sum(len(block[1]) for block in blocks), isinstance(parts[0], np.ndarray)
    needed = 8.0 * (sum(part.size if dense else 6 * part.nnz for part in parts) + n_rows * 3 * n_classes)
    require_card_memory(needed, f"sharing {n_rows:,} rows among {n_classes} classes", "set `device='cpu'`")
    weights = device.put(np.concatenate([block[1] for block in blocks]), torch.float64)
    if dense:
        features = device.put(np.concatenate(parts), torch.float64)
        return features, features.T, weights
    cells = sparse.vstack(parts).tocoo()
    places, values = device.put(np.stack([cells.row, cells.col]), torch.int64), device.put(cells.data, torch.float64)
    with torch.sparse.check_sparse_tensor_invariants(enable=False):  # said aloud: some versions warn otherwise
        features = torch.sparse_coo_tensor(places, values, cells.shape).coalesce()
    return features, features.T.coalesce(), weights


class Partition:
    """Rows for k-means: each belongs to a class, and energies and moves are sums of differences from its mean.

    Points and means are counted from one middle; `present` is None or says which cells there are, others being zero.
    """

    def __init__(self, points: np.ndarray, weights: np.ndarray, present: np.ndarray | None, n_classes: int):
        self._device, (n_rows, n) = there(), points.shape
        needed = 8.0 * n_rows * ((3.0 if present is None else 5.0) * n + 3.0 * n_classes + 6.0)
        require_card_memory(needed, f"sharing {n_rows:,} rows among {n_classes} classes", "set `device='cpu'`")
        self._points, self._weights = (self._device.put(part, torch.float64) for part in (points, weights))
        self._present = None if present is None else self._device.put(present, torch.float64)
        self._labels: tuple[Any, Any] = (None, None)

    def _label_tensor(self, labels: np.ndarray) -> Any:
        known, tensor = self._labels
        return tensor if labels is known else self._device.put(labels, torch.int64)

    def _differences(self, means: Any, labels: Any) -> Any:
        differences = self._points - means[labels]
        return differences if self._present is None else differences.mul_(self._present)

    def _distances(self, means: Any, labels: Any) -> Any:
        return self._differences(means, labels).square_().sum(dim=1)

    def settle(self, means: np.ndarray, before: np.ndarray | None) -> tuple[float, np.ndarray]:
        """Return the energy and the class of each row, which leaves the one before only for a mean truly nearer."""
        centres = self._device.put(means, torch.float64)
        scores, squares = self._points @ centres.T, centres.square().T / 2.0
        scores -= squares.sum(dim=0) if self._present is None else self._present @ squares
        labels = scores.argmax(dim=1)
        distances = self._distances(centres, labels)
        if before is not None:
            old = self._label_tensor(before)
            own = self._distances(centres, old)
            labels, distances = torch.where(own <= distances, old, labels), torch.minimum(own, distances)
        self._labels = labels.cpu().numpy(), labels
        return float(self._weights @ distances), self._labels[0]

    def class_shifts(self, means: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of the cells of each class, or of its rows, and the summed differences from its mean."""
        own, centres = self._label_tensor(labels), self._device.put(means, torch.float64)
        shares = (own == torch.arange(len(means), device=own.device)[:, None]) * self._weights
        mass = shares.sum(dim=1, keepdim=True) if self._present is None else shares @ self._present
        return mass.cpu().numpy(), (shares @ self._differences(centres, own)).cpu().numpy()
