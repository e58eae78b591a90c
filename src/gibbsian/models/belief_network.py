"""The deep belief network: a restricted machine at the top, directed layers below it (Hinton, Osindero and Teh 2006).

The machine at the top draws the second highest layer, and each layer below is drawn given the one above it. Rows of
data are carried the other way by *recognition*: independent units given the layer below, which stand for the posterior
that nobody can compute. It is a stack of restricted machines (YK15, "stacking"), whose weights serve both ways.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.models.base import MODELS
from gibbsian.models.joined_layer import joined
from gibbsian.models.layer_stack import LayerStack, split_parts
from gibbsian.models.layers import Layer, log_probability
from gibbsian.models.restricted import RestrictedModel

# log_weights sums over the states of the hidden layers below the top.
MOST_STATES = 2.0**16


@MODELS.register("belief-network", layers=True)
@dataclass(frozen=True, eq=False)
class BeliefNetwork(LayerStack):
    """``P(x_0, ..., x_L) = P(x_0 | x_1) ⋯ P(x_(L-2) | x_(L-1)) P(x_(L-1), x_L)``, the last a restricted machine.

    Parameters
    ----------
    layers : sequence of Layer
        From the visible one to the top, at least two; with two the network is a restricted machine.
    theta : ndarray
        The parameters of the restricted machines of neighbouring layers, one after the other from the bottom.
    temperature : float
        T of YK15: all fields are divided by it.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models.belief_network import BeliefNetwork
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> lower = RestrictedModel.build(BinaryLayer(2), BinaryLayer(1), weights=[[1.0], [-1.0]])
    >>> upper = RestrictedModel.build(BinaryLayer(1), BinaryLayer(1))
    >>> network = BeliefNetwork.stack([lower, upper])
    >>> network.upward_means(np.array([[1.0, 0.0]]))[1].round(4)            # 1 / (1 + exp(-1))
    array([[0.7311]])
    """

    layers: tuple[Layer, ...]
    theta: np.ndarray
    temperature: float = 1.0

    def __post_init__(self) -> None:
        self._settle_layers()
        self._settle(sum(a.width + b.width + a.width * b.width for a, b in itertools.pairwise(self.layers)))

    @classmethod
    def zeros(cls, layers: Sequence[Layer], temperature: float = 1.0) -> Self:
        """Return the network in which all units are independent.

        Examples
        --------
        >>> from gibbsian.models.belief_network import BeliefNetwork
        >>> from gibbsian.models.layers import SpinLayer
        >>> BeliefNetwork.zeros([SpinLayer(2), SpinLayer(1)]).theta.size
        5
        """
        machines = [RestrictedModel.build(a, b, temperature=temperature) for a, b in itertools.pairwise(layers)]
        return cls.stack(machines)

    @classmethod
    def stack(cls, machines: Sequence[RestrictedModel]) -> Self:
        """Put restricted machines on top of each other, each with the hidden layer below as its visible one.

        Examples
        --------
        >>> from gibbsian.models.belief_network import BeliefNetwork
        >>> from gibbsian.models.layers import SpinLayer
        >>> from gibbsian.models.restricted import RestrictedModel
        >>> below = RestrictedModel.build(SpinLayer(3), SpinLayer(2))
        >>> BeliefNetwork.stack([below, RestrictedModel.build(SpinLayer(4), SpinLayer(2))])
        Traceback (most recent call last):
            ...
        gibbsian.errors.ArgumentError: machine 1 has 4 visible columns, but the machine below has 2 hidden ones
        """
        if not machines:
            raise ArgumentError("machines is empty", "give at least one restricted machine")
        for place, (below, above) in enumerate(itertools.pairwise(machines), start=1):
            if below.hidden.width != above.visible.width:
                raise ArgumentError(
                    f"machine {place} has {above.visible.width} visible columns, but the machine below "
                    f"has {below.hidden.width} hidden ones"
                )
            if below.temperature != above.temperature:
                raise ArgumentError(f"machine {place} has another temperature than the one below", "give one for all")
        layers = (machines[0].visible, *(machine.hidden for machine in machines))
        return cls(layers, np.concatenate([machine.theta for machine in machines]), machines[0].temperature)

    # -- parts ----------------------------------------------------------------------------------------------------
    @cached_property
    def machines(self) -> tuple[RestrictedModel, ...]:
        """The restricted machines of neighbouring layers from the bottom, with views of theta."""
        widths = [layer.width for layer in self.layers]
        sizes = [(a + b + a * b,) for a, b in itertools.pairwise(widths)]
        return tuple(
            RestrictedModel(self.layers[place], self.layers[place + 1], part, self.temperature)
            for place, part in enumerate(split_parts(self.theta, sizes))
        )

    @property
    def directed(self) -> tuple[RestrictedModel, ...]:
        """The machines below the top, by which each layer is drawn given the one above."""
        return self.machines[:-1]

    @property
    def top(self) -> RestrictedModel:
        """The restricted machine of the two highest layers."""
        return self.machines[-1]

    @cached_property
    def penalised(self) -> np.ndarray:
        """Which parameters a penalty applies to: the weights."""
        return np.concatenate([machine.penalised for machine in self.machines])

    def folded(self) -> RestrictedModel:
        """Return the machine at the top, whose normaliser is the network's."""
        return self.top

    def unfold(self, vector: np.ndarray) -> np.ndarray:
        """Refuse: the directed layers have no expected statistics that learning could match."""
        raise ArgumentError("a belief network has no moments in the layout of its parameters", "ask `network.top`")

    def unfold_values(self, lower: np.ndarray, upper: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw the layers below values of the two highest ones, and return all from the bottom."""
        return [*self.draw_down(lower, rng), upper]

    # -- as a stack of restricted machines ----------------------------------------------------------------------------
    def machine_at(self, place: int) -> RestrictedModel:
        """Return the machine, without parameters, that a layer and the next make while they learn alone."""
        return RestrictedModel.build(self.layers[place], self.layers[place + 1], temperature=self.temperature)

    def tied(self, place: int, machine: RestrictedModel) -> RestrictedModel:
        """Return the machine itself: no layer of it is there twice."""
        return machine

    def stacked(self, machines: Sequence[RestrictedModel]) -> Self:
        """Return the network of these machines."""
        return self.stack(machines)

    def joint(self) -> Any:
        """Refuse: layers drawn given the one above have normalisers, so the energy is not linear in theta."""
        raise ArgumentError(
            "a belief network is no exponential family over its units", "ask for the joint form of its `top` machine"
        )

    @property
    def layer_weights(self) -> tuple[np.ndarray, ...]:
        """The weights by which each layer is drawn from the one above, and those of the machine at the top."""
        return tuple(machine.weights for machine in self.machines)

    def rescaled(self, centres: np.ndarray, spreads: np.ndarray) -> Self:
        """Return the network over ``v = centres + spreads u`` of this one: only what touches the data moves."""
        return self.stack([self.machines[0].rescaled(centres, spreads), *self.machines[1:]])

    def started(self, means: np.ndarray, rng: np.random.Generator, scale: float | None = None) -> Self:
        """Return a stack of machines with random weights whose visible units have these means."""
        machines = []
        for lower, upper in itertools.pairwise(self.layers):
            blank = RestrictedModel.build(lower, upper, temperature=self.temperature)
            machines.append(blank.started(means, rng, scale))
            means = upper.means(np.zeros((1, upper.width)))[0]
        return self.stack(machines)

    @property
    def lowest_parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Visible biases, biases of the lowest hidden layer given the visible one, and the weights between them."""
        return self.machines[0].lowest_parts

    def at(self, beta: float) -> Self:
        """Refuse: each directed layer is normalised by itself, so that there is no energy of all of them."""
        raise ArgumentError("a belief network has no temperature of its own", "ask `model_.top`, or a deep machine")

    # -- down and up --------------------------------------------------------------------------------------------------
    def upward_means(self, v: np.ndarray) -> list[np.ndarray]:
        """Return the means of all layers, each given the means of the one below: what `transform` gives.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.belief_network import BeliefNetwork
        >>> from gibbsian.models.layers import BinaryLayer
        >>> network = BeliefNetwork.zeros([BinaryLayer(3), BinaryLayer(2), BinaryLayer(1)])
        >>> network.upward_means(np.ones((1, 3)))[-1]
        array([[0.5]])
        """
        values = [np.asarray(v, dtype=self.theta.dtype)]
        for place in range(len(self.directed)):
            values.append(self.tempered[place + 1].means(self.machines[place].hidden_fields(values[-1])))
        return [*values, self.top.hidden_means(values[-1])]

    def draw_up(self, v: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw the layers up to the second highest by recognition, given visible values, which come first."""
        values = [np.asarray(v, dtype=self.theta.dtype)]
        for place in range(len(self.directed)):
            values.append(self.tempered[place + 1].draw(self.machines[place].hidden_fields(values[-1]), rng))
        return values

    def draw_down(self, upper: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw the layers from the visible one to the second highest given values of the latter, which come last."""
        values = [np.asarray(upper, dtype=self.theta.dtype)]
        for place in reversed(range(len(self.directed))):
            values.insert(0, self.tempered[place].draw(self.machines[place].visible_fields(values[0]), rng))
        return values

    # -- distribution -----------------------------------------------------------------------------------------------
    def log_joint(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Return ``log P(x_0, .., x_(L-1)) + log Z`` of rows, the top layer summed out; Z is the top machine's.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.belief_network import BeliefNetwork
        >>> from gibbsian.models.layers import BinaryLayer
        >>> network = BeliefNetwork.zeros([BinaryLayer(1)] * 3)
        >>> np.exp(network.log_joint([np.ones((1, 1)), np.ones((1, 1))]))         # 1/2, times two states of the top
        array([1.])
        """
        total = self.top.value_log_weights(values[-1])
        for place in range(len(self.directed)):
            fields = self.machines[place].visible_fields(values[place + 1])
            total = total + self._log_probability(place, fields, values[place])
        return total

    def log_recognition(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Return ``log Q(x_1, .., x_(L-1) | x_0)`` of rows."""
        total = np.zeros(len(values[0]))
        for place in range(len(self.directed)):
            fields = self.machines[place].hidden_fields(values[place])
            total = total + self._log_probability(place + 1, fields, values[place + 1])
        return total

    def _log_probability(self, place: int, fields: np.ndarray, values: np.ndarray) -> np.ndarray:
        fields, values = np.asarray(fields, dtype=np.float64), np.asarray(values, dtype=np.float64)
        return log_probability(self.tempered[place], fields, values)

    def value_log_weights(self, v: np.ndarray) -> np.ndarray:
        """Return ``log P(v) + log Z`` of each row of values, Z the top machine's, by listing the layers in between.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.models.belief_network import BeliefNetwork
        >>> from gibbsian.models.layers import BinaryLayer
        >>> network = BeliefNetwork.zeros([BinaryLayer(1)] * 3)
        >>> np.exp(network.value_log_weights(np.ones((1, 1))))                       # Z is 4
        array([2.])
        """
        v = np.asarray(v, dtype=np.float64)
        if not self.directed:
            return self.top.value_log_weights(v)
        between = joined(self.layers[1:-1])
        if between.n_states > MOST_STATES:
            raise TooExpensiveError(
                f"log P(v) is a sum over {between.n_states:.2g} states of the layers below the top",
                "use `gibbsian.expectations.layers`, which bounds it",
            )
        ends = np.cumsum([layer.width for layer in self.layers[1:-1]])[:-1]
        values = np.split(between.enumerate(0, int(between.n_states)), ends, axis=1)
        upper = self.log_joint([np.zeros((len(values[0]), self.visible.width)), *values])
        fields = np.asarray(self.machines[0].visible_fields(values[0]), dtype=np.float64)
        # log_joint has counted a visible layer of zeros, whose log-weight is minus the normaliser
        zeros = self.tempered[0].log_measure(np.zeros((1, self.visible.width)))
        own = self.tempered[0].log_measure(v)
        return own - zeros + np.array([np.logaddexp.reduce(upper + fields @ row) for row in v])
