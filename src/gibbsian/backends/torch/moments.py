"""Moments of columns on a device, and eigenvectors of their matrices."""

from __future__ import annotations

import numpy as np
import torch

from gibbsian.backends.device import require_card_memory, there

# Numbers of a block of rows.
_BLOCK_CELLS = 2**27


def eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues and eigenvectors of a symmetric matrix."""
    device = there()
    require_card_memory(40.0 * matrix.size, f"directions of {len(matrix):,} columns", "set `device='cpu'`")
    values, basis = torch.linalg.eigh(device.put(matrix, torch.float64))
    return values.cpu().numpy(), basis.cpu().numpy()


def column_means(states: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the weighted means of the columns of complete rows."""
    device = there()
    n_rows, n = states.shape
    rows = max(1, min(n_rows, _BLOCK_CELLS // n))
    require_card_memory(n_rows * float(n) + 8.0 * rows * n, f"means of {n:,} columns", "set `device='cpu'`")
    cells, weights = device.put(states, torch.int8), device.put(shares, torch.float64)
    spans = (slice(start, start + rows) for start in range(0, n_rows, rows))
    return sum(weights[span] @ cells[span].double() for span in spans).cpu().numpy()


def mean_products(states: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted means of the numbers of states and of the products of all pairs, in float64."""
    device = there()
    n_rows, n = states.shape
    rows = max(1, min(n_rows, _BLOCK_CELLS // n))
    require_card_memory(
        n_rows * float(n) + 16.0 * rows * n + 16.0 * n**2,
        f"moments of {n:,} columns",
        "give fewer rows, or set `device='cpu'`",
    )
    cells, weights = device.put(states, torch.int8), device.put(shares, torch.float64)
    first = torch.zeros(n, dtype=torch.float64, device=device.place)
    second = torch.zeros((n, n), dtype=torch.float64, device=device.place)
    for start in range(0, n_rows, rows):
        numbers = cells[start : start + rows].double()
        weighted = numbers * weights[start : start + rows, None]
        first += weighted.sum(dim=0)
        second += weighted.T @ numbers
    return first.cpu().numpy(), second.cpu().numpy()
