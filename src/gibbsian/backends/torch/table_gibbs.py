"""Sweeps of codes, all chains at once: models of tables (`backends.numba.table_gibbs`).

Variables are drawn group after group, a group being some of which no two interact: `sites` lists them group by group,
and `cuts` says where groups begin and end. Random numbers come by counter, so that a chain's path depends on its own
stream only: variable i takes the word ``i % 4`` of the call ``i // 4`` of the generator. Log-weights are float64.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch

from gibbsian.backends.device import require_card_memory, there
from gibbsian.backends.table_entries import Entries
from gibbsian.backends.torch.gibbs import INSTEAD
from gibbsian.backends.torch.philox import chain_words, site_words

# Numbers that plain torch looks up at a time, and the tensors of that size that this takes.
CELLS, COPIES = 2**26, 4


def steps(entries: Entries, numbers: np.ndarray) -> tuple[Any, Any]:
    """Return the other variables of some entries, and by how much each moves the place there, as tensors."""
    nodes, places = entries.members(numbers)
    device, strides = there(), np.append(entries.other_strides, 0)[places]
    return device.put(nodes, torch.int64), device.put(strides, torch.int64)


class Heat(NamedTuple):
    """A place along a path, and the log-probabilities of values where it begins, variable i from ``starts[i]`` on."""

    beta: Any
    base: Any
    starts: Any


class Group:
    """Variables of which no two interact; those with fewer values than others are filled up with absent ones."""

    def __init__(self, sites: np.ndarray, cardinalities: np.ndarray):
        device = there()
        self.values = np.minimum(np.arange(cardinalities[sites].max()), cardinalities[sites, None] - 1)
        self.sites, self.last = (device.put(part, torch.int64) for part in (sites, cardinalities[sites] - 1))
        counted = torch.arange(self.values.shape[1], device=device.place)
        self.absent, self._present = counted > self.last[:, None], torch.minimum(counted, self.last[:, None])

    def at(self, local: Any, heat: Heat) -> Any:
        """Return log-weights at a place of a path."""
        base = heat.base[heat.starts[self.sites, None] + self._present]
        return (heat.beta * local + (1.0 - heat.beta) * base).masked_fill(self.absent, -torch.inf)

    def draw(self, codes: Any, local: Any, words: Any, held: Any = None) -> Any:
        """Draw the variables from the log-weights of their values, unless they are held; return how many changed."""
        passed = torch.softmax(local.masked_fill(self.absent, -torch.inf), dim=2).cumsum(dim=2)
        shares = (words[:, self.sites].double() + 0.5) * 2.0**-32
        new = torch.minimum((passed <= shares[:, :, None]).sum(dim=2), self.last).to(codes.dtype)
        old = codes[:, self.sites]
        new = new if held is None else torch.where(held[:, self.sites], old, new)
        codes[:, self.sites] = new
        return (new != old).sum()


class TableGroup(Group):
    """A group with the places of its tables in the vector of all, which a zero follows."""

    def __init__(self, sites: np.ndarray, cardinalities: np.ndarray, entries: Entries, table: Any):
        super().__init__(sites, cardinalities)
        own = entries.of_sites(sites)
        starts = np.append(entries.bases, table.numel() - 1)[own]  # what is not there reads the zero
        cells = starts[:, :, None] + np.append(entries.strides, 0)[own][:, :, None] * self.values[:, None, :]
        self.nodes, self.steps = steps(entries, own)
        self.cells, self.n_cells = there().put(cells, torch.int64), max(self.nodes.numel(), cells.size)

    def local(self, codes: Any, table: Any) -> Any:
        """Return the log-weight of every value of each variable given the others."""
        moved = (codes[:, self.nodes] * self.steps).sum(dim=3)
        return table[moved[:, :, :, None] + self.cells].sum(dim=2)


class sweeps:
    """Sweeps over some variables, to be called as ``(codes, streams, held, n_sweeps)``; codes change in place.

    `held` is None or says which variables of which chain keep their value; the number of changes is returned.
    """

    # what draws a group in plain torch, and the number that stands behind all tables
    kind: ClassVar[Any] = TableGroup
    blank: ClassVar[float] = 0.0

    def __init__(
        self, tables: np.ndarray, entries: Entries, cardinalities: np.ndarray, sites: np.ndarray, cuts: np.ndarray
    ):
        device, self.entries, self.cardinalities, self.sites = there(), entries, cardinalities, sites
        self.table = device.put(np.append(tables, self.blank), torch.float64)
        self.spans = [span for span in pairwise(cuts.tolist()) if span[1] > span[0]]
        self.n_bytes = 8.0 * (self.table.numel() + self.sites.size + sum(part.size for part in entries))
        self.sweep: Any
        if device.has_triton:
            from gibbsian.backends.torch.triton_tables import Sweep

            self.sweep, self.most = Sweep(self), 0
            return
        parts = (self.sites[first:last] for first, last in self.spans)
        self._groups = [self.kind(part, self.cardinalities, self.entries, self.table) for part in parts]
        self.sweep, self.most = self._plain, max([1, *(group.n_cells for group in self._groups)])
        self.n_bytes += 24.0 * sum(group.n_cells for group in self._groups)

    def __call__(self, codes: np.ndarray, streams: np.ndarray, held: np.ndarray | None, n_sweeps: int) -> int:
        """Make the sweeps, in plain torch with as many chains at a time as fit."""
        device, (n_chains, n) = there(), codes.shape
        rows = n_chains if not self.most else max(1, min(n_chains, CELLS // max(self.most, n)))
        needed = rows * (42.0 + n * (1.0 if held is None else 2.0) + 8.0 * COPIES * self.most) + self.n_bytes
        require_card_memory(needed, f"{rows:,} chains of {n:,} variables", INSTEAD)
        changes = 0
        for part in (slice(first, first + rows) for first in range(0, n_chains, rows)):
            moved, words = device.put(codes[part], torch.int8), device.put(chain_words(streams[part]), torch.int64)
            stays = None if held is None else device.put(held[part], torch.bool)
            changes += int(self.sweep(moved, words, stays, n_sweeps))
            codes[part] = moved.cpu().numpy()
        streams[:, 3] += np.uint64(n_sweeps)
        return changes

    def _plain(self, codes: Any, words: Any, held: Any, n_sweeps: int, heat: Heat | None = None) -> int:
        changes = 0
        for _ in range(n_sweeps):
            drawn = site_words(words, codes.shape[1])
            for group in self._groups:
                local = group.local(codes, self.table)
                changes += int(group.draw(codes, local if heat is None else group.at(local, heat), drawn, held))
            words[:, 4] += 1
        return changes
