"""The memory of L-BFGS on a device: with many parameters, walking through it takes longer than an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import here


class Rows:
    """Rows of equal length on the device, as many as are remembered; a checkpoint takes them for an array."""

    def __init__(self, values: Any):
        self.values, self.shape = values, tuple(values.shape)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> Rows:
        return Rows(self.values[rows])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values.cpu().numpy().astype(np.float64 if dtype is None else dtype)


def _values(rows: Any) -> Any:
    device = here()
    assert device is not None
    return rows.values if isinstance(rows, Rows) else device.put(rows, torch.float64)


def appended(rows: Any, vector: np.ndarray, most: int) -> Rows:
    """Return the rows with one more at the end, the last `most` of them."""
    return Rows(torch.cat([_values(rows), _values(vector)[None]])[-most:])


def quasi_newton(steepest: np.ndarray, moves: Any, changes: Any, metric: Any) -> np.ndarray:
    """Multiply by the implicit inverse Hessian (the two-loop recursion about the metric)."""
    direction, moves, changes = _values(steepest), _values(moves), _values(changes)
    on_card = getattr(metric, "on_card", None)

    def shaped(vector: Any) -> Any:
        if metric is None:
            return vector
        return on_card(vector) if on_card is not None else _values(metric(vector.cpu().numpy()))

    curvatures = (moves * changes).sum(dim=1)
    weights: list[Any] = [None] * len(moves)
    for k in range(len(moves) - 1, -1, -1):
        weights[k] = moves[k] @ direction / curvatures[k]
        direction = direction - weights[k] * changes[k]
    last = changes[-1]
    direction = shaped(direction) * (curvatures[-1] / (last @ shaped(last)))
    for k in range(len(moves)):
        direction = direction + (weights[k] - changes[k] @ direction / curvatures[k]) * moves[k]
    return direction.cpu().numpy()
