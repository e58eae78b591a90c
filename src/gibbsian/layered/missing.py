"""Missing cells of a restricted machine: summed out exactly where few enough, else by Gibbs sampling given the rest.

Given the present cells of a row, its missing cells and the hidden units form a smaller restricted machine, so either of
the two may be enumerated and the other summed in closed form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from gibbsian.errors import TooExpensiveError
from gibbsian.layered.rows import LayerRows, layer_columns
from gibbsian.models.layers import CategoricalLayer, Layer, as_layer
from gibbsian.models.restricted import RestrictedModel

# States of missing cells or hidden units that are summed for one row.
MOST_STATES = 2**16
# Steps of the chains that fill what is out of reach: as many again are left aside before, and rows share the chains.
N_STEPS = 200
ROWS_AT_ONCE = 1024


def log_evidence(model: RestrictedModel, rows: LayerRows) -> np.ndarray:
    """Return ``log P(present cells) + log Z`` of each row: missing cells and hidden units are summed out.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.missing import log_evidence
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.layers import SpinLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm = RestrictedModel.build(SpinLayer(2), SpinLayer(1))
    >>> nothing_seen = LayerRows(np.ones((1, 2)), missing=np.array([[True, True]]))
    >>> log_evidence(rbm, nothing_seen).round(4)                             # log Z = log 2^3
    array([2.0794])
    """
    evidence = np.empty(rows.n_rows)
    for block in _complete_blocks(rows):
        evidence[block] = model.log_weights(rows.states[block])
    sums = _RowSums(model)
    for row in _incomplete(rows):
        missing = np.asarray(rows.missing)[row]
        if not sums.in_reach(missing):
            raise TooExpensiveError(
                f"row {row} lacks {int(missing.sum())} cells, too many to sum over beside {model.hidden.n_units} "
                "hidden units",
                "leave the row out, or fill its cells first (impute samples them)",
            )
        evidence[row] = sums.log_evidence(rows.states[row], missing)
    return evidence


class Filled(NamedTuple):
    """What is expected of rows given their present cells.

    Parameters
    ----------
    visible : ndarray of shape (n_rows, visible.width)
        Values; those of missing cells are their means.
    hidden : ndarray of shape (n_rows, hidden.width)
        Means of the hidden units, the missing cells averaged over.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.missing import Filled
    >>> Filled(np.zeros((4, 3)), np.zeros((4, 2))).hidden.shape
    (4, 2)
    """

    visible: np.ndarray
    hidden: np.ndarray


def fill(model: RestrictedModel, rows: LayerRows, rng: np.random.Generator) -> Filled:
    """Return what is expected of missing cells and of hidden units given the present cells.

    Exact where the sum is in reach, else by `N_STEPS` steps of block Gibbs sampling with the present cells clamped.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.missing import fill
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm = RestrictedModel.build(BinaryLayer(2), BinaryLayer(1), visible_biases=[0.0, np.log(3.0)])
    >>> rows = LayerRows(np.array([[1, 0]]), missing=np.array([[False, True]]))
    >>> fill(rbm, rows, np.random.default_rng(0)).visible
    array([[1.  , 0.75]])
    """
    visible = model.visible.encode(rows.encodable())
    hidden = model.hidden_means(visible)
    holes = _incomplete(rows)
    if not holes.size:
        return Filled(visible, hidden)
    sums = _RowSums(model)
    missing = np.asarray(rows.missing)
    near = np.array([sums.in_reach(missing[row]) for row in holes])
    for row in holes[near]:
        visible[row], hidden[row] = sums.means(rows.states[row], missing[row])
    far = holes[~near]
    for start in range(0, len(far), ROWS_AT_ONCE):
        block = far[start : start + ROWS_AT_ONCE]
        gaps = layer_columns(model.visible, missing[block])
        visible[block], hidden[block] = _sampled_means(model, visible[block], gaps, rng)
    return Filled(visible, hidden)


def _sampled_means(
    model: RestrictedModel, values: np.ndarray, holes: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Average the conditional means of missing cells and hidden units along a chain for each row."""
    state = np.where(holes, model.visible.draw(np.zeros_like(values), rng), values)
    visible, hidden = np.zeros_like(values), np.zeros((len(values), model.hidden.width))
    for step in range(2 * N_STEPS):
        h = model.draw_hidden(state, rng)
        if step >= N_STEPS:
            visible += model.visible_means(h)
            hidden += model.hidden_means(state)
        state = np.where(holes, model.draw_visible(h, rng), values)
    return np.where(holes, visible / N_STEPS, values), hidden / N_STEPS


def _incomplete(rows: LayerRows) -> np.ndarray:
    return np.flatnonzero(rows.missing.any(axis=1)) if rows.missing is not None else np.empty(0, dtype=np.int64)


def _complete_blocks(rows: LayerRows) -> Iterator[np.ndarray]:
    whole = np.setdiff1d(np.arange(rows.n_rows), _incomplete(rows))
    for start in range(0, len(whole), 4 * ROWS_AT_ONCE):
        yield whole[start : start + 4 * ROWS_AT_ONCE]


@dataclass
class _RowSums:
    """Sums over the missing cells and the hidden units of single rows."""

    model: RestrictedModel

    def in_reach(self, missing: np.ndarray) -> bool:
        return min(_part(self.model.visible, missing).n_states, self.model.hidden.n_states) <= MOST_STATES

    def log_evidence(self, states: np.ndarray, missing: np.ndarray) -> float:
        return float(logsumexp(self._terms(states, missing)[0]))

    def means(self, states: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the expected values of the visible and of the hidden units."""
        log_weights, visible, hidden = self._terms(states, missing)
        shares = np.exp(log_weights - logsumexp(log_weights))
        return shares @ visible, shares @ hidden

    def _terms(self, states: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log-weights of the states that are listed, and the values or means of both layers at each."""
        model, part = self.model, _part(self.model.visible, missing)
        holes = layer_columns(model.visible, missing)
        row = model.visible.encode(np.where(missing, states.dtype.type(0), states)[None])[0]
        if part.n_states <= model.hidden.n_states:
            values = np.tile(row, (int(part.n_states), 1))
            values[:, holes] = part.enumerate(0, int(part.n_states))
            return model.value_log_weights(values), values, model.hidden_means(values)
        h, fields, linear = self._hidden_states
        present = fields[:, ~holes] @ row[~holes]
        visible = np.where(holes, model.visible.means(fields), row)
        return linear + present + part.log_normaliser(fields[:, holes]), visible, h

    @cached_property
    def _hidden_states(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All hidden states, the visible fields at each, and the log-weights of the hidden biases."""
        model = self.model
        h = model.hidden.enumerate(0, int(model.hidden.n_states))
        return h, model.visible_fields(h), h @ model.hidden_biases / model.temperature


def _part(layer: Layer, units: np.ndarray) -> Layer:
    """The layer of some of its units; only discrete ones can be missing."""
    if isinstance(layer, CategoricalLayer):
        return CategoricalLayer([size for size, wanted in zip(layer.sizes, units, strict=True) if wanted])
    return as_layer(layer.kind, int(units.sum()))


__all__ = ["Filled", "fill", "log_evidence"]
