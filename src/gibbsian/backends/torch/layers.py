"""What layers ask of PyTorch: the functions of `gibbsian.backends.numba.layers` for tensors, with a `Stream` as rng.

Sums over columns are float64, whatever the rest is. On a card the draws of two-valued units and the step of the
parameters are one kernel each, which makes its random numbers itself.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from gibbsian.backends.numba import layers as numba_layers

Tensor = Any


def affine(values: Tensor, weights: Tensor, biases: Tensor = None) -> Tensor:
    """Return ``values W + biases`` in the precision of the weights."""
    values = values.to(weights.dtype)
    return values @ weights if biases is None else torch.addmm(biases, values, weights)


def dot(values: Tensor, weights: Tensor) -> Tensor:
    """Return the sum of the columns of values times weights, which are one row or one for each row."""
    values, weights = values.to(torch.float64), weights.to(torch.float64)
    return values @ weights if weights.dim() == 1 else (values * weights).sum(1)


def take_rows(rows: Tensor, order: Tensor, starts: Tensor, stream: Any, within: Tensor, dtype: Any) -> Tensor:
    """Return the rows of the minibatch that the clock shows."""
    if rows.is_cuda:
        return _fused().take_rows(rows, order, starts, stream, rows.new_empty(len(within), rows.shape[1], dtype=dtype))
    return rows[order[starts[stream.clock + stream.ahead] + within]].to(dtype)


def join_phases(data: Tensor, free: Tensor, offset: Tensor, left: Tensor, right: Tensor, difference: Tensor) -> Tensor:
    """Do what `numba.layers.join_phases` does."""
    join = _fused().join_phases if data.is_cuda and free.ndim == 2 else numba_layers.join_phases
    return join(data, free, offset, left, right, difference)


def towards(values: Tensor, others: Tensor, share: float) -> Tensor:
    """Move values by a share of the way to others, in place, and return them."""
    return values.lerp_(others, share)


def subtract_product(values: Tensor, matrix: Tensor, vector: Tensor) -> None:
    """Subtract ``matrix @ vector`` from values in place."""
    values.addmv_(matrix, vector, alpha=-1.0)


def empty(height: int, width: int, like: Tensor) -> Tensor:
    """Return a tensor of the kind of another, with nothing in it yet."""
    return like.new_empty(height, width)


def momentum_step(
    theta: Tensor, velocity: Tensor, gradient: Tensor, rate: Tensor, momentum: float, l1: float, l2: float
) -> None:
    """Make a step in place: momentum, the L2 penalty, and the proximal step of the L1 penalty."""
    step = _fused().momentum_step if theta.is_cuda else plain_momentum_step
    step(theta, velocity, gradient, rate, momentum, l1, l2)


def plain_momentum_step(
    theta: Tensor, velocity: Tensor, gradient: Tensor, rate: Tensor, momentum: float, l1: float, l2: float
) -> None:
    """Do the same in passes of PyTorch."""
    velocity.mul_(momentum).add_(rate.to(theta.dtype) * (gradient - l2 * theta))
    theta += velocity
    if l1:
        threshold = (rate * (l1 / (1.0 - momentum))).to(theta.dtype)
        theta.copy_((theta - threshold).clamp_(min=0.0) + (theta + threshold).clamp_(max=0.0))


def _fused() -> Any:
    from gibbsian.backends.torch import fused_units  # which needs Triton

    return fused_units


# -- units of two values ----------------------------------------------------------------------------------------------
def two_valued_means(fields: Tensor, low: float) -> Tensor:
    """Return the means of units of the values `low` (0 or -1) and 1."""
    return torch.tanh(fields) if low else torch.sigmoid(fields)  # one kernel each


def draw_two_valued(fields: Tensor, low: float, rng: Any) -> Tensor:
    """Draw values `low` or 1."""
    if fields.is_cuda:
        return _fused().draw_two_valued(fields, low, rng)
    shares = rng.uniform(len(fields), fields.shape[1], fields.dtype)
    return torch.where(shares < torch.sigmoid((1.0 - low) * fields), 1.0, low).to(fields.dtype)


def draw_along(layer: Any, inputs: Tensor, biases: Tensor, base: Tensor, beta: Tensor, rng: Any) -> Tensor:
    """Draw units whose fields are ``(1 - beta) base + beta (biases + inputs)``."""
    if inputs.is_cuda and layer.kind in ("binary", "spin") and beta.dim() == 0:
        return _fused().draw_two_valued(inputs, layer.low, rng, biases, base, beta)
    return layer.draw((1.0 - beta) * base + beta * biases + beta * inputs, rng)


def grows(layer: Any, values: Tensor) -> bool:
    """Whether `grow` serves a layer that is summed out."""
    return values.is_cuda and layer.kind in ("binary", "spin")


def grow(layer: Any, *numbers: Any) -> None:
    """Add to the sums of rows by how much their log-weights grow along a path (see `fused_units.grow`)."""
    _fused().grow(*numbers, layer.low)


def two_valued_log_normaliser(fields: Tensor, low: float) -> Tensor:
    """Return the log of the sum over the values of each row."""
    # beyond the threshold softplus gives its argument; there it is that to the last bit
    sums = torch.logaddexp(fields, -fields) if low else torch.nn.functional.softplus(fields, threshold=50.0)
    return sums.sum(dim=1, dtype=torch.float64)


# -- normal units -----------------------------------------------------------------------------------------------------
@lru_cache(maxsize=64)
def _deviations(deviations: tuple[float, ...], device: Any, dtype: Any) -> Tensor:
    return torch.tensor(deviations, dtype=dtype, device=device)


def normal_means(fields: Tensor, deviations: tuple[float, ...]) -> Tensor:
    """Return the means, variance times field."""
    return fields * _deviations(deviations, fields.device, fields.dtype).square()


def draw_normal(fields: Tensor, deviations: tuple[float, ...], rng: Any) -> Tensor:
    """Draw normal numbers of these standard deviations."""
    noise = rng.normal(len(fields), fields.shape[1], fields.dtype)
    return normal_means(fields, deviations) + noise * _deviations(deviations, fields.device, fields.dtype)


def normal_log_normaliser(fields: Tensor, deviations: tuple[float, ...]) -> Tensor:
    """Return the log of the integral over the values of each row."""
    variances = _deviations(deviations, fields.device, fields.dtype).square()
    return 0.5 * (fields.square() * variances + torch.log(2.0 * np.pi * variances)).sum(dim=1, dtype=torch.float64)


def normal_log_measure(values: Tensor, deviations: tuple[float, ...]) -> Tensor:
    """Return the log-weight of each row of values at zero fields."""
    variances = _deviations(deviations, values.device, values.dtype).square()
    return -0.5 * (values.square() / variances).sum(dim=1, dtype=torch.float64)


# -- categories: shorter units are filled up with values of weight zero -----------------------------------------------
class _Padding(NamedTuple):
    """Where the values of each unit stand among all, the columns among the filled ones, and the last values."""

    cells: Tensor
    columns: Tensor
    last: Tensor
    even: bool


@lru_cache(maxsize=64)
def _padding(edges: tuple[int, ...], device: Any) -> _Padding:
    starts, sizes = np.array(edges[:-1]), np.diff(edges)
    inside = np.arange(sizes.max()) < sizes[:, None]
    cells = np.where(inside, starts[:, None] + np.arange(sizes.max()), sizes.sum())
    columns, last = np.flatnonzero(inside), sizes - 1
    there = [torch.from_numpy(part).to(device) for part in (cells, columns, last)]
    return _Padding(there[0], there[1], there[2], bool(inside.all()))


def _split(fields: Tensor, edges: np.ndarray) -> tuple[Tensor, _Padding]:
    padding = _padding(tuple(edges.tolist()), fields.device)
    if padding.even:
        return fields.reshape(len(fields), *padding.cells.shape), padding
    return torch.nn.functional.pad(fields, (0, 1), value=-torch.inf)[:, padding.cells], padding


def _joined(parts: Tensor, padding: _Padding) -> Tensor:
    flat = parts.reshape(len(parts), -1)
    return flat if padding.even else flat[:, padding.columns]


def categorical_means(fields: Tensor, edges: np.ndarray) -> Tensor:
    """Return the probability of each value; unit k has the columns from ``edges[k]`` to ``edges[k + 1]``."""
    parts, padding = _split(fields, edges)
    return _joined(torch.softmax(parts, dim=2), padding)


def draw_categories(fields: Tensor, edges: np.ndarray, rng: Any) -> Tensor:
    """Draw indicators: of each unit the first value where the cumulated shares pass a uniform one."""
    parts, padding = _split(fields, edges)
    passed = torch.softmax(parts, dim=2).cumsum(dim=2)
    shares = rng.uniform(len(fields), len(padding.last), fields.dtype)
    chosen = torch.minimum((passed <= shares[:, :, None]).sum(dim=2), padding.last)
    values = torch.arange(padding.cells.shape[1], device=fields.device)
    return _joined((chosen[:, :, None] == values).to(fields.dtype), padding)


def categorical_log_normaliser(fields: Tensor, edges: np.ndarray) -> Tensor:
    """Return the log of the sum over the values of each row."""
    return torch.logsumexp(_split(fields, edges)[0], dim=2).sum(dim=1, dtype=torch.float64)
