"""The network of a model: what interacts, how strongly, with labels that can be read."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.models.interactions import Interactions
from gibbsian.plots import layouts
from gibbsian.plots.canvas import (
    Axes,
    axes,
    colour_bar,
    counted,
    fonts_for,
    interactions_of,
    robust_limit,
    strength_colours,
    text_size,
)

if TYPE_CHECKING:
    from gibbsian.estimators.base import Estimator

LABELLED = 60  # variables that all have a label; of more those without an interaction drawn are dots
NAMED = 30  # nodes that have their names beside them, where these are short; more have numbers and a key
WRAP, MOST_LINES = 16, 3  # characters of a line beside a node, and lines
KEY_WRAP, KEY_LINES, KEY_HEIGHT = 44, 3, 560.0  # of the key: characters, lines of an entry, points of a column
FONT, LINE, RADIUS, DOT = 8.5, 10.5, 10.0, 5.0  # points
FILLS = ("white", "#fbe3b5", "#cfe6f5", "#d5efe3", "#f4dcea")  # columns, then hidden layers from the lowest


def network(
    machine: Estimator | Interactions,
    *,
    ax: Axes | None = None,
    n_strongest: int | None = 40,
    least: float = 0.0,
    layout: str = "force",
) -> Axes:
    """Draw what a model has learned to interact: colour by sign and strength, width by strength.

    Columns are circles, hidden units and classes squares, interactions of three and more diamonds that are joined to
    their members. Colours end at a quantile of the strengths, so that one strong pair does not make all others pale.
    Long names, and many, are numbers with a key beside the network.

    Parameters
    ----------
    machine : fitted estimator or Interactions
        Of any kind: couplings, norms of tables, partial correlations, weights of hidden units, means of classes.
    ax : Axes, optional
        Where to draw.
    n_strongest : int or None
        How many interactions to draw at most; None for all.
    least : float
        Leave out those that are no stronger than this.
    layout : {"force", "circle"}
        Strongly coupled variables near each other, or all on a circle.

    Examples
    --------
    >>> import gibbsian as gb
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> ax = gb.plots.network(bm)
    >>> [text.get_text() for text in ax.texts]
    ['x0', 'x1']
    """
    if layout not in ("force", "circle"):
        raise ArgumentError("must be 'force' or 'circle'", argument="layout", value=layout)
    found = interactions_of(machine)
    drawn = found.strongest(n_strongest, least)
    touched = sorted({i for scope in drawn.scopes for i in scope})
    labelled = list(range(found.n_variables)) if found.n_variables <= LABELLED else touched
    place = {node: k for k, node in enumerate(labelled)}
    scopes = [tuple(place[i] for i in scope) for scope in drawn.scopes]
    labels = _labels([found.names[i] for i in labelled])
    if layout == "circle":
        nodes, middles = layouts.circle(labels.nodes, scopes, drawn.strengths, labels.fit_outside)
    else:
        nodes, middles = layouts.force(labels.boxes, scopes, drawn.strengths)
        nodes[:, 1] += labels.below / 2 if labels.beside else 0.0
    sheet = _Sheet(nodes, middles, labels, layout == "circle", found.n_variables - len(labelled))
    ax, scale = sheet.axes(ax)
    _draw_edges(ax, scale, drawn, scopes, nodes, middles)
    _draw_nodes(ax, scale, found.layers[labelled], sheet)
    _explain(ax, scale, found, drawn, sheet)
    title = "all" if len(drawn.scopes) == len(found.scopes) else f"{len(drawn.scopes):,} strongest of"
    where = (sheet.middle - sheet.left) / (sheet.right - sheet.left)
    ax.set_title(f"{title} {counted(len(found.scopes), 'interaction')}", fontsize=11 * scale, x=where)
    return ax


# -- labels -----------------------------------------------------------------------------------------------------------
class _Labels(NamedTuple):
    """What stands in or beside each node, and in the key."""

    texts: list[str]
    beside: bool
    key: list[str]
    sizes: np.ndarray  # of the texts, in points
    fonts: tuple[str, ...]

    @property
    def radius(self) -> float:
        """Half the width of a node."""
        return RADIUS if self.beside else max(RADIUS, self.sizes[:, 0].max(initial=0.0) / 2 + 3.0)

    @property
    def below(self) -> float:
        """How much a name below a node takes."""
        return float(self.sizes[:, 1].max(initial=0.0)) + 2.0

    @property
    def nodes(self) -> np.ndarray:
        """Width and height of each node alone."""
        return np.full((len(self.texts), 2), 2 * self.radius)

    @property
    def boxes(self) -> np.ndarray:
        """Width and height of each node with the name below it."""
        if not self.beside:
            return self.nodes
        return np.maximum(self.nodes, self.sizes * (1, 0)) + np.array([0.0, self.below])

    def outside(self, nodes: np.ndarray) -> np.ndarray:
        """Middles of names that stand outside a circle of nodes."""
        radii = np.linalg.norm(nodes, axis=1, keepdims=True)
        ways = np.divide(nodes, radii, out=np.zeros_like(nodes), where=radii > 0)
        return nodes + ways * (RADIUS + 3.0) + np.clip(3 * ways, -1.0, 1.0) * self.sizes / 2

    def fit_outside(self, nodes: np.ndarray) -> bool:
        """Say whether names outside a circle of nodes leave each other and all nodes alone."""
        if not self.beside:
            return True
        middles = np.concatenate([self.outside(nodes), nodes])
        sizes = np.concatenate([self.sizes + 2.0, self.nodes])
        clash = (np.abs(middles[:, None] - middles[None]) < (sizes[:, None] + sizes[None]) / 2).all(axis=2)
        own = np.eye(len(nodes), dtype=bool)  # a name may touch its own node
        return not (clash[: len(nodes)] & ~np.hstack([own, own])).any()


def _labels(names: list[str]) -> _Labels:
    """Choose names in the nodes, beside them, or numbers with a key."""
    fonts = fonts_for(names)
    plain = np.array([text_size(name, FONT, fonts) for name in names]).reshape(-1, 2)
    if plain[:, 0].max(initial=0.0) <= 2.4 * RADIUS:
        return _Labels(names, False, [], plain, fonts)
    wrapped = [wrap(name, WRAP) for name in names]
    if len(names) <= NAMED and max(map(len, wrapped)) <= MOST_LINES:
        texts = ["\n".join(lines) for lines in wrapped]
        widths = [max(text_size(line, FONT, fonts)[0] for line in lines) for lines in wrapped]
        heights = [LINE * len(lines) for lines in wrapped]
        return _Labels(texts, True, [], np.column_stack([widths, heights]), fonts)
    numbers = [str(k + 1) for k in range(len(names))]
    sizes = np.array([text_size(number, FONT, fonts) for number in numbers])
    return _Labels(numbers, False, names, sizes, fonts)


def wrap(name: str, width: int, most: int | None = None) -> list[str]:
    """Return a name as lines, cut with an ellipsis where they are too many; wide letters count twice."""
    import unicodedata

    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in name) > len(name) / 2
    cut: dict[str, Any] = {} if most is None else {"max_lines": most, "placeholder": "\N{HORIZONTAL ELLIPSIS}"}
    return textwrap.wrap(name, width // 2 if wide else width, **cut) or [name]


# -- drawing ----------------------------------------------------------------------------------------------------------
class _Sheet:
    """Where everything stands, in points: the network, below it dots, caption and colours, beside it the key."""

    def __init__(self, nodes: np.ndarray, middles: np.ndarray, labels: _Labels, round_: bool, n_dots: int) -> None:
        self.nodes, self.labels = nodes, labels
        self.texts = labels.outside(nodes) if round_ and labels.beside else nodes
        if labels.beside and not round_:
            self.texts = nodes - np.column_stack([np.zeros(len(nodes)), RADIUS + 2.0 + labels.sizes[:, 1] / 2])
        halves = labels.sizes / 2 if labels.beside else labels.radius
        around = (nodes - labels.radius, nodes + labels.radius, self.texts - halves, self.texts + halves, middles)
        corners = np.concatenate(around) if len(nodes) else np.zeros((1, 2))
        (left, bottom), (right, self.top) = corners.min(axis=0) - 8, corners.max(axis=0) + 8
        self.middle = (left + right) / 2
        self.left, self.right = min(left, self.middle - 170), max(right, self.middle + 170)
        per_row = int((self.right - self.left) // (2 * DOT))
        rows, columns = np.divmod(np.arange(n_dots), max(per_row, 1))
        self.dots = np.column_stack([self.left + DOT + 2 * DOT * columns, bottom - DOT - 2 * DOT * rows])
        self.caption = float(self.dots[:, 1].min(initial=bottom)) - 14
        self.bar = self.caption - 26
        self.bottom = self.bar - 34
        self.key: list[tuple[float, float, str, str]] = []
        self._lay_out_key()

    def _lay_out_key(self) -> None:
        """Put the key into columns beside the network, each as high as it, and make room for them."""
        entries = ["\n".join(wrap(name, KEY_WRAP, KEY_LINES)) for name in self.labels.key]
        height = max(KEY_HEIGHT, self.top - self.bottom)
        x, y, widest = self.right + 16, self.top, 0.0
        for number, entry in zip(self.labels.texts, entries, strict=False):
            lines = entry.split("\n")
            if y - LINE * len(lines) < self.top - height:
                x, y, widest = x + widest + 34, self.top, 0.0
            self.key.append((x, y, number, entry))
            y -= LINE * len(lines) + 2.5
            self.bottom = min(self.bottom, y - 4)
            widest = max(widest, *(text_size(line, FONT, self.labels.fonts)[0] for line in lines))
            self.right = max(self.right, x + widest + 30)

    def axes(self, ax: Axes | None) -> tuple[Axes, float]:
        """Return axes of this size, in which a point is a point, or given ones and by how much it is smaller there."""
        wide, high = self.right - self.left, self.top - self.bottom
        if ax is None:
            ax = axes(None, (wide / 72, (high + 24) / 72), layout="none")
            ax.set_position((0.0, 0.0, 1.0, high / (high + 24)))
        box = ax.get_window_extent()
        scale = min(box.width / wide, box.height / high) * 72 / ax.figure.dpi
        ax.set(xlim=(self.left, self.right), ylim=(self.bottom, self.top), aspect="equal")
        ax.set_axis_off()
        return ax, scale


def _draw_edges(
    ax: Axes, scale: float, drawn: Interactions, scopes: list[tuple[int, ...]], nodes: np.ndarray, middles: np.ndarray
) -> None:
    """Draw pairs as lines and larger sets as stars around a diamond, the strongest on top."""
    from matplotlib.collections import LineCollection

    limit, colours = robust_limit(drawn.strengths, 0.95), strength_colours(drawn.signed)
    for k in reversed(range(len(scopes))):
        share = min(abs(drawn.strengths[k]) / limit, 1.0)
        ends = nodes[list(scopes[k])]
        lines = [ends] if len(ends) == 2 else [np.array([middles[k], end]) for end in ends]
        tint = colours(0.5 + 0.5 * np.sign(drawn.strengths[k]) * share if drawn.signed else share)
        width = scale * (0.8 + 4.5 * share) * (1.0 if len(ends) == 2 else 0.6)
        ax.add_collection(LineCollection(lines, colors=[tint], linewidths=width, capstyle="round", zorder=1 + share))
        if len(ends) > 2:
            x, y = middles[k]
            look: dict[str, Any] = {"edgecolors": "0.25", "linewidths": 0.6 * scale, "zorder": 2.5}
            ax.scatter([x], [y], s=(7 * scale) ** 2, color=tint, marker="D", **look)


def _draw_nodes(ax: Axes, scale: float, layers: np.ndarray, sheet: _Sheet) -> None:
    """Draw the nodes with their labels, the variables without an interaction, and the key."""
    from matplotlib.patheffects import withStroke

    labels = sheet.labels
    halo = [withStroke(linewidth=2.5 * scale, foreground="white")] if labels.beside else []
    look: dict[str, Any] = {"family": list(labels.fonts), "fontsize": FONT * scale, "parse_math": False}
    look["linespacing"] = LINE / FONT / 1.2
    for layer in np.unique(layers).tolist():
        x, y = sheet.nodes[layers == layer].T
        size, mark = (2 * labels.radius * scale) ** 2, "o" if layer == 0 else "s"
        fill = FILLS[layer % len(FILLS)]
        ax.scatter(x, y, size, fill, marker=mark, edgecolors="0.25", linewidths=1.2 * scale, zorder=3)
    for (x, y), text in zip(sheet.texts, labels.texts, strict=True):
        ax.text(
            x,
            y,
            text,
            ha="center",
            va="center" if labels.beside else "center_baseline",
            zorder=4,
            path_effects=halo,
            **look,
        )
    ax.scatter(sheet.dots[:, 0], sheet.dots[:, 1], (0.8 * DOT * scale) ** 2, "0.75", linewidths=0)
    for x, y, number, entry in sheet.key:
        ax.text(x + 18, y, number, ha="right", va="top", color="0.45", **look)
        ax.text(x + 23, y, entry, ha="left", va="top", **look)


def _explain(ax: Axes, scale: float, found: Interactions, drawn: Interactions, sheet: _Sheet) -> None:
    """Say below the network what shapes and colours are."""
    hidden = "classes" if found.hidden.strip() == "class" else "hidden units"
    words = {
        f"squares: {hidden}": len(found.sizes) > 1,
        "diamonds: interactions of three and more": any(len(scope) > 2 for scope in drawn.scopes),
        f"dots: {counted(len(sheet.dots), 'variable')} without an interaction drawn": len(sheet.dots) > 0,
    }
    if caption := "; ".join(word for word, holds in words.items() if holds):
        ax.text(sheet.middle, sheet.caption, caption, ha="center", va="center", fontsize=FONT * scale, color="0.35")
    if len(drawn.scopes):
        inset = ax.inset_axes((sheet.middle - 120, sheet.bar, 240, 8), transform=ax.transData)
        colour_bar(ax, drawn.strengths, 0.95, drawn, inset, FONT * scale)
