"""Short forms of results, for the end of a notebook's cell: a line of text, or a small table in HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any


def short(name: object, longest: int = 60) -> str:
    """Return a name, a long one by its beginning and its end: names of questions often begin alike."""
    whole = str(name)
    if len(whole) <= longest:
        return whole
    head = (longest - 1) // 2
    return f"{whole[:head].rstrip()}\N{HORIZONTAL ELLIPSIS}{whole[head + 1 - longest :].lstrip()}"


class Shown:
    """What says a few facts of itself instead of all it holds.

    A class gives `_facts`, or `_rows` where it is a list of such. Names and values are text: HTML in them is escaped.

    Examples
    --------
    >>> from gibbsian.display import Shown
    >>> class Walk(Shown):
    ...     def _facts(self):
    ...         return {"pace": 1.23456, "to": "<b>", "through": None}
    >>> Walk()
    Walk(pace=1.235, to='<b>')
    >>> "&lt;b&gt;" in Walk()._repr_html_()
    True
    """

    def _facts(self) -> Mapping[str, object]:
        """Return what there is to say, by name; None is left out."""
        raise NotImplementedError

    def _rows(self) -> Sequence[Mapping[str, object]] | None:
        """Return the facts of each part, where it is a list of them."""
        return None

    def __repr__(self) -> str:
        rows = self._rows()
        if rows is not None:
            return f"{type(self).__name__}([\n" + "".join(f"  {_inline(row)},\n" for row in rows) + "])"
        return f"{type(self).__name__}({_inline(self._facts())})"

    def _repr_html_(self) -> str:
        rows = self._rows()
        if rows is None:
            return facts_in_html(type(self).__name__, self._facts())
        head = "".join(f"<th>{escape(name)}</th>" for name in (rows[0] if rows else ()))
        cells = ("".join(f"<td>{escape(worded(value))}</td>" for value in row.values()) for row in rows)
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def facts_in_html(title: str, facts: Mapping[str, object]) -> str:
    """Return a title and a table of one fact a line."""
    said = {name: worded(value) for name, value in facts.items() if value is not None}
    lines = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in said.items())
    return f"<table><caption>{escape(title)}</caption>{''.join(lines)}</table>"


def worded(value: object) -> str:
    """Return a value as a reader wants it: four digits of a number, nothing for None."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _inline(facts: Mapping[str, object]) -> str:
    said = {name: value for name, value in facts.items() if value is not None}
    return ", ".join(
        f"{name.replace(' ', '_')}={value!r}" if isinstance(value, str) else f"{name.replace(' ', '_')}={worded(value)}"
        for name, value in said.items()
    )


def plain(value: object) -> Any:
    """Return what JSON can hold: arrays and NumPy's numbers as Python's own, paths as text, NaN as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
