"""Exact inference on machines in layers, by a sum over the states of the smaller side.

Given the odd layers the even ones are independent, so ``Z = sum_h exp(c . h) prod_i z_i(field_i(h))`` needs the states
of one side only: 2^16 terms for 16 hidden units and any number of visible ones. The sums over either side are equal.
The normaliser of a belief network is that of the machine at its top.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.arrays import Floats, States
from gibbsian.errors import ArgumentError
from gibbsian.inference.engine import ENGINES, Cost, Engine, ExactAnswers, check_n_samples
from gibbsian.inference.log_tables import invert
from gibbsian.models.base import Family, Layered, keeps
from gibbsian.models.layers.units import codes_of, count_states, states_of_side
from gibbsian.resources import row_blocks

if TYPE_CHECKING:  # the price of every model is computed here, and few have layers
    from gibbsian.data import Dataset
    from gibbsian.inference.engine import LossFunction
    from gibbsian.inference.layer_tables import TwoValuedTable
    from gibbsian.models.base import StackParts
    from gibbsian.models.layers.stack import StackFamily

# 25 two-valued units.
MAX_STATES = 2.0**25
# Seconds for a state and a unit of the other side, all moments included, on one core: compiled, and by array blocks.
COMPILED_SECONDS, BLOCK_SECONDS = 9e-10, 1.5e-8
# The even layers and the odd ones, by the name of the lowest of each.
SIDES = ("visible", "hidden")


def _count(stack: StackFamily, side: int) -> float:
    """Return the number of joint states of the even or of the odd layers."""
    return count_states(stack.layers[index] for index in stack.sides[side])


def _width(stack: StackFamily, side: int) -> int:
    return sum(stack.layers[index].width for index in stack.sides[side])


def _smaller_side(stack: StackFamily) -> int:
    return int(_count(stack, 1) <= _count(stack, 0))


def _is_compiled(stack: StackFamily) -> bool:
    """Return whether each side has two-valued units of one kind."""
    kinds = [{stack.layers[index].kind for index in side} for side in stack.sides]
    return all(len(side) == 1 and side <= {"binary", "spin"} for side in kinds)


def _price(family: Layered, side: int) -> Cost:
    """Predict the cost of a sum over a side."""
    stack, n_units = family.top, sum(family.top.layers[index].n_units for index in family.top.sides[side])
    name = f"a sum over {n_units} units of the layers of {', '.join(str(each.n_units) for each in family.layers)} units"
    if len(family.layers) == 2:
        name = f"a sum over the {n_units} {SIDES[side]} units"
    n_states = _count(stack, side)
    if not np.isfinite(n_states):
        reason = f"{name}, which are Gaussian and have no list of states"
        return Cost(name, np.inf, np.inf, unsupported_reason=reason)
    if n_states > MAX_STATES:
        terms = f"of more than {MAX_STATES:.1e} terms, as many as for 25 two-valued units"
        return Cost(name, np.inf, np.inf, unsupported_reason=f"{name}, {terms}")
    unit_seconds = COMPILED_SECONDS if _is_compiled(stack) else BLOCK_SECONDS
    return Cost(name, 1e-3 + n_states * _width(stack, 1 - side) * unit_seconds, 8.0 * n_states + 64.0 * 2**20)


@ENGINES.register("layer-sums", whole=False)
class LayerSums(Engine):
    """The distribution of a machine in layers as a table over the states of one side.

    The moments are the expected values of all layers, in the layout of theta. Of `ExactAnswers` only log Z, moments and
    samples are available: the others have no short form with the hidden units summed out.

    Parameters
    ----------
    family : Layered
        With at most 25 two-valued units, or as many states, on one side; `exact` checks the cost.
    max_seconds : float
        Not used: no question takes longer than the moments.
    cost : Cost, optional
        The price, if `price` was called before.
    side : {"auto", "visible", "hidden"}
        The side to enumerate, the even layers or the odd ones; ``"auto"`` takes the one with fewer states.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rbm = gb.models.StackFamily((gb.models.BinaryUnits(3), gb.models.BinaryUnits(2))).build()
    >>> gb.inference.LayerSums(rbm.family).at(rbm.theta).log_partition                      # 5 log 2
    3.4657...
    """

    family: Layered

    def __init__(self, family: Layered, max_seconds: float = 60.0, cost: Cost | None = None, side: str = "auto"):
        super().__init__(family, max_seconds, cost)
        if side not in ("auto", *SIDES):
            raise ArgumentError("is not known", "use 'auto', 'visible' or 'hidden'", argument="side", value=side)
        self.stack: StackFamily = family.top
        self.side = _smaller_side(self.stack) if side == "auto" else SIDES.index(side)
        if not np.isfinite(_count(self.stack, self.side)):
            raise ArgumentError(
                "is a Gaussian layer, which has no list of states",
                "sum over the other",
                argument="side",
                value=SIDES[self.side],
            )

    @classmethod
    def price(cls, family: Family) -> Cost | None:
        """Predict the cost for families in layers."""
        return _price(family, _smaller_side(family.top)) if keeps(family, Layered) else None

    @cached_property
    def cost(self) -> Cost:
        """Predicted price of log Z and all moments."""
        return _price(self.family, self.side)

    def at(self, theta: Floats) -> LayerSumAnswers:
        """Return the answers at some parameters."""
        return LayerSumAnswers(self, theta)

    def likelihood_of(self, data: Dataset) -> LossFunction | None:
        """Return minus the mean log-likelihood of complete rows if their layer is enumerated: both phases are one sum.

        The weights of its states are their probabilities less their weights in the data. Columns of hidden units may
        follow those of the visible ones.
        """
        n, is_restricted = self.stack.layers[0].n_units, self.stack == self.family and len(self.stack.layers) == 2
        if self.side == 1 or not is_restricted or not _is_compiled(self.stack):
            return None
        if data.on_cluster or data.has_shares or data.holes[:, :n].any():
            return None
        states = data.states[:, :n].astype(np.int64) @ (1 << np.arange(n))
        weights = np.bincount(states, data.weights / data.total_weight, 2**n)

        def function(theta: Floats) -> tuple[float, Floats]:
            answers = self.at(theta)
            value = answers.log_partition - float(weights @ answers.log_weights)
            return value, answers.sums_with(answers.probabilities() - weights)

        return function


class LayerSumAnswers(ExactAnswers):
    """Answers from the log-weights of all states of one side."""

    engine: LayerSums

    @cached_property
    def _parts(self) -> StackParts:
        return self.engine.stack.split(self.theta[self.theta.size - self.engine.stack.n_parameters :])

    @cached_property
    def _compiled(self) -> TwoValuedTable | None:
        if not _is_compiled(self.engine.stack):
            return None
        from gibbsian.inference.layer_tables import TwoValuedTable

        return TwoValuedTable.of(self.engine.stack, self._parts, self.engine.side)

    @cached_property
    def log_weights(self) -> Floats:
        """Log-weights of all states of the enumerated side, numbered as in `enumerate_values`."""
        if self._compiled is not None:
            return self._compiled.log_weights()
        stack, side = self.engine.stack, self.engine.side
        blocks = row_blocks(int(_count(stack, side)), _width(stack, 1 - side))
        states = (states_of_side(stack.layers, side, block.start, block.stop) for block in blocks)
        return np.concatenate([stack.log_weights_of_side(self._parts, side, values) for values in states])

    @cached_property
    def log_partition(self) -> float:
        """Log Z."""
        top = float(self.log_weights.max())
        blocks = row_blocks(self.log_weights.size, 1)
        return top + float(np.log(sum(np.exp(self.log_weights[block] - top).sum() for block in blocks)))

    def probabilities(self) -> Floats:
        """Return the probabilities of the enumerated states."""
        probabilities = self.log_weights - self.log_partition
        return np.exp(probabilities, out=probabilities)

    # -- moments ------------------------------------------------------------------------------------------------------
    @cached_property
    def moments(self) -> Floats:
        """The expected values of all layers and of their products, in the layout of theta."""
        if self.engine.stack != self.engine.family:
            raise ArgumentError(
                "a belief network has no moments in the layout of its parameters", "ask for those of its `top`"
            )
        return self.sums_with(self.probabilities())

    def sums_with(self, weights: Floats) -> Floats:
        """Return the sums of the statistics of the stack with given weights of the enumerated states."""
        if self._compiled is not None:
            return self._compiled.moments(weights)
        stack, side = self.engine.stack, self.engine.side
        total: Floats = np.zeros(stack.n_parameters)
        for block in row_blocks(self.log_weights.size, _width(stack, 1 - side)):
            states = states_of_side(stack.layers, side, block.start, block.stop)
            total += stack.statistics_of(stack.means_of_side(self._parts, 1 - side, states), weights[block])
        return total

    # -- draws --------------------------------------------------------------------------------------------------------
    def sample(self, n_samples: int, rng: np.random.Generator) -> States:
        """Draw independent rows of the visible units."""
        return codes_of(self.engine.family.layers[0], self.sample_layers(n_samples, rng)[0])

    def sample_layers(self, n_samples: int, rng: np.random.Generator) -> list[Floats]:
        """Draw independent values of all layers from the bottom."""
        n_samples, stack, side = check_n_samples(n_samples), self.engine.stack, self.engine.side
        drawn = invert(np.cumsum(self.probabilities()), rng.random(n_samples))
        distinct, row_of = np.unique(drawn, return_inverse=True)
        states = [states_of_side(stack.layers, side, index, index + 1)[side::2] for index in distinct.tolist()]
        none = [np.empty((0, stack.layers[index].width)) for index in stack.sides[side]]
        values = [np.concatenate(parts)[row_of] for parts in zip(none, *states, strict=True)]
        layers = stack.draw_side(self._parts, 1 - side, stack.spread_side(side, values), rng)
        return self.engine.family.draw_below(self.theta, layers, rng)
