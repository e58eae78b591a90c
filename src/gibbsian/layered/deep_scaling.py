"""Deep machines with Gaussian visible units in standard units, and back in those of the data."""

from __future__ import annotations

import numpy as np

from gibbsian.layered.scaling import ColumnScale
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.deep import DeepModel
from gibbsian.models.restricted import RestrictedModel


def deep_to_data(scale: ColumnScale, model: DeepModel | BeliefNetwork) -> DeepModel | BeliefNetwork:
    """Return the machine over the data of one over standard units: only what touches the visible layer changes.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_scaling import deep_to_data
    >>> from gibbsian.layered.scaling import ColumnScale
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import BinaryLayer, GaussianLayer
    >>> standard = DeepModel.build([GaussianLayer(1), BinaryLayer(1), BinaryLayer(1)])
    >>> deep_to_data(ColumnScale(np.array([5.0]), np.array([2.0])), standard).means(0, [None, np.zeros((1, 1))])
    array([[5.]])
    """
    if isinstance(model, DeepModel):
        return _deep_model(scale, model)
    return _belief_network(scale, model)


def deep_from_data(scale: ColumnScale, model: DeepModel | BeliefNetwork) -> DeepModel | BeliefNetwork:
    """Return the machine over standard units of one over the data.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_scaling import deep_from_data, deep_to_data
    >>> from gibbsian.layered.scaling import ColumnScale
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import BinaryLayer, GaussianLayer
    >>> scale = ColumnScale(np.array([5.0]), np.array([2.0]))
    >>> dbm = DeepModel((GaussianLayer(1), BinaryLayer(1), BinaryLayer(1)), np.array([0.5, 1.0, 2.0, 3.0, 4.0]))
    >>> deep_from_data(scale, deep_to_data(scale, dbm)).theta
    array([0.5, 1. , 2. , 3. , 4. ])
    """
    return deep_to_data(ColumnScale(-scale.centres / scale.spreads, 1.0 / scale.spreads), model)


def _deep_model(scale: ColumnScale, model: DeepModel) -> DeepModel:
    moved = scale.to_data(_lowest(model, model.biases[0], model.biases[1], model.weights[0]))
    biases = [moved.visible_biases, moved.hidden_biases, *model.biases[2:]]
    layers = [moved.visible, *model.layers[1:]]
    return DeepModel.build(layers, biases, [moved.weights, *model.weights[1:]], model.temperature)


def _belief_network(scale: ColumnScale, model: BeliefNetwork) -> BeliefNetwork:
    if not model.pairs:
        return BeliefNetwork.stack([scale.to_data(model.top)])
    lowest = model.pairs[0]
    down = scale.to_data(
        _lowest(model, lowest.downward_biases, np.zeros_like(lowest.upward_biases), lowest.downward_weights)
    )
    up = scale.to_data(
        _lowest(model, np.zeros_like(lowest.downward_biases), lowest.upward_biases, lowest.upward_weights)
    )
    moved = [down.visible_biases, up.hidden_biases, down.weights.ravel(), up.weights.ravel()]
    rest = model.theta[sum(part.size for part in lowest) :]
    return BeliefNetwork((down.visible, *model.layers[1:]), np.concatenate([*moved, rest]), model.temperature)


def _lowest(
    model: DeepModel | BeliefNetwork, visible_biases: np.ndarray, hidden_biases: np.ndarray, weights: np.ndarray
) -> RestrictedModel:
    """The visible and the lowest hidden layer as a machine of their own."""
    visible, hidden = model.layers[:2]
    return RestrictedModel.build(visible, hidden, visible_biases, hidden_biases, weights, model.temperature)


__all__ = ["deep_from_data", "deep_to_data"]
