"""Messages that name a remedy, and the remedy followed: what raises the message, and what is changed then.

A row says a situation as a call with keywords. Where the remedy is code (`l2=0.01`, `learner='pcd'`, `drop=['a']`)
every piece of it is put into the call as it stands in the message, one at a time, and each must arrive; where it is
words the row says itself what they mean. Rows of the command line do the same with flags.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from pydoc import locate
from typing import Any

import gibbsian
from gibbsian.data import Labels, OneHot, Threshold, Values
from gibbsian.errors import GibbsianError, GibbsianWarning, Message, spelled

SOURCE = Path(gibbsian.__file__).parent
OUT: Any = object()  # a keyword that is left out


class Later:
    """A value that is made when its row is walked."""

    def __init__(self, make: Callable[[], Any]):
        self.make = make


FLAG = re.compile(r"--[a-z][a-z0-9-]*(?: (?!or\b|and\b|out\b|to\b)[^\s,;:()]+)?")
QUOTED = re.compile(r"'([a-z0-9][a-z0-9-]*)'")
NAMES: dict[str, Any] = {"Threshold": Threshold, "Labels": Labels, "Values": Values, "OneHot": OneHot}


@dataclass(frozen=True)
class Row:
    """A situation, and how its remedy is followed.

    `then` are changes of the keywords that stand for a remedy in words; beside them the code in the message is
    followed. `says` must stand in the remedy, so that a row does not outlive its sentence. `code` names what
    placeholders in the code stand for, and `calls` what a piece of code means that is no keyword. What the remedy has
    as code, or offers by name for the argument at fault, is followed in any case as it stands there, `but` what needs
    more than this row has.
    """

    name: str
    call: Callable[..., Any]
    wrong: dict[str, Any]
    then: tuple[dict[str, Any], ...] = ()
    says: str = ""
    code: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    but: tuple[str, ...] = ()

    def follow(self) -> set[tuple[str, int]]:
        """Provoke the message and follow its remedy in every way it offers.

        Returns where the message came from, and those that it repeats.
        """
        with recorded() as places:
            message = provoked(self.call, self.wrong)
        assert message.remedy, f"{message} names no remedy"
        assert self.says in message.remedy, message.remedy
        assert not unknown(message.remedy), f"{message} names what is not there"
        ways = (*self.then, *(way for way in self.ways(message) if not self._has(way)))
        assert ways, f"nothing to follow in {message.remedy!r}"
        for way in ways:
            arrived(self.call, {**self.wrong, **way}, message)
        # others are made on the way and caught; a command's own message is the last one that the library made
        ours = [(place, made) for place, made in places if Path(place[0]).is_relative_to(SOURCE)]
        own = next((place for place, made in ours if made is message), ours[-1][0])
        said = str(message)
        return {own, *(place for place, made in ours if made.reason in said and spelled(made.remedy) in said)}

    def ways(self, message: Message) -> Iterator[dict[str, Any]]:
        """Return the changes that the code of a remedy stands for, and the values that it offers."""
        yield from self.calls.values()
        for way in in_code(message.remedy, self.code):
            if not way.keys() & set(self.but) and self._takes(way):
                yield way
        keyword = self._at_fault(message)
        for word in () if keyword is None else offered(message.remedy):
            if word not in self.but:
                yield {keyword: word}

    def _takes(self, way: dict[str, Any]) -> bool:
        """Say whether the call has the keywords of a change."""
        known = inspect.signature(self.call).parameters
        return any(part.kind is part.VAR_KEYWORD for part in known.values()) or way.keys() <= known.keys()

    def _has(self, way: dict[str, Any]) -> bool:
        """Say whether a change is what stands there already, or one that is made in any case."""
        return any(repr({name: given.get(name) for name in way}) == repr(way) for given in (self.wrong, *self.then))

    def _at_fault(self, message: Message) -> str | None:
        """Return the keyword that a message is about."""
        if message.argument in self.wrong:
            return message.argument
        return "x" if self.wrong.keys() == {"x"} else None


class Refused(GibbsianError):
    """What a command said as it failed."""


class Warned(GibbsianWarning):
    """What a command said as it arrived."""


@dataclass(frozen=True)
class Command(Row):
    """A situation on the command line: the call takes `args`, and `more` of them after it."""

    def ways(self, message: Message) -> Iterator[dict[str, Any]]:
        """Return the flags that a remedy names, each with its value; the command must have them."""
        for flag in () if self.then else FLAG.finditer(message.remedy):
            yield {"more": tuple(flag[0].split())}


def provoked(call: Callable[..., Any], keywords: dict[str, Any]) -> Message:
    """Return the error that a call ends in, or the first of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(**_made(keywords))
        except GibbsianError as error:
            return error
    said = [warning.message for warning in caught if isinstance(warning.message, GibbsianWarning)]
    assert said, "no message"
    return said[0]


def arrived(call: Callable[..., Any], keywords: dict[str, Any], message: Message) -> None:
    """Make a call that must end without an error, and without the same warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(**_made(keywords))
    again = [str(warning.message) for warning in caught if type(warning.message) is type(message)]
    assert not again, again


def _made(keywords: dict[str, Any]) -> dict[str, Any]:
    """Return keywords with their values, without those that are left out."""
    given = {name: value for name, value in keywords.items() if value is not OUT}
    return {name: value.make() if isinstance(value, Later) else value for name, value in given.items()}


def in_code(remedy: str, names: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Read the changes that the code of a remedy stands for; quoted words after it are other values of its keyword."""
    pieces = list(re.finditer("`([^`]*)`", remedy))
    for place, piece in enumerate(pieces):
        try:
            read: Any = ast.parse(f"_({piece[1]})" if "=" in piece[1] else "_()", mode="eval").body
            values = {part.arg: eval(ast.unparse(part.value), {**NAMES, **names}) for part in read.keywords}
        except (SyntaxError, NameError):
            continue
        if not values or remedy[: piece.start()].endswith(("raise ", "lower ")):  # that says what it is now
            continue
        yield values
        end = pieces[place + 1].start() if place + 1 < len(pieces) else len(remedy)
        keyword, value = next(iter(values.items()))
        if isinstance(value, str):
            yield from ({keyword: word} for word in QUOTED.findall(remedy[piece.end() : end]))


def offered(remedy: str) -> list[str]:
    """Return the values that a remedy offers by name: ``use one of a, b, c`` or ``use 'a', 'b' or 'c'``."""
    if found := re.search(r"use one of ((?:[\w/-]+, )*[\w/-]+)", remedy):
        return [word for word in found[1].split(", ") if word != "or"]
    found = re.search(r"use ((?:'[\w-]+'(?:, | or )?)+)", remedy)
    return QUOTED.findall(found[1]) if found else []


def unknown(remedy: str) -> list[str]:
    """Return the parts of the library that a remedy names in code and that are not there."""
    dotted = re.findall(r"`(?:gibbsian|gb)((?:\.\w+)+)[`(]", remedy)
    classes = re.findall(r"`([A-Z][a-z]\w+)[`(]", remedy)
    gone = [name for name in classes if not hasattr(gibbsian, name) and name not in NAMES]
    return gone + [name for name in dotted if locate(f"gibbsian{name}") is None]


# -- where messages come from -----------------------------------------------------------------------------------------
@contextmanager
def recorded() -> Iterator[list[tuple[tuple[str, int], Message]]]:
    """Note the files and lines of the library at which messages with a remedy are made."""
    places: list[tuple[tuple[str, int], Message]] = []
    made = Message.__init__

    def noting(self: Message, reason: str = "", remedy: str = "", **parts: Any) -> None:
        made(self, reason, remedy, **parts)
        frame = sys._getframe(1)
        if remedy:
            places.append(((frame.f_code.co_filename, frame.f_lineno), self))

    Message.__init__ = noting  # type: ignore[method-assign]
    try:
        yield places
    finally:
        Message.__init__ = made  # type: ignore[method-assign]


def sites() -> dict[str, list[tuple[range, str]]]:
    """Return the lines of each file of the library at which a message is given a remedy, and what is written there."""
    found: dict[str, list[tuple[range, str]]] = {}
    kinds = {kind.__name__ for kind in _all_kinds(Message)}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or getattr(node.func, "attr", getattr(node.func, "id", "")) not in kinds:
                continue
            if len(node.args) > 1 or any(part.arg == "remedy" for part in node.keywords):
                lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                found.setdefault(str(path.relative_to(SOURCE)), []).append((lines, ast.unparse(node)))
    return found


def _all_kinds(kind: type) -> Iterator[type]:
    yield kind
    for part in kind.__subclasses__():
        yield from _all_kinds(part)
