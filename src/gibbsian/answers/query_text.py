"""Queries as people write them: ``P(a=1, b | c=0)``, ``H(a, b | c)``, ``I(a; b | c)``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from gibbsian.errors import ArgumentError

# A piece of a query: a word in quotes (in which a backslash takes the next character as it is), a sign, a bare word.
_WORD = r"""[^\s,;|="']+(?:\s+[^\s,;|="']+)*"""
_PIECE = re.compile(rf"""\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([,;|=])|({_WORD}))""", re.S)
_WHOLE = re.compile(r"\s*([PHI])\s*\((.*)\)\s*", re.S)
# How many groups of columns, divided by semicolons, each kind of query has.
GROUPS = {"P": 1, "H": 1, "I": 2}
GRAMMAR = "write it like P(a=1, b | c=0), H(a, b | c) or I(a; b | c), names with odd characters in quotes"


@dataclass(frozen=True)
class Term:
    """A column of a query, by itself or at a value.

    Parameters
    ----------
    name : str
        The column.
    label : str, optional
        The value, in the coding of the data.
    """

    name: str
    label: str | None = None

    def __str__(self) -> str:
        return _written(self.name) + ("" if self.label is None else f"={_written(self.label)}")


@dataclass(frozen=True)
class Query:
    """What is asked of a model: probabilities ``P``, an entropy ``H`` or a mutual information ``I``.

    Parameters
    ----------
    kind : {"P", "H", "I"}
        What.
    groups : tuple of tuples of Term
        Of which columns: one group, or the two of a mutual information.
    given : tuple of Term, default=()
        What stands after the bar.

    Examples
    --------
    >>> from gibbsian.answers import Query
    >>> query = Query.parse("P(a=1, 'odd, name' | c=0)")
    >>> query.groups[0][1].name, query.given[0].label
    ('odd, name', '0')
    >>> print(query)
    P(a=1, "odd, name" | c=0)
    """

    kind: str
    groups: tuple[tuple[Term, ...], ...]
    given: tuple[Term, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a query."""
        whole = _WHOLE.fullmatch(text) if isinstance(text, str) else None
        if whole is None:
            raise _mistake(text, "is no query")
        kind, body = whole.groups()
        asked, *given = _divided(list(_pieces(body, text)), "|")
        if len(given) > 1:
            raise _mistake(text, "has two bars")
        groups = [_terms(group, text) for group in _divided(asked, ";")]
        if len(groups) != GROUPS[kind]:
            words = "takes one group of columns" if GROUPS[kind] == 1 else "takes two groups of columns, I(a; b)"
            raise _mistake(text, f"has {len(groups)}, but {kind} {words}")
        query = cls(kind, tuple(groups), _terms(given[0], text) if given else ())
        if (kind != "H" or given) and not all((*groups, *([query.given] if given else []))):
            raise _mistake(text, "names no column where there must be one")
        if kind != "P" and (valued := [term for group in groups for term in group if term.label is not None]):
            raise _mistake(text, f"asks for {kind} of the value {valued[0]}", "put values after the bar")
        return query

    def __str__(self) -> str:
        asked = "; ".join(", ".join(map(str, group)) for group in self.groups)
        return f"{self.kind}({asked}{' | ' + ', '.join(map(str, self.given)) if self.given else ''})"


def _mistake(text: object, reason: str, remedy: str = GRAMMAR) -> ArgumentError:
    return ArgumentError(reason, remedy, argument="query", value=text)


def _pieces(body: str, text: str) -> Iterator[tuple[bool, str]]:
    """Cut a query into words and signs; say of each whether it is a sign."""
    place = 0
    body = body.rstrip()
    while place < len(body):
        found = _PIECE.match(body, place)
        if found is None:
            raise _mistake(text, f"has an open quote at {body[place:].strip()!r}")
        double, single, sign, bare = found.groups()
        quoted = double if double is not None else single
        yield sign is not None, sign or bare or re.sub(r"\\(.)", r"\1", quoted or "", flags=re.S)
        place = found.end()


def _divided(pieces: list[tuple[bool, str]], sign: str) -> list[list[tuple[bool, str]]]:
    """Divide pieces at a sign."""
    parts: list[list[tuple[bool, str]]] = [[]]
    for piece in pieces:
        if piece == (True, sign):
            parts.append([])
        else:
            parts[-1].append(piece)
    return parts


def _terms(pieces: list[tuple[bool, str]], text: str) -> tuple[Term, ...]:
    """Read columns and their values, divided by commas."""
    if not pieces:
        return ()
    return tuple(_term(part, text) for part in _divided(pieces, ","))


def _term(pieces: list[tuple[bool, str]], text: str) -> Term:
    signs = "".join(word if is_sign else "w" for is_sign, word in pieces)
    if signs not in ("w", "w=w"):
        raise _mistake(text, f"holds {' '.join(word for _, word in pieces)!r} where a column must stand")
    return Term(pieces[0][1], pieces[2][1] if len(pieces) > 1 else None)


def _written(word: str) -> str:
    """Write a name or a label so that it is read as one word."""
    return word if re.fullmatch(_WORD, word) else '"' + re.sub(r'(["\\])', r"\\\1", word) + '"'
