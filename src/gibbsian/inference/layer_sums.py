"""Exact answers about machines in layers, by summing over the states of the smaller side.

Given the odd layers the even ones are independent, so ``Z = sum_h exp(c . h) prod_i z_i(field_i(h))`` needs the states
of one side only: 2^16 terms for 16 hidden units, however many visible ones there are. Summing over either side gives
the same number. The normaliser of a belief network is that of the machine at its top.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.inference.engine import ENGINES, Cost, Engine, ExactAnswers, check_n_samples
from gibbsian.models.family import Layered, keeps
from gibbsian.models.layers.units import count_states, domain_of, states_of
from gibbsian.resources import row_blocks

if TYPE_CHECKING:  # every model asks this engine for its price, and few have layers
    from gibbsian.inference.layer_tables import TwoValuedTable
    from gibbsian.models.family import StackParts
    from gibbsian.models.layers.stack import StackFamily

# 25 two-valued units.
MOST_STATES = 2.0**25
# Seconds for a state and a unit of the other side, all moments included, on one core: compiled, and by array blocks.
COMPILED_SECONDS, BLOCK_SECONDS = 9e-10, 1.5e-8
TWO_VALUED = ("binary", "spin")
# The even layers and the odd ones, by the lowest of each.
SIDES = ("visible", "hidden")


def n_states_of_sides(stack: StackFamily) -> list[float]:
    """Return the numbers of joint states of the even and of the odd layers."""
    return [count_states(stack.layers[place] for place in side) for side in stack.sides]


def smaller_side(stack: StackFamily) -> str:
    """Return the side with the fewer joint states: the one to sum over."""
    even, odd = n_states_of_sides(stack)
    return "hidden" if odd <= even else "visible"


def _kinds(stack: StackFamily, side: int) -> set[str]:
    return {stack.layers[place].kind for place in stack.sides[side]}


def _is_compiled(stack: StackFamily) -> bool:
    """Whether each side has two-valued units of one kind."""
    return all(len(kinds := _kinds(stack, side)) == 1 and kinds <= set(TWO_VALUED) for side in (0, 1))


def _price(family: Layered, side: str) -> Cost:
    """Predict what summing over a side costs."""
    stack, summed = family.top, SIDES.index(side)
    n_states = n_states_of_sides(stack)[summed]
    name = f"a sum over {_units(family, side)}"
    if not np.isfinite(n_states):
        return Cost(name, np.inf, np.inf, refusal=f"{name}, which are Gaussian and have no list of states")
    if n_states > MOST_STATES:
        terms = f"of more than {MOST_STATES:.1e} terms, as many as for 25 two-valued units"
        return Cost(name, np.inf, np.inf, refusal=f"{name}, {terms}")
    width = sum(stack.layers[place].width for place in stack.sides[1 - summed])
    seconds = 1e-3 + n_states * width * (COMPILED_SECONDS if _is_compiled(stack) else BLOCK_SECONDS)
    return Cost(name, seconds, 8.0 * n_states + 64.0 * 2**20)


def _units(family: Layered, side: str) -> str:
    """Name the units that are summed over."""
    stack, layers = family.top, family.layers
    n_units = sum(stack.layers[place].n_units for place in stack.sides[SIDES.index(side)])
    if len(layers) == 2:
        return f"the {n_units} {side} units"
    return f"{n_units} units of the layers of {', '.join(str(layer.n_units) for layer in layers)} units"


@ENGINES.register("layer-sums", whole=False)
class LayerSums(Engine):
    """The distribution of a machine in layers as a table over the states of one side.

    The moments are the expected values of all layers, in the layout of theta. Of `ExactAnswers` only log Z, moments and
    samples are known: the others have no short form with the hidden units summed out.

    Parameters
    ----------
    family : Layered
        With at most 25 two-valued units, or as many states, on one side; `exact` checks what that costs.
    max_seconds : float
        Not needed: no question takes longer than the moments.
    cost : Cost, optional
        The price, where it is known.
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
        self.side = smaller_side(self.stack) if side == "auto" else side
        self.summed = SIDES.index(self.side)
        if not np.isfinite(n_states_of_sides(self.stack)[self.summed]):
            raise ArgumentError(
                "is a Gaussian layer, which has no list of states",
                "sum over the other",
                argument="side",
                value=self.side,
            )

    @classmethod
    def price(cls, family: Any) -> Cost | None:
        """Predict the cost for families in layers."""
        return _price(family, smaller_side(family.top)) if keeps(family, Layered) else None

    @cached_property
    def cost(self) -> Cost:
        """Predicted price of log Z and all moments."""
        return _price(self.family, self.side)

    @cached_property
    def is_compiled(self) -> bool:
        """Whether each side has two-valued units of one kind."""
        return _is_compiled(self.stack)

    def at(self, theta: np.ndarray) -> LayerAnswers:
        """Return the answers at some parameters."""
        return LayerAnswers(self, theta)

    def likelihood_of(self, data: Any) -> Any:
        """Return minus the mean log-likelihood of complete rows where their layer is listed: both phases are one sum.

        Its states have the shares of the model less those of the data. Columns of hidden units may follow.
        """
        n, shows_all = self.stack.layers[0].n_units, self.stack == self.family and len(self.stack.layers) == 2
        if self.side != "visible" or not shows_all or not self.is_compiled:
            return None
        if data.on_cluster or data.has_shares or data.holes[:, :n].any():
            return None
        places = domain_of(self.stack.layers[0]).to_codes(data.states[:, :n]).astype(np.int64) @ (1 << np.arange(n))
        shares = np.bincount(places, data.weights / data.total_weight, 2**n)

        def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
            here = self.at(theta)
            return here.log_partition - float(shares @ here.log_weights), here.sums_with(here.shares() - shares)

        return function


class LayerAnswers(ExactAnswers[LayerSums]):
    """Answers from the log-weights of all states of one side."""

    @cached_property
    def _parts(self) -> StackParts:
        return self.engine.stack.split(self.engine.family.top_theta(self.theta))

    @cached_property
    def _compiled(self) -> TwoValuedTable | None:
        if not self.engine.is_compiled:
            return None
        from gibbsian.inference.layer_tables import TwoValuedTable

        return TwoValuedTable.of(self.engine.stack, self._parts, self.engine.summed)

    @cached_property
    def log_weights(self) -> np.ndarray:
        """Log-weights of all states of the enumerated side, numbered as `enumerate_values` does."""
        if self._compiled is not None:
            return self._compiled.log_weights()
        stack, summed = self.engine.stack, self.engine.summed
        blocks = row_blocks(int(n_states_of_sides(stack)[summed]), self._other_width)
        listed = (stack.states_of_side(summed, block.start, block.stop) for block in blocks)
        return np.concatenate([stack.log_weights_of_side(self._parts, summed, values) for values in listed])

    @property
    def _other_width(self) -> int:
        """Columns of the side that is summed analytically."""
        stack = self.engine.stack
        return sum(stack.layers[place].width for place in stack.sides[1 - self.engine.summed])

    @cached_property
    def log_partition(self) -> float:
        """Log Z."""
        top = float(self.log_weights.max())
        blocks = row_blocks(self.log_weights.size, 1)
        return top + float(np.log(sum(np.exp(self.log_weights[block] - top).sum() for block in blocks)))

    def shares(self) -> np.ndarray:
        """Return the probabilities of the enumerated states."""
        shares = self.log_weights - self.log_partition
        return np.exp(shares, out=shares)

    # -- moments ------------------------------------------------------------------------------------------------------
    @cached_property
    def moments(self) -> np.ndarray:
        """The expected values of all layers and of their products, in the layout of theta."""
        if self.engine.stack != self.engine.family:
            raise ArgumentError(
                "a belief network has no moments in the layout of its parameters", "ask for those of its `top`"
            )
        return self.sums_with(self.shares())

    def sums_with(self, shares: np.ndarray) -> np.ndarray:
        """Return the expected statistics of the stack with given shares of the enumerated states."""
        if self._compiled is not None:
            return self._compiled.moments(shares)
        stack, summed = self.engine.stack, self.engine.summed
        total = np.zeros(stack.n_parameters)
        for block in row_blocks(self.log_weights.size, self._other_width):
            listed = stack.states_of_side(summed, block.start, block.stop)
            total += stack.sums_of(stack.means_of_side(self._parts, 1 - summed, listed), shares[block])
        return total

    # -- draws --------------------------------------------------------------------------------------------------------
    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent states of the visible units."""
        return states_of(self.engine.family.layers[0], self.sample_layers(n_samples, rng)[0])

    def sample_layers(self, n_samples: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw independent values of all layers from the bottom."""
        n_samples, stack, summed = check_n_samples(n_samples), self.engine.stack, self.engine.summed
        cumulated = np.cumsum(self.shares())
        numbers = np.searchsorted(cumulated, rng.random(n_samples) * cumulated[-1], side="right")
        distinct, place = np.unique(numbers, return_inverse=True)
        listed = [stack.states_of_side(summed, number, number + 1)[summed::2] for number in distinct.tolist()]
        none = [np.empty((0, stack.layers[at].width)) for at in stack.sides[summed]]
        rows = [np.concatenate(parts)[place] for parts in zip(none, *listed, strict=True)]
        every = stack.draw_side(self._parts, 1 - summed, stack.spread_side(summed, rows), rng)
        return self.engine.family.draw_below(self.theta, every, rng)
