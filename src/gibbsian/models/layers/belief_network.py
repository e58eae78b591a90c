"""The deep belief network: a restricted machine at the top, directed layers below it (Hinton, Osindero and Teh 2006).

The machine at the top draws the second highest layer, and each layer below is drawn given the one above it. In the
other direction *recognition* draws independent units given the layer below, an approximation of the intractable
posterior. The network is a stack of restricted machines (YK15, "stacking"), whose weights are used in both directions.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, NoReturn

import numpy as np

from gibbsian.arrays import Floats, States, Tensor
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.models.base import FAMILIES, Model, StackParts
from gibbsian.models.interactions import Interactions, between_layers
from gibbsian.models.layers.stack import MOST_STATES, LayeredFamily, StackFamily
from gibbsian.models.layers.units import count_states, enumerate_values, idle_means, log_probability


class NetworkParts(NamedTuple):
    """The parameters of the machine between each two neighbouring layers, views of theta, from the bottom."""

    machines: list[StackParts]


@FAMILIES.register("belief-network")
@dataclass(frozen=True)
class BeliefNetworkFamily(LayeredFamily):
    """``P(x_0, ..., x_L) = P(x_0 | x_1) ⋯ P(x_(L-2) | x_(L-1)) P(x_(L-1), x_L)``, the last a restricted machine.

    Theta has the parameters of the restricted machine between each two neighbouring layers, one after the other from
    the bottom; with two layers the network is a restricted machine. Log-weights include the normaliser of the machine
    at the top.

    Parameters
    ----------
    layers : sequence of Units
        From the visible one to the top; two or more.

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
        """The restricted machine between each two neighbouring layers, from the bottom."""
        return tuple(StackFamily(pair) for pair in itertools.pairwise(self.layers))

    @cached_property
    def _shapes(self) -> Sequence[tuple[int, ...]]:
        return [shape for machine in self.machines for shape in machine._shapes]

    def split(self, theta: Tensor) -> NetworkParts:
        """Return the parameters of the machines: views of theta."""
        arrays = self._arrays(theta)
        each = zip(arrays[::3], arrays[1::3], arrays[2::3], strict=True)
        return NetworkParts([StackParts([lower, upper], [weights]) for lower, upper, weights in each])

    def lowest(self, theta: Tensor) -> StackParts:
        """Return the biases of the two lowest layers and the weights between them."""
        return self.split(theta).machines[0]

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter of each machine, given the names of the columns."""
        units = [*names, *(f"h{i}" for i in range(self.n_hidden))]
        layers = itertools.pairwise(units[at] for at in self._units)
        each = enumerate(zip(self.machines, layers, strict=True))
        return [f"machine {k}: {name}" for k, (machine, pair) in each for name in machine.parameter_names(*pair)]

    def joint(self, theta: Floats) -> NoReturn:
        """Raise: directed layers have normalisers, so the log-weight is not linear in theta."""
        raise ArgumentError(
            "a belief network is no exponential family over its units", "use the joint form of its `top` machine"
        )

    def interactions(self, theta: Floats) -> Interactions:
        """Return the weights by which each layer is drawn from the one above, and those of the machine at the top."""
        return between_layers(self.layers, [machine.weights[0] for machine in self.split(theta).machines])

    def initialised(self, means: Floats, rng: np.random.Generator, scale: float | None = None) -> Floats:
        """Return theta of a stack of machines with random weights whose visible units have these means."""
        thetas = []
        for machine in self.machines:
            thetas.append(machine.initialised(means, rng, scale))
            means = idle_means(machine.layers[1])
        return np.concatenate(thetas)

    def rescaled(self, theta: Floats, centres: Floats, scales: Floats) -> Model[BeliefNetworkFamily]:
        """Return the network over ``v = centres + scales u`` of this one: only the lowest machine changes."""
        first, rest = np.split(theta, [self.machines[0].n_parameters])
        lowest = self.machines[0].rescaled(first, centres, scales)
        layers = (lowest.family.layers[0], *self.layers[1:])
        return Model(BeliefNetworkFamily(layers), np.concatenate([lowest.theta, rest]))

    def at(self, theta: Floats, beta: float) -> NoReturn:
        """Raise: each directed layer has a normaliser, so the layers have no common energy."""
        raise ArgumentError("a belief network has no temperature", "use its `top`, or a deep machine")

    # -- down and up --------------------------------------------------------------------------------------------------
    @property
    def top(self) -> StackFamily:
        """The restricted machine between the two highest layers."""
        return self.machines[-1]

    def draw_below(self, theta: Tensor, values: Sequence[Tensor], rng: np.random.Generator) -> list[Tensor]:
        """Return the values of all layers given those of the two highest, which come last."""
        drawn = list(values)
        for machine, parts in reversed(self._directed(theta)):
            drawn.insert(0, machine.draw(parts, 0, [None, drawn[0]], rng))
        return drawn

    def draw_up(self, theta: Floats, v: Floats, rng: np.random.Generator) -> list[Floats]:
        """Draw the layers up to the second highest by recognition, given visible values, which come first."""
        values = [np.asarray(v, dtype=theta.dtype)]
        for machine, parts in self._directed(theta):
            values.append(machine.draw(parts, 1, [values[-1], None], rng))
        return values

    def upward_means(self, theta: Floats, v: Floats) -> list[Floats]:
        """Return the means of all layers, each given the means of the one below: the features of `transform`."""
        values = [np.asarray(v, dtype=theta.dtype)]
        for machine, parts in zip(self.machines, self.split(theta).machines, strict=True):
            values.append(machine.means(parts, 1, [values[-1], None]))
        return values

    def _directed(self, theta: Tensor) -> list[tuple[StackFamily, StackParts]]:
        """Return the machines below the top, by which each layer is drawn given the one above."""
        return list(zip(self.machines, self.split(theta).machines, strict=True))[:-1]

    # -- distribution -------------------------------------------------------------------------------------------------
    def log_weights(self, theta: Floats, x: States) -> Floats:
        """Return ``log P(x) + log Z`` of complete rows, Z the top machine's."""
        *below, last = self.encode(x)
        top = self.top.log_weights_of_values(self.split(theta).machines[-1], [below[-1], last])
        return self._log_directed(theta, below, 0) + top

    def log_joint(self, theta: Floats, values: Sequence[Floats]) -> Floats:
        """Return ``log P(x_0, .., x_(L-1)) + log Z`` of rows of values, the top layer summed out.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> network = gb.models.BeliefNetworkFamily([gb.models.BinaryUnits(1)] * 3)
        >>> theta = np.zeros(network.n_parameters)
        >>> np.exp(network.log_joint(theta, [np.ones((1, 1)), np.ones((1, 1))]))     # 1/2, times two states of the top
        array([1.])
        """
        top = self.top.log_weights_of_side(self.split(theta).machines[-1], 0, [values[-1], None])
        return top + self._log_directed(theta, values, 0)

    def log_recognition(self, theta: Floats, values: Sequence[Floats]) -> Floats:
        """Return ``log Q(x_1, .., x_(L-1) | x_0)`` of rows of values."""
        return self._log_directed(theta, values, 1)

    def _log_directed(self, theta: Floats, values: Sequence[Floats], side: int) -> Floats:
        """Return the sum over directed machines: the log-probability of one layer given the other.

        With `side` 0 that is the lower layer given the upper one, with 1 the upper given the lower one (recognition).
        """
        total = np.zeros(len(values[0]))
        for (machine, parts), pair in zip(self._directed(theta), itertools.pairwise(values), strict=True):
            fields, drawn = (np.asarray(each, np.float64) for each in (machine.fields(parts, side, pair), pair[side]))
            total = total + log_probability(machine.layers[side], fields, drawn)
        return total

    def log_evidence(self, theta: Floats, v: States) -> Floats:
        """Return ``log P(v) + log Z`` of rows of visible values, by enumerating the layers below the top.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> network = gb.models.BeliefNetworkFamily([gb.models.BinaryUnits(1)] * 3)
        >>> np.exp(network.log_evidence(np.zeros(network.n_parameters), np.ones((1, 1))))                  # Z is 4
        array([2.])
        """
        rows, between = np.asarray(v, dtype=np.float64), self.layers[1:-1]
        if not between:
            return self.top.log_evidence(theta, rows)
        if (n_states := count_states(between)) > MOST_STATES:
            raise TooExpensiveError(
                f"log P(v) is a sum over {n_states:.2g} states of the layers below the top",
                "use `gibbsian.expectations.layers`, which bounds it",
            )
        values = enumerate_values(between, 0, int(n_states))
        lowest, parts = self._directed(theta)[0]
        upper = self.log_joint(theta, [np.zeros((len(values[0]), self.layers[0].width)), *values])
        fields = np.asarray(lowest.fields(parts, 0, [None, values[0]]), dtype=np.float64)
        # log_joint includes a visible layer of zeros, whose log-weight is minus the normaliser
        hidden = np.array([np.logaddexp.reduce(upper + fields @ row) for row in rows])
        return hidden + self.layers[0].log_measure(rows)
