"""Places for the nodes of a network, in points, such that no two boxes overlap; deterministic."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import networkx as nx
import numpy as np

from gibbsian.backends.threads import one_blas_thread

Scope = tuple[int, ...]
GAP = 5.0  # points between boxes
ROOM = 2.6  # how much longer the sides of a component are than those of a square of its boxes
MOST_FOR_STRESS = 150  # nodes whose distances are fitted; more repel each other
FACTOR = (9.0, 9.0)  # the box of an interaction of three and more


def force(boxes: np.ndarray, scopes: Sequence[Scope], strengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return places by attraction: strongly coupled nodes near each other, parts that do not interact side by side.

    `boxes` holds width and height of each node. Interactions of three and more have a place of their own, among their
    members; for others it is the middle.
    """
    graph, n = nx.Graph(), len(boxes)
    graph.add_nodes_from(range(n))
    longest = np.abs(strengths).max(initial=0.0) or 1.0
    for k, (scope, strength) in enumerate(zip(scopes, strengths, strict=True)):
        ends = [scope] if len(scope) == 2 else [(i, n + k) for i in scope]
        graph.add_edges_from(ends, length=(2.0 - abs(strength) / longest) / (1.0 if len(scope) == 2 else 2.0))
    sizes = np.concatenate([boxes, np.tile(FACTOR, (len(scopes), 1))])
    places = np.full((n + len(scopes), 2), np.nan)
    parts = sorted(map(sorted, nx.connected_components(graph)), key=lambda part: (-len(part), part))
    _pack(places, [(part, _component(graph.subgraph(part), part, sizes[part])) for part in parts], sizes)
    middles = np.array([places[list(scope)].mean(axis=0) for scope in scopes]).reshape(-1, 2)
    return places[:n], np.where(np.isnan(places[n:]), middles, places[n:])


def _component(graph: nx.Graph, nodes: list[int], sizes: np.ndarray) -> np.ndarray:
    """Places of nodes that hang together."""
    start = nx.circular_layout(nodes)
    if len(nodes) > MOST_FOR_STRESS:
        found = nx.spring_layout(graph, pos=start, seed=0, iterations=200, method="force")
    else:
        with one_blas_thread():  # so small a problem waits for its threads
            found = nx.kamada_kawai_layout(graph, pos=start, weight="length")
    places = np.array([found[node] for node in nodes])
    spread = np.ptp(places, axis=0)
    places = (places - places.mean(axis=0)) @ _upright(places) if len(nodes) > 2 else places * (spread.max() > 0)
    side = min(ROOM, 1.5 + 0.1 * len(nodes)) * np.sqrt(np.prod(sizes + GAP, axis=1).sum())
    return separate(places * side / (np.ptp(places, axis=0).max() or 1.0), sizes)


def _upright(places: np.ndarray) -> np.ndarray:
    """The turn that lays the longest direction of places flat: pages are wider than high."""
    centred = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return axes.T * np.where(axes.T[0] < 0, -1.0, 1.0)


def _pack(places: np.ndarray, parts: list[tuple[list[int], np.ndarray]], sizes: np.ndarray) -> None:
    """Put parts beside each other in rows, the largest first."""
    corners = [(own - sizes[part] / 2, own + sizes[part] / 2) for part, own in parts]
    spans = np.array([high.max(axis=0) - low.min(axis=0) for low, high in corners]).reshape(-1, 2) + 3 * GAP
    width = max(spans[:, 0].max(initial=0.0), np.sqrt(1.8 * np.prod(spans, axis=1).sum()))
    x = y = deepest = 0.0
    for (part, own), (low, _), (wide, high) in zip(parts, corners, spans, strict=True):
        if x and x + wide > width:
            x, y, deepest = 0.0, y - deepest, 0.0
        places[part] = own - low.min(axis=0) + (x, y - high)
        x, deepest = x + wide, max(deepest, high)


def separate(places: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Push boxes apart, each pair along the shorter way, until none overlap."""
    places = places + 1e-3 * np.column_stack([np.cos(np.arange(len(places))), np.sin(np.arange(len(places)))])
    need = (sizes[:, None] + sizes[None]) / 2 + GAP
    for step in itertools.count(1):
        apart = places[:, None] - places[None]
        lacking = need - np.abs(apart)
        clash = (lacking > 1e-6).all(axis=2)
        np.fill_diagonal(clash, False)
        if not clash.any():
            return places
        along = lacking.argmin(axis=2)
        for axis in (0, 1):
            push = np.where(clash & (along == axis), (lacking[..., axis] / 2 + 1e-3) * np.sign(apart[..., axis]), 0.0)
            places[:, axis] += push.sum(axis=1) / np.maximum(1, (push != 0).sum(axis=1))
        if step % 40 == 0:
            places = 1.08 * places
    raise AssertionError


def circle(
    boxes: np.ndarray, scopes: Sequence[Scope], strengths: np.ndarray, fits: Callable[[np.ndarray], bool]
) -> tuple[np.ndarray, np.ndarray]:
    """Return places on a circle, strongly coupled nodes side by side, wide enough that labels outside `fits`."""
    n = len(boxes)
    closeness = np.zeros((n, n))
    for scope, strength in zip(scopes, strengths, strict=True):
        for i, j in itertools.permutations(scope, 2):
            closeness[i, j] = max(closeness[i, j], abs(strength))
    angles = np.pi / 2 - 2 * np.pi * np.argsort(_seriation(closeness)) / max(n, 1)
    unit = np.column_stack([np.cos(angles), np.sin(angles)])
    radius = max(150.0, n * (1.4 * boxes.max(initial=0.0) + GAP) / (2 * np.pi))
    while not fits(radius * unit):
        radius *= 1.05
    larger = [k for k, scope in enumerate(scopes) if len(scope) > 2]
    middles = np.array([0.8 * radius * unit[list(scope)].mean(axis=0) for scope in scopes]).reshape(-1, 2)
    middles[larger] = separate(middles[larger], np.tile(FACTOR, (len(larger), 1)))
    return radius * unit, middles


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
