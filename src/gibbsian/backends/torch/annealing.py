"""Walks along inverse temperatures (`backends.numba.annealing`), all walkers at once, which stay on the device.

Each name binds a path, to be called as ``(states, streams, betas)``. Spins are swept by the kernels of `gibbs`, whose
fields a place multiplies and pulls towards the beginning; codes of tables group by group, a group being variables of
which no two interact. `sites` lists the variables in the order of the groups, and `cuts` says where groups begin and
end. Random numbers come by counter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array

from gibbsian.backends.device import require_card_memory, there
from gibbsian.backends.numba.annealing import SpinPath, TablePath
from gibbsian.backends.table_entries import Entries
from gibbsian.backends.torch import gibbs
from gibbsian.backends.torch.philox import chain_words
from gibbsian.backends.torch.repeated import Repeated
from gibbsian.backends.torch.table_gibbs import CELLS, COPIES, Heat, steps, sweeps


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
        biases = path.biases[sites]
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
        """Return the fields of all sites, biases included, in float64."""
        if self._tables is None:
            return (spins.to(self._matrix.dtype) @ self._matrix).double() + self._biases
        total = self._biases.expand(spins.shape).clone()
        for near, couplings in self._near:
            total += couplings * spins.index_select(1, near)
        return total

    def weigh(self, spins: Any, old: Any, new: Any) -> Any:
        """Return how much likelier the spins become from a place to another."""
        halves = 0.5 * (self.fields(spins) + self._biases) - self._base  # half the field counts each pair once
        return (new - old) * (spins * halves).sum(dim=1)

    def sweep(self, spins: Any, words: Any, beta: Any) -> None:
        """Sweep the spins at a place."""
        heat = gibbs.Heat(beta.float(), ((1.0 - beta) * self._base).float())
        gibbs.heated_sweep(spins, words, self._system, self._tables, self._sites.size, heat)


class anneal_codes:
    """Walks of codes (0 .. q_i - 1)."""

    def __init__(self, path: TablePath, sites: np.ndarray, cuts: np.ndarray, backwards: bool):
        device, sizes = there(), path.cardinalities
        entries = Entries(path.entries, path.starts, path.strides, path.others, path.nodes, path.node_strides)
        self._device, self._backwards = device, backwards
        self._system = sweeps(path.values, entries, sizes, sites, cuts)
        self._base, self._base_starts = device.put(path.base, torch.float64), device.put(path.base_start, torch.int64)
        factors = np.arange(path.entries[-1], path.starts.size)
        self._nodes, self._steps = steps(entries, factors)
        self._starts = device.put(path.starts[factors], torch.int64)
        self._n_cells = max(self._system.most, self._nodes.numel())

    def __call__(self, states: np.ndarray, streams: np.ndarray, betas: np.ndarray) -> np.ndarray:
        """Move walkers in place, as many at a time as fit, and return the increases of their log-weights."""
        device, n = self._device, states.shape[1]
        rows = max(1, min(len(states), CELLS // self._n_cells))
        require_card_memory(
            8.0 * COPIES * rows * (self._n_cells + n) + self._system.n_bytes,
            f"annealing {rows:,} walkers of {n:,} variables",
            "use a model with smaller factors, or set `device='cpu'`",
        )
        increases = []
        for part in (slice(first, first + rows) for first in range(0, len(states), rows)):
            codes, words = device.put(states[part], torch.int8), device.put(chain_words(streams[part]), torch.int64)
            increases.append(_walked(betas, [codes, words], self.weigh, self.sweep, self._backwards))
            states[part] = codes.cpu().numpy()
        streams[:, 3] += np.uint64(len(betas) - 1)
        return np.concatenate(increases)

    def weigh(self, codes: Any, old: Any, new: Any) -> Any:
        """Return how much likelier the codes become from a place to another."""
        places = (codes[:, self._nodes] * self._steps).sum(dim=2) + self._starts
        begun = self._base[self._base_starts[:-1] + codes].sum(dim=1)
        return (new - old) * (self._system.table[places].sum(dim=1) - begun)

    def _heat(self, beta: Any) -> Heat:
        return Heat(beta, self._base, self._base_starts)

    def sweep(self, codes: Any, words: Any, beta: Any) -> None:
        """Draw group after group at a place."""
        self._system.sweep(codes, words, None, 1, self._heat(beta))
