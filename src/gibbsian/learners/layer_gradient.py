"""The gradient of layers with weights between neighbours, plain or centred.

Centred (Montavon and Mueller 2012; Melchior, Fischer and Wiskott 2016), with offsets mu and nu near the means of the
layers under the data:

``dW = <(v - mu)(h - nu)^T>_data - <(v - mu)(h - nu)^T>_model``,
``db = <v>_data - <v>_model - dW nu``, ``dc = <h>_data - <h>_model - dW^T mu``.

It is the gradient of the same likelihood in other coordinates, so it vanishes at the same points; flipping the coding
of a unit does not change the path of learning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from gibbsian.backends.device import layer_kernels, library_of
from gibbsian.expectations.block_chains import FreeMoments

Array = Any

# The offsets follow the means of the minibatches by this share at every step.
OFFSET_SHARE = 0.01


def towards(offsets: Sequence[Array], means: Sequence[Array]) -> tuple[Array, ...]:
    """Return offsets, one for each column of values of each layer, moved a little towards means."""
    move = layer_kernels(means[0]).towards
    return tuple(move(own, mean, OFFSET_SHARE) for own, mean in zip(offsets, means, strict=True))


@dataclass
class GradientMaker:
    """Makes gradients of minibatches, in arrays that it uses again and again.

    Both phases and the centring are one matrix product for each two neighbours: ``dW = L^T R`` where L has the values
    of the lower layer in the minibatch, those of the chains, mu and ``<v>_data - <v>_model`` as rows, and R those of
    the upper layer in both with their weights, ``-(<h>_data - <h>_model)`` and ``-nu``.
    """

    _arrays: dict[Any, Any] = field(default_factory=dict)

    def __call__(
        self, data: Sequence[Array], free: Sequence[Array] | FreeMoments, offsets: Sequence[Array] | None
    ) -> tuple[Array, list[Array]]:
        """Return data less free moments in the layout of theta, overwritten by the next call, and the data's means.

        Data and samples of the free phase are values of all layers, row by row.
        """
        kernels = layer_kernels(data[0])
        here = [kernels.column_means(part) for part in data]
        sampled = not isinstance(free, FreeMoments)
        rows: Any = free
        there = [kernels.column_means(part) for part in rows] if sampled else rows.firsts
        firsts = [own - other for own, other in zip(here, there, strict=True)]
        widths = [len(part) for part in here]
        flat = self._array("gradient", 1, sum(widths) + sum(a * b for a, b in pairwise(widths)), data[0])[0]
        start = sum(widths)
        moved = list(firsts)
        for place, (a, b) in enumerate(pairwise(widths)):
            pair = slice(place, place + 2)
            weights = flat[start : start + a * b].reshape(a, b)
            start += a * b
            between = rows[pair] if sampled else None
            self._multiply(place, data[pair], between, firsts[pair], offsets and offsets[pair], weights)
            if not sampled:
                weights -= rows.products[place]
            if offsets is not None:
                moved[place] = kernels.less_product(moved[place], weights, offsets[place + 1])
                moved[place + 1] = kernels.less_product(moved[place + 1], weights.T, offsets[place])
        start = 0
        for part in moved:
            flat[start : start + len(part)] = part
            start += len(part)
        return flat, here

    def _multiply(
        self,
        place: int,
        data: Sequence[Array],
        free: Sequence[Array] | None,
        firsts: Sequence[Array],
        offsets: Sequence[Array] | None,
        weights: Array,
    ) -> None:
        library, (dv, dh) = library_of(weights), firsts
        n_data, n_free = len(data[0]), 0 if free is None else len(free[0])
        n_rows = n_data + n_free
        height = n_rows + (0 if offsets is None else 2)
        left = self._array(("left", place), height, len(dv), weights)
        right = self._array(("right", place), height, len(dh), weights)
        left[:n_data] = data[0]
        library.multiply(data[1], 1.0 / n_data, out=right[:n_data])
        if free is not None:
            left[n_data:n_rows] = free[0]
            library.multiply(free[1], -1.0 / n_free, out=right[n_data:n_rows])
        if offsets is not None:
            left[n_rows], left[n_rows + 1] = offsets[0], dv
            library.negative(dh, out=right[n_rows])
            library.negative(offsets[1], out=right[n_rows + 1])
        library.matmul(left.T, right, out=weights)

    def _array(self, name: Any, height: int, width: int, like: Array) -> Array:
        """Return the first rows of an array that is kept, made anew when too small."""
        kept = self._arrays.get(name)
        if kept is None or len(kept) < height or kept.shape[1] != width or kept.dtype != like.dtype:
            kept = self._arrays[name] = layer_kernels(like).empty(height, width, like)
        return kept[:height]
