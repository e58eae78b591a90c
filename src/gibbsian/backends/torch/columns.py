"""Tempered columns of a machine of layers on a device: chains at all places of a path are the rows of one matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import Device, here
from gibbsian.backends.torch.layers import path_machine
from gibbsian.backends.torch.machines import as_numpy
from gibbsian.backends.torch.repeated import Repeated


class Columns:
    """Walkers of all places, place after place; a step is a round of sweeps and an exchange between neighbours."""

    def __init__(self, units: Any, weights: np.ndarray, values: np.ndarray, places: np.ndarray, device: Device):
        self.shape = len(places), len(values) // len(places)
        # of each place, the one below and the one above, or itself at the ends
        near = np.arange(len(places)) + np.array([[-1], [1]])
        self.own, *self.others = (
            device.put(np.repeat(part, self.shape[1]), torch.float64)
            for part in (places, *places[near.clip(0, len(places) - 1)])
        )
        self.machine = path_machine(units, weights, len(values), device, places=self.own)
        (self.values, self.other), (self.back, self.products) = (self.machine.empty(len(values)) for _ in range(2))
        self.values.copy_(torch.from_numpy(values))
        self.pairs = torch.arange(len(places) - 1, device=device.place)[:, None]
        self.first = torch.zeros(1, dtype=torch.int64, device=device.place)

    def __call__(self, n_sweeps: int, numbers: range, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Make the rounds with these numbers; return how much likelier states would be one place up, and down."""
        self.machine.stream.restart(seed)
        self.first.fill_(numbers.start)
        self.n_sweeps, self.gains = n_sweeps, self.own.new_zeros(len(numbers), 2, *self.shape)
        Repeated(self._round, self.machine.stream.clock)(len(numbers))
        down, up = as_numpy(self.gains).transpose(1, 2, 0, 3)
        return up[:-1], down[1:]

    def _round(self, ahead: int) -> None:
        machine = self.machine
        machine.stream.at_step(ahead)
        for _ in range(self.n_sweeps):
            machine.up(self.values, self.products, self.other)
            machine.down(self.other, self.back, self.values)
        torch.mm(self.values, machine.weights, out=self.products)
        linear, here = machine.lower.linear(self.values), self._log_sums(self.own)
        down, up = (
            ((place - self.own) * linear + self._log_sums(place) - here).view(self.shape) for place in self.others
        )
        number = machine.stream.clock + ahead
        self.gains.index_copy_(0, number, torch.stack([down, up])[None])
        turn = (self.pairs + self.first + number) % 2 == 0
        shares = machine.stream.uniform(self.shape[0] - 1, self.shape[1], torch.float64)
        taken = ((torch.log(shares) < up[:-1] + down[1:]) & turn).long()
        rows = torch.arange(len(self.values), device=taken.device).view(self.shape)
        rows[:-1] += self.shape[1] * taken
        rows[1:] -= self.shape[1] * taken
        self.values.copy_(self.values[rows.ravel()])

    def _log_sums(self, places: Any) -> Any:
        upper = self.machine.upper
        return upper.kind.log_sums(upper.fields(self.products, places))


def exchanged(
    units: Any, weights: np.ndarray, walkers: list[Any], places: np.ndarray, n_sweeps: int, numbers: range, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Do what `samplers.paths.Path.exchanged` does; the walkers of each place become one group."""
    device = here()
    assert device is not None
    columns = Columns(units, weights, np.concatenate([np.concatenate(some.values) for some in walkers]), places, device)
    found = columns(n_sweeps, numbers, int(rng.integers(0, 2**63)))
    for some, values in zip(walkers, np.split(as_numpy(columns.values, np.float64), len(places)), strict=True):
        some.values = [values]
    return found
