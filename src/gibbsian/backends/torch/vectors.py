"""Vectors of an optimiser on a device: they come and go with every step, and what it remembers stays there."""

from __future__ import annotations

from copy import copy
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import here


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


def lifted(state: Any) -> Any:
    """Return the state of an optimiser with its arrays as tensors."""
    arrays = {part.name: getattr(state, part.name) for part in fields(state)}
    return replace(state, **{name: put(array) for name, array in arrays.items() if hasattr(array, "shape")})


def lowered(state: Any) -> Any:
    """Return the state with vectors as arrays again."""
    tensors = {part.name: getattr(state, part.name) for part in fields(state)}
    got = {name: Rows(part) if part.ndim > 1 else part.cpu().numpy() for name, part in tensors.items()
           if torch.is_tensor(part)}  # fmt: skip
    return replace(state, **got)


class Shift:
    """What `models.centring` adds to biases, or its transpose; sums over the pairs of a variable are made in order."""

    def __init__(self, pairs: np.ndarray, mean: np.ndarray, transposed: bool = False):
        device = here()
        assert device is not None
        order = np.argsort(pairs, axis=None, kind="stable")
        self.pairs, self.mean, self.transposed = device.put(pairs, torch.int64), put(mean), transposed
        self.numbers = device.put(order % pairs.shape[1], torch.int64)
        self.others = device.put(pairs[::-1].ravel()[order], torch.int64)
        self.counts = device.put(np.bincount(pairs.ravel(), minlength=len(mean)), torch.int64)

    @property
    def T(self) -> Shift:
        """The transpose."""
        turned = copy(self)
        turned.transposed = not self.transposed
        return turned

    def __matmul__(self, vector: Any) -> Any:
        (i, j), mean = self.pairs, self.mean
        biases, couplings = vector[: len(mean)], vector[len(mean) :]
        if self.transposed:
            return torch.cat([biases, couplings + biases[i] * mean[j] + biases[j] * mean[i]])
        terms = couplings[self.numbers] * mean[self.others]
        return torch.cat([biases + torch.segment_reduce(terms, "sum", lengths=self.counts), couplings])
