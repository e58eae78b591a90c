"""Memory is asked for before it is taken, and work on many rows goes through the cache a block at a time.

Anything that allocates in proportion to the data, the model or 2^n calls `require_memory` first, so a request that
cannot fit ends in one sentence with the number in it and not in a killed process.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path

from gibbsian.errors import ArgumentError, TooExpensiveError

# Leave room for the interpreter, BLAS buffers and whatever else runs beside us.
USABLE_SHARE = 0.8
# About this many cells at a time, and rows at least: long enough for BLAS, short enough to stay near the cache.
BLOCK_CELLS = 2**18
LEAST_ROWS = 128
# Up to so many multiplications BLAS takes matrices as they are; larger ones it rearranges first, for as long again.
PLAIN_PRODUCT = 10**6


def format_bytes(n_bytes: float) -> str:
    """Write a number of bytes for people."""
    for unit in ("B", "KiB", "MiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} GiB"


def memory_limit() -> int:
    """Return how many bytes may be allocated: ``GIBBSIAN_MEMORY_LIMIT`` (in GiB) or what the machine has free."""
    declared = os.environ.get("GIBBSIAN_MEMORY_LIMIT")
    if declared:
        try:
            gibibytes = float(declared)
        except ValueError:
            gibibytes = math.nan
        if not 0 < gibibytes < math.inf:
            raise ArgumentError(f"GIBBSIAN_MEMORY_LIMIT={declared!r} must be a number of GiB above 0")
        return int(gibibytes * 2**30)
    return int(_available_memory() * USABLE_SHARE)


def require_memory(n_bytes: float, what: str, instead: str) -> None:
    """Raise `TooExpensiveError` when `n_bytes` do not fit.

    Parameters
    ----------
    n_bytes : float
        Predicted peak of the allocation.
    what : str
        What needs it, the subject of the sentence.
    instead : str
        What would fit or what to do.
    """
    limit = memory_limit()
    if n_bytes > limit:
        raise TooExpensiveError(
            f"{what} needs {format_bytes(n_bytes)} but {format_bytes(limit)} may be used", f"{instead}"
        )


def _available_memory() -> int:
    """Free memory, looked up at most once a second: small fits ask thousands of times."""
    return _read_available_memory(int(time.monotonic()))


@lru_cache(maxsize=1)
def _read_available_memory(second: int) -> int:
    """Free memory by the kernel's own estimate, capped by a container's limit."""
    free = _meminfo_available()
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            free = min(free, int(Path(path).read_text()))
        except (OSError, ValueError):  # no such file, or the word "max"
            continue
    return free


def _meminfo_available() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return 4 * 2**30  # a system that tells nothing: assume a small laptop


def row_blocks(
    n_rows: int, n_columns: int, max_cells: int = BLOCK_CELLS, least_rows: int = LEAST_ROWS
) -> Iterator[slice]:
    """Cut `n_rows` rows into slices of about `max_cells` cells.

    The cut depends on nothing else, so sums over blocks are reproducible.
    """
    size = max(least_rows, max_cells // max(1, n_columns))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def spans(lengths: Iterable[int]) -> list[slice]:
    """Return where parts of these lengths stand, one after the other."""
    ends = [0, *accumulate(int(length) for length in lengths)]
    return [slice(start, end) for start, end in pairwise(ends)]
