"""What each hidden unit looks at: its weights as a small picture, or the strongest of them as bars."""

from __future__ import annotations

from itertools import groupby
from math import isqrt
from typing import TYPE_CHECKING, cast

import numpy as np

from gibbsian.display import short
from gibbsian.report.html import Markup, join, number, tag
from gibbsian.report.subject import SECTIONS, Subject
from gibbsian.report.svg import LETTER, NEGATIVE, POSITIVE, figure, line, picture, shade, words

if TYPE_CHECKING:
    from gibbsian.estimators.layered import LayeredMachine

# A square number of columns from this on is an image; fewer are read better as bars with their names.
LEAST_PIXELS = 64
N_UNITS, MOST_PIXELS, N_BARS = 24, 24_000, 6
# Shades of each sign, and the size of a unit's picture.
N_SHADES, SIDE, GAP = 7, 88, 24
PANEL, ROW, LONGEST = 310, 17, 19


@SECTIONS.register("filters", place=72, title="What hidden units look at", needs="components_")
def filters(subject: Subject) -> Markup | None:
    """Return the weights of the hidden units of the lowest layer, those with the largest weights first."""
    machine = cast("LayeredMachine", subject.machine)
    weights = np.asarray(machine.components_, np.float64)
    strongest = np.argsort(-np.square(weights).sum(axis=1), kind="stable")
    width = isqrt(weights.shape[1])
    image = width * width == weights.shape[1] == len(subject.names) >= LEAST_PIXELS
    units = strongest[: int(np.clip(MOST_PIXELS // weights.shape[1], 4, N_UNITS)) if image else N_UNITS]
    largest = float(np.abs(weights[units]).max(initial=0.0))
    few = f"The {units.size} with the largest weights of {len(weights)}" if len(units) < len(weights) else "All"
    scale = f"the {'strongest colour' if image else 'longest bar'} is a weight of {number(largest)}"
    about = f"{few} hidden units: orange weights turn a unit on, blue ones off; {scale}."
    if image:
        parts = [_tile(weights[unit].reshape(width, width), largest) for unit in units]
        drawing = _side_by_side(units, parts, SIDE, SIDE + GAP, SIDE + GAP)
    else:
        names = machine.weight_names
        parts = [_bars(weights[unit], names, largest) for unit in units]
        drawing = _side_by_side(units, parts, PANEL, PANEL + GAP, ROW * min(N_BARS, len(names)) + GAP)
    return figure(drawing, about)


def _side_by_side(units: np.ndarray, parts: list[Markup], size: int, across: int, down: int) -> Markup:
    """Put the parts of units in rows, each under its number."""
    columns = max(1, (1000 + across - size) // across)
    placed = []
    for k, (unit, part) in enumerate(zip(units, parts, strict=True)):
        x, y = k % columns * across, k // columns * down
        head = words(0, 12, f"hidden unit {unit}", "start")
        placed.append(
            tag("g", tag("title", f"hidden unit {unit}"), head, part, transform=f"translate({x} {y})", class_="filter")
        )
    rows = -(-len(parts) // columns)
    return picture(min(len(parts), columns) * across, rows * down + 4, "Weights of hidden units", "filters", *placed)


def _tile(weights: np.ndarray, largest: float) -> Markup:
    """Return weights as an image; neighbours of one shade are one piece, so that pages stay small."""
    levels = np.rint(weights / (largest or 1.0) * N_SHADES).astype(int)
    drawn: dict[int, list[str]] = {}
    for y, row in enumerate(levels.tolist()):
        x = 0
        for level, cells in groupby(row):
            n = len(list(cells))
            drawn.setdefault(level, []).append(f"M{x} {y}h{n}v1h-{n}z")
            x += n
    drawn.pop(0, None)  # white
    pieces = [tag("path", d="".join(path), fill=shade(level, N_SHADES)) for level, path in sorted(drawn.items())]
    scale = f"translate(0 18) scale({SIDE / len(weights):.4g})"
    frame = tag(
        "rect", width=len(weights), height=len(weights), fill="none", stroke="#8c959f", stroke_width=len(weights) / SIDE
    )
    return tag("g", *pieces, frame, transform=scale)


def _bars(weights: np.ndarray, names: list[str], largest: float) -> Markup:
    """Return the strongest weights as bars from the middle, each with its column."""
    left, drawn = LETTER * LONGEST, []
    zero = (left + PANEL) / 2
    for k, place in enumerate(np.argsort(-np.abs(weights), kind="stable")[:N_BARS]):
        value, y = float(weights[place]), 18 + k * ROW
        length = abs(value) / (largest or 1.0) * (PANEL - zero)
        said = tag("title", f"{names[place]}: {number(value)}")
        colour, x = (POSITIVE, zero) if value > 0 else (NEGATIVE, zero - length)
        drawn.append(words(left - 5, y + 11, short(names[place], LONGEST), "end"))
        drawn.append(tag("rect", said, x=f"{x:.1f}", y=y + 1, width=f"{length:.1f}", height=ROW - 4, fill=colour))
    return join([*drawn, line((zero, 16), (zero, 16 + len(drawn) // 2 * ROW), "same")])
