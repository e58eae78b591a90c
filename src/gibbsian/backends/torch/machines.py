"""Two layers on a device, and the free phases of learning as chains of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import Device
from gibbsian.backends.torch.streams import Stream
from gibbsian.backends.torch.units import Side, units_of


def as_numpy(tensor: Any, dtype: Any = None, locked: bool = False) -> np.ndarray:
    """Return a tensor as an array of its own, of a kind of numbers.

    To `locked` pages a card copies several times as fast, and PyTorch keeps them for what comes after every epoch.
    """
    pages = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=locked and tensor.is_cuda)
    array = pages.copy_(tensor).numpy()
    return array if dtype is None else array.astype(dtype, copy=False)


class Machine:
    """The weights between two layers, what draws one given the other, and where the random numbers come from."""

    def __init__(self, layers: Any, biases: Any, weights: Any, device: Device, base: Any = None, **settings: Any):
        self.weights, self.stream = weights, Stream(device.place)
        settings.setdefault("places", torch.ones(1, dtype=torch.float64, device=device.place))
        base = [torch.zeros_like(part) for part in biases] if base is None else base
        self.lower, self.upper = (
            Side(units_of(layer, device.place, weights.dtype), bias, start, fused=device.has_triton, **settings)
            for layer, bias, start in zip(layers, biases, base, strict=True)
        )

    def empty(self, n_rows: int) -> tuple[Any, Any]:
        """Return rows of both layers, with nothing in them yet."""
        return self.weights.new_zeros(n_rows, len(self.weights)), self.weights.new_zeros(n_rows, self.weights.shape[1])

    def up(self, values: Any, products: Any, out: Any) -> None:
        """Draw the upper layer given the lower one."""
        torch.mm(values, self.weights, out=products)
        self.upper.draw(products, self.stream, out)

    def down(self, values: Any, products: Any, out: Any) -> None:
        """Draw the lower layer given the upper one."""
        torch.mm(values, self.weights.T, out=products)
        self.lower.draw(products, self.stream, out)


class Restarted:
    """CD-k: chains that start at the rows of each minibatch.

    `move` takes rows of visible values, those of `n_chains` chains first and then the minibatch, fills the chains, and
    gives all their products with the weights; `goes_on` is what is drawn from these for the next minibatch.
    """

    def __init__(self, machine: Machine, phase: Any, n_chains: int, device: Device):
        self.machine, self.n_steps = machine, phase.n_steps
        self.back, self.hidden = machine.empty(n_chains)
        self.goes_on: Any = None

    def n_chains(self, n_rows: int) -> int:
        """Return the number of chains for so many rows."""
        return n_rows

    def put(self, memory: Any) -> None:
        """Take up what is remembered: nothing."""

    def got(self, memory: Any) -> Any:
        """Return what is remembered."""
        return memory

    def move(self, values: Any, n_chains: int, products: Any) -> None:
        """Go from the minibatch."""
        free, hidden = values[:n_chains], self.hidden[:n_chains]
        self.machine.up(values[n_chains:], products[n_chains:], hidden)
        self._gibbs(hidden, free, products[:n_chains])
        torch.mm(free, self.machine.weights, out=products[:n_chains])

    def _gibbs(self, hidden: Any, free: Any, products: Any) -> None:
        back = self.back[: len(free)]
        self.machine.down(hidden, back, free)
        for _ in range(self.n_steps - 1):
            self.machine.up(free, products, hidden)
            self.machine.down(hidden, back, free)


class Persistent(Restarted):
    """PCD-k: chains that go on, kept as hidden values."""

    def __init__(self, machine: Machine, phase: Any, n_chains: int, device: Device):
        super().__init__(machine, phase, phase.n_chains, device)
        self.goes_on = self.hidden

    def n_chains(self, n_rows: int) -> int:
        """Return the number of chains, whatever the rows."""
        return len(self.hidden)

    def put(self, memory: Any) -> None:
        """Take up the chains."""
        self.hidden.copy_(torch.from_numpy(memory.hidden))

    def got(self, memory: Any) -> Any:
        """Return the chains."""
        return memory._replace(hidden=as_numpy(self.hidden, memory.hidden.dtype, locked=True))

    def move(self, values: Any, n_chains: int, products: Any) -> None:
        """Go on, with one product for the chains and the minibatch."""
        self._gibbs(self.hidden, values[:n_chains], products[:n_chains])
        torch.mm(values, self.machine.weights, out=products)


class Tempered(Restarted):
    """Persistent chains with copies at higher temperatures: rows of one matrix, the machine's own last."""

    def __init__(self, machine: Machine, phase: Any, n_chains: int, device: Device):
        n_places = len(phase.ladder)
        super().__init__(machine, phase, n_places * phase.n_chains, device)
        self.values, self.products = machine.empty(n_places * phase.n_chains)
        self.count = torch.zeros(1, dtype=torch.int64, device=device.place)
        places = device.put(np.repeat(phase.ladder, phase.n_chains), torch.float64)
        # of even and of odd steps, the neighbour that a place exchanges with; at the ends perhaps itself
        turns = [[_neighbour(place, first, n_places) for place in range(n_places)] for first in (0, 1)]
        self.partners = torch.tensor(turns, device=device.place)
        self.sides = [
            Side(side.kind, side.biases, torch.zeros_like(side.base), places, side.scale, fused=side.fused)
            for side in (machine.lower, machine.upper)
        ]
        self.each = phase.n_chains

    def n_chains(self, n_rows: int) -> int:
        """Return the number of chains at the machine's own temperature."""
        return self.each

    def put(self, memory: Any) -> None:
        """Take up the chains of all places, and the independent units."""
        self.values.copy_(torch.from_numpy(memory.chains.values.reshape(self.values.shape)))
        self.count.fill_(int(memory.chains.n_steps))
        for side, base in zip(self.sides, (memory.visible_base, memory.hidden_base), strict=True):
            side.base.copy_(torch.from_numpy(base))

    def got(self, memory: Any) -> Any:
        """Return them."""
        before = memory.chains.values
        values = as_numpy(self.values, before.dtype).reshape(before.shape)
        return memory._replace(chains=memory.chains._replace(values=values, n_steps=np.array(self.count.item())))

    def move(self, values: Any, n_chains: int, products: Any) -> None:
        """Go on at all places and exchange; the chains are those of the last place."""
        (lower, upper), weights, stream = self.sides, self.machine.weights, self.machine.stream
        for _ in range(self.n_steps):
            torch.mm(self.values, weights, out=self.products)
            upper.draw(self.products, stream, self.hidden)
            torch.mm(self.hidden, weights.T, out=self.back)
            lower.draw(self.back, stream, self.values)
            self._exchange()
            self.count += 1
        values[:n_chains] = self.values[-n_chains:]
        torch.mm(values, weights, out=products)

    def _exchange(self) -> None:
        """Let neighbours exchange their states, chain by chain, with the probability that keeps their distributions."""
        torch.mm(self.values, self.machine.weights, out=self.products)
        partner = self.partners.index_select(0, self.count % 2)[0]
        chains = torch.arange(self.each, device=partner.device)
        others = (partner[:, None] * self.each + chains).ravel()
        first = torch.minimum(partner, torch.arange(len(partner), device=partner.device))
        gains = self._log_weights(self.sides[0].places[others]) - self._log_weights(self.sides[0].places)
        shares = self.machine.stream.uniform(len(partner), self.each, torch.float64)[first].ravel()
        accepted = torch.log(shares) < gains + gains[others]
        self.values.copy_(torch.where(accepted[:, None], self.values[others], self.values))

    def _log_weights(self, places: Any) -> Any:
        lower, upper = self.sides
        linear = places * lower.linear(self.values) + self.values.to(torch.float64) @ lower.base.to(torch.float64)
        return linear + upper.kind.log_sums(upper.fields(self.products, places))


def _neighbour(place: int, first: int, n_places: int) -> int:
    """Return what a place exchanges with when pairs begin at `first`."""
    other = place + 1 if (place - first) % 2 == 0 else place - 1
    return other if first <= other < n_places and place >= first else place


# By what a free phase says of itself.
PHASES = {"restarted": Restarted, "persistent": Persistent, "tempered": Tempered}
