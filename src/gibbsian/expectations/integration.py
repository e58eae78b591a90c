"""Averages over samples, a block at a time, for compiled kernels.

A kernel integrates a range of targets over a block of samples and folds the values into each target's own running sums:
threads share the targets out, and the result does not depend on how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gibbsian.backends.numba.spatial import Shares
from gibbsian.backends.parallel import WORTH_THREADS, map_in_order, n_threads
from gibbsian.expectations.base import Estimate
from gibbsian.expectations.samples import Samples
from gibbsian.models.base import Model
from gibbsian.resources import require_memory

# Samples in a block: long enough for vector code, short enough for the scratch rows of a target to stay in the cache.
LEAST_SAMPLES, MOST_SAMPLES = 128, 512
# Cells of samples that are prepared and held at a time.
BATCH_CELLS = 2**22

Kernel = Callable[[int, int, Any, np.ndarray, Shares], None]
Prepare = Callable[[slice, int], Any]
Piece = TypeVar("Piece")
Result = TypeVar("Result")


class Part(NamedTuple):
    """A kernel and the statistics that it fills: target t of the kernel has place ``places.start + t`` in theta.

    Examples
    --------
    >>> from gibbsian.expectations.integration import Part
    >>> Part(print, slice(0, 5)).places
    slice(0, 5, None)
    """

    kernel: Kernel
    places: slice


def integrate(samples: Samples, model: Model, prepare: Prepare, parts: list[Part]) -> Estimate:
    """Return the mean statistics over the samples with their standard errors.

    Parameters
    ----------
    samples : Samples
        The samples.
    model : Model
        Whose statistics.
    prepare : callable
        Turns a slice of the samples into what the kernels take. Its second argument numbers the slices that are held at
        a time: what was made for an earlier slice of the same number may be overwritten.
    parts : list of Part
        The kernels.
    """
    sums = samples.running_sums(model.theta.size)
    pieces = [(part.kernel, sums[part.places], *cut) for part in parts for cut in _cuts(part.places)]
    for batch in _batches(samples, model, prepare):

        def run(piece: tuple[Kernel, np.ndarray, int, int], batch: list[tuple[Any, Shares]] = batch) -> None:
            kernel, own_sums, first, last = piece
            for system, shares in batch:
                kernel(first, last, system, own_sums, shares)

        _on_threads(run, pieces, len(sums) * sum(len(shares.shares) for _, shares in batch))
    return Estimate(*samples.summarise(sums))


def _batches(samples: Samples, model: Model, prepare: Prepare) -> Iterator[list[tuple[Any, Shares]]]:
    """Prepared blocks of samples, as many at a time as may be held."""
    n = model.n_variables
    size = min(max(BATCH_CELLS // n, LEAST_SAMPLES), MOST_SAMPLES, samples.n_samples)
    require_memory(
        24.0 * min(max(BATCH_CELLS, n * size), n * samples.n_samples) + 40.0 * model.theta.size,
        f"integrating {model.theta.size:,} statistics over {samples.n_samples:,} samples",
        "use a smaller graph",
    )
    blocks = list(samples.blocks(size))
    together = max(1, BATCH_CELLS // (n * size))
    for start in range(0, len(blocks), together):
        batch = blocks[start : start + together]
        numbered = [(rows, number) for number, (rows, _) in enumerate(batch)]
        prepared = _on_threads(lambda given: prepare(*given), numbered, n * size * len(batch))
        yield list(zip(prepared, (shares for _, shares in batch), strict=True))


def _cuts(places: slice) -> Iterator[tuple[int, int]]:
    """Ranges of targets for threads."""
    bounds = np.linspace(0, places.stop - places.start, 2 * n_threads() + 1).astype(np.int64).tolist()
    return (cut for cut in pairwise(bounds) if cut[1] > cut[0])


def _on_threads(function: Callable[[Piece], Result], pieces: list[Piece], n_operations: float) -> list[Result]:
    """Apply a function to pieces of work, on threads where that is worth their start."""
    if n_operations < WORTH_THREADS or n_threads() == 1:
        return [function(piece) for piece in pieces]
    return list(map_in_order(function, pieces))
