"""The pseudolikelihood of a restricted machine: each visible unit given the others, the hidden layer summed out.

It needs no log Z, so it follows training at every size; all conditionals of a row cost as much as one product of
the weights with a minibatch.
"""

from __future__ import annotations

import numpy as np

from gibbsian.blocks import row_blocks
from gibbsian.errors import ArgumentError
from gibbsian.models.layers import CategoricalLayer
from gibbsian.models.restricted import RestrictedModel
from gibbsian.startup import log_softmax


def log_pseudolikelihood(model: RestrictedModel, states: np.ndarray) -> np.ndarray:
    """Return ``sum_i log P(v_i | v_-i)`` of each row, exactly.

    Parameters
    ----------
    model : RestrictedModel
        A machine whose visible units are discrete.
    states : array-like, shape (n_rows, n_units)
        Visible states.
    """
    states = np.asarray(states)
    if not np.isfinite(model.visible.n_states):
        raise ArgumentError(
            "the pseudolikelihood sums over values", "it needs discrete visible units, not Gaussian ones"
        )
    blocks = row_blocks(len(states), model.visible.width + model.hidden.width)
    parts = [_of_rows(model, states[block]) for block in blocks]
    return np.concatenate(parts) if parts else np.empty(0)


def _of_rows(model: RestrictedModel, states: np.ndarray) -> np.ndarray:
    if isinstance(model.visible, CategoricalLayer):
        return _of_categories(model, model.visible.encode(states), np.asarray(states, dtype=np.int64))
    return -np.logaddexp(0.0, -model.conditional_costs(states)).sum(axis=1)


def _of_categories(model: RestrictedModel, values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Every value of every unit in turn, the hidden fields moved by the difference of two rows of the weights."""
    layer = model.visible
    assert isinstance(layer, CategoricalLayer)
    hidden = model.hidden.tempered(model.temperature)
    weights, biases = model.weights / model.temperature, model.visible_biases / model.temperature
    fields = model.hidden_fields(values)
    total = np.zeros(len(values))
    for unit, (start, size) in enumerate(zip(layer.starts.tolist(), layer.sizes, strict=True)):
        without = fields - weights[start + codes[:, unit]]
        scores = np.column_stack(
            [biases[column] + hidden.log_normaliser(without + weights[column]) for column in range(start, start + size)]
        )
        total += log_softmax(scores, axis=1)[np.arange(len(values)), codes[:, unit]]
    return total
