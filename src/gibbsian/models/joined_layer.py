"""Several layers side by side as one: the even or the odd layers of a deep machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from gibbsian.blocks import spans
from gibbsian.domain import AnyDomain, Categories
from gibbsian.models.layers import BinaryLayer, Layer, SpinLayer, product_of


@dataclass(frozen=True)
class JoinedLayer:
    """Layers that do not interact, their columns next to each other.

    Parameters
    ----------
    parts : sequence of Layer
        The layers, in the order of their columns.
    """

    parts: tuple[Layer, ...]

    kind = "joined"

    @cached_property
    def columns(self) -> list[slice]:
        """The columns of each part."""
        return spans(part.width for part in self.parts)

    @cached_property
    def units(self) -> list[slice]:
        """The units of each part."""
        return spans(part.n_units for part in self.parts)

    @property
    def n_units(self) -> int:
        """Number of units of all parts."""
        return sum(part.n_units for part in self.parts)

    @property
    def width(self) -> int:
        """Number of columns of all parts."""
        return sum(part.width for part in self.parts)

    @property
    def domain(self) -> AnyDomain:
        """The values of all units as categories."""
        return Categories(tuple(len(part) for part in self.features))

    @property
    def features(self) -> tuple[np.ndarray, ...]:
        """The columns of values of the units of all parts."""
        return tuple(feature for part in self.parts for feature in part.features)

    @property
    def n_states(self) -> float:
        """Number of joint states."""
        return product_of([part.n_states for part in self.parts])

    def encode(self, states: np.ndarray) -> np.ndarray:
        """Return the values of the parts side by side."""
        return np.hstack([part.encode(states[:, at]) for part, at in zip(self.parts, self.units, strict=True)])

    def decode(self, values: np.ndarray) -> np.ndarray:
        """Return the states of the parts side by side."""
        return self._each(lambda part, columns: part.decode(columns), values)

    def spread(self, units: np.ndarray) -> np.ndarray:
        """Spread what is said of the units of each part over its columns."""
        parts = zip(self.parts, self.units, strict=True)
        return np.concatenate([part.spread(units[..., at]) for part, at in parts], axis=-1)

    def part(self, units: np.ndarray) -> Layer:
        """Return some units of the parts, without the parts that have none."""
        parts = zip(self.parts, self.units, strict=True)
        return joined([part.part(units[at]) for part, at in parts if units[at].any()])

    def refused(self, states: np.ndarray) -> tuple[np.ndarray, str]:
        """Take what the parts take."""
        found = [part.refused(states[:, at]) for part, at in zip(self.parts, self.units, strict=True)]
        return np.hstack([bad for bad, _ in found]), ", ".join(dict.fromkeys(allowed for _, allowed in found))

    def log_measure(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of the parts' log-measures."""
        return self._total(lambda part, columns: part.log_measure(columns), values)

    def log_normaliser(self, fields: np.ndarray) -> np.ndarray:
        """Return the sum of the parts' log-normalisers."""
        return self._total(lambda part, columns: part.log_normaliser(columns), fields)

    def means(self, fields: np.ndarray) -> np.ndarray:
        """Return the expected values of the parts side by side."""
        return self._each(lambda part, columns: part.means(columns), fields)

    def draw(self, fields: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw the parts one after the other."""
        return self._each(lambda part, columns: part.draw(columns, rng), fields)

    def fields_of(self, means: np.ndarray) -> np.ndarray:
        """Return the fields at which the parts have these means."""
        rows = np.atleast_2d(means)
        return self._each(lambda part, columns: np.atleast_2d(part.fields_of(columns)), rows).reshape(np.shape(means))

    def tempered(self, temperature: float) -> Self:
        """Return the parts at a temperature."""
        return type(self)(tuple(part.tempered(temperature) for part in self.parts))

    def enumerate(self, start: int, stop: int) -> np.ndarray:
        """Return joint states by their numbers, the first part's state the lowest digit."""
        numbers, columns = np.arange(start, stop), []
        for part in self.parts:
            every = part.enumerate(0, int(part.n_states))
            numbers, digits = np.divmod(numbers, len(every))
            columns.append(every[digits])
        return np.hstack(columns)

    def _each(self, function: Callable[[Layer, np.ndarray], np.ndarray], array: np.ndarray) -> np.ndarray:
        pieces = zip(self.parts, self.columns, strict=True)
        return np.hstack([function(part, array[:, at]) for part, at in pieces])

    def _total(self, function: Callable[[Layer, np.ndarray], np.ndarray], array: np.ndarray) -> np.ndarray:
        pieces = zip(self.parts, self.columns, strict=True)
        return np.sum([function(part, array[:, at]) for part, at in pieces], axis=0)


def joined(layers: Sequence[Layer]) -> Layer:
    """Put layers side by side; layers of one plain kind make a layer of that kind, which kernels know."""
    if len(layers) == 1:
        return layers[0]
    for plain in (BinaryLayer, SpinLayer):
        if all(type(layer) is plain for layer in layers):
            return plain(sum(layer.n_units for layer in layers))
    return JoinedLayer(tuple(layers))


__all__ = ["JoinedLayer", "joined"]
