"""The gradient of two layers, plain or centred.

Centred (Montavon and Mueller 2012; Melchior, Fischer and Wiskott 2016), with offsets mu and nu near the means of the
layers under the data:

``dW = <(v - mu)(h - nu)^T>_data - <(v - mu)(h - nu)^T>_model``,
``db = <v>_data - <v>_model - dW nu``, ``dc = <h>_data - <h>_model - dW^T mu``.

It is the gradient of the same likelihood in other coordinates, so it vanishes at the same points; flipping the coding
of a unit does not change the path of learning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gibbsian.expectations.block_chains import BlockSamples, FreeMoments

# The offsets follow the means of the minibatches by this share at every step.
OFFSET_SHARE = 0.01


class Offsets(NamedTuple):
    """The offsets mu and nu: one number for each column of values of two layers."""

    visible: np.ndarray
    hidden: np.ndarray

    def towards(self, other: Offsets) -> Offsets:
        """Return offsets moved a little towards others."""
        visible = self.visible + OFFSET_SHARE * (other.visible - self.visible)
        return Offsets(visible, self.hidden + OFFSET_SHARE * (other.hidden - self.hidden))


def centred_products(
    products: np.ndarray, dv: np.ndarray, dh: np.ndarray, mu: np.ndarray, nu: np.ndarray
) -> np.ndarray:
    """Return the difference of products about the offsets, from the plain differences of products and of means."""
    return products - np.outer(mu, dh) - np.outer(dv, nu)


@dataclass
class GradientMaker:
    """Makes gradients of minibatches, in arrays that it uses again and again.

    Both phases and the centring are one matrix product: ``dW = L^T R`` where L has the visible values of the
    minibatch, those of the chains, mu and ``<v>_data - <v>_model`` as rows, and R the hidden means of both with their
    weights, ``-(<h>_data - <h>_model)`` and ``-nu``.
    """

    _arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def __call__(
        self, data: BlockSamples, free: BlockSamples | FreeMoments, offsets: Offsets | None
    ) -> tuple[np.ndarray, Offsets]:
        """Return data less free moments in the layout of theta, overwritten by the next call, and the data's means."""
        here = _means(data)
        there = _means(free) if isinstance(free, BlockSamples) else Offsets(free.visible, free.hidden)
        dv, dh = here.visible - there.visible, here.hidden - there.hidden
        n_biases = dv.size + dh.size
        flat = self._array("gradient", 1, n_biases + dv.size * dh.size, dv.dtype)[0]
        weights = flat[n_biases:].reshape(dv.size, dh.size)
        self._multiply(data, free if isinstance(free, BlockSamples) else None, dv, dh, offsets, weights)
        if not isinstance(free, BlockSamples):
            weights -= free.products
        if offsets is not None:
            dv, dh = dv - weights @ offsets.hidden, dh - offsets.visible @ weights
        flat[: dv.size], flat[dv.size : n_biases] = dv, dh
        return flat, here

    def _multiply(
        self,
        data: BlockSamples,
        free: BlockSamples | None,
        dv: np.ndarray,
        dh: np.ndarray,
        offsets: Offsets | None,
        weights: np.ndarray,
    ) -> None:
        n_data, n_free = len(data.values), 0 if free is None else len(free.values)
        n_rows, number = n_data + n_free, dv.dtype.type
        height = n_rows + (0 if offsets is None else 2)
        left = self._array("left", height, dv.size, dv.dtype)
        right = self._array("right", height, dh.size, dv.dtype)
        left[:n_data] = data.values
        np.multiply(data.hidden, number(1.0 / n_data), out=right[:n_data])
        if free is not None:
            left[n_data:n_rows] = free.values
            np.multiply(free.hidden, number(-1.0 / n_free), out=right[n_data:n_rows])
        if offsets is not None:
            left[n_rows], right[n_rows] = offsets.visible, -dh
            left[n_rows + 1], right[n_rows + 1] = dv, -offsets.hidden
        np.matmul(left.T, right, out=weights)

    def _array(self, name: str, height: int, width: int, dtype: np.dtype) -> np.ndarray:
        """Return the first rows of an array that is kept, made anew when too small."""
        kept = self._arrays.get(name)
        if kept is None or len(kept) < height or kept.shape[1] != width or kept.dtype != dtype:
            kept = self._arrays[name] = np.empty((height, width), dtype)
        return kept[:height]


def _means(samples: BlockSamples) -> Offsets:
    """Means over rows; np.mean itself would take longer than the sums of a small minibatch."""
    n_rows = len(samples.values)
    return Offsets(np.add.reduce(samples.values, axis=0) / n_rows, np.add.reduce(samples.hidden, axis=0) / n_rows)
