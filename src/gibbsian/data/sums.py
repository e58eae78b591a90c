"""Sums over partitions, added along a tree of one shape, so that their bits depend on the partitions alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def added(first: Any, second: Any) -> Any:
    """Return the sum of two results: part by part where they are tuples, else by their own addition."""
    if not isinstance(first, tuple):
        return first + second
    parts = [added(one, other) for one, other in zip(first, second, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)


def scaled(result: Any, factor: float) -> Any:
    """Return a result times a factor, part by part where it is a tuple."""
    return tuple(scaled(part, factor) for part in result) if isinstance(result, tuple) else result * factor


def tree_sum(results: Iterable[T]) -> T:
    """Add results pair by pair, pairs of pairs, and so on, with few of them in memory.

    Any run of ``2^k`` results that begins at a multiple of ``2^k`` is a branch of the tree, so it may be added before,
    elsewhere, to the same bits.

    Examples
    --------
    >>> from gibbsian.data.sums import tree_sum
    >>> tree_sum("abcde")
    'abcde'
    >>> tree_sum([tree_sum([0.1, 0.2]), tree_sum([0.3])]) == tree_sum([0.1, 0.2, 0.3])
    True
    """
    branches: list[tuple[int, T]] = []
    for result in results:
        size, total = 1, result
        while branches and branches[-1][0] == size:
            total, size = added(branches.pop()[1], total), 2 * size
        branches.append((size, total))
    total = branches.pop()[1]
    while branches:
        total = added(branches.pop()[1], total)
    return total
