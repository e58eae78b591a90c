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
        kernels, like = layer_kernels(data[0]), data[0]
        moments = free if isinstance(free, FreeMoments) else None
        others: Any = free if moments is None else moments.firsts
        height = len(like) + (len(others[0]) if moments is None else 0) + (0 if offsets is None else 2)
        widths = [part.shape[1] for part in data]
        flat = self._array("gradient", 1, sum(widths) + sum(a * b for a, b in pairwise(widths)), like)[0]
        start, biases, means = 0, [], []
        lefts: list[Array] = []
        rights: list[Array] = []
        for place, (own, other, width) in enumerate(zip(data, others, widths, strict=True)):
            biases.append(flat[start : start + width])
            lefts.append(self._array(("left", place), height, width, like) if place < len(data) - 1 else None)
            rights.append(self._array(("right", place), height, width, like) if place else None)
            offset = None if offsets is None else offsets[place]
            means.append(kernels.join_phases(own, other, offset, lefts[-1], rights[-1], biases[-1]))
            start += width
        for place, (a, b) in enumerate(pairwise(widths)):
            weights = flat[start : start + a * b].reshape(a, b)
            library_of(like).matmul(lefts[place].T, rights[place + 1], out=weights)
            if moments is not None:
                weights -= moments.products[place]
            if offsets is not None:
                kernels.subtract_product(biases[place], weights, offsets[place + 1])
                kernels.subtract_product(biases[place + 1], weights.T, offsets[place])
            start += a * b
        return flat, means

    def _array(self, name: Any, height: int, width: int, like: Array) -> Array:
        """Return the first rows of an array that is kept, made anew when too small."""
        kept = self._arrays.get(name)
        if kept is None or len(kept) < height or kept.shape[1] != width or kept.dtype != like.dtype:
            kept = self._arrays[name] = layer_kernels(like).empty(height, width, like)
        return kept[:height]
