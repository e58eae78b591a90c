"""Steps that are made again and again: on a card as graphs, captured once and replayed, elsewhere one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch

from gibbsian.startup import gc_disabled

# Steps that one graph makes: replays have a gap of a microsecond or two between them; and most that need none.
UNROLLED, ALONE = 10, 19
_KEPT: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


def kept(owner: Any, key: Any, make: Callable[[], Any]) -> Any:
    """Return what was put on a device for an object that does not change, made when first asked for.

    It lives as long as the owner, to which it must not refer.
    """
    entries = _KEPT.setdefault(owner, {})
    if key not in entries:
        entries.clear()  # what another device or precision had
        entries[key] = make()
    return entries[key]


class Repeated:
    """A step of tensors that stay in place, called with its number, counted from the one that the clock shows.

    On a card the first ones are made one by one, which compiles what they need: few are not worth a graph.
    """

    def __init__(self, step: Callable[[int], None], clock: Any):
        self.step, self.clock, self.n_alone = step, clock, ALONE if clock.is_cuda else math.inf
        self.graphs: dict[int, Any] = {}

    def __call__(self, n_steps: int) -> None:
        """Make so many steps."""
        many, rest = divmod(n_steps, UNROLLED)
        for length in [UNROLLED] * many + [1] * rest:
            if length <= self.n_alone:
                self.n_alone -= length
                self._steps(length)
                continue
            with torch.cuda.device(self.clock.device):
                if length not in self.graphs:
                    self.graphs[length] = self._captured(length)
                self.graphs[length].replay()

    def _steps(self, length: int) -> None:
        for ahead in range(length):
            self.step(ahead)
        self.clock += length

    def _captured(self, length: int) -> Any:
        graph = torch.cuda.CUDAGraph()
        with gc_disabled(), torch.cuda.graph(graph):  # an older one, collected now, would take the capture with it
            self._steps(length)
        return graph
