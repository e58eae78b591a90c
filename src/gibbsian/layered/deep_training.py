"""Learning a deep Boltzmann machine: mean field for the clamped phase, chains for the free one.

The gradient of the bound ``E_Q[log P(v, h)] + H(Q)`` is the difference of the moments of the two phases (YK15's clamped
and free phase; Salakhutdinov and Hinton 2009): of the factorised posterior given each row, and of the model. The second
comes from any free phase of restricted machines, because even layers against odd ones are one (`DeepModel.folded`).
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gibbsian.layered.deep_mean_field import MeanField, Posterior, mean_statistics
from gibbsian.layered.epochs import Direction, EpochLearner
from gibbsian.layered.phases import FREE_PHASES, FreePhase, as_free_phase
from gibbsian.layered.rows import LayerRows, layer_columns
from gibbsian.models.deep import DeepModel

# The offsets of the centred gradient follow the clamped means by this share at every step.
_OFFSET_SHARE = 0.01
# Rows from which the offsets, and a free phase, may take their start.
_ROWS_TO_START = 1000


class DeepPhases(NamedTuple):
    """What is remembered from one minibatch to the next.

    Parameters
    ----------
    free : Any
        State of the free phase.
    offsets : ndarray
        Means of all layers from the bottom, averaged over the past.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_training import DeepPhases
    >>> DeepPhases(None, np.zeros(5)).offsets.size
    5
    """

    free: Any
    offsets: np.ndarray


@dataclass(frozen=True)
class DeepLearner(EpochLearner):
    """Stochastic ascent of the mean-field bound; one step is one epoch.

    Parameters
    ----------
    n_epochs, learning_rate, schedule, batch_size, momentum, l1, l2
        As for `RestrictedLearner`.
    n_chains, n_steps : int
        Settings of a free phase given by name, as far as it has them.
    free_phase : str or FreePhase
        How the moments under the model are found: ``"pcd"`` (chains that go on), or any other of ``FREE_PHASES``.
    centred : bool
        Whether moments are taken about the means of the data (Montavon and Mueller 2012): without it the upper layers
        of a deep machine learn little.
    mean_field : MeanField
        The clamped phase.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_training import DeepLearner
    >>> from gibbsian.layered.epochs import train_epochs
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import SpinLayer
    >>> rng = np.random.default_rng(0)
    >>> column = np.where(rng.random((200, 1)) < 0.5, 1, -1)
    >>> rows = LayerRows(np.hstack([column, column, -column]))
    >>> layers = [SpinLayer(3), SpinLayer(2), SpinLayer(1)]
    >>> start = DeepModel.build(layers, weights=[0.1 * rng.standard_normal((3, 2)), 0.1 * rng.standard_normal((2, 1))])
    >>> dbm = train_epochs(DeepLearner(n_epochs=50, batch_size=20), start, rows, rng).model
    >>> probability = np.exp(dbm.log_weights(np.array([[1, 1, -1], [1, 1, 1]])) - dbm.log_partition())
    >>> bool(probability[0] > 0.4 > 0.05 > probability[1])
    True
    """

    free_phase: str | FreePhase = "pcd"
    centred: bool = True
    mean_field: MeanField = field(default_factory=lambda: MeanField(max_iter=5, tol=1e-3))

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.free_phase, str):
            known = inspect.signature(FREE_PHASES.factory(self.free_phase)).parameters
            given = {name: getattr(self, name) for name in ("n_steps", "n_chains") if name in known}
            object.__setattr__(self, "free_phase", FREE_PHASES.create(self.free_phase, **given))
        as_free_phase(self.free_phase)

    def start(self, model: DeepModel, rows: LayerRows, rng: np.random.Generator) -> DeepPhases:
        """Start the chains, and take the offsets from some of the rows."""
        some = rows.take(rng.permutation(rows.n_rows)[:_ROWS_TO_START])
        means = self._posterior(model, some).means
        folded = model.folded()
        even = model.fold_values(means)[0]
        states = folded.visible.decode(folded.visible.draw(folded.visible.fields_of(even), rng))
        free = self.free_phase.init(folded, LayerRows(states), rng)  # type: ignore[union-attr]
        return DeepPhases(free, _layer_means(means))

    def direction(self, model: DeepModel, phases: DeepPhases, batch: LayerRows, rng: np.random.Generator) -> Direction:
        """Return clamped less free moments, about the offsets."""
        posterior = self._posterior(model, batch)
        even = model.fold_values(posterior.means)[0]
        moments, free = self.free_phase(model.folded(), phases.free, even, rng)  # type: ignore[operator]
        flat = np.concatenate([moments.visible, moments.hidden, moments.products.ravel()])
        difference = (mean_statistics(model, posterior.means) - model.unfold(flat)) / model.temperature
        gradient = centred_gradient(model, difference, phases.offsets) if self.centred else difference
        offsets = phases.offsets + _OFFSET_SHARE * (_layer_means(posterior.means) - phases.offsets)
        return Direction(gradient, DeepPhases(free, offsets), _misfit(model, posterior))

    def _posterior(self, model: DeepModel, rows: LayerRows) -> Posterior:
        if rows.missing is None:
            return self.mean_field(model, model.visible.encode(rows.states))
        states = np.where(rows.missing, rows.states.dtype.type(0), rows.states)
        return self.mean_field(model, model.visible.encode(states), layer_columns(model.visible, rows.missing))


def centred_gradient(model: DeepModel, difference: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the ascent direction that belongs to moments about offsets, from a difference of plain moments.

    Parameters
    ----------
    model : DeepModel
        For the layout.
    difference : ndarray
        Clamped less free moments, in the layout of theta.
    offsets : ndarray
        Offsets of all layers from the bottom.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_training import centred_gradient
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import BinaryLayer
    >>> dbm = DeepModel.build([BinaryLayer(1), BinaryLayer(1)])
    >>> centred_gradient(dbm, np.array([0.25, 0.0, 0.125]), np.array([0.5, 0.5]))     # the visible mean alone differs
    array([0.25, 0.  , 0.  ])
    """
    firsts, products = model.split(difference)
    centres = np.split(offsets, np.cumsum([layer.width for layer in model.layers])[:-1])
    biases, weights = [part.copy() for part in firsts], []
    for place, matrix in enumerate(products):
        centred = matrix - np.outer(centres[place], firsts[place + 1]) - np.outer(firsts[place], centres[place + 1])
        biases[place] -= centred @ centres[place + 1]
        biases[place + 1] -= centres[place] @ centred
        weights.append(centred.ravel())
    return np.concatenate([*biases, *weights])


def _layer_means(means: tuple[np.ndarray, ...]) -> np.ndarray:
    return np.concatenate([part.mean(axis=0) for part in means])


def _misfit(model: DeepModel, posterior: Posterior) -> float:
    """Mean of ``-log P(v | h)`` at the posterior means of the lowest hidden layer."""
    v, layer = posterior.means[0], model.tempered[0]
    fields = model.fields(0, posterior.means)
    log_probability = np.einsum("mi,mi->m", fields, v) + layer.log_measure(v) - layer.log_normaliser(fields)
    return -float(log_probability.mean())


__all__ = ["DeepLearner", "DeepPhases", "centred_gradient"]
