"""The pass over the dual table of the full-span model as one Triton kernel: every entry is read and written once."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from gibbsian.backends.device import here
from gibbsian.backends.torch.span import PAIRS


@triton.jit
def _bound(now, data, penalty):
    square = now * now
    spread = tl.maximum(1.0 - square, 2.0 - 2.0 * tl.maximum(square, data * data))
    return (now - data) * (now - data) / tl.maximum(spread, 1e-30) - penalty


@triton.jit
def _update(
    dual, data, low, high, tops, factors, n_pairs, z, top, low_bits, WIDE: tl.constexpr, PAIRS: tl.constexpr
):  # fmt: skip
    block = tl.program_id(0)
    number = block.to(tl.int64) * PAIRS + tl.arange(0, PAIRS)
    if not WIDE:
        number = number.to(tl.int32)
    inside = number < n_pairs
    one = tl.full((), 1, number.dtype)
    first = ((number >> top) << (top + 1)) | (number & ((one << top) - 1))
    second = first ^ z
    keep, mix = tl.load(factors), tl.load(factors + 1)
    a, b = tl.load(dual + first, mask=inside, other=0.0), tl.load(dual + second, mask=inside, other=0.0)
    a_new, b_new = keep * a + mix * b, keep * b + mix * a
    tl.store(dual + first, a_new, mask=inside)
    tl.store(dual + second, b_new, mask=inside)
    below = (one << low_bits) - 1
    a_cost = tl.load(low + (first & below)) + tl.load(high + (first >> low_bits), mask=inside, other=0.0)
    b_cost = tl.load(low + (second & below)) + tl.load(high + (second >> low_bits), mask=inside, other=0.0)
    a_bound = _bound(a_new, tl.load(data + first, mask=inside, other=0.0), a_cost)
    b_bound = _bound(b_new, tl.load(data + second, mask=inside, other=0.0), b_cost)
    largest = tl.where(inside, tl.maximum(a_bound, b_bound), float("-inf"))
    tl.store(tops + block, tl.max(largest, axis=0))


def update(dual: Any, data: Any, low: Any, high: Any, z: int, keep: float, mix: float) -> Any:
    """Update the dual in place and return the largest bound in each block of pairs."""
    device = here()
    assert device is not None
    n_pairs = dual.numel() // 2
    n_blocks = triton.cdiv(n_pairs, PAIRS)
    tops = torch.empty(n_blocks, dtype=dual.dtype, device=dual.device)
    factors = torch.tensor([keep, mix], dtype=dual.dtype).to(dual.device, non_blocking=True)
    _update[(n_blocks,)](
        dual, data, low, high, tops, factors, n_pairs, z, z.bit_length() - 1, low.numel().bit_length() - 1,
        WIDE=dual.numel() > 2**31 - 1, PAIRS=PAIRS,
    )  # fmt: skip
    return tops
