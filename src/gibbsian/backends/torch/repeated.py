"""Steps that are made again and again: on a card as graphs, captured once and replayed, elsewhere one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch

# Steps that one graph makes: replays have a gap of a microsecond or two between them.
UNROLLED = 10
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


def forget(owner: Any) -> None:
    """Give back what was put on a device for an object; it is put there anew when asked for."""
    _KEPT.pop(owner, None)


class Repeated:
    """A step of tensors that stay in place, called with its number, counted from the one that the clock shows.

    `state` is all that a step changes and a later one needs, the clock aside.
    """

    def __init__(self, step: Callable[[int], None], clock: Any, state: list[Any]):
        self.step, self.clock, self.state = step, clock, state
        self.graphs: dict[int, Any] = {}

    def __call__(self, n_steps: int) -> None:
        """Make so many steps."""
        if not self.clock.is_cuda:
            for _ in range(n_steps):
                self._steps(1)
            return
        many, rest = divmod(n_steps, UNROLLED)
        with torch.cuda.device(self.clock.device):
            for length in [UNROLLED] * many + [1] * rest:
                if length not in self.graphs:
                    self.graphs[length] = self._captured(length)
                self.graphs[length].replay()

    def _steps(self, length: int) -> None:
        for ahead in range(length):
            self.step(ahead)
        self.clock += length

    def _captured(self, length: int) -> Any:
        """Capture steps, after one that compiles what they need and leaves nothing behind."""
        if not self.graphs:
            before = [part.clone() for part in self.state]
            self.step(0)
            for part, old in zip(self.state, before, strict=True):
                part.copy_(old)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._steps(length)
        return graph
