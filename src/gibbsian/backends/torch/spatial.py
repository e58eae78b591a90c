"""1-SMCI of pairwise spins (`backends.numba.spatial`), many targets and all samples at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import here, require_card_memory
from gibbsian.backends.numba.spatial import CROSSES, REFERENCE, SQUARES, TOTAL, Shares

# Values (targets x samples) at a time, and the tensors of that size that a formula needs.
_CELLS, _COPIES = 2**24, 10
# exp(-2|J|) underflows beyond: such couplings are left to Numba.
LARGE = 300.0


def _nodes(fields: Any, binary: bool) -> Any:
    return torch.sigmoid(2.0 * fields) if binary else torch.tanh(fields)


def _pairs(first: Any, second: Any, spins: tuple[Any, Any], couplings: Any, binary: bool) -> Any:
    """E[x_i x_j | rest]: the formulas of `_spin_pair_values` and `_binary_pair_values`."""
    a, b = first - couplings * spins[1], second - couplings * spins[0]
    if binary:
        exponents = (b + couplings, a + couplings, a + b)
        return 1.0 / (1.0 + sum(torch.exp((-2.0 * exponent).clamp(max=700.0)) for exponent in exponents))
    ea, eb = torch.exp(-2.0 * a.abs()), torch.exp(-2.0 * b.abs())
    signs = torch.copysign(torch.ones_like(a), a) * torch.copysign(torch.ones_like(b), b)
    favoured, disfavoured = signs * couplings >= 0.0, torch.exp(-2.0 * couplings.abs())
    equal = (1.0 + ea * eb) * torch.where(favoured, 1.0, disfavoured)
    unequal = (ea + eb) * torch.where(favoured, disfavoured, 1.0)
    return signs * (equal - unequal) / (equal + unequal)


class _Counting:
    """What samples count for, on the device, and how values are folded into running sums."""

    def __init__(self, block: Shares):
        device = here()
        assert device is not None
        self.shares, self.spreads = (device.put(part, torch.float64) for part in (block.shares, block.spreads))
        self.groups: Any = None
        self.closes: Any = None
        if block.grouped:
            ends = np.flatnonzero(block.closes >= 0.0)
            self.groups = device.put(np.searchsorted(ends, np.arange(len(block.shares))), torch.int64)
            self.closes = device.put(block.closes[ends], torch.float64)

    def fill(self, sums: np.ndarray, values: Any) -> None:
        """Fill the running sums of some statistics, whose rows of values are those of all samples."""
        changes = values.double() - values[:, :1].double()
        found = {REFERENCE: values[:, 0].double(), TOTAL: changes @ self.shares}
        if self.groups is None:
            found |= {CROSSES: changes @ self.spreads, SQUARES: changes.square() @ self.spreads}
        else:
            empty = torch.zeros((len(values), self.closes.numel()), dtype=torch.float64, device=values.device)
            parts = empty.index_add_(1, self.groups, changes * self.shares)
            found |= {CROSSES: parts @ self.closes, SQUARES: parts.square().sum(dim=1)}
        for column, numbers in found.items():
            sums[:, column] = numbers.cpu().numpy()


def first_order(
    sums: np.ndarray,
    matrix: np.ndarray,
    biases: np.ndarray,
    edges: np.ndarray,
    spins: np.ndarray,
    block: Shares,
    binary: bool,
    n_biases: int,
) -> None:
    """Fill the running sums of the means and of the pairs along edges, over spins with one row for each sample."""
    device = here()
    assert device is not None
    n_samples, n = spins.shape
    rows = max(1, _CELLS // n_samples)
    needed = device.dtype.itemsize * (2.0 * n_samples * n + _COPIES * rows * n_samples + n * n)
    require_card_memory(needed, f"integrating over {n_samples:,} samples", "give fewer samples, or set `device='cpu'`")
    by_variable, counting = device.put(spins.T), _Counting(block)
    couplings = device.put(matrix)
    fields = couplings @ by_variable + device.put(biases)[:, None]
    for start in range(0, n_biases, rows):
        counting.fill(sums[start : min(start + rows, n_biases)], _nodes(fields[start : start + rows], binary))
    for start in range(0, len(edges), rows):
        i, j = device.put(edges[start : start + rows].T, torch.int64)
        values = _pairs(fields[i], fields[j], (by_variable[i], by_variable[j]), couplings[i, j][:, None], binary)
        counting.fill(sums[n_biases + start : n_biases + start + len(i)], values)
