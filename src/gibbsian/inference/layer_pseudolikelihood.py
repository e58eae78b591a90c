"""The pseudolikelihood of a restricted machine: each visible unit given the others, the hidden layer summed out.

It needs no log Z, so it follows training at every size; all conditionals of a row cost as much as one product of
the weights with a minibatch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.inference.layer_flips import FlipSums, is_two_valued
from gibbsian.models.family import Model
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import columns_of, value_tables, values_of
from gibbsian.resources import row_blocks
from gibbsian.startup import log_softmax


def log_pseudolikelihood(model: Model[StackFamily], states: np.ndarray) -> np.ndarray:
    """Return ``sum_i log P(v_i | v_-i)`` of each row, exactly.

    Parameters
    ----------
    model : Model of a StackFamily
        A machine of two layers whose visible units are discrete.
    states : array-like, shape (n_rows, n_units)
        Visible states.
    """
    states, (visible, hidden) = np.asarray(states), model.family.layers
    if visible.variables.real:
        raise ArgumentError(
            "the pseudolikelihood sums over values", "it needs discrete visible units, not Gaussian ones"
        )
    blocks = row_blocks(len(states), visible.width + hidden.width)
    parts = [_of_rows(model, values_of(visible, states[block])) for block in blocks]
    return np.concatenate(parts) if parts else np.empty(0)


def _of_rows(model: Model[StackFamily], values: np.ndarray) -> np.ndarray:
    if is_two_valued(model.family):
        return -np.logaddexp(0.0, -conditional_costs(model, values)).sum(axis=1)
    total, rows = np.zeros(len(values)), np.arange(len(values))
    for scores, here in _scores(model, values):
        total += log_softmax(scores, axis=1)[rows, here]
    return total


def conditional_costs(model: Model[StackFamily], values: np.ndarray) -> np.ndarray:
    """Return ``log P(v) - log P(v with unit i at its other value)`` of two-valued visible units, row by row."""
    if is_two_valued(model.family):
        return FlipSums(model.family, model.parts, values).costs()
    rows = np.arange(len(values))
    return np.column_stack([scores[rows, here] - scores[rows, 1 - here] for scores, here in _scores(model, values)])


def column_costs(model: Model[StackFamily], values: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """Return ``log P(v) - log P(v with unit i changed)`` of discrete visible units, row by row, and where units begin.

    Units of two values have a column for the other one, and None is told; others have a column for each value.
    """
    visible = model.family.layers[0]
    if visible.variables.two_valued:
        return None, conditional_costs(model, values)
    rows = np.arange(len(values))
    costs = [scores[rows, here][:, None] - scores for scores, here in _scores(model, values)]
    return np.concatenate([[0], np.cumsum(visible.variables.sizes)]), np.hstack(costs)


def _scores(model: Model[StackFamily], values: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for each unit the log-weights of its values, up to a constant of the row, and which one the row has.

    The hidden fields are moved by the difference of two rows of the weights.
    """
    (visible, hidden), ((biases, _), (weights,)) = model.family.layers, model.parts
    fields = model.family.fields(model.parts, 1, [values, None])
    for at, table in zip(columns_of(visible), value_tables(visible), strict=True):
        without = fields - values[:, at] @ weights[at]
        each = [row @ biases[at] + hidden.log_normaliser(without + row @ weights[at]) for row in table]
        yield np.column_stack(each), np.abs(values[:, at, None] - table.T).sum(axis=1).argmin(axis=1)
