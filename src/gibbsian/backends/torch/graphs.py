"""Many small kernels as one launch: recorded once as a CUDA graph and replayed; elsewhere they simply run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import Device


def replayed(device: Device, step: Callable[[], None], n: int) -> None:
    """Take a step `n` times; it works on tensors that stay where they are."""
    for _ in range(n if n < 4 or not device.is_card else 1):
        step()  # the first also compiles
    if n < 4 or not device.is_card:
        return
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(n - 1):
        graph.replay()


class Replayed:
    """A function from a vector of NumPy to a number and a vector, by a function of tensors on the device.

    Parameters
    ----------
    device : Device
        Where.
    function : callable
        Takes a float64 tensor, returns a number and a vector as tensors.
    """

    def __init__(self, device: Device, function: Callable[[Any], tuple[Any, Any]]):
        self._device, self._function = device, function
        self._graph: Any = None
        self._n_calls = 0

    def __call__(self, given: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the number and the vector."""
        self._n_calls += 1
        if self._n_calls < 2 or not self._device.is_card:  # the first call compiles
            value, vector = self._function(self._device.put(given, torch.float64))
            return float(value), vector.cpu().numpy()
        if self._graph is None:
            self._record(given.size)
        self._sent.copy_(torch.from_numpy(np.ascontiguousarray(given)))
        self._up.copy_(self._sent, non_blocking=True)
        self._graph.replay()
        self._fetched.copy_(self._vector, non_blocking=True)
        return float(self._value), self._fetched.numpy().copy()

    def _record(self, size: int) -> None:
        """Record the kernels, with memory of their own; what comes and goes passes through pinned memory."""
        self._sent = torch.empty(size, dtype=torch.float64, pin_memory=True)
        self._up = torch.zeros(size, dtype=torch.float64, device=self._device.place)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._value, self._vector = self._function(self._up)
        self._fetched = torch.empty(self._vector.shape, dtype=self._vector.dtype, pin_memory=True)
