"""Sums over all states of one layer of two-valued units (`backends.numba.layer_sums`) by products, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import require_card_memory, there

# Fields (states x units of the other layer) at a time; a few tensors of that size are needed.
_CELLS, _COPIES = 2**25, 4


def _states(fields: np.ndarray, field_slopes: np.ndarray) -> Iterator[tuple[slice, Any, Any]]:
    """Yield places of states, their bits, the first changing fastest, and the fields that they make."""
    device, (n_bits, n_units) = there(), field_slopes.shape
    step = max(1, min(2**n_bits, _CELLS // max(n_units, n_bits, 1)))
    require_card_memory(
        8.0 * (_COPIES * step * (n_units + n_bits) + 2**n_bits), f"summing 2^{n_bits} states", "set `device='cpu'`"
    )
    start, slopes = device.put(fields, torch.float64), device.put(field_slopes, torch.float64)
    shifts = torch.arange(n_bits, device=device.place)
    for first in range(0, 2**n_bits, step):
        numbers = torch.arange(first, min(first + step, 2**n_bits), device=device.place)
        bits = ((numbers[:, None] >> shifts) & 1).double()
        yield slice(first, first + step), bits, torch.addmm(start, bits, slopes)


def log_weights(slopes: np.ndarray, fields: np.ndarray, field_slopes: np.ndarray) -> np.ndarray:
    """Return the log-weights of all states: what is linear in the bits, and the other layer summed out."""
    table, device = np.empty(2 ** len(slopes)), there()
    linear = device.put(slopes, torch.float64)
    for part, bits, found in _states(fields, field_slopes):
        table[part] = (bits @ linear + torch.nn.functional.softplus(found, threshold=40.0).sum(dim=1)).cpu().numpy()
    return table


def moments(shares: np.ndarray, fields: np.ndarray, field_slopes: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the means of the other layer, of the bits, and of their products (bits by other)."""
    device, total = there(), torch.zeros(1)
    for part, bits, found in _states(fields, field_slopes):
        own, means = device.put(shares[part], torch.float64), found.sigmoid_()
        left, right = (torch.nn.functional.pad(each, (1, 0), value=1.0) for each in (bits, means))
        total = total.to(left) + (left * own[:, None]).T @ right
    sums = total.cpu().numpy()
    return sums[0, 1:], sums[1:, 0], sums[1:, 1:]
