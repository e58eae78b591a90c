"""Timing shared by the benchmarks: the best of several runs, baselines beside what is measured, and what is asked."""

from __future__ import annotations

import time
from collections.abc import Callable

# What was asked for and not reached, in words; `run.py` ends with an error when there is something.
MISSED: list[str] = []
# All that was asked for: what, how much it was, and at most how much it may be.
ASKED: list[tuple[str, float, float]] = []


def asked(what: str, ratio: float, at_most: float, digits: int = 2, kind: str = "ratio") -> str:
    """Say a ratio, or a number of another kind, and what is asked of it; what is missed is noted."""
    ASKED.append((what, ratio, at_most))
    words = f"{kind} {ratio:.{digits}f} (at most {at_most:g})"
    if ratio <= at_most:
        return words
    MISSED.append(f"{what}: {words}")
    return f"{words} MISSED"


def best_of(function: Callable[[], object], repeats: int = 7) -> float:
    """Seconds of the fastest run; the first run, which may compile, does not count."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def interleaved(
    functions: dict[str, Callable[[], object]], repeats: int = 7, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Best seconds of each, taken in turns, so that a noisy neighbour disturbs all alike.

    With ``clock=time.process_time`` they are the processor's, which do not pass while others have it.
    """
    for function in functions.values():
        function()
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            start = clock()
            function()
            best[name] = min(best[name], clock() - start)
    return best
