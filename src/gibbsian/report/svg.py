"""Pictures of a report as inline SVG: charts of points and lines, heat maps, and the colours of both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gibbsian.display import short
from gibbsian.report.html import Markup, number, tag

# Distinguishable also without colour vision (Okabe and Ito), on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
NEGATIVE, POSITIVE = COLOURS[:2]
WIDTH, HEIGHT, LEFT, BOTTOM, MARGIN, LEGEND = 620, 380, 70, 48, 14, 22
# A letter's width, and how long a name beside a heat map may be.
LETTER, LONGEST = 6.9, 24


def picture(width: float, height: float, title: str, kind: str, *children: object) -> Markup:
    """Return a drawing with its title, which readers of screens say."""
    size, style = f"0 0 {width:g} {height:g}", f"max-width:{width:g}px"
    return tag("svg", tag("title", title), *children, viewBox=size, role="img", style=style, class_=kind)


def figure(drawing: Markup, caption: object) -> Markup:
    """Return a picture with the sentence below it."""
    return tag("figure", drawing, tag("figcaption", caption))


def words(x: float, y: float, content: object, anchor: str = "middle", **attributes: object) -> Markup:
    """Return text at a place."""
    return tag("text", content, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, **attributes)


def line(start: tuple[float, float], end: tuple[float, float], kind: str) -> Markup:
    """Return a straight line."""
    (x1, y1), (x2, y2) = start, end
    return tag("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=kind)


def box(x: float, y: float, side: float, colour: str, *children: object) -> Markup:
    """Return a square."""
    return tag("rect", *children, x=f"{x:.1f}", y=f"{y:.1f}", width=f"{side:.1f}", height=f"{side:.1f}", fill=colour)


class Chart:
    """A plane with axes, on which points and lines are drawn.

    Parameters
    ----------
    x, y : sequence of float
        Numbers that the axes shall cover.
    labels : pair of str
        What the axes are.
    square : bool, default=False
        Whether both axes cover the same, with a line where they agree.
    """

    def __init__(
        self,
        x: Sequence[float] | np.ndarray,
        y: Sequence[float] | np.ndarray,
        labels: tuple[str, str],
        square: bool = False,
    ):
        both = np.concatenate([x, y])
        self.x, self.y = (_limits(both if square else np.asarray(values)) for values in (x, y))
        self.drawn: list[Markup] = [line(self.place(self.x[0]), self.place(self.x[1]), "same")] if square else []
        self.labels, self.after = labels, float(LEFT)

    def place(self, x: float, y: float | None = None) -> tuple[float, float]:
        """Return where a point stands in the picture."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = ((x if y is None else y) - self.y[0]) / (self.y[1] - self.y[0])
        return LEFT + across * (WIDTH - LEFT - MARGIN), HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - MARGIN - LEGEND)

    def _named(self, name: str, colour: str) -> None:
        """Add a line to the legend."""
        self.drawn += [box(self.after, 8, 10, colour), words(self.after + 15, 17, name, "start")]
        self.after += 36 + 1.05 * LETTER * len(name)

    def points(self, x: Iterable[float], y: Iterable[float], titles: Iterable[str], name: str, colour: int) -> None:
        """Draw points, each with what it says when it is pointed at."""
        self._named(name, COLOURS[colour])
        for (cx, cy), title in zip(map(self.place, x, y), titles, strict=True):
            said, ink = tag("title", title), COLOURS[colour]
            self.drawn.append(tag("circle", said, cx=f"{cx:.1f}", cy=f"{cy:.1f}", r=3.5, fill=ink, fill_opacity=0.55))

    def line(self, x: Iterable[float], y: Iterable[float], name: str, colour: int) -> None:
        """Draw a line through points."""
        self._named(name, COLOURS[colour])
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in map(self.place, x, y))
        self.drawn.append(tag("polyline", points=path, fill="none", stroke=COLOURS[colour], stroke_width=2))

    def svg(self, title: str) -> Markup:
        """Return the picture."""
        (left, bottom), (right, top) = self.place(self.x[0], self.y[0]), self.place(self.x[1], self.y[1])
        turned = f"translate(14 {HEIGHT / 2}) rotate(-90)"
        axes = [words((left + right) / 2, HEIGHT - 8, self.labels[0]), words(0, 0, self.labels[1], transform=turned)]
        for tick in _ticks(*self.x):
            x, _ = self.place(tick, self.y[0])
            axes += [line((x, bottom), (x, top), "grid"), words(x, bottom + 16, f"{tick:,.6g}")]
        for tick in _ticks(*self.y):
            _, y = self.place(self.x[0], tick)
            axes += [line((left, y), (right, y), "grid"), words(left - 6, y + 4, f"{tick:,.6g}", "end")]
        return picture(WIDTH, HEIGHT, title, "chart", *axes, *self.drawn)


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Return ends that leave a little room around finite numbers."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    room = 0.04 * (high - low) or max(abs(low), 1.0) * 0.1
    return low - room, high + room


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers between two ends."""
    raw = (high - low) / 5
    size = 10.0 ** np.floor(np.log10(raw))
    step = size * next(factor for factor in (1, 2, 5, 10) if factor * size >= raw)
    return [float(round(k * step, 12)) for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def shade(value: float, largest: float) -> str:
    """Return a colour between white at zero and those of the two signs at the largest size."""
    share = min(1.0, abs(value) / largest) if largest > 0 else 0.0
    end = POSITIVE if value > 0 else NEGATIVE
    return "#" + "".join(f"{round(255 + share * (int(end[k : k + 2], 16) - 255)):02x}" for k in (1, 3, 5))


def heat_map(title: str, rows: Sequence[str], values: np.ndarray, columns: Sequence[str] | None = None) -> Markup:
    """Return coloured cells of a matrix; below the diagonal where rows and columns are the same."""
    across = rows[:-1] if columns is None else columns
    side = float(np.clip(620 / len(across), 9, 34))
    deep = 0.7 * LETTER * max(len(short(name, LONGEST)) for name in across)  # of names at an angle
    left = 8 + max(deep, LETTER * max(len(short(name, LONGEST)) for name in rows))
    largest, font = float(np.abs(values).max(initial=0.0)), f"{min(12, side * 0.8):.0f}"
    cells, foot = [], len(rows) * side + 6
    for i, name in enumerate(rows):
        cells.append(words(left - 5, (i + 0.72) * side, short(name, LONGEST), "end", font_size=font))
        for j, other in enumerate(across[:i] if columns is None else across):
            said = tag("title", f"{name}, {other}: {number(float(values[i, j]))}")
            cells.append(box(left + j * side, i * side, side - 1, shade(values[i, j], largest), said))
    for j, name in enumerate(across):
        turned = f"translate({left + (j + 0.6) * side:.1f} {foot:.1f}) rotate(-45)"
        cells.append(words(0, 0, short(name, LONGEST), "end", transform=turned, font_size=font))
    depth = foot + 10 + deep
    for k, step in enumerate(np.linspace(-largest, largest, 11)):
        cells.append(box(left + 20 * k, depth, 20, shade(step, largest)))
        if k % 5 == 0:
            cells.append(words(left + 20 * k + 10, depth + 34, number(float(step))))
    return picture(left + max(len(across) * side, 240), depth + 40, title, "heat", *cells)
