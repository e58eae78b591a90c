"""The pass over the dual table of the full-span model as one Triton kernel: every entry is read and written once."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from gibbsian.backends.torch.span import PAIRS


@triton.jit
def _bound(now, data, penalty):
    square = now * now
    spread = tl.maximum(1.0 - square, 2.0 - 2.0 * tl.maximum(square, data * data))
    return (now - data) * (now - data) / tl.maximum(spread, 1e-30) - penalty


@triton.jit
def _update(
    dual, data, low, high, tops, factors, keep, mix, n_pairs, same, z, top, low_bits, DOUBLE: tl.constexpr,
    FAR: tl.constexpr, SMALL: tl.constexpr, PAIRS: tl.constexpr, BITS: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0).to(tl.int64)
    # zero, which the compiler does not know: vectors of neighbours would load their partners one by one
    nothing = (z - same) + tl.zeros((), tl.int32)
    z = z + tl.zeros((), tl.int64)
    lane = tl.arange(0, PAIRS) ^ nothing.to(tl.int32)
    start = block * PAIRS
    inside = start + lane < n_pairs
    if DOUBLE:  # numbers given as such would be float32
        keep, mix = tl.load(factors), tl.load(factors + 1)
    # wide indices are those of the block: within it they are narrow
    if FAR:  # partners stand in another block
        first_base = ((start >> top) << (top + 1)) | (start & ((tl.full((), 1, tl.int64) << top) - 1))
        second_base = first_base ^ ((z >> BITS) << BITS)
        first, second = lane, lane ^ (z & (PAIRS - 1)).to(tl.int32)
    else:
        first_base, second_base = 2 * start, 2 * start
        first = ((lane >> top) << (top + 1)) | (lane & ((1 << top) - 1))
        second = first ^ z.to(tl.int32)
    a = tl.load(dual + first_base + first, mask=inside, other=0.0)
    b = tl.load(dual + second_base + second, mask=inside, other=0.0)
    a_new, b_new = keep * a + mix * b, keep * b + mix * a
    tl.store(dual + first_base + first, a_new, mask=inside)
    tl.store(dual + second_base + second, b_new, mask=inside)
    below = (tl.full((), 1, tl.int64) << low_bits) - 1
    if SMALL:
        a_cost = tl.load(low + ((first_base + first) & below), mask=inside, other=0.0)
        a_cost += tl.load(high + ((first_base + first) >> low_bits), mask=inside, other=0.0)
        b_cost = tl.load(low + ((second_base + second) & below), mask=inside, other=0.0)
        b_cost += tl.load(high + ((second_base + second) >> low_bits), mask=inside, other=0.0)
    else:
        a_cost = tl.load(low + (first_base & below) + first) + tl.load(high + (first_base >> low_bits))
        b_cost = tl.load(low + (second_base & below) + second) + tl.load(high + (second_base >> low_bits))
    a_bound = _bound(a_new, tl.load(data + first_base + first, mask=inside, other=0.0), a_cost)
    b_bound = _bound(b_new, tl.load(data + second_base + second, mask=inside, other=0.0), b_cost)
    largest = tl.where(inside, tl.maximum(a_bound, b_bound), float("-inf"))
    tl.store(tops + block, tl.max(largest, axis=0))


def update(dual: Any, data: Any, low: Any, high: Any, z: int, keep: float, mix: float) -> Any:
    """Update the dual in place and return the largest bound in each block of pairs."""
    n_pairs = dual.numel() // 2
    n_blocks = triton.cdiv(n_pairs, PAIRS)
    tops = torch.empty(n_blocks, dtype=dual.dtype, device=dual.device)
    double, low_bits, bits = dual.dtype == torch.float64, low.numel().bit_length() - 1, PAIRS.bit_length() - 1
    factors = torch.tensor([keep, mix], dtype=dual.dtype).to(dual.device) if double else dual
    _update[(n_blocks,)](
        dual, data, low, high, tops, factors, keep, mix, n_pairs, z, z, z.bit_length() - 1, low_bits,
        DOUBLE=double, FAR=z >= PAIRS, SMALL=low_bits <= bits, PAIRS=PAIRS, BITS=bits,
    )  # fmt: skip
    return tops
