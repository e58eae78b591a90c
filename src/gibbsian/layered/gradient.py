"""The gradient of a restricted machine, plain or centred.

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

from gibbsian.layered.phases import FreeMoments, Samples


class Offsets(NamedTuple):
    """The offsets mu and nu.

    Parameters
    ----------
    visible, hidden : ndarray
        One number for each column of values.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.gradient import Offsets
    >>> Offsets(np.zeros(1), np.zeros(1)).towards(Offsets(np.ones(1), np.ones(1)), 0.1).visible
    array([0.1])
    """

    visible: np.ndarray
    hidden: np.ndarray

    def towards(self, other: Offsets, share: float) -> Offsets:
        """Return offsets moved by a share of the way to others."""
        visible = self.visible + share * (other.visible - self.visible)
        return Offsets(visible, self.hidden + share * (other.hidden - self.hidden))


class Gradient(NamedTuple):
    """A direction in the space of parameters.

    Parameters
    ----------
    visible, hidden : ndarray
        For the biases.
    weights : ndarray of shape (visible.width, hidden.width)
        For the weights.
    data : Offsets
        The means of the layers over the minibatch.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.gradient import GradientMaker
    >>> from gibbsian.layered.phases import Samples
    >>> GradientMaker()(Samples(np.ones((1, 2)), np.ones((1, 1))), Samples(np.zeros((3, 2)), np.ones((3, 1))), None)
    Gradient(visible=array([1., 1.]), hidden=array([0.]), weights=array([[1.], [1.]]),
             data=Offsets(visible=array([1., 1.]), hidden=array([1.])))
    """

    visible: np.ndarray
    hidden: np.ndarray
    weights: np.ndarray
    data: Offsets


@dataclass
class GradientMaker:
    """Makes gradients of minibatches, in arrays that it uses again and again.

    Both phases and the centring are one matrix product: ``dW = L^T R`` where L has the visible values of the
    minibatch, those of the chains, mu and ``<v>_data - <v>_model`` as rows, and R the hidden means of both with their
    weights, ``-(<h>_data - <h>_model)`` and ``-nu``.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.gradient import GradientMaker, Offsets
    >>> from gibbsian.layered.phases import Samples
    >>> data = Samples(np.array([[1.0], [1.0]]), np.array([[1.0], [0.5]]))
    >>> free = Samples(np.array([[1.0], [0.0]]), np.array([[1.0], [0.0]]))
    >>> GradientMaker()(data, free, None).weights                       # 3/4 - 1/2
    array([[0.25]])
    >>> GradientMaker()(data, free, Offsets(np.ones(1), np.ones(1))).weights
    array([[-0.5]])
    """

    _arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def __call__(self, data: Samples, free: Samples | FreeMoments, offsets: Offsets | None) -> Gradient:
        """Return data moments less free moments; the arrays are overwritten by the next call."""
        here = _means(data)
        there = _means(free) if isinstance(free, Samples) else Offsets(free.visible, free.hidden)
        dv, dh = here.visible - there.visible, here.hidden - there.hidden
        weights = self._product(data, free if isinstance(free, Samples) else None, dv, dh, offsets)
        if not isinstance(free, Samples):
            weights -= free.products
        if offsets is None:
            return Gradient(dv, dh, weights, here)
        return Gradient(dv - weights @ offsets.hidden, dh - offsets.visible @ weights, weights, here)

    def _product(
        self, data: Samples, free: Samples | None, dv: np.ndarray, dh: np.ndarray, offsets: Offsets | None
    ) -> np.ndarray:
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
        return np.matmul(left.T, right, out=self._array("weights", dv.size, dh.size, dv.dtype))

    def _array(self, name: str, height: int, width: int, dtype: np.dtype) -> np.ndarray:
        """Return the first rows of an array that is kept, made anew when too small."""
        kept = self._arrays.get(name)
        if kept is None or len(kept) < height or kept.shape[1] != width or kept.dtype != dtype:
            kept = self._arrays[name] = np.empty((height, width), dtype)
        return kept[:height]


def _means(samples: Samples) -> Offsets:
    """Means over rows; np.mean itself would take longer than the sums of a small minibatch."""
    n_rows = len(samples.values)
    return Offsets(np.add.reduce(samples.values, axis=0) / n_rows, np.add.reduce(samples.hidden, axis=0) / n_rows)


__all__ = ["Gradient", "GradientMaker", "Offsets"]
