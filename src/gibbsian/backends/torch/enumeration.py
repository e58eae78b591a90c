"""Sums over all states of a small spin model (`backends.numba.enumeration`), many rows of states at a time, float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import require_card_memory, there

# States at a time; a few tensors of that size are needed.
_STATES, _COPIES = 2**24, 4


def _signs(numbers: Any, n_bits: int) -> Any:
    """The spins of states by their numbers: variable 0 is the most significant bit, and a zero bit is -1."""
    shifts = torch.arange(n_bits - 1, -1, -1, device=numbers.device)
    return ((numbers[:, None] >> shifts) & 1).double() * 2.0 - 1.0


def _log_weights(
    biases: np.ndarray, couplings: np.ndarray, n_high: int, energies: np.ndarray
) -> Iterator[tuple[slice, Any, Any]]:
    """Yield slices of rows, their log-weights, and the spins of the columns."""
    device = there()
    n_rows, n_low = 1 << n_high, biases.size - n_high
    step = min(n_rows, max(1, _STATES >> n_low))
    needed = 8.0 * (_COPIES * step * 2**n_low + n_rows * (n_low + 2))
    require_card_memory(needed, f"enumerating 2^{biases.size} states", "set `device='cpu'`")
    own, matrix, columns = (device.put(part, torch.float64) for part in (biases, couplings, energies))
    low = _signs(torch.arange(2**n_low, device=device.place), n_low)
    for start in range(0, n_rows, step):
        high = _signs(torch.arange(start, start + step, device=device.place), n_high)
        fields = high @ matrix[:n_high]
        totals = (high * (own[:n_high] + 0.5 * fields[:, :n_high])).sum(dim=1)  # half counts each pair once
        yield slice(start, start + step), (fields[:, n_high:] @ low.T).add_(totals[:, None]).add_(columns), low


def row_maxima(biases: np.ndarray, couplings: np.ndarray, n_high: int, energies: np.ndarray) -> np.ndarray:
    """Largest log-weight of each row."""
    maxima = np.empty(1 << n_high)
    for rows, table, _ in _log_weights(biases, couplings, n_high, energies):
        maxima[rows] = table.amax(dim=1).cpu().numpy()
    return maxima


def row_sums(
    biases: np.ndarray, couplings: np.ndarray, n_high: int, energies: np.ndarray, reference: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum the weights ``exp(log-weight - reference)``: of each row, of ``s_j`` over each row, and of each column."""
    n_rows, n_low = 1 << n_high, biases.size - n_high
    masses, moments, columns = np.empty(n_rows), np.empty((n_low, n_rows)), 0.0
    for rows, table, low in _log_weights(biases, couplings, n_high, energies):
        weights = table.sub_(reference).exp_()
        masses[rows] = weights.sum(dim=1).cpu().numpy()
        moments[:, rows] = (weights @ low).T.cpu().numpy()
        columns = columns + weights.sum(dim=0).cpu().numpy()
    return masses, moments, np.asarray(columns)
