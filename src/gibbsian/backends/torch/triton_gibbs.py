"""Triton kernels of `backends.torch.gibbs`: the same spins to the bit, but for ties within the rounding of a logarithm.

The spins of a block of chains meet the couplings of a block of sites in products of bytes, the couplings written in
three digits of seven bits; the sites of the block then follow one after the other, in registers.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from gibbsian.backends.device import Device, there
from gibbsian.backends.torch.gibbs import BLOCK, LANES, PADDED, ColourSystem, DenseSystem, Heat
from gibbsian.backends.torch.repeated import Repeated

# Chains side by side in a program, of a dense graph and at most of a sparse one; spins of its sites at a time.
_CHAINS, _MOST_CHAINS, _TILE = 64, 256, 2048
# Sweeps in one launch: few enough for Ctrl-C.
_SWEEPS = 64


@triton.jit
def _uniform(word):
    return (word.to(tl.float32) + 0.5) * 2.3283064365386963e-10


@triton.jit
def _philox(c0, c1, c2, c3, k0, k1):
    """Ten rounds, as in `philox.philox`; all are uint32, and of any shapes that go together."""
    for _ in tl.static_range(10):
        high0, low0 = tl.umulhi(c0, 0xD2511F53), c0 * 0xD2511F53
        high1, low1 = tl.umulhi(c2, 0xCD9E8D57), c2 * 0xCD9E8D57
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 = (k0 + 0x9E3779B9).to(tl.uint32)
        k1 = (k1 + 0xBB67AE85).to(tl.uint32)
    return c0, c1, c2, c3


@triton.jit
def _dense(
    spins, words, digits, upper, biases, held, flips, n_chains, n, width, first, n_sweeps, unit, pull, held_stride,
    HELD: tl.constexpr, HEATED: tl.constexpr, CHAINS: tl.constexpr, BLOCK: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    chain = tl.program_id(0) * CHAINS + tl.arange(0, CHAINS)
    real = chain[:, None] < n_chains
    at = chain.to(tl.int64)[:, None] * width
    k0 = tl.load(words + chain * 5, mask=chain < n_chains, other=0).to(tl.uint32)[:, None]
    k1 = tl.load(words + chain * 5 + 1, mask=chain < n_chains, other=0).to(tl.uint32)[:, None]
    c2 = tl.load(words + chain * 5 + 2, mask=chain < n_chains, other=0).to(tl.uint32)[:, None]
    c3 = tl.load(words + chain * 5 + 3, mask=chain < n_chains, other=0).to(tl.uint32)[:, None]
    begun = tl.load(words + chain * 5 + 4, mask=chain < n_chains, other=0).to(tl.uint32)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    depth = tl.arange(0, DEPTH)
    part = width * width
    scale = tl.load(unit)
    count = tl.zeros((CHAINS, BLOCK), dtype=tl.int32)
    for number in range(n_sweeps):
        sweep = begun + (first + number).to(tl.uint32)
        for start in range(0, n, BLOCK):
            sites = start + column
            field = tl.zeros((CHAINS, BLOCK), dtype=tl.int32)
            middle = tl.zeros((CHAINS, BLOCK), dtype=tl.int32)
            low = tl.zeros((CHAINS, BLOCK), dtype=tl.int32)
            for inner in range(0, width, DEPTH):
                s = tl.load(spins + at + inner + depth[None, :], mask=real, other=0)
                places = digits + (inner + depth)[:, None] + sites * width
                field = tl.dot(s, tl.load(places), field, out_dtype=tl.int32)
                middle = tl.dot(s, tl.load(places + part), middle, out_dtype=tl.int32)
                low = tl.dot(s, tl.load(places + 2 * part), low, out_dtype=tl.int32)
            field = field * 16384 + middle * 128 + low + tl.load(biases + sites)
            call = (start // 4 + tl.arange(0, BLOCK // 4)[None, :]).to(tl.uint32)
            r0, r1, r2, r3 = _philox(call, sweep, c2, c3, k0, k1)
            uniform = _uniform(tl.reshape(tl.join(tl.join(r0, r1), tl.join(r2, r3)), (CHAINS, BLOCK)))
            own_field = field.to(tl.float32) * scale
            if HEATED:
                own_field += tl.load(pull + sites)
            excess = own_field - 0.5 * tl.log(uniform / (1.0 - uniform))
            old = tl.load(spins + at + sites, mask=real, other=0)
            if HELD:
                stays = tl.load(held + chain.to(tl.int64)[:, None] * held_stride + sites, mask=real, other=1) != 0
                excess = tl.where(stays, old.to(tl.float32) * 1e30, excess)
            # a spin changes the fields of those after it in the block, and so never its own again
            for k in tl.static_range(BLOCK):
                own = tl.sum(tl.where(column == k, excess, 0.0), axis=1)[:, None]
                excess += tl.where(own > 0, 1.0, -1.0) * tl.load(upper + (start + k) * BLOCK + column)
            new = tl.where(sites < n, tl.where(excess > 0, 1, -1), 0).to(tl.int8)
            count += tl.where(real & (new != old), 1, 0)
            tl.debug_barrier()  # products of the block have read what is written now
            tl.store(spins + at + sites, new, mask=real)
            tl.debug_barrier()
    tl.store(flips + tl.program_id(0), tl.sum(tl.sum(count, axis=1), axis=0).to(tl.int64))


def dense_sweeps(
    spins: Any, words: Any, system: DenseSystem, held: Any, n: int, n_sweeps: int, heat: Heat | None = None
) -> Any:
    """Sweep spins on a dense graph, in place; return the flips."""
    device = there()
    width, n_chains = spins.shape[1], len(spins)
    if device.place not in system.kept:
        system.kept[device.place] = _dense_tables(device, system)
    digits, upper, biases, unit = system.kept[device.place]
    if heat is not None:
        upper, unit = upper * heat.beta, unit * heat.beta
    grid = (triton.cdiv(n_chains, _CHAINS),)
    flips = torch.zeros(grid, dtype=torch.int64, device=spins.device)
    total: Any = 0
    for first in range(0, n_sweeps, _SWEEPS):
        _dense[grid](
            spins, words, digits, upper, biases, spins if held is None else held, flips, n_chains, n, width,
            first, min(_SWEEPS, n_sweeps - first), unit, unit if heat is None else heat.pull,
            0 if held is None or len(held) == 1 else width,
            HELD=held is not None, HEATED=heat is not None, CHAINS=_CHAINS, BLOCK=BLOCK, DEPTH=PADDED,
        )  # fmt: skip
        total = total + flips.sum()
    return total


def _dense_tables(device: Device, system: DenseSystem) -> tuple[Any, ...]:
    """Couplings by digits and within blocks, biases, and the unit, on the device.

    Within a block, spins before a site are those of this sweep: they are added when they are known.
    """
    matrix = device.put(system.matrix, torch.int32)
    width = len(matrix)
    place = torch.arange(width, device=device.place)
    before = (place[:, None] < place) & (place[:, None] // BLOCK == place // BLOCK)
    upper = torch.where(before, matrix, 0).view(width, -1, BLOCK)[place, place // BLOCK].float() * system.unit
    biases, unit = device.put(system.biases, torch.int32), device.put(system.unit, torch.float32)
    return _digits(matrix.masked_fill(before, 0).T), upper, biases, unit


def _digits(whole: Any) -> Any:
    """Write whole numbers of 21 bits as three digits from -64 to 63, the first the most significant, as bytes."""
    low = (whole + 64 & 127) - 64
    rest = (whole - low) // 128
    middle = (rest + 64 & 127) - 64
    return torch.stack([(rest - middle) // 128, middle, low]).to(torch.int8).contiguous()


@triton.jit(do_not_specialize=["ahead"])
def _colour(
    spins, words, heads, weights, biases, held, sweep_number, flips, n_chains, stride, n, n_rows, first, last, unit,
    ahead, pull, HELD: tl.constexpr, HEATED: tl.constexpr, DEGREE: tl.constexpr, SITES: tl.constexpr,
    CHAINS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    lane = tl.arange(0, CHAINS)[None, :]
    chain = tl.program_id(1) * CHAINS + lane
    spins += tl.program_id(1).to(tl.int64) * n * CHAINS
    k0 = tl.load(words + chain).to(tl.uint32)
    k1 = tl.load(words + stride + chain).to(tl.uint32)
    c2 = tl.load(words + 2 * stride + chain).to(tl.uint32)
    c3 = tl.load(words + 3 * stride + chain).to(tl.uint32)
    sweep = tl.load(words + 4 * stride + chain).to(tl.uint32) + (tl.load(sweep_number) + ahead).to(tl.uint32)
    group, within = tile // (LANES // SITES), (tile % (LANES // SITES)) * SITES + tl.arange(0, SITES)
    drawn = _philox((first + group * LANES + within)[:, None].to(tl.uint32), sweep, c2, c3, k0, k1)
    scale = -2.0 * tl.load(unit)
    count = tl.zeros((SITES, CHAINS), dtype=tl.int32)
    for w in tl.static_range(4):
        place = first + (4 * group + w) * LANES + within
        inside = place < last
        field = tl.zeros((SITES, CHAINS), dtype=tl.int32) + tl.load(biases + place, mask=inside, other=0)[:, None]
        for d in tl.static_range(DEGREE):
            head = tl.load(heads + d * n_rows + place, mask=inside, other=0).to(tl.int64)[:, None]
            weight = tl.load(weights + d * n_rows + place, mask=inside, other=0)[:, None]
            field += tl.load(spins + head * CHAINS + lane).to(tl.int32) * weight
        exponent = field.to(tl.float32) * scale
        if HEATED:
            exponent -= 2.0 * tl.load(pull + place, mask=inside, other=0.0)[:, None]
        odds = 1.0 + tl.exp(exponent)
        chosen = tl.where(_uniform(drawn[w]) * odds < 1.0, 1, -1).to(tl.int8)
        at = place.to(tl.int64)[:, None] * CHAINS + lane
        old = tl.load(spins + at, mask=inside[:, None], other=0)
        if HELD:
            stays = tl.load(held + tl.program_id(1).to(tl.int64) * n * CHAINS + at, mask=inside[:, None], other=1)
            chosen = tl.where(stays != 0, old, chosen)
        count += tl.where(inside[:, None] & (chosen != old), 1, 0)
        tl.store(spins + at, chosen, mask=inside[:, None])
    own = flips + tile * tl.num_programs(1) + tl.program_id(1)
    tl.store(own, tl.load(own) + tl.sum(tl.sum(tl.where(chain < n_chains, count, 0), axis=1), axis=0))


def colour_sweeps(
    spins: Any, words: Any, system: ColourSystem, tables: Any, held: Any, n_sweeps: int, heat: Heat | None = None
) -> Any:
    """Sweep spins on a sparse graph, in place; return the flips.

    Inside, groups of chains stand apart, and in each the spins of a site stand together: a program reads and writes
    whole vectors, and those that run at a time share what they read.
    """
    device = there()
    (n_chains, n), (heads, weights, biases) = spins.shape, tables
    chains = min(_MOST_CHAINS, max(16, triton.next_power_of_2(n_chains)))
    groups, sites = triton.cdiv(n_chains, chains), _TILE // chains
    stride = groups * chains

    def by_site(given: Any) -> Any:
        padded = torch.zeros((stride, n), dtype=given.dtype, device=given.device)
        padded[:n_chains] = given
        return padded.view(groups, chains, n).transpose(1, 2).contiguous()

    turned, keys = by_site(spins), torch.zeros((5, stride), dtype=words.dtype, device=words.device)
    keys[:, :n_chains] = words.T
    stays = turned if held is None else by_site(held)
    number = torch.zeros((), dtype=torch.int64, device=spins.device)
    spans = list(zip(system.colours[:-1].tolist(), system.colours[1:].tolist(), strict=True))
    grids = [(triton.cdiv(last - first, 4 * LANES) * (LANES // sites), groups) for first, last in spans]
    flips = torch.zeros(groups * max([1, *(grid[0] for grid in grids)]), dtype=torch.int64, device=spins.device)
    unit = device.put(system.unit, torch.float32) if heat is None else system.unit * heat.beta

    def sweep(ahead: int) -> None:
        for grid, (first, last) in zip(grids, spans, strict=True):
            _colour[grid](
                turned, keys, heads, weights, biases, stays, number, flips, n_chains, stride, n, heads.shape[1], first,
                last, unit, ahead, unit if heat is None else heat.pull,
                HELD=held is not None, HEATED=heat is not None, DEGREE=len(heads), SITES=sites, CHAINS=chains,
                LANES=LANES,
            )  # fmt: skip

    Repeated(sweep, number)(n_sweeps)
    spins.copy_(turned.transpose(1, 2).reshape(stride, n)[:n_chains])
    return flips.sum()
