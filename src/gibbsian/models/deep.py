"""The deep Boltzmann machine: layers in a row, and weights between neighbours only (Salakhutdinov and Hinton 2009).

Given the odd layers the even ones are independent, and the other way round: seen so, with the even layers side by side
on one side and the odd ones on the other, the machine is a restricted one. `DeepModel.folded` gives that view, and with
it everything that is known of restricted machines: block Gibbs steps, exact sums, annealing, every free phase.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from gibbsian.blocks import spans
from gibbsian.errors import TooExpensiveError
from gibbsian.models.base import MODELS
from gibbsian.models.joined_layer import joined
from gibbsian.models.joint_form import JointModel, joint_model, parts_of
from gibbsian.models.layer_stack import LayerStack, checked_parts, glorot_spread, joined_parts, pair_shapes, split_parts
from gibbsian.models.layers import Layer
from gibbsian.models.restricted import RestrictedModel

# log_weights sums over the states of every other hidden layer; beyond this it is a matter for bounds.
MOST_STATES = 2.0**16


@MODELS.register("deep", layers=True)
@dataclass(frozen=True, eq=False)
class DeepModel(LayerStack):
    """``P(x_0, ..., x_L) = exp((sum_l b_l·x_l + sum_l x_l W_l x_(l+1)) / T) / Z`` over the values of the layers.

    Layer 0 is visible, the others are hidden.

    Parameters
    ----------
    layers : sequence of Layer
        From the visible one to the top, at least two.
    theta : ndarray
        The biases of all layers from the bottom, then the weights between neighbours from the bottom, each matrix row
        by row (one row for each column of the lower layer). float64 or float32; products are made in that precision.
    temperature : float
        T of YK15: energies, a layer's own measure included, are divided by it.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import BinaryLayer
    >>> dbm = DeepModel.build([BinaryLayer(1)] * 3, weights=[[[1.0]], [[2.0]]])
    >>> one = np.ones((1, 1))
    >>> dbm.fields(1, [one, None, one])           # the middle unit hears both neighbours
    array([[3.]])
    """

    layers: tuple[Layer, ...]
    theta: np.ndarray
    temperature: float = 1.0

    def __post_init__(self) -> None:
        self._settle_layers()
        self._settle(sum(math.prod(shape) for shape in pair_shapes(self.layers)))

    @classmethod
    def build(cls, layers: Sequence[Layer], biases: Any = None, weights: Any = None, temperature: float = 1.0) -> Self:
        """Put a model together from its parts; what is left out is zero.

        Parameters
        ----------
        layers : sequence of Layer
            From the visible one to the top.
        biases : sequence of array-like, optional
            One for each layer.
        weights : sequence of array-like, optional
            One matrix between each two neighbours.
        temperature : float
            T of YK15.

        Examples
        --------
        >>> from gibbsian.models.deep import DeepModel
        >>> from gibbsian.models.layers import SpinLayer
        >>> DeepModel.build([SpinLayer(3), SpinLayer(2), SpinLayer(2)]).theta.size
        17
        """
        shapes = pair_shapes(layers)
        b = checked_parts(biases, shapes[: len(layers)], "biases")
        w = checked_parts(weights, shapes[len(layers) :], "weights")
        return cls(tuple(layers), joined_parts([*b, *w]), temperature)

    # -- parts ----------------------------------------------------------------------------------------------------
    @cached_property
    def biases(self) -> tuple[np.ndarray, ...]:
        """The biases of each layer: views of theta."""
        return self.split(self.theta)[0]

    @cached_property
    def weights(self) -> tuple[np.ndarray, ...]:
        """The weights between each layer and the next: views of theta."""
        return self.split(self.theta)[1]

    def split(self, vector: np.ndarray) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Return views of a vector laid out as theta: one part for each layer, one matrix for each two neighbours.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.deep import DeepModel
        >>> from gibbsian.models.layers import SpinLayer
        >>> dbm = DeepModel.build([SpinLayer(2), SpinLayer(1)])
        >>> dbm.split(np.arange(5))[1]
        (array([[3],
               [4]]),)
        """
        parts = tuple(split_parts(vector, pair_shapes(self.layers)))
        return parts[: len(self.layers)], parts[len(self.layers) :]

    @property
    def lowest_parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Visible biases, biases of the lowest hidden layer and the weights between them."""
        return self.biases[0], self.biases[1], self.weights[0]

    # -- one layer given its neighbours -------------------------------------------------------------------------------
    def fields(self, place: int, values: Sequence[np.ndarray | None], below: np.ndarray | None = None) -> np.ndarray:
        """Return the fields of the layer at a place given its neighbours, divided by T.

        Parameters
        ----------
        place : int
            Which layer, 0 for the visible one.
        values : sequence of ndarray or None
            Values or means of all layers; only the neighbours are looked at.
        below : ndarray, optional
            The lower neighbour's values times its weights, where they are known.
        """
        total: Any = self.biases[place]
        if below is not None:
            total = total + below
        elif place > 0:
            total = total + self._numbers(values[place - 1]) @ self.weights[place - 1]
        if place < len(self.layers) - 1:
            total = total + self._numbers(values[place + 1]) @ self.weights[place].T
        return total / self.temperature

    def means(self, place: int, values: Sequence[np.ndarray | None]) -> np.ndarray:
        """Return the expected values of a layer given its neighbours."""
        return self.tempered[place].means(self.fields(place, values))

    def draw(self, place: int, values: Sequence[np.ndarray | None], rng: np.random.Generator) -> np.ndarray:
        """Draw a layer given its neighbours."""
        return self.tempered[place].draw(self.fields(place, values), rng)

    def _numbers(self, values: np.ndarray | None) -> np.ndarray:
        return np.asarray(values, dtype=self.theta.dtype)

    # -- distribution -----------------------------------------------------------------------------------------------
    def energy(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Return the energy of rows of values of all layers, the layers' own measures included.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.deep import DeepModel
        >>> from gibbsian.models.layers import SpinLayer
        >>> dbm = DeepModel.build([SpinLayer(1)] * 3, [[0.5], [0.0], [0.0]], [[[2.0]], [[1.0]]])
        >>> dbm.energy([np.array([[1.0]]), np.array([[-1.0]]), np.array([[1.0]])])
        array([2.5])
        """
        arrays = [np.asarray(part, dtype=np.float64) for part in values]
        total = self.linear_terms(arrays)
        for layer, part in zip(self.layers, arrays, strict=True):
            total = total + layer.log_measure(part)
        return -total

    def linear_terms(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Return ``sum_l b_l . x_l + sum_l x_l W_l x_(l+1)``, which is linear in each layer: means give its mean."""
        total = sum(part @ bias for part, bias in zip(values, self.biases, strict=True))
        for matrix, lower, upper in zip(self.weights, values[:-1], values[1:], strict=True):
            total = total + np.einsum("mj,mj->m", lower @ matrix, upper)
        return np.asarray(total)

    def value_log_weights(self, v: np.ndarray) -> np.ndarray:
        """Return ``log sum_h exp(-E(v, h) / T)`` of each row of values, ``log P(v) + log Z``, exactly.

        The states of every other hidden layer are listed and the layers between them summed out, so this is for
        small machines: `gibbsian.expectations.DeepMeanField` bounds it for any.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.deep import DeepModel
        >>> from gibbsian.models.layers import BinaryLayer
        >>> dbm = DeepModel.build([BinaryLayer(2), BinaryLayer(1), BinaryLayer(1)])
        >>> np.exp(dbm.value_log_weights(np.zeros((1, 2))))                  # four states of the hidden units
        array([4.])
        """
        v = np.asarray(v, dtype=np.float64)
        if len(self.layers) == 2:
            return self.folded().value_log_weights(v)
        own = (v @ self.biases[0] + self.visible.log_measure(v)) / self.temperature
        return own + np.array([self._above(row).log_partition() for row in v])

    def _above(self, row: np.ndarray) -> DeepModel:
        """Return the machine of the hidden layers given a row of visible values, which become biases."""
        first = self.biases[1] + row @ self.weights[0]
        return DeepModel.build(self.layers[1:], [first, *self.biases[2:]], self.weights[1:], self.temperature)

    def log_partition(self) -> float:
        """Return log Z exactly, by listing the states of the even or of the odd layers, whichever are fewer.

        Examples
        --------
        >>> from gibbsian.models.deep import DeepModel
        >>> from gibbsian.models.layers import SpinLayer
        >>> round(DeepModel.build([SpinLayer(2)] * 3).log_partition(), 4)         # 6 log 2
        4.1589
        """
        model = self.folded()
        if model.visible.n_states < model.hidden.n_states:
            model = model.transposed()
        if model.hidden.n_states > MOST_STATES:
            raise TooExpensiveError(
                f"log Z of layers of {[layer.n_units for layer in self.layers]} units is a sum over "
                f"{model.hidden.n_states:.2g} states",
                "use `gibbsian.diagnostics.log_partition_interval`, which brackets it",
            )
        return float(
            np.logaddexp.reduce(model.hidden_log_weights(model.hidden.enumerate(0, int(model.hidden.n_states))))
        )

    # -- other forms of the same distribution -----------------------------------------------------------------------
    @property
    def even(self) -> tuple[int, ...]:
        """Places of the even layers, the visible one first."""
        return tuple(range(0, len(self.layers), 2))

    @property
    def odd(self) -> tuple[int, ...]:
        """Places of the odd layers."""
        return tuple(range(1, len(self.layers), 2))

    @cached_property
    def _sides(self) -> tuple[dict[int, slice], dict[int, slice]]:
        """The columns of each even layer on the visible side of the folded machine, of each odd one on the other."""

        def columns(places: tuple[int, ...]) -> dict[int, slice]:
            return dict(zip(places, spans(self.layers[place].width for place in places), strict=True))

        return columns(self.even), columns(self.odd)

    def folded(self) -> RestrictedModel:
        """Return the same distribution as a restricted machine: the even layers against the odd ones.

        Its weights are zero between layers that are not neighbours, of which there are none up to three layers.

        Examples
        --------
        >>> from gibbsian.models.deep import DeepModel
        >>> from gibbsian.models.layers import BinaryLayer
        >>> rbm = DeepModel.build([BinaryLayer(4), BinaryLayer(3), BinaryLayer(2)]).folded()
        >>> rbm.visible, rbm.hidden
        (BinaryLayer(n_units=6), BinaryLayer(n_units=3))
        """
        return RestrictedModel(
            joined([self.layers[place] for place in self.even]),
            joined([self.layers[place] for place in self.odd]),
            self.fold(self.theta),
            self.temperature,
        )

    def fold(self, vector: np.ndarray) -> np.ndarray:
        """Lay out a vector like theta as the folded machine's theta, with zeros where no weight is."""
        biases, weights = self.split(vector)
        rows, columns = self._sides
        folded = np.zeros((rows[self.even[-1]].stop, columns[self.odd[-1]].stop), dtype=vector.dtype)
        for place, matrix in enumerate(weights):
            if place % 2 == 0:
                folded[rows[place], columns[place + 1]] = matrix
            else:
                folded[rows[place + 1], columns[place]] = matrix.T
        sides = [biases[place] for place in (*self.even, *self.odd)]
        return np.concatenate([*sides, folded.ravel()])

    def unfold(self, vector: np.ndarray) -> np.ndarray:
        """Lay out a vector like the folded machine's theta as this one's; the other products are left out.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.deep import DeepModel
        >>> from gibbsian.models.layers import BinaryLayer
        >>> dbm = DeepModel.build([BinaryLayer(4), BinaryLayer(3), BinaryLayer(2), BinaryLayer(1)])
        >>> theta = np.arange(float(dbm.theta.size))
        >>> bool((dbm.unfold(dbm.fold(theta)) == theta).all())
        True
        """
        rows, columns = self._sides
        n_rows, n_columns = rows[self.even[-1]].stop, columns[self.odd[-1]].stop
        sides = vector[:n_rows], vector[n_rows : n_rows + n_columns]
        products = vector[n_rows + n_columns :].reshape(n_rows, n_columns)
        biases = [sides[place % 2][self._sides[place % 2][place]] for place in range(len(self.layers))]
        weights = [
            products[rows[place], columns[place + 1]] if place % 2 == 0 else products[rows[place + 1], columns[place]].T
            for place in range(len(self.layers) - 1)
        ]
        return joined_parts([*biases, *weights])

    def fold_values(self, values: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Put the values of the even layers side by side, and those of the odd ones."""
        return (
            np.hstack([values[place] for place in self.even]),
            np.hstack([values[place] for place in self.odd]),
        )

    def unfold_values(
        self, even: np.ndarray, odd: np.ndarray, rng: np.random.Generator | None = None
    ) -> list[np.ndarray]:
        """Return the values of the layers, from the bottom, of the two sides of the folded machine.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.deep import DeepModel
        >>> from gibbsian.models.layers import BinaryLayer
        >>> dbm = DeepModel.build([BinaryLayer(2), BinaryLayer(1), BinaryLayer(1)])
        >>> [part.tolist() for part in dbm.unfold_values(np.array([[1, 0, 1]]), np.array([[0]]))]
        [[[1, 0]], [[0]], [[1]]]
        """
        sides = (even, odd)
        return [sides[place % 2][:, self._sides[place % 2][place]] for place in range(len(self.layers))]

    # -- as a stack of restricted machines ----------------------------------------------------------------------------
    def machine_at(self, place: int) -> RestrictedModel:
        """Return the machine, without parameters, that a layer and the next make while they learn alone.

        Every layer but the first and the last will hear from both sides, so each machine gives half of its energy. The
        visible layer of the lowest and the top layer of the highest machine are there twice, so that half of the energy
        leaves them all of theirs (Salakhutdinov and Hinton 2009).
        """
        lower, upper = self.layers[place : place + 2]
        if self.n_hidden_layers > 1 and place == 0:
            lower = joined([lower, lower])
        if self.n_hidden_layers > 1 and place == self.n_hidden_layers - 1:
            upper = joined([upper, upper])
        return RestrictedModel.build(lower, upper, temperature=self.temperature)

    def tied(self, place: int, machine: RestrictedModel) -> RestrictedModel:
        """Give both copies of a layer of such a machine the same weights."""
        weights = machine.weights
        if machine.visible.width > self.layers[place].width:
            half = len(weights) // 2
            weights = np.vstack([weights[:half], weights[:half]])
        if machine.hidden.width > self.layers[place + 1].width:
            half = weights.shape[1] // 2
            weights = np.hstack([weights[:, :half], weights[:, :half]])
        return machine.replace(np.concatenate([machine.visible_biases, machine.hidden_biases, weights.ravel()]))

    def stacked(self, machines: Sequence[RestrictedModel]) -> Self:
        """Return the deep machine of half of each machine's energy, the two copies of a layer made one."""
        share = 0.5 if len(machines) > 1 else 1.0
        dtype = machines[0].theta.dtype
        biases, weights = [np.zeros(layer.width, dtype) for layer in self.layers], []
        for place, machine in enumerate(machines):
            lower, upper = self.layers[place].width, self.layers[place + 1].width
            biases[place] += share * machine.visible_biases.reshape(-1, lower).sum(axis=0)
            biases[place + 1] += share * machine.hidden_biases.reshape(-1, upper).sum(axis=0)
            copies = machine.weights.reshape(-1, lower, machine.weights.shape[1] // upper, upper)
            weights.append((share * copies.sum((0, 2))).astype(dtype))
        return type(self).build(self.layers, biases, weights, self.temperature)

    @property
    def layer_weights(self) -> tuple[np.ndarray, ...]:
        """The weights between neighbouring layers, from the lowest."""
        return self.weights

    def joint(self) -> JointModel:
        """Return the distribution of all layers, from the bottom, as a model of plain variables.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.models.DeepModel.build([gb.models.SpinLayer(n) for n in (2, 2, 1)]).joint().graph.n_edges
        6
        """
        return joint_model(self.layers, self.biases, self.weights, self.temperature)

    def from_joint(self, joint: JointModel) -> Self:
        """Return the machine of these layers that has a joint distribution."""
        biases, weights = parts_of(self.layers, joint)
        return type(self).build(self.layers, biases, weights, self.temperature)

    def rescaled(self, centres: np.ndarray, spreads: np.ndarray) -> Self:
        """Return the machine over ``v = centres + spreads u`` of this one: only what touches the data moves."""
        visible, hidden = self.layers[:2]
        lowest = RestrictedModel.build(
            visible, hidden, self.biases[0], self.biases[1], self.weights[0], self.temperature
        ).rescaled(centres, spreads)
        biases = [lowest.visible_biases, lowest.hidden_biases, *self.biases[2:]]
        layers = [lowest.visible, *self.layers[1:]]
        return type(self).build(layers, biases, [lowest.weights, *self.weights[1:]], self.temperature)

    def started(self, means: np.ndarray, rng: np.random.Generator, scale: float | None = None) -> Self:
        """Return the machine whose visible units have these means, with random weights as in `RestrictedModel`."""
        biases = [np.zeros(layer.width) for layer in self.layers]
        biases[0] = self.temperature * self.tempered[0].fields_of(means)
        weights = []
        for lower, upper in itertools.pairwise(self.layers):
            spread = glorot_spread(lower, upper, self.temperature) if scale is None else scale
            weights.append(spread * rng.standard_normal((lower.width, upper.width)))
        return type(self).build(self.layers, biases, weights, self.temperature)


__all__ = ["DeepModel"]
