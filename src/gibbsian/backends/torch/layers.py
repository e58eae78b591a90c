"""Machines of layers on a device: epochs of learning, block Gibbs chains, walks along temperatures, scores of units.

Arrays come and go as NumPy; from step to step, and from call to call of one fit or walk, they stay on the device. Sums
over columns are float64, whatever the rest is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import Device, require_card_memory, there
from gibbsian.backends.torch.layer_epochs import WORKSPACE, epoch, lacking
from gibbsian.backends.torch.machines import Machine, as_numpy
from gibbsian.backends.torch.repeated import Repeated, forget, kept
from gibbsian.backends.torch.units import units_of

# Fields of hidden units, with units of rows changed, that are treated together.
_MOST_FIELDS = 2**21


class Chains:
    """Block Gibbs chains of a machine on a device."""

    def __init__(self, machine: Any, n_chains: int, device: Device):
        _require_memory(machine.weights.shape, n_chains, device)
        biases = [device.put(part) for part in (machine.visible_biases, machine.hidden_biases)]
        self.machine = Machine(
            machine.tempered, biases, device.put(machine.weights), device, scale=1.0 / machine.temperature
        )
        (self.values, self.other), (self.back, self.products) = (self.machine.empty(n_chains) for _ in range(2))
        self.run = Repeated(self._step, self.machine.stream.clock)

    def __call__(self, values: np.ndarray, n_steps: int, seed: int) -> np.ndarray:
        """Return visible values some steps later."""
        self.machine.stream.restart(seed)
        self.values.copy_(torch.from_numpy(np.array(values)))
        self.run(n_steps)
        return as_numpy(self.values)

    def _step(self, ahead: int) -> None:
        self.machine.stream.at_step(ahead)
        self.machine.up(self.values, self.products, self.other)
        self.machine.down(self.other, self.back, self.values)


def gibbs(machine: Any, values: np.ndarray, n_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Draw hidden values given visible ones and back, so many times; return the visible ones."""
    device, n_chains = there(), len(values)
    chains = kept(machine, (device, n_chains), lambda: Chains(machine, n_chains, device))
    return chains(values, n_steps, int(rng.integers(0, 2**63))).astype(np.asarray(values).dtype, copy=False)


def path_machine(units: Any, weights: np.ndarray, n_rows: int, device: Device, **settings: Any) -> Machine:
    """Return the machine at the end of a path, with the independent units that it begins at."""
    _require_memory(weights.shape, n_rows, device)
    biases, base = [device.put(side.biases) for side in units], [device.put(side.base) for side in units]
    return Machine([side.layer for side in units], biases, device.put(weights), device, base, **settings)


class Walk:
    """Walkers between independent units and a machine, which stay on a device from stretch to stretch.

    They have values of the first of two units; the second, which are summed out, decide the weights.
    """

    def __init__(self, units: Any, weights: np.ndarray, values: np.ndarray, n_places: int, seed: int, device: Device):
        self.seed, self.n_stretches = seed, 0
        self.places = torch.zeros(n_places, dtype=torch.float64, device=device.place)
        self.machine = path_machine(units, weights, len(values), device, places=self.places, along=True)
        (self.values, self.other), (self.back, self.products) = (self.machine.empty(len(values)) for _ in range(2))
        self.values.copy_(torch.from_numpy(values))
        self.linear = self.machine.lower.linear(self.values)
        self.sums = torch.zeros_like(self.linear)
        self.run = Repeated(self._step, self.machine.stream.clock)

    def __call__(self, places: np.ndarray) -> np.ndarray:
        """Go through places and return what the log-weights take up on the way."""
        self.machine.stream.restart(self.seed, self.n_stretches)
        self.n_stretches += 1
        self.places[: len(places)].copy_(torch.from_numpy(np.array(places, np.float64)))
        self.sums.zero_()
        self.run(len(places) - 1)
        return as_numpy(self.sums)

    def _step(self, ahead: int) -> None:
        machine = self.machine
        machine.stream.at_step(ahead)
        torch.mm(self.values, machine.weights, out=self.products)
        machine.upper.weigh_and_draw(self.products, machine.stream, self.linear, self.sums, self.other)
        torch.mm(self.other, machine.weights.T, out=self.back)
        machine.lower.draw(self.back, machine.stream, self.values, self.linear)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Return the values of some walkers, as those that exchange them do."""
        return np.asarray(self)[rows]

    def __setitem__(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Put some walkers elsewhere."""
        places = torch.from_numpy(np.flatnonzero(rows)).to(self.values.device)
        self.values[places] = torch.from_numpy(values).to(self.values.dtype).to(self.values.device)
        self.linear.copy_(self.machine.lower.linear(self.values))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the walkers' values."""
        return as_numpy(self.values, np.float64 if dtype is None else dtype)

    def __len__(self) -> int:
        return len(self.values)


def walk(units: Any, weights: np.ndarray, walkers: Any, places: np.ndarray) -> np.ndarray:
    """Do what `samplers.paths.SteppedPath.walk` does; the groups of walkers become one, which stays on the device."""
    device, group = there(), walkers.values[0]
    if not isinstance(group, Walk) or len(group.places) < len(places):
        seed = int(walkers.shared.integers(0, 2**63))
        group = Walk(units, weights, np.concatenate(walkers.values), len(places), seed, device)
        walkers.values = [group]
    return group(places)


def unit_scores(owner: Any, model: Any, values: Callable[[], np.ndarray], units: np.ndarray) -> np.ndarray | None:
    """Return ``log P(v_i | all others)`` of a unit of each row of values, for each row of `units`.

    For two-valued visible units, else None. A unit that holds a probability is scored by the mean over its two values.
    The values stay on the device as long as their owner lives, where they have one.
    """
    device = there()
    visible, hidden = (units_of(layer, device.place, device.dtype) for layer in model.tempered)
    if not visible.slope:
        return None

    def put() -> tuple[Any, Any]:
        return device.put(values()), device.put(units, torch.int64)

    rows, chosen = put() if owner is None else kept(owner, device, put)
    weights, biases = device.put(model.weights), device.put(model.visible_biases)
    fields = torch.addmm(device.put(model.hidden_biases), rows, weights)
    scores = []
    for some in chosen.split(max(1, _MOST_FIELDS // fields.numel())):  # sets of units that are treated together
        held = rows.gather(1, some.T).T[:, :, None]
        slopes = weights[some]
        upper, lower = (
            hidden.log_sums(((fields + (value - held) * slopes) / model.temperature).flatten(0, 1)).view(some.shape)
            for value in (1.0, visible.low)
        )
        odds = upper - lower + ((1.0 - visible.low) / model.temperature) * biases[some]
        share = (held[:, :, 0] - visible.low) / (1.0 - visible.low)
        scores.append(share * odds - torch.logaddexp(odds, torch.zeros_like(odds)))
    return as_numpy(torch.cat(scores))


def _require_memory(widths: tuple[int, int], n_rows: int, device: Device) -> None:
    """Refuse chains that would not fit the memory of the device, before they take any."""
    numbers = widths[0] * widths[1] + 3.0 * n_rows * sum(widths)
    require_card_memory(
        device.dtype.itemsize * numbers + WORKSPACE * device.is_card,
        f"{n_rows} chains of {sum(widths)} columns",
        "use fewer of them",
    )


__all__ = ["epoch", "forget", "gibbs", "lacking", "unit_scores", "walk"]
