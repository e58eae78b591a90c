"""Tables of the full-span model on a device: the XOR update with the scan of candidates, and Walsh-Hadamard transforms.

The mathematics stands in `backends.numba.span`. A pass leaves for each block of pairs the largest bound of a gain; the
few blocks whose bound passes the best gain are looked at closer, in float64 and by the same function as on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import require_card_memory, there
from gibbsian.backends.numba.span import append_gains

# Pairs of entries in a block, and blocks that are looked at closer together.
PAIRS, CLOSER = 512, 64
# Bits that one product with a Hadamard matrix transforms, and entries that it has out of place at a time.
_BITS, _CHUNK = 6, 2**28


class Table:
    """A table on a device that hands out entries as NumPy arrays: what learners read of it is small."""

    def __init__(self, size: int, dtype: Any):
        device = there()
        self.dtype, self.size, self.shape = np.dtype(dtype), size, (size,)
        kind = {8: torch.float64, 4: torch.float32}[self.dtype.itemsize]
        require_card_memory(
            float(size) * self.dtype.itemsize, f"a table of {size:.3g} states", "choose fewer variables"
        )
        self.values = torch.zeros(size, dtype=kind, device=device.place)

    def _places(self, places: Any) -> Any:
        return torch.as_tensor(np.array(places, np.int64), device=self.values.device)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, places: Any) -> Any:
        return self.values[self._places(places)].cpu().numpy()

    def __setitem__(self, places: Any, numbers: Any) -> None:
        given = torch.from_numpy(np.array(numbers, self.dtype)).to(self.values.device)
        if places is Ellipsis:
            self.values.copy_(given)
        else:
            self.values[self._places(places)] = given

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values.cpu().numpy().astype(self.dtype if dtype is None else dtype)


def walsh_hadamard(table: Any) -> None:
    """Transform a tensor of 2^n entries in place, six bits at a time as a product with a Hadamard matrix."""
    done, n_bits = 0, table.numel().bit_length() - 1
    while done < n_bits:
        bits = min(_BITS, n_bits - done)
        matrix = torch.ones((1, 1), dtype=table.dtype, device=table.device)
        for _ in range(bits):
            matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
        for part in table.view(-1, 2**bits, 2**done).split(max(1, _CHUNK >> (bits + done))):
            if done == 0:
                part[:, :, 0] = part[:, :, 0] @ matrix
                continue
            for columns in part.split(max(1, _CHUNK >> bits), dim=2):
                columns.copy_(matrix @ columns)
        done += bits


def fill_probabilities(values: Any) -> Any:
    """Overwrite a tensor of parameters with the probabilities of all states and return log Z."""
    walsh_hadamard(values)
    top = values.max()
    total = values.sub_(top).exp_().sum(dtype=torch.float64)
    values.div_(total.to(values.dtype))
    return top.double() + total.log()


def new_table(size: int, dtype: Any) -> Table:
    """Return a table of zeros on the device."""
    return Table(size, dtype)


def place(data: Table, penalties: tuple[np.ndarray, np.ndarray]) -> tuple[Any, Any]:
    """Return the penalties of `update_and_scan` on the device."""
    low, high = (data.values.new_tensor(np.asarray(half)) for half in penalties)
    return low, high


def fill_dual(dual: Table, indices: np.ndarray, theta: np.ndarray, cardinalities: np.ndarray) -> float:
    """Overwrite a table with the dual of these parameters and return log Z."""
    dual.values.zero_()
    dual[indices] = theta
    log_partition = fill_probabilities(dual.values)
    walsh_hadamard(dual.values)
    return float(log_partition)


class Tables:
    """What a fit of all functions does to tables (`learning.span.moves`), on the device and in float64."""

    def __init__(self, size: int, n_tables: int):
        device = there()
        require_card_memory(8.0 * size * n_tables, f"{n_tables} tables of {size:.3g} states", "choose fewer variables")
        self.put = lambda table: device.put(table, torch.float64)
        self.got = lambda table: table.cpu().numpy()
        self.dot = lambda one, other: float(one @ other)

    def transformed(self, table: Any, transposed: bool = False) -> Any:
        """Return the transform of a table, which is overwritten; Walsh functions are symmetric."""
        walsh_hadamard(table)
        return table

    def probabilities(self, theta: Any) -> tuple[float, Any]:
        """Return log Z and the probabilities of all states."""
        values = theta.clone()
        return float(fill_probabilities(values)), values


def pairs_of(numbers: Any, z: int) -> tuple[Any, Any]:
    """Return the entries of pairs: numbers with a zero bit put in at the top bit of z, and their partners."""
    top = z.bit_length() - 1
    first = ((numbers >> top) << (top + 1)) | (numbers & ((1 << top) - 1))
    return first, first ^ z


def bounds(now: Any, data: Any, penalties: Any) -> Any:
    """Return upper bounds of the gains of appending functions (see `backends.numba.span`)."""
    square = now * now
    spread = torch.maximum(1.0 - square, 2.0 - 2.0 * torch.maximum(square, data * data))
    return (now - data).square() / spread.clamp(min=1e-30) - penalties


def update(dual: Table, data: Table, penalties: tuple[Any, Any], move: tuple[int, float, float]) -> Any:
    """Update the dual in place and return the largest bound in each block of pairs."""
    z, keep, mix = move
    low, high = penalties
    device, values = there(), dual.values
    if device.has_triton:
        from gibbsian.backends.torch import triton_span

        return triton_span.update(values, data.values, low, high, z, keep, mix)
    first, second = pairs_of(torch.arange(dual.size // 2, device=values.device), z)
    a, b = values[first], values[second]
    values[first], values[second] = keep * a + mix * b, keep * b + mix * a
    found = bounds(values, data.values, low.repeat(high.numel()) + high.repeat_interleave(low.numel()))
    largest = torch.maximum(found[first], found[second])
    return torch.nn.functional.pad(largest, (0, -largest.numel() % PAIRS), value=-torch.inf).view(-1, PAIRS).amax(1)


def update_and_scan(
    dual: Table,
    data: Table,
    penalties: tuple[Any, Any],
    move: tuple[int, float, float],
    limit: float,
    taken: np.ndarray,
    floor: float,
    shrinkage: tuple[float, float, float],
    axes: tuple[np.ndarray, np.ndarray],
) -> tuple[float, int]:
    """Update the dual in place and return the gain and the index of the best append; index -1 for none."""

    def gains(functions: np.ndarray, costs: np.ndarray) -> np.ndarray:
        now, target = (table[functions].astype(np.float64) for table in (dual, data))
        return append_gains(functions, now, target, costs, limit, shrinkage, axes)

    z, tops = move[0], update(dual, data, penalties, move)
    highest = torch.topk(tops, min(CLOSER, tops.numel())).indices
    best = _closer(dual, data, penalties, z, highest, taken, gains, (floor, -1))
    rest = tops.index_fill(0, highest, -torch.inf)
    for blocks in (rest > best[0]).nonzero()[:, 0].split(CLOSER):
        best = _closer(dual, data, penalties, z, blocks, taken, gains, best)
    return best


def _closer(
    dual: Table,
    data: Table,
    penalties: Any,
    z: int,
    blocks: Any,
    taken: np.ndarray,
    gains: Callable[[np.ndarray, np.ndarray], np.ndarray],
    best: tuple[float, int],
) -> tuple[float, int]:
    """Return the best append after a look at the entries of some blocks whose bound passes the best so far."""
    low, high = (half.double() for half in penalties)
    numbers = (blocks[:, None] * PAIRS + torch.arange(PAIRS, device=blocks.device)).flatten()
    places = torch.cat(pairs_of(numbers[numbers < dual.size // 2], z))
    costs = low[places % low.numel()] + high[places // low.numel()]
    passing = bounds(dual.values[places].double(), data.values[places].double(), costs) > best[0]
    functions, costs = places[passing].cpu().numpy(), costs[passing].cpu().numpy()
    free = ~np.isin(functions, taken)
    functions, costs = functions[free], costs[free]
    if not functions.size:
        return best
    found = gains(functions, costs)
    gain = float(found.max())
    y = int(functions[found == gain].min())
    return (gain, y) if gain > best[0] or (gain == best[0] and y < best[1]) else best


def passing(dual: Table, data: Table, threshold: float) -> np.ndarray:
    """Return the functions whose divergence may fall by more than `threshold`, by the bounds."""
    return (bounds(dual.values, data.values, threshold) > 0).nonzero()[:, 0].cpu().numpy()


def pair_expectations(dual: Table, active: np.ndarray) -> np.ndarray:
    """Return ``<Phi_y Phi_z>`` for all pairs of active functions: the entries ``dual[y xor z]``."""
    return dual[active[:, None] ^ active].astype(np.float64)
