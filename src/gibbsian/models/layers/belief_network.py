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
from typing import Any, NamedTuple

import numpy as np

from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.models.family import FAMILIES, Model, StackParts
from gibbsian.models.interactions import Interactions, between_layers
from gibbsian.models.layers.stack import MOST_STATES, LayeredFamily, StackFamily
from gibbsian.models.layers.units import count_states, enumerate_values, idle_means, log_probability
from gibbsian.resources import spans

Array = Any


class NetworkParts(NamedTuple):
    """The parameters of the restricted machines of neighbouring layers, views of theta, from the bottom."""

    machines: list[StackParts]


@FAMILIES.register("belief-network", layers=True)
@dataclass(frozen=True)
class BeliefNetworkFamily(LayeredFamily):
    """``P(x_0, ..., x_L) = P(x_0 | x_1) ⋯ P(x_(L-2) | x_(L-1)) P(x_(L-1), x_L)``, the last a restricted machine.

    Theta has the parameters of the restricted machines of neighbouring layers, one after the other from the bottom;
    with two layers the network is a restricted machine. Log-weights are those of probabilities times the normaliser of
    the machine at the top.

    Parameters
    ----------
    layers : sequence of Units
        From the visible one to the top, at least two.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> network = gb.models.BeliefNetworkFamily([gb.models.BinaryUnits(n) for n in (2, 1, 1)])
    >>> theta = np.zeros(network.n_parameters)
    >>> network.split(theta).machines[0].weights[0][:] = [[1.0], [-1.0]]
    >>> network.upward_means(theta, np.array([[1.0, 0.0]]))[1].round(4)            # 1 / (1 + exp(-1))
    array([[0.7311]])
    """

    @cached_property
    def machines(self) -> tuple[StackFamily, ...]:
        """The restricted machines of neighbouring layers from the bottom."""
        return tuple(StackFamily(pair) for pair in itertools.pairwise(self.layers))

    @cached_property
    def _places(self) -> list[slice]:
        return spans(machine.n_parameters for machine in self.machines)

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return self._places[-1].stop

    @cached_property
    def penalised(self) -> np.ndarray:
        """Mask of the weights."""
        return np.concatenate([machine.penalised for machine in self.machines])

    def split(self, theta: Array) -> NetworkParts:
        """Return the parameters of the machines: views of theta."""
        return NetworkParts([machine.split(theta[at]) for machine, at in zip(self.machines, self._places, strict=True)])

    def lowest(self, theta: Array) -> StackParts:
        """Return the biases of the two lowest layers and the weights between them."""
        return self.split(theta).machines[0]

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter of each machine, given the names of the columns."""
        units = [*names, *(f"h{number}" for number in range(self.n_hidden))]
        ends, labels = spans(layer.n_units for layer in self.layers), []
        for k, machine in enumerate(self.machines):
            own = machine.labels(units[ends[k].start : ends[k + 1].stop])
            weights = (f"{a}*{b}" for a, b in itertools.product(*own))
            labels += [f"machine {k}: {label}" for label in (*own[0], *own[1], *weights)]
        return labels

    def joint(self, theta: Array) -> Any:
        """Refuse: layers drawn given the one above have normalisers, so the log-weight is not linear in theta."""
        raise ArgumentError(
            "a belief network is no exponential family over its units", "ask for the joint form of its `top` machine"
        )

    def interactions(self, theta: Array) -> Interactions:
        """Return the weights by which each layer is drawn from the one above, and those of the machine at the top."""
        return between_layers(self.layers, [machine.weights[0] for machine in self.split(theta).machines])

    def initialised(self, means: np.ndarray, rng: np.random.Generator, scale: float | None = None) -> np.ndarray:
        """Return theta of a stack of machines with random weights whose visible units have these means."""
        thetas = []
        for machine in self.machines:
            thetas.append(machine.initialised(means, rng, scale))
            means = idle_means(machine.layers[1])
        return np.concatenate(thetas)

    def rescaled(self, theta: np.ndarray, centres: np.ndarray, spreads: np.ndarray) -> Model[BeliefNetworkFamily]:
        """Return the network over ``v = centres + spreads u`` of this one: only what touches the data moves."""
        lowest = self.machines[0].rescaled(theta[self._places[0]], centres, spreads)
        layers = (lowest.family.layers[0], *self.layers[1:])
        return Model(BeliefNetworkFamily(layers), np.concatenate([lowest.theta, theta[self._places[0].stop :]]))

    def at(self, theta: np.ndarray, beta: float) -> Model[BeliefNetworkFamily]:
        """Refuse: each directed layer is normalised by itself, so that there is no energy of all of them."""
        raise ArgumentError("a belief network has no temperature of its own", "ask its `top`, or a deep machine")

    # -- down and up --------------------------------------------------------------------------------------------------
    @property
    def top(self) -> StackFamily:
        """The restricted machine of the two highest layers."""
        return self.machines[-1]

    def top_theta(self, theta: Array) -> Array:
        """Return the parameters of `top`."""
        return theta[self._places[-1]]

    def draw_below(self, theta: Array, values: Sequence[Array], rng: Any) -> list[Array]:
        """Return the values of all layers given those of the two highest, which come last."""
        drawn = list(values)
        for machine, parts in reversed(self._directed(theta)):
            drawn.insert(0, machine.draw(parts, 0, [None, drawn[0]], rng))
        return drawn

    def draw_up(self, theta: Array, v: np.ndarray, rng: Any) -> list[Array]:
        """Draw the layers up to the second highest by recognition, given visible values, which come first."""
        values = [np.asarray(v, dtype=theta.dtype)]
        for machine, parts in self._directed(theta):
            values.append(machine.draw(parts, 1, [values[-1], None], rng))
        return values

    def upward_means(self, theta: Array, v: np.ndarray) -> list[Array]:
        """Return the means of all layers, each given the means of the one below: what `transform` gives."""
        values = [np.asarray(v, dtype=theta.dtype)]
        for machine, parts in zip(self.machines, self.split(theta).machines, strict=True):
            values.append(machine.means(parts, 1, [values[-1], None]))
        return values

    def _directed(self, theta: Array) -> list[tuple[StackFamily, StackParts]]:
        """The machines below the top, by which each layer is drawn given the one above."""
        return list(zip(self.machines, self.split(theta).machines, strict=True))[:-1]

    # -- distribution -------------------------------------------------------------------------------------------------
    def log_weights(self, theta: Array, x: Array) -> Array:
        """Return ``log P(x) + log Z`` of complete rows, Z the top machine's."""
        *below, last = self.encode(x)
        return self._log_directed(theta, below) + self.machines[-1].log_weights_of_values(
            self.split(theta).machines[-1], [below[-1], last]
        )

    def log_joint(self, theta: Array, values: Sequence[Array]) -> Array:
        """Return ``log P(x_0, .., x_(L-1)) + log Z`` of rows of values, the top layer summed out.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> network = gb.models.BeliefNetworkFamily([gb.models.BinaryUnits(1)] * 3)
        >>> theta = np.zeros(network.n_parameters)
        >>> np.exp(network.log_joint(theta, [np.ones((1, 1)), np.ones((1, 1))]))     # 1/2, times two states of the top
        array([1.])
        """
        top = self.machines[-1].log_weights_of_side(self.split(theta).machines[-1], 0, [values[-1], None])
        return top + self._log_directed(theta, values)

    def _log_directed(self, theta: Array, values: Sequence[Array]) -> Any:
        """Log-probability of the layers below the second highest, each given the one above."""
        total: Any = 0.0
        for place, (machine, parts) in enumerate(self._directed(theta)):
            fields = machine.fields(parts, 0, [None, values[place + 1]])
            total = total + _log_probability(self.layers[place], fields, values[place])
        return total

    def log_recognition(self, theta: Array, values: Sequence[Array]) -> Array:
        """Return ``log Q(x_1, .., x_(L-1) | x_0)`` of rows of values."""
        total = np.zeros(len(values[0]))
        for place, (machine, parts) in enumerate(self._directed(theta)):
            fields = machine.fields(parts, 1, [values[place], None])
            total = total + _log_probability(self.layers[place + 1], fields, values[place + 1])
        return total

    def log_evidence(self, theta: Array, v: Array) -> Array:
        """Return ``log P(v) + log Z`` of rows of visible values, by listing the layers below the top.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> network = gb.models.BeliefNetworkFamily([gb.models.BinaryUnits(1)] * 3)
        >>> np.exp(network.log_evidence(np.zeros(network.n_parameters), np.ones((1, 1))))                  # Z is 4
        array([2.])
        """
        v, between = np.asarray(v, dtype=np.float64), self.layers[1:-1]
        if not between:
            return self.top.log_evidence(theta, v)
        if (n_states := count_states(between)) > MOST_STATES:
            raise TooExpensiveError(
                f"log P(v) is a sum over {n_states:.2g} states of the layers below the top",
                "use `gibbsian.expectations.layers`, which bounds it",
            )
        values = enumerate_values(between, 0, int(n_states))
        lowest, parts = self._directed(theta)[0]
        upper = self.log_joint(theta, [np.zeros((len(values[0]), self.layers[0].width)), *values])
        fields = np.asarray(lowest.fields(parts, 0, [None, values[0]]), dtype=np.float64)
        # log_joint has counted a visible layer of zeros, whose log-weight is minus the normaliser
        own = self.layers[0].log_measure(v)
        return own + np.array([np.logaddexp.reduce(upper + fields @ row) for row in v])


def _log_probability(layer: Any, fields: np.ndarray, values: np.ndarray) -> np.ndarray:
    return log_probability(layer, np.asarray(fields, dtype=np.float64), np.asarray(values, dtype=np.float64))
