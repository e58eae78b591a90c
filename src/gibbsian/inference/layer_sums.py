"""Exact answers about machines in layers, by summing over the states of the smaller side.

Given one layer the other is independent, so ``Z = sum_h exp(c . h) prod_i z_i(field_i(h))`` needs the states of one
layer only: 2^16 terms for 16 hidden units, however many visible ones there are. Summing over either layer gives the
same number. A deep machine is a restricted one between its even and its odd layers, and the normaliser of a belief
network is that of the machine at its top: a model says so by `folded`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gibbsian.blocks import row_blocks
from gibbsian.errors import ArgumentError
from gibbsian.inference.engine import ENGINES, Cost, Engine, ExactAnswers, check_n_samples

if TYPE_CHECKING:  # every model asks this engine for its price, and few have layers
    from gibbsian.inference.layer_tables import TwoValuedTable
    from gibbsian.models.layers import Layer
    from gibbsian.models.restricted import RestrictedModel

# 25 two-valued units.
MOST_STATES = 2.0**25
# Seconds for a state and a unit of the other layer, all moments included, on one core: compiled, and by array blocks.
COMPILED_SECONDS, BLOCK_SECONDS = 9e-10, 1.5e-8
TWO_VALUED = ("binary", "spin")
SIDES = ("visible", "hidden")


class Layered(Protocol):
    """A model whose normaliser is that of a restricted machine."""

    @property
    def visible(self) -> Layer:
        """The layer that data give."""

    def folded(self) -> RestrictedModel:
        """Return the restricted machine."""

    def unfold(self, vector: np.ndarray) -> np.ndarray:
        """Lay out a vector like the folded machine's theta as this model's."""

    def unfold_values(self, even: np.ndarray, odd: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """Return values of all layers from the bottom, given those of the folded machine's two layers."""


def smaller_side(machine: RestrictedModel) -> str:
    """Return the layer with the fewer joint states: the one to sum over."""
    return "hidden" if machine.hidden.n_states <= machine.visible.n_states else "visible"


def _price(model: Any, machine: RestrictedModel, side: str) -> Cost:
    """Predict what summing over a layer costs."""
    summed, other = _layers(machine, side)
    name = f"a sum over {_units(model, machine, side)}"
    if not np.isfinite(summed.n_states):
        return Cost(name, np.inf, np.inf, refusal=f"{name}, which are Gaussian and have no list of states")
    if summed.n_states > MOST_STATES:
        terms = f"of more than {MOST_STATES:.1e} terms, as many as for 25 two-valued units"
        return Cost(name, np.inf, np.inf, refusal=f"{name}, {terms}")
    compiled = summed.kind in TWO_VALUED and other.kind in TWO_VALUED
    seconds = 1e-3 + summed.n_states * other.width * (COMPILED_SECONDS if compiled else BLOCK_SECONDS)
    return Cost(name, seconds, 8.0 * summed.n_states + 64.0 * 2**20)


def _units(model: Any, machine: RestrictedModel, side: str) -> str:
    """Name the units that are summed over."""
    n_units = _layers(machine, side)[0].n_units
    if machine is model:
        return f"the {n_units} {side} units"
    return f"{n_units} units of the layers of {', '.join(str(layer.n_units) for layer in model.layers)} units"


def _layers(machine: RestrictedModel, side: str) -> tuple[Layer, Layer]:
    """Return the layer that is enumerated and the one that is summed analytically."""
    layers = machine.visible, machine.hidden
    return layers if side == "visible" else layers[::-1]


@ENGINES.register("layer-sums", whole=False)
class LayerSums(Engine):
    """The distribution of a machine in layers as a table over the states of one side.

    The moments are the expected values of all layers, in the layout of theta. Of `ExactAnswers` only log Z, moments and
    samples are known: the others have no short form with the hidden units summed out.

    Parameters
    ----------
    family : RestrictedModel, DeepModel or BeliefNetwork
        With at most 25 two-valued units, or as many states, on one side; `exact` checks what that costs.
    max_seconds : float
        Not needed: no question takes longer than the moments.
    cost : Cost, optional
        The price, where it is known.
    side : {"auto", "visible", "hidden"}
        The side of the folded machine to enumerate; ``"auto"`` takes the one with fewer states.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> machine = RestrictedModel.build(BinaryLayer(3), BinaryLayer(2))
    >>> gb.inference.LayerSums(machine.family).at(machine.theta).log_partition                      # 5 log 2
    3.4657...
    """

    family: Layered

    def __init__(self, family: Layered, max_seconds: float = 60.0, cost: Cost | None = None, side: str = "auto"):
        super().__init__(family, max_seconds, cost)
        if side not in ("auto", *SIDES):
            raise ArgumentError("is not known", "use 'auto', 'visible' or 'hidden'", argument="side", value=side)
        machine = family.folded()
        self.side = smaller_side(machine) if side == "auto" else side
        if not np.isfinite(_layers(machine, self.side)[0].n_states):
            raise ArgumentError(
                "is a Gaussian layer, which has no list of states",
                "sum over the other",
                argument="side",
                value=self.side,
            )

    @classmethod
    def price(cls, family: Any) -> Cost | None:
        """Predict the cost for families in layers."""
        if not hasattr(family, "folded"):
            return None
        machine = family.folded()
        return _price(family, machine, smaller_side(machine))

    @cached_property
    def cost(self) -> Cost:
        """Predicted price of log Z and all moments."""
        return _price(self.family, self.family.folded(), self.side)

    def at(self, theta: np.ndarray) -> LayerAnswers:
        """Return the answers at some parameters."""
        return LayerAnswers(self, theta)

    def likelihood_of(self, data: Any) -> Any:
        """Return minus the mean log-likelihood of complete rows where their layer is listed: both phases are one sum.

        Its states have the shares of the model less those of the data. Columns of hidden units may follow.
        """
        family: Any = self.family
        n, layers = family.visible.n_units, (family.visible.kind, family.hidden.kind)
        listed = self.side == "visible" and family is family.folded() and set(layers) <= set(TWO_VALUED)
        if not listed or data.on_cluster or data.has_shares or data.holes[:, :n].any():
            return None
        places = family.domain.to_codes(data.states[:, :n]).astype(np.int64) @ (1 << np.arange(n))
        shares = np.bincount(places, data.weights / data.total_weight, 2**n)

        def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
            here = self.at(theta)
            statistics = np.concatenate(here.sums_with(here.shares() - shares))
            return here.log_partition - float(shares @ here.log_weights), statistics / family.temperature

        return function


class LayerAnswers(ExactAnswers[LayerSums]):
    """Answers from the log-weights of all states of one side."""

    @cached_property
    def _oriented(self) -> RestrictedModel:
        """The machine with the enumerated layer hidden, in double precision."""
        machine = self.model.folded()
        machine = machine.replace(machine.theta.astype(np.float64))
        return machine if self.engine.side == "hidden" else machine.transposed()

    @cached_property
    def _compiled(self) -> TwoValuedTable | None:
        oriented = self._oriented
        if oriented.hidden.kind in TWO_VALUED and oriented.visible.kind in TWO_VALUED:
            from gibbsian.inference.layer_tables import TwoValuedTable

            return TwoValuedTable.of(oriented)
        return None

    @cached_property
    def log_weights(self) -> np.ndarray:
        """Log-weights of all states of the enumerated layer, numbered as its ``enumerate`` does."""
        if self._compiled is not None:
            return self._compiled.log_weights()
        oriented = self._oriented
        blocks = row_blocks(int(oriented.hidden.n_states), oriented.visible.width)
        return np.concatenate(
            [oriented.hidden_log_weights(oriented.hidden.enumerate(block.start, block.stop)) for block in blocks]
        )

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
        return self.model.unfold(np.concatenate(self.sums_with(self.shares())))

    def sums_with(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return ``E[v]``, ``E[h]`` and ``E[v h^T]`` (flat) of the folded machine, by shares of enumerated states."""
        if self._compiled is not None:
            visible, hidden, products = self._compiled.moments(shares)
        else:
            visible, hidden, products = self._sums_by_blocks(shares)
        if self.engine.side == "visible":
            visible, hidden, products = hidden, visible, products.T
        return visible, hidden, products.ravel()

    def _sums_by_blocks(self, all_shares: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        oriented = self._oriented
        width = oriented.visible.width, oriented.hidden.width
        visible, hidden, products = np.zeros(width[0]), np.zeros(width[1]), np.zeros(width)
        for block in row_blocks(self.log_weights.size, width[0]):
            h = oriented.hidden.enumerate(block.start, block.stop)
            shares = all_shares[block]
            weighted = oriented.visible_means(h) * shares[:, None]
            visible += weighted.sum(axis=0)
            hidden += shares @ h
            products += weighted.T @ h
        return visible, hidden, products

    # -- draws --------------------------------------------------------------------------------------------------------
    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent states of the visible units."""
        return self.model.visible.decode(self.sample_layers(n_samples, rng)[0])

    def sample_layers(self, n_samples: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw independent values of all layers from the bottom."""
        n_samples, oriented = check_n_samples(n_samples), self._oriented
        cumulated = np.cumsum(self.shares())
        numbers = np.searchsorted(cumulated, rng.random(n_samples) * cumulated[-1], side="right")
        distinct, place = np.unique(numbers, return_inverse=True)
        rows = [np.empty((0, oriented.hidden.width))]
        rows += [oriented.hidden.enumerate(number, number + 1) for number in distinct.tolist()]
        h = np.concatenate(rows)[place]
        v = oriented.draw_visible(h, rng)
        even, odd = (v, h) if self.engine.side == "hidden" else (h, v)
        return self.model.unfold_values(even, odd, rng)
