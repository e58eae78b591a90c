"""Layers of units on a device: means, draws and sums of `models.layers`, given the products with the other layer.

The fields of units are ``place * scale * (products + biases) + (1 - place) * base``: place is the inverse temperature
along a path from independent units (0) to the machine (1), one number or one for each row, a tensor; scale is 1 / T. On
a card two-valued units go through one kernel, which makes the fields, its random numbers and what is wanted of them in
one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gibbsian.backends.torch.streams import Stream


@dataclass
class Side:
    """One layer of a machine on a device; places are float64, one, one for each row, or those `along` a walk."""

    kind: Any
    biases: Any
    base: Any
    places: Any
    scale: float = 1.0
    along: bool = False
    fused: bool = False

    def place(self, stream: Stream, later: int = 1) -> Any:
        """Return the inverse temperature before a step of a walk, or after it."""
        return self.places[stream.clock + stream.ahead + later] if self.along else self.places

    def fields(self, products: Any, place: Any) -> Any:
        """Return the fields."""
        at = place[:, None]
        constant = (self.scale * at) * self.biases + (1.0 - at) * self.base
        return (self.scale * at).to(products.dtype) * products + constant.to(products.dtype)

    def means_and_draws(self, products: Any, stream: Stream, shares: Any, means: Any, draws: Any) -> None:
        """Fill `means` with expected values times each row's share, and `draws` with values of the first rows."""
        if self.fused and self.kind.slope:
            fused().two_valued(self, products, stream, means=means, shares=shares, draws=draws)
            return
        fields = self.fields(products, self.place(stream))
        torch.mul(self.kind.means(fields), shares[:, None], out=means)
        if draws is not None:
            draws.copy_(self.kind.draw(fields[: len(draws)], stream))

    def draw(self, products: Any, stream: Stream, out: Any, linear: Any = None) -> None:
        """Fill `out` with drawn values, and `linear` with what they add to log-weights as `place` grows."""
        if self.fused and self.kind.slope:
            fused().two_valued(self, products, stream, draws=out, new_linear=linear)
            return
        out.copy_(self.kind.draw(self.fields(products, self.place(stream)), stream))
        if linear is not None:
            linear.copy_(self.linear(out))

    def linear(self, values: Any) -> Any:
        """Return how fast the log-weight of each row of values grows with the place, the other layer aside."""
        return values.to(torch.float64) @ (self.scale * self.biases - self.base).to(torch.float64)

    def weigh_and_draw(self, products: Any, stream: Stream, linear: Any, sums: Any, out: Any) -> None:
        """Add to `sums` how much a step of a walk makes the other layer's values likelier, and draw this one's."""
        if self.fused and self.kind.slope:
            fused().two_valued(self, products, stream, draws=out, sums=sums, old_linear=linear)
            return
        before, at = self.place(stream, 0), self.place(stream)
        here = self.fields(products, at)
        sums += (at - before) * linear + self.kind.log_sums(here) - self.kind.log_sums(self.fields(products, before))
        out.copy_(self.kind.draw(here, stream))


def fused() -> Any:
    """Return Triton's kernels."""
    from gibbsian.backends.torch import fused_units  # which needs Triton

    return fused_units


class Discrete:
    """What units without a measure of their own share."""

    def log_measure(self, values: Any) -> float:
        """Return zero: all values weigh the same without fields."""
        return 0.0


@dataclass
class TwoValued(Discrete):
    """Units of two values, 1 and `low`; the odds of 1 are ``exp(slope * field)``."""

    slope: float
    low: float

    def means(self, fields: Any) -> Any:
        """Return the expected values."""
        return self.low + (1.0 - self.low) * torch.sigmoid(self.slope * fields)

    def draw(self, fields: Any, stream: Stream) -> Any:
        """Draw values."""
        shares = stream.uniform(len(fields), fields.shape[1], fields.dtype)
        return torch.where(shares < torch.sigmoid(self.slope * fields), 1.0, self.low).to(fields.dtype)

    def log_sums(self, fields: Any) -> Any:
        """Return the log of the sum over the states of each row."""
        upper, lower = fields, self.low * fields
        return torch.logaddexp(upper, lower).sum(dim=1, dtype=torch.float64)


@dataclass
class Gaussian:
    """Normal units."""

    variances: Any
    slope = 0.0

    def means(self, fields: Any) -> Any:
        """Return the expected values."""
        return fields * self.variances

    def draw(self, fields: Any, stream: Stream) -> Any:
        """Draw values."""
        noise = stream.normal(len(fields), fields.shape[1], fields.dtype)
        return fields * self.variances + noise * self.variances.sqrt()

    def log_sums(self, fields: Any) -> Any:
        """Return the log of the integral over each row."""
        constant = torch.log(2.0 * np.pi * self.variances)
        return 0.5 * (fields.square() * self.variances + constant).sum(dim=1, dtype=torch.float64)

    def log_measure(self, values: Any) -> Any:
        """Return the log-weight of each row of values at zero fields."""
        return -0.5 * (values.square() / self.variances).sum(dim=1, dtype=torch.float64)


class Categorical(Discrete):
    """Units with an indicator for each value; shorter units are filled up with values of weight zero."""

    slope = 0.0

    def __init__(self, sizes: Any, place: str):
        sizes = np.asarray(sizes)
        longest, starts = sizes.max(), np.cumsum(sizes) - sizes
        cells = starts[:, None] + np.arange(longest)
        inside = np.arange(longest) < sizes[:, None]
        self.even = bool(inside.all())
        self.cells = torch.from_numpy(np.where(inside, cells, sizes.sum())).to(place)
        self.columns = torch.from_numpy(np.flatnonzero(inside)).to(place)
        self.last = torch.from_numpy(sizes - 1).to(place)

    def _split(self, fields: Any) -> Any:
        if self.even:
            return fields.reshape(len(fields), *self.cells.shape)
        return torch.nn.functional.pad(fields, (0, 1), value=-torch.inf)[:, self.cells]

    def _joined(self, parts: Any) -> Any:
        flat = parts.reshape(len(parts), -1)
        return flat if self.even else flat[:, self.columns]

    def means(self, fields: Any) -> Any:
        """Return the probability of each value."""
        return self._joined(torch.softmax(self._split(fields), dim=2))

    def draw(self, fields: Any, stream: Stream) -> Any:
        """Draw indicators: of each unit the first value where the cumulated shares pass a uniform one."""
        passed = torch.softmax(self._split(fields), dim=2).cumsum(dim=2)
        shares = stream.uniform(len(fields), len(self.last), fields.dtype)
        chosen = torch.minimum((passed <= shares[:, :, None]).sum(dim=2), self.last)
        values = torch.arange(self.cells.shape[1], device=fields.device)
        return self._joined((chosen[:, :, None] == values).to(fields.dtype))

    def log_sums(self, fields: Any) -> Any:
        """Return the log of the sum over the states of each row."""
        return torch.logsumexp(self._split(fields), dim=2).sum(dim=1, dtype=torch.float64)


class Joined:
    """Layers side by side."""

    slope = 0.0

    def __init__(self, parts: list[Any], widths: list[int]):
        self.parts, self.widths = parts, widths

    def _each(self, name: str, fields: Any, *more: Any) -> list[Any]:
        columns = fields.split(self.widths, dim=1)
        return [getattr(part, name)(column, *more) for part, column in zip(self.parts, columns, strict=True)]

    def means(self, fields: Any) -> Any:
        """Return the expected values."""
        return torch.cat(self._each("means", fields), dim=1)

    def draw(self, fields: Any, stream: Stream) -> Any:
        """Draw the parts one after the other."""
        return torch.cat(self._each("draw", fields, stream), dim=1)

    def log_sums(self, fields: Any) -> Any:
        """Return the log of the sum over the states of each row."""
        return sum(self._each("log_sums", fields))


def units_of(layer: Any, place: str, dtype: Any) -> Any:
    """Return the units of a layer on a device."""
    if layer.kind == "binary":
        return TwoValued(1.0, 0.0)
    if layer.kind == "spin":
        return TwoValued(2.0, -1.0)
    if layer.kind == "gaussian":
        return Gaussian(torch.from_numpy(layer.variances).to(place, dtype))
    if layer.kind == "categorical":
        return Categorical(layer.sizes, place)
    return Joined([units_of(part, place, dtype) for part in layer.parts], [part.width for part in layer.parts])
