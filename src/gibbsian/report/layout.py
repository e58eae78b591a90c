"""Where the nodes of a network stand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

STEPS = 300
GRAVITY = 1.2
CROWDING = 0.7


def force(n: int, scopes: Sequence[tuple[int, ...]], sizes: np.ndarray) -> np.ndarray:
    """Return places in the square from -1 to 1: nodes push each other away, strong interactions pull them together.

    Forces are those of Fruchterman and Reingold (1991), with a pull to the middle so that nodes without a neighbour
    stay near.
    """
    angles = 2 * np.pi * np.arange(n) / max(n, 1)
    places = np.column_stack([np.cos(angles), np.sin(angles)]) * 0.8
    places += np.random.default_rng(0).normal(scale=0.05, size=places.shape)
    pairs = [(scope[a], scope[b], size) for scope, size in zip(scopes, sizes, strict=True)
             for a in range(len(scope)) for b in range(a)]  # fmt: skip
    first, second = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1))
    sizes = np.array([pair[2] for pair in pairs])
    pull = sizes * n / sizes.sum()
    ideal = 1.4 / np.sqrt(max(n, 1))
    for step in range(STEPS):
        apart = places[:, None] - places[None]
        squares = np.maximum((apart**2).sum(axis=2), 1e-4)
        moves = (apart * (ideal**2 / squares)[..., None]).sum(axis=1) - GRAVITY * ideal * places * np.sqrt(n)
        drawn = places[first] - places[second]
        drawn *= (pull * np.sqrt((drawn**2).sum(axis=1)) / ideal)[:, None]
        np.add.at(moves, first, -drawn)
        np.add.at(moves, second, drawn)
        lengths = np.maximum(np.sqrt((moves**2).sum(axis=1)), 1e-9)
        places += moves * (np.minimum(lengths, 0.15 * (1 - step / STEPS)) / lengths)[:, None]
    places -= (places.max(axis=0) + places.min(axis=0)) / 2
    # nodes without neighbours lie far out: what is in the middle gets more room
    places *= np.maximum((places**2).sum(axis=1), 1e-12)[:, None] ** (CROWDING / 2 - 0.5)
    return places / np.maximum(np.abs(places).max(axis=0, initial=0.0), 1e-9)


def circle(places: np.ndarray) -> np.ndarray:
    """Return places on a circle, in the order in which other places go round their middle: neighbours stay near."""
    order = np.argsort(np.argsort(np.arctan2(places[:, 1], places[:, 0]), kind="stable"), kind="stable")
    angles = 2 * np.pi * order / max(len(places), 1) - np.pi / 2
    return np.column_stack([np.cos(angles), np.sin(angles)])
