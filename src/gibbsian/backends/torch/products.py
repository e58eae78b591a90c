"""Objectives on flip costs by two matrix products: rows stay on the device, theta goes up, value and gradient down.

On a sparse graph the matrix has a row for each place among the neighbours of a column, and products gather these.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch

from gibbsian.backends.device import here, require_card_memory
from gibbsian.backends.flip_layout import FlipLayout
from gibbsian.backends.torch import flip_losses

# Cells of a block of rows: rows of one block are kept as numbers, those of several as bytes that become numbers.
BLOCK_CELLS = 2**28
# Columns are padded to whole vectors of this many.
ALIGNED = 8
_INSTEAD = "give fewer rows, or set `device='cpu'`"


class FlipLoss:
    """A function of theta: the loss of the flip costs of all rows, and its gradient.

    Parameters
    ----------
    layout : FlipLayout
        States and where parameters stand.
    shares : ndarray
        The weight of each state.
    kernel : str
        The loss, by its name in `flip_losses`.
    left_out : ndarray, optional
        Flips that do not count.
    """

    takes_tensors: ClassVar[bool] = True

    def __init__(self, layout: FlipLayout, shares: np.ndarray, kernel: str, left_out: np.ndarray | None = None):
        device = here()
        assert device is not None
        self._device, self._layout, self._kernel = device, layout, getattr(flip_losses, kernel)
        # the last column is one everywhere: its row of the matrix holds the biases, its column no field
        self._width = -(-(layout.n_columns + 1) // ALIGNED) * ALIGNED
        n_rows = len(layout.states)
        self._rows = max(1, min(n_rows, BLOCK_CELLS // self._width))
        item, cells = device.dtype.itemsize, float(n_rows) * self._width
        block = float(self._rows) * self._width
        self._neighbours: Any = None
        places: Any = (layout.sources, layout.targets, layout.targets, layout.sources)
        if layout.sparse:
            near, places = _neighbours(layout, self._width)
            self._neighbours = device.put(near, torch.int64)
        self._height = len(near) if layout.sparse else self._width
        copies = (2.0 if device.has_triton and not layout.one_hot else 5.0) + layout.sparse
        # signs of the states, where weights are asked for, are two bytes each
        needed = (item if self._rows == n_rows else 1) * cells + (copies * item + 2.0) * block
        # couplings, slopes and their sums, as matrices, and four whole numbers of each coupling
        needed += 48.0 * self._height * self._width + (0.0 if left_out is None else n_rows * layout.n_columns)
        require_card_memory(needed, f"learning from {n_rows:,} rows of {layout.n_columns:,} columns", _INSTEAD)
        self._shares = device.put(shares)
        self._states = device.put(layout.states, torch.int8)
        self._left_out = None if left_out is None else device.put(layout.by_value(left_out), torch.bool)
        ends = tuple(device.put(part, torch.int64) for part in places)
        self._places, self._mirrored = ends[:2], ends[2:]
        self._bias_columns = device.put(layout.bias_columns, torch.int64)
        counts = torch.arange(layout.n_values, device=device.place)
        self._absent = counts >= device.put(layout.cardinalities, torch.int64).unsqueeze(1)
        self._numbers = self._as_numbers(self._states) if self._rows == n_rows else None
        self._scale = device.put(layout.gap)
        self._fused = None
        if device.has_triton and left_out is None and not layout.one_hot:
            from gibbsian.backends.torch import triton_losses

            self._fused = triton_losses.FUSED.get(kernel)

    def _as_numbers(self, states: Any) -> Any:
        layout = self._layout
        numbers = torch.zeros((len(states), self._width), dtype=self._device.dtype, device=self._device.place)
        if layout.one_hot:
            first = torch.arange(states.shape[1], device=self._device.place) * layout.n_values
            numbers.scatter_(1, states.long() + first, 1.0)
        else:
            numbers[:, : states.shape[1]] = states
        numbers[:, -1] = 1.0
        return numbers

    def matrix(self, theta: Any) -> Any:
        """Return the matrix of couplings with the biases in its last row."""
        matrix = torch.zeros((self._height, self._width), dtype=self._device.dtype, device=self._device.place)
        n_biases = self._bias_columns.numel()
        couplings = theta[n_biases:].to(matrix.dtype)
        matrix[self._places] = couplings
        if self._layout.tied:
            matrix[self._mirrored] = couplings
        matrix[-1, self._bias_columns] = theta[:n_biases].to(matrix.dtype)
        return matrix

    def _gradient(self, slopes: Any) -> Any:
        both = slopes[self._places]
        both = both + slopes[self._mirrored] if self._layout.tied else both
        return torch.cat([slopes[-1, self._bias_columns], both])

    def _blocks(self, theta: Any, signed: bool = True) -> Any:
        """Yield what the loss says of each block of rows, and the products of its slopes with the numbers.

        Slopes are those by the fields, or by the flip costs where they are not `signed`.
        """
        matrix = self.matrix(theta)
        for start in range(0, len(self._states), self._rows):
            rows = slice(start, start + self._rows)
            numbers = self._as_numbers(self._states[rows]) if self._numbers is None else self._numbers
            fields = self._fields(numbers, matrix)
            answer = self._loss(fields, rows)
            if not signed:
                signs = (self._states[rows] > 0).to(torch.int8).mul_(2).sub_(1)
                fields[:, : self._layout.n_columns].mul_(signs).div_(self._scale)
            yield answer, self._slopes(numbers, fields)

    def flip_weights(self, theta: Any) -> Any:
        """Return what `FlipCostObjective.weights` does, of an array or a tensor there as such."""
        if isinstance(theta, np.ndarray):
            return self.flip_weights(self._device.put(theta, torch.float64)).cpu().numpy()
        n, half = self._layout.n_columns, self._layout.gap / 2
        sums: Any = sum(products.double() for _, products in self._blocks(theta, signed=False))
        return -2.0 * torch.cat([sums[-1:, :n], sums[:n, :n] / half]).T

    def _fields(self, numbers: Any, matrix: Any) -> Any:
        if self._neighbours is None:
            return numbers @ matrix
        fields = torch.zeros_like(numbers)
        for near, row in zip(self._neighbours, matrix, strict=True):
            fields.addcmul_(numbers.index_select(1, near), row)
        return fields

    def _slopes(self, numbers: Any, slopes: Any) -> Any:
        """Return the derivatives by the entries of the matrix, given those by the fields."""
        if self._neighbours is None:
            return numbers.T @ slopes
        return torch.stack([(numbers.index_select(1, near) * slopes).sum(dim=0) for near in self._neighbours])

    def _loss(self, fields: Any, rows: slice) -> Any:
        """Return the loss of some fields and overwrite them with its slopes."""
        layout, states, shares = self._layout, self._states[rows], self._shares[rows]
        inner = fields[:, : layout.n_columns]
        if layout.one_hot:
            return self._many_valued(inner, states, shares, rows)
        if self._fused is not None:
            return self._fused(inner, states, shares, self._scale)
        signs = torch.where(states > 0, self._scale, -self._scale)
        costs = inner * signs
        if self._left_out is not None:
            costs[self._left_out[rows]] = torch.inf
        answer = self._kernel(costs, shares)
        torch.mul(costs, signs, out=inner)
        return answer

    def _many_valued(self, fields: Any, codes: Any, shares: Any, rows: slice) -> Any:
        q = self._layout.n_values
        present = codes.long().unsqueeze(2)
        table = fields.unflatten(1, (-1, q))
        costs = (table.gather(2, present) - table).masked_fill_(self._absent, torch.inf)
        if self._left_out is not None:
            costs[self._left_out[rows].view(costs.shape)] = torch.inf
        answer = self._kernel(costs, shares)
        table.copy_(costs.neg_()).scatter_add_(2, present, -costs.sum(dim=2, keepdim=True))
        return answer

    def __call__(self, theta: Any) -> tuple[Any, Any]:
        """Return value and gradient: of an array as a number and an array, of a tensor there as tensors."""
        if not isinstance(theta, np.ndarray):
            return self.on_card(theta)
        value, gradient = self.on_card(self._device.put(theta, torch.float64))
        return float(value), gradient.cpu().numpy()

    def on_card(self, theta: Any) -> tuple[Any, Any]:
        """Return value and gradient as tensors there, of parameters that are there."""
        value, slopes = 0.0, 0.0
        for part, products in self._blocks(theta):
            value, slopes = value + part, slopes + products.double()
        return value, self._gradient(slopes)


def _neighbours(layout: FlipLayout, width: int) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Return the columns that each column's fields gather, the last the ones of the biases, and where couplings stand.

    That is the place among the neighbours of its target, the target, and the same for the mirror image.
    """
    size, both = len(layout.sources), (layout.sources, layout.targets)
    sources, targets = (np.concatenate([end, other][: 1 + layout.tied]) for end, other in (both, both[::-1]))
    order, counts = np.argsort(targets, kind="stable"), np.bincount(targets, minlength=width)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    near = np.full((counts.max() + 1, width), width - 1)
    near[place, targets] = sources
    return near, (place[:size], targets[:size], place[size:], targets[size:])


class ScreeningLoss(FlipLoss):
    """The loss of logRISE, ``sum_u log sum_m share_m exp(-d[m, u] / 2)``, by log-sum-exp over blocks of rows."""

    def on_card(self, theta: Any) -> tuple[Any, Any]:
        """Return value and gradient as tensors there, of parameters that are there."""
        n = self._layout.n_columns
        top = torch.full((n,), -torch.inf, dtype=torch.float64, device=self._device.place)
        total, slopes = torch.zeros_like(top), torch.zeros((self._height, n), dtype=top.dtype, device=top.device)
        for (tops, totals), products in self._blocks(theta):
            higher = torch.maximum(top, tops)
            old, new = (top - higher).exp(), (tops - higher).exp()
            total, slopes, top = old * total + new * totals, old * slopes + new * products[:, :n].double(), higher
        return (top + total.log()).sum(), self._gradient(slopes / total)


def bound(layout: FlipLayout, shares: np.ndarray, kernel: Any, left_out: np.ndarray | None = None) -> FlipLoss:
    """Return the function of theta with the loss that a kernel of Numba computes."""
    name = kernel.__name__
    kind = ScreeningLoss if name == "scaled_half_exponential" else FlipLoss
    return kind(layout, shares, name, left_out)
