"""Pictures of a fitted machine: its network, its couplings, its moments, its fit.

Each function draws on the `Axes` it is given, or on a figure of its own, and returns the `Axes`. Figures are made
without pyplot, so there is no global state and no window: in a notebook the figure (``ax.figure``) shows itself, and
`save_figure` writes it to a file.
"""

from __future__ import annotations

import io
import os
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.diagnostics import data_moments
from gibbsian.storage import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gibbsian.estimators import BoltzmannMachine
    from gibbsian.learners import FitResult

COLOURS = "RdBu_r"  # red binds, blue repels, white is zero
POSITIVE, NEGATIVE = "#b2182b", "#2166ac"  # the same red and blue
LABEL_WIDTH = 16
ALL_NODES_UP_TO = 40  # beyond, a circle of labels cannot be read


def network(machine: BoltzmannMachine, ax: Axes | None = None, n_strongest: int | None = 30) -> Axes:
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
    ax = _axes(ax, (10.0, 8.8))
    drawn = machine.strongest_couplings(n_strongest)
    drawn = drawn[drawn["coupling"] != 0]
    place = _circle(machine, drawn)
    limit = max(float(drawn["coupling"].abs().max()), 1e-12) if len(drawn) else 1.0
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
    shown = "all" if len(drawn) == machine.model_.graph.n_edges else f"the {len(drawn)} strongest"
    ax.set_title(f"{shown} of {machine.model_.graph.n_edges} couplings", pad=14)
    ax.set_xlim(-1.5, 1.5)
    ax.set_ylim(-1.25, 1.25)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def heat_map(machine: BoltzmannMachine, ax: Axes | None = None) -> Axes:
    """Draw the matrix of couplings, colours centred at zero.

    Examples
    --------
    >>> import gibbsian as gb
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> [label.get_text() for label in gb.plots.heat_map(bm).get_yticklabels()]
    ['x0', 'x1']
    """
    couplings = machine.couplings_.to_numpy()
    n = len(couplings)
    side = float(np.clip(0.42 * n + 3.0, 4.5, 14.0))
    ax = _axes(ax, (side + 1.0, side))
    limit = float(np.abs(couplings).max(initial=0.0)) or 1.0
    absent = _absent(machine)
    ax.set_facecolor("0.9")  # shows where the graph has no edge
    picture = ax.imshow(np.ma.array(couplings, mask=absent), cmap=COLOURS, vmin=-limit, vmax=limit)
    step = max(1, -(-n // 60))  # more labels than that cannot be read
    ticks = range(0, n, step)
    names = [machine.names_[t] for t in ticks]
    ax.set_xticks(ticks, names, rotation=45, ha="right", rotation_mode="anchor", fontsize=8)
    ax.set_yticks(ticks, names, fontsize=8)
    ax.tick_params(length=0)
    ax.set_title("couplings")
    ax.figure.colorbar(picture, ax=ax, shrink=0.75, label="coupling")
    return ax


def moment_scatter(machine: BoltzmannMachine, data: Any, ax: Axes | None = None) -> Axes:
    """Draw the model's first and second moments against those of data; a perfect match lies on the line.

    The moments of the data are taken over the rows in which the cells in question are present.

    Parameters
    ----------
    machine : BoltzmannMachine
        A fitted machine.
    data : array, frame, path or Dataset
        Data in the machine's coding.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import gibbsian as gb
    >>> X = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
    >>> gb.plots.moment_scatter(gb.BoltzmannMachine().fit(X), X).get_xlabel()
    'data'
    """
    ax = _axes(ax, (6.4, 6.0))
    table = Dataset.read(data, coding=machine.coding_, declared_by="the model")
    model = machine.model_
    observed, expected = data_moments(model, table).mean, machine.expect()
    parts = (
        ("columns $E[x_i]$", slice(0, model.n_biases), "o", POSITIVE, 36),
        ("pairs $E[x_i x_j]$", slice(model.n_biases, None), "o", NEGATIVE, 14),
    )
    ax.axline((0, 0), slope=1, color="0.5", linewidth=1, zorder=0.9)
    for label, part, marker, colour, size in parts:
        if not len(observed[part]):
            continue
        if expected.stderr[part].any():
            ax.errorbar(
                observed[part], expected.mean[part], yerr=2 * expected.stderr[part], fmt="none", ecolor="0.7", zorder=1
            )
        ax.scatter(
            observed[part], expected.mean[part], size, colour, marker=marker, label=label, alpha=0.75, linewidths=0
        )
    # the root mean square tells at a glance what the eye cannot measure
    distance = float(np.sqrt(np.nanmean((observed - expected.mean) ** 2)))
    ax.set_title(f"moments: data and model (rms difference {distance:.2g})")
    ax.set_xlabel("data (over the rows where the cells are present)" if table.has_missing else "data")
    ax.set_ylabel("model")
    ax.set_aspect("equal", adjustable="datalim")
    ax.legend(loc="upper left", frameon=False)
    ax.grid(color="0.93")
    ax.set_axisbelow(True)
    return ax


def trace(result: FitResult, ax: Axes | None = None) -> Axes:
    """Draw the largest gradient entry of each step, and the value where the learner knows it.

    Examples
    --------
    >>> import gibbsian as gb
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> gb.plots.trace(bm.result_).get_xlabel()
    'step'
    """
    ax = _axes(ax, (7.0, 4.2))
    steps, norms, values = (result.trace.column(name) for name in ("step", "gradient_norm", "value"))
    ax.plot(steps, np.where(norms > 0, norms, np.nan), color=NEGATIVE, marker=".", markersize=4)
    if (norms > 0).any():
        ax.set_yscale("log")
    ax.set_xlabel("step")
    ax.set_ylabel("largest gradient entry", color=NEGATIVE)
    ax.set_title(result.reason, fontsize=10)
    ax.grid(color="0.93")
    if np.isfinite(values).any():
        other = ax.twinx()
        other.plot(steps, values, color=POSITIVE)
        other.set_ylabel("value", color=POSITIVE)
    return ax


def save_figure(ax: Axes, path: str | os.PathLike[str], dpi: int = 150) -> None:
    """Write the figure of an `Axes` to a file by its extension (.png, .svg, .pdf), whole or not at all.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "couplings.png"
    >>> gb.plots.save_figure(gb.plots.heat_map(bm), path)
    >>> path.read_bytes()[1:4]
    b'PNG'
    """
    buffer = io.BytesIO()
    kind = os.path.splitext(path)[1].lstrip(".").lower() or "png"
    ax.figure.canvas.figure.savefig(buffer, format=kind, dpi=dpi, bbox_inches="tight")
    write_atomically(path, buffer.getvalue())


# -- parts ------------------------------------------------------------------------------------------------------------
def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def _circle(machine: BoltzmannMachine, drawn: Any) -> dict[str, tuple[float, float]]:
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
    ax.text(1.09 * x, 1.09 * y, _wrapped(name), ha=sideways, va=upright, fontsize=9, linespacing=1.0, zorder=4)


def _wrapped(name: str) -> str:
    return "\n".join(textwrap.wrap(name, LABEL_WIDTH, break_long_words=False)) or name


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
    ax.legend(handles=[*signs, *sizes], loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=5, frameon=False)


def _absent(machine: BoltzmannMachine) -> np.ndarray:
    """Pairs that are no edges of the graph, the diagonal among them."""
    graph = machine.model_.graph
    absent = np.ones((graph.n_nodes, graph.n_nodes), bool)
    i, j = graph.edges.T
    absent[i, j] = absent[j, i] = False
    return absent
