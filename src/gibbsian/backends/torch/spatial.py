"""1-SMCI and s2-SMCI of pairwise spins (`backends.numba.spatial`), many targets and all samples at a time.

The states of a target (one variable, or two) have the log-weights of its own fields and, of each member of its region
that is summed out, ``log 2 cosh`` of the field that the state leaves it; without members this is 1-SMCI.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import require_card_memory, there
from gibbsian.backends.numba.spatial import CROSSES, REFERENCE, SQUARES, TOTAL, Forests, Shares
from gibbsian.backends.torch.gibbs import neighbour_rows

# Values (targets x samples) at a time, and the tensors of that size that a formula needs.
_CELLS, _COPIES = 2**24, 16


class _Counting:
    """What samples count for, on the device, and how values are folded into running sums."""

    def __init__(self, block: Shares):
        device = there()
        self.shares, self.spreads = (device.put(part, torch.float64) for part in (block.shares, block.spreads))
        self.groups: Any = None
        self.closes: Any = None
        if block.grouped:
            ends = np.flatnonzero(block.closes >= 0.0)
            self.groups = device.put(np.searchsorted(ends, np.arange(len(block.shares))), torch.int64)
            self.closes = device.put(block.closes[ends], torch.float64)

    def fill(self, sums: np.ndarray, values: Any) -> None:
        """Fill the running sums of some statistics, whose rows of values are those of all samples."""
        changes = values.double() - values[:, :1].double()
        found = {REFERENCE: values[:, 0].double(), TOTAL: changes @ self.shares}
        if self.groups is None:
            found |= {CROSSES: changes @ self.spreads, SQUARES: changes.square() @ self.spreads}
        else:
            empty = torch.zeros((len(values), self.closes.numel()), dtype=torch.float64, device=values.device)
            parts = empty.index_add_(1, self.groups, changes * self.shares)
            found |= {CROSSES: parts @ self.closes, SQUARES: parts.square().sum(dim=1)}
        for column, numbers in found.items():
            sums[:, column] = numbers.cpu().numpy()


class Spins:
    """Samples of a pairwise model in spin form with their fields, by variable.

    `binary` asks for the moments of the 0/1 coding.
    """

    def __init__(
        self, spins: np.ndarray, biases: np.ndarray, couplings: np.ndarray, graph: Any, dense: bool, binary: bool
    ):
        device = there()
        n_samples, n = spins.shape
        self._rows = max(1, _CELLS // n_samples)
        require_card_memory(
            device.dtype.itemsize * (3.0 * n_samples * n + _COPIES * self._rows * n_samples + n * n * dense),
            f"integrating over {n_samples:,} samples",
            "give fewer samples, or set `device='cpu'`",
        )
        self._device, self._binary = device, binary
        self._couplings = device.put(np.append(couplings, 0.0))  # the last stands for none
        self._spins = device.put(spins.T)
        if dense:
            self._fields = device.put(graph.matrix(couplings)) @ self._spins
        else:
            indptr, heads, edges = graph.csr
            near, weights = neighbour_rows(indptr, heads, couplings[edges])
            self._fields = torch.zeros_like(self._spins)
            for places, row in zip(device.put(near, torch.int64), device.put(weights), strict=True):
                self._fields.addcmul_(self._spins[places], row[:, None])
        self._fields += device.put(biases)[:, None]

    def integrate(self, sums: np.ndarray, regions: Forests, block: Shares) -> None:
        """Fill the running sums of all targets."""
        counting = _Counting(block)
        for start in range(0, len(regions.targets), self._rows):
            part = slice(start, min(start + self._rows, len(regions.targets)))
            counting.fill(sums[part], self._expected(*self._padded(regions, part)))

    def _padded(self, regions: Forests, part: slice) -> tuple[Any, Any, Any, Any]:
        """Put targets, their own couplings, and members with couplings to each end there, in rows of equal length."""
        first, last = regions.starts[part], regions.starts[part.start + 1 : part.stop + 1]
        places = first + np.arange(int((last - first).max(initial=0)))[:, None]
        places = np.where(places < last, places, -1)  # where what is appended stands
        given = (regions.targets[part].T, regions.own[part], np.append(regions.members, 0)[places])
        targets, own, members = (self._device.put(each, torch.int64) for each in given)
        links = (np.append(each, -1)[places] for each in (regions.first_links, regions.second_links))
        ties = [self._couplings[self._device.put(link, torch.int64)] for link in links]
        return targets, self._couplings[own], members, ties[: len(targets)]

    def _expected(self, targets: Any, own: Any, members: Any, ties: Any) -> Any:
        """Return E[statistic | samples outside the region], targets by samples (YU20 eqs. 20, 22 and 23)."""
        spins = [self._spins[end] for end in targets]
        fields = [self._fields[end] for end in targets]
        if len(spins) == 2:
            fields = [field - own[:, None] * other for field, other in zip(fields, reversed(spins), strict=True)]
        states = list(product((-1.0, 1.0), repeat=len(spins)))
        logs = [torch.zeros_like(fields[0]) for _ in states]
        for number, member in enumerate(members):
            weights = [tie[number][:, None] for tie in ties]
            rest = self._fields[member] - sum(w * x for w, x in zip(weights, spins, strict=True))
            fields = [field - w * self._spins[member] for field, w in zip(fields, weights, strict=True)]
            for log, state in zip(logs, states, strict=True):
                field = rest + sum(sign * w for sign, w in zip(state, weights, strict=True))
                log += torch.logaddexp(field, -field)
        for log, state in zip(logs, states, strict=True):
            log += sum(sign * field for sign, field in zip(state, fields, strict=True))
            log += own[:, None] * np.prod(state) if len(state) == 2 else 0.0
        shares = torch.softmax(torch.stack(logs), dim=0)
        return (
            shares[-1]
            if self._binary
            else sum(share * np.prod(state) for share, state in zip(shares, states, strict=True))
        )
