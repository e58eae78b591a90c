"""The network of what interacts, which a reader can thin out, search and lay out."""

from __future__ import annotations

import numpy as np

from gibbsian.display import short
from gibbsian.models.interactions import Interactions
from gibbsian.plots import layouts
from gibbsian.report.html import Markup, join, number, paragraph, phrase, sentence, tag, template
from gibbsian.report.subject import LEVEL, SECTIONS, Subject

WIDTH, HEIGHT = 1000, 760
MOST_NODES = 300
MOST_EDGES = 1500
SHOWN_PER_NODE, MOST_SHOWN = 1.5, 150
LONGEST = 22
BOX = (110.0, 36.0)  # a node with its name
EDGE = (
    '<path class="edge$kinds" d="M$points" stroke-width="$width" data-of="$of" data-size="$size">'
    "<title>$said</title></path>"
)
NODE = (
    '<g class="node" tabindex="-1" transform="translate($force)" data-k="$k" data-name="$name" data-force="$force" '
    'data-circle="$circle" data-strong="$strong"><title>$name</title>$shape'
    '<text y="20" text-anchor="middle">$short</text></g>'
)


@SECTIONS.register("network", place=50, title="The network", claims=True, needs="interactions")
def network(subject: Subject) -> Markup | None:
    """Return the strongest interactions as a network, with what steers it."""
    found = subject.machine.interactions()
    edges = found.strongest(MOST_EDGES)
    strong = _weights(found.n_variables, edges)
    nodes = np.sort(np.argsort(-strong, kind="stable")[:MOST_NODES])
    place = {node: k for k, node in enumerate(nodes.tolist())}
    kept = [k for k, scope in enumerate(edges.scopes) if place.keys() >= set(scope)]
    if not kept:
        return paragraph("No columns interact.")
    scopes = [tuple(place[i] for i in edges.scopes[k]) for k in kept]
    shown = min(len(kept), MOST_SHOWN, max(12, round(SHOWN_PER_NODE * len(nodes))))
    at, around = _places(len(nodes), scopes[:shown], edges.strengths[kept[:shown]])
    lines = [
        _edge(subject, edges, k, at[list(scope)], scope, rank < shown)
        for rank, (k, scope) in enumerate(zip(kept, scopes, strict=True))
    ]
    dots = [_node(found, node, at[k], around[k], k, strong[node], len(nodes)) for node, k in place.items()]
    return phrase(
        template("network.html"),
        measure=found.measure,
        remarks=_remarks(subject, found, len(nodes), len(kept)),
        n_edges=len(kept),
        shown=shown,
        edges=join(reversed(lines)),  # the strongest on top
        nodes=join(dots[k] for k in np.argsort(strong[nodes], kind="stable")),
    )


def _places(n: int, scopes: list[tuple[int, ...]], strengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where nodes stand in both layouts, in the square from -1 to 1."""
    boxes = np.tile(BOX, (n, 1))
    at, _ = layouts.force(boxes, scopes, strengths)
    around, _ = layouts.circle(boxes, scopes, strengths, lambda places: True)
    at = (at - (at.max(axis=0) + at.min(axis=0)) / 2) * (1.0, -1.0)  # a page counts from its top
    reach = [np.maximum(np.abs(places).max(axis=0, initial=0.0), 1e-9) for places in (at, around)]
    return at / reach[0], 0.74 * around / reach[1]  # a circle leaves room for names


def _weights(n: int, edges: Interactions) -> np.ndarray:
    """Return the sum of the sizes of the interactions of each variable."""
    total = np.zeros(n)
    for scope, strength in zip(edges.scopes, edges.strengths, strict=True):
        total[list(scope)] += abs(strength)
    return total


def _edge(subject: Subject, edges: Interactions, k: int, at: np.ndarray, scope: tuple[int, ...], shown: bool) -> Markup:
    """Return a line, or the outline of three and more, with what it says when pointed at."""
    strength, ends = float(edges.strengths[k]), subject.interval_of(edges.scopes[k])
    names = " \u2013 ".join(short(edges.names[i]) for i in edges.scopes[k])
    sure = "" if ends is None else f" ({LEVEL:.0%} interval {number(ends[0])} to {number(ends[1])})"
    kinds = {" off": not shown, " negative": edges.signed and strength < 0, " larger": len(scope) > 2}
    return phrase(
        EDGE,
        kinds=join(kind for kind, holds in kinds.items() if holds),
        points=" L".join(map(_on_canvas, at)) + "Z" * (len(scope) > 2),
        width=f"{1 + 7 * abs(strength / edges.strengths[0]):.1f}",
        of=" ".join(map(str, scope)),
        size=f"{abs(strength):.4g}",
        said=f"{names}: {edges.measure} {number(strength)}{sure}",
    )


def _node(
    found: Interactions, i: int, at: np.ndarray, around: np.ndarray, k: int, strong: float, n_nodes: int
) -> Markup:
    """Return a node with its name, which knows where it stands in every layout."""
    r, name = min(7.0, 78 / np.sqrt(n_nodes)), found.names[i]
    shape = tag("rect", x=-r, y=-r, width=2 * r, height=2 * r) if found.layers[i] else tag("circle", r=r)
    places = {"force": _on_canvas(at), "circle": _on_canvas(around)}
    return phrase(NODE, name=name, short=short(name, LONGEST), shape=shape, k=k, strong=f"{strong:.4g}", **places)


def _on_canvas(place: np.ndarray) -> str:
    """Return where a place in the square from -1 to 1 stands in the picture."""
    return f"{WIDTH / 2 + place[0] * (WIDTH / 2 - 90):.0f} {HEIGHT / 2 + place[1] * (HEIGHT / 2 - 40):.0f}"


def _remarks(subject: Subject, found: Interactions, n_nodes: int, n_edges: int) -> str:
    """Say what the picture shows, and what it leaves out."""
    remarks = {
        "Solid orange lines are positive, dashed blue ones negative.": found.signed,
        "Wide lines are strong.": True,
        "Shaded areas are interactions of three and more.": max(map(len, found.scopes)) > 2,
        "Squares are hidden units or classes.": len(found.sizes) > 1,
        f"The {n_nodes} variables of {found.n_variables:,} that interact most are drawn.": n_nodes < found.n_variables,
        f"The page has the {n_edges:,} strongest of {len(found.scopes):,} interactions.": n_edges < len(found.scopes),
        sentence(subject.without_intervals): True,
    }
    return " ".join(remark for remark, holds in remarks.items() if holds)
