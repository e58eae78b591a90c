"""Exact answers about a restricted machine, by summing over the states of its smaller layer.

Given one layer the other is independent, so ``Z = sum_h exp(c . h) prod_i z_i(field_i(h))`` needs the states of one
layer only: 2^16 terms for 16 hidden units, however many visible ones there are. Summing over either layer gives the
same number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.blocks import row_blocks
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference.base import Cost, Moments
from gibbsian.layered.layer_tables import TwoValuedTable
from gibbsian.models.layers import Layer
from gibbsian.models.restricted import RestrictedModel
from gibbsian.resources import format_bytes, memory_limit
from gibbsian.rng import RandomState, as_generator

# 25 two-valued units.
MOST_STATES = 2.0**25
# Seconds for a state and a unit of the other layer, all moments included, on one core: compiled, and by array blocks.
COMPILED_SECONDS, BLOCK_SECONDS = 9e-10, 1.5e-8
TWO_VALUED = ("binary", "spin")
SIDES = ("visible", "hidden")


def smaller_side(model: RestrictedModel) -> str:
    """Return the layer with the fewer joint states: the one to sum over.

    Examples
    --------
    >>> from gibbsian.layered.exact import smaller_side
    >>> from gibbsian.models.layers import BinaryLayer, GaussianLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> smaller_side(RestrictedModel.build(GaussianLayer(2), BinaryLayer(5)))
    'hidden'
    """
    return "hidden" if model.hidden.n_states <= model.visible.n_states else "visible"


def predict_cost(model: RestrictedModel, side: str = "auto") -> Cost:
    """Predict what summing over a layer costs: log Z and all moments.

    Examples
    --------
    >>> from gibbsian.layered.exact import predict_cost
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> predict_cost(RestrictedModel.build(BinaryLayer(784), BinaryLayer(16))).seconds < 1
    True
    """
    summed, other = _layers(model, side)
    if not np.isfinite(summed.n_states):
        return Cost("enumeration", np.inf, np.inf)
    compiled = summed.kind in TWO_VALUED and other.kind in TWO_VALUED
    seconds = 1e-3 + summed.n_states * other.width * (COMPILED_SECONDS if compiled else BLOCK_SECONDS)
    return Cost("enumeration", seconds, 8.0 * summed.n_states + 64.0 * 2**20)


def can_sum(model: RestrictedModel, side: str = "auto", max_seconds: float = 120.0) -> bool:
    """Say whether a layer is small enough to be summed over: at most 25 two-valued units, or as many states.

    Examples
    --------
    >>> from gibbsian.layered.exact import can_sum
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> can_sum(RestrictedModel.build(BinaryLayer(64), BinaryLayer(25)))
    True
    >>> can_sum(RestrictedModel.build(BinaryLayer(64), BinaryLayer(26)))
    False
    """
    cost = predict_cost(model, side)
    few = _layers(model, side)[0].n_states <= MOST_STATES
    return few and cost.seconds <= max_seconds and cost.n_bytes <= memory_limit()


def why_not_summed(model: RestrictedModel, side: str = "auto", max_seconds: float = 120.0) -> str:
    """Say which limit a sum over a layer breaks, for messages.

    Examples
    --------
    >>> from gibbsian.layered.exact import why_not_summed
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> why_not_summed(RestrictedModel.build(BinaryLayer(64), BinaryLayer(26)))
    'a sum over the 26 hidden units has more than 3.4e+07 terms, as many as for 25 two-valued units'
    """
    summed, _ = _layers(model, side)
    name = smaller_side(model) if side == "auto" else side
    text, cost = f"a sum over the {summed.n_units} {name} units", predict_cost(model, side)
    if summed.n_states > MOST_STATES:
        return f"{text} has more than {MOST_STATES:.1e} terms, as many as for 25 two-valued units"
    if cost.seconds > max_seconds:
        return f"{text} would take about {cost.seconds:.0f} s, but max_seconds={max_seconds:g}"
    return f"{text} would take {format_bytes(cost.n_bytes)}, but {format_bytes(memory_limit())} may be used"


@dataclass(frozen=True, eq=False)
class LayerEnumeration:
    """The law of a restricted machine as a table over the states of one layer.

    Parameters
    ----------
    model : RestrictedModel
        The machine.
    side : {"auto", "visible", "hidden"}
        The layer to enumerate; ``"auto"`` takes the one with fewer states.
    max_seconds : float
        Refuse what is predicted to take longer.

    Raises
    ------
    TooExpensiveError
        When the layer has more than 2^25 states, or time or memory do not suffice; nothing has been allocated.

    Examples
    --------
    >>> from gibbsian.layered.exact import LayerEnumeration
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm = RestrictedModel.build(BinaryLayer(3), BinaryLayer(2))
    >>> LayerEnumeration(rbm).log_partition                       # 5 log 2
    3.4657
    >>> LayerEnumeration(RestrictedModel.build(BinaryLayer(784), BinaryLayer(500)))
    Traceback (most recent call last):
        ...
    gibbsian.errors.TooExpensiveError: a sum over the 500 hidden units has more than 3.4e+07 terms, as many as for 25
    two-valued units: bracket log Z by annealing (gibbsian.layered.annealing)
    """

    model: RestrictedModel
    side: str = "auto"
    max_seconds: float = 120.0

    def __post_init__(self) -> None:
        if can_sum(self.model, self.side, self.max_seconds):
            return
        side = smaller_side(self.model) if self.side == "auto" else self.side
        if getattr(self.model, side).kind == "gaussian":
            raise ArgumentError(
                "is a Gaussian layer, which has no list of states", "sum over the other", argument="side", value=side
            )
        raise TooExpensiveError(
            f"{why_not_summed(self.model, self.side, self.max_seconds)}",
            "bracket log Z by annealing (gibbsian.layered.annealing)",
        )

    @cached_property
    def _oriented(self) -> RestrictedModel:
        """The machine in float64 with the enumerated layer hidden."""
        double = self.model.replace(self.model.theta.astype(np.float64))
        return double if self._hidden_side else double.transposed()

    @property
    def _hidden_side(self) -> bool:
        return (smaller_side(self.model) if self.side == "auto" else self.side) == "hidden"

    @cached_property
    def _compiled(self) -> TwoValuedTable | None:
        oriented = self._oriented
        if oriented.hidden.kind in TWO_VALUED and oriented.visible.kind in TWO_VALUED:
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
        """log Z."""
        top = float(self.log_weights.max())
        blocks = row_blocks(self.log_weights.size, 1)
        return top + float(np.log(sum(np.exp(self.log_weights[block] - top).sum() for block in blocks)))

    def _shares(self, block: slice | None = None) -> np.ndarray:
        """Probabilities of the enumerated states, of all or of a block."""
        log_weights = self.log_weights if block is None else self.log_weights[block]
        shares = log_weights - self.log_partition
        return np.exp(shares, out=shares)

    @cached_property
    def moments(self) -> Moments:
        """log Z with E[v], E[h] and E[v h^T] in the layout of theta."""
        if self._compiled is not None:
            visible, hidden, products = self._compiled.moments(self._shares())
        else:
            visible, hidden, products = self._moments_by_blocks()
        if not self._hidden_side:
            visible, hidden, products = hidden, visible, products.T
        return Moments(self.log_partition, np.concatenate([visible, hidden, products.ravel()]))

    def _moments_by_blocks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        oriented = self._oriented
        width = oriented.visible.width, oriented.hidden.width
        visible, hidden, products = np.zeros(width[0]), np.zeros(width[1]), np.zeros(width)
        for block in row_blocks(self.log_weights.size, width[0]):
            h = oriented.hidden.enumerate(block.start, block.stop)
            shares = self._shares(block)
            weighted = oriented.visible_means(h) * shares[:, None]
            visible += weighted.sum(axis=0)
            hidden += shares @ h
            products += weighted.T @ h
        return visible, hidden, products

    def sample(self, n_samples: int, rng: RandomState = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw independent pairs of visible and hidden values from the exact law.

        Examples
        --------
        >>> from gibbsian.layered.exact import LayerEnumeration
        >>> from gibbsian.models.layers import SpinLayer
        >>> from gibbsian.models.restricted import RestrictedModel
        >>> rbm = RestrictedModel.build(SpinLayer(2), SpinLayer(1), weights=[[30.0], [30.0]])
        >>> v, h = LayerEnumeration(rbm).sample(5, rng=0)
        >>> bool((v == h).all())
        True
        """
        generator = as_generator(rng)
        oriented = self._oriented
        cumulated = np.cumsum(self._shares())
        numbers = np.searchsorted(cumulated, generator.random(n_samples) * cumulated[-1], side="right")
        distinct, place = np.unique(numbers, return_inverse=True)
        rows = [np.empty((0, oriented.hidden.width))]
        rows += [oriented.hidden.enumerate(number, number + 1) for number in distinct.tolist()]
        h = np.concatenate(rows)[place]
        v = oriented.draw_visible(h, generator)
        return (v, h) if self._hidden_side else (h, v)


def log_partition(model: RestrictedModel, side: str = "auto") -> float:
    """Return the exact log Z by summing over one layer.

    Parameters
    ----------
    model : RestrictedModel
        The machine.
    side : {"auto", "visible", "hidden"}
        The layer to enumerate; the answer is the same.

    Examples
    --------
    >>> from gibbsian.layered.exact import log_partition
    >>> from gibbsian.models.layers import SpinLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm = RestrictedModel.build(SpinLayer(1), SpinLayer(1), weights=[[1.0]])
    >>> log_partition(rbm), log_partition(rbm, "visible")         # log(4 cosh 1)
    (1.8201, 1.8201)
    """
    return LayerEnumeration(model, side).log_partition


def moments(model: RestrictedModel, side: str = "auto") -> Moments:
    """Return the exact log Z with E[v], E[h] and E[v h^T] in the layout of theta.

    Examples
    --------
    >>> from gibbsian.layered.exact import moments
    >>> from gibbsian.models.layers import SpinLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> moments(RestrictedModel.build(SpinLayer(1), SpinLayer(1), weights=[[0.5]])).statistics.round(4)
    array([0.    , 0.    , 0.4621])
    """
    return LayerEnumeration(model, side).moments


def log_likelihood(model: RestrictedModel, states: np.ndarray, side: str = "auto") -> np.ndarray:
    """Return the exact log P(v) of each row.

    Parameters
    ----------
    model : RestrictedModel
        The machine.
    states : array-like, shape (n_rows, n_units)
        States of the visible layer.
    side : {"auto", "visible", "hidden"}
        The layer to enumerate for log Z.

    Examples
    --------
    >>> from gibbsian.layered.exact import log_likelihood
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> log_likelihood(RestrictedModel.build(BinaryLayer(2), BinaryLayer(3)), [[0, 1]])     # -2 log 2
    array([-1.3863])
    """
    return model.log_weights(np.asarray(states)) - log_partition(model, side)


def gradient(
    model: RestrictedModel, states: np.ndarray, weights: np.ndarray | None = None, side: str = "auto"
) -> np.ndarray:
    """Return the gradient of the mean log P(v) by theta: clamped less free moments, over the temperature.

    Parameters
    ----------
    model : RestrictedModel
        The machine.
    states : array-like, shape (n_rows, n_units)
        States of the visible layer.
    weights : ndarray, optional
        Weights of the rows; equal by default.
    side : {"auto", "visible", "hidden"}
        The layer to enumerate.

    Examples
    --------
    >>> from gibbsian.layered.exact import gradient
    >>> from gibbsian.models.layers import SpinLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> gradient(RestrictedModel.build(SpinLayer(1), SpinLayer(1)), [[1], [1], [-1], [1]])
    array([0.5, 0. , 0. ])
    """
    v = model.visible.encode(np.asarray(states))
    clamped = model.mean_statistics(v, model.hidden_means(v), weights)
    return (clamped - moments(model, side).statistics) / model.temperature


def _layers(model: RestrictedModel, side: str) -> tuple[Layer, Layer]:
    """Return the layer that is enumerated and the one that is summed analytically."""
    if side == "auto":
        side = smaller_side(model)
    if side not in SIDES:
        raise ArgumentError("is not known", "use 'auto', 'visible' or 'hidden'", argument="side", value=side)
    return (model.hidden, model.visible) if side == "hidden" else (model.visible, model.hidden)


__all__ = [
    "LayerEnumeration",
    "can_sum",
    "gradient",
    "log_likelihood",
    "log_partition",
    "moments",
    "predict_cost",
    "smaller_side",
    "why_not_summed",
]
