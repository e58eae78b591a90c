"""Sweeps of higher-order machines (`backends.numba.clique_gibbs`): as those of tables, with products in their place."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch

from gibbsian.backends.device import there
from gibbsian.backends.table_entries import Entries
from gibbsian.backends.torch import table_gibbs


class CliqueGroup(table_gibbs.Group):
    """A group with the cliques of its variables; the table has the number of each code, and a one behind all."""

    def __init__(self, sites: np.ndarray, cardinalities: np.ndarray, entries: Entries, table: Any):
        super().__init__(sites, cardinalities)
        own, device, width = entries.of_sites(sites), there(), (table.numel() - 1) // len(cardinalities)
        nodes, places = entries.members(own)
        starts = np.where(places < 0, table.numel() - 1, width * nodes)
        self.nodes, self.steps, self.starts = (device.put(part, torch.int64) for part in (nodes, places >= 0, starts))
        self.weights = device.put(np.append(entries.bases, 0.0)[own], torch.float64)
        self.levels = table[device.put(width * sites[:, None] + self.values, torch.int64)]
        self.n_cells = max(nodes.size, self.values.size)

    def local(self, codes: Any, table: Any) -> Any:
        """Return the log-weight of every value of each variable: its number times the field."""
        products = table[codes[:, self.nodes] * self.steps + self.starts].prod(dim=3)
        return (products * self.weights).sum(dim=2)[:, :, None] * self.levels


class ordered_sweeps(table_gibbs.sweeps):
    """Sweeps over some variables, to be called as those of tables are."""

    kind: ClassVar[Any] = CliqueGroup
    blank: ClassVar[float] = 1.0

    def __init__(
        self,
        entries: np.ndarray,
        weights: np.ndarray,
        pointers: np.ndarray,
        others: np.ndarray,
        levels: np.ndarray,
        *layout: Any,
    ):
        none = np.zeros(1, np.int64)  # neither cliques nor their members have places
        super().__init__(levels.ravel(), Entries(entries, weights, none, pointers, others, none), *layout)
