"""Walks along inverse temperatures (`backends.numba.annealing`), all walkers at once, which stay on the device.

Each name binds a path, to be called as ``(states, streams, betas)``. Spins are swept by the kernels of `gibbs`, whose
fields a place multiplies and pulls towards the beginning; codes of tables group by group, a group being variables of
which no two interact. `sites` lists the variables in the order of the groups, those that are summed out first, and
`cuts` says where groups begin and end. Random numbers come by counter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array

from gibbsian.backends.device import require_card_memory, there
from gibbsian.backends.numba.annealing import SpinPath, TablePath
from gibbsian.backends.torch import gibbs
from gibbsian.backends.torch.philox import chain_words, site_words
from gibbsian.backends.torch.repeated import Repeated
from gibbsian.backends.torch.table_gibbs import CELLS, COPIES, Entries, TableGroup


def _walked(betas: np.ndarray, state: list[Any], weigh: Any, sweep: Any, backwards: bool) -> np.ndarray:
    """Go through places with walkers and the words of their streams, and return the increases of their log-weights."""
    device = there()
    places, number = device.put(betas, torch.float64), torch.zeros(1, dtype=torch.int64, device=device.place)
    increases = torch.zeros(len(state[0]), dtype=torch.float64, device=device.place)

    def step(ahead: int) -> None:
        old, new = (places.index_select(0, number + ahead + later) for later in (0, 1))
        if backwards:
            sweep(*state, old)
        increases.add_(weigh(state[0], old, new))
        if not backwards:
            sweep(*state, new)

    Repeated(step, number)(len(betas) - 1)
    return increases.cpu().numpy()


class anneal_spins:
    """Walks of spins (-1/+1), by colours where there are few of them, else by blocks of a dense graph."""

    def __init__(self, path: SpinPath, sites: np.ndarray, cuts: np.ndarray, backwards: bool):
        device = there()
        self._device, self._sites, self._backwards, n = device, sites, backwards, sites.size
        graph = csr_array((path.weights, path.heads, path.indptr), (n, n))[sites][:, sites]
        biases, self._n_summed = path.biases[sites], int(np.count_nonzero(path.summed))
        self._system: Any
        if cuts.size - 1 > n // gibbs.BLOCK and n <= gibbs.MOST_DENSE:
            self._system, self._tables = gibbs.dense_system(graph.toarray(), biases), None
            self._matrix = device.put(np.pad(graph.toarray(), (0, len(self._system.biases) - n)))
        else:
            rows, reach = (graph.indptr, graph.indices, graph.data), (abs(graph).sum(axis=1) + np.abs(biases)).max()
            self._system = gibbs.colour_system(cuts, *rows, biases, float(reach))
            self._tables = gibbs.colour_tables(self._system)
            near, couplings = gibbs.neighbour_rows(*rows)
            self._near = list(zip(device.put(near, torch.int64), device.put(couplings), strict=True))
        self._width = len(self._system.biases)
        self._biases, self._base = (
            device.put(np.pad(part, (0, self._width - n)), torch.float64) for part in (biases, path.base[sites])
        )

    def __call__(self, states: np.ndarray, streams: np.ndarray, betas: np.ndarray) -> np.ndarray:
        """Move walkers in place and return the increases of their log-weights."""
        (n_walkers, n), device = states.shape, self._device
        tables = self._width**2 if self._tables is None else 2 * self._system.heads.size
        require_card_memory(
            n_walkers * (40.0 * self._width + 120.0) + 16.0 * tables,
            f"annealing {n_walkers:,} walkers of {n:,} variables",
            "use fewer walkers, or set `device='cpu'`",
        )
        spins = torch.zeros((n_walkers, self._width), dtype=torch.int8, device=device.place)
        spins[:, :n] = device.put(states[:, self._sites], torch.int8)
        words = device.put(chain_words(streams), torch.int64)
        increases = _walked(betas, [spins, words], self.weigh, self.sweep, self._backwards)
        states[:, self._sites] = spins[:, :n].cpu().numpy()
        streams[:, 3] += np.uint64(len(betas) - 1)
        return increases

    def fields(self, spins: Any) -> Any:
        """Return the fields that the kept spins give all sites, biases included, in float64."""
        spins = torch.nn.functional.pad(spins[:, self._n_summed :], (self._n_summed, 0))
        if self._tables is None:
            return (spins.to(self._matrix.dtype) @ self._matrix).double() + self._biases
        total = self._biases.expand(spins.shape).clone()
        for near, couplings in self._near:
            total += couplings * spins.index_select(1, near)
        return total

    def weigh(self, spins: Any, old: Any, new: Any) -> Any:
        """Return how much likelier the kept spins become from a place to another."""
        fields, first = self.fields(spins), self._n_summed
        halves = 0.5 * (fields + self._biases) - self._base  # half the field counts each pair once
        rises = (new - old) * (spins[:, first:] * halves[:, first:]).sum(dim=1)
        if first:
            base = self._base[:first]
            before, after = (beta * fields[:, :first] + (1.0 - beta) * base for beta in (old, new))
            rises += (torch.logaddexp(after, -after) - torch.logaddexp(before, -before)).sum(dim=1)
        return rises

    def sweep(self, spins: Any, words: Any, beta: Any) -> None:
        """Sweep the spins at a place."""
        heat = gibbs.Heat(beta.float(), ((1.0 - beta) * self._base).float())
        gibbs.heated_sweep(spins, words, self._system, self._tables, self._sites.size, heat)


class _Group(TableGroup):
    """A group along a path, with the log-probabilities of its values at the beginning."""

    def __init__(self, path: TablePath, sites: np.ndarray, entries: Entries, table: Any):
        super().__init__(sites, path.cardinalities, entries, table)
        self._base = there().put(path.base[path.base_start[sites, None] + self.values], torch.float64)

    def at(self, local: Any, beta: Any) -> Any:
        """Return log-weights at a place."""
        return (beta * local + (1.0 - beta) * self._base).masked_fill(self.absent, -torch.inf)

    def log_sums(self, local: Any, beta: Any) -> Any:
        """Return the logarithm of the sum over values, over all variables."""
        return torch.logsumexp(self.at(local, beta), dim=2).sum(dim=1)

    def base_of(self, codes: Any) -> Any:
        """Return the log-probability of codes at the beginning of the path."""
        return self._base.expand(len(codes), -1, -1).gather(2, codes[:, self.sites, None]).sum(dim=(1, 2))


class anneal_codes:
    """Walks of codes (0 .. q_i - 1)."""

    def __init__(self, path: TablePath, sites: np.ndarray, cuts: np.ndarray, backwards: bool):
        device = there()
        self._device, self._backwards, n_first = device, backwards, int(path.summed.any())
        self._table = device.put(np.append(path.values, 0.0), torch.float64)
        entries = Entries(path.entries, path.starts, path.strides, path.others, path.nodes, path.node_strides)
        self._groups = [_Group(path, part, entries, self._table) for part in np.split(sites, cuts[1:-1])]
        self._summed, self._kept = self._groups[:n_first], self._groups[n_first:]
        untouched = np.arange(path.entries[-1], path.starts.size)
        self._nodes, self._steps = entries.steps(untouched)
        self._starts = device.put(path.starts[untouched], torch.int64)
        self._n_cells = max([self._nodes.numel(), *(group.n_cells for group in self._groups)])

    def __call__(self, states: np.ndarray, streams: np.ndarray, betas: np.ndarray) -> np.ndarray:
        """Move walkers in place, as many at a time as fit, and return the increases of their log-weights."""
        device, n = self._device, states.shape[1]
        rows = max(1, min(len(states), CELLS // self._n_cells))
        require_card_memory(
            8.0 * (COPIES * rows * (self._n_cells + n) + 3.0 * sum(group.n_cells for group in self._groups)),
            f"annealing {rows:,} walkers of {n:,} variables",
            "use a model with smaller factors, or set `device='cpu'`",
        )
        increases = []
        for part in (slice(first, first + rows) for first in range(0, len(states), rows)):
            codes, words = device.put(states[part], torch.int64), device.put(chain_words(streams[part]), torch.int64)
            increases.append(_walked(betas, [codes, words], self.weigh, self.sweep, self._backwards))
            states[part] = codes.cpu().numpy()
        streams[:, 3] += np.uint64(len(betas) - 1)
        return np.concatenate(increases)

    def weigh(self, codes: Any, old: Any, new: Any) -> Any:
        """Return how much likelier the kept codes become from a place to another."""
        places = (codes[:, self._nodes] * self._steps).sum(dim=2) + self._starts
        slope = self._table[places].sum(dim=1) - sum(group.base_of(codes) for group in self._kept)
        rises = (new - old) * slope
        for group in self._summed:
            local = group.local(codes, self._table)
            rises = rises + group.log_sums(local, new) - group.log_sums(local, old)
        return rises

    def sweep(self, codes: Any, words: Any, beta: Any) -> None:
        """Draw group after group at a place."""
        drawn = site_words(words, codes.shape[1])
        for group in self._groups:
            group.draw(codes, group.at(group.local(codes, self._table), beta), drawn)
        words[:, 4] += 1
