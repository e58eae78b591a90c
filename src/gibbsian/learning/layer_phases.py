"""The gradient of minibatches for a stack of layers: clamped less free moments (YK15's clamped and free phase).

With two layers the hidden units of a row are known exactly, and its missing cells are imputed whenever it is visited.
With more layers the gradient is that of the bound ``E_Q[log P(v, h)] + H(Q)``, Q the factorised posterior of each row
by mean field (Salakhutdinov and Hinton 2009), and missing cells are hidden units of their row.

The centred gradient (Montavon and Mueller 2012; Melchior, Fischer and Wiskott 2016) has offsets mu and nu near the
means of the layers under the data:

``dW = <(v - mu)(h - nu)^T>_data - <(v - mu)(h - nu)^T>_model``,
``db = <v>_data - <v>_model - dW nu``, ``dc = <h>_data - <h>_model - dW^T mu``.

It is the gradient of the same likelihood in other coordinates, so it vanishes at the same points; flipping the coding
of a unit does not change the path of learning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Mask, Tensor
from gibbsian.backends.device import layer_kernels, library_of
from gibbsian.data import Dataset
from gibbsian.expectations.deep_mean_field import DeepMeanField
from gibbsian.expectations.layer_chains import Found, LayerExpectation, LayerMoments, LayerPoint
from gibbsian.models.base import Model, StackParts
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import idle_means, log_probability, mean_values
from gibbsian.sampling.layer_paths import SHRINKAGE, filled_values

# The offsets follow the means of the minibatches by this share at every step.
OFFSET_SHARE = 0.01
# Rows from which the offsets and the base rates of the free phase take their start.
ROWS_TO_START = 1000
# When the means of a minibatch are near enough to where they would settle.
MEAN_FIELD_TOL = 1e-3


class PhaseState(NamedTuple):
    """The state of the free phase, and the means of the layers under the data, averaged over the past."""

    free: object
    offsets: tuple[Tensor, ...]


class BatchGradient(NamedTuple):
    """A direction in the layout of theta, the next state, and the mean ``-log P(v | h)`` of deep machines."""

    vector: Tensor
    state: PhaseState
    misfit: Tensor | None


class Clamped(NamedTuple):
    """Values of all layers at some rows, hidden units at their means; fields of the odd layers; the misfit if known."""

    values: list[Tensor]
    fields: list[Tensor]
    misfit: Tensor | None


class LayerPhases:
    """Clamped less free moments of minibatches.

    Parameters
    ----------
    family : StackFamily
        The layers.
    free : LayerExpectation
        The moments under the model.
    centred : bool
        Whether to use the centred gradient.
    mean_field_steps : int
        Maximum number of mean-field updates of more than one hidden layer.
    """

    def __init__(
        self, family: StackFamily, free: LayerExpectation[object], centred: bool = True, mean_field_steps: int = 5
    ):
        self.family, self.free, self.centred = family, free, centred
        self.is_deep = len(family.layers) > 2
        self.mean_field = DeepMeanField(max_iter=mean_field_steps, tol=MEAN_FIELD_TOL)

    def init(self, model: Model[StackFamily], data: Dataset, rng: np.random.Generator) -> PhaseState:
        """Start the chains, and take the offsets from some of the rows."""
        visible = self.family.layers[0]
        some = np.linspace(0, data.n_states - 1, min(data.n_states, ROWS_TO_START)).astype(np.int64)
        shares = data.weights[some] / data.weights[some].sum()
        values = self.clamp(model.parts, filled_values(visible, data, some).astype(model.theta.dtype)).values
        means = [mean_values(visible, data), *(shares @ part for part in values[1:])]
        # what the data never show the model may
        each = zip(self.family.layers, means, strict=True)
        base = [layer.fields_of(mean + SHRINKAGE * (idle_means(layer) - mean)) for layer, mean in each]
        free = self.free.init(model, base, rng)
        return PhaseState(free, tuple(part.astype(model.theta.dtype) for part in means))

    def __call__(
        self,
        parts: StackParts,
        state: PhaseState,
        values: Tensor,
        rng: np.random.Generator,
        missing: Mask | None = None,
    ) -> BatchGradient:
        """Return what a minibatch of visible values gives; the chains continue."""
        clamped = self.clamp(parts, values, missing)
        found, free = self.free(LayerPoint(self.family, parts, clamped.fields), state.free, rng)
        vector, means = phase_difference(self.family, clamped.values, found, state.offsets if self.centred else None)
        return BatchGradient(vector, PhaseState(free, towards(state.offsets, means)), clamped.misfit)

    def clamp(self, parts: StackParts, values: Tensor, missing: Mask | None = None) -> Clamped:
        """Return the hidden units given rows of visible values; where cells are missing, of deep machines alone."""
        family = self.family
        if not self.is_deep:
            fields = family.fields(parts, 1, [values, None])
            return Clamped([values, family.layers[1].means(fields)], [fields], None)
        posterior = self.mean_field(family, parts, values, missing)
        means = list(posterior.means)
        found = log_probability(family.layers[0], family.fields(parts, 0, means), means[0])
        return Clamped(means, [posterior.fields[place] for place in family.sides[1]], -found.mean())


def towards(offsets: Sequence[Tensor], means: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return offsets, one for each column of values of each layer, moved a little towards means."""
    move = layer_kernels(means[0]).towards
    return tuple(move(own, mean, OFFSET_SHARE) for own, mean in zip(offsets, means, strict=True))


def phase_difference(
    family: StackFamily, data: Sequence[Tensor], free: Found, offsets: Sequence[Tensor] | None
) -> tuple[Tensor, list[Tensor]]:
    """Return data less free moments in the layout of theta, about offsets where there are any, and the data's means.

    Both phases and the centring are one matrix product for each two neighbours: ``dW = L^T R`` where L has the values
    of the lower layer in the minibatch, those of the samples, mu and ``<v>_data - <v>_model`` as rows, and R those of
    the upper layer in both with their weights, ``-(<h>_data - <h>_model)`` and ``-nu``.
    """
    kernels, library, like = layer_kernels(data[0]), library_of(data[0]), data[0]
    products = free.products if isinstance(free, LayerMoments) else None
    others: Sequence[Tensor] = free.firsts if isinstance(free, LayerMoments) else free
    height = len(like) + (len(others[0]) if products is None else 0) + (0 if offsets is None else 2)
    flat = kernels.empty(1, family.n_parameters, like)[0]
    biases, weights = family.split(flat)
    lefts = [kernels.empty(height, len(part), like) for part in biases[:-1]]
    rights = [kernels.empty(height, len(part), like) for part in biases[1:]]
    means = []
    for place, own in enumerate(data):
        left = lefts[place] if place < len(lefts) else None
        right = rights[place - 1] if place else None
        offset = None if offsets is None else offsets[place]
        means.append(kernels.join_phases(own, others[place], offset, left, right, biases[place]))
    for place, matrix in enumerate(weights):
        library.matmul(lefts[place].T, rights[place], out=matrix)
        if products is not None:
            matrix -= products[place]
        if offsets is not None:
            kernels.subtract_product(biases[place], matrix, offsets[place + 1])
            kernels.subtract_product(biases[place + 1], matrix.T, offsets[place])
    return flat, means
