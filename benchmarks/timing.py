"""Timing shared by the benchmarks: the best of several runs, baselines beside what is measured."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_of(function: Callable[[], object], repeats: int = 7) -> float:
    """Seconds of the fastest run; the first run, which may compile, does not count."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def interleaved(functions: dict[str, Callable[[], object]], repeats: int = 7) -> dict[str, float]:
    """Best seconds of each, taken in turns, so that a noisy neighbour disturbs all alike."""
    for function in functions.values():
        function()
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
