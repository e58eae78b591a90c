"""Pieces of a page: whatever is not markup already is text, so that no name of a column can be more than that."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from gibbsian.display import short

if TYPE_CHECKING:
    import pandas

# Joiners, which scripts and emoji need, are kept among the characters that do not print.
JOINERS = "\u200c\u200d"


class Markup(str):
    """Text that is markup already."""


def text(value: object) -> Markup:
    """Return a value as text of a page, characters that steer what stands around them written as their escapes."""
    if isinstance(value, Markup):
        return value
    shown = "".join(c if c.isprintable() or c in JOINERS else c.encode("unicode_escape").decode() for c in str(value))
    return Markup(escape(shown))


def tag(element: str, *children: object, **attributes: object) -> Markup:
    """Return an element; ``class_`` stands for class, ``data_x`` for data-x, attributes of None are left out."""
    given = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items() if value is not None}
    listed = "".join(f' {name}="{text(value)}"' for name, value in given.items())
    return Markup(f"<{element}{listed}>{join(children)}</{element}>")


def join(pieces: Iterable[object], between: str = "") -> Markup:
    """Return pieces one after the other."""
    return Markup(text(between).join(map(text, pieces)))


def phrase(template: str, **parts: object) -> Markup:
    """Return a template with its ``$names`` filled in; what is filled in is text unless it is markup."""
    return Markup(Template(template).substitute({name: text(part) for name, part in parts.items()}))


def template(name: str) -> Markup:
    """Return a file of this package."""
    return Markup(files("gibbsian.report").joinpath(name).read_text(encoding="utf-8"))


def sentence(words: str) -> str:
    """Return words as a sentence: with a capital letter and a full stop; nothing stays nothing."""
    return f"{words[:1].upper()}{words[1:]}{'' if words[-1:] in ('', '.') else '.'}"


def label(name: object) -> Markup:
    """Return a name of the user's that keeps its direction to itself; where it is long the whole of it is a title."""
    whole, shown = str(name), short(name)
    return tag("bdi", shown, title=whole if shown != whole else None)


def number(value: float | None) -> str:
    """Return a number as people read it; a dash where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "\u2013"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if abs(value) < 1e3 else f"{value:,.0f}"


def paragraph(*pieces: object) -> Markup:
    """Return a paragraph."""
    return tag("p", *pieces)


def listed(items: Iterable[object], ordered: bool = False) -> Markup:
    """Return a list."""
    return tag("ol" if ordered else "ul", *(tag("li", item) for item in items))


def facts(pairs: Mapping[str, object]) -> Markup:
    """Return names with what they are, without those that are empty."""
    return tag("dl", *(join([tag("dt", name), tag("dd", value)]) for name, value in pairs.items() if value))


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table; numbers stand to the right, and so do the titles of columns of numbers."""
    cells = [[_plain(cell) for cell in row] for row in rows]
    numeric = [all(_is_number(row[k]) for row in cells) for k in range(len(columns))]
    kinds = ["number" if right else None for right in numeric]
    head = tag("tr", *(tag("th", title, scope="col", class_=kind) for title, kind in zip(columns, kinds, strict=True)))
    body = (
        tag("tr", *(tag("td", _cell(cell), class_=kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in cells
    )
    whole = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def frame(caption: str, found: pandas.DataFrame | pandas.Series) -> Markup:
    """Return a table of pandas; a column beside its index is a table too."""
    flat = found.rename_axis("column").reset_index() if found.ndim == 1 else found
    return table(caption, [str(column) for column in flat.columns], flat.itertuples(index=False, name=None))


def _plain(value: object) -> object:
    """Return NumPy's numbers as Python's own."""
    return value.item() if isinstance(value, np.generic | np.ndarray) else value


def _is_number(value: object) -> TypeGuard[float | None]:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: object) -> Markup | str:
    if isinstance(value, Markup):
        return value
    if isinstance(value, tuple):
        return join([label(part) for part in value], ", ")
    return number(value) if _is_number(value) else label(value)


def details(summary: str, *children: object, few: bool = False) -> Markup:
    """Return what opens when its summary is chosen, and is open where there are few lines."""
    return tag("details", tag("summary", summary), *children, open="open" if few else None)
