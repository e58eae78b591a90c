"""Loops of layers that PyTorch would make in many passes, by Triton.

Two-valued units: fields, random numbers, draws, means and sums in one pass, a program for each row; the random numbers
are those of `streams.Stream.uniform`, made where they are used. Besides, the rows of a minibatch, and a step of the
parameters.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

# Most columns of a quarter of a row, of a row, and parameters that are treated together.
_STRIP, _COLUMNS, _PARAMETERS = 256, 1024, 1024


@triton.jit
def _log_sum(upper, lower):
    """Return the log of the sum of two exponentials."""
    return tl.maximum(upper, lower) + tl.log(1.0 + tl.exp(-tl.abs(upper - lower)))


@triton.jit
def _uniform(words, like):
    """Return numbers from [0, 1) in the precision of others."""
    if like.dtype == tl.float64:
        shares = words.to(tl.float64) * 2.3283064365386963e-10
    else:
        shares = (words >> 8).to(tl.float32) * 5.9604644775390625e-08
    return shares


@triton.jit(do_not_specialize=["ahead", "number"])
def _rows(
    products, biases, base, places, clock, key, means, shares, draws, sums, old_linear, new_linear, n_drawn, width,
    quarter, ahead, number, place_step: tl.constexpr, along: tl.constexpr, scale: tl.constexpr, slope: tl.constexpr,
    low: tl.constexpr, strip: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    step = tl.load(clock) + ahead
    before = tl.load(places + (step if along else row * place_step))
    at = tl.load(places + (step + 1 if along else row * place_step))
    seed = tl.load(key)
    growth = tl.zeros((), tl.float64)
    linear = tl.zeros((), tl.float64)
    for first in range(0, quarter, strip):
        unit = first + tl.arange(0, strip)
        none = unit * 0
        w0, w1, w2, w3 = tl.philox(seed, unit, none + row.to(tl.int32), none + step.to(tl.int32), none + number)
        for lane in tl.static_range(4):
            words = w0 if lane == 0 else (w1 if lane == 1 else (w2 if lane == 2 else w3))
            column = unit + lane * quarter
            inside = (unit < quarter) & (column < width)
            product = tl.load(products + row * width + column, inside, 0.0)
            real = product.dtype
            bias = tl.load(biases + column, inside, 0.0)
            start = tl.load(base + column, inside, 0.0)
            field = (scale * at).to(real) * (product + bias) + (1.0 - at).to(real) * start
            # the smaller of the two odds, so that no exponential overflows
            small = tl.exp(-tl.abs(slope * field))
            share = tl.where(field > 0.0, 1.0, small) / (1.0 + small)
            if means is not None:
                mean = (low + (1.0 - low) * share) * tl.load(shares + row)
                tl.store(means + row * width + column, mean.to(real), inside)
            if draws is not None:
                drawn = tl.where(_uniform(words, product) < share, 1.0, low).to(real)
                tl.store(draws + row * width + column, drawn, inside & (none + row < n_drawn))
                if new_linear is not None:
                    slopes = (scale * bias - start).to(real)
                    linear += tl.sum(tl.where(inside, drawn * slopes, 0.0).to(tl.float64))
            if sums is not None:
                old = (scale * before).to(real) * (product + bias) + (1.0 - before).to(real) * start
                grown = _log_sum(field, low * field) - _log_sum(old, low * old)
                growth += tl.sum(tl.where(inside, grown, 0.0).to(tl.float64))
    if sums is not None:
        growth += (at - before) * tl.load(old_linear + row)
        tl.store(sums + row, tl.load(sums + row) + growth)
    if new_linear is not None:
        tl.store(new_linear + row, linear)


def two_valued(
    side: Any,
    products: Any,
    stream: Any,
    means: Any = None,
    shares: Any = None,
    draws: Any = None,
    sums: Any = None,
    old_linear: Any = None,
    new_linear: Any = None,
) -> None:
    """Fill what is given, for rows of products that lie one after the other.

    `means` are those of the units, times the share of each row; `draws` takes values of the first rows; `sums` takes up
    the growth of the log-weight between two places, the linear term of the other layer's values (`old_linear`)
    included; `new_linear` takes that of the values drawn.
    """
    n_rows, width = products.shape
    quarter = -(-width // 4)
    assert all(part is None or part.is_contiguous() for part in (products, means, draws))
    number = 0 if draws is None else stream.next_draw()
    _rows[(n_rows,)](
        products, side.biases, side.base, side.places, stream.clock, stream.key, means, shares, draws, sums,
        old_linear, new_linear, 0 if draws is None else len(draws), width, quarter, stream.ahead, number,
        place_step=int(len(side.places) > 1), along=side.along, scale=side.scale, slope=side.kind.slope,
        low=side.kind.low, strip=min(_STRIP, triton.next_power_of_2(quarter)),
    )  # fmt: skip


@triton.jit(do_not_specialize=["ahead"])
def _take(rows, order, starts, clock, out, width, ahead, columns: tl.constexpr):
    number, column = tl.program_id(0), tl.program_id(1) * columns + tl.arange(0, columns)
    place = tl.load(order + tl.load(starts + tl.load(clock) + ahead) + number)
    values = tl.load(rows + place * width + column, column < width, 0)
    tl.store(out + number.to(tl.int64) * width + column, values.to(out.dtype.element_ty), column < width)


def take_rows(rows: Any, order: Any, starts: Any, stream: Any, out: Any) -> None:
    """Fill `out` with the rows of the minibatch that the clock shows."""
    n_rows, width = out.shape
    grid = (n_rows, triton.cdiv(width, _COLUMNS))
    _take[grid](rows, order, starts, stream.clock, out, width, stream.ahead, columns=_COLUMNS)


@triton.jit(do_not_specialize=["ahead"])
def _move(theta, velocity, gradient, rates, clock, size, ahead, momentum, l1, l2, block: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = place < size
    weight = tl.load(theta + place, inside)
    real = weight.dtype
    rate = tl.load(rates + tl.load(clock) + ahead)
    slope = tl.load(gradient + place, inside) - tl.load(l2).to(real) * weight
    step = tl.load(momentum).to(real) * tl.load(velocity + place, inside) + rate.to(real) * slope
    weight += step
    threshold = (rate * tl.load(l1)).to(real)
    weight = tl.maximum(weight - threshold, 0.0) + tl.minimum(weight + threshold, 0.0)
    tl.store(velocity + place, step, inside)
    tl.store(theta + place, weight, inside)


def move(theta: Any, velocity: Any, gradient: Any, rates: Any, stream: Any, numbers: Any) -> None:
    """Make a step of parameters in place; `numbers` are momentum, L1 and L2."""
    momentum, l1, l2 = numbers
    _move[(triton.cdiv(len(theta), _PARAMETERS),)](
        theta, velocity, gradient, rates, stream.clock, len(theta), stream.ahead, momentum, l1, l2, block=_PARAMETERS
    )
