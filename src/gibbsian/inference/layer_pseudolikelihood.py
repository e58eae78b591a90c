"""The pseudolikelihood of a restricted machine: each visible unit given the others, the hidden layer summed out.

It needs no log Z, so that it is available during training at every size. The conditionals of a row take as long as one
product of the weights with a minibatch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gibbsian.arrays import Floats, Integers, States
from gibbsian.errors import ArgumentError
from gibbsian.inference.layer_flips import FlipSums, is_two_valued
from gibbsian.models.base import Model
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import columns_of, value_tables
from gibbsian.resources import row_blocks
from gibbsian.startup import log_softmax


def log_pseudolikelihood(model: Model[StackFamily], codes: States) -> Floats:
    """Return ``sum_i log P(v_i | v_-i)`` of each row, exactly.

    Parameters
    ----------
    model : Model of a StackFamily
        A machine with two layers, the visible one discrete.
    codes : ndarray of shape (n_rows, n_units)
        Rows of the visible units.
    """
    visible, hidden = model.family.layers
    if visible.variables.real:
        raise ArgumentError(
            "the pseudolikelihood sums over values", "it needs discrete visible units, not Gaussian ones"
        )
    blocks = row_blocks(len(codes), visible.width + hidden.width)
    return np.concatenate([np.empty(0), *(_of_rows(model, visible.encode(codes[block])) for block in blocks)])


def _of_rows(model: Model[StackFamily], values: Floats) -> Floats:
    if is_two_valued(model.family):
        return np.asarray(-np.logaddexp(0.0, -conditional_costs(model, values)).sum(axis=1), np.float64)
    logs = ((log_softmax(scores, axis=1), codes) for scores, codes in _scores(model, values))
    return sum((each[np.arange(len(values)), codes] for each, codes in logs), start=np.zeros(len(values)))


def conditional_costs(model: Model[StackFamily], values: Floats) -> Floats:
    """Return ``log P(v) - log P(v with unit i at its other value)`` of two-valued visible units, row by row."""
    if is_two_valued(model.family):
        return FlipSums(model.family, model.parts, values).costs()
    rows = np.arange(len(values))
    return np.column_stack([scores[rows, codes] - scores[rows, 1 - codes] for scores, codes in _scores(model, values)])


def column_costs(model: Model[StackFamily], values: Floats) -> tuple[Integers | None, Floats]:
    """Return the first column of each visible unit, and ``log P(v) - log P(v with unit i changed)``, row by row.

    A column is for a value of a unit. Units of two values have one column, for the other value, and the first columns
    are None.
    """
    visible = model.family.layers[0].variables
    if visible.two_valued:
        return None, conditional_costs(model, values)
    rows = np.arange(len(values))
    return visible.offsets, np.hstack(
        [scores[rows, codes][:, None] - scores for scores, codes in _scores(model, values)]
    )


def _scores(model: Model[StackFamily], values: Floats) -> Iterator[tuple[Floats, Integers]]:
    """Yield for each unit the log-weights of its values, up to a constant of the row, and its codes.

    The hidden fields change by the difference of two rows of the weights.
    """
    (visible, hidden), ((biases, _), (weights,)) = model.family.layers, model.parts
    fields = model.family.fields(model.parts, 1, [values, None])
    for at, table in zip(columns_of(visible), value_tables(visible), strict=True):
        without = fields - values[:, at] @ weights[at]
        each = [row @ biases[at] + hidden.log_normaliser(without + row @ weights[at]) for row in table]
        yield np.column_stack(each), np.abs(values[:, at, None] - table.T).sum(axis=1).argmin(axis=1)
