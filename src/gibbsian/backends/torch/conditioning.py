"""The metric of all pairs of columns (`models.conditioning`) on a device, and their means."""

from __future__ import annotations

from typing import Any

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


class PairMetric:
    """`models.conditioning.PairMetric` with its arrays on the device."""

    def __init__(self, metric: Any):
        device = there()
        self._device, self.curvature = device, metric.curvature
        self._lean, self._bias_inverse, self._scales, self._basis, self._divisors = (
            device.put(part, torch.float64)
            for part in (metric.lean, metric.bias_inverse, metric.scales, metric.basis, metric.divisors)
        )
        self._ends = tuple(device.put(end, torch.int64) for end in metric.graph.edges.T)

    def on_device(self, twins: Any) -> PairMetric:
        """Return the metric itself, which takes tensors too."""
        return self

    def __call__(self, gradient: Any) -> Any:
        """Return the step along a gradient, an array or a tensor there."""
        if isinstance(gradient, np.ndarray):
            return self(self._device.put(gradient, torch.float64)).cpu().numpy()
        n_biases = gradient.numel() - self._ends[0].numel()
        biases = gradient[:n_biases]
        slopes = torch.zeros_like(self._divisors)
        slopes[self._ends] = gradient[n_biases:]
        if n_biases:
            slopes += biases[:, None] * self._lean
        inside = self._basis.T @ (self._scales * (slopes + slopes.T)) @ self._basis
        couplings = (self._scales * (self._basis @ (inside / self._divisors) @ self._basis.T)).fill_diagonal_(0.0)
        if not n_biases:
            return couplings[self._ends]
        own = self._bias_inverse @ biases if self._bias_inverse.ndim == 2 else self._bias_inverse * biases
        return torch.cat([own + (self._lean * couplings).sum(dim=1), couplings[self._ends]])


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
