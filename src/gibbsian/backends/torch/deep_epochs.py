"""Epochs of deep Boltzmann machines on a device: the folded machine learns, its rows clamped by mean field.

The lower side has the even layers, the visible one first, the upper side the odd ones (`models.deep.DeepModel.folded`).
"""

from __future__ import annotations

from typing import Any

import torch

from gibbsian.backends.device import Device
from gibbsian.backends.torch.layer_epochs import Fit
from gibbsian.backends.torch.units import units_of


class DeepFit(Fit):
    """What one fit of a deep machine keeps on a device."""

    def _prepare(self, problem: Any, device: Device) -> None:
        model = problem.model
        field = problem.lessons.mean_field
        self.max_iter, self.tol, self.slope_scale = field.max_iter, field.tol, 1.0 / model.temperature
        self.kinds = [units_of(layer, device.place, self.dtype) for layer in model.tempered]
        self.width = model.visible.width
        self.odd = torch.zeros_like(self.products[:, : self.machine.weights.shape[1]])
        ends = [0, 0]
        self.columns = []
        for place, layer in enumerate(model.layers):
            self.columns.append(slice(ends[place % 2], ends[place % 2] + layer.width))
            ends[place % 2] += layer.width
        # weights between layers that are no neighbours are none
        self.pairs = torch.zeros_like(self.machine.weights)
        for place in range(1, len(model.layers)):
            self._block(self.pairs, place).fill_(1.0)

    def _block(self, matrix: Any, place: int) -> Any:
        """Return the part of a matrix between the layer below a place and the one there."""
        below, here = self.columns[place - 1], self.columns[place]
        return matrix[below, here] if place % 2 else matrix[here, below].T

    def _take_rows(self, values: Any, products: Any) -> None:
        """Fill in the rows of a minibatch, and the means of the other layers given them."""
        visible, odd = values[:, : self.width], self.odd[: len(values)]
        seen = torch.empty_like(visible, memory_format=torch.contiguous_format)
        super()._take_rows(seen, products)
        visible.copy_(seen)
        self._pass_upwards(values, odd)
        upper, lower, stream = self.machine.upper, self.machine.lower, self.machine.stream
        moving = torch.ones((), dtype=torch.bool, device=values.device)
        for _ in range(self.max_iter):  # after it has settled nothing moves
            torch.mm(values, self.machine.weights, out=products)
            new = upper.kind.means(upper.fields(products, upper.place(stream)))
            change = (new - odd).abs().amax()
            odd.copy_(torch.where(moving, new, odd))
            fields = lower.fields(odd @ self.machine.weights.T, lower.place(stream))
            if values.shape[1] > self.width:
                new = lower.kind.means(fields)[:, self.width :]
                change = torch.maximum(change, (new - values[:, self.width :]).abs().amax())
                values[:, self.width :] = torch.where(moving, new, values[:, self.width :])
            moving = moving & (change > self.tol)
        fields = lower.fields(odd @ self.machine.weights.T, lower.place(stream))[:, : self.width]
        likely = (fields * visible).sum(dim=1, dtype=torch.float64) + self.kinds[0].log_measure(visible)
        self.misfit -= (likely - self.kinds[0].log_sums(fields)).mean()

    def _pass_upwards(self, values: Any, odd: Any) -> None:
        """Start at one pass upwards, where a layer that will hear from above counts what it hears from below twice."""
        sides, machine = (values, odd), self.machine
        top = len(self.columns) - 1
        for place in range(1, top + 1):
            below = sides[(place - 1) % 2][:, self.columns[place - 1]]
            heard = below @ self._block(machine.weights, place) * (1.0 if place == top else 2.0)
            side = (machine.lower, machine.upper)[place % 2]
            fields = (heard + side.biases[self.columns[place]]) * side.scale
            sides[place % 2][:, self.columns[place]] = self.kinds[place].means(fields)

    def _take_means(self, products: Any, n_free: int, shares: Any, means: Any) -> None:
        """Fill in the hidden means of the chains, which go on, and those that were found for the rows."""
        super()._take_means(products[:n_free], n_free, shares[:n_free], means[:n_free])
        torch.mul(self.odd[: len(means) - n_free], shares[n_free:, None], out=means[n_free:])
