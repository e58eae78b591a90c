"""What layers would make in many passes, by Triton: draws of units, both phases joined, the step of the parameters."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

# Most columns of a quarter of a row, and parameters, that are treated together; columns and most rows of both phases.
_STRIP, _PARAMETERS = 256, 1024
_COLUMNS, _ROWS = 8, 512


@triton.jit(do_not_specialize=["ahead", "number"])
def _draw(
    fields, biases, base, beta, draws, clock, key, width, quarter, ahead, number, slope: tl.constexpr,
    low: tl.constexpr, strip: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * strip + tl.arange(0, strip)
    none = unit * 0
    step = (tl.load(clock) + ahead).to(tl.int32)
    w0, w1, w2, w3 = tl.philox(tl.load(key), unit, none + row.to(tl.int32), none + step, none + number)
    for lane in tl.static_range(4):
        words = w0 if lane == 0 else (w1 if lane == 1 else (w2 if lane == 2 else w3))
        column = unit + lane * quarter
        inside = (unit < quarter) & (column < width)
        field = tl.load(fields + row * width + column, inside, 0.0)
        if biases is not None:
            at = tl.load(beta).to(field.dtype)
            start = tl.load(base + column, inside, 0.0)
            field = at * (field + tl.load(biases + column, inside, 0.0)) + (1.0 - at) * start
        # the smaller of the two odds, so that no exponential overflows
        small = tl.exp(-tl.abs(slope * field))
        share = tl.where(field > 0.0, 1.0, small) / (1.0 + small)
        if field.dtype == tl.float64:
            uniform = words.to(tl.float64) * 2.3283064365386963e-10
        else:
            uniform = (words >> 8).to(tl.float32) * 5.9604644775390625e-08
        tl.store(draws + row * width + column, tl.where(uniform < share, 1.0, low).to(field.dtype), inside)


def draw_two_valued(fields: Any, low: float, rng: Any, biases: Any = None, base: Any = None, beta: Any = None) -> Any:
    """Draw values `low` or 1, with the random numbers of `streams.Stream.uniform` made where they are used.

    Given `biases`, the fields are ``(1 - beta) base + beta (biases + fields)``.
    """
    fields = fields.contiguous()
    n_rows, width = fields.shape
    draws, quarter = torch.empty_like(fields), -(-width // 4)
    strip = min(_STRIP, triton.next_power_of_2(quarter))
    _draw[(n_rows, triton.cdiv(quarter, strip))](
        fields, biases, base, beta, draws, rng.clock, rng.key, width, quarter, rng.ahead, rng.next_draw(),
        slope=1.0 - low, low=low, strip=strip,
    )  # fmt: skip
    return draws


@triton.jit
def _log_sum(first, second):
    return tl.maximum(first, second) + tl.log(1.0 + tl.exp(-tl.abs(first - second)))


@triton.jit
def _grow(
    sums, values, slopes, products, biases, base, before, after, n_values, width, low: tl.constexpr, strip: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    here, there = tl.load(before), tl.load(after)
    growth = tl.zeros([strip], tl.float64)
    for start in range(0, width, strip):
        column = start + tl.arange(0, strip)
        inside = column < width
        product = tl.load(products + row * width + column, inside, 0.0)
        bias, first = tl.load(biases + column, inside, 0.0), tl.load(base + column, inside, 0.0)
        new = there.to(product.dtype) * (product + bias) + (1.0 - there).to(product.dtype) * first
        old = here.to(product.dtype) * (product + bias) + (1.0 - here).to(product.dtype) * first
        growth += tl.where(inside, _log_sum(new, low * new) - _log_sum(old, low * old), 0.0).to(tl.float64)
    linear = tl.zeros([strip], tl.float64)
    for start in range(0, n_values, strip):
        column = start + tl.arange(0, strip)
        inside = column < n_values
        value = tl.load(values + row * n_values + column, inside, 0.0)
        linear += (value * tl.load(slopes + column, inside, 0.0)).to(tl.float64)
    tl.store(sums + row, tl.load(sums + row) + tl.sum(growth) + (there - here) * tl.sum(linear))


def grow(sums: Any, values: Any, slopes: Any, products: Any, biases: Any, base: Any, ends: Any, low: float) -> None:
    """Add to the sums of rows by how much their log-weights grow from one inverse temperature (`ends`) to the other.

    The log-weights are ``beta values . slopes`` and the log-sums of two-valued units with the fields
    ``(1 - beta) base + beta (biases + products)``.
    """
    _grow[(len(values),)](
        sums, values, slopes, products, biases, base, *ends, values.shape[1], products.shape[1], low=low, strip=_STRIP
    )


@triton.jit(do_not_specialize=["ahead"])
def _take(rows, order, starts, clock, out, width, ahead, columns: tl.constexpr):
    number, column = tl.program_id(0), tl.program_id(1) * columns + tl.arange(0, columns)
    place = tl.load(order + tl.load(starts + tl.load(clock) + ahead) + number)
    values = tl.load(rows + place * width + column, column < width, 0)
    tl.store(out + number.to(tl.int64) * width + column, values.to(out.dtype.element_ty), column < width)


def take_rows(rows: Any, order: Any, starts: Any, stream: Any, out: Any) -> Any:
    """Fill `out` with the rows of the minibatch that the clock shows."""
    n_rows, width = out.shape
    grid = (n_rows, triton.cdiv(width, _PARAMETERS))
    _take[grid](rows, order, starts, stream.clock, out, width, stream.ahead, columns=_PARAMETERS)
    return out


@triton.jit
def _join(
    data, free, offset, left, right, difference, mean, n_data, n_free, width, rows: tl.constexpr, columns: tl.constexpr
):
    column = tl.program_id(0) * columns + tl.arange(0, columns)
    inside = column < width
    here = tl.zeros([columns], data.dtype.element_ty)
    there = tl.zeros([columns], data.dtype.element_ty)
    for start in range(0, n_data, rows):
        row = start + tl.arange(0, rows)
        at, known = row[:, None] * width + column[None, :], (row < n_data)[:, None] & inside[None, :]
        values = tl.load(data + at, known, 0.0)
        here += tl.sum(values, 0)
        if left is not None:
            tl.store(left + at, values, known)
        if right is not None:
            tl.store(right + at, values / n_data, known)
    for start in range(0, n_free, rows):
        row = start + tl.arange(0, rows)
        at, known = row[:, None] * width + column[None, :], (row < n_free)[:, None] & inside[None, :]
        values = tl.load(free + at, known, 0.0)
        there += tl.sum(values, 0)
        if left is not None:
            tl.store(left + n_data * width + at, values, known)
        if right is not None:
            tl.store(right + n_data * width + at, -values / n_free, known)
    here /= n_data
    moved = here - there / n_free
    tl.store(mean + column, here, inside)
    tl.store(difference + column, moved, inside)
    if offset is not None:
        about = tl.load(offset + column, inside, 0.0)
        last = (n_data + n_free) * width + column
        if left is not None:
            tl.store(left + last, about, inside)
            tl.store(left + last + width, moved, inside)
        if right is not None:
            tl.store(right + last, -moved, inside)
            tl.store(right + last + width, -about, inside)


def join_phases(data: Any, free: Any, offset: Any, left: Any, right: Any, difference: Any) -> Any:
    """Do what `numba.layers.join_phases` does with samples of the free phase."""
    (n_data, width), n_free, mean = data.shape, len(free), torch.empty_like(difference)
    rows = min(_ROWS, triton.next_power_of_2(max(n_data, n_free)))
    _join[(triton.cdiv(width, _COLUMNS),)](
        data.contiguous(), free.contiguous(), offset, left, right, difference, mean, n_data, n_free, width, rows=rows,
        columns=_COLUMNS,
    )  # fmt: skip
    return mean


@triton.jit
def _move(
    theta, velocity, gradient, rates, size, momentum: tl.constexpr, l1: tl.constexpr, l2: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = place < size
    weight = tl.load(theta + place, inside)
    real = weight.dtype
    rate = tl.load(rates)
    slope = tl.load(gradient + place, inside) - l2 * weight
    step = momentum * tl.load(velocity + place, inside) + rate.to(real) * slope
    weight += step
    threshold = (rate * l1).to(real)
    weight = tl.maximum(weight - threshold, 0.0) + tl.minimum(weight + threshold, 0.0)
    tl.store(velocity + place, step, inside)
    tl.store(theta + place, weight, inside)


def momentum_step(theta: Any, velocity: Any, gradient: Any, rate: Any, momentum: float, l1: float, l2: float) -> None:
    """Make a step in place: momentum, the L2 penalty, and the proximal step of the L1 penalty."""
    size = theta.numel()
    _move[(triton.cdiv(size, _PARAMETERS),)](
        theta, velocity, gradient, rate, size, momentum=momentum, l1=l1 / (1.0 - momentum), l2=l2, block=_PARAMETERS
    )
