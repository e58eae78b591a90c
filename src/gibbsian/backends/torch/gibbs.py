"""Sweeps of Gibbs chains, all chains at once: spins on dense graphs block by block, on sparse ones colour by colour.

Parameters are whole numbers of a small unit, so that fields are exact in whatever order they are summed, and random
numbers come by counter: a chain's path depends on its own stream only. Spins stay on the device for all sweeps of a
call. What Numba does with float64 fields is done here with couplings of 21 bits (dense) or 30 (sparse), relative to
the largest; a decision is made in float32. On a dense graph variable i takes the word ``i // 2 % 2 + 2 (i % 2)`` of
the call ``i // 4`` of the generator.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from gibbsian.backends.device import require_card_memory, there
from gibbsian.backends.torch.philox import chain_words, half_logits, philox, uniforms

# With more variables the matrix of couplings is large, and a dense model is not learned anyway.
MOST_DENSE = 2**14
# Sites of a dense graph that are updated between two products; columns are padded to a multiple of the other.
BLOCK, PADDED = 16, 64
# Positions of a colour that share calls of the generator: word w of a call is for the position ``w * LANES`` further.
LANES = 128
INSTEAD = "run fewer chains, or set `device='cpu'`"


class Heat(NamedTuple):
    """A place along a path of temperatures, as tensors: fields are multiplied by `beta`, then `pull` is added."""

    beta: Any
    pull: Any


@dataclass(frozen=True, eq=False)
class DenseSystem:
    """Couplings and biases in units, columns padded; what kernels made of them is kept by device."""

    matrix: np.ndarray
    biases: np.ndarray
    unit: float
    kept: dict[str, Any] = field(default_factory=dict)


def dense_system(matrix: np.ndarray, biases: np.ndarray) -> DenseSystem:
    """Round the couplings (a symmetric matrix) and biases of spins to whole units."""
    reach = (np.abs(matrix).sum(axis=1) + np.abs(biases)).max(initial=0.0)  # of which sums have 31 bits
    largest = float(max(np.abs(matrix).max(initial=0.0), reach * 2.0**-9, 1e-300))
    unit = np.ldexp(1.0, np.frexp(largest)[1] - 20)
    n = -(-len(biases) // PADDED) * PADDED
    whole, offsets = np.zeros((n, n)), np.zeros(n)
    whole[: len(matrix), : len(matrix)] = np.round(matrix / unit)
    offsets[: len(biases)] = np.round(biases / unit)
    return DenseSystem(whole, offsets, float(unit))


def _advanced(streams: np.ndarray, n_sweeps: int) -> None:
    streams[:, 3] += np.uint64(n_sweeps)


def dense_sweeps(
    states: np.ndarray, streams: np.ndarray, system: DenseSystem, held: np.ndarray | None, n_sweeps: int
) -> int:
    """Sweep chains of spins in the order of the variables, in place; return how many spins flipped.

    `held` says which spins are never updated, one row for each chain or one for all.
    """
    device, n = there(), states.shape[1]
    width = len(system.biases)
    needed = len(states) * (width * (2.0 if held is not None and len(held) > 1 else 1.0) + 40.0) + 24.0 * width**2
    require_card_memory(needed, f"{len(states):,} chains of {n:,} variables", INSTEAD)
    spins = torch.zeros((len(states), width), dtype=torch.int8, device=device.place)
    spins[:, :n] = device.put(states, torch.int8)
    words = device.put(chain_words(streams), torch.int64)
    mask = None
    if held is not None:
        mask = torch.ones((len(held), width), dtype=torch.int8, device=device.place)
        mask[:, :n] = device.put(held, torch.int8)
    flips = _kernel("dense_sweeps", _plain_dense)(spins, words, system, mask, n, n_sweeps)
    states[:] = spins[:, :n].cpu().numpy()
    _advanced(streams, n_sweeps)
    return int(flips)


def _kernel(name: str, plain: Any) -> Any:
    """Return Triton's kernel of a name where there is Triton, else what does the same in plain torch."""
    if not there().has_triton:
        return plain
    from gibbsian.backends.torch import triton_gibbs

    return getattr(triton_gibbs, name)


def heated_sweep(spins: Any, words: Any, system: DenseSystem | ColourSystem, tables: Any, n: int, heat: Heat) -> None:
    """Sweep spins that stay on the device once, in place, and count the sweep; `tables` are those of colours."""
    if isinstance(system, DenseSystem):
        _kernel("dense_sweeps", _plain_dense)(spins, words, system, None, n, 1, heat)
    else:
        _kernel("colour_sweeps", _plain_colours)(spins, words, system, tables, None, 1, heat)
    words[:, 4] += 1


def _plain_dense(
    spins: Any, words: Any, system: DenseSystem, held: Any, n: int, n_sweeps: int, heat: Heat | None = None
) -> Any:
    """Sweep by keeping the fields, which are whole numbers, and changing them where a spin flips."""
    device = there()
    scale: Any = system.unit if heat is None else system.unit * heat.beta
    matrix = device.put(system.matrix, torch.float64)
    fields = spins.double() @ matrix + device.put(system.biases, torch.float64)
    k0, k1, c2, c3, sweep = words.T
    flips = torch.zeros((), dtype=torch.int64, device=spins.device)
    for number in range(n_sweeps):
        for i in range(n):
            call = torch.full_like(sweep, i // 4)
            words_of_call = philox((call, (sweep + number) & 0xFFFFFFFF, c2, c3), (k0, k1))
            limits = half_logits(words_of_call[i // 2 % 2 + 2 * (i % 2)])
            own = fields[:, i].float() * scale + (0.0 if heat is None else heat.pull[i])
            new = torch.where(own > limits, 1, -1).to(torch.int8)
            if held is not None:
                new = torch.where(held[:, i] != 0, spins[:, i], new)
            change = new - spins[:, i]
            fields += change.double().unsqueeze(1) * matrix[i]
            spins[:, i] = new
            flips += (change != 0).sum()
    return flips


@dataclass(frozen=True, eq=False)
class ColourSystem:
    """A graph in the order of a chromatic sweep, neighbours in rows of equal length, parameters in units.

    Colour k has the positions from ``colours[k]`` to ``colours[k + 1]``; row d of `heads` and `weights` holds the d-th
    neighbour of each position, with weight zero where there is none.
    """

    colours: np.ndarray
    heads: np.ndarray
    weights: np.ndarray
    biases: np.ndarray
    unit: float
    kept: dict[str, Any] = field(default_factory=dict)


def colour_system(
    colours: np.ndarray, indptr: np.ndarray, heads: np.ndarray, weights: np.ndarray, biases: np.ndarray, reach: float
) -> ColourSystem:
    """Round couplings along a CSR graph and biases to whole units; `reach` is the largest field."""
    unit = np.ldexp(1.0, np.frexp(max(reach, 1e-300))[1] - 29)
    table, whole = neighbour_rows(indptr, heads, np.round(weights / unit))
    whole, offsets = whole.astype(np.int32), np.round(biases / unit).astype(np.int32)
    return ColourSystem(np.asarray(colours), table, whole, offsets, float(unit))


def neighbour_rows(indptr: np.ndarray, heads: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a CSR graph as rows of equal length: the d-th neighbour of each site, and the weight of it, or zero."""
    degrees = np.diff(indptr)
    shape = (int(degrees.max(initial=1)), len(degrees))
    places = (np.arange(indptr[-1]) - np.repeat(indptr[:-1], degrees), np.repeat(np.arange(len(degrees)), degrees))
    table, numbers = np.zeros(shape, np.int32), np.zeros(shape)
    table[places], numbers[places] = heads, weights
    return table, numbers


def colour_tables(system: ColourSystem) -> list[Any]:
    """Return neighbours, couplings and biases on the device, where they stay."""
    device = there()
    if device.place not in system.kept:
        parts = (system.heads, system.weights, system.biases)
        system.kept[device.place] = [device.put(part, torch.int32) for part in parts]
    return system.kept[device.place]


def colour_sweeps(
    states: np.ndarray, streams: np.ndarray, system: ColourSystem, held: np.ndarray | None, n_sweeps: int
) -> int:
    """Sweep chains of spins colour by colour, in place; return how many flipped. `held` has a row for each chain."""
    device, (n_chains, n) = there(), states.shape
    # the spins as they come, and by site beside the copy they are made from; plain torch gathers all neighbours
    copies = n_chains + 2.0 * max(16, n_chains) if device.has_triton else 17.0 * len(system.heads) * n_chains
    tables = 8.0 * system.heads.size + 4.0 * system.biases.size
    needed = n * copies * (1.0 if held is None else 2.0) + 120.0 * n_chains + tables
    require_card_memory(needed, f"{n_chains:,} chains of {n:,} variables", INSTEAD)
    spins = device.put(states, torch.int8)
    words = device.put(chain_words(streams), torch.int64)
    mask = None if held is None else device.put(held, torch.int8)
    sweeps = _kernel("colour_sweeps", _plain_colours)
    flips = sweeps(spins, words, system, colour_tables(system), mask, n_sweeps)
    states[:] = spins.cpu().numpy()
    _advanced(streams, n_sweeps)
    return int(flips)


def _plain_colours(
    spins: Any, words: Any, system: ColourSystem, tables: Any, held: Any, n_sweeps: int, heat: Heat | None = None
) -> Any:
    heads, weights, biases = tables
    scale: Any = -2.0 * (system.unit if heat is None else system.unit * heat.beta)
    k0, k1, c2, c3, sweep = words.T.unsqueeze(2)
    flips = torch.zeros((), dtype=torch.int64, device=spins.device)
    for number in range(n_sweeps):
        for first, last in zip(system.colours[:-1].tolist(), system.colours[1:].tolist(), strict=True):
            place = torch.arange(last - first, device=spins.device)
            call = place // (4 * LANES) * LANES + place % LANES + first
            drawn = philox((call, (sweep + number) & 0xFFFFFFFF, c2, c3), (k0, k1))
            words_of_places = torch.stack(drawn).gather(0, (place // LANES % 4).expand(1, len(spins), -1))[0]
            near = spins[:, heads[:, first:last].long()].long()
            fields = (near * weights[:, first:last]).sum(dim=1) + biases[first:last]
            odds = 1.0 + torch.exp(fields.float() * scale - (0.0 if heat is None else 2.0 * heat.pull[first:last]))
            new = torch.where(uniforms(words_of_places) * odds < 1.0, 1, -1).to(torch.int8)
            old = spins[:, first:last]
            if held is not None:
                new = torch.where(held[:, first:last] != 0, old, new)
            flips += (new != old).sum()
            spins[:, first:last] = new
    return flips
