"""Parameters about the mean of the data and in units of spins: the same model, better directions for gradient steps.

With ``x_i = m_i + (gap / 2) u_i``, m the mean of the data, a product over some variables is a sum over its parts, so
that the parameter of a part s about the mean is ``sum over products c that hold s of theta_c (gap / 2)^|s|
prod_{i in c, not in s} m_i / T``, and back likewise. Without it, in 0/1 coding or with lopsided columns, every coupling
drags two biases along, gradient steps creep through a narrow valley, and a rate means something else in every coding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Protocol, Self

import numpy as np

from gibbsian.arrays import Floats, Integers
from gibbsian.backends.numba.cliques import shift_products
from gibbsian.backends.numba.pairwise import gather_couplings, spread_biases


class Matrix(Protocol):
    """A matrix that multiplies vectors, as its transpose does."""

    @property
    def T(self) -> Matrix:
        """The transpose."""

    def __matmul__(self, vector: Floats) -> Floats: ...


@dataclass(frozen=True, eq=False)
class LinearMap:
    """An invertible linear change of parameters ``centred = scales * (inner @ theta)``.

    Parameters
    ----------
    scales : ndarray
        By what each parameter is multiplied.
    inner, outer : matrix, optional
        What parameters add to each other, and its inverse; None where they stay apart.
    """

    scales: Floats
    inner: Matrix | None = None
    outer: Matrix | None = None

    def inwards(self, theta: Floats) -> Floats:
        """Return the centred parameters of the model with parameters `theta`."""
        return self.scales * (theta if self.inner is None else self.inner @ theta)

    def outwards(self, centred: Floats) -> Floats:
        """Return theta of the model with these centred parameters."""
        unscaled = centred / self.scales
        return unscaled if self.outer is None else self.outer @ unscaled

    def gradient(self, gradient: Floats) -> Floats:
        """Return the gradient with respect to the centred parameters, given that with respect to theta."""
        pulled = gradient if self.outer is None else self.outer.T @ gradient
        return pulled / self.scales

    def gradient_outwards(self, gradient: Floats) -> Floats:
        """Return the gradient with respect to theta, given that with respect to the centred parameters."""
        scaled = gradient * self.scales
        return scaled if self.inner is None else self.inner.T @ scaled

    def l1(self, l1: Floats) -> Floats:
        """Return the same L1 penalty for the centred parameters, which are only rescaled where it acts."""
        return l1 / self.scales

    def on_device(self, twins: ModuleType) -> Self:
        """Return the change for tensors, by `backends.torch.vectors`."""
        # only biases and couplings are centred on a device
        inner, outer = (
            part.on_device(twins) if isinstance(part, PairShift) else None for part in (self.inner, self.outer)
        )
        return replace(self, scales=twins.put(self.scales), inner=inner, outer=outer)


@dataclass(frozen=True, eq=False)
class PairShift:
    """The matrix that adds ``sum_j w_ij m_j`` to the bias of each i, or its transpose, never written out.

    `pairs` say which two biases, one in each column, each parameter after the biases is of.
    """

    pairs: Integers
    mean: Floats
    transposed: bool = False

    @property
    def T(self) -> PairShift:
        """The transpose."""
        return replace(self, transposed=not self.transposed)

    def __matmul__(self, vector: Floats) -> Floats:
        shift: Callable[[Floats, Integers, Floats], Floats] = spread_biases if self.transposed else gather_couplings
        return shift(vector, self.pairs, self.mean)

    def on_device(self, twins: ModuleType) -> Matrix:
        """Return the same for tensors."""
        return twins.Shift(self.pairs.T, self.mean, self.transposed)


def pair_centring(pairs: Integers, mean: Floats, scales: Floats) -> LinearMap:
    """Return the change for biases and what pairs of them have in common: biases take up its mean."""
    return LinearMap(scales, PairShift(pairs, mean), PairShift(pairs, -mean))


@dataclass(frozen=True, eq=False)
class ProductShift:
    """The matrix that adds to a part of a product what the mean of the rest makes of the product, or its transpose.

    `steps` have a variable, a product that holds it, and the one that is left without it, in the variables' order.
    """

    steps: Integers
    mean: Floats
    transposed: bool = False

    @property
    def T(self) -> ProductShift:
        """The transpose."""
        return replace(self, transposed=not self.transposed)

    def __matmul__(self, vector: Floats) -> Floats:
        return shift_products(vector, self.steps, self.mean, self.transposed)


def product_centring(products: Sequence[tuple[int, ...]], mean: Floats, scales: Floats) -> LinearMap | None:
    """Return the change for products of any size; None unless every part of a product is a product too."""
    place = {product: number for number, product in enumerate(products)}
    steps = [
        (variable, number, place.get(product[:k] + product[k + 1 :], -1))
        for product, number in place.items()
        for k, variable in enumerate(product)
        if len(product) > 1
    ]
    moves = np.array(sorted(steps), dtype=np.int64).reshape(-1, 3)
    if moves[:, 2].min(initial=0) < 0:
        return None
    return LinearMap(scales, ProductShift(moves, mean), ProductShift(moves, -mean))
