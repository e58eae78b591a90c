"""The network of what interacts, which a reader can thin out, search and lay out."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.report.html import Markup, join, number, paragraph, phrase, sentence, short, tag, template
from gibbsian.report.layout import circle, force
from gibbsian.report.subject import LEVEL, SECTIONS, Subject
from gibbsian.report.svg import words

WIDTH, HEIGHT = 1000, 760
MOST_NODES = 300
MOST_EDGES = 1500
SHOWN_PER_NODE = 1.5
LONGEST = 22


@SECTIONS.register("network", place=50, title="The network")
def network(subject: Subject) -> Markup | None:
    """Return the strongest interactions as a network, with what steers it."""
    if not hasattr(subject.machine, "interactions"):
        return None
    found = subject.machine.interactions()
    edges = found.strongest(MOST_EDGES)
    nodes = _nodes(found, edges)
    kept = [k for k, scope in enumerate(edges.scopes) if set(scope) <= set(nodes)]
    if not kept:
        return paragraph("No columns interact.")
    place = {node: number for number, node in enumerate(nodes)}
    scopes = [tuple(place[i] for i in edges.scopes[k]) for k in kept]
    strengths = edges.strengths[kept]
    at = force(len(nodes), scopes, np.abs(strengths))
    around = circle(at)
    shown = min(len(kept), max(12, round(SHOWN_PER_NODE * len(nodes))))
    most = abs(float(strengths[0]))
    lines = [
        _edge(
            found, subject.interval_of(edges.scopes[k]), edges.scopes[k], scope, at, float(strength), most, rank < shown
        )
        for rank, (k, scope, strength) in enumerate(zip(kept, scopes, strengths, strict=True))
    ]
    strong = _weights(len(nodes), scopes, strengths)
    radius = min(7.0, 78 / np.sqrt(len(nodes)))
    dots = [_node(found, i, k, at[k], around[k], strong[k], radius) for i, k in place.items()]
    return phrase(
        template("network.html"),
        measure=found.measure,
        remarks=_remarks(subject, found, len(nodes), len(kept)),
        n_edges=len(kept),
        shown=shown,
        width=WIDTH,
        height=HEIGHT,
        edges=join(reversed(lines)),  # the strongest on top
        nodes=join(dots[k] for k in np.argsort(strong, kind="stable")),
    )


def _nodes(found: Any, edges: Any) -> list[int]:
    """Return the variables that are drawn: all, or those with the strongest interactions."""
    if found.n_variables <= MOST_NODES:
        return list(range(found.n_variables))
    strong = _weights(found.n_variables, edges.scopes, edges.strengths)
    return sorted(np.argsort(-strong, kind="stable")[:MOST_NODES].tolist())


def _weights(n: int, scopes: Any, strengths: np.ndarray) -> np.ndarray:
    """Return the sum of the sizes of the interactions of each variable."""
    total = np.zeros(n)
    for scope, strength in zip(scopes, strengths, strict=True):
        total[list(scope)] += abs(strength)
    return total


def _edge(found: Any, ends: Any, whole: Any, scope: Any, at: Any, strength: float, most: float, shown: bool) -> Markup:
    """Return a line, or the outline of three and more, with what it says when pointed at."""
    names = " \u2013 ".join(short(found.names[i]) for i in whole)
    sure = "" if ends is None else f" ({LEVEL:.0%} interval {number(ends[0])} to {number(ends[1])})"
    points = " L".join(f"{x:.0f} {y:.0f}" for x, y in map(_on_canvas, at[list(scope)]))
    negative, larger = found.signed and strength < 0, len(scope) > 2
    kinds = {"edge": True, "off": not shown, "negative": negative, "larger": larger}
    return tag(
        "path",
        tag("title", f"{names}: {found.measure} {number(strength)}{sure}"),
        d=f"M{points}{'Z' * larger}",
        class_=" ".join(kind for kind, holds in kinds.items() if holds),
        stroke_width=f"{1 + 7 * abs(strength) / most:.1f}",
        data_of=" ".join(map(str, scope)),
        data_size=f"{abs(strength):.4g}",
    )


def _node(found: Any, i: int, k: int, at: Any, around: Any, strong: float, r: float) -> Markup:
    """Return a node with its name, which knows where it stands in every layout."""
    (x, y), (cx, cy) = _on_canvas(at), _on_canvas(around * 0.74)
    round_, square = tag("circle", r=r), tag("rect", x=-r, y=-r, width=2 * r, height=2 * r)
    return tag(
        "g",
        *(
            tag("title", found.names[i]),
            square if found.layers[i] else round_,
            words(0, 14 + r, short(found.names[i], LONGEST)),
        ),
        class_="node",
        tabindex=-1,
        transform=f"translate({x:.0f} {y:.0f})",
        data_k=k,
        data_name=found.names[i],
        data_force=f"{x:.0f} {y:.0f}",
        data_circle=f"{cx:.0f} {cy:.0f}",
        data_strong=f"{strong:.4g}",
    )


def _on_canvas(place: Any) -> tuple[float, float]:
    """Return where a place in the square from -1 to 1 stands in the picture."""
    return WIDTH / 2 + place[0] * (WIDTH / 2 - 90), HEIGHT / 2 + place[1] * (HEIGHT / 2 - 40)


def _remarks(subject: Subject, found: Any, n_nodes: int, n_edges: int) -> str:
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
