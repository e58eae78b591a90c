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


def share(blocks: Blocks, theta: np.ndarray, offsets: np.ndarray, hard: bool) -> tuple[float, np.ndarray, np.ndarray]:
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
    features = torch.sparse_coo_tensor(places, values, cells.shape, check_invariants=False).coalesce()
    return features, features.T.coalesce(), weights
