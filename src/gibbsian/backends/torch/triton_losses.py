"""Losses of two-valued conditional costs from fields to slopes in one pass over memory, as Triton kernels."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

_ROWS, _COLUMNS = 16, 128


@triton.jit
def _fused(
    fields, states, shares, values, n_rows, n_columns, stride, scale,
    LOSS: tl.constexpr, LARGEST: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < n_rows) & (column < n_columns)
    field = tl.load(fields + row * stride + column, mask=inside, other=0.0)
    state = tl.load(states + row * n_columns + column, mask=inside, other=0)
    share = tl.load(shares + row, mask=row < n_rows, other=0.0)
    size = tl.load(scale)  # a number given as such would be float32
    sign = tl.where(state > 0, size, -size)
    d = field * sign
    if LOSS == 2:
        exponent = -0.5 * d
        grown = tl.exp(tl.minimum(exponent, LARGEST))
        loss = grown * (1.0 + tl.maximum(exponent - LARGEST, 0.0))
        slope = -0.5 * grown
    else:
        e = tl.exp(-tl.abs(d))
        larger = 1.0 / (1.0 + e)
        smaller = e * larger
        other = tl.where(d > 0, smaller, larger)
        if LOSS == 0:
            loss = tl.log(1.0 + e) + tl.maximum(-d, 0.0)
            slope = -other
        else:
            loss = other * other
            slope = -2.0 * loss * tl.where(d > 0, larger, smaller)
    tl.store(fields + row * stride + column, share * slope * sign, mask=inside)
    total = tl.sum(tl.sum(tl.where(inside, share * loss, 0.0).to(tl.float64), axis=1), axis=0)
    tl.store(values + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), total)


def _bound(number: int) -> Any:
    def loss(fields: Any, states: Any, shares: Any, scale: Any) -> Any:
        """Return the loss of the conditional costs of these fields, and overwrite them with its slopes."""
        n_rows, n_columns = states.shape
        grid = (triton.cdiv(n_rows, _ROWS), triton.cdiv(n_columns, _COLUMNS))
        values = torch.empty(grid[0] * grid[1], dtype=torch.float64, device=fields.device)
        largest = 300.0 if fields.dtype == torch.float64 else 40.0
        _fused[grid](
            fields, states, shares, values, n_rows, n_columns, fields.stride(0), scale,
            LOSS=number, LARGEST=largest, ROWS=_ROWS, COLUMNS=_COLUMNS,
        )  # fmt: skip
        return values.sum()

    return loss


# by the names of `flip_losses`
FUSED = {name: _bound(k) for k, name in enumerate(("logistic", "squared_sigmoid", "half_exponential"))}
