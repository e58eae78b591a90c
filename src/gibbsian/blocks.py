"""Row blocks: work on many rows goes through the cache a piece at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise

# About this many cells at a time, and rows at least: long enough for BLAS, short enough to stay near the cache.
BLOCK_CELLS = 2**18
LEAST_ROWS = 128
# Up to so many multiplications BLAS takes matrices as they are; larger ones it rearranges first, for as long again.
PLAIN_PRODUCT = 10**6


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
