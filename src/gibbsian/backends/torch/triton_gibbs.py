"""Triton kernels of `backends.torch.gibbs`: the same spins to the bit, but for ties within the rounding of a logarithm.

The spins of a block of chains meet the couplings of a block of sites in products of float16, which are exact because
both are small whole numbers; the sites of the block then follow one after the other, in registers.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from gibbsian.backends.device import here
from gibbsian.backends.torch.gibbs import BLOCK, HIGH, LANES, PADDED, ColourSystem, DenseSystem

# Chains side by side in a program: of a dense graph, of a sparse one.
_CHAINS, _FEW_CHAINS = 64, 8
# Sweeps in one launch: few enough for Ctrl-C.
_SWEEPS = 64


@triton.jit
def _half_logits(word):
    uniform = (word.to(tl.float32) + 0.5) * 2.3283064365386963e-10
    return 0.5 * tl.log(uniform / (1.0 - uniform))


@triton.jit
def _philox(c0, c1, c2, c3, k0, k1):
    """Ten rounds, as in `philox.philox`; all are uint32."""
    for _ in tl.static_range(10):
        high0, low0 = tl.umulhi(c0, 0xD2511F53), c0 * 0xD2511F53
        high1, low1 = tl.umulhi(c2, 0xCD9E8D57), c2 * 0xCD9E8D57
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 = (k0 + 0x9E3779B9).to(tl.uint32)
        k1 = (k1 + 0xBB67AE85).to(tl.uint32)
    return c0, c1, c2, c3


@triton.jit
def _dense(
    spins, words, high, low, upper_high, upper_low, bias_high, bias_low, held, flips, n_chains, n, width, first, n_sweeps,
    unit, held_stride, HELD: tl.constexpr, CHAINS: tl.constexpr, BLOCK: tl.constexpr, DEPTH: tl.constexpr,
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
    scale = tl.load(unit)
    count = tl.zeros((CHAINS, BLOCK), dtype=tl.int32)
    for number in range(n_sweeps):
        for start in range(0, n, BLOCK):
            sites = start + column
            top = tl.zeros((CHAINS, BLOCK), dtype=tl.float32)
            rest = tl.zeros((CHAINS, BLOCK), dtype=tl.float32)
            for inner in range(0, width, DEPTH):
                s = tl.load(spins + at + inner + depth[None, :], mask=real, other=0).to(tl.float16)
                places = (inner + depth)[:, None] * width + sites
                top = tl.dot(s, tl.load(high + places), top)
                rest = tl.dot(s, tl.load(low + places), rest)
            top += tl.load(bias_high + sites)
            rest += tl.load(bias_low + sites)
            sweep = begun + (first + number).to(tl.uint32)
            word, _, _, _ = _philox((sites + tl.zeros_like(chain)[:, None]).to(tl.uint32), sweep + tl.zeros_like(column).to(tl.uint32), c2, c3, k0, k1)  # noqa: E501
            limits = _half_logits(word)
            old = tl.load(spins + at + sites, mask=real, other=0).to(tl.float32)
            new = old
            if HELD:
                stays = tl.load(held + chain.to(tl.int64)[:, None] * held_stride + sites, mask=real, other=1) != 0
            for k in tl.static_range(BLOCK):
                excess = (top * 2048.0 + rest) * scale - limits
                own = tl.sum(tl.where(column == k, excess, 0.0), axis=1)[:, None]
                chosen = tl.where(own > 0, 1.0, -1.0)
                if HELD:
                    before = tl.sum(tl.where(column == k, old, 0.0), axis=1)[:, None]
                    fixed = tl.sum(tl.where((column == k) & stays, 1.0, 0.0), axis=1)[:, None]
                    chosen = tl.where(fixed > 0, before, chosen)
                top += chosen * tl.load(upper_high + (start + k) * BLOCK + column)
                rest += chosen * tl.load(upper_low + (start + k) * BLOCK + column)
                new = tl.where(column == k, chosen, new)
            new = tl.where(sites < n, new, 0.0)
            count += tl.where(real & (new != old), 1, 0)
            tl.debug_barrier()  # products of the block have read what is written now
            tl.store(spins + at + sites, new.to(tl.int8), mask=real)
            tl.debug_barrier()
    tl.store(flips + tl.program_id(0), tl.sum(tl.sum(count, axis=1), axis=0).to(tl.int64))


def dense_sweeps(spins: Any, words: Any, system: DenseSystem, held: Any, n: int, n_sweeps: int) -> int:
    """Sweep spins on a dense graph, in place; return the flips."""
    device = here()
    assert device is not None
    width, n_chains = spins.shape[1], len(spins)
    matrix = device.put(system.matrix, torch.float64)
    # within a block, spins before a site are those of this sweep: they are added when they are known
    place = torch.arange(width, device=spins.device)
    before = (place[:, None] < place) & (place[:, None] // BLOCK == place // BLOCK)
    upper = torch.where(before, matrix, 0.0).view(width, -1, BLOCK)
    upper = upper[place, place // BLOCK]
    parts = [_high_and_low(part) for part in (matrix.masked_fill(before, 0.0), upper)]
    products = [part.to(torch.float16).contiguous() for part in parts[0]]
    within = [part.float().contiguous() for part in parts[1]]
    biases = [part.float() for part in _high_and_low(device.put(system.biases, torch.float64))]
    unit = device.put(system.unit, torch.float32)
    grid = (triton.cdiv(n_chains, _CHAINS),)
    flips = torch.zeros(grid, dtype=torch.int64, device=spins.device)
    total = 0
    for first in range(0, n_sweeps, _SWEEPS):
        _dense[grid](
            spins, words, *products, *within, *biases, spins if held is None else held, flips, n_chains, n, width,
            first, min(_SWEEPS, n_sweeps - first), unit, 0 if held is None or len(held) == 1 else width,
            HELD=held is not None, CHAINS=_CHAINS, BLOCK=BLOCK, DEPTH=PADDED,
        )  # fmt: skip
        total = total + flips.sum()
    return int(total)


def _high_and_low(whole: Any) -> tuple[Any, Any]:
    high = torch.round(whole / HIGH)
    return high, whole - HIGH * high


@triton.jit
def _colour(
    spins, words, heads, weights, biases, held, sweep_number, flips, n_chains, n, n_rows, first, last, unit,
    HELD: tl.constexpr, DEGREE: tl.constexpr, CHAINS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    chain = tl.program_id(1) * CHAINS + tl.arange(0, CHAINS)
    real = (chain < n_chains)[:, None]
    at = chain.to(tl.int64)[:, None] * n
    k0 = tl.load(words + chain * 5, mask=chain < n_chains, other=0).to(tl.uint32)[:, None]
    k1 = tl.load(words + chain * 5 + 1, mask=chain < n_chains, other=0).to(tl.uint32)[:, None]
    c2 = tl.load(words + chain * 5 + 2, mask=chain < n_chains, other=0).to(tl.uint32)[:, None]
    c3 = tl.load(words + chain * 5 + 3, mask=chain < n_chains, other=0).to(tl.uint32)[:, None]
    begun = tl.load(words + chain * 5 + 4, mask=chain < n_chains, other=0).to(tl.uint32)[:, None]
    sweep = begun + tl.load(sweep_number).to(tl.uint32)
    lane = tl.arange(0, LANES)
    tile = tl.program_id(0)
    call = (first + tile * LANES + lane)[None, :].to(tl.uint32)
    zero = (chain[:, None] * 0 + lane[None, :] * 0).to(tl.uint32)
    drawn = _philox(call + zero, sweep + zero, c2 + zero, c3 + zero, k0 + zero, k1 + zero)
    scale = tl.load(unit)
    count = tl.zeros((CHAINS, LANES), dtype=tl.int32)
    for w in tl.static_range(4):
        place = first + tile * 4 * LANES + w * LANES + lane
        inside = place < last
        field = tl.load(biases + place, mask=inside, other=0)[None, :] + zero.to(tl.int32)
        for d in tl.static_range(DEGREE):
            head = tl.load(heads + d * n_rows + place, mask=inside, other=0)[None, :]
            weight = tl.load(weights + d * n_rows + place, mask=inside, other=0)[None, :]
            near = tl.load(spins + at + head, mask=real & inside[None, :], other=1)
            field += tl.where(near > 0, weight, -weight)
        chosen = tl.where(field.to(tl.float32) * scale > _half_logits(drawn[w]), 1, -1).to(tl.int8)
        here = real & inside[None, :]
        old = tl.load(spins + at + place[None, :], mask=here, other=0)
        if HELD:
            chosen = tl.where(tl.load(held + at + place[None, :], mask=here, other=1) != 0, old, chosen)
        count += tl.where(here & (chosen != old), 1, 0)
        tl.store(spins + at + place[None, :], chosen, mask=here)
    own = flips + tile * tl.num_programs(1) + tl.program_id(1)
    tl.store(own, tl.load(own) + tl.sum(tl.sum(count, axis=1), axis=0))


def colour_sweeps(spins: Any, words: Any, system: ColourSystem, tables: Any, held: Any, n_sweeps: int) -> int:
    """Sweep spins on a sparse graph, in place; return the flips."""
    device = here()
    assert device is not None
    (n_chains, n), (heads, weights, biases) = spins.shape, tables
    number = torch.zeros((), dtype=torch.int64, device=spins.device)
    spans = list(zip(system.colours[:-1].tolist(), system.colours[1:].tolist(), strict=True))
    groups = triton.cdiv(n_chains, _FEW_CHAINS)
    tiles = max([1, *(triton.cdiv(last - first, 4 * LANES) for first, last in spans)])
    flips = torch.zeros(tiles * groups, dtype=torch.int64, device=spins.device)
    unit = device.put(system.unit, torch.float32)

    def sweep() -> None:
        for first, last in spans:
            _colour[(triton.cdiv(last - first, 4 * LANES), groups)](
                spins, words, heads, weights, biases, spins if held is None else held, number, flips, n_chains, n,
                heads.shape[1], first, last, unit,
                HELD=held is not None, DEGREE=len(heads), CHAINS=_FEW_CHAINS, LANES=LANES,
            )  # fmt: skip
        number.add_(1)

    replayed(sweep, n_sweeps)
    return int(flips.sum())


def replayed(step: Any, n: int) -> None:
    """Take a step of few small kernels `n` times; on a card by replaying a graph of them, without the launches."""
    device = here()
    assert device is not None
    if n > 0:
        step()  # which also compiles
    if n < 4 or not device.is_card:
        for _ in range(n - 1):
            step()
        return
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(n - 1):
        graph.replay()
