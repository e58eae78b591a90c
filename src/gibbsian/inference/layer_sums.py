"""Exact answers about machines in layers, by summing over the states of the smaller side.

Given the odd layers the even ones are independent, so ``Z = sum_h exp(c . h) prod_i z_i(field_i(h))`` needs the states
of one side only: 2^16 terms for 16 hidden units, however many visible ones there are. Summing over either side gives
the same number. The normaliser of a belief network is that of the machine at its top.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.blocks import row_blocks
from gibbsian.errors import ArgumentError
from gibbsian.inference.base import ENGINES, Cost, Engine, Moments, check_n_samples
from gibbsian.models.family import Layered, Model
from gibbsian.models.layers.units import count_states, domain_of, states_of

if TYPE_CHECKING:  # every model asks this engine for its price, and few have layers
    from gibbsian.inference.layer_tables import TwoValuedTable
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


def _price(model: Any, stack: StackFamily, side: str) -> Cost:
    """Predict what summing over a side costs."""
    summed = SIDES.index(side)
    n_states = n_states_of_sides(stack)[summed]
    name = f"a sum over {_units(model, stack, side)}"
    if not np.isfinite(n_states):
        return Cost(name, np.inf, np.inf, refusal=f"{name}, which are Gaussian and have no list of states")
    if n_states > MOST_STATES:
        terms = f"of more than {MOST_STATES:.1e} terms, as many as for 25 two-valued units"
        return Cost(name, np.inf, np.inf, refusal=f"{name}, {terms}")
    width = sum(stack.layers[place].width for place in stack.sides[1 - summed])
    seconds = 1e-3 + n_states * width * (COMPILED_SECONDS if _is_compiled(stack) else BLOCK_SECONDS)
    return Cost(name, seconds, 8.0 * n_states + 64.0 * 2**20)


def _units(model: Any, stack: StackFamily, side: str) -> str:
    """Name the units that are summed over."""
    layers = model.family.layers
    n_units = sum(stack.layers[place].n_units for place in stack.sides[SIDES.index(side)])
    if len(layers) == 2:
        return f"the {n_units} {side} units"
    return f"{n_units} units of the layers of {', '.join(str(layer.n_units) for layer in layers)} units"


@ENGINES.register("layer-sums", whole=False)
class LayerSums(Engine):
    """The distribution of a machine in layers as a table over the states of one side.

    `moments` has the expected values of all layers, in the layout of theta. Of what `ExactInference` asks only log Z,
    moments and samples are answered: the others have no short form with the hidden units summed out.

    Parameters
    ----------
    model : Model of a Layered family
        With at most 25 two-valued units, or as many states, on one side; `exact` checks what that costs.
    max_seconds : float
        Not needed: no question takes longer than `moments`.
    side : {"auto", "visible", "hidden"}
        The side to enumerate, the even layers or the odd ones; ``"auto"`` takes the one with fewer states.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rbm = gb.models.StackFamily((gb.models.BinaryUnits(3), gb.models.BinaryUnits(2))).build()
    >>> gb.inference.LayerSums(rbm).log_partition()   # 5 log 2
    3.4657
    """

    model: Any

    def __init__(self, model: Model[Any], max_seconds: float = 60.0, side: str = "auto"):
        super().__init__(model, max_seconds)
        if side not in ("auto", *SIDES):
            raise ArgumentError("is not known", "use 'auto', 'visible' or 'hidden'", argument="side", value=side)
        top = model.family.top(model.theta)
        # in double precision, whatever the parameters have
        self._stack: StackFamily = top.family
        self._parts = self._stack.split(top.theta.astype(np.float64))
        self.side = smaller_side(self._stack) if side == "auto" else side
        self._summed = SIDES.index(self.side)
        if not np.isfinite(n_states_of_sides(self._stack)[self._summed]):
            raise ArgumentError(
                "is a Gaussian layer, which has no list of states",
                "sum over the other",
                argument="side",
                value=self.side,
            )

    @classmethod
    def price(cls, model: Any) -> Cost | None:
        """Predict the cost for models in layers."""
        if not isinstance(model.family, Layered):
            return None
        stack = model.family.top(model.theta).family
        return _price(model, stack, smaller_side(stack))

    @cached_property
    def cost(self) -> Cost:
        """Predicted price of `moments`."""
        return _price(self.model, self._stack, self.side)

    @cached_property
    def _compiled(self) -> TwoValuedTable | None:
        if not _is_compiled(self._stack):
            return None
        from gibbsian.inference.layer_tables import TwoValuedTable

        return TwoValuedTable.of(self._stack, self._parts, self._summed)

    @cached_property
    def log_weights(self) -> np.ndarray:
        """Log-weights of all states of the enumerated side, numbered as `enumerate_values` does."""
        if self._compiled is not None:
            return self._compiled.log_weights()
        blocks = row_blocks(int(n_states_of_sides(self._stack)[self._summed]), self._other_width)
        return np.concatenate(
            [
                self._stack.log_weights_of_side(self._parts, self._summed, self._listed(block.start, block.stop))
                for block in blocks
            ]
        )

    def _listed(self, start: int, stop: int) -> list[Any]:
        return self._stack.states_of_side(self._summed, start, stop)

    @property
    def _other_width(self) -> int:
        """Columns of the side that is summed analytically."""
        return sum(self._stack.layers[place].width for place in self._stack.sides[1 - self._summed])

    @cached_property
    def _log_partition(self) -> float:
        top = float(self.log_weights.max())
        blocks = row_blocks(self.log_weights.size, 1)
        return top + float(np.log(sum(np.exp(self.log_weights[block] - top).sum() for block in blocks)))

    def log_partition(self) -> float:
        """Return log Z."""
        return self._log_partition

    def _shares(self, block: slice | None = None) -> np.ndarray:
        """Probabilities of the enumerated states, of all or of a block."""
        log_weights = self.log_weights if block is None else self.log_weights[block]
        shares = log_weights - self._log_partition
        return np.exp(shares, out=shares)

    # -- moments ------------------------------------------------------------------------------------------------------
    def moments(self) -> Moments:
        """Return log Z with the expected values of all layers and of their products, in the layout of theta."""
        if self._stack != self.model.family:
            raise ArgumentError(
                "a belief network has no moments in the layout of its parameters", "ask for those of its `top`"
            )
        return Moments(self._log_partition, self._sums(self._shares()))

    def likelihood_of(self, data: Any) -> Any:
        """Return minus the mean log-likelihood of complete rows where their layer is listed: both phases are one sum.

        Its states have the shares of the model less those of the data. Columns of hidden units may follow.
        """
        model, visible = self.model, self._stack.layers[0]
        n, shown = visible.n_units, self._stack == self.model.family and len(self._stack.layers) == 2
        if self.side != "visible" or not shown or self._compiled is None:
            return None
        if data.on_cluster or data.has_shares or data.holes[:, :n].any():
            return None
        places = domain_of(visible).to_codes(data.states[:, :n]).astype(np.int64) @ (1 << np.arange(n))
        shares = np.bincount(places, data.weights / data.total_weight, 2**n)

        def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
            here: Any = self.at(model.replace(theta))
            statistics = here._sums(here._shares() - shares)
            return here.log_partition() - float(shares @ here.log_weights), statistics

        return function

    def _sums(self, all_shares: np.ndarray) -> np.ndarray:
        """Return the expected statistics with given shares of the enumerated states."""
        if self._compiled is not None:
            return self._compiled.moments(all_shares)
        total = np.zeros(self._stack.n_parameters)
        for block in row_blocks(self.log_weights.size, self._other_width):
            shares = all_shares[block]
            values = self._stack.means_of_side(self._parts, 1 - self._summed, self._listed(block.start, block.stop))
            total += self._stack.sums_of(values, shares)
        return total

    # -- draws --------------------------------------------------------------------------------------------------------
    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent states of the visible units."""
        return states_of(self.model.family.layers[0], self.sample_layers(n_samples, rng)[0])

    def sample_layers(self, n_samples: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw independent values of all layers from the bottom."""
        n_samples = check_n_samples(n_samples)
        cumulated = np.cumsum(self._shares())
        numbers = np.searchsorted(cumulated, rng.random(n_samples) * cumulated[-1], side="right")
        distinct, place = np.unique(numbers, return_inverse=True)
        listed = [self._listed(number, number + 1)[self._summed :: 2] for number in distinct.tolist()]
        none = [np.empty((0, self._stack.layers[at].width)) for at in self._stack.sides[self._summed]]
        columns = zip(none, *listed, strict=True)
        drawn = self._stack.spread_side(self._summed, [np.concatenate(parts)[place] for parts in columns])
        return self.model.family.draw_below(
            self.model.theta, self._stack.draw_side(self._parts, 1 - self._summed, drawn, rng), rng
        )
