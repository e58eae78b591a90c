"""Triton's kernel of `backends.torch.table_gibbs` and `clique_gibbs`: the same codes, but for ties within rounding."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from gibbsian.backends.device import there
from gibbsian.backends.torch.repeated import Repeated
from gibbsian.backends.torch.triton_gibbs import _philox

# Numbers that a program has in its registers, most chains of it, and what holds a variable that it looks up at a time.
_TILE, _MOST_CHAINS, _ENTRIES = 2048, 128, 8


@triton.jit(do_not_specialize=["ahead", "first", "end_of_group"])
def _group(
    codes, words, table, sites, cardinalities, pointers, bases, strides, other_pointers, others, other_strides, held,
    number, changes, beta, base, base_starts, n_chains, n, width, first, end_of_group, ahead,
    PRODUCTS: tl.constexpr, HELD: tl.constexpr, HEATED: tl.constexpr, VALUES: tl.constexpr, CHAINS: tl.constexpr,
    ENTRIES: tl.constexpr,
):  # fmt: skip
    chain = tl.program_id(1) * CHAINS + tl.arange(0, CHAINS)
    real = chain < n_chains
    own = codes + chain.to(tl.int64) * n
    value = tl.arange(0, VALUES)[None, :]
    k0 = tl.load(words + chain * 5, mask=real, other=0).to(tl.uint32)
    k1 = tl.load(words + chain * 5 + 1, mask=real, other=0).to(tl.uint32)
    c2 = tl.load(words + chain * 5 + 2, mask=real, other=0).to(tl.uint32)
    c3 = tl.load(words + chain * 5 + 3, mask=real, other=0).to(tl.uint32)
    begun = tl.load(words + chain * 5 + 4, mask=real, other=0) + tl.load(number) + ahead
    count = tl.zeros((CHAINS,), dtype=tl.int64)
    for place in range(first + tl.program_id(0), end_of_group, tl.num_programs(0)):
        site = tl.load(sites + place)
        last = tl.load(cardinalities + site) - 1
        present = tl.minimum(value, last)
        local = tl.zeros((CHAINS, VALUES), dtype=tl.float64)
        end = tl.load(pointers + site + 1)
        for start in range(tl.load(pointers + site), end, ENTRIES):  # many at a time: each waits for its loads
            entry = start + tl.arange(0, ENTRIES)
            inside = entry < end
            begin = tl.load(other_pointers + entry, mask=inside, other=0)
            n_others = tl.load(other_pointers + entry + 1, mask=inside, other=0) - begin
            bases_here = tl.load(bases + entry, mask=inside, other=0)
            part = tl.zeros((CHAINS, ENTRIES), dtype=bases_here.dtype) + bases_here[None, :]
            for k in range(tl.max(n_others, axis=0)):
                there = k < n_others
                node = tl.load(others + begin + k, mask=there, other=0)[None, :]
                code = tl.load(own[:, None] + node, mask=real[:, None] & there[None, :], other=0)
                if PRODUCTS:
                    part *= tl.load(table + node * width + code, mask=there[None, :], other=1.0)
                else:
                    part += code * tl.load(other_strides + begin + k, mask=there, other=0)[None, :]
            if PRODUCTS:
                local += tl.sum(part, axis=1)[:, None]
            else:
                stride = tl.load(strides + entry, mask=inside, other=0)
                cells = part[:, :, None] + stride[None, :, None] * present[:, None, :]
                local += tl.sum(tl.load(table + cells, mask=inside[None, :, None], other=0.0), axis=1)
        if PRODUCTS:
            local *= tl.load(table + site * width + present)
        if HEATED:
            heat = tl.load(beta)
            local = heat * local + (1.0 - heat) * tl.load(base + tl.load(base_starts + site) + present)
        local = tl.where(value <= last, local, float("-inf"))
        weights = tl.exp(local - tl.max(local, axis=1)[:, None])
        r0, r1, r2, r3 = _philox((begun * 0 + site // 4).to(tl.uint32), begun.to(tl.uint32), c2, c3, k0, k1)
        turn = site % 4
        word = tl.where(turn == 0, r0, tl.where(turn == 1, r1, tl.where(turn == 2, r2, r3)))
        limit = (word.to(tl.float64) + 0.5) * 2.3283064365386963e-10 * tl.sum(weights, axis=1)
        passed = (tl.cumsum(weights, axis=1) <= limit[:, None]).to(tl.int32)
        new = tl.minimum(tl.sum(passed, axis=1), last)
        old = tl.load(own + site, mask=real, other=0).to(tl.int64)
        if HELD:
            stays = tl.load(held + chain.to(tl.int64) * n + site, mask=real, other=1)
            new = tl.where(stays != 0, old, new)
        count += tl.where(real & (new != old), 1, 0)
        tl.debug_barrier()  # all have read what is written now, which the next variable may look at
        tl.store(own + site, new.to(tl.int8), mask=real)
        tl.debug_barrier()
    tl.atomic_add(changes, tl.sum(count, axis=0))


class Sweep:
    """Sweeps of codes that stay on the device, by the layout of a `table_gibbs.sweeps`."""

    def __init__(self, system: Any):
        device, cardinalities = there(), system.cardinalities
        whole = (system.sites, cardinalities, *system.entries)
        self._layout = [device.put(part, torch.float64 if part.dtype.kind == "f" else torch.int64) for part in whole]
        self._table, self._products = system.table, system.blank == 1.0
        self._width = (self._table.numel() - 1) // len(cardinalities)
        # groups of one variable follow each other in one program: a dense graph has no others
        spans: list[tuple[int, int, int, int]] = []
        alone = [last - first == 1 for first, last in system.spans]
        for (first, last), one, before in zip(system.spans, alone, [False, *alone], strict=False):
            start = spans.pop()[0] if one and before else first
            values = triton.next_power_of_2(max(2, int(cardinalities[system.sites[start:last]].max())))
            spans.append((start, last, 1 if one else last - first, values))
        self._spans = spans

    def __call__(self, codes: Any, words: Any, held: Any, n_sweeps: int, heat: Any = None) -> Any:
        """Make the sweeps in place, at a place of a path where one is given, and count them; return the changes."""
        n_chains, n = codes.shape
        number, changes = torch.zeros(2, dtype=torch.int64, device=codes.device).split(1)
        stays = codes if held is None else held.to(torch.int8)
        place = (self._table, self._table, number) if heat is None else heat

        def sweep(ahead: int) -> None:
            for first, last, wide, values in self._spans:
                chains = min(_MOST_CHAINS, max(4, _TILE // (values * _ENTRIES)))
                _group[(wide, triton.cdiv(n_chains, chains))](
                    codes, words, self._table, *self._layout, stays, number, changes, *place, n_chains, n, self._width,
                    first, last, ahead, PRODUCTS=self._products, HELD=held is not None, HEATED=heat is not None,
                    VALUES=values, CHAINS=chains, ENTRIES=_ENTRIES,
                )  # fmt: skip

        Repeated(sweep, number)(n_sweeps)
        words[:, 4] += n_sweeps
        return changes
