"""Figures that are kept after every epoch, to see how training goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from gibbsian.layered.filling import Filling
from gibbsian.layered.rows import LayerRows
from gibbsian.models.layers import CategoricalLayer
from gibbsian.models.restricted import RestrictedModel

Monitor = Callable[[RestrictedModel], Mapping[str, float]]

# Rows that the figures are computed from: enough for two digits of a mean, few enough to cost less than an epoch.
WATCHED_ROWS = 1000


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Watch rows that are not learned from.

    The gap of the mean free energies of held-out and training rows needs no partition function: when it grows, the
    machine has begun to learn its rows by heart (Hinton 2012). With `exact`, the exact mean log-likelihood of both too.

    Parameters
    ----------
    training, held_out : LayerRows
        The rows, complete. Give some thousand at most: all are used after every epoch.
    exact : bool
        Sum over the smaller layer after every epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.monitors import HeldOutRows
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm = RestrictedModel.build(BinaryLayer(2), BinaryLayer(1), [1.0, 0.0])
    >>> monitor = HeldOutRows(LayerRows(np.array([[1, 0]])), LayerRows(np.array([[0, 0]])))
    >>> monitor(rbm)
    {'free_energy_gap': 1.0}
    """

    training: LayerRows
    held_out: LayerRows
    exact: bool = False

    def __call__(self, model: RestrictedModel) -> dict[str, float]:
        """Return the figures of a model."""
        seen = float(self.training.shares @ model.log_weights(self.training.states))
        unseen = float(self.held_out.shares @ model.log_weights(self.held_out.states))
        figures = {"free_energy_gap": model.temperature * (seen - unseen)}
        if self.exact:
            from gibbsian.inference import exact

            log_z = exact(model).log_partition()
            figures |= {"log_likelihood": seen - log_z, "held_out_log_likelihood": unseen - log_z}
        return figures


class Watched:
    """Some training rows, scored after every epoch: pseudolikelihood, or for numbers the error of reconstruction.

    The pseudolikelihood is estimated from one observed unit of each row, always the same, so that curves are smooth.

    Parameters
    ----------
    filling : Filling
        The rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.filling import Filling
    >>> from gibbsian.layered.monitors import Watched
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> watched = Watched(Filling(LayerRows(np.eye(2, dtype=np.int8))))
    >>> watched(RestrictedModel.build(BinaryLayer(2), BinaryLayer(1)), np.empty(0))           # 2 log(1/2)
    {'log_pseudolikelihood': -1.386...}
    """

    def __init__(self, filling: Filling):
        # a generator of its own: what is watched must not change what is learned, nor differ in a resumed run
        rng = np.random.default_rng(0)
        rows = filling.rows
        self.filling = filling
        self.places = rng.choice(rows.n_rows, min(WATCHED_ROWS, rows.n_rows), replace=False)
        chances = rng.random((len(self.places), rows.n_units))
        if rows.missing is not None:
            chances[rows.missing[self.places]] = -1.0
        self.units = chances.argmax(axis=1)

    def __call__(self, model: RestrictedModel, filled: np.ndarray) -> dict[str, float]:
        """Return the figure, given what stands in missing cells."""
        values = self.filling.values(model, self.places, filled).astype(np.float64)
        shares = self.filling.rows.shares[self.places]
        shares = shares / shares.sum() if shares.any() else np.full(len(shares), 1.0 / len(shares))
        if model.visible.kind == "gaussian":
            again = model.visible_means(model.hidden_means(values))
            return {"reconstruction_error": float(shares @ np.square(values - again).mean(axis=1))}
        scores = unit_log_probabilities(model, values, self.units)
        return {"log_pseudolikelihood": model.visible.n_units * float(shares @ scores)}


def unit_log_probabilities(model: RestrictedModel, values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return ``log P(v_i | all others)`` of one unit of each row, for a discrete visible layer.

    A binary unit that holds a probability is scored by the mean over its two values.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.monitors import unit_log_probabilities
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm = RestrictedModel.build(BinaryLayer(2), BinaryLayer(1), [0.0, np.log(3)])
    >>> np.exp(unit_log_probabilities(rbm, np.array([[0.0, 1.0]]), np.array([1])))
    array([0.75])
    """
    shares = _shares_of_values(model, values, units)
    log_weights = np.full(shares.shape, -np.inf)
    for k in range(shares.shape[1]):
        possible = ~np.isnan(shares[:, k])
        other = values[possible].copy()
        _set_unit(model, other, units[possible], k)
        log_weights[possible, k] = model.value_log_weights(other)
    scores = log_softmax(log_weights, axis=1)
    return np.multiply(shares, scores, where=shares > 0, out=np.zeros_like(scores)).sum(axis=1)


def _shares_of_values(model: RestrictedModel, values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return which value one unit of each row has, as a share for each value; NaN where there is no such value."""
    here = np.arange(len(values))
    if isinstance(model.visible, CategoricalLayer):
        sizes = np.asarray(model.visible.sizes)
        shares = np.full((len(values), sizes.max()), np.nan)
        for k in range(sizes.max()):
            has = sizes[units] > k
            shares[has, k] = values[here[has], model.visible.starts[units[has]] + k]
        return shares
    low = _low(model)
    up = (values[here, units] - low) / (1.0 - low)
    return np.column_stack([1.0 - up, up])


def _set_unit(model: RestrictedModel, values: np.ndarray, units: np.ndarray, k: int) -> None:
    """Give one unit of each row its value number `k`, in place."""
    here = np.arange(len(values))
    if isinstance(model.visible, CategoricalLayer):
        values[model.visible.unit_of_column == units[:, None]] = 0.0
        values[here, model.visible.starts[units] + k] = 1.0
    else:
        values[here, units] = (_low(model), 1.0)[k]


def _low(model: RestrictedModel) -> float:
    return -1.0 if model.visible.kind == "spin" else 0.0


__all__ = ["HeldOutRows", "Monitor", "Watched", "unit_log_probabilities"]
