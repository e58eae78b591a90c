"""Settings, declared once beside the class that has them: type, range, default and help.

From a declaration come the check before a fit, the default in the docstring, and the flag of the command line with its
help. A class that declares settings is a dataclass; scikit-learn's ``get_params`` reads its signature as usual.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, dataclass_transform

import numpy as np

from gibbsian.errors import ArgumentError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Beyond these a square, or an index, is no number of the machine.
LARGEST, LARGEST_WHOLE = 1e100, 2**53


@dataclasses.dataclass(frozen=True)
class Setting:
    """What one setting may be.

    Parameters
    ----------
    help : str
        What it does, in a sentence or two.
    kind : {"number", "whole", "choice", "flag", "any"}
        What its values are.
    low, high : float
        The least and the largest value.
    open_low, open_high : bool
        Whether the bounds themselves are left out.
    words : tuple
        Values besides numbers, or all values of a choice.
    optional : bool
        Whether None may stand for "left open".
    doc : str
        The type, as the docstring writes it; made from the rest where it is empty.
    flag : bool
        Whether the command line has a flag for it.

    Examples
    --------
    >>> from gibbsian.settings import Setting
    >>> Setting("Most steps.", "whole", low=1).refusal(0)
    'must be at least 1'
    """

    help: str
    kind: str = "any"
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    words: tuple[object, ...] = ()
    optional: bool = False
    doc: str = ""
    flag: bool = True

    def refusal(self, value: object) -> str:
        """Say what a value must be; the empty string where it is."""
        if value is getattr(sys.modules.get("pandas"), "NA", self):  # which answers no comparison
            return "is missing"
        if self.kind == "any" or (value is None and self.optional):
            return ""
        plain = as_plain(value)
        if any(type(plain) is type(word) and plain == word for word in self.words):
            return ""
        if self.kind == "choice":
            return f"is not known: use one of {', '.join(map(str, self.words))}"
        if self.kind == "flag":
            return "" if isinstance(plain, bool) else "must be True or False"
        return self._refused_number(plain)

    def _refused_number(self, value: object) -> str:
        whole = self.kind == "whole"
        number = _finite(value)
        if number is None or not isinstance(value, Integral if whole else Real):
            kind = "a whole number" if whole else "a finite number" if isinstance(value, Real) else "a number"
            return " or ".join([f"must be {kind}", *(repr(word) for word in self.words)])
        if (number > self.low if self.open_low else number >= self.low) and (
            number < self.high if self.open_high else number <= self.high
        ):
            return self._out_of_reach(number)
        return f"must be {self.range}"

    def _out_of_reach(self, number: float) -> str:
        """Say of a number that may be, but not be computed with, on which side it is."""
        if abs(number) > (LARGEST_WHOLE if self.kind == "whole" else LARGEST):
            return "is too large to compute with"
        positive = self.open_low and self.low == 0
        return "is too small to compute with" if positive and number < 1 / LARGEST else ""

    @property
    def range(self) -> str:
        """The bounds in words."""
        low = f"above {self.low:g}" if self.open_low else f"at least {self.low:g}"
        high = f"below {self.high:g}" if self.open_high else f"at most {self.high:g}"
        if math.isinf(self.high):
            return low
        return high if math.isinf(self.low) else f"{low} and {high}"

    def type_words(self) -> str:
        """Return the type as a docstring writes it."""
        if self.doc:
            return self.doc
        names = {"number": "float", "whole": "int", "flag": "bool", "any": "object", "choice": ""}
        words = ", ".join(map(repr, self.words))
        if self.kind == "choice":
            return f"{{{words}}}"
        optional = " or None" if self.optional else ""
        return names[self.kind] + (f" or {words}" if words else "") + optional


def as_plain(value: object) -> object:
    """Return a number as Python's own: narrow ones of NumPy overflow in what follows, fractions stay objects."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, int | float) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _finite(value: object) -> float | None:
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond the range of floats
        return None
    return number if math.isfinite(number) else None


# -- declarations -----------------------------------------------------------------------------------------------------
def number(
    default: object,
    help: str,
    *,
    least: float = -math.inf,
    above: float | None = None,
    most: float = math.inf,
    below: float | None = None,
    words: tuple[object, ...] = (),
    optional: bool = False,
    flag: bool = True,
    doc: str = "",
) -> Any:
    """Declare a number, from `least` or `above` to `most` or `below`, or one of some words.

    Examples
    --------
    >>> from gibbsian.settings import check, declared, number
    >>> @declared
    ... class Walk:
    ...     pace: float = number(1.0, "Steps a second.", above=0)
    >>> check(Walk(pace=0.0))
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: pace=0.0 must be above 0
    """
    setting = Setting(
        help,
        "number",
        low=least if above is None else above,
        high=most if below is None else below,
        open_low=above is not None,
        open_high=below is not None,
        words=words,
        optional=optional,
        flag=flag,
        doc=doc,
    )
    return _field(default, setting)


def whole(
    default: object,
    help: str,
    *,
    least: float = 0,
    words: tuple[object, ...] = (),
    optional: bool = False,
    flag: bool = True,
) -> Any:
    """Declare a whole number, `least` or more.

    Examples
    --------
    >>> from gibbsian.settings import declared, settings_of, whole
    >>> @declared
    ... class Walk:
    ...     steps: int = whole(10, "How many.", least=1)
    >>> settings_of(Walk)["steps"].range
    'at least 1'
    """
    setting = Setting(help, "whole", low=least, words=words, optional=optional, flag=flag)
    return _field(default, setting)


def choice(default: object, help: str, *words: object, flag: bool = True) -> Any:
    """Declare one of a few values.

    Examples
    --------
    >>> from gibbsian.settings import choice, declared
    >>> @declared
    ... class Walk:
    ...     way: str = choice("up", "Where to.", "up", "down")
    >>> Walk().way
    'up'
    """
    return _field(default, Setting(help, "choice", words=words, flag=flag))


def flag(default: bool, help: str) -> Any:
    """Declare True or False.

    Examples
    --------
    >>> from gibbsian.settings import declared, flag
    >>> @declared
    ... class Walk:
    ...     back: bool = flag(False, "Whether to come back.")
    >>> Walk().back
    False
    """
    return _field(default, Setting(help, "flag"))


def free(default: object, help: str, *, doc: str = "object", flag: bool = True) -> Any:
    """Declare what the class itself checks, `doc` says what it may be.

    Examples
    --------
    >>> from gibbsian.settings import declared, free
    >>> @declared
    ... class Walk:
    ...     map: object = free(None, "Where one walks.", doc="Map, optional")
    >>> "map : Map, optional, default=None" in Walk.__doc__
    True
    """
    return _field(default, Setting(help, "any", doc=doc, flag=flag))


def positional(*, default: dataclasses.Field[object], kw_only: Literal[False]) -> Any:
    """Declare that a setting may also be given by its place; type checkers read both names where it is declared.

    Examples
    --------
    >>> from gibbsian.settings import declared, positional, whole
    >>> @declared
    ... class Walk:
    ...     steps: int = positional(kw_only=False, default=whole(10, "How many.", least=1))
    >>> Walk(3).steps
    3
    """
    default.kw_only = kw_only
    return default


def _field(default: object, setting: Setting) -> Any:
    metadata = {"setting": setting}
    if isinstance(default, list | dict | set):
        raise TypeError("a default must not change: give a tuple or None")
    return dataclasses.field(default=default, metadata=metadata, kw_only=True)


# to type checkers any other right side is a default
@dataclass_transform(kw_only_default=True, field_specifiers=(positional,))
def declared(cls: type | None = None, *, frozen: bool = False) -> Any:
    """Make a class that declares settings a dataclass and write them into its docstring.

    Examples
    --------
    >>> from gibbsian.settings import declared, number
    >>> @declared
    ... class Walk:
    ...     '''A walk.'''
    ...     pace: float = number(1.0, "Steps a second.", above=0)
    >>> print(Walk.__doc__)
    A walk.
    <BLANKLINE>
    Parameters
    ----------
    pace : float, default=1.0
        Steps a second.
    """
    if cls is None:
        return lambda found: declared(found, frozen=frozen)
    made: type[DataclassInstance] = dataclasses.dataclass(eq=frozen, repr=frozen, frozen=frozen)(cls)
    made.__doc__ = _documented(made)
    return made


def _documented(cls: type[DataclassInstance]) -> str:
    """The docstring with a section of parameters after its first part."""
    text = textwrap.dedent("    " + (cls.__dict__.get("__doc__") or "")).strip()
    if text.startswith(f"{cls.__name__}("):  # what dataclasses write where nothing stands
        text = ""
    lines = ["Parameters", "----------"]
    for name, setting in settings_of(cls).items():
        default = next(part.default for part in dataclasses.fields(cls) if part.name == name)
        lines.append(f"{name} : {setting.type_words()}, default={default!r}")
        lines += textwrap.wrap(setting.help, 112, initial_indent="    ", subsequent_indent="    ")
    place = min(text.find(f"\n{title}\n") % (len(text) + 1) for title in ("Attributes", "Examples"))
    parts = [text[:place].strip(), "\n".join(lines) if len(lines) > 2 else "", text[place:].strip()]
    return "\n\n".join(part for part in parts if part)


# -- use --------------------------------------------------------------------------------------------------------------
def settings_of(owner: object) -> dict[str, Setting]:
    """Return the declared settings of a class or object by name.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.settings import declared, settings_of, whole
    >>> @declared
    ... class Walk:
    ...     steps: int = whole(10, "How many.", least=1)
    >>> list(settings_of(Walk))
    ['steps']
    """
    return dict(_settings_of_class(owner if isinstance(owner, type) else type(owner)))


@cache
def _settings_of_class(cls: type) -> dict[str, Setting]:
    """The declared settings of a class, looked up once: every fit checks those of several."""
    if not dataclasses.is_dataclass(cls):
        return {}
    return {part.name: part.metadata["setting"] for part in dataclasses.fields(cls) if "setting" in part.metadata}


def check(owner: object) -> None:
    """Raise `ArgumentError` unless every declared setting has a value that it may have; leave numbers as Python's own.

    Examples
    --------
    >>> from gibbsian.settings import check, declared, whole
    >>> @declared
    ... class Walk:
    ...     steps: int = whole(10, "How many.", least=1)
    >>> check(Walk(steps=2.5))
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: steps=2.5 must be a whole number
    """
    for name, value, setting in _values(owner):
        if (plain := check_value(name, value, setting)) is not value:
            object.__setattr__(owner, name, plain)  # some that declare settings are frozen


def check_value(name: str, value: object, setting: Setting) -> Any:
    """Raise `ArgumentError` unless a value is one that a setting may have; return it, a number as Python's own."""
    if isinstance(value, np.ndarray) and not value.ndim:  # an array of one number, without a place, is the number
        value = value.item()
    refusal, _, remedy = setting.refusal(value).partition(": ")
    if refusal:
        raise ArgumentError(refusal, remedy, argument=name, value=value)
    plain = value if setting.kind == "any" else as_plain(value)
    if setting.kind == "number" and isinstance(plain, int) and abs(plain) > LARGEST_WHOLE:
        return float(plain)
    return plain


def check_method(method: object) -> None:
    """Raise unless a method is a name, or an object that can be bound."""
    if not isinstance(method, str) and (isinstance(method, type) or not hasattr(method, "bind")):
        raise ArgumentError(
            "must be the name of a method or an object that is one", "leave it out", argument="method", value=method
        )


def _values(owner: object) -> Iterator[tuple[str, object, Setting]]:
    for name, setting in settings_of(type(owner)).items():
        yield name, getattr(owner, name), setting


def non_defaults(owner: Any) -> dict[str, Any]:
    """Return the settings that differ from their defaults.

    Examples
    --------
    >>> from gibbsian.settings import declared, non_defaults, whole
    >>> @declared
    ... class Walk:
    ...     steps: int = whole(10, "How many.", least=1)
    >>> non_defaults(Walk(steps=3))
    {'steps': 3}
    """
    defaults = {part.name: part.default for part in dataclasses.fields(owner)}
    return {name: value for name, value, _ in _values(owner) if not _same(value, defaults[name])}


def _same(value: object, default: object) -> bool:
    """Whether a value is the default; arrays never are, and some things cannot be compared."""
    try:
        return value is default or bool(value == default)
    except (TypeError, ValueError):
        return False


def check_whole_number(name: str, value: object, least: int = 1) -> None:
    """Raise unless an argument is a whole number, large enough."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise ArgumentError("must be a whole number", argument=name, value=value)
    if value < least:
        raise ArgumentError(f"must be at least {least}", argument=name, value=value)
