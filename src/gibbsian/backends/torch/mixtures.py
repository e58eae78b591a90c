"""Rows to classes (`backends.numba.mixtures`), all rows at once; float64, because scores are small differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import here, require_card_memory


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


def share(
    blocks: Blocks, theta: np.ndarray, offsets: np.ndarray, hard: bool
) -> tuple[float, np.ndarray, np.ndarray] | None:
    """Return the free energy, the weight of each class and its sums; None for sparse rows."""
    device = here()
    assert device is not None
    if not isinstance(blocks[0][0], np.ndarray):
        return None
    if blocks.kept is None:
        n_rows, width = sum(len(weights) for _, weights in blocks), blocks[0][0].shape[1]
        needed = 8.0 * n_rows * (width + 3 * len(offsets))
        require_card_memory(needed, f"sharing {n_rows:,} rows among {len(offsets)} classes", "set `device='cpu'`")
        parts = (np.concatenate([block[end] for block in blocks]) for end in (0, 1))
        blocks.kept = tuple(device.put(part, torch.float64) for part in parts)
    features, weights = blocks.kept
    scores = device.put(theta, torch.float64) @ features.T + device.put(offsets, torch.float64)[:, None]
    energy = (hard_assignment if hard else soft_assignment)(scores, weights)
    return float(energy), scores.sum(dim=1).cpu().numpy(), (scores @ features).cpu().numpy()
