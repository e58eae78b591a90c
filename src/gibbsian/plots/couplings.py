"""Couplings as a network and as a matrix."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.plots.canvas import NEGATIVE, POSITIVE, SIGNED, axes, largest, legend_below, plain, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gibbsian.graphs import Graph

LABEL_WIDTH = 16
ALL_NODES_UP_TO = 40  # beyond, a circle of labels cannot be read


def network(machine: Any, ax: Axes | None = None, n_strongest: int | None = 30) -> Axes:
    """Draw the strongest couplings as a network: colour by sign, width by size.

    Nodes stand on a circle, in an order that keeps strongly coupled ones close, so that no label hides another.

    Parameters
    ----------
    machine : BoltzmannMachine
        A fitted machine.
    ax : Axes, optional
        Where to draw.
    n_strongest : int or None
        How many couplings to draw; None for all.

    Examples
    --------
    >>> import gibbsian as gb
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> ax = gb.plots.network(bm)
    >>> [text.get_text() for text in ax.texts]
    ['x0', 'x1']
    """
    require(machine, "strongest_couplings", "BoltzmannMachine")
    ax = axes(ax, (10.0, 8.8))
    drawn = machine.strongest_couplings(n_strongest)
    drawn = drawn[drawn["coupling"] != 0]
    place = _circle(machine, drawn)
    limit = largest(drawn["coupling"].to_numpy())
    for first, second, coupling in drawn.iloc[::-1].itertuples(index=False):  # the strongest on top
        (x0, y0), (x1, y1) = place[first], place[second]
        ax.plot(
            [x0, x1],
            [y0, y1],
            color=NEGATIVE if coupling < 0 else POSITIVE,
            linewidth=_edge_width(abs(coupling) / limit),
            alpha=0.85,
            solid_capstyle="round",
            zorder=1 + abs(coupling) / limit,
        )
    for name, (x, y) in place.items():
        ax.plot([x], [y], "o", markersize=13, color="white", markeredgecolor="0.25", markeredgewidth=1.5, zorder=3)
        _radial_label(ax, name, x, y)
    if len(drawn):
        _edge_legend(ax, limit)
    n_edges = machine.model_.graph.n_edges
    shown = "all" if len(drawn) == n_edges else f"the {len(drawn)} strongest"
    ax.set_title(f"{shown} of {n_edges} couplings", pad=14)
    plain(ax, 1.5, 1.25)
    return ax


def heat_map(machine: Any, ax: Axes | None = None) -> Axes:
    """Draw the matrix of couplings, colours centred at zero.

    Parameters
    ----------
    machine : BoltzmannMachine
        A fitted machine.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import gibbsian as gb
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> [label.get_text() for label in gb.plots.heat_map(bm).get_yticklabels()]
    ['x0', 'x1']
    """
    require(machine, "couplings_", "BoltzmannMachine")
    couplings = machine.couplings_.to_numpy()
    n = len(couplings)
    side = float(np.clip(0.42 * n + 3.0, 4.5, 14.0))
    ax = axes(ax, (side + 1.0, side))
    limit = largest(couplings)
    ax.set_facecolor("0.9")  # shows where the graph has no edge
    shown = np.ma.array(couplings, mask=_absent(machine.model_.graph))
    picture = ax.imshow(shown, cmap=SIGNED, vmin=-limit, vmax=limit)
    step = max(1, -(-n // 60))  # more labels than that cannot be read
    ticks = range(0, n, step)
    names = [machine.names_[t] for t in ticks]
    ax.set_xticks(ticks, names, rotation=45, ha="right", rotation_mode="anchor", fontsize=8)
    ax.set_yticks(ticks, names, fontsize=8)
    ax.tick_params(length=0)
    ax.set_title("couplings")
    ax.figure.colorbar(picture, ax=ax, shrink=0.75, label="coupling")
    return ax


def _circle(machine: Any, drawn: Any) -> dict[str, tuple[float, float]]:
    """Places on a circle, strongly coupled variables side by side; of many variables only those with an edge drawn."""
    names = machine.names_
    touched = set(drawn["first"]) | set(drawn["second"])
    nodes = [i for i, name in enumerate(names) if name in touched or len(names) <= ALL_NODES_UP_TO]
    part, kept = machine.model_.graph.subgraph(nodes)
    strengths = np.zeros((len(nodes), len(nodes)))
    i, j = part.edges.T
    strengths[i, j] = strengths[j, i] = np.abs(machine.model_.couplings[kept])
    order = _seriation(strengths)
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(order)) / max(len(order), 1)
    return {names[nodes[k]]: (float(np.cos(a)), float(np.sin(a))) for k, a in zip(order, angles, strict=True)}


def _seriation(strengths: np.ndarray) -> list[int]:
    """Start at the most strongly coupled node and walk from each to the nearest one that is left."""
    left = set(range(len(strengths)))
    order: list[int] = []
    closeness = strengths.sum(axis=1)
    while left:
        node = max(sorted(left), key=lambda k: closeness[k])
        order.append(node)
        left.remove(node)
        closeness = strengths[node]
    return order


def _radial_label(ax: Axes, name: str, x: float, y: float) -> None:
    """Write a name outside the circle, growing away from it."""
    sideways = "center" if abs(x) < 0.1 else "left" if x > 0 else "right"
    upright = "center" if abs(y) < 0.85 else "bottom" if y > 0 else "top"
    wrapped = "\n".join(textwrap.wrap(name, LABEL_WIDTH, break_long_words=False)) or name
    ax.text(1.09 * x, 1.09 * y, wrapped, ha=sideways, va=upright, fontsize=9, linespacing=1.0, zorder=4)


def _edge_width(strength: float) -> float:
    return 0.8 + 6.0 * strength


def _edge_legend(ax: Axes, limit: float) -> None:
    """Explain colours and widths below the circle."""
    from matplotlib.lines import Line2D

    signs = [Line2D([], [], color=c, linewidth=4, label=w) for c, w in ((POSITIVE, "positive"), (NEGATIVE, "negative"))]
    sizes = [
        Line2D([], [], color="0.4", linewidth=_edge_width(share), label=f"size {share * limit:.2g}")
        for share in (1.0, 0.5, 0.25)
    ]
    legend_below(ax, 5, handles=[*signs, *sizes])


def _absent(graph: Graph) -> np.ndarray:
    """Pairs that are no edges of the graph, the diagonal among them."""
    absent = np.ones((graph.n_nodes, graph.n_nodes), bool)
    i, j = graph.edges.T
    absent[i, j] = absent[j, i] = False
    return absent
