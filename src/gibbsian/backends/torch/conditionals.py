"""Conditionals by two matrix products: rows stay on the device, theta goes up, value and gradient down.

On a sparse graph the matrix has a row for each place among the neighbours of a column, and products gather these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import here, require_card_memory
from gibbsian.backends.torch import flip_losses

# Cells of a block of rows: rows of one block are kept as numbers, those of several as bytes that become numbers.
BLOCK_CELLS = 2**28
# Columns are padded to whole vectors of this many.
ALIGNED = 8
_INSTEAD = "give fewer rows, or set `device='cpu'`"


def of_pairs(pairs: Any, rows: Any) -> MatrixConditionals:
    """Bind rows of `gibbsian.models.conditionals.Pairs`: a column of numbers for each variable."""
    states = rows.codes * np.int8(pairs.gap) + np.int8(pairs.low)
    (i, j), nodes = pairs.graph.edges.T, np.arange(pairs.n_biases)
    ends = (np.concatenate([j, i]), np.concatenate([i, j])) if pairs.directed else (i, j)
    places, sparse = (nodes, *ends), not pairs.graph.is_dense
    return MatrixConditionals(rows._replace(codes=states), places, None, pairs.gap, not pairs.directed, sparse)


def of_tables(family: Any, rows: Any) -> MatrixConditionals:
    """Bind rows of tables of pairs: a column for each value, as many for each variable as the largest has."""
    sizes, q = np.array(family.variables.sizes), max(family.variables.sizes)
    columns = [np.arange(i * q, i * q + size) for i, size in enumerate(sizes)]
    biases = np.concatenate([np.empty(0, np.int64), *(columns[i] for (i,) in family.scopes[: family.scopes.n_singles])])
    grids = [np.meshgrid(columns[i], columns[j], indexing="ij") for i, j in family.scopes[family.scopes.n_singles :]]
    sources, targets = np.hstack([np.zeros((2, 0), np.intp), *(np.reshape(grid, (2, -1)) for grid in grids)])
    if rows.masked is not None:
        wide = np.zeros((len(rows.codes), len(sizes) * q), bool)
        wide[:, np.concatenate(columns)] = rows.masked
        rows = rows._replace(masked=wide)
    places, sparse = (biases, sources, targets), not family.graph.is_dense
    return MatrixConditionals(rows, places, sizes, 1.0, True, sparse)


class MatrixConditionals:
    """Conditionals whose costs follow cell by cell from ``fields = numbers @ matrix``.

    Parameters
    ----------
    rows : WeightedRows
        The rows: two numbers, of which one is positive, or codes.
    places : tuple of ndarray
        The column of each bias, which stand first among the parameters; and the row and the column of the matrix of
        each coupling.
    sizes : ndarray or None
        How many values each variable has, with a column for each; None for one column of numbers each.
    gap : float
        How far the two numbers are apart.
    tied : bool
        Whether a coupling also stands at its mirror image.
    sparse : bool
        Whether few entries of the matrix are couplings.
    """

    takes_tensors, keeps_rows = True, True

    def __init__(
        self,
        rows: Any,
        places: tuple[np.ndarray, np.ndarray, np.ndarray],
        sizes: np.ndarray | None,
        gap: float,
        tied: bool,
        sparse: bool,
    ):
        device, (states, weights, masked, _) = here(), rows
        assert device is not None
        self._device, self._one_hot, self._tied, self._gap = device, sizes is not None, tied, gap
        self._n_values = 2 if sizes is None else int(sizes.max())
        self._n_columns = states.shape[1] * (1 if sizes is None else self._n_values)
        self.groups = None if sizes is None else np.concatenate([[0], np.cumsum(sizes)])
        bias_columns, sources, targets = places
        self.n_parameters = bias_columns.size + sources.size
        # the last column is one everywhere: its row of the matrix holds the biases, its column no field
        self._width = -(-(self._n_columns + 1) // ALIGNED) * ALIGNED
        n_rows = len(states)
        self._rows = max(1, min(n_rows, BLOCK_CELLS // self._width))
        item, cells = device.dtype.itemsize, float(n_rows) * self._width
        block = float(self._rows) * self._width
        self._neighbours: Any = None
        ends: Any = (sources, targets, targets, sources)
        if sparse:
            near, ends = _neighbours(sources, targets, tied, self._width)
            self._neighbours = device.put(near, torch.int64)
        self._height = len(near) if sparse else self._width
        copies = (2.0 if device.has_triton and sizes is None else 5.0) + sparse
        # signs of the states, where slopes are summed, are two bytes each
        needed = (item if self._rows == n_rows else 1) * cells + (copies * item + 2.0) * block
        # couplings, slopes and their sums, as matrices, and four whole numbers of each coupling
        needed += 48.0 * self._height * self._width + (0.0 if masked is None else n_rows * self._n_columns)
        require_card_memory(needed, f"learning from {n_rows:,} rows of {self._n_columns:,} columns", _INSTEAD)
        self._weights = device.put(weights)
        self._states = device.put(states, torch.int8)
        self._masked = None if masked is None else device.put(masked, torch.bool)
        placed = tuple(device.put(part, torch.int64) for part in ends)
        self._places, self._mirrored = placed[:2], placed[2:]
        self._bias_columns = device.put(bias_columns, torch.int64)
        if sizes is not None:
            values = torch.arange(self._n_values, device=device.place)
            self._absent = values >= device.put(sizes, torch.int64).unsqueeze(1)
        self._numbers = self._as_numbers(self._states) if self._rows == n_rows else None
        self._scale = device.put(np.float64(gap))

    def _as_numbers(self, states: Any) -> Any:
        numbers = torch.zeros((len(states), self._width), dtype=self._device.dtype, device=self._device.place)
        if self._one_hot:
            first = torch.arange(states.shape[1], device=self._device.place) * self._n_values
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
        if self._tied:
            matrix[self._mirrored] = couplings
        matrix[-1, self._bias_columns] = theta[:n_biases].to(matrix.dtype)
        return matrix

    def _gradient(self, slopes: Any) -> Any:
        both = slopes[self._places]
        both = both + slopes[self._mirrored] if self._tied else both
        return torch.cat([slopes[-1, self._bias_columns], both])

    def _blocks(self, theta: Any, kernel: Any, signed: bool = True) -> Iterator[tuple[Any, Any]]:
        """Yield what the loss says of each block of rows, and the products of its slopes with the numbers.

        Slopes are those by the fields, or by the costs where they are not `signed`.
        """
        matrix = self.matrix(theta)
        for start in range(0, len(self._states), self._rows):
            rows = slice(start, start + self._rows)
            numbers = self._as_numbers(self._states[rows]) if self._numbers is None else self._numbers
            fields = self._fields(numbers, matrix)
            answer = self._loss(fields, rows, kernel)
            if not signed:
                signs = (self._states[rows] > 0).to(torch.int8).mul_(2).sub_(1)
                fields[:, : self._n_columns].mul_(signs).div_(self._scale)
            yield answer, self._slopes(numbers, fields)

    def evaluate(self, theta: Any, loss: Any) -> tuple[Any, Any]:
        """Return value and gradient: of an array as a number and an array, of a tensor there as tensors."""
        if isinstance(theta, np.ndarray):
            value, gradient = self.evaluate(self._device.put(theta, torch.float64), loss)
            return float(value), gradient.cpu().numpy()
        value, slopes = 0.0, 0.0
        for part, products in self._blocks(theta, loss.many if self._one_hot else loss.two):
            value, slopes = value + part, slopes + products.double()
        return value, self._gradient(slopes)

    def by_block(self, theta: Any, kernel: Any) -> Iterator[tuple[Any, Any]]:
        """Yield what a kernel says of each block of rows, with the gradient: arrays of an array, else tensors."""
        there = self._device.put(theta, torch.float64) if isinstance(theta, np.ndarray) else theta
        for answer, products in self._blocks(there, kernel):
            found = (*answer, self._gradient(products.double()))
            if there is not theta:
                found = tuple(part.cpu().numpy() for part in found)
            yield [found[:-1]], found[-1]

    def derivative_sums(self, theta: Any, loss: Any) -> Any:
        """Return what `PairConditionals.derivative_sums` does, of an array or a tensor there as such."""
        if isinstance(theta, np.ndarray):
            return self.derivative_sums(self._device.put(theta, torch.float64), loss).cpu().numpy()
        n, half = self._n_columns, self._gap / 2
        sums: Any = sum(products.double() for _, products in self._blocks(theta, loss.two, signed=False))
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

    def _loss(self, fields: Any, rows: slice, kernel: Any) -> Any:
        """Return the loss of some fields and overwrite them with its slopes."""
        inner, states, weights = fields[:, : self._n_columns], self._states[rows], self._weights[rows]
        own = getattr(flip_losses, kernel.__name__)
        if self._one_hot:
            return self._many_valued(inner, states, weights, rows, own)
        if (fused := self._fused(kernel.__name__)) is not None:
            return fused(inner, states, weights, self._scale)
        signs = torch.where(states > 0, self._scale, -self._scale)
        costs = inner * signs
        if self._masked is not None:
            costs[self._masked[rows]] = torch.inf
        answer = own(costs, weights)
        torch.mul(costs, signs, out=inner)
        return answer

    def _fused(self, name: str) -> Callable[..., Any] | None:
        """Return the loss as one pass over memory, where there is one."""
        if not self._device.has_triton or self._masked is not None:
            return None
        from gibbsian.backends.torch import triton_losses

        return triton_losses.FUSED.get(name)

    def _many_valued(self, fields: Any, codes: Any, weights: Any, rows: slice, kernel: Any) -> Any:
        present = codes.long().unsqueeze(2)
        table = fields.unflatten(1, (-1, self._n_values))
        costs = (table.gather(2, present) - table).masked_fill_(self._absent, torch.inf)
        if self._masked is not None:
            costs[self._masked[rows].view(costs.shape)] = torch.inf
        answer = kernel(costs, weights)
        table.copy_(costs.neg_()).scatter_add_(2, present, -costs.sum(dim=2, keepdim=True))
        return answer


def _neighbours(
    sources: np.ndarray, targets: np.ndarray, tied: bool, width: int
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Return the columns that each column's fields gather, the last the ones of the biases, and where couplings stand.

    That is the place among the neighbours of its target, the target, and the same for the mirror image.
    """
    size, both = len(sources), (sources, targets)
    sources, targets = (np.concatenate([end, other][: 1 + tied]) for end, other in (both, both[::-1]))
    order, counts = np.argsort(targets, kind="stable"), np.bincount(targets, minlength=width)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    near = np.full((counts.max() + 1, width), width - 1)
    near[place, targets] = sources
    return near, (place[:size], targets[:size], place[size:], targets[size:])
