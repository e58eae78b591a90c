"""Declarations of what a file holds: types, shapes and ranges, checked before anything is built.

A family lists its fields and arrays in `parts_in_file`, and `gibbsian.storage` those of the rest of a file. Sizes have
names: `n` is the number of columns, and every other name gets its value where it is met first, so that all fields and
arrays that share a name must agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, Protocol

import numpy as np

from gibbsian.errors import ArgumentError

# Numbers beyond it, and positive ones below its inverse, leave no room for products and quotients of a few of them.
LARGEST = 1e150
MOST = 2**62

Sizes = dict[str, int]


class Part(Protocol):
    """The declaration of one field or array of a file."""

    @property
    def optional(self) -> bool:
        """Whether a file may lack it."""

    def check(self, field: str, value: object, sizes: Sizes) -> None:
        """Raise `ArgumentError`, which names the field, unless the value is as declared; add new sizes to `sizes`."""


PartsInFile = Mapping[str, Part]


def reject(field: str, reason: str) -> NoReturn:
    """Raise the error of a field that is not as declared."""
    raise ArgumentError(f"{field if field.isprintable() else ascii(field)} {reason}")


def agree(sizes: Sizes, name: int | str, size: int) -> bool:
    """Whether a size equals the number or the named size; a new name gets this size."""
    return size == (sizes.setdefault(name, size) if isinstance(name, str) else name)


@dataclass(frozen=True)
class Anything:
    """A value that is checked elsewhere."""

    optional: bool = False

    def check(self, field: str, value: object, sizes: Sizes) -> None:
        """Accept the value."""


@dataclass(frozen=True)
class Plain:
    """A single value of one of some types, within bounds, or one of `words`; an integer may give a named size."""

    types: tuple[type[object], ...]
    low: float = -LARGEST
    high: float = LARGEST
    words: tuple[object, ...] = ()
    size: str = ""
    optional: bool = False

    def check(self, field: str, value: object, sizes: Sizes) -> None:
        """Raise `ArgumentError` for another type, word, number or size."""
        if type(value) not in self.types:
            reject(field, f"must be {' or '.join(kind.__name__ for kind in self.types)}, not {type(value).__name__}")
        if self.words and value not in self.words:
            reject(field, f"must be one of {', '.join(map(str, self.words))}")
        if isinstance(value, int | float):
            if not self.low <= value <= self.high:
                reject(field, f"must lie between {self.low:g} and {self.high:g}")
            if self.size and not agree(sizes, self.size, int(value)):
                reject(field, f"must be {sizes[self.size]}, as other parts of the file say")


@dataclass(frozen=True)
class ListOf:
    """A list whose entries have one declaration; its length may be a named size."""

    each: Part
    size: str = ""
    optional: bool = False

    def check(self, field: str, value: object, sizes: Sizes) -> None:
        """Raise `ArgumentError` for other values."""
        if type(value) is not list:
            reject(field, f"must be list, not {type(value).__name__}")
        if self.size and not agree(sizes, self.size, len(value)):
            reject(field, f"has {len(value)} entries, not {sizes[self.size]}")
        for i, entry in enumerate(value):
            self.each.check(f"{field}[{i}]", entry, sizes)


@dataclass(frozen=True)
class Record:
    """Fields by name: those declared in `parts`, and any others if they have a declaration in `others`."""

    parts: PartsInFile
    others: Part | None = None
    optional: bool = False

    def check(self, field: str, value: object, sizes: Sizes) -> None:
        """Raise `ArgumentError` for other values."""
        if type(value) is not dict:
            reject(field, f"must be dict, not {type(value).__name__}")
        prefix = f"{field}." if field else ""
        for name, part in self.parts.items():
            if name in value:
                part.check(prefix + name, value[name], sizes)
            elif not part.optional:
                reject(prefix + name, "is missing")
        for name in value.keys() - self.parts.keys():
            if self.others is None:
                reject(prefix + name, "does not belong in this file")
            self.others.check(prefix + name, value[name], sizes)


@dataclass(frozen=True)
class NumericArray:
    """An array of numbers: its dtypes, its shape by names of sizes, its bounds, and the sum of each row to a power."""

    shape: tuple[int | str, ...] | None
    kinds: tuple[str, ...] = ("float64",)
    low: float = -LARGEST
    high: float = LARGEST
    below: str = ""
    total: int | str = 0
    power: int = 1
    bounded: bool = True
    optional: bool = False

    def check(self, field: str, value: object, sizes: Sizes) -> None:
        """Raise `ArgumentError` for other dtypes, shapes and numbers."""
        assert isinstance(value, np.ndarray)
        if value.dtype.name not in self.kinds:
            reject(field, f"must hold {' or '.join(self.kinds)}, not {value.dtype}")
        shape = value.shape if self.shape is None else self.shape
        if len(shape) != value.ndim or not all(map(agree, [sizes] * value.ndim, shape, value.shape)):
            wanted = ", ".join(str(sizes.get(str(name), name)) for name in shape)
            reject(field, f"has shape {value.shape}, not ({wanted})")
        high = sizes[self.below] - 1 if self.below else self.high
        # in float64: the bounds overflow float32
        if self.bounded and not bool(((value >= np.float64(self.low)) & (value <= np.float64(high))).all()):
            reject(field, f"holds numbers that are not between {self.low:g} and {high:g}")
        total = sizes[self.total] if isinstance(self.total, str) else self.total
        if total and not np.isclose((value**self.power).sum(axis=-1), total, rtol=1e-6).all():
            reject(field, f"{'must' if self.power == 1 else 'squared must'} add up to {total}")


def reals(*shape: int | str, low: float = -LARGEST, high: float = LARGEST, optional: bool = False) -> NumericArray:
    """Declare an array of real numbers."""
    return NumericArray(shape, low=low, high=high, optional=optional)


def integers(*shape: int | str, low: int = 0, below: str = "") -> NumericArray:
    """Declare an array of integers, from `low` to one less than the size named `below`."""
    return NumericArray(shape, ("int64",), low, MOST, below)


TEXT = Plain((str,))
BOOL = Plain((bool,))
NUMBER = Plain((int, float))
POSITIVE = Plain((int, float), low=1 / LARGEST)
COUNT = Plain((int,), low=1, high=MOST)
LABEL = Plain((str, bool, int, float))
SIZE = Plain((int,), 1, MOST, size="all")
