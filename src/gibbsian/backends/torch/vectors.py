"""Vectors of an optimiser on a device: they come and go with every step, and what it remembers stays there."""

from __future__ import annotations

from copy import copy
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import here, require_card_memory

# Vectors as long as theta that a change about the mean takes, with two preconditioners: counted in fits of all pairs.
_AROUND = 36


def require_memory(n_parameters: int, n_vectors: int, changed: bool) -> None:
    """Refuse vectors that do not fit, those of a change of parameters among them where there is one."""
    needed = 8.0 * n_parameters * (n_vectors + _AROUND * changed)
    instead = "set `device='cpu'`, or give the optimiser less `memory`"
    require_card_memory(needed, f"a step of {n_parameters:,} parameters", instead)


class Rows:
    """Rows of numbers on the device; a checkpoint takes them for an array."""

    def __init__(self, values: Any):
        self.values, self.shape = values, tuple(values.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values.cpu().numpy().astype(np.float64 if dtype is None else dtype)


def put(array: Any) -> Any:
    """Return an array as a tensor of float64, and rows that are there as they are."""
    device = here()
    assert device is not None
    return array.values if isinstance(array, Rows) else device.put(array, torch.float64)


def put_places(places: np.ndarray) -> Any:
    """Return whole numbers as a tensor that others are indexed with."""
    device = here()
    assert device is not None
    return device.put(places, torch.int64)


class Lift:
    """Takes states of an optimiser up and down; the one that came down last is still there when it goes up again."""

    def __init__(self) -> None:
        self._last: tuple[Any, Any] = (None, None)

    def up(self, state: Any) -> Any:
        """Return the state with its arrays as tensors."""
        below, above = self._last
        if state is below:
            return above
        arrays = {part.name: getattr(state, part.name) for part in fields(state)}
        return replace(state, **{name: put(array) for name, array in arrays.items() if hasattr(array, "shape")})

    def down(self, state: Any) -> Any:
        """Return the state with vectors as arrays again."""
        tensors = {part.name: getattr(state, part.name) for part in fields(state)}
        got = {name: Rows(part) if part.ndim > 1 else part.cpu().numpy() for name, part in tensors.items()
               if torch.is_tensor(part)}  # fmt: skip
        self._last = replace(state, **got), state
        return self._last[0]


class Shift:
    """What `PairShift` adds to biases, or its transpose: a row for each variable, of all pairs that it is in."""

    def __init__(self, pairs: np.ndarray, mean: np.ndarray, transposed: bool = False):
        device = here()
        assert device is not None
        ends, self.mean, self.transposed = device.put(pairs, torch.int64), put(mean), transposed
        self.ends = tuple(ends)
        flat, n_pairs = ends.ravel(), pairs.shape[1]
        order, counts = torch.argsort(flat, stable=True), torch.bincount(flat, minlength=len(mean))
        own = flat[order]
        column = torch.arange(2 * n_pairs, device=own.device) - (counts.cumsum(0) - counts)[own]
        self.numbers = flat.new_zeros(len(mean), int(counts.max()))
        self.means = self.mean.new_zeros(self.numbers.shape)
        self.numbers[own, column] = order % n_pairs
        self.means[own, column] = self.mean[ends.flip(0).ravel()[order]]

    @property
    def T(self) -> Shift:
        """The transpose."""
        turned = copy(self)
        turned.transposed = not self.transposed
        return turned

    def __matmul__(self, vector: Any) -> Any:
        (i, j), mean = self.ends, self.mean
        biases, couplings = vector[: len(mean)], vector[len(mean) :]
        if self.transposed:
            return torch.cat([biases, couplings + biases[i] * mean[j] + biases[j] * mean[i]])
        return torch.cat([biases + (couplings[self.numbers] * self.means).sum(dim=1), couplings])
