"""What a file holds, declared: kinds, shapes and ranges of plain values and arrays, checked before anything is built.

Models declare their parts in these words (`parts_in_file`), and `gibbsian.storage` the rest of a file. Sizes have
names: `n` is the number of columns, and any other name is what it is where it is met first, so that all that share it
agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError

# Numbers beyond it, and positive ones below its inverse, leave no room for products and quotients of a few of them.
LARGEST = 1e150
MOST = 2**62

Sizes = dict[str, int]
PartsInFile = Mapping[str, object]


def refuse(field: str, reason: str) -> None:
    """Raise the error of a field that is not as declared."""
    raise ArgumentError(f"{field if field.isprintable() else ascii(field)} {reason}")


def agree(sizes: Sizes, name: int | str, size: int) -> bool:
    """Whether a size is the one of this name, which it becomes where there is none yet."""
    return size == (sizes.setdefault(name, size) if isinstance(name, str) else name)


@dataclass(frozen=True)
class Anything:
    """A value that is checked elsewhere."""

    optional: bool = False

    def check(self, field: str, value: Any, sizes: Sizes) -> None:
        """Take it as it is."""


@dataclass(frozen=True)
class Plain:
    """A single value of one of some types, within bounds; a whole number may be the size of something."""

    types: tuple[type, ...]
    low: float = -LARGEST
    high: float = LARGEST
    words: tuple[Any, ...] = ()
    size: str = ""
    optional: bool = False

    def check(self, field: str, value: Any, sizes: Sizes) -> None:
        """Refuse any other type, word or number."""
        if type(value) not in self.types:
            refuse(field, f"must be {' or '.join(kind.__name__ for kind in self.types)}, not {type(value).__name__}")
        if self.words and value not in self.words:
            refuse(field, f"must be one of {', '.join(map(str, self.words))}")
        if type(value) in (int, float) and not self.low <= value <= self.high:
            refuse(field, f"must lie between {self.low:g} and {self.high:g}")
        if self.size and not agree(sizes, self.size, value):
            refuse(field, f"must be {sizes[self.size]}, as other parts of the file say")


@dataclass(frozen=True)
class Listed:
    """A list, as long as its name says, of parts that are all alike."""

    each: Any
    size: str = ""
    optional: bool = False

    def check(self, field: str, value: Any, sizes: Sizes) -> None:
        """Refuse anything else, and what any of its parts refuses."""
        if type(value) is not list:
            refuse(field, f"must be list, not {type(value).__name__}")
        if self.size and not agree(sizes, self.size, len(value)):
            refuse(field, f"has {len(value)} entries, not {sizes[self.size]}")
        for place, one in enumerate(value):
            self.each.check(f"{field}[{place}]", one, sizes)


@dataclass(frozen=True)
class Record:
    """Parts by name: all that are declared, and others of one kind where that is given."""

    parts: Mapping[str, Any]
    others: Any = None
    optional: bool = False

    def check(self, field: str, value: Any, sizes: Sizes) -> None:
        """Refuse anything else, and what any of its parts refuses."""
        if type(value) is not dict:
            refuse(field, f"must be dict, not {type(value).__name__}")
        within = f"{field}." if field else ""
        for name, part in self.parts.items():
            if name in value:
                part.check(within + name, value[name], sizes)
            elif not part.optional:
                refuse(within + name, "is missing")
        for name in value.keys() - self.parts.keys():
            if self.others is None:
                refuse(within + name, "is no part of such a file")
            self.others.check(within + name, value[name], sizes)


@dataclass(frozen=True)
class Tensor:
    """An array of numbers: its shape by the names of its sizes, its bounds, and what its rows to a power add up to."""

    shape: tuple[int | str, ...] | None
    kinds: tuple[str, ...] = ("float64",)
    low: float = -LARGEST
    high: float = LARGEST
    below: str = ""
    total: int | str = 0
    power: int = 1
    bounded: bool = True
    optional: bool = False

    def check(self, field: str, value: Any, sizes: Sizes) -> None:
        """Refuse other kinds, shapes and numbers."""
        if value.dtype.name not in self.kinds:
            refuse(field, f"must hold {' or '.join(self.kinds)}, not {value.dtype}")
        shape = value.shape if self.shape is None else self.shape
        if len(shape) != value.ndim or not all(map(agree, [sizes] * value.ndim, shape, value.shape)):
            wanted = ", ".join(str(sizes.get(str(name), name)) for name in shape)
            refuse(field, f"has shape {value.shape}, not ({wanted})")
        high = sizes[self.below] - 1 if self.below else self.high
        # as float64, since a float32 has no such bounds
        if self.bounded and not bool(((value >= np.float64(self.low)) & (value <= np.float64(high))).all()):
            refuse(field, f"holds numbers that are not between {self.low:g} and {high:g}")
        total = sizes[self.total] if isinstance(self.total, str) else self.total
        if total and not np.isclose((value**self.power).sum(axis=-1), total, rtol=1e-6).all():
            refuse(field, f"{'must' if self.power == 1 else 'squared must'} add up to {total}")


def reals(*shape: int | str, low: float = -LARGEST, high: float = LARGEST, optional: bool = False) -> Tensor:
    """Declare real numbers."""
    return Tensor(shape, low=low, high=high, optional=optional)


def wholes(*shape: int | str, low: int = 0, below: str = "") -> Tensor:
    """Declare whole numbers."""
    return Tensor(shape, ("int64",), low, MOST, below)


TEXT = Plain((str,))
TRUTH = Plain((bool,))
NUMBER = Plain((int, float))
POSITIVE = Plain((int, float), low=1 / LARGEST)
COUNT = Plain((int,), low=1, high=MOST)
LABEL = Plain((str, bool, int, float))
SIZE = Plain((int,), 1, MOST, size="all")
_SCOPES = {"indptr": wholes("ends"), "members": wholes("members", below="all")}
# What the fields of a model are in a file, by their names; else by their annotations.
_BY_NAME: dict[str, dict[str, Any]] = {
    "graph": {"edges": wholes("edges", 2, below="all")},
    "scopes": _SCOPES,
    "cliques": _SCOPES,
    "n_variables": {"n_variables": SIZE},
    "n_hidden": {"n_hidden": Plain((int,), 0, MOST, size="hidden")},
    "theta": {"theta": reals("parameters")},
}
_BY_ANNOTATION = {
    "bool": TRUTH,
    "int": Plain((int,), -MOST, MOST),
    "float": NUMBER,
    "str": TEXT,
    "float | str": Plain((int, float, str)),
    "np.ndarray": Tensor(None, ("float64", "int64")),
}


def parts_of(owner: Any) -> dict[str, Any]:
    """Return what a file holds of a model: by the names and annotations of its fields, and as it declares."""
    parts: dict[str, Any] = {}
    for field in fields(owner):
        kind = str(field.type)
        parts |= _BY_NAME.get(field.name) or ({field.name: _BY_ANNOTATION[kind]} if kind in _BY_ANNOTATION else {})
    return {**parts, **owner.parts_in_file}
